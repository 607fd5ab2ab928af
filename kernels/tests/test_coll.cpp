// test_coll.cpp: collectives, three rounds each without any help between them, so a kernel that
// leaves early or starts early corrupts a neighbour's round.
#include "harness/world.hpp"
#include "km/base.h"
#include <cmath>
#include <cstring>

namespace {

constexpr int ROUNDS = 3;

void check_arrivals(const Config& c, const std::vector<int>& members, int team)
{
    World w(c);
    if (team) w.team(team, members);
    std::vector<int> arrived(w.n(), -1);
    const auto in = [&](int pe) {
        for (int m : members)
            if (m == pe) return true;
        return false;
    };
    Stream s(w);
    for (int round = 0; round < 4; round++) {
        s.host([&, round](int pe) { arrived[pe] = round; });
        s.kernel("gshmem_k_barrier", [&](int) { return Args{uint64_t(team)}; });
        s.host([&, round](int pe) {
            if (!in(pe)) return;
            for (int m : members)
                if (arrived[m] < round) fail("left barrier %d before PE %d arrived", round, m);
        });
    }
    s.run();
}

std::vector<int> range(int n)
{
    std::vector<int> v;
    for (int i = 0; i < n; i++) v.push_back(i);
    return v;
}

} // namespace

KERNEL_TEST(barrier) { check_arrivals(c, range(c.pes), 0); }

KERNEL_TEST(barrier_many_pes) // two rounds of dissemination
{
    if (c.pes != 8 || c.blocks > 2) return;
    for (int n : {9, 10, 20}) {
        Config big = c;
        big.pes = n;
        check_arrivals(big, range(n), 0);
    }
}

KERNEL_TEST(barrier_team) // odd PEs in reverse order; the others must not be held up
{
    std::vector<int> odd;
    for (int i = c.pes - 1; i >= 0; i--)
        if (i % 2) odd.push_back(i);
    if (odd.empty()) odd.push_back(0);
    check_arrivals(c, odd, 2);
}

KERNEL_TEST(allgather)
{
    for (uint64_t bytes : {0, 1, 700, 16411})
        for (bool in_place : {false, true}) {
            World w(c);
            const uint64_t dst = w.symmetric(bytes * uint64_t(w.n()) + 1, 64, bytes % 3), src = w.local(bytes + 1);
            Stream s(w);
            for (int round = 0; round < ROUNDS; round++) {
                s.host([&, round](int pe) { fill_bytes(in_place ? w.sym_host(pe, dst + bytes * uint64_t(pe)) : w.loc_host(pe, src), bytes, pe, round); });
                s.kernel("gshmem_k_allgather", [&](int pe) {
                    return Args{0, w.sym(pe, dst), in_place ? w.sym(pe, dst + bytes * uint64_t(pe)) : w.loc(pe, src), bytes};
                });
                s.host([&, round](int pe) {
                    for (int i = 0; i < w.n(); i++) expect_bytes(w.sym_host(pe, dst + bytes * uint64_t(i)), bytes, i, round, "allgather");
                    if (!in_place) fill_bytes(w.loc_host(pe, src), bytes, pe, 99); // nobody may still read it
                });
            }
            s.run();
        }
}

KERNEL_TEST(all_to_all)
{
    for (uint64_t bytes : {0, 3, 1030, 9001}) {
        World w(c);
        const uint64_t total = bytes * uint64_t(w.n());
        const uint64_t dst = w.symmetric(total + 1, 64, bytes % 3), src = w.local(total + 1);
        Stream s(w);
        for (int round = 0; round < ROUNDS; round++) {
            s.host([&, round](int pe) { fill_bytes(w.loc_host(pe, src), total, pe, round); });
            s.kernel("gshmem_k_all_to_all", [&](int pe) { return Args{0, w.sym(pe, dst), w.loc(pe, src), bytes}; });
            s.host([&, round](int pe) {
                for (int i = 0; i < w.n(); i++)
                    expect_bytes(w.sym_host(pe, dst + bytes * uint64_t(i)), bytes, i, round, "all_to_all", bytes * uint64_t(pe));
            });
        }
        s.run();
    }
}

KERNEL_TEST(broadcast)
{
    for (uint64_t bytes : {0, 777, 70001})
        for (int root = 0; root < c.pes; root += full ? 1 : 3) {
            World w(c);
            const uint64_t dst = w.symmetric(bytes + 1, 64, bytes % 3), src = w.local(bytes + 1);
            Stream s(w);
            for (int round = 0; round < ROUNDS; round++) {
                s.host([&, round](int pe) { fill_bytes(w.loc_host(pe, src), bytes, pe, round); });
                s.kernel("gshmem_k_broadcast", [&](int pe) { return Args{0, w.sym(pe, dst), w.loc(pe, src), bytes, uint64_t(root)}; });
                s.host([&, round](int pe) { expect_bytes(w.sym_host(pe, dst), bytes, root, round, "broadcast"); });
            }
            s.run();
        }
}

namespace {

// Small integers and quarters: exact in every type, different per element and PE, so the sum, the
// order of members and each element's place are all checked bit for bit.
template <typename T> T element(int pe, int round, uint64_t i, uint64_t op)
{
    const uint64_t r = pattern(pe, round, i);
    if (op == 3) return T(float(1 + r % 3)); // products stay exact
    const float v = float(int64_t(r % 33) - 16) * (std::is_integral_v<T> ? 1.0f : 0.25f);
    return T(v);
}

// The oracle: member order, float for the two short types, one rounding.
template <typename T> T reduced(int n, int round, uint64_t i, uint64_t op)
{
    using A = std::conditional_t<std::is_integral_v<T>, T, float>;
    A acc = A(element<T>(0, round, i, op));
    for (int p = 1; p < n; p++) {
        const A v = A(element<T>(p, round, i, op));
        acc = op == 0 ? A(acc + v) : op == 1 ? (acc < v ? v : acc) : op == 2 ? (v < acc ? v : acc) : A(acc * v);
    }
    return T(acc);
}

template <typename T> void expect_reduced(const T* got, uint64_t count, int n, int round, uint64_t from, uint64_t op, const char* what)
{
    for (uint64_t i = 0; i < count; i++) {
        const T want = reduced<T>(n, round, from + i, op);
        if (std::memcmp(&got[i], &want, sizeof(T)))
            fail("%s op %llu: element %llu of %llu is %g, not %g", what, (unsigned long long)op, (unsigned long long)i, (unsigned long long)count,
                 double(float(got[i])), double(float(want)));
    }
}

template <typename T> void fill_elements(T* p, uint64_t count, int pe, int round, uint64_t op)
{
    for (uint64_t i = 0; i < count; i++) p[i] = element<T>(pe, round, i, op);
}

template <typename T> void run_allreduce(const Config& c, uint64_t dtype, uint64_t op, uint64_t count, bool two_shot, bool in_place)
{
    World w(c);
    const uint64_t bytes = count * sizeof(T);
    const uint64_t src = w.symmetric(bytes + 1, 64, sizeof(T) * (count % 3)), dst = in_place ? src : w.symmetric(bytes + 1, 64, sizeof(T) * (count % 2));
    Stream s(w);
    for (int round = 0; round < ROUNDS; round++) {
        s.host([&, round](int pe) { fill_elements(w.sym_as<T>(pe, src), count, pe, round, op); });
        s.kernel(two_shot ? "gshmem_k_allreduce_two_shot" : "gshmem_k_allreduce_one_shot",
                 [&](int pe) { return Args{0, w.sym(pe, dst), w.sym(pe, src), count, dtype, op}; });
        s.host([&, round](int pe) { expect_reduced(w.sym_as<T>(pe, dst), count, w.n(), round, 0, op, two_shot ? "two-shot" : "one-shot"); });
    }
    s.run();
}

template <typename T> void allreduce_cases(const Config& c, uint64_t dtype, bool full)
{
    for (uint64_t op = 0; op < 4; op++) {
        const bool all = full || (dtype == 1 && op == 0);
        for (uint64_t count : {uint64_t(1), uint64_t(517), uint64_t(9001)}) {
            if (!all && count != 517 + (op == 0 ? 9001 - 517 : 0)) continue;
            run_allreduce<T>(c, dtype, op, count, false, false);
            run_allreduce<T>(c, dtype, op, count, true, false);
            run_allreduce<T>(c, dtype, op, count, true, true);
        }
    }
    run_allreduce<T>(c, dtype, 0, 0, true, true);
}

template <typename T> void run_reduce_scatter(const Config& c, uint64_t dtype, uint64_t op, uint64_t count, bool in_place)
{
    World w(c);
    const uint64_t total = count * uint64_t(w.n());
    const uint64_t src = w.symmetric(total * sizeof(T) + 1), dst = w.local(count * sizeof(T) + 1, 64, sizeof(T));
    Stream s(w);
    for (int round = 0; round < ROUNDS; round++) {
        s.host([&, round](int pe) { fill_elements(w.sym_as<T>(pe, src), total, pe, round, op); });
        s.kernel("gshmem_k_reduce_scatter", [&](int pe) {
            return Args{0, in_place ? w.sym(pe, src + count * uint64_t(pe) * sizeof(T)) : w.loc(pe, dst), w.sym(pe, src), count, dtype, op};
        });
        s.host([&, round](int pe) {
            const T* got = in_place ? w.sym_as<T>(pe, src + count * uint64_t(pe) * sizeof(T)) : w.loc_as<T>(pe, dst);
            expect_reduced(got, count, w.n(), round, count * uint64_t(pe), op, "reduce_scatter");
        });
    }
    s.run();
}

} // namespace

KERNEL_TEST(allreduce_float) { allreduce_cases<float>(c, 0, full); }
KERNEL_TEST(allreduce_half) { allreduce_cases<half>(c, 1, full); }
KERNEL_TEST(allreduce_bfloat16) { allreduce_cases<bfloat16_t>(c, 27, full); }
KERNEL_TEST(allreduce_int32) { allreduce_cases<int32_t>(c, 3, full); }

KERNEL_TEST(reduce_scatter)
{
    for (uint64_t count : {1, 259, 4099}) {
        run_reduce_scatter<float>(c, 0, count % 4, count, false);
        run_reduce_scatter<half>(c, 1, 0, count, true);
        run_reduce_scatter<bfloat16_t>(c, 27, 0, count, false);
        run_reduce_scatter<int32_t>(c, 3, 1, count, true);
    }
}

// Every kernel of a team does nothing on a PE that is not in it, and does not wait there.
KERNEL_TEST(not_a_member)
{
    if (c.pes < 2) return;
    World w(c);
    std::vector<int> members;
    for (int i = 0; i + 1 < w.n(); i++) members.push_back(i);
    w.team(2, members);
    const uint64_t at = w.symmetric(1 << 20);
    const int out = w.n() - 1;
    const auto a = [&](uint64_t off) { return w.sym(out, at + off); };
    const std::pair<const char*, Args> kernels[] = {
        {"gshmem_k_barrier", {2}}, {"gshmem_k_broadcast", {2, a(0), a(262144), 70000, 0}}, {"gshmem_k_allgather", {2, a(0), a(65536), 1000}},
        {"gshmem_k_all_to_all", {2, a(0), a(65536), 1000}}, {"gshmem_k_reduce_scatter", {2, a(0), a(65536), 100, 0, 0}},
        {"gshmem_k_allreduce_one_shot", {2, a(0), a(65536), 100, 0, 0}}, {"gshmem_k_allreduce_two_shot", {2, a(0), a(65536), 100, 0, 0}},
        {"gshmem_k_kv_shuffle", {2, a(0), a(65536), a(131072), 2, 64}},
        {"gshmem_k_moe_dispatch", {2, a(0), a(65536), a(70000), a(80000), a(90000), a(100000), a(131072), 2, 2, 64, 2}},
        {"gshmem_k_moe_combine", {2, a(0), a(65536), a(70000), a(80000), a(90000), 2, 2, 16, 2, 0}},
        {"gshmem_k_matmul_allreduce", {2, a(0), a(65536), a(90000), a(131072), a(262144), 16, 16, 16, 1}}};
    for (int pe = 0; pe < w.n(); pe++) fill_bytes(w.sym_host(pe, at), 1 << 20, pe, 0);
    for (int i = 0; i < 6; i++) w.sym_as<int32_t>(out, at + 131072)[i] = i % 4 ? 0 : i; // moves to member 0
    std::vector<uint8_t> before(w.sym_host(out, at), w.sym_host(out, at) + (1 << 20));
    for (auto& [name, list] : kernels) {
        Args args = list;
        args.insert(args.begin(), w.state(out));
        const void* p = args.data();
        const km_device_t* dev = w.device(out);
        if (km_launch_group(name, c.blocks, &p, args.size() * 8, &dev, 1)) fail("%s on a PE outside the team: %s", name, km_last_report());
    }
    for (int pe = 0; pe < out; pe++) expect_bytes(w.sym_host(pe, at), 1 << 20, pe, 0, "memory after kernels of a team I am not in");
    if (std::memcmp(before.data(), w.sym_host(out, at), before.size())) fail("own memory changed by a kernel of a team I am not in");
}

// Two teams with different members, used one after the other without a world barrier.
KERNEL_TEST(teams)
{
    if (c.pes < 3) return;
    World w(c);
    std::vector<int> low, high;
    for (int i = 0; i < w.n(); i++) {
        if (i <= w.n() / 2) low.push_back(i);
        if (i >= w.n() / 2) high.push_back(w.n() - 1 - (i - w.n() / 2)); // reversed
    }
    w.team(1, low);
    w.team(3, high);
    const uint64_t bytes = 1100, dst = w.symmetric(bytes * 8), src = w.local(bytes);
    const auto check = [&](int pe, const std::vector<int>& members, int round) {
        bool in = false;
        for (int m : members) in |= m == pe;
        for (size_t i = 0; in && i < members.size(); i++) expect_bytes(w.sym_host(pe, dst + bytes * i), bytes, members[i], round, "team allgather");
    };
    Stream s(w);
    for (int round = 0; round < ROUNDS; round++) {
        s.host([&, round](int pe) { fill_bytes(w.loc_host(pe, src), bytes, pe, round); });
        for (int team : {1, 3}) {
            s.kernel("gshmem_k_allgather", [&, team](int pe) { return Args{uint64_t(team), w.sym(pe, dst), w.loc(pe, src), bytes}; });
            s.host([&, team, round](int pe) { check(pe, team == 1 ? low : high, round); });
        }
    }
    s.run();
}
