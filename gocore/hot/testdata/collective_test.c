/* collective_test.c - the small collectives between processes; larger ones need plans, which Go tests. */
#include "rig.h"

#include "../exec.h"

enum { CTL_OFF = 512 * 1024, MEMBERS = 4 };

/* All PEs of the rig as a team, control blocks in the upper half of each segment. */
static hot_team *team_of(rig *r) {
  hot_team *t = hot_team_new(r->w, r->me, r->n);
  CHECK(t);
  for (int p = 0; p < r->n; p++) {
    t->pe[p] = p;
    t->ctl[p] = r->seg[p] + CTL_OFF;
    t->ctl_off[p] = CTL_OFF;
  }
  t->mapped = 1;
  CHECK(hot_team_publish(t));
  return t;
}

static void end_team(hot_team *t) {
  hot_team_close(t);
  CHECK_EQ(atomic_exchange(&t->busy, 1), 0);
  hot_team_free(t);
}

static void collective(hot_team *t, const hot_call *call) {
  hot_coll c;
  CHECK_EQ(hot_collective(&c, t, atomic_load(&t->handle), call, GSHMEM_DEFAULT_TIMEOUT, -1), HOT_OK);
}

/* Values differ per element, PE and turn; canaries around the result; every count that travels inline, odd ones among them. */
static void small_all_reduce(void) {
  rig r;
  rig_memory(&r, MEMBERS);
  rig_fork(&r);
  hot_team *t = team_of(&r);
  for (uint32_t turn = 0; turn < 400; turn++) {
    int64_t in[12], out[14];
    uint64_t count = 1 + turn % 12;
    for (uint64_t i = 0; i < 12; i++) in[i] = (int64_t)(turn * 1000 + i * 10) + r.me;
    for (int i = 0; i < 14; i++) out[i] = -77;
    hot_call call = {.op = HOT_OP_ALL_REDUCE, .dtype = HOT_T_I64, .redop = HOT_R_SUM, .root = -1, .in = in, .out = out + 1, .count = count};
    collective(t, &call);
    CHECK_EQ(out[0], -77);
    for (uint64_t i = 0; i < 13; i++) CHECK_EQ(out[i + 1], i < count ? (int64_t)(turn * 1000 + i * 10) * MEMBERS + 6 : -77);
  }
  end_team(t);
  rig_join(&r);
}

/* Nobody leaves a barrier before everybody has come: a counter that each bumps before it is complete after it. */
static void barriers_hold(void) {
  rig r;
  rig_memory(&r, MEMBERS);
  rig_fork(&r);
  hot_team *t = team_of(&r);
  hot_call call = {.op = HOT_OP_BARRIER, .root = -1};
  for (uint64_t turn = 1; turn <= 300; turn++) {
    uint64_t seen = 0;
    CHECK_EQ(hot_h_atomic(r.h, HOT_A_INC, 8, rig_word(&r, 5), 0, 0, 0, NULL), HOT_OK);
    collective(t, &call);
    CHECK_EQ(hot_h_g(r.h, rig_word(&r, 5), 8, 0, &seen), HOT_OK);
    CHECK(seen >= turn * MEMBERS && seen < (turn + 1) * MEMBERS);
  }
  end_team(t);
  rig_join(&r);
}

/* One-way broadcasts from changing roots, every size, each PE at its own pace; a meeting now and then. Canaries around the result. */
static void casts_arrive(void) {
  rig r;
  rig_memory(&r, MEMBERS);
  rig_fork(&r);
  hot_team *t = team_of(&r);
  for (uint32_t turn = 0; turn < 3000; turn++) {
    uint8_t in[HOT_INLINE_BYTES], out[HOT_INLINE_BYTES + 2];
    int root = (int)(turn / 7 % MEMBERS);
    uint64_t bytes = turn * 13 % (HOT_INLINE_BYTES + 1);
    for (uint64_t i = 0; i < sizeof in; i++) in[i] = (uint8_t)(turn * 3 + i + (uint64_t)r.me * 50);
    memset(out, 0xa5, sizeof out);
    hot_call call = {.op = HOT_OP_CAST, .root = root, .in = in, .out = out + 1, .count = bytes};
    collective(t, &call);
    for (uint64_t i = 0; i < sizeof out; i++) CHECK_EQ(out[i], i && i <= bytes ? (uint8_t)(turn * 3 + i - 1 + (uint64_t)root * 50) : 0xa5);
    hot_call meet = {.op = HOT_OP_SYNC, .root = -1};
    if (turn % 501 == 500) collective(t, &meet);
  }
  end_team(t);
  rig_join(&r);
}

/* A root does not wait: it is HOT_CASTS - 1 ahead of members that have not come yet, who find all of it. */
static void a_root_goes_on(void) {
  rig r;
  rig_memory(&r, 3);
  rig_fork(&r);
  hot_team *t = team_of(&r);
  if (r.me) rig_wait(&r, rig_word(&r, 9), 8, HOT_CMP_EQ, 1);
  for (uint64_t turn = 0; turn < HOT_CASTS - 1; turn++) {
    uint64_t value = r.me ? 0 : turn * 1000 + 7;
    hot_call call = {.op = HOT_OP_CAST, .root = 0, .in = &value, .out = &value, .count = sizeof value};
    collective(t, &call);
    CHECK_EQ(value, turn * 1000 + 7);
  }
  for (int p = 1; p < r.n && !r.me; p++) CHECK_EQ(hot_h_p(r.h, rig_word(&r, 9), 1, 8, p), HOT_OK);
  end_team(t);
  rig_join(&r);
}

const test_case collective_tests[] = {
  {"small all_reduce", small_all_reduce},
  {"barriers hold", barriers_hold},
  {"casts arrive", casts_arrive},
  {"a root goes on", a_root_goes_on},
  {NULL, NULL},
};
