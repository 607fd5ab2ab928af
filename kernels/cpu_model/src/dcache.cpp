// dcache.cpp: the scalar unit's path to global memory.
//
// Lines are written back only by dcci and then whole, so a neighbour's newer word in the same line
// is lost, as on the device. A line stays as it was filled until dcci drops it.
#include "launch.hpp"
#include <atomic>
#include <mutex>

namespace km {

namespace {

constexpr uint32_t STALE_SPIN = 50000; // reads of one cached line with nothing else done between

// Dirty lines of all cores of this process, to find two writers of one line.
struct DirtyLines {
    std::mutex lock;
    std::map<uint64_t, Core*> owner; // by host line; guarded by lock
    std::atomic<uint32_t> count{0};
};
DirtyLines& dirty_lines()
{
    static DirtyLines d;
    return d;
}

Core* owner_of(uint64_t line)
{
    DirtyLines& d = dirty_lines();
    if (d.count.load(std::memory_order_acquire) == 0) return nullptr;
    std::lock_guard<std::mutex> g(d.lock);
    auto it = d.owner.find(line);
    return it == d.owner.end() ? nullptr : it->second;
}

void claim(Core& c, uint64_t line, Where w)
{
    DirtyLines& d = dirty_lines();
    std::string other;
    {
        std::lock_guard<std::mutex> g(d.lock);
        auto [it, fresh] = d.owner.emplace(line, &c);
        if (!fresh && it->second != &c) other = name_of(*it->second);
        d.count.store(static_cast<uint32_t>(d.owner.size()), std::memory_order_release);
    }
    if (!other.empty())
        report("two-writers", w, "this core and %s write one 64-byte line through their caches: one write is lost", other.c_str());
}

void release(Core& c, uint64_t line)
{
    DirtyLines& d = dirty_lines();
    std::lock_guard<std::mutex> g(d.lock);
    auto it = d.owner.find(line);
    if (it != d.owner.end() && it->second == &c) d.owner.erase(it);
    d.count.store(static_cast<uint32_t>(d.owner.size()), std::memory_order_release);
}

uint64_t mask_of(uint32_t off, uint32_t bytes)
{
    return (bytes >= 64 ? ~0ull : ((1ull << bytes) - 1)) << off;
}

void check_aligned(uint64_t gm, uint32_t bytes, Where w)
{
    if (gm % bytes) stop("gm-align", w, "a scalar access of %u bytes at device address 0x%llx is not aligned", bytes, static_cast<unsigned long long>(gm));
}

// Fills what is not valid yet; bytes outside every mapping stay invalid.
void fill(Core& c, Line& l, uint64_t hostLine, Where w)
{
    const bool whole = c.pe->try_host(l.device, CACHE_LINE) != nullptr;
    const uint8_t* from = reinterpret_cast<const uint8_t*>(hostLine);
    for (uint32_t i = 0; i < CACHE_LINE; i += 8) {
        if (!whole && !c.pe->try_host(l.device + i, 8)) continue;
        const uint64_t v = __atomic_load_n(reinterpret_cast<const uint64_t*>(from + i), __ATOMIC_RELAXED);
        for (uint32_t b = 0; b < 8; b++)
            if (!(l.valid >> (i + b) & 1)) l.data[i + b] = static_cast<uint8_t>(v >> (8 * b));
        l.valid |= mask_of(i, 8);
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE); // pairs with the release of every store to GM
    l.filled = w;
    l.hits = 0;
}

Line& line_for(Core& c, uint64_t gm, uint32_t bytes, bool read, Where w)
{
    const uint64_t host = reinterpret_cast<uint64_t>(c.pe->host(gm, bytes, "a scalar access", w));
    const uint64_t hostLine = host & ~static_cast<uint64_t>(CACHE_LINE - 1);
    Line& l = c.cache.try_emplace(hostLine, Line{gm & ~static_cast<uint64_t>(CACHE_LINE - 1), {}, 0, 0, 0, w, w}).first->second;
    const uint64_t need = mask_of(static_cast<uint32_t>(host - hostLine), bytes);
    if ((l.valid & need) != need) {
        if (read) yield_point(true, w);
        c.flush_touching(hostLine, CACHE_LINE);
        fill(c, l, hostLine, w);
    }
    return l;
}

void issue_scalar(Core& c, uint64_t gm, uint32_t bytes, bool write, Where w)
{
    c.order.issue_scalar(write ? "a scalar write" : "a scalar read", Range{Range::GM, write, false, 1, gm, bytes, 0}, w);
}

} // namespace

void Core::write_back(uint64_t hostLine, Line& l, uint64_t bytes)
{
    Store s{hostLine, l.valid & bytes, {}}; // the whole line, dirty or not
    std::memcpy(s.data, l.data, CACHE_LINE);
    l.dirty &= ~bytes;
    if (!l.dirty) release(*this, hostLine);
    store(s);
}

namespace {

// Release: pairs with the acquire of bypass_read and of a line fill.
void perform(const Store& s)
{
    uint8_t* to = reinterpret_cast<uint8_t*>(s.host);
    uint64_t v;
    std::memcpy(&v, s.data, 8);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    if (s.mask == 0xff && s.host % 8 == 0) __atomic_store_n(reinterpret_cast<uint64_t*>(to), v, __ATOMIC_RELEASE);
    else if (s.mask == 0xf) __atomic_store_n(reinterpret_cast<uint32_t*>(to), static_cast<uint32_t>(v), __ATOMIC_RELEASE);
    else if (s.mask == 0x3) __atomic_store_n(reinterpret_cast<uint16_t*>(to), static_cast<uint16_t>(v), __ATOMIC_RELEASE);
    else
        for (uint32_t i = 0; i < CACHE_LINE; i++)
            if (s.mask >> i & 1) __atomic_store_n(to + i, s.data[i], __ATOMIC_RELEASE);
    made_progress();
}

bool touching(const Store& s, uint64_t host, uint64_t bytes)
{
    return s.host < host + bytes && host < s.host + CACHE_LINE;
}

} // namespace

void Core::store(const Store& s)
{
    if (!lazy) return perform(s);
    flush_touching(s.host, CACHE_LINE); // stores to one place stay in order
    stores.push_back(s);
}

bool Core::run_store()
{
    if (stores.empty()) return false;
    const size_t i = random.below(static_cast<uint32_t>(stores.size()));
    const Store s = stores[i];
    stores.erase(stores.begin() + static_cast<long>(i));
    perform(s);
    return true;
}

void Core::flush()
{
    while (run_store()) {}
}

void Core::flush_touching(uint64_t host, uint64_t bytes)
{
    for (size_t i = 0; i < stores.size();) {
        if (!touching(stores[i], host, bytes)) {
            i++;
            continue;
        }
        const Store s = stores[i];
        stores.erase(stores.begin() + static_cast<long>(i));
        perform(s);
    }
}

void scalar_read(uint64_t gm, void* out, uint32_t bytes, Where w)
{
    Core& c = core();
    check_aligned(gm, bytes, w);
    issue_scalar(c, gm, bytes, false, w);
    Line& l = line_for(c, gm, bytes, true, w);
    if (++l.hits > STALE_SPIN)
        stop("stale-spin", w, "this line was read %u times from the cache since %s:%d and never invalidated: it cannot change", STALE_SPIN, l.filled.file, l.filled.line);
    std::memcpy(out, l.data + gm % CACHE_LINE, bytes);
}

void scalar_write(uint64_t gm, const void* in, uint32_t bytes, Where w)
{
    Core& c = core();
    check_aligned(gm, bytes, w);
    issue_scalar(c, gm, bytes, true, w);
    Line& l = line_for(c, gm, bytes, false, w);
    const uint64_t mask = mask_of(gm % CACHE_LINE, bytes);
    const uint64_t host = reinterpret_cast<uint64_t>(c.pe->try_host(gm, bytes)) & ~static_cast<uint64_t>(CACHE_LINE - 1);
    claim(c, host, w);
    std::memcpy(l.data + gm % CACHE_LINE, in, bytes);
    l.valid |= mask;
    l.dirty |= mask;
    l.written = w;
    l.hits = 0;
    yield_point(false, w);
}

namespace {

void drop(Core& c, uint64_t hostLine, Line& l, uint64_t bytes)
{
    if (l.dirty & bytes) c.write_back(hostLine, l, bytes);
    l.valid &= ~bytes | l.dirty;
}

} // namespace

void dcci(uint64_t gm, bool entire, Where w)
{
    Core& c = core();
    if (entire) {
        for (auto& [host, l] : c.cache) drop(c, host, l, ~0ull);
        c.cache.clear();
        yield_point(false, w);
        return;
    }
    const uint8_t* host = c.pe->try_host(gm, 1);
    if (!host) stop("address", w, "dcci at device address 0x%llx, which is not mapped", static_cast<unsigned long long>(gm));
    const uint64_t hostLine = reinterpret_cast<uint64_t>(host) & ~static_cast<uint64_t>(CACHE_LINE - 1);
    auto it = c.cache.find(hostLine);
    if (it != c.cache.end()) { // from the given address to the end of the line, as documented
        const uint32_t off = static_cast<uint32_t>(reinterpret_cast<uint64_t>(host) - hostLine);
        drop(c, hostLine, it->second, mask_of(off, CACHE_LINE - off));
        if (!it->second.valid) c.cache.erase(it);
    }
}

// A write that goes around the caches, into a line that some cache holds dirty, will be lost.
void watch_write(Core& c, uint64_t host, uint64_t bytes, const char* what, Where w)
{
    if (dirty_lines().count.load(std::memory_order_acquire) == 0) return;
    for (uint64_t l = host & ~63ull; l < host + bytes; l += CACHE_LINE)
        if (Core* o = owner_of(l)) {
            report("under-dirty", w, "%s writes a line that %s holds dirty in its cache and will overwrite", what, o == &c ? "this core" : name_of(*o).c_str());
            return;
        }
}

void watch_read(Core& c, uint64_t host, uint64_t bytes, const char* what, Where w)
{
    if (dirty_lines().count.load(std::memory_order_acquire) == 0) return;
    for (uint64_t l = host & ~63ull; l < host + bytes; l += CACHE_LINE)
        if (owner_of(l) == &c) {
            report("not-cleaned", w, "%s reads a line this core holds dirty in its cache: clean it first", what);
            return;
        }
}

void bypass_read(uint64_t gm, void* out, uint32_t bytes, Where w)
{
    Core& c = core();
    check_aligned(gm, bytes, w);
    issue_scalar(c, gm, bytes, false, w);
    uint8_t* p = c.pe->host(gm, bytes, "a scalar read", w);
    watch_read(c, reinterpret_cast<uint64_t>(p), bytes, "a read past the cache", w);
    yield_point(true, w);
    c.flush_touching(reinterpret_cast<uint64_t>(p), bytes);
    uint64_t v = 0;
    switch (bytes) { // acquire: pairs with the release of bypass_write and store_piece
    case 1: v = __atomic_load_n(p, __ATOMIC_ACQUIRE); break;
    case 2: v = __atomic_load_n(reinterpret_cast<uint16_t*>(p), __ATOMIC_ACQUIRE); break;
    case 4: v = __atomic_load_n(reinterpret_cast<uint32_t*>(p), __ATOMIC_ACQUIRE); break;
    default: v = __atomic_load_n(reinterpret_cast<uint64_t*>(p), __ATOMIC_ACQUIRE); break;
    }
    std::memcpy(out, &v, bytes);
}

void bypass_write(uint64_t gm, const void* in, uint32_t bytes, Where w)
{
    Core& c = core();
    check_aligned(gm, bytes, w);
    issue_scalar(c, gm, bytes, true, w);
    uint8_t* p = c.pe->host(gm, bytes, "a scalar write", w);
    watch_write(c, reinterpret_cast<uint64_t>(p), bytes, "a write past the cache", w);
    Store st{reinterpret_cast<uint64_t>(p), (1ull << bytes) - 1, {}};
    std::memcpy(st.data, in, bytes);
    c.store(st);
    yield_point(false, w);
}

uint64_t scalar_atomic(Rmw kind, Element type, uint64_t gm, uint64_t value, uint64_t compare, Where w)
{
    Core& c = core();
    const uint32_t bytes = element_bytes(type);
    check_aligned(gm, bytes, w);
    issue_scalar(c, gm, bytes, true, w);
    uint8_t* p = c.pe->host(gm, bytes, "an atomic", w);
    watch_write(c, reinterpret_cast<uint64_t>(p), bytes, "an atomic", w);
    const uint64_t old = apply_atomic(kind, type, p, value, compare);
    made_progress();
    yield_point(false, w);
    return old;
}

} // namespace km
