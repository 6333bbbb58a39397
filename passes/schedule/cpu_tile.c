/* cpu_tile: products. The problem becomes a plan of runtime/tile_plan.h, or of the library of
 * --blas, and what follows it elementwise runs on each finished block.
 *
 * Technique: the strides of each axis are read off the loads of the operands. Axes of a class
 * (batch, rows, columns, summed) that lie behind one another in all operands merge; rows and
 * columns that the plan has no room for become batches, and batches loops around it. The result
 * itself is finished in place where one of the values wanted has its layout; else in a strip. Needs
 * a PRODUCT part; gives its tile; changes no values beyond the order of sums. */
#include "passes/schedule/tiling.h"
#include "passes/view.h"

#include <math.h>
#include <string.h>

/* --- labels to axes --------------------------------------------------------------------------- */

static int class_of(const Tiling *p, int label) {
    int in = p->of->in[label];
    if (!(in & IN_C)) {
        return SUMMED;
    }
    return (in & IN_A) && (in & IN_B) ? BATCH : !(in & IN_A) == p->swapped ? ROWS : COLUMNS;
}

/* Are places of this label lines of windows that have a border, which a plan can leave out? */
static bool has_lines(const Product *of, int label) {
    bool lines = false;
    for (int i = 0; i < of->nborder; i++) {
        lines = lines || of->border[i].first == label;
    }
    return lines && product_half(of) == TY_ERROR;
}

/* Reads the strides of every axis off the loads; false when one is no plain stride. */
static bool read_strides(Tiling *p) {
    AxisSet all = 0;
    memset(p->class, 0, sizeof p->class);
    for (int l = 0; l < p->of->nlabel; l++) {
        Class *c = &p->class[class_of(p, l)];
        const Radix *r = &p->of->space[l];
        for (int d = 0; d < r->n; d++) {
            Digit digit = {.axis = r->axis[d], .extent = r->digit[d], .lines = has_lines(p->of, l)};
            int64_t *stride[2] = {&digit.a, &digit.b};
            for (int k = 0; k < 2; k++) {
                const Index *at = p->of->load[k != p->swapped]->index;
                if (!index_stride(at, r->axis[d], stride[k])) {
                    return false;
                }
            }
            if (!index_stride(p->of->place, r->axis[d], &digit.c)) {
                return false;
            }
            all |= (AxisSet)1 << r->axis[d];
            if (digit.extent != 1) {
                if (c->n == DIGITS) {
                    return false;
                }
                c->digit[c->n++] = digit;
            }
        }
    }
    return ((p->of->load[0]->index->axes | p->of->load[1]->index->axes) & ~all) == 0;
}

static bool joins(const Digit *outer, const Digit *inner) {
    return !outer->lines && !inner->lines && outer->a == inner->a * inner->extent &&
           outer->b == inner->b * inner->extent && outer->c == inner->c * inner->extent;
}

/* Sorts by the stride in C (summed axes: in A or B), merges, leaves what does not fit as loops. */
static void group_axes(Class *c, int most, int key) {
    for (int i = 1; i < c->n; i++) {
        for (int j = i; j > 0; j--) {
            Digit *x = &c->digit[j - 1], *y = &c->digit[j];
            int64_t sx = key == 0 ? x->c : key == 1 ? x->a : x->b;
            int64_t sy = key == 0 ? y->c : key == 1 ? y->a : y->b;
            if (sx >= sy) {
                break;
            }
            Digit t = *x;
            *x = *y;
            *y = t;
        }
    }
    c->ngroup = 0;
    c->loops = c->n;
    while (c->loops > 0) {
        Digit next = c->digit[c->loops - 1];
        if (c->ngroup > 0 && joins(&next, &c->group[0])) {
            next.a = c->group[0].a;
            next.b = c->group[0].b;
            next.c = c->group[0].c;
            next.extent *= c->group[0].extent;
            c->group[0] = next;
        } else if (c->ngroup < most) {
            memmove(&c->group[1], &c->group[0], sizeof next * (GROUPS - 1));
            c->group[0] = next;
            c->ngroup++;
        } else {
            break;
        }
        c->loops--;
    }
}

static void digit_to(Class *from, int i, Class *to) {
    to->digit[to->n++] = from->digit[i];
    memmove(&from->digit[i], &from->digit[i + 1], sizeof *from->digit * (size_t)(from->n - i - 1));
    from->n--;
}

/* Rows and columns that the plan has no axes for are batches in which the other operand is the same
 * again: the outermost, or the `smallest`, as far as there is room. True: there are such. */
static bool move_to_batch(Class *from, int most, bool smallest, Class *batch) {
    group_axes(from, most, 0);
    bool moved = from->loops > 0;
    while (from->loops > 0 && batch->n < DIGITS) {
        int at = 0;
        for (int i = 1; smallest && i < from->n; i++) {
            at = from->digit[i].extent < from->digit[at].extent ? i : at;
        }
        digit_to(from, at, batch);
        group_axes(from, most, 0);
    }
    return moved;
}

/* The groups of the roles that are set; false: an operand is read at no plain strides. */
static bool group_all(Tiling *p, bool smallest, bool *moved) {
    if (!read_strides(p)) {
        return false;
    }
    Class *class = p->class;
    bool rows = move_to_batch(&class[ROWS], 2, smallest, &class[BATCH]);
    bool columns = move_to_batch(&class[COLUMNS], 1, smallest, &class[BATCH]);
    *moved = rows || columns;
    group_axes(&class[BATCH], 2, 0);
    group_axes(&class[SUMMED], GROUPS, 1);
    if (class[SUMMED].loops > 0) {
        group_axes(&class[SUMMED], GROUPS, 2);
    }
    return true;
}

static int64_t class_count(const Class *c) {
    int64_t count = 1;
    for (int i = c->loops; i < c->n; i++) {
        count *= c->digit[i].extent;
    }
    return count;
}

/* How often the loops around the tile run it. */
static int64_t tile_times(const Tiling *p) {
    int64_t times = 1;
    for (int c = 0; c < SUMMED; c++) {
        for (int i = 0; i < p->class[c].loops; i++) {
            times = count_add(0, times, p->class[c].digit[i].extent);
        }
    }
    return times;
}

/* The last axis of the result should be the plan's column. */
static int role_cost(const Tiling *p) {
    const Class *n = &p->class[COLUMNS];
    return n->ngroup == 0 ? 20 : n->group[0].c != 1 ? 10 : 0;
}

/* Where batches have been made of rows or columns, about the time: products of whole vectors, what
 * is read for each batch, and packed, or turned into columns that do not lie together. */
static double role_time(const Tiling *p) {
    const Class *n = &p->class[COLUMNS];
    double lanes = MD_ALIGN / (double)elem_bytes(p->of->elem), turn = 0.6, read = 0.25;
    double rows = (double)class_count(&p->class[ROWS]), columns = (double)class_count(n);
    double sum = (double)class_count(&p->class[SUMMED]);
    double time = (rows * ceil(columns / lanes) + read * (rows + columns)) * sum;
    time += n->ngroup > 0 && n->group[0].b != 1 ? turn * columns * sum : 0;
    time += n->ngroup > 0 && n->group[0].c != 1 ? turn * rows * columns : 0;
    return time * (double)class_count(&p->class[BATCH]) * (double)tile_times(p);
}

/* --- the plan --------------------------------------------------------------------------------- */

static Digit group_at(const Class *c, int from_last) {
    Digit one = {.axis = -1, .extent = 1};
    int i = c->ngroup - 1 - from_last;
    return i >= 0 ? c->group[i] : one;
}

static md_tile_shape plan_shape(const Tiling *p, int64_t flags) {
    Digit b2 = group_at(&p->class[BATCH], 0), b1 = group_at(&p->class[BATCH], 1);
    Digit m2 = group_at(&p->class[ROWS], 0), m1 = group_at(&p->class[ROWS], 1);
    Digit n = group_at(&p->class[COLUMNS], 0);
    Digit k2 = group_at(&p->class[SUMMED], 0), k1 = group_at(&p->class[SUMMED], 1),
          k0 = group_at(&p->class[SUMMED], 2), ko = group_at(&p->class[SUMMED], 3);
    md_tile_shape s = {
        .b1 = b1.extent,
        .b2 = b2.extent,
        .m1 = m1.extent,
        .m2 = m2.extent,
        .n = n.extent,
        .k0 = k0.extent,
        .k1 = k1.extent,
        .k2 = k2.extent,
        .a_b1 = b1.a,
        .a_b2 = b2.a,
        .a_m1 = m1.a,
        .a_m2 = m2.a,
        .a_k0 = k0.a,
        .a_k1 = k1.a,
        .a_k2 = k2.a,
        .b_b1 = b1.b,
        .b_b2 = b2.b,
        .b_k0 = k0.b,
        .b_k1 = k1.b,
        .b_k2 = k2.b,
        .b_n = n.b,
        .c_b1 = b1.c,
        .c_b2 = b2.c,
        .c_m1 = m1.c,
        .c_m2 = m2.c,
        .c_n = n.c,
        .ko = ko.extent,
        .a_ko = ko.a,
        .b_ko = ko.b,
        .flags = flags,
    };
    return s;
}

/* The same with axes merged, but for lines of windows. */
static md_tile_shape normal_shape(const Tiling *p, int64_t flags) {
    const md_tile_shape all = plan_shape(p, flags);
    md_tile_shape shape = md_tile_normal(all);
    if (p->class[ROWS].ngroup == 2 && p->class[ROWS].group[0].lines) {
        shape.m1 = all.m1, shape.a_m1 = all.a_m1, shape.c_m1 = all.c_m1;
        shape.m2 = all.m2, shape.a_m2 = all.a_m2, shape.c_m2 = all.c_m2;
    }
    return shape;
}

/* --- roles ------------------------------------------------------------------------------------ */

/* With these roles, are there tiles to transform? */
static bool has_tiles(const Tiling *p) {
    md_tile plan;
    const md_tile_shape shape = normal_shape(p, MD_TILE_WINOGRAD);
    return product_half(p->of) == TY_ERROR && tile_times(p) == 1 &&
           md_tile_winograd(&shape, (int)elem_bytes(p->of->elem), &plan);
}

/* Which operand gives the rows, and what is batches; false when the sum has too many axes. */
static bool choose_roles(Tiling *p) {
    static const double little = 0.8; /* of the time: else the places stay together */
    int best = 0, best_cost = 0;      /* bit 0: swapped, bit 1: the smallest are batches */
    double least = 0;
    bool moved = false, tiles = false, moves;
    for (int i = 0; i < (moved ? 4 : 2); i++) {
        p->swapped = i & 1;
        if (!group_all(p, i > 1, &moves)) {
            return false;
        }
        moved = moved || moves;
        int cost = role_cost(p);
        double time = role_time(p), beside = i > 1 && best < 2 ? little * least : least;
        const bool has = has_tiles(p);
        if (i == 0 || (has && !tiles) ||
            (has == tiles && (moved ? time < beside : cost < best_cost))) {
            tiles = has;
            best = i;
            best_cost = cost;
            least = time;
        }
    }
    p->swapped = best & 1;
    group_all(p, best > 1, &moves);
    return p->class[SUMMED].loops == 0;
}

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
    p->batch = kernel_axis(b->k, class_count(&p->class[BATCH]), "batch");
    p->row = kernel_axis(b->k, class_count(&p->class[p->across ? COLUMNS : ROWS]), "m");
    /* The block is read at its column even where there is only one: an index of 0 has no place. */
    int64_t columns = class_count(&p->class[p->across ? ROWS : COLUMNS]);
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

/* A sum of the product and something of its layout, and nothing else: C begins as that. */
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
                !p->of->part_of && has_strides(p, &roots->at[0]);
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
        flops = count_add(0, flops, class_count(&p->class[c]));
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
    int64_t work = count_add(WEIGHTS * both, 2 * 16 * tiles, both);
    work = count_add(work, tiles, IN * channels + OUT * plan->cols.n);
    const int64_t all = product_flops(p);
    return all > work ? count_add(0, tile_times(p), all - work) : 0;
}

/* Do all rows lie side by side in C, and columns not? What follows then runs along rows. */
static bool lies_across(const Tiling *p) {
    Digit m2 = group_at(&p->class[ROWS], 0), m1 = group_at(&p->class[ROWS], 1);
    Digit n = group_at(&p->class[COLUMNS], 0);
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
        bool fits = choose_roles(p);
        p->across = fits && across && lies_across(p);
        if (fits && block_roots(p)) {
            p->add = added(p);
            p->in_place = p->add ? 0 : root_in_place(p);
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

md_tile_shape product_shape(const Tiling *p) {
    int flags = p->add ? MD_TILE_ADD : p->in_place < 0 ? MD_TILE_NO_C : 0;
    flags |= p->across ? MD_TILE_ACROSS : 0;
    flags |= p->stream.count > 0 ? MD_TILE_STREAMS : 0;
    Elem half = product_half(p->of);
    if (half != TY_ERROR) {
        const Arg *a = p->of->load[p->swapped]->arg, *b = p->of->load[!p->swapped]->arg;
        flags |= half == TY_F16 ? MD_TILE_F16 : 0;
        flags |= p->of->copy[p->swapped] ? MD_TILE_MADE : 0;
        flags |= multiplied_as(p->of, 0) != multiplied_as(p->of, 1) ? MD_TILE_EXACT : 0;
        flags |= MD_TILE_HALF | (a->elem == TY_F32 ? MD_TILE_WIDE_A : 0) |
                 (b->elem == TY_F32 ? MD_TILE_WIDE_B : 0);
    }
    return normal_shape(p, flags);
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
    Digit batch = group_at(&p->class[BATCH], 0);
    return !second && first->dim[0] > p->b->k->threads && p->class[BATCH].ngroup == 1 &&
           batch.extent == first->dim[0] && batch.a == type_count(*first) / first->dim[0];
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
    for (int i = 0; i + 1 < n; i++) {
        scope |= (AxisSet)1 << axis[i];
    }
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
    int64_t batches = count_add(0, tile_times(p), plan->b1.n * plan->b2.n);
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
    int64_t flops = count_add(0, tile_times(p), tile_flops(p));
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
