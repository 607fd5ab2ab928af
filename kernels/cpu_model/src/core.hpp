// core.hpp: one vector core: its pipes, flags, unified buffer and data cache.
//
// Two mechanisms find a missing wait. The order checker (order.cpp) sees every instruction when it
// is issued, keeps what each pipe knows to be finished, and reports two instructions that touch
// the same bytes without an order between them; it needs no luck. The lazy queues (pipes.cpp)
// perform asynchronous instructions late, so what other cores and PEs see is wrong when a wait
// is missing.
#ifndef KM_CORE_HPP
#define KM_CORE_HPP

#include "../include/km/runtime.h"
#include "../launch.h"
#include <array>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

namespace km {

// A small generator with a state of its own; the same seed gives the same schedule everywhere.
struct Random {
    uint64_t s;
    uint64_t next()
    {
        s += 0x9e3779b97f4a7c15ull;
        uint64_t z = s;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }
    uint32_t below(uint32_t n) { return static_cast<uint32_t>((next() >> 32) * n >> 32); }
};

// `count` pieces of `len` bytes, `step` apart.
struct Range {
    enum Space : uint8_t { UB, GM } space;
    bool write;
    bool atomic; // atomic on store: two of these do not conflict
    uint32_t count;
    uint64_t lo, len;
    int64_t step;
};

struct Ranges { // of one instruction: at most a result and three sources
    Range at[4];
    uint32_t count = 0;
    void add(const Range& r) { at[count++] = r; }
    const Range* begin() const { return at; }
    const Range* end() const { return at + count; }
};

struct Issued { // an instruction the order checker remembers
    Pipe pipe;
    uint32_t seq;
    const char* what;
    Where where;
    Ranges ranges;
};

using Clock = std::array<uint32_t, PIPE_COUNT>; // per pipe: everything up to this is finished

class Order {
public:
    void issue(Pipe p, const char* what, const Ranges& ranges, Where w);
    void issue_scalar(const char* what, const Range& range, Where w);
    void set(Pipe src, Pipe dst, int id);
    void wait(Pipe src, Pipe dst, int id);
    void barrier(Pipe p);

private:
    void prune();
    std::array<uint32_t, PIPE_COUNT> last_{};
    std::array<Clock, PIPE_COUNT> known_{};
    Clock flag_[PIPE_COUNT][PIPE_COUNT][EVENT_IDS] = {};
    std::deque<Issued> open_;    // of the asynchronous pipes
    std::deque<Issued> scalars_; // of the scalar unit, which is in order with itself
    uint32_t since_prune_ = 0;
};

struct Item { // one entry of a pipe's queue
    enum Kind : uint8_t { Work, Set, Wait, Barrier } kind;
    Pipe other; // Set: the waiting pipe, Wait: the setting pipe
    int id;
    Where where;
    std::function<void()> run;
};

struct Line { // one cached 64-byte line
    uint64_t device;
    uint8_t data[CACHE_LINE];
    uint64_t valid, dirty; // one bit per byte
    uint32_t hits;         // reads since the fill without a write in between
    Where filled, written;
};

struct Store { // a scalar store on its way to memory
    uint64_t host;
    uint64_t mask; // which bytes of data
    uint8_t data[CACHE_LINE];
};

struct Pe; // one PE of a launch: launch.hpp

struct Core {
    Pe* pe = nullptr;
    int64_t block = 0, blocks = 1;
    Random random{0};
    bool lazy = false;

    std::vector<uint8_t> ub;
    alignas(16) uint8_t context[1024] = {};
    Order order;

    // pipes.cpp
    std::deque<Item> queue[PIPE_COUNT];
    uint8_t raised[PIPE_COUNT][PIPE_COUNT][EVENT_IDS] = {}; // set when executed, cleared by the wait
    uint8_t issued[PIPE_COUNT][PIPE_COUNT][EVENT_IDS] = {}; // the same in program order
    Where set_at[PIPE_COUNT][PIPE_COUNT][EVENT_IDS] = {};
    uint8_t favour = 0; // which pipe runs ahead when several may

    // dcache.cpp
    std::unordered_map<uint64_t, Line> cache; // by host address of the line
    std::deque<Store> stores; // lazily performed; DataSyncBarrier and scalar flags wait for them

    bool initialized = false; // InitSocState, or a TPipe
    Rmw atomic_kind = Rmw::none;
    Element atomic_type = Element::none;
    Where atomic_at{"", 0};

    // scheduling
    uint32_t idle_reads = 0;
    uint64_t seen_progress = 0;
    Where last_wait{"", 0};

    void submit(Pipe p, Item item);
    bool step(Pipe p);   // performs one queued entry of p; false when its head waits for a flag
    bool run_any();      // performs one entry of some pipe; false when nothing is queued
    void drain();        // until all queues are empty
    bool pending() const;
    void finish();       // the end of the kernel: drain, then check what is left
    void write_back(uint64_t host_line, Line& line, uint64_t bytes);
    void store(const Store& s);
    bool run_store();  // performs one store; false when none is on its way
    void flush();      // all of them
    void flush_touching(uint64_t host, uint64_t bytes); // what this core would read back
};

Core& core();
std::string name_of(const Core& c);

// Applies `kind` to the element at host memory `p`, atomically among processes; returns the old bits.
uint64_t apply_atomic(Rmw kind, Element type, void* p, uint64_t value, uint64_t compare);
uint32_t element_bytes(Element e);

} // namespace km
#endif
