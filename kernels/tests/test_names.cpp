// test_names.cpp: every public device function exists with its return type and takes its documented
// arguments. Compile-time only: an error here names the function that was changed.
#include "device/shmem_device.h"
#include <type_traits>
#include <utility>

namespace {

#define RMA_NAMES(NAME, TYPE) \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_p(std::declval<__gm__ TYPE*>(), std::declval<const TYPE>(), std::declval<int>()))>, ""); \
    static_assert(std::is_same_v<TYPE, decltype(aclshmem_##NAME##_g(std::declval<__gm__ TYPE*>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_get(std::declval<__gm__ TYPE*>(), std::declval<__gm__ TYPE*>(), std::declval<uint32_t>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_iget(std::declval<__gm__ TYPE*>(), std::declval<__gm__ TYPE*>(), std::declval<ptrdiff_t>(), std::declval<ptrdiff_t>(), std::declval<size_t>(), std::declval<int>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_put(std::declval<__gm__ TYPE*>(), std::declval<__gm__ TYPE*>(), std::declval<uint32_t>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_iput(std::declval<__gm__ TYPE*>(), std::declval<__gm__ TYPE*>(), std::declval<ptrdiff_t>(), std::declval<ptrdiff_t>(), std::declval<size_t>(), std::declval<int>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_get_nbi(std::declval<__gm__ TYPE*>(), std::declval<__gm__ TYPE*>(), std::declval<uint32_t>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_get_nbi(std::declval<__gm__ TYPE*>(), std::declval<__gm__ TYPE*>(), std::declval<const non_contiguous_copy_param&>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_get_nbi(std::declval<AscendC::GlobalTensor<TYPE>>(), std::declval<AscendC::GlobalTensor<TYPE>>(), std::declval<uint32_t>(), std::declval<int>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_get_nbi(std::declval<AscendC::GlobalTensor<TYPE>>(), std::declval<AscendC::GlobalTensor<TYPE>>(), std::declval<const non_contiguous_copy_param&>(), std::declval<int>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_put_nbi(std::declval<__gm__ TYPE*>(), std::declval<__gm__ TYPE*>(), std::declval<uint32_t>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_put_nbi(std::declval<__gm__ TYPE*>(), std::declval<__gm__ TYPE*>(), std::declval<const non_contiguous_copy_param&>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_put_nbi(std::declval<AscendC::GlobalTensor<TYPE>>(), std::declval<AscendC::GlobalTensor<TYPE>>(), std::declval<uint32_t>(), std::declval<int>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_put_nbi(std::declval<AscendC::GlobalTensor<TYPE>>(), std::declval<AscendC::GlobalTensor<TYPE>>(), std::declval<const non_contiguous_copy_param&>(), std::declval<int>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_put_signal(std::declval<__gm__ TYPE *>(), std::declval<__gm__ TYPE *>(), std::declval<size_t>(), std::declval<__gm__ int32_t *>(), std::declval<int32_t>(), std::declval<int>(), std::declval<int>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_put_signal(std::declval<AscendC::GlobalTensor<TYPE>>(), std::declval<AscendC::GlobalTensor<TYPE>>(), std::declval<size_t>(), std::declval<__gm__ int32_t *>(), std::declval<int32_t>(), std::declval<int>(), std::declval<int>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_put_signal(std::declval<__gm__ TYPE *>(), std::declval<__gm__ TYPE *>(), std::declval<const non_contiguous_copy_param &>(), std::declval<__gm__ int32_t *>(), std::declval<int32_t>(), std::declval<int>(), std::declval<int>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_put_signal(std::declval<AscendC::GlobalTensor<TYPE>>(), std::declval<AscendC::GlobalTensor<TYPE>>(), std::declval<const non_contiguous_copy_param &>(), std::declval<__gm__ int32_t *>(), std::declval<int32_t>(), std::declval<int>(), std::declval<int>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_put_signal_nbi(std::declval<__gm__ TYPE *>(), std::declval<__gm__ TYPE *>(), std::declval<size_t>(), std::declval<__gm__ int32_t *>(), std::declval<int32_t>(), std::declval<int>(), std::declval<int>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_put_signal_nbi(std::declval<AscendC::GlobalTensor<TYPE>>(), std::declval<AscendC::GlobalTensor<TYPE>>(), std::declval<size_t>(), std::declval<__gm__ int32_t *>(), std::declval<int32_t>(), std::declval<int>(), std::declval<int>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_put_signal_nbi(std::declval<__gm__ TYPE *>(), std::declval<__gm__ TYPE *>(), std::declval<const non_contiguous_copy_param &>(), std::declval<__gm__ int32_t *>(), std::declval<int32_t>(), std::declval<int>(), std::declval<int>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_put_signal_nbi(std::declval<AscendC::GlobalTensor<TYPE>>(), std::declval<AscendC::GlobalTensor<TYPE>>(), std::declval<const non_contiguous_copy_param &>(), std::declval<__gm__ int32_t *>(), std::declval<int32_t>(), std::declval<int>(), std::declval<int>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_get_nbi(std::declval<__ubuf__ TYPE *>(), std::declval<__gm__ TYPE *>(), std::declval<uint32_t>(), std::declval<int>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_get_nbi(std::declval<AscendC::LocalTensor<TYPE>>(), std::declval<AscendC::GlobalTensor<TYPE>>(), std::declval<uint32_t>(), std::declval<int>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_get_nbi(std::declval<__ubuf__ TYPE *>(), std::declval<__gm__ TYPE *>(), std::declval<const non_contiguous_copy_param &>(), std::declval<int>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_get_nbi(std::declval<AscendC::LocalTensor<TYPE>>(), std::declval<AscendC::GlobalTensor<TYPE>>(), std::declval<const non_contiguous_copy_param &>(), std::declval<int>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_put_nbi(std::declval<__gm__ TYPE *>(), std::declval<__ubuf__ TYPE *>(), std::declval<uint32_t>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_put_nbi(std::declval<AscendC::GlobalTensor<TYPE>>(), std::declval<AscendC::LocalTensor<TYPE>>(), std::declval<uint32_t>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_put_nbi(std::declval<__gm__ TYPE *>(), std::declval<__ubuf__ TYPE *>(), std::declval<const non_contiguous_copy_param &>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_put_nbi(std::declval<AscendC::GlobalTensor<TYPE>>(), std::declval<AscendC::LocalTensor<TYPE>>(), std::declval<const non_contiguous_copy_param &>(), std::declval<int32_t>()))>, "");
GSHMEM_RMA_TYPES(RMA_NAMES)
#undef RMA_NAMES

#define WAIT_NAMES(NAME, TYPE) \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_wait_until(std::declval<__gm__ TYPE *>(), std::declval<int>(), std::declval<TYPE>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_wait(std::declval<__gm__ TYPE *>(), std::declval<TYPE>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_wait_until_all(std::declval<__gm__ TYPE *>(), std::declval<size_t>(), std::declval<__gm__ const int *>(), std::declval<int>(), std::declval<TYPE>()))>, ""); \
    static_assert(std::is_same_v<size_t, decltype(aclshmem_##NAME##_wait_until_any(std::declval<__gm__ TYPE *>(), std::declval<size_t>(), std::declval<__gm__ const int *>(), std::declval<int>(), std::declval<TYPE>()))>, ""); \
    static_assert(std::is_same_v<size_t, decltype(aclshmem_##NAME##_wait_until_some(std::declval<__gm__ TYPE *>(), std::declval<size_t>(), std::declval<__gm__ size_t *>(), std::declval<__gm__ const int *>(), std::declval<int>(), std::declval<TYPE>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_wait_until_all_vector(std::declval<__gm__ TYPE *>(), std::declval<size_t>(), std::declval<__gm__ const int *>(), std::declval<int>(), std::declval<__gm__ TYPE *>()))>, ""); \
    static_assert(std::is_same_v<size_t, decltype(aclshmem_##NAME##_wait_until_any_vector(std::declval<__gm__ TYPE *>(), std::declval<size_t>(), std::declval<__gm__ const int *>(), std::declval<int>(), std::declval<__gm__ TYPE *>()))>, ""); \
    static_assert(std::is_same_v<size_t, decltype(aclshmem_##NAME##_wait_until_some_vector(std::declval<__gm__ TYPE *>(), std::declval<size_t>(), std::declval<__gm__ size_t *>(), std::declval<__gm__ const int *>(), std::declval<int>(), std::declval<__gm__ TYPE *>()))>, ""); \
    static_assert(std::is_same_v<int, decltype(aclshmem_##NAME##_test(std::declval<__gm__ TYPE *>(), std::declval<int>(), std::declval<TYPE>()))>, ""); \
    static_assert(std::is_same_v<size_t, decltype(aclshmem_##NAME##_test_any(std::declval<__gm__ TYPE *>(), std::declval<size_t>(), std::declval<__gm__ const int *>(), std::declval<int>(), std::declval<TYPE>()))>, ""); \
    static_assert(std::is_same_v<size_t, decltype(aclshmem_##NAME##_test_some(std::declval<__gm__ TYPE *>(), std::declval<size_t>(), std::declval<__gm__ size_t *>(), std::declval<__gm__ const int *>(), std::declval<int>(), std::declval<TYPE>()))>, ""); \
    static_assert(std::is_same_v<int, decltype(aclshmem_##NAME##_test_all_vector(std::declval<__gm__ TYPE *>(), std::declval<size_t>(), std::declval<__gm__ const int *>(), std::declval<int>(), std::declval<__gm__ TYPE *>()))>, ""); \
    static_assert(std::is_same_v<size_t, decltype(aclshmem_##NAME##_test_any_vector(std::declval<__gm__ TYPE *>(), std::declval<size_t>(), std::declval<__gm__ const int *>(), std::declval<int>(), std::declval<__gm__ TYPE *>()))>, ""); \
    static_assert(std::is_same_v<size_t, decltype(aclshmem_##NAME##_test_some_vector(std::declval<__gm__ TYPE *>(), std::declval<size_t>(), std::declval<__gm__ size_t *>(), std::declval<__gm__ const int *>(), std::declval<int>(), std::declval<__gm__ TYPE *>()))>, "");
GSHMEM_WAIT_TYPES(WAIT_NAMES)
#undef WAIT_NAMES

#define BITS_NAMES(NAME, TYPE) \
    static_assert(std::is_same_v<void, decltype(aclshmem_get##NAME(std::declval<__gm__ void*>(), std::declval<__gm__ void*>(), std::declval<uint32_t>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_iget##NAME(std::declval<__gm__ void*>(), std::declval<__gm__ void*>(), std::declval<ptrdiff_t>(), std::declval<ptrdiff_t>(), std::declval<size_t>(), std::declval<int>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_put##NAME(std::declval<__gm__ void*>(), std::declval<__gm__ void*>(), std::declval<uint32_t>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_iput##NAME(std::declval<__gm__ void*>(), std::declval<__gm__ void*>(), std::declval<ptrdiff_t>(), std::declval<ptrdiff_t>(), std::declval<size_t>(), std::declval<int>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_get##NAME##_nbi(std::declval<__gm__ void*>(), std::declval<__gm__ void*>(), std::declval<uint32_t>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_put##NAME##_nbi(std::declval<__gm__ void*>(), std::declval<__gm__ void*>(), std::declval<uint32_t>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_put##NAME##_signal(std::declval<__gm__ void *>(), std::declval<__gm__ void *>(), std::declval<size_t>(), std::declval<__gm__ int32_t *>(), std::declval<int32_t>(), std::declval<int>(), std::declval<int>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_put##NAME##_signal_nbi(std::declval<__gm__ void *>(), std::declval<__gm__ void *>(), std::declval<size_t>(), std::declval<__gm__ int32_t *>(), std::declval<int32_t>(), std::declval<int>(), std::declval<int>()))>, "");
GSHMEM_BITS(BITS_NAMES)
#undef BITS_NAMES

#define ADD_NAMES(NAME, TYPE) \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_atomic_add(std::declval<__gm__ TYPE*>(), std::declval<TYPE>(), std::declval<int32_t>()))>, "");
ADD_NAMES(int8, int8_t) ADD_NAMES(int16, int16_t) ADD_NAMES(half, half) ADD_NAMES(bfloat16, bfloat16_t) ADD_NAMES(int32, int32_t) ADD_NAMES(float, float) ADD_NAMES(uint32, uint32_t) ADD_NAMES(int64, int64_t) ADD_NAMES(uint64, uint64_t)
#undef ADD_NAMES

#define SWAP_NAMES(NAME, TYPE) \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_atomic_set(std::declval<__gm__ TYPE*>(), std::declval<TYPE>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<TYPE, decltype(aclshmem_##NAME##_atomic_swap(std::declval<__gm__ TYPE*>(), std::declval<TYPE>(), std::declval<int32_t>()))>, "");
SWAP_NAMES(int32, int32_t) SWAP_NAMES(uint32, uint32_t) SWAP_NAMES(int64, int64_t) SWAP_NAMES(uint64, uint64_t) SWAP_NAMES(float, float)
#undef SWAP_NAMES

#define INTEGER_NAMES(NAME, TYPE) \
    static_assert(std::is_same_v<TYPE, decltype(aclshmem_##NAME##_atomic_fetch_add(std::declval<__gm__ TYPE*>(), std::declval<TYPE>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_atomic_inc(std::declval<__gm__ TYPE*>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<TYPE, decltype(aclshmem_##NAME##_atomic_fetch_inc(std::declval<__gm__ TYPE*>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_atomic_and(std::declval<__gm__ TYPE*>(), std::declval<TYPE>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_atomic_or(std::declval<__gm__ TYPE*>(), std::declval<TYPE>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<void, decltype(aclshmem_##NAME##_atomic_xor(std::declval<__gm__ TYPE*>(), std::declval<TYPE>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<TYPE, decltype(aclshmem_##NAME##_atomic_fetch_and(std::declval<__gm__ TYPE*>(), std::declval<TYPE>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<TYPE, decltype(aclshmem_##NAME##_atomic_fetch_or(std::declval<__gm__ TYPE*>(), std::declval<TYPE>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<TYPE, decltype(aclshmem_##NAME##_atomic_fetch_xor(std::declval<__gm__ TYPE*>(), std::declval<TYPE>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<TYPE, decltype(aclshmem_##NAME##_atomic_fetch(std::declval<__gm__ const TYPE*>(), std::declval<int32_t>()))>, ""); \
    static_assert(std::is_same_v<TYPE, decltype(aclshmem_##NAME##_atomic_compare_swap(std::declval<__gm__ TYPE*>(), std::declval<TYPE>(), std::declval<TYPE>(), std::declval<int32_t>()))>, "");
INTEGER_NAMES(int32, int32_t) INTEGER_NAMES(uint32, uint32_t) INTEGER_NAMES(int64, int64_t) INTEGER_NAMES(uint64, uint64_t)
#undef INTEGER_NAMES

using T = uint64_t; // for the templates
static_assert(std::is_same_v<__gm__ void*, decltype(aclshmem_ptr(std::declval<__gm__ void*>(), std::declval<int>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_mte_get_nbi(std::declval<__gm__ T*>(), std::declval<__gm__ T*>(), std::declval<__ubuf__ T*>(), std::declval<uint32_t>(), std::declval<uint32_t>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_mte_get_nbi(std::declval<__gm__ T*>(), std::declval<__gm__ T*>(), std::declval<__ubuf__ T*>(), std::declval<uint32_t>(), std::declval<const non_contiguous_copy_param&>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_mte_get_nbi(std::declval<AscendC::GlobalTensor<T>>(), std::declval<AscendC::GlobalTensor<T>>(), std::declval<AscendC::LocalTensor<T>>(), std::declval<uint32_t>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_mte_get_nbi(std::declval<AscendC::GlobalTensor<T>>(), std::declval<AscendC::GlobalTensor<T>>(), std::declval<AscendC::LocalTensor<T>>(), std::declval<const non_contiguous_copy_param&>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_mte_put_nbi(std::declval<__gm__ T*>(), std::declval<__gm__ T*>(), std::declval<__ubuf__ T*>(), std::declval<uint32_t>(), std::declval<uint32_t>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_mte_put_nbi(std::declval<__gm__ T*>(), std::declval<__gm__ T*>(), std::declval<__ubuf__ T*>(), std::declval<uint32_t>(), std::declval<const non_contiguous_copy_param&>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_mte_put_nbi(std::declval<AscendC::GlobalTensor<T>>(), std::declval<AscendC::GlobalTensor<T>>(), std::declval<AscendC::LocalTensor<T>>(), std::declval<uint32_t>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_mte_put_nbi(std::declval<AscendC::GlobalTensor<T>>(), std::declval<AscendC::GlobalTensor<T>>(), std::declval<AscendC::LocalTensor<T>>(), std::declval<const non_contiguous_copy_param&>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_mte_quiet())>, "");
static_assert(std::is_same_v<T, decltype(aclshmemx_mte_atomic_fetch(std::declval<__gm__ T*>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_mte_atomic_set(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<T, decltype(aclshmemx_mte_atomic_compare_swap(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<T, decltype(aclshmemx_mte_atomic_swap(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_mte_atomic_inc(std::declval<__gm__ T*>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_mte_atomic_add(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<T, decltype(aclshmemx_mte_atomic_fetch_inc(std::declval<__gm__ T*>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<T, decltype(aclshmemx_mte_atomic_fetch_add(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<__gm__ void*, decltype(aclshmem_roce_ptr(std::declval<__gm__ void*>(), std::declval<int>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_roce_get_nbi(std::declval<__gm__ T*>(), std::declval<__gm__ T*>(), std::declval<__ubuf__ T*>(), std::declval<uint32_t>(), std::declval<int>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_roce_get_nbi(std::declval<__gm__ T*>(), std::declval<__gm__ T*>(), std::declval<__ubuf__ T*>(), std::declval<uint32_t>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_roce_get_nbi(std::declval<AscendC::GlobalTensor<T>>(), std::declval<AscendC::GlobalTensor<T>>(), std::declval<AscendC::LocalTensor<T>>(), std::declval<uint32_t>(), std::declval<int>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_roce_get_nbi(std::declval<AscendC::GlobalTensor<T>>(), std::declval<AscendC::GlobalTensor<T>>(), std::declval<AscendC::LocalTensor<T>>(), std::declval<uint32_t>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_roce_put_nbi(std::declval<__gm__ T*>(), std::declval<__gm__ T*>(), std::declval<__ubuf__ T*>(), std::declval<uint32_t>(), std::declval<int>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_roce_put_nbi(std::declval<__gm__ T*>(), std::declval<__gm__ T*>(), std::declval<__ubuf__ T*>(), std::declval<uint32_t>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_roce_put_nbi(std::declval<AscendC::GlobalTensor<T>>(), std::declval<AscendC::GlobalTensor<T>>(), std::declval<AscendC::LocalTensor<T>>(), std::declval<uint32_t>(), std::declval<int>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_roce_put_nbi(std::declval<AscendC::GlobalTensor<T>>(), std::declval<AscendC::GlobalTensor<T>>(), std::declval<AscendC::LocalTensor<T>>(), std::declval<uint32_t>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_roce_quiet(std::declval<uint32_t>(), std::declval<__ubuf__ T*>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<int, decltype(aclshmemx_roce_team_sync(std::declval<aclshmemx_team_t*>()))>, "");
static_assert(std::is_same_v<int, decltype(aclshmemx_roce_team_sync(std::declval<aclshmemx_team_t*>(), std::declval<__ubuf__ T*>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_roce_sync_all())>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_roce_sync_all(std::declval<__ubuf__ T*>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<int, decltype(aclshmemx_roce_barrier(std::declval<aclshmemx_team_t*>()))>, "");
static_assert(std::is_same_v<int, decltype(aclshmemx_roce_barrier(std::declval<aclshmemx_team_t*>(), std::declval<__ubuf__ T*>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_roce_barrier_all())>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_roce_barrier_all(std::declval<__ubuf__ T*>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<T, decltype(aclshmemx_roce_atomic_fetch(std::declval<__gm__ T*>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_roce_atomic_set(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<T, decltype(aclshmemx_roce_atomic_compare_swap(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<T, decltype(aclshmemx_roce_atomic_swap(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_roce_atomic_inc(std::declval<__gm__ T*>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_roce_atomic_add(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_roce_atomic_and(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_roce_atomic_or(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_roce_atomic_xor(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<T, decltype(aclshmemx_roce_atomic_fetch_inc(std::declval<__gm__ T*>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<T, decltype(aclshmemx_roce_atomic_fetch_add(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<T, decltype(aclshmemx_roce_atomic_fetch_and(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<T, decltype(aclshmemx_roce_atomic_fetch_or(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<T, decltype(aclshmemx_roce_atomic_fetch_xor(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_set_sdma_config(std::declval<uint64_t>(), std::declval<uint32_t>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_sdma_get_nbi(std::declval<__gm__ T*>(), std::declval<__gm__ T*>(), std::declval<__ubuf__ T *>(), std::declval<uint32_t>(), std::declval<uint32_t>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_sdma_get_nbi(std::declval<AscendC::GlobalTensor<T> &>(), std::declval<AscendC::GlobalTensor<T> &>(), std::declval<AscendC::LocalTensor<T> &>(), std::declval<uint32_t>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_sdma_put_nbi(std::declval<__gm__ T*>(), std::declval<__gm__ T*>(), std::declval<__ubuf__ T *>(), std::declval<uint32_t>(), std::declval<uint32_t>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_sdma_put_nbi(std::declval<AscendC::GlobalTensor<T> &>(), std::declval<AscendC::GlobalTensor<T> &>(), std::declval<AscendC::LocalTensor<T> &>(), std::declval<uint32_t>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_cmo_nbi(std::declval<__gm__ T *>(), std::declval<uint32_t>(), std::declval<ACLSHMEMCMOTYPE>(), std::declval<__ubuf__ T *>(), std::declval<uint32_t>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_cmo_nbi(std::declval<AscendC::GlobalTensor<T> &>(), std::declval<uint32_t>(), std::declval<ACLSHMEMCMOTYPE>(), std::declval<AscendC::LocalTensor<T> &>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_sdma_quiet(std::declval<AscendC::LocalTensor<T> &>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_sdma_quiet(std::declval<__ubuf__ T *>(), std::declval<uint32_t>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_sdma_notify_record(std::declval<AscendC::LocalTensor<T> &>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_sdma_notify_record(std::declval<__ubuf__ T *>(), std::declval<uint32_t>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_udma_get_nbi(std::declval<__gm__ T*>(), std::declval<__gm__ T*>(), std::declval<__ubuf__ T*>(), std::declval<uint32_t>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_udma_get_nbi(std::declval<const AscendC::GlobalTensor<T>&>(), std::declval<const AscendC::GlobalTensor<T>&>(), std::declval<const AscendC::LocalTensor<T>&>(), std::declval<uint32_t>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_udma_put_nbi(std::declval<__gm__ T*>(), std::declval<__gm__ T*>(), std::declval<__ubuf__ T*>(), std::declval<uint32_t>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_udma_put_nbi(std::declval<const AscendC::GlobalTensor<T>&>(), std::declval<const AscendC::GlobalTensor<T>&>(), std::declval<const AscendC::LocalTensor<T>&>(), std::declval<uint32_t>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_udma_relay_put_nbi(std::declval<__gm__ T*>(), std::declval<__gm__ T*>(), std::declval<__ubuf__ T*>(), std::declval<uint32_t>(), std::declval<int>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_udma_relay_put_nbi(std::declval<const AscendC::GlobalTensor<T>&>(), std::declval<const AscendC::GlobalTensor<T>&>(), std::declval<const AscendC::LocalTensor<T>&>(), std::declval<uint32_t>(), std::declval<int>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_udma_relay_get_nbi(std::declval<__gm__ T*>(), std::declval<__gm__ T*>(), std::declval<__ubuf__ T*>(), std::declval<uint32_t>(), std::declval<int>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_udma_relay_get_nbi(std::declval<const AscendC::GlobalTensor<T>&>(), std::declval<const AscendC::GlobalTensor<T>&>(), std::declval<const AscendC::LocalTensor<T>&>(), std::declval<uint32_t>(), std::declval<int>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_udma_put_signal_nbi(std::declval<__gm__ T*>(), std::declval<__gm__ T*>(), std::declval<uint32_t>(), std::declval<__gm__ uint64_t*>(), std::declval<uint64_t>(), std::declval<int>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_udma_put_signal_nbi(std::declval<__gm__ T*>(), std::declval<__gm__ T*>(), std::declval<uint32_t>(), std::declval<__gm__ uint64_t*>(), std::declval<uint64_t>(), std::declval<int>(), std::declval<__ubuf__ uint8_t*>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_udma_quiet(std::declval<int>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_udma_atomic_add(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<T, decltype(aclshmemx_udma_atomic_fetch_add(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<T, decltype(aclshmemx_udma_atomic_compare_swap(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<T, decltype(aclshmemx_udma_atomic_fetch(std::declval<__gm__ T*>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_udma_atomic_set(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<T, decltype(aclshmemx_udma_atomic_swap(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<T, decltype(aclshmemx_udma_atomic_fetch_inc(std::declval<__gm__ T*>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_udma_atomic_inc(std::declval<__gm__ T*>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<T, decltype(aclshmemx_udma_atomic_fetch_and(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_udma_atomic_and(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<T, decltype(aclshmemx_udma_atomic_fetch_or(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_udma_atomic_or(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<T, decltype(aclshmemx_udma_atomic_fetch_xor(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_udma_atomic_xor(std::declval<__gm__ T*>(), std::declval<T>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(util_set_ffts_config(std::declval<uint64_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmem_barrier(std::declval<aclshmem_team_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmem_barrier_all())>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_barrier_vec(std::declval<aclshmem_team_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_barrier_all_vec())>, "");
static_assert(std::is_same_v<void, decltype(aclshmem_sync(std::declval<aclshmem_team_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmem_sync_all())>, "");
static_assert(std::is_same_v<void, decltype(aclshmem_quiet())>, "");
static_assert(std::is_same_v<void, decltype(aclshmem_fence())>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_signal_op(std::declval<__gm__ int32_t *>(), std::declval<int32_t>(), std::declval<int>(), std::declval<int>()))>, "");
static_assert(std::is_same_v<int32_t, decltype(aclshmem_signal_wait_until(std::declval<__gm__ int32_t *>(), std::declval<int>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmem_getmem(std::declval<__gm__ void*>(), std::declval<__gm__ void*>(), std::declval<uint32_t>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmem_putmem(std::declval<__gm__ void*>(), std::declval<__gm__ void*>(), std::declval<uint32_t>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmem_getmem_nbi(std::declval<__gm__ void*>(), std::declval<__gm__ void*>(), std::declval<uint32_t>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmem_putmem_nbi(std::declval<__gm__ void*>(), std::declval<__gm__ void*>(), std::declval<uint32_t>(), std::declval<int32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_set_mte_config(std::declval<uint64_t>(), std::declval<uint32_t>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_set_udma_config(std::declval<uint64_t>(), std::declval<uint32_t>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmem_putmem_signal(std::declval<__gm__ void *>(), std::declval<__gm__ void *>(), std::declval<size_t>(), std::declval<__gm__ int32_t *>(), std::declval<int32_t>(), std::declval<int>(), std::declval<int>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmem_putmem_signal_nbi(std::declval<__gm__ void *>(), std::declval<__gm__ void *>(), std::declval<size_t>(), std::declval<__gm__ int32_t *>(), std::declval<int32_t>(), std::declval<int>(), std::declval<int>()))>, "");
static_assert(std::is_same_v<int, decltype(aclshmem_my_pe())>, "");
static_assert(std::is_same_v<int, decltype(aclshmem_n_pes())>, "");
static_assert(std::is_same_v<int, decltype(aclshmem_team_my_pe(std::declval<aclshmem_team_t>()))>, "");
static_assert(std::is_same_v<int, decltype(aclshmem_team_n_pes(std::declval<aclshmem_team_t>()))>, "");
static_assert(std::is_same_v<int, decltype(aclshmem_team_translate_pe(std::declval<aclshmem_team_t>(), std::declval<int>(), std::declval<aclshmem_team_t>()))>, "");
static_assert(std::is_same_v<int, decltype(aclshmem_team_pe_mapping(std::declval<aclshmem_team_t>(), std::declval<int>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_mte_get_nbi(std::declval<__ubuf__ T *>(), std::declval<__gm__ T *>(), std::declval<uint32_t>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_mte_get_nbi(std::declval<AscendC::LocalTensor<T>>(), std::declval<AscendC::GlobalTensor<T>>(), std::declval<uint32_t>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_mte_get_nbi(std::declval<__ubuf__ T *>(), std::declval<__gm__ T *>(), std::declval<const non_contiguous_copy_param &>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_mte_get_nbi(std::declval<AscendC::LocalTensor<T>>(), std::declval<AscendC::GlobalTensor<T>>(), std::declval<const non_contiguous_copy_param &>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_mte_put_nbi(std::declval<__gm__ T *>(), std::declval<__ubuf__ T *>(), std::declval<uint32_t>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_mte_put_nbi(std::declval<AscendC::GlobalTensor<T>>(), std::declval<AscendC::LocalTensor<T>>(), std::declval<uint32_t>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_mte_put_nbi(std::declval<__gm__ T *>(), std::declval<__ubuf__ T *>(), std::declval<const non_contiguous_copy_param &>(), std::declval<int>(), std::declval<uint32_t>()))>, "");
static_assert(std::is_same_v<void, decltype(aclshmemx_mte_put_nbi(std::declval<AscendC::GlobalTensor<T>>(), std::declval<AscendC::LocalTensor<T>>(), std::declval<const non_contiguous_copy_param &>(), std::declval<int>(), std::declval<uint32_t>()))>, "");

} // namespace
