/* exec_small.c - small collectives: everybody's data are in the arrival lines or slabs, nobody waits again. */
#include "exec_int.h"

uint8_t *hot_exec_at(const hot_coll *c, int32_t r, uint64_t ref) {
  const hot_team *t = c->team;
  const hot_world *w = t->world;
  if (HOT_REF_SEG(ref) == 0) return w->whole[t->pe[r]] + HOT_REF_OFF(ref);
  for (uint32_t i = 0; i < w->nseg; i++)
    if (w->seg[i].id == HOT_REF_SEG(ref)) return w->seg[i].base[t->pe[r]] + (HOT_REF_OFF(ref) - w->seg[i].off);
  return NULL;
}

/* Where rank r's data for me are: my own buffer, its arrival line, or its slab. */
static const uint8_t *data_of(const hot_coll *c, int32_t r) {
  const hot_team *t = c->team;
  uint32_t op = c->call.op;
  int per_peer = op == HOT_OP_REDUCE_SCATTER || op == HOT_OP_ALL_TO_ALL || op == HOT_OP_SCATTER;
  uint64_t off = per_peer ? c->piece * (uint64_t)t->me : 0;
  if (r == t->me) return (const uint8_t *)c->call.in + off;
  const hot_arrival *a = hot_line_of(t, t->me, c->seq, r);
  return c->piece <= HOT_INLINE_BYTES ? a->inl : hot_exec_at(c, r, a->stage_ref) + off;
}

static void move(void *dst, const void *src, uint64_t len) {
  if (len && dst != src) memmove(dst, src, len);
}

static int32_t reduce_all(const hot_coll *c) {
  int32_t n = c->team->n;
  const void *few[64], **src = few;
  if (n > 64) src = __builtin_alloca((size_t)n * sizeof *src);
  for (int32_t r = 0; r < n; r++) src[r] = data_of(c, r);
  void *dst = c->call.out;
  uint64_t count = c->call.count;
  return hot_reduce((int)c->call.dtype, (int)c->call.redop, &dst, 1, src, n, count, c->call.scale, n);
}

/* out is the concatenation of everybody's pieces; my own first, as `in` may lie where others' pieces go. */
static void collect_all(const hot_coll *c) {
  int32_t n = c->team->n, me = c->team->me;
  uint8_t *out = c->call.out;
  move(out + c->piece * (uint64_t)me, data_of(c, me), c->piece);
  for (int32_t r = 0; r < n; r++)
    if (r != me) move(out + c->piece * (uint64_t)r, data_of(c, r), c->piece);
}

static void collect_v(const hot_coll *c) {
  uint8_t *at = c->call.out;
  for (int32_t r = 0; r < c->team->n; at += c->call.counts[r], r++) move(at, data_of(c, r), c->call.counts[r]);
}

/* A team of one: my piece to myself. */
static void own_v(const hot_coll *c) {
  const uint64_t *v = c->call.counts;
  move((uint8_t *)c->call.out + v[3], (const uint8_t *)c->call.in + v[1], v[0]);
}

int32_t hot_exec_small(hot_coll *c) {
  int at_root = c->team->me == c->call.root;
  switch (c->call.op) {
    case HOT_OP_BROADCAST:
    case HOT_OP_CAST:
    case HOT_OP_SCATTER: move(c->call.out, data_of(c, c->call.root), c->piece); return HOT_OK;
    case HOT_OP_ALL_REDUCE:
    case HOT_OP_REDUCE_SCATTER: return reduce_all(c);
    case HOT_OP_REDUCE: return at_root ? reduce_all(c) : HOT_OK;
    case HOT_OP_EXCHANGE:
    case HOT_OP_ALL_GATHER:
    case HOT_OP_ALL_TO_ALL: collect_all(c); return HOT_OK;
    case HOT_OP_GATHER:
      if (at_root) collect_all(c);
      return HOT_OK;
    case HOT_OP_ALL_GATHER_V: collect_v(c); return HOT_OK;
    case HOT_OP_ALL_TO_ALL_V: own_v(c); return HOT_OK;
    default: return GSHMEM_EINTERNAL;
  }
}
