/* lower_contract: products. A CONTRACT becomes a plan of runtime/tile_plan.h where both operands
 * are loads at strides, and what follows it elementwise runs on each finished block; else plain
 * loops.
 *
 * Technique: every label of the product gets axes; the operands are asked for at these, and the
 * strides are read off the loads. Axes of a class (batch, rows, columns, summed) that lie behind
 * one another in all operands merge; what the plan has no room for becomes loops around it. The
 * result itself is finished in place where one of the values wanted has its layout; else in a
 * strip. Needs a CONTRACT unit with homes; gives its kernel; changes no values beyond the order of
 * sums. */
#include "passes/lower_kernel.h"
#include "passes/view.h"
#include "runtime/blas_plan.h"
#include "runtime/tile_plan.h"

#include <string.h>

static const NodeInfo *info_of(const KernelBuild *b, const Node *node) {
    return &b->frame->fusion->info[node->id];
}

/* --- plain loops ------------------------------------------------------------------------------ */

/* The plain form of a product: outer labels, summed labels, and a vector of trailing labels. */
static bool build_product(KernelBuild *b) {
    const Node *node = b->unit->atom.at[0];
    const Attr *a = node->attr;
    int64_t extent[3 * MD_RANK], dim[3][MD_RANK];
    int nlabel = contract_labels(node, extent), n[3] = {0}, label[3][MD_RANK];
    int tail = node->type.rank;
    for (bool go = true; go && tail > 0; tail -= go) {
        go = false;
        for (int i = 0; i < node->in[1]->type.rank; i++) {
            go = go || a->lb[i] == a->lo_[tail - 1];
        }
        for (int i = 0; i < node->in[0]->type.rank; i++) {
            go = go && a->la[i] != a->lo_[tail - 1];
        }
    }
    for (int l = 0; l < nlabel; l++) {
        int part = 1;
        for (int i = 0; i < node->type.rank; i++) {
            part = a->lo_[i] == l ? (i < tail ? 0 : 2) : part;
        }
        label[part][n[part]] = l;
        dim[part][n[part]++] = extent[l];
    }
    /* Result labels in the order of the result. */
    for (int i = 0; i < node->type.rank; i++) {
        int part = i < tail ? 0 : 2, at = i < tail ? i : i - tail;
        label[part][at] = a->lo_[i];
        dim[part][at] = node->type.dim[i];
    }
    static const char *const names[3] = {"r", "k", "j"};
    Radix space[3];
    const Index *at[3 * MD_RANK], *out[MD_RANK];
    for (int p = 0; p < 3; p++) {
        const Index *digit[MD_RANK];
        space[p] = *kernel_space(b, p, count_dims(n[p], dim[p]), names[p]);
        space_digits(b, &space[p], n[p], dim[p], digit);
        for (int i = 0; i < n[p]; i++) {
            at[label[p][i]] = digit[i];
        }
    }
    for (int i = 0; i < node->type.rank; i++) {
        out[i] = at[a->lo_[i]];
    }
    RootList roots = {0};
    kernel_store(b, &roots, node, out, value_product(&b->v, node, at));
    if (kernel_refine(b, &roots)) {
        return true;
    }
    for (int i = 0; i < roots.count; i++) {
        roots.at[i].add = OP_ADD;
    }
    emit_column(b, &space[0], &space[1], &space[2], &roots);
    return false;
}

/* The product, in memory, then a nest for what follows it. */
static bool build_plain(KernelBuild *b) {
    const Node *node = b->unit->atom.at[0];
    if (!info_of(b, node)->stored) {
        kernel_home(b, node, "product");
    }
    if (build_product(b)) {
        return true;
    }
    b->known = true;
    b->first_space = 3;
    return b->unit->atom.count > 1 && build_nest(b);
}

/* --- labels to axes --------------------------------------------------------------------------- */

enum { BATCH, ROWS, COLUMNS, SUMMED, CLASSES };
enum { DIGITS = 2 * MD_RANK };

/* One axis of the index space with its stride in A, B and C. */
typedef struct {
    int axis;
    int64_t extent, a, b, c;
} Digit;

/* The axes of one class, outermost first; the first `loops` of them stay loops around the product,
 * the others form `ngroup` axes of the plan. */
typedef struct {
    int n, loops, ngroup;
    Digit digit[DIGITS];
    Digit group[3];
} Class;

typedef struct {
    KernelBuild *b;
    const Node *node;
    Class class[CLASSES];
    const Expr *load[2]; /* of A and B at the labels' axes */
    bool swapped;        /* A is the second operand */
    const Index *label[3 * MD_RANK];
    Radix space[3 * MD_RANK];
    int nlabel;
    const Index *out_flat;   /* place in the storage that takes the result */
    const Buf *place;        /* that storage, when it is known */
    bool dense;              /* it holds the elements one after another */
    const Index *block_flat; /* dense place of the block's element */
} Product;

static bool list_has(const int8_t *list, int n, int label) {
    for (int i = 0; i < n; i++) {
        if (list[i] == label) {
            return true;
        }
    }
    return false;
}

static int class_of(const Product *p, int label) {
    const Node *node = p->node;
    bool a = list_has(node->attr->la, node->in[0]->type.rank, label);
    bool b = list_has(node->attr->lb, node->in[1]->type.rank, label);
    if (!list_has(node->attr->lo_, node->type.rank, label)) {
        return SUMMED;
    }
    return a && b ? BATCH : a != p->swapped ? ROWS : COLUMNS;
}

/* Reads the strides of every axis off the loads; false when one is no plain stride. */
static bool read_strides(Product *p) {
    AxisSet all = 0;
    memset(p->class, 0, sizeof p->class);
    for (int l = 0; l < p->nlabel; l++) {
        Class *c = &p->class[class_of(p, l)];
        const Radix *r = &p->space[l];
        for (int d = 0; d < r->n; d++) {
            Digit digit = {.axis = r->axis[d], .extent = r->digit[d]};
            int64_t *stride[2] = {&digit.a, &digit.b};
            for (int k = 0; k < 2; k++) {
                const Index *at = p->load[k != p->swapped]->index;
                if (!index_stride(at, r->axis[d], stride[k])) {
                    return false;
                }
            }
            if (!index_stride(p->out_flat, r->axis[d], &digit.c)) {
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
    return ((p->load[0]->index->axes | p->load[1]->index->axes) & ~all) == 0;
}

static bool joins(const Digit *outer, const Digit *inner) {
    return outer->a == inner->a * inner->extent && outer->b == inner->b * inner->extent &&
           outer->c == inner->c * inner->extent;
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
            memmove(&c->group[1], &c->group[0], sizeof next * 2);
            c->group[0] = next;
            c->ngroup++;
        } else {
            break;
        }
        c->loops--;
    }
}

/* The last axis of the result should be the plan's column; false when the sum has too many axes. */
static bool choose_roles(Product *p) {
    int best = -1;
    int64_t best_cost = INT64_MAX;
    for (int turn = 0; turn < 2; turn++) {
        p->swapped = turn == 1;
        if (!read_strides(p)) {
            return false;
        }
        group_axes(&p->class[ROWS], 2, 0);
        group_axes(&p->class[COLUMNS], 1, 0);
        int64_t cost = 0;
        for (int k = ROWS; k <= COLUMNS; k++) {
            for (int i = 0; i < p->class[k].loops; i++) {
                cost += 100 * p->class[k].digit[i].extent;
            }
        }
        const Class *n = &p->class[COLUMNS];
        cost += n->ngroup == 0 ? 20 : n->group[0].c != 1 ? 10 : 0;
        if (cost < best_cost) {
            best = turn;
            best_cost = cost;
        }
    }
    p->swapped = best == 1;
    read_strides(p);
    group_axes(&p->class[ROWS], 2, 0);
    group_axes(&p->class[COLUMNS], 1, 0);
    group_axes(&p->class[BATCH], 2, 0);
    group_axes(&p->class[SUMMED], 3, 1);
    if (p->class[SUMMED].loops > 0) {
        group_axes(&p->class[SUMMED], 3, 2);
    }
    return p->class[SUMMED].loops == 0;
}

/* --- the plan --------------------------------------------------------------------------------- */

static Digit group_at(const Class *c, int from_last) {
    Digit one = {.axis = -1, .extent = 1};
    int i = c->ngroup - 1 - from_last;
    return i >= 0 ? c->group[i] : one;
}

static md_tile_shape plan_shape(const Product *p, int flags) {
    Digit b2 = group_at(&p->class[BATCH], 0), b1 = group_at(&p->class[BATCH], 1);
    Digit m2 = group_at(&p->class[ROWS], 0), m1 = group_at(&p->class[ROWS], 1);
    Digit n = group_at(&p->class[COLUMNS], 0);
    Digit k2 = group_at(&p->class[SUMMED], 0), k1 = group_at(&p->class[SUMMED], 1),
          k0 = group_at(&p->class[SUMMED], 2);
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
        .flags = flags,
    };
    return s;
}

static int64_t class_count(const Class *c) {
    int64_t count = 1;
    for (int i = c->loops; i < c->n; i++) {
        count *= c->digit[i].extent;
    }
    return count;
}

/* `at` with 0 for every axis that the plan runs over. */
static const Index *plan_offset(const Product *p, const Index *at) {
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
static void epilogue_labels(Product *p, Tile *tile, const Index **label) {
    Kernel *k = p->b->k;
    const Index *place[AXES_MAX] = {0};
    int flat[3] = {tile->batch, tile->row, tile->column};
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
    for (int l = 0; l < p->nlabel; l++) {
        const Radix *r = &p->space[l];
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
static void epilogue_roots(Product *p, Tile *tile, RootList *roots) {
    KernelBuild *b = p->b;
    const Node *node = p->node;
    const Index *label[3 * MD_RANK], *at[MD_RANK];
    epilogue_labels(p, tile, label);
    for (int i = 0; i < node->type.rank; i++) {
        at[i] = label[node->attr->lo_[i]];
    }
    Buf *block = ARENA_NEW(b->k->arena, Buf);
    block->type = node->type;
    block->root = block;
    block->name = "strip";
    Arg *strip = kernel_arg(b->k, block, ACCESS_READ | ACCESS_WRITE);
    strip->strip = true;
    tile->strip = strip;
    b->known = true;
    b->strip = expr_load(b->k, strip, kernel_axis_index(b->k, tile->column), NULL);
    memcpy(b->strip_at, at, sizeof at);
    const Index *flat = index_flatten(&b->k->index, node->type.rank, node->type.dim, at);
    p->block_flat = flat;
    for (int i = 0; i < b->unit->atom.count; i++) {
        const Node *atom = b->unit->atom.at[i];
        const Index *here[MD_RANK];
        if (!info_of(b, atom)->stored) {
            continue;
        }
        index_unflatten(&b->k->index, flat, atom->type.rank, atom->type.dim, here);
        kernel_store(b, roots, atom, i == 0 ? at : here, value_at(&b->v, atom, i == 0 ? at : here));
    }
}

static bool loads_at(const Kernel *k, const Expr *e, const Buf *buf, const Index *index) {
    if (e->kind == EXPR_LOAD && kernel_buf(k, e->arg) == buf && e->index == index) {
        return true;
    }
    for (int i = 0; i < e->nkid; i++) {
        if (loads_at(k, e->kid[i], buf, index)) {
            return true;
        }
    }
    return false;
}

/* The next value of a storage that is computed from the old one, element by element: it wants that
 * place, so the product must not be put there first. */
static bool is_update(const Kernel *k, const Root *root) {
    const Buf *dest = kernel_buf(k, root->arg)->dest;
    return dest && loads_at(k, root->value, dest, root->index);
}

/* The strides that the plan was made for. */
static bool has_strides(const Product *p, const Root *root) {
    IndexTable *t = &p->b->k->index;
    if (!p->dense) {
        return kernel_buf(p->b->k, root->arg) == p->place;
    }
    return index_add(t, root->index, index_scale(t, p->block_flat, -1))->axes == 0;
}

/* The root whose storage takes the product and is finished in place: the product itself, else the
 * first that does not update; -1: none. */
static int root_in_place(const Product *p, const RootList *roots, Elem elem) {
    for (int i = 0; i < roots->count; i++) {
        if (roots->at[i].value == p->b->strip && has_strides(p, &roots->at[i])) {
            return i;
        }
    }
    for (int i = 0; i < roots->count; i++) {
        if (roots->at[i].arg->elem == elem && !is_update(p->b->k, &roots->at[i]) &&
            has_strides(p, &roots->at[i])) {
            return i;
        }
    }
    return -1;
}

/* A sum of the product and something of its layout, and nothing else: C begins as that. */
static const Arg *added(const Product *p, const RootList *roots) {
    const Expr *e = roots->count == 1 ? roots->at[0].value : NULL;
    for (int c = 0; c < SUMMED; c++) {
        e = p->class[c].loops > 0 ? NULL : e;
    }
    if (!e || e->kind != EXPR_MAP || e->op != OP_ADD) {
        return NULL;
    }
    const Expr *other = e->in[0] == p->b->strip ? e->in[1] : e->in[0];
    bool operand = other->arg == p->load[0]->arg || other->arg == p->load[1]->arg;
    bool fits = (e->in[0] == p->b->strip) != (e->in[1] == p->b->strip) && !operand &&
                other->kind == EXPR_LOAD && other->nin == 0 && other->index == roots->at[0].index &&
                p->dense && has_strides(p, &roots->at[0]);
    return fits ? other->arg : NULL;
}

/* The epilogue as statements; a root in place is stored through the strip. */
static void emit_epilogue(Product *p, Tile *tile, RootList *roots, int in_place) {
    KernelBuild *b = p->b;
    if (in_place >= 0 && roots->at[in_place].value == b->strip) {
        for (int i = in_place; i + 1 < roots->count; i++) {
            roots->at[i] = roots->at[i + 1];
        }
        roots->count--;
    } else if (in_place >= 0) {
        roots->at[in_place].arg = tile->strip;
        roots->at[in_place].index = kernel_axis_index(b->k, tile->column);
    }
    if (roots->count == 0) {
        return;
    }
    AxisSet scope = (AxisSet)1 << tile->batch;
    for (int c = 0; c < SUMMED; c++) {
        for (int i = 0; i < p->class[c].loops; i++) {
            scope |= (AxisSet)1 << p->class[c].digit[i].axis;
        }
    }
    nest_open(b, roots);
    nest_lets(b, &tile->body, scope, roots);
    StmtList *row = nest_loops(b, &tile->body, &tile->row, 1, false);
    scope |= (AxisSet)1 << tile->row;
    nest_lets(b, row, scope, roots);
    nest_stage(b, row, scope, &tile->column, 1, roots);
}

/* Strides of C, before roles are chosen: those of the first storage that could take it. */
static void find_place(Product *p, const Index *const *out) {
    IndexTable *t = &p->b->k->index;
    const Node *node = p->node;
    const Index *dense = index_flatten(t, node->type.rank, node->type.dim, out);
    p->out_flat = dense;
    p->dense = true;
    for (int i = 0; i < p->b->unit->atom.count; i++) {
        const Node *atom = p->b->unit->atom.at[i];
        const HomeList *home = &p->b->frame->home[atom->id];
        if (home->count > 0 && atom->type.elem == node->type.elem) {
            const Index *at[MD_RANK];
            index_unflatten(t, dense, atom->type.rank, atom->type.dim, at);
            p->out_flat = home_place(p->b, &home->at[0], i == 0 ? out : at);
            p->dense = !home->at[0].part;
            p->place = home->at[0].buf;
            return;
        }
    }
}

/* --- tiles ------------------------------------------------------------------------------------ */

typedef enum { TILE_DONE, TILE_AGAIN, TILE_PLAIN } TileOutcome;

static TileOutcome build_tile(KernelBuild *b) {
    const Node *node = b->unit->atom.at[0];
    Product p = {.b = b, .node = node};
    int64_t extent[3 * MD_RANK];
    IndexTable *t = &b->k->index;
    p.nlabel = contract_labels(node, extent);
    for (int l = 0; l < p.nlabel; l++) {
        p.space[l] = *kernel_space(b, l, extent[l], "r");
        p.label[l] = radix_flat(b, &p.space[l]);
    }
    const Index *out[MD_RANK];
    for (int i = 0; i < node->type.rank; i++) {
        out[i] = p.label[node->attr->lo_[i]];
    }
    find_place(&p, out);
    RootList loads = {0};
    for (int k = 0; k < 2; k++) {
        const Index *at[MD_RANK];
        const int8_t *labels = k == 0 ? node->attr->la : node->attr->lb;
        for (int i = 0; i < node->in[k]->type.rank; i++) {
            at[i] = p.label[labels[i]];
        }
        p.load[k] = value_at(&b->v, node->in[k], at);
        if (p.load[k]->kind != EXPR_LOAD || p.load[k]->nin > 0) {
            return TILE_PLAIN;
        }
        Root root = {.index = p.load[k]->index, .value = p.load[k]};
        VEC_PUSH(b->scratch, &loads, root);
    }
    if (kernel_refine(b, &loads)) {
        return TILE_AGAIN;
    }
    if (!choose_roles(&p)) {
        return TILE_PLAIN;
    }
    StmtList *list = &b->k->body;
    for (int c = 0; c < SUMMED; c++) {
        for (int i = 0; i < p.class[c].loops; i++) {
            list = nest_loops(b, list, &p.class[c].digit[i].axis, 1, false);
        }
    }
    Tile *tile = stmt_tile(b->k, list)->tile;
    tile->batch = kernel_axis(b->k, class_count(&p.class[BATCH]), "batch");
    tile->row = kernel_axis(b->k, class_count(&p.class[ROWS]), "m");
    /* The block is read at its column even where there is only one: an index of 0 has no place. */
    int64_t columns = class_count(&p.class[COLUMNS]);
    tile->column = kernel_axis(b->k, columns > 1 ? columns : 2, "n");
    RootList roots = {0};
    epilogue_roots(&p, tile, &roots);
    if (b->plain) {
        return TILE_PLAIN;
    }
    int in_place = root_in_place(&p, &roots, node->type.elem);
    const Arg *add = added(&p, &roots);
    in_place = add ? 0 : in_place;
    tile->add = add;
    tile->count = type_count(node->type);
    tile->a = p.load[p.swapped]->arg;
    tile->b = p.load[!p.swapped]->arg;
    tile->at_a = plan_offset(&p, p.load[p.swapped]->index);
    tile->at_b = plan_offset(&p, p.load[!p.swapped]->index);
    tile->at_c = index_const(t, 0);
    if (in_place >= 0) {
        /* The strides of that storage: its home may be a slice of a stack. */
        tile->c = roots.at[in_place].arg;
        const Index *at = roots.at[in_place].index;
        for (int c = 0; c < SUMMED; c++) {
            for (int i = p.class[c].loops; i < p.class[c].n; i++) {
                int flat = c == BATCH ? tile->batch : c == ROWS ? tile->row : tile->column;
                at = index_subst(t, at, flat, index_const(t, 0));
            }
        }
        tile->at_c = at;
    }
    if (!add) {
        emit_epilogue(&p, tile, &roots, in_place);
    }
    tile->layer = node->loc.layer;
    tile->flops = 2;
    for (int c = 0; c < CLASSES; c++) {
        tile->flops = count_add(0, tile->flops, class_count(&p.class[c]));
    }
    int flags = add ? MD_TILE_ADD : in_place < 0 ? MD_TILE_NO_C : 0;
    md_tile_shape shape = md_tile_normal(plan_shape(&p, flags));
    md_blas library;
    if (b->l->c->opt.openblas && md_blas_plan(shape, &library)) {
        tile->blas = true;
        tile->nplan = (int)(sizeof library / sizeof(int64_t));
        memcpy(tile->plan, &library, sizeof library);
        return TILE_DONE;
    }
    md_tile plan = md_tile_plan(shape, (int)elem_bytes(node->type.elem));
    tile->nplan = (int)(sizeof plan / sizeof(int64_t));
    if (tile->nplan > TILE_PLAN) {
        BUG("the plan of a product outgrew its place");
    }
    memcpy(tile->plan, &plan, sizeof plan);
    tile->narrow = md_tile_narrow(&plan);
    for (int i = 0; i < TILE_MACHINES; i++) {
        tile->bodies[i] = md_tile_bodies(&plan, tile_machine[i].bytes, tile_machine[i].many);
    }
    int workers = md_tile_most_parts(&plan, b->k->threads);
    tile->team = workers > 1;
    int64_t work = (int64_t)md_tile_workspace(&plan, workers);
    if (work > 0) {
        int64_t elems = work / (int64_t)elem_bytes(node->type.elem);
        bool shares = workers > 1 && plan.partial == 0 && elems % workers == 0;
        Type type = {.elem = node->type.elem, .rank = 1, .dim = {shares ? elems / workers : elems}};
        Buf *buf = kernel_work(b, type, shares ? workers : 0, "panels");
        tile->work = kernel_arg(b->k, buf, ACCESS_READ | ACCESS_WRITE);
    }
    return TILE_DONE;
}

bool build_contract(KernelBuild *b) {
    if (!b->plain) {
        switch (build_tile(b)) {
        case TILE_DONE: return false;
        case TILE_AGAIN: return true;
        case TILE_PLAIN: break;
        }
        /* The spaces of the trial mean nothing to the loops. */
        b->plain = true;
        b->radix.count = 0;
        return true;
    }
    return build_plain(b);
}
