/*
 * exits.c - programs that end in other ways than by finalize. The first argument says how; the test looks at status and words.
 *
 *   global STATUS   PE n-1 calls shmem_global_exit(STATUS) while one PE waits and the others compute for ever
 *   return          nobody calls shmem_finalize
 *   bad-pe          a put to a PE that is not there
 *   bad-address     a put to memory that is not symmetric
 *   unequal         PEs ask for blocks of unequal size; the heap must still work
 *   selection       the function behind a C11 generic of no type
 *   fork            a child changes a variable: the parent's stays
 *   again           finalize and init again, with data kept
 */
#include "check.h"

#include <sys/wait.h>

static long value = 11;

static _Noreturn void global_exit(int status) {
  if (me == n - 1) F(shmem_global_exit)(status);
  if (me == 0) shmem_long_wait_until(&value, SHMEM_CMP_EQ, 12);
  for (volatile long spin = 0;; spin++) {
  }
}

static int unequal(void) {
  void *p = shmem_malloc(me == 0 ? 100 : 200);
  CHECK(n == 1 || p == NULL, "unequal sizes gave a block");
  CHECK(shmem_malloc(100) != NULL, "the heap does not work afterwards");
  return finish();
}

static int forked(void) {
  pid_t child = fork();
  if (child == 0) {
    value = 99;
    _exit(value == 99 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0, "the child ended with %d", status);
  CHECK(value == 11, "the child wrote into its parent");
  return finish();
}

static int again(void) {
  for (int round = 0; round < 3; round++) {
    CHECK(value == 11 + round, "round %d", round);
    shmem_barrier_all();
    shmem_long_p(&value, 12 + round, right());
    shmem_barrier_all();
    shmem_finalize();
    CHECK(value == 12 + round, "after finalize");
    begin();
  }
  return finish();
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "";
  begin();
  if (!strcmp(how, "global")) global_exit(atoi(argv[2]));
  if (!strcmp(how, "unequal")) return unequal();
  if (!strcmp(how, "fork")) return forked();
  if (!strcmp(how, "again")) return again();
  if (!strcmp(how, "bad-pe")) shmem_long_p(&value, 1, n);
  if (!strcmp(how, "bad-address")) {
    long on_stack = 0;
    shmem_long_p(&on_stack, 1, right());
  }
  if (!strcmp(how, "selection")) F(shmem_ctx_c11_generic_selection_failed)();
  if (!strcmp(how, "return") && me == 0) printf("leaving\n");
  return 0;
}
