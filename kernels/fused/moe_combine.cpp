// moe_combine.cpp: the way back of moe_dispatch: each token becomes the weighted sum of what its
// experts made of it.
//
// recv: sym, as moe_dispatch filled it, each row replaced by the expert's output (hidden elements
// of dtype: float, half or bfloat16). slots, ids: as given to and filled by moe_dispatch. weights:
// local float, [token_count][topk]. out: local, [token_count][hidden]; a token routed nowhere
// becomes zero. Sums are float, in the order of k, rounded once. Pull; two barriers: the experts
// are done, and recv may be reused. Blocks take tokens in turn.
#include "../coll/reducer.h"

using namespace gshmem;

namespace {

struct Combine {
    Team team;
    uint64_t out, recv, slots, ids, weights;
    uint64_t token_count, topk, hidden, experts_per_pe;
};

struct Source {
    uint64_t row; // 0: none
    float weight;
};

template <typename T> ACLSHMEM_DEVICE Source source_of(const Combine& c, uint64_t entry, uint64_t from)
{
    const int32_t expert = load_constant<int32_t>(c.ids + 4 * entry);
    if (expert < 0) return Source{0, 0.0f};
    const int32_t member = static_cast<int32_t>(static_cast<uint64_t>(expert) / c.experts_per_pe);
    const uint64_t slot = static_cast<uint64_t>(load_constant<int32_t>(c.slots + 4 * entry));
    const uint64_t row = (static_cast<uint64_t>(c.team.me) * c.token_count * c.topk + slot) * c.hidden + from;
    return Source{peer_address(c.recv + row * sizeof(T), c.team.pe(member)), load_constant<float>(c.weights + 4 * entry)};
}

// One chunk of one token. Events 0: MTE2 and V on the input; 2: V and MTE3 on the output.
template <typename T> ACLSHMEM_DEVICE void combine_chunk(const Combine& c, uint64_t token, uint64_t from, uint32_t n)
{
    const auto acc = local<float>(REDUCE_ACC, REDUCE_BUFFER), wide = local<float>(REDUCE_WIDE, REDUCE_BUFFER);
    const auto in = local<T>(REDUCE_IN, REDUCE_BUFFER);
    const auto out = local<T>(REDUCE_OUT, REDUCE_BUFFER);
    const int32_t count = static_cast<int32_t>(n);
    AscendC::Duplicate(acc, 0.0f, count);
    AscendC::PipeBarrier<PIPE_V>();
    for (uint64_t k = 0; k < c.topk; k++) {
        const Source s = source_of<T>(c, token * c.topk + k, from);
        if (!s.row) continue;
        AscendC::SetFlag<HardEvent::V_MTE2>(0);
        AscendC::WaitFlag<HardEvent::V_MTE2>(0);
        load_rows<T>(REDUCE_IN, s.row, 1, n * static_cast<uint32_t>(sizeof(T)), 0);
        AscendC::SetFlag<HardEvent::MTE2_V>(0);
        AscendC::WaitFlag<HardEvent::MTE2_V>(0);
        if constexpr (Same<T, float>::value) {
            AscendC::Axpy(acc, in, s.weight, count);
        } else {
            AscendC::Cast(wide, in, AscendC::RoundMode::CAST_NONE, n);
            AscendC::PipeBarrier<PIPE_V>();
            AscendC::Axpy(acc, wide, s.weight, count);
        }
        AscendC::PipeBarrier<PIPE_V>();
    }
    AscendC::SetFlag<HardEvent::MTE3_V>(2); // the last chunk's result has left
    AscendC::WaitFlag<HardEvent::MTE3_V>(2);
    if constexpr (Same<T, float>::value) AscendC::Muls(out, acc, 1.0f, count);
    else AscendC::Cast(out, acc, AscendC::RoundMode::CAST_RINT, n);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::SetFlag<HardEvent::V_MTE3>(2);
    AscendC::WaitFlag<HardEvent::V_MTE3>(2);
    store_rows<T>(c.out + (token * c.hidden + from) * sizeof(T), REDUCE_OUT, 1, n * static_cast<uint32_t>(sizeof(T)), 0);
}

template <typename T> ACLSHMEM_DEVICE void combine_tokens(const Combine& c)
{
    const uint64_t blocks = static_cast<uint64_t>(AscendC::GetBlockNum());
    for (uint64_t token = static_cast<uint64_t>(AscendC::GetBlockIdx()); token < c.token_count; token += blocks)
        for (uint64_t from = 0; from < c.hidden; from += REDUCE_CHUNK)
            combine_chunk<T>(c, token, from, static_cast<uint32_t>(c.hidden - from < REDUCE_CHUNK ? c.hidden - from : REDUCE_CHUNK));
}

} // namespace

extern "C" GSHMEM_ENTRY void gshmem_k_moe_combine(GM_ADDR state, uint64_t team, GM_ADDR out, GM_ADDR recv, GM_ADDR slots, GM_ADDR ids,
                                          GM_ADDR weights, uint64_t token_count, uint64_t topk, uint64_t hidden,
                                          uint64_t experts_per_pe, uint64_t dtype)
{
    between_barriers(state, team, [=](const Team& t) {
        const Combine c{t, address(out), address(recv), address(slots), address(ids), address(weights), token_count, topk, hidden, experts_per_pe};
        switch (dtype) {
        case DT_FLOAT: combine_tokens<float>(c); break;
        case DT_HALF: combine_tokens<half>(c); break;
        case DT_BFLOAT16: combine_tokens<bfloat16_t>(c); break;
        default: AscendC::Trap(); // the host refuses other types
        }
    });
}
