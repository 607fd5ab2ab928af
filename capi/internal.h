/* internal.h - what the C files of capi share. Nothing here is exported. */
#ifndef GSHMEM_INTERNAL_H
#define GSHMEM_INTERNAL_H

#include "include/gshmem.h"

#include "../gocore/hot/hot.h"

#define ERRTEXT_MAX 4096

#ifndef GSHMEM_VERSION_TEXT
#define GSHMEM_VERSION_TEXT "1.0.0"
#endif

void errtext_set(const char *words, size_t n);
int32_t errtext_fail(int32_t status, const char *words); /* sets the text, returns the status */
int32_t fork_refuse(void);

/* gshmem_broadcast whose root does not wait where the bytes are few (HOT_OP_CAST): members may learn of a disagreement in their next
   operation only, which is OpenSHMEM's contract and not gshmem.h's. */
int32_t shim_cast(uint64_t team, const void *in, void *out, uint64_t bytes, int32_t root);

/* A barrier that ends a collective made of puts, `what` of so many bytes: members must agree in both. */
int32_t shim_meet(uint64_t team, int32_t what, uint64_t bytes);

#define REFUSE_FORKED()                                                                 \
  do {                                                                                  \
    if (__builtin_expect(atomic_load_explicit(&hot_forked, memory_order_relaxed), 0))   \
      return fork_refuse();                                                             \
  } while (0)

#endif
