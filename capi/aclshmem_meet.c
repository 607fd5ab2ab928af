/*
 * aclshmem_meet.c - how the PEs of an instance meet: attributes, unique ids and keys, turned into what the core knows.
 */
#define _GNU_SOURCE
#include "aclshmem_face.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- unique ids: the core's 128 bytes without the four they all begin with ----------------------------------------- */

static const char uid_mark[4] = "GSUI";
_Static_assert(GSHMEM_UID_BYTES - sizeof uid_mark == ACLSHMEM_UNIQUE_ID_LENGTH, "a unique id fills upstream's");

static void uid_pack(aclshmemx_uniqueid_t *out, const uint8_t uid[GSHMEM_UID_BYTES]) {
  memcpy(out->internal, uid + sizeof uid_mark, sizeof out->internal);
}

static void uid_unpack(uint8_t out[GSHMEM_UID_BYTES], const aclshmemx_uniqueid_t *uid) {
  memcpy(out, uid_mark, sizeof uid_mark);
  memcpy(out + sizeof uid_mark, uid->internal, sizeof uid->internal);
}

/* ifname, ifname:inet4, ifname:inet6 -> an address of that interface. */
static int address_of_interface(const char *want, char *out, size_t room) {
  char name[32];
  const char *colon = strchr(want, ':');
  size_t length = colon ? (size_t)(colon - want) : strlen(want);
  if (!length || length >= sizeof name) return face_refuse(ACLSHMEM_INVALID_PARAM, "SHMEM_UID_SOCK_IFNAME=%s: write ifname, ifname:inet4 or ifname:inet6", want);
  memcpy(name, want, length);
  name[length] = 0;
  int only = colon && !strcmp(colon, ":inet4") ? AF_INET : colon && !strcmp(colon, ":inet6") ? AF_INET6 : 0;
  struct ifaddrs *all = NULL;
  if (getifaddrs(&all)) return face_refuse(ACLSHMEM_BOOTSTRAP_ERROR, "cannot list the network interfaces: %s", strerror(errno));
  int best = 0;
  for (struct ifaddrs *i = all; i; i = i->ifa_next) {
    if (!i->ifa_addr || strcmp(i->ifa_name, name) || !(i->ifa_flags & IFF_UP)) continue;
    int family = i->ifa_addr->sa_family;
    if ((family != AF_INET && family != AF_INET6) || (only && family != only) || best == AF_INET || best == family) continue;
    const void *raw = family == AF_INET ? (const void *)&((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr
                                        : (const void *)&((struct sockaddr_in6 *)(void *)i->ifa_addr)->sin6_addr;
    if (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL((const struct in6_addr *)raw)) continue; /* peers would need its zone */
    if (inet_ntop(family, raw, out, (socklen_t)room)) best = family;
  }
  freeifaddrs(all);
  if (best) return ACLSHMEM_SUCCESS;
  return face_refuse(ACLSHMEM_INVALID_PARAM, "SHMEM_UID_SOCK_IFNAME=%s: no such interface is up with such an address", want);
}

/* Splits host:port or [v6]:port at the last colon. */
static int split_address(const char *text, char *host, size_t room, long *port) {
  const char *colon = strrchr(text, ':');
  if (!colon || colon == text || !isdigit((unsigned char)colon[1])) return 0;
  const char *from = text, *to = colon;
  if (*from == '[') {
    from++;
    if (to[-1] != ']') return 0;
    to--;
  }
  if (to <= from || (size_t)(to - from) >= room) return 0;
  char *end;
  *port = strtol(colon + 1, &end, 10);
  memcpy(host, from, (size_t)(to - from));
  host[to - from] = 0;
  return !*end && *port <= 65535;
}

/* SHMEM_UID_SESSION_ID -> "address:port" with a numeric address. */
static int session_address(const char *want, char *out, size_t room) {
  char host[256], address[INET6_ADDRSTRLEN];
  long port;
  if (!split_address(want, host, sizeof host, &port) || port < 1024)
    return face_refuse(ACLSHMEM_INVALID_PARAM, "SHMEM_UID_SESSION_ID=%s: write a.b.c.d:port, [v6]:port or host:port with a port of at least 1024", want);
  struct addrinfo *found = NULL, hints = {.ai_socktype = SOCK_STREAM};
  int rc = getaddrinfo(host, NULL, &hints, &found);
  if (rc || !found) return face_refuse(ACLSHMEM_INVALID_PARAM, "SHMEM_UID_SESSION_ID=%s: %s: %s", want, host, gai_strerror(rc));
  getnameinfo(found->ai_addr, found->ai_addrlen, address, sizeof address, NULL, 0, NI_NUMERICHOST);
  snprintf(out, room, found->ai_family == AF_INET6 ? "[%s]:%ld" : "%s:%ld", address, port);
  freeaddrinfo(found);
  return ACLSHMEM_SUCCESS;
}

int aclshmemx_get_uniqueid(aclshmemx_uniqueid_t *uid) {
  char where[INET6_ADDRSTRLEN + 16] = "";
  const char *session = getenv("SHMEM_UID_SESSION_ID"), *interface = getenv("SHMEM_UID_SOCK_IFNAME");
  face_log_level_reset();
  if (!uid) return face_refuse(ACLSHMEM_INVALID_PARAM, "get_uniqueid: uid is null");
  int rc = ACLSHMEM_SUCCESS;
  if (session && *session)
    rc = session_address(session, where, sizeof where);
  else if (interface && *interface)
    rc = address_of_interface(interface, where, sizeof where);
  if (rc) return rc;
  uint8_t bytes[GSHMEM_UID_BYTES];
  int32_t status = gshmem_uid_create(*where ? where : NULL, bytes);
  if (status) return face_code(face_failed("get_uniqueid", status));
  memset(uid, 0, sizeof *uid);
  uid->version = ACLSHMEM_UNIQUEID_VERSION;
  uid_pack(uid, bytes);
  return ACLSHMEM_SUCCESS;
}

int aclshmemx_set_attr_uniqueid_args(int my_pe, int n_pes, int64_t local_mem_size, aclshmemx_uniqueid_t *uid, aclshmemx_init_attr_t *attr) {
  if (!uid || !attr) return face_refuse(ACLSHMEM_INVALID_PARAM, "set_attr_uniqueid_args: uid or attributes are null");
  if (local_mem_size < 0 || (uint64_t)local_mem_size > ACLSHMEM_MAX_LOCAL_SIZE)
    return face_refuse(ACLSHMEM_INVALID_VALUE, "set_attr_uniqueid_args: local_mem_size is %lld, at most %lu", (long long)local_mem_size, ACLSHMEM_MAX_LOCAL_SIZE);
  if (n_pes > ACLSHMEM_MAX_PES || my_pe >= ACLSHMEM_MAX_PES)
    return face_refuse(ACLSHMEM_INVALID_VALUE, "set_attr_uniqueid_args: PE %d of %d; there are at most %d PEs", my_pe, n_pes, ACLSHMEM_MAX_PES);
  attr->my_pe = my_pe;
  attr->n_pes = n_pes;
  attr->local_mem_size = (uint64_t)local_mem_size;
  attr->comm_args = uid;
  return ACLSHMEM_SUCCESS;
}

/* ---- keys ------------------------------------------------------------------------------------------------------------- */

static pthread_mutex_t keys_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  int enabled;
  char *info, *key, *password;
  uint32_t password_length;
  aclshmem_decrypt_handler decrypt;
} keys; /* guarded by keys_lock */

static char *copy_text(const char *text, uint32_t n) {
  char *copy = calloc(1, (size_t)n + 1);
  if (copy && text && n) memcpy(copy, text, n);
  return copy;
}

int32_t aclshmemx_set_conf_store_tls(bool enable, const char *tls_info, const uint32_t tls_info_len) {
  if (enable && tls_info_len && !tls_info) return face_refuse(ACLSHMEM_INVALID_PARAM, "set_conf_store_tls: tls_info is null");
  char *info = copy_text(tls_info, tls_info_len);
  if (!info) return face_refuse(ACLSHMEM_MALLOC_FAILED, "set_conf_store_tls: no memory");
  pthread_mutex_lock(&keys_lock);
  free(keys.info);
  keys.info = info;
  keys.enabled = enable;
  pthread_mutex_unlock(&keys_lock);
  return ACLSHMEM_SUCCESS;
}

int32_t aclshmemx_set_config_store_tls_key(const char *tls_pk, const uint32_t tls_pk_len, const char *tls_pk_pw, const uint32_t tls_pk_pw_len,
                                           const aclshmem_decrypt_handler decrypt_handler) {
  if ((tls_pk_len && !tls_pk) || (tls_pk_pw_len && !tls_pk_pw)) return face_refuse(ACLSHMEM_INVALID_PARAM, "set_config_store_tls_key: a text is null");
  char *key = copy_text(tls_pk, tls_pk_len), *password = copy_text(tls_pk_pw, tls_pk_pw_len);
  if (!key || !password) {
    free(key);
    free(password);
    return face_refuse(ACLSHMEM_MALLOC_FAILED, "set_config_store_tls_key: no memory");
  }
  pthread_mutex_lock(&keys_lock);
  free(keys.key);
  free(keys.password);
  keys.key = key;
  keys.password = password;
  keys.password_length = tls_pk_pw_len;
  keys.decrypt = decrypt_handler;
  pthread_mutex_unlock(&keys_lock);
  return ACLSHMEM_SUCCESS;
}

#define PLAIN_ROOM 65536

/* The plain password. The handler runs on this thread, without the lock. */
static int decrypt(aclshmem_decrypt_handler handler, const char *cipher, size_t n, char *plain) {
  size_t length = PLAIN_ROOM - 1;
  if (!handler) {
    length = n < length ? n : length;
    memcpy(plain, cipher, length);
  } else {
    int rc = handler(cipher, n, plain, &length);
    if (rc || length >= PLAIN_ROOM)
      return face_refuse(ACLSHMEM_BOOTSTRAP_ERROR, "the decrypt handler answered %d with %zu characters; it must answer 0 with fewer than %d", rc, length, PLAIN_ROOM);
  }
  plain[length] = 0;
  return ACLSHMEM_SUCCESS;
}

/* The job's secret out of the key and its password; *secret_out NULL when keys are off. The caller frees it. */
int face_secret(char **secret_out) {
  *secret_out = NULL;
  pthread_mutex_lock(&keys_lock);
  int enabled = keys.enabled;
  char *key = keys.key ? strdup(keys.key) : NULL, *cipher = copy_text(keys.password, keys.password_length);
  size_t n = keys.password_length;
  aclshmem_decrypt_handler handler = keys.decrypt;
  pthread_mutex_unlock(&keys_lock);
  int rc = ACLSHMEM_SUCCESS;
  char *plain = NULL;
  if (enabled && (!key || !*key)) {
    rc = face_refuse(ACLSHMEM_BOOTSTRAP_ERROR, "keys are switched on (set_conf_store_tls) but there is none; call set_config_store_tls_key, or switch them off");
  } else if (enabled) {
    plain = calloc(1, PLAIN_ROOM);
    rc = plain ? decrypt(handler, cipher ? cipher : "", n, plain) : ACLSHMEM_MALLOC_FAILED;
    if (!rc && asprintf(secret_out, "%s\n%s", key, plain) < 0) rc = ACLSHMEM_MALLOC_FAILED;
  }
  if (plain) explicit_bzero(plain, PLAIN_ROOM);
  free(plain);
  free(key);
  free(cipher);
  return rc;
}

/* ---- attributes --------------------------------------------------------------------------------------------------------- */

static int host_ok(const char *host, int six) {
  struct in6_addr any;
  if (six) return inet_pton(AF_INET6, host, &any) == 1;
  if (strlen(host) > 253) return 0;
  for (const char *c = host; *c; c++)
    if (!isalnum((unsigned char)*c) && *c != '-' && *c != '.') return 0;
  return 1;
}

/* "tcp://host:port", "tcp6://[address]:port" -> endpoint. lowest is the smallest port allowed. */
static int endpoint_of(const char *ip_port, long lowest, char *endpoint, size_t room, char *host, size_t host_room, int *six, long *port) {
  *six = !strncmp(ip_port, "tcp6://", 7);
  if (!*six && strncmp(ip_port, "tcp://", 6)) return 0;
  const char *rest = ip_port + (*six ? 7 : 6);
  if (*six && *rest != '[') return 0;
  if (!split_address(rest, host, host_room, port) || *port < lowest || !host_ok(host, *six)) return 0;
  return snprintf(endpoint, room, *six ? "[%s]:%ld" : "%s:%ld", host, *port) < (int)room;
}

/* Instances other than 0: the port is start + id of SHMEM_INSTANCE_PORT_RANGE; it is written back. */
static int instance_port(aclshmemx_init_attr_t *a, char *endpoint, size_t room) {
  const char *range = getenv("SHMEM_INSTANCE_PORT_RANGE");
  long start, end, port;
  int six, used = 0;
  char host[256];
  if (!range || sscanf(range, "%ld:%ld%n", &start, &end, &used) != 2 || range[used] || start < 0 || end > 65535 || end < start)
    return face_refuse(ACLSHMEM_INVALID_VALUE, "instance %llu needs SHMEM_INSTANCE_PORT_RANGE=start:end with 0 <= start <= end <= 65535; it is %s",
                       (unsigned long long)a->instance_id, range ? range : "not set");
  if (a->instance_id > (uint64_t)(end - start))
    return face_refuse(ACLSHMEM_INVALID_VALUE, "instance %llu has no port in SHMEM_INSTANCE_PORT_RANGE=%s", (unsigned long long)a->instance_id, range);
  if (!endpoint_of(a->ip_port, 0, endpoint, room, host, sizeof host, &six, &port) || port)
    return face_refuse(ACLSHMEM_INVALID_VALUE, "ip_port of instance %llu is \"%.63s\"; write tcp://host:0, the port comes from SHMEM_INSTANCE_PORT_RANGE",
                       (unsigned long long)a->instance_id, a->ip_port);
  port = start + (long)a->instance_id;
  if (snprintf(a->ip_port, sizeof a->ip_port, six ? "tcp6://[%s]:%ld" : "tcp://%s:%ld", host, port) >= (int)sizeof a->ip_port)
    return face_refuse(ACLSHMEM_INVALID_VALUE, "ip_port: no room for the port");
  snprintf(endpoint, room, six ? "[%s]:%ld" : "%s:%ld", host, port);
  return ACLSHMEM_SUCCESS;
}

static int by_uid(const void *comm_args, meeting *m) {
  if (!comm_args) return face_refuse(ACLSHMEM_INVALID_PARAM, "init by unique id: comm_args is null; call aclshmemx_set_attr_uniqueid_args first");
  m->method = "uid";
  uid_unpack(m->uid, comm_args);
  return ACLSHMEM_SUCCESS;
}

static int by_address(aclshmemx_init_attr_t *a, meeting *m) {
  int six, rc = ACLSHMEM_SUCCESS;
  long port;
  char host[256];
  m->method = "endpoint";
  if (memchr(a->ip_port, 0, sizeof a->ip_port) == NULL) return face_refuse(ACLSHMEM_INVALID_PARAM, "ip_port has no end");
  if (a->instance_id && (a->ip_port[0] || !a->comm_args)) {
    rc = instance_port(a, m->endpoint, sizeof m->endpoint);
  } else if (!endpoint_of(a->ip_port, 1025, m->endpoint, sizeof m->endpoint, host, sizeof host, &six, &port)) {
    if (a->comm_args) return by_uid(a->comm_args, m);
    return face_refuse(ACLSHMEM_INVALID_PARAM, "ip_port is \"%.63s\"; write tcp://host:port or tcp6://[address]:port with a port of 1025 to 65535", a->ip_port);
  }
  return rc ? rc : face_secret(&m->secret);
}

int face_meet(aclshmemx_bootstrap_t flags, aclshmemx_init_attr_t *a, meeting *m) {
  memset(m, 0, sizeof *m);
  if (flags & ACLSHMEMX_INIT_WITH_UNIQUEID) return by_uid(a->comm_args, m);
  if (flags & ACLSHMEMX_INIT_WITH_MPI) {
    m->method = "uid";
    return face_mpi_uid(a->comm_args, a->my_pe, a->n_pes, m->uid);
  }
  if (flags & ACLSHMEMX_INIT_WITH_DEFAULT) return by_address(a, m);
  return face_refuse(ACLSHMEM_INVALID_PARAM, "init: flags %#x name none of ACLSHMEMX_INIT_WITH_DEFAULT, _MPI and _UNIQUEID", (unsigned)flags);
}
