// test_engine_calls.cpp: the calls of each engine one by one: what its quiet promises, and what it refuses.
#include "harness/api.hpp"

namespace {

AscendC::LocalTensor<uint8_t> scratch_of(uint32_t bytes) { return gshmem::local<uint8_t>(49152, bytes); }
AscendC::GlobalTensor<uint8_t> tensor(uint64_t a)
{
    AscendC::GlobalTensor<uint8_t> t;
    t.SetGlobalBuffer(gm<uint8_t>(a));
    return t;
}

enum Which : uint64_t { BY_RDMA, BY_SDMA, BY_NOTIFY, BY_UDMA };

void get_by(uint64_t which, uint64_t to, uint64_t from, int pe)
{
    if (which == BY_RDMA) aclshmemx_roce_get_nbi<uint8_t>(gm<uint8_t>(to), gm<uint8_t>(from), scratch(), 64, pe, 2);
    else if (which == BY_UDMA) aclshmemx_udma_get_nbi<uint8_t>(gm<uint8_t>(to), gm<uint8_t>(from), scratch(), 64, pe, 2);
    else aclshmemx_sdma_get_nbi<uint8_t>(gm<uint8_t>(to), gm<uint8_t>(from), scratch(), 64, 64, pe, 2);
}

void quiet_by(uint64_t which, int pe)
{
    if (which == BY_RDMA) aclshmemx_roce_quiet<uint8_t>(uint32_t(pe), scratch(), 2);
    else if (which == BY_UDMA) aclshmemx_udma_quiet(pe);
    else if (which == BY_SDMA) aclshmemx_sdma_quiet<uint8_t>(scratch(), 64, 2);
    else aclshmemx_sdma_notify_record<uint8_t>(scratch(), 64, 2);
}

// A line of this PE that the data cache holds is fetched anew from each PE: after the engine's quiet a scalar
// load finds it. a: the line of each PE, b: which engine, c: the line here (one per block), d: nothing.
API_KERNEL(fetched_by_engine)
{
    attach(f);
    const uint64_t here = f.c + 64 * uint64_t(AscendC::GetBlockIdx());
    AscendC::GlobalTensor<int32_t> line;
    line.SetGlobalBuffer(gm<int32_t>(here));
    for (int pe = 0; pe < aclshmem_n_pes(); pe++) {
        (void)line.GetValue(0);
        for (int i = 0; i < 3; i++) get_by(f.b, here, f.a, pe);
        quiet_by(f.b, pe);
        if (line.GetValue(0) != 900 + pe || line.GetValue(15) != 900 + pe) AscendC::Trap();
    }
}

} // namespace

KERNEL_TEST(calls_quiet)
{
    for (uint64_t which : {BY_RDMA, BY_SDMA, BY_NOTIFY, BY_UDMA}) {
        if (which == BY_UDMA && __NPU_ARCH__ != 3510) continue;
        World w(c);
        const uint64_t a = w.symmetric(64), here = w.local(64 * c.blocks), words = w.local(4 * 48);
        const uint8_t engine = which == BY_RDMA ? GSHMEM_TOPO_ROCE : which == BY_UDMA ? GSHMEM_TOPO_UDMA | GSHMEM_TOPO_MTE : GSHMEM_TOPO_SDMA | GSHMEM_TOPO_MTE;
        w.queues(engine, which != BY_RDMA);
        for (int pe = 0; pe < w.n(); pe++) {
            w.state_of(pe).signal_addr = w.loc(pe, words);
            for (int i = 0; i < 16; i++) w.sym_as<int32_t>(pe, a)[i] = 900 + pe;
        }
        Stream s(w);
        s.kernel("fetched_by_engine", [&](int pe) { return Args{w.sym(pe, a), which, w.loc(pe, here), 0}; });
        s.run();
    }
}

namespace {

// The tensor forms do what the pointer forms do. a: source, b: destination, c: local room.
API_KERNEL(tensor_forms)
{
    attach(f);
    if (AscendC::GetBlockIdx() != 0) return;
    const int right = (aclshmem_my_pe() + 1) % aclshmem_n_pes();
    auto src = tensor(f.a), dst = tensor(f.b), back = tensor(f.c);
    auto buf = scratch_of(64);
    aclshmemx_roce_put_nbi<uint8_t>(dst, src, buf, 300, right);
    aclshmemx_roce_put_nbi<uint8_t>(tensor(f.b + 300), tensor(f.a + 300), buf, 100, right, 3);
    aclshmemx_roce_get_nbi<uint8_t>(back, src, buf, 200, right, 3);
    aclshmemx_roce_quiet<uint8_t>(uint32_t(right), scratch(), 3);
    auto dst2 = tensor(f.b + 512), back2 = tensor(f.c + 512);
    aclshmemx_sdma_put_nbi<uint8_t>(dst2, src, buf, 400, right, 3);
    aclshmemx_sdma_get_nbi<uint8_t>(back2, src, buf, 200, right, 3);
    aclshmemx_cmo_nbi<uint8_t>(src, 400, CMO_TYPE_PREFETCH, buf, 3);
    aclshmemx_sdma_quiet<uint8_t>(buf, 3);
}

} // namespace

KERNEL_TEST(calls_tensors)
{
    World w(c);
    const uint64_t a = w.symmetric(512), b = w.symmetric(1024), room = w.local(1024);
    w.queues(GSHMEM_TOPO_ROCE | GSHMEM_TOPO_SDMA | GSHMEM_TOPO_MTE, true);
    for (int pe = 0; pe < w.n(); pe++) fill_bytes(w.sym_host(pe, a), 512, pe, 0);
    Stream s(w);
    s.kernel("tensor_forms", [&](int pe) { return Args{w.sym(pe, a), w.sym(pe, b), w.loc(pe, room), 0}; });
    s.kernel("gshmem_k_barrier", [](int) { return Args{0}; });
    s.host([&](int pe) {
        const int left = (pe + w.n() - 1) % w.n(), right = (pe + 1) % w.n();
        for (uint64_t at : {0, 512}) {
            expect_bytes(w.sym_host(pe, b + at), 400, left, 0, at ? "sdma_put_nbi of tensors" : "roce_put_nbi of tensors");
            expect_bytes(w.loc_host(pe, room + at), 200, right, 0, at ? "sdma_get_nbi of tensors" : "roce_get_nbi of tensors");
        }
    });
    s.run();
}

namespace {

// What SDMA refuses, by number (b). a: symmetric memory.
API_KERNEL(refused)
{
    attach(f);
    auto t = tensor(f.a);
    auto small = scratch_of(32), enough = scratch_of(64);
    switch (f.b) {
    case 0: return aclshmemx_sdma_put_nbi<uint8_t>(gm<uint8_t>(f.a), gm<uint8_t>(f.a), scratch(), 63, 32, 0, 1);
    case 1: return aclshmemx_sdma_get_nbi<uint8_t>(gm<uint8_t>(f.a), gm<uint8_t>(f.a), scratch(), 0, 32, 0, 1);
    case 2: return aclshmemx_sdma_put_nbi<uint8_t>(t, t, small, 32, 0, 1);
    case 3: return aclshmemx_cmo_nbi<uint8_t>(gm<uint8_t>(f.a), 32, CMO_TYPE_PREFETCH, scratch(), 32, 1);
    case 4: return aclshmemx_cmo_nbi<uint8_t>(t, 32, CMO_TYPE_PREFETCH, small, 1);
    case 5: return aclshmemx_cmo_nbi<uint8_t>(t, 32, CMO_TYPE_FLUSH, enough, 1);
    case 6: return aclshmemx_cmo_nbi<uint8_t>(t, 32, CMO_TYPE_INVALID, enough, 1);
    default: return aclshmemx_sdma_notify_record<uint8_t>(scratch(), 64, 1); // no words to record in
    }
}

} // namespace

KERNEL_TEST(calls_refused)
{
    for (uint64_t which = 0; which < 8; which++) {
        World w(c);
        const uint64_t a = w.symmetric(64);
        w.queues(GSHMEM_TOPO_SDMA | GSHMEM_TOPO_MTE, true);
        Stream s(w);
        s.kernel("refused", [&](int pe) { return Args{w.sym(pe, a), which, 0, 0}; });
        s.run_expecting("trap");
    }
}
