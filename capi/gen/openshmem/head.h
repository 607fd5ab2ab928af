/*
 * shmem.h - OpenSHMEM 1.5 over libshmem.so.
 *
 * Names, arguments and meaning are those of the OpenSHMEM 1.5 specification; docs/openshmem.md says what this
 * implementation adds and where it is stricter. Functions without a status end the job with words on stderr when they
 * cannot do what was asked; those with one print the words and return nonzero.
 */
#ifndef OPENSHMEM_SHMEM_H
#define OPENSHMEM_SHMEM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#include <complex>
typedef std::complex<float> shmem_complexf_t;
typedef std::complex<double> shmem_complexd_t;
extern "C" {
#else
typedef float _Complex shmem_complexf_t;
typedef double _Complex shmem_complexd_t;
#endif

#if defined(__GNUC__)
#define SHMEM_API __attribute__((visibility("default")))
#else
#define SHMEM_API
#endif

#define SHMEM_MAJOR_VERSION 1
#define SHMEM_MINOR_VERSION 5
#define SHMEM_MAX_NAME_LEN 256
#define SHMEM_VENDOR_STRING "goshmem"

enum { SHMEM_THREAD_SINGLE = 0, SHMEM_THREAD_FUNNELED, SHMEM_THREAD_SERIALIZED, SHMEM_THREAD_MULTIPLE };

/* Comparisons of waits and tests. */
enum { SHMEM_CMP_EQ = 0, SHMEM_CMP_NE, SHMEM_CMP_GT, SHMEM_CMP_GE, SHMEM_CMP_LT, SHMEM_CMP_LE };

/* How a signal is updated. */
enum { SHMEM_SIGNAL_SET = 0, SHMEM_SIGNAL_ADD = 1 };

/* Hints of shmem_malloc_with_hints: promises of use, which change nothing here. */
#define SHMEM_MALLOC_ATOMICS_REMOTE (1l << 0)
#define SHMEM_MALLOC_SIGNAL_REMOTE (1l << 1)

/* Teams and contexts are handles: numbers in the clothes of a pointer, so that the compiler tells them apart. */
typedef struct shmem_team_opaque { int unused; } *shmem_team_t;
typedef struct shmem_ctx_opaque { int unused; } *shmem_ctx_t;

#define SHMEM_TEAM_INVALID ((shmem_team_t)0)
#define SHMEM_TEAM_WORLD ((shmem_team_t)1)
#define SHMEM_TEAM_SHARED ((shmem_team_t)2)

#define SHMEM_CTX_INVALID ((shmem_ctx_t)0)
#define SHMEM_CTX_DEFAULT ((shmem_ctx_t)1)
#define SHMEM_CTX_SERIALIZED (1l << 0)
#define SHMEM_CTX_PRIVATE (1l << 1)
#define SHMEM_CTX_NOSTORE (1l << 2)

typedef struct {
  int num_contexts;
} shmem_team_config_t;
#define SHMEM_TEAM_NUM_CONTEXTS (1l << 0)

/* Work arrays of the active-set collectives: they must exist and be initialised, as the specification has it. */
#define SHMEM_SYNC_VALUE 0l
#define SHMEM_SYNC_SIZE 2
#define SHMEM_BARRIER_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_BCAST_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_COLLECT_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALL_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALLS_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_MIN_WRKDATA_SIZE 1

/* Older names (deprecated). */
#define _SHMEM_MAJOR_VERSION SHMEM_MAJOR_VERSION
#define _SHMEM_MINOR_VERSION SHMEM_MINOR_VERSION
#define _SHMEM_MAX_NAME_LEN SHMEM_MAX_NAME_LEN
#define _SHMEM_VENDOR_STRING SHMEM_VENDOR_STRING
#define _SHMEM_SYNC_VALUE SHMEM_SYNC_VALUE
#define _SHMEM_BARRIER_SYNC_SIZE SHMEM_BARRIER_SYNC_SIZE
#define _SHMEM_BCAST_SYNC_SIZE SHMEM_BCAST_SYNC_SIZE
#define _SHMEM_REDUCE_SYNC_SIZE SHMEM_REDUCE_SYNC_SIZE
#define _SHMEM_COLLECT_SYNC_SIZE SHMEM_COLLECT_SYNC_SIZE
#define _SHMEM_REDUCE_MIN_WRKDATA_SIZE SHMEM_REDUCE_MIN_WRKDATA_SIZE
#define _SHMEM_CMP_EQ SHMEM_CMP_EQ
#define _SHMEM_CMP_NE SHMEM_CMP_NE
#define _SHMEM_CMP_GT SHMEM_CMP_GT
#define _SHMEM_CMP_GE SHMEM_CMP_GE
#define _SHMEM_CMP_LT SHMEM_CMP_LT
#define _SHMEM_CMP_LE SHMEM_CMP_LE
#define start_pes(npes) ((void)(npes), shmem_init())
#define _my_pe() shmem_my_pe()
#define _num_pes() shmem_n_pes()
#define shmalloc(size) shmem_malloc(size)
#define shfree(ptr) shmem_free(ptr)
#define shrealloc(ptr, size) shmem_realloc(ptr, size)
#define shmemalign(alignment, size) shmem_align(alignment, size)
