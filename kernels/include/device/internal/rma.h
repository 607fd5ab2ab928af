// rma.h: which engine carries a transfer, and the transfer itself.
#ifndef GSHMEM_DEVICE_RMA_IMPL_H
#define GSHMEM_DEVICE_RMA_IMPL_H

#include "device/internal/engines.h"

namespace gshmem {

// The default staging window is the context's; blocking forms add quiet.
template <typename T> ACLSHMEM_DEVICE void put_by_mte(uint64_t dst, uint64_t src, uint64_t bytes, int pe)
{
    const Window& w = context().mte;
    copy_gm<T>(peer_address(dst, pe), src, bytes, w.offset, w.size, w.event);
}
template <typename T> ACLSHMEM_DEVICE void get_by_mte(uint64_t dst, uint64_t src, uint64_t bytes, int pe)
{
    const Window& w = context().mte;
    copy_gm<T>(dst, peer_address(src, pe), bytes, w.offset, w.size, w.event);
}

template <typename T> ACLSHMEM_DEVICE void put_nbi(uint64_t dst, uint64_t src, uint64_t elems, int pe)
{
    if (!by_engine(GSHMEM_OP_WRITE, src, dst, elems * sizeof(T), pe)) put_by_mte<T>(dst, src, elems * sizeof(T), pe);
}
template <typename T> ACLSHMEM_DEVICE void get_nbi(uint64_t dst, uint64_t src, uint64_t elems, int pe)
{
    if (!by_engine(GSHMEM_OP_READ, dst, src, elems * sizeof(T), pe)) get_by_mte<T>(dst, src, elems * sizeof(T), pe);
}
template <typename T> ACLSHMEM_DEVICE void put(uint64_t dst, uint64_t src, uint64_t elems, int pe)
{
    put_nbi<T>(dst, src, elems, pe);
    engine_quiet(pe);
}
template <typename T> ACLSHMEM_DEVICE void get(uint64_t dst, uint64_t src, uint64_t elems, int pe)
{
    get_nbi<T>(dst, src, elems, pe);
    engine_quiet(pe);
}

// Strided forms always use MTE. Strides count elements and may be zero or negative.
template <typename T> ACLSHMEM_DEVICE void iput(uint64_t dst, uint64_t src, ptrdiff_t dst_stride, ptrdiff_t src_stride, uint64_t elems, int pe)
{
    const Window& w = context().mte;
    const int64_t size = sizeof(T);
    copy_gm_rows<T>(peer_address(dst, pe), src, elems, sizeof(T), dst_stride * size, src_stride * size, w.offset, w.size, w.event);
    quiet();
}
template <typename T> ACLSHMEM_DEVICE void iget(uint64_t dst, uint64_t src, ptrdiff_t dst_stride, ptrdiff_t src_stride, uint64_t elems, int pe)
{
    const Window& w = context().mte;
    const int64_t size = sizeof(T);
    copy_gm_rows<T>(dst, peer_address(src, pe), elems, sizeof(T), dst_stride * size, src_stride * size, w.offset, w.size, w.event);
    quiet();
}
// 16-byte elements travel as rows of 16 bytes.
ACLSHMEM_DEVICE void icopy_bytes(uint64_t dst, uint64_t src, uint64_t size, int64_t dst_step, int64_t src_step, uint64_t elems)
{
    const Window& w = context().mte;
    copy_gm_rows<uint8_t>(dst, src, elems, size, dst_step, src_step, w.offset, w.size, w.event);
    quiet();
}

template <typename T> ACLSHMEM_DEVICE void put_rows_nbi(uint64_t dst, uint64_t src, const non_contiguous_copy_param& p, int pe)
{
    const Window& w = context().mte;
    copy_gm_rows<T>(peer_address(dst, pe), src, p, w.offset, w.size, w.event);
}
template <typename T> ACLSHMEM_DEVICE void get_rows_nbi(uint64_t dst, uint64_t src, const non_contiguous_copy_param& p, int pe)
{
    const Window& w = context().mte;
    copy_gm_rows<T>(dst, peer_address(src, pe), p, w.offset, w.size, w.event);
}

// SET is one store; ADD is an adding store. Neither waits for earlier transfers: callers that
// signal data complete it first (ADD by MTE does so itself). By RDMA where nothing is mapped.
ACLSHMEM_DEVICE void signal(uint64_t sig, int32_t value, int op, int pe)
{
    if (!is_mapped(pe)) {
        (void)engine_atomic<int32_t>(ENGINE_RDMA, op == 1 ? GSHMEM_OP_ADD : GSHMEM_OP_SWAP, sig, value, 0, pe);
        return;
    }
    if (op == 1) add_by_store<int32_t>(peer_address(sig, pe), value);
    else store_shared<int32_t>(peer_address(sig, pe), value);
}

// The data of a put with signal: by MTE, or by RDMA where nothing is mapped. Complete on return.
template <typename T> ACLSHMEM_DEVICE void put_before_signal(uint64_t dst, uint64_t src, uint64_t bytes, int pe)
{
    if (is_mapped(pe)) put_by_mte<T>(dst, src, bytes, pe);
    else by_engine(GSHMEM_OP_WRITE, src, dst, bytes, pe);
    engine_quiet(pe);
}

} // namespace gshmem
#endif
