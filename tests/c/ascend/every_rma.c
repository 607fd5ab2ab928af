/* every_rma.c - one-sided access and puts with signals, all types and sizes. */
#include "check.h"

enum { ROOM = 64, MANY = 7 };

/* Distinct per PE, element and step; small enough to be exact in every type. */
static int value(int pe, int i, int step) { return (pe * 29 + i * 5 + step * 3) % 97 + 2; }

static int32_t *sig;
static int32_t signals; /* what my signal has been given so far */

#define EXPECT_ONLY(NAME, what, low, stride, count, from, step)                                                          \
  seen = look(buf, ROOM * sizeof *buf);                                                                                  \
  for (int i = 0; i < ROOM; i++) {                                                                                       \
    int k = (i - (low)) / (stride), hit = i >= (low) && (i - (low)) % (stride) == 0 && k < (count);                      \
    int want = hit ? value((from), k, (step)) : 1;                                                                       \
    CHECK((int)seen[i] == want, #NAME " " what ": element %d is %d, not %d", i, (int)seen[i], want);                     \
  }

#define WRITE(low_value)                                            \
  seen = edit(buf, ROOM * sizeof *buf);                             \
  for (int i = 0; i < ROOM; i++) seen[i] = (low_value);             \
  commit(buf, seen, ROOM * sizeof *buf)

#define WIPE()                                  \
  aclshmem_barrier_all();                       \
  WRITE(1);                                     \
  CALL(aclshmem_barrier_all)()

#define FILL(step) \
  for (int i = 0; i < ROOM; i++) src[i] = value(me, i, (step))

#define TYPED(NAME, TYPE)                                                                                                     \
  static void check_##NAME(TYPE *buf) {                                                                                      \
    TYPE src[ROOM], got[ROOM], *seen;                                                                                        \
    WIPE();                                                                                                                  \
    FILL(1);                                                                                                                 \
    CALL(aclshmem_##NAME##_put)(buf + 3, src, MANY, next_pe);                                                                \
    aclshmem_barrier_all();                                                                                                  \
    EXPECT_ONLY(NAME, "put", 3, 1, MANY, prev_pe, 1);                                                                        \
    WIPE();                                                                                                                  \
    FILL(2);                                                                                                                 \
    CALL(aclshmem_##NAME##_put_nbi)(buf + 5, src, MANY, next_pe);                                                            \
    CALL(aclshmemx_quiet_on_stream)(NULL);                                                                                   \
    aclshmem_barrier_all();                                                                                                  \
    EXPECT_ONLY(NAME, "put_nbi", 5, 1, MANY, prev_pe, 2);                                                                    \
    WIPE();                                                                                                                  \
    FILL(3);                                                                                                                 \
    CALL(aclshmem_##NAME##_iput)(buf + 2, src, 3, 1, MANY, next_pe);                                                         \
    aclshmem_barrier_all();                                                                                                  \
    EXPECT_ONLY(NAME, "iput", 2, 3, MANY, prev_pe, 3);                                                                       \
    WRITE(value(me, i, 4));                                                                                                  \
    aclshmem_barrier_all();                                                                                                  \
    memset(got, 0, sizeof got);                                                                                              \
    CALL(aclshmem_##NAME##_get)(got, buf + 1, MANY, next_pe);                                                                \
    CALL(aclshmem_##NAME##_get_nbi)(got + 10, buf + 2, MANY, next_pe);                                                       \
    CALL(aclshmem_##NAME##_iget)(got + 20, buf, 2, 3, MANY, next_pe);                                                        \
    aclshmem_barrier_all();                                                                                                  \
    for (int i = 0; i < MANY; i++) {                                                                                         \
      CHECK((int)got[i] == value(next_pe, 1 + i, 4), #NAME " get %d", i);                                                    \
      CHECK((int)got[10 + i] == value(next_pe, 2 + i, 4), #NAME " get_nbi %d", i);                                           \
      CHECK((int)got[20 + 2 * i] == value(next_pe, 3 * i, 4), #NAME " iget %d", i);                                          \
      CHECK((int)got[21 + 2 * i] == 0, #NAME " iget wrote between");                                                         \
    }                                                                                                                        \
    CHECK((int)got[MANY] == 0 && (int)got[10 + MANY] == 0, #NAME " get wrote beyond");                                       \
    WIPE();                                                                                                                  \
    CALL(aclshmem_##NAME##_p)(buf + 9, (TYPE)value(me, 0, 5), next_pe);                                                      \
    aclshmem_barrier_all();                                                                                                  \
    EXPECT_ONLY(NAME, "p", 9, 1, 1, prev_pe, 5);                                                                             \
    CHECK((int)CALL(aclshmem_##NAME##_g)(buf + 9, next_pe) == value(me, 0, 5), #NAME " g");                                  \
    WIPE();                                                                                                                  \
    FILL(6);                                                                                                                 \
    CALL(aclshmem_##NAME##_put_signal)(buf + 4, src, MANY, (uint8_t *)sig, ++signals, ACLSHMEM_SIGNAL_SET, next_pe);         \
    CALL(aclshmem_signal_wait_until)(sig, ACLSHMEM_CMP_EQ, signals);                                                         \
    EXPECT_ONLY(NAME, "put_signal", 4, 1, MANY, prev_pe, 6);                                                                 \
    WIPE();                                                                                                                  \
    FILL(7);                                                                                                                 \
    CALL(aclshmem_##NAME##_put_signal_nbi)(buf + 6, src, MANY, (uint8_t *)sig, 2, ACLSHMEM_SIGNAL_ADD, next_pe);             \
    signals += 2;                                                                                                            \
    aclshmem_signal_wait_until(sig, ACLSHMEM_CMP_GE, signals);                                                               \
    CHECK(AT(sig) == signals, #NAME " put_signal_nbi: the signal is %d, not %d", AT(sig), signals);                          \
    EXPECT_ONLY(NAME, "put_signal_nbi", 6, 1, MANY, prev_pe, 7);                                                             \
    WIPE();                                                                                                                  \
  }                                                                                                                          \
  struct NAME##_end
ACLSHMEM_TYPE_FUNC(TYPED);

/* An element of BITS is BITS / 8 bytes, each with a value of its own. */
#define EXPECT_BYTES(BITS, what, low, stride, count, from, step)                                                        \
  seen = look(buf, ROOM * 16);                                                                                          \
  for (int i = 0; i < ROOM * 16; i++) {                                                                                 \
    int e = BITS / 8, k = (i / e - (low)) / (stride);                                                                   \
    int hit = i / e >= (low) && (i / e - (low)) % (stride) == 0 && k < (count);                                         \
    int want = hit ? value((from), k * e + i % e, (step)) : 1;                                                          \
    CHECK(seen[i] == want, #BITS " " what ": byte %d is %d, not %d", i, seen[i], want);                                 \
  }

#define WRITE_BYTES(low_value)                                                   \
  seen = edit(buf, ROOM * 16);                                                   \
  for (int i = 0; i < ROOM * 16; i++) seen[i] = (unsigned char)(low_value);      \
  commit(buf, seen, ROOM * 16)

#define WIPE_BYTES()                \
  aclshmem_barrier_all();           \
  WRITE_BYTES(1);                   \
  aclshmem_barrier_all()

#define FILL_BYTES(step) \
  for (int i = 0; i < ROOM * 16; i++) src[i] = (unsigned char)value(me, i, (step))

#define SIZED(BITS)                                                                                                     \
  static void check_##BITS(unsigned char *buf) {                                                                        \
    enum { E = BITS / 8 };                                                                                              \
    unsigned char src[ROOM * 16], got[ROOM * 16], *seen;                                                                \
    WIPE_BYTES();                                                                                                       \
    FILL_BYTES(1);                                                                                                      \
    CALL(aclshmem_put##BITS)(buf + 3 * E, src, MANY, next_pe);                                                          \
    aclshmem_barrier_all();                                                                                             \
    EXPECT_BYTES(BITS, "put", 3, 1, MANY, prev_pe, 1);                                                                  \
    WIPE_BYTES();                                                                                                       \
    FILL_BYTES(2);                                                                                                      \
    CALL(aclshmem_put##BITS##_nbi)(buf + 4 * E, src, MANY, next_pe);                                                    \
    aclshmem_barrier_all();                                                                                             \
    EXPECT_BYTES(BITS, "put_nbi", 4, 1, MANY, prev_pe, 2);                                                              \
    WIPE_BYTES();                                                                                                       \
    FILL_BYTES(3);                                                                                                      \
    CALL(aclshmem_iput##BITS)(buf + 2 * E, src, 3, 1, MANY, next_pe);                                                   \
    aclshmem_barrier_all();                                                                                             \
    EXPECT_BYTES(BITS, "iput", 2, 3, MANY, prev_pe, 3);                                                                 \
    WRITE_BYTES(value(me, i, 4));                                                                                       \
    aclshmem_barrier_all();                                                                                             \
    memset(got, 0, sizeof got);                                                                                         \
    CALL(aclshmem_get##BITS)(got, buf + E, MANY, next_pe);                                                              \
    CALL(aclshmem_get##BITS##_nbi)(got + 10 * E, buf + 2 * E, MANY, next_pe);                                           \
    CALL(aclshmem_iget##BITS)(got + 20 * E, buf, 2, 3, MANY, next_pe);                                                  \
    aclshmem_barrier_all();                                                                                             \
    for (int i = 0; i < MANY * E; i++) {                                                                                \
      CHECK(got[i] == value(next_pe, E + i, 4), "get" #BITS " byte %d", i);                                             \
      CHECK(got[10 * E + i] == value(next_pe, 2 * E + i, 4), "get" #BITS "_nbi byte %d", i);                            \
      CHECK(got[20 * E + i / E * 2 * E + i % E] == value(next_pe, i / E * 3 * E + i % E, 4), "iget" #BITS " byte %d", i); \
    }                                                                                                                   \
    CHECK(got[MANY * E] == 0 && got[21 * E] == 0, "get" #BITS " wrote beyond");                                         \
    WIPE_BYTES();                                                                                                       \
    FILL_BYTES(6);                                                                                                      \
    CALL(aclshmem_put##BITS##_signal)(buf + 4 * E, src, MANY, sig, ++signals, ACLSHMEM_SIGNAL_SET, next_pe);            \
    aclshmem_signal_wait_until(sig, ACLSHMEM_CMP_EQ, signals);                                                          \
    EXPECT_BYTES(BITS, "put_signal", 4, 1, MANY, prev_pe, 6);                                                           \
    WIPE_BYTES();                                                                                                       \
    FILL_BYTES(7);                                                                                                      \
    CALL(aclshmem_put##BITS##_signal_nbi)(buf + 6 * E, src, MANY, sig, 3, ACLSHMEM_SIGNAL_ADD, next_pe);                \
    signals += 3;                                                                                                       \
    aclshmem_signal_wait_until(sig, ACLSHMEM_CMP_EQ, signals);                                                          \
    EXPECT_BYTES(BITS, "put_signal_nbi", 6, 1, MANY, prev_pe, 7);                                                       \
    WIPE_BYTES();                                                                                                       \
  }                                                                                                                     \
  struct end_##BITS
ACLSHMEM_SIZE_FUNC(SIZED);

static void check_mem(unsigned char *buf) {
  unsigned char src[ROOM * 16], got[ROOM * 16], *seen;
  WIPE_BYTES();
  FILL_BYTES(1);
  CALL(aclshmem_putmem)(buf + 3, src, 77, next_pe);
  aclshmem_barrier_all();
  EXPECT_BYTES(8, "putmem", 3, 1, 77, prev_pe, 1);
  WIPE_BYTES();
  FILL_BYTES(2);
  CALL(aclshmem_putmem_nbi)(buf + 5, src, 78, next_pe);
  aclshmem_barrier_all();
  EXPECT_BYTES(8, "putmem_nbi", 5, 1, 78, prev_pe, 2);
  memset(got, 0, sizeof got);
  CALL(aclshmem_getmem)(got, buf + 5, 33, next_pe);
  CALL(aclshmem_getmem_nbi)(got + 100, buf + 6, 33, next_pe);
  aclshmem_barrier_all();
  for (int i = 0; i < 33; i++) {
    CHECK(got[i] == value(me, i, 2), "getmem byte %d", i);
    CHECK(got[100 + i] == value(me, i + 1, 2), "getmem_nbi byte %d", i);
  }
  WIPE_BYTES();
  FILL_BYTES(3);
  CALL(aclshmemx_putmem_signal)(buf + 1, src, 99, sig, ++signals, ACLSHMEM_SIGNAL_SET, next_pe);
  aclshmem_signal_wait_until(sig, ACLSHMEM_CMP_EQ, signals);
  EXPECT_BYTES(8, "putmem_signal", 1, 1, 99, prev_pe, 3);
  WIPE_BYTES();
  CALL(aclshmemx_putmem_signal_nbi)(buf, src, 0, sig, 5, ACLSHMEM_SIGNAL_ADD, next_pe); /* no bytes still signal */
  signals += 5;
  aclshmem_signal_wait_until(sig, ACLSHMEM_CMP_EQ, signals);
  EXPECT_BYTES(8, "putmem_signal_nbi", 0, 1, 0, prev_pe, 3);
}

/* What is wrong is said, and moves nothing. */
static void check_errors(unsigned char *buf) {
  unsigned char src[64] = {9}, *seen;
  WIPE_BYTES();
  aclshmem_cpu_last_status();
  aclshmem_putmem(buf, src, 8, n);
  CHECK(aclshmem_cpu_last_status() != 0, "a put to PE %d was not refused", n);
  aclshmem_putmem(src, src, 8, next_pe);
  CHECK(aclshmem_cpu_last_status() != 0, "a put to private memory was not refused");
  aclshmemx_putmem_signal(buf, src, 8, (char *)sig + 1, 1, ACLSHMEM_SIGNAL_SET, next_pe);
  CHECK(aclshmem_cpu_last_status() != 0, "a signal at an odd address was not refused");
  aclshmemx_putmem_signal(buf, src, 8, sig, 1, 7, next_pe);
  CHECK(aclshmem_cpu_last_status() != 0, "signal operation 7 was not refused");
  aclshmem_int64_put((int64_t *)(void *)buf, (int64_t *)(void *)src, SIZE_MAX / 4, next_pe);
  CHECK(aclshmem_cpu_last_status() != 0, "a size that overflows was not refused");
  aclshmem_putmem(buf, src, 0, next_pe);
  CHECK(aclshmem_cpu_last_status() == 0, "nothing to put is no error");
  aclshmem_barrier_all();
  CHECK(AT(sig) == signals, "a refused put_signal signalled");
  EXPECT_BYTES(8, "errors", 0, 1, 0, 0, 0);
}

#define RUN(NAME, TYPE) check_##NAME((TYPE *)memory)
#define RUN_SIZED(BITS) check_##BITS(memory)

int main(int argc, char **argv) {
  arguments(argc, argv);
  up(64 << 20);
  void *memory = aclshmem_malloc(ROOM * 16);
  sig = aclshmem_calloc(1, sizeof *sig);
  CHECK(memory && sig, "no memory");
  ACLSHMEM_TYPE_FUNC(RUN);
  ACLSHMEM_SIZE_FUNC(RUN_SIZED);
  check_mem(memory);
  check_errors(memory);
  aclshmem_free(sig);
  aclshmem_free(memory);
  CHECK(aclshmem_finalize() == 0, "finalize");
  return done();
}
