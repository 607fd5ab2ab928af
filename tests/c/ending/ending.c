/*
 * ending.c - everything a thread may call, while another thread destroys the team, aborts or finalizes, and comes up again.
 *
 *   ending ME N FOLDER KIND ROUNDS SEED       KIND: teams | worlds | aborts
 *
 * Promise: each call returns, with success or an error of the expected kinds; nothing touches freed or unmapped memory; a team or world that
 * is made afterwards, in the same slots, works. Buffers of an operation are their own mapping and are unmapped as soon as the operation is
 * said to be over, so a late touch is a fault. A fault says where; a call that does not come back within LIMIT_S ends the process.
 */
#define _GNU_SOURCE
#include <execinfo.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "gshmem.h"

enum { STARTERS = 3, LIMIT_S = 30, MOST = 300000 };

static int me, n, kind, rounds, aborter;
static const char *folder;
static uint64_t seed;
static _Atomic uint64_t world, team;                  /* what the threads use; old handles while a new round comes up */
static _Atomic(char *) block;                         /* symmetric memory */
static _Atomic int stop;
static _Atomic long calls, started, over;
static _Thread_local const char *doing = "nothing";   /* for the words of a fault */

enum { TEAMS, WORLDS, ABORTS };

static _Noreturn void broken(const char *what, long a, long b) {
  char words[512];
  snprintf(words, sizeof words, "ending: PE %d: %s (%ld, %ld) in %s: %s\n", me, what, a, b, doing, gshmem_last_error());
  if (write(2, words, strlen(words))) {}
  _exit(3);
}

static void fault(int number, siginfo_t *info, void *unused) {
  void *frames[40];
  char words[200];
  (void)unused;
  snprintf(words, sizeof words, "ending: PE %d: signal %d at %p in %s\n", me, number, info->si_addr, doing);
  if (write(2, words, strlen(words))) {}
  backtrace_symbols_fd(frames, backtrace(frames, 40), 2);
  _exit(4);
}

static void on_fault(void) {
  struct sigaction act = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  void *first[1];
  backtrace(first, 1); /* loads what it needs now */
  sigaction(SIGSEGV, &act, NULL);
  sigaction(SIGBUS, &act, NULL);
}

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static uint64_t dice(uint64_t *s) {
  *s ^= *s << 13, *s ^= *s >> 7, *s ^= *s << 17;
  return *s * 0x2545f4914f6cdd1dull >> 16;
}

/* What a call may answer when something ends under it. */
static void expect(int32_t rc) {
  atomic_fetch_add(&calls, 1);
  switch (rc) {
    case GSHMEM_OK: case GSHMEM_PENDING: case GSHMEM_ESTALE: case GSHMEM_EPOISONED: case GSHMEM_EMISMATCH: case GSHMEM_ECANCELED: case GSHMEM_EABORTED:
    case GSHMEM_EFINALIZED: case GSHMEM_EPEERLEFT: case GSHMEM_EPEERDEAD: case GSHMEM_ETIMEOUT: case GSHMEM_EASYMMETRIC: case GSHMEM_ENOTINIT: case GSHMEM_ENOTSYM:
    case GSHMEM_EUNREACHABLE: case GSHMEM_EUNSUPPORTED: case GSHMEM_EINVAL:
      return;
    default: broken("an unexpected status", rc, 0);
  }
}

static void *map(size_t bytes) {
  void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) broken("no memory", (long)bytes, 0);
  return p;
}

/* Waits for a request, as its starter must; then it is over and its memory is ours. */
static void await(uint64_t request, uint64_t *s) {
  int64_t limit = now() + LIMIT_S * 1000000000ll;
  int32_t rc;
  atomic_fetch_add(&started, 1);
  if (dice(s) % 8 == 0) usleep(dice(s) % 500); /* it may be released before its end */
  else
    while ((rc = gshmem_request_wait(request, (int64_t)(dice(s) % 2000000))) == GSHMEM_PENDING)
      if (now() > limit) broken("a request did not end", (long)request, 0);
  expect(gshmem_request_release(request));
  atomic_fetch_add(&over, 1);
}

/* ---- what the threads do ---------------------------------------------------------------------------------------------------- */

static uint64_t size_of(uint64_t roll) { return (uint64_t[]){8, 64, 4096, 40000, MOST}[roll % 5]; }

/* A collective of the order `turn`, so that members agree while all live. */
static void collective(uint64_t turn, uint64_t *s, uint32_t flags) {
  uint64_t bytes = size_of(turn), request = 0;
  int what = (int[]){GSHMEM_ALL_REDUCE, GSHMEM_BARRIER, GSHMEM_ALL_GATHER, GSHMEM_SYNC, GSHMEM_BROADCAST, GSHMEM_REDUCE_SCATTER}[turn / 5 % 6];
  void *in = map(MOST * (size_t)n), *out = map(MOST * (size_t)n);
  uint64_t count = what == GSHMEM_ALL_REDUCE || what == GSHMEM_REDUCE_SCATTER ? bytes / 4 : bytes;
  doing = "collective";
  int32_t rc = gshmem_collective(atomic_load(&team), what, in, out, count, GSHMEM_F32, GSHMEM_SUM, what == GSHMEM_BROADCAST ? 0 : -1, 1.0, NULL, flags,
                                 GSHMEM_DEFAULT_TIMEOUT, flags ? 0 : (int64_t)(dice(s) % 3000000), &request);
  expect(rc);
  if (rc == GSHMEM_PENDING) await(request, s);
  munmap(in, MOST * (size_t)n);
  munmap(out, MOST * (size_t)n);
}

static void message(uint64_t *s) {
  uint64_t bytes = size_of(dice(s)), request = 0, roll = dice(s);
  char *p = map(MOST);
  int peer = (int)(dice(s) % (uint64_t)n);
  uint32_t flags = roll % 3 == 0 ? GSHMEM_ASYNC | GSHMEM_NOTIFY : 0;
  int32_t rc;
  doing = "message";
  if (roll & 8) rc = gshmem_send(atomic_load(&team), p, bytes, peer, (int64_t)(roll % 4), flags, 2000000000, (int64_t)(dice(s) % 500000), &request);
  else rc = gshmem_recv(atomic_load(&team), p, MOST, peer, (int64_t)(roll % 4), flags, 2000000000, (int64_t)(dice(s) % 500000), &request);
  if (rc != GSHMEM_ETRUNCATED) expect(rc);
  if (rc == GSHMEM_PENDING) await(request, s);
  munmap(p, MOST);
}

/* Calls on the team that meet nobody. */
static void ask_team(uint64_t *s) {
  uint64_t t = atomic_load(&team);
  int32_t pe = 0;
  doing = "a question to a team";
  switch (dice(s) % 5) {
    case 0: expect(gshmem_team_health(t)); break;
    case 1: expect(gshmem_team_set_timeout(t, 20000000000)); break;
    case 2: expect(gshmem_team_translate(t, 0, t, &pe)); break;
    case 3: if ((pe = gshmem_team_n_pes(t)) < 0) expect(pe); break;
    default: if ((pe = gshmem_team_my_pe(t)) < 0) expect(pe);
  }
}

/* A request of a team whose result makes something: alloc, collect, split. */
static void grow(uint64_t *s) {
  uint64_t t = atomic_load(&team), request = 0;
  int32_t rc;
  doing = "alloc, collect or split";
  switch (dice(s) % 3) {
    case 0: rc = gshmem_alloc_start(t, 1000, 0, GSHMEM_ZERO, GSHMEM_DEFAULT_TIMEOUT, 0, &request); break;
    case 1: rc = gshmem_collect_start(t, GSHMEM_DEFAULT_TIMEOUT, 0, &request); break;
    default: rc = gshmem_team_split_strided_start(t, 0, 1, n, GSHMEM_DEFAULT_TIMEOUT, 0, &request);
  }
  expect(rc);
  if (rc >= 0 && request) await(request, s);
}

static void one_sided(uint64_t *s) {
  uint64_t w = atomic_load(&world), v = dice(s), old, request = 0;
  char *to = atomic_load(&block), *mine = map(MOST);
  int pe = (int)(dice(s) % (uint64_t)n), yes;
  uint64_t bytes = size_of(dice(s)), done;
  void *dst = to, *there;
  const void *src = mine;
  doing = "one-sided";
  switch (dice(s) % 14) {
    case 0: expect(gshmem_put(w, to, mine, bytes, pe)); break;
    case 1: expect(gshmem_get(w, mine, to, bytes, pe)); break;
    case 2: expect(gshmem_p(w, to + 8, v, 8, pe)); break;
    case 3: expect(gshmem_g(w, to + 8, 8, pe, &old)); break;
    case 4: expect(gshmem_atomic(w, GSHMEM_A_ADD, 8, to + 16, 1, 0, pe, &old)); break;
    case 5: expect(gshmem_put_signal(w, to + 64, mine, bytes / 2, (uint64_t *)(void *)(to + 24), v, GSHMEM_SIGNAL_ADD, pe)); break;
    case 6: expect(gshmem_iput(w, to, mine, 2, 1, 4, 100, pe)); break;
    case 7: expect(gshmem_put_many(w, &dst, &src, &bytes, &pe, 1, &done)); break;
    case 8: expect(gshmem_quiet(w, 1000000000)); break;
    case 9: expect(gshmem_fence(w)); break;
    case 10: expect(gshmem_test(w, to + 32, 8, 0, GSHMEM_CMP_EQ, 1, &yes)); break;
    case 11: expect(gshmem_ptr(w, to, pe, &there)); break;
    default: {
      gshmem_one_sided what = {.size = sizeof what, .what = v & 1 ? GSHMEM_DO_PUT : GSHMEM_DO_GET, .pe = pe, .dst = v & 1 ? (void *)to : mine, .src = v & 1 ? mine : to, .bytes = bytes};
      int32_t rc = gshmem_one_sided_start(w, &what, 1000000000, (int64_t)(v % 100000), &request);
      expect(rc);
      if (request) await(request, s);
    }
  }
  munmap(mine, MOST);
}

static void waits(uint64_t *s) {
  uint64_t w = atomic_load(&world), request = 0, seen;
  char *word = atomic_load(&block) + 40; /* nobody writes it */
  int32_t rc;
  doing = "a wait";
  if (dice(s) & 1) {
    rc = gshmem_wait_until(w, word, 8, 0, GSHMEM_CMP_EQ, 77, (int64_t)(dice(s) % 3000000), &seen);
    expect(rc);
    return;
  }
  rc = gshmem_wait_until_start(w, word, 8, 0, GSHMEM_CMP_EQ, 77, 2000000, (int64_t)(dice(s) % 2000000), &request);
  expect(rc);
  if (request) await(request, s);
}

static void ask_world(uint64_t *s) {
  static _Thread_local char json[20000];
  uint64_t w = atomic_load(&world), needed, ends[8], b = 0;
  uint32_t count;
  gshmem_heap_stat stat = {.size = sizeof stat};
  void *low;
  doing = "a question to a world";
  switch (dice(s) % 6) {
    case 0: expect(gshmem_info(w, json, sizeof json, &needed)); break;
    case 1: expect(gshmem_heap_stats(w, &stat)); break;
    case 2: expect(gshmem_completions_wait(w, 100000, ends, 8, &count)); break;
    case 3: expect(gshmem_block_of(w, atomic_load(&block), &b, &low, &needed)); break;
    case 4:
      if (gshmem_alloc_local(w, 5000, 0, GSHMEM_ZERO, &b, &low) == GSHMEM_OK) expect(gshmem_block_drop(b));
      break;
    default: if ((int)(count = (uint32_t)gshmem_my_pe(w)) < 0) expect((int32_t)count);
  }
}

/* ---- threads ------------------------------------------------------------------------------------------------------------------- */

static void *starter(void *arg) {
  long k = (long)arg;
  uint64_t s = seed * 1000003 + (uint64_t)me * 101 + (uint64_t)k * 7 + 1, turn = seed;
  int wild = seed % 4 == 3; /* else only the first starts collectives, so that the members agree */
  while (!atomic_load(&stop)) {
    uint64_t roll = dice(&s) % 16;
    if (k == 0 || (wild && roll < 4)) collective(turn++, &s, dice(&s) % 3 ? GSHMEM_ASYNC | GSHMEM_NOTIFY : 0);
    else if (wild && roll == 4) grow(&s);
    else if (roll < 8) message(&s);
    else if (roll < 10) ask_team(&s);
    else if (roll < 13) one_sided(&s);
    else if (roll < 15) waits(&s);
    else ask_world(&s);
  }
  return NULL;
}

static void need(int32_t rc, const char *what) {
  if (rc != GSHMEM_OK) broken(what, rc, 0);
}

static void come_up(int round) {
  char path[300];
  uint64_t w, t, b;
  void *at;
  snprintf(path, sizeof path, "%s/meet%d", folder, round);
  gshmem_options o = {.size = sizeof o, .me = me, .n = n, .heap_bytes = 64 << 20, .timeout_ns = 60000000000, .method = "file", .endpoint = path};
  doing = "init";
  need(gshmem_init(&o, &w, &t), "init");
  need(gshmem_alloc(t, 1 << 20, 0, GSHMEM_ZERO, GSHMEM_DEFAULT_TIMEOUT, &b, &at), "alloc");
  need(gshmem_block_drop(b), "drop"); /* finalize then unmaps, and every late touch is a fault */
  atomic_store(&block, at);
  atomic_store(&team, t);
  atomic_store(&world, w);
}

/* A new team works whatever became of the one before in the same slot. */
static uint64_t new_team(uint64_t parent) {
  uint64_t t;
  float in[300], out[300];
  doing = "a new team";
  need(gshmem_team_split_strided(parent, 0, 1, n, GSHMEM_DEFAULT_TIMEOUT, &t), "split");
  for (int size = 1; size <= 300; size += 299) {
    for (int i = 0; i < size; i++) in[i] = (float)(i * 3 + me + 1), out[i] = -1;
    need(gshmem_all_reduce(t, in, out, (uint64_t)size, GSHMEM_F32, GSHMEM_SUM), "all_reduce on a new team");
    for (int i = 0; i < size; i++)
      if (out[i] != (float)(i * 3 * n + n * (n + 1) / 2)) broken("a wrong sum", i, (long)out[i]);
  }
  need(gshmem_barrier(t), "barrier on a new team");
  return t;
}

static void start(pthread_t *threads) {
  atomic_store(&stop, 0);
  for (long k = 0; k < STARTERS; k++)
    if (pthread_create(&threads[k], NULL, starter, (void *)k)) broken("no thread", k, 0);
}

static void join(pthread_t *threads) {
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += 3 * LIMIT_S;
  atomic_store(&stop, 1);
  for (int k = 0; k < STARTERS; k++)
    if (pthread_timedjoin_np(threads[k], NULL, &limit)) broken("a call did not come back", k, 0);
}

static void linger(uint64_t *s) { usleep((useconds_t)(dice(s) % 3000)); }

static void team_round(uint64_t parent, uint64_t *s) {
  pthread_t threads[STARTERS];
  atomic_store(&team, new_team(parent));
  need(gshmem_barrier(parent), "barrier of the parent"); /* all are through with the team's setting up before anybody gives anything up there */
  start(threads);
  linger(s);
  doing = "team_destroy";
  need(gshmem_team_destroy(atomic_load(&team)), "team_destroy");
  linger(s); /* the old handle goes on being used */
  join(threads);
  need(gshmem_barrier(parent), "barrier of the parent");
}

/* Once this PE knows of an abort, every call says so, those that need nobody too. */
static void refused(uint64_t w, uint64_t t) {
  char *at = atomic_load(&block);
  uint64_t v = 1, old;
  int32_t yes;
  int32_t said[] = {gshmem_put(w, at, &v, 8, me), gshmem_get(w, &v, at, 8, me), gshmem_p(w, at, 1, 8, me), gshmem_g(w, at, 8, me, &old),
                    gshmem_atomic(w, GSHMEM_A_ADD, 8, at, 1, 0, me, &old), gshmem_put_signal(w, at, &v, 8, (uint64_t *)(void *)at, 1, GSHMEM_SIGNAL_SET, me),
                    gshmem_iput(w, at, &v, 1, 1, 8, 1, me), gshmem_fence(w), gshmem_quiet(w, -1), gshmem_test(w, at, 8, 0, GSHMEM_CMP_EQ, 1, &yes),
                    gshmem_wait_until(w, at, 8, 0, GSHMEM_CMP_GE, 0, -1, &old), gshmem_barrier(t), gshmem_all_reduce(t, &v, &old, 1, GSHMEM_U64, GSHMEM_SUM)};
  doing = "calls after an abort";
  for (size_t i = 0; i < sizeof said / sizeof *said; i++)
    if (said[i] != GSHMEM_EABORTED) broken("a call after an abort went on", (long)i, said[i]);
  char who[40];
  snprintf(who, sizeof who, "PE %d", aborter);
  if (!strstr(gshmem_last_error(), who)) broken("the error does not name the aborter", aborter, 0);
}

static void world_round(int round, uint64_t *s) {
  pthread_t threads[STARTERS];
  come_up(round);
  uint64_t w = atomic_load(&world), parent = atomic_load(&team);
  uint64_t made = new_team(parent);
  atomic_store(&team, seed & 1 ? made : parent);
  need(gshmem_barrier(seed & 1 ? parent : made), "barrier of the other team");
  start(threads);
  linger(s);
  aborter = round % n;
  doing = "abort";
  if (kind == ABORTS && aborter == me) need(gshmem_abort(w, 5), "abort");
  if (kind == ABORTS && gshmem_wait_until(w, atomic_load(&block) + 40, 8, 0, GSHMEM_CMP_EQ, 77, -1, NULL) != GSHMEM_EABORTED) broken("a wait was not aborted", aborter, 0);
  if (kind == ABORTS) refused(w, parent);
  linger(s);
  doing = "finalize";
  need(gshmem_finalize(w, 60000000000), "finalize");
  linger(s);
  join(threads);
}

int main(int count, char **args) {
  if (count != 7) return 2;
  me = atoi(args[1]), n = atoi(args[2]), folder = args[3];
  kind = !strcmp(args[4], "teams") ? TEAMS : !strcmp(args[4], "worlds") ? WORLDS : ABORTS;
  rounds = atoi(args[5]);
  uint64_t first = strtoull(args[6], NULL, 10), s = first * 31 + (uint64_t)me + 1;
  on_fault();
  if (kind == TEAMS) come_up(0);
  uint64_t parent = atomic_load(&team);
  for (int round = 0; round < rounds; round++) {
    seed = first + (uint64_t)round;
    if (kind == TEAMS) team_round(parent, &s);
    else world_round(round, &s);
  }
  if (kind == TEAMS) need(gshmem_finalize(atomic_load(&world), 60000000000), "finalize");
  printf("PE %d: %d rounds, %ld calls, %ld requests\n", me, rounds, atomic_load(&calls), atomic_load(&started));
  if (atomic_load(&started) != atomic_load(&over)) broken("requests are left", atomic_load(&started), atomic_load(&over));
  return 0;
}
