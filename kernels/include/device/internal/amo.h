// amo.h: atomics. Two ways: an adding store of MTE3 (every chip, no result) and the scalar unit's
// atomics (950). An operation that the chip lacks does not compile; the message names the way out.
#ifndef GSHMEM_DEVICE_AMO_H
#define GSHMEM_DEVICE_AMO_H

#include "device/shmem_def.h"

namespace gshmem {

#if __NPU_ARCH__ == 3510
constexpr bool has_scalar_atomics = true;
#else
constexpr bool has_scalar_atomics = false;
#endif

template <typename A, typename B> struct Same { static constexpr bool value = false; };
template <typename A> struct Same<A, A> { static constexpr bool value = true; };

template <typename T> constexpr bool adds_on_store()
{
    return Same<T, int8_t>::value || Same<T, int16_t>::value || Same<T, half>::value || Same<T, bfloat16_t>::value ||
           Same<T, int32_t>::value || Same<T, float>::value;
}

template <typename T> ACLSHMEM_DEVICE uint32_t ub_of(const AscendC::LocalTensor<T>& t)
{
    return static_cast<uint32_t>(reinterpret_cast<uint64_t>(t.GetPhyAddr()));
}

// Adds by a store of one element. Orders itself after everything this core did, and is complete on
// return, so it may follow a put as its signal. Uses the staging window.
template <typename T> ACLSHMEM_DEVICE void add_by_store(uint64_t target, T value)
{
    const Window& w = context().mte;
    const int32_t event = static_cast<int32_t>(w.event);
    AscendC::PipeBarrier<PIPE_ALL>();
    local<T>(w.offset, 32).SetValue(0, value);
    AscendC::SetFlag<HardEvent::S_MTE3>(event);
    AscendC::WaitFlag<HardEvent::S_MTE3>(event);
    AscendC::SetAtomicAdd<T>();
    store_rows<T>(target, w.offset, 1, sizeof(T), 0);
    AscendC::SetAtomicNone();
    AscendC::PipeBarrier<PIPE_ALL>();
}

#if __NPU_ARCH__ == 3510
template <typename T> ACLSHMEM_DEVICE T scalar_add(uint64_t p, T v) { return AscendC::AtomicAdd<T>(at<T>(p), v); }
template <typename U> ACLSHMEM_DEVICE U scalar_cas(uint64_t p, U expected, U desired) { return AscendC::AtomicCas<U>(at<U>(p), expected, desired); }
template <typename U> ACLSHMEM_DEVICE U scalar_swap(uint64_t p, U v) { return AscendC::AtomicExch<U>(at<U>(p), v); }
#else // never instantiated: the static_asserts below speak first
template <typename T> ACLSHMEM_DEVICE T scalar_add(uint64_t, T) { return T{}; }
template <typename U> ACLSHMEM_DEVICE U scalar_cas(uint64_t, U, U) { return U{}; }
template <typename U> ACLSHMEM_DEVICE U scalar_swap(uint64_t, U) { return U{}; }
#endif

#define GSHMEM_NEEDS_950(T, what) \
    static_assert(has_scalar_atomics || sizeof(T) == 0, what " needs an Ascend950; on 910 use atomic_add of int32 or float, or signals")

template <typename T> ACLSHMEM_DEVICE void atomic_add(uint64_t dst, T value, int32_t pe)
{
    if constexpr (adds_on_store<T>()) {
        add_by_store<T>(peer_address(dst, pe), value);
    } else {
        GSHMEM_NEEDS_950(T, "atomic_add of this type");
        static_assert(sizeof(T) >= 4, "atomic_add has no uint8 or uint16 on any chip");
        (void)scalar_add<T>(peer_address(dst, pe), value);
    }
}

template <typename T> ACLSHMEM_DEVICE T atomic_fetch_add(uint64_t dst, T value, int32_t pe)
{
    GSHMEM_NEEDS_950(T, "atomic_fetch_add");
    return scalar_add<T>(peer_address(dst, pe), value);
}
template <typename T> ACLSHMEM_DEVICE T atomic_fetch(uint64_t src, int32_t pe)
{
    GSHMEM_NEEDS_950(T, "atomic_fetch");
    return scalar_add<T>(peer_address(src, pe), static_cast<T>(0));
}

template <typename T> ACLSHMEM_DEVICE T atomic_compare_swap(uint64_t dst, T cond, T value, int32_t pe)
{
    GSHMEM_NEEDS_950(T, "atomic_compare_swap");
    using U = typename Bits<sizeof(T)>::type;
    return from_bits<T>(scalar_cas<U>(peer_address(dst, pe), to_bits<T>(cond), to_bits<T>(value)));
}
template <typename T> ACLSHMEM_DEVICE T atomic_swap(uint64_t dst, T value, int32_t pe)
{
    GSHMEM_NEEDS_950(T, "atomic_swap and atomic_set");
    using U = typename Bits<sizeof(T)>::type;
    return from_bits<T>(scalar_swap<U>(peer_address(dst, pe), to_bits<T>(value)));
}

enum class BitOp { And, Or, Xor };

// and/or/xor: a compare-and-swap loop; it ends because each failure is another core's success.
template <typename T> ACLSHMEM_DEVICE T atomic_bits(uint64_t dst, T value, int32_t pe, BitOp op)
{
    GSHMEM_NEEDS_950(T, "atomic_and, _or and _xor");
    T old = atomic_fetch<T>(dst, pe);
    for (;;) {
        const T next = op == BitOp::And ? (old & value) : op == BitOp::Or ? (old | value) : (old ^ value);
        const T seen = atomic_compare_swap<T>(dst, old, next, pe);
        if (seen == old) return old;
        old = seen;
    }
}

} // namespace gshmem
#endif
