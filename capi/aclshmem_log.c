/*
 * aclshmem_log.c - messages of the Ascend face, statuses of calls without a result, and the profiler.
 */
#include "aclshmem_face.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *const names[] = {"DEBUG", "INFO", "WARN", "ERROR", "FATAL"};
static _Atomic int level_now = -1; /* -1: the environment was not read yet */
static _Atomic(void (*)(int, const char *)) extern_logger;
static __thread int32_t last_status __attribute__((tls_model("initial-exec")));

/* The level SHMEM_LOG_LEVEL names, -1 when it names none. */
static int level_of_environment(void) {
  const char *want = getenv("SHMEM_LOG_LEVEL");
  for (int i = 0; want && i <= FACE_FATAL; i++)
    if (!strcmp(want, names[i])) return i;
  return -1;
}

/* init and get_uniqueid set the level back to errors, as upstream's do. */
void face_log_level_reset(void) {
  int level = level_of_environment();
  atomic_store(&level_now, level < 0 ? FACE_ERROR : level);
}

int32_t aclshmemx_set_log_level(int level) {
  if (level < 0 || level > FACE_FATAL) return face_refuse(ACLSHMEM_INVALID_VALUE, "set_log_level: %d is none of 0 (debug) to 4 (fatal)", level);
  int forced = level_of_environment();
  atomic_store(&level_now, forced < 0 ? level : forced);
  return ACLSHMEM_SUCCESS;
}

int32_t aclshmemx_set_extern_logger(void (*func)(int level, const char *msg)) {
  void (*none)(int, const char *) = NULL;
  if (func) atomic_compare_exchange_strong(&extern_logger, &none, func); /* the first one stays */
  return ACLSHMEM_SUCCESS;
}

/* A directory that nobody else can write to; symbolic names that climb are refused. */
static int log_directory_ok(const char *path) {
  struct stat st;
  return !strstr(path, "..") && !stat(path, &st) && S_ISDIR(st.st_mode) && (st.st_uid == geteuid() || st.st_uid == 0) && !(st.st_mode & 022);
}

static FILE *log_file(void) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static FILE *file;
  pthread_mutex_lock(&lock);
  if (!file) {
    const char *to_stdout = getenv("SHMEM_LOG_TO_STDOUT"), *path = getenv("SHMEM_LOG_PATH");
    if (to_stdout && !strcmp(to_stdout, "1")) {
      file = stdout;
    } else if (path && *path && log_directory_ok(path)) {
      char name[1100];
      time_t now = time(NULL);
      struct tm tm;
      localtime_r(&now, &tm);
      snprintf(name, sizeof name, "%.1000s/aclshmem_%d_%04d%02d%02d%02d%02d%02d.log", path, (int)getpid(), tm.tm_year + 1900, tm.tm_mon + 1,
               tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
      file = fopen(name, "ae");
    }
    if (!file) file = stderr;
  }
  pthread_mutex_unlock(&lock);
  return file;
}

static void log_words(int level, const char *words) {
  void (*func)(int, const char *) = atomic_load(&extern_logger);
  if (func) {
    func(level, words);
    return;
  }
  if (atomic_load(&level_now) < 0) face_log_level_reset();
  if (level < atomic_load(&level_now)) return;
  struct timespec ts;
  struct tm tm;
  clock_gettime(CLOCK_REALTIME, &ts);
  localtime_r(&ts.tv_sec, &tm);
  FILE *out = log_file();
  fprintf(out, "%04d-%02d-%02d %02d:%02d:%02d.%06ld %s pid[%d] PE %d [SHM_SHMEM] %s\n", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
          tm.tm_min, tm.tm_sec, ts.tv_nsec / 1000, names[level], (int)getpid(), face_now()->me, words);
  fflush(out);
}

void face_log(int level, const char *format, ...) {
  char words[ERRTEXT_MAX];
  va_list args;
  va_start(args, format);
  vsnprintf(words, sizeof words, format, args);
  va_end(args);
  log_words(level, words);
}

int32_t face_failed(const char *what, int32_t status) {
  const char *words = gshmem_last_error();
  face_log(FACE_ERROR, "%s: %s (%s)", what, *words ? words : "no words", gshmem_status_name(status));
  if (!last_status) last_status = status;
  return status;
}

int face_refuse(int code, const char *format, ...) {
  char words[ERRTEXT_MAX];
  va_list args;
  va_start(args, format);
  vsnprintf(words, sizeof words, format, args);
  va_end(args);
  errtext_set(words, strlen(words));
  log_words(FACE_ERROR, words);
  if (!last_status) last_status = GSHMEM_EINVAL;
  return code;
}

int aclshmem_cpu_last_status(void) {
  int32_t was = last_status;
  last_status = 0;
  return was;
}

const char *aclshmem_cpu_last_error(void) { return gshmem_last_error(); }

int face_code(int32_t status) {
  switch (status) {
    case GSHMEM_OK: return ACLSHMEM_SUCCESS;
    case GSHMEM_EINVAL: case GSHMEM_EPE: case GSHMEM_ENOTSYM: case GSHMEM_EALIGN: return ACLSHMEM_INVALID_PARAM;
    case GSHMEM_ECONFIG: return ACLSHMEM_INVALID_VALUE;
    case GSHMEM_EUNSUPPORTED: return ACLSHMEM_NOT_SUPPORTED;
    case GSHMEM_ETIMEOUT: return ACLSHMEM_TIMEOUT_ERROR;
    case GSHMEM_EHEAPFULL: case GSHMEM_ENOMEM: return ACLSHMEM_MALLOC_FAILED;
    case GSHMEM_ENOTINIT: case GSHMEM_EFINALIZED: return ACLSHMEM_NOT_INITED;
    case GSHMEM_ERENDEZVOUS: case GSHMEM_EAUTH: case GSHMEM_EVERSION: return ACLSHMEM_BOOTSTRAP_ERROR;
    default: return ACLSHMEM_INNER_ERROR;
  }
}

/* ---- profiler ------------------------------------------------------------------------------------------------- */

#define TICK_NS 20 /* upstream's counter runs at 50 per microsecond */

static aclshmem_prof_pe_t prof;    /* counted with atomics: any thread adds */
static aclshmem_prof_pe_t prof_out; /* the copy handed out */

void face_prof_begin(face *f) {
  const char *want = getenv("SHMEM_CYCLE_PROF_PE");
  if (!want || f->id) return;
  char *end;
  errno = 0;
  long pe = strtol(want, &end, 10);
  if (errno || end == want || *end || pe < 0 || pe >= f->n) {
    face_log(FACE_WARN, "SHMEM_CYCLE_PROF_PE=%s is no PE of 0 to %d; PE 0 is profiled", want, f->n - 1);
    pe = 0;
  }
  if (pe != f->me) return;
  memset(&prof, 0, sizeof prof);
  prof.pe_id = f->me;
  atomic_fetch_or(&f->odd, ODD_PROF);
}

void face_prof_end(face *f) { atomic_fetch_and(&f->odd, ~ODD_PROF); }

void face_prof_add(int kind, int64_t began_ns) {
  __atomic_fetch_add(&prof.block_prof[0].ccount[kind], 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&prof.block_prof[0].cycles[kind], (hot_now() - began_ns) / TICK_NS, __ATOMIC_RELAXED);
}

void aclshmemx_get_prof(aclshmem_prof_pe_t **out_profs, bool verbose) {
  if (!(atomic_load(&face_now()->odd) & ODD_PROF) || (!out_profs && !verbose)) return;
  prof_out = prof;
  if (out_profs) *out_profs = &prof_out;
  if (!verbose) return;
  printf("PE %d\n%8s %8s %14s %10s %12s\n", prof_out.pe_id, "BlockID", "FrameID", "Cycles", "Count", "AvgTime(us)");
  for (int b = 0; b < ACLSHMEM_CYCLE_PROF_MAX_BLOCK; b++) {
    for (int i = 0; i < ACLSHMEM_CYCLE_PROF_FRAME_CNT; i++) {
      long long count = prof_out.block_prof[b].ccount[i], cycles = prof_out.block_prof[b].cycles[i];
      if (count) printf("%8d %8d %14lld %10lld %12.3f\n", b, i, cycles, count, (double)cycles / (double)count * TICK_NS / 1000);
    }
  }
  fflush(stdout);
}

void aclshmemx_show_prof(void) { aclshmemx_get_prof(NULL, true); }
