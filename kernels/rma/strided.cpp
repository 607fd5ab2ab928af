// strided.cpp: iput and iget of elements of 1 to 16 bytes. Strides are bytes between the starts of
// two elements; they may be zero or negative, and then elements are stored in index order, so one
// block does all the work when the targets may overlap.
#include "kernel_entry.h"

using namespace gshmem;

namespace {

ACLSHMEM_DEVICE Share strided_share(uint64_t count, uint64_t elem_bytes, int64_t dst_stride)
{
    const int64_t size = static_cast<int64_t>(elem_bytes);
    if (dst_stride < size && dst_stride > -size) return Share{0, first_block() ? count : 0};
    return block_share(count, 1);
}

} // namespace

extern "C" GSHMEM_ENTRY void gshmem_k_put_strided(GM_ADDR state, GM_ADDR dst, GM_ADDR src, uint64_t elem_bytes, int64_t dst_stride,
                                          int64_t src_stride, uint64_t count, uint64_t pe)
{
    aclshmemx_set_state(state);
    const Share s = strided_share(count, elem_bytes, dst_stride);
    const int64_t first = static_cast<int64_t>(s.begin);
    icopy_bytes(peer_address(address(dst), static_cast<int>(pe)) + static_cast<uint64_t>(first * dst_stride),
                address(src) + static_cast<uint64_t>(first * src_stride), elem_bytes, dst_stride, src_stride, s.size);
}

extern "C" GSHMEM_ENTRY void gshmem_k_get_strided(GM_ADDR state, GM_ADDR dst, GM_ADDR src, uint64_t elem_bytes, int64_t dst_stride,
                                          int64_t src_stride, uint64_t count, uint64_t pe)
{
    aclshmemx_set_state(state);
    const Share s = strided_share(count, elem_bytes, dst_stride);
    const int64_t first = static_cast<int64_t>(s.begin);
    icopy_bytes(address(dst) + static_cast<uint64_t>(first * dst_stride),
                peer_address(address(src), static_cast<int>(pe)) + static_cast<uint64_t>(first * src_stride), elem_bytes, dst_stride,
                src_stride, s.size);
}
