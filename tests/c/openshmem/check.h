/*
 * check.h - what the test programs share.
 *
 *   CHECK(condition, format, ...)   a failure is one line on stderr; the program goes on and ends with status 1
 *   F(function)                     the function, remembered as exercised; finish() prints the names
 *
 * Each program: begin(), checks, return finish(). Values differ by PE and element, targets have canaries on both sides.
 */
#ifndef OPENSHMEM_CHECK_H
#define OPENSHMEM_CHECK_H

#include <complex.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "every.h"

static int me, n, failures, checks;
static const char *used_names[4096];
static int nused;

#define CHECK(condition, ...)                                                          \
  do {                                                                                 \
    checks++;                                                                          \
    if (!(condition) && failures++ < 20) {                                             \
      fprintf(stderr, "PE %d of %d: %s:%d: %s: ", me, n, __FILE__, __LINE__, #condition); \
      fprintf(stderr, __VA_ARGS__);                                                    \
      fputc('\n', stderr);                                                             \
    }                                                                                  \
  } while (0)

static inline void used(const char *name) {
  for (int i = nused; i-- > 0;)
    if (used_names[i] == name || !strcmp(used_names[i], name)) return;
  used_names[nused++] = name;
}
#define F(function) (used(#function), function)

static inline void begin(void) {
  shmem_init();
  me = shmem_my_pe();
  n = shmem_n_pes();
}

/* Ends the job. PE 0 prints what was exercised; the status is 1 when a check of this PE failed. */
static inline int finish(void) {
  shmem_barrier_all();
  if (me == 0) {
    for (int i = 0; i < nused; i++) printf("used %s\n", used_names[i]);
    printf("checks %d\n", checks);
    fflush(stdout);
  }
  shmem_finalize();
  if (failures) fprintf(stderr, "PE %d of %d: %d of %d checks failed\n", me, n, failures, checks);
  return failures ? 1 : 0;
}

/* Memory for a test: n bytes between canaries, the same at every PE. */
#define CANARY 0xc5
static inline unsigned char *guarded(size_t bytes) {
  unsigned char *p = shmem_malloc(bytes + 256);
  if (!p) shmem_global_exit(3);
  memset(p, CANARY, bytes + 256);
  shmem_barrier_all();
  return p + 128;
}
static inline int intact(const unsigned char *p, size_t bytes) {
  for (int i = 1; i <= 128; i++)
    if (p[-i] != CANARY || p[bytes + (size_t)i - 1] != CANARY) return 0;
  return 1;
}
static inline void guarded_free(unsigned char *p) { shmem_free(p - 128); }

/* A small number that tells PE, element and purpose apart and fits every type. */
static inline int number(int pe, int element, int salt) { return (pe * 29 + element * 5 + salt * 13) % 113 + 1; }
static inline int right(void) { return (me + 1) % n; }
static inline int left(void) { return (me + n - 1) % n; }

#endif
