// kernels.cpp: unpacks argument blocks for the kernels of kernel_table.def and registers them.
#include "kernel_entry.h"
#include "../launch.h"

namespace {

#define GSHMEM_KERNEL(name, args) struct name##_args { uint64_t state; args };
#define G(x) uint64_t x;
#define U(x) uint64_t x;
#define I(x) int64_t x;
#include "kernel_table.def"

#define GSHMEM_KERNEL(name, args)                                    \
    void run_##name(const void* p)                                   \
    {                                                                \
        const name##_args& a = *static_cast<const name##_args*>(p);  \
        name(reinterpret_cast<GM_ADDR>(a.state) args);               \
    }
#define G(x) , reinterpret_cast<GM_ADDR>(a.x)
#define U(x) , a.x
#define I(x) , a.x
#include "kernel_table.def"

struct RegisterAll {
    RegisterAll()
    {
#define GSHMEM_KERNEL(name, args) km_register_kernel(#name, run_##name, sizeof(name##_args));
#define G(x)
#define U(x)
#define I(x)
#include "kernel_table.def"
    }
} register_all;

} // namespace
