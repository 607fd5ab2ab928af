// test_model.cpp: the model itself. Each little kernel breaks one rule and must be caught by name;
// its repaired twin must pass. A model that is too kind or too strict fails here.
#include "harness/little.hpp"

using namespace AscendC;
using gshmem::at;
using gshmem::global;
using gshmem::local;

namespace {

void expect_rule(Little k, const std::string& rule, Config c)
{
    const Outcome right = run(k, false, c);
    if (right.rc != KM_OK) fail("the right kernel for rule %s: %s", rule.c_str(), right.report.c_str());
    const Outcome wrong = run(k, true, c);
    if (wrong.report.find(rule + ": ") == std::string::npos) fail("rule %s was not reported: %s", rule.c_str(), wrong.report.c_str());
    if (wrong.report.find("test_model.cpp:") == std::string::npos && rule != "deadlock")
        fail("rule %s was reported without file and line: %s", rule.c_str(), wrong.report.c_str());
}

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
void core_state(const Given& g)
{
    if (!g.wrong) InitSocState();
    load(g.a);
    order<HardEvent::MTE2_MTE3>(0);
    store(g.b);
}
void core_state_of_vectors(const Given& g)
{
    if (!g.wrong) InitSocState();
    Duplicate(local<float>(0, 64), 1.0f, 16);
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
    little_initializes = true;
    expect_rule(core_state, "core-state", c);
    expect_rule(core_state_of_vectors, "core-state", c);
    little_initializes = false;
    expect_rule(left_atomic, "left-atomic", c);
    expect_rule(atomic_type, "atomic-type", c);
    expect_rule(queue_reuse, "queue", c);
    Config two = c;
    two.blocks = 2;
    expect_rule(stale_spin, "stale-spin", two);
    expect_rule(two_writers, "two-writers", two);
    expect_rule(lost_block, "deadlock", two);
}
