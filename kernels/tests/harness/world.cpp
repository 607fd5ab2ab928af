#include "world.hpp"
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>

namespace {

constexpr uint64_t AREA_BYTES = 16ull << 20, GAP = 160; // of a heap, of an arena; of the canaries around a buffer
constexpr uint8_t CANARY = 0x5c;
constexpr int TEAMS = 4; // sync arrays at the head of each heap

uint8_t* map()
{
    void* p = mmap(nullptr, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) fail("mmap of %llu bytes failed", static_cast<unsigned long long>(AREA_BYTES));
    return static_cast<uint8_t*>(p);
}

uint64_t view(int viewer, int pe) { return 0x120000000000ull + (static_cast<uint64_t>(viewer * 64 + pe) << 30); }
uint64_t host_view(int viewer, int pe) { return 0x160000000000ull + (static_cast<uint64_t>(viewer * 64 + pe) << 30); } // the host-side heap: the same pages
uint64_t cpu_view(int pe) { return 0x7a0000000000ull + (static_cast<uint64_t>(pe) << 30); } // mapped for nobody
uint64_t arena(int pe) { return 0x150000000000ull + (static_cast<uint64_t>(pe) << 30); }

// Places inside the arena.
constexpr uint64_t STATE_AT = 0, ABORT_AT = 65536, PEERS_AT = 66560, HOST_PEERS_AT = 68096, COUNTERS_AT = 69632, CORES_AT = 73728,
                   CORE_COUNT_AT = CORES_AT + GSHMEM_CORE_SYNC_BYTES, TEAMS_AT = 131072,
                   FREE_AT = TEAMS_AT + TEAMS * 163840ull;

} // namespace

struct World::Pe {
    uint8_t *heap = nullptr, *arena = nullptr;
    std::vector<km_region_t> regions, extents;
    km_device_t dev{};
};

void fail(const char* format, ...)
{
    char text[600];
    va_list a;
    va_start(a, format);
    std::vsnprintf(text, sizeof text, format, a);
    va_end(a);
    throw Failure{text};
}

std::string Config::text() const
{
    return std::to_string(pes) + " PEs x " + std::to_string(blocks) + " blocks, " + (schedule == KM_LAZY ? "lazy" : "in order") + ", seed " +
           std::to_string(seed);
}

World::World(const Config& c)
    : config(c), heaps_{"heap", &Pe::heap, TEAMS * GSHMEM_TEAM_SYNC_BYTES, TEAMS * GSHMEM_TEAM_SYNC_BYTES, {}},
      arenas_{"local memory", &Pe::arena, FREE_AT, FREE_AT, {}}
{
    for (int i = 0; i < c.pes; i++) {
        pes_.push_back(std::make_unique<Pe>());
        pes_[i]->heap = map();
        pes_[i]->arena = map();
    }
    for (int i = 0; i < c.pes; i++) fill_state(i);
    std::vector<int> all;
    for (int i = 0; i < c.pes; i++) all.push_back(i);
    team(0, all);
    publish();
}

World::~World()
{
    for (auto& p : pes_) {
        munmap(p->heap, AREA_BYTES);
        munmap(p->arena, AREA_BYTES);
    }
}

void World::fill_state(int pe)
{
    auto* s = loc_as<gshmem_device_state_t>(pe, STATE_AT);
    s->version = 0x10000 + 32992;
    s->mype = pe;
    s->npes = n();
    s->heap_base = view(pe, pe);
    s->heap_size = AREA_BYTES;
    s->host_heap_base = host_view(pe, pe);
    s->host_heap_size = AREA_BYTES;
    s->host_heap_address = cpu_view(pe);
    s->p2p_device_heap_base = arena(pe) + PEERS_AT;
    s->p2p_host_heap_base = arena(pe) + HOST_PEERS_AT;
    s->sync_pool = view(pe, pe);
    s->sync_counter = arena(pe) + COUNTERS_AT;
    s->core_sync_pool = arena(pe) + CORES_AT;
    s->core_sync_counter = arena(pe) + CORE_COUNT_AT;
    s->mte_config = {0, 16384, 0};
    s->sdma_config = {191 * 1024, 64, 0};
    s->rdma_config = {190 * 1024, 128, 0};
    s->udma_config = {189 * 1024, 128, 0};
    s->magic = GSHMEM_STATE_MAGIC;
    s->abort_addr = arena(pe) + ABORT_AT;
    // Around the tables lie addresses that work, so a read beside them shows as a transfer that should not be.
    for (uint64_t at = PEERS_AT - 64; at < COUNTERS_AT; at += 8) *loc_as<uint64_t>(pe, at) = view(pe, 0);
    for (int i = 0; i < n(); i++) {
        s->topo_list[i] = GSHMEM_TOPO_MTE;
        loc_as<uint64_t>(pe, PEERS_AT)[i] = view(pe, i);
        loc_as<uint64_t>(pe, HOST_PEERS_AT)[i] = host_view(pe, i);
    }
}

// A PE outside knows the team too, as no member: launching a team's kernel there must do nothing.
void World::team(int index, const std::vector<int>& members)
{
    for (int pe = 0; pe < n(); pe++) {
        const uint64_t at = TEAMS_AT + static_cast<uint64_t>(index) * 163840;
        auto* t = loc_as<gshmem_team_state_t>(pe, at);
        std::memset(t, 0, sizeof *t);
        t->mype = -1;
        t->size = static_cast<int>(members.size());
        t->team_idx = index;
        for (int k = 0; k < GSHMEM_MAX_PES; k++) t->pe_mapping[GSHMEM_MAX_PES + k] = -1;
        for (size_t k = 0; k < members.size(); k++) {
            t->pe_mapping[k] = members[k];
            t->pe_mapping[GSHMEM_MAX_PES + members[k]] = static_cast<int>(k);
        }
        loc_as<gshmem_device_state_t>(pe, STATE_AT)->team_pools[index] = arena(pe) + at;
    }
    for (size_t i = 0; i < members.size(); i++)
        loc_as<gshmem_team_state_t>(members[i], TEAMS_AT + static_cast<uint64_t>(index) * 163840)->mype = static_cast<int>(i);
}

namespace {

constexpr uint64_t DEPTH = 4, QUEUE_BYTES = 64 + DEPTH * 64 + 3 * 64; // a descriptor, its ring and its three words

// A table of cores x pes empty queues at host memory `p`, which is device address `at`.
void make_queues(uint8_t* p, uint64_t at, uint32_t cores, uint32_t pes)
{
    const uint64_t queues = static_cast<uint64_t>(cores) * pes;
    std::memset(p, 0, 64 + queues * QUEUE_BYTES);
    *reinterpret_cast<gshmem_queue_table_t*>(p) = {GSHMEM_QUEUE_MAGIC, cores, pes, {}};
    for (uint64_t q = 0; q < queues; q++) {
        const uint64_t ring = at + 64 + queues * 64 + q * (QUEUE_BYTES - 64), words = ring + DEPTH * 64;
        reinterpret_cast<gshmem_queue_t*>(p + 64)[q] = {ring, DEPTH, static_cast<uint32_t>(q % pes), words, words + 64, words + 128, {}};
    }
}

} // namespace

void World::queues(uint8_t topology, bool mapped)
{
    const uint64_t bytes = 64 + config.blocks * static_cast<uint64_t>(n()) * QUEUE_BYTES;
    const uint64_t bases = local(8 * static_cast<uint64_t>(n())), host_bases = local(8 * static_cast<uint64_t>(n()));
    const uint64_t tables[3] = {local(bytes), local(bytes), local(bytes)};
    for (int pe = 0; pe < n(); pe++) {
        gshmem_device_state_t& s = state_of(pe);
        s.rdma_device_heap_base = topology & GSHMEM_TOPO_ROCE ? loc(pe, bases) : 0;
        s.sdma_device_heap_base = topology & GSHMEM_TOPO_SDMA ? loc(pe, bases) : 0;
        s.rdma_host_heap_base = topology & GSHMEM_TOPO_ROCE ? loc(pe, host_bases) : 0;
        s.sdma_host_heap_base = topology & GSHMEM_TOPO_SDMA ? loc(pe, host_bases) : 0;
        s.qp_info = topology & GSHMEM_TOPO_ROCE ? loc(pe, tables[0]) : 0;
        s.sdma_workspace_addr = topology & GSHMEM_TOPO_SDMA ? loc(pe, tables[1]) : 0;
        s.udma_queues = topology & GSHMEM_TOPO_UDMA ? loc(pe, tables[2]) : 0;
        for (uint64_t t : tables) make_queues(loc_host(pe, t), loc(pe, t), config.blocks, static_cast<uint32_t>(n()));
        for (int i = 0; i < n(); i++) {
            loc_as<uint64_t>(pe, bases)[i] = view(pe, i);
            loc_as<uint64_t>(pe, host_bases)[i] = host_view(pe, i);
            s.topo_list[i] = topology;
            if (!mapped && i != pe) loc_as<uint64_t>(pe, PEERS_AT)[i] = loc_as<uint64_t>(pe, HOST_PEERS_AT)[i] = 0;
        }
    }
}

uint64_t World::carried(int pe, uint8_t engine) const
{
    const gshmem_device_state_t& s = state_of(pe);
    const uint64_t table = engine == GSHMEM_TOPO_ROCE ? s.qp_info : engine == GSHMEM_TOPO_SDMA ? s.sdma_workspace_addr : s.udma_queues;
    if (!table) return 0;
    const auto* head = loc_as<gshmem_queue_table_t>(pe, table - arena(pe));
    const auto* queue = reinterpret_cast<const gshmem_queue_t*>(head + 1);
    uint64_t sum = 0;
    for (uint64_t q = 0; q < static_cast<uint64_t>(head->cores) * head->pes; q++) sum += *loc_as<uint64_t>(pe, queue[q].completed - arena(pe));
    return sum;
}

// Takes `bytes` behind what is taken, with canaries before and after on every PE.
uint64_t World::take(Area& area, uint64_t bytes, uint64_t align, uint64_t skew)
{
    const uint64_t at = (area.next + GAP + align - 1) / align * align + skew;
    if (at + bytes + GAP > AREA_BYTES) fail("the test memory is too small");
    for (auto& p : pes_) {
        std::memset((*p).*area.memory + area.next, CANARY, at - area.next);
        std::memset((*p).*area.memory + at + bytes, CANARY, GAP);
    }
    area.next = at + bytes + GAP;
    area.blocks.push_back({at, bytes});
    publish();
    return at;
}

uint64_t World::symmetric(uint64_t bytes, uint64_t align, uint64_t skew) { return take(heaps_, bytes, align, skew); }
uint64_t World::local(uint64_t bytes, uint64_t align, uint64_t skew) { return take(arenas_, bytes, align, skew); }

void World::publish()
{
    for (int me = 0; me < n(); me++) {
        Pe& p = *pes_[me];
        p.regions = {{arena(me), p.arena, AREA_BYTES, me, 0}};
        p.extents = {{arena(me), nullptr, FREE_AT, me, 0}};
        for (const Block& b : arenas_.blocks) p.extents.push_back({arena(me) + b.offset, nullptr, b.bytes, me, 0});
        for (auto at : {view, host_view}) // what is used most is found first
            for (int i = 0; i < n(); i++) {
                p.regions.push_back({at(me, i), pes_[i]->heap, AREA_BYTES, i, 0});
                p.extents.push_back({at(me, i), nullptr, heaps_.first, i, 0});
                for (const Block& b : heaps_.blocks) p.extents.push_back({at(me, i) + b.offset, nullptr, b.bytes, i, 0});
            }
        p.dev = km_device_t{sizeof(km_device_t), config.schedule, config.seed, me, n(), arena(me) + STATE_AT, p.regions.data(),
                            p.regions.size(), nullptr, nullptr, nullptr, nullptr, p.extents.data(), p.extents.size()};
    }
}

void World::check_area(const Area& area, int pe) const
{
    const uint8_t* p = (*pes_[pe]).*area.memory;
    uint64_t at = area.first;
    for (const Block& b : area.blocks) {
        for (; at < b.offset; at++)
            if (p[at] != CANARY) fail("canary of PE %d's %s changed at offset %llu, %lld bytes before a buffer", pe, area.name,
                                      static_cast<unsigned long long>(at), static_cast<long long>(b.offset - at));
        at = b.offset + b.bytes;
    }
    for (; at < area.next; at++)
        if (p[at] != CANARY) fail("canary of PE %d's %s changed after the last buffer", pe, area.name);
}

void World::check_canaries() const
{
    for (int i = 0; i < n(); i++) {
        check_area(heaps_, i);
        check_area(arenas_, i);
    }
}

uint64_t World::sym(int pe, uint64_t offset) const { return view(pe, pe) + offset; }
uint64_t World::host_sym(int pe, uint64_t offset) const { return host_view(pe, pe) + offset; }
uint64_t World::cpu_sym(int pe, uint64_t offset) const { return cpu_view(pe) + offset; }
uint64_t World::loc(int pe, uint64_t offset) const { return arena(pe) + offset; }
uint8_t* World::sym_host(int pe, uint64_t offset) const { return pes_[pe]->heap + offset; }
uint8_t* World::loc_host(int pe, uint64_t offset) const { return pes_[pe]->arena + offset; }
uint64_t World::state(int pe) const { return arena(pe) + STATE_AT; }
const km_device_t* World::device(int pe) const { return &pes_[pe]->dev; }

void World::set_abort(int pe, int32_t value) { set_word(pe, ABORT_AT, value); }

void World::set_word(int pe, uint64_t local, int32_t value)
{
    __atomic_store_n(loc_as<int32_t>(pe, local), value, __ATOMIC_RELEASE); // read by poll_abort() in kernels
}

uint64_t World::stop_words(int team)
{
    const uint64_t words = local(GSHMEM_TEAM_STOP_BYTES);
    for (int pe = 0; pe < n(); pe++) {
        std::memset(loc_host(pe, words), 0, GSHMEM_TEAM_STOP_BYTES);
        loc_as<gshmem_team_state_t>(pe, TEAMS_AT + static_cast<uint64_t>(team) * 163840)->stop = loc(pe, words);
    }
    return words;
}

uint64_t pattern(int pe, int round, uint64_t index)
{
    uint64_t z = index * 0x9e3779b97f4a7c15ull + static_cast<uint64_t>(pe) * 0xd1b54a32d192ed03ull + static_cast<uint64_t>(round + 1) * 0x8cb92ba72f3d8dd7ull;
    z = (z ^ (z >> 29)) * 0xbf58476d1ce4e5b9ull;
    return z ^ (z >> 32);
}

void fill_bytes(uint8_t* p, uint64_t bytes, int pe, int round, uint64_t from)
{
    for (uint64_t i = 0; i < bytes; i++) p[i] = static_cast<uint8_t>(pattern(pe, round, from + i));
}

void expect_bytes(const uint8_t* p, uint64_t bytes, int pe, int round, const char* what, uint64_t from)
{
    for (uint64_t i = 0; i < bytes; i++) {
        const uint8_t want = static_cast<uint8_t>(pattern(pe, round, from + i));
        if (p[i] != want)
            fail("%s: byte %llu of %llu is 0x%02x, PE %d round %d sent 0x%02x", what, static_cast<unsigned long long>(i),
                 static_cast<unsigned long long>(bytes), p[i], pe, round, want);
    }
}
