/*
 * shim_device.c - devices, streams and what runs in their order: the public names over Go.
 */
#include "internal.h"

#include "_cgo_export.h"

#define PASS(call)    \
  do {                \
    REFUSE_FORKED();  \
    return (call);    \
  } while (0)

int32_t gshmem_device_open_start(uint64_t world, const char *device, uint64_t bytes, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out) {
  PASS(goshmem_device_open_start(world, (char *)device, bytes, timeout_ns, slice_ns, request_out));
}
int32_t gshmem_device_open(uint64_t world, const char *device, uint64_t bytes, int64_t timeout_ns) {
  REFUSE_FORKED();
  uint64_t request = 0;
  int32_t rc = goshmem_device_open_start(world, (char *)device, bytes, timeout_ns, -1, &request);
  if (request) goshmem_request_release(request);
  return rc;
}
int32_t gshmem_device_health(uint64_t world) { PASS(goshmem_device_health(world)); }
int32_t gshmem_device_stats(uint64_t world, gshmem_heap_stat *stat_out) { PASS(goshmem_device_stats(world, stat_out)); }
int32_t gshmem_device_state(uint64_t world, uint64_t *state_out) { PASS(goshmem_device_state(world, state_out)); }
int32_t gshmem_device_reach_host_start(uint64_t world, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out) {
  PASS(goshmem_device_reach_host_start(world, timeout_ns, slice_ns, request_out));
}
int32_t gshmem_device_reach_host(uint64_t world, int64_t timeout_ns) {
  REFUSE_FORKED();
  uint64_t request = 0;
  int32_t rc = goshmem_device_reach_host_start(world, timeout_ns, -1, &request);
  if (request) goshmem_request_release(request);
  return rc;
}
int32_t gshmem_device_address(uint64_t world, const void *address, int32_t pe, uint64_t *address_out) {
  PASS(goshmem_device_address(world, (void *)address, pe, address_out));
}
int32_t gshmem_team_index(uint64_t team, int32_t *index_out) { PASS(goshmem_team_index(team, index_out)); }
int32_t gshmem_kind_of(uint64_t world, const void *address, int32_t *kind_out) { PASS(goshmem_kind_of(world, (void *)address, kind_out)); }

int32_t gshmem_stream_create(uint64_t world, void **stream_out) { PASS(goshmem_stream_create(world, stream_out)); }
int32_t gshmem_stream_destroy(uint64_t world, void *stream) { PASS(goshmem_stream_destroy(world, stream)); }
int32_t gshmem_stream_join(uint64_t world, void *stream, void *other) { PASS(goshmem_stream_join(world, stream, other)); }
int32_t gshmem_stream_wait_start(uint64_t world, void *stream, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out) {
  PASS(goshmem_stream_wait_start(world, stream, timeout_ns, slice_ns, request_out));
}
int32_t gshmem_stream_wait(uint64_t world, void *stream, int64_t timeout_ns) {
  REFUSE_FORKED();
  uint64_t request = 0;
  int32_t rc = goshmem_stream_wait_start(world, stream, timeout_ns, -1, &request);
  if (request) goshmem_request_release(request);
  return rc;
}

int32_t gshmem_copy_on_stream(uint64_t world, void *dst, const void *src, uint64_t bytes, void *stream) {
  PASS(goshmem_copy_on_stream(world, dst, (void *)src, bytes, stream));
}
int32_t gshmem_put_on_stream(uint64_t world, void *dst, const void *src, uint64_t bytes, int32_t pe, void *stream) {
  PASS(goshmem_put_on_stream(world, dst, (void *)src, bytes, pe, stream));
}
int32_t gshmem_get_on_stream(uint64_t world, void *dst, const void *src, uint64_t bytes, int32_t pe, void *stream) {
  PASS(goshmem_get_on_stream(world, dst, (void *)src, bytes, pe, stream));
}
int32_t gshmem_put_signal_on_stream(uint64_t world, void *dst, const void *src, uint64_t bytes, int32_t *signal, int32_t value, int32_t signal_op, int32_t pe,
                                    void *stream) {
  PASS(goshmem_put_signal_on_stream(world, dst, (void *)src, bytes, signal, value, signal_op, pe, stream));
}
int32_t gshmem_signal_on_stream(uint64_t world, int32_t *signal, int32_t value, int32_t signal_op, int32_t pe, void *stream) {
  PASS(goshmem_signal_on_stream(world, signal, value, signal_op, pe, stream));
}
int32_t gshmem_signal_wait_on_stream(uint64_t world, const int32_t *signal, int32_t cmp, int32_t value, void *stream) {
  PASS(goshmem_signal_wait_on_stream(world, (void *)signal, cmp, value, stream));
}
int32_t gshmem_quiet_on_stream(uint64_t world, void *stream) { PASS(goshmem_quiet_on_stream(world, stream)); }

int32_t gshmem_barrier_on_stream(uint64_t team, void *stream) {
  PASS(goshmem_collective_on_stream(team, GSHMEM_BARRIER, NULL, NULL, 0, 0, 0, -1, stream));
}
int32_t gshmem_collective_announce(uint64_t team, int32_t what, uint64_t count, int32_t dtype, int32_t op, int32_t root, int32_t by_host) {
  PASS(goshmem_collective_announce(team, what, count, dtype, op, root, by_host));
}
int32_t gshmem_exchange_announce(uint64_t team, int32_t dtype, const uint64_t *sent_bytes, const uint64_t *taken_bytes) {
  PASS(goshmem_exchange_announce(team, dtype, (uint64_t *)sent_bytes, (uint64_t *)taken_bytes));
}
int32_t gshmem_collective_on_stream(uint64_t team, int32_t what, const void *in, void *out, uint64_t count, int32_t dtype, int32_t op, int32_t root, void *stream) {
  PASS(goshmem_collective_on_stream(team, what, (void *)in, out, count, dtype, op, root, stream));
}
