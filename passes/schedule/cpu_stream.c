/* cpu_stream: what the values behind a product read of memory that lies far off.
 *
 * A value reads each element of a tensor of the product's shape once, along its rows: that tensor
 * is a stream. Streams that the second-level cache would not hold are worth asking for while the
 * product is made (docs/decisions/0070-streams.md). Needs the values of a block; changes
 * nothing. */
#include "passes/schedule/product.h"

enum { FAR_SLICE = TUNED(65536, 64) }; /* bytes of a slice that is far */

typedef struct {
    KernelBuild *b;
    const Arg *strip;
    const int *axis;
    int64_t count;
    StreamList *to;
    int64_t bytes; /* of all streams */
} Streams;

void product_loads(const Expr *e, bool *seen, void (*visit)(void *ctx, const Expr *load),
                   void *ctx) {
    if (seen[e->id]) {
        return;
    }
    seen[e->id] = true;
    for (int i = 0; i < e->nkid; i++) {
        product_loads(e->kid[i], seen, visit, ctx);
    }
    if (e->kind == EXPR_LOAD) {
        visit(ctx, e);
    }
}

static void add_stream(void *ctx, const Expr *e) {
    Streams *s = ctx;
    IndexTable *t = &s->b->k->index;
    Stream stream = {.arg = e->arg, .at = e->index};
    int64_t column;
    if (e->nin > 0 || e->arg == s->strip || !index_stride(e->index, s->axis[0], &stream.batch) ||
        !index_stride(e->index, s->axis[1], &stream.row) ||
        !index_stride(e->index, s->axis[2], &column) || column != 1 || stream.row == 0) {
        return;
    }
    for (int i = 0; i < 3; i++) {
        stream.at = index_subst(t, stream.at, s->axis[i], index_const(t, 0));
    }
    for (int i = 0; i < s->to->count; i++) {
        if (s->to->at[i].arg == e->arg && s->to->at[i].at == stream.at) {
            return;
        }
    }
    VEC_PUSH(s->b->k->arena, s->to, stream);
    /* Slices of a stack are each in another place, and of most stacks no cache holds all. */
    const bool slice = type_count(*kernel_buf(s->b->k, e->arg)->type) > s->count;
    const int64_t own = (int64_t)elem_bytes(e->arg->elem) * s->count;
    s->bytes += slice && own >= FAR_SLICE ? MD_TILE_NEAR : own;
}

void product_streams(KernelBuild *b, const RootList *roots, const Arg *strip, const int *axis,
                     int64_t count, StreamList *to) {
    Streams s = {b, strip, axis, count, to, 0};
    bool *seen = ARENA_ARRAY(b->scratch, bool, b->k->expr.count + 1);
    for (int i = 0; i < roots->count; i++) {
        product_loads(roots->at[i].value, seen, add_stream, &s);
    }
    if (s.bytes < MD_TILE_NEAR) {
        to->count = 0;
    }
}
