// queue.h: posting work to an engine through a queue in memory, and waiting for it.
//
// An entry is built in UB (64 bytes, 32-byte aligned, with event ids S_MTE3 and MTE3_S number
// `event`), stored to the ring by MTE3, and announced by the doorbell after the store is done. What
// this core stored by MTE3 before is done then too, so the engine reads it whole.
#ifndef GSHMEM_DEVICE_QUEUE_H
#define GSHMEM_DEVICE_QUEUE_H

#include "device/internal/amo.h"

namespace gshmem {

enum Engine { ENGINE_MTE, ENGINE_RDMA, ENGINE_SDMA, ENGINE_UDMA }; // MTE has no queue

struct Scratch { // UB for one entry and its event id
    uint32_t ub, event;
};

struct Queue {
    uint64_t ring, doorbell, produced, completed;
    uint32_t depth;
};

ACLSHMEM_DEVICE uint64_t engine_table(Engine e)
{
    const uint64_t state = context().state;
    switch (e) {
    case ENGINE_RDMA: return load_constant<uint64_t>(state + offsetof(gshmem_device_state_t, qp_info));
    case ENGINE_SDMA: return load_constant<uint64_t>(state + offsetof(gshmem_device_state_t, sdma_workspace_addr));
    default: return load_constant<uint64_t>(state + offsetof(gshmem_device_state_t, udma_queues));
    }
}

// Where the engine finds what `addr` is on `pe`; 0 when it cannot reach it.
ACLSHMEM_DEVICE uint64_t engine_address(Engine e, uint64_t addr, int pe)
{
    if (e == ENGINE_UDMA) return peer_address(addr, pe);
    if (!exists(pe)) return 0;
    const Context& c = context();
    const bool rdma = e == ENGINE_RDMA;
    const uint64_t device = c.state + (rdma ? offsetof(gshmem_device_state_t, rdma_device_heap_base) : offsetof(gshmem_device_state_t, sdma_device_heap_base));
    const uint64_t host = c.state + (rdma ? offsetof(gshmem_device_state_t, rdma_host_heap_base) : offsetof(gshmem_device_state_t, sdma_host_heap_base));
    const uint64_t found = moved(addr, c.heap_base, c.heap_size, load_constant<uint64_t>(device), pe);
    return found ? found : moved_host(addr, load_constant<uint64_t>(host), pe);
}

ACLSHMEM_DEVICE Scratch default_scratch(Engine e)
{
    const Context& c = context();
    switch (e) {
    case ENGINE_RDMA: return Scratch{c.rdma.offset, c.rdma.event};
    case ENGINE_SDMA: return Scratch{c.sdma.offset, c.sdma.event};
    default: return Scratch{c.udma.offset, c.udma.event};
    }
}

// The engine was set up, and for this core too.
ACLSHMEM_DEVICE bool has_queues(Engine e)
{
    const uint64_t table = engine_table(e);
    return table && load_constant<uint64_t>(table) == GSHMEM_QUEUE_MAGIC &&
           static_cast<uint64_t>(AscendC::GetBlockIdx()) < load_constant<uint32_t>(table + offsetof(gshmem_queue_table_t, cores));
}

// This core's queue to pe. Traps where there is none: the host refuses such a launch.
ACLSHMEM_DEVICE Queue queue_to(Engine e, int pe)
{
    if (!has_queues(e)) AscendC::Trap();
    const uint64_t table = engine_table(e);
    const uint64_t pes = load_constant<uint32_t>(table + offsetof(gshmem_queue_table_t, pes));
    const uint64_t at = table + 64 * (1 + static_cast<uint64_t>(AscendC::GetBlockIdx()) * pes + static_cast<uint64_t>(pe));
    return Queue{load_constant<uint64_t>(at + offsetof(gshmem_queue_t, ring)), load_constant<uint64_t>(at + offsetof(gshmem_queue_t, doorbell)),
                 load_constant<uint64_t>(at + offsetof(gshmem_queue_t, produced)), load_constant<uint64_t>(at + offsetof(gshmem_queue_t, completed)),
                 load_constant<uint32_t>(at + offsetof(gshmem_queue_t, depth))};
}

// False: aborted while the ring was full, and nothing was posted.
ACLSHMEM_DEVICE bool post(const Queue& q, gshmem_wqe_t w, const Scratch& s)
{
    const uint64_t produced = load_shared<uint64_t>(q.produced);
    if (!wait_until([=] { return produced - load_shared<uint64_t>(q.completed) < q.depth; })) return false;
    w.index = produced;
    const int32_t event = static_cast<int32_t>(s.event);
    const auto entry = local<uint64_t>(s.ub, 64);
    entry.SetValue(0, static_cast<uint64_t>(w.size) << 32 | w.opcode);
    entry.SetValue(1, w.local);
    entry.SetValue(2, w.remote);
    entry.SetValue(3, w.length);
    entry.SetValue(4, w.value);
    entry.SetValue(5, w.compare);
    entry.SetValue(6, w.route);
    entry.SetValue(7, w.index);
    AscendC::SetFlag<HardEvent::S_MTE3>(event);
    AscendC::WaitFlag<HardEvent::S_MTE3>(event);
    store_rows<uint64_t>(q.ring + (produced & (q.depth - 1)) * sizeof(gshmem_wqe_t), s.ub, 1, 64, 0);
    AscendC::SetFlag<HardEvent::MTE3_S>(event);
    AscendC::WaitFlag<HardEvent::MTE3_S>(event);
    store_shared<uint64_t>(q.produced, produced + 1);
    store_shared<uint64_t>(q.doorbell, produced + 1);
    return true;
}

// Everything this core posted to pe is complete. False: aborted.
ACLSHMEM_DEVICE bool engine_drain(Engine e, int pe)
{
    const Queue q = queue_to(e, pe);
    const uint64_t produced = load_shared<uint64_t>(q.produced);
    return wait_until([=] { return load_shared<uint64_t>(q.completed) == produced; });
}

// Posts a write from `here` to pe's `there`, or a read the other way.
ACLSHMEM_DEVICE void engine_copy(Engine e, gshmem_opcode op, uint64_t here, uint64_t there, uint64_t bytes, int pe, const Scratch& s, uint64_t route)
{
    if (bytes) post(queue_to(e, pe), gshmem_wqe_t{static_cast<uint32_t>(op), 0, here, engine_address(e, there, pe), bytes, 0, 0, route, 0}, s);
}
ACLSHMEM_DEVICE void engine_write(Engine e, uint64_t dst, uint64_t src, uint64_t bytes, int pe, const Scratch& s, uint64_t route = 0)
{
    engine_copy(e, GSHMEM_OP_WRITE, src, dst, bytes, pe, s, route);
}
ACLSHMEM_DEVICE void engine_read(Engine e, uint64_t dst, uint64_t src, uint64_t bytes, int pe, const Scratch& s, uint64_t route = 0)
{
    engine_copy(e, GSHMEM_OP_READ, dst, src, bytes, pe, s, route);
}

// Stores one word of 4 or 8 bytes, after everything posted to pe before.
ACLSHMEM_DEVICE void engine_set(Engine e, uint64_t dst, uint64_t value, uint32_t size, int pe, const Scratch& s)
{
    post(queue_to(e, pe), gshmem_wqe_t{GSHMEM_OP_SET, size, 0, engine_address(e, dst, pe), 0, value, 0, 0, 0}, s);
}

// An atomic, complete on return; its old value lands in the queue's own line, beside `produced`.
template <typename T> ACLSHMEM_DEVICE T engine_atomic(Engine e, gshmem_opcode op, uint64_t dst, T value, T compare, int pe)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "engine atomics work on 4 and 8 bytes");
    const Queue q = queue_to(e, pe);
    const uint64_t result = q.produced + 8;
    post(q, gshmem_wqe_t{static_cast<uint32_t>(op), sizeof(T), result, engine_address(e, dst, pe), 0, to_bits<T>(value), to_bits<T>(compare), 0, 0},
         default_scratch(e));
    engine_drain(e, pe);
    return load_value<T>(result);
}

} // namespace gshmem
#endif
