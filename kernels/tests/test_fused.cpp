// test_fused.cpp: kernels that move and compute.
#include "harness/world.hpp"
#include "km/base.h"
#include <cmath>
#include <cstring>

KERNEL_TEST(kv_shuffle)
{
    for (uint64_t bytes : {64, 4100, 20003}) {
        World w(c);
        const uint64_t blocks = 6, n = uint64_t(w.n());
        const uint64_t src = w.symmetric(blocks * bytes), dst = w.symmetric(blocks * bytes), moves = w.local((blocks + 2) * 16);
        // Source block b of PE p goes to PE (p + b) mod n, block perm(b): a permutation of all blocks.
        const auto to_block = [&](uint64_t b) { return (b * 5 + 1) % blocks; };
        Stream s(w);
        for (int round = 0; round < 3; round++) {
            s.host([&, round](int pe) {
                fill_bytes(w.sym_host(pe, src), blocks * bytes, pe, round);
                for (uint64_t b = 0; b < blocks; b++) {
                    int32_t* m = w.loc_as<int32_t>(pe, moves) + 4 * b;
                    m[0] = int32_t(b);
                    m[1] = int32_t((uint64_t(pe) + b) % n);
                    m[2] = int32_t(to_block(b));
                    m[3] = -77;
                }
                const int32_t nowhere[8] = {0, -1, 0, 0, 0, w.n(), 0, 0}; // two rows that move nothing
                std::memcpy(w.loc_as<int32_t>(pe, moves) + 4 * blocks, nowhere, sizeof nowhere);
            });
            s.kernel("gshmem_k_kv_shuffle", [&](int pe) { return Args{0, w.sym(pe, dst), w.sym(pe, src), w.loc(pe, moves), blocks + 2, bytes}; });
            s.host([&, round](int pe) {
                for (uint64_t b = 0; b < blocks; b++) {
                    const int from = int((uint64_t(pe) + n * blocks - b) % n);
                    expect_bytes(w.sym_host(pe, dst + to_block(b) * bytes), bytes, from, round, "kv_shuffle", b * bytes);
                }
                fill_bytes(w.sym_host(pe, src), blocks * bytes, pe, 77);
            });
        }
        s.run();
    }
}

namespace {

struct Moe {
    uint64_t tokens, topk, hidden, experts; // experts per PE
};

int32_t route(int pe, int round, uint64_t entry, const Moe& m, int n)
{
    const uint64_t r = pattern(pe, round + 50, entry);
    return r % 7 == 0 ? -1 : int32_t(r / 7 % (m.experts * uint64_t(n)));
}
float weight(int pe, uint64_t entry) { return float(pattern(pe, 90, entry) % 9) * 0.125f; }

template <typename T> T token_value(int pe, int round, uint64_t token, uint64_t i)
{
    return T(float(int64_t(pattern(pe, round, token * 1000 + i) % 17) - 8) * 0.5f);
}

// Expert e doubles and adds its number.
template <typename T> T expert_value(T v, int32_t e) { return T(float(v) * 2.0f + float(e % 5)); }

struct MoeBuffers {
    uint64_t recv, meta, flags, counts, slots, tokens, ids, weights, out;
};

template <typename T> void check_received(const World& w, const Moe& m, const MoeBuffers& b, int pe, int round)
{
    const uint64_t capacity = m.tokens * m.topk;
    for (int from = 0; from < w.n(); from++) {
        uint64_t slot = 0;
        for (uint64_t e = 0; e < capacity; e++) {
            const int32_t expert = route(from, round, e, m, w.n());
            if (expert < 0 || expert / int32_t(m.experts) != pe) continue;
            const uint64_t row = uint64_t(from) * capacity + slot++;
            if (w.sym_as<int32_t>(pe, b.meta)[row] != expert % int32_t(m.experts)) fail("dispatch: wrong expert of token %llu from PE %d", (unsigned long long)(e / m.topk), from);
            for (uint64_t i = 0; i < m.hidden; i++) {
                T& got = w.sym_as<T>(pe, b.recv)[row * m.hidden + i];
                const T want = token_value<T>(from, round, e / m.topk, i);
                if (std::memcmp(&got, &want, sizeof(T))) fail("dispatch: token %llu from PE %d, element %llu", (unsigned long long)(e / m.topk), from, (unsigned long long)i);
                got = expert_value(got, expert); // the expert's work
            }
        }
        if (w.loc_as<int32_t>(pe, b.counts)[from] != int32_t(slot)) fail("dispatch: count from PE %d is %d, not %llu", from, w.loc_as<int32_t>(pe, b.counts)[from], (unsigned long long)slot);
    }
    for (uint64_t e = 0; e < capacity; e++)
        if ((route(pe, round, e, m, w.n()) < 0) != (w.loc_as<int32_t>(pe, b.slots)[e] == -1)) fail("dispatch: slot of entry %llu", (unsigned long long)e);
}

template <typename T> void check_combined(const World& w, const Moe& m, const MoeBuffers& b, int pe, int round)
{
    for (uint64_t t = 0; t < m.tokens; t++)
        for (uint64_t i = 0; i < m.hidden; i++) {
            float acc = 0;
            for (uint64_t k = 0; k < m.topk; k++) {
                const uint64_t e = t * m.topk + k;
                const int32_t expert = route(pe, round, e, m, w.n());
                if (expert >= 0) acc += float(expert_value(token_value<T>(pe, round, t, i), expert)) * weight(pe, e);
            }
            const T want = T(acc), got = w.loc_as<T>(pe, b.out)[t * m.hidden + i];
            if (std::memcmp(&got, &want, sizeof(T))) fail("combine: token %llu element %llu is %g, not %g", (unsigned long long)t, (unsigned long long)i, double(float(got)), double(float(want)));
        }
}

template <typename T> void run_moe(const Config& c, const Moe& m, uint64_t dtype)
{
    World w(c);
    const uint64_t n = uint64_t(w.n()), capacity = m.tokens * m.topk, row = m.hidden * sizeof(T);
    const MoeBuffers b{w.symmetric(n * capacity * row), w.symmetric(n * capacity * 4), w.symmetric(n * 64), w.local(n * 4), w.local(capacity * 4),
                       w.local(m.tokens * row), w.local(capacity * 4), w.local(capacity * 4), w.local(m.tokens * row)};
    Stream s(w);
    for (int round = 0; round < 3; round++) {
        s.host([&, round](int pe) {
            for (uint64_t i = 0; i < m.tokens * m.hidden; i++) w.loc_as<T>(pe, b.tokens)[i] = token_value<T>(pe, round, i / m.hidden, i % m.hidden);
            for (uint64_t e = 0; e < capacity; e++) {
                w.loc_as<int32_t>(pe, b.ids)[e] = route(pe, round, e, m, w.n());
                w.loc_as<float>(pe, b.weights)[e] = weight(pe, e);
            }
        });
        s.kernel("gshmem_k_moe_dispatch", [&](int pe) {
            return Args{0, w.sym(pe, b.recv), w.sym(pe, b.meta), w.sym(pe, b.flags), w.loc(pe, b.counts), w.loc(pe, b.slots), w.loc(pe, b.tokens),
                        w.loc(pe, b.ids), m.tokens, m.topk, row, m.experts};
        });
        s.host([&, round](int pe) { check_received<T>(w, m, b, pe, round); });
        s.kernel("gshmem_k_moe_combine", [&](int pe) {
            return Args{0, w.loc(pe, b.out), w.sym(pe, b.recv), w.loc(pe, b.slots), w.loc(pe, b.ids), w.loc(pe, b.weights), m.tokens, m.topk, m.hidden, m.experts, dtype};
        });
        s.host([&, round](int pe) {
            check_combined<T>(w, m, b, pe, round);
            std::memset(w.sym_host(pe, b.recv), 0x11, n * capacity * row); // the next dispatch must not need it, nor disturb it early
        });
    }
    s.run();
}

} // namespace

KERNEL_TEST(moe)
{
    run_moe<float>(c, {7, 2, 37, 2}, 0);
    run_moe<half>(c, {5, 3, 70, 1}, 1);
    run_moe<bfloat16_t>(c, {4, 2, full ? 4133u : 133u, 3}, 27);
}

namespace {

void run_matmul(const Config& c, uint64_t m, uint64_t n, uint64_t k)
{
    World w(c);
    const uint64_t tiles = (m + 7) / 8 * ((n + 63) / 64), per = (tiles + uint64_t(w.n()) - 1) / uint64_t(w.n());
    const uint64_t cc = w.symmetric(m * n * 4), work = w.symmetric(uint64_t(w.n()) * per * 8 * 64 * 4), flags = w.symmetric(uint64_t(w.n()) * per * 4);
    const uint64_t a = w.local(m * k * 4), b = w.local(k * n * 4);
    const auto av = [](int pe, int round, uint64_t i) { return float(int64_t(pattern(pe, round, i) % 9) - 4) * 0.5f; };
    const auto bv = [](int pe, int round, uint64_t i) { return float(int64_t(pattern(pe, round + 20, i) % 7) - 3); };
    Stream s(w);
    for (int round = 0; round < 3; round++) {
        s.host([&, round](int pe) {
            for (uint64_t i = 0; i < m * k; i++) w.loc_as<float>(pe, a)[i] = av(pe, round, i);
            for (uint64_t i = 0; i < k * n; i++) w.loc_as<float>(pe, b)[i] = bv(pe, round, i);
        });
        s.kernel("gshmem_k_matmul_allreduce", [&, round](int pe) {
            return Args{0, w.sym(pe, cc), w.loc(pe, a), w.loc(pe, b), w.sym(pe, work), w.sym(pe, flags), m, n, k, uint64_t(round + 1)};
        });
        s.host([&, round](int pe) {
            for (uint64_t i = 0; i < m; i++)
                for (uint64_t j = 0; j < n; j++) {
                    float sum = 0; // halves and small integers: exact in any order
                    for (int p = 0; p < w.n(); p++)
                        for (uint64_t q = 0; q < k; q++) sum += av(p, round, i * k + q) * bv(p, round, q * n + j);
                    const float got = w.sym_as<float>(pe, cc)[i * n + j];
                    if (got != sum) fail("matmul_allreduce: C[%llu][%llu] is %g, not %g", (unsigned long long)i, (unsigned long long)j, double(got), double(sum));
                }
            std::memset(w.sym_host(pe, cc), 0x7f, m * n * 4);
        });
    }
    s.run();
}

} // namespace

KERNEL_TEST(matmul_allreduce)
{
    run_matmul(c, 1, 1, 1);
    run_matmul(c, 19, 70, 37);
    if (full || c.blocks == 3) run_matmul(c, 50, 130, 9);
}
