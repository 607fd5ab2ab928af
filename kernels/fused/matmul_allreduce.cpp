// matmul_allreduce.cpp: C = sum over the members of A x B, on every member; float, row major.
//
// a: local [m][k], b: local [k][n], c: sym [m][n]. The communication hides behind the product: each
// tile of the partial product leaves for its owner (member tile mod n) while the next is computed,
// and owners add the tiles of the wave before in member order and store the sum to all.
//   work   sym, [n][ceil(tiles / n)][TILE_M * TILE_N] float
//   flags  sym, [n][ceil(tiles / n)] int32, zero before the first call; epoch: 1, 2, 3, ... per call
// No barrier at the start: a tile is complete only when every member has sent its part, which
// proves that every member's C is free. One at the end: C is complete and work may be reused.
// The product runs on the vector unit (Axpy per element of A): right on every chip, and what the
// model covers; a cube version would replace multiply() only.
#include "kernel_entry.h"

using namespace gshmem;

namespace {

constexpr uint32_t TILE_M = 8, TILE_N = 64, TILE_K = 32;
constexpr uint32_t TILE_BYTES = TILE_M * TILE_N * 4;
// UB of this kernel; the default staging window below is left alone.
constexpr uint32_t UB_A = 32 * 1024, UB_B = UB_A + 8 * 1024, UB_C = UB_B + 16 * 1024, UB_IN = UB_C + 2 * TILE_BYTES, UB_SUM = UB_IN + TILE_BYTES;

struct Product {
    Team team;
    uint64_t c, a, b, work, flags;
    uint64_t m, n, k;
    int32_t epoch;

    ACLSHMEM_DEVICE uint64_t columns() const { return (n + TILE_N - 1) / TILE_N; }
    ACLSHMEM_DEVICE uint64_t tiles() const { return (m + TILE_M - 1) / TILE_M * columns(); }
    ACLSHMEM_DEVICE uint64_t per_owner() const { return (tiles() + static_cast<uint64_t>(team.n) - 1) / static_cast<uint64_t>(team.n); }
    // Place of member `from`'s part of the owner's tile number i.
    ACLSHMEM_DEVICE uint64_t place(int32_t from, uint64_t i) const { return static_cast<uint64_t>(from) * per_owner() + i; }
};

struct Tile {
    uint64_t row, column;
    uint32_t rows, columns;
};

ACLSHMEM_DEVICE Tile tile_of(const Product& p, uint64_t number)
{
    const uint64_t row = number / p.columns() * TILE_M, column = number % p.columns() * TILE_N;
    return Tile{row, column, static_cast<uint32_t>(p.m - row < TILE_M ? p.m - row : TILE_M),
                static_cast<uint32_t>(p.n - column < TILE_N ? p.n - column : TILE_N)};
}

// Loads A[rows][from, from+depth) and B[from, from+depth)[columns]; rows of B fill TILE_N columns.
ACLSHMEM_DEVICE void load_panels(const Product& p, const Tile& t, uint64_t from, uint32_t depth)
{
    load_rows<float>(UB_A, p.a + (t.row * p.k + from) * 4, t.rows, depth * 4, static_cast<uint32_t>((p.k - depth) * 4));
    for (uint32_t i = 0; i < depth; i++)
        load_rows<float>(UB_B + i * TILE_N * 4, p.b + ((from + i) * p.n + t.column) * 4, 1, t.columns * 4, 0);
}

// acc = this member's partial product of the tile; columns beyond C stay zero.
// Events: 0 MTE2->V, 1 V->MTE2, 2 S->MTE2 and MTE2->S around the scalars of A.
ACLSHMEM_DEVICE void multiply(const Product& p, const Tile& t, const AscendC::LocalTensor<float>& acc)
{
    const auto a = local<float>(UB_A, TILE_M * TILE_K * 4), b = local<float>(UB_B, TILE_K * TILE_N * 4);
    AscendC::Duplicate(acc, 0.0f, static_cast<int32_t>(TILE_M * TILE_N)); // done before Axpy: V->MTE2->V below
    for (uint64_t from = 0; from < p.k; from += TILE_K) {
        const uint32_t depth = static_cast<uint32_t>(p.k - from < TILE_K ? p.k - from : TILE_K);
        const uint32_t stride = static_cast<uint32_t>(round_up(depth * 4, 32) / 4);
        AscendC::SetFlag<HardEvent::V_MTE2>(1);
        AscendC::WaitFlag<HardEvent::V_MTE2>(1);
        AscendC::SetFlag<HardEvent::S_MTE2>(2);
        AscendC::WaitFlag<HardEvent::S_MTE2>(2);
        load_panels(p, t, from, depth);
        AscendC::SetFlag<HardEvent::MTE2_S>(2);
        AscendC::SetFlag<HardEvent::MTE2_V>(0);
        AscendC::WaitFlag<HardEvent::MTE2_S>(2);
        AscendC::WaitFlag<HardEvent::MTE2_V>(0);
        for (uint32_t i = 0; i < depth; i++) {
            for (uint32_t r = 0; r < t.rows; r++)
                AscendC::Axpy(acc[r * TILE_N], b[i * TILE_N], a.GetValue(r * stride + i), static_cast<int32_t>(t.columns));
            AscendC::PipeBarrier<PIPE_V>();
        }
    }
}

// The tile that is on its way to its owner: its flag is raised when the copy is done, which is
// looked at only after the next tile was computed.
struct Pending {
    uint64_t flag; // 0: none
    int32_t event;
};

ACLSHMEM_DEVICE void announce(Pending& s, int32_t epoch)
{
    if (!s.flag) return;
    AscendC::WaitFlag<HardEvent::MTE3_S>(s.event);
    store_shared<int32_t>(s.flag, epoch);
    s.flag = 0;
}

ACLSHMEM_DEVICE void send_tile(const Product& p, uint64_t number, uint32_t turn, Pending& before)
{
    const uint64_t n = static_cast<uint64_t>(p.team.n);
    const int32_t owner = p.team.pe(static_cast<int32_t>(number % n)), event = static_cast<int32_t>(turn & 1);
    const uint64_t place = p.place(p.team.me, number / n);
    const uint32_t ub = UB_C + (turn & 1) * TILE_BYTES;
    AscendC::SetFlag<HardEvent::MTE3_V>(event); // this half's tile before last has left
    AscendC::WaitFlag<HardEvent::MTE3_V>(event);
    multiply(p, tile_of(p, number), local<float>(ub, TILE_BYTES));
    announce(before, p.epoch);
    AscendC::SetFlag<HardEvent::V_MTE3>(event);
    AscendC::WaitFlag<HardEvent::V_MTE3>(event);
    store_rows<float>(peer_address(p.work + place * TILE_BYTES, owner), ub, 1, TILE_BYTES, 0);
    AscendC::SetFlag<HardEvent::MTE3_S>(event);
    before = Pending{peer_address(p.flags + place * 4, owner), event};
}

// Adds the members' parts of own tile i in order and stores the sum to every member's C.
// Events: 3 for the parts, 4 for the sum.
ACLSHMEM_DEVICE bool reduce_tile(const Product& p, uint64_t i)
{
    const Tile t = tile_of(p, i * static_cast<uint64_t>(p.team.n) + static_cast<uint64_t>(p.team.me));
    const auto in = local<float>(UB_IN, TILE_BYTES), sum = local<float>(UB_SUM, TILE_BYTES);
    const int32_t count = static_cast<int32_t>(TILE_M * TILE_N);
    AscendC::SetFlag<HardEvent::MTE3_V>(4); // the last sum has left
    AscendC::WaitFlag<HardEvent::MTE3_V>(4);
    AscendC::Duplicate(sum, 0.0f, count); // done before Add: V->MTE2->V below
    for (int32_t j = 0; j < p.team.n; j++) {
        if (!wait_reached(p.flags + p.place(j, i) * 4, p.epoch)) return false;
        AscendC::SetFlag<HardEvent::V_MTE2>(3);
        AscendC::WaitFlag<HardEvent::V_MTE2>(3);
        load_rows<float>(UB_IN, p.work + p.place(j, i) * TILE_BYTES, 1, TILE_BYTES, 0);
        AscendC::SetFlag<HardEvent::MTE2_V>(3);
        AscendC::WaitFlag<HardEvent::MTE2_V>(3);
        AscendC::Add(sum, sum, in, count); // done before the next: V->MTE2->V
    }
    AscendC::SetFlag<HardEvent::V_MTE3>(4);
    AscendC::WaitFlag<HardEvent::V_MTE3>(4);
    for (int32_t j = 0; j < p.team.n; j++)
        for (uint32_t r = 0; r < t.rows; r++)
            store_rows<float>(peer_address(p.c + ((t.row + r) * p.n + t.column) * 4, p.team.pe(j)), UB_SUM + r * TILE_N * 4, 1, t.columns * 4, 0);
    return true;
}

// Own tiles number i with i mod blocks == this block, up to wave `wave` of the sending.
ACLSHMEM_DEVICE bool reduce_up_to(const Product& p, uint64_t limit, uint64_t& next, uint64_t blocks)
{
    const uint64_t n = static_cast<uint64_t>(p.team.n);
    for (; next < limit && next * n + static_cast<uint64_t>(p.team.me) < p.tiles(); next += blocks)
        if (!reduce_tile(p, next)) return false;
    return true;
}

ACLSHMEM_DEVICE bool run(const Product& p)
{
    const uint64_t blocks = static_cast<uint64_t>(AscendC::GetBlockNum()), me = static_cast<uint64_t>(AscendC::GetBlockIdx());
    const uint64_t n = static_cast<uint64_t>(p.team.n);
    Pending before{0, 0};
    uint64_t next = me;
    uint32_t turn = 0;
    for (uint64_t number = me; number < p.tiles(); number += blocks, turn++) {
        send_tile(p, number, turn, before);
        // What all members sent two waves ago has had a wave's time to arrive.
        if (turn >= 2 && !reduce_up_to(p, (turn - 2) * blocks / n, next, blocks)) {
            announce(before, p.epoch);
            return false;
        }
    }
    announce(before, p.epoch);
    return reduce_up_to(p, p.per_owner(), next, blocks);
}

} // namespace

extern "C" GSHMEM_ENTRY void gshmem_k_matmul_allreduce(GM_ADDR state, uint64_t team, GM_ADDR c, GM_ADDR a, GM_ADDR b, GM_ADDR work,
                                               GM_ADDR flags, uint64_t m, uint64_t n, uint64_t k, uint64_t epoch)
{
    aclshmemx_set_state(state);
    const Product p{team_of(static_cast<int32_t>(team)), address(c), address(a), address(b), address(work), address(flags), m, n, k,
                    static_cast<int32_t>(epoch)};
    if (!is_member(p.team)) return;
    wait_for_team(p.team);
    (void)run(p);
    team_barrier(p.team);
}
