/* run.c - runs the tests: all, or those whose name contains the argument. */
#include "rig.h"

static int run_one(const test_case *t) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    alarm(280);
    t->run();
    exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  printf("%s %s", status ? "FAIL" : "ok  ", t->name);
  if (WIFSIGNALED(status)) printf(" (signal %d%s)", WTERMSIG(status), WTERMSIG(status) == SIGALRM ? ": hangs" : "");
  printf("\n");
  return status != 0;
}

int main(int argc, char **argv) {
  const test_case *const all[] = {onesided_tests, waiting_tests, closing_tests, collective_tests};
  int failed = 0, ran = 0;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    for (const test_case *t = all[i]; t->name; t++)
      if (argc < 2 || strstr(t->name, argv[1])) {
        ran++;
        failed += run_one(t);
      }
  printf("%d tests, %d failed\n", ran, failed);
  return failed != 0 || ran == 0;
}
