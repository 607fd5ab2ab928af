// memory.cpp: device addresses, DMA, vector work, atomics.
#include "launch.hpp"
#include <algorithm>
#include <cmath>

namespace km {

namespace {

bool inside(const km_region_t& r, uint64_t addr, uint64_t bytes)
{
    return addr >= r.device_addr && bytes <= r.size && addr - r.device_addr <= r.size - bytes;
}

template <typename U, typename F> uint64_t rmw_loop(void* p, F f)
{
    U* u = static_cast<U*>(p);
    U old = __atomic_load_n(u, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(u, &old, f(old), false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {}
    return old;
}

template <typename T> T combine(Rmw kind, T a, T b)
{
    switch (kind) {
    case Rmw::max: return a < b ? b : a;
    case Rmw::min: return b < a ? b : a;
    default:
        if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
        else return T(static_cast<float>(a) + static_cast<float>(b));
    }
}

template <typename T, typename U> uint64_t apply(Rmw kind, void* p, uint64_t value, uint64_t compare)
{
    const U v = static_cast<U>(value), c = static_cast<U>(compare);
    return rmw_loop<U>(p, [&](U old) -> U {
        if (kind == Rmw::exch) return v;
        if (kind == Rmw::cas) return old == c ? v : old;
        T a, b;
        std::memcpy(&a, &old, sizeof(T));
        std::memcpy(&b, &v, sizeof(T));
        a = combine(kind, a, b);
        U out;
        std::memcpy(&out, &a, sizeof(T));
        return out;
    });
}

// One piece of a store; words that others may poll change in one go.
void store_piece(uint8_t* to, const uint8_t* from, uint32_t len)
{
    const bool word = (len == 4 || len == 8 || len == 2) && reinterpret_cast<uintptr_t>(to) % len == 0;
    if (!word) {
        std::memcpy(to, from, len);
    } else if (len == 8) {
        uint64_t v;
        std::memcpy(&v, from, 8);
        __atomic_store_n(reinterpret_cast<uint64_t*>(to), v, __ATOMIC_RELEASE);
    } else if (len == 4) {
        uint32_t v;
        std::memcpy(&v, from, 4);
        __atomic_store_n(reinterpret_cast<uint32_t*>(to), v, __ATOMIC_RELEASE);
    } else {
        uint16_t v;
        std::memcpy(&v, from, 2);
        __atomic_store_n(reinterpret_cast<uint16_t*>(to), v, __ATOMIC_RELEASE);
    }
    __atomic_thread_fence(__ATOMIC_RELEASE); // pairs with the acquire of bypass_read and of a line fill
}

} // namespace

uint32_t element_bytes(Element e)
{
    switch (e) {
    case Element::i8: case Element::u8: return 1;
    case Element::i16: case Element::u16: case Element::f16: case Element::bf16: return 2;
    case Element::i64: case Element::u64: case Element::f64: return 8;
    default: return 4;
    }
}

uint64_t apply_atomic(Rmw kind, Element type, void* p, uint64_t value, uint64_t compare)
{
    switch (type) {
    case Element::i8: return apply<int8_t, uint8_t>(kind, p, value, compare);
    case Element::u8: return apply<uint8_t, uint8_t>(kind, p, value, compare);
    case Element::i16: return apply<int16_t, uint16_t>(kind, p, value, compare);
    case Element::u16: return apply<uint16_t, uint16_t>(kind, p, value, compare);
    case Element::f16: return apply<half, uint16_t>(kind, p, value, compare);
    case Element::bf16: return apply<bfloat16_t, uint16_t>(kind, p, value, compare);
    case Element::u32: return apply<uint32_t, uint32_t>(kind, p, value, compare);
    case Element::f32: return apply<float, uint32_t>(kind, p, value, compare);
    case Element::i64: return apply<int64_t, uint64_t>(kind, p, value, compare);
    case Element::u64: return apply<uint64_t, uint64_t>(kind, p, value, compare);
    default: return apply<int32_t, uint32_t>(kind, p, value, compare);
    }
}

uint8_t* Pe::try_host(uint64_t addr, uint64_t bytes) const
{
    for (uint64_t i = 0; i < dev->region_count; i++) {
        const km_region_t& r = dev->regions[i];
        if (inside(r, addr, bytes)) return static_cast<uint8_t*>(r.host_addr) + (addr - r.device_addr);
    }
    if (dev->translate)
        if (void* p = dev->translate(dev->translate_ctx, addr, bytes)) return static_cast<uint8_t*>(p);
    const km_region_t fixed{FIXED_STATE_ADDR, nullptr, FIXED_STATE_BYTES, dev->me, 0};
    if (dev->state && dev->state != FIXED_STATE_ADDR && inside(fixed, addr, bytes))
        return try_host(dev->state + (addr - FIXED_STATE_ADDR), bytes);
    return nullptr;
}

bool Pe::allowed(uint64_t addr, uint64_t bytes) const
{
    if (addr >= FIXED_STATE_ADDR && addr < FIXED_STATE_ADDR + FIXED_STATE_BYTES) return true;
    for (uint64_t i = 0; i < dev->extent_count; i++)
        if (inside(dev->extents[i], addr, bytes)) return true;
    return dev->extent_count == 0;
}

uint8_t* Pe::host(uint64_t addr, uint64_t bytes, const char* what, Where w)
{
    uint8_t* p = try_host(addr, bytes);
    if (!p)
        stop("address", w, "%s of %llu bytes at device address 0x%llx, which is not mapped", what,
             static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(addr));
    if (!allowed(addr, bytes))
        report("bound", w, "%s of %llu bytes at device address 0x%llx leaves every buffer", what,
               static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(addr));
    return p;
}

void watch_write(Core& c, uint64_t host, uint64_t bytes, const char* what, Where w); // dcache.cpp
void watch_read(Core& c, uint64_t host, uint64_t bytes, const char* what, Where w);

namespace {

void load_pieces(Core& c, const Dma& d, uint8_t garbage, Where w)
{
    for (uint32_t i = 0; i < d.blocks; i++) {
        uint8_t* ub = c.ub.data() + d.ub + d.ub_step * i;
        const uint8_t* gm = c.pe->host(d.gm + static_cast<uint64_t>(d.gm_step * i), d.len, "a copy from GM", w);
        watch_read(c, reinterpret_cast<uint64_t>(gm), d.len, "a copy from GM", w);
        const uint32_t pads = d.left_pad + d.right_pad, total = (d.len + pads + UB_BLOCK - 1) / UB_BLOCK * UB_BLOCK;
        if (d.padded) {
            for (uint32_t b = 0; b < total; b++) ub[b] = d.pad_value[b % d.elem_bytes];
        } else {
            std::memset(ub + d.len, garbage, total - d.len);
        }
        std::memcpy(ub + d.left_pad, gm, d.len);
    }
}

void store_pieces(Core& c, const Dma& d, Rmw kind, Element type, Where w)
{
    for (uint32_t i = 0; i < d.blocks; i++) {
        const uint8_t* ub = c.ub.data() + d.ub + d.ub_step * i;
        uint8_t* gm = c.pe->host(d.gm + static_cast<uint64_t>(d.gm_step * i), d.len, "a copy to GM", w);
        watch_write(c, reinterpret_cast<uint64_t>(gm), d.len, "a copy to GM", w);
        if (kind == Rmw::none) {
            store_piece(gm, ub, d.len);
            continue;
        }
        const uint32_t size = element_bytes(type);
        for (uint32_t b = 0; b + size <= d.len; b += size) {
            uint64_t v = 0;
            std::memcpy(&v, ub + b, size);
            apply_atomic(kind, type, gm + b, v, 0);
        }
    }
    made_progress();
}

Ranges ranges_of(const Dma& d, bool atomic)
{
    Ranges r;
    const uint32_t ubLen = d.to_ub ? (d.len + d.left_pad + d.right_pad + UB_BLOCK - 1) / UB_BLOCK * UB_BLOCK : d.len;
    r.add(Range{Range::UB, d.to_ub, false, d.blocks, d.ub, ubLen, d.ub_step});
    r.add(Range{Range::GM, !d.to_ub, atomic && !d.to_ub, d.blocks, d.gm, d.len, d.gm_step});
    return r;
}

} // namespace

void init_core() { core().initialized = true; }

namespace {

// Once for each core: all that follows is in doubt.
void expect_initialized(Core& c, const char* what, Where w)
{
    if (c.initialized) return;
    c.initialized = true;
    report("core-state", w, "%s by the atomic mode and vector masks that the last kernel left: InitSocState() or a TPipe comes first", what);
}

} // namespace

void dma(const Dma& d, Where w)
{
    Core& c = core();
    if (d.len == 0 || d.blocks == 0) return;
    if (!d.to_ub) expect_initialized(c, "a store", w);
    const uint32_t pads = d.left_pad + d.right_pad;
    const uint64_t last = d.ub + static_cast<uint64_t>(d.ub_step) * (d.blocks - 1);
    if (last + (d.len + pads + UB_BLOCK - 1) / UB_BLOCK * UB_BLOCK > UB_BYTES)
        stop("ub-bound", w, "a copy of %u bytes at UB address %llu leaves the unified buffer", d.len, static_cast<unsigned long long>(last));
    if (d.gm % d.elem_bytes)
        report("gm-align", w, "device address 0x%llx is not aligned to the element of %u bytes", static_cast<unsigned long long>(d.gm), d.elem_bytes);
    const Rmw kind = d.to_ub ? Rmw::none : c.atomic_kind;
    const Element type = c.atomic_type;
    if (kind != Rmw::none && type != d.element)
        report("atomic-type", w, "a store of another type than the one SetAtomic was called for at %s:%d", c.atomic_at.file, c.atomic_at.line);
    c.order.issue(d.to_ub ? MTE2 : MTE3, "a copy", ranges_of(d, kind != Rmw::none), w);
    Core* self = &c;
    const uint8_t garbage = static_cast<uint8_t>(0xfe + (c.random.s & 1));
    if (d.to_ub) c.submit(MTE2, Item{Item::Work, S, 0, w, [=] { load_pieces(*self, d, garbage, w); }});
    else c.submit(MTE3, Item{Item::Work, S, 0, w, [=] { store_pieces(*self, d, kind, type, w); }});
    yield_point(false, w);
}

void set_atomic(Rmw kind, Element type, Where w)
{
    Core& c = core();
    c.atomic_kind = kind;
    c.atomic_type = type;
    c.atomic_at = w;
}

void vector_op(const char* name, std::initializer_list<UbSpan> writes, std::initializer_list<UbSpan> reads,
               std::function<void(uint8_t* ub)> run, Where w)
{
    Core& c = core();
    expect_initialized(c, name, w);
    Ranges ranges;
    for (const UbSpan& s : writes) ranges.add(Range{Range::UB, true, false, 1, s.addr, s.bytes, 0});
    for (const UbSpan& s : reads) ranges.add(Range{Range::UB, false, false, 1, s.addr, s.bytes, 0});
    for (const Range& r : ranges)
        if (r.lo + r.len > UB_BYTES) stop("ub-bound", w, "%s leaves the unified buffer", name);
    c.order.issue(V, name, ranges, w);
    uint8_t* ub = c.ub.data();
    c.submit(V, Item{Item::Work, S, 0, w, [ub, run = std::move(run)] { run(ub); }});
}

void ub_read(uint32_t addr, void* out, uint32_t bytes, Where w)
{
    Core& c = core();
    if (addr + static_cast<uint64_t>(bytes) > UB_BYTES) stop("ub-bound", w, "a scalar read at UB address %u", addr);
    c.order.issue_scalar("a scalar read", Range{Range::UB, false, false, 1, addr, bytes, 0}, w);
    std::memcpy(out, c.ub.data() + addr, bytes);
}

void ub_write(uint32_t addr, const void* in, uint32_t bytes, Where w)
{
    Core& c = core();
    if (addr + static_cast<uint64_t>(bytes) > UB_BYTES) stop("ub-bound", w, "a scalar write at UB address %u", addr);
    c.order.issue_scalar("a scalar write", Range{Range::UB, true, false, 1, addr, bytes, 0}, w);
    std::memcpy(c.ub.data() + addr, in, bytes);
}

} // namespace km
