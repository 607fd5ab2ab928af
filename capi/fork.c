/*
 * fork.c - a forked child is harmless.
 *
 * The Go runtime does not survive a fork: its threads are gone and the child's first Go call would hang. So the
 * child is marked (hot_forked) before it runs anything, and every public function looks at the mark in C, before Go is entered.
 */
#include "internal.h"

#include <pthread.h>

static void in_child(void) { atomic_store_explicit(&hot_forked, 1, memory_order_relaxed); }

/* Runs when the library is loaded; a fork before that leaves nothing to mark, so such a child may init for itself. */
__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, in_child); }

int32_t fork_refuse(void) {
  return errtext_fail(GSHMEM_EFORKED,
                      "called in a forked child: the library's threads did not survive the fork. Use the parent, start "
                      "workers with the spawn or forkserver method, or load shmem in the child only");
}
