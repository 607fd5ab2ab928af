// memory.h: scalar access to global memory, the state struct, and addresses on other PEs.
#ifndef GSHMEM_DEVICE_MEMORY_H
#define GSHMEM_DEVICE_MEMORY_H

#include "device/internal/platform.h"

namespace gshmem {

template <typename T> ACLSHMEM_DEVICE __gm__ T* at(uint64_t addr) { return reinterpret_cast<__gm__ T*>(addr); }
template <typename T> ACLSHMEM_DEVICE uint64_t addr_of(__gm__ T* p) { return reinterpret_cast<uint64_t>(p); }

// A word that nobody changes while the kernel runs: through the data cache.
template <typename T> ACLSHMEM_DEVICE T load_constant(uint64_t addr)
{
    AscendC::GlobalTensor<T> t;
    t.SetGlobalBuffer(at<T>(addr), 1);
    return t.GetValue(0);
}

// A word that others change: past the data cache, which is not coherent.
template <typename T> ACLSHMEM_DEVICE T load_shared(uint64_t addr) { return AscendC::ReadGmByPassDCache<T>(at<T>(addr)); }
template <typename T> ACLSHMEM_DEVICE void store_shared(uint64_t addr, T v) { AscendC::WriteGmByPassDCache<T>(at<T>(addr), v); }

// Drops what the data cache holds, so that later scalar reads see other cores' and PEs' data, and
// writes back what this core wrote through it.
ACLSHMEM_DEVICE void refresh_cache()
{
    AscendC::GlobalTensor<uint8_t> all;
    all.SetGlobalBuffer(at<uint8_t>(raw_context().state), 64);
    AscendC::DataCacheCleanAndInvalid<uint8_t, AscendC::CacheLine::ENTIRE_DATA_CACHE, AscendC::DcciDst::CACHELINE_OUT>(all);
}

// Everything this core did to global memory, by any pipe, is done when this returns.
ACLSHMEM_DEVICE void quiet()
{
    AscendC::PipeBarrier<PIPE_ALL>();
    refresh_cache();
    AscendC::DataSyncBarrier<AscendC::MemDsbT::DDR>();
}

ACLSHMEM_DEVICE Window load_window(uint64_t config)
{
    return Window{static_cast<uint32_t>(load_constant<int64_t>(config + offsetof(gshmem_ub_config_t, ub))),
                  load_constant<uint32_t>(config + offsetof(gshmem_ub_config_t, ub_size)), load_constant<uint32_t>(config + offsetof(gshmem_ub_config_t, sync_id))};
}

#define GSHMEM_FIELD(type, name) load_constant<type>(state + offsetof(gshmem_device_state_t, name))

// Drops the data cache first: whether it outlives a kernel is not documented, and the host changes the struct, its tables and its teams
// between kernels by copies that no core's cache sees.
ACLSHMEM_DEVICE void attach(uint64_t state)
{
    Context& c = raw_context();
    c = Context{};
    c.state = state;
    refresh_cache();
    c.heap_base = GSHMEM_FIELD(uint64_t, heap_base);
    c.heap_size = GSHMEM_FIELD(uint64_t, heap_size);
    c.host_heap_base = GSHMEM_FIELD(uint64_t, host_heap_base);
    c.host_heap_size = c.heap_size; // of the public struct; ours may differ
    c.peers = GSHMEM_FIELD(uint64_t, p2p_device_heap_base);
    c.host_peers = GSHMEM_FIELD(uint64_t, p2p_host_heap_base);
    c.me = GSHMEM_FIELD(int32_t, mype);
    c.n = GSHMEM_FIELD(int32_t, npes);
    c.mte = load_window(state + offsetof(gshmem_device_state_t, mte_config));
    c.sdma = load_window(state + offsetof(gshmem_device_state_t, sdma_config));
    c.rdma = load_window(state + offsetof(gshmem_device_state_t, rdma_config));
    c.udma = load_window(state + offsetof(gshmem_device_state_t, udma_config));
    if (GSHMEM_FIELD(uint64_t, magic) == GSHMEM_STATE_MAGIC) {
        c.abort_addr = GSHMEM_FIELD(uint64_t, abort_addr);
        c.host_heap_size = GSHMEM_FIELD(uint64_t, host_heap_size);
        c.host_heap_address = GSHMEM_FIELD(uint64_t, host_heap_address);
        c.engines = (GSHMEM_FIELD(uint64_t, qp_info) | GSHMEM_FIELD(uint64_t, sdma_workspace_addr) | GSHMEM_FIELD(uint64_t, udma_queues)) != 0;
    }
    c.attached = GSHMEM_STATE_MAGIC;
}

#undef GSHMEM_FIELD

ACLSHMEM_DEVICE Context& context()
{
    Context& c = raw_context();
    if (c.attached != GSHMEM_STATE_MAGIC) attach(GSHMEM_FIXED_STATE_ADDR);
    return c;
}

// Where `addr`, in this PE's heap of `size` bytes at `own`, lies on `pe` by a table of heap bases. 0: not
// in this heap, no table, or nothing of pe's there.
ACLSHMEM_DEVICE uint64_t moved(uint64_t addr, uint64_t own, uint64_t size, uint64_t bases, int pe)
{
    if (!bases || addr - own >= size) return 0;
    const uint64_t base = load_constant<uint64_t>(bases + 8 * static_cast<uint64_t>(pe));
    return base ? base + (addr - own) : 0;
}

ACLSHMEM_DEVICE bool exists(int pe) { return pe >= 0 && pe < context().n; }

// The same in the host-side heap, by the device's addresses of it or by the CPU's.
ACLSHMEM_DEVICE uint64_t moved_host(uint64_t addr, uint64_t bases, int pe)
{
    const Context& c = context();
    const uint64_t found = moved(addr, c.host_heap_base, c.host_heap_size, bases, pe);
    return found || !c.host_heap_address ? found : moved(addr, c.host_heap_address, c.host_heap_size, bases, pe);
}

// The address, in this core's view, of what `addr` is on `pe`. 0 when addr is not symmetric or
// the peer is not mapped: an access there is a fault, never a write to the wrong place.
ACLSHMEM_DEVICE uint64_t peer_address(uint64_t addr, int pe)
{
    if (!exists(pe)) return 0;
    const Context& c = context();
    const uint64_t found = moved(addr, c.heap_base, c.heap_size, c.peers, pe);
    return found ? found : moved_host(addr, c.host_peers, pe);
}

} // namespace gshmem
#endif
