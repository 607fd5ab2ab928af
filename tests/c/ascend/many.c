/* many.c - as many instances as there can be at once, each with its own heap and teams; one more is refused in words. */
#include "check.h"

enum { MOST = 255 };

int main(int argc, char **argv) {
  static int32_t *word[MOST];
  arguments(argc, argv);
  char range[32];
  snprintf(range, sizeof range, "%d:%d", 20000, 20000 + MOST + 1);
  setenv("SHMEM_INSTANCE_PORT_RANGE", range, 1);
  for (int i = 0; i < MOST; i++) {
    CHECK(up_at(1 << 20, (uint64_t)i, i ? 0 : port) == 0, "instance %d: %s", i, aclshmem_cpu_last_error());
    CHECK((word[i] = aclshmem_calloc(1, 4)) != NULL, "memory of instance %d", i);
  }
  CHECK(up_at(1 << 20, MOST, 0) != 0 && *aclshmem_cpu_last_error(), "one more came up");
  for (int i = MOST - 1; i >= 0; i--) {
    CHECK(aclshmemx_instance_ctx_set((uint64_t)i) == 0, "instance %d", i);
    aclshmem_int32_p(word[i], i * 3 + 1, me);
    CHECK(aclshmem_team_n_pes(0) == n, "teams of instance %d", i);
  }
  for (int i = 0; i < MOST; i++) CHECK(AT(word[i]) == i * 3 + 1, "instance %d holds %d", i, AT(word[i]));
  for (int i = MOST - 1; i >= 0; i--) CHECK(aclshmemx_finalize((uint64_t)i) == 0, "finalize %d", i);
  return done();
}
