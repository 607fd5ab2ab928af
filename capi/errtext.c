/*
 * errtext.c - the words of this thread's last failure.
 *
 * One pointer of thread-local storage (aarch64 has little static TLS to spare); the text itself is allocated at the
 * first failure and freed when the thread ends.
 */
#include "internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static __thread char *text __attribute__((tls_model("initial-exec")));
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void forget(void *p) {
  free(p);
  text = NULL;
}

static void make_key(void) { pthread_key_create(&key, forget); }

void errtext_set(const char *words, size_t n) {
  if (n > ERRTEXT_MAX - 1) n = ERRTEXT_MAX - 1;
  if (!text) {
    pthread_once(&once, make_key);
    text = malloc(ERRTEXT_MAX);
    if (!text) return; /* the status still tells; gshmem_last_error says that there are no words */
    pthread_setspecific(key, text);
  }
  memcpy(text, words, n);
  text[n] = 0;
}

int32_t errtext_fail(int32_t status, const char *words) {
  errtext_set(words, strlen(words));
  return status;
}

const char *gshmem_last_error(void) { return text ? text : ""; }
