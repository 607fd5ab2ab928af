// atomic.cpp: one atomic of a word of 4 or 8 bytes, with its old value. The scalar unit of a 950 has them; on other chips the host
// refuses the launch.
#include "kernel_entry.h"

using namespace gshmem;

#if __NPU_ARCH__ == 3510
namespace {

enum AtomicOp : uint64_t { ATOMIC_FETCH, ATOMIC_SWAP, ATOMIC_CAS, ATOMIC_ADD, ATOMIC_AND, ATOMIC_OR, ATOMIC_XOR };

// T is unsigned: sums wrap to the same bits for signed words.
template <typename T> ACLSHMEM_DEVICE T atomic_word(uint64_t op, uint64_t dst, uint64_t value, uint64_t compare, int32_t pe)
{
    const T v = static_cast<T>(value);
    switch (op) {
    case ATOMIC_FETCH: return atomic_fetch<T>(dst, pe);
    case ATOMIC_SWAP: return atomic_swap<T>(dst, v, pe);
    case ATOMIC_CAS: return atomic_compare_swap<T>(dst, static_cast<T>(compare), v, pe);
    case ATOMIC_ADD: return atomic_fetch_add<T>(dst, v, pe);
    case ATOMIC_AND: return atomic_bits<T>(dst, v, pe, BitOp::And);
    case ATOMIC_OR: return atomic_bits<T>(dst, v, pe, BitOp::Or);
    case ATOMIC_XOR: return atomic_bits<T>(dst, v, pe, BitOp::Xor);
    default: AscendC::Trap(); // the host launches no other
    }
    return v;
}

} // namespace
#endif

extern "C" GSHMEM_ENTRY void gshmem_k_atomic(GM_ADDR state, GM_ADDR dst, uint64_t op, uint64_t word_bytes, uint64_t value, uint64_t compare,
                                             GM_ADDR old_out, uint64_t pe)
{
    aclshmemx_set_state(state);
    if (!first_block()) return;
#if __NPU_ARCH__ == 3510
    const uint64_t d = address(dst), out = address(old_out);
    const int32_t p = static_cast<int32_t>(pe);
    if (word_bytes == 8) store_shared<uint64_t>(out, atomic_word<uint64_t>(op, d, value, compare, p));
    else store_shared<uint32_t>(out, atomic_word<uint32_t>(op, d, value, compare, p));
#else
    (void)dst, (void)op, (void)word_bytes, (void)value, (void)compare, (void)old_out, (void)pe;
    AscendC::Trap();
#endif
}
