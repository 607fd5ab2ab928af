/*
 * dlpack.c - the deleter of tensors that hold symmetric memory.
 *
 * A tensor's storage may die on any thread, without the interpreter's lock, in the middle of an exception or after the
 * interpreter's end: no Python may run there, and Go need not. So the deleter puts the struct on a list, and the
 * binding takes the list when it next has a quiet moment.
 */
#include "internal.h"

/* As far as DLManagedTensor is read here. Once its tensor has died, nobody else looks at its context. */
typedef struct managed {
  uint64_t tensor[6];
  struct managed *context;
} managed;

static _Atomic(managed *) deleted;

int32_t gshmem_dlpack_delete(void *tensor) {
  managed *m = tensor;
  m->context = atomic_load_explicit(&deleted, memory_order_relaxed);
  /* release: pairs with the acquire of who takes the list and reads the links */
  while (!atomic_compare_exchange_weak_explicit(&deleted, &m->context, m, memory_order_release, memory_order_relaxed)) continue;
  return GSHMEM_OK;
}

int32_t gshmem_dlpack_deleted(void **list_out) {
  REFUSE_FORKED();
  *list_out = atomic_exchange_explicit(&deleted, NULL, memory_order_acquire);
  return GSHMEM_OK;
}
