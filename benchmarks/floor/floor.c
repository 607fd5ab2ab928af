/*
 * floor.c - the limit: the least hand-written C over memory that forked processes share, no library around it.
 *
 * Barrier: every PE stores the round's number into its own line at every other PE and waits for theirs. all_reduce: of up to 96 bytes, the
 * data travel beside that number; larger, between two barriers every PE sums its slice straight out of all inputs and
 * stores it into all outputs. PEs spin while they fit the cores and yield each round beyond.
 *
 * Build: cc -O3 -march=native -ffp-contract=off floor.c -o floor
 */
#define _GNU_SOURCE
#include "../harness/rows.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINE 128
#define MAX_PES 8
#define SMALL 96

typedef struct line {
  _Alignas(LINE) _Atomic uint64_t flag;
  uint8_t data[SMALL];
} line;

typedef struct segment {
  line arrival[2][MAX_PES]; /* by parity of the round, by source */
  _Alignas(LINE) _Atomic uint64_t ball; /* ping-pong */
  _Alignas(LINE) uint64_t word;
  _Alignas(LINE) volatile int repeat; /* of PE 0: see fit */
  uint8_t *in, *out; /* mapped before the fork: the same address everywhere */
} segment;

static segment *seg[MAX_PES];
static int me, n, crowded;
static uint64_t round_no;

/* A spin without it takes the line from the writer again and again, and is slower. */
static inline void pause_briefly(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("isb");
#endif
}

static inline void wait_flag(_Atomic uint64_t *flag, uint64_t value) {
  while (atomic_load_explicit(flag, memory_order_acquire) != value)
    crowded ? (void)sched_yield() : pause_briefly();
}

static inline void barrier(void) {
  uint64_t r = ++round_no;
  for (int p = 0; p < n; p++)
    if (p != me) atomic_store_explicit(&seg[p]->arrival[r & 1][me].flag, r, memory_order_release);
  for (int p = 0; p < n; p++)
    if (p != me) wait_flag(&seg[me]->arrival[r & 1][p].flag, r);
}

static inline void reduce_small(const float *in, float *out, uint64_t count) {
  uint64_t r = ++round_no;
  for (int p = 0; p < n; p++) {
    line *l = &seg[p]->arrival[r & 1][me];
    memcpy(l->data, in, count * 4);
    atomic_store_explicit(&l->flag, r, memory_order_release);
  }
  float sum[SMALL / 4];
  for (int p = 0; p < n; p++) {
    line *l = &seg[me]->arrival[r & 1][p];
    wait_flag(&l->flag, r);
    const float *x = (const float *)l->data;
    for (uint64_t i = 0; i < count; i++) sum[i] = p ? sum[i] + x[i] : x[i];
  }
  memcpy(out, sum, count * 4);
}

#define IN(p) ((const float *)seg[p]->in)
#define OUT(p) ((float *)seg[p]->out)

/* No output overlaps an input in part: say so, or the loops stay scalar. */
#if defined(__clang__)
#define SIMD _Pragma("clang loop vectorize(assume_safety)")
#else
#define SIMD _Pragma("GCC ivdep")
#endif

/* Full-width vectors, as the library's own kernels use them; GCC prefers half of it for some processors. */
#if defined(__AVX512F__) && !defined(__clang__)
#define WIDE __attribute__((target("prefer-vector-width=512")))
#else
#define WIDE
#endif

WIDE static void sum2(uint64_t at, uint64_t count) {
  const float *a = IN(0) + at, *b = IN(1) + at;
  float *x = OUT(0) + at, *y = OUT(1) + at;
  SIMD for (uint64_t i = 0; i < count; i++) x[i] = y[i] = a[i] + b[i];
}

WIDE static void sum4(uint64_t at, uint64_t count) {
  const float *a = IN(0) + at, *b = IN(1) + at, *c = IN(2) + at, *d = IN(3) + at;
  float *x = OUT(0) + at, *y = OUT(1) + at, *z = OUT(2) + at, *w = OUT(3) + at;
  SIMD for (uint64_t i = 0; i < count; i++) x[i] = y[i] = z[i] = w[i] = a[i] + b[i] + c[i] + d[i];
}

static void all_reduce(uint64_t count) {
  if (count * 4 <= SMALL) {
    reduce_small(IN(me), OUT(me), count);
    return;
  }
  uint64_t slice = (count / (uint64_t)n + 15) / 16 * 16, at = slice * (uint64_t)me;
  uint64_t len = at >= count ? 0 : me == n - 1 ? count - at : slice;
  barrier();
  if (n == 2)
    sum2(at, len);
  else
    sum4(at, len);
  barrier();
}

/* ---- rows ---------------------------------------------------------------------------------------------------- */

/* How often to repeat what took PE 0 `ns` for TRIED times. */
static int fit(int most, double ns) {
  if (me == 0) seg[0]->repeat = rows_fit(most, TRIED, ns);
  barrier();
  int repeat = seg[0]->repeat;
  barrier();
  return repeat;
}

static void bench_barrier(void) {
  double t[BATCHES], first = now_ns();
  for (int i = 0; i < TRIED; i++) barrier();
  int repeat = fit(rows_repeat(0, crowded), now_ns() - first);
  for (int b = 0; b < BATCHES; b++) {
    barrier();
    double begin = now_ns();
    for (int i = 0; i < repeat; i++) barrier();
    t[b] = (now_ns() - begin) / repeat;
  }
  if (me == 0) rows_print("barrier", 0, n, median(t, BATCHES));
}

static void bench_all_reduce(uint64_t size) {
  double t[BATCHES];
  for (uint64_t i = 0; i < size / 4; i++) {
    ((float *)seg[me]->in)[i] = input_at(me, i);
    OUT(me)[i] = 0;
  }
  barrier();
  double first = now_ns();
  for (int i = 0; i < TRIED; i++) all_reduce(size / 4);
  int repeat = fit(rows_repeat(size, crowded), now_ns() - first);
  for (int b = 0; b < BATCHES; b++) {
    barrier();
    double begin = now_ns();
    for (int i = 0; i < repeat; i++) all_reduce(size / 4);
    t[b] = (now_ns() - begin) / repeat;
  }
  check_sums(OUT(me), size / 4, n);
  if (me == 0) rows_print("all_reduce", size, n, median(t, BATCHES));
}

static double ping_pong(int repeat, uint64_t *value) {
  barrier();
  double begin = now_ns();
  for (int i = 0; i < repeat; i++) {
    ++*value;
    if (me == 0) atomic_store_explicit(&seg[1]->ball, *value, memory_order_release);
    wait_flag(&seg[me]->ball, *value);
    if (me == 1) atomic_store_explicit(&seg[0]->ball, *value, memory_order_release);
  }
  return now_ns() - begin;
}

static void bench_p_wait(void) {
  double t[BATCHES];
  uint64_t value = 0;
  int repeat = fit(20000, ping_pong(TRIED, &value));
  for (int b = 0; b < BATCHES; b++) t[b] = ping_pong(repeat, &value) / repeat / 2;
  if (me == 0) rows_print("p_wait", 8, n, median(t, BATCHES));
}

/* One PE works on the memory of an idle one; `what` 0 store, 1 load, 2 fetch_add. */
static double bench_word(int what) {
  double t[BATCHES];
  const int repeat = 200000;
  volatile uint64_t *word = &seg[1]->word;
  uint64_t sum = 0;
  for (int b = 0; b < BATCHES; b++) {
    double begin = now_ns();
    for (int i = 0; i < repeat; i++) {
      if (what == 0) *word = (uint64_t)i;
      if (what == 1) sum += *word;
      if (what == 2) sum += __atomic_fetch_add((uint64_t *)&seg[1]->word, 1, __ATOMIC_SEQ_CST);
    }
    t[b] = (now_ns() - begin) / repeat;
  }
  __asm__ __volatile__("" ::"r"(sum));
  return median(t, BATCHES);
}

static double bench_memcpy(uint64_t size) {
  double t[BATCHES];
  int repeat = rows_repeat(size, 0);
  memset(seg[0]->in, 1, size);
  memset(seg[1]->out, 0, size);
  for (int b = 0; b < BATCHES; b++) {
    double begin = now_ns();
    for (int i = 0; i < repeat; i++) {
      seg[0]->in[i] = (uint8_t)(i + b);
      memcpy(seg[1]->out, seg[0]->in, size);
    }
    t[b] = (now_ns() - begin) / repeat;
  }
  if (memcmp(seg[1]->out, seg[0]->in, size)) exit(1);
  return median(t, BATCHES);
}

static void run_pair_rows(const rows *r) {
  static const char *const word_rows[] = {"put", "get", "fetch_add"};
  if (n == 2 && rows_want(r, "p_wait", 8, 2)) bench_p_wait();
  for (int what = 0; what < 3; what++) {
    if (me == 0 && rows_want(r, word_rows[what], 8, 2)) rows_print(word_rows[what], 8, 2, bench_word(what));
    barrier();
  }
  for (size_t i = 0; i < COUNT_OF(put_sizes); i++) {
    if (me == 0 && rows_want(r, "put", put_sizes[i], 2)) rows_print("put", put_sizes[i], 2, bench_memcpy(put_sizes[i]));
    barrier();
  }
}

static void run(const rows *r) {
  if (rows_want(r, "barrier", 0, n)) bench_barrier();
  for (size_t i = 0; n <= 4 && i < COUNT_OF(reduce_sizes); i++)
    if (rows_want(r, "all_reduce", reduce_sizes[i], n)) bench_all_reduce(reduce_sizes[i]);
  if (n == 2) run_pair_rows(r);
}

static void *shared(size_t bytes) {
  void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) {
    perror("mmap");
    exit(1);
  }
  return p;
}

static void run_with(int pes, const rows *r) {
  n = pes;
  crowded = pes > (int)sysconf(_SC_NPROCESSORS_ONLN);
  round_no = 0;
  for (int p = 0; p < n; p++) {
    seg[p] = shared(sizeof(segment));
    seg[p]->in = shared(64 * MIB);
    seg[p]->out = shared(64 * MIB);
  }
  for (me = n - 1; me > 0; me--)
    if (fork() == 0) break;
  run(r);
  if (me > 0) _exit(0);
  for (int p = 1, status; p < n; p++)
    if (wait(&status) < 0 || status) exit(1);
  for (int p = 0; p < n; p++) {
    munmap(seg[p]->in, 64 * MIB);
    munmap(seg[p]->out, 64 * MIB);
    munmap(seg[p], sizeof(segment));
  }
}

int main(int argc, char **argv) {
  rows r = rows_parse(argc, argv);
  static const int pes[] = {2, 4, 8};
  for (size_t i = 0; i < COUNT_OF(pes); i++)
    if (!r.pes || r.pes == pes[i]) run_with(pes[i], &r);
  return 0;
}
