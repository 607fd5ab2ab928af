// npu.cpp: all kernels and their launcher as one translation unit for bisheng, the compiler of CANN
// (`make npu`). The result is a shared library with one function for the host to load:
//
//   int32_t gshmem_launch(const char* name, uint32_t blocks, const void* args, size_t args_size, void* stream)
//
// args is the block that cpu_model/launch.h describes: the state's device address, then 8 bytes per
// argument of kernel_table.def. Asynchronous on the stream. 0, or -1 for a name or size that is not
// in the table. Under the CPU model this file is compiled for its syntax only.
//
//   int32_t gshmem_starts_together(void)
//
// 1 when the compiler could be told that all blocks of a launch start together. Else the host launches one block at a time: blocks that
// wait for each other might never all be on the chip.
#include "kernel_entry.h"

#include "../coll/allgather.cpp"
#include "../coll/all_to_all.cpp"
#include "../coll/allreduce.cpp"
#include "../coll/barrier.cpp"
#include "../coll/broadcast.cpp"
#include "../coll/reduce_scatter.cpp"
#include "../fused/kv_shuffle.cpp"
#include "../fused/matmul_allreduce.cpp"
#include "../fused/moe_combine.cpp"
#include "../fused/moe_dispatch.cpp"
#include "../rma/atomic.cpp"
#include "../rma/copy.cpp"
#include "../rma/signal.cpp"
#include "../rma/strided.cpp"

#include <cstring>

#ifdef GSHMEM_CPU_MODEL
#define GSHMEM_CALL(name, ...) ((void)blocks, (void)stream, name(__VA_ARGS__))
#else
#define GSHMEM_CALL(name, ...) name<<<blocks, nullptr, stream>>>(__VA_ARGS__)
#endif

namespace {

#define GSHMEM_KERNEL(name, args) struct name##_block { uint64_t state; args };
#define G(x) uint64_t x;
#define U(x) uint64_t x;
#define I(x) int64_t x;
#include "kernel_table.def"

} // namespace

extern "C" __attribute__((visibility("default"))) int32_t gshmem_starts_together(void) { return GSHMEM_STARTS_TOGETHER; }

extern "C" __attribute__((visibility("default"))) int32_t gshmem_launch(const char* name, uint32_t blocks, const void* args, size_t args_size, void* stream)
{
#define GSHMEM_KERNEL(kernel, list)                                        \
    if (std::strcmp(name, #kernel) == 0) {                                 \
        if (args_size != sizeof(kernel##_block)) return -1;                \
        const auto& a = *static_cast<const kernel##_block*>(args);         \
        GSHMEM_CALL(kernel, reinterpret_cast<GM_ADDR>(a.state) list);      \
        return 0;                                                          \
    }
#define G(x) , reinterpret_cast<GM_ADDR>(a.x)
#define U(x) , a.x
#define I(x) , a.x
#include "kernel_table.def"
    return -1;
}
