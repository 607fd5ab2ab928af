// pipes.cpp: the queues of a core, its flags and barriers.
//
// In order, an entry takes effect where it is written. Lazily, it waits in its pipe's queue until
// a wait of the scalar unit, PipeBarrier<PIPE_ALL> or the kernel's end needs it. Work between two
// flag operations of one pipe may be done in any order: the hardware overlaps it too.
#include "launch.hpp"

namespace km {

void Core::submit(Pipe p, Item item)
{
    queue[p].push_back(std::move(item));
    if (!lazy)
        while (!queue[p].empty() && step(p)) {}
}

bool Core::step(Pipe p)
{
    std::deque<Item>& q = queue[p];
    if (q.empty()) return false;
    Item& head = q.front();
    switch (head.kind) {
    case Item::Work: {
        size_t n = 1;
        while (n < q.size() && n < 16 && q[n].kind == Item::Work) n++;
        const size_t i = lazy ? random.below(static_cast<uint32_t>(n)) : 0;
        Item it = std::move(q[i]);
        q.erase(q.begin() + static_cast<long>(i));
        it.run();
        return true;
    }
    case Item::Set:
        if (raised[p][head.other][head.id])
            report("double-set", head.where, "event %d is set again before the waiting pipe took the first one", head.id);
        raised[p][head.other][head.id] = 1;
        break;
    case Item::Wait:
        if (!raised[head.other][p][head.id]) return false;
        raised[head.other][p][head.id] = 0;
        break;
    case Item::Barrier:
        break;
    }
    q.pop_front();
    return true;
}

bool Core::pending() const
{
    if (!stores.empty()) return true;
    for (const std::deque<Item>& q : queue)
        if (!q.empty()) return true;
    return false;
}

bool Core::run_any()
{
    int order[PIPE_COUNT];
    for (int i = 0; i < PIPE_COUNT; i++) order[i] = i;
    for (int i = PIPE_COUNT - 1; i > 0; i--) std::swap(order[i], order[random.below(static_cast<uint32_t>(i + 1))]);
    if (!stores.empty() && random.below(2)) return run_store();
    if (favour && step(static_cast<Pipe>(favour))) return true;
    for (int p : order)
        if (step(static_cast<Pipe>(p))) return true;
    return run_store();
}

void Core::drain()
{
    while (pending())
        if (!run_any()) stop("pipe-deadlock", last_wait, "the pipes wait for each other's flags");
}

namespace {

// Brings the head of pipe p forward, first what it waits for.
void advance(Core& c, Pipe p, Where w)
{
    for (int depth = 0; depth < 64; depth++) {
        if (c.queue[p].empty()) stop("pipe-deadlock", w, "a flag that no queued instruction will set");
        if (c.step(p)) return;
        p = c.queue[p].front().other;
    }
    stop("pipe-deadlock", w, "the pipes wait for each other's flags");
}

void check_id(int32_t id, Where w)
{
    if (id < 0 || id >= EVENT_IDS) stop("event-id", w, "event id %d does not exist (0..7)", id);
    if (id >= USER_EVENT_IDS) report("event-id", w, "event id %d is reserved; use 0..5", id);
}

} // namespace

void set_flag(Pipe src, Pipe dst, int32_t id, Where w)
{
    Core& c = core();
    check_id(id, w);
    if (c.issued[src][dst][id]) {
        const Where before = c.set_at[src][dst][id];
        report("double-set", w, "event id %d is set twice without a wait (first at %s:%d)", id, before.file, before.line);
    }
    c.issued[src][dst][id] = 1;
    c.set_at[src][dst][id] = w;
    c.order.set(src, dst, id);
    if (src == S) {
        c.flush();
        if (c.raised[S][dst][id])
            report("double-set", w, "event id %d is set again before the waiting pipe took the first one: it may still be busy", id);
        while (c.raised[S][dst][id]) advance(c, dst, w);
        c.raised[src][dst][id] = 1;
        return;
    }
    c.submit(src, Item{Item::Set, dst, id, w, {}});
}

void wait_flag(Pipe src, Pipe dst, int32_t id, Where w)
{
    Core& c = core();
    check_id(id, w);
    if (!c.issued[src][dst][id]) stop("wait-without-set", w, "event id %d is waited for but was not set: the core hangs here", id);
    c.issued[src][dst][id] = 0;
    c.order.wait(src, dst, id);
    if (dst != S) {
        c.submit(dst, Item{Item::Wait, src, id, w, {}});
        return;
    }
    while (!c.raised[src][S][id]) advance(c, src, w);
    c.raised[src][S][id] = 0;
}

void pipe_barrier(Pipe p, Where w)
{
    Core& c = core();
    c.order.barrier(p);
    if (p == PIPE_EVERY) {
        c.last_wait = w;
        c.drain();
        yield_point(false, w);
    } else {
        c.submit(p, Item{Item::Barrier, p, 0, w, {}});
    }
}

void data_sync_barrier(Where w)
{
    core().flush();
    yield_point(false, w);
}

void sync_all(Where w)
{
    Core& c = core();
    Pe& pe = *c.pe;
    const uint64_t mine = pe.sync_generation;
    if (++pe.sync_arrived == static_cast<uint32_t>(c.blocks)) {
        pe.sync_arrived = 0;
        pe.sync_generation++;
        made_progress();
    }
    while (pe.sync_generation == mine) yield_point(true, w);
}

void Core::finish()
{
    const Where end{"kernel end", 0};
    last_wait = end;
    drain();
    for (int a = 0; a < PIPE_COUNT; a++)
        for (int b = 0; b < PIPE_COUNT; b++)
            for (int id = 0; id < EVENT_IDS; id++)
                if (issued[a][b][id])
                    report("left-flag", set_at[a][b][id], "event id %d set here is never waited for", id);
    if (atomic_kind != Rmw::none)
        report("left-atomic", atomic_at, "an atomic mode set here is still on at the kernel's end");
    for (auto& [host, line] : cache)
        if (line.dirty) {
            report("left-dirty", line.written, "the cache line written here is never cleaned, so nobody sees the data");
            write_back(host, line, ~0ull);
        }
    flush();
    cache.clear();
}

} // namespace km
