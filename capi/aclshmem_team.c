/*
 * aclshmem_team.c - teams by small numbers.
 *
 * A split is made by the members of the new team alone (as upstream's, which asks nobody): every PE works out the list, and those on it
 * meet. Teams made of the same PEs one after the other are told apart by counting, which gives the same number on all members.
 */
#include "aclshmem_face.h"

#include <stdlib.h>
#include <string.h>

/* Number of a PE in a list, -1 when it is not there. */
static int rank_of(const face_team *t, int pe) {
  for (int i = 0; i < t->n; i++)
    if (t->pe[i] == pe) return i;
  return -1;
}

/* f->lock is held. */
static face_team *members_locked(face *f, aclshmem_team_t team) { return team < 0 || team >= ACLSHMEM_MAX_TEAMS ? NULL : f->members[team]; }

static void team_free(face_team *t) {
  if (t) free(t->pe);
  free(t);
}

/* A copy that stays when the team is destroyed meanwhile; NULL when there is no such team. */
static face_team *copy_of(face *f, aclshmem_team_t team) {
  face_team *copy = NULL;
  pthread_mutex_lock(&f->lock);
  face_team *t = members_locked(f, team);
  if (t && (copy = malloc(sizeof *copy))) {
    *copy = *t;
    copy->pe = malloc((size_t)t->n * sizeof *t->pe);
    if (copy->pe) memcpy(copy->pe, t->pe, (size_t)t->n * sizeof *t->pe);
    if (!copy->pe) {
      free(copy);
      copy = NULL;
    }
  }
  pthread_mutex_unlock(&f->lock);
  return copy;
}

/* Members first, first + stride, ... of a team. NULL without memory. */
static face_team *choose(const face_team *from, int first, int stride, int n, int me) {
  face_team *t = malloc(sizeof *t);
  if (!t) return NULL;
  t->n = n;
  t->pe = malloc((size_t)n * sizeof *t->pe);
  if (!t->pe) {
    free(t);
    return NULL;
  }
  for (int i = 0; i < n; i++) t->pe[i] = from->pe[first + i * stride];
  t->me = rank_of(t, me);
  return t;
}

static uint64_t fingerprint(const face_team *t) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (int i = 0; i < t->n; i++) h = (h ^ (uint64_t)(uint32_t)t->pe[i]) * 0x100000001b3ull;
  return (h ^ (uint64_t)t->n) * 0x100000001b3ull;
}

/* How often these PEs have become a team before, as a key. 0 without memory. */
static uint64_t next_key(face *f, const face_team *t) {
  uint64_t mark = fingerprint(t), key = 0;
  pthread_mutex_lock(&f->lock);
  uint32_t i = 0;
  while (i < f->n_made && f->made[i].fingerprint != mark) i++;
  if (i == f->n_made) {
    void *more = realloc(f->made, (i + 1) * sizeof *f->made);
    if (more) {
      f->made = more;
      f->made[f->n_made++] = (struct face_made){mark, 0};
    }
  }
  if (i < f->n_made) key = (mark << 20) ^ ++f->made[i].times ^ 0xa5ull << 56;
  pthread_mutex_unlock(&f->lock);
  return key;
}

/* Takes the lowest free number; -1 when all are taken. The team is the table's from then on. */
static int enter(face *f, face_team *t, uint64_t handle) {
  pthread_mutex_lock(&f->lock);
  int i = 0;
  while (i < ACLSHMEM_MAX_TEAMS && f->members[i]) i++;
  if (i < ACLSHMEM_MAX_TEAMS) {
    f->members[i] = t;
    atomic_store_explicit(&f->team[i], handle, memory_order_release);
  }
  pthread_mutex_unlock(&f->lock);
  return i < ACLSHMEM_MAX_TEAMS ? i : -1;
}

/* Meets the other members; t is consumed. */
static int make(face *f, face_team *t, aclshmem_team_t *out) {
  uint64_t handle = 0, key = next_key(f, t);
  int32_t rc = key ? gshmem_team_create(face_world(f), t->pe, t->n, key, f->wait_ns, &handle) : errtext_fail(GSHMEM_ENOMEM, "no memory for a team");
  if (!rc) rc = gshmem_team_set_timeout(handle, f->wait_ns);
  if (rc) {
    team_free(t);
    return face_code(face_failed("team_split", rc));
  }
  int number = enter(f, t, handle);
  if (number < 0) {
    gshmem_team_destroy(handle);
    team_free(t);
    return face_refuse(ACLSHMEM_INNER_ERROR, "team_split: all %d team numbers are taken; destroy some", ACLSHMEM_MAX_TEAMS);
  }
  *out = number;
  return ACLSHMEM_SUCCESS;
}

/* The world team (number 0) and the one for allocations. Collective over the world. */
int32_t face_teams_open(face *f, uint64_t world_team) {
  uint64_t data = 0;
  int32_t rc = gshmem_team_split_strided(world_team, 0, 1, f->n, f->control_ns, &data);
  if (rc) return rc;
  face_team *t = malloc(sizeof *t);
  if (t) *t = (face_team){f->me, f->n, malloc((size_t)f->n * sizeof *t->pe)};
  if (!t || !t->pe) {
    team_free(t);
    return errtext_fail(GSHMEM_ENOMEM, "no memory for the team of all PEs");
  }
  for (int i = 0; i < f->n; i++) t->pe[i] = i;
  gshmem_team_set_timeout(data, f->wait_ns);
  enter(f, t, data);
  atomic_store(&f->control, world_team);
  return GSHMEM_OK;
}

/* Forgets all numbers; the handles end with the world. */
void face_teams_close(face *f) {
  pthread_mutex_lock(&f->lock);
  for (int i = 0; i < ACLSHMEM_MAX_TEAMS; i++) {
    atomic_store(&f->team[i], 0);
    team_free(f->members[i]);
    f->members[i] = NULL;
  }
  free(f->made);
  f->made = NULL;
  f->n_made = 0;
  pthread_mutex_unlock(&f->lock);
}

static int split(face *f, const face_team *parent, int first, int stride, int n, aclshmem_team_t *out) {
  face_team *t = choose(parent, first, stride, n, f->me);
  if (!t) return face_refuse(ACLSHMEM_INNER_ERROR, "team_split: no memory");
  if (t->me >= 0) return make(f, t, out);
  team_free(t);
  return ACLSHMEM_SUCCESS; /* this PE is no member */
}

int aclshmem_team_split_strided(aclshmem_team_t parent_team, int pe_start, int pe_stride, int pe_size, aclshmem_team_t *new_team) {
  if (!new_team) return face_refuse(ACLSHMEM_INVALID_PARAM, "team_split_strided: new_team is null");
  *new_team = ACLSHMEM_TEAM_INVALID;
  face *f = face_now();
  face_team *parent = copy_of(f, parent_team);
  if (!parent) return face_refuse(ACLSHMEM_INVALID_PARAM, "team_split_strided: team %d does not exist", parent_team);
  int rc;
  if (pe_start < 0 || pe_start >= parent->n || pe_size <= 0 || pe_size > parent->n || pe_stride < 1 ||
      (int64_t)pe_start + (int64_t)(pe_size - 1) * pe_stride >= parent->n)
    rc = face_refuse(ACLSHMEM_INVALID_PARAM, "team_split_strided: members %d, +%d, ... (%d of them) do not lie in team %d of %d members", pe_start,
                     pe_stride, pe_size, parent_team, parent->n);
  else
    rc = split(f, parent, pe_start, pe_stride, pe_size, new_team);
  team_free(parent);
  return rc;
}

int aclshmem_team_split_2d(aclshmem_team_t parent_team, int x_range, aclshmem_team_t *x_team, aclshmem_team_t *y_team) {
  if (!x_team || !y_team) return face_refuse(ACLSHMEM_INVALID_PARAM, "team_split_2d: x_team or y_team is null");
  *x_team = *y_team = ACLSHMEM_TEAM_INVALID;
  if (x_range <= 0) return face_refuse(ACLSHMEM_INVALID_PARAM, "team_split_2d: x_range is %d; it is at least 1", x_range);
  face *f = face_now();
  face_team *parent = copy_of(f, parent_team);
  if (!parent) return face_refuse(ACLSHMEM_INVALID_PARAM, "team_split_2d: team %d does not exist", parent_team);
  int x = x_range < parent->n ? x_range : parent->n, row = parent->me / x, column = parent->me % x;
  int length = parent->n - row * x < x ? parent->n - row * x : x;
  int height = (parent->n - column + x - 1) / x;
  int rc = split(f, parent, row * x, 1, length, x_team); /* all PEs make rows first, then columns: nobody waits in a ring */
  if (!rc) rc = split(f, parent, column, x, height, y_team);
  if (rc && *x_team >= 0) {
    aclshmem_team_destroy(*x_team);
    *x_team = ACLSHMEM_TEAM_INVALID;
  }
  team_free(parent);
  return rc;
}

int aclshmem_team_translate_pe(aclshmem_team_t src_team, int src_pe, aclshmem_team_t dest_team) {
  face *f = face_now();
  int rank = -1;
  pthread_mutex_lock(&f->lock);
  face_team *from = members_locked(f, src_team), *to = members_locked(f, dest_team);
  if (from && to && src_pe >= 0 && src_pe < from->n) rank = rank_of(to, from->pe[src_pe]);
  pthread_mutex_unlock(&f->lock);
  return rank;
}

static int number_of(aclshmem_team_t team, int size) {
  face *f = face_now();
  pthread_mutex_lock(&f->lock);
  face_team *t = members_locked(f, team);
  int number = !t ? -1 : size ? t->n : t->me;
  pthread_mutex_unlock(&f->lock);
  return number;
}

int aclshmem_team_my_pe(aclshmem_team_t team) { return number_of(team, 0); }
int aclshmem_team_n_pes(aclshmem_team_t team) { return number_of(team, 1); }

int aclshmem_team_get_config(aclshmem_team_t team, aclshmem_team_config_t *config) {
  if (!config) return face_refuse(ACLSHMEM_INVALID_PARAM, "team_get_config: config is null");
  if (number_of(team, 0) < 0) return face_refuse(ACLSHMEM_INVALID_PARAM, "team_get_config: team %d does not exist", team);
  memset(config, 0, sizeof *config);
  config->version = (1 << 16) + (int32_t)sizeof *config;
  return ACLSHMEM_SUCCESS;
}

void aclshmem_team_destroy(aclshmem_team_t team) {
  face *f = face_now();
  if (team == ACLSHMEM_TEAM_INVALID) return;
  if (team == ACLSHMEM_TEAM_WORLD) {
    face_refuse(ACLSHMEM_INVALID_PARAM, "team_destroy: ACLSHMEM_TEAM_WORLD ends with finalize");
    return;
  }
  uint64_t handle = 0;
  pthread_mutex_lock(&f->lock);
  face_team *t = members_locked(f, team);
  if (t) {
    f->members[team] = NULL;
    handle = atomic_exchange(&f->team[team], 0);
  }
  pthread_mutex_unlock(&f->lock);
  team_free(t);
  if (!t)
    face_refuse(ACLSHMEM_INVALID_PARAM, "team_destroy: team %d does not exist", team);
  else
    gshmem_team_destroy(handle);
}
