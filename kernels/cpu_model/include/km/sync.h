// sync.h: order inside a core and between the cores of a device.
#ifndef KM_SYNC_H
#define KM_SYNC_H

#include "tensor.h"

enum pipe_t {
    PIPE_S = km::S, PIPE_V = km::V, PIPE_M = km::M, PIPE_MTE1 = km::MTE1, PIPE_MTE2 = km::MTE2,
    PIPE_MTE3 = km::MTE3, PIPE_FIX = km::FIX, PIPE_ALL = km::PIPE_EVERY
};
enum event_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };
using TEventID = int8_t;

namespace AscendC {

#define KM_EVENTS(X) \
    X(MTE2, MTE1) X(MTE1, MTE2) X(MTE1, M) X(M, MTE1) X(MTE2, V) X(V, MTE2) X(MTE3, V) X(V, MTE3) \
    X(M, V) X(V, M) X(V, V) X(MTE3, MTE1) X(MTE1, MTE3) X(MTE1, V) X(MTE2, M) X(M, MTE2) \
    X(V, MTE1) X(M, FIX) X(FIX, M) X(MTE3, MTE2) X(MTE2, MTE3) X(S, V) X(V, S) X(S, MTE2) \
    X(MTE2, S) X(S, MTE3) X(MTE3, S) X(M, S) X(S, M) X(FIX, MTE3) X(FIX, MTE2)

enum class HardEvent : uint8_t {
#define X(a, b) a##_##b,
    KM_EVENTS(X)
#undef X
        MAX
};

constexpr km::Pipe event_source(HardEvent e)
{
    constexpr km::Pipe t[] = {
#define X(a, b) km::a,
        KM_EVENTS(X)
#undef X
    };
    return t[static_cast<int>(e)];
}
constexpr km::Pipe event_target(HardEvent e)
{
    constexpr km::Pipe t[] = {
#define X(a, b) km::b,
        KM_EVENTS(X)
#undef X
    };
    return t[static_cast<int>(e)];
}

inline void InitSocState() { km::init_core(); }

template <HardEvent e> inline void SetFlag(int32_t id, km::Where w = km::Where::here())
{
    km::set_flag(event_source(e), event_target(e), id, w);
}
template <HardEvent e> inline void WaitFlag(int32_t id, km::Where w = km::Where::here())
{
    km::wait_flag(event_source(e), event_target(e), id, w);
}
template <pipe_t p> inline void PipeBarrier(km::Where w = km::Where::here())
{
    static_assert(p != PIPE_S, "PipeBarrier<PIPE_S> is not allowed");
    km::pipe_barrier(static_cast<km::Pipe>(p), w);
}

enum class MemDsbT : uint8_t { ALL, DDR, UB, SEQ };
template <MemDsbT> inline void DataSyncBarrier(km::Where w = km::Where::here())
{
    km::data_sync_barrier(w);
}

template <bool aivOnly = true> inline void SyncAll(km::Where w = km::Where::here())
{
    static_assert(aivOnly, "the model has vector cores only");
    km::sync_all(w);
}
inline void SetSyncBaseAddr(uint64_t) {}

inline int64_t GetBlockIdx() { return km::block_idx(); }
inline int64_t GetBlockNum() { return km::block_num(); }
inline int64_t GetSubBlockIdx() { return 0; }
inline int64_t GetSubBlockNum() { return 1; }
inline int64_t GetTaskRatio() { return 1; }
inline int64_t GetTaskRation() { return 1; }
inline int64_t GetSystemCycle() { return static_cast<int64_t>(km::system_cycle()); }
[[noreturn]] inline void Trap(km::Where w = km::Where::here()) { km::stop("trap", w, "Trap() called"); }

} // namespace AscendC

#define ASCEND_IS_AIV (true)
#define ASCEND_IS_AIC (false)
#define ASCENDC_ASSERT(cond, ...)                                                            \
    do {                                                                                     \
        if (!(cond)) km::stop("assert", km::Where::here(), "assertion failed: %s", #cond);   \
    } while (0)

#endif
