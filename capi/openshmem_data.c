/*
 * openshmem_data.c - static and global variables as symmetric objects.
 *
 * At init the pages of the program's writable data are copied into a block of the symmetric heap, and that block is
 * mapped a second time, over the data themselves (mremap with an old size of 0 duplicates a shared mapping). From then on a
 * variable and its twin in the heap are the same memory: puts, atomics, locks, waits and collectives on variables run on the
 * heap's paths, on every transport, and where the loader put the program does not matter. At finalize, and in a
 * forked child, the data become private memory again, as they are then.
 *
 * Not symmetric: variables of shared libraries (as the specification has it), thread-local variables, and constants.
 * Other threads must not write variables of the program while shmem_init runs.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "openshmem.h"

#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static char obstacle[256] = "shmem_init has not run";
static uint64_t block;
static pthread_once_t at_fork = PTHREAD_ONCE_INIT;

static void why_not(const char *words) { snprintf(obstacle, sizeof obstacle, "%s", words); }

const char *osh_data_obstacle(void) { return osh.nrange ? NULL : obstacle; }

/* ---- where the data are ---- */

typedef struct found {
  osh_range range[OSH_MAX_RANGES];
  uint32_t n;
  int uses_us; /* the program itself is linked against this library */
  uint64_t bytes, layout; /* layout: a hash of sizes and places relative to the program */
} found;

/* Whether the program names this library among those it needs: an interpreter that loads it later does not, and its own data
   are none of a SHMEM program's. */
static int needs_us(const struct dl_phdr_info *info, const ElfW(Dyn) *dynamic) {
  uintptr_t strings = 0;
  for (const ElfW(Dyn) *d = dynamic; d->d_tag != DT_NULL; d++)
    if (d->d_tag == DT_STRTAB) strings = d->d_un.d_ptr < info->dlpi_addr ? info->dlpi_addr + d->d_un.d_ptr : d->d_un.d_ptr;
  for (const ElfW(Dyn) *d = dynamic; strings && d->d_tag != DT_NULL; d++)
    if (d->d_tag == DT_NEEDED && strstr((const char *)(strings + d->d_un.d_val), "libshmem")) return 1;
  return 0;
}

static int main_program(struct dl_phdr_info *info, size_t size, void *out) {
  (void)size;
  found *f = out;
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t relro_low = 0, relro_high = 0;
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
      relro_low = (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) & ~(page - 1);
      relro_high = (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz) & ~(page - 1);
    }
  for (int i = 0; i < info->dlpi_phnum && f->n < OSH_MAX_RANGES; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    if (p->p_type == PT_DYNAMIC) f->uses_us = needs_us(info, (const ElfW(Dyn) *)(info->dlpi_addr + p->p_vaddr));
    if (p->p_type != PT_LOAD || !(p->p_flags & PF_W) || p->p_flags & PF_X) continue;
    uintptr_t low = (info->dlpi_addr + p->p_vaddr) & ~(page - 1), high = (info->dlpi_addr + p->p_vaddr + p->p_memsz + page - 1) & ~(page - 1);
    if (relro_low <= low && low < relro_high) low = relro_high; /* read-only since the loader was done */
    if (low >= high) continue;
    f->range[f->n++] = (osh_range){low, high - low, 0};
    f->bytes += high - low;
    f->layout = (f->layout ^ (low - info->dlpi_addr)) * 0x9e3779b97f4a7c15ull + (high - low);
  }
  return 1; /* the program comes first, and is all we want */
}

static found look(void) {
  found f = {0};
  dl_iterate_phdr(main_program, &f);
  return f;
}

uint64_t osh_data_bytes(void) { return look().bytes; }

/* ---- there and back ---- */

/* Replaces a range by other pages that hold the same bytes; nothing of the caller lies in it. */
static int lay_over(uintptr_t low, uint64_t length, void *pages, uint64_t old_size) {
  return mremap(pages, old_size, length, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)low) == (void *)low ? 0 : -1;
}

static int make_private(const osh_range *r) {
  void *copy = mmap(NULL, r->length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return -1;
  memcpy(copy, (const void *)r->low, r->length);
  return lay_over(r->low, r->length, copy, r->length);
}

static void forget_ranges(void) {
  osh.nrange = 0;
  memset(osh.range, 0, sizeof osh.range); /* osh_near looks at the first whatever their number is */
}

/* In a forked child: its writes must not be the parent's. */
static void in_child(void) {
  for (uint32_t i = 0; i < osh.nrange; i++)
    if (make_private(&osh.range[i])) _exit(70); /* better no child than one that writes into its parent */
  forget_ranges();
}

static void watch_forks(void) { pthread_atfork(NULL, NULL, in_child); }

static int share(const found *f, uint8_t *twin) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before); /* no handler may write between copy and exchange */
  int bad = 0;
  for (uint32_t i = 0; i < f->n && !bad; i++) {
    osh_range r = f->range[i];
    memcpy(twin, (const void *)r.low, r.length);
    bad = lay_over(r.low, r.length, twin, 0);
    if (bad) break;
    r.twin = (uintptr_t)twin;
    osh.range[osh.nrange++] = r;
    twin += r.length;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return bad;
}

/* All PEs must have the same layout, else offsets mean nothing: 1 when they have. */
static int all_alike(const found *f, int wanted, const char *unwanted) {
  uint64_t mine[2] = {wanted ? f->bytes : 0, f->layout}, *all = malloc(sizeof mine * (size_t)osh.n);
  if (!all) return 0;
  osh_check("init", gshmem_all_gather(osh.team, mine, all, sizeof mine));
  int alike = wanted && f->bytes > 0;
  why_not(wanted ? "the program has no writable data" : unwanted);
  for (int32_t r = 0; alike && r < osh.n; r++) {
    if (all[2 * r] == mine[0] && all[2 * r + 1] == mine[1]) continue;
    snprintf(obstacle, sizeof obstacle, "PE %d runs another program, or has SHMEM_STATIC_DATA=0: %llu bytes of data there, %llu at PE %d", r,
             (unsigned long long)all[2 * r], (unsigned long long)mine[0], osh.me);
    alike = 0;
  }
  free(all);
  return alike;
}

void osh_data_open(void) {
  const char *setting = getenv("SHMEM_STATIC_DATA");
  found f = look();
  void *twin = NULL;
  forget_ranges();
  int wanted = setting && *setting ? strcmp(setting, "0") != 0 : f.uses_us && !osh.joined;
  const char *unwanted = setting && *setting ? "SHMEM_STATIC_DATA is 0"
                         : osh.joined        ? "shmem_init joined a world that was already up; SHMEM_STATIC_DATA=1 asks for them all the same"
                                             : "the program is not linked against libshmem itself; SHMEM_STATIC_DATA=1 asks for them all the same";
  if (!all_alike(&f, wanted, unwanted)) return;
  int32_t rc = gshmem_alloc(osh.team, f.bytes, (uint64_t)sysconf(_SC_PAGESIZE), 0, GSHMEM_DEFAULT_TIMEOUT, &block, &twin);
  if (rc) {
    snprintf(obstacle, sizeof obstacle, "no room in the symmetric heap for %llu bytes of variables (raise SHMEM_SYMMETRIC_SIZE): %.120s",
             (unsigned long long)f.bytes, gshmem_last_error());
    return;
  }
  pthread_once(&at_fork, watch_forks);
  if (!share(&f, twin)) return;
  osh_data_close();
  why_not("the system does not duplicate a shared mapping (mremap); keep symmetric objects on the heap (shmem_malloc)");
}

void osh_data_close(void) {
  for (uint32_t i = 0; i < osh.nrange; i++)
    if (make_private(&osh.range[i])) osh_say("finalize", "no memory to give the program its variables back: they stay shared with the peers' view");
  forget_ranges();
  if (block) gshmem_block_drop(block);
  block = 0;
}
