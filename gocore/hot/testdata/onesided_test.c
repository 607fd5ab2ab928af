/* onesided_test.c - put, get, p, g, strided, many, atomics, put_signal: values, canaries, refusals. */
#include "rig.h"

#define CANARY 0xa5

static uint8_t pattern(unsigned i) { return (uint8_t)(i * 7 + 3); }

/* Every size 0..65 at every offset 0..15 of both sides, with canaries around. */
static void sizes_and_offsets(void) {
  rig r;
  rig_memory(&r, 2);
  rig_table(&r, 0);
  uint8_t src[96], back[96], *dst = r.seg[0] + RIG_HEAP, *there = r.seg[1] + RIG_HEAP;
  for (unsigned i = 0; i < sizeof src; i++) src[i] = pattern(i);
  for (unsigned n = 0; n <= 65; n++)
    for (unsigned off = 0; off < 16; off++) {
      memset(there, CANARY, 128);
      memset(back, CANARY, sizeof back);
      CHECK_EQ(hot_h_put(r.h, dst + off, src + 15 - off, n, 1), HOT_OK);
      for (unsigned i = 0; i < 128; i++) CHECK_EQ(there[i], i < off || i >= off + n ? CANARY : src[15 - off + i - off]);
      CHECK_EQ(hot_h_get(r.h, back + 15 - off, dst + off, n, 1), HOT_OK);
      for (unsigned i = 0; i < sizeof back; i++) CHECK_EQ(back[i], i < 15 - off || i >= 15 - off + n ? CANARY : src[i]);
    }
  rig_end(&r);
}

/* Every size 0..300 at every offset of the destination within a line, up to the last byte of a mapping on both sides. */
static void past_the_caches(void) {
  enum { SPAN = 1 << 16, MOST = 300 };
  uint8_t *src = mmap(NULL, 2 * SPAN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  uint8_t *dst = mmap(NULL, 2 * SPAN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(src != MAP_FAILED && dst != MAP_FAILED);
  CHECK_EQ(mprotect(src + SPAN, SPAN, PROT_NONE) | mprotect(dst + SPAN, SPAN, PROT_NONE), 0);
  for (unsigned i = 0; i < SPAN; i++) src[i] = pattern(i ^ i >> 8);
  for (unsigned n = 0; n <= MOST; n++)
    for (unsigned off = 0; off < 64; off++) {
      uint8_t *low = dst + SPAN - MOST - 64, *to = off ? low + off : dst + SPAN - n;
      const uint8_t *from = src + SPAN - n - off % 7;
      memset(low, CANARY, MOST + 64);
      hot_copy_past(to, from, n);
      for (uint8_t *p = low; p < dst + SPAN; p++) CHECK_EQ(*p, p < to || p >= to + n ? CANARY : from[p - to]);
    }
  munmap(src, 2 * SPAN);
  munmap(dst, 2 * SPAN);
}

/* What hot_copy hands on by itself: more than a cache, nothing aligned. */
static void larger_than_a_cache(void) {
  const uint64_t n = HOT_CACHE_BYTES + 4097;
  uint8_t *src = malloc(n + 3), *dst = malloc(n + 3);
  CHECK(src && dst);
  for (uint64_t i = 0; i < n + 3; i++) src[i] = (uint8_t)(i * 2654435761u >> 13);
  dst[0] = dst[n + 1] = CANARY;
  hot_copy(dst + 1, src + 2, n);
  CHECK_EQ(memcmp(dst + 1, src + 2, n), 0);
  CHECK(dst[0] == CANARY && dst[n + 1] == CANARY);
  free(src);
  free(dst);
}

static void single_values(void) {
  rig r;
  rig_memory(&r, 2);
  rig_table(&r, 0);
  uint8_t *dst = r.seg[0] + RIG_HEAP, *there = r.seg[1] + RIG_HEAP;
  for (int width = 1; width <= 8; width *= 2)
    for (unsigned off = 0; off < 9; off++) {
      memset(there, CANARY, 64);
      CHECK_EQ(hot_h_p(r.h, dst + off, 0x1122334455667788ull, width, 1), HOT_OK);
      uint64_t want = 0, got = 77;
      memcpy(&want, there + off, (size_t)width);
      CHECK_EQ(want, width == 8 ? 0x1122334455667788ull : 0x1122334455667788ull & ((1ull << (8 * width)) - 1));
      CHECK_EQ(there[off + (unsigned)width], CANARY);
      CHECK_EQ(hot_h_g(r.h, dst + off, width, 1, &got), HOT_OK);
      CHECK_EQ(got, want);
    }
  uint64_t v = 77;
  CHECK_EQ(hot_h_p(r.h, dst, 1, 3, 1), GSHMEM_EINVAL);
  CHECK_EQ(hot_h_p(r.h, NULL, 1, 0, 1), GSHMEM_ENOTSYM);
  CHECK_EQ(hot_h_g(r.h, dst, 16, 1, &v), GSHMEM_EINVAL);
  CHECK_EQ(v, 77);
  rig_end(&r);
}

static void refusals(void) {
  rig r;
  rig_memory(&r, 2);
  rig_table(&r, 0);
  uint8_t *heap = r.seg[0] + RIG_HEAP, *end = r.seg[0] + RIG_BYTES;
  uint64_t x = 5, old = 77;
  CHECK_EQ(hot_h_put(r.h, heap, &x, 8, -1), GSHMEM_EPE);
  CHECK_EQ(hot_h_put(r.h, heap, &x, 8, 2), GSHMEM_EPE);
  CHECK_EQ(hot_h_put(r.h, heap, &x, 0, 2), GSHMEM_EPE);
  CHECK_EQ(hot_h_put(r.h, heap - 1, &x, 8, 1), GSHMEM_ENOTSYM);
  CHECK_EQ(hot_h_put(r.h, end - 7, &x, 8, 1), GSHMEM_ENOTSYM);
  CHECK_EQ(hot_h_put(r.h, heap, &x, UINT64_MAX, 1), GSHMEM_ENOTSYM);
  CHECK_EQ(hot_h_put(r.h, heap + 16, &x, UINT64_MAX - 8, 1), GSHMEM_ENOTSYM);
  CHECK_EQ(hot_h_put(r.h, (void *)UINTPTR_MAX, &x, 8, 1), GSHMEM_ENOTSYM);
  CHECK_EQ(hot_h_put(r.h, &x, &x, 8, 1), GSHMEM_ENOTSYM);
  CHECK_EQ(hot_h_put(r.h, NULL, &x, 0, 1), HOT_OK);
  CHECK_EQ(hot_h_put(r.h, end, &x, 0, 1), HOT_OK);
  CHECK_EQ(hot_h_put(r.h, end - 8, &x, 8, 1), HOT_OK);
  CHECK_EQ(hot_h_get(r.h, &x, end - 7, 8, 1), GSHMEM_ENOTSYM);
  CHECK_EQ(hot_h_atomic(r.h, HOT_A_ADD, 8, heap + 4, 1, 0, 1, &old), GSHMEM_EALIGN);
  CHECK_EQ(hot_h_atomic(r.h, HOT_A_ADD, 4, heap + 2, 1, 0, 1, &old), GSHMEM_EALIGN);
  CHECK_EQ(hot_h_atomic(r.h, HOT_A_ADD, 2, heap, 1, 0, 1, &old), GSHMEM_EINVAL);
  CHECK_EQ(hot_h_atomic(r.h, 0, 8, heap, 1, 0, 1, &old), GSHMEM_EINVAL);
  CHECK_EQ(hot_h_atomic(r.h, 10, 4, heap, 1, 0, 1, &old), GSHMEM_EINVAL);
  CHECK_EQ(hot_h_atomic(r.h, HOT_A_ADD, 8, end - 4, 1, 0, 1, &old), GSHMEM_ENOTSYM);
  CHECK_EQ(hot_h_put_signal(r.h, heap, &x, 8, (uint64_t *)(void *)(heap + 12), 1, 0, 1), GSHMEM_EALIGN);
  CHECK_EQ(hot_h_put_signal(r.h, heap, &x, 8, (uint64_t *)(void *)(heap + 64), 1, 2, 1), GSHMEM_EINVAL);
  CHECK_EQ(hot_h_put_signal(r.h, heap, &x, 8, &x, 1, 0, 1), GSHMEM_ENOTSYM);
  CHECK_EQ(old, 77);
  for (unsigned i = 0; i < 64; i++) CHECK_EQ(r.seg[1][RIG_HEAP + i], 0); /* nothing moved */
  hot_set_forked(1);
  CHECK_EQ(hot_h_put(999, heap, &x, 8, -1), GSHMEM_EFORKED); /* before the handle */
  hot_set_forked(0);
  CHECK_EQ(hot_h_put(r.h + 1, heap, &x, 8, -1), GSHMEM_ESTALE); /* before the PE */
  CHECK_EQ(hot_h_put(r.h ^ 1ull << 32, heap, &x, 8, 1), GSHMEM_ESTALE);
  CHECK_EQ(hot_h_put(0, heap, &x, 8, 1), GSHMEM_ESTALE);
  CHECK_EQ(hot_h_put(UINT64_MAX, heap, &x, 8, 1), GSHMEM_ESTALE);
  rig_end(&r);
  CHECK_EQ(hot_h_put(r.h, heap, &x, 8, 1), GSHMEM_ESTALE);
}

static void not_for_the_hot_path(void) {
  rig r;
  rig_memory(&r, 2);
  rig_table(&r, 0);
  uint64_t x = 5, old = 77;
  uint8_t *heap = r.seg[0] + RIG_HEAP;
  hot_world_base(r.w, 0, 1, NULL);
  CHECK_EQ(hot_h_put(r.h, heap, &x, 8, 1), HOT_SLOW);
  CHECK_EQ(hot_h_get(r.h, &x, heap, 8, 1), HOT_SLOW);
  CHECK_EQ(hot_h_put(r.h, heap, &x, 8, 0), HOT_OK);
  hot_world_base(r.w, 0, 1, r.seg[1] + RIG_HEAP);
  CHECK_EQ(hot_h_put(r.h, heap, &x, 8, 1), HOT_OK);
  hot_world_mark_dead(r.w, 1);
  CHECK_EQ(hot_h_put(r.h, heap, &x, 8, 1), HOT_SLOW);
  CHECK_EQ(hot_h_atomic(r.h, HOT_A_ADD, 8, heap, 1, 0, 1, &old), HOT_SLOW);
  CHECK_EQ(hot_h_fence(r.h), HOT_OK);
  r.w->direct = 0;
  CHECK_EQ(hot_h_fence(r.h), HOT_SLOW);
  CHECK_EQ(hot_h_quiet(r.h), HOT_SLOW);
  rig_end(&r);
  hot_world *w = hot_world_new(0, 1, 2); /* device memory first: never seg[0], never dereferenced */
  CHECK(w);
  int device = hot_world_segment(w, heap, 4096, 0, 1, HOT_KIND_DEVICE);
  CHECK_EQ(device, 1);
  hot_world_base(w, (uint32_t)device, 0, heap);
  uint64_t h = hot_world_publish(w);
  CHECK_EQ(hot_h_put(h, heap, &x, 8, 0), HOT_SLOW);
  CHECK_EQ(hot_h_put(h, heap + 4096, &x, 8, 0), GSHMEM_ENOTSYM);
  hot_world_close(w);
  CHECK_EQ(hot_world_drain(w, 0), HOT_OK);
  hot_world_free(w);
}

static void strided(void) {
  rig r;
  rig_memory(&r, 2);
  rig_table(&r, 0);
  static const uint64_t elems[] = {1, 2, 3, 4, 8, 16};
  uint8_t src[1024], *dst = r.seg[0] + RIG_HEAP, *there = r.seg[1] + RIG_HEAP;
  for (unsigned i = 0; i < sizeof src; i++) src[i] = pattern(i);
  for (unsigned e = 0; e < 6; e++)
    for (int64_t ds = -3; ds <= 3; ds++) {
      uint64_t elem = elems[e], count = ds ? 9 : 1;
      int64_t first = ds < 0 ? -ds * 8 : 0;
      memset(there, CANARY, 1024);
      CHECK_EQ(hot_h_iput(r.h, dst + first * (int64_t)elem, src, ds, 2, elem, count, 1), HOT_OK);
      for (uint64_t i = 0; i < count; i++)
        CHECK(!memcmp(there + (first + (int64_t)i * ds) * (int64_t)elem, src + 2 * i * elem, elem));
      unsigned touched = 0;
      for (unsigned i = 0; i < 1024; i++) touched += there[i] != CANARY;
      CHECK(touched <= count * elem);
      uint8_t back[1024] = {0};
      CHECK_EQ(hot_h_iget(r.h, back + 512, dst + first * (int64_t)elem, -1, ds, elem, count, 1), HOT_OK);
      for (uint64_t i = 0; ds && i < count; i++) CHECK(!memcmp(back + 512 - i * elem, src + 2 * i * elem, elem));
    }
  CHECK_EQ(hot_h_iput(r.h, dst, src, -1, 1, 8, 2, 1), GSHMEM_ENOTSYM);
  CHECK_EQ(hot_h_iput(r.h, dst, src, INT64_MAX, 1, 8, 2, 1), GSHMEM_ENOTSYM);
  CHECK_EQ(hot_h_iput(r.h, dst, src, INT64_MIN, 1, 1, 3, 1), GSHMEM_ENOTSYM);
  CHECK_EQ(hot_h_iput(r.h, dst, src, 1, 1, 8, UINT64_MAX, 1), GSHMEM_ENOTSYM);
  CHECK_EQ(hot_h_iput(r.h, dst, src, 1, 1, UINT64_MAX, 1, 1), GSHMEM_ENOTSYM);
  CHECK_EQ(hot_h_iput(r.h, dst, src, 1 << 17, 1, 8, 2, 1), GSHMEM_ENOTSYM);
  CHECK_EQ(hot_h_iput(r.h, NULL, NULL, 1, 1, 8, 0, 1), HOT_OK);
  CHECK_EQ(hot_h_iput(r.h, dst, NULL, 1, 1, 8, 1, 1), GSHMEM_EINVAL);
  CHECK_EQ(hot_h_iget(r.h, NULL, dst, 1, 1, 8, 1, 1), GSHMEM_EINVAL);
  CHECK_EQ(hot_h_iput(r.h, dst, src, 0, 1, 8, 2, 1), GSHMEM_EINVAL);
  CHECK_EQ(hot_h_iput(r.h, dst, src, 0, 0, 1, UINT64_MAX >> 2, 1), GSHMEM_EINVAL);
  CHECK_EQ(hot_h_iget(r.h, src, dst, 0, 0, 1, UINT64_MAX >> 2, 1), GSHMEM_EINVAL);
  rig_end(&r);
}

static void many(void) {
  rig r;
  rig_memory(&r, 2);
  rig_table(&r, 0);
  enum { N = 100 };
  void *dst[N];
  const void *src[N];
  uint64_t bytes[N], done = 0, value[N];
  int32_t pe[N];
  for (int i = 0; i < N; i++) {
    value[i] = 0x0101010101010101ull * (uint64_t)(i + 1);
    dst[i] = r.seg[0] + RIG_HEAP + 16 * i;
    src[i] = &value[i];
    bytes[i] = (uint64_t)i % 9;
    pe[i] = i & 1;
  }
  CHECK_EQ(hot_h_put_many(r.h, dst, src, bytes, pe, N, &done), HOT_OK);
  CHECK_EQ(done, N);
  for (int i = 0; i < N; i++)
    for (unsigned k = 0; k < 16; k++) CHECK_EQ(r.seg[i & 1][RIG_HEAP + 16 * i + k], k < bytes[i] ? i + 1 : 0);
  dst[50] = value;
  bytes[50] = 8;
  CHECK_EQ(hot_h_put_many(r.h, dst, src, bytes, pe, N, &done), GSHMEM_ENOTSYM);
  CHECK_EQ(done, 50);
  src[20] = NULL; /* is an error at that piece, not a fault */
  bytes[20] = 8;
  CHECK_EQ(hot_h_put_many(r.h, dst, src, bytes, pe, N, &done), GSHMEM_EINVAL);
  CHECK_EQ(done, 20);
  void *into[2] = {value, NULL};
  const void *from[2] = {dst[0], dst[1]};
  CHECK_EQ(hot_h_get_many(r.h, into, from, bytes + 7, pe, 2, &done), GSHMEM_EINVAL);
  CHECK_EQ(done, 1);
  dst[15] = NULL;
  bytes[15] = 8;
  CHECK_EQ(hot_h_put_many(r.h, dst, src, bytes, pe, N, &done), GSHMEM_ENOTSYM);
  CHECK_EQ(done, 15);
  pe[10] = 2;
  CHECK_EQ(hot_h_put_many(r.h, dst, src, bytes, pe, N, &done), GSHMEM_EPE);
  CHECK_EQ(done, 10);
  CHECK_EQ(hot_h_get_many(r.h, NULL, NULL, NULL, NULL, 0, &done), HOT_OK);
  CHECK_EQ(done, 0);
  rig_end(&r);
}

/* ---- atomics --------------------------------------------------------------------------------------------------- */

static void atomic_values(void) {
  rig r;
  rig_memory(&r, 2);
  rig_table(&r, 0);
  for (int width = 4; width <= 8; width += 4) {
    uint64_t *word = rig_word(&r, 0), old = 1, mask = width == 8 ? UINT64_MAX : UINT32_MAX;
    uint8_t *there = r.seg[1] + RIG_HEAP;
    memset(there, CANARY, 64);
    struct { int op; uint64_t operand, compare, after; } steps[] = {
      {HOT_A_SET, 10, 0, 10}, {HOT_A_ADD, 5, 0, 15}, {HOT_A_INC, 99, 0, 16}, {HOT_A_SWAP, 0xff, 0, 0xff}, {HOT_A_AND, 0x3c, 0, 0x3c},
      {HOT_A_OR, 0x03, 0, 0x3f}, {HOT_A_XOR, 0x0f, 0, 0x30}, {HOT_A_CSWAP, 1, 2, 0x30}, {HOT_A_CSWAP, 7, 0x30, 7},
      {HOT_A_FETCH, 9, 9, 7}, {HOT_A_ADD, (uint64_t)-9, 0, (uint64_t)-2}, {HOT_A_ADD, 3, 0, 1}};
    uint64_t before = 0;
    CHECK_EQ(hot_h_atomic(r.h, HOT_A_SET, width, word, 0, 0, 1, NULL), HOT_OK);
    for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
      CHECK_EQ(hot_h_atomic(r.h, steps[i].op, width, word, steps[i].operand, steps[i].compare, 1, &old), HOT_OK);
      CHECK_EQ(old, before);
      before = steps[i].after & mask;
      uint64_t now = 0;
      memcpy(&now, there, (size_t)width);
      CHECK_EQ(now, before);
      CHECK_EQ(there[width], CANARY);
    }
  }
  rig_end(&r);
}

enum { THREADS = 4, ROUNDS = 20000 };
static rig shared_rig;

static void *add_up(void *arg) {
  rig *r = &shared_rig;
  uint64_t old, mine = (uint64_t)(uintptr_t)arg;
  for (int i = 0; i < ROUNDS; i++) {
    CHECK_EQ(hot_h_atomic(r->h, HOT_A_ADD, 8, rig_word(r, 0), mine, 0, 1, i & 1 ? &old : NULL), HOT_OK);
    CHECK_EQ(hot_h_atomic(r->h, HOT_A_INC, 4, rig_word(r, 1), 0, 0, 1, NULL), HOT_OK);
    CHECK_EQ(hot_h_atomic(r->h, HOT_A_XOR, 8, rig_word(r, 2), 1ull << mine, 0, 1, &old), HOT_OK);
    for (uint64_t seen = 0, expect = 1; seen != expect;) {
      CHECK_EQ(hot_h_g(r->h, rig_word(r, 3), 8, 1, &expect), HOT_OK);
      CHECK_EQ(hot_h_atomic(r->h, HOT_A_CSWAP, 8, rig_word(r, 3), expect + 1, expect, 1, &seen), HOT_OK);
    }
  }
  return NULL;
}

static void check_added(int workers) {
  uint64_t *there = (uint64_t *)(void *)(shared_rig.seg[1] + RIG_HEAP);
  CHECK_EQ(there[0], (uint64_t)workers * (uint64_t)(workers + 1) / 2 * ROUNDS);
  CHECK_EQ(there[16], (uint64_t)workers * ROUNDS);
  CHECK_EQ(there[32], 0); /* an even number of flips each */
  CHECK_EQ(there[48], (uint64_t)workers * ROUNDS);
}

static void atomics_of_threads(void) {
  rig_memory(&shared_rig, 2);
  rig_table(&shared_rig, 0);
  pthread_t t[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++) CHECK(!pthread_create(&t[i], NULL, add_up, (void *)(i + 1)));
  for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
  check_added(THREADS);
  rig_end(&shared_rig);
}

static void atomics_of_processes(void) {
  uint64_t round = 0;
  rig_memory(&shared_rig, 4);
  rig_fork(&shared_rig);
  add_up((void *)(uintptr_t)(shared_rig.me + 1));
  rig_barrier(&shared_rig, &round);
  check_added(4);
  rig_join(&shared_rig);
}

/* Whoever sees the signal sees the data: words far apart, odd sizes, set and add. Turns of a machine that is busy take milliseconds: it has fewer. */
static void signal_after_data(void) {
  rig r;
  enum { TURNS = 20000, WORDS = 40 };
  rig_memory(&r, 2);
  rig_fork(&r);
  uint64_t data[WORDS], *into = rig_word(&r, 16), *sig = rig_word(&r, 0), *ack = rig_word(&r, 1), *last = rig_word(&r, 2);
  int64_t end = hot_now() + 20000000000ll;
  for (uint64_t turn = 1, more = 1; more; turn++) {
    uint64_t words = turn % (WORDS + 1);
    if (r.me == 0) {
      for (int i = 0; i < WORDS; i++) data[i] = turn;
      for (int p = 0; p < 2 && (turn == TURNS || hot_now() > end); p++) CHECK_EQ(hot_h_p(r.h, last, turn, 8, p), HOT_OK);
      CHECK_EQ(hot_h_put_signal(r.h, into, data, words * 8, sig, turn & 1 ? turn : 1, turn & 1 ? 0 : 1, 1), HOT_OK);
      rig_wait(&r, ack, 8, HOT_CMP_EQ, turn);
    } else {
      rig_wait(&r, sig, 8, HOT_CMP_EQ, turn);
      for (uint64_t i = 0; i < words; i++) CHECK_EQ(__atomic_load_n(&into[i], __ATOMIC_RELAXED), turn);
      CHECK_EQ(hot_h_p(r.h, ack, turn, 8, 0), HOT_OK);
    }
    more = *last != turn;
  }
  rig_join(&r);
}

const test_case onesided_tests[] = {
  {"sizes and offsets", sizes_and_offsets},
  {"past the caches", past_the_caches},
  {"larger than a cache", larger_than_a_cache},
  {"single values", single_values},
  {"refusals, in order", refusals},
  {"not for the hot path", not_for_the_hot_path},
  {"strided", strided},
  {"many", many},
  {"atomic values", atomic_values},
  {"atomics of threads", atomics_of_threads},
  {"atomics of processes", atomics_of_processes},
  {"signal after data", signal_after_data},
  {NULL, NULL},
};
