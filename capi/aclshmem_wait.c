/*
 * aclshmem_wait.c - waiting for and testing words: every form is one search over a set of words.
 *
 * The families differ in what they search for: all words, any one, or some. The loop spins, yields and sleeps as every
 * wait of the core does (hot_wait_turn), and asks the core what happened when an alarm is raised.
 */
#include "aclshmem_face.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KIND_float, KIND_int8, KIND_int16, KIND_int32, KIND_int64, KIND_uint8, KIND_uint16, KIND_uint32, KIND_uint64, KIND_char };
static const uint8_t width_of[] = {4, 1, 2, 4, 8, 1, 2, 4, 8, 1};
static const uint8_t signed_of[] = {0, 1, 1, 1, 1, 0, 0, 0, 0, (char)-1 < 0};

typedef struct wait_set {
  const uint8_t *words;
  size_t n;
  const int *status;
  int cmp;
  const uint8_t *values;
  int step; /* 0: one value for all words, 1: one each */
  int kind;
} wait_set;

static uint64_t widen(uint64_t v, int kind) {
  int shift = 64 - 8 * width_of[kind];
  return signed_of[kind] ? (uint64_t)((int64_t)(v << shift) >> shift) : v << shift >> shift;
}

static int compare_float(int cmp, float a, float b) {
  switch (cmp) {
    case ACLSHMEM_CMP_EQ: return a == b;
    case ACLSHMEM_CMP_NE: return a != b;
    case ACLSHMEM_CMP_GT: return a > b;
    case ACLSHMEM_CMP_GE: return a >= b;
    case ACLSHMEM_CMP_LT: return a < b;
    default: return a <= b;
  }
}

/* Whether word i compares now. The load is an acquire: what its writer put before is visible after. */
static int hit(const wait_set *s, size_t i) {
  int width = width_of[s->kind];
  uint64_t seen = 0, want = 0;
  hot_load(s->words + i * (size_t)width, width, &seen);
  memcpy(&want, s->values + (s->step ? i * (size_t)width : 0), (size_t)width);
  if (s->kind == KIND_float) {
    float a, b;
    uint32_t bits[2] = {(uint32_t)seen, (uint32_t)want};
    memcpy(&a, &bits[0], sizeof a);
    memcpy(&b, &bits[1], sizeof b);
    return compare_float(s->cmp, a, b);
  }
  return hot_compare(s->cmp | (signed_of[s->kind] ? HOT_CMP_SIGNED : 0), widen(seen, s->kind), widen(want, s->kind));
}

/* What a search finds: how many words count at all, how many compare, the first of them. */
typedef struct found {
  size_t counted, hits, first;
} found;

static found search(const wait_set *s, size_t *indices, int only_first) {
  found r = {0, 0, SIZE_MAX};
  for (size_t i = 0; i < s->n; i++) {
    if (s->status && s->status[i]) continue;
    r.counted++;
    if (!hit(s, i)) continue;
    if (r.first == SIZE_MAX) r.first = i;
    if (indices) indices[r.hits] = i;
    r.hits++;
    if (only_first) break;
  }
  return r;
}

/* Refuses sets that are no good, in words. */
static int32_t check_set(face *f, const wait_set *s) {
  uint64_t bytes = (uint64_t)s->n * width_of[s->kind];
  if (s->cmp < ACLSHMEM_CMP_EQ || s->cmp > ACLSHMEM_CMP_LE) return errtext_fail(GSHMEM_EINVAL, "the comparison is none of ACLSHMEM_CMP_EQ to ACLSHMEM_CMP_LE");
  if (!s->n) return GSHMEM_OK;
  if ((uintptr_t)s->words & (uintptr_t)(width_of[s->kind] - 1)) return errtext_fail(GSHMEM_EALIGN, "the words are not aligned to their size");
  if (!s->values) return errtext_fail(GSHMEM_EINVAL, "cmp_values is null");
  if (!face_world(f)) return gshmem_my_pe(0); /* words: not initialised */
  uint64_t heap = (uintptr_t)s->words - f->low, host = (uintptr_t)s->words - f->host_low;
  if (s->n > SIZE_MAX / 8 || !((heap < f->bytes && bytes <= f->bytes - heap) || (host < f->host_bytes && bytes <= f->host_bytes - host)))
    return errtext_fail(GSHMEM_ENOTSYM, "the words are not in this PE's symmetric memory; others could never change them");
  return GSHMEM_OK;
}

/* A set as the CPU can read it: the words themselves, or a copy of words on a device that look() makes anew. */
typedef struct view {
  wait_set set;
  const uint8_t *there; /* on the device; NULL for host memory */
  uint8_t *copy;
} view;

static int32_t look(face *f, view *v) {
  if (!v->there) return GSHMEM_OK;
  return gshmem_get(face_world(f), v->copy, v->there, v->set.n * width_of[v->set.kind], f->me);
}

static int32_t view_open(face *f, const wait_set *s, view *v) {
  *v = (view){.set = *s};
  if (!s->n || !face_on_device(f, s->words)) return GSHMEM_OK;
  if (!(v->copy = malloc(s->n * width_of[s->kind]))) return errtext_fail(GSHMEM_ENOMEM, "no memory for a copy of the words on the device");
  v->there = s->words;
  v->set.words = v->copy;
  return look(f, v);
}

static void view_close(view *v) { free(v->copy); }

/* Something happened: a death, an abort, the end of the world. A poll of the core has the words; OK when it is nothing of ours. */
static int32_t disturbed(uint64_t world, const wait_set *s) {
  uint64_t seen;
  int32_t rc = gshmem_wait_until(world, s->words, width_of[s->kind], 0, GSHMEM_CMP_LT, 0, 0, &seen); /* never true, so Go looks around */
  return rc == GSHMEM_ETIMEOUT ? GSHMEM_OK : rc;
}

/* A search of host words is made inside the world, so that a finalize of another thread does not take them away meanwhile. */
static int32_t search_inside(face *f, const view *v, size_t *indices, int only_first, found *out) {
  hot_world *w;
  hot_thread *self = NULL;
  if (!v->there && v->set.n && hot_enter(face_world_of(f, v->set.words), &w, &self)) {
    int32_t rc = disturbed(face_world_of(f, v->set.words), &v->set);
    return rc ? rc : errtext_fail(GSHMEM_EFINALIZED, "the world of the words has ended");
  }
  *out = search(&v->set, indices, only_first);
  if (self) hot_leave(self);
  return GSHMEM_OK;
}

/* One stretch of waiting inside the world, until something compares. HOT_SLOW: ask what happened. HOT_PENDING: too late. */
static int32_t wait_stretch(uint64_t world, const wait_set *s, size_t *indices, int only_first, hot_wait *state, found *out) {
  hot_world *w;
  hot_thread *self;
  int32_t rc = hot_enter(world, &w, &self);
  if (rc) return HOT_SLOW;
  do {
    *out = search(s, indices, only_first);
    rc = out->hits ? HOT_OK : hot_wait_spin(w, state, INT64_MAX);
  } while (!rc && !out->hits);
  hot_leave(self);
  return rc;
}

#define NAP_MIN_NS 20000
#define NAP_MAX_NS 1000000

/* The same for words on a device: copies, more and more seldom. */
static int32_t wait_view_for(face *f, view *v, size_t *indices, int only_first, found *out) {
  wait_set there = v->set;
  there.words = v->there;
  int64_t until = f->wait_ns < 0 ? INT64_MAX : hot_now() + f->wait_ns;
  for (long nap = NAP_MIN_NS;; nap = nap < NAP_MAX_NS ? nap * 3 / 2 : NAP_MAX_NS) {
    int32_t rc = look(f, v);
    if (rc) return rc;
    *out = search(&v->set, indices, only_first);
    if (out->hits) return GSHMEM_OK;
    if ((rc = disturbed(face_world(f), &there))) return rc;
    if (hot_now() >= until) return errtext_fail(GSHMEM_ETIMEOUT, "no PE has written what was waited for on the device within SHMEM_TIMEOUT");
    nanosleep(&(struct timespec){0, nap}, NULL);
  }
}

static int32_t wait_set_for(face *f, view *v, size_t *indices, int only_first, found *out) {
  if (v->there) return wait_view_for(f, v, indices, only_first, out);
  const wait_set *s = &v->set;
  hot_wait state = {0};
  uint64_t world = face_world_of(f, s->words);
  if (f->wait_ns >= 0) state.deadline_ns = hot_now() + f->wait_ns;
  for (;;) {
    int32_t rc = wait_stretch(world, s, indices, only_first, &state, out);
    if (rc == HOT_OK) return GSHMEM_OK;
    int32_t why = disturbed(world, s);
    if (why) return why;
    if (rc == HOT_PENDING) return errtext_fail(GSHMEM_ETIMEOUT, "no PE has written what was waited for within SHMEM_TIMEOUT");
  }
}

static int64_t prof_begin(face *f) { return atomic_load_explicit(&f->odd, memory_order_relaxed) & ODD_PROF ? hot_now() : 0; }

/* any: the first that compares; some: all that do. With `wait` until there is one. */
static found find(const char *what, const wait_set *s, size_t *indices, int only_first, int wait) {
  face *f = face_now();
  found r = {0, 0, SIZE_MAX};
  face_drain(f);
  int64_t began = prof_begin(f);
  view v = {0};
  int32_t rc = check_set(f, s);
  if (!rc) rc = view_open(f, s, &v);
  if (!rc) rc = search_inside(f, &v, indices, only_first, &r);
  if (!rc && wait && r.counted && !r.hits) rc = wait_set_for(f, &v, indices, only_first, &r);
  view_close(&v);
  if (rc) r = (found){0, 0, SIZE_MAX};
  if (rc) face_failed(what, rc);
  if (began) face_prof_add(wait ? PROF_WAIT : PROF_TEST, began);
  return r;
}

static wait_set part(const wait_set *s, size_t i) {
  size_t width = width_of[s->kind];
  return (wait_set){s->words + i * width, 1, NULL, s->cmp, s->values + (s->step ? i * width : 0), 0, s->kind};
}

static int32_t wait_all_on(face *f, const wait_set *s) {
  int32_t rc = check_set(f, s);
  for (size_t i = 0; !rc && i < s->n; i++) {
    if (s->status && s->status[i]) continue;
    wait_set one = part(s, i);
    view v;
    found r;
    rc = view_open(f, &one, &v);
    if (!rc) rc = search_inside(f, &v, NULL, 1, &r);
    if (!rc && !r.hits) rc = wait_set_for(f, &v, NULL, 1, &r);
    view_close(&v);
  }
  return rc;
}

static void wait_all(const char *what, const wait_set *s) {
  face *f = face_now();
  face_drain(f);
  int64_t began = prof_begin(f);
  int32_t rc = wait_all_on(f, s);
  if (rc) face_failed(what, rc);
  if (began) face_prof_add(PROF_WAIT, began);
}

static int test_all(const char *what, const wait_set *s) {
  face *f = face_now();
  face_drain(f);
  int64_t began = prof_begin(f);
  int32_t rc = check_set(f, s);
  found r = {0, 0, SIZE_MAX};
  view v = {0};
  if (!rc) rc = view_open(f, s, &v);
  if (!rc) rc = search_inside(f, &v, NULL, 0, &r);
  view_close(&v);
  if (rc) face_failed(what, rc);
  if (began) face_prof_add(PROF_TEST, began);
  return !rc && r.counted == r.hits;
}

int32_t face_wait_int32(face *f, int32_t *word, int cmp, int32_t value) {
  wait_set s = {(const uint8_t *)word, 1, NULL, cmp, (const uint8_t *)&value, 0, KIND_int32};
  int64_t began = prof_begin(f);
  int32_t rc = wait_all_on(f, &s);
  if (began) face_prof_add(PROF_WAIT, began);
  return rc;
}

void aclshmem_signal_wait_until(int32_t *sig_addr, int cmp, int32_t cmp_val) {
  face *f = face_now();
  face_drain(f);
  int32_t rc = face_wait_int32(f, sig_addr, cmp, cmp_val);
  if (rc) face_failed("signal_wait_until", rc);
}

#define SET(N, w, n, st, c, v, step) (&(wait_set){(const uint8_t *)(w), (n), (st), (c), (const uint8_t *)(v), (step), KIND_##N})
#define GIVE(out, value)   \
  do {                     \
    if (out) *(out) = (value); \
  } while (0)

#define FAMILY(N, T)                                                                                                               \
  void aclshmem_##N##_wait_until(T *w, int c, T v) { wait_all("wait_until", SET(N, w, 1, NULL, c, &v, 0)); }                       \
  void aclshmem_##N##_wait(T *w, T v) { wait_all("wait", SET(N, w, 1, NULL, ACLSHMEM_CMP_NE, &v, 0)); }                            \
  void aclshmem_##N##_wait_until_all(T *w, size_t n, const int *st, int c, T v) { wait_all("wait_until_all", SET(N, w, n, st, c, &v, 0)); } \
  void aclshmem_##N##_wait_until_any(T *w, size_t n, const int *st, int c, T v, size_t *r) {                                       \
    size_t i = find("wait_until_any", SET(N, w, n, st, c, &v, 0), NULL, 1, 1).first;                                               \
    GIVE(r, i);                                                                                                                    \
  }                                                                                                                                \
  void aclshmem_##N##_wait_until_some(T *w, size_t n, size_t *ix, const int *st, int c, T v, size_t *r) {                          \
    size_t k = find("wait_until_some", SET(N, w, n, st, c, &v, 0), ix, 0, 1).hits;                                                 \
    GIVE(r, k);                                                                                                                    \
  }                                                                                                                                \
  void aclshmem_##N##_wait_until_all_vector(T *w, size_t n, const int *st, int c, T *v) {                                          \
    wait_all("wait_until_all_vector", SET(N, w, n, st, c, v, 1));                                                                  \
  }                                                                                                                                \
  void aclshmem_##N##_wait_until_any_vector(T *w, size_t n, const int *st, int c, T *v, size_t *r) {                               \
    size_t i = find("wait_until_any_vector", SET(N, w, n, st, c, v, 1), NULL, 1, 1).first;                                         \
    GIVE(r, i);                                                                                                                    \
  }                                                                                                                                \
  void aclshmem_##N##_wait_until_some_vector(T *w, size_t n, size_t *ix, const int *st, int c, T *v, size_t *r) {                  \
    size_t k = find("wait_until_some_vector", SET(N, w, n, st, c, v, 1), ix, 0, 1).hits;                                           \
    GIVE(r, k);                                                                                                                    \
  }                                                                                                                                \
  void aclshmem_##N##_test(T *w, int c, T v, int *r) {                                                                             \
    int yes = find("test", SET(N, w, 1, NULL, c, &v, 0), NULL, 1, 0).hits != 0;                                                    \
    GIVE(r, yes);                                                                                                                  \
  }                                                                                                                                \
  void aclshmem_##N##_test_any(T *w, size_t n, const int *st, int c, T v, size_t *r) {                                             \
    size_t i = find("test_any", SET(N, w, n, st, c, &v, 0), NULL, 1, 0).first;                                                     \
    GIVE(r, i);                                                                                                                    \
  }                                                                                                                                \
  void aclshmem_##N##_test_some(T *w, size_t n, size_t *ix, const int *st, int c, T v, size_t *r) {                                \
    size_t k = find("test_some", SET(N, w, n, st, c, &v, 0), ix, 0, 0).hits;                                                       \
    GIVE(r, k);                                                                                                                    \
  }                                                                                                                                \
  void aclshmem_##N##_test_all_vector(T *w, size_t n, const int *st, int c, T *v, int *r) {                                        \
    int yes = test_all("test_all_vector", SET(N, w, n, st, c, v, 1));                                                              \
    GIVE(r, yes);                                                                                                                  \
  }                                                                                                                                \
  void aclshmem_##N##_test_any_vector(T *w, size_t n, const int *st, int c, T *v, size_t *r) {                                     \
    size_t i = find("test_any_vector", SET(N, w, n, st, c, v, 1), NULL, 1, 0).first;                                               \
    GIVE(r, i);                                                                                                                    \
  }                                                                                                                                \
  void aclshmem_##N##_test_some_vector(T *w, size_t n, size_t *ix, const int *st, int c, T *v, size_t *r) {                        \
    size_t k = find("test_some_vector", SET(N, w, n, st, c, v, 1), ix, 0, 0).hits;                                                 \
    GIVE(r, k);                                                                                                                    \
  }                                                                                                                                \
  struct aclshmem_##N##_done
ACLSHMEM_P2P_SYNC_TYPE_FUNC(FAMILY);
