/*
 * faces.c - what a hot call costs through each face of the library: gshmem.h, OpenSHMEM, Ascend. One process, three names for the same thing,
 * in turns; PE 0 measures, PE 1 waits.
 *
 *   shmem-cc -O3 faces.c -o faces && shmem-run -n 2 ./faces
 *
 * A line is {"name","face","ns"}: the median over batches. "static" is a variable instead of heap memory.
 */
#include <aclshmem.h>
#include <gshmem.h>
#include <openshmem/shmem.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BATCHES 41
#define REPEAT 20000

static uint64_t world, *heap, *ascend; /* the Ascend face has a world and a heap of its own */
static long variable;
static int64_t value;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

#define CALL(name, statement)                              \
  static void name(void) {                                 \
    for (int64_t i = 0; i < REPEAT; i++) statement;        \
  }
CALL(put_native, (value = i, gshmem_put(world, heap, &value, 8, 1)))
CALL(put_openshmem, (value = i, shmem_putmem(heap, &value, 8, 1)))
CALL(put_ascend, (value = i, aclshmem_putmem(ascend, &value, 8, 1)))
CALL(get_native, gshmem_get(world, &value, heap, 8, 1))
CALL(get_openshmem, shmem_getmem(&value, heap, 8, 1))
CALL(get_ascend, aclshmem_getmem(&value, ascend, 8, 1))
CALL(p_native, gshmem_p(world, heap, (uint64_t)i, 8, 1))
CALL(p_openshmem, shmem_long_p((long *)heap, (long)i, 1))
CALL(p_ascend, aclshmem_int64_p((int64_t *)ascend, i, 1))
CALL(static_openshmem, shmem_long_p(&variable, (long)i, 1))
CALL(g_native, { uint64_t v; gshmem_g(world, heap, 8, 1, &v); value += (int64_t)v; })
CALL(g_openshmem, value += shmem_long_g((long *)heap, 1))
CALL(g_ascend, value += aclshmem_int64_g((int64_t *)ascend, 1))
CALL(add_native, { uint64_t v; gshmem_atomic(world, GSHMEM_A_ADD, 8, heap, 1, 0, 1, &v); })
CALL(add_openshmem, shmem_long_atomic_fetch_add((long *)heap, 1, 1))

typedef struct row {
  const char *name, *face;
  void (*run)(void);
} row;
static const row rows[] = {
  {"put", "native", put_native}, {"put", "openshmem", put_openshmem}, {"put", "ascend", put_ascend},
  {"get", "native", get_native}, {"get", "openshmem", get_openshmem}, {"get", "ascend", get_ascend},
  {"p", "native", p_native}, {"p", "openshmem", p_openshmem}, {"p", "ascend", p_ascend}, {"p", "openshmem static", static_openshmem},
  {"g", "native", g_native}, {"g", "openshmem", g_openshmem}, {"g", "ascend", g_ascend},
  {"fetch_add", "native", add_native}, {"fetch_add", "openshmem", add_openshmem},
};
enum { ROWS = sizeof rows / sizeof *rows };

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void measure(void) {
  static double t[ROWS][BATCHES];
  for (int b = 0; b < BATCHES; b++)
    for (int r = 0; r < ROWS; r++) {
      double begin = now();
      rows[r].run();
      t[r][b] = (now() - begin) / REPEAT;
    }
  for (int r = 0; r < ROWS; r++) {
    qsort(t[r], BATCHES, sizeof **t, by_value);
    printf("{\"name\":\"%s\",\"face\":\"%s\",\"ns\":%.2f}\n", rows[r].name, rows[r].face, t[r][BATCHES / 2]);
  }
}

static void must(int bad, const char *what) {
  if (!bad) return;
  fprintf(stderr, "faces: %s: %s\n", what, gshmem_last_error());
  exit(1);
}

int main(void) {
  uint64_t team;
  gshmem_options o = {.size = sizeof o, .me = -1, .heap_bytes = 64 << 20, .timeout_ns = -1};
  setenv("SHMEM_STATIC_DATA", "1", 1); /* the world is up before shmem_init */
  must(gshmem_init(&o, &world, &team), "gshmem_init");
  shmem_init();
  aclshmemx_init_attr_t a = ACLSHMEMX_INIT_ATTR_INITIALIZER;
  a.my_pe = shmem_my_pe();
  a.n_pes = shmem_n_pes();
  a.local_mem_size = 1 << 20;
  snprintf(a.ip_port, sizeof a.ip_port, "tcp://127.0.0.1:%s", getenv("FACES_PORT") ? getenv("FACES_PORT") : "21931");
  must(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_DEFAULT, &a), "aclshmemx_init_attr");
  heap = shmem_malloc(4096);
  ascend = aclshmem_malloc(64);
  must(!heap || !ascend, "malloc");
  shmem_barrier_all();
  if (shmem_my_pe() == 0) measure();
  shmem_barrier_all();
  must(shmem_my_pe() == 1 && variable != REPEAT - 1, "the variable has another value");
  return 0;
}
