// kernel_entry.h: what every kernel source of ours includes. Declares all kernels of
// kernel_table.def, so a source whose signature differs from the table does not compile.
#ifndef GSHMEM_KERNEL_ENTRY_H
#define GSHMEM_KERNEL_ENTRY_H

#include "device/shmem_device.h"

// How every kernel here begins.
#define GSHMEM_ENTRY ACLSHMEM_GLOBAL_VECTOR GSHMEM_TOGETHER

#define GSHMEM_KERNEL(name, args) extern "C" GSHMEM_ENTRY void name(GM_ADDR state args);
#define G(x) , GM_ADDR x
#define U(x) , uint64_t x
#define I(x) , int64_t x
#include "kernel_table.def"

namespace gshmem {

// aclDataType numbers.
enum DType : uint64_t {
    DT_FLOAT = 0, DT_HALF = 1, DT_INT8 = 2, DT_INT32 = 3, DT_UINT8 = 4, DT_INT16 = 6, DT_UINT16 = 7,
    DT_UINT32 = 8, DT_INT64 = 9, DT_UINT64 = 10, DT_DOUBLE = 11, DT_BOOL = 12, DT_BFLOAT16 = 27
};
enum ReduceOp : uint64_t { OP_SUM = 0, OP_MAX = 1, OP_MIN = 2, OP_PROD = 3 };

struct Share {
    uint64_t begin, size;
};

// Part `index` of `parts` of [0, total), in whole grains, so that parts of one buffer do not share
// a 512-byte L2 line when the buffer is aligned.
ACLSHMEM_DEVICE Share share_of(uint64_t total, uint64_t grain, uint64_t index, uint64_t parts)
{
    const uint64_t each = round_up((total + parts - 1) / parts, grain);
    const uint64_t begin = each * index < total ? each * index : total;
    const uint64_t end = total - begin < each ? total : begin + each;
    return Share{begin, end - begin};
}
ACLSHMEM_DEVICE Share block_share(uint64_t total, uint64_t grain)
{
    return share_of(total, grain, static_cast<uint64_t>(AscendC::GetBlockIdx()), static_cast<uint64_t>(AscendC::GetBlockNum()));
}

ACLSHMEM_DEVICE uint64_t address(GM_ADDR p) { return reinterpret_cast<uint64_t>(p); }
ACLSHMEM_DEVICE bool first_block() { return AscendC::GetBlockIdx() == 0; }
ACLSHMEM_DEVICE bool is_member(const Team& t) { return t.me >= 0; }

// The member that is `step` (at most n) after me, so that members do not all start with the same one.
ACLSHMEM_DEVICE int32_t rotated(const Team& t, int32_t step) { return static_cast<int32_t>(around(static_cast<int64_t>(t.me) + step, t.n)); }

// The shape of most collectives: members meet, work unless the meeting was aborted, and meet again.
// body(team) is the work. A PE outside the team does nothing and does not wait.
template <typename Body> ACLSHMEM_DEVICE void between_barriers(GM_ADDR state, uint64_t team, Body body)
{
    aclshmemx_set_state(state);
    const Team t = team_of(static_cast<int32_t>(team));
    if (!is_member(t)) return;
    team_barrier(t);
    if (aborted()) return;
    body(t);
    team_barrier(t);
}

} // namespace gshmem
#endif
