// allreduce.cpp: dst of every member becomes the reduction of all members' src, with the same bits.
//
// One-shot: everybody reads everything: (n-1) x count in per PE, two barriers; for small counts.
// Two-shot: member i reduces slice i and stores it to all: (n-1)/n x count in and out per PE, two
// barriers; for large counts. In place works there without a third barrier: slice i of every src
// is read by member i alone, and each piece is read from all before it is stored to any.
#include "reducer.h"

using namespace gshmem;

namespace {

template <typename T> ACLSHMEM_DEVICE void one_shot(const Team& t, uint64_t dst, uint64_t src, uint64_t count, uint64_t op)
{
    const Share s = block_share(count, REDUCE_GRAIN);
    reduce_range<T>(t, src, s.begin, s.size, op, 1, [=](int32_t) { return dst + s.begin * sizeof(T); });
}

template <typename T> ACLSHMEM_DEVICE void two_shot(const Team& t, uint64_t dst, uint64_t src, uint64_t count, uint64_t op)
{
    const Share slice = share_of(count, REDUCE_GRAIN, static_cast<uint64_t>(t.me), static_cast<uint64_t>(t.n));
    const Share s = block_share(slice.size, REDUCE_GRAIN);
    const uint64_t first = slice.begin + s.begin;
    reduce_range<T>(t, src, first, s.size, op, t.n,
                    [=](int32_t j) { return peer_address(dst + first * sizeof(T), t.pe(rotated(t, j))); });
}

} // namespace

extern "C" GSHMEM_ENTRY void gshmem_k_allreduce_one_shot(GM_ADDR state, uint64_t team, GM_ADDR dst, GM_ADDR src, uint64_t count,
                                                 uint64_t dtype, uint64_t op)
{
    between_barriers(state, team, [=](const Team& t) {
        with_dtype(dtype, [=](auto zero) { one_shot<decltype(zero)>(t, address(dst), address(src), count, op); });
    });
}

extern "C" GSHMEM_ENTRY void gshmem_k_allreduce_two_shot(GM_ADDR state, uint64_t team, GM_ADDR dst, GM_ADDR src, uint64_t count,
                                                 uint64_t dtype, uint64_t op)
{
    between_barriers(state, team, [=](const Team& t) {
        with_dtype(dtype, [=](auto zero) { two_shot<decltype(zero)>(t, address(dst), address(src), count, op); });
    });
}
