// copy.h: DataCopy and DataCopyPad on the MTE2 (in) and MTE3 (out) pipes, atomics on store.
#ifndef KM_COPY_H
#define KM_COPY_H

#include "cache.h"

namespace AscendC {

struct DataCopyParams {
    uint16_t blockCount = 1;
    uint16_t blockLen = 0; // 32-byte units, like the gaps
    uint16_t srcGap = 0;
    uint16_t dstGap = 0;
};

#if __NPU_ARCH__ == 3510
using DataCopyStride = int64_t;
#else
using DataCopyStride = uint32_t;
#endif

struct DataCopyExtParams {
    uint16_t blockCount = 1;
    uint32_t blockLen = 0; // bytes
    DataCopyStride srcStride = 0;
    DataCopyStride dstStride = 0;
    uint32_t rsv = 0;
    DataCopyExtParams() = default;
    DataCopyExtParams(uint16_t count, uint32_t len, DataCopyStride src, DataCopyStride dst, uint32_t r)
        : blockCount(count), blockLen(len), srcStride(src), dstStride(dst), rsv(r) {}
};

template <typename T> struct DataCopyPadExtParams {
    bool isPad = false;
    uint8_t leftPadding = 0; // elements
    uint8_t rightPadding = 0;
    T paddingValue{};
};

template <typename T> inline void km_check_position(const LocalTensor<T>& t, bool padIn, km::Where w)
{
    const TPosition p = t.GetPosition();
    const bool calc = p == TPosition::VECCALC && (!padIn || __NPU_ARCH__ == 3510);
    if (p != TPosition::VECIN && p != TPosition::VECOUT && !calc)
        km::report("position", w, "a copy between GM and a local tensor of position %d: use VECIN or VECOUT",
                   static_cast<int>(p));
}

template <typename T>
inline void km_copy_plain(const LocalTensor<T>& ub, const GlobalTensor<T>& gm, bool in, uint32_t count, km::Where w)
{
    const uint64_t bytes = static_cast<uint64_t>(count) * sizeof(T);
    if (bytes % km::UB_BLOCK)
        km::report("copy-size", w, "DataCopy of %llu bytes is not a multiple of 32: the rest is not copied",
                   static_cast<unsigned long long>(bytes));
    const uint32_t len = static_cast<uint32_t>(bytes / km::UB_BLOCK * km::UB_BLOCK);
    km_check_position(ub, false, w);
    const km::UbSpan s = ub.span(len / sizeof(T), "DataCopy", w);
    km::Dma d{in, false, gm.at(), s.addr, 1, len, 0, 0, 0, 0, sizeof(T), {}, km::element_of<T>()};
    km::dma(d, w);
}

template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, uint32_t count, km::Where w = km::Where::here())
{
    km_copy_plain(dst, src, true, count, w);
}
template <typename T>
inline void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, uint32_t count, km::Where w = km::Where::here())
{
    km_copy_plain(src, dst, false, count, w);
}

template <typename T>
inline void km_copy_blocks(const LocalTensor<T>& ub, const GlobalTensor<T>& gm, bool in, const DataCopyParams& p, km::Where w)
{
    km_check_position(ub, false, w);
    if (p.blockCount > 4095) km::report("copy-size", w, "DataCopy with blockCount %u above 4095", p.blockCount);
    const uint32_t len = p.blockLen * km::UB_BLOCK;
    const int64_t src = static_cast<int64_t>(p.blockLen + p.srcGap) * km::UB_BLOCK;
    const int64_t dst = static_cast<int64_t>(p.blockLen + p.dstGap) * km::UB_BLOCK;
    const int64_t ubStep = in ? dst : src;
    const uint64_t span = p.blockCount ? (p.blockCount - 1) * static_cast<uint64_t>(ubStep) + len : 0;
    const km::UbSpan s = ub.span(span / sizeof(T), "DataCopy", w);
    km::Dma d{in, false, gm.at(), s.addr, p.blockCount, len, in ? src : dst, ubStep, 0, 0, sizeof(T), {}, km::element_of<T>()};
    km::dma(d, w);
}
template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& p, km::Where w = km::Where::here())
{
    km_copy_blocks(dst, src, true, p, w);
}
template <typename T>
inline void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& p, km::Where w = km::Where::here())
{
    km_copy_blocks(src, dst, false, p, w);
}

// Checks the limits DataCopyPad documents and returns the bytes one piece takes in UB.
template <typename T>
inline uint32_t km_pad_piece(const DataCopyExtParams& p, uint32_t padBytes, DataCopyStride ubGap, km::Where w)
{
    if (p.blockCount > 4095) km::report("copy-size", w, "DataCopyPad with blockCount %u above 4095", p.blockCount);
    if (p.blockLen > 2097151) km::report("copy-size", w, "DataCopyPad with blockLen %u above 2097151", p.blockLen);
    if (p.blockLen % sizeof(T)) km::report("copy-size", w, "DataCopyPad with blockLen %u, no multiple of %zu", p.blockLen, sizeof(T));
    if (p.rsv) km::report("copy-size", w, "DataCopyPad with rsv %u instead of 0", p.rsv);
    const uint32_t piece = (p.blockLen + padBytes + km::UB_BLOCK - 1) / km::UB_BLOCK * km::UB_BLOCK;
    return piece + static_cast<uint32_t>(ubGap) * km::UB_BLOCK;
}

template <typename T>
inline void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyExtParams& p,
                        const DataCopyPadExtParams<T>& pad, km::Where w = km::Where::here())
{
    km_check_position(dst, true, w);
    const uint32_t left = pad.isPad ? pad.leftPadding * sizeof(T) : 0, right = pad.isPad ? pad.rightPadding * sizeof(T) : 0;
    if (left > km::UB_BLOCK || right > km::UB_BLOCK)
        km::report("copy-size", w, "DataCopyPad pads by %u and %u bytes; at most 32 each", left, right);
    const uint32_t step = km_pad_piece<T>(p, left + right, p.dstStride, w);
    const uint64_t last = p.blockLen + left + right;
    const uint64_t span = p.blockCount ? (p.blockCount - 1) * static_cast<uint64_t>(step) + last : 0;
    const km::UbSpan s = dst.span((span + sizeof(T) - 1) / sizeof(T), "DataCopyPad", w);
    km::Dma d{true, pad.isPad, src.at(), s.addr, p.blockCount, p.blockLen,
              static_cast<int64_t>(p.blockLen) + static_cast<int64_t>(p.srcStride), step, left, right, sizeof(T), {}, km::element_of<T>()};
    std::memcpy(d.pad_value, &pad.paddingValue, sizeof(T));
    km::dma(d, w);
}

template <typename T>
inline void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyExtParams& p, km::Where w = km::Where::here())
{
    km_check_position(src, false, w);
    const uint32_t step = km_pad_piece<T>(p, 0, p.srcStride, w);
    const uint64_t span = p.blockCount ? (p.blockCount - 1) * static_cast<uint64_t>(step) + p.blockLen : 0;
    const km::UbSpan s = src.span(span / sizeof(T), "DataCopyPad", w);
    km::Dma d{false, false, dst.at(), s.addr, p.blockCount, p.blockLen,
              static_cast<int64_t>(p.blockLen) + static_cast<int64_t>(p.dstStride), step, 0, 0, sizeof(T), {}, km::element_of<T>()};
    km::dma(d, w);
}

template <typename T> constexpr bool km_store_atomic_type()
{
    return std::is_same_v<T, int8_t> || std::is_same_v<T, int16_t> || std::is_same_v<T, half> ||
           std::is_same_v<T, bfloat16_t> || std::is_same_v<T, int32_t> || std::is_same_v<T, float>;
}
template <typename T> inline void SetAtomicAdd(km::Where w = km::Where::here())
{
    static_assert(km_store_atomic_type<T>(), "SetAtomicAdd: int8, int16, half, bfloat16, int32, float");
    km::set_atomic(km::Rmw::add, km::element_of<T>(), w);
}
template <typename T> inline void SetAtomicMax(km::Where w = km::Where::here())
{
    static_assert(km_store_atomic_type<T>(), "SetAtomicMax: int8, int16, half, bfloat16, int32, float");
    km::set_atomic(km::Rmw::max, km::element_of<T>(), w);
}
template <typename T> inline void SetAtomicMin(km::Where w = km::Where::here())
{
    static_assert(km_store_atomic_type<T>(), "SetAtomicMin: int8, int16, half, bfloat16, int32, float");
    km::set_atomic(km::Rmw::min, km::element_of<T>(), w);
}
inline void SetAtomicNone(km::Where w = km::Where::here()) { km::set_atomic(km::Rmw::none, km::Element::none, w); }
inline void DisableDmaAtomic(km::Where w = km::Where::here()) { km::set_atomic(km::Rmw::none, km::Element::none, w); }

} // namespace AscendC
#endif
