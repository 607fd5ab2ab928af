// test_waits.cpp: waits over several words, of which some are skipped; signals, and what they announce; what
// quiet does for the scalar cache.
#include "harness/api.hpp"
#include <cstring>

namespace {

// a: words 10, 20, 30, 40 and operands 10, 21, 30, 40 behind them; b: room for indices; c: status, of which
// 0 and 2 are skipped, then one that skips all; d: results.
API_KERNEL(skipping)
{
    attach(f);
    if (AscendC::GetBlockIdx() != 0) return;
    __gm__ int32_t *words = gm<int32_t>(f.a), *operands = gm<int32_t>(f.a + 16);
    __gm__ const int *status = gm<const int>(f.c), *all = gm<const int>(f.c + 16);
    __gm__ size_t* at = gm<size_t>(f.b);
    constexpr int GE = ACLSHMEM_CMP_GE, EQ = ACLSHMEM_CMP_EQ, LT = ACLSHMEM_CMP_LT;
    const uint64_t r[] = {
        aclshmem_int32_test_any(words, 4, status, GE, 0), aclshmem_int32_wait_until_any(words, 4, status, GE, 0),           // 1, not 0
        aclshmem_int32_test_some(words, 4, at, status, GE, 0), aclshmem_int32_wait_until_some(words, 4, at + 4, status, GE, 0), // 1 and 3
        aclshmem_int32_test_any(words, 4, status, LT, 20), aclshmem_int32_test_some(words, 4, at + 8, status, LT, 20),       // only 0 would do
        uint64_t(aclshmem_int32_test_all_vector(words, 4, status, EQ, operands)),                                            // 1 differs
        aclshmem_int32_test_any_vector(words, 4, status, EQ, operands), aclshmem_int32_wait_until_any_vector(words, 4, status, EQ, operands),
        aclshmem_int32_test_some_vector(words, 4, at + 8, status, EQ, operands),
        aclshmem_int32_wait_until_any(words, 4, all, EQ, 99), aclshmem_int32_wait_until_some(words, 4, at + 8, all, EQ, 99), // nothing to wait for
        uint64_t(aclshmem_int32_test_all_vector(words, 4, all, EQ, operands)), uint64_t(aclshmem_int32_test(words + 1, EQ, 20))};
    aclshmem_int32_wait_until_all(words, 4, status, GE, 20);
    aclshmem_int32_wait_until_all(words, 4, all, EQ, 99);
    for (size_t i = 0; i < sizeof r / sizeof r[0]; i++) gshmem::store_shared<uint64_t>(f.d + 8 * i, r[i]);
}

} // namespace

KERNEL_TEST(waits_skipping)
{
    World w(c);
    const uint64_t a = w.symmetric(32), b = w.local(96), st = w.local(32), d = w.local(14 * 8);
    const int32_t words[8] = {10, 20, 30, 40, 10, 21, 30, 40}, status[8] = {1, 0, 7, 0, 1, 1, 1, 1};
    for (int pe = 0; pe < w.n(); pe++) {
        std::memcpy(w.sym_host(pe, a), words, sizeof words);
        std::memcpy(w.loc_host(pe, st), status, sizeof status);
    }
    Stream s(w);
    s.kernel("skipping", [&](int pe) { return Args{w.sym(pe, a), w.loc(pe, b), w.loc(pe, st), w.loc(pe, d)}; });
    s.host([&](int pe) {
        const uint64_t want[14] = {1, 1, 2, 2, SIZE_MAX, 0, 0, 3, 3, 1, SIZE_MAX, 0, 1, 1}, *got = w.loc_as<uint64_t>(pe, d), *at = w.loc_as<uint64_t>(pe, b);
        for (int i = 0; i < 14; i++)
            if (got[i] != want[i]) fail("result %d is %lld, not %lld", i, (long long)got[i], (long long)want[i]);
        if (at[0] != 1 || at[1] != 3 || at[4] != 1 || at[5] != 3 || at[8] != 3) fail("indices of words that are not skipped");
    });
    s.run();
}

namespace {

// Signals of both kinds, and put_signal of rows. a: source, b: two areas of 1 KiB, c: words, d: what was found.
API_KERNEL(signalling)
{
    attach(f);
    if (AscendC::GetBlockIdx() != 0) return;
    const int pe = right_pe();
    aclshmemx_signal_op(gm<int32_t>(f.c), 41, ACLSHMEM_SIGNAL_SET, pe);
    aclshmem_signal_wait_until(gm<int32_t>(f.c), ACLSHMEM_CMP_GE, 41);
    aclshmemx_signal_op(gm<int32_t>(f.c), 2, ACLSHMEM_SIGNAL_ADD, pe);
    aclshmem_signal_wait_until(gm<int32_t>(f.c), ACLSHMEM_CMP_EQ, 43);
    non_contiguous_copy_param rows{9, 10, 12, 11};
    for (uint64_t k = 0; k < 2; k++) {
        const int op = k ? ACLSHMEM_SIGNAL_ADD : ACLSHMEM_SIGNAL_SET;
        aclshmem_uint32_put_signal(gm<uint32_t>(f.b + 1024 * k), gm<uint32_t>(f.a), rows, gm<int32_t>(f.c + 4 + 4 * k), 7, op, pe);
        aclshmem_signal_wait_until(gm<int32_t>(f.c + 4 + 4 * k), ACLSHMEM_CMP_EQ, 7);
        for (uint64_t r = 0; r < 9; r++) gshmem::store_shared<uint32_t>(f.d + 64 * k + 4 * r, gshmem::load_shared<uint32_t>(f.b + 1024 * k + 4 * (11 * r + 9)));
    }
}

} // namespace

KERNEL_TEST(waits_signalling)
{
    World w(c);
    const uint64_t a = w.symmetric(1024), b = w.symmetric(2048), words = w.symmetric(12), d = w.local(128);
    for (int pe = 0; pe < w.n(); pe++)
        for (uint32_t i = 0; i < 256; i++) w.sym_as<uint32_t>(pe, a)[i] = uint32_t(pe) * 1000 + i;
    Stream s(w);
    s.kernel("signalling", [&](int pe) { return Args{w.sym(pe, a), w.sym(pe, b), w.sym(pe, words), w.loc(pe, d)}; });
    s.host([&](int pe) {
        const uint32_t from = uint32_t((pe + w.n() - 1) % w.n()) * 1000;
        for (uint32_t i = 0; i < 18; i++)
            if (w.loc_as<uint32_t>(pe, d)[i / 9 * 16 + i % 9] != from + 12 * (i % 9) + 9) fail("row %u was announced before it had arrived", i);
    });
    s.run();
}

namespace {

// A word written through the data cache, quiet, a flag: the neighbour finds it. And back: a word that the
// data cache holds is read afresh after quiet. a: a line that is written, b: one that is read, c: three flags.
API_KERNEL(cached_words)
{
    attach(f);
    if (AscendC::GetBlockIdx() != 0) return;
    const int pe = right_pe(), left = (aclshmem_my_pe() + aclshmem_n_pes() - 1) % aclshmem_n_pes();
    AscendC::GlobalTensor<int32_t> mine, read;
    mine.SetGlobalBuffer(gm<int32_t>(f.a));
    read.SetGlobalBuffer(gm<int32_t>(f.b));
    const int32_t before = read.GetValue(0);
    aclshmem_int32_p(gm<int32_t>(f.c + 8), 1, left); // now it may change
    mine.SetValue(1, 500 + aclshmem_my_pe());
    aclshmem_quiet();
    aclshmem_int32_p(gm<int32_t>(f.c), 1, pe);
    aclshmem_int32_wait_until(gm<int32_t>(f.c), ACLSHMEM_CMP_EQ, 1);
    const int32_t found = aclshmem_int32_g(gm<int32_t>(f.a + 4), left);
    aclshmem_int32_wait_until(gm<int32_t>(f.c + 8), ACLSHMEM_CMP_EQ, 1);
    aclshmem_int32_p(gm<int32_t>(f.b), 77, pe);
    aclshmem_quiet();
    aclshmem_int32_p(gm<int32_t>(f.c + 4), 1, pe);
    aclshmem_int32_wait_until(gm<int32_t>(f.c + 4), ACLSHMEM_CMP_EQ, 1);
    aclshmem_quiet();
    const int32_t after = read.GetValue(0);
    if (before != 0 || found != 500 + left || after != 77) AscendC::Trap();
}

} // namespace

KERNEL_TEST(waits_cached)
{
    World w(c);
    const uint64_t a = w.symmetric(64), b = w.symmetric(64), flags = w.symmetric(12);
    Stream s(w);
    s.kernel("cached_words", [&](int pe) { return Args{w.sym(pe, a), w.sym(pe, b), w.sym(pe, flags), 0}; });
    s.run();
}
