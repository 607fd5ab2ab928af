// moe_dispatch.cpp: sends each token to the PEs of the experts it was routed to.
//
// Every member passes the same token_count, topk, token_bytes and experts_per_pe; expert e lives on
// member e / experts_per_pe. ids: local, token_count x topk int32, negative = not routed.
//   recv   sym, [n][token_count * topk][token_bytes]: tokens by source member, in the source's order
//   meta   sym, [n][token_count * topk] int32: the expert, counted within this PE, of each
//   flags  sym, [n] lines of 64 bytes, zero before the first call and again after each
//   counts local out, [n] int32: tokens received from each member
//   slots  local out, [token_count * topk] int32: where each went in its receiver's recv[me]; -1
// Block b serves the destinations and sources d with d mod blocks == b, so nothing is counted twice
// and the order is the same in every run. One barrier at the start (recv and flags are free); the
// end needs none, because a flag says that all tokens of its source have arrived. Members must be mapped:
// experts' numbers and flags are scalar stores.
#include "kernel_entry.h"

using namespace gshmem;

namespace {

struct Dispatch {
    Team team;
    uint64_t recv, meta, flags, counts, slots, tokens, ids;
    uint64_t token_count, topk, token_bytes, experts_per_pe;

    ACLSHMEM_DEVICE uint64_t capacity() const { return token_count * topk; }
    ACLSHMEM_DEVICE uint64_t flag(int32_t member) const { return flags + static_cast<uint64_t>(member) * GSHMEM_SYNC_LINE; }
};

ACLSHMEM_DEVICE void send_to(const Dispatch& d, int32_t to)
{
    const int32_t pe = d.team.pe(to);
    const uint64_t base = static_cast<uint64_t>(d.team.me) * d.capacity();
    uint64_t slot = 0;
    for (uint64_t i = 0; i < d.capacity(); i++) {
        const int32_t expert = load_constant<int32_t>(d.ids + 4 * i);
        const uint64_t owner = static_cast<uint64_t>(expert) / d.experts_per_pe; // negative: beyond every member
        if (owner != static_cast<uint64_t>(to)) continue;
        put_nbi<uint8_t>(d.recv + (base + slot) * d.token_bytes, d.tokens + i / d.topk * d.token_bytes, d.token_bytes, pe);
        store_shared<int32_t>(peer_address(d.meta + 4 * (base + slot), pe), static_cast<int32_t>(static_cast<uint64_t>(expert) % d.experts_per_pe));
        store_shared<int32_t>(d.slots + 4 * i, static_cast<int32_t>(slot));
        slot++;
    }
    engine_quiet(pe);
    if (aborted()) return; // the tokens may not have arrived: nobody may be told that they have
    store_shared<int32_t>(peer_address(d.flag(d.team.me), pe), static_cast<int32_t>(slot) + 1);
}

ACLSHMEM_DEVICE void receive_from(const Dispatch& d, int32_t from)
{
    const uint64_t flag = d.flag(from);
    if (!wait_until([=] { return load_shared<int32_t>(flag) != 0; })) return;
    store_shared<int32_t>(d.counts + 4 * static_cast<uint64_t>(from), load_shared<int32_t>(flag) - 1);
    store_shared<int32_t>(flag, 0);
}

// Entries that go nowhere; block 0 marks them.
ACLSHMEM_DEVICE void mark_unrouted(const Dispatch& d)
{
    for (uint64_t i = 0; i < d.capacity(); i++)
        if (load_constant<int32_t>(d.ids + 4 * i) < 0) store_shared<int32_t>(d.slots + 4 * i, -1);
}

} // namespace

extern "C" GSHMEM_ENTRY void gshmem_k_moe_dispatch(GM_ADDR state, uint64_t team, GM_ADDR recv, GM_ADDR meta, GM_ADDR flags,
                                           GM_ADDR counts, GM_ADDR slots, GM_ADDR tokens, GM_ADDR ids, uint64_t token_count,
                                           uint64_t topk, uint64_t token_bytes, uint64_t experts_per_pe)
{
    aclshmemx_set_state(state);
    const Dispatch d{team_of(static_cast<int32_t>(team)), address(recv), address(meta), address(flags), address(counts), address(slots),
                     address(tokens), address(ids), token_count, topk, token_bytes, experts_per_pe};
    if (!is_member(d.team)) return;
    team_barrier(d.team);
    if (aborted()) return;
    const int32_t blocks = static_cast<int32_t>(AscendC::GetBlockNum());
    const int32_t first = (static_cast<int32_t>(AscendC::GetBlockIdx()));
    if (first_block()) mark_unrouted(d);
    for (int32_t i = first; i < d.team.n; i += blocks) send_to(d, rotated(d.team, i));
    for (int32_t i = first; i < d.team.n; i += blocks) receive_from(d, i);
}
