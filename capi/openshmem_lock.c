/*
 * openshmem_lock.c - locks, granted in the order of asking (after Mellor-Crummey and Scott's queue lock, 1991).
 *
 * The symmetric long of a lock holds two 32-bit words. `tail`, at one home PE: the last in the queue, as PE + 1, 0 when
 * the lock is free. `node`, at each PE: WAITING while it queues, and PE + 1 of whoever comes next. So a waiter looks at its own
 * memory only, and a release touches one peer: setting a free lock is one swap, clearing it one compare-and-swap.
 */
#include "openshmem.h"

#define WAITING 0x80000000u

_Static_assert(sizeof(long) == 8, "a lock needs a long of 64 bits");

static uint32_t *node_of(long *lock) { return (uint32_t *)lock; }
static uint32_t *tail_of(long *lock) { return (uint32_t *)lock + 1; }

static uint32_t update(const char *op, int32_t what, uint32_t *word, uint32_t operand, uint32_t compare, int pe) {
  uint64_t old = 0;
  osh_check(op, gshmem_atomic(osh.world, what, 4, word, operand, compare, pe, &old));
  return (uint32_t)old;
}

/* Locks spread over the PEs by their place in the heap, which is the same everywhere. */
static int home_of(const long *lock) { return (int)(((uintptr_t)lock - osh.heap_low) / sizeof(long) % (uint32_t)(osh.n > 0 ? osh.n : 1)); }

void shmem_set_lock(long *lock) {
  lock = osh_twin(lock);
  uint32_t me = (uint32_t)osh.me + 1;
  update("set_lock", GSHMEM_A_SET, node_of(lock), WAITING, 0, osh.me);
  uint32_t before = update("set_lock", GSHMEM_A_SWAP, tail_of(lock), me, 0, home_of(lock));
  if (before) {
    update("set_lock", GSHMEM_A_OR, node_of(lock), me, 0, (int)before - 1);
    uint64_t word;
    /* not negative: WAITING is gone; partner: the atomic and in shmem_clear_lock */
    osh_check("set_lock", gshmem_wait_until(osh.world, node_of(lock), 4, 1, GSHMEM_CMP_GE, 0, -1, &word));
  } else {
    update("set_lock", GSHMEM_A_AND, node_of(lock), ~WAITING, 0, osh.me);
  }
}

/* The node of a PE outside of the queue is 0, which is what a holder without a successor has. */
int shmem_test_lock(long *lock) {
  lock = osh_twin(lock);
  return update("test_lock", GSHMEM_A_CSWAP, tail_of(lock), (uint32_t)osh.me + 1, 0, home_of(lock)) ? 1 : 0;
}

void shmem_clear_lock(long *lock) {
  lock = osh_twin(lock);
  uint32_t me = (uint32_t)osh.me + 1;
  osh_check("clear_lock", gshmem_quiet(osh.world, -1)); /* what was done under the lock is there for the next holder */
  uint32_t next = update("clear_lock", GSHMEM_A_FETCH, node_of(lock), 0, 0, osh.me);
  if (!next) {
    uint32_t tail = update("clear_lock", GSHMEM_A_CSWAP, tail_of(lock), 0, me, home_of(lock));
    if (tail == me) return;
    if (!tail) osh_die("clear_lock", "the lock is not set: clear a lock only at the PE that holds it");
    uint64_t word; /* somebody is about to enter itself */
    osh_check("clear_lock", gshmem_wait_until(osh.world, node_of(lock), 4, 0, GSHMEM_CMP_NE, 0, -1, &word));
    next = (uint32_t)word;
  }
  update("clear_lock", GSHMEM_A_SET, node_of(lock), 0, 0, osh.me);
  update("clear_lock", GSHMEM_A_AND, node_of(lock), ~WAITING, 0, (int)next - 1);
}
