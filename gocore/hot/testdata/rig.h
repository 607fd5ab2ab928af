/*
 * rig.h - PEs for the C tests of the hot path: shared memory, one table per process, canaries, checks.
 *
 * Each test is a function of its own in *_test.c and runs in a forked process with an alarm clock, so a fault or a hang is
 * the failure of that test. These files compile with the hot path's own and nothing else, so that the sanitizers run on both.
 */
#ifndef RIG_H
#define RIG_H

#define _GNU_SOURCE
#include "../hot_inline.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define RIG_HEAP 4096u
#define RIG_BYTES (1u << 20)
#define RIG_MAX 8

typedef struct rig {
  uint8_t *seg[RIG_MAX];
  hot_world *w;
  uint64_t h;
  int me, n;
} rig;

#define CHECK(cond)                                                             \
  do {                                                                          \
    if (!(cond)) {                                                              \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #cond);      \
      _exit(1);                                                                 \
    }                                                                           \
  } while (0)
#define CHECK_EQ(got, want)                                                                                       \
  do {                                                                                                            \
    long long g_ = (long long)(got), w_ = (long long)(want);                                                      \
    if (g_ != w_) {                                                                                               \
      fprintf(stderr, "%s:%d: %s is %lld, want %s = %lld\n", __FILE__, __LINE__, #got, g_, #want, w_);            \
      _exit(1);                                                                                                   \
    }                                                                                                             \
  } while (0)

/* Shared memory of n PEs; call before rig_fork. */
static inline void rig_memory(rig *r, int n) {
  memset(r, 0, sizeof *r);
  r->n = n;
  for (int p = 0; p < n; p++) {
    r->seg[p] = mmap(NULL, RIG_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(r->seg[p] != MAP_FAILED);
  }
}

/* This process (or this table) becomes PE me. */
static inline void rig_table(rig *r, int me) {
  r->me = me;
  r->w = hot_world_new(me, r->n, 1);
  CHECK(r->w);
  r->w->crowded = r->n > (int)sysconf(_SC_NPROCESSORS_ONLN);
  r->w->direct = 1;
  CHECK_EQ(hot_world_segment(r->w, r->seg[me] + RIG_HEAP, RIG_BYTES - RIG_HEAP, RIG_HEAP, 0, HOT_KIND_HOST), 0);
  for (int p = 0; p < r->n; p++) {
    hot_world_base(r->w, 0, p, r->seg[p] + RIG_HEAP);
    hot_world_whole(r->w, p, r->seg[p]);
  }
  r->h = hot_world_publish(r->w);
}

static inline void rig_end(rig *r) {
  hot_world_close(r->w);
  CHECK_EQ(hot_world_drain(r->w, 100000000000ll), HOT_OK);
  hot_world_free(r->w);
}

/* Forks n-1 children and gives each process its table. rig_join ends the children and checks them. */
static inline void rig_fork(rig *r) {
  int me = r->n - 1;
  for (; me > 0; me--)
    if (fork() == 0) {
      alarm(250);
      break;
    }
  rig_table(r, me);
}

static inline void rig_join(rig *r) {
  rig_end(r);
  if (r->me) _exit(0);
  for (int p = 1, status; p < r->n; p++) {
    CHECK(wait(&status) > 0);
    CHECK_EQ(status, 0);
  }
}

/* Word i of this PE's heap, 128 bytes apart. */
static inline uint64_t *rig_word(rig *r, int i) { return (uint64_t *)(void *)(r->seg[r->me] + RIG_HEAP + 128u * (unsigned)i); }

static inline void rig_wait(rig *r, const void *word, int width, int cmp, uint64_t value) {
  hot_wait s = {.deadline_ns = hot_now() + 200000000000ll};
  CHECK_EQ(hot_h_wait_until(r->h, word, width, cmp, value, &s, INT64_MAX), HOT_OK);
}

/* A barrier from p and wait; words 1000.. of the heap. */
static inline void rig_barrier(rig *r, uint64_t *round) {
  uint64_t v = ++*round;
  for (int p = 0; p < r->n; p++) CHECK_EQ(hot_h_p(r->h, rig_word(r, 1000 + 8 * (int)(v & 1) + r->me), v, 8, p), HOT_OK);
  for (int p = 0; p < r->n; p++) rig_wait(r, rig_word(r, 1000 + 8 * (int)(v & 1) + p), 8, HOT_CMP_EQ, v);
}

typedef struct test_case {
  const char *name;
  void (*run)(void);
} test_case;
extern const test_case onesided_tests[], waiting_tests[], closing_tests[], collective_tests[];

#endif
