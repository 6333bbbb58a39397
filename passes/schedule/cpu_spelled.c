/* cpu_spelled: nests whose short axes are written out, place by place.
 *
 * The adjoint of a pool asks at each element which of the few places of its window it is. With a
 * copy of the roots for each place of such axes, what is asked there is known, what the places
 * share is loaded once, and vectors run along a long axis.
 * Needs a MAP part; gives its loops; changes no values. */
#include "passes/schedule/product.h"

enum {
    SHORT = TUNED(4, 2),   /* most places of an axis that is written out */
    PLACES = TUNED(16, 4), /* of all of them */
    HALF = TUNED(8, 3)     /* places of an axis that half fill a vector of floats */
};

/* --- which axes ------------------------------------------------------------------------------- */

/* Axes in quotients and remainders. */
static AxisSet split_axes(const Index *index) {
    AxisSet axes = 0;
    for (int i = 0; i < index->nterm; i++) {
        const Atom *atom = index->term[i].atom;
        axes |= atom->kind == ATOM_DIV || atom->kind == ATOM_MOD ? atom->axes : 0;
    }
    return axes;
}

/* Is it a place, or computed of places and numbers alone? known: those that are, by Expr.id. */
static bool is_of_places(const Expr *e, bool *known) {
    bool fits = e->kind == EXPR_INDEX || e->kind == EXPR_CONST || e->kind == EXPR_MAP;
    for (int i = 0; i < e->nkid && fits && !known[e->id]; i++) {
        fits = is_of_places(e->kid[i], known);
    }
    known[e->id] = fits;
    return fits;
}

/* Axes whose place is asked for by what runs along axis `vector`. */
static void asked_axes(const Expr *e, int vector, AxisSet *axes, bool *seen, bool *known) {
    if (seen[e->id] || !(e->axes >> vector & 1)) {
        return;
    }
    seen[e->id] = true;
    *axes |= e->index ? split_axes(e->index) : 0;
    for (int i = 0; i < e->nkid; i++) {
        const Expr *kid = e->kid[i];
        bool other = !(kid->axes >> vector & 1);
        bool asks = other && (kid->elem == TY_BOOL || is_of_places(kid, known));
        *axes |= asks ? kid->axes : 0;
        asked_axes(kid, vector, axes, seen, known);
    }
}

/* The short axes to be written out, 0: nothing is asked of any; the others, in their order, in
 * *left. The last one is too short for vectors. */
static AxisSet short_axes(KernelBuild *b, const Part *part, Radix *left) {
    const Radix *r = &part->rows;
    AxisSet asked = 0, set = 0;
    int64_t places = 1;
    bool *seen = ARENA_ARRAY(b->scratch, bool, b->nbound);
    bool *known = ARENA_ARRAY(b->scratch, bool, b->nbound);
    int vector = r->n - 1;
    while (vector > 0 && b->k->axis[r->axis[vector]].extent <= SHORT) {
        vector--;
    }
    for (int i = 0; i < part->roots.count; i++) {
        asked_axes(part->roots.at[i].value, r->axis[vector], &asked, seen, known);
        asked |= split_axes(part->roots.at[i].index);
    }
    *left = *r;
    left->n = 0;
    left->count = 1;
    for (int i = r->n - 1; i >= 0; i--) {
        int64_t extent = b->k->axis[r->axis[i]].extent;
        bool last = i == r->n - 1, wanted = last || asked >> r->axis[i] & 1;
        if (wanted && extent <= SHORT && places * extent <= PLACES) {
            set |= (AxisSet)1 << r->axis[i];
            places *= extent;
        }
    }
    for (int i = 0; i < r->n; i++) {
        if (!(set >> r->axis[i] & 1)) {
            left->axis[left->n] = r->axis[i];
            left->digit[left->n++] = r->digit[i];
            left->count *= r->digit[i];
        }
    }
    left->set = r->set & ~set;
    return set & asked ? set : 0;
}

/* --- the schedule ----------------------------------------------------------------------------- */

static bool spelled_fits(KernelBuild *b, const Part *part, void **plan) {
    Part *spelled = ARENA_NEW(b->scratch, Part);
    *spelled = *part;
    if (space_axes(&part->rows) == 0) {
        return false;
    }
    AxisSet set = short_axes(b, part, &spelled->rows);
    const Radix *left = &spelled->rows;
    int least = nest_parallel(b, part) ? 2 : 1;
    if (set == 0 || left->n < least || left->digit[left->n - 1] <= SHORT) {
        return false;
    }
    for (int i = 0; i < part->rows.n; i++) {
        int axis = part->rows.axis[i];
        RootList roots = {0};
        for (int64_t at = 0; set >> axis & 1 && at < part->rows.digit[i]; at++) {
            if (!roots_at(b, &spelled->roots, axis, index_const(&b->k->index, at), &roots)) {
                return false;
            }
        }
        spelled->roots = set >> axis & 1 ? roots : spelled->roots;
    }
    bind_room(b);
    *plan = spelled;
    return true;
}

typedef struct {
    int axis;
    bool jumps; /* some load does, along it */
} Jumps;

static void see_jump(void *ctx, const Expr *load) {
    Jumps *j = ctx;
    int64_t stride;
    j->jumps = j->jumps || !index_stride(load->index, j->axis, &stride) || stride * stride > 1;
}

/* Where the last axis fills less than half of a vector and loads jump along it, C compilers load
 * and store one element after the other; the axis around it may be longer. */
static bool turns_round(KernelBuild *b, const Part *spelled, bool parallel) {
    const Radix *left = &spelled->rows;
    Jumps j = {.axis = left->axis[left->n - 1]};
    bool *seen = ARENA_ARRAY(b->scratch, bool, b->k->expr.count + 1);
    for (int i = 0; i < spelled->roots.count; i++) {
        product_loads(spelled->roots.at[i].value, seen, see_jump, &j);
    }
    return left->n >= (parallel ? 3 : 2) && left->digit[left->n - 1] < HALF &&
           left->digit[left->n - 2] >= HALF && j.jumps;
}

/* The operations of what is left of them; the places together move what a nest moves. */
static Cost spelled_cost(KernelBuild *b, const Part *part, const void *plan) {
    const Part *spelled = plan;
    Cost cost = nest_cost(b, part, part->rows.axis[part->rows.n - 1], -1);
    int64_t operations = b->operations;
    b->operations = -1;
    cost.loop = nest_work(b, spelled) / (cost.launches > 0 ? b->k->threads : 1);
    b->operations = operations;
    return cost;
}

static void spelled_emit(KernelBuild *b, const Part *part, void *plan) {
    const Part *spelled = plan;
    bool parallel = nest_parallel(b, part);
    Radix loops = spelled->rows, *left = &loops;
    const int outer = left->n - 1;
    if (turns_round(b, spelled, parallel)) {
        left->axis[outer] = spelled->rows.axis[outer - 1];
        left->axis[outer - 1] = spelled->rows.axis[outer];
    }
    AxisSet scope = left->set & ~((AxisSet)1 << left->axis[outer]);
    nest_open(b, &spelled->roots);
    nest_lets(b, &b->k->body, 0, &spelled->roots);
    StmtList *list = nest_loops(b, &b->k->body, left->axis, outer, parallel);
    nest_lets(b, list, scope, &spelled->roots);
    nest_stage(b, list, scope, &left->axis[outer], 1, &spelled->roots);
}

const Schedule cpu_spelled = {"spelled", 1 << PART_MAP, spelled_fits, spelled_cost, spelled_emit};

/* --- what is made while columns are folded ---------------------------------------------------- */

static void add_digits(Radix *to, const Radix *from) {
    for (int i = 0; i < space_axes(from); i++) {
        to->axis[to->n] = from->axis[i];
        to->digit[to->n++] = from->digit[i];
    }
    to->count *= from->count;
    to->set |= space_set(from);
}

/* The root that stores the value; NULL: none does. */
static const Root *stored_as(const RootList *roots, const Expr *value) {
    for (int i = 0; i < roots->count; i++) {
        if (roots->at[i].value == value) {
            return &roots->at[i];
        }
    }
    return NULL;
}

/* The order of their sums forbids to write out the places of columns; what is stored of them on the
 * way is made before, and read back. */
Part spelled_before(KernelBuild *b, const Part *part) {
    Part made = {.kind = PART_MAP, .rows = {.count = 1}}, left = *part;
    void *plan = NULL;
    if (space_axes(&part->rows) + space_axes(&part->terms) + space_axes(&part->columns) > MD_RANK) {
        return left;
    }
    add_digits(&made.rows, &part->rows);
    add_digits(&made.rows, &part->terms);
    add_digits(&made.rows, &part->columns);
    for (int i = 0; i < part->roots.count; i++) {
        if (part->roots.at[i].add == OP_CONST) {
            VEC_PUSH(b->scratch, &made.roots, part->roots.at[i]);
        }
    }
    b->operations = -1;
    left.roots = (RootList){0};
    for (int i = 0; i < part->roots.count; i++) {
        Root root = part->roots.at[i];
        const Root *stored = stored_as(&made.roots, root.value);
        if (root.add != OP_CONST) {
            if (!stored) {
                return *part;
            }
            root.value = expr_load(b->k, stored->arg, stored->index, NULL);
            VEC_PUSH(b->scratch, &left.roots, root);
        }
    }
    bind_room(b);
    if (made.roots.count == 0 || !spelled_fits(b, &made, &plan)) {
        b->operations = -1;
        return *part;
    }
    spelled_emit(b, &made, plan);
    b->operations = -1;
    return left;
}
