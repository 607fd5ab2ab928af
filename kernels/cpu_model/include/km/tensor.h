// tensor.h: GlobalTensor and LocalTensor. Both are values: an address and a length.
#ifndef KM_TENSOR_H
#define KM_TENSOR_H

#include "runtime.h"

namespace AscendC {

enum class TPosition : uint8_t {
    GM, A1, A2, B1, B2, C1, C2, CO1, CO2, VECIN, VECOUT, VECCALC, LCM, SPM, SHM, TSCM, MAX
};
using QuePosition = TPosition;

enum class CacheMode : uint8_t { CACHE_MODE_DISABLE = 0, CACHE_MODE_NORMAL = 1, CACHE_MODE_LAST = 2, CACHE_MODE_PERSISTENT = 4 };
enum class CacheRwMode : uint8_t { READ = 1, WRITE = 2, RW = 3 };

template <typename T> class GlobalTensor {
public:
    using PrimType = T;
    void SetGlobalBuffer(__gm__ T* p) { SetGlobalBuffer(p, UINT64_MAX / sizeof(T)); }
    void SetGlobalBuffer(__gm__ T* p, uint64_t n)
    {
        base_ = p;
        size_ = n;
    }
    const __gm__ T* GetPhyAddr() const { return base_; }
    __gm__ T* GetPhyAddr(uint64_t off) const { return base_ + off; }
    uint64_t GetSize() const { return size_; }
    void SetSize(uint64_t n) { size_ = n; }
    GlobalTensor operator[](uint64_t off) const
    {
        GlobalTensor t;
        t.base_ = base_ + off;
        t.size_ = off <= size_ ? size_ - off : 0;
        return t;
    }
    T GetValue(uint64_t off, km::Where w = km::Where::here()) const
    {
        std::remove_cv_t<T> v;
        km::scalar_read(at(off), &v, sizeof(T), w);
        return v;
    }
    void SetValue(uint64_t off, T v, km::Where w = km::Where::here())
    {
        km::scalar_write(at(off), &v, sizeof(T), w);
    }
    template <CacheRwMode m = CacheRwMode::RW> void SetL2CacheHint(CacheMode) {}
    uint64_t at(uint64_t off = 0) const { return reinterpret_cast<uint64_t>(base_) + off * sizeof(T); }

private:
    __gm__ T* base_ = nullptr;
    uint64_t size_ = 0;
};

template <typename T> class LocalTensor {
public:
    using PrimType = T;
    LocalTensor() = default;
    LocalTensor(TPosition pos, uint32_t addr, uint32_t elems) : addr_(addr), size_(elems), pos_(pos) {}
    explicit LocalTensor(uint32_t addr)
        : addr_(addr), size_((km::UB_BYTES - addr) / sizeof(T)), pos_(TPosition::VECCALC) {}

    LocalTensor operator[](uint32_t off) const
    {
        LocalTensor t(*this);
        t.addr_ = addr_ + off * static_cast<uint32_t>(sizeof(T));
        t.size_ = off <= size_ ? size_ - off : 0;
        return t;
    }
    T GetValue(uint32_t off, km::Where w = km::Where::here()) const
    {
        bound(off, w);
        std::remove_cv_t<T> v;
        km::ub_read(addr_ + off * sizeof(T), &v, sizeof(T), w);
        return v;
    }
    void SetValue(uint32_t off, T v, km::Where w = km::Where::here()) const
    {
        bound(off, w);
        km::ub_write(addr_ + off * sizeof(T), &v, sizeof(T), w);
    }
    uint32_t GetSize() const { return size_; }
    uint32_t GetLength() const { return size_ * sizeof(T); }
    void SetSize(uint32_t n) { size_ = n; }
    TPosition GetPosition() const { return pos_; }
    uint64_t GetPhyAddr() const { return addr_; }
    uint64_t GetPhyAddr(uint32_t off) const { return addr_ + off * sizeof(T); }
    template <typename U> LocalTensor<U> ReinterpretCast() const
    {
        return LocalTensor<U>(pos_, addr_, static_cast<uint32_t>(size_ * sizeof(T) / sizeof(U)));
    }

    // For the model's own instructions: the bytes of n elements, which must lie in the tensor,
    // at an address aligned to a UB block.
    km::UbSpan span(uint64_t n, const char* what, km::Where w) const
    {
        if (n > size_)
            km::report("ub-bound", w, "%s uses %llu elements of a local tensor of %u", what,
                       static_cast<unsigned long long>(n), size_);
        if (addr_ % km::UB_BLOCK)
            km::report("ub-align", w, "%s at UB address %u, which is not 32-byte aligned", what, addr_);
        return km::UbSpan{addr_, static_cast<uint32_t>(n * sizeof(T))};
    }

private:
    void bound(uint32_t off, km::Where w) const
    {
        if (off >= size_)
            km::report("ub-bound", w, "element %u of a local tensor of %u", off, size_);
    }
    uint32_t addr_ = 0;
    uint32_t size_ = 0;
    TPosition pos_ = TPosition::VECCALC;
};

} // namespace AscendC
#endif
