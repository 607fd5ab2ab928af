// test_model.cpp: the model itself. Each little kernel breaks one rule and must be caught by name;
// its repaired twin must pass. A model that is too kind or too strict fails here.
#include "harness/world.hpp"
#include "kernel_entry.h"
#include "../cpu_model/src/core.hpp"
#include <cstring>

using namespace AscendC;
using gshmem::at;
using gshmem::global;
using gshmem::load_rows;
using gshmem::local;
using gshmem::store_rows;

namespace {

struct Given { // arguments of every little kernel: its own memory, and whether to be wrong
    uint64_t state, a, b, peer, wrong;
};

using Little = void (*)(const Given&);
Little little = nullptr;

void run_little(const void* p) { little(*static_cast<const Given*>(p)); }

struct Outcome {
    int32_t rc;
    std::string report;
    std::vector<uint8_t> a, b; // PE 0's memory afterwards
};

Outcome run(Little k, bool wrong, Config c)
{
    km_register_kernel("little", run_little, sizeof(Given));
    World w(c);
    const uint64_t a = w.symmetric(4096), b = w.symmetric(4096);
    std::vector<Given> g;
    std::vector<const void*> argp;
    std::vector<const km_device_t*> devs;
    for (int i = 0; i < w.n(); i++) {
        fill_bytes(w.sym_host(i, a), 4096, i, 0);
        std::memset(w.sym_host(i, b), 0, 4096);
        g.push_back({w.state(i), w.sym(i, a), w.sym(i, b), uint64_t((i + 1) % w.n()), wrong});
    }
    for (int i = 0; i < w.n(); i++) {
        argp.push_back(&g[i]);
        devs.push_back(w.device(i));
    }
    little = k;
    Outcome o;
    o.rc = km_launch_group("little", c.blocks, argp.data(), sizeof(Given), devs.data(), uint32_t(w.n()));
    o.report = km_last_report();
    o.a.assign(w.sym_host(0, a), w.sym_host(0, a) + 4096);
    o.b.assign(w.sym_host(0, b), w.sym_host(0, b) + 4096);
    return o;
}

void expect_rule(Little k, const std::string& rule, Config c)
{
    const Outcome right = run(k, false, c);
    if (right.rc != KM_OK) fail("the right kernel for rule %s: %s", rule.c_str(), right.report.c_str());
    const Outcome wrong = run(k, true, c);
    if (wrong.report.find(rule + ": ") == std::string::npos) fail("rule %s was not reported: %s", rule.c_str(), wrong.report.c_str());
    if (wrong.report.find("test_model.cpp:") == std::string::npos && rule != "deadlock")
        fail("rule %s was reported without file and line: %s", rule.c_str(), wrong.report.c_str());
}

template <HardEvent e> void order(int id)
{
    SetFlag<e>(id);
    WaitFlag<e>(id);
}

void load(uint64_t from) { DataCopyPad(local<uint8_t>(0, 64), global<uint8_t>(from), DataCopyExtParams(1, 64, 0, 0, 0), DataCopyPadExtParams<uint8_t>{}); }
void store(uint64_t to) { DataCopyPad(global<uint8_t>(to), local<uint8_t>(0, 64), DataCopyExtParams(1, 64, 0, 0, 0)); }

void copy_through(const Given& g)
{
    load(g.a);
    if (!g.wrong) order<HardEvent::MTE2_MTE3>(0);
    store(g.b);
}
void overwrite_early(const Given& g) // the next load overtakes the store that still reads UB
{
    load(g.a);
    order<HardEvent::MTE2_MTE3>(0);
    store(g.b);
    if (!g.wrong) order<HardEvent::MTE3_MTE2>(0);
    load(g.a + 64);
}
void vector_after_load(const Given& g)
{
    const auto t = local<float>(0, 64);
    load(g.a);
    if (!g.wrong) order<HardEvent::MTE2_V>(1);
    Muls(t, t, 2.0f, 16);
}
void vector_chain(const Given& g)
{
    const auto t = local<float>(0, 64), u = local<float>(64, 64);
    Duplicate(t, 1.0f, 16);
    if (!g.wrong) PipeBarrier<PIPE_V>();
    Add(u, t, t, 16);
}
void scalar_after_load(const Given& g)
{
    load(g.a);
    if (!g.wrong) order<HardEvent::MTE2_S>(0);
    local<uint8_t>(0, 64).GetValue(3, km::Where::here());
}
void store_after_scalar(const Given& g)
{
    for (uint32_t i = 0; i < 64; i++) local<uint8_t>(0, 64).SetValue(i, uint8_t(i), km::Where::here());
    if (!g.wrong) order<HardEvent::S_MTE3>(0);
    store(g.b);
}
void two_stores(const Given& g)
{
    for (uint32_t i = 0; i < 64; i++) local<uint8_t>(0, 64).SetValue(i, 1);
    order<HardEvent::S_MTE3>(0);
    store(g.b);
    if (!g.wrong) PipeBarrier<PIPE_MTE3>();
    store(g.b + 32);
}
void read_back(const Given& g) // GM written by MTE3, read by MTE2
{
    for (uint32_t i = 0; i < 64; i++) local<uint8_t>(0, 64).SetValue(i, 1);
    order<HardEvent::S_MTE3>(0);
    store(g.b);
    if (!g.wrong) order<HardEvent::MTE3_MTE2>(0);
    DataCopyPad(local<uint8_t>(128, 64), global<uint8_t>(g.b), DataCopyExtParams(1, 64, 0, 0, 0), DataCopyPadExtParams<uint8_t>{});
}
void left_flag(const Given& g)
{
    SetFlag<HardEvent::MTE2_V>(2);
    if (!g.wrong) WaitFlag<HardEvent::MTE2_V>(2);
}
void double_set(const Given& g)
{
    SetFlag<HardEvent::S_V>(2);
    if (!g.wrong) WaitFlag<HardEvent::S_V>(2);
    PipeBarrier<PIPE_ALL>(); // the vector pipe has taken it
    SetFlag<HardEvent::S_V>(2);
    WaitFlag<HardEvent::S_V>(2);
}
void wait_without_set(const Given& g)
{
    if (!g.wrong) SetFlag<HardEvent::S_V>(2);
    WaitFlag<HardEvent::S_V>(2);
}
void bad_event(const Given& g) { order<HardEvent::S_V>(g.wrong ? 6 : 5); }
void unaligned_ub(const Given& g)
{
    DataCopyPad(LocalTensor<uint8_t>(TPosition::VECIN, g.wrong ? 16 : 32, 64), global<uint8_t>(g.a), DataCopyExtParams(1, 64, 0, 0, 0), DataCopyPadExtParams<uint8_t>{});
}
void oversized_tensor(const Given& g)
{
    DataCopyPad(LocalTensor<uint8_t>(TPosition::VECIN, 0, g.wrong ? 63 : 64), global<uint8_t>(g.a), DataCopyExtParams(1, 64, 0, 0, 0), DataCopyPadExtParams<uint8_t>{});
}
void end_of_ub(const Given& g)
{
    const uint32_t at = km::UB_BYTES - (g.wrong ? 32 : 64);
    DataCopyPad(LocalTensor<uint8_t>(TPosition::VECIN, at, 64), global<uint8_t>(g.a), DataCopyExtParams(1, 64, 0, 0, 0), DataCopyPadExtParams<uint8_t>{});
}
void wrong_position(const Given& g)
{
    DataCopyPad(LocalTensor<uint8_t>(g.wrong ? TPosition::A1 : TPosition::VECIN, 0, 64), global<uint8_t>(g.a), DataCopyExtParams(1, 64, 0, 0, 0), DataCopyPadExtParams<uint8_t>{});
}
void rounded_copy(const Given& g) { DataCopy(LocalTensor<uint8_t>(TPosition::VECIN, 0, 64), global<uint8_t>(g.a), g.wrong ? 63 : 64); }
void unaligned_gm(const Given& g)
{
    DataCopyPad(local<float>(0, 64), global<float>(g.a + (g.wrong ? 2 : 4)), DataCopyExtParams(1, 64, 0, 0, 0), DataCopyPadExtParams<float>{});
}
void past_buffer(const Given& g)
{
    DataCopyPad(local<uint8_t>(0, 64), global<uint8_t>(g.a + 4096 - (g.wrong ? 63 : 64)), DataCopyExtParams(1, 64, 0, 0, 0), DataCopyPadExtParams<uint8_t>{});
}
void no_memory(const Given& g) { load(g.wrong ? 64 : g.a); }
void left_dirty(const Given& g)
{
    auto t = global<int32_t>(g.b);
    t.SetValue(0, 5);
    if (!g.wrong) DataCacheCleanAndInvalid<int32_t, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(t);
}
void stale_spin(const Given& g) // block 1 never sees block 0's word unless it drops the line
{
    auto t = global<int32_t>(g.b);
    if (GetBlockIdx() == 0) {
        while (ReadGmByPassDCache<int32_t>(at<int32_t>(g.b + 64)) == 0) {}
        return WriteGmByPassDCache<int32_t>(at<int32_t>(g.b), 1);
    }
    if (g.wrong) (void)t.GetValue(0, km::Where::here());
    WriteGmByPassDCache<int32_t>(at<int32_t>(g.b + 64), 1); // block 0 may start
    while (t.GetValue(0, km::Where::here()) == 0)
        if (!g.wrong) dcci(at<void>(g.b), SINGLE_CACHE_LINE);
}
void two_writers(const Given& g)
{
    auto t = global<int32_t>(g.b + (g.wrong ? 4u : 64u) * uint32_t(GetBlockIdx()));
    t.SetValue(0, 5, km::Where::here());
    SyncAll<true>();
    DataCacheCleanAndInvalid<int32_t, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(t);
}
void under_dirty(const Given& g)
{
    auto t = global<int32_t>(g.b);
    t.SetValue(0, 5);
    if (!g.wrong) {
        dcci(at<void>(g.b), SINGLE_CACHE_LINE);
        DataSyncBarrier<MemDsbT::DDR>();
    }
    WriteGmByPassDCache<int32_t>(at<int32_t>(g.b + 4), 6, km::Where::here());
    dcci(at<void>(g.b), SINGLE_CACHE_LINE);
}
void not_cleaned(const Given& g) // MTE2 reads past the cache what the scalar unit wrote into it
{
    auto t = global<int32_t>(g.b);
    t.SetValue(0, 5);
    if (!g.wrong) dcci(at<void>(g.b), SINGLE_CACHE_LINE);
    order<HardEvent::S_MTE2>(0);
    load(g.b);
    PipeBarrier<PIPE_ALL>();
    dcci(at<void>(g.b), SINGLE_CACHE_LINE);
}
void left_atomic(const Given& g)
{
    SetAtomicAdd<int32_t>();
    if (!g.wrong) SetAtomicNone();
}
void atomic_type(const Given& g)
{
    local<int32_t>(0, 64).SetValue(0, 1);
    order<HardEvent::S_MTE3>(0);
    if (g.wrong) SetAtomicAdd<float>();
    else SetAtomicAdd<int32_t>();
    DataCopyPad(global<int32_t>(g.b), local<int32_t>(0, 64), DataCopyExtParams(1, 4, 0, 0, 0));
    SetAtomicNone();
}
void lost_block(const Given& g)
{
    if (g.wrong && GetBlockIdx() == 1) return;
    SyncAll<true>();
}
void queue_reuse(const Given& g)
{
    TPipe pipe;
    TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> q;
    pipe.InitBuffer(q, 2, 64);
    for (int i = 0; i < 5; i++) {
        auto in = q.AllocTensor<uint8_t>();
        DataCopyPad(in, global<uint8_t>(g.a + 64 * i), DataCopyExtParams(1, 64, 0, 0, 0), DataCopyPadExtParams<uint8_t>{});
        q.EnQue(in);
        auto out = q.DeQue<uint8_t>();
        DataCopyPad(global<uint8_t>(g.b + 64 * i), out, DataCopyExtParams(1, 64, 0, 0, 0));
        if (!g.wrong) q.FreeTensor(out);
    }
}

} // namespace

KERNEL_TEST(model_rules)
{
    if (c.pes != 1 || c.blocks != 1) return;
    expect_rule(copy_through, "order", c);
    expect_rule(overwrite_early, "order", c);
    expect_rule(vector_after_load, "order", c);
    expect_rule(vector_chain, "order", c);
    expect_rule(scalar_after_load, "order", c);
    expect_rule(store_after_scalar, "order", c);
    expect_rule(two_stores, "order", c);
    expect_rule(read_back, "order", c);
    expect_rule(left_flag, "left-flag", c);
    expect_rule(double_set, "double-set", c);
    expect_rule(wait_without_set, "wait-without-set", c);
    expect_rule(bad_event, "event-id", c);
    expect_rule(unaligned_ub, "ub-align", c);
    expect_rule(oversized_tensor, "ub-bound", c);
    expect_rule(end_of_ub, "ub-bound", c);
    expect_rule(wrong_position, "position", c);
    expect_rule(rounded_copy, "copy-size", c);
    expect_rule(unaligned_gm, "gm-align", c);
    expect_rule(past_buffer, "bound", c);
    expect_rule(no_memory, "address", c);
    expect_rule(left_dirty, "left-dirty", c);
    expect_rule(under_dirty, "under-dirty", c);
    expect_rule(not_cleaned, "not-cleaned", c);
    expect_rule(left_atomic, "left-atomic", c);
    expect_rule(atomic_type, "atomic-type", c);
    expect_rule(queue_reuse, "queue", c);
    Config two = c;
    two.blocks = 2;
    expect_rule(stale_spin, "stale-spin", two);
    expect_rule(two_writers, "two-writers", two);
    expect_rule(lost_block, "deadlock", two);
}

namespace {

// PE p sends 64 bytes and a flag to its neighbour, whose copy of the data must be whole.
void data_then_flag(const Given& g)
{
    aclshmemx_set_state(reinterpret_cast<GM_ADDR>(g.state));
    const int pe = int(g.peer);
    load(g.a);
    order<HardEvent::MTE2_MTE3>(0);
    store(gshmem::peer_address(g.b, pe));
    if (!g.wrong) PipeBarrier<PIPE_ALL>();
    gshmem::store_shared<int32_t>(gshmem::peer_address(g.b + 1024, pe), 1);
    gshmem::wait_reached(g.b + 1024, 1);
    load(g.b); // what arrived, kept aside
    order<HardEvent::MTE2_MTE3>(0);
    store(g.b + 2048);
}

// The same with two scalar stores, which pass each other without a barrier.
void word_then_flag(const Given& g)
{
    aclshmemx_set_state(reinterpret_cast<GM_ADDR>(g.state));
    const int pe = int(g.peer);
    gshmem::store_shared<int32_t>(gshmem::peer_address(g.b, pe), 0x1234);
    if (!g.wrong) DataSyncBarrier<MemDsbT::DDR>();
    gshmem::store_shared<int32_t>(gshmem::peer_address(g.b + 1024, pe), 1);
    gshmem::wait_reached(g.b + 1024, 1);
    gshmem::store_shared<int32_t>(g.b + 2048, gshmem::load_shared<int32_t>(g.b));
}

// Two words of one line, written through the caches of PE 0's two blocks one after the other: the
// second write-back carries the old neighbour, unless the line was dropped first.
void stale_neighbour(const Given& g)
{
    auto t = global<int32_t>(g.b);
    const bool second = GetBlockIdx() == 1;
    if (second && g.wrong) (void)t.GetValue(0);
    SyncAll<true>();
    if (!second) {
        t.SetValue(0, 7);
        dcci(at<void>(g.b), SINGLE_CACHE_LINE);
        DataSyncBarrier<MemDsbT::DDR>();
    }
    SyncAll<true>();
    if (second) {
        t.SetValue(1, 8);
        dcci(at<void>(g.b), SINGLE_CACHE_LINE);
    }
}

bool differs(const Outcome& o, const void* want, size_t bytes, size_t at) { return std::memcmp(o.b.data() + at, want, bytes) != 0; }

} // namespace

// What no rule of one core can see shows as wrong data under the lazy schedule.
KERNEL_TEST(model_shows_races)
{
    if (c.pes != 2 || c.blocks != 1 || c.schedule != KM_LAZY) return;
    uint8_t sent[64];
    fill_bytes(sent, 64, 1, 0);
    const int32_t word = 0x1234, words[2] = {7, 8};
    int data = 0, flag = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        Config k = c;
        k.seed = seed;
        if (differs(run(data_then_flag, false, k), sent, 64, 2048)) fail("seed %llu: right data_then_flag lost data", (unsigned long long)seed);
        if (differs(run(word_then_flag, false, k), &word, 4, 2048)) fail("seed %llu: right word_then_flag lost data", (unsigned long long)seed);
        data += differs(run(data_then_flag, true, k), sent, 64, 2048);
        flag += differs(run(word_then_flag, true, k), &word, 4, 2048);
        k.pes = 1;
        k.blocks = 2;
        if (differs(run(stale_neighbour, false, k), words, 8, 0)) fail("seed %llu: right stale_neighbour lost a word", (unsigned long long)seed);
        if (!differs(run(stale_neighbour, true, k), words, 8, 0)) fail("seed %llu: the neighbour's word survived a stale write-back", (unsigned long long)seed);
    }
    if (data < 10 || flag < 5) fail("a missing wait showed in only %d and %d of 20 seeds", data, flag);
}

namespace {
void padding(const Given& g)
{
    const auto t = local<uint16_t>(0, 128);
    DataCopyPad(t, global<uint16_t>(g.a), DataCopyExtParams(2, 6, 10, 1, 0), DataCopyPadExtParams<uint16_t>{true, 2, 3, 0x4242});
    order<HardEvent::MTE2_MTE3>(0);
    DataCopyPad(global<uint16_t>(g.b), t, DataCopyExtParams(1, 128, 0, 0, 0));
}
} // namespace

KERNEL_TEST(model_padding)
{
    if (c.pes != 1 || c.blocks != 1) return;
    const Outcome o = run(padding, false, c);
    if (o.rc) fail("%s", o.report.c_str());
    const auto* b = reinterpret_cast<const uint16_t*>(o.b.data());
    const auto* a = reinterpret_cast<const uint16_t*>(o.a.data());
    for (int row = 0; row < 2; row++)
        for (int i = 0; i < 16; i++) {
            const uint16_t want = i >= 2 && i < 5 ? a[row * 8 + i - 2] : 0x4242;
            if (b[row * 32 + i] != want) fail("row %d, padded element %d is 0x%04x, not 0x%04x", row, i, b[row * 32 + i], want);
        }
}

KERNEL_TEST(model_arguments)
{
    if (c.pes != 1 || c.blocks != 1) return;
    World w(c);
    uint64_t args[2] = {w.state(0), 0};
    if (km_launch("no_such", 1, args, 16, w.device(0)) != KM_UNKNOWN_KERNEL || !std::strstr(km_last_report(), "no_such")) fail("an unknown kernel");
    if (km_launch("gshmem_k_barrier", 1, args, 8, w.device(0)) != KM_BAD_ARGUMENT) fail("too few arguments");
    if (km_launch("gshmem_k_barrier", 0, args, 16, w.device(0)) != KM_BAD_ARGUMENT) fail("0 blocks");
    if (km_launch("gshmem_k_barrier", 49, args, 16, w.device(0)) != KM_BAD_ARGUMENT) fail("49 blocks");
    if (km_launch("gshmem_k_barrier", 48, args, 16, w.device(0)) != KM_OK) fail("48 blocks: %s", km_last_report());
    km_device_t old = *w.device(0);
    old.size -= 8;
    if (km_launch("gshmem_k_barrier", 1, args, 16, &old) != KM_BAD_ARGUMENT) fail("an old km_device_t");
    if (km_kernel_args_size("gshmem_k_allgather") != 40 || km_kernel_args_size("x") != -1) fail("km_kernel_args_size");
}
