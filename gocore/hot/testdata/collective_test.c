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

const test_case collective_tests[] = {
  {"small all_reduce", small_all_reduce},
  {"barriers hold", barriers_hold},
  {NULL, NULL},
};
