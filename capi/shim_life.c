/*
 * shim_life.c - worlds, memory, teams, requests, messages: the public names over Go.
 *
 * Nothing here is hot; each function looks at the fork mark in C, because Go must not be entered in a forked child, and
 * passes on. The forms without a slice are the same request, waited for and released.
 */
#include "internal.h"

#include "_cgo_export.h"

#define PASS(call)    \
  do {                \
    REFUSE_FORKED();  \
    return (call);    \
  } while (0)

uint32_t gshmem_abi_version(void) { return GSHMEM_ABI_VERSION; }
const char *gshmem_version(void) { return GSHMEM_VERSION_TEXT; }

const char *gshmem_status_name(int32_t status) {
  static const struct { int32_t code; const char *name; } names[] = {
      {GSHMEM_OK, "ok"}, {GSHMEM_PENDING, "pending"}, {GSHMEM_EINVAL, "invalid argument"}, {GSHMEM_EPE, "invalid PE"},
      {GSHMEM_ENOTSYM, "not symmetric memory"}, {GSHMEM_EALIGN, "misaligned"}, {GSHMEM_EUNSUPPORTED, "not supported"},
      {GSHMEM_ETIMEOUT, "timed out"}, {GSHMEM_ECANCELED, "canceled"}, {GSHMEM_ETRUNCATED, "truncated"}, {GSHMEM_ESTALE, "stale handle"},
      {GSHMEM_EPOISONED, "team is poisoned"}, {GSHMEM_EMISMATCH, "PEs disagree"}, {GSHMEM_EHEAPFULL, "symmetric heap exhausted"},
      {GSHMEM_EASYMMETRIC, "asymmetric allocation"}, {GSHMEM_EPEERDEAD, "peer died"}, {GSHMEM_EUNREACHABLE, "peer unreachable"},
      {GSHMEM_EPEERLEFT, "peer left the world"}, {GSHMEM_EABORTED, "aborted"}, {GSHMEM_EAUTH, "not authenticated"},
      {GSHMEM_EVERSION, "library versions differ"}, {GSHMEM_ENOTINIT, "not initialized"}, {GSHMEM_EFINALIZED, "world is finalized"},
      {GSHMEM_EFORKED, "called in a forked child"}, {GSHMEM_ESYSTEM, "system call failed"}, {GSHMEM_ENOMEM, "out of memory"},
      {GSHMEM_ERENDEZVOUS, "rendezvous failed"}, {GSHMEM_ECONFIG, "bad setting"}, {GSHMEM_EINTERNAL, "internal error"}};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (names[i].code == status) return names[i].name;
  return "unknown status";
}

/* Waits for a request to its end, fetches n words, releases it. The request comes by address: it is set by the very call whose
   status is the first argument, and arguments are evaluated in any order. */
static int32_t finish(int32_t rc, const uint64_t *started, uint64_t *words, uint32_t n) {
  if (rc < 0) return rc;
  uint64_t request = *started;
  if (rc == GSHMEM_PENDING) rc = goshmem_request_wait(request, -1);
  if (rc == GSHMEM_OK && n) rc = goshmem_request_result(request, words, n);
  if (request) goshmem_request_release(request);
  return rc;
}

/* ---- requests ---- */
int32_t gshmem_request_wait(uint64_t request, int64_t slice_ns) { PASS(goshmem_request_wait(request, slice_ns)); }
int32_t gshmem_request_result(uint64_t request, uint64_t *words_out, uint32_t n) { PASS(goshmem_request_result(request, words_out, n)); }
int32_t gshmem_request_release(uint64_t request) { PASS(goshmem_request_release(request)); }
int32_t gshmem_completions_wait(uint64_t world, int64_t slice_ns, uint64_t *requests_out, uint32_t max, uint32_t *n_out) {
  PASS(goshmem_completions_wait(world, slice_ns, requests_out, max, n_out));
}

/* ---- life ---- */
int32_t gshmem_uid_create(const char *interface, uint8_t uid_out[GSHMEM_UID_BYTES]) { PASS(goshmem_uid_create((char *)interface, uid_out)); }
int32_t gshmem_init_start(const gshmem_options *options, int64_t slice_ns, uint64_t *request_out) {
  PASS(goshmem_init_start((gshmem_options *)options, slice_ns, request_out));
}
int32_t gshmem_init(const gshmem_options *options, uint64_t *world_out, uint64_t *world_team_out) {
  REFUSE_FORKED();
  uint64_t request = 0, words[2];
  int32_t rc = finish(goshmem_init_start((gshmem_options *)options, -1, &request), &request, words, 2);
  if (rc == GSHMEM_OK) {
    *world_out = words[0];
    *world_team_out = words[1];
  }
  return rc;
}
int32_t gshmem_finalize_start(uint64_t world, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out) {
  PASS(goshmem_finalize_start(world, timeout_ns, slice_ns, request_out));
}
int32_t gshmem_finalize(uint64_t world, int64_t timeout_ns) {
  REFUSE_FORKED();
  uint64_t request = 0;
  return finish(goshmem_finalize_start(world, timeout_ns, -1, &request), &request, NULL, 0);
}
int32_t gshmem_abort(uint64_t world, int32_t code) { PASS(goshmem_abort(world, code)); }
int32_t gshmem_my_pe(uint64_t world) { PASS(goshmem_world_number(world, 0)); }
int32_t gshmem_n_pes(uint64_t world) { PASS(goshmem_world_number(world, 1)); }
int32_t gshmem_info(uint64_t world, char *json_out, uint64_t cap, uint64_t *needed_out) { PASS(goshmem_info(world, json_out, cap, needed_out)); }

/* ---- memory ---- */
int32_t gshmem_alloc_start(uint64_t team, uint64_t bytes, uint64_t align, uint32_t flags, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out) {
  PASS(goshmem_alloc_start(team, bytes, align, flags, timeout_ns, slice_ns, request_out));
}
int32_t gshmem_alloc(uint64_t team, uint64_t bytes, uint64_t align, uint32_t flags, int64_t timeout_ns, uint64_t *block_out, void **address_out) {
  REFUSE_FORKED();
  uint64_t request = 0, words[2];
  int32_t rc = finish(goshmem_alloc_start(team, bytes, align, flags, timeout_ns, -1, &request), &request, words, 2);
  if (rc == GSHMEM_OK) {
    *block_out = words[0];
    *address_out = (void *)(uintptr_t)words[1];
  }
  return rc;
}
int32_t gshmem_alloc_local(uint64_t world, uint64_t bytes, uint64_t align, uint32_t flags, uint64_t *block_out, void **address_out) {
  PASS(goshmem_alloc_local(world, bytes, align, flags, block_out, address_out));
}
int32_t gshmem_free_start(uint64_t block, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out) {
  PASS(goshmem_free_start(block, timeout_ns, slice_ns, request_out));
}
int32_t gshmem_free(uint64_t block, int64_t timeout_ns) {
  REFUSE_FORKED();
  uint64_t request = 0;
  return finish(goshmem_free_start(block, timeout_ns, -1, &request), &request, NULL, 0);
}
int32_t gshmem_block_drop(uint64_t block) { PASS(goshmem_block_drop(block)); }
int32_t gshmem_collect_start(uint64_t team, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out) {
  PASS(goshmem_collect_start(team, timeout_ns, slice_ns, request_out));
}
int32_t gshmem_collect(uint64_t team, int64_t timeout_ns) {
  REFUSE_FORKED();
  uint64_t request = 0;
  return finish(goshmem_collect_start(team, timeout_ns, -1, &request), &request, NULL, 0);
}
int32_t gshmem_block_of(uint64_t world, const void *address, uint64_t *block_out, void **low_out, uint64_t *bytes_out) {
  PASS(goshmem_block_of(world, (void *)address, block_out, low_out, bytes_out));
}
int32_t gshmem_ptr(uint64_t world, const void *address, int32_t pe, void **address_out) { PASS(goshmem_ptr(world, (void *)address, pe, address_out)); }
int32_t gshmem_heap_stats(uint64_t world, gshmem_heap_stat *stat_out) { PASS(goshmem_heap_stats(world, stat_out)); }

/* ---- teams ---- */
int32_t gshmem_team_split_strided_start(uint64_t parent, int32_t start, int32_t stride, int32_t size, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out) {
  PASS(goshmem_team_split_strided_start(parent, start, stride, size, timeout_ns, slice_ns, request_out));
}
int32_t gshmem_team_split_strided(uint64_t parent, int32_t start, int32_t stride, int32_t size, int64_t timeout_ns, uint64_t *team_out) {
  REFUSE_FORKED();
  uint64_t request = 0;
  return finish(goshmem_team_split_strided_start(parent, start, stride, size, timeout_ns, -1, &request), &request, team_out, 1);
}
int32_t gshmem_team_split_2d_start(uint64_t parent, int32_t xrange, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out) {
  PASS(goshmem_team_split_2d_start(parent, xrange, timeout_ns, slice_ns, request_out));
}
int32_t gshmem_team_split_2d(uint64_t parent, int32_t xrange, int64_t timeout_ns, uint64_t *xteam_out, uint64_t *yteam_out) {
  REFUSE_FORKED();
  uint64_t request = 0, words[2];
  int32_t rc = finish(goshmem_team_split_2d_start(parent, xrange, timeout_ns, -1, &request), &request, words, 2);
  if (rc == GSHMEM_OK) {
    *xteam_out = words[0];
    *yteam_out = words[1];
  }
  return rc;
}
int32_t gshmem_team_create_start(uint64_t world, const int32_t *pes, int32_t n, uint64_t key, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out) {
  PASS(goshmem_team_create_start(world, (int32_t *)pes, n, key, timeout_ns, slice_ns, request_out));
}
int32_t gshmem_team_create(uint64_t world, const int32_t *pes, int32_t n, uint64_t key, int64_t timeout_ns, uint64_t *team_out) {
  REFUSE_FORKED();
  uint64_t request = 0;
  return finish(goshmem_team_create_start(world, (int32_t *)pes, n, key, timeout_ns, -1, &request), &request, team_out, 1);
}
int32_t gshmem_team_destroy(uint64_t team) { PASS(goshmem_team_destroy(team)); }
int32_t gshmem_team_abort(uint64_t team) { PASS(goshmem_team_abort(team)); }
int32_t gshmem_team_my_pe(uint64_t team) { PASS(goshmem_team_number(team, 0)); }
int32_t gshmem_team_n_pes(uint64_t team) { PASS(goshmem_team_number(team, 1)); }
int32_t gshmem_team_translate(uint64_t from, int32_t pe, uint64_t to, int32_t *pe_out) { PASS(goshmem_team_translate(from, pe, to, pe_out)); }
int32_t gshmem_team_set_timeout(uint64_t team, int64_t timeout_ns) { PASS(goshmem_team_set_timeout(team, timeout_ns)); }
int32_t gshmem_team_health(uint64_t team) { PASS(goshmem_team_health(team)); }

/* ---- messages ---- */
int32_t gshmem_send(uint64_t team, const void *data, uint64_t bytes, int32_t dst, int64_t tag, uint32_t flags, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out) {
  PASS(goshmem_send(team, (void *)data, bytes, dst, tag, flags, timeout_ns, slice_ns, request_out));
}
int32_t gshmem_recv(uint64_t team, void *data, uint64_t bytes, int32_t src, int64_t tag, uint32_t flags, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out) {
  PASS(goshmem_recv(team, data, bytes, src, tag, flags, timeout_ns, slice_ns, request_out));
}
