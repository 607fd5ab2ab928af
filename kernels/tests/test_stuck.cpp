// test_stuck.cpp: every function of the device API that waits, given something that never comes. It must
// wait until the host aborts, at whatever step, then return what its description says.
#include "harness/world.hpp"
#include "device/shmem_device.h"
#include "../cpu_model/src/core.hpp"
#include "../cpu_model/src/fault.hpp"

namespace {

struct Api {
    uint64_t state, words, data, out, which;
};
template <typename T> __gm__ T* gm(uint64_t a) { return reinterpret_cast<__gm__ T*>(a); }
__ubuf__ uint8_t* scratch() { return reinterpret_cast<__ubuf__ uint8_t*>(uint64_t(49152)); }
int other() { return 1 - aclshmem_my_pe(); }

struct Wait {
    const char* name;
    uint8_t topology;                   // 0: the other PE is mapped and never runs; else engines that never serve
    uint64_t (*call)(const Api& f);     // what the function returned, where it returns something
    uint64_t returns;
};

constexpr uint64_t NONE = 4242;
constexpr uint8_t RDMA = GSHMEM_TOPO_ROCE, SDMA = GSHMEM_TOPO_SDMA | GSHMEM_TOPO_MTE;
__gm__ int32_t* words(const Api& f) { return gm<int32_t>(f.words); }
__gm__ size_t* indices(const Api& f) { return gm<size_t>(f.out + 64); }
__gm__ int32_t* operands(const Api& f) { return gm<int32_t>(f.out + 128); } // 78, 79, 80: none is there

void rdma_put(const Api& f) { aclshmemx_roce_put_nbi<uint8_t>(gm<uint8_t>(f.data), gm<uint8_t>(f.data + 2048), scratch(), 40, other(), 2); }
void sdma_put(const Api& f) { aclshmemx_sdma_put_nbi<uint8_t>(gm<uint8_t>(f.data), gm<uint8_t>(f.data + 2048), scratch(), 64, 40, other(), 2); }
aclshmemx_team_t* world_team() { return reinterpret_cast<aclshmemx_team_t*>(gshmem::team_of(0).address); }

const Wait waits[] = {
    {"wait_until", 0, [](const Api& f) { aclshmem_int32_wait_until(words(f), ACLSHMEM_CMP_EQ, 77); return NONE; }, NONE},
    {"wait", 0, [](const Api& f) { aclshmem_int32_wait(words(f), 0); return NONE; }, NONE},
    {"wait_until_all", 0, [](const Api& f) { aclshmem_int32_wait_until_all(words(f), 3, nullptr, ACLSHMEM_CMP_GT, 0); return NONE; }, NONE},
    {"wait_until_any", 0, [](const Api& f) { return uint64_t(aclshmem_int32_wait_until_any(words(f), 3, nullptr, ACLSHMEM_CMP_GT, 0)); }, SIZE_MAX},
    {"wait_until_some", 0, [](const Api& f) { return uint64_t(aclshmem_int32_wait_until_some(words(f), 3, indices(f), nullptr, ACLSHMEM_CMP_GT, 0)); }, 0},
    {"wait_until_all_vector", 0, [](const Api& f) { aclshmem_int32_wait_until_all_vector(words(f), 3, nullptr, ACLSHMEM_CMP_EQ, operands(f)); return NONE; }, NONE},
    {"wait_until_any_vector", 0, [](const Api& f) { return uint64_t(aclshmem_int32_wait_until_any_vector(words(f), 3, nullptr, ACLSHMEM_CMP_EQ, operands(f))); }, SIZE_MAX},
    {"wait_until_some_vector", 0, [](const Api& f) { return uint64_t(aclshmem_int32_wait_until_some_vector(words(f), 3, indices(f), nullptr, ACLSHMEM_CMP_EQ, operands(f))); }, 0},
    {"signal_wait_until", 0, [](const Api& f) { return uint64_t(uint32_t(aclshmem_signal_wait_until(words(f) + 4, ACLSHMEM_CMP_NE, -6))); }, uint32_t(-6)},
    {"barrier_all", 0, [](const Api&) { aclshmem_barrier_all(); return NONE; }, NONE},
    {"barrier", 0, [](const Api&) { aclshmem_barrier(ACLSHMEM_TEAM_WORLD); return NONE; }, NONE},
    {"barrier_vec", 0, [](const Api&) { aclshmemx_barrier_vec(0); return NONE; }, NONE},
    {"barrier_all_vec", 0, [](const Api&) { aclshmemx_barrier_all_vec(); return NONE; }, NONE},
    {"sync", 0, [](const Api&) { aclshmem_sync(0); return NONE; }, NONE},
    {"sync_all", 0, [](const Api&) { aclshmem_sync_all(); return NONE; }, NONE},
    {"roce_quiet", RDMA, [](const Api& f) { rdma_put(f); aclshmemx_roce_quiet<uint8_t>(uint32_t(other()), scratch(), 2); return NONE; }, NONE},
    {"roce_put_nbi on a full ring", RDMA, [](const Api& f) { for (int i = 0; i < 9; i++) rdma_put(f); return NONE; }, NONE},
    {"roce_team_sync", RDMA, [](const Api&) { return uint64_t(aclshmemx_roce_team_sync(world_team())); }, 0},
    {"roce_barrier", RDMA, [](const Api& f) { rdma_put(f); return uint64_t(aclshmemx_roce_barrier(world_team(), scratch(), 1)); }, 0},
    {"roce_sync_all", RDMA, [](const Api&) { aclshmemx_roce_sync_all(); return NONE; }, NONE},
    {"roce_barrier_all", RDMA, [](const Api& f) { rdma_put(f); aclshmemx_roce_barrier_all(); return NONE; }, NONE},
    {"roce_atomic_add", RDMA, [](const Api& f) { aclshmemx_roce_atomic_add<int32_t>(words(f), 1, other()); return NONE; }, NONE},
    {"barrier_all by RDMA", RDMA, [](const Api& f) { rdma_put(f); aclshmem_barrier_all(); return NONE; }, NONE},
    {"put by RDMA", RDMA, [](const Api& f) { aclshmem_putmem(gm<void>(f.data), gm<void>(f.data + 2048), 900, other()); return NONE; }, NONE},
    {"get by RDMA", RDMA, [](const Api& f) { aclshmem_getmem(gm<void>(f.data), gm<void>(f.data + 2048), 900, other()); return NONE; }, NONE},
    {"put_signal by RDMA", RDMA, [](const Api& f) { aclshmem_putmem_signal(gm<void>(f.data), gm<void>(f.data + 2048), 900, words(f) + 5, 9, ACLSHMEM_SIGNAL_ADD, other()); return NONE; }, NONE},
    {"signal by RDMA", RDMA, [](const Api& f) { aclshmemx_signal_op(words(f), 1, ACLSHMEM_SIGNAL_SET, other()); return NONE; }, NONE},
    {"quiet", RDMA, [](const Api& f) { aclshmem_putmem_nbi(gm<void>(f.data), gm<void>(f.data + 2048), 900, other()); aclshmem_quiet(); return NONE; }, NONE},
    {"fence", SDMA, [](const Api& f) { aclshmem_putmem_nbi(gm<void>(f.data), gm<void>(f.data + 2048), 900, other()); aclshmem_fence(); return NONE; }, NONE},
    {"sdma_quiet", SDMA, [](const Api& f) { sdma_put(f); aclshmemx_sdma_quiet<uint8_t>(scratch(), 64, 2); return NONE; }, NONE},
    {"sdma_notify_record", SDMA, [](const Api& f) { sdma_put(f); aclshmemx_sdma_notify_record<uint8_t>(scratch(), 64, 2); return NONE; }, NONE},
    {"get by SDMA", SDMA, [](const Api& f) { aclshmem_getmem(gm<void>(f.data), gm<void>(f.data + 2048), 900, other()); return NONE; }, NONE},
#if __NPU_ARCH__ == 3510
    {"udma_quiet", GSHMEM_TOPO_UDMA | GSHMEM_TOPO_MTE, [](const Api& f) {
         aclshmemx_udma_put_nbi<uint8_t>(gm<uint8_t>(f.data), gm<uint8_t>(f.data + 2048), scratch(), 40, other(), 2);
         aclshmemx_udma_quiet(other());
         return NONE;
     }, NONE},
    {"udma_atomic_fetch_add", GSHMEM_TOPO_UDMA | GSHMEM_TOPO_MTE, [](const Api& f) { (void)aclshmemx_udma_atomic_fetch_add<uint64_t>(gm<uint64_t>(f.data), 1, other()); return NONE; }, NONE},
#endif
};

// Does the wait; out[0] becomes 1 + what it returned, or stays 0 when no abort was seen.
void stuck(const void* p)
{
    const Api& f = *static_cast<const Api*>(p);
    aclshmemx_set_state(reinterpret_cast<GM_ADDR>(f.state));
    const uint64_t got = waits[f.which].call(f);
    if (AscendC::GetBlockIdx() == 0 && aclshmemx_aborted()) gshmem::store_shared<uint64_t>(f.out, 1 + got);
}

void run_stuck(const Config& c, size_t which, uint64_t abort)
{
    const Wait& k = waits[which];
    Config two = c;
    two.pes = 2;
    World w(two);
    const uint64_t word = w.symmetric(64), data = w.symmetric(4096), out = w.local(192), notes = w.local(4 * 48);
    if (k.topology) w.queues(k.topology, (k.topology & GSHMEM_TOPO_MTE) != 0);
    w.loc_as<gshmem_device_state_t>(0, 0)->signal_addr = w.loc(0, notes);
    w.sym_as<int32_t>(0, word)[4] = -6;
    for (int i = 0; i < 3; i++) w.loc_as<int32_t>(0, out + 128)[i] = 78 + i;
    const Api api{w.state(0), w.sym(0, word), w.sym(0, data), w.loc(0, out), which};
    const void* args = &api;
    const km_device_t* dev = w.device(0);
    km::Fault fault;
    fault.stop_engines = 0;
    fault.abort = abort;
    fault.host = [&](bool) { w.set_abort(0, 1); };
    km_register_kernel("stuck", stuck, sizeof(Api));
    const int32_t rc = km::launch_group("stuck", c.blocks, &args, sizeof api, &dev, 1, fault);
    if (rc != KM_OK) fail("%s, abort at step %lld: rc %d: %s", k.name, static_cast<long long>(abort), rc, km_last_report());
    if (!fault.host_ran) fail("%s returned although nothing came and nobody aborted", k.name);
    const uint64_t got = *w.loc_as<uint64_t>(0, out);
    if (got != 1 + k.returns) fail("%s returned %lld after an abort, not %lld", k.name, static_cast<long long>(got - 1), static_cast<long long>(k.returns));
    for (uint32_t b = 0; b < 48; b++)
        if (w.loc_as<uint32_t>(0, notes)[b]) fail("%s announced work that was not done", k.name);
    for (int i = 0; i < 16; i++)
        if (w.sym_as<int32_t>(1, word)[i]) fail("%s changed word %d of the other PE", k.name, i);
    w.check_canaries();
}

} // namespace

KERNEL_TEST(stuck_waits)
{
    if (c.pes != 2) return;
    km::Random random{c.seed * 7 + c.blocks};
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        run_stuck(c, i, km::Fault::NEVER);
        for (int draw = 0; draw < (full ? 6 : 2); draw++) run_stuck(c, i, random.below(60));
    }
}
