/* fuse_map: which atoms a value reads elsewhere than at its own place.
 *
 * Technique: the value is asked for once, symbolically, at a row and at one axis for each length of
 * a row; each read of an atom is held against the index vector that the atom itself has there.
 * Needs atoms that are chosen; gives facts of one value and number of rows, whatever unit it is
 * part of, so merging compares and builds nothing. */
#include "passes/fuse_units.h"

#include "passes/lower/value.h"
#include "passes/view.h"

typedef struct {
    Fuse *fuse;
    ReadMap *map;
    int row; /* axis */
} Reader;

static void inner_axis(Values *v, int64_t count) {
    if (inner_of(v, count)) {
        return;
    }
    int axis = kernel_axis(v->k, count, "j");
    InnerSpace inner = {.count = count, .naxis = 1, .axis = {axis}, .set = (AxisSet)1 << axis};
    VEC_PUSH(v->scratch, &v->inner, inner);
}

/* The index vector of `node` in a kernel of these rows; false: it does not have them. */
static bool own_place(const Reader *r, Values *v, const Node *node, const Index **at) {
    int leading;
    if (!fuse_split(*node->type, r->map->rows, &leading)) {
        return false;
    }
    const Index *row = kernel_axis_index(v->k, r->row);
    index_unflatten(&v->k->index, row, leading, node->type->dim, at);
    int64_t inner = count_dims(node->type->rank - leading, node->type->dim + leading);
    if (inner > 1) {
        inner_axis(v, inner);
    }
    inner_place(v, node, leading, at);
    return true;
}

static void note_away(Reader *r, uint32_t id) {
    for (int i = 0; i < r->map->away.count; i++) {
        if (r->map->away.at[i] == id) {
            return;
        }
    }
    VEC_PUSH_FROM(r->fuse->scratch, &r->map->away, id, 2);
}

static const Expr *read_stored(void *ctx, Values *v, const Node *node, const Index *const *at) {
    Reader *r = ctx;
    const NodeInfo *n = info_of(r->fuse, node);
    if (!n->leaf && (node == r->map->root || !n->atom || n->again)) {
        return NULL;
    }
    if (n->unit && node != r->map->root) {
        const Index *here[MD_RANK];
        bool same = own_place(r, v, node, here);
        for (int i = 0; same && i < node->type->rank; i++) {
            same = here[i] == at[i];
        }
        if (!same) {
            note_away(r, node->id);
        }
    }
    Buf *fake = &r->fuse->fake[node->type->elem]; /* nobody asks which number it is */
    fake->type = node->type;
    const Index *flat = index_flatten(&v->k->index, node->type->rank, node->type->dim, at);
    return expr_load(v->k, kernel_arg(v->k, fake, ACCESS_READ), flat, v->guard);
}

static void read_all(Fuse *s, ReadMap *map) {
    enum { SCRATCH_CHUNK = 8192 };
    Arena scratch = {.chunk_bytes = SCRATCH_CHUNK};
    Kernel *k = kernel_new(&scratch, 1);
    Values v;
    values_open(&v, k, &scratch);
    Reader r = {.fuse = s, .map = map, .row = kernel_axis(k, map->rows, "r")};
    v.stored = read_stored;
    v.ctx = &r;
    if (fold_is_loop(map->root)) {
        inner_axis(&v, fold_count(map->root));
    }
    const Index *at[MD_RANK];
    map->fits = own_place(&r, &v, map->root, at);
    if (map->fits && !node_has_kernel(map->root)) {
        value_at(&v, map->root, at);
    }
    arena_free(&scratch);
}

const ReadMap *read_map(Fuse *s, const Node *root, int64_t rows) {
    ReadMaps *maps = &s->map[root->id];
    for (int i = 0; i < maps->count; i++) {
        if (maps->at[i]->rows == rows) {
            return maps->at[i];
        }
    }
    ReadMap *map = ARENA_NEW(s->scratch, ReadMap);
    *map = (ReadMap){.root = root, .rows = rows};
    read_all(s, map);
    VEC_PUSH_FROM(s->scratch, maps, map, 1);
    return map;
}
