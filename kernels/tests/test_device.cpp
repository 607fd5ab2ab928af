// test_device.cpp: the public device functions, called as a program written for Ascend SHMEM calls
// them. Kernels here find the state at the fixed address unless they say otherwise.
#include "harness/api.hpp"
#include <cstring>

namespace {

// a: source, b: destinations, c: signals. Typed put/get forms, one place each.
API_KERNEL(api_typed)
{
    if (AscendC::GetBlockIdx() != 0) return;
    const int pe = right_pe();
    aclshmem_double_put(gm<double>(f.b), gm<double>(f.a), 100, pe);
    aclshmem_half_put_nbi(gm<half>(f.b + 1000), gm<half>(f.a), 33, pe);
    aclshmem_int32_atomic_add(gm<int32_t>(f.c + 12), 41, pe); // uses the window that the put still reads
    aclshmem_bfloat16_put(gm<bfloat16_t>(f.b + 1100), gm<bfloat16_t>(f.a), 9, pe);
    aclshmem_char_put_nbi(gm<char>(f.b + 1201), gm<char>(f.a + 3), 77, pe);
    aclshmem_put128(gm<void>(f.b + 1312), gm<void>(f.a), 5, pe);
    aclshmem_quiet();
    aclshmem_uint64_put_signal(gm<uint64_t>(f.b + 1400), gm<uint64_t>(f.a), size_t(12), gm<int32_t>(f.c), 5, ACLSHMEM_SIGNAL_SET, pe);
    aclshmem_putmem_signal_nbi(gm<void>(f.b + 1500), gm<void>(f.a), 61, gm<int32_t>(f.c + 4), 3, ACLSHMEM_SIGNAL_ADD, pe);
    aclshmem_int16_iput(gm<int16_t>(f.b + 1600), gm<int16_t>(f.a), 2, 3, 20, pe);
    aclshmem_int16_iput(gm<int16_t>(f.b + 1700), gm<int16_t>(f.a), 1, 5, 20, pe);
    aclshmem_int16_iput(gm<int16_t>(f.b + 1760), gm<int16_t>(f.a), 1, 1, 20, pe);
    aclshmem_int32_wait_until(gm<int32_t>(f.c), ACLSHMEM_CMP_EQ, 5);
    if (aclshmem_signal_wait_until(gm<int32_t>(f.c + 4), ACLSHMEM_CMP_GE, 3) != 3) AscendC::Trap();
    aclshmem_float_get(gm<float>(f.d), gm<float>(f.a), 90, pe);
    aclshmem_uint8_get_nbi(gm<uint8_t>(f.d + 401), gm<uint8_t>(f.a + 5), 30, pe);
    aclshmem_quiet();
    aclshmem_int64_iget(gm<int64_t>(f.d + 448), gm<int64_t>(f.a), 1, 2, 10, pe);
    if (aclshmem_uint32_g(gm<uint32_t>(f.a + 8), pe) == 0) AscendC::Trap();
    aclshmem_int8_p(gm<int8_t>(f.c + 8), int8_t(-3), pe);
    aclshmem_quiet();
}

} // namespace

KERNEL_TEST(device_rma)
{
    World w(c);
    const uint64_t a = w.symmetric(1024), b = w.symmetric(2048), sig = w.symmetric(64), d = w.local(1024);
    Stream s(w);
    s.host([&](int pe) { fill_bytes(w.sym_host(pe, a), 1024, pe, 0); });
    s.kernel("gshmem_k_barrier", [](int) { return Args{0}; });
    s.kernel("api_typed", [&](int pe) { return Args{w.sym(pe, a), w.sym(pe, b), w.sym(pe, sig), w.loc(pe, d)}; });
    s.kernel("gshmem_k_barrier", [](int) { return Args{0}; });
    s.host([&](int pe) {
        const int from = (pe + w.n() - 1) % w.n(), to = (pe + 1) % w.n();
        const uint8_t* at = w.sym_host(pe, b);
        expect_bytes(at, 800, from, 0, "double_put");
        expect_bytes(at + 1000, 66, from, 0, "half_put_nbi");
        expect_bytes(at + 1100, 18, from, 0, "bfloat16_put");
        expect_bytes(at + 1201, 77, from, 0, "char_put_nbi", 3);
        expect_bytes(at + 1312, 80, from, 0, "put128");
        expect_bytes(at + 1400, 96, from, 0, "uint64_put_signal");
        expect_bytes(at + 1500, 61, from, 0, "putmem_signal_nbi");
        for (uint64_t i = 0; i < 20; i++) expect_bytes(at + 1600 + 4 * i, 2, from, 0, "int16_iput", 6 * i);
        for (uint64_t i = 0; i < 20; i++) expect_bytes(at + 1700 + 2 * i, 2, from, 0, "int16_iput of every fifth", 10 * i);
        expect_bytes(at + 1760, 40, from, 0, "int16_iput without gaps");
        expect_bytes(w.loc_host(pe, d), 360, to, 0, "float_get");
        expect_bytes(w.loc_host(pe, d + 401), 30, to, 0, "uint8_get_nbi", 5);
        for (uint64_t i = 0; i < 10; i++) expect_bytes(w.loc_host(pe, d + 448 + 8 * i), 8, to, 0, "int64_iget", 16 * i);
        if (w.sym_as<int8_t>(pe, sig)[8] != -3) fail("int8_p");
        if (w.sym_as<int32_t>(pe, sig)[3] != 41) fail("atomic_add right after put_nbi");
    });
    s.run();
}

namespace {

using gshmem::local;

// Explicit engine, own window, non-contiguous rows, UB to GM.
API_KERNEL(api_engine)
{
    attach(f);
    if (AscendC::GetBlockIdx() != 0) return;
    const int pe = right_pe();
    __ubuf__ float* window = reinterpret_cast<__ubuf__ float*>(uint64_t(40960));
    aclshmemx_mte_put_nbi<float>(gm<float>(f.b), gm<float>(f.a), window, 96, 200, pe, 3); // two halves of 32 bytes
    AscendC::GlobalTensor<float> dst, src;
    dst.SetGlobalBuffer(gm<float>(f.b + 800));
    src.SetGlobalBuffer(gm<float>(f.a));
    aclshmemx_mte_put_nbi<float>(dst, src, local<float>(40960, 32), 50, pe, 4); // one window of 32 bytes
    non_contiguous_copy_param rows{7, 3, 5, 4};
    aclshmemx_mte_put_nbi<float>(gm<float>(f.b + 1024), gm<float>(f.a), window, 4096, rows, pe, 1);
    non_contiguous_copy_param nothing{7, 0, 5, 4}, none{0, 3, 5, 4};
    aclshmemx_mte_put_nbi<float>(gm<float>(f.b + 1024), gm<float>(f.a), window, 4096, nothing, pe, 1);
    aclshmemx_mte_put_nbi<float>(gm<float>(f.b + 1024), gm<float>(f.a), window, 4096, none, pe, 1);
    aclshmemx_mte_quiet();
    aclshmemx_set_mte_config(65536, 64, 5);
    aclshmem_float_put(gm<float>(f.b + 1200), gm<float>(f.a), 100, pe);
    aclshmem_float_get_nbi(local<float>(8192, 256), src, 60, pe);
    AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(0);
    AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(0);
    AscendC::Muls(local<float>(8192, 256), local<float>(8192, 256), 1.0f, 60);
    AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(0);
    AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(0);
    dst.SetGlobalBuffer(gm<float>(f.b + 1664));
    aclshmem_float_put_nbi(dst, local<float>(8192, 256), 60, pe);
    aclshmem_quiet();
    if (aclshmem_ptr(gm<void>(f.state), pe) != nullptr) AscendC::Trap();  // not symmetric
    if (aclshmem_ptr(gm<void>(f.a), aclshmem_n_pes()) != nullptr) AscendC::Trap();
    if (aclshmem_ptr(gm<void>(f.a), aclshmem_my_pe()) != gm<void>(f.a)) AscendC::Trap();
}

} // namespace

KERNEL_TEST(device_engine)
{
    World w(c);
    const uint64_t a = w.symmetric(1024), b = w.symmetric(2048);
    Stream s(w);
    s.host([&](int pe) {
        for (int i = 0; i < 256; i++) w.sym_as<float>(pe, a)[i] = float(int64_t(pattern(pe, 0, uint64_t(i)) % 4001) - 2000);
        std::memset(w.sym_host(pe, b), 0xbb, 2048);
    });
    s.kernel("gshmem_k_barrier", [](int) { return Args{0}; });
    s.kernel("api_engine", [&](int pe) { return Args{w.sym(pe, a), w.sym(pe, b), 0, 0}; });
    s.kernel("gshmem_k_barrier", [](int) { return Args{0}; });
    s.host([&](int pe) {
        const float* from = w.sym_as<float>((pe + w.n() - 1) % w.n(), a);
        const float* got = w.sym_as<float>(pe, b);
        if (std::memcmp(got, from, 800)) fail("mte_put_nbi through a 96-byte window");
        if (std::memcmp(got + 200, from, 200)) fail("mte_put_nbi through a 32-byte window");
        for (int r = 0; r < 7; r++)
            if (std::memcmp(got + 256 + 4 * r, from + 5 * r, 12)) fail("non-contiguous row %d", r);
        for (int r = 0; r < 6; r++) {
            uint32_t gap;
            std::memcpy(&gap, got + 256 + 4 * r + 3, 4);
            if (gap != 0xbbbbbbbb) fail("the gap after row %d was written", r);
        }
        if (std::memcmp(got + 300, from, 400)) fail("put through a moved window");
        // The PE before me got my neighbour's data (me) into UB, and stored it here.
        if (std::memcmp(got + 416, w.sym_as<float>(pe, a), 240)) fail("get to UB, put from UB");
    });
    s.run();
}

namespace {

// Blocking forms are complete on return: a flag stored right after them finds the data in place.
// a: source, b: six areas of 512 bytes, c: flags, d: results, then room for the gets.
API_KERNEL(api_complete)
{
    if (AscendC::GetBlockIdx() != 0) return;
    const int pe = right_pe();
    for (uint64_t k = 0; k < 6; k++) {
        const uint64_t to = f.b + 512 * k;
        if (k == 0) aclshmem_uint32_put(gm<uint32_t>(to), gm<uint32_t>(f.a), 100, pe);
        if (k == 1) aclshmem_uint32_iput(gm<uint32_t>(to), gm<uint32_t>(f.a), 2, 1, 50, pe);
        if (k == 2) aclshmem_iput32(gm<void>(to), gm<void>(f.a), 2, 1, 50, pe);
        if (k == 3) aclshmem_int32_atomic_add(gm<int32_t>(to + 392), 7, pe);
        if (k == 4) aclshmem_float_atomic_add(gm<float>(to + 392), 7.0f, pe);
        if (k == 5) aclshmem_uint32_put_signal(gm<uint32_t>(to), gm<uint32_t>(f.a), size_t(100), gm<int32_t>(f.c + 20), 1, ACLSHMEM_SIGNAL_SET, pe);
        else aclshmem_int32_p(gm<int32_t>(f.c + 4 * k), 1, pe);
        aclshmem_int32_wait_until(gm<int32_t>(f.c + 4 * k), ACLSHMEM_CMP_EQ, 1);
        gshmem::store_shared<uint32_t>(f.d + 4 * k, gshmem::load_shared<uint32_t>(to + 392));
    }
    aclshmem_uint32_get(gm<uint32_t>(f.d + 512), gm<uint32_t>(f.a), 100, pe);
    gshmem::store_shared<uint32_t>(f.d + 24, gshmem::load_shared<uint32_t>(f.d + 512 + 392));
    aclshmem_uint32_iget(gm<uint32_t>(f.d + 1024), gm<uint32_t>(f.a), 2, 1, 50, pe);
    gshmem::store_shared<uint32_t>(f.d + 28, gshmem::load_shared<uint32_t>(f.d + 1024 + 392));
}

} // namespace

KERNEL_TEST(device_complete_on_return)
{
    World w(c);
    const uint64_t a = w.symmetric(512), b = w.symmetric(3072), flags = w.symmetric(64), d = w.local(1536);
    for (int pe = 0; pe < w.n(); pe++) {
        for (uint32_t i = 0; i < 128; i++) w.sym_as<uint32_t>(pe, a)[i] = uint32_t(pe) * 1000 + i;
        std::memset(w.sym_host(pe, b), 0, 3072);
        std::memset(w.sym_host(pe, flags), 0, 64);
    }
    Stream s(w);
    s.kernel("api_complete", [&](int pe) { return Args{w.sym(pe, a), w.sym(pe, b), w.sym(pe, flags), w.loc(pe, d)}; });
    s.host([&](int pe) {
        const uint32_t left = uint32_t((pe + w.n() - 1) % w.n()) * 1000, right = uint32_t((pe + 1) % w.n()) * 1000;
        const uint32_t want[8] = {left + 98, left + 49, left + 49, 7, 0x40e00000, left + 98, right + 98, right + 49};
        for (int i = 0; i < 8; i++)
            if (w.loc_as<uint32_t>(pe, d)[i] != want[i]) fail("call %d was not complete on return: found %u, not %u", i, w.loc_as<uint32_t>(pe, d)[i], want[i]);
    });
    s.run();
}

namespace {

// Scalar loads and stores through the cache are made good by a barrier: a, b: one line each.
API_KERNEL(api_cache)
{
    attach(f);
    const bool first = AscendC::GetBlockIdx() == 0;
    AscendC::GlobalTensor<int32_t> in, out;
    in.SetGlobalBuffer(gm<int32_t>(f.a));
    out.SetGlobalBuffer(gm<int32_t>(f.b));
    const int32_t before = in.GetValue(0); // every block has the line now
    if (first) out.SetValue(3, 70 + aclshmem_my_pe());
    aclshmem_barrier_all();
    const int32_t right = aclshmem_int32_g(gm<int32_t>(f.b + 12), right_pe());
    if (first) aclshmem_int32_p(gm<int32_t>(f.a), 5, right_pe());
    aclshmem_barrier_all();
    const int32_t after = in.GetValue(0);
    if (before != 0 || after != 5 || right != 70 + right_pe()) AscendC::Trap();
}

} // namespace

KERNEL_TEST(device_cache)
{
    World w(c);
    const uint64_t a = w.symmetric(64), b = w.symmetric(64);
    for (int pe = 0; pe < w.n(); pe++) {
        std::memset(w.sym_host(pe, a), 0, 64);
        std::memset(w.sym_host(pe, b), 0, 64);
    }
    Stream s(w);
    s.kernel("api_cache", [&](int pe) { return Args{w.sym(pe, a), w.sym(pe, b), 0, 0}; });
    s.run();
}

namespace {

// a: 6 words, b: indices out, c: status, d: results.
API_KERNEL(api_waits)
{
    if (AscendC::GetBlockIdx() != 0) return;
    const int pe = right_pe();
    __gm__ uint64_t* words = gm<uint64_t>(f.a);
    __gm__ const int* status = gm<const int>(f.c);
    uint64_t r[10];
    r[0] = aclshmem_uint64_test_any(words, 6, nullptr, ACLSHMEM_CMP_EQ, 99);
    for (int i = 0; i < 6; i++)
        if (i != 3) aclshmem_uint64_p(words + i, uint64_t(10 + i), pe);
    r[1] = aclshmem_uint64_wait_until_any(words, 6, status, ACLSHMEM_CMP_EQ, 14);
    aclshmem_uint64_wait_until_all(words, 6, status, ACLSHMEM_CMP_GE, 10);
    r[2] = aclshmem_uint64_wait_until_some(words, 6, gm<size_t>(f.b), status, ACLSHMEM_CMP_GT, 12);
    r[3] = uint64_t(aclshmem_uint64_test(words + 3, ACLSHMEM_CMP_NE, 0));
    r[4] = aclshmem_uint64_wait_until_any(words, 0, nullptr, ACLSHMEM_CMP_EQ, 1);
    r[5] = aclshmem_uint64_wait_until_some(words, 0, gm<size_t>(f.b), nullptr, ACLSHMEM_CMP_EQ, 1);
    r[6] = aclshmem_uint64_test_some(words, 3, gm<size_t>(f.b + 64), nullptr, ACLSHMEM_CMP_LE, 11);
    r[7] = uint64_t(aclshmem_uint64_test_all_vector(words, 6, status, ACLSHMEM_CMP_EQ, gm<uint64_t>(f.d + 128)));
    r[8] = aclshmem_uint64_test_any_vector(words, 6, nullptr, ACLSHMEM_CMP_EQ, gm<uint64_t>(f.d + 128));
    aclshmem_uint64_wait_until_all_vector(words, 6, status, ACLSHMEM_CMP_EQ, gm<uint64_t>(f.d + 128));
    r[9] = aclshmem_uint64_wait_until_some_vector(words, 6, gm<size_t>(f.b + 128), status, ACLSHMEM_CMP_EQ, gm<uint64_t>(f.d + 128));
    for (int i = 0; i < 10; i++) gshmem::store_shared<uint64_t>(f.d + 8 * uint64_t(i), r[i]);
}

} // namespace

KERNEL_TEST(device_waits)
{
    World w(c);
    const uint64_t a = w.symmetric(48), b = w.local(192), st = w.local(24), d = w.local(192);
    Stream s(w);
    s.host([&](int pe) {
        std::memset(w.sym_host(pe, a), 0, 48);
        std::memset(w.loc_host(pe, st), 0, 24);
        w.loc_as<int>(pe, st)[3] = 1; // never written: it must be skipped
        for (uint64_t i = 0; i < 6; i++) w.loc_as<uint64_t>(pe, d + 128)[i] = i == 3 ? 777 : 10 + i;
    });
    s.kernel("gshmem_k_barrier", [](int) { return Args{0}; });
    s.kernel("api_waits", [&](int pe) { return Args{w.sym(pe, a), w.loc(pe, b), w.loc(pe, st), w.loc(pe, d)}; });
    s.host([&](int pe) {
        const uint64_t want[10] = {UINT64_MAX, 4, 2, 0, UINT64_MAX, 0, 2, 1, 0, 5};
        for (int i = 0; i < 10; i++)
            if (w.loc_as<uint64_t>(pe, d)[i] != want[i]) fail("result %d is %llu, not %llu", i, (unsigned long long)w.loc_as<uint64_t>(pe, d)[i], (unsigned long long)want[i]);
        const uint64_t* x = w.loc_as<uint64_t>(pe, b);
        if (x[0] != 4 || x[1] != 5 || x[8] != 0 || x[9] != 1) fail("indices %llu %llu, %llu %llu", (unsigned long long)x[0], (unsigned long long)x[1], (unsigned long long)x[8], (unsigned long long)x[9]);
        for (uint64_t i = 0; i < 5; i++)
            if (x[16 + i] != (i < 3 ? i : i + 1)) fail("some_vector index %llu is %llu", (unsigned long long)i, (unsigned long long)x[16 + i]);
    });
    s.kernel("gshmem_k_barrier", [](int) { return Args{0}; });
    s.run();
}

namespace {

API_KERNEL(api_teams)
{
    if (AscendC::GetBlockIdx() != 0) return;
    const int me = aclshmem_my_pe(), n = aclshmem_n_pes();
    int r[10] = {me, n, aclshmem_team_my_pe(1), aclshmem_team_n_pes(1), aclshmem_team_pe_mapping(1, 0), aclshmem_team_translate_pe(1, 0, 0),
                 aclshmem_team_translate_pe(0, n - 1, 1), aclshmem_team_my_pe(-1), aclshmem_team_translate_pe(0, n, 1), aclshmem_team_n_pes(2047)};
    for (int i = 0; i < 10; i++) gshmem::store_shared<int32_t>(f.d + 4 * uint64_t(i), r[i]);
    aclshmem_sync_all();
}

} // namespace

KERNEL_TEST(device_teams)
{
    if (c.pes < 3 || c.blocks != 1) return;
    World w(c);
    w.team(1, {2, 0});
    const uint64_t d = w.local(64);
    Stream s(w);
    s.kernel("api_teams", [&](int pe) { return Args{0, 0, 0, w.loc(pe, d)}; });
    s.host([&](int pe) {
        const int n = w.n(), in = pe == 2 ? 0 : pe == 0 ? 1 : -1;
        const int want[10] = {pe, n, in, 2, 2, 2, n == 3 ? 0 : -1, -1, -1, -1};
        for (int i = 0; i < 10; i++)
            if (w.loc_as<int>(pe, d)[i] != want[i]) fail("team result %d is %d, not %d", i, w.loc_as<int>(pe, d)[i], want[i]);
    });
    s.run();
}

namespace {

// The host changes the state between kernels by copies that no cache sees; here the core itself does, past its cache.
API_KERNEL(api_state_changes)
{
    attach(f);
    if (AscendC::GetBlockIdx() != 0) return;
    const uint64_t me = f.state + offsetof(gshmem_device_state_t, mype);
    const int32_t before = aclshmem_my_pe();
    gshmem::store_shared<int32_t>(me, before + 100);
    AscendC::DataSyncBarrier<AscendC::MemDsbT::DDR>();
    attach(f);
    gshmem::store_shared<int32_t>(f.d, aclshmem_my_pe());
    gshmem::store_shared<int32_t>(me, before);
    AscendC::DataSyncBarrier<AscendC::MemDsbT::DDR>();
    attach(f);
    gshmem::store_shared<int32_t>(f.d + 4, aclshmem_my_pe());
}

} // namespace

KERNEL_TEST(device_state_is_read_afresh)
{
    if (c.blocks != 1) return;
    World w(c);
    const uint64_t d = w.local(8);
    Stream s(w);
    s.kernel("api_state_changes", [&](int pe) { return Args{0, 0, 0, w.loc(pe, d)}; });
    s.host([&](int pe) {
        const int32_t* got = w.loc_as<int32_t>(pe, d);
        if (got[0] != pe + 100 || got[1] != pe) fail("aclshmemx_set_state took PE numbers %d and %d from the cache", got[0], got[1]);
    });
    s.run();
}

#if __NPU_ARCH__ == 3510
namespace {

API_KERNEL(api_amo)
{
    if (AscendC::GetBlockIdx() != 0) return;
    __gm__ uint64_t* w = gm<uint64_t>(f.a);
    const uint64_t me = uint64_t(aclshmem_my_pe());
    aclshmem_uint64_atomic_add(w, me + 1, 0);
    (void)aclshmem_uint64_atomic_fetch_inc(w + 1, 0);
    aclshmem_uint64_atomic_or(w + 2, uint64_t(1) << me, 0);
    aclshmem_uint64_atomic_xor(w + 3, uint64_t(3) << (2 * me), 0);
    aclshmem_uint64_atomic_and(w + 4, ~(uint64_t(1) << me), 0);
    uint64_t old = aclshmem_uint64_atomic_fetch(w + 5, 0);
    for (;;) { // a ticket by compare and swap
        const uint64_t seen = aclshmem_uint64_atomic_compare_swap(w + 5, old, old + 2, 0);
        if (seen == old) break;
        old = seen;
    }
    aclshmem_float_atomic_set(gm<float>(f.a + 48), 2.5f, int32_t(me));
    if (aclshmem_float_atomic_swap(gm<float>(f.a + 48), 3.5f, int32_t(me)) != 2.5f) AscendC::Trap();
}

} // namespace

KERNEL_TEST(device_amo_950)
{
    World w(c);
    const uint64_t a = w.symmetric(64);
    Stream s(w);
    s.host([&](int pe) {
        std::memset(w.sym_host(pe, a), 0, 64);
        w.sym_as<uint64_t>(pe, a)[4] = ~uint64_t(0);
    });
    s.kernel("gshmem_k_barrier", [](int) { return Args{0}; });
    s.kernel("api_amo", [&](int pe) { return Args{w.sym(pe, a), 0, 0, 0}; });
    s.kernel("gshmem_k_barrier", [](int) { return Args{0}; });
    s.host([&](int pe) {
        if (*w.sym_as<float>(pe, a + 48) != 3.5f) fail("float swap");
        if (pe != 0) return;
        const uint64_t n = uint64_t(w.n()), *v = w.sym_as<uint64_t>(0, a);
        const uint64_t want[6] = {n * (n + 1) / 2, n, (uint64_t(1) << n) - 1, (uint64_t(1) << (2 * n)) - 1, ~((uint64_t(1) << n) - 1), 2 * n};
        for (int i = 0; i < 6; i++)
            if (v[i] != want[i]) fail("word %d is 0x%llx, not 0x%llx", i, (unsigned long long)v[i], (unsigned long long)want[i]);
    });
    s.run();
}
#endif
