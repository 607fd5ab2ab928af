// broadcast.cpp: dst of every member becomes src of the root (src matters on the root only).
// Small: the root stores to all, (n-1) x bytes out of the root. Large: the root scatters n slices,
// and each member stores its slice to the others: about 2 x bytes out of the root, bytes out of
// the others (van de Geijn's scatter and allgather).
#include "push.h"

using namespace gshmem;

namespace {

constexpr uint64_t SCATTER_FROM = 64 * 1024;

ACLSHMEM_DEVICE void direct(const Team& t, uint64_t dst, uint64_t src, uint64_t bytes, int32_t root)
{
    if (t.me != root) return;
    for (int32_t i = 1; i <= t.n; i++) push(t, rotated(t, i), dst, src, bytes);
}

ACLSHMEM_DEVICE void scatter_gather(const Team& t, uint64_t dst, uint64_t src, uint64_t bytes, int32_t root)
{
    const uint64_t parts = static_cast<uint64_t>(t.n);
    if (t.me == root) {
        for (int32_t i = 1; i <= t.n; i++) {
            const int32_t to = rotated(t, i);
            const Share s = share_of(bytes, 512, static_cast<uint64_t>(to), parts);
            push(t, to, dst + s.begin, src + s.begin, s.size);
        }
    }
    team_barrier(t);
    if (aborted()) return;
    const Share s = share_of(bytes, 512, static_cast<uint64_t>(t.me), parts);
    for (int32_t i = 1; i < t.n; i++) push(t, rotated(t, i), dst + s.begin, dst + s.begin, s.size);
}

} // namespace

extern "C" GSHMEM_ENTRY void gshmem_k_broadcast(GM_ADDR state, uint64_t team, GM_ADDR dst, GM_ADDR src, uint64_t bytes, uint64_t root)
{
    between_barriers(state, team, [=](const Team& t) {
        if (t.n > 2 && bytes >= SCATTER_FROM) scatter_gather(t, address(dst), address(src), bytes, static_cast<int32_t>(root));
        else direct(t, address(dst), address(src), bytes, static_cast<int32_t>(root));
    });
}
