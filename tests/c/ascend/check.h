/*
 * check.h - for programs that call every function of the Ascend interface.
 *
 *   program ME N PORT
 *
 * CALL(f)(...) calls f and notes its name; done() prints "CALLED f" for each, so that a test can compare with the headers. CHECK prints what
 * is wrong and makes done() fail. Values differ per element and PE, and targets stand between canaries.
 */
#ifndef ASCEND_CHECK_H
#define ASCEND_CHECK_H

#include "shmem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int me, n, port, next_pe, prev_pe, failures;
static const char *called[4096];
static int n_called;

static inline void note(const char *name) {
  for (int i = 0; i < n_called; i++)
    if (!strcmp(called[i], name)) return;
  called[n_called++] = name;
}

#define CALL(f) (note(#f), f)

#define CHECK(condition, ...)                                                                \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      failures++;                                                                            \
      if (failures < 20) {                                                                   \
        fprintf(stderr, "PE %d %s:%d: %s: ", me, __FILE__, __LINE__, #condition);            \
        fprintf(stderr, __VA_ARGS__);                                                        \
        fputc('\n', stderr);                                                                 \
      }                                                                                      \
    }                                                                                        \
  } while (0)

static inline void arguments(int argc, char **argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: %s ME N PORT\n", argv[0]);
    exit(2);
  }
  me = atoi(argv[1]);
  n = atoi(argv[2]);
  port = atoi(argv[3]);
  next_pe = (me + 1) % n;
  prev_pe = (me + n - 1) % n;
}

static inline int up_at(uint64_t heap, uint64_t instance, int at) {
#ifdef __cplusplus
  aclshmemx_init_attr_t a;
#else
  aclshmemx_init_attr_t a = ACLSHMEMX_INIT_ATTR_INITIALIZER;
#endif
  a.my_pe = me;
  a.n_pes = n;
  a.local_mem_size = heap;
  a.instance_id = instance;
  a.option_attr.shm_init_timeout = 40;
  snprintf(a.ip_port, sizeof a.ip_port, "tcp://127.0.0.1:%d", at);
  return CALL(aclshmemx_init_attr)(ACLSHMEMX_INIT_WITH_DEFAULT, &a);
}

static inline void up(uint64_t heap) {
  int rc = up_at(heap, 0, port);
  if (rc) {
    fprintf(stderr, "PE %d: init gave %d: %s\n", me, rc, aclshmem_cpu_last_error());
    exit(3);
  }
}

static inline int done(void) {
  for (int i = 0; i < n_called; i++) printf("CALLED %s\n", called[i]);
  fflush(stdout);
  return failures != 0;
}

#endif
