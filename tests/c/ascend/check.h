/*
 * check.h - for programs that call every function of the Ascend interface.
 *
 *   program ME N PORT
 *
 * CALL(f)(...) calls f and notes its name; done() prints "CALLED f" for each, so that a test can compare with the headers. CHECK prints what
 * is wrong and makes done() fail. Values differ per element and PE, and targets stand between canaries.
 *
 * Memory of the device side is read and written through look, edit and commit, and a word of it is AT(pointer): plain memory without a
 * device, and copies with one (ON_DEVICE: compiled with a real acl/acl.h), where the CPU must not follow its addresses.
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

#ifdef ON_DEVICE
int aclshmem_cpu_last_status(void); /* of the library, whatever acl/acl.h the program is compiled with */
const char *aclshmem_cpu_last_error(void);

static inline void copied(int rc, const char *way) {
  if (!rc) return;
  fprintf(stderr, "PE %d: aclrtMemcpy %s gave %d: %s\n", me, way, rc, aclGetRecentErrMsg());
  exit(4);
}

/* Copies, the last few of which stay. */
static inline void *mirror(size_t bytes) {
  static uint64_t room[8][256];
  static int turn;
  if (bytes > sizeof room[0]) exit(5);
  return room[turn++ % 8];
}

/* What lies on the device now; stays until a few later calls. */
static inline void *look(const void *there, size_t bytes) {
  void *here = mirror(bytes);
  copied(aclrtMemcpy(here, bytes, there, bytes, ACL_MEMCPY_DEVICE_TO_HOST), "from the device");
  return here;
}

/* A place to write what commit then stores. */
static inline void *edit(void *there, size_t bytes) { return look(there, bytes); }
static inline void commit(void *there, const void *edited, size_t bytes) {
  copied(aclrtMemcpy(there, bytes, edited, bytes, ACL_MEMCPY_HOST_TO_DEVICE), "to the device");
}

/* A process takes its device before its first init, as a framework does. */
static inline void take_device(void) {
  static int taken;
  if (!taken++ && (aclInit(NULL) || aclrtSetDevice(me))) {
    fprintf(stderr, "PE %d: no device: %s\n", me, aclGetRecentErrMsg());
    exit(4);
  }
}
#else
static inline void *look(const void *there, size_t bytes) {
  (void)bytes;
  return (void *)(uintptr_t)there;
}
static inline void *edit(void *there, size_t bytes) { return look(there, bytes); }
static inline void commit(void *there, const void *edited, size_t bytes) { (void)there, (void)edited, (void)bytes; }
static inline void take_device(void) {}
#endif

#define AT(p) (*(__typeof__(&*(p)))look((p), sizeof *(p)))
#define STORE(p, v)                           \
  do {                                        \
    __typeof__(&*(p)) e_ = edit((p), sizeof *(p)); \
    *e_ = (v);                                \
    commit((p), e_, sizeof *(p));             \
  } while (0)

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
  take_device();
  a.my_pe = me;
  a.n_pes = n;
  a.local_mem_size = heap;
  a.instance_id = instance;
  a.option_attr.shm_init_timeout = 200;
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
