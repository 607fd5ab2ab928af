// reduce_scatter.cpp: dst of member i becomes the reduction of part i of all members' src; count is
// the elements of one part. Pull: (n-1) x count in per PE, two barriers. dst may be my part of src.
#include "reducer.h"

using namespace gshmem;

extern "C" GSHMEM_ENTRY void gshmem_k_reduce_scatter(GM_ADDR state, uint64_t team, GM_ADDR dst, GM_ADDR src, uint64_t count,
                                             uint64_t dtype, uint64_t op)
{
    between_barriers(state, team, [=](const Team& t) {
        with_dtype(dtype, [=](auto zero) {
            using T = decltype(zero);
            const Share s = block_share(count, REDUCE_GRAIN);
            const uint64_t to = address(dst) + s.begin * sizeof(T);
            reduce_range<T>(t, address(src), static_cast<uint64_t>(t.me) * count + s.begin, s.size, op, 1, [=](int32_t) { return to; });
        });
    });
}
