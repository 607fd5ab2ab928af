#include "nic.hpp"
#include <cstdio>

namespace km {

namespace {

uint64_t load64(const uint8_t* p) { return __atomic_load_n(reinterpret_cast<const uint64_t*>(p), __ATOMIC_ACQUIRE); } // pairs with the doorbell's release
void store64(uint8_t* p, uint64_t v) { __atomic_store_n(reinterpret_cast<uint64_t*>(p), v, __ATOMIC_RELEASE); } // pairs with load_shared in engine_drain

} // namespace

Nic::Nic(Pe& pe) : pe_(pe)
{
    const uint8_t* s = pe.dev->state ? pe.try_host(pe.dev->state, sizeof(gshmem_device_state_t)) : nullptr;
    if (!s) return;
    const auto* state = reinterpret_cast<const gshmem_device_state_t*>(s);
    if (state->magic != GSHMEM_STATE_MAGIC) return;
    const std::pair<uint64_t, const char*> found[] = {{state->qp_info, "RDMA"}, {state->sdma_workspace_addr, "SDMA"}, {state->udma_queues, "UDMA"}};
    for (auto [address, name] : found) {
        const uint8_t* t = address ? pe.try_host(address, sizeof(gshmem_queue_table_t)) : nullptr;
        if (!t) continue;
        const auto* table = reinterpret_cast<const gshmem_queue_table_t*>(t);
        if (table->magic == GSHMEM_QUEUE_MAGIC) tables_.push_back({address, table->cores, table->pes, name});
    }
}

bool Nic::step(Random& random)
{
    if (tables_.empty()) return false;
    const uint32_t first = random.below(static_cast<uint32_t>(tables_.size()));
    for (size_t i = 0; i < tables_.size(); i++) {
        const Table& t = tables_[(first + i) % tables_.size()];
        const uint32_t n = t.cores * t.pes, start = random.below(n);
        for (uint32_t k = 0; k < n; k++)
            if (serve(t, t.address + 64 * (1 + static_cast<uint64_t>((start + k) % n)))) return true;
    }
    return false;
}

bool Nic::serve(const Table& t, uint64_t descriptor)
{
    const uint8_t* d = pe_.try_host(descriptor, sizeof(gshmem_queue_t));
    if (!d) return false;
    const auto& q = *reinterpret_cast<const gshmem_queue_t*>(d);
    uint8_t *doorbell = q.ring ? pe_.try_host(q.doorbell, 8) : nullptr, *completed = q.ring ? pe_.try_host(q.completed, 8) : nullptr;
    if (!doorbell || !completed) return false;
    const uint64_t done = load64(completed);
    if (load64(doorbell) == done) return false;
    if (load64(doorbell) - done > q.depth) report("the doorbell announces %llu entries, the ring holds %llu", load64(doorbell) - done, q.depth);
    uint8_t* entry = pe_.try_host(q.ring + done % q.depth * sizeof(gshmem_wqe_t), sizeof(gshmem_wqe_t));
    gshmem_wqe_t w{};
    if (entry) std::memcpy(&w, entry, sizeof w);
    if (!entry || w.index != done) report("the doorbell rang before entry %llu was in the ring (found number %llu)", done, w.index);
    else perform(t, w);
    store64(completed, done + 1);
    made_progress();
    return true;
}

void Nic::perform(const Table& t, const gshmem_wqe_t& w)
{
    if (w.route > t.pes) return report("an entry goes by way of PE %llu of %llu", w.route - 1, t.pes);
    switch (w.opcode) {
    case GSHMEM_OP_WRITE: return copy(w, true);
    case GSHMEM_OP_READ: return copy(w, false);
    case GSHMEM_OP_PREFETCH: (void)memory(w.local, w.length); return;
    default: return w.opcode <= GSHMEM_OP_XOR && w.opcode >= GSHMEM_OP_SET ? word(w) : report("an entry has opcode %llu", w.opcode, 0);
    }
}

void Nic::copy(const gshmem_wqe_t& w, bool write)
{
    uint8_t *local = memory(w.local, w.length), *remote = memory(w.remote, w.length);
    if (!local || !remote) return;
    std::memmove(write ? remote : local, write ? local : remote, w.length);
    __atomic_thread_fence(__ATOMIC_RELEASE); // before `completed`, and before a signal behind it
}

void Nic::word(const gshmem_wqe_t& w)
{
    uint8_t* remote = memory(w.remote, w.size);
    uint8_t* result = w.local ? memory(w.local, w.size) : nullptr;
    if (!remote || (w.local && !result) || (w.size != 4 && w.size != 8) || w.remote % w.size) return report("an atomic on %llu bytes at 0x%llx", w.size, w.remote);
    const Element e = w.size == 4 ? Element::u32 : Element::u64;
    uint64_t old;
    switch (w.opcode) {
    case GSHMEM_OP_ADD: old = apply_atomic(Rmw::add, e, remote, w.value, 0); break;
    case GSHMEM_OP_CAS: old = apply_atomic(Rmw::cas, e, remote, w.value, w.compare); break;
    case GSHMEM_OP_SET: case GSHMEM_OP_SWAP: old = apply_atomic(Rmw::exch, e, remote, w.value, 0); break;
    default:
        for (;;) { // and, or, xor by compare and swap
            old = apply_atomic(Rmw::cas, e, remote, 0, 0); // reads: writes 0 over 0 at most
            const uint64_t next = w.opcode == GSHMEM_OP_AND ? old & w.value : w.opcode == GSHMEM_OP_OR ? old | w.value : old ^ w.value;
            if (apply_atomic(Rmw::cas, e, remote, next, old) == old) break;
        }
    }
    if (result) std::memcpy(result, &old, w.size);
}

uint8_t* Nic::memory(uint64_t addr, uint64_t bytes)
{
    uint8_t* p = pe_.try_host(addr, bytes);
    if (!p) report("an entry uses %llu bytes at 0x%llx, which is not mapped", bytes, addr);
    else if (!pe_.allowed(addr, bytes)) report("an entry uses %llu bytes at 0x%llx, which leaves every buffer", bytes, addr);
    return p;
}

void Nic::report(const char* text, uint64_t a, uint64_t b)
{
    char line[200];
    std::snprintf(line, sizeof line, text, static_cast<unsigned long long>(a), static_cast<unsigned long long>(b));
    pe_.launch->add_report(&pe_, "engine", "queue of PE " + std::to_string(pe_.dev->me) + ": " + line);
}

} // namespace km
