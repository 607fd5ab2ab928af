// kv_shuffle.cpp: moves cache blocks between PEs by a table.
//
// moves: local, move_count x 4 int32 {source block, destination member, destination block, 0}.
// Source blocks are block_bytes each from src, destination blocks from dst on the member. Each PE
// passes its own table and count; no two moves of all PEs may share a destination. A negative
// destination member means: no move. src may be dst only when no block is both moved and replaced.
// Blocks take moves in turn. Two barriers: the peers' dst is free, and every block has arrived.
#include "kernel_entry.h"

using namespace gshmem;

extern "C" GSHMEM_ENTRY void gshmem_k_kv_shuffle(GM_ADDR state, uint64_t team, GM_ADDR dst, GM_ADDR src, GM_ADDR moves,
                                         uint64_t move_count, uint64_t block_bytes)
{
    between_barriers(state, team, [=](const Team& t) {
        const uint64_t blocks = static_cast<uint64_t>(AscendC::GetBlockNum());
        for (uint64_t i = static_cast<uint64_t>(AscendC::GetBlockIdx()); i < move_count; i += blocks) {
            const uint64_t row = address(moves) + i * 16;
            const int32_t from = load_constant<int32_t>(row), member = load_constant<int32_t>(row + 4), to = load_constant<int32_t>(row + 8);
            if (member < 0 || member >= t.n) continue;
            put_nbi<uint8_t>(address(dst) + static_cast<uint64_t>(to) * block_bytes, address(src) + static_cast<uint64_t>(from) * block_bytes,
                             block_bytes, t.pe(member));
        }
    });
}
