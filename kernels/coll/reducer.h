// reducer.h: the inner loop of every reduction: chunks of all members' data, combined in member
// order on the vector unit, stored to one or more places.
//
// half and bfloat16 are combined as float and rounded once, so the order and the bits are the same
// on every PE. While the vector unit works on one member's chunk, MTE2 loads the next.
#ifndef GSHMEM_COLL_REDUCER_H
#define GSHMEM_COLL_REDUCER_H

#include "kernel_entry.h"

namespace gshmem {

template <typename T> struct Wide { using type = T; };
template <> struct Wide<half> { using type = float; };
template <> struct Wide<bfloat16_t> { using type = float; };

// UB of the reducer, above the default staging window.
constexpr uint32_t REDUCE_CHUNK = 4096; // elements
constexpr uint32_t REDUCE_BUFFER = REDUCE_CHUNK * 4;
constexpr uint32_t REDUCE_IN = 32 * 1024;                        // two
constexpr uint32_t REDUCE_ACC = REDUCE_IN + 2 * REDUCE_BUFFER;   // two
constexpr uint32_t REDUCE_WIDE = REDUCE_ACC + 2 * REDUCE_BUFFER; // one
constexpr uint32_t REDUCE_OUT = REDUCE_WIDE + REDUCE_BUFFER;     // two

template <typename A> ACLSHMEM_DEVICE void combine(const AscendC::LocalTensor<A>& acc, const AscendC::LocalTensor<A>& in, uint64_t op, uint32_t n)
{
    const int32_t count = static_cast<int32_t>(n);
    switch (op) {
    case OP_MAX: AscendC::Max(acc, acc, in, count); break;
    case OP_MIN: AscendC::Min(acc, acc, in, count); break;
    case OP_PROD: AscendC::Mul(acc, acc, in, count); break;
    default: AscendC::Add(acc, acc, in, count); break;
    }
}

// Events: V_MTE2 and MTE2_V 0, 1 for the two inputs; MTE3_V and V_MTE3 2, 3 for the two results.
// "Free" flags are raised at the start and taken back at the end, so that each wait has its set.
template <typename T> class Reducer {
    using A = typename Wide<T>::type;
    static constexpr bool widens = !Same<A, T>::value;

public:
    ACLSHMEM_DEVICE explicit Reducer(uint64_t op) : op_(op)
    {
        for (int32_t i = 0; i < 2; i++) {
            AscendC::SetFlag<HardEvent::V_MTE2>(i);
            AscendC::SetFlag<HardEvent::MTE3_V>(2 + i);
        }
    }
    ACLSHMEM_DEVICE void end()
    {
        for (int32_t i = 0; i < 2; i++) {
            AscendC::WaitFlag<HardEvent::V_MTE2>(i);
            AscendC::WaitFlag<HardEvent::MTE3_V>(2 + i);
        }
    }

    // source(j): address of member j's n elements, target(j): where the result goes, j < targets.
    template <typename Source, typename Target>
    ACLSHMEM_DEVICE void chunk(uint32_t n, int32_t members, Source source, int32_t targets, Target target)
    {
        const int32_t half_of = turn_++ & 1;
        const auto acc = local<A>(REDUCE_ACC + half_of * REDUCE_BUFFER, REDUCE_BUFFER);
        AscendC::WaitFlag<HardEvent::MTE3_V>(2 + half_of);
        load(0, source(0), n);
        for (int32_t j = 0; j < members; j++) {
            if (j + 1 < members) load((j + 1) & 1, source(j + 1), n);
            take(j, acc, n);
        }
        const uint32_t out = finish(acc, half_of, n);
        AscendC::SetFlag<HardEvent::V_MTE3>(2 + half_of);
        AscendC::WaitFlag<HardEvent::V_MTE3>(2 + half_of);
        for (int32_t j = 0; j < targets; j++) store_rows<T>(target(j), out, 1, n * static_cast<uint32_t>(sizeof(T)), 0);
        AscendC::SetFlag<HardEvent::MTE3_V>(2 + half_of);
    }

private:
    ACLSHMEM_DEVICE void load(int32_t buffer, uint64_t from, uint32_t n)
    {
        AscendC::WaitFlag<HardEvent::V_MTE2>(buffer);
        load_rows<T>(REDUCE_IN + buffer * REDUCE_BUFFER, from, 1, n * static_cast<uint32_t>(sizeof(T)), 0);
        AscendC::SetFlag<HardEvent::MTE2_V>(buffer);
    }
    ACLSHMEM_DEVICE void take(int32_t j, const AscendC::LocalTensor<A>& acc, uint32_t n)
    {
        const int32_t buffer = j & 1;
        const auto in = local<T>(REDUCE_IN + buffer * REDUCE_BUFFER, REDUCE_BUFFER);
        AscendC::WaitFlag<HardEvent::MTE2_V>(buffer);
        if constexpr (widens) {
            const auto wide = local<A>(REDUCE_WIDE, REDUCE_BUFFER);
            AscendC::Cast(j == 0 ? acc : wide, in, AscendC::RoundMode::CAST_NONE, n);
            AscendC::PipeBarrier<PIPE_V>();
            if (j > 0) combine<A>(acc, wide, op_, n);
        } else {
            if (j == 0) AscendC::Muls(acc, in, static_cast<A>(1), static_cast<int32_t>(n));
            else combine<A>(acc, in, op_, n);
        }
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::SetFlag<HardEvent::V_MTE2>(buffer);
    }
    // Returns the UB address of the result as T.
    ACLSHMEM_DEVICE uint32_t finish(const AscendC::LocalTensor<A>& acc, int32_t half_of, uint32_t n)
    {
        if constexpr (widens) {
            const uint32_t out = REDUCE_OUT + static_cast<uint32_t>(half_of) * REDUCE_BUFFER;
            AscendC::Cast(local<T>(out, REDUCE_BUFFER), acc, AscendC::RoundMode::CAST_RINT, n);
            return out;
        } else {
            return ub_of(acc);
        }
    }
    uint64_t op_;
    uint32_t turn_ = 0;
};

// Reduces count elements at offset `first` of every member's src. to(j) is the address at which
// target j's copy of element `first` lies.
template <typename T, typename Target>
ACLSHMEM_DEVICE void reduce_range(const Team& t, uint64_t src, uint64_t first, uint64_t count, uint64_t op, int32_t targets, Target to)
{
    if (count == 0) return;
    Reducer<T> r(op);
    for (uint64_t done = 0; done < count; done += REDUCE_CHUNK) {
        const uint32_t n = static_cast<uint32_t>(count - done < REDUCE_CHUNK ? count - done : REDUCE_CHUNK);
        const uint64_t from = src + (first + done) * sizeof(T);
        r.chunk(n, t.n, [=](int32_t j) { return peer_address(from, t.pe(j)); }, targets,
                [=](int32_t j) { return to(j) + done * sizeof(T); });
    }
    r.end();
}

constexpr uint64_t REDUCE_GRAIN = 256; // elements: whole 512-byte lines of 2-byte types

// Calls body with a value of the dtype's C++ type.
template <typename Body> ACLSHMEM_DEVICE void with_dtype(uint64_t dtype, Body body)
{
    switch (dtype) {
    case DT_FLOAT: body(float{}); break;
    case DT_HALF: body(half{}); break;
    case DT_BFLOAT16: body(bfloat16_t{}); break;
    case DT_INT32: body(int32_t{}); break;
    default: AscendC::Trap(); // the host refuses other types
    }
}

} // namespace gshmem
#endif
