// platform.h: the only place where bisheng and the CPU model differ for our headers and kernels.
#ifndef GSHMEM_DEVICE_PLATFORM_H
#define GSHMEM_DEVICE_PLATFORM_H

#include "kernel_operator.h"
#include "device/shmem_state.h"

#ifndef ACLSHMEM_DEVICE
#ifdef GSHMEM_CPU_MODEL
#define ACLSHMEM_DEVICE inline
#define ACLSHMEM_GLOBAL
#define ACLSHMEM_GLOBAL_VECTOR
#else
#define ACLSHMEM_DEVICE __attribute__((always_inline)) __aicore__ inline
#define ACLSHMEM_GLOBAL __global__ __aicore__
#define ACLSHMEM_GLOBAL_VECTOR [[bisheng::core_ratio(0, 1)]] __global__ __aicore__
#endif
#endif

// All blocks of a launch start together or none does: what kernels need whose blocks wait for each other. An attribute of newer
// compilers; a library made without it says so (launch/npu.cpp), and its host launches one block at a time.
#if defined(__schedmode__) && !defined(GSHMEM_CPU_MODEL)
#define GSHMEM_TOGETHER __schedmode__(1)
#define GSHMEM_STARTS_TOGETHER 1
#else
#define GSHMEM_TOGETHER
#define GSHMEM_STARTS_TOGETHER 0
#endif

namespace gshmem {

// UB that a transfer stages through or builds a queue entry in, and the event id that orders its use.
struct Window {
    uint32_t offset, size, event;
};

// What a core remembers while a kernel runs. Read from the state struct by attach().
struct Context {
    uint64_t attached; // GSHMEM_STATE_MAGIC once attach() ran
    uint64_t state;    // device address of the state struct
    uint64_t heap_base, heap_size, host_heap_base, host_heap_size, host_heap_address;
    uint64_t peers, host_peers; // arrays of mapped heap bases
    uint64_t abort_addr;        // 0: nobody can end a wait
    int32_t me, n;
    Window mte, sdma, rdma, udma;
    uint32_t engines;      // some queue table exists: MTE is not the only way
    uint32_t aborted;      // a word that ends waits was seen: every later wait returns at once
    uint64_t stop;         // the stop word of the team on whose behalf this core waits; 0: of none
    uint64_t core_pool;    // the core sync block that core_count belongs to
    int32_t core_count;
};

#ifdef GSHMEM_CPU_MODEL
inline Context& raw_context()
{
    static_assert(sizeof(Context) <= 1000, "the model keeps 1 KiB per core");
    return *static_cast<Context*>(km::core_context());
}
#else
__BLOCK_LOCAL__ __inline__ Context core_context_g;
ACLSHMEM_DEVICE Context& raw_context() { return core_context_g; }
#endif

} // namespace gshmem
#endif
