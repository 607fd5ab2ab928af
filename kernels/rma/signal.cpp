// signal.cpp: single words: put with signal, p, signals, waits, atomic add, quiet.
#include "kernel_entry.h"

using namespace gshmem;

// The blocks share the data; block 0 signals after all of them are done. waits: all blocks.
extern "C" GSHMEM_ENTRY void gshmem_k_put_signal(GM_ADDR state, GM_ADDR dst, GM_ADDR src, uint64_t bytes, GM_ADDR sig, int64_t value,
                                         uint64_t sig_op, uint64_t pe, uint64_t team)
{
    aclshmemx_set_state(state);
    const Share s = block_share(bytes, 512);
    put_before_signal<uint8_t>(address(dst) + s.begin, address(src) + s.begin, s.size, static_cast<int>(pe));
    core_barrier(team_of(static_cast<int32_t>(team)));
    if (first_block() && !aborted()) signal(address(sig), static_cast<int32_t>(value), static_cast<int>(sig_op), static_cast<int>(pe));
}

extern "C" GSHMEM_ENTRY void gshmem_k_put_value(GM_ADDR state, GM_ADDR dst, uint64_t value, uint64_t bytes, uint64_t pe)
{
    aclshmemx_set_state(state);
    if (!first_block()) return;
    const uint64_t target = peer_address(address(dst), static_cast<int>(pe));
    switch (bytes) {
    case 1: store_shared<uint8_t>(target, static_cast<uint8_t>(value)); break;
    case 2: store_shared<uint16_t>(target, static_cast<uint16_t>(value)); break;
    case 4: store_shared<uint32_t>(target, static_cast<uint32_t>(value)); break;
    default: store_shared<uint64_t>(target, value); break;
    }
}

extern "C" GSHMEM_ENTRY void gshmem_k_signal(GM_ADDR state, GM_ADDR sig, int64_t value, uint64_t sig_op, uint64_t pe)
{
    aclshmemx_set_state(state);
    if (first_block()) signal(address(sig), static_cast<int32_t>(value), static_cast<int>(sig_op), static_cast<int>(pe));
}

// seen_out may be null; it receives the int32 that ended the wait.
extern "C" GSHMEM_ENTRY void gshmem_k_signal_wait(GM_ADDR state, GM_ADDR sig, uint64_t cmp, int64_t value, GM_ADDR seen_out,
                                          uint64_t team)
{
    aclshmemx_set_state(state);
    if (!first_block()) return;
    wait_for_signal_of(team_of(static_cast<int32_t>(team)));
    const int32_t seen = aclshmem_signal_wait_until(at<int32_t>(address(sig)), static_cast<int>(cmp), static_cast<int32_t>(value));
    if (address(seen_out)) store_shared<int32_t>(address(seen_out), seen);
}

namespace {

template <typename T> ACLSHMEM_DEVICE void wait_word(GM_ADDR ivar, uint64_t cmp, uint64_t bits)
{
    wait_set<T>(address(ivar), 1, 0, static_cast<int>(cmp), from_bits<T>(bits)).wait_all();
}

} // namespace

extern "C" GSHMEM_ENTRY void gshmem_k_wait(GM_ADDR state, GM_ADDR ivar, uint64_t dtype, uint64_t cmp, uint64_t value_bits)
{
    aclshmemx_set_state(state);
    if (!first_block()) return;
    switch (dtype) {
    case DT_FLOAT: wait_word<float>(ivar, cmp, value_bits); break;
    case DT_INT8: wait_word<int8_t>(ivar, cmp, value_bits); break;
    case DT_UINT8: wait_word<uint8_t>(ivar, cmp, value_bits); break;
    case DT_INT16: wait_word<int16_t>(ivar, cmp, value_bits); break;
    case DT_UINT16: wait_word<uint16_t>(ivar, cmp, value_bits); break;
    case DT_INT32: wait_word<int32_t>(ivar, cmp, value_bits); break;
    case DT_UINT32: wait_word<uint32_t>(ivar, cmp, value_bits); break;
    case DT_INT64: wait_word<int64_t>(ivar, cmp, value_bits); break;
    case DT_UINT64: wait_word<uint64_t>(ivar, cmp, value_bits); break;
    default: AscendC::Trap(); // the host refuses other types
    }
}

extern "C" GSHMEM_ENTRY void gshmem_k_atomic_add(GM_ADDR state, GM_ADDR dst, uint64_t dtype, uint64_t value_bits, uint64_t pe)
{
    aclshmemx_set_state(state);
    if (!first_block()) return;
    const uint64_t d = address(dst);
    const int32_t p = static_cast<int32_t>(pe);
    switch (dtype) {
    case DT_FLOAT: atomic_add<float>(d, from_bits<float>(value_bits), p); break;
    case DT_HALF: atomic_add<half>(d, from_bits<half>(value_bits), p); break;
    case DT_BFLOAT16: atomic_add<bfloat16_t>(d, from_bits<bfloat16_t>(value_bits), p); break;
    case DT_INT8: atomic_add<int8_t>(d, from_bits<int8_t>(value_bits), p); break;
    case DT_INT16: atomic_add<int16_t>(d, from_bits<int16_t>(value_bits), p); break;
    case DT_INT32: atomic_add<int32_t>(d, from_bits<int32_t>(value_bits), p); break;
#if __NPU_ARCH__ == 3510
    case DT_UINT32: atomic_add<uint32_t>(d, from_bits<uint32_t>(value_bits), p); break;
    case DT_INT64: atomic_add<int64_t>(d, from_bits<int64_t>(value_bits), p); break;
    case DT_UINT64: atomic_add<uint64_t>(d, from_bits<uint64_t>(value_bits), p); break;
#endif
    default: AscendC::Trap(); // the host refuses other types
    }
}

extern "C" GSHMEM_ENTRY void gshmem_k_quiet(GM_ADDR state)
{
    aclshmemx_set_state(state);
    aclshmem_quiet();
}
