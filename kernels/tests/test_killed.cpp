// test_killed.cpp: a PE that dies anywhere in a kernel, engines that stop, an abort at any step. Every
// kernel, on every survivor, must end once the host set the abort word, without breaking a rule or
// touching a byte outside its buffers; and a kernel launched afterwards ends too.
#include "harness/world.hpp"
#include "kernel_entry.h"
#include "../cpu_model/src/core.hpp"
#include "../cpu_model/src/fault.hpp"
#include <cstring>

namespace {

using km::Fault;

struct Room { // what the kernels work on
    uint64_t x, y, z;     // symmetric: 128 KiB, 128 KiB, 8 KiB of flags
    uint64_t p, q, ids;   // local: 128 KiB, 32 KiB, 1 KiB
};

Room make_room(World& w)
{
    const uint64_t big = 128 << 10;
    const Room r{w.symmetric(big), w.symmetric(big), w.symmetric(8 << 10), w.local(big), w.local(32 << 10), w.local(1 << 10)};
    for (int pe = 0; pe < w.n(); pe++) {
        fill_bytes(w.loc_host(pe, r.p), big, pe, 1);
        for (int i = 0; i < 256; i++) w.loc_as<int32_t>(pe, r.ids)[i] = (i * 7 + pe) % w.n(); // experts, and members of moves
    }
    return r;
}

enum Engines { BY_MTE, MAPPED, ANY }; // transfers by MTE only; by other engines too, to mapped peers; to any peer

struct Case {
    const char* kernel;
    Engines engines;
    std::function<Args(World&, const Room&, int pe)> args;
};

uint64_t right(const World& w, int pe) { return static_cast<uint64_t>((pe + 1) % w.n()); }

const std::vector<Case>& one_sided()
{
    static const std::vector<Case> all = {
        {"gshmem_k_put", ANY, [](World& w, const Room& r, int pe) { return Args{w.sym(pe, r.x), w.loc(pe, r.p), 40001, right(w, pe)}; }},
        {"gshmem_k_get", ANY, [](World& w, const Room& r, int pe) { return Args{w.loc(pe, r.p), w.sym(pe, r.x), 40001, right(w, pe)}; }},
        {"gshmem_k_put_strided", BY_MTE, [](World& w, const Room& r, int pe) { return Args{w.sym(pe, r.x), w.loc(pe, r.p), 8, 24, 16, 400, right(w, pe)}; }},
        {"gshmem_k_get_strided", BY_MTE, [](World& w, const Room& r, int pe) { return Args{w.loc(pe, r.p), w.sym(pe, r.x), 8, 24, 16, 400, right(w, pe)}; }},
        {"gshmem_k_put_signal", ANY, [](World& w, const Room& r, int pe) { return Args{w.sym(pe, r.x), w.loc(pe, r.p), 40001, w.sym(pe, r.z), 5, 1, right(w, pe), 0}; }},
        {"gshmem_k_put_value", BY_MTE, [](World& w, const Room& r, int pe) { return Args{w.sym(pe, r.z), 77, 4, right(w, pe)}; }},
        {"gshmem_k_signal", ANY, [](World& w, const Room& r, int pe) { return Args{w.sym(pe, r.z), 1, 1, right(w, pe)}; }},
        {"gshmem_k_signal_wait", ANY, [](World& w, const Room& r, int pe) { return Args{w.sym(pe, r.z), 0, 77, w.loc(pe, r.q), 0}; }},
        {"gshmem_k_wait", ANY, [](World& w, const Room& r, int pe) { return Args{w.sym(pe, r.z), 9, 0, 77}; }},
        {"gshmem_k_atomic_add", BY_MTE, [](World& w, const Room& r, int pe) { return Args{w.sym(pe, r.z), 3, 1, right(w, pe)}; }},
#if __NPU_ARCH__ == 3510
        {"gshmem_k_atomic", BY_MTE, [](World& w, const Room& r, int pe) { return Args{w.sym(pe, r.z), 6, 8, 3, 0, w.loc(pe, r.q), right(w, pe)}; }},
#endif
        {"gshmem_k_quiet", ANY, [](World&, const Room&, int) { return Args{}; }},
    };
    return all;
}

const std::vector<Case>& collective()
{
    static const std::vector<Case> all = {
        {"gshmem_k_barrier", ANY, [](World&, const Room&, int) { return Args{0}; }},
        {"gshmem_k_broadcast", ANY, [](World& w, const Room& r, int pe) { return Args{0, w.sym(pe, r.x), w.loc(pe, r.p), 70001, 1}; }},
        {"gshmem_k_broadcast", ANY, [](World& w, const Room& r, int pe) { return Args{0, w.sym(pe, r.x), w.loc(pe, r.p), 5001, 0}; }},
        {"gshmem_k_allgather", ANY, [](World& w, const Room& r, int pe) { return Args{0, w.sym(pe, r.x), w.loc(pe, r.p), 6001}; }},
        {"gshmem_k_all_to_all", ANY, [](World& w, const Room& r, int pe) { return Args{0, w.sym(pe, r.x), w.loc(pe, r.p), 6001}; }},
        {"gshmem_k_reduce_scatter", BY_MTE, [](World& w, const Room& r, int pe) { return Args{0, w.loc(pe, r.p), w.sym(pe, r.x), 4900, 1, 0}; }},
        {"gshmem_k_allreduce_one_shot", BY_MTE, [](World& w, const Room& r, int pe) { return Args{0, w.loc(pe, r.p), w.sym(pe, r.x), 9001, 0, 0}; }},
        {"gshmem_k_allreduce_two_shot", BY_MTE, [](World& w, const Room& r, int pe) { return Args{0, w.sym(pe, r.x), w.sym(pe, r.x), 9001, 27, 0}; }},
        {"gshmem_k_kv_shuffle", ANY, [](World& w, const Room& r, int pe) { return Args{0, w.sym(pe, r.x), w.loc(pe, r.p), w.loc(pe, r.ids), 12, 900}; }},
        {"gshmem_k_moe_dispatch", MAPPED, [](World& w, const Room& r, int pe) {
             return Args{0, w.sym(pe, r.x), w.sym(pe, r.y), w.sym(pe, r.z), w.loc(pe, r.q), w.loc(pe, r.q + 1024), w.loc(pe, r.p), w.loc(pe, r.ids), 9, 2, 700, 1};
         }},
        {"gshmem_k_moe_combine", BY_MTE, [](World& w, const Room& r, int pe) {
             return Args{0, w.loc(pe, r.p), w.sym(pe, r.x), w.loc(pe, r.q), w.loc(pe, r.ids), w.loc(pe, r.q + 1024), 9, 2, 175, 1, 0};
         }},
        {"gshmem_k_matmul_allreduce", BY_MTE, [](World& w, const Room& r, int pe) {
             return Args{0, w.sym(pe, r.x), w.loc(pe, r.p), w.loc(pe, r.p + 65536), w.sym(pe, r.y), w.sym(pe, r.z), 35, 70, 40, 1};
         }},
    };
    return all;
}

// Launches the kernel on the PEs for which `alive` holds.
int32_t launch(World& w, const Room& r, const Case& k, Fault& fault, const std::function<bool(int)>& alive)
{
    std::vector<Args> args;
    std::vector<const void*> argp;
    std::vector<const km_device_t*> devs;
    for (int pe = 0; pe < w.n(); pe++) {
        if (!alive(pe)) continue;
        args.push_back(k.args(w, r, pe));
        args.back().insert(args.back().begin(), w.state(pe));
        devs.push_back(w.device(pe));
    }
    for (const Args& a : args) argp.push_back(a.data());
    return km::launch_group(k.kernel, w.config.blocks, argp.data(), args[0].size() * 8, devs.data(), static_cast<uint32_t>(devs.size()), fault);
}

// One run with `fault`; then the same kernel again, on the survivors, with the abort word still set.
void run_with(const Config& c, const Case& k, uint8_t topology, Fault& fault)
{
    World w(c);
    const Room r = make_room(w);
    if (topology) w.queues(topology, (topology & GSHMEM_TOPO_MTE) != 0);
    fault.host = [&](bool) {
        for (int pe = 0; pe < w.n(); pe++) w.set_abort(pe, 1);
    };
    int32_t rc = launch(w, r, k, fault, [](int) { return true; });
    if (rc == KM_OK && fault.host_ran) {
        Fault none;
        const int victim = fault.kill == Fault::NEVER ? -1 : static_cast<int>(fault.victim);
        rc = launch(w, r, k, none, [=](int pe) { return pe != victim; });
    }
    if (rc != KM_OK)
        fail("%s, topology %u, PE %u dead from step %lld, engines stopped from %lld, abort at %lld of %llu: rc %d: %s", k.kernel, topology, fault.victim,
             static_cast<long long>(fault.kill), static_cast<long long>(fault.stop_engines), static_cast<long long>(fault.abort),
             static_cast<unsigned long long>(fault.steps), rc, km_last_report());
    w.check_canaries();
}

// What goes wrong in draw i: an abort out of the blue, a PE that dies, or engines that stop.
Fault drawn(km::Random& random, uint64_t steps, int pes, int i)
{
    const auto any = [&](uint64_t below) { return random.next() % (below + 1); };
    Fault f;
    if (i % 3 == 1) {
        f.kill = any(steps);
        f.victim = random.below(static_cast<uint32_t>(pes));
    }
    if (i % 3 == 2) f.stop_engines = any(steps);
    const uint64_t from = f.kill != Fault::NEVER ? f.kill : f.stop_engines != Fault::NEVER ? f.stop_engines : 0;
    if (i % 3 == 0 || random.below(2)) f.abort = from + any(steps); // else when nobody can go on
    return f;
}

void run_all(const Config& c, const std::vector<Case>& cases, bool full)
{
    if (c.pes == 1 || (!full && c.pes == 8)) return;
    km::Random random{c.seed * 31 + c.blocks};
    for (const Case& k : cases) {
        const uint8_t topologies[] = {0, GSHMEM_TOPO_ROCE, GSHMEM_TOPO_SDMA | GSHMEM_TOPO_MTE};
        for (uint8_t topology : topologies) {
            if ((topology && k.engines == BY_MTE) || (topology == GSHMEM_TOPO_ROCE && k.engines != ANY)) continue;
            Fault clean;
            run_with(c, k, topology, clean);
            for (int i = 0; i < (full ? 9 : 3); i++) {
                Fault f = drawn(random, clean.steps, c.pes, i);
                run_with(c, k, topology, f);
            }
        }
    }
}

} // namespace

// Tokens that a stopped engine still holds are not announced, though the abort ends the wait for them.
KERNEL_TEST(killed_announces_nothing)
{
    if (c.pes == 1) return;
    World w(c);
    const Room r = make_room(w);
    w.queues(GSHMEM_TOPO_SDMA | GSHMEM_TOPO_MTE, true);
    Fault fault;
    fault.stop_engines = 0;
    fault.host = [&](bool) {
        for (int pe = 0; pe < w.n(); pe++) w.set_abort(pe, 1);
    };
    for (const Case& k : collective())
        if (!std::strcmp(k.kernel, "gshmem_k_moe_dispatch") && launch(w, r, k, fault, [](int) { return true; }) != KM_OK) fail("%s", km_last_report());
    for (int pe = 0; pe < w.n(); pe++)
        for (int i = 0; i < w.n(); i++)
            if (w.sym_as<int32_t>(pe, r.z)[16 * i]) fail("PE %d was told that the tokens of PE %d had arrived", pe, i);
}

namespace {

struct LookArgs {
    uint64_t state, data, sig, bytes;
};

// Every block's last word of 1, 2, 3, ... is there.
void look(const LookArgs& a, uint64_t data)
{
    const uint64_t blocks = static_cast<uint64_t>(AscendC::GetBlockNum());
    for (uint64_t b = 0; b < blocks; b++) {
        const gshmem::Share s = gshmem::share_of(a.bytes, 512, b, blocks);
        if (s.size && gshmem::load_shared<uint32_t>(data + s.begin + s.size - 4) != (s.begin + s.size) / 4) AscendC::Trap();
    }
}

// PE 0 puts and signals; PE 1 looks as soon as it sees the signal.
void signal_and_look(const void* p)
{
    const LookArgs& a = *static_cast<const LookArgs*>(p);
    aclshmemx_set_state(reinterpret_cast<GM_ADDR>(a.state));
    if (aclshmem_my_pe() == 0)
        return gshmem_k_put_signal(reinterpret_cast<GM_ADDR>(a.state), reinterpret_cast<GM_ADDR>(a.data), reinterpret_cast<GM_ADDR>(a.data), a.bytes,
                                   reinterpret_cast<GM_ADDR>(a.sig), 5, 0, 1, 0);
    if (AscendC::GetBlockIdx() == 0 && aclshmem_signal_wait_until(gshmem::at<int32_t>(a.sig), ACLSHMEM_CMP_EQ, 5) == 5) look(a, a.data);
}

// PE 0, and PE 1 too when `both`, put slowly and meet; a block for which it was a good barrier looks at what was put.
void meet(const LookArgs& a, bool both)
{
    aclshmemx_set_state(reinterpret_cast<GM_ADDR>(a.state));
    const gshmem::Share s = gshmem::block_share(a.bytes, 512);
    aclshmemx_set_mte_config(0, 64, 0); // 32 bytes at a time
    const int me = aclshmem_my_pe(), other = 1 - me;
    const uint64_t mine = a.data + (me ? a.bytes : 0), theirs = a.data + (me ? 0 : a.bytes);
    if (me == 0 || both) gshmem::put_nbi<uint8_t>(mine + s.begin, mine + s.begin, s.size, other);
    aclshmem_barrier_all();
    if ((me == 1 || both) && !aclshmemx_aborted()) look(a, theirs);
}
void meet_one_way(const void* p) { meet(*static_cast<const LookArgs*>(p), false); }
void meet_both_ways(const void* p) { meet(*static_cast<const LookArgs*>(p), true); }

// `kernel` on two PEs, an abort of PE 0 at many steps; PE 1 is aborted when it waits for what will not come.
void run_look(const Config& c, const char* kernel, int runs)
{
    km::Random random{c.seed * 13 + c.blocks};
    Config two{2, 1 + c.blocks, c.schedule, 0};
    uint64_t steps = 0;
    for (int i = 0; i < runs; i++) {
        two.seed = random.next() % 1000; // all policies: some let a block fall behind
        World w(two);
        const uint64_t bytes = 20000, data = w.symmetric(2 * bytes), sig = w.symmetric(4);
        for (uint32_t k = 0; k < bytes / 4; k++) w.sym_as<uint32_t>(0, data)[k] = w.sym_as<uint32_t>(1, data + bytes)[k] = k + 1;
        Fault fault;
        if (i) fault.abort = random.next() % steps;
        fault.host = [&](bool stuck) {
            w.set_abort(0, 1);
            if (stuck) w.set_abort(1, 1);
        };
        Stream s(w);
        s.kernel(kernel, [&](int pe) { return Args{w.sym(pe, data), w.sym(pe, sig), bytes}; });
        s.run_with(fault);
        if (!i) steps = fault.steps;
    }
}

} // namespace

// A signal says that all blocks' data is there, also when the sender's blocks see an abort between the two.
KERNEL_TEST(killed_signal_means_data)
{
    if (c.pes != 3) return;
    km_register_kernel("signal_and_look", signal_and_look, sizeof(LookArgs));
    run_look(c, "signal_and_look", full ? 200 : 60);
}

// A barrier that a block did not see aborted was a good one, although others saw an abort in it.
KERNEL_TEST(killed_barrier_means_data)
{
    if (c.pes != 3) return;
    km_register_kernel("meet_one_way", meet_one_way, sizeof(LookArgs));
    km_register_kernel("meet_both_ways", meet_both_ways, sizeof(LookArgs));
    run_look(c, "meet_one_way", full ? 200 : 60);
    run_look(c, "meet_both_ways", full ? 200 : 60);
}

KERNEL_TEST(killed_one_sided) { run_all(c, one_sided(), full); }
KERNEL_TEST(killed_collective) { run_all(c, collective(), full); }
