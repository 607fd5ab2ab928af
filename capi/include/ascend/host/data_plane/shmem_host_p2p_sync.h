/*
 * shmem_host_p2p_sync.h - waiting for and testing words of this PE's own symmetric memory, which other PEs change.
 *
 * cmp is a value of aclshmem_cmp_op_type_t; another is an error: it is logged and answers as an empty set does, at once.
 * status may be null; a word i with status[i] != 0 does not count. indices holds nelems numbers. *res_out:
 *   any    the number of a word that compares; SIZE_MAX without one (test) or with an empty set
 *   some   how many compare, their numbers are in indices; 0 for an empty set
 *   test   1 or 0; test_all_vector: 1 also for an empty set
 * The vector forms compare word i with cmp_values[i]. A wait that cannot end (a PE died, the job was aborted, SHMEM_TIMEOUT)
 * is logged and answers like an empty set. Threads: any. Collective: no. Blocks: the waits, the tests not.
 */
#ifndef SHMEM_HOST_SYNC_H
#define SHMEM_HOST_SYNC_H

#ifdef ACLSHMEM_HAVE_ACL_ON_PATH
#include "acl/acl.h"
#else
#include "../../acl/acl.h"
#endif
#include "../shmem_host_def.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Waits for a signal word. */
ACLSHMEM_HOST_API void aclshmem_signal_wait_until(int32_t *sig_addr, int cmp, int32_t cmp_val);
/* The same as a step of a stream: what is queued after it comes after the signal. */
ACLSHMEM_HOST_API void aclshmemx_signal_wait_until_on_stream(int32_t *sig_addr, int cmp, int32_t cmp_val, aclrtStream stream);

/* Completes what was queued on a stream before, at every target. */
ACLSHMEM_HOST_API void aclshmemx_quiet_on_stream(aclrtStream stream);
/* The same after *_on_stream calls to members of handle.team_id. Collective: no. */
ACLSHMEM_HOST_API void aclshmemx_handle_wait(aclshmem_handle_t handle, aclrtStream stream);

#define ACLSHMEM_WAIT_UNTIL(NAME, TYPE) ACLSHMEM_HOST_API void aclshmem_##NAME##_wait_until(TYPE *ivar, int cmp, TYPE cmp_value)
/* Until *ivar is no longer cmp_value. */
#define ACLSHMEM_WAIT(NAME, TYPE) ACLSHMEM_HOST_API void aclshmem_##NAME##_wait(TYPE *ivar, TYPE cmp_value)
#define ACLSHMEM_WAIT_UNTIL_ALL(NAME, TYPE) \
  ACLSHMEM_HOST_API void aclshmem_##NAME##_wait_until_all(TYPE *ivars, size_t nelems, const int *status, int cmp, TYPE cmp_value)
#define ACLSHMEM_WAIT_UNTIL_ANY(NAME, TYPE)                                                                                             \
  ACLSHMEM_HOST_API void aclshmem_##NAME##_wait_until_any(TYPE *ivars, size_t nelems, const int *status, int cmp, TYPE cmp_value,      \
                                                          size_t *res_out)
#define ACLSHMEM_WAIT_UNTIL_SOME(NAME, TYPE)                                                                                            \
  ACLSHMEM_HOST_API void aclshmem_##NAME##_wait_until_some(TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp,    \
                                                           TYPE cmp_value, size_t *res_out)
#define ACLSHMEM_WAIT_UNTIL_ALL_VECTOR(NAME, TYPE) \
  ACLSHMEM_HOST_API void aclshmem_##NAME##_wait_until_all_vector(TYPE *ivars, size_t nelems, const int *status, int cmp, TYPE *cmp_values)
#define ACLSHMEM_WAIT_UNTIL_ANY_VECTOR(NAME, TYPE)                                                                                      \
  ACLSHMEM_HOST_API void aclshmem_##NAME##_wait_until_any_vector(TYPE *ivars, size_t nelems, const int *status, int cmp,               \
                                                                 TYPE *cmp_values, size_t *res_out)
#define ACLSHMEM_WAIT_UNTIL_SOME_VECTOR(NAME, TYPE)                                                                                     \
  ACLSHMEM_HOST_API void aclshmem_##NAME##_wait_until_some_vector(TYPE *ivars, size_t nelems, size_t *indices, const int *status,      \
                                                                  int cmp, TYPE *cmp_values, size_t *res_out)
#define ACLSHMEM_TEST(NAME, TYPE) ACLSHMEM_HOST_API void aclshmem_##NAME##_test(TYPE *ivars, int cmp, TYPE cmp_value, int *res_out)
#define ACLSHMEM_TEST_ANY(NAME, TYPE)                                                                                                   \
  ACLSHMEM_HOST_API void aclshmem_##NAME##_test_any(TYPE *ivars, size_t nelems, const int *status, int cmp, TYPE cmp_value,            \
                                                    size_t *res_out)
#define ACLSHMEM_TEST_SOME(NAME, TYPE)                                                                                                  \
  ACLSHMEM_HOST_API void aclshmem_##NAME##_test_some(TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp,          \
                                                     TYPE cmp_value, size_t *res_out)
#define ACLSHMEM_TEST_ALL_VECTOR(NAME, TYPE)                                                                                            \
  ACLSHMEM_HOST_API void aclshmem_##NAME##_test_all_vector(TYPE *ivars, size_t nelems, const int *status, int cmp, TYPE *cmp_values,   \
                                                           int *res_out)
#define ACLSHMEM_TEST_ANY_VECTOR(NAME, TYPE)                                                                                            \
  ACLSHMEM_HOST_API void aclshmem_##NAME##_test_any_vector(TYPE *ivars, size_t nelems, const int *status, int cmp, TYPE *cmp_values,   \
                                                           size_t *res_out)
#define ACLSHMEM_TEST_SOME_VECTOR(NAME, TYPE)                                                                                           \
  ACLSHMEM_HOST_API void aclshmem_##NAME##_test_some_vector(TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp,   \
                                                            TYPE *cmp_values, size_t *res_out)

ACLSHMEM_P2P_SYNC_TYPE_FUNC(ACLSHMEM_WAIT_UNTIL);
ACLSHMEM_P2P_SYNC_TYPE_FUNC(ACLSHMEM_WAIT);
ACLSHMEM_P2P_SYNC_TYPE_FUNC(ACLSHMEM_WAIT_UNTIL_ALL);
ACLSHMEM_P2P_SYNC_TYPE_FUNC(ACLSHMEM_WAIT_UNTIL_ANY);
ACLSHMEM_P2P_SYNC_TYPE_FUNC(ACLSHMEM_WAIT_UNTIL_SOME);
ACLSHMEM_P2P_SYNC_TYPE_FUNC(ACLSHMEM_WAIT_UNTIL_ALL_VECTOR);
ACLSHMEM_P2P_SYNC_TYPE_FUNC(ACLSHMEM_WAIT_UNTIL_ANY_VECTOR);
ACLSHMEM_P2P_SYNC_TYPE_FUNC(ACLSHMEM_WAIT_UNTIL_SOME_VECTOR);
ACLSHMEM_P2P_SYNC_TYPE_FUNC(ACLSHMEM_TEST);
ACLSHMEM_P2P_SYNC_TYPE_FUNC(ACLSHMEM_TEST_ANY);
ACLSHMEM_P2P_SYNC_TYPE_FUNC(ACLSHMEM_TEST_SOME);
ACLSHMEM_P2P_SYNC_TYPE_FUNC(ACLSHMEM_TEST_ALL_VECTOR);
ACLSHMEM_P2P_SYNC_TYPE_FUNC(ACLSHMEM_TEST_ANY_VECTOR);
ACLSHMEM_P2P_SYNC_TYPE_FUNC(ACLSHMEM_TEST_SOME_VECTOR);

#ifdef __cplusplus
}
#endif

#endif
