/* launch.h: how anybody starts a kernel under the CPU model of Ascend C.
 *
 * The library libgshmem_kernels_cpu_<arch>.so (arch 2201 or 3510) holds every kernel of
 * include/kernel_table.def, compiled from the sources that bisheng compiles, and exports
 * exactly the functions below. Plain C; no other header is needed.
 *
 * Addresses. A kernel only ever sees device addresses. The model turns one into host memory by
 * the regions of km_device_t, then by its translate callback, and reports an address that neither
 * knows. A device address need not be readable by the host: map the pages a second time and
 * give that mapping as host_addr. Both must agree modulo 64 (a cache line).
 *
 * Arguments. `args` is the kernel's argument block exactly as aclrtLaunchKernelWithHostArgs takes
 * it: 8 bytes per argument, in order, device addresses and integers alike; the first is the
 * device address of the state struct (include/device/shmem_state.h).
 *
 * Waiting. A launch returns when all its blocks returned. A block that waits for another process
 * sleeps between looks, so it costs little; it waits until the word changes or the abort word of
 * the state struct becomes non-zero. km_launch may be called on any number of threads at once.
 */
#ifndef GSHMEM_CPU_MODEL_LAUNCH_H
#define GSHMEM_CPU_MODEL_LAUNCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

#define KM_ABI_VERSION 1

/* What a launch returns. */
#define KM_OK 0
#define KM_UNKNOWN_KERNEL (-1)  /* no kernel of that name in this library */
#define KM_BAD_ARGUMENT (-2)    /* block_dim 0 or above 48, wrong args_size, null or old km_device_t */
#define KM_RULE_BROKEN (-3)     /* the model reported at least one broken rule: km_last_report() */
#define KM_DEADLOCK (-4)        /* km_launch_group only: every block waits and nothing can change */

/* km_device_t.schedule */
#define KM_IN_ORDER 0u /* every instruction takes effect where it is written */
#define KM_LAZY 1u     /* asynchronous ones as late as the program allows, order chosen by seed */

typedef struct km_region {
    uint64_t device_addr; /* where kernels see it */
    void* host_addr;      /* where this process can read and write it */
    uint64_t size;        /* bytes */
    int32_t pe;           /* whose memory it is; used in reports only */
    uint32_t flags;       /* 0 */
} km_region_t;

typedef struct km_device {
    uint32_t size;     /* sizeof(km_device_t) of the caller */
    uint32_t schedule; /* KM_IN_ORDER or KM_LAZY */
    uint64_t seed;     /* of the lazy schedule and of the order in which blocks run */
    int32_t me;        /* this PE and the number of PEs, for reports */
    int32_t n;
    uint64_t state;    /* device address of the state struct; also served at
                          GSHMEM_FIXED_STATE_ADDR for kernels that are not passed it; 0 = none */
    const km_region_t* regions; /* own heap, each peer's mapped heap, the state, workspaces, ... */
    uint64_t region_count;
    /* Asked when no region holds [addr, addr+bytes): return host memory or NULL. May be NULL. */
    void* (*translate)(void* ctx, uint64_t addr, uint64_t bytes);
    void* translate_ctx;
    /* Called for each broken rule, on the launching thread, with one line of text. May be NULL. */
    void (*report)(void* ctx, const char* rule, const char* text);
    void* report_ctx;
    /* When extent_count > 0, kernels may touch only these device ranges (host_addr and pe are
       ignored): the tests' way to catch a copy that is one byte too long. */
    const km_region_t* extents;
    uint64_t extent_count;
} km_device_t;

/* Runs one kernel of one PE with block_dim blocks and returns when it ended. */
int32_t km_launch(const char* kernel_name, uint32_t block_dim, const void* args, size_t args_size,
                  const km_device_t* dev);

/* Runs the same kernel on `count` PEs of this process under one deterministic scheduler: the same
   seeds give the same interleaving, and a deadlock is found at once (KM_DEADLOCK) and reported
   with the place where every block waits. args[i], devs[i] belong to PE i of the group. */
int32_t km_launch_group(const char* kernel_name, uint32_t block_dim, const void* const* args,
                        size_t args_size, const km_device_t* const* devs, uint32_t count);

/* Text of the rules broken by this thread's last launch, one per line; "" when none.
   Valid until this thread's next launch. */
const char* km_last_report(void);

uint32_t km_abi_version(void);             /* KM_ABI_VERSION */
uint32_t km_npu_arch(void);                /* 2201 or 3510 */
uint32_t km_kernel_count(void);
const char* km_kernel_name(uint32_t index);        /* NULL past the end */
int64_t km_kernel_args_size(const char* name);     /* bytes; -1 when unknown */

/* A kernel compiled elsewhere against the model joins the table: fn reads its packed arguments.
   Returns KM_OK, or KM_BAD_ARGUMENT when the name is taken. The strings must stay valid. */
int32_t km_register_kernel(const char* name, void (*fn)(const void* args), size_t args_size);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
#endif
