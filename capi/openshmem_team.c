/*
 * openshmem_team.c - teams and contexts.
 *
 * Handles are numbers: the slot in the low 12 bits, a generation above, so that a stale one finds nothing. WORLD is 1 and SHARED is
 * 2, both of generation 0. A context is a list of world PEs: everything is finished or handed over when a call returns,
 * so contexts have no queues of their own and their options change nothing.
 */
#include "openshmem.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct osh_ctx {
  uintptr_t value;
  shmem_team_t team;
  int32_t n;
  int32_t *pe;
} osh_ctx;

osh_team *osh_teams[OSH_MAX_TEAMS];
static osh_ctx *ctxs[OSH_MAX_CTXS];
static uintptr_t generation;                              /* guarded by slots */
static pthread_mutex_t slots = PTHREAD_MUTEX_INITIALIZER; /* guards taking and giving back slots of both tables */

/* ---- slots ---- */

static osh_team *team_slot(void) {
  pthread_mutex_lock(&slots);
  for (uintptr_t i = 3; i < OSH_MAX_TEAMS; i++) {
    if (osh_teams[i] && osh_teams[i]->value) continue;
    if (!osh_teams[i] && !(osh_teams[i] = calloc(1, sizeof(osh_team)))) break;
    osh_teams[i]->value = ++generation * OSH_MAX_TEAMS + i;
    pthread_mutex_unlock(&slots);
    return osh_teams[i];
  }
  pthread_mutex_unlock(&slots);
  return NULL;
}

static osh_ctx *ctx_slot(void) {
  pthread_mutex_lock(&slots);
  for (uintptr_t i = 2; i < OSH_MAX_CTXS; i++) {
    if (ctxs[i] && ctxs[i]->value) continue;
    if (!ctxs[i] && !(ctxs[i] = calloc(1, sizeof(osh_ctx)))) break;
    ctxs[i]->value = ++generation * OSH_MAX_CTXS + i;
    pthread_mutex_unlock(&slots);
    return ctxs[i];
  }
  pthread_mutex_unlock(&slots);
  return NULL;
}

/* The table of members stays with its slot until finalize, with room for every PE: who looks at a team while another thread destroys it reads
   old numbers, never freed memory. NULL without memory. */
static int32_t *members(int32_t **of_slot) {
  if (!*of_slot) *of_slot = malloc(sizeof **of_slot * (size_t)osh.n);
  return *of_slot;
}

static void team_forget(osh_team *t) {
  pthread_mutex_lock(&slots);
  t->value = t->handle = 0; /* the struct stays: a late look at it finds value 0 */
  t->me = t->n = 0;
  pthread_mutex_unlock(&slots);
}

/* ---- the two teams there always are ---- */

static osh_team *fixed_team(uintptr_t value, uint64_t handle, int32_t me, const int32_t *pe, int32_t n) {
  osh_team *t = osh_teams[value] ? osh_teams[value] : calloc(1, sizeof *t);
  int32_t *copy = malloc(sizeof *copy * (size_t)n);
  if (!t || !copy) osh_die("init", "no memory for the table of %d PEs", n);
  memcpy(copy, pe, sizeof *copy * (size_t)n);
  *t = (osh_team){.value = value, .handle = handle, .me = me, .n = n, .pe = copy, .config = {.num_contexts = (int)OSH_MAX_CTXS - 2}};
  osh_teams[value] = t;
  return t;
}

/* SHARED is everybody whose memory is mapped here; the others see the same, since mapping is mutual. */
void osh_teams_open(void) {
  int32_t *pe = malloc(sizeof *pe * (size_t)osh.n), shared = 0, me = 0;
  if (!pe) osh_die("init", "no memory for the table of %d PEs", osh.n);
  for (int32_t i = 0; i < osh.n; i++) pe[i] = i;
  fixed_team((uintptr_t)SHMEM_TEAM_WORLD, osh.team, osh.me, pe, osh.n);
  for (int32_t i = 0; i < osh.n; i++) {
    void *there;
    if (i != osh.me && gshmem_ptr(osh.world, (void *)osh.heap_low, i, &there)) continue;
    if (i == osh.me) me = shared;
    pe[shared++] = i;
  }
  uint64_t handle;
  osh_check("init", gshmem_team_create(osh.world, pe, shared, 0x5a12ed0000000000ull ^ osh.round, GSHMEM_DEFAULT_TIMEOUT, &handle));
  fixed_team((uintptr_t)SHMEM_TEAM_SHARED, handle, me, pe, shared);
  free(pe);
}

/* The native teams end with their world; where that goes on, they end here, all but the world team, which is osh.team. */
void osh_teams_close(void) {
  for (uint32_t i = 0; i < OSH_MAX_TEAMS; i++) {
    if (!osh_teams[i] || !osh_teams[i]->value) continue;
    if (osh.joined && osh_teams[i]->handle != osh.team) osh_status("finalize", gshmem_team_destroy(osh_teams[i]->handle));
    team_forget(osh_teams[i]);
  }
  for (uint32_t i = 0; i < OSH_MAX_TEAMS; i++) { /* the next world may be larger */
    if (!osh_teams[i]) continue;
    free(osh_teams[i]->pe);
    *osh_teams[i] = (osh_team){0};
  }
  for (uint32_t i = 0; i < OSH_MAX_CTXS; i++) {
    if (!ctxs[i]) continue;
    free(ctxs[i]->pe);
    *ctxs[i] = (osh_ctx){0};
  }
}

/* ---- asking ---- */

int shmem_team_my_pe(shmem_team_t team) {
  const osh_team *t = osh_team_of(team);
  return t ? t->me : -1;
}

int shmem_team_n_pes(shmem_team_t team) {
  const osh_team *t = osh_team_of(team);
  return t ? t->n : -1;
}

int shmem_team_get_config(shmem_team_t team, long config_mask, shmem_team_config_t *config) {
  const osh_team *t = osh_team_of(team);
  if (!t || (config_mask && !config) || config_mask & ~SHMEM_TEAM_NUM_CONTEXTS) return GSHMEM_EINVAL;
  if (config_mask & SHMEM_TEAM_NUM_CONTEXTS) config->num_contexts = t->config.num_contexts;
  return 0;
}

int shmem_team_translate_pe(shmem_team_t src_team, int src_pe, shmem_team_t dest_team) {
  const osh_team *from = osh_team_of(src_team), *to = osh_team_of(dest_team);
  if (!from || !to || src_pe < 0 || src_pe >= from->n) return -1;
  int32_t pe = from->pe[src_pe];
  if (to->value == (uintptr_t)SHMEM_TEAM_WORLD) return pe;
  for (int32_t r = 0; r < to->n; r++)
    if (to->pe[r] == pe) return r;
  return -1;
}

void *shmem_team_ptr(shmem_team_t team, const void *dest, int pe) {
  const osh_team *t = osh_team_of(team);
  return t && pe >= 0 && pe < t->n ? shmem_ptr(dest, t->pe[pe]) : NULL;
}

/* ---- splitting ---- */

static shmem_team_t enter(const osh_team *parent, uint64_t handle, int start, int stride, int size, const shmem_team_config_t *config, long mask) {
  if (!handle) return SHMEM_TEAM_INVALID; /* this PE is not in it */
  osh_team *t = team_slot();
  int32_t *pe = t ? members(&t->pe) : NULL;
  if (!pe) osh_die("team_split", "no room for another team: %u are alive, or memory is short", OSH_MAX_TEAMS - 3);
  for (int32_t r = 0; r < size; r++) pe[r] = parent->pe[start + r * stride];
  t->handle = handle;
  t->n = size;
  t->me = gshmem_team_my_pe(handle);
  t->config.num_contexts = mask & SHMEM_TEAM_NUM_CONTEXTS && config ? config->num_contexts : 0;
  return (shmem_team_t)t->value;
}

static int mask_refused(const char *op, const shmem_team_config_t *config, long mask) {
  if (!(mask & ~SHMEM_TEAM_NUM_CONTEXTS) && (!mask || config)) return 0;
  osh_say(op, "config_mask is %#lx%s; the only member is SHMEM_TEAM_NUM_CONTEXTS (%#lx)", mask, config ? "" : " and config is NULL", SHMEM_TEAM_NUM_CONTEXTS);
  return 1;
}

int shmem_team_split_strided(shmem_team_t parent_team, int start, int stride, int size, const shmem_team_config_t *config, long config_mask,
                             shmem_team_t *new_team) {
  const osh_team *parent = osh_team_of(parent_team);
  *new_team = SHMEM_TEAM_INVALID;
  if (!parent || mask_refused("team_split_strided", config, config_mask)) return GSHMEM_EINVAL;
  uint64_t handle = 0;
  int rc = osh_status("team_split_strided", gshmem_team_split_strided(parent->handle, start, stride, size, GSHMEM_DEFAULT_TIMEOUT, &handle));
  if (!rc) *new_team = enter(parent, handle, start, stride, size, config, config_mask);
  return rc;
}

int shmem_team_split_2d(shmem_team_t parent_team, int xrange, const shmem_team_config_t *xaxis_config, long xaxis_mask, shmem_team_t *xaxis_team,
                        const shmem_team_config_t *yaxis_config, long yaxis_mask, shmem_team_t *yaxis_team) {
  const osh_team *parent = osh_team_of(parent_team);
  *xaxis_team = *yaxis_team = SHMEM_TEAM_INVALID;
  if (!parent || mask_refused("team_split_2d", xaxis_config, xaxis_mask) || mask_refused("team_split_2d", yaxis_config, yaxis_mask)) return GSHMEM_EINVAL;
  uint64_t x = 0, y = 0;
  if (xrange > parent->n) xrange = parent->n;
  int rc = osh_status("team_split_2d", gshmem_team_split_2d(parent->handle, xrange, GSHMEM_DEFAULT_TIMEOUT, &x, &y));
  if (rc) return rc;
  int row = parent->me / xrange, column = parent->me % xrange;
  int width = parent->n - row * xrange < xrange ? parent->n - row * xrange : xrange; /* the last row may be short ... */
  int height = (parent->n - column + xrange - 1) / xrange;                           /* ... and so some columns */
  *xaxis_team = enter(parent, x, row * xrange, 1, width, xaxis_config, xaxis_mask);
  *yaxis_team = enter(parent, y, column, xrange, height, yaxis_config, yaxis_mask);
  return 0;
}

void shmem_team_destroy(shmem_team_t team) {
  if (team == SHMEM_TEAM_INVALID) return;
  osh_team *t = osh_team_of(team);
  if (!t || team == SHMEM_TEAM_WORLD || team == SHMEM_TEAM_SHARED) {
    osh_say("team_destroy", t ? "SHMEM_TEAM_WORLD and SHMEM_TEAM_SHARED live until shmem_finalize" : "the team was destroyed already, or never was");
    return;
  }
  osh_status("team_destroy", gshmem_team_destroy(t->handle));
  team_forget(t);
}

/* ---- contexts ---- */

static osh_ctx *ctx_of(shmem_ctx_t ctx) {
  osh_ctx *c = ctxs[(uintptr_t)ctx % OSH_MAX_CTXS];
  return c && ctx && c->value == (uintptr_t)ctx ? c : NULL;
}

int osh_ctx_pe_slow(shmem_ctx_t ctx, int pe) {
  const osh_ctx *c = ctx_of(ctx);
  if (!c) osh_die("context", "the context is SHMEM_CTX_INVALID, destroyed, or never was");
  return pe >= 0 && pe < c->n ? c->pe[pe] : -1;
}

int shmem_ctx_create(long options, shmem_ctx_t *ctx) { return shmem_team_create_ctx(SHMEM_TEAM_WORLD, options, ctx); }

int shmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t *ctx) {
  const osh_team *t = osh_team_of(team);
  *ctx = SHMEM_CTX_INVALID;
  if (!t || options & ~(SHMEM_CTX_SERIALIZED | SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE)) return GSHMEM_EINVAL;
  osh_ctx *c = ctx_slot();
  int32_t *pe = c ? members(&c->pe) : NULL;
  if (!pe) {
    if (c) c->value = 0;
    return GSHMEM_ENOMEM;
  }
  memcpy(pe, t->pe, sizeof *pe * (size_t)t->n);
  c->n = t->n;
  c->team = team;
  *ctx = (shmem_ctx_t)c->value;
  return 0;
}

void shmem_ctx_destroy(shmem_ctx_t ctx) {
  if (ctx == SHMEM_CTX_INVALID) return;
  osh_ctx *c = ctx_of(ctx);
  if (!c) {
    osh_say("ctx_destroy", ctx == SHMEM_CTX_DEFAULT ? "SHMEM_CTX_DEFAULT lives until shmem_finalize" : "the context was destroyed already, or never was");
    return;
  }
  shmem_quiet();
  pthread_mutex_lock(&slots);
  c->value = 0;
  c->team = SHMEM_TEAM_INVALID;
  c->n = 0;
  pthread_mutex_unlock(&slots);
}

int shmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t *team) {
  const osh_ctx *c = ctx_of(ctx);
  *team = c ? c->team : ctx == SHMEM_CTX_DEFAULT ? SHMEM_TEAM_WORLD : SHMEM_TEAM_INVALID;
  return *team == SHMEM_TEAM_INVALID ? GSHMEM_EINVAL : 0;
}

/* ---- order: all contexts share the world's ---- */

void shmem_fence(void) {
  if (HOT_UNLIKELY(hot_h_fence(osh.world) != HOT_OK)) osh_check("fence", gshmem_fence(osh.world));
}

void shmem_quiet(void) {
  if (HOT_UNLIKELY(hot_h_quiet(osh.world) != HOT_OK)) osh_check("quiet", gshmem_quiet(osh.world, -1));
}

void shmem_ctx_fence(shmem_ctx_t ctx) {
  if (ctx != SHMEM_CTX_INVALID) shmem_fence();
}

void shmem_ctx_quiet(shmem_ctx_t ctx) {
  if (ctx != SHMEM_CTX_INVALID) shmem_quiet();
}
