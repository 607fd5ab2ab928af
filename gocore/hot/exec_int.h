/* exec_int.h - what the files of the collective executor share; not for anybody else. */
#ifndef GSHMEM_EXEC_INT_H
#define GSHMEM_EXEC_INT_H

#include "exec.h"

int32_t hot_coll_check(hot_coll *c);                          /* HOT_OK, or why the call is refused; fills desc and lengths */
uint64_t hot_counts_hash(const uint64_t *counts, int32_t n);  /* what members compare of a table of sizes */
uint8_t *hot_exec_slab(const hot_coll *c);                    /* my half of the slab for this operation */
int32_t hot_exec_arrivals(hot_coll *c, int64_t until_ns);     /* HOT_OK: all have come and agree */
int32_t hot_exec_small(hot_coll *c);                          /* finishes from lines and slabs */
int32_t hot_exec_plan(hot_coll *c);                           /* finds the plan of the next section */
int32_t hot_exec_steps(hot_coll *c, int64_t until_ns);        /* runs it */
void hot_exec_cast_begin(hot_coll *c);                        /* HOT_OP_CAST of several members, instead of arriving */
int32_t hot_exec_cast(hot_coll *c, int64_t until_ns);         /* runs it to its end */
int hot_exec_cast_ahead(const hot_coll *c, int32_t r);        /* has rank r begun more casts than I have? */
int32_t hot_exec_finish(hot_coll *c, int32_t status);         /* the end: the team is free again */
int32_t hot_exec_fail(hot_coll *c, int32_t status);           /* the same, and the team is poisoned everywhere */

/* Has rank r not yet done what the collective waits for? */
typedef int (*hot_behind)(const hot_coll *c, int32_t r);

/* After an alarm: HOT_OK to go on, or the status the collective fails with (culprit set). `behind` may be NULL. */
int32_t hot_exec_look(hot_coll *c, hot_behind behind);

/* One turn of waiting within a collective: HOT_OK look again, HOT_PENDING slice ended, negative failed. */
int32_t hot_exec_turn(hot_coll *c, int64_t until_ns, hot_behind behind);

/* Is it time to look where the others are? Not while a wait still spins, then every now and then. */
static inline int hot_exec_look_around(hot_coll *c) { return c->wait.rounds >= hot_spin(c->team->world) && (++c->turns & 15u) == 0; }

/* A word of rank r's mapped memory by reference. */
uint8_t *hot_exec_at(const hot_coll *c, int32_t r, uint64_t ref);

#endif
