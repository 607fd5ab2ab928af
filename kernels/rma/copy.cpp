// copy.cpp: contiguous put and get, the work of putmem/getmem on a stream.
// The blocks share the bytes; a launch may use any number of them.
#include "kernel_entry.h"

using namespace gshmem;

extern "C" GSHMEM_ENTRY void gshmem_k_put(GM_ADDR state, GM_ADDR dst, GM_ADDR src, uint64_t bytes, uint64_t pe)
{
    aclshmemx_set_state(state);
    const Share s = block_share(bytes, 512);
    put<uint8_t>(address(dst) + s.begin, address(src) + s.begin, s.size, static_cast<int>(pe));
}

extern "C" GSHMEM_ENTRY void gshmem_k_get(GM_ADDR state, GM_ADDR dst, GM_ADDR src, uint64_t bytes, uint64_t pe)
{
    aclshmemx_set_state(state);
    const Share s = block_share(bytes, 512);
    get<uint8_t>(address(dst) + s.begin, address(src) + s.begin, s.size, static_cast<int>(pe));
}
