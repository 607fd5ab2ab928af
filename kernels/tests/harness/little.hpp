// little.hpp: runs one little kernel on the PEs of a configuration, in a right and a wrong form, and returns
// what the model said and what PE 0's memory became.
#ifndef KERNEL_TESTS_LITTLE_HPP
#define KERNEL_TESTS_LITTLE_HPP

#include "world.hpp"
#include "kernel_entry.h"
#include <cstring>

struct Given { // arguments of every little kernel: its own memory, and whether to be wrong
    uint64_t state, a, b, peer, wrong;
};

using Little = void (*)(const Given&);
inline Little little = nullptr;

inline bool little_initializes = false; // it does itself what is done for it else

inline void run_little(const void* p)
{
    if (!little_initializes) AscendC::InitSocState();
    little(*static_cast<const Given*>(p));
}

struct Outcome {
    int32_t rc;
    std::string report;
    std::vector<uint8_t> a, b; // PE 0's memory afterwards
};

inline Outcome run(Little k, bool wrong, Config c)
{
    km_register_kernel("little", run_little, sizeof(Given));
    World w(c);
    const uint64_t a = w.symmetric(4096), b = w.symmetric(4096);
    std::vector<Given> g;
    std::vector<const void*> argp;
    std::vector<const km_device_t*> devs;
    for (int i = 0; i < w.n(); i++) {
        fill_bytes(w.sym_host(i, a), 4096, i, 0);
        std::memset(w.sym_host(i, b), 0, 4096);
        g.push_back({w.state(i), w.sym(i, a), w.sym(i, b), uint64_t((i + 1) % w.n()), wrong});
    }
    for (int i = 0; i < w.n(); i++) {
        argp.push_back(&g[i]);
        devs.push_back(w.device(i));
    }
    little = k;
    Outcome o;
    o.rc = km_launch_group("little", c.blocks, argp.data(), sizeof(Given), devs.data(), uint32_t(w.n()));
    o.report = km_last_report();
    o.a.assign(w.sym_host(0, a), w.sym_host(0, a) + 4096);
    o.b.assign(w.sym_host(0, b), w.sym_host(0, b) + 4096);
    return o;
}

// Each is reported at the caller's line.
template <AscendC::HardEvent e> void order(int id, km::Where w = km::Where::here())
{
    AscendC::SetFlag<e>(id, w);
    AscendC::WaitFlag<e>(id, w);
}

// 64 bytes between GM and UB address 0.
inline void load(uint64_t from, km::Where w = km::Where::here())
{
    AscendC::DataCopyPad(gshmem::local<uint8_t>(0, 64), gshmem::global<uint8_t>(from), AscendC::DataCopyExtParams(1, 64, 0, 0, 0), AscendC::DataCopyPadExtParams<uint8_t>{}, w);
}
inline void store(uint64_t to, km::Where w = km::Where::here())
{
    AscendC::DataCopyPad(gshmem::global<uint8_t>(to), gshmem::local<uint8_t>(0, 64), AscendC::DataCopyExtParams(1, 64, 0, 0, 0), w);
}

#endif
