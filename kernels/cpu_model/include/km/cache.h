// cache.h: the scalar unit's data cache and the accesses that go around it.
#ifndef KM_CACHE_H
#define KM_CACHE_H

#include "sync.h"

namespace AscendC {

enum class CacheLine : uint8_t { SINGLE_CACHE_LINE = 0, ENTIRE_DATA_CACHE = 1 };
enum class DcciDst : uint8_t { CACHELINE_ALL = 0, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };

template <typename T, CacheLine line, DcciDst dst = DcciDst::CACHELINE_OUT>
inline void DataCacheCleanAndInvalid(const GlobalTensor<T>& t, km::Where w = km::Where::here())
{
    km::dcci(t.at(), line == CacheLine::ENTIRE_DATA_CACHE, w);
}

template <typename T> inline T ReadGmByPassDCache(__gm__ T* p, km::Where w = km::Where::here())
{
    std::remove_cv_t<T> v;
    km::bypass_read(reinterpret_cast<uint64_t>(p), &v, sizeof(T), w);
    return v;
}
template <typename T> inline void WriteGmByPassDCache(__gm__ T* p, T v, km::Where w = km::Where::here())
{
    km::bypass_write(reinterpret_cast<uint64_t>(p), &v, sizeof(T), w);
}

#if __NPU_ARCH__ == 3510
template <typename T> inline T km_scalar_atomic(km::Rmw kind, __gm__ T* p, T v, T cmp, km::Where w)
{
    uint64_t value = 0, compare = 0, old;
    std::memcpy(&value, &v, sizeof(T));
    std::memcpy(&compare, &cmp, sizeof(T));
    old = km::scalar_atomic(kind, km::element_of<T>(), reinterpret_cast<uint64_t>(p), value, compare, w);
    T out;
    std::memcpy(&out, &old, sizeof(T));
    return out;
}
template <typename T> inline T AtomicAdd(__gm__ T* p, T v, km::Where w = km::Where::here())
{
    static_assert(sizeof(T) >= 4 && !std::is_same_v<T, double>, "AtomicAdd: int32, uint32, float, int64, uint64");
    return km_scalar_atomic(km::Rmw::add, p, v, T{}, w);
}
template <typename T> inline T AtomicMax(__gm__ T* p, T v, km::Where w = km::Where::here())
{
    return km_scalar_atomic(km::Rmw::max, p, v, T{}, w);
}
template <typename T> inline T AtomicMin(__gm__ T* p, T v, km::Where w = km::Where::here())
{
    return km_scalar_atomic(km::Rmw::min, p, v, T{}, w);
}
template <typename T> inline T AtomicCas(__gm__ T* p, T expected, T desired, km::Where w = km::Where::here())
{
    static_assert(std::is_same_v<T, uint32_t> || std::is_same_v<T, uint64_t>, "AtomicCas: uint32, uint64");
    return km_scalar_atomic(km::Rmw::cas, p, desired, expected, w);
}
template <typename T> inline T AtomicExch(__gm__ T* p, T v, km::Where w = km::Where::here())
{
    static_assert(std::is_same_v<T, uint32_t> || std::is_same_v<T, uint64_t>, "AtomicExch: uint32, uint64");
    return km_scalar_atomic(km::Rmw::exch, p, v, T{}, w);
}
#endif

} // namespace AscendC

constexpr int SINGLE_CACHE_LINE = 0;
constexpr int ENTIRE_DATA_CACHE = 1;
constexpr int CACHELINE_OUT = 2;
inline void dcci(__gm__ void* p, int entire, int = CACHELINE_OUT, km::Where w = km::Where::here())
{
    km::dcci(reinterpret_cast<uint64_t>(p), entire != 0, w);
}

#endif
