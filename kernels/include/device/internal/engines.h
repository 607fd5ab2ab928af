// engines.h: the selection rule among the transfer engines.
//
// A PE may be reachable by several: the first usable of SDMA, UDMA (950 only), MTE, RoCE carries
// plain puts and gets. Strided forms, put_signal and signals always use MTE.
#ifndef GSHMEM_DEVICE_ENGINES_H
#define GSHMEM_DEVICE_ENGINES_H

#include "device/internal/queue.h"

namespace gshmem {

ACLSHMEM_DEVICE uint8_t topology(int pe)
{
    return load_constant<uint8_t>(context().state + offsetof(gshmem_device_state_t, topo_list) + static_cast<uint64_t>(pe));
}

// Loads and stores reach its memory.
ACLSHMEM_DEVICE bool is_mapped(int pe) { return !context().engines || (topology(pe) & GSHMEM_TOPO_MTE); }

// 0: MTE; else 1 + the engine.
ACLSHMEM_DEVICE int engine_of(int pe)
{
    if (!context().engines) return 0;
    const uint8_t t = topology(pe);
    if (t & GSHMEM_TOPO_SDMA) return 1 + ENGINE_SDMA;
    if (__NPU_ARCH__ == 3510 && (t & GSHMEM_TOPO_UDMA)) return 1 + ENGINE_UDMA;
    if (t & GSHMEM_TOPO_MTE || !(t & GSHMEM_TOPO_ROCE)) return 0;
    return 1 + ENGINE_RDMA;
}

// True when another engine than MTE took the transfer.
ACLSHMEM_DEVICE bool engine_put(uint64_t dst, uint64_t src, uint64_t bytes, int pe)
{
    const int e = engine_of(pe);
    if (e == 0) return false;
    const Engine engine = static_cast<Engine>(e - 1);
    engine_write(engine, dst, src, bytes, pe, default_scratch(engine));
    return true;
}
ACLSHMEM_DEVICE bool engine_get(uint64_t dst, uint64_t src, uint64_t bytes, int pe)
{
    const int e = engine_of(pe);
    if (e == 0) return false;
    const Engine engine = static_cast<Engine>(e - 1);
    engine_read(engine, dst, src, bytes, pe, default_scratch(engine));
    return true;
}

// This core's transfers to pe are complete, whichever engine carried them.
ACLSHMEM_DEVICE void engine_quiet(int pe)
{
    const int e = engine_of(pe);
    if (e != 0) engine_drain(static_cast<Engine>(e - 1), pe);
    quiet();
}

// This core's transfers to any PE are complete: what aclshmem_quiet() promises.
ACLSHMEM_DEVICE void quiet_all()
{
    const Context& c = context();
    for (int pe = 0; c.engines && pe < c.n; pe++) {
        const int e = engine_of(pe);
        if (e != 0) engine_drain(static_cast<Engine>(e - 1), pe);
    }
    quiet();
}

// The engines other than MTE have done this core's work for the team's members.
ACLSHMEM_DEVICE void drain_engines(const Team& t)
{
    for (int32_t i = 0; context().engines && i < t.n; i++) {
        const int pe = t.pe(i), e = engine_of(pe);
        if (e != 0) engine_drain(static_cast<Engine>(e - 1), pe);
    }
}

} // namespace gshmem
#endif
