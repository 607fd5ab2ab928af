// test_engines.cpp: RDMA, SDMA and UDMA through queues in memory, with a peer that is reachable by
// the engine only: a scalar access or an MTE copy to it would fault.
#include "harness/api.hpp"
#include <cstring>

namespace {

// Every block sends its own third of a page to each PE, more entries than a ring holds.
API_KERNEL(engine_rdma)
{
    attach(f);
    const int me = aclshmem_my_pe(), n = aclshmem_n_pes();
    const uint64_t block = uint64_t(AscendC::GetBlockIdx()), part = block * 480;
    for (int pe = 0; pe < n; pe++)
        for (uint64_t i = 0; i < 12; i++)
            aclshmemx_roce_put_nbi<uint8_t>(gm<uint8_t>(f.b + uint64_t(me) * 4096 + part + 40 * i), gm<uint8_t>(f.a + part + 40 * i), scratch(), 40, pe, 2);
    for (int pe = 0; pe < n; pe++) aclshmemx_roce_quiet<uint8_t>(uint32_t(pe), scratch(), 2);
    if (aclshmemx_roce_barrier(reinterpret_cast<aclshmemx_team_t*>(gshmem::team_of(0).address), scratch(), 3) != 0) AscendC::Trap();
    aclshmemx_roce_get_nbi<uint8_t>(gm<uint8_t>(f.d + part), gm<uint8_t>(f.a + part), scratch(), 480, (me + 1) % n);
    aclshmemx_roce_quiet<uint8_t>(uint32_t((me + 1) % n), scratch(), 2);
    aclshmemx_roce_atomic_add<uint64_t>(gm<uint64_t>(f.c), uint64_t(me) + 1, 0);
    (void)aclshmemx_roce_atomic_fetch_or<uint32_t>(gm<uint32_t>(f.c + 8), 1u << me, 0);
    aclshmemx_roce_atomic_and<uint32_t>(gm<uint32_t>(f.c + 12), ~(1u << me), 0);
    if (block == 0) {
        (void)aclshmemx_roce_atomic_fetch_xor<uint64_t>(gm<uint64_t>(f.c + 24), 5ull << (4 * me), 0);
        if (aclshmemx_roce_atomic_swap<int32_t>(gm<int32_t>(f.c + 16), 9, me) != -4) AscendC::Trap();
        if (aclshmemx_roce_atomic_compare_swap<int32_t>(gm<int32_t>(f.c + 16), 9, 11, me) != 9) AscendC::Trap();
        if (aclshmemx_roce_atomic_fetch<int32_t>(gm<int32_t>(f.c + 16), me) != 11) AscendC::Trap();
    }
    if (aclshmem_roce_ptr(gm<void>(f.d), 0) != nullptr || aclshmem_roce_ptr(gm<void>(f.a), n) != nullptr) AscendC::Trap();
    if (aclshmemx_roce_team_sync(static_cast<aclshmemx_team_t*>(nullptr)) != -1) AscendC::Trap();
    aclshmemx_roce_barrier_all();
}

API_KERNEL(engine_sdma)
{
    attach(f);
    const int me = aclshmem_my_pe(), n = aclshmem_n_pes();
    const uint64_t part = uint64_t(AscendC::GetBlockIdx()) * 480;
    aclshmemx_cmo_nbi<uint8_t>(gm<uint8_t>(f.a), 4096, CMO_TYPE_PREFETCH, scratch(), 64, 1);
    for (int pe = 0; pe < n; pe++)
        aclshmemx_sdma_put_nbi<uint8_t>(gm<uint8_t>(f.b + uint64_t(me) * 4096 + part), gm<uint8_t>(f.a + part), scratch(), 64, 480, pe, 1);
    aclshmemx_sdma_get_nbi<uint8_t>(gm<uint8_t>(f.d + part), gm<uint8_t>(f.a + part), scratch(), 64, 480, (me + 1) % n, 1);
    aclshmemx_sdma_notify_record<uint8_t>(scratch(), 64, 1);
}

#if __NPU_ARCH__ == 3510
API_KERNEL(engine_udma)
{
    attach(f);
    const int me = aclshmem_my_pe(), n = aclshmem_n_pes(), right = (me + 1) % n;
    if (AscendC::GetBlockIdx() != 0) return;
    for (int pe = 0; pe < n; pe++)
        aclshmemx_udma_relay_put_nbi<uint8_t>(gm<uint8_t>(f.b + uint64_t(me) * 4096), gm<uint8_t>(f.a), scratch(), 4000, pe, (pe + 1) % n, 4);
    for (int pe = 0; pe < n; pe++) aclshmemx_udma_quiet(pe);
    aclshmemx_udma_put_signal_nbi<uint8_t>(gm<uint8_t>(f.b + uint64_t(me) * 4096 + 4000), gm<uint8_t>(f.a + 4000), 96, gm<uint64_t>(f.c + 32), 77, right, scratch(), 4);
    aclshmem_uint64_wait_until(gm<uint64_t>(f.c + 32), ACLSHMEM_CMP_EQ, 77);
    const int from = (me + n - 1) % n;
    aclshmemx_udma_get_nbi<uint8_t>(gm<uint8_t>(f.d), gm<uint8_t>(f.b + uint64_t(from) * 4096 + 4000), scratch(), 96, me, 4); // what the signal announced
    aclshmemx_udma_atomic_inc<uint64_t>(gm<uint64_t>(f.c), 0);
    aclshmemx_udma_quiet(right);
    aclshmemx_udma_quiet(me);
}
#endif

struct Page {
    uint64_t a, b, c, d;
};

Page pages(World& w)
{
    const Page g{w.symmetric(4096), w.symmetric(4096 * uint64_t(w.n())), w.symmetric(64), w.local(4096)};
    for (int pe = 0; pe < w.n(); pe++) {
        fill_bytes(w.sym_host(pe, g.a), 4096, pe, 0);
        std::memset(w.sym_host(pe, g.c), 0, 64);
        w.sym_as<int32_t>(pe, g.c)[4] = -4;
        w.sym_as<uint32_t>(pe, g.c)[3] = ~0u;
    }
    return g;
}

Args page_args(const World& w, const Page& g, int pe) { return Args{w.sym(pe, g.a), w.sym(pe, g.b), w.sym(pe, g.c), w.loc(pe, g.d)}; }

void check_parts(const World& w, const Page& g, int pe, uint64_t blocks, bool get)
{
    for (uint64_t b = 0; b < blocks; b++) {
        for (int from = 0; from < w.n(); from++)
            expect_bytes(w.sym_host(pe, g.b + uint64_t(from) * 4096 + b * 480), 480, from, 0, "put by an engine", b * 480);
        if (get) expect_bytes(w.loc_host(pe, g.d + b * 480), 480, (pe + 1) % w.n(), 0, "get by an engine", b * 480);
    }
}

} // namespace

KERNEL_TEST(engine_rdma)
{
    World w(c);
    const Page g = pages(w);
    w.queues(GSHMEM_TOPO_ROCE, false);
    Stream s(w);
    s.kernel("engine_rdma", [&](int pe) { return page_args(w, g, pe); });
    s.host([&](int pe) {
        check_parts(w, g, pe, c.blocks, true);
        if (w.sym_as<int32_t>(pe, g.c)[4] != 11) fail("swap and compare_swap left %d", w.sym_as<int32_t>(pe, g.c)[4]);
        if (pe) return;
        const uint64_t n = uint64_t(w.n());
        uint64_t x = 0;
        for (int i = 0; i < w.n(); i++) x ^= 5ull << (4 * i);
        if (*w.sym_as<uint64_t>(0, g.c) != c.blocks * n * (n + 1) / 2 || w.sym_as<uint32_t>(0, g.c)[2] != (1u << n) - 1 ||
            w.sym_as<uint32_t>(0, g.c)[3] != ~((1u << n) - 1) || w.sym_as<uint64_t>(0, g.c)[3] != x)
            fail("atomics by RDMA");
    });
    s.run();
}

KERNEL_TEST(engine_sdma)
{
    World w(c);
    const Page g = pages(w);
    const uint64_t words = w.local(4 * 48);
    w.queues(GSHMEM_TOPO_SDMA | GSHMEM_TOPO_MTE, true);
    for (int pe = 0; pe < w.n(); pe++) w.loc_as<gshmem_device_state_t>(pe, 0)->signal_addr = w.loc(pe, words);
    Stream s(w);
    s.kernel("engine_sdma", [&](int pe) { return page_args(w, g, pe); });
    s.kernel("gshmem_k_barrier", [](int) { return Args{0}; });
    s.host([&](int pe) {
        check_parts(w, g, pe, c.blocks, true);
        for (uint32_t b = 0; b < c.blocks; b++)
            if (w.loc_as<uint32_t>(pe, words)[b] != 1) fail("notify_record of block %u", b);
    });
    s.run();
}

#if __NPU_ARCH__ == 3510
KERNEL_TEST(engine_udma)
{
    World w(c);
    const Page g = pages(w);
    w.queues(GSHMEM_TOPO_UDMA | GSHMEM_TOPO_MTE, true);
    Stream s(w);
    s.kernel("engine_udma", [&](int pe) { return page_args(w, g, pe); });
    s.kernel("gshmem_k_barrier", [](int) { return Args{0}; });
    s.host([&](int pe) {
        for (int from = 0; from < w.n(); from++) expect_bytes(w.sym_host(pe, g.b + uint64_t(from) * 4096), 4000, from, 0, "udma put");
        expect_bytes(w.loc_host(pe, g.d), 96, (pe + w.n() - 1) % w.n(), 0, "udma put_signal", 4000);
        if (pe == 0 && *w.sym_as<uint64_t>(0, g.c) != uint64_t(w.n())) fail("udma atomic_inc");
    });
    s.run();
}
#endif

// Our own kernels on PEs that no load or store reaches: the selection rule must find the engine.
KERNEL_TEST(engine_selection)
{
    for (int topology : {GSHMEM_TOPO_ROCE, GSHMEM_TOPO_SDMA | GSHMEM_TOPO_MTE, GSHMEM_TOPO_ROCE | GSHMEM_TOPO_MTE}) {
        World w(c);
        const uint64_t bytes = 5003, n = uint64_t(w.n());
        const uint64_t dst = w.symmetric(bytes * n), one = w.symmetric(bytes), src = w.symmetric(bytes), sig = w.symmetric(4);
        w.queues(uint8_t(topology), (topology & GSHMEM_TOPO_MTE) != 0);
        Stream s(w);
        for (int round = 0; round < 2; round++) {
            s.host([&, round](int pe) { fill_bytes(w.sym_host(pe, src), bytes, pe, round); });
            s.kernel("gshmem_k_allgather", [&](int pe) { return Args{0, w.sym(pe, dst), w.sym(pe, src), bytes}; });
            s.host([&, round](int pe) {
                for (int i = 0; i < w.n(); i++) expect_bytes(w.sym_host(pe, dst + bytes * uint64_t(i)), bytes, i, round, "allgather by an engine");
            });
            s.kernel("gshmem_k_put_signal", [&, round](int pe) {
                return Args{w.sym(pe, one), w.sym(pe, src), bytes, w.sym(pe, sig), round ? 2u : 1u, uint64_t(round), uint64_t((pe + 1) % w.n()), 0};
            });
            s.kernel("gshmem_k_signal_wait", [&, round](int pe) { return Args{w.sym(pe, sig), 3, round ? 3u : 1u, 0, 0}; });
            s.host([&, round](int pe) { expect_bytes(w.sym_host(pe, one), bytes, (pe + w.n() - 1) % w.n(), round, "put_signal by an engine"); });
            s.kernel("gshmem_k_put", [&](int pe) { return Args{w.sym(pe, one), w.sym(pe, src), bytes, uint64_t(pe)}; });
            s.host([&, round](int pe) { expect_bytes(w.sym_host(pe, one), bytes, pe, round, "put to self"); });
            s.kernel("gshmem_k_barrier", [](int) { return Args{0}; });
        }
        s.run();
    }
}

// An engine that was not set up, or for fewer cores, or by somebody else, stops the kernel instead of
// using stray memory; a barrier, which only waits for what there is, passes.
KERNEL_TEST(engine_missing)
{
    enum { ABSENT, FEWER, FOREIGN };
    for (int how : {ABSENT, FEWER, FOREIGN}) {
        World w(c);
        const Page g = pages(w);
        w.queues(GSHMEM_TOPO_SDMA | GSHMEM_TOPO_MTE, true);
        for (int pe = 0; pe < w.n(); pe++) {
            gshmem_device_state_t& s = w.state_of(pe);
            auto* table = w.loc_as<gshmem_queue_table_t>(pe, s.sdma_workspace_addr - w.loc(pe, 0));
            if (how == ABSENT) s.sdma_workspace_addr = 0;
            if (how == FEWER) table->cores = c.blocks - 1;
            if (how == FOREIGN) table->magic ^= 1;
        }
        Stream barrier(w), use(w);
        barrier.kernel("gshmem_k_barrier", [](int) { return Args{0}; });
        barrier.run();
        use.kernel("engine_sdma", [&](int pe) { return page_args(w, g, pe); });
        use.run_expecting("trap");
    }
}
