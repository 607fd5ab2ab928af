/*
 * sets.c - every collective, put, get and atomic of OpenSHMEM at four sizes; the same source for any implementation:
 *
 *   shmem-cc -O3 sets.c -o ours && shmem-run -n 2 ./ours
 *   oshcc -O3 sets.c -o theirs && oshrun -n 2 ./theirs
 *
 * Uses the names of version 1.4 that every implementation has. A line is {"name","size","pes","ns"}: the median over batches, of
 * the slowest PE of each batch. size is the bytes each PE contributes (alltoall: to all others together).
 * Optional arguments: --row NAME, --size BYTES. Results are checked.
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

typedef struct row {
  const char *name;
  operation *run;
  int sized; /* 1: at every size; 0: at 8 only */
  int weight;
} row;
static const row rows[] = {{"barrier_all", barrier, 0, 1}, {"sync_all", sync_, 0, 1},       {"broadcast", broadcast, 1, 1}, {"collect", collect, 1, 1},
                           {"fcollect", fcollect, 1, 1},   {"alltoall", alltoall, 1, 1},    {"alltoalls", alltoalls, 1, 1}, {"sum", sum, 1, 1},
                           {"max", max, 1, 1},             {"put", put, 1, 1},              {"get", get, 1, 1},             {"fetch_add", fetch_add, 0, 1}};
static const uint64_t sizes[] = {8, 64 << 10, 4 * MIB, 64 * MIB};

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void fill(uint64_t bytes) {
  for (uint64_t i = 0; i < bytes / 4; i++) in[i] = (uint32_t)((uint64_t)me * 1000003 + i * 7);
}

static void wrong(const char *name, uint64_t bytes, uint64_t at) {
  fprintf(stderr, "PE %d: %s of %llu bytes: element %llu is wrong\n", me, name, (unsigned long long)bytes, (unsigned long long)at);
  shmem_global_exit(2);
}

static void check(const row *r, uint64_t bytes) {
  uint64_t count = bytes / 4;
  for (uint64_t i = 0; i < count; i += count / 97 + 1) {
    int last = n - 1;
    if (r->run == broadcast && me && out[i] != (uint32_t)(i * 7)) wrong(r->name, bytes, i);
    if ((r->run == fcollect || r->run == collect) && out[(uint64_t)last * count + i] != (uint32_t)((uint64_t)last * 1000003 + i * 7)) wrong(r->name, bytes, i);
    if (r->run == max && out[i] != (uint32_t)((uint64_t)last * 1000003 + i * 7)) wrong(r->name, bytes, i);
    if (r->run == get && out[i] != (uint32_t)((uint64_t)((me + 1) % n) * 1000003 + i * 7)) wrong(r->name, bytes, i);
  }
}

static void measure(const row *r, uint64_t bytes) {
  double t[BATCHES];
  uint64_t fit = 24 * MIB / (bytes + 1) + 1, most = n > 2 ? 60 : 2000;
  int repeat = (int)(fit < most ? fit : most);
  if (r->run == put || r->run == get || r->run == fetch_add) repeat = (int)(fit < 20000 ? fit : 20000);
  fill(bytes);
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

int main(int argc, char **argv) {
  const char *only = NULL;
  uint64_t size = 0, largest = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--row")) only = argv[i + 1];
    if (!strcmp(argv[i], "--size")) size = strtoull(argv[i + 1], NULL, 0);
  }
  shmem_init();
  me = shmem_my_pe();
  n = shmem_n_pes();
  for (int i = 0; i < 4; i++)
    if ((!size || sizes[i] == size) && sizes[i] > largest) largest = sizes[i];
  in = zeroed(largest + 64);
  out = zeroed(largest * (uint64_t)n + 64);
  times = zeroed(64);
  word = zeroed(64);
  for (int k = 0; k < 2; k++) {
    psync[k] = zeroed(sizeof(long) * 4096);
    for (int i = 0; i < 4096; i++) psync[k][i] = SHMEM_SYNC_VALUE;
    work[k] = zeroed(largest / 2 + sizeof(float) * (SHMEM_REDUCE_MIN_WRKDATA_SIZE + 1));
  }
  shmem_barrier_all();
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int s = 0; s < 4; s++)
      if ((!only || !strcmp(only, rows[i].name)) && (!size || sizes[s] == size) && (rows[i].sized || s == 0)) measure(&rows[i], sizes[s]);
  shmem_finalize();
  return 0;
}
