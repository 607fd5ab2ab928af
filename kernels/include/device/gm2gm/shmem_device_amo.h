// shmem_device_amo.h: typed atomics on a symmetric word of another PE.
//
// add: int8, int16, half, bfloat16, int32, float on every chip; uint32, int64, uint64 on a 950.
// Everything that returns a value, and set, swap, inc, and, or, xor: a 950. They are templates only
// so that a call the chip cannot do fails to compile instead of doing nothing.
#ifndef ACLSHMEM_DEVICE_AMO_H
#define ACLSHMEM_DEVICE_AMO_H

#include "device/internal/amo.h"

#define GSHMEM_AMO_ADD(NAME, TYPE) \
    template <typename T = TYPE> ACLSHMEM_DEVICE void aclshmem_##NAME##_atomic_add(__gm__ TYPE* dst, TYPE value, int32_t pe) { gshmem::atomic_add<T>(gshmem::addr_of(dst), value, pe); }
GSHMEM_AMO_ADD(int8, int8_t) GSHMEM_AMO_ADD(int16, int16_t) GSHMEM_AMO_ADD(half, half) GSHMEM_AMO_ADD(bfloat16, bfloat16_t)
GSHMEM_AMO_ADD(int32, int32_t) GSHMEM_AMO_ADD(float, float)
GSHMEM_AMO_ADD(uint32, uint32_t) GSHMEM_AMO_ADD(int64, int64_t) GSHMEM_AMO_ADD(uint64, uint64_t)
#undef GSHMEM_AMO_ADD

#define GSHMEM_AMO_INTEGER(NAME, TYPE) \
    template <typename T = TYPE> ACLSHMEM_DEVICE TYPE aclshmem_##NAME##_atomic_fetch_add(__gm__ TYPE* dest, TYPE value, int32_t pe) { return gshmem::atomic_fetch_add<T>(gshmem::addr_of(dest), value, pe); } \
    template <typename T = TYPE> ACLSHMEM_DEVICE void aclshmem_##NAME##_atomic_inc(__gm__ TYPE* dst, int32_t pe) { gshmem::atomic_add<T>(gshmem::addr_of(dst), static_cast<T>(1), pe); } \
    template <typename T = TYPE> ACLSHMEM_DEVICE TYPE aclshmem_##NAME##_atomic_fetch_inc(__gm__ TYPE* dest, int32_t pe) { return gshmem::atomic_fetch_add<T>(gshmem::addr_of(dest), static_cast<T>(1), pe); } \
    template <typename T = TYPE> ACLSHMEM_DEVICE TYPE aclshmem_##NAME##_atomic_compare_swap(__gm__ TYPE* dest, TYPE cond, TYPE value, int32_t pe) { return gshmem::atomic_compare_swap<T>(gshmem::addr_of(dest), cond, value, pe); } \
    template <typename T = TYPE> ACLSHMEM_DEVICE void aclshmem_##NAME##_atomic_and(__gm__ TYPE* dest, TYPE value, int32_t pe) { (void)gshmem::atomic_bits<T>(gshmem::addr_of(dest), value, pe, gshmem::BitOp::And); } \
    template <typename T = TYPE> ACLSHMEM_DEVICE void aclshmem_##NAME##_atomic_or(__gm__ TYPE* dest, TYPE value, int32_t pe) { (void)gshmem::atomic_bits<T>(gshmem::addr_of(dest), value, pe, gshmem::BitOp::Or); } \
    template <typename T = TYPE> ACLSHMEM_DEVICE void aclshmem_##NAME##_atomic_xor(__gm__ TYPE* dest, TYPE value, int32_t pe) { (void)gshmem::atomic_bits<T>(gshmem::addr_of(dest), value, pe, gshmem::BitOp::Xor); } \
    template <typename T = TYPE> ACLSHMEM_DEVICE TYPE aclshmem_##NAME##_atomic_fetch_and(__gm__ TYPE* dest, TYPE value, int32_t pe) { return gshmem::atomic_bits<T>(gshmem::addr_of(dest), value, pe, gshmem::BitOp::And); } \
    template <typename T = TYPE> ACLSHMEM_DEVICE TYPE aclshmem_##NAME##_atomic_fetch_or(__gm__ TYPE* dest, TYPE value, int32_t pe) { return gshmem::atomic_bits<T>(gshmem::addr_of(dest), value, pe, gshmem::BitOp::Or); } \
    template <typename T = TYPE> ACLSHMEM_DEVICE TYPE aclshmem_##NAME##_atomic_fetch_xor(__gm__ TYPE* dest, TYPE value, int32_t pe) { return gshmem::atomic_bits<T>(gshmem::addr_of(dest), value, pe, gshmem::BitOp::Xor); } \
    template <typename T = TYPE> ACLSHMEM_DEVICE TYPE aclshmem_##NAME##_atomic_fetch(__gm__ const TYPE* source, int32_t pe) { return gshmem::atomic_fetch<T>(gshmem::addr_of(source), pe); }
GSHMEM_AMO_INTEGER(int32, int32_t) GSHMEM_AMO_INTEGER(uint32, uint32_t)
GSHMEM_AMO_INTEGER(int64, int64_t) GSHMEM_AMO_INTEGER(uint64, uint64_t)
#undef GSHMEM_AMO_INTEGER

#define GSHMEM_AMO_SWAP(NAME, TYPE) \
    template <typename T = TYPE> ACLSHMEM_DEVICE void aclshmem_##NAME##_atomic_set(__gm__ TYPE* dest, TYPE value, int32_t pe) { (void)gshmem::atomic_swap<T>(gshmem::addr_of(dest), value, pe); } \
    template <typename T = TYPE> ACLSHMEM_DEVICE TYPE aclshmem_##NAME##_atomic_swap(__gm__ TYPE* dest, TYPE value, int32_t pe) { return gshmem::atomic_swap<T>(gshmem::addr_of(dest), value, pe); }
GSHMEM_AMO_SWAP(int32, int32_t) GSHMEM_AMO_SWAP(uint32, uint32_t) GSHMEM_AMO_SWAP(int64, int64_t)
GSHMEM_AMO_SWAP(uint64, uint64_t) GSHMEM_AMO_SWAP(float, float)
#undef GSHMEM_AMO_SWAP

#endif
