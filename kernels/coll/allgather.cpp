// allgather.cpp: dst[i] of every member becomes src of member i.
// Push: each member stores its part into all others, starting with its right neighbour. Bytes out
// and in per PE: (n-1) x bytes. src may be dst + me x bytes. Two barriers: the peers' dst is free,
// and all parts have arrived.
#include "push.h"

using namespace gshmem;

extern "C" GSHMEM_ENTRY void gshmem_k_allgather(GM_ADDR state, uint64_t team, GM_ADDR dst, GM_ADDR src, uint64_t bytes)
{
    between_barriers(state, team, [=](const Team& t) {
        const uint64_t mine = address(dst) + bytes * static_cast<uint64_t>(t.me);
        for (int32_t i = 1; i <= t.n; i++) push(t, rotated(t, i), mine, address(src), bytes);
    });
}
