// pipe.h: TPipe and what it hands out: buffers, queues and event ids.
#ifndef KM_PIPE_H
#define KM_PIPE_H

#include "vector.h"
#include <exception>

namespace AscendC {

template <TPosition pos = TPosition::VECCALC> class TBuf {
public:
    template <typename T> LocalTensor<T> Get(km::Where w = km::Where::here()) { return Get<T>(bytes_ / sizeof(T), w); }
    template <typename T> LocalTensor<T> Get(uint32_t n, km::Where w = km::Where::here()) { return GetWithOffset<T>(n, 0, w); }
    template <typename T> LocalTensor<T> GetWithOffset(uint32_t n, uint32_t off, km::Where w = km::Where::here())
    {
        if (off + n * sizeof(T) > bytes_)
            km::report("ub-bound", w, "a tensor of %u elements at %u in a TBuf of %u bytes", n, off, bytes_);
        return LocalTensor<T>(pos, addr_ + off, n);
    }

private:
    friend class TPipe;
    uint32_t addr_ = 0, bytes_ = 0;
};

constexpr HardEvent km_filled(TPosition p) { return p == TPosition::VECIN ? HardEvent::MTE2_V : HardEvent::V_MTE3; }
constexpr HardEvent km_freed(TPosition p) { return p == TPosition::VECIN ? HardEvent::V_MTE2 : HardEvent::MTE3_V; }

class TPipe;

// A queue of `num` buffers; `filled` orders producer before consumer, `freed` the reverse.
template <TPosition pos, int depth, HardEvent filled, HardEvent freed> class km_queue {
public:
    template <typename T> LocalTensor<T> AllocTensor(km::Where w = km::Where::here())
    {
        if (used_ == num_) km::stop("queue", w, "AllocTensor from a queue whose %d buffers are all in use", num_);
        const int i = (first_ + used_++) % num_;
        if (freedSet_[i]) WaitFlag<freed>(freedId_[i], w);
        freedSet_[i] = false;
        return LocalTensor<T>(pos, addr_ + i * bytes_, bytes_ / sizeof(T));
    }
    template <typename T> void EnQue(const LocalTensor<T>& t, km::Where w = km::Where::here())
    {
        const int i = index(t.GetPhyAddr(), w);
        SetFlag<filled>(filledId_[i], w);
        order_[(head_ + queued_++) % num_] = i;
    }
    template <typename T> LocalTensor<T> DeQue(km::Where w = km::Where::here())
    {
        if (queued_ == 0) km::stop("queue", w, "DeQue from an empty queue");
        const int i = order_[head_];
        head_ = (head_ + 1) % num_;
        queued_--;
        WaitFlag<filled>(filledId_[i], w);
        return LocalTensor<T>(pos, addr_ + i * bytes_, bytes_ / sizeof(T));
    }
    template <typename T> void FreeTensor(const LocalTensor<T>& t, km::Where w = km::Where::here())
    {
        const int i = index(t.GetPhyAddr(), w);
        if (used_ == 0 || i != first_) km::stop("queue", w, "FreeTensor of a buffer that is not the oldest in use");
        SetFlag<freed>(freedId_[i], w);
        freedSet_[i] = true;
        first_ = (first_ + 1) % num_;
        used_--;
    }

private:
    friend class TPipe;
    int index(uint64_t addr, km::Where w) const
    {
        if (addr < addr_ || addr >= addr_ + static_cast<uint64_t>(num_) * bytes_)
            km::stop("queue", w, "a tensor that does not belong to this queue");
        return static_cast<int>((addr - addr_) / bytes_);
    }
    void drain(km::Where w)
    {
        for (int i = 0; i < num_; i++)
            if (freedSet_[i]) WaitFlag<freed>(freedId_[i], w);
        num_ = 0;
    }
    uint32_t addr_ = 0, bytes_ = 0;
    int num_ = 0, first_ = 0, used_ = 0, head_ = 0, queued_ = 0;
    int order_[8] = {}, filledId_[8] = {}, freedId_[8] = {};
    bool freedSet_[8] = {};
};

template <TPosition pos, int depth> using TQue = km_queue<pos, depth, km_filled(pos), km_freed(pos)>;
template <TPosition src, TPosition dst, int depth>
using TQueBind = km_queue<src, depth, HardEvent::MTE2_MTE3, HardEvent::MTE3_MTE2>;

class TPipe {
public:
    TPipe()
    {
        current() = this;
        km::init_core();
    }
    ~TPipe() noexcept(false)
    {
        if (std::uncaught_exceptions() == 0) // a stopped kernel has no pipes to wait for
            for (int i = 0; i < drains_; i++) drain_[i](queue_[i]);
        current() = nullptr;
    }
    TPipe(const TPipe&) = delete;

    template <TPosition pos> bool InitBuffer(TBuf<pos>& b, uint32_t bytes, km::Where w = km::Where::here())
    {
        b.addr_ = take(bytes, w);
        b.bytes_ = (bytes + 31) / 32 * 32;
        return true;
    }
    template <TPosition pos, int depth, HardEvent filled, HardEvent freed>
    bool InitBuffer(km_queue<pos, depth, filled, freed>& q, uint8_t num, uint32_t bytes, km::Where w = km::Where::here())
    {
        using Queue = km_queue<pos, depth, filled, freed>;
        if (num > 8 || drains_ == 16) km::stop("queue", w, "InitBuffer: %u buffers or a 17th queue", num);
        q.bytes_ = (bytes + 31) / 32 * 32;
        q.addr_ = take(q.bytes_ * num, w);
        q.num_ = num;
        for (int i = 0; i < num; i++) {
            q.filledId_[i] = AllocEventID<filled>(w);
            q.freedId_[i] = AllocEventID<freed>(w);
        }
        queue_[drains_] = &q;
        drain_[drains_++] = [](void* p) { static_cast<Queue*>(p)->drain(km::Where::here()); };
        return true;
    }
    template <HardEvent e> TEventID AllocEventID(km::Where w = km::Where::here())
    {
        uint8_t& used = events_[static_cast<int>(e)];
        for (int i = 0; i < km::USER_EVENT_IDS; i++)
            if (!(used & (1u << i))) {
                used |= static_cast<uint8_t>(1u << i);
                return static_cast<TEventID>(i);
            }
        km::stop("event", w, "all %d ids of this event are allocated", km::USER_EVENT_IDS);
    }
    template <HardEvent e> void ReleaseEventID(TEventID id, km::Where w = km::Where::here())
    {
        uint8_t& used = events_[static_cast<int>(e)];
        if (!(used & (1u << id))) km::report("event", w, "ReleaseEventID(%d), which is not allocated", id);
        used &= static_cast<uint8_t>(~(1u << id));
    }
    TEventID FetchEventID(HardEvent e)
    {
        const uint8_t used = events_[static_cast<int>(e)];
        for (int i = 0; i < km::USER_EVENT_IDS; i++)
            if (!(used & (1u << i))) return static_cast<TEventID>(i);
        return km::USER_EVENT_IDS - 1;
    }
    static TPipe*& current() { return *static_cast<TPipe**>(static_cast<void*>(static_cast<char*>(km::core_context()) + 1016)); }

private:
    uint32_t take(uint32_t bytes, km::Where w)
    {
        const uint32_t at = next_, size = (bytes + 31) / 32 * 32;
        if (size > km::TPIPE_UB_BYTES - at)
            km::stop("ub-bound", w, "InitBuffer of %u bytes: %u of the %u a TPipe has are in use", bytes, at, km::TPIPE_UB_BYTES);
        next_ += size;
        return at;
    }
    uint32_t next_ = 0;
    int drains_ = 0;
    void* queue_[16] = {};
    void (*drain_[16])(void*) = {};
    uint8_t events_[static_cast<int>(HardEvent::MAX)] = {};
};

inline TPipe* GetTPipePtr() { return TPipe::current(); }

} // namespace AscendC
#endif
