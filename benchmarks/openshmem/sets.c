/*
 * sets.c - every collective, put, get and atomic of OpenSHMEM at four sizes; the same source for any implementation:
 *
 *   shmem-cc -O3 sets.c -o ours && shmem-run -n 2 ./ours
 *   oshcc -O3 sets.c -o theirs && oshrun -n 2 ./theirs
 *
 * Uses the names of version 1.4 that every implementation has. A line is {"name","size","pes","ns"}: the median over batches, of
 * the slowest PE of each batch. size is the bytes each PE contributes (alltoall: to all others together).
 * Optional arguments: --row NAME, --size BYTES, each as often as wanted. Results are checked.
 */
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCHES 7
#define MIB (1ull << 20)

static int me, n;
static uint32_t *in, *out;
static long *psync[2];
static float *work[2];
static unsigned turn;
static double *times;
static uint64_t *word;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

typedef void operation(uint64_t bytes);

static void barrier(uint64_t bytes) { (void)bytes; shmem_barrier_all(); }
static void sync_(uint64_t bytes) { (void)bytes; shmem_sync_all(); }
static void broadcast(uint64_t b) { shmem_broadcast32(out, in, b / 4, 0, 0, 0, n, psync[turn++ & 1]); }
static void collect(uint64_t b) { shmem_collect32(out, in, b / 4, 0, 0, n, psync[turn++ & 1]); }
static void fcollect(uint64_t b) { shmem_fcollect32(out, in, b / 4, 0, 0, n, psync[turn++ & 1]); }
static void alltoall(uint64_t b) { shmem_alltoall32(out, in, b / 4 / (uint64_t)n ? b / 4 / (uint64_t)n : 1, 0, 0, n, psync[turn++ & 1]); }
static void alltoalls(uint64_t b) { shmem_alltoalls32(out, in, 2, 2, b / 8 / (uint64_t)n ? b / 8 / (uint64_t)n : 1, 0, 0, n, psync[turn++ & 1]); }
static void sum(uint64_t b) { shmem_float_sum_to_all((float *)out, (float *)in, (int)(b / 4), 0, 0, n, work[turn & 1], psync[turn & 1]); turn++; }
static void max(uint64_t b) { shmem_int_max_to_all((int *)out, (int *)in, (int)(b / 4), 0, 0, n, (int *)work[turn & 1], psync[turn & 1]); turn++; }
static void put(uint64_t b) { shmem_putmem(out, in, b, (me + 1) % n); }
static void get(uint64_t b) { shmem_getmem(out, in, b, (me + 1) % n); }
static void fetch_add(uint64_t b) { (void)b; shmem_ulong_atomic_fetch_add((unsigned long *)word, 1, (me + 1) % n); }

static void malloc_free(uint64_t b) { shmem_free(shmem_malloc(b)); }

typedef struct row {
  const char *name;
  operation *run;
  uint64_t sized; /* 1: at every size; else at this one only */
} row;
static const row rows[] = {{"barrier_all", barrier, 8}, {"sync_all", sync_, 8},   {"broadcast", broadcast, 1}, {"collect", collect, 1},
                           {"fcollect", fcollect, 1},   {"alltoall", alltoall, 1}, {"alltoalls", alltoalls, 1}, {"sum", sum, 1},
                           {"max", max, 1},             {"put", put, 1},           {"get", get, 1},             {"fetch_add", fetch_add, 8},
                           {"malloc_free", malloc_free, MIB}};
static const uint64_t sizes[] = {8, 64 << 10, MIB, 4 * MIB, 64 * MIB};
#define COUNT_OF(a) (sizeof(a) / sizeof *(a))

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static uint32_t value_of(int pe, uint64_t i) { return (uint32_t)((uint64_t)pe * 1000003 + i * 7); }
static float part_of(int pe, uint64_t i) { return (float)((i % 1021) * 8 + (uint64_t)pe + 1); } /* sums are exact */

static void fill(const row *r, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes / 4; i++) {
    if (r->run == sum) ((float *)in)[i] = part_of(me, i);
    else in[i] = value_of(me, i);
  }
}

static void wrong(const char *name, uint64_t bytes, uint64_t at) {
  fprintf(stderr, "PE %d: %s of %llu bytes: element %llu is wrong\n", me, name, (unsigned long long)bytes, (unsigned long long)at);
  shmem_global_exit(2);
}

static float sum_of(uint64_t i) {
  float all = 0;
  for (int pe = 0; pe < n; pe++) all += part_of(pe, i);
  return all;
}

/* Some elements of each kind of result; `of` is who gave element i of piece `from`. */
static void check(const row *r, uint64_t bytes) {
  uint64_t count = bytes / 4, piece = count / (uint64_t)n ? count / (uint64_t)n : 1, apart = bytes / 8 / (uint64_t)n ? bytes / 8 / (uint64_t)n : 1;
  int last = n - 1;
  for (uint64_t i = 0; i < count; i += count / 97 + 1) {
    if (r->run == broadcast && me && out[i] != value_of(0, i)) wrong(r->name, bytes, i);
    if ((r->run == fcollect || r->run == collect) && out[(uint64_t)last * count + i] != value_of(last, i)) wrong(r->name, bytes, i);
    if (r->run == sum && ((float *)out)[i] != sum_of(i)) wrong(r->name, bytes, i);
    if (r->run == max && out[i] != value_of(last, i)) wrong(r->name, bytes, i);
    if (r->run == get && out[i] != value_of((me + 1) % n, i)) wrong(r->name, bytes, i);
    if (r->run == put && out[i] != value_of((me + last) % n, i)) wrong(r->name, bytes, i);
  }
  for (uint64_t i = 0; r->run == alltoall && i < piece; i += piece / 97 + 1)
    if (out[(uint64_t)last * piece + i] != value_of(last, (uint64_t)me * piece + i)) wrong(r->name, bytes, i);
  for (uint64_t i = 0; r->run == alltoalls && i < apart; i += apart / 97 + 1)
    if (out[2 * ((uint64_t)last * apart + i)] != value_of(last, 2 * ((uint64_t)me * apart + i))) wrong(r->name, bytes, i);
}

static void measure(const row *r, uint64_t bytes) {
  double t[BATCHES];
  uint64_t fit = 24 * MIB / (bytes + 1) + 1, most = n > 2 ? 60 : 2000;
  int repeat = (int)(fit < most ? fit : most);
  if (r->run == malloc_free) repeat = 200;
  if (r->run == put || r->run == get || r->run == fetch_add) repeat = (int)(fit < 20000 ? fit : 20000);
  fill(r, bytes < 8 * (uint64_t)n ? 8 * (uint64_t)n : bytes);
  for (int b = -1; b < BATCHES; b++) { /* the first warms up */
    shmem_barrier_all();
    double begin = now();
    for (int i = 0; i < repeat; i++) r->run(bytes);
    times[0] = (now() - begin) / repeat;
    shmem_barrier_all();
    double slowest = 0;
    for (int pe = 0; pe < n; pe++) {
      double other = shmem_double_g(&times[0], pe);
      slowest = other > slowest ? other : slowest;
    }
    if (b >= 0) t[b] = slowest;
    shmem_barrier_all();
  }
  check(r, bytes);
  qsort(t, BATCHES, sizeof *t, by_value);
  if (me == 0) printf("{\"name\":\"%s\",\"size\":%llu,\"pes\":%d,\"ns\":%.1f}\n", r->name, (unsigned long long)bytes, n, t[BATCHES / 2]);
  fflush(stdout);
  shmem_barrier_all();
}

static void *zeroed(size_t bytes) {
  void *p = shmem_malloc(bytes);
  if (!p) shmem_global_exit(3);
  memset(p, 0, bytes);
  return p;
}

/* Is the word one of those given with an option, or is the option not given at all? */
static int asked(int argc, char **argv, const char *option, const char *word) {
  int given = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], option)) continue;
    given = 1;
    if (!strcmp(argv[i + 1], word)) return 1;
  }
  return !given;
}

static int size_asked(int argc, char **argv, uint64_t size) {
  char text[32];
  snprintf(text, sizeof text, "%llu", (unsigned long long)size);
  return asked(argc, argv, "--size", text);
}

static void allocate(uint64_t largest) {
  in = zeroed(largest + 1024);
  out = zeroed(largest * (uint64_t)n + 1024);
  times = zeroed(64);
  word = zeroed(64);
  for (int k = 0; k < 2; k++) {
    psync[k] = zeroed(sizeof(long) * 4096);
    for (int i = 0; i < 4096; i++) psync[k][i] = SHMEM_SYNC_VALUE;
    work[k] = zeroed(largest / 2 + sizeof(float) * (SHMEM_REDUCE_MIN_WRKDATA_SIZE + 1));
  }
  shmem_barrier_all();
}

int main(int argc, char **argv) {
  uint64_t largest = 8;
  shmem_init();
  me = shmem_my_pe();
  n = shmem_n_pes();
  for (size_t s = 0; s < COUNT_OF(sizes); s++)
    if (size_asked(argc, argv, sizes[s]) && sizes[s] > largest) largest = sizes[s];
  allocate(largest);
  for (size_t i = 0; i < COUNT_OF(rows); i++)
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
      int fits = rows[i].sized == 1 ? sizes[s] != MIB : rows[i].sized == sizes[s];
      if (fits && asked(argc, argv, "--row", rows[i].name) && size_asked(argc, argv, sizes[s])) measure(&rows[i], sizes[s]);
    }
  shmem_finalize();
  return 0;
}
