/*
 * aclshmem_rma.c - puts, gets, single values: the Ascend names over the hot path.
 *
 * Each family is one macro over the list of types or sizes in the headers. A call looks at one word (odd) and goes straight to
 * mapped memory; whatever is odd (a busy default stream, host-side memory, the profiler, an unmapped peer, an error) goes the long way.
 */
#include "aclshmem_face.h"

#include "_cgo_export.h"

#include <string.h>

/* Elements to bytes; what does not fit becomes a size that no heap has. */
static inline uint64_t bytes_of(uint64_t n, uint64_t size) { return HOT_UNLIKELY(n > UINT64_MAX / size) ? UINT64_MAX : n * size; }

/* complete: the caller was promised completion at the target, not only that the source is free again. */
int32_t face_put(face *f, void *dst, const void *src, uint64_t bytes, int pe, int complete) {
  uint64_t world = face_world_of(f, dst);
  int32_t rc = hot_h_put(world, dst, src, bytes, pe);
  if (HOT_LIKELY(rc == HOT_OK)) return GSHMEM_OK;
  rc = complete ? gshmem_put(world, dst, src, bytes, pe) : gshmem_put_nbi(world, dst, src, bytes, pe);
  return rc || !complete ? rc : gshmem_quiet(world, f->wait_ns);
}

int32_t face_get(face *f, void *dst, const void *src, uint64_t bytes, int pe) {
  return gshmem_get(face_world_of(f, src), dst, src, bytes, pe);
}

static __attribute__((noinline, cold)) int64_t odd_begin(face *f) {
  face_drain(f);
  return atomic_load(&f->odd) & ODD_PROF ? hot_now() : 0;
}

static void odd_end(const char *what, int kind, int64_t began, int32_t rc) {
  if (began) face_prof_add(kind, began);
  if (rc) face_failed(what, rc);
}

static __attribute__((noinline, cold)) void put_odd(face *f, void *dst, const void *src, uint64_t bytes, int pe, int complete) {
  int64_t began = odd_begin(f);
  odd_end("put", PROF_PUT, began, face_put(f, dst, src, bytes, pe, complete));
}

static __attribute__((noinline, cold)) void get_odd(face *f, void *dst, const void *src, uint64_t bytes, int pe) {
  int64_t began = odd_begin(f);
  odd_end("get", PROF_GET, began, face_get(f, dst, src, bytes, pe));
}

static __attribute__((noinline)) void put(void *dst, const void *src, uint64_t bytes, int pe, int complete) {
  face *f = face_now();
  if (HOT_UNLIKELY(atomic_load_explicit(&f->odd, memory_order_acquire)) || HOT_UNLIKELY(hot_h_put(face_world(f), dst, src, bytes, pe)))
    put_odd(f, dst, src, bytes, pe, complete);
}

static __attribute__((noinline)) void get(void *dst, const void *src, uint64_t bytes, int pe) {
  face *f = face_now();
  if (HOT_UNLIKELY(atomic_load_explicit(&f->odd, memory_order_acquire)) || HOT_UNLIKELY(hot_h_get(face_world(f), dst, src, bytes, pe)))
    get_odd(f, dst, src, bytes, pe);
}

static __attribute__((noinline)) void iput(void *dst, const void *src, ptrdiff_t ds, ptrdiff_t ss, uint64_t elem, uint64_t n, int pe) {
  face *f = face_now();
  int64_t began = odd_begin(f);
  uint64_t world = face_world_of(f, dst);
  int32_t rc = ds < 1 || ss < 1 ? errtext_fail(GSHMEM_EINVAL, "iput: strides are at least 1") : gshmem_iput(world, dst, src, ds, ss, elem, n, pe);
  if (!rc) rc = gshmem_quiet(world, f->wait_ns);
  odd_end("iput", PROF_PUT, began, rc);
}

static __attribute__((noinline)) void iget(void *dst, const void *src, ptrdiff_t ds, ptrdiff_t ss, uint64_t elem, uint64_t n, int pe) {
  face *f = face_now();
  int64_t began = odd_begin(f);
  int32_t rc = ds < 1 || ss < 1 ? errtext_fail(GSHMEM_EINVAL, "iget: strides are at least 1")
                                : gshmem_iget(face_world_of(f, src), dst, src, ds, ss, elem, n, pe);
  odd_end("iget", PROF_GET, began, rc);
}

static __attribute__((noinline, cold)) void p_odd(face *f, void *dst, uint64_t value, int width, int pe) {
  int64_t began = odd_begin(f);
  uint64_t world = face_world_of(f, dst);
  int32_t rc = hot_h_p(world, dst, value, width, pe);
  if (rc) {
    rc = gshmem_p(world, dst, value, width, pe);
    if (!rc) rc = gshmem_quiet(world, f->wait_ns);
  }
  odd_end("p", PROF_P, began, rc);
}

static inline void p(void *dst, uint64_t value, int width, int pe) {
  face *f = face_now();
  if (HOT_UNLIKELY(atomic_load_explicit(&f->odd, memory_order_acquire)) || HOT_UNLIKELY(hot_h_p(face_world(f), dst, value, width, pe)))
    p_odd(f, dst, value, width, pe);
}

static __attribute__((noinline, cold)) uint64_t g_odd(face *f, const void *src, int width, int pe) {
  uint64_t value = 0;
  int64_t began = odd_begin(f);
  odd_end("g", PROF_G, began, gshmem_g(face_world_of(f, src), src, width, pe, &value));
  return value;
}

static inline uint64_t g(const void *src, int width, int pe) {
  face *f = face_now();
  uint64_t value = 0;
  if (HOT_UNLIKELY(atomic_load_explicit(&f->odd, memory_order_acquire)) || HOT_UNLIKELY(hot_h_g(face_world(f), src, width, pe, &value)))
    return g_odd(f, src, width, pe);
  return value;
}

/* ---- bytes ---- */
void aclshmem_putmem(void *dst, void *src, size_t n, int32_t pe) { put(dst, src, n, pe, 1); }
void aclshmem_getmem(void *dst, void *src, size_t n, int32_t pe) { get(dst, src, n, pe); }
void aclshmem_putmem_nbi(void *dst, void *src, size_t n, int32_t pe) { put(dst, src, n, pe, 0); }
void aclshmem_getmem_nbi(void *dst, void *src, size_t n, int32_t pe) { get(dst, src, n, pe); }

/* ---- types. Values travel in the low bytes of a word (little endian, as all systems this library runs on). ---- */
#define TYPED(NAME, TYPE)                                                                                                             \
  void aclshmem_##NAME##_put(TYPE *d, TYPE *s, size_t n, int pe) { put(d, s, bytes_of(n, sizeof(TYPE)), pe, 1); }                     \
  void aclshmem_##NAME##_put_nbi(TYPE *d, TYPE *s, size_t n, int pe) { put(d, s, bytes_of(n, sizeof(TYPE)), pe, 0); }                 \
  void aclshmem_##NAME##_get(TYPE *d, TYPE *s, size_t n, int pe) { get(d, s, bytes_of(n, sizeof(TYPE)), pe); }                        \
  void aclshmem_##NAME##_get_nbi(TYPE *d, TYPE *s, size_t n, int pe) { get(d, s, bytes_of(n, sizeof(TYPE)), pe); }                    \
  void aclshmem_##NAME##_iput(TYPE *d, TYPE *s, ptrdiff_t ds, ptrdiff_t ss, size_t n, int pe) { iput(d, s, ds, ss, sizeof(TYPE), n, pe); } \
  void aclshmem_##NAME##_iget(TYPE *d, TYPE *s, ptrdiff_t ds, ptrdiff_t ss, size_t n, int pe) { iget(d, s, ds, ss, sizeof(TYPE), n, pe); } \
  void aclshmem_##NAME##_p(TYPE *d, const TYPE value, int pe) {                                                                       \
    uint64_t word = 0;                                                                                                                \
    memcpy(&word, &value, sizeof value);                                                                                              \
    p(d, word, sizeof(TYPE), pe);                                                                                                     \
  }                                                                                                                                   \
  TYPE aclshmem_##NAME##_g(TYPE *s, int32_t pe) {                                                                                     \
    uint64_t word = g(s, sizeof(TYPE), pe);                                                                                           \
    TYPE value;                                                                                                                       \
    memcpy(&value, &word, sizeof value);                                                                                              \
    return value;                                                                                                                     \
  }                                                                                                                                   \
  struct aclshmem_##NAME##_done
ACLSHMEM_TYPE_FUNC(TYPED);

#define SIZED(BITS)                                                                                                                   \
  void aclshmem_put##BITS(void *d, void *s, uint32_t n, int32_t pe) { put(d, s, (uint64_t)n * (BITS / 8), pe, 1); }                   \
  void aclshmem_put##BITS##_nbi(void *d, void *s, uint32_t n, int32_t pe) { put(d, s, (uint64_t)n * (BITS / 8), pe, 0); }             \
  void aclshmem_get##BITS(void *d, void *s, uint32_t n, int32_t pe) { get(d, s, (uint64_t)n * (BITS / 8), pe); }                      \
  void aclshmem_get##BITS##_nbi(void *d, void *s, uint32_t n, int32_t pe) { get(d, s, (uint64_t)n * (BITS / 8), pe); }                \
  void aclshmem_iput##BITS(void *d, void *s, ptrdiff_t ds, ptrdiff_t ss, size_t n, int pe) { iput(d, s, ds, ss, BITS / 8, n, pe); }   \
  void aclshmem_iget##BITS(void *d, void *s, ptrdiff_t ds, ptrdiff_t ss, size_t n, int pe) { iget(d, s, ds, ss, BITS / 8, n, pe); }   \
  struct aclshmem_##BITS##_done
ACLSHMEM_SIZE_FUNC(SIZED);

/* ---- on streams ---- */
static int32_t run_put(face_task *t) { return face_put(t->f, t->dst, t->src, t->n, t->pe, 0); }
static int32_t run_get(face_task *t) { return face_get(t->f, t->dst, t->src, t->n, t->pe); }

void aclshmemx_putmem_on_stream(void *dst, void *src, size_t n, int32_t pe, aclrtStream stream) {
  face *f = face_now();
  if (face_device_stream(f, stream)) {
    face_told("putmem_on_stream", gshmem_put_on_stream(face_world(f), dst, src, n, pe, stream));
    return;
  }
  face_queue(stream, &(face_task){.run = run_put, .what = "putmem_on_stream", .f = f, .world = face_world(f), .dst = dst, .src = src, .n = n, .pe = pe});
}

void aclshmemx_getmem_on_stream(void *dst, void *src, size_t n, int32_t pe, aclrtStream stream) {
  face *f = face_now();
  if (face_device_stream(f, stream)) {
    face_told("getmem_on_stream", gshmem_get_on_stream(face_world(f), dst, src, n, pe, stream));
    return;
  }
  face_queue(stream, &(face_task){.run = run_get, .what = "getmem_on_stream", .f = f, .world = face_world(f), .dst = dst, .src = src, .n = n, .pe = pe});
}

/* ---- addresses and kernel settings ---- */
void *aclshmem_ptr(void *ptr, int pe) {
  void *there = NULL;
  face *f = face_now();
  uint64_t world = face_world_of(f, ptr);
  hot_world *w;
  hot_thread *self;
  int32_t rc = hot_enter(world, &w, &self);
  if (HOT_LIKELY(rc == HOT_OK)) {
    there = hot_find(w, ptr, 1, pe, &rc);
    hot_leave(self);
  }
  if (HOT_LIKELY(there != NULL)) return there;
  rc = gshmem_ptr(world, ptr, pe, &there);
  if (rc == GSHMEM_OK && face_on_device(f, ptr)) return there;
  if (rc == GSHMEM_OK) rc = errtext_fail(GSHMEM_ENOTSYM, "the address is outside of the symmetric heap");
  face_failed("ptr", rc);
  return NULL;
}

static struct { uint64_t offset; uint32_t size, sync; } ub[4]; /* what kernels of this process are launched with; size 0: as they come */

void face_buffers_apply(face *f) {
  for (int i = 0; i < 4 && atomic_load(&f->device); i++)
    if (ub[i].size) face_told("set_config", goshmem_device_buffer(face_world(f), i, ub[i].offset, ub[i].size, ub[i].sync));
}

static int set_ub(int which, const char *name, uint64_t offset, uint32_t size, uint32_t sync, uint32_t least) {
  if (size < least) return face_refuse(ACLSHMEM_INVALID_VALUE, "set_%s_config: ub_size is %u, at least %u bytes are needed", name, size, least);
  ub[which].offset = offset;
  ub[which].size = size;
  ub[which].sync = sync;
  face *f = face_now();
  int32_t rc = atomic_load(&f->device) && size ? goshmem_device_buffer(face_world(f), which, offset, size, sync) : GSHMEM_OK;
  return rc ? face_code(face_failed("set_config", rc)) : ACLSHMEM_SUCCESS;
}

int aclshmemx_set_mte_config(uint64_t offset, uint32_t size, uint32_t sync) { return set_ub(0, "mte", offset, size, sync, 0); }
int aclshmemx_set_sdma_config(uint64_t offset, uint32_t size, uint32_t sync) { return set_ub(1, "sdma", offset, size, sync, 0); }
int aclshmemx_set_rdma_config(uint64_t offset, uint32_t size, uint32_t sync) {
  return set_ub(2, "rdma", offset, size, sync, ACLSHMEM_RDMA_MTE_STAGING_UB_SIZE);
}
int aclshmemx_set_udma_config(uint64_t offset, uint32_t size, uint32_t sync) {
  return set_ub(3, "udma", offset, size, sync, ACLSHMEM_UDMA_MTE_STAGING_UB_SIZE);
}
