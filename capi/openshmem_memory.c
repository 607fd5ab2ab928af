/*
 * openshmem_memory.c - shmem_malloc and its relatives.
 *
 * Every call is collective over all PEs. They first tell each other what they ask for, which is the barrier the specification
 * wants and finds PEs that disagree. Freed blocks are kept for a while: a request that fits one of them needs nothing but that
 * exchange. All PEs free and ask in the same order, so they keep and find the same blocks.
 */
#include "openshmem.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct piece {
  void *address;
  uint64_t block, size; /* the native handle; bytes it holds */
  struct piece *next;
} piece;

#define BUCKETS 1024u
#define KEEP_BLOCKS 32u
#define KEEP_BYTES (64ull << 20)

static piece *buckets[BUCKETS]; /* blocks of the program; guarded by lock, as all below */
static piece *kept;             /* freed ones, newest first */
static uint32_t nkept;
static uint64_t kept_bytes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static piece **bucket_of(const void *address) { return &buckets[((uintptr_t)address >> 6) % BUCKETS]; }

static piece *take_from(piece **list, const piece *which) {
  for (piece **p = list; *p; p = &(*p)->next)
    if (*p == which) {
      piece *found = *p;
      *p = found->next;
      return found;
    }
  return NULL;
}

static piece *find(const void *address) {
  for (piece *p = *bucket_of(address); p; p = p->next)
    if (p->address == address) return p;
  return NULL;
}

/* Says the same two numbers at every PE and waits for all: 1 when all said the same. Mapped and unmapped puts are done by then. */
static int agree(const char *op, uint64_t a, uint64_t b) {
  uint64_t mine[2] = {a, b}, few[2 * 64], *all = few;
  shmem_quiet();
  if (osh.n > 64 && !(all = malloc(sizeof mine * (size_t)osh.n))) osh_die(op, "no memory for the requests of %d PEs", osh.n);
  osh_check(op, gshmem_all_gather(osh.team, mine, all, sizeof mine));
  int same = 1;
  for (int32_t r = 0; r < osh.n && same; r++) {
    if (all[2 * r] == a && all[2 * r + 1] == b) continue;
    osh_say(op, "PEs disagree: PE %d says %llu (%#llx), PE %d says %llu (%#llx); the call is collective with equal arguments", osh.me,
            (unsigned long long)a, (unsigned long long)b, r, (unsigned long long)all[2 * r], (unsigned long long)all[2 * r + 1]);
    same = 0;
  }
  if (all != few) free(all);
  return same;
}

/* The kept block that fits best without wasting half of it. */
static piece *best_kept(uint64_t size, uint64_t align) {
  piece *best = NULL;
  for (piece *p = kept; p; p = p->next)
    if (p->size >= size && p->size / 2 <= size && !((uintptr_t)p->address & (align - 1)) && (!best || p->size < best->size)) best = p;
  return best;
}

/* Gives kept blocks back to the heap, oldest first, until at most so many are left. Collective. */
static void give_back(uint32_t blocks, uint64_t bytes) {
  while (nkept > blocks || kept_bytes > bytes) {
    piece **last = &kept;
    while ((*last)->next) last = &(*last)->next;
    piece *p = *last;
    *last = NULL;
    nkept--;
    kept_bytes -= p->size;
    osh_check("free", gshmem_free(p->block, GSHMEM_DEFAULT_TIMEOUT));
    free(p);
  }
}

static piece *fresh(uint64_t size, uint64_t align, uint32_t flags) {
  piece *p = malloc(sizeof *p);
  if (!p) osh_die("malloc", "no memory for the record of a block");
  int32_t rc = gshmem_alloc(osh.team, size, align, flags, GSHMEM_DEFAULT_TIMEOUT, &p->block, &p->address);
  if (rc && nkept) {
    give_back(0, 0);
    rc = gshmem_alloc(osh.team, size, align, flags, GSHMEM_DEFAULT_TIMEOUT, &p->block, &p->address);
  }
  if (rc == GSHMEM_OK) {
    p->size = size;
    return p;
  }
  free(p);
  if (rc != GSHMEM_EHEAPFULL && rc != GSHMEM_ENOMEM) osh_fail("malloc", rc);
  return NULL; /* on every PE; gshmem_last_error has the words */
}

static void *allocate(const char *op, uint64_t size, uint64_t align, uint32_t flags) {
  if (!osh.world) osh_die(op, "called before shmem_init or after shmem_finalize");
  pthread_mutex_lock(&lock);
  piece *p = size ? best_kept(size, align) : NULL;
  if (p && flags & GSHMEM_ZERO) memset(p->address, 0, size); /* before the others hear of it */
  void *address = NULL;
  if (agree(op, size, align << 1 | (flags & GSHMEM_ZERO)) && size) {
    if (p) {
      take_from(&kept, p);
      nkept--;
      kept_bytes -= p->size;
    } else {
      p = fresh(size, align, flags);
    }
    if (p) {
      piece **b = bucket_of(p->address);
      p->next = *b;
      *b = p;
      address = p->address;
    }
  }
  pthread_mutex_unlock(&lock);
  return address;
}

void *shmem_malloc(size_t size) { return allocate("malloc", size, 64, 0); }

void *shmem_malloc_with_hints(size_t size, long hints) {
  (void)hints; /* they promise how the block is used; it serves every use equally */
  return allocate("malloc_with_hints", size, 64, 0);
}

void *shmem_calloc(size_t count, size_t size) {
  uint64_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) bytes = UINT64_MAX / 2; /* more than any heap has: NULL everywhere */
  return allocate("calloc", bytes, 64, GSHMEM_ZERO);
}

void *shmem_align(size_t alignment, size_t size) {
  if (!alignment || alignment & (alignment - 1)) return NULL; /* no power of two, at any PE that keeps to the rules */
  return allocate("align", size, alignment > 64 ? alignment : 64, 0);
}

void shmem_free(void *ptr) {
  if (!osh.world) osh_die("free", "called before shmem_init or after shmem_finalize");
  if (!ptr) return;
  pthread_mutex_lock(&lock);
  piece *p = find(ptr);
  if (!p) osh_die("free", "%p is no block of shmem_malloc, or was freed already", ptr);
  if (!agree("free", (uintptr_t)ptr - osh.heap_low, p->size)) osh_die("free", "PEs free different blocks");
  take_from(bucket_of(ptr), p);
  p->next = kept;
  kept = p;
  nkept++;
  kept_bytes += p->size;
  give_back(KEEP_BLOCKS, KEEP_BYTES < osh.heap_bytes / 8 ? KEEP_BYTES : osh.heap_bytes / 8);
  pthread_mutex_unlock(&lock);
}

void *shmem_realloc(void *ptr, size_t size) {
  if (!ptr) return shmem_malloc(size);
  if (!size) {
    shmem_free(ptr);
    return NULL;
  }
  pthread_mutex_lock(&lock);
  piece *p = find(ptr);
  if (!p) osh_die("realloc", "%p is no block of shmem_malloc, or was freed already", ptr);
  uint64_t have = p->size;
  int stays = size <= have && (size >= have / 2 || have <= 4096);
  if (stays && !agree("realloc", size, (uintptr_t)ptr - osh.heap_low)) osh_die("realloc", "PEs disagree");
  pthread_mutex_unlock(&lock);
  if (stays) return ptr;
  void *moved = shmem_malloc(size);
  if (!moved) return NULL; /* the old block stays */
  memcpy(moved, ptr, size < have ? size : have);
  shmem_free(ptr); /* its exchange comes after every PE has copied */
  return moved;
}

/* The world ends: its blocks end with it, their records here. */
void osh_memory_close(void) {
  pthread_mutex_lock(&lock);
  for (uint32_t i = 0; i <= BUCKETS; i++) {
    piece **list = i < BUCKETS ? &buckets[i] : &kept;
    while (*list) {
      piece *p = *list;
      *list = p->next;
      gshmem_block_drop(p->block);
      free(p);
    }
  }
  nkept = 0;
  kept_bytes = 0;
  pthread_mutex_unlock(&lock);
}
