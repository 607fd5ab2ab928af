// test_selection.cpp: which engine carries a transfer, what quiet and fence wait for, and addresses: PEs
// that do not exist, the host-side heap, a host that filled only the public part of the state.
#include "harness/api.hpp"
#include <cstring>

namespace {

constexpr uint8_t MTE = GSHMEM_TOPO_MTE, ROCE = GSHMEM_TOPO_ROCE, SDMA = GSHMEM_TOPO_SDMA, UDMA = GSHMEM_TOPO_UDMA;
constexpr uint8_t ON_950 = __NPU_ARCH__ == 3510 ? UDMA : MTE; // what a UDMA bit leads to

struct Choice {
    uint8_t topology, carrier;
    bool tables = true; // false: the bits are there, the queues are not
};
const Choice choices[] = {{MTE, MTE}, {ROCE, ROCE}, {ROCE | MTE, MTE}, {SDMA | MTE, SDMA}, {SDMA | ROCE, SDMA}, {SDMA | ROCE | MTE, SDMA},
                          {UDMA | MTE, ON_950}, {UDMA | SDMA | MTE, SDMA}, {UDMA | ROCE | MTE, ON_950}, {SDMA | MTE, MTE, false}};

void expect_carrier(const World& w, int pe, const Choice& k, uint64_t entries, const char* what)
{
    for (uint8_t engine : {ROCE, SDMA, UDMA}) {
        const uint64_t want = engine == k.carrier ? entries : 0, got = w.carried(pe, engine);
        if (got != want) fail("%s with topology %u: engine %u carried %llu entries, not %llu", what, k.topology, engine, (unsigned long long)got, (unsigned long long)want);
    }
}

} // namespace

KERNEL_TEST(selection_carrier)
{
    for (const Choice& k : choices) {
        World w(c);
        const uint64_t bytes = 512 * c.blocks, dst = w.symmetric(bytes), src = w.symmetric(bytes), back = w.local(bytes);
        w.queues(k.topology, (k.topology & MTE) != 0);
        for (int pe = 0; pe < w.n(); pe++) {
            fill_bytes(w.sym_host(pe, src), bytes, pe, 0);
            if (!k.tables) w.state_of(pe).qp_info = w.state_of(pe).sdma_workspace_addr = w.state_of(pe).udma_queues = 0;
        }
        const auto right = [&](int pe) { return (pe + 1) % w.n(); };
        Stream s(w);
        s.kernel("gshmem_k_put", [&](int pe) { return Args{w.sym(pe, dst), w.sym(pe, src), bytes, uint64_t(right(pe))}; });
        s.host([&](int pe) {
            expect_bytes(w.sym_host(right(pe), dst), bytes, pe, 0, "put");
            expect_carrier(w, pe, k, c.blocks, "put");
        });
        s.kernel("gshmem_k_get", [&](int pe) { return Args{w.loc(pe, back), w.sym(pe, src), bytes, uint64_t(right(pe))}; });
        s.host([&](int pe) {
            expect_bytes(w.loc_host(pe, back), bytes, right(pe), 0, "get");
            expect_carrier(w, pe, k, 2 * c.blocks, "get");
        });
        s.run();
    }
}

namespace {

// Two transfers of each kind, then quiet (first) or fence (second), then a word that announces them.
// a: source, b: two areas of 1 KiB, c: two flags, d: what was found, 2 words per area.
API_KERNEL(announce_after)
{
    attach(f);
    if (AscendC::GetBlockIdx() != 0) return;
    const int pe = right_pe();
    for (uint64_t k = 0; k < 2; k++) {
        const uint64_t to = f.b + 1024 * k;
        aclshmem_putmem_nbi(gm<void>(to), gm<void>(f.a), 400, pe);
        aclshmem_putmem_nbi(gm<void>(to + 400), gm<void>(f.a + 400), 400, pe);
        if (k == 0) aclshmem_quiet();
        else aclshmem_fence();
        aclshmem_int32_p(gm<int32_t>(f.c + 4 * k), 1, pe);
        aclshmem_int32_wait_until(gm<int32_t>(f.c + 4 * k), ACLSHMEM_CMP_EQ, 1);
        gshmem::store_shared<uint32_t>(f.d + 8 * k, gshmem::load_shared<uint32_t>(to + 396));
        gshmem::store_shared<uint32_t>(f.d + 8 * k + 4, gshmem::load_shared<uint32_t>(to + 796));
    }
}

// By every engine that has queues, whether or not the topology would choose it: after quiet, fence or a
// barrier (c: 0, 1, 2), every entry to every PE is finished.
API_KERNEL(drained_after)
{
    using namespace gshmem;
    attach(f);
    const uint64_t mine = f.b + 64 * uint64_t(aclshmem_my_pe() * AscendC::GetBlockNum() + AscendC::GetBlockIdx());
    for (Engine e : {ENGINE_RDMA, ENGINE_SDMA, ENGINE_UDMA})
        for (int i = 0; has_queues(e) && i < 3 * aclshmem_n_pes(); i++) engine_write(e, mine, f.a, 64, i % aclshmem_n_pes(), default_scratch(e));
    if (f.c == 0) aclshmem_quiet();
    if (f.c == 1) aclshmem_fence();
    if (f.c == 2) aclshmem_barrier_all();
    if (f.c == 3) aclshmemx_roce_barrier_all(); // of RDMA's own work, by RDMA's flags
    for (Engine e : {ENGINE_RDMA, ENGINE_SDMA, ENGINE_UDMA})
        for (int pe = 0; (f.c != 3 || e == ENGINE_RDMA) && has_queues(e) && pe < aclshmem_n_pes(); pe++)
            if (load_shared<uint64_t>(queue_to(e, pe).completed) < 3) AscendC::Trap();
}

} // namespace

KERNEL_TEST(selection_quiet)
{
    for (uint8_t topology : {MTE, uint8_t(SDMA | MTE), uint8_t(ROCE | MTE), uint8_t(UDMA | MTE)}) {
        World w(c);
        const uint64_t a = w.symmetric(1024), b = w.symmetric(2048), flags = w.symmetric(8), d = w.local(16);
        w.queues(topology, true);
        for (int pe = 0; pe < w.n(); pe++)
            for (uint32_t i = 0; i < 256; i++) w.sym_as<uint32_t>(pe, a)[i] = uint32_t(pe) * 1000 + i;
        Stream s(w);
        s.kernel("announce_after", [&](int pe) { return Args{w.sym(pe, a), w.sym(pe, b), w.sym(pe, flags), w.loc(pe, d)}; });
        s.host([&](int pe) {
            const uint32_t from = uint32_t((pe + w.n() - 1) % w.n()) * 1000;
            for (int i = 0; i < 4; i++)
                if (w.loc_as<uint32_t>(pe, d)[i] != from + (i % 2 ? 199 : 99)) fail("topology %u: transfer %d was announced before it had arrived", topology, i);
        });
        s.run();
    }
}

KERNEL_TEST(selection_drained)
{
    for (uint8_t topology : {ROCE, uint8_t(SDMA | MTE), uint8_t(SDMA | UDMA | ROCE | MTE)})
        for (uint64_t how : {0, 1, 2, 3}) {
            if (how == 3 && !(topology & ROCE)) continue;
            World w(c);
            const uint64_t a = w.symmetric(64), b = w.symmetric(64 * c.blocks * uint64_t(w.n()));
            w.queues(topology, topology != ROCE);
            Stream s(w);
            s.kernel("drained_after", [&](int pe) { return Args{w.sym(pe, a), w.sym(pe, b), how, 0}; });
            s.run();
            const uint64_t entries = 3 * c.blocks * uint64_t(w.n()), flags = how == 3 || topology == ROCE ? (how >= 2 ? uint64_t(w.n()) - 1 : 0) : 0;
            for (int pe = 0; topology & ROCE && pe < w.n(); pe++)
                if (w.carried(pe, ROCE) != entries + flags) fail("RDMA carried %llu entries, not %llu and %llu flags of the barrier", (unsigned long long)w.carried(pe, ROCE), (unsigned long long)entries, (unsigned long long)flags);
        }
}

namespace {

API_KERNEL(no_such_place)
{
    attach(f);
    const int n = aclshmem_n_pes();
    for (int pe : {-1, -2, n, n + 1, n + 7}) {
        if (aclshmem_ptr(gm<void>(f.a), pe) != nullptr || aclshmem_ptr(gm<void>(f.b), pe) != nullptr) AscendC::Trap();
        if (aclshmem_roce_ptr(gm<void>(f.a), pe) != nullptr) AscendC::Trap();
        if (gshmem::engine_address(gshmem::ENGINE_SDMA, f.b, pe) != 0) AscendC::Trap();
    }
    for (uint64_t nowhere : {uint64_t(4096), f.state, f.c, f.d}) { // small, local, just behind the heap and the host-side one
        if (aclshmem_ptr(gm<void>(nowhere), 0) != nullptr || aclshmem_roce_ptr(gm<void>(nowhere), 0) != nullptr) AscendC::Trap();
        if (gshmem::engine_address(gshmem::ENGINE_SDMA, nowhere, 0) != 0) AscendC::Trap();
    }
    if (aclshmem_team_n_pes(-1) != -1 || aclshmem_team_my_pe(GSHMEM_MAX_TEAMS) != -1 || aclshmem_team_n_pes(7) != -1) AscendC::Trap();
    if (aclshmem_team_pe_mapping(0, -1) != -1 || aclshmem_team_pe_mapping(0, n) != -1 || aclshmem_team_pe_mapping(7, 0) != -1) AscendC::Trap();
    if (aclshmem_team_translate_pe(0, 0, 7) != -1 || aclshmem_team_translate_pe(7, 0, 0) != -1 || aclshmem_team_translate_pe(0, n, 0) != -1) AscendC::Trap();
}

// An engine that is not set up has no tables: it finds nothing, in either heap and on any PE, and looks nowhere.
API_KERNEL(not_reached)
{
    attach(f);
    for (int pe = 0; pe < aclshmem_n_pes(); pe++)
        for (uint64_t addr : {f.a, f.b}) {
            if (gshmem::engine_address(gshmem::ENGINE_SDMA, addr, pe) || gshmem::engine_address(gshmem::ENGINE_RDMA, addr, pe)) AscendC::Trap();
            if (aclshmem_ptr(gm<void>(addr), pe) == nullptr) AscendC::Trap();
        }
}

} // namespace

KERNEL_TEST(selection_no_table)
{
    World w(c);
    const uint64_t a = w.symmetric(64);
    Stream s(w);
    s.kernel("not_reached", [&](int pe) { return Args{w.sym(pe, a), w.host_sym(pe, a), 0, 0}; });
    s.run();
}

// The tables of heap bases have usable addresses before and behind them (harness), so that a PE that
// does not exist would seem to have memory.
KERNEL_TEST(selection_bounds)
{
    for (bool host_heap : {true, false})
        for (bool queues : {true, false}) {
            World w(c);
            const uint64_t a = w.symmetric(64);
            if (queues) w.queues(MTE | ROCE | SDMA, true);
            for (int pe = 0; pe < w.n(); pe++) {
                gshmem_device_state_t& s = w.state_of(pe);
                s.host_heap_size = a + 64; // less than the device's
                if (queues) s.host_heap_address = 0; // the CPU's addresses are not known: small ones are none of them
                if (!host_heap) s.host_heap_base = s.p2p_host_heap_base = s.rdma_host_heap_base = s.sdma_host_heap_base = s.host_heap_size = 0;
            }
            Stream s(w);
            s.kernel("no_such_place", [&](int pe) { return Args{w.sym(pe, a), w.host_sym(pe, a), w.sym(pe, 0) + w.state_of(pe).heap_size, w.host_sym(pe, a) + 64}; });
            s.run();
        }
}

// The host-side heap is as good as the device's: by MTE, by SDMA, by RDMA, and for single words. What is symmetric may also be named by
// the CPU's addresses.
static void run_host_heap(const Config& c, bool by_cpu)
{
    for (uint8_t topology : {MTE, uint8_t(SDMA | MTE), ROCE}) {
        World w(c);
        const uint64_t bytes = 5003, dst = w.symmetric(bytes), src = w.symmetric(bytes), back = w.local(bytes), word = w.symmetric(8);
        w.queues(topology, topology != ROCE);
        const auto right = [&](int pe) { return uint64_t((pe + 1) % w.n()); };
        Stream s(w);
        s.host([&](int pe) { fill_bytes(w.sym_host(pe, src), bytes, pe, 0); });
        s.kernel("gshmem_k_barrier", [](int) { return Args{0}; });
        const auto symmetric = [&](int pe, uint64_t offset) { return by_cpu ? w.cpu_sym(pe, offset) : w.host_sym(pe, offset); };
        s.kernel("gshmem_k_put", [&](int pe) { return Args{symmetric(pe, dst), w.host_sym(pe, src), bytes, right(pe)}; });
        s.kernel("gshmem_k_get", [&](int pe) { return Args{w.loc(pe, back), symmetric(pe, src), bytes, right(pe)}; });
        s.kernel("gshmem_k_signal", [&](int pe) { return Args{symmetric(pe, word), 70 + uint64_t(pe), 0, right(pe)}; });
        s.kernel("gshmem_k_barrier", [](int) { return Args{0}; });
        s.host([&](int pe) {
            const int left = (pe + w.n() - 1) % w.n();
            expect_bytes(w.sym_host(pe, dst), bytes, left, 0, "put to the host-side heap");
            expect_bytes(w.loc_host(pe, back), bytes, int(right(pe)), 0, "get from the host-side heap");
            if (*w.sym_as<int32_t>(pe, word) != 70 + left) fail("signal in the host-side heap");
        });
        s.run();
    }
}

KERNEL_TEST(selection_host_heap)
{
    run_host_heap(c, false);
    run_host_heap(c, true);
}

// Without our magic nothing behind the public struct is looked at: no abort word, no UDMA queues.
KERNEL_TEST(selection_public_state)
{
    World w(c);
    const uint64_t bytes = 1000, dst = w.symmetric(bytes * uint64_t(w.n())), src = w.symmetric(bytes);
    for (int pe = 0; pe < w.n(); pe++) {
        fill_bytes(w.sym_host(pe, src), bytes, pe, 0);
        w.state_of(pe).magic = 0;
        w.state_of(pe).abort_addr = w.state_of(pe).udma_queues = 0x999000; // whatever lies there
    }
    Stream s(w);
    s.kernel("gshmem_k_allgather", [&](int pe) { return Args{0, w.sym(pe, dst), w.sym(pe, src), bytes}; });
    s.host([&](int pe) {
        for (int i = 0; i < w.n(); i++) expect_bytes(w.sym_host(pe, dst + bytes * uint64_t(i)), bytes, i, 0, "allgather");
    });
    s.run();
}
