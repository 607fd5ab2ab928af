/* shmem_state.h: the state struct that the host fills and kernels read. Host and device include it;
 * plain C types only, device addresses as uint64_t, so every compiler sees one layout.
 *
 * The first 32992 bytes are aclshmem_device_host_state_t of the public host header, byte for byte.
 * What follows is ours; `magic` says that it is there. */
#ifndef GSHMEM_DEVICE_STATE_H
#define GSHMEM_DEVICE_STATE_H

#include <stddef.h>
#include <stdint.h>

#define GSHMEM_MAX_PES 16384
#define GSHMEM_MAX_TEAMS 2048

/* Where kernels that were not passed the state find it (entity 0), if the device layer could
   reserve the page: 512 contexts of 64 KiB end 1 GiB below 0x180000000000. */
#define GSHMEM_FIXED_STATE_ADDR 0x17FFBE000000ull
#define GSHMEM_FIXED_STATE_BYTES 65536u

#define GSHMEM_STATE_MAGIC 0x676f73686d656d31ull /* "goshmem1" */

/* sync_pool: symmetric, one array per team index: 5 rounds x 8 partners x 64 bytes.
   sync_counter: local, one 64-byte line per team index.
   core_sync_pool: local, 6 rounds x 48 cores x 64 bytes; core_sync_counter: one line.
   All zero when the world comes up; monotonic since. */
#define GSHMEM_SYNC_LINE 64
#define GSHMEM_SYNC_ROUNDS 5
#define GSHMEM_SYNC_FANOUT 8
#define GSHMEM_TEAM_SYNC_BYTES (GSHMEM_SYNC_LINE * GSHMEM_SYNC_ROUNDS * GSHMEM_SYNC_FANOUT)
#define GSHMEM_MAX_CORES 48
#define GSHMEM_CORE_SYNC_ROUNDS 6
#define GSHMEM_TEAM_STOP_BYTES (2 * GSHMEM_SYNC_LINE)
#define GSHMEM_CORE_SYNC_BYTES (GSHMEM_SYNC_LINE * GSHMEM_CORE_SYNC_ROUNDS * GSHMEM_MAX_CORES)

/* topo_list bits: how a PE can be reached. */
#define GSHMEM_TOPO_MTE 1
#define GSHMEM_TOPO_ROCE 2
#define GSHMEM_TOPO_SDMA 4
#define GSHMEM_TOPO_UDMA 8

/* Work queues in memory, through which a core drives an engine of its own (RDMA, SDMA, UDMA).
   A table is one 64-byte header and then cores x pes descriptors of 64 bytes, so no two cores
   share a queue. The producer writes an entry, then its count of entries ever posted to `produced`
   (its own note) and to `doorbell` (which the engine watches). The engine works through a queue in
   order and writes its count of finished entries to `completed`. */
#define GSHMEM_QUEUE_MAGIC 0x676f717565756531ull

typedef struct gshmem_queue_table {
    uint64_t magic;
    uint32_t cores, pes;
    uint8_t reserved[48];
} gshmem_queue_table_t;

typedef struct gshmem_queue {
    uint64_t ring;      /* device address of `depth` entries */
    uint32_t depth, pe; /* a power of two; the peer it leads to */
    uint64_t doorbell, produced, completed; /* device addresses of uint64_t */
    uint8_t reserved[24];
} gshmem_queue_t;

enum gshmem_opcode {
    GSHMEM_OP_WRITE = 1,  /* length bytes, local -> remote */
    GSHMEM_OP_READ = 2,   /* length bytes, remote -> local */
    GSHMEM_OP_SET = 3,    /* value, of `size` bytes, -> remote */
    GSHMEM_OP_ADD = 4,    /* atomics on `size` (4 or 8) bytes; the old value goes to `local` unless 0 */
    GSHMEM_OP_SWAP = 5,
    GSHMEM_OP_CAS = 6,    /* value if it was `compare` */
    GSHMEM_OP_AND = 7,
    GSHMEM_OP_OR = 8,
    GSHMEM_OP_XOR = 9,
    GSHMEM_OP_PREFETCH = 10 /* length bytes at local, into the L2 cache: a hint */
};

typedef struct gshmem_wqe {
    uint32_t opcode, size;
    uint64_t local, remote, length, value, compare;
    uint64_t route; /* 0, or 1 + the PE whose links carry it */
    uint64_t index; /* entries posted before it: how the engine knows the entry is whole */
} gshmem_wqe_t;

typedef struct gshmem_ub_config {
    int64_t ub;
    uint32_t ub_size;
    uint32_t sync_id;
} gshmem_ub_config_t;

typedef struct gshmem_team_state { /* aclshmemx_team_t */
    int32_t mype, start, stride, size, team_idx, reserved0;
    int32_t config_version, config_contexts;
    uint64_t config_uniqueid;
    /* First word of the public struct's padding: device address of a core sync block of this
       team's own (GSHMEM_CORE_SYNC_BYTES flags, then one counter line, all zero at first), so that
       kernels of two teams may run at once. 0: the state's. */
    uint64_t core_sync;
    /* The next word of it: device address of this team's stop words (GSHMEM_TEAM_STOP_BYTES, all zero at first); 0: it has none.
       The host sets the first, an int32, to end what waits in kernels of this team, and the second, 4 bytes on, to end what waits
       for single signals on its behalf; other teams go on. A core that ends a wait for it stores 1 a line behind the word it saw. */
    uint64_t stop;
    uint8_t config_padding[32];
    int32_t pe_mapping[2 * GSHMEM_MAX_PES]; /* team index -> world PE; then MAX_PES + world PE -> index or -1 */
} gshmem_team_state_t;

typedef struct gshmem_device_state {
    int32_t version, mype, npes, reserved0;
    uint64_t heap_base, host_heap_base;
    uint64_t p2p_device_heap_base, rdma_device_heap_base, sdma_device_heap_base; /* device arrays of n addresses */
    uint64_t p2p_host_heap_base, rdma_host_heap_base, sdma_host_heap_base;
    uint8_t topo_list[GSHMEM_MAX_PES];
    uint64_t heap_size;
    uint64_t team_pools[GSHMEM_MAX_TEAMS]; /* device addresses of gshmem_team_state_t; 0 = no such team */
    uint64_t sync_pool, sync_counter, core_sync_pool, core_sync_counter;
    uint8_t is_initialized, is_created, reserved1[6];
    gshmem_ub_config_t mte_config, sdma_config, rdma_config, udma_config;
    uint64_t qp_info, sdma_workspace_addr, profs, signal_addr;
    /* ours */
    uint64_t magic;
    uint64_t abort_addr; /* device address of the int32 abort word: non-zero ends every wait; one team's: gshmem_team_state_t.stop */
    uint64_t udma_queues; /* queue table; qp_info and sdma_workspace_addr are those of RDMA and SDMA */
    uint64_t host_heap_size; /* bytes that p2p_host_heap_base's entries lead to; 0: kernels reach no host heap */
    uint64_t host_heap_address; /* where this PE's CPU has its host heap: such addresses are symmetric for kernels too; 0: none */
} gshmem_device_state_t;

#ifdef __cplusplus
static_assert(offsetof(gshmem_device_state_t, heap_base) == 16, "layout of the public state struct");
static_assert(offsetof(gshmem_device_state_t, topo_list) == 80, "layout of the public state struct");
static_assert(offsetof(gshmem_device_state_t, heap_size) == 16464, "layout of the public state struct");
static_assert(offsetof(gshmem_device_state_t, sync_pool) == 32856, "layout of the public state struct");
static_assert(offsetof(gshmem_device_state_t, mte_config) == 32896, "layout of the public state struct");
static_assert(offsetof(gshmem_device_state_t, qp_info) == 32960, "layout of the public state struct");
static_assert(offsetof(gshmem_device_state_t, magic) == 32992, "ours starts where the public struct ends");
static_assert(offsetof(gshmem_team_state_t, config_version) == 24, "layout of the public team struct");
static_assert(offsetof(gshmem_team_state_t, pe_mapping) == 88, "layout of the public team struct");
static_assert(sizeof(gshmem_queue_table_t) == 64 && sizeof(gshmem_queue_t) == 64 && sizeof(gshmem_wqe_t) == 64, "one cache line each");
static_assert(sizeof(gshmem_team_state_t) == 131160, "layout of the public team struct");
#endif
#endif
