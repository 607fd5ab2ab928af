/*
 * native.c - the rows through gshmem.h. It starts its own PEs: the program runs itself once per PE, with the rank in
 * NATIVE_PE and a rendezvous file in a fresh directory.
 *
 * Build: cc -O3 native.c -I<include> -L<lib> -lshmem -o native
 */
#define _GNU_SOURCE
#include "gshmem.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static uint64_t world, team;
static int me, n;

static void must(int32_t rc, const char *what) {
  if (rc == GSHMEM_OK) return;
  fprintf(stderr, "native: PE %d: %s: %s\n", me, what, gshmem_last_error());
  exit(1);
}

static inline int lib_me(void) { return me; }
static inline int lib_n(void) { return n; }
static inline void *lib_alloc(uint64_t bytes) {
  uint64_t block;
  void *p;
  must(gshmem_alloc(team, bytes, 0, GSHMEM_ZERO, -1, &block, &p), "alloc");
  return p;
}
#define MUST(call)                                     \
  do {                                                 \
    if (__builtin_expect((call) != GSHMEM_OK, 0)) must(-1, #call); \
  } while (0)
static inline void lib_put(void *dst, const void *src, uint64_t bytes, int pe) { MUST(gshmem_put(world, dst, src, bytes, pe)); }
static inline void lib_get(void *dst, const void *src, uint64_t bytes, int pe) { MUST(gshmem_get(world, dst, src, bytes, pe)); }
static inline void lib_p(uint64_t *dst, uint64_t v, int pe) { MUST(gshmem_p(world, dst, v, 8, pe)); }
static inline void lib_wait(uint64_t *word, uint64_t at_least) {
  MUST(gshmem_wait_until(world, word, 8, 0, GSHMEM_CMP_GE, at_least, -1, NULL));
}
static inline uint64_t lib_fetch_add(uint64_t *dst, uint64_t v, int pe) {
  uint64_t old;
  MUST(gshmem_atomic(world, GSHMEM_A_ADD, 8, dst, v, 0, pe, &old));
  return old;
}
static inline void lib_barrier(void) { MUST(gshmem_barrier(team)); }
static inline void lib_all_reduce(float *out, const float *in, uint64_t count) {
  MUST(gshmem_all_reduce(team, in, out, count, GSHMEM_F32, GSHMEM_SUM));
}

#include "../harness/body.h"

static int run_pe(const rows *r) {
  gshmem_options o = {.size = sizeof o, .me = me, .n = n, .heap_bytes = 256 * MIB, .timeout_ns = 60000000000ll, .method = "file"};
  o.endpoint = getenv("NATIVE_FILE");
  must(gshmem_init(&o, &world, &team), "init");
  body_run(r);
  must(gshmem_finalize(world, 30000000000ll), "finalize");
  return 0;
}

/* Runs itself as PEs 0..pes-1 and waits for all. */
static int launch(int pes, char **argv) {
  char folder[] = "/tmp/native-XXXXXX", file[64], text[16];
  pid_t child[64];
  int failed = 0;
  if (!mkdtemp(folder)) return 1;
  snprintf(file, sizeof file, "%s/rendezvous", folder);
  setenv("NATIVE_FILE", file, 1);
  snprintf(text, sizeof text, "%d", pes);
  setenv("NATIVE_PES", text, 1);
  for (int p = 0; p < pes; p++) {
    snprintf(text, sizeof text, "%d", p);
    setenv("NATIVE_PE", text, 1);
    failed |= posix_spawn(&child[p], "/proc/self/exe", NULL, NULL, argv, environ) != 0;
  }
  for (int p = 0; p < pes && !failed; p++) {
    int status = 1;
    waitpid(child[p], &status, 0);
    failed |= status != 0;
  }
  unlink(file);
  rmdir(folder);
  unsetenv("NATIVE_PE");
  return failed;
}

int main(int argc, char **argv) {
  rows r = rows_parse(argc, argv);
  if (getenv("NATIVE_PE")) {
    me = atoi(getenv("NATIVE_PE"));
    n = atoi(getenv("NATIVE_PES"));
    return run_pe(&r);
  }
  static const int pes[] = {2, 4, 8};
  int failed = 0;
  for (size_t i = 0; i < COUNT_OF(pes); i++)
    if (!r.pes || r.pes == pes[i]) failed |= launch(pes[i], argv);
  return failed;
}
