// test_rma.cpp: one-sided kernels: every byte, address and neighbour.
#include "harness/world.hpp"
#include "km/base.h"
#include <cstring>

namespace {

int right(const World& w, int pe) { return (pe + 1) % w.n(); }
int left(const World& w, int pe) { return (pe + w.n() - 1) % w.n(); }

void barrier(Stream& s)
{
    s.kernel("gshmem_k_barrier", [](int) { return Args{0}; });
}

std::vector<uint64_t> sizes(bool full)
{
    std::vector<uint64_t> v{0, 1, 31, 33, 513, 8191, 16385, 50003};
    if (full) v.insert(v.end(), {2, 32, 511, 512, 4096, 8192, 8193, 16384, 32768, 65537, 300001});
    return v;
}

} // namespace

KERNEL_TEST(put)
{
    for (uint64_t bytes : sizes(full)) {
        World w(c);
        const uint64_t dst = w.symmetric(bytes + 1, 64, bytes % 5), src = w.local(bytes + 1, 64, bytes % 3);
        Stream s(w);
        for (int round = 0; round < 2; round++) {
            s.host([&, round](int pe) { fill_bytes(w.loc_host(pe, src), bytes, pe, round); });
            s.kernel("gshmem_k_put", [&](int pe) { return Args{w.sym(pe, dst), w.loc(pe, src), bytes, uint64_t(right(w, pe))}; });
            barrier(s);
            s.host([&, round](int pe) { expect_bytes(w.sym_host(pe, dst), bytes, left(w, pe), round, "put"); });
            barrier(s);
        }
        s.run();
    }
}

KERNEL_TEST(get)
{
    for (uint64_t bytes : sizes(full)) {
        World w(c);
        const uint64_t src = w.symmetric(bytes + 1, 64, bytes % 5), dst = w.local(bytes + 1, 64, bytes % 3);
        Stream s(w);
        for (int round = 0; round < 2; round++) {
            s.host([&, round](int pe) { fill_bytes(w.sym_host(pe, src), bytes, pe, round); });
            barrier(s);
            s.kernel("gshmem_k_get", [&](int pe) { return Args{w.loc(pe, dst), w.sym(pe, src), bytes, uint64_t(right(w, pe))}; });
            s.host([&, round](int pe) { expect_bytes(w.loc_host(pe, dst), bytes, right(w, pe), round, "get"); });
            barrier(s);
        }
        s.run();
    }
}

namespace {

struct Strided {
    uint64_t size;
    int64_t dst, src; // in elements
    uint64_t count;
};

void run_strided(const Config& c, const Strided& p, bool put)
{
    World w(c);
    const int64_t size = int64_t(p.size), span = 700 * 16;
    const uint64_t far = w.symmetric(2 * span + 16, 64), near = w.local(2 * span + 16, 64);
    const uint64_t far_at = far + uint64_t(span), near_at = near + uint64_t(span);
    Stream s(w);
    s.host([&](int pe) {
        std::memset(w.sym_host(pe, far), 0xee, 2 * span + 16);
        std::memset(w.loc_host(pe, near), 0xee, 2 * span + 16);
        for (uint64_t i = 0; i < p.count; i++) {
            const int64_t at = int64_t(i) * p.src * size;
            fill_bytes((put ? w.loc_host(pe, near_at) : w.sym_host(pe, far_at)) + at, p.size, pe, 0, uint64_t(at));
        }
    });
    barrier(s);
    if (put)
        s.kernel("gshmem_k_put_strided", [&](int pe) {
            return Args{w.sym(pe, far_at), w.loc(pe, near_at), p.size, uint64_t(p.dst * size), uint64_t(p.src * size), p.count, uint64_t(right(w, pe))};
        });
    else
        s.kernel("gshmem_k_get_strided", [&](int pe) {
            return Args{w.loc(pe, near_at), w.sym(pe, far_at), p.size, uint64_t(p.dst * size), uint64_t(p.src * size), p.count, uint64_t(right(w, pe))};
        });
    barrier(s);
    s.host([&](int pe) {
        std::vector<uint8_t> want(2 * span + 16, 0xee);
        const int from = put ? left(w, pe) : right(w, pe);
        for (uint64_t i = 0; i < p.count; i++) // in order: later elements win
            fill_bytes(want.data() + span + int64_t(i) * p.dst * size, p.size, from, 0, uint64_t(int64_t(i) * p.src * size));
        if (std::memcmp(want.data(), put ? w.sym_host(pe, far) : w.loc_host(pe, near), want.size()))
            fail("strided %s of %llu x %llu bytes, strides %lld and %lld", put ? "put" : "get", (unsigned long long)p.count,
                 (unsigned long long)p.size, (long long)p.dst, (long long)p.src);
    });
    s.run();
}

} // namespace

KERNEL_TEST(strided)
{
    for (uint64_t size : {1, 2, 4, 8, 16})
        for (bool put : {true, false}) {
            run_strided(c, {size, 2, 3, 17}, put);
            run_strided(c, {size, 1, 1, 600}, put);
            if (full || size == 4) {
                run_strided(c, {size, 1, 5, 130}, put);
                run_strided(c, {size, -2, 3, 17}, put);
                run_strided(c, {size, 3, -1, 40}, put);
                run_strided(c, {size, 0, 1, 9}, put);
                run_strided(c, {size, 1, 2, 0}, put);
            }
        }
}

// The receiver reads the data as soon as its wait ends, without a barrier.
KERNEL_TEST(put_signal)
{
    for (uint64_t bytes : {0, 5, 20000, 40001})
        for (uint64_t op : {0, 1}) {
            World w(c);
            const uint64_t dst = w.symmetric(bytes + 1), sig = w.symmetric(4), src = w.local(bytes + 1), seen = w.local(4);
            Stream s(w);
            for (int round = 0; round < 3; round++) {
                const int64_t value = op ? 7 : (round + 1) * 7;
                s.host([&, round](int pe) { fill_bytes(w.loc_host(pe, src), bytes, pe, round); });
                s.kernel("gshmem_k_put_signal", [&, value](int pe) {
                    return Args{w.sym(pe, dst), w.loc(pe, src), bytes, w.sym(pe, sig), uint64_t(value), op, uint64_t(right(w, pe)), 0};
                });
                s.kernel("gshmem_k_signal_wait", [&, round](int pe) { return Args{w.sym(pe, sig), 3, uint64_t((round + 1) * 7), w.loc(pe, seen), 0}; });
                s.host([&, round](int pe) {
                    expect_bytes(w.sym_host(pe, dst), bytes, left(w, pe), round, "put_signal");
                    if (*w.loc_as<int32_t>(pe, seen) != (round + 1) * 7) fail("signal_wait saw %d", *w.loc_as<int32_t>(pe, seen));
                });
                barrier(s);
            }
            s.run();
        }
}

KERNEL_TEST(put_value_and_wait)
{
    struct Case {
        uint64_t dtype, bytes, value, cmp, operand;
    };
    const Case cases[] = {
        {2, 1, 0x80, 4, 0xff},                               // int8: -128 < -1
        {4, 1, 0x80, 2, 0x7f},                               // uint8: 128 > 127
        {6, 2, 0x8000, 5, 0xffff},                           // int16: -32768 <= -1
        {7, 2, 0xfffe, 3, 0xfffe},                           // uint16
        {3, 4, 0x80000001, 0, 0x80000001},                   // int32 ==
        {8, 4, 0xfffffffe, 2, 5},                            // uint32 >
        {9, 8, 0x8000000000000001ull, 4, 0},                 // int64 <
        {10, 8, 0x8000000000000001ull, 2, 0x7fffffffffffffff}, // uint64 >
        {0, 4, 0x40200000, 2, 0x40000000},                   // float: 2.5 > 2
        {3, 4, 6, 1, 0},                                     // int32 !=
    };
    for (const Case& k : cases) {
        World w(c);
        const uint64_t word = w.symmetric(8);
        Stream s(w);
        s.kernel("gshmem_k_put_value", [&](int pe) { return Args{w.sym(pe, word), k.value, k.bytes, uint64_t(right(w, pe))}; });
        s.kernel("gshmem_k_wait", [&](int pe) { return Args{w.sym(pe, word), k.dtype, k.cmp, k.operand}; });
        s.host([&](int pe) {
            uint64_t got = 0;
            std::memcpy(&got, w.sym_host(pe, word), k.bytes);
            if (got != k.value) fail("p of dtype %llu: 0x%llx", (unsigned long long)k.dtype, (unsigned long long)got);
        });
        s.run();
    }
}

namespace {

template <typename T> void run_atomic(const Config& c, uint64_t dtype)
{
    World w(c);
    const uint64_t word = w.symmetric(sizeof(T), 64, 2 * sizeof(T));
    Stream s(w);
    for (int i = 0; i < 3; i++)
        s.kernel("gshmem_k_atomic_add", [&, i](int pe) {
            const T v = T(float(pe + 1 + i));
            uint64_t bits = 0;
            std::memcpy(&bits, &v, sizeof v);
            return Args{w.sym(pe, word), dtype, bits, uint64_t((pe + i) % w.n())};
        });
    barrier(s);
    s.host([&](int pe) {
        float want = 0;
        for (int from = 0; from < w.n(); from++)
            for (int i = 0; i < 3; i++)
                if ((from + i) % w.n() == pe) want += float(from + 1 + i);
        if (float(*w.sym_as<T>(pe, word)) != want) fail("atomic_add of dtype %llu: %g, not %g", (unsigned long long)dtype, double(float(*w.sym_as<T>(pe, word))), double(want));
    });
    s.run();
}

} // namespace

KERNEL_TEST(atomic_add)
{
    run_atomic<float>(c, 0);
    run_atomic<half>(c, 1);
    run_atomic<bfloat16_t>(c, 27);
    run_atomic<int8_t>(c, 2);
    run_atomic<int16_t>(c, 6);
    run_atomic<int32_t>(c, 3);
    if (km_npu_arch() == 3510) {
        run_atomic<uint32_t>(c, 8);
        run_atomic<int64_t>(c, 9);
        run_atomic<uint64_t>(c, 10);
    }
}

// One change per launch, however many blocks it has.
KERNEL_TEST(signal)
{
    World w(c);
    const uint64_t sig = w.symmetric(8), seen = w.local(4);
    Stream s(w);
    s.kernel("gshmem_k_signal", [&](int pe) { return Args{w.sym(pe, sig), uint64_t(int64_t(-5)), 0, uint64_t(right(w, pe))}; });
    s.kernel("gshmem_k_signal_wait", [&](int pe) { return Args{w.sym(pe, sig), 0, uint64_t(int64_t(-5)), w.loc(pe, seen), 0}; });
    barrier(s);
    for (int i = 1; i <= 3; i++)
        s.kernel("gshmem_k_signal", [&, i](int pe) { return Args{w.sym(pe, sig), uint64_t(i), 1, uint64_t((pe + i) % w.n())}; });
    s.kernel("gshmem_k_quiet", [](int) { return Args{}; });
    barrier(s);
    s.host([&](int pe) {
        if (*w.loc_as<int32_t>(pe, seen) != -5) fail("signal set: %d", *w.loc_as<int32_t>(pe, seen));
        if (*w.sym_as<int32_t>(pe, sig) != 1) fail("signal add: %d, not -5 + 1 + 2 + 3", *w.sym_as<int32_t>(pe, sig));
    });
    s.run();
}
