// vector.h: the vector instructions our kernels use, on whole tensors of n elements.
// Two of them that share data need PipeBarrier<PIPE_V> between them, as on the device.
#ifndef KM_VECTOR_H
#define KM_VECTOR_H

#include "copy.h"

namespace AscendC {

enum class RoundMode : uint8_t { CAST_NONE, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC, CAST_ODD };

template <typename T> constexpr bool km_arithmetic()
{
    return std::is_same_v<T, half> || std::is_same_v<T, float> || std::is_same_v<T, int16_t> || std::is_same_v<T, int32_t>;
}

template <typename T, typename F>
inline void km_binary(const char* name, const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b,
                      int32_t n, F f, km::Where w)
{
    static_assert(km_arithmetic<T>(), "vector arithmetic: half, float, int16, int32");
    const km::UbSpan d = dst.span(n, name, w), x = a.span(n, name, w), y = b.span(n, name, w);
    km::vector_op(name, {d}, {x, y}, [d, x, y, n, f](uint8_t* ub) {
        for (int32_t i = 0; i < n; i++) {
            T p, q;
            std::memcpy(&p, ub + x.addr + i * sizeof(T), sizeof(T));
            std::memcpy(&q, ub + y.addr + i * sizeof(T), sizeof(T));
            const T r = f(p, q);
            std::memcpy(ub + d.addr + i * sizeof(T), &r, sizeof(T));
        }
    }, w);
}

// Integer results wrap, as the hardware's do in its default mode [inferred].
template <typename T> inline T km_wrap_add(T a, T b)
{
    if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    else return static_cast<T>(static_cast<float>(a) + static_cast<float>(b));
}
template <typename T> inline T km_wrap_mul(T a, T b)
{
    if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else return static_cast<T>(static_cast<float>(a) * static_cast<float>(b));
}

template <typename T>
inline void Add(const LocalTensor<T>& d, const LocalTensor<T>& a, const LocalTensor<T>& b, const int32_t& n, km::Where w = km::Where::here())
{
    km_binary("Add", d, a, b, n, [](T p, T q) { return km_wrap_add(p, q); }, w);
}
template <typename T>
inline void Mul(const LocalTensor<T>& d, const LocalTensor<T>& a, const LocalTensor<T>& b, const int32_t& n, km::Where w = km::Where::here())
{
    km_binary("Mul", d, a, b, n, [](T p, T q) { return km_wrap_mul(p, q); }, w);
}
template <typename T>
inline void Max(const LocalTensor<T>& d, const LocalTensor<T>& a, const LocalTensor<T>& b, const int32_t& n, km::Where w = km::Where::here())
{
    km_binary("Max", d, a, b, n, [](T p, T q) { return p < q ? q : p; }, w);
}
template <typename T>
inline void Min(const LocalTensor<T>& d, const LocalTensor<T>& a, const LocalTensor<T>& b, const int32_t& n, km::Where w = km::Where::here())
{
    km_binary("Min", d, a, b, n, [](T p, T q) { return q < p ? q : p; }, w);
}

template <typename T>
inline void Duplicate(const LocalTensor<T>& dst, const T& v, const int32_t& n, km::Where w = km::Where::here())
{
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Duplicate: 2- and 4-byte types");
    const km::UbSpan d = dst.span(n, "Duplicate", w);
    const T value = v;
    km::vector_op("Duplicate", {d}, {}, [d, value, n](uint8_t* ub) {
        for (int32_t i = 0; i < n; i++) std::memcpy(ub + d.addr + i * sizeof(T), &value, sizeof(T));
    }, w);
}

template <typename T>
inline void Muls(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& v, const int32_t& n, km::Where w = km::Where::here())
{
    static_assert(km_arithmetic<T>(), "Muls: half, float, int16, int32");
    const km::UbSpan d = dst.span(n, "Muls", w), s = src.span(n, "Muls", w);
    const T value = v;
    km::vector_op("Muls", {d}, {s}, [d, s, value, n](uint8_t* ub) {
        for (int32_t i = 0; i < n; i++) {
            T p;
            std::memcpy(&p, ub + s.addr + i * sizeof(T), sizeof(T));
            p = km_wrap_mul(p, value);
            std::memcpy(ub + d.addr + i * sizeof(T), &p, sizeof(T));
        }
    }, w);
}

// dst += src * v, rounded twice (no fused multiply-add): the order our oracles use.
template <typename T>
inline void Axpy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& v, const int32_t& n, km::Where w = km::Where::here())
{
    static_assert(std::is_same_v<T, half> || std::is_same_v<T, float>, "Axpy: half, float");
    const km::UbSpan d = dst.span(n, "Axpy", w), s = src.span(n, "Axpy", w);
    const T value = v;
    km::vector_op("Axpy", {d}, {d, s}, [d, s, value, n](uint8_t* ub) {
        for (int32_t i = 0; i < n; i++) {
            T p, q;
            std::memcpy(&p, ub + s.addr + i * sizeof(T), sizeof(T));
            std::memcpy(&q, ub + d.addr + i * sizeof(T), sizeof(T));
            q = km_wrap_add(q, km_wrap_mul(p, value));
            std::memcpy(ub + d.addr + i * sizeof(T), &q, sizeof(T));
        }
    }, w);
}

// The conversions of the vector unit of both chips that our kernels need.
template <typename D, typename S> constexpr bool km_castable()
{
    constexpr bool lowS = std::is_same_v<S, half> || std::is_same_v<S, bfloat16_t>;
    constexpr bool lowD = std::is_same_v<D, half> || std::is_same_v<D, bfloat16_t>;
    return (lowS && std::is_same_v<D, float>) || (lowD && std::is_same_v<S, float>) ||
           (std::is_same_v<S, half> && (std::is_same_v<D, int8_t> || std::is_same_v<D, uint8_t>)) ||
           (std::is_same_v<D, half> && (std::is_same_v<S, int8_t> || std::is_same_v<S, uint8_t>)) ||
           (std::is_same_v<S, float> && std::is_same_v<D, int32_t>) || (std::is_same_v<D, float> && std::is_same_v<S, int32_t>);
}

template <typename D, typename S>
inline void Cast(const LocalTensor<D>& dst, const LocalTensor<S>& src, const RoundMode& mode, uint32_t n, km::Where w = km::Where::here())
{
    static_assert(km_castable<D, S>(), "Cast: this pair of types is not in the modelled subset");
    constexpr bool narrow = sizeof(D) < sizeof(S);
    if (narrow && mode == RoundMode::CAST_NONE) km::report("cast", w, "a narrowing Cast needs a rounding mode");
    if (mode != RoundMode::CAST_NONE && mode != RoundMode::CAST_RINT)
        km::stop("cast", w, "the model rounds by CAST_NONE and CAST_RINT only");
    const km::UbSpan d = dst.span(n, "Cast", w), s = src.span(n, "Cast", w);
    km::vector_op("Cast", {d}, {s}, [d, s, n](uint8_t* ub) {
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t i = sizeof(D) > sizeof(S) ? n - 1 - k : k; // safe in place
            S p;
            std::memcpy(&p, ub + s.addr + i * sizeof(S), sizeof(S));
            D r;
            if constexpr (std::is_integral_v<D>) r = static_cast<D>(__builtin_rintf(static_cast<float>(p)));
            else r = D(static_cast<float>(p));
            std::memcpy(ub + d.addr + i * sizeof(D), &r, sizeof(D));
        }
    }, w);
}

} // namespace AscendC
#endif
