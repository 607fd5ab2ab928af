/*
 * body.h - the rows for any symmetric-memory library. The program that includes it defines, before, these static inline
 * functions over its library: int lib_me(void), lib_n(void); void *lib_alloc(uint64_t bytes) (zeroed, collective);
 * void lib_put(void *dst, const void *src, uint64_t bytes, int pe), lib_get(...), lib_p(uint64_t *dst, uint64_t v, int pe),
 * lib_wait(uint64_t *word, uint64_t at_least), lib_barrier(void), lib_all_reduce(float *out, const float *in, uint64_t count);
 * uint64_t lib_fetch_add(uint64_t *dst, uint64_t v, int pe).
 */
#ifndef BODY_H
#define BODY_H

#include "rows.h"

#include <unistd.h>

static int crowded(void) { return lib_n() > (int)sysconf(_SC_NPROCESSORS_ONLN); }

static uint64_t *agreed; /* symmetric: what PE 0 decided */

/* How often to repeat what took PE 0 `ns` for TRIED times. Collective. */
static int body_fit(int most, double ns) {
  uint64_t mine = (uint64_t)rows_fit(most, TRIED, ns);
  lib_barrier();
  for (int p = 0; p < lib_n() && lib_me() == 0; p++) lib_put(agreed, &mine, 8, p);
  lib_barrier();
  return (int)*(volatile uint64_t *)agreed;
}

static void body_barrier(void) {
  double t[BATCHES], first = now_ns();
  for (int i = 0; i < TRIED; i++) lib_barrier();
  int repeat = body_fit(rows_repeat(0, crowded()), now_ns() - first);
  for (int b = 0; b < BATCHES; b++) {
    lib_barrier();
    double begin = now_ns();
    for (int i = 0; i < repeat; i++) lib_barrier();
    t[b] = (now_ns() - begin) / repeat;
  }
  if (lib_me() == 0) rows_print("barrier", 0, lib_n(), median(t, BATCHES));
}

static void body_all_reduce(float *in, float *out, uint64_t size) {
  double t[BATCHES];
  for (uint64_t i = 0; i < size / 4; i++) {
    in[i] = input_at(lib_me(), i);
    out[i] = 0;
  }
  lib_barrier();
  double first = now_ns();
  for (int i = 0; i < TRIED; i++) lib_all_reduce(out, in, size / 4);
  int repeat = body_fit(rows_repeat(size, crowded()), now_ns() - first);
  for (int b = 0; b < BATCHES; b++) {
    lib_barrier();
    double begin = now_ns();
    for (int i = 0; i < repeat; i++) lib_all_reduce(out, in, size / 4);
    t[b] = (now_ns() - begin) / repeat;
  }
  check_sums(out, size / 4, lib_n());
  if (lib_me() == 0) rows_print("all_reduce", size, lib_n(), median(t, BATCHES));
  lib_barrier();
}

/* To and fro `repeat` times; `value` goes on counting. */
static double ping_pong(uint64_t *ball, int repeat, uint64_t *value) {
  lib_barrier();
  double begin = now_ns();
  for (int i = 0; i < repeat; i++) {
    ++*value;
    if (lib_me() == 0) lib_p(ball, *value, 1);
    lib_wait(ball, *value);
    if (lib_me() == 1) lib_p(ball, *value, 0);
  }
  return now_ns() - begin;
}

static void body_p_wait(uint64_t *ball) {
  double t[BATCHES];
  uint64_t value = 0;
  int repeat = body_fit(20000, ping_pong(ball, TRIED, &value));
  for (int b = 0; b < BATCHES; b++) t[b] = ping_pong(ball, repeat, &value) / repeat / 2;
  if (lib_me() == 0) rows_print("p_wait", 8, lib_n(), median(t, BATCHES));
}

/* `what` 0 put, 1 get, 2 fetch_add, on the memory of PE 1, which waits in a barrier. */
static void body_word(uint64_t *word, int what, const char *row) {
  double t[BATCHES];
  const int repeat = 100000;
  uint64_t v = 0, sum = 0;
  for (int b = 0; b < BATCHES && lib_me() == 0; b++) {
    double begin = now_ns();
    for (int i = 0; i < repeat; i++) {
      v = (uint64_t)i;
      if (what == 0) lib_put(word, &v, 8, 1);
      if (what == 1) lib_get(&v, word, 8, 1);
      if (what == 2) sum += lib_fetch_add(word, 1, 1);
    }
    t[b] = (now_ns() - begin) / repeat;
  }
  __asm__ __volatile__("" ::"r"(sum), "r"(v));
  if (lib_me() == 0) rows_print(row, 8, lib_n(), median(t, BATCHES));
  lib_barrier();
}

static void body_put(uint8_t *dst, uint8_t *src, uint64_t size) {
  double t[BATCHES];
  int repeat = rows_repeat(size, 0);
  memset(src, 1, size);
  memset(dst, 0, size);
  lib_barrier();
  for (int b = 0; b < BATCHES && lib_me() == 0; b++) {
    double begin = now_ns();
    for (int i = 0; i < repeat; i++) {
      src[i] = (uint8_t)(i + b);
      lib_put(dst, src, size, 1);
    }
    t[b] = (now_ns() - begin) / repeat;
  }
  lib_barrier();
  if (lib_me() == 0) {
    lib_get(dst, dst, size, 1);
    if (memcmp(dst, src, size)) {
      fprintf(stderr, "put of %llu bytes: the target has other bytes\n", (unsigned long long)size);
      exit(1);
    }
    rows_print("put", size, lib_n(), median(t, BATCHES));
  }
  lib_barrier(); /* the target clears its memory for the next size only after the look above */
}

static uint64_t body_largest(const rows *r) {
  uint64_t most = 4096;
  for (size_t i = 0; i < COUNT_OF(reduce_sizes); i++)
    if (lib_n() <= 4 && rows_want(r, "all_reduce", reduce_sizes[i], lib_n()) && reduce_sizes[i] > most) most = reduce_sizes[i];
  for (size_t i = 0; i < COUNT_OF(put_sizes); i++)
    if (rows_want(r, "put", put_sizes[i], 2) && put_sizes[i] > most) most = put_sizes[i];
  return most;
}

static void body_run(const rows *r) {
  static const char *const words[] = {"put", "get", "fetch_add"};
  uint64_t most = body_largest(r);
  uint8_t *in = lib_alloc(most), *out = lib_alloc(most);
  uint64_t *ball = lib_alloc(512);
  agreed = ball + 48;
  if (rows_want(r, "barrier", 0, lib_n())) body_barrier();
  for (size_t i = 0; lib_n() <= 4 && i < COUNT_OF(reduce_sizes); i++)
    if (rows_want(r, "all_reduce", reduce_sizes[i], lib_n())) body_all_reduce((float *)(void *)in, (float *)(void *)out, reduce_sizes[i]);
  if (lib_n() != 2) return;
  if (rows_want(r, "p_wait", 8, 2)) body_p_wait(ball);
  for (int what = 0; what < 3; what++)
    if (rows_want(r, words[what], 8, 2)) body_word(ball + 16, what, words[what]);
  for (size_t i = 0; i < COUNT_OF(put_sizes); i++)
    if (rows_want(r, "put", put_sizes[i], 2)) body_put(out, in, put_sizes[i]);
}

#endif
