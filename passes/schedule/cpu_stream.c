/* cpu_stream: what the values behind a product read and write of memory that lies far off.
 *
 * A value reads each element of a tensor of the product's shape once, along its rows: that tensor
 * is a stream. So is one that is written beside C, unless it may lie in the place of one that is
 * read. Streams that the second-level cache would not hold are worth asking for while the product
 * is made (docs/decisions/0070-streams.md). Needs the values of a block; changes nothing. */
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

/* Element by element along rows, as the strip has them? */
static bool is_stream(const Streams *s, const Arg *arg, const Index *index, Stream *stream) {
    int64_t column;
    *stream = (Stream){.arg = arg, .at = index};
    if (arg == s->strip || !index_stride(index, s->axis[0], &stream->batch) ||
        !index_stride(index, s->axis[1], &stream->row) ||
        !index_stride(index, s->axis[2], &column) || column != 1 || stream->row == 0) {
        return false;
    }
    for (int i = 0; i < 3; i++) {
        stream->at = index_subst(&s->b->k->index, stream->at, s->axis[i],
                                 index_const(&s->b->k->index, 0));
    }
    return true;
}

static void push_stream(Streams *s, Stream stream) {
    VEC_PUSH(s->b->k->arena, s->to, stream);
    /* Slices of a stack are each in another place, and of most stacks no cache holds all. */
    const bool slice = type_count(*kernel_buf(s->b->k, stream.arg)->type) > s->count;
    const int64_t own = (int64_t)elem_bytes(stream.arg->elem) * s->count;
    s->bytes += slice && own >= FAR_SLICE ? MD_TILE_NEAR : own;
}

static void add_read(void *ctx, const Expr *e) {
    Streams *s = ctx;
    Stream stream;
    if (e->nin > 0 || !is_stream(s, e->arg, e->index, &stream)) {
        return;
    }
    for (int i = 0; i < s->to->count; i++) {
        if (s->to->at[i].arg == e->arg && s->to->at[i].at == stream.at) {
            return;
        }
    }
    push_stream(s, stream);
}

/* A read stream in whose place `to` may lie, which no other result has taken: memory of one size
 * and type, the same steps. */
static bool takes_place(const Streams *s, const Stream *to, bool *taken, int reads) {
    const int64_t size = type_count(*kernel_buf(s->b->k, to->arg)->type);
    for (int i = 0; i < reads; i++) {
        Stream *of = &s->to->at[i];
        if (!taken[i] && of->arg->elem == to->arg->elem && of->row == to->row &&
            of->batch == to->batch && type_count(*kernel_buf(s->b->k, of->arg)->type) == size) {
            taken[i] = of->written = true;
            return true;
        }
    }
    return false;
}

static void add_written(Streams *s, const RootList *roots, int in_place) {
    const int reads = s->to->count;
    bool *taken = ARENA_ARRAY(s->b->scratch, bool, reads + 1);
    for (int i = 0; i < roots->count; i++) {
        const Root *root = &roots->at[i];
        Stream stream;
        if (i != in_place && root->arg != NULL && root->add == OP_CONST &&
            is_stream(s, root->arg, root->index, &stream) &&
            !takes_place(s, &stream, taken, reads)) {
            stream.written = true;
            push_stream(s, stream);
        }
    }
}

void product_streams(KernelBuild *b, const RootList *roots, const Arg *strip, const int *axis,
                     int64_t count, int in_place, StreamList *to) {
    Streams s = {b, strip, axis, count, to, 0};
    bool *seen = ARENA_ARRAY(b->scratch, bool, b->k->expr.count + 1);
    for (int i = 0; i < roots->count; i++) {
        product_loads(roots->at[i].value, seen, add_read, &s);
    }
    add_written(&s, roots, in_place);
    if (s.bytes < MD_TILE_NEAR) {
        to->count = 0;
    }
}
