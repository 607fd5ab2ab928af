// engines.h: the selection rule among the transfer engines.
//
// A PE may be reachable by several: the first usable of SDMA, UDMA (950 only), MTE, RoCE carries
// plain puts and gets. Strided forms, put_signal and signals use MTE whenever the PE is mapped.
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

ACLSHMEM_DEVICE Engine engine_of(int pe)
{
    if (!context().engines) return ENGINE_MTE;
    const uint8_t t = topology(pe);
    if (t & GSHMEM_TOPO_SDMA) return ENGINE_SDMA;
    if (__NPU_ARCH__ == 3510 && (t & GSHMEM_TOPO_UDMA)) return ENGINE_UDMA;
    return t & GSHMEM_TOPO_MTE ? ENGINE_MTE : ENGINE_RDMA; // which traps where there is no way at all
}

// Posts the transfer to the engine that must carry it. False: that is MTE, which takes no entries.
ACLSHMEM_DEVICE bool by_engine(gshmem_opcode op, uint64_t here, uint64_t there, uint64_t bytes, int pe)
{
    const Engine e = engine_of(pe);
    if (e == ENGINE_MTE) return false;
    engine_copy(e, op, here, there, bytes, pe, default_scratch(e), 0);
    return true;
}

// Every engine has done what this core posted to pe.
ACLSHMEM_DEVICE void drain(int pe)
{
    for (int e = ENGINE_RDMA; e <= ENGINE_UDMA; e++)
        if (has_queues(static_cast<Engine>(e))) engine_drain(static_cast<Engine>(e), pe);
}

// This core's transfers to pe are complete, whichever engine carried them.
ACLSHMEM_DEVICE void engine_quiet(int pe)
{
    if (context().engines) drain(pe);
    quiet();
}

// This core's transfers to any PE are complete: what aclshmem_quiet() promises.
ACLSHMEM_DEVICE void quiet_all()
{
    for (int pe = 0; context().engines && pe < context().n; pe++) drain(pe);
    quiet();
}

// The engines other than MTE have done this core's work for the team's members.
ACLSHMEM_DEVICE void drain_engines(const Team& t)
{
    for (int32_t i = 0; context().engines && i < t.n; i++) drain(t.pe(i));
}

} // namespace gshmem
#endif
