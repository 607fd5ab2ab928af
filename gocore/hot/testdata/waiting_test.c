/* waiting_test.c - slices, deadlines, alarms, sleepers and wakes, crowded barriers, idle cost. */
#include "rig.h"

#include <sys/resource.h>
#include <time.h>

#define MS 1000000ll

/* Processor time of this process. */
static int64_t work_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (int64_t)t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void slices_and_deadline(void) {
  rig r;
  rig_memory(&r, 1);
  rig_table(&r, 0);
  hot_wait s = {.deadline_ns = hot_now() + 100000 * MS};
  for (int slice = 0; slice < 5; slice++) {
    int64_t until = hot_now() + 10 * MS;
    CHECK_EQ(hot_h_wait_until(r.h, rig_word(&r, 0), 8, HOT_CMP_EQ, 1, &s, until), HOT_PENDING);
    CHECK(hot_now() >= until);
  }
  CHECK(hot_now() < s.deadline_ns);
  s = (hot_wait){.deadline_ns = hot_now() + 30 * MS}; /* a deadline that is not kept is a hang */
  CHECK_EQ(hot_h_wait_until(r.h, rig_word(&r, 0), 8, HOT_CMP_EQ, 1, &s, INT64_MAX), HOT_PENDING);
  CHECK(hot_now() >= s.deadline_ns);
  s = (hot_wait){0};
  CHECK_EQ(hot_h_wait_until(r.h, rig_word(&r, 0), 8, HOT_CMP_EQ, 1, &s, 0), HOT_PENDING); /* so is a poll that waits */
  int32_t yes = 7;
  CHECK_EQ(hot_h_test(r.h, rig_word(&r, 0), 4, HOT_CMP_LE, 0, &yes), HOT_OK);
  CHECK_EQ(yes, 1);
  CHECK_EQ(hot_h_test(r.h, (uint8_t *)rig_word(&r, 0) + 1, 4, HOT_CMP_LE, 0, &yes), GSHMEM_EALIGN);
  CHECK_EQ(hot_h_test(r.h, &yes, 4, HOT_CMP_LE, 0, &yes), GSHMEM_ENOTSYM);
  CHECK_EQ(hot_h_wait_until(r.h, &yes, 4, HOT_CMP_LE, 0, &s, 0), GSHMEM_ENOTSYM);
  rig_end(&r);
}

/* A sleeper (a wait that is milliseconds old) is woken by p, an atomic and put_signal from another process. */
static void sleepers_are_woken(void) {
  rig r;
  enum { TURNS = 30 };
  rig_memory(&r, 2);
  rig_fork(&r);
  uint64_t zero = 0;
  for (uint64_t turn = 1; turn <= TURNS; turn++) {
    if (r.me == 1) {
      rig_wait(&r, rig_word(&r, 0), 8, HOT_CMP_GE, turn);
      CHECK_EQ(hot_h_p(r.h, rig_word(&r, 1), turn, 8, 0), HOT_OK);
      continue;
    }
    usleep(3000);
    switch (turn % 3) {
      case 0: CHECK_EQ(hot_h_p(r.h, rig_word(&r, 0), turn, 8, 1), HOT_OK); break;
      case 1: CHECK_EQ(hot_h_atomic(r.h, HOT_A_INC, 8, rig_word(&r, 0), 0, 0, 1, NULL), HOT_OK); break;
      default: CHECK_EQ(hot_h_put_signal(r.h, rig_word(&r, 2), &zero, 0, rig_word(&r, 0), turn, 0, 1), HOT_OK);
    }
    rig_wait(&r, rig_word(&r, 1), 8, HOT_CMP_GE, turn);
  }
  rig_join(&r);
}

/* A plain put rings nobody: the bound of the sleep finds it. */
static void plain_put_is_seen(void) {
  rig r;
  rig_memory(&r, 2);
  rig_fork(&r);
  uint64_t one = 1;
  if (r.me == 0) {
    usleep(30000);
    CHECK_EQ(hot_h_put(r.h, rig_word(&r, 0), &one, 8, 1), HOT_OK);
  } else {
    rig_wait(&r, rig_word(&r, 0), 8, HOT_CMP_EQ, 1);
  }
  rig_join(&r);
}

static void *raise_soon(void *arg) {
  rig *r = arg;
  usleep(20000);
  hot_world_mark_dead(r->w, 0);
  return NULL;
}

static void alarm_ends_a_wait_once(void) {
  rig r;
  rig_memory(&r, 1);
  rig_table(&r, 0);
  pthread_t t;
  hot_wait s = {0};
  CHECK(!pthread_create(&t, NULL, raise_soon, &r));
  CHECK_EQ(hot_h_wait_until(r.h, rig_word(&r, 0), 8, HOT_CMP_EQ, 1, &s, hot_now() + 10000 * MS), HOT_SLOW);
  CHECK(hot_world_is_dead(r.w, 0));
  CHECK_EQ(hot_h_wait_until(r.h, rig_word(&r, 0), 8, HOT_CMP_EQ, 1, &s, hot_now() + MS), HOT_PENDING);
  hot_raise((hot_header *)(void *)r.seg[0]);
  CHECK_EQ(hot_h_wait_until(r.h, rig_word(&r, 0), 8, HOT_CMP_EQ, 1, &s, hot_now() + 10000 * MS), HOT_SLOW);
  pthread_join(t, NULL);
  rig_end(&r);
}

/* More PEs than cores: in a barrier of eight a PE works far below a time slice. Its own time counts, since the machine may be busy. */
static void crowded_barrier(void) {
  rig r;
  enum { TURNS = 300 };
  uint64_t round = 0;
  rig_memory(&r, 8);
  rig_fork(&r);
  rig_barrier(&r, &round);
  int64_t begin = hot_now(), worked = work_ns();
  for (int i = 0; i < TURNS; i++) rig_barrier(&r, &round);
  int64_t each = (hot_now() - begin) / TURNS;
  worked = (work_ns() - worked) / TURNS;
  if (r.me == 0) printf("     a barrier of 8 takes %lld ns, %lld ns of them this PE's work\n", (long long)each, (long long)worked);
  CHECK(worked < MS);
  rig_join(&r);
}

/* Whether a hundred yields in a row met nobody. */
static int alone(void) {
  for (int i = 0; i < 100; i++) {
    int64_t begin = hot_now();
    sched_yield();
    if (hot_now() - begin >= 1000) return 0;
  }
  return 1;
}

/* Two PEs that the scheduler holds on one core stop spinning against each other, and spin again when they are alone. */
static void shared_core_is_noticed(void) {
  rig r;
  enum { TURNS = 200 };
  uint64_t round = 0;
  cpu_set_t all, one;
  CHECK(!sched_getaffinity(0, sizeof all, &all));
  int core = 0;
  while (!CPU_ISSET(core, &all)) core++;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  rig_memory(&r, 2);
  rig_fork(&r);
  r.w->crowded = 0; /* also where there is one core only */
  atomic_store(&r.w->spin, HOT_SPIN_TURNS);
  CHECK(!sched_setaffinity(0, sizeof one, &one));
  uint32_t least = HOT_SPIN_TURNS;
  for (int i = 0; i < TURNS; i++) {
    rig_barrier(&r, &round);
    if (hot_spin(r.w) < least) least = hot_spin(r.w);
  }
  printf("     PE %d spun %u turns at the least beside its peer\n", r.me, (unsigned)least);
  CHECK(least < HOT_SPIN_TURNS / 10);
  CHECK(!sched_setaffinity(0, sizeof all, &all));
  if (r.me == 0) { /* the other is gone, or goes */
    int64_t until = hot_now() + 10000 * MS;
    hot_wait s = {0};
    int quiet = 0;
    while (hot_spin(r.w) < HOT_SPIN_TURNS && hot_now() < until) {
      quiet += alone();
      CHECK_EQ(hot_h_wait_until(r.h, rig_word(&r, 0), 8, HOT_CMP_EQ, 1, &s, hot_now() + MS), HOT_PENDING);
      s = (hot_wait){0};
    }
    printf("     PE 0 spins %u turns after it, %d times alone\n", (unsigned)hot_spin(r.w), quiet);
    CHECK(hot_spin(r.w) == HOT_SPIN_TURNS || quiet < 50); /* else strangers had all cores, all the time */
  }
  rig_join(&r);
}

static void idle_waiter_is_cheap(void) {
  rig r;
  rig_memory(&r, 1);
  rig_table(&r, 0);
  hot_wait s = {0};
  struct rusage a, b;
  getrusage(RUSAGE_THREAD, &a);
  CHECK_EQ(hot_h_wait_until(r.h, rig_word(&r, 0), 8, HOT_CMP_EQ, 1, &s, hot_now() + 400 * MS), HOT_PENDING);
  getrusage(RUSAGE_THREAD, &b);
  long long us = (b.ru_utime.tv_sec - a.ru_utime.tv_sec + b.ru_stime.tv_sec - a.ru_stime.tv_sec) * 1000000ll + b.ru_utime.tv_usec -
                 a.ru_utime.tv_usec + b.ru_stime.tv_usec - a.ru_stime.tv_usec;
  printf("     400 ms of idle waiting took %lld us of a core\n", us);
  CHECK(us < 40000);
  rig_end(&r);
}

const test_case waiting_tests[] = {
  {"slices and deadline", slices_and_deadline},
  {"sleepers are woken", sleepers_are_woken},
  {"a plain put is seen", plain_put_is_seen},
  {"an alarm ends a wait once", alarm_ends_a_wait_once},
  {"crowded barrier", crowded_barrier},
  {"a shared core is noticed", shared_core_is_noticed},
  {"an idle waiter is cheap", idle_waiter_is_cheap},
  {NULL, NULL},
};
