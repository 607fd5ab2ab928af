/*
 * wait.c - waiting for a word that somebody else will change, cheaply.
 *
 * Phases of one wait: spin (up to about 20 us, not when crowded), yield (to 1 ms), sleep on the doorbell. Every sleep is bounded
 * (100 us rising to 1 ms), so a wake that is missed costs time, never a hang: plain puts, stores through a peer's view and devices
 * change words without ringing.
 *
 * The scheduler may keep two PEs on one core for a while although others are free, and whoever spins there spins against its own
 * peer. How long a yield takes tells: see learn.
 */
#define _GNU_SOURCE
#include "hot_inline.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define YIELD_NS 1000000ll       /* age of a wait at which it begins to sleep */
#define ALONE_NS 1000ll          /* a yield that took less gave the core to nobody: it was a mere system call */
#define COMPANY_NS 100000ll      /* ... that took less than this gave it to somebody who yields as well, a peer; longer, to a stranger */
#define COMPANY_SPIN 16u         /* turns of spinning beside a peer: as long as an answer takes that is under way on another core */
#define ATTENTIVE_NS 50000ll     /* after a ring: somebody is writing here, and ringing costs them a system call */
#define SLEEP_MIN_NS 100000ll    /* bound of the first sleeps ... */
#define SLEEP_MAX_NS 1000000ll   /* ... and of late ones: a tenth of the age in between */

int64_t hot_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000ll + t.tv_nsec;
}

static long futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *timeout) {
  return syscall(__NR_futex, (uint32_t *)(void *)word, op, value, timeout, NULL, 0); /* not private: peers ring */
}

void hot_ring(hot_header *h) {
  atomic_store_explicit(&h->waiters, 0, memory_order_relaxed);
  atomic_fetch_add_explicit(&h->bell, 1, memory_order_release); /* partner: the acquire load in arm */
  futex(&h->bell, FUTEX_WAKE, INT32_MAX, NULL);
}

void hot_raise(hot_header *h) {
  atomic_fetch_add_explicit(&h->alarm, 1, memory_order_release); /* partner: hot_alarms */
  hot_ring(h);
}

int32_t hot_bell_sleep(hot_header *h, uint32_t seen, int64_t timeout_ns) {
  struct timespec t = {timeout_ns / 1000000000ll, timeout_ns % 1000000000ll};
  atomic_store_explicit(&h->waiters, 1, memory_order_relaxed);
  /* The kernel compares under its own lock: a bell rung since `seen` was read ends the sleep before it begins. */
  long rc = timeout_ns < 0 ? futex(&h->bell, FUTEX_WAIT, seen, NULL) : futex(&h->bell, FUTEX_WAIT, seen, &t);
  return rc != 0 && errno == ETIMEDOUT ? HOT_PENDING : HOT_OK;
}

/* First half of a sleep: the flag goes up and the bell is read, then the caller looks at its word once more. */
static void arm(hot_world *w, hot_wait *s) {
  atomic_store_explicit(&w->self->waiters, 1, memory_order_relaxed);
  atomic_thread_fence(memory_order_seq_cst); /* the flag before the caller's next look at its word */
  s->bell = atomic_load_explicit(&w->self->bell, memory_order_acquire);
  s->armed = 1;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Second half: sleep unless rung since. */
static void doze(hot_world *w, hot_wait *s, int64_t age, int64_t left) {
  int64_t bound = least(age / 10, SLEEP_MAX_NS);
  if (bound < SLEEP_MIN_NS) bound = SLEEP_MIN_NS;
  s->armed = 0;
  if (hot_bell_sleep(w->self, s->bell, least(bound, left)) == HOT_OK) s->attentive_ns = hot_now() + ATTENTIVE_NS;
}

/*
 * Adapts how long waits spin to what the last yield met, `took` ns long. A peer on our core: hardly spin, it cannot run before we
 * yield. Nobody: twice as long as before. A stranger that keeps the core for its time slice: as before, since yielding early to it is
 * what would cost. Threads may race here; each value is a good one.
 */
static void learn(hot_world *w, int64_t took) {
  uint32_t spin = hot_spin(w), next = spin;
  if (took < ALONE_NS)
    next = spin < HOT_SPIN_TURNS / 2 ? 2 * spin : HOT_SPIN_TURNS;
  else if (took < COMPANY_NS)
    next = COMPANY_SPIN;
  if (next != spin) atomic_store_explicit(&w->spin, next, memory_order_relaxed);
}

int32_t hot_wait_turn(hot_world *w, hot_wait *s, int64_t until_ns) {
  uint32_t a = hot_alarms(w);
  if (a != s->alarm_seen) {
    s->alarm_seen = a;
    return HOT_SLOW;
  }
  if (until_ns == 0) return HOT_PENDING;
  if (s->rounds < hot_spin(w)) {
    s->rounds++;
    hot_pause();
    return HOT_OK;
  }
  int64_t now = hot_now(), limit = s->deadline_ns ? least(until_ns, s->deadline_ns) : until_ns;
  if (!s->started_ns) s->started_ns = now;
  if (now >= limit) return HOT_PENDING;
  int64_t age = now - s->started_ns;
  if (age < YIELD_NS || now < s->attentive_ns || !w->self) {
    sched_yield();
    if (!w->crowded) learn(w, hot_now() - now);
  } else if (s->armed)
    doze(w, s, age, limit - now);
  else
    arm(w, s);
  return HOT_OK;
}

/* ---- on a word --------------------------------------------------------------------------------------------------- */

/* Zero- or sign-extended, so that one 64-bit comparison serves every width. */
static inline uint64_t extend(uint64_t v, int width, int is_signed) {
  if (width == 8) return v;
  int shift = 64 - 8 * width;
  return is_signed ? (uint64_t)((int64_t)(v << shift) >> shift) : v << shift >> shift;
}

static int32_t check_word(const void *word, int width, int cmp) {
  int kind = cmp & ~HOT_CMP_SIGNED;
  if (width != 1 && width != 2 && width != 4 && width != 8) return GSHMEM_EINVAL;
  if (kind < HOT_CMP_EQ || kind > HOT_CMP_LE) return GSHMEM_EINVAL;
  return (uintptr_t)word & (uintptr_t)(width - 1) ? GSHMEM_EALIGN : HOT_OK;
}

static uint64_t look(const void *word, int width, int is_signed) {
  uint64_t v = 0;
  hot_load(word, width, &v);
  return extend(v, width, is_signed);
}

int32_t hot_test(const void *word, int width, int cmp, uint64_t value, int32_t *true_out) {
  int32_t rc = check_word(word, width, cmp);
  if (rc) return rc;
  int is_signed = cmp & HOT_CMP_SIGNED;
  *true_out = hot_compare(cmp, look(word, width, is_signed), extend(value, width, is_signed));
  return HOT_OK;
}

/* The loop; inlined where width and comparison are known, so that little lies between the store and our return. */
HOT_INLINE int32_t wait_loop(hot_world *w, const void *word, int width, int cmp, uint64_t value, hot_wait *s, int64_t until_ns) {
  for (;;) {
    uint64_t v = 0;
    hot_load(word, width, &v); /* acquire; partner: the release store of p, atomics and signals */
    v = extend(v, width, cmp & HOT_CMP_SIGNED);
    if (hot_compare(cmp, v, value)) {
      s->seen = v;
      return HOT_OK;
    }
    int32_t rc = hot_wait_spin(w, s, until_ns);
    if (HOT_UNLIKELY(rc)) {
      s->seen = v;
      return rc;
    }
  }
}

int32_t hot_wait_until(hot_world *w, const void *word, int width, int cmp, uint64_t value, hot_wait *s, int64_t until_ns) {
  if (HOT_LIKELY(width == 8 && ((uintptr_t)word & 7) == 0)) {
    if (cmp == HOT_CMP_EQ) return wait_loop(w, word, 8, HOT_CMP_EQ, value, s, until_ns);
    if (cmp == HOT_CMP_GE) return wait_loop(w, word, 8, HOT_CMP_GE, value, s, until_ns);
  }
  int32_t rc = check_word(word, width, cmp);
  if (rc) return rc;
  return wait_loop(w, word, width, cmp, extend(value, width, cmp & HOT_CMP_SIGNED), s, until_ns);
}
