// scheduler.cpp: blocks as fibers of one thread, chosen by seed, and what happens when none can run.
#include "nic.hpp"
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

namespace km {

namespace {

thread_local Launch* running = nullptr;

constexpr size_t STACK_BYTES = 512 * 1024;
constexpr uint32_t IDLE = 3;           // looks at unchanged memory until a block counts as waiting
constexpr uint32_t HOPELESS = 64;      // rounds in which nobody saw a change: a deadlock
enum Policy : uint32_t { RoundRobin, AnyOrder, RunToWait, StarvePe, StarveBlock, POLICIES };

void* new_stack()
{
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* p = mmap(nullptr, STACK_BYTES + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return nullptr;
    mprotect(p, page, PROT_NONE); // a kernel that overflows its stack faults instead of corrupting
    return p;
}

void free_stack(void* p)
{
    if (p) munmap(p, STACK_BYTES + static_cast<size_t>(sysconf(_SC_PAGESIZE)));
}

void fiber_main()
{
    Launch& l = *running;
    Fiber& f = *l.current;
    try {
        l.kernel.run(f.core.pe->args);
        f.core.finish();
    } catch (const KernelStop&) {
        // Already reported. Nothing of this block may stay behind in the shared registry.
        for (auto& [host, line] : f.core.cache) f.core.write_back(host, line, ~0ull);
        for (auto& q : f.core.queue) q.clear();
        f.core.flush();
    }
    f.done = true;
    l.progress++;
    _longjmp(l.home_jump, 1);
}

} // namespace

Pe::Pe() = default;
Pe::~Pe() = default;

Launch* current_launch() { return running; }
Core& core() { return running->current->core; }
void made_progress() { running->progress++; }

void Launch::resume(Fiber& f)
{
    current = &f;
    if (_setjmp(home_jump)) return; // the fiber gave the processor back
    if (f.started) _longjmp(f.resume, 1);
    f.started = true;
    getcontext(&f.start);
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    f.start.uc_stack.ss_sp = static_cast<char*>(f.stack) + page;
    f.start.uc_stack.ss_size = STACK_BYTES;
    f.start.uc_link = nullptr;
    makecontext(&f.start, fiber_main, 0);
    setcontext(&f.start);
}

void yield_point(bool waiting, Where w)
{
    Launch& l = *running;
    Fiber& f = *l.current;
    Core& c = f.core;
    l.step();
    if (l.killed || c.pe->dead) throw KernelStop{};
    if (waiting) {
        c.last_wait = w;
        c.idle_reads = c.seen_progress == l.progress ? c.idle_reads + 1 : 1;
        c.seen_progress = l.progress;
    } else {
        c.idle_reads = 0;
    }
    if (c.idle_reads < IDLE) {
        if (l.policy == RunToWait) return;
        if (l.policy == AnyOrder && l.random.below(3)) return;
        if (l.policy >= StarvePe && !l.starved(f) && l.random.below(8)) return;
    }
    if (_setjmp(f.resume) == 0) _longjmp(l.home_jump, 1);
    if (l.killed || c.pe->dead) throw KernelStop{};
}

void Launch::step()
{
    if (!fault) return;
    const uint64_t now = fault->steps++;
    if (now == fault->kill) pes[fault->victim]->dead = true;
    if (now == fault->abort) host_acts(false);
}

void Launch::host_acts(bool stuck)
{
    fault->host_ran = true;
    fault->stuck = stuck;
    fault->host(stuck);
    progress++;
}

bool Launch::starved(const Fiber& f) const
{
    if (policy == StarvePe) return pes[victim % pes.size()].get() == f.core.pe;
    return policy == StarveBlock && f.core.block == static_cast<int64_t>(victim % static_cast<uint32_t>(f.core.blocks));
}

bool Launch::serve_engines()
{
    if (!engines || (fault && fault->steps >= fault->stop_engines)) return false;
    const uint32_t n = static_cast<uint32_t>(pes.size()), start = random.below(n);
    for (uint32_t i = 0; i < n; i++) {
        Pe& pe = *pes[(start + i) % n];
        if (!pe.dead && pe.nic->step(random)) return true;
    }
    return false;
}

// The next block to run, or null when all that live wait.
Fiber* Launch::pick()
{
    const auto can = [this](const Fiber& f) {
        return !f.done && !(!f.core.pe->dead && f.core.idle_reads >= IDLE && f.core.seen_progress == progress);
    };
    if (policy == RunToWait && current && can(*current)) return current;
    const uint32_t n = static_cast<uint32_t>(fibers.size());
    const uint32_t start = policy == RoundRobin ? turn++ % n : random.below(n);
    Fiber* last = nullptr;
    for (uint32_t i = 0; i < n; i++) {
        Fiber& f = *fibers[(start + i) % n];
        if (!can(f)) continue;
        if (!starved(f)) return &f;
        last = &f;
    }
    return last;
}

void Launch::nobody_can_run(uint32_t& rounds)
{
    rounds++;
    if (serve_engines()) return;
    if (closed || rounds > 3) { // at last, what the hardware would have done long ago
        const uint32_t n = static_cast<uint32_t>(fibers.size()), start = random.below(n);
        for (uint32_t i = 0; i < n; i++) {
            Fiber& f = *fibers[(start + i) % n];
            if (f.done || !f.core.pending()) continue;
            current = &f;
            bool ran = false;
            try {
                ran = f.core.run_any();
            } catch (const KernelStop&) { // reported; every block stops at its next yield
                ran = true;
            }
            if (ran) {
                progress++;
                return;
            }
        }
    }
    if (closed && rounds > HOPELESS) {
        if (fault && !fault->stuck && fault->host) host_acts(true);
        else report_deadlock();
        return;
    }
    if (!closed) {
        const long us = rounds < 6 ? 10L << rounds : 500;
        const timespec t{0, us * 1000};
        nanosleep(&t, nullptr);
    }
    for (auto& f : fibers) f->core.idle_reads = 0;
}

void Launch::report_deadlock()
{
    for (auto& f : fibers)
        if (!f->done) {
            const Where w = f->core.last_wait;
            add_report(f->core.pe, "deadlock", std::string(w.file) + ":" + std::to_string(w.line) + ": " + name_of(f->core) + " waits here and nothing can change");
        }
    deadlock = killed = true;
    for (auto& f : fibers) f->core.idle_reads = 0;
}

void Launch::run()
{
    Launch* outer = running;
    running = this;
    for (auto& f : fibers) f->stack = new_stack();
    for (auto& p : pes) {
        p->nic = std::make_unique<Nic>(*p);
        engines |= !p->nic->idle();
    }
    uint32_t rounds = 0;
    uint64_t seen = progress;
    for (;;) {
        bool alive = false;
        for (auto& f : fibers) alive |= !f->done;
        if (!alive) break;
        if (seen != progress) rounds = 0;
        seen = progress;
        if (engines && random.below(32) == 0) serve_engines();
        Fiber* f = pick();
        if (f) resume(*f);
        else nobody_can_run(rounds);
    }
    while (serve_engines()) {} // engines go on after the kernel that fed them
    for (auto& f : fibers) free_stack(f->stack);
    running = outer;
}

} // namespace km
