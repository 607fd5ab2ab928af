// api.hpp: what the tests that call the device API share: a kernel's arguments, and how it joins the table.
#ifndef KERNEL_TESTS_API_HPP
#define KERNEL_TESTS_API_HPP

#include "world.hpp"
#include "device/shmem_device.h"

struct Api { // a kernel's arguments; each says what a, b, c and d are
    uint64_t state, a, b, c, d;
};

template <typename T> __gm__ T* gm(uint64_t a) { return reinterpret_cast<__gm__ T*>(a); }
inline __ubuf__ uint8_t* scratch() { return reinterpret_cast<__ubuf__ uint8_t*>(uint64_t(49152)); } // UB for a queue entry
inline void attach(const Api& f) { aclshmemx_set_state(reinterpret_cast<GM_ADDR>(f.state)); }
inline int right_pe() { return (aclshmem_my_pe() + 1) % aclshmem_n_pes(); }

// Followed by the kernel's body, with the arguments as `f`.
#define API_KERNEL(name)                                                                                 \
    static void name##_body(const Api& f);                                                               \
    static void name##_run(const void* p)                                                                \
    {                                                                                                    \
        AscendC::InitSocState(); /* as a TPipe of a program's own would */                               \
        name##_body(*static_cast<const Api*>(p));                                                        \
    }                                                                                                    \
    [[maybe_unused]] static const int name##_added = km_register_kernel(#name, name##_run, sizeof(Api)); \
    static void name##_body([[maybe_unused]] const Api& f)

#endif
