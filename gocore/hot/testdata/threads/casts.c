/*
 * casts.c - PEs as threads of one process, so that ThreadSanitizer sees every pair of accesses: one-way broadcasts in long runs from one
 * root, which fill all letters, with a slow member and a meeting or reduction now and then. Status 0: values were right; races are the
 * sanitizer's to tell.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../exec.h"

enum { N = 4, SEGMENT = 1 << 20, CONTROL = 512 << 10, HEAP = 768 << 10, RUN = 700, TURNS = 30000 };

static uint8_t *segment[N];
static hot_world *world[N];
static hot_team *team[N];

static uint32_t random_of(uint32_t *s) {
  *s ^= *s << 13;
  *s ^= *s >> 17;
  return *s ^= *s << 5;
}

static int32_t do_call(int me, hot_call call) {
  hot_coll c;
  return hot_collective(&c, team[me], atomic_load(&team[me]->handle), &call, GSHMEM_DEFAULT_TIMEOUT, -1);
}

static long cast(int me, int turn, uint32_t len, int root) {
  unsigned char in[HOT_INLINE_BYTES], out[HOT_INLINE_BYTES];
  long wrong = 0;
  for (uint32_t j = 0; j < len; j++) in[j] = me == root ? (unsigned char)(turn * 31 + (int)j + root) : 0;
  if (do_call(me, (hot_call){.op = HOT_OP_CAST, .root = root, .in = in, .out = out, .count = len})) return 1;
  for (uint32_t j = 0; j < len; j++) wrong += out[j] != (unsigned char)(turn * 31 + (int)j + root);
  return wrong;
}

static long sum(int me, int turn) {
  int64_t in[8], out[8];
  long wrong = 0;
  for (int j = 0; j < 8; j++) in[j] = me * 100 + turn + j;
  if (do_call(me, (hot_call){.op = HOT_OP_ALL_REDUCE, .dtype = HOT_T_I64, .redop = HOT_R_SUM, .root = -1, .in = in, .out = out, .count = 8})) return 1;
  for (int j = 0; j < 8; j++) wrong += out[j] != N * (N - 1) / 2 * 100 + N * (int64_t)(turn + j);
  return wrong;
}

static void *pe(void *arg) {
  int me = (int)(intptr_t)arg;
  uint32_t same = 99;
  long wrong = 0;
  for (int turn = 0; turn < TURNS && !wrong; turn++) {
    uint32_t kind = random_of(&same) % 300, len = random_of(&same) % (HOT_INLINE_BYTES + 1);
    if (me == 3) sched_yield(); /* always behind */
    if (kind == 0)
      wrong += do_call(me, (hot_call){.op = HOT_OP_SYNC, .root = -1}) != 0;
    else
      wrong += kind == 1 ? sum(me, turn) : cast(me, turn, len, turn / RUN % 3);
  }
  return (void *)wrong;
}

static void set_up(int me) {
  hot_world *w = world[me] = hot_world_new(me, N, 1);
  int32_t heap = hot_world_segment(w, segment[me] + HEAP, SEGMENT - HEAP, HEAP, 0, HOT_KIND_HOST);
  for (int p = 0; p < N; p++) {
    hot_world_base(w, (uint32_t)heap, p, segment[p] + HEAP);
    hot_world_whole(w, p, segment[p]);
  }
  w->direct = w->crowded = 1;
  atomic_store(&w->spin, 0);
  hot_world_publish(w);
  hot_team *t = team[me] = hot_team_new(w, me, N);
  for (int p = 0; p < N; p++) {
    t->pe[p] = p;
    t->ctl[p] = segment[p] + CONTROL;
    t->ctl_off[p] = CONTROL;
  }
  t->mapped = 1;
  hot_team_publish(t);
}

int main(void) {
  const uint8_t nonce[16] = {1};
  pthread_t thread[N];
  long wrong = 0;
  for (int i = 0; i < N; i++) {
    segment[i] = aligned_alloc(4096, SEGMENT);
    memset(segment[i], 0, SEGMENT);
    hot_header_init((hot_header *)segment[i], i, N, nonce, SEGMENT, 4096, 4096, HEAP - 4096, HEAP, SEGMENT - HEAP);
  }
  for (int i = 0; i < N; i++) set_up(i);
  for (int i = 0; i < N; i++) pthread_create(&thread[i], NULL, pe, (void *)(intptr_t)i);
  for (int i = 0; i < N; i++) {
    void *one;
    pthread_join(thread[i], &one);
    wrong += (long)one;
  }
  printf("%ld wrong\n", wrong);
  return wrong != 0;
}
