/*
 * aclshmem_stream.c - streams on a CPU.
 *
 * A stream is a queue with one thread that runs its tasks in order; the thread starts with the first task. Stream 0 is the default stream of
 * the current instance. Calls that name no stream belong to the default stream too: they wait for what is queued there (face_drain).
 */
#include "aclshmem_face.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct face_stream {
  face_stream *next; /* in the list of all; guarded by list_lock */
  face *owner;       /* whose default stream it is, NULL for a user's */
  pthread_mutex_t lock;
  pthread_cond_t work, idle;
  face_task *first, *last; /* guarded by lock, as everything below */
  uint64_t unfinished;     /* queued and running */
  int started, ending;
  int32_t failure; /* first since the last wait */
  pthread_t thread;
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static face_stream *list;

static int forked(void) { return atomic_load_explicit(&hot_forked, memory_order_relaxed); }

static face_stream *stream_new(face *owner) {
  face_stream *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->owner = owner;
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->work, NULL);
  pthread_cond_init(&s->idle, NULL);
  pthread_mutex_lock(&list_lock);
  s->next = list;
  list = s;
  pthread_mutex_unlock(&list_lock);
  return s;
}

static int stream_known(const void *stream) {
  pthread_mutex_lock(&list_lock);
  face_stream *s = list;
  while (s && s != stream) s = s->next;
  pthread_mutex_unlock(&list_lock);
  return s != NULL;
}

static int32_t run_one(face_task *t) {
  if (t->world && face_world(t->f) != t->world)
    return errtext_fail(GSHMEM_EFINALIZED, "the instance was finalized before this task of a stream ran; wait for the stream first");
  return t->run(t);
}

static void *serve(void *argument) {
  face_stream *s = argument;
  pthread_mutex_lock(&s->lock);
  for (;;) {
    while (!s->first && !s->ending) pthread_cond_wait(&s->work, &s->lock);
    face_task *t = s->first;
    if (!t) break;
    if (!(s->first = t->next)) s->last = NULL;
    pthread_mutex_unlock(&s->lock);
    int32_t rc = run_one(t);
    if (rc < 0) face_failed(t->what, rc);
    free(t);
    pthread_mutex_lock(&s->lock);
    if (rc < 0 && !s->failure) s->failure = rc;
    if (s->owner) atomic_fetch_sub_explicit(&s->owner->odd, ODD_QUEUED, memory_order_release); /* partner: face_drain */
    if (!--s->unfinished) pthread_cond_broadcast(&s->idle);
  }
  pthread_mutex_unlock(&s->lock);
  return NULL;
}

/* s->lock is held. Signals are for the program's own threads. */
static int start_locked(face_stream *s) {
  if (s->started) return 0;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int rc = pthread_create(&s->thread, NULL, serve, s);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  s->started = rc == 0;
  return rc;
}

int face_device_stream(face *f, const void *stream) {
  return atomic_load_explicit(&f->device, memory_order_acquire) && !(stream && stream_known(stream));
}

/* The stream a program named; NULL with the words when there is none. */
static face_stream *resolve(void *stream, const char *what) {
  if (forked()) {
    fork_refuse();
    return NULL;
  }
  if (stream) {
    if (stream_known(stream)) return stream;
    errtext_fail(GSHMEM_EINVAL, "no stream of this library has that address: it was destroyed, or is a device's; on hosts use 0 or aclrtCreateStream");
    return NULL;
  }
  face *f = face_now();
  pthread_mutex_lock(&f->lock);
  if (!f->stream) f->stream = stream_new(f);
  face_stream *s = f->stream;
  pthread_mutex_unlock(&f->lock);
  if (!s) errtext_fail(GSHMEM_ENOMEM, what);
  return s;
}

static int32_t push(face_stream *s, const face_task *what) {
  face_task *t = malloc(sizeof *t);
  if (!t) return errtext_fail(GSHMEM_ENOMEM, "no memory for a task of a stream");
  *t = *what;
  t->next = NULL;
  pthread_mutex_lock(&s->lock);
  if (start_locked(s)) {
    pthread_mutex_unlock(&s->lock);
    free(t);
    return errtext_fail(GSHMEM_ESYSTEM, "no thread for a stream (pthread_create failed): too many threads?");
  }
  if (s->owner) atomic_fetch_add_explicit(&s->owner->odd, ODD_QUEUED, memory_order_relaxed);
  s->unfinished++;
  s->last ? (s->last->next = t) : (s->first = t);
  s->last = t;
  pthread_cond_signal(&s->work);
  pthread_mutex_unlock(&s->lock);
  return GSHMEM_OK;
}

void face_queue(void *stream, const face_task *t) {
  face_stream *s = resolve(stream, t->what);
  if (!s)
    face_failed(t->what, GSHMEM_EINVAL);
  else {
    int32_t rc = push(s, t);
    if (rc) face_failed(t->what, rc);
  }
}

/* Waits until a stream is idle. From a task of the stream itself there is nothing to wait for. */
static int32_t await(face_stream *s) {
  pthread_mutex_lock(&s->lock);
  int own = s->started && pthread_equal(s->thread, pthread_self());
  while (!own && s->unfinished) pthread_cond_wait(&s->idle, &s->lock);
  int32_t rc = s->failure;
  s->failure = 0;
  pthread_mutex_unlock(&s->lock);
  return rc;
}

int32_t face_drain(face *f) {
  if (atomic_load_explicit(&f->odd, memory_order_acquire) < ODD_QUEUED || forked()) return GSHMEM_OK;
  pthread_mutex_lock(&f->lock);
  face_stream *s = f->stream;
  pthread_mutex_unlock(&f->lock);
  if (s) await(s); /* failures were logged where they happened */
  return GSHMEM_OK;
}

static void stream_free(face_stream *s) {
  pthread_mutex_lock(&list_lock);
  for (face_stream **p = &list; *p; p = &(*p)->next)
    if (*p == s) {
      *p = s->next;
      break;
    }
  pthread_mutex_unlock(&list_lock);
  pthread_mutex_lock(&s->lock);
  s->ending = 1;
  pthread_cond_signal(&s->work);
  int started = s->started;
  pthread_mutex_unlock(&s->lock);
  if (started) pthread_join(s->thread, NULL);
  pthread_cond_destroy(&s->idle);
  pthread_cond_destroy(&s->work);
  pthread_mutex_destroy(&s->lock);
  free(s);
}

/* Finishes and ends the default stream of an instance. */
void face_stream_end(face *f) {
  if (forked()) return;
  pthread_mutex_lock(&f->lock);
  face_stream *s = f->stream;
  f->stream = NULL;
  pthread_mutex_unlock(&f->lock);
  if (s) stream_free(s);
}

/* ---- for the stand-in of acl_rt.h ------------------------------------------------------------------------------------ */

int aclshmem_cpu_stream_create(void **stream_out) {
  if (forked()) return fork_refuse(), ACL_ERROR_RT_FAILURE;
  if (!stream_out) return ACL_ERROR_INVALID_PARAM;
  face_stream *s = stream_new(NULL);
  if (!s) return ACL_ERROR_BAD_ALLOC;
  *stream_out = s;
  return ACL_SUCCESS;
}

int aclshmem_cpu_stream_destroy(void *stream) {
  if (forked() || !stream || !stream_known(stream) || ((face_stream *)stream)->owner) return ACL_ERROR_INVALID_PARAM;
  stream_free(stream);
  return ACL_SUCCESS;
}

/* The default stream is the library's own on the device as well, where there is one. */
int aclshmem_cpu_stream_wait(void *stream) {
  face_stream *s = resolve(stream, "stream_wait");
  if (!s) return ACL_ERROR_INVALID_PARAM;
  int rc = await(s);
  face *f = face_now();
  return rc || stream || !face_device_stream(f, stream) ? rc : gshmem_stream_wait(face_world(f), NULL, f->wait_ns);
}

int aclshmem_cpu_on_device(const void *address) { return face_on_device(face_now(), address); }

int aclshmem_cpu_stream_idle(void *stream, int *idle_out) {
  face_stream *s = resolve(stream, "stream_idle");
  if (!s || !idle_out) return ACL_ERROR_INVALID_PARAM;
  pthread_mutex_lock(&s->lock);
  *idle_out = !s->unfinished;
  pthread_mutex_unlock(&s->lock);
  return ACL_SUCCESS;
}

/* Streams that end meanwhile are no longer in the list, and one destroyed by another thread meanwhile is that program's race. */
int aclshmem_cpu_device_wait(void) {
  if (forked()) return fork_refuse(), ACL_ERROR_RT_FAILURE;
  int first = ACL_SUCCESS;
  pthread_mutex_lock(&list_lock);
  size_t n = 0, i = 0;
  for (face_stream *s = list; s; s = s->next) n++;
  face_stream **all = calloc(n + 1, sizeof *all);
  for (face_stream *s = list; s && all; s = s->next) all[i++] = s;
  pthread_mutex_unlock(&list_lock);
  if (!all) return ACL_ERROR_BAD_ALLOC;
  for (i = 0; i < n; i++) {
    int rc = await(all[i]);
    if (rc && !first) first = rc;
  }
  free(all);
  return first;
}

static int32_t run_call(face_task *t) {
  t->call(t->dst);
  return GSHMEM_OK;
}
static int32_t run_copy(face_task *t) {
  memmove(t->dst, t->src, t->n);
  return GSHMEM_OK;
}
static int32_t run_fill(face_task *t) {
  memset(t->dst, (int)t->a, t->n);
  return GSHMEM_OK;
}

static int queue_local(void *stream, const face_task *t) {
  face_stream *s = resolve(stream, t->what);
  if (!s) return ACL_ERROR_INVALID_PARAM;
  return push(s, t) ? ACL_ERROR_RT_FAILURE : ACL_SUCCESS;
}

int aclshmem_cpu_stream_call(void *stream, void (*function)(void *), void *argument) {
  if (!function) return ACL_ERROR_INVALID_PARAM;
  return queue_local(stream, &(face_task){.run = run_call, .what = "host function", .call = function, .dst = argument});
}
int aclshmem_cpu_stream_copy(void *stream, void *dst, const void *src, size_t count) {
  return queue_local(stream, &(face_task){.run = run_copy, .what = "memcpy", .dst = dst, .src = (void *)src, .n = count});
}
int aclshmem_cpu_stream_fill(void *stream, void *dst, int32_t value, size_t count) {
  return queue_local(stream, &(face_task){.run = run_fill, .what = "memset", .dst = dst, .a = value, .n = count});
}
