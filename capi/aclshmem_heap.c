/*
 * aclshmem_heap.c - symmetric memory by address, on either side.
 *
 * The core agrees on blocks by handle; this keeps the handle of each address. Allocations run over a team of their own, so a
 * barrier that is still queued on a stream never meets one.
 */
#include "aclshmem_face.h"

#include <stdlib.h>

#define SLOT(address) (((uintptr_t)(address) >> 6) % 256)

static int remember(face *f, void *address, uint64_t handle, aclshmem_mem_type_t side) {
  face_block *b = malloc(sizeof *b);
  if (!b) return 0;
  *b = (face_block){NULL, address, handle, side};
  pthread_mutex_lock(&f->lock);
  b->next = f->blocks[SLOT(address)];
  f->blocks[SLOT(address)] = b;
  pthread_mutex_unlock(&f->lock);
  return 1;
}

/* Takes a block out; 0 when the address is not the start of one of this side. */
static uint64_t forget(face *f, void *address, aclshmem_mem_type_t side) {
  uint64_t handle = 0;
  pthread_mutex_lock(&f->lock);
  for (face_block **p = &f->blocks[SLOT(address)]; *p; p = &(*p)->next) {
    face_block *b = *p;
    if (b->address != address || b->side != side) continue;
    handle = b->handle;
    *p = b->next;
    free(b);
    break;
  }
  pthread_mutex_unlock(&f->lock);
  return handle;
}

/* After finalize: nobody holds the blocks any more, so their pages go. */
void face_blocks_forget(face *f) {
  for (int i = 0; i < 256; i++) {
    while (f->blocks[i]) {
      face_block *b = f->blocks[i];
      f->blocks[i] = b->next;
      gshmem_block_drop(b->handle);
      free(b);
    }
  }
}

/* The team that agrees on blocks of this side; 0 with the status when there is none. */
static uint64_t team_of_side(face *f, aclshmem_mem_type_t side, int32_t *rc) {
  *rc = GSHMEM_OK;
  if (side == DEVICE_SIDE) return atomic_load(&f->control);
  if (side != HOST_SIDE) {
    *rc = errtext_fail(GSHMEM_EINVAL, "mem_type is neither HOST_SIDE nor DEVICE_SIDE");
    return 0;
  }
  *rc = face_host_open(f);
  if (*rc) return 0;
  return atomic_load(&f->device) ? atomic_load(&f->control) : f->host_team;
}

static void *allocate(const char *what, size_t align, size_t size, aclshmem_mem_type_t side) {
  face *f = face_now();
  int32_t rc = face_world(f) ? GSHMEM_OK : gshmem_my_pe(0);
  int64_t began = atomic_load(&f->odd) & ODD_PROF ? hot_now() : 0;
  uint64_t block = 0, team = rc ? 0 : team_of_side(f, side, &rc);
  void *address = NULL;
  uint32_t where = side == DEVICE_SIDE && atomic_load(&f->device) ? GSHMEM_ON_DEVICE : 0;
  if (!rc) rc = gshmem_alloc(team, size, align, GSHMEM_ZERO | where, f->control_ns, &block, &address);
  if (rc) {
    face_failed(what, rc);
    return NULL;
  }
  if (began) face_prof_add(PROF_ALLOC, began);
  if (size && !((uintptr_t)address & (align ? align - 1 : 0)) && remember(f, address, block, side)) return address;
  gshmem_free(block, f->control_ns); /* size 0: all PEs come here; so they do when the alignment is beyond what addresses can have */
  if (size) face_refuse(ACLSHMEM_MALLOC_FAILED, "%s: no block of %zu bytes aligned to %zu", what, size, align);
  return NULL;
}

void *aclshmemx_malloc(size_t size, aclshmem_mem_type_t side) { return allocate("malloc", 0, size, side); }

void *aclshmemx_calloc(size_t count, size_t size, aclshmem_mem_type_t side) {
  size_t bytes;
  if (!count || !size) return NULL;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    face_refuse(ACLSHMEM_MALLOC_FAILED, "calloc: %zu times %zu bytes is more than there can be", count, size);
    return NULL;
  }
  return allocate("calloc", 0, bytes, side);
}

void *aclshmemx_align(size_t alignment, size_t size, aclshmem_mem_type_t side) {
  if (!alignment || alignment & (alignment - 1)) {
    face_refuse(ACLSHMEM_INVALID_PARAM, "align: %zu is not a power of two", alignment);
    return NULL;
  }
  return allocate("align", alignment, size, side);
}

void aclshmemx_free(void *ptr, aclshmem_mem_type_t side) {
  face *f = face_now();
  if (!ptr) return;
  if (!face_world(f)) {
    face_failed("free", gshmem_my_pe(0));
    return;
  }
  int64_t began = atomic_load(&f->odd) & ODD_PROF ? hot_now() : 0;
  uint64_t block = forget(f, ptr, side);
  int32_t rc;
  if (block) {
    rc = gshmem_free(block, f->control_ns);
  } else {
    gshmem_sync(side == HOST_SIDE && atomic_load(&f->host_world) ? f->host_team : atomic_load(&f->control)); /* PEs that all err stay in step */
    rc = errtext_fail(GSHMEM_EINVAL, "the address is not the start of a live block of that side; nothing was freed");
  }
  if (rc) face_failed("free", rc);
  if (began) face_prof_add(PROF_FREE, began);
}

void *aclshmem_malloc(size_t size) { return aclshmemx_malloc(size, DEVICE_SIDE); }
void *aclshmem_calloc(size_t nmemb, size_t size) { return aclshmemx_calloc(nmemb, size, DEVICE_SIDE); }
void *aclshmem_align(size_t alignment, size_t size) { return aclshmemx_align(alignment, size, DEVICE_SIDE); }
void aclshmem_free(void *ptr) { aclshmemx_free(ptr, DEVICE_SIDE); }

void *aclshmemx_get_heap_base(aclshmem_mem_type_t side) {
  face *f = face_now();
  if (!face_world(f)) return NULL;
  if (side == HOST_SIDE) return atomic_load(&f->host_world) || atomic_load(&f->device) ? (void *)f->host_low : NULL;
  return side == DEVICE_SIDE ? (void *)f->low : NULL;
}
