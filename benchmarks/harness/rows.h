/*
 * rows.h - what the C benchmark programs share: which rows there are, timing, medians, JSON lines.
 *
 * Every program (floor, oshmem, native) prints the same rows, so that the driver can interleave and compare them:
 *   put, get, fetch_add   8 bytes to a peer that is idle; put also 1 MiB and 8 MiB
 *   p_wait                half a round trip of a value of 8 bytes and a wait for it
 *   barrier               2, 4, 8 PEs
 *   all_reduce            float32 sum, out of place, on symmetric memory
 * Arguments: [--pes N] [--row NAME] [--size BYTES] restrict what is run. A line is {"name","size","pes","ns"}, ns the
 * median over BATCHES batches.
 */
#ifndef ROWS_H
#define ROWS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCHES 21
#define MIB (1ull << 20)

typedef struct rows {
  int pes; /* 0: every number the row has */
  const char *row;
  uint64_t size; /* UINT64_MAX: every size */
} rows;

static inline rows rows_parse(int argc, char **argv) {
  rows r = {0, NULL, UINT64_MAX};
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--pes")) r.pes = atoi(argv[i + 1]);
    if (!strcmp(argv[i], "--row")) r.row = argv[i + 1];
    if (!strcmp(argv[i], "--size")) r.size = strtoull(argv[i + 1], NULL, 0);
  }
  return r;
}

static inline int rows_want(const rows *r, const char *row, uint64_t size, int pes) {
  return (!r->row || !strcmp(r->row, row)) && (r->size == UINT64_MAX || r->size == size) && (!r->pes || r->pes == pes);
}

static inline double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static inline double median(double *v, int n) {
  qsort(v, (size_t)n, sizeof *v, by_value);
  return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static inline void rows_print(const char *row, uint64_t size, int pes, double ns) {
  printf("{\"name\":\"%s\",\"size\":%llu,\"pes\":%d,\"ns\":%.1f}\n", row, (unsigned long long)size, pes, ns);
  fflush(stdout);
}

/* Operations per batch: enough to measure, few enough for a batch of a few ms. */
static inline int rows_repeat(uint64_t size, int crowded) {
  uint64_t n = crowded ? 300 : 20000;
  uint64_t by_size = 40 * MIB / (size + 1) + 2;
  return (int)(n < by_size ? n : by_size);
}

/* The same, when `tried` operations took `ns` just now: a batch of some 4 ms, so that a machine that is busy with other work still
   comes to an end. PE 0 decides and tells the others. */
static inline int rows_fit(int most, int tried, double ns) {
  double fit = 4e6 / (ns / tried + 0.1);
  return fit >= most ? most : fit < 5 ? 5 : (int)fit;
}
#define TRIED 5

static const uint64_t reduce_sizes[] = {8, 64 * 1024, 4 * MIB, 64 * MIB};
static const uint64_t put_sizes[] = {MIB, 8 * MIB};
#define COUNT_OF(a) (sizeof(a) / sizeof *(a))

/* Inputs whose sum tells element and PE apart, exact in float32 for a few PEs. */
static inline float input_at(int pe, uint64_t i) { return (float)((i % 1021) * 8 + (uint64_t)pe + 1); }

static inline void check_sums(const float *out, uint64_t count, int pes) {
  for (uint64_t i = 0; i < count; i++) {
    float want = 0;
    for (int pe = 0; pe < pes; pe++) want += input_at(pe, i);
    if (out[i] != want) {
      fprintf(stderr, "all_reduce of %llu floats over %d PEs: element %llu is %g, want %g\n", (unsigned long long)count, pes,
              (unsigned long long)i, (double)out[i], (double)want);
      exit(1);
    }
  }
}

#endif
