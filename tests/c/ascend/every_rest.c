/* every_rest.c - life, instances, heap, addresses, teams, barriers, streams, keys, log, profiler. */
#define _GNU_SOURCE
#include "check.h"

#include <unistd.h>

#ifdef ON_DEVICE
enum { DEVICE = 1 };
#else
enum { DEVICE = 0 };
#endif

static int logged, decrypted;
static char last_log[512];

static void logger(int level, const char *words) {
  (void)level;
  logged++;
  snprintf(last_log, sizeof last_log, "%s", words);
}

/* The password is written backwards. */
static int decrypt(const char *cipher, size_t length, char *plain, size_t *room) {
  if (length > *room) return -1;
  for (size_t i = 0; i < length; i++) plain[i] = cipher[length - 1 - i];
  *room = length;
  decrypted++;
  return 0;
}

static void before_init(void) {
  int major = 0, minor = 0;
  char name[ACLSHMEM_MAX_NAME_LEN] = "";
  CHECK(CALL(aclshmemx_init_status)() == ACLSHMEM_STATUS_NOT_INITIALIZED, "before init");
  CHECK(CALL(aclshmem_my_pe)() == -1 && CALL(aclshmem_n_pes)() == -1, "numbers before init");
  CHECK(aclshmem_finalize() == 0, "finalize of nothing");
  CHECK(aclshmem_malloc(8) == NULL, "malloc before init");
  aclshmem_global_exit(9); /* does nothing */
  CALL(aclshmem_info_get_version)(&major, &minor);
  CHECK(major == 1 && minor == 1, "version %d.%d", major, minor);
  CALL(aclshmem_info_get_name)(name);
  CHECK(!strcmp(name, "ACLSHMEM v1.1.1"), "name %s", name);
  CHECK(CALL(util_get_ffts_config)() == 0, "ffts");
  CHECK(CALL(aclshmemx_set_log_level)(5) == ACLSHMEM_INVALID_VALUE && aclshmemx_set_log_level(ACLSHMEM_SUCCESS) == 0, "log level");
  CHECK(aclshmemx_set_log_level(3) == 0, "log level");
  CHECK(CALL(aclshmemx_set_extern_logger)(NULL) == 0 && aclshmemx_set_extern_logger(logger) == 0, "logger");
  CHECK(CALL(aclshmemx_set_mte_config)(0, 16384, 0) == 0 && CALL(aclshmemx_set_sdma_config)(0, 64, 1) == 0, "mte, sdma");
  CHECK(CALL(aclshmemx_set_rdma_config)(0, 127, 0) == ACLSHMEM_INVALID_VALUE && aclshmemx_set_rdma_config(0, 128, 0) == 0, "rdma");
  CHECK(CALL(aclshmemx_set_udma_config)(0, 0, 0) == ACLSHMEM_INVALID_VALUE && aclshmemx_set_udma_config(0, 256, 0) == 0, "udma");
  CHECK(logged >= 2 && strstr(last_log, "udma"), "the logger got %d messages, last: %s", logged, last_log);
}

static void bad_init(void) {
  aclshmemx_init_attr_t good = ACLSHMEMX_INIT_ATTR_INITIALIZER, a;
  good.n_pes = 1;
  good.local_mem_size = 1 << 20;
  snprintf(good.ip_port, sizeof good.ip_port, "tcp://127.0.0.1:%d", port);
#define BAD(code, change)                                                                        \
  a = good;                                                                                      \
  change;                                                                                        \
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_DEFAULT, &a) == (code), "init with " #change);   \
  CHECK(aclshmemx_init_status() == ACLSHMEM_STATUS_NOT_INITIALIZED, "status after " #change)
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_DEFAULT, NULL) == -1, "null attributes");
  BAD(-2, a.my_pe = -1);
  BAD(-2, a.n_pes = 0);
  BAD(-2, a.n_pes = 16385);
  BAD(-1, a.my_pe = 1);
  BAD(-2, a.local_mem_size = 0);
  BAD(-2, a.local_mem_size = ACLSHMEM_MAX_LOCAL_SIZE + 1);
  BAD(-2, a.option_attr.shm_init_timeout = 0);
  BAD(-2, a.option_attr.control_operation_timeout = 0);
  BAD(-2, a.option_attr.data_op_engine_type = (data_op_engine_type_t)0);
  BAD(-2, a.option_attr.data_op_engine_type = (data_op_engine_type_t)16);
  BAD(-1, strcpy(a.ip_port, "127.0.0.1:9000"));
  BAD(-1, strcpy(a.ip_port, "tcp://127.0.0.1:1024"));
  BAD(-1, strcpy(a.ip_port, "tcp6://127.0.0.1:9000"));
  BAD(-1, a.ip_port[0] = 0);
  CHECK(aclshmemx_init_attr((aclshmemx_bootstrap_t)4, &good) == -1, "no known flag");
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_UNIQUEID, &good) == -1, "no unique id");
}

static void heap(void) {
  CHECK(CALL(aclshmemx_get_heap_base)(DEVICE_SIDE) != NULL && (aclshmemx_get_heap_base(HOST_SIDE) != NULL) == DEVICE, "heap bases");
  CHECK(CALL(aclshmem_malloc)(0) == NULL && CALL(aclshmem_calloc)(0, 8) == NULL && aclshmem_calloc(SIZE_MAX, 8) == NULL, "sizes that have no block");
  CHECK(CALL(aclshmem_align)(0, 8) == NULL && aclshmem_align(48, 8) == NULL, "alignments that are none");
  CHECK(aclshmem_malloc((size_t)1 << 40) == NULL, "more than there is");
  char *a = aclshmem_malloc(1000), *b = aclshmem_calloc(3, 333), *c = aclshmem_align(4096, 10);
  CHECK(a && b && c && !((uintptr_t)c & 4095), "blocks %p %p %p", (void *)a, (void *)b, (void *)c);
  const char *first = look(a, 999), *second = look(b, 999);
  for (int i = 0; i < 999; i++) CHECK(!second[i] && !first[i], "new memory is not zero at %d", i);
  CHECK(CALL(aclshmem_ptr)(a, me) == a, "ptr of my own");
  char *there = aclshmem_ptr(a, next_pe);
  const char *transport = getenv("SHMEM_TRANSPORT");
  int mapped = next_pe == me || !transport || strcmp(transport, "tcp");
  CHECK((there != NULL) == mapped, "ptr of a peer");
  CHECK(aclshmem_ptr(a, n) == NULL && aclshmem_ptr(a, -1) == NULL && aclshmem_ptr(&there, next_pe) == NULL, "ptr");
  aclshmem_barrier_all();
  if (there) STORE(there + 5, (char)(me + 1));
  aclshmem_barrier_all();
  if (mapped) CHECK(AT(a + 5) == (char)(prev_pe + 1), "a store through ptr");
  int errors = logged;
  CALL(aclshmem_free)(a + 1); /* interior: nothing happens, but words */
  CHECK(logged > errors, "free of an interior address said nothing");
  aclshmem_free(NULL);
  aclshmem_free(a);
  aclshmem_free(a); /* twice */
  char *again = aclshmem_malloc(1000);
  CHECK(again && !AT(again + 5), "used memory comes back dirty");
  aclshmem_free(again);
  aclshmem_free(b);
  aclshmem_free(c);
  void *all = aclshmem_malloc(32 << 20);
  CHECK(all, "all of local_mem_size cannot be had");
  aclshmem_free(all);
}

static void host_side(void) {
  int32_t *h = CALL(aclshmemx_malloc)(256, HOST_SIDE), *d = aclshmemx_malloc(256, DEVICE_SIDE);
  char *hc = CALL(aclshmemx_calloc)(2, 8, HOST_SIDE), *ha = CALL(aclshmemx_align)(256, 8, HOST_SIDE);
  CHECK(h && d && hc && ha && !((uintptr_t)ha & 255), "host-side blocks");
  char *base = aclshmemx_get_heap_base(HOST_SIDE);
  CHECK(base && base != aclshmemx_get_heap_base(DEVICE_SIDE) && (char *)h >= base && (char *)h < base + (32 << 20), "host-side range");
  aclshmem_int32_p(h, me + 40, next_pe);
  int32_t out[3] = {me, me * 2 + 1, me * 3 + 2};
  aclshmemx_putmem_signal(h + 8, out, sizeof out, d, me + 3, ACLSHMEM_SIGNAL_SET, next_pe); /* data on one side, signal on the other */
  aclshmem_signal_wait_until(d, ACLSHMEM_CMP_EQ, prev_pe + 3);
  CHECK(h[8] == prev_pe && h[9] == prev_pe * 2 + 1 && h[10] == prev_pe * 3 + 2, "put_signal across sides");
  aclshmem_barrier_all();
  CHECK(h[0] == prev_pe + 40 && aclshmem_int32_g(h, next_pe) == me + 40, "host-side p, g");
  aclshmemx_putmem_signal(d + 8, out, sizeof out, h + 4, 1, ACLSHMEM_SIGNAL_ADD, next_pe);
  aclshmem_int32_wait_until(h + 4, ACLSHMEM_CMP_EQ, 1);
  CHECK(AT(d + 9) == prev_pe * 2 + 1, "put_signal to a host-side signal");
  int errors = logged;
  CALL(aclshmemx_free)(h, DEVICE_SIDE);
  CHECK(logged > errors, "free on the wrong side said nothing");
  aclshmemx_free(h, HOST_SIDE);
  aclshmemx_free(hc, HOST_SIDE);
  aclshmemx_free(ha, HOST_SIDE);
  aclshmemx_free(d, DEVICE_SIDE);
}

static void teams(void) {
  aclshmem_team_t own = 77, outer, inner = 77, x, y;
  aclshmem_team_config_t config;
  CHECK(CALL(aclshmem_team_my_pe)(0) == me && CALL(aclshmem_team_n_pes)(0) == n, "the world team");
  CHECK(CALL(aclshmem_team_split_strided)(0, me, 1, 1, &own) == 0 && aclshmem_team_my_pe(own) == 0 && aclshmem_team_n_pes(own) == 1, "a team of my own");
  CHECK(aclshmem_team_split_strided(0, n, 1, 1, &inner) == -1 && inner == -1, "a start that is none");
  CHECK(aclshmem_team_split_strided(0, 0, 1, n + 1, &inner) == -1 && aclshmem_team_split_strided(99, 0, 1, 1, &inner) == -1, "bad splits");
  CHECK(aclshmem_team_split_strided(0, 0, 1, 1, NULL) == -1, "null");
  int evens = (n + 1) / 2;
  CHECK(aclshmem_team_split_strided(0, 0, 2, evens, &outer) == 0, "evens");
  CHECK((outer == -1) == (me % 2 == 1), "membership of evens");
  if (outer >= 0) { /* nested: every second of the evens, which upstream gets wrong */
    CHECK(aclshmem_team_my_pe(outer) == me / 2 && aclshmem_team_n_pes(outer) == evens, "evens");
    CHECK(aclshmem_team_split_strided(outer, evens > 1, 2, evens / 2 + (evens == 1), &inner) == 0, "nested");
    int member = me / 2 % 2 == (evens > 1);
    CHECK((inner >= 0) == member, "membership of the nested team");
    if (inner >= 0) {
      CHECK(CALL(aclshmem_team_translate_pe)(inner, aclshmem_team_my_pe(inner), 0) == me, "translate to the world");
      aclshmem_barrier(inner);
      aclshmem_team_destroy(inner);
    }
    CALL(aclshmem_sync)(outer);
    CHECK(n < 2 || aclshmem_team_translate_pe(0, 1, outer) == -1, "translate of an absent PE");
  }
  CHECK(CALL(aclshmem_team_split_2d)(0, 2, &x, &y) == 0, "2d");
  CHECK(aclshmem_team_my_pe(x) == me % 2 && aclshmem_team_my_pe(y) == me / 2, "2d places");
  CHECK(aclshmem_team_n_pes(x) == (me / 2 * 2 + 2 <= n ? 2 : 1) && aclshmem_team_n_pes(y) == (n - me % 2 + 1) / 2, "2d sizes");
  CHECK(aclshmem_team_split_2d(0, 0, &x, &x) == -1 || x == -1, "2d of width 0");
  CHECK(CALL(aclshmem_team_get_config)(own, &config) == 0 && config.num_contexts == 0, "config");
  CHECK(aclshmem_team_get_config(own, NULL) == -1 && aclshmem_team_get_config(1999, &config) == -1, "config of nothing");
  CALL(aclshmem_team_destroy)(own);
  CHECK(aclshmem_team_n_pes(own) == -1, "a destroyed team");
  aclshmem_team_destroy(0);
  CHECK(aclshmem_team_n_pes(0) == n, "the world team cannot be destroyed");
}

static void streams(void) {
  aclrtStream s;
  int32_t *w = aclshmem_calloc(64, 4), *mine = w + 32, *got = w + 48; /* device memory: with other memory of the host a call waits for the stream */
  CHECK(aclrtCreateStream(&s) == ACL_SUCCESS, "stream");
  for (int i = 0; i < 8; i++) STORE(mine + i, me * 100 + i);
  /* wait, then put: nothing moves before the signal */
  CALL(aclshmemx_signal_wait_until_on_stream)(w + 1, ACLSHMEM_CMP_EQ, 5, s);
  CALL(aclshmemx_putmem_on_stream)(w + 8, mine, 32, next_pe, s);
  CALL(aclshmemx_quiet_on_stream)(s);
  CALL(aclshmemx_signal_op_on_stream)(w + 2, 1, ACLSHMEM_SIGNAL_ADD, next_pe, s);
  usleep(20000);
  CHECK(AT(w + 8) == 0, "a put overtook the wait before it on its stream");
  aclshmem_barrier_all();
  aclshmemx_signal_op_on_stream(w + 1, 5, ACLSHMEM_SIGNAL_SET, next_pe, NULL);
  aclshmem_signal_wait_until(w + 2, ACLSHMEM_CMP_EQ, 1);
  for (int i = 0; i < 8; i++) CHECK(AT(w + 8 + i) == prev_pe * 100 + i, "put on a stream, word %d", i);
  CALL(aclshmemx_getmem_on_stream)(got, w + 8, 32, next_pe, s);
  CHECK(aclrtSynchronizeStream(s) == ACL_SUCCESS, "synchronize");
  for (int i = 0; i < 8; i++) CHECK(AT(got + i) == me * 100 + i, "get on a stream, word %d", i);
  aclshmem_handle_t handle = {ACLSHMEM_TEAM_WORLD};
  CALL(aclshmemx_handle_wait)(handle, s);
  CALL(aclshmemx_barrier_on_stream)(ACLSHMEM_TEAM_WORLD, s);
  CALL(aclshmemx_barrier_all_on_stream)(s);
  void *between = aclshmem_malloc(64); /* while barriers are queued */
  CHECK(between && aclrtSynchronizeStream(s) == ACL_SUCCESS, "malloc beside barriers of a stream");
  aclshmem_free(between);
  aclshmemx_putmem_on_stream(w, mine, 4, n, s); /* no such PE */
  if (DEVICE) /* the device knows of no such PE, so it is refused before it is queued */
    CHECK(aclshmem_cpu_last_status() && aclrtSynchronizeStream(s) == ACL_SUCCESS, "a put to a PE that is none");
  else
    CHECK(aclrtSynchronizeStream(s) != ACL_SUCCESS && aclrtSynchronizeStream(s) == ACL_SUCCESS, "a failed task is told once");
  aclshmem_cpu_last_status();
  aclshmemx_quiet_on_stream((aclrtStream)(uintptr_t)0x1234);
  CHECK(aclshmem_cpu_last_status(), "a stream that is none");
  CHECK(aclrtDestroyStream(s) == ACL_SUCCESS && (DEVICE || aclrtDestroyStream(s) != ACL_SUCCESS), "destroy"); /* a device's must not be named again */
  CALL(aclshmem_barrier)(ACLSHMEM_TEAM_INVALID);
  CALL(aclshmem_barrier)(ACLSHMEM_TEAM_WORLD);
  CALL(aclshmem_sync_all)();
  aclshmem_free(w);
}

static void profile(void) {
  aclshmem_prof_pe_t *prof = NULL;
  CALL(aclshmemx_get_prof)(&prof, false);
  CHECK((prof != NULL) == (me == 0), "only PE 0 is profiled");
  if (prof) CHECK(prof->pe_id == 0 && prof->block_prof[0].ccount[8] > 0 && prof->block_prof[0].cycles[8] > 0, "barriers were counted");
  CALL(aclshmemx_show_prof)();
}

/* Instance 7 through the port range and a key; instance 8 by a unique id that travels through instance 0. */
static void instances(void) {
  char range[32];
  snprintf(range, sizeof range, "%d:%d", port - 6, port + 3);
  CHECK(up_at(8 << 20, 7, 0) == -2, "an instance without a port range");
  setenv("SHMEM_INSTANCE_PORT_RANGE", range, 1);
  CHECK(up_at(8 << 20, 10, 0) == -2 && up_at(8 << 20, 7, port) == -2, "an instance beyond the range, or with a port");
  CHECK(CALL(aclshmemx_set_conf_store_tls)(true, "info", 4) == 0, "keys on");
  CHECK(CALL(aclshmemx_set_config_store_tls_key)("a key that all PEs share", 24, "drowssap", 8, decrypt) == 0, "key");
  CHECK(up_at(8 << 20, 7, 0) == 0, "instance 7: %s", aclshmem_cpu_last_error());
  CHECK(decrypted == 1, "the password was decrypted %d times", decrypted);
  CHECK(aclshmemx_set_conf_store_tls(false, NULL, 0) == 0, "keys off");
  CHECK(CALL(aclshmemx_instance_ctx_get)()->id == 7, "instance 7 is current");
  aclshmem_team_t team = -1;
  CHECK(aclshmem_team_split_strided(0, 0, 1, n, &team) == 0 && aclshmem_team_n_pes(team) == n, "teams of other instances");
  int32_t *w = aclshmem_malloc(64);
  aclshmem_int32_p(w, me + 700, next_pe);
  aclshmem_barrier(team);
  CHECK(AT(w) == prev_pe + 700, "instance 7 moves data");
  CHECK(CALL(aclshmemx_instance_ctx_set)(99) == ACLSHMEM_INNER_ERROR && aclshmemx_instance_ctx_get()->id == 7, "an unknown instance");
  CHECK(aclshmemx_instance_ctx_set(0) == 0 && aclshmemx_instance_ctx_get()->id == 0, "back to 0");
  aclshmem_cpu_last_status();
  aclshmem_int32_p(w, 1, next_pe); /* memory of the other instance */
  CHECK(aclshmem_cpu_last_status(), "memory of another instance was taken");

  aclshmemx_uniqueid_t uid = ACLSHMEM_UNIQUEID_INITIALIZER, *shared = aclshmem_malloc(sizeof *shared);
  CHECK(CALL(aclshmemx_get_uniqueid)(NULL) == -1, "uid to nowhere");
  if (me == 0) {
    CHECK(aclshmemx_get_uniqueid(&uid) == 0, "uid: %s", aclshmem_cpu_last_error());
    for (int pe = 0; pe < n; pe++) aclshmem_putmem(shared, &uid, sizeof uid, pe);
  }
  aclshmem_barrier_all();
  uid = AT(shared);
  aclshmemx_init_attr_t a = ACLSHMEMX_INIT_ATTR_INITIALIZER;
  CHECK(CALL(aclshmemx_set_attr_uniqueid_args)(me, n, -1, &uid, &a) == -2, "a negative size");
  CHECK(aclshmemx_set_attr_uniqueid_args(me, n, 4 << 20, &uid, &a) == 0 && a.my_pe == me && a.n_pes == n && a.comm_args == &uid, "uid attributes");
  a.instance_id = 8;
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_UNIQUEID, &a) == 0, "instance 8: %s", aclshmem_cpu_last_error());
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_UNIQUEID, &a) == 0, "joining instance 8");
  CHECK(aclshmemx_finalize(8) == 0 && aclshmemx_init_status() == ACLSHMEM_STATUS_IS_INITIALIZED, "leaving it once");
  a.n_pes = n + 1;
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_UNIQUEID, &a) == ACLSHMEM_INNER_ERROR, "another init of instance 8");
  aclshmem_barrier_all();
  CHECK(CALL(aclshmemx_finalize)(8) == 0 && aclshmemx_instance_ctx_get()->id == 0, "finalize 8");
  CHECK(aclshmemx_finalize(7) == 0 && aclshmemx_finalize(7) == ACLSHMEM_INNER_ERROR, "finalize 7");
  aclshmem_free(shared);
}

int main(int argc, char **argv) {
  arguments(argc, argv);
  setenv("SHMEM_CYCLE_PROF_PE", "0", 1);
  before_init();
  bad_init();
  up(32 << 20);
  CHECK(aclshmemx_init_status() == ACLSHMEM_STATUS_IS_INITIALIZED && aclshmem_my_pe() == me && aclshmem_n_pes() == n, "after init");
  heap();
  host_side();
  teams();
  streams();
  profile();
  instances();
  CALL(aclshmem_barrier_all)();
  CHECK(CALL(aclshmem_finalize)() == 0 && aclshmemx_init_status() == 0, "finalize");
  CHECK(aclshmem_malloc(8) == NULL, "malloc after finalize");
  for (int i = 0; i < 3; i++) { /* again and again */
    up((uint64_t)(i + 1) << 20);
    void *p = aclshmem_malloc(100);
    CHECK(p, "malloc in round %d", i);
    CHECK(aclshmem_finalize() == 0, "finalize %d", i);
  }
  return done();
}
