/* cpu_tile: products. The problem becomes a plan of runtime/tile_plan.h, or of the library of
 * --blas, and what follows it elementwise runs on each finished block.
 *
 * Technique: which axes are which of the plan's says cpu_roles.c, what of the product counts
 * cpu_band.c. The result itself is finished in place where one of the values wanted has its layout;
 * else in a strip. Needs a PRODUCT part; gives its tile; changes no values beyond the order of
 * sums, and where tiles of windows are transformed their rounding. */
#include "passes/schedule/tiling.h"
#include "passes/view.h"

#include <string.h>

/* --- the plan --------------------------------------------------------------------------------- */

/* `at` with 0 for every axis that the plan runs over. */
static const Index *plan_offset(const Tiling *p, const Index *at) {
    IndexTable *t = &p->b->k->index;
    for (int k = 0; k < CLASSES; k++) {
        const Class *c = &p->class[k];
        for (int i = c->loops; i < c->n; i++) {
            at = index_subst(t, at, c->digit[i].axis, index_const(t, 0));
        }
    }
    return at;
}

/* --- what follows the product ----------------------------------------------------------------- */

/* Index of every label inside the epilogue: digits of the block's batch, row and column. */
static void block_labels(const Tiling *p, const Index **label) {
    Kernel *k = p->b->k;
    const Index *place[AXES_MAX] = {0};
    int flat[3] = {p->batch, p->across ? p->column : p->row, p->across ? p->row : p->column};
    for (int c = 0; c < SUMMED; c++) {
        const Class *x = &p->class[c];
        int64_t dim[DIGITS];
        const Index *at[DIGITS];
        for (int i = x->loops; i < x->n; i++) {
            dim[i - x->loops] = x->digit[i].extent;
        }
        index_unflatten(&k->index, kernel_axis_index(k, flat[c]), x->n - x->loops, dim, at);
        for (int i = 0; i < x->n; i++) {
            place[x->digit[i].axis] =
                i < x->loops ? kernel_axis_index(k, x->digit[i].axis) : at[i - x->loops];
        }
    }
    for (int l = 0; l < p->of->nlabel; l++) {
        const Radix *r = &p->of->space[l];
        const Index *sum = index_const(&k->index, 0);
        for (int d = 0; d < r->n; d++) {
            sum = index_scale(&k->index, sum, r->digit[d]);
            if (place[r->axis[d]]) {
                sum = index_add(&k->index, sum, place[r->axis[d]]);
            }
        }
        label[l] = sum;
    }
}

/* Everything that is stored, at the place of the block's element. */
static bool block_roots(Tiling *p) {
    KernelBuild *b = p->b;
    const Index *label[3 * MD_RANK];
    p->batch = kernel_axis(b->k, tiling_count(&p->class[BATCH]), "batch");
    p->row = kernel_axis(b->k, tiling_count(&p->class[p->across ? COLUMNS : ROWS]), "m");
    /* The block is read at its column even where there is only one: an index of 0 has no place. */
    int64_t columns = tiling_count(&p->class[p->across ? ROWS : COLUMNS]);
    p->column = kernel_axis(b->k, columns > 1 ? columns : 2, "n");
    block_labels(p, label);
    Buf *block = ARENA_NEW(b->k->arena, Buf);
    Type *type = ARENA_NEW(b->k->arena, Type);
    *type = type_make(p->of->elem, 1, &p->of->count);
    block->type = type;
    block->storage = block;
    block->name = "strip";
    Arg *strip = kernel_arg(b->k, block, ACCESS_READ | ACCESS_WRITE);
    strip->strip = true;
    p->strip_arg = strip;
    p->strip = expr_load(b->k, strip, kernel_axis_index(b->k, p->column), NULL);
    p->block = work_finish(b->work, p->strip, label, &p->roots);
    return p->block != NULL;
}

typedef struct {
    const Kernel *k;
    const Buf *buf;
    const Index *index;
    bool found;
} LoadAt;

static void find_load(void *ctx, const Expr *e) {
    LoadAt *at = ctx;
    at->found = at->found || (kernel_buf(at->k, e->arg) == at->buf && e->index == at->index);
}

/* The next value of a storage that is computed from the old one, element by element: it wants that
 * place, so the product must not be put there first. */
static bool is_update(const Tiling *p, const Root *root) {
    const Kernel *k = p->b->k;
    LoadAt at = {k, kernel_buf(k, root->arg)->final, root->index, false};
    if (at.buf) {
        bool *seen = ARENA_ARRAY(p->b->scratch, bool, k->expr.count + 1);
        product_loads(root->value, seen, find_load, &at);
    }
    return at.found;
}

/* The strides that the plan was made for. */
static bool has_strides(const Tiling *p, const Root *root) {
    IndexTable *t = &p->b->k->index;
    if (p->of->part_of) {
        return kernel_buf(p->b->k, root->arg) == p->of->part_of;
    }
    return index_add(t, root->index, index_scale(t, p->block, -1))->axes == 0;
}

/* The root whose storage takes the product and is finished in place: the product itself, else the
 * first that does not update; -1: none. */
static int root_in_place(const Tiling *p) {
    const RootList *roots = &p->roots;
    for (int i = 0; i < roots->count; i++) {
        if (roots->at[i].value == p->strip && has_strides(p, &roots->at[i])) {
            return i;
        }
    }
    for (int i = 0; i < roots->count; i++) {
        if (roots->at[i].arg->elem == p->of->elem && !is_update(p, &roots->at[i]) &&
            has_strides(p, &roots->at[i])) {
            return i;
        }
    }
    return -1;
}

/* A sum of the product and something of its layout and type, and nothing else: C begins as that. */
static const Arg *added(const Tiling *p) {
    const RootList *roots = &p->roots;
    const Expr *e = roots->count == 1 ? roots->at[0].value : NULL;
    for (int c = 0; c < SUMMED; c++) {
        e = p->class[c].loops > 0 ? NULL : e;
    }
    if (!e || e->kind != EXPR_MAP || e->op != OP_ADD) {
        return NULL;
    }
    const Expr *other = e->in[0] == p->strip ? e->in[1] : e->in[0];
    bool operand = other->arg == p->of->load[0]->arg || other->arg == p->of->load[1]->arg;
    bool fits = (e->in[0] == p->strip) != (e->in[1] == p->strip) && !operand &&
                other->kind == EXPR_LOAD && other->nin == 0 && other->index == roots->at[0].index &&
                other->arg->elem == roots->at[0].arg->elem && !p->of->part_of &&
                has_strides(p, &roots->at[0]);
    return fits ? other->arg : NULL;
}

/* The epilogue as statements; a root in place is stored through the strip. */
static void emit_epilogue(Tiling *p, Tile *tile) {
    KernelBuild *b = p->b;
    RootList roots = {0};
    for (int i = 0; i < p->roots.count; i++) {
        Root root = p->roots.at[i];
        if (i == p->in_place && root.value == p->strip) {
            continue;
        }
        if (i == p->in_place) {
            root.arg = p->strip_arg;
            root.index = kernel_axis_index(b->k, p->column);
        }
        VEC_PUSH(b->scratch, &roots, root);
    }
    if (roots.count == 0) {
        return;
    }
    AxisSet scope = (AxisSet)1 << p->batch;
    for (int c = 0; c < SUMMED; c++) {
        for (int i = 0; i < p->class[c].loops; i++) {
            scope |= (AxisSet)1 << p->class[c].digit[i].axis;
        }
    }
    nest_open(b, &roots);
    nest_lets(b, &tile->body, scope, &roots);
    StmtList *row = nest_loops(b, &tile->body, &p->row, 1, false);
    scope |= (AxisSet)1 << p->row;
    nest_lets(b, row, scope, &roots);
    nest_stage(b, row, scope, &p->column, 1, &roots);
}

/* --- schedules -------------------------------------------------------------------------------- */

static int64_t product_flops(const Tiling *p) {
    int64_t flops = 2;
    for (int c = 0; c < CLASSES; c++) {
        flops = count_add(0, flops, tiling_count(&p->class[c]));
    }
    return flops;
}

/* The same of what the plan computes. */
static int64_t tile_flops(const Tiling *p) {
    int64_t extent[3 * MD_RANK];
    for (int l = 0; l < p->of->nlabel; l++) {
        extent[l] = p->of->space[l].count;
    }
    const int64_t flops = product_flops(p);
    return p->banded == 0 ? flops
                          : band_part(p->banded == 1 ? &p->of->band : &p->of->border[p->banded - 2],
                                      extent, flops);
}

/* What of them transformed tiles spare: multiply-adds, but for those that take as long as the
 * transforms do. */
static int64_t tile_spared(const Tiling *p) {
    enum { IN = 2 * 32, OUT = 2 * 28, WEIGHTS = 2 * 40 }; /* operations for each value, twice */
    const md_tile *plan = &p->plan;
    if (!(plan->is & MD_TILE_WINOGRAD)) {
        return 0;
    }
    const int64_t tiles = count_add(0, md_winograd_lines(plan), md_winograd_tiles(plan));
    const int64_t channels = md_winograd_channels(plan), both = channels * plan->cols.n;
    int64_t work = count_add(0, WEIGHTS * md_winograd_sets(plan), both);
    work = count_add(work, 2 * 16 * tiles, both);
    work = count_add(work, tiles, IN * channels + OUT * plan->cols.n);
    const int64_t all = product_flops(p);
    return all > work ? count_add(0, tiling_times(p), all - work) : 0;
}

/* Do all rows lie side by side in C, and columns not? What follows then runs along rows. */
static bool lies_across(const Tiling *p) {
    Digit m2 = tiling_group(&p->class[ROWS], 0), m1 = tiling_group(&p->class[ROWS], 1);
    Digit n = tiling_group(&p->class[COLUMNS], 0);
    bool flat = m1.extent == 1 || m1.c == m2.extent;
    return n.extent > 1 && n.c != 1 && m2.extent > 1 && m2.c == 1 && flat;
}

Tiling *product_tiling(KernelBuild *b, const Part *part, bool across) {
    Product *of = part->product;
    if (!of->tried) {
        of->tried = true;
        Tiling *p = ARENA_NEW(b->scratch, Tiling);
        p->b = b;
        p->of = of;
        bool fits = tiling_roles(p);
        p->across = fits && across && !p->apart && lies_across(p);
        if (fits && block_roots(p)) {
            p->add = p->apart ? NULL : added(p);
            p->in_place = p->add ? 0 : p->apart ? -1 : root_in_place(p);
            if (!p->add) {
                const int axis[] = {p->batch, p->row, p->column};
                product_streams(b, &p->roots, p->strip_arg, axis, of->count, p->in_place,
                                &p->stream);
            }
            of->tiling = p;
        }
    }
    return of->tiling;
}

/* What an operand is multiplied as: a float of 16 bits, or what it computes in. */
static Elem multiplied_as(const Product *of, int k) {
    Elem elem = of->load[k]->arg->elem;
    return elem == TY_F32 && of->rounds[k] != TY_ERROR ? of->rounds[k] : elem;
}

Elem product_half(const Product *of) {
    Elem a = multiplied_as(of, 0), b = multiplied_as(of, 1);
    Elem half = elem_bytes(a) == 2 ? a : b;
    bool rounded = of->load[0]->arg->elem == TY_F32 && of->rounds[0] != TY_ERROR;
    rounded = rounded || (of->load[1]->arg->elem == TY_F32 && of->rounds[1] != TY_ERROR);
    bool same = a == b,
         mixed = !rounded && (a == TY_F32 || b == TY_F32); /* with a float as it is */
    return (half == TY_BF16 || half == TY_F16) && (same || mixed) ? half : TY_ERROR;
}

/* The kernels convert nothing: operands are stored as what they compute in. */
static bool is_plain(const Product *of) {
    bool plain = of->rounds[0] == TY_ERROR && of->rounds[1] == TY_ERROR;
    return plain && of->load[0]->arg->elem == of->elem && of->load[1]->arg->elem == of->elem;
}

enum { ENDS_FROM = TUNED(12, 8) };

/* So many bytes an element does the epilogue read and write of memory far off: of a high block of
 * them few sets of the second-level cache would hold all. */
static bool ends_by_tile(const Tiling *p) {
    int64_t bytes = 0;
    for (int i = 0; i < p->stream.count; i++) {
        bytes += (int64_t)elem_bytes(p->stream.at[i].arg->elem);
    }
    return bytes >= ENDS_FROM;
}

md_tile_shape product_shape(const Tiling *p) {
    int64_t flags = p->add ? MD_TILE_ADD : p->in_place < 0 ? MD_TILE_NO_C : 0;
    flags |= p->across ? MD_TILE_ACROSS : 0;
    flags |= p->stream.count > 0 ? MD_TILE_STREAMS : 0;
    Elem half = product_half(p->of);
    if (half != TY_ERROR) {
        const Arg *a = p->of->load[p->swapped]->arg, *b = p->of->load[!p->swapped]->arg;
        flags |= half == TY_F16 ? MD_TILE_F16 : 0;
        flags |= ends_by_tile(p) ? MD_TILE_ENDS : 0;
        flags |= p->of->copy[p->swapped] ? MD_TILE_MADE : 0;
        flags |= multiplied_as(p->of, 0) != multiplied_as(p->of, 1) ? MD_TILE_EXACT : 0;
        flags |= MD_TILE_HALF | (a->elem == TY_F32 ? MD_TILE_WIDE_A : 0) |
                 (b->elem == TY_F32 ? MD_TILE_WIDE_B : 0);
    }
    return tiling_shape(p, flags);
}

/* A copy can be made element by element of the batch: its first axis is all of that, and the
 * product reads it for rows. */
static bool copy_fits(const Tiling *p) {
    const Type *first = p->of->copy[p->swapped], *second = p->of->copy[!p->swapped];
    if (!first && !second) {
        return true;
    }
    for (int c = 0; c < CLASSES; c++) {
        if (p->class[c].loops > 0) {
            return false;
        }
    }
    return !second && first->dim[0] > p->b->k->threads && p->class[BATCH].ngroup == 1 &&
           tiling_group(&p->class[BATCH], 0).image;
}

/* One element of the batch at a time, for each worker. */
static void emit_copy(Tiling *p, Tile *tile) {
    KernelBuild *b = p->b;
    const Type *type = p->of->copy[p->swapped];
    const Index *at[MD_RANK];
    int axis[MD_RANK], n = 0;
    /* In 16 bits too, which machines without pairs of them make floats of at once. */
    Type one = {.elem = p->of->elem, .rank = 1, .dim = {type_count(*type) / type->dim[0]}};
    Arg *halo = kernel_work(b, one, p->workers > 1 ? p->workers : 0, "halo");
    const Type *room = kernel_buf(b->k, halo)->type;
    halo->part = room->dim[room->rank - 1];
    tile->a = tile->halo = halo;
    at[0] = kernel_axis_index(b->k, p->batch);
    for (int i = 1; i < type->rank; i++) {
        axis[n] = kernel_axis(b->k, type->dim[i], "i");
        at[i] = kernel_axis_index(b->k, axis[n++]);
    }
    RootList roots = {0};
    VEC_PUSH(b->scratch, &roots, work_copy(b->work, p->swapped, tile->halo, at));
    AxisSet scope = (AxisSet)1 << p->batch;
    nest_open(b, &roots);
    nest_lets(b, &tile->copy, scope, &roots);
    StmtList *row = nest_loops(b, &tile->copy, axis, n - 1, false);
    scope = axes_with(scope, axis, n - 1);
    nest_lets(b, row, scope, &roots);
    nest_stage(b, row, scope, &axis[n - 1], 1, &roots);
}

/* The plan; false where it would rather have a copy of all the batch, whose panels it packs once.
 * Such a copy takes no more than the panels, or more the oftener they would be packed. */
static bool make_plan(Tiling *p) {
    const Type *copy = p->of->copy[p->swapped];
    md_tile_shape shape = product_shape(p);
    shape.flags |= MD_TILE_BATCHED | MD_TILE_WINOGRAD;
    p->plan = md_tile_plan(shape, (int)elem_bytes(p->of->elem));
    const md_tile *plan = &p->plan;
    if (!copy || !(plan->is & MD_TILE_BATCHED)) {
        return true;
    }
    const double panels = (double)(plan->k0.n * plan->k1.n * plan->k2.n * plan->cols.n);
    const double rows = (double)(plan->r1.n * plan->r2.n);
    if ((double)type_count(*copy) * rows <= panels * MD_TILE_BATCHED_ROWS) {
        return false;
    }
    shape.flags &= ~(int64_t)MD_TILE_BATCHED;
    p->plan = md_tile_plan(shape, (int)elem_bytes(p->of->elem));
    return true;
}

static bool tile_fits(KernelBuild *b, const Part *part, void **plan) {
    const Product *of = part->product;
    Tiling *p = is_plain(of) || product_half(of) != TY_ERROR ? product_tiling(b, part, true) : NULL;
    p = p && copy_fits(p) && make_plan(p) ? p : NULL;
    *plan = p;
    if (p) {
        tiling_band(p);
        p->workers = md_tile_most_parts(&p->plan, b->k->threads);
    }
    return p != NULL;
}

static bool library_fits(KernelBuild *b, const Part *part, void **plan) {
    Tiling *p = b->work->library && is_plain(part->product) ? product_tiling(b, part, true) : NULL;
    *plan = p;
    return p && md_blas_plan(product_shape(p), &p->library);
}

int64_t product_bytes(const Product *of) {
    int64_t bytes = 0;
    for (int k = 0; k < 2; k++) {
        int64_t count = 1;
        for (int l = 0; l < of->nlabel; l++) {
            bool has = of->in[l] & (k == 0 ? IN_A : IN_B);
            count = count_add(0, count, has ? of->space[l].count : 1);
        }
        bytes = count_add(bytes, (int64_t)elem_bytes(of->load[k]->arg->elem), count);
    }
    return count_add(bytes, (int64_t)elem_bytes(of->elem), of->count);
}

/* What a product in tiles takes beside its multiplications, in operations of loops: its call,
 * moving elements to panels, columns that fill no vector among them, and adding up the lanes of
 * dot products. Measured with products of 64 to 65,536 multiplications. */
static int64_t tile_rest(const Tiling *p) {
    enum { CALL = 300, MOVE = 4, TURN = 1, COPY = 1, DOT = 50 };
    const md_tile *plan = &p->plan;
    const int64_t lanes = 64 / plan->elem, rows = plan->r1.n * plan->r2.n;
    const int64_t sums = plan->k0.n * plan->k1.n * plan->k2.n, columns = plan->cols.n;
    int64_t batches = count_add(0, tiling_times(p), plan->b1.n * plan->b2.n);
    if (plan->is & (MD_TILE_DOTS | MD_TILE_ALONG)) {
        return count_add(CALL, count_add(0, batches, DOT), rows * columns);
    }
    int64_t move = plan->k2.n < lanes ? MOVE : TURN; /* blocks are turned in registers */
    int64_t moved = plan->is & MD_TILE_PACKED ? move * columns : COPY * (columns % lanes);
    return count_add(CALL, count_add(0, batches, sums), moved);
}

static Cost tile_cost(KernelBuild *b, const Part *part, const void *plan) {
    const Tiling *p = plan;
    (void)b;
    int64_t flops = count_add(0, tiling_times(p), tile_flops(p));
    int workers = p->workers > 1 ? p->workers : 1;
    return (Cost){.loop = tile_rest(p) / workers,
                  .tile = (flops - tile_spared(p)) / workers,
                  .bytes = product_bytes(part->product),
                  .launches = workers > 1};
}

/* Whoever asks for the library wants it wherever it fits: it is said to be free. */
static Cost library_cost(KernelBuild *b, const Part *part, const void *plan) {
    (void)b;
    (void)plan;
    return (Cost){.bytes = product_bytes(part->product)};
}

Tile *product_emit(KernelBuild *b, Tiling *p) {
    StmtList *list = &b->k->body;
    IndexTable *t = &b->k->index;
    for (int c = 0; c < SUMMED; c++) {
        for (int i = 0; i < p->class[c].loops; i++) {
            list = nest_loops(b, list, &p->class[c].digit[i].axis, 1, false);
        }
    }
    Tile *tile = stmt_tile(b->k, list)->tile;
    tile->batch = p->batch;
    tile->row = p->row;
    tile->column = p->column;
    tile->strip = p->strip_arg;
    tile->add = p->add;
    tile->count = p->of->count;
    const Expr *first = p->of->load[p->swapped], *second = p->of->load[!p->swapped];
    tile->a = first->arg;
    tile->b = second->arg;
    tile->as[0] = multiplied_as(p->of, p->swapped);
    tile->as[1] = multiplied_as(p->of, !p->swapped);
    tile->at_a = plan_offset(p, first->index);
    tile->at_b = plan_offset(p, second->index);
    tile->at_c = index_const(t, 0);
    if (p->in_place >= 0) {
        /* The strides of that storage: its home may be a slice of a stack. */
        tile->c = p->roots.at[p->in_place].arg;
        const Index *at = p->roots.at[p->in_place].index;
        at = index_subst(t, at, p->batch, index_const(t, 0));
        at = index_subst(t, at, p->row, index_const(t, 0));
        tile->at_c = index_subst(t, at, p->column, index_const(t, 0));
    }
    if (!p->add) {
        emit_epilogue(p, tile);
    }
    tile->owner = p->of->owner;
    tile->flops = product_flops(p);
    return tile;
}

static void library_emit(KernelBuild *b, const Part *part, void *plan) {
    (void)part;
    Tiling *p = plan;
    Tile *tile = product_emit(b, p);
    tile->blas = true;
    tile->nplan = (int)(sizeof p->library / sizeof(int64_t));
    memcpy(tile->plan, &p->library, sizeof p->library);
}

int64_t product_task(const md_tile *plan) {
    const int64_t sums = plan->k0.n * plan->k1.n * plan->k2.n;
    return plan->r1.n * plan->r2.n * plan->cols.n * sums / plan->chunks;
}

/* Multiply-adds of a task from which on a loop over tasks that knows no plan as a constant, some
 * 0.1 us, takes no time beside them; of many products those are large that come near (many.c). */
enum { LARGE = 1 << 21 };

bool product_large(const md_tile *plan) {
    return (plan->is & (MD_TILE_BATCHED | MD_TILE_WINOGRAD)) || product_task(plan) > LARGE;
}

static void tile_emit(KernelBuild *b, const Part *part, void *plan) {
    (void)part;
    Tiling *p = plan;
    Tile *tile = product_emit(b, p);
    tile->nplan = (int)(sizeof p->plan / sizeof(int64_t));
    if (tile->nplan > TILE_PLAN) {
        BUG("the plan of a product outgrew its place");
    }
    memcpy(tile->plan, &p->plan, sizeof p->plan);
    tile->outer = product_outer(&p->plan);
    tile->narrow = md_tile_narrow(&p->plan);
    tile->columns = md_tile_columns(&p->plan);
    tile->large = product_large(&p->plan);
    tile->banded = p->banded;
    tile->flops = tile_flops(p);
    tile->spared = tile_spared(p);
    for (int i = 0; i < p->stream.count && (p->plan.is & MD_TILE_STREAMS); i++) {
        VEC_PUSH(b->k->arena, &tile->stream, p->stream.at[i]);
    }
    for (int i = 0; i < TILE_MACHINES && !(p->plan.is & MD_TILE_HALF); i++) {
        tile->bodies[i] = md_tile_bodies(&p->plan, tile_machine[i].bytes, tile_machine[i].many);
    }
    tile->team = p->workers > 1;
    if (p->of->copy[p->swapped]) {
        emit_copy(p, tile);
    }
    if (p->plan.is & MD_TILE_WINOGRAD) { /* what a worker has, and what all of them read */
        Type slice = {.elem = p->of->elem, .rank = 1, .dim = {p->plan.slice}};
        Type all = {.elem = p->of->elem, .rank = 1, .dim = {p->plan.partial}};
        tile->work = kernel_work(b, slice, p->workers > 1 ? p->workers : 0, "tiles");
        tile->common =
            kernel_work(b, all, 0, p->plan.is & MD_TILE_WINOGRAD_SUM ? "sums" : "weights");
        return;
    }
    int64_t work = (int64_t)md_tile_workspace(&p->plan, p->workers);
    if (work > 0) {
        int64_t elems = work / (int64_t)elem_bytes(p->of->elem);
        bool shares = p->workers > 1 && p->plan.partial == 0 && elems % p->workers == 0;
        Type type = {.elem = p->of->elem, .rank = 1, .dim = {shares ? elems / p->workers : elems}};
        tile->work = kernel_work(b, type, shares ? p->workers : 0, "panels");
    }
}

const Schedule cpu_tile = {"tile", 1 << PART_PRODUCT, tile_fits, tile_cost, tile_emit};
const Schedule cpu_library = {"library", 1 << PART_PRODUCT, library_fits, library_cost,
                              library_emit};
