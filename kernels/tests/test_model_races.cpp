// test_model_races.cpp: what no rule of one core can see shows as wrong data; padding; what a launch refuses.
#include "harness/little.hpp"

using namespace AscendC;
using gshmem::at;
using gshmem::global;
using gshmem::local;

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
