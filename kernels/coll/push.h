// push.h: one member's block of work pushed to another member, shared by this launch's blocks.
#ifndef GSHMEM_COLL_PUSH_H
#define GSHMEM_COLL_PUSH_H

#include "kernel_entry.h"

namespace gshmem {

// My share of bytes of src, to dst on member `to`. Complete after a barrier of the team.
ACLSHMEM_DEVICE void push(const Team& t, int32_t to, uint64_t dst, uint64_t src, uint64_t bytes)
{
    const Share s = block_share(bytes, 512);
    if (to == t.me && dst == src) return;
    put_nbi<uint8_t>(dst + s.begin, src + s.begin, s.size, t.pe(to));
}

} // namespace gshmem
#endif
