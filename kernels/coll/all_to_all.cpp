// all_to_all.cpp: dst[i] of member j becomes src[j] of member i; bytes is the size of one part.
// Push, as allgather; src and dst must not overlap. Bytes out per PE: (n-1) x bytes.
#include "push.h"

using namespace gshmem;

extern "C" GSHMEM_ENTRY void gshmem_k_all_to_all(GM_ADDR state, uint64_t team, GM_ADDR dst, GM_ADDR src, uint64_t bytes)
{
    between_barriers(state, team, [=](const Team& t) {
        const uint64_t mine = address(dst) + bytes * static_cast<uint64_t>(t.me);
        for (int32_t i = 1; i <= t.n; i++) {
            const int32_t to = rotated(t, i);
            push(t, to, mine, address(src) + bytes * static_cast<uint64_t>(to), bytes);
        }
    });
}
