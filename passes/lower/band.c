/* band: see the header.
 *
 * Of a value and two of its axes it is asked: what is it where the place on the one axis is more
 * than `beyond` places ahead of that on the other? The answer comes from comparisons of indices,
 * through SELECT, what is made of it element by element (e^-inf is 0, and so is 0 times anything),
 * views that keep the axes, loops' invariants and stacks. Who reads a product is asked the other
 * way round: it is not wanted where all that is made of it is known without it. The search looks at
 * a bounded number of nodes: what it does not find counts as computed. Needs a finished graph;
 * changes nothing. */
#include "passes/lower/band.h"

#include "compiler/program.h"
#include "passes/cut.h"

#include <math.h>

enum {
    LOOKS = 400,        /* nodes that one question may look at */
    BASE_MOST = 1 << 20 /* of what is added to an index: sums of so many stay in 32 bits */
};

/* What a value is wherever at[ahead] - at[behind] > beyond; axes of -1: everywhere. `looks` counts
 * down the nodes that the question may still look at. */
typedef struct {
    bool known;
    double value;
    int64_t beyond;
} Far;

/* Those of one region. */
typedef struct {
    const Region *region;
    int *first; /* by Node.id: where its readers begin; one more at the end */
    const Node **reader;
    bool compares; /* some node compares indices, or is made so around the region */
} Table;

struct Readers {
    Arena *arena;
    VEC(Table) table;
};

static const Far unknown = {0};

/* --- indices as sums of places ---------------------------------------------------------------- */

/* base + sum of mul[i] * at[i]. */
typedef struct {
    int64_t mul[MD_RANK], base;
} Places;

/* What the parameter of a loop's body is around it: an invariant, or a stack of which it is a
 * slice (*slice); NULL: neither. */
static const Node *outside(const Node *param, bool *slice) {
    const Node *loop = param->region->owner;
    const int k = param->attr->axis - 1;
    if (!loop || loop->op != OP_LOOP || k < loop->attr->ncarry) {
        return NULL;
    }
    *slice = k >= loop->attr->ncarry + loop->attr->ninv;
    return loop->in[k];
}

/* The axis of the operand of view `n` along which its axis runs, one place for each, from place
 * *start on; negative: none. */
static int viewed(const Node *n, int axis, int64_t *start) {
    *start = n->op == OP_SLICE ? n->attr->lo[axis] : 0;
    switch (n->op) {
    case OP_SLICE: return n->attr->step[axis] == 1 ? axis : -1;
    case OP_BROADCAST:
    case OP_RESHAPE:
    case OP_PERMUTE: return cut_from(n, 0, axis, false);
    default: return -1;
    }
}

/* False also where the sum could leave its type, which wraps. */
static bool places_of(int *looks, const Node *n, Places *p) {
    *p = (Places){{0}, 0};
    const bool wide = n->type->elem == TY_I32 || n->type->elem == TY_I64;
    if ((*looks)-- <= 0 || !wide) {
        return false;
    }
    Places a, b;
    bool slice = false;
    switch (n->op) {
    case OP_IOTA: p->mul[n->attr->axis] = 1; return true;
    case OP_CONST: p->base = n->attr->ivalue; return p->base > -BASE_MOST && p->base < BASE_MOST;
    case OP_CAST: return places_of(looks, n->in[0], p);
    case OP_BODY_PARAM: {
        const Node *from = outside(n, &slice);
        return from && !slice && places_of(looks, from, p);
    }
    case OP_ADD:
    case OP_SUB: {
        if (!places_of(looks, n->in[0], &a) || !places_of(looks, n->in[1], &b)) {
            return false;
        }
        const int64_t sign = n->op == OP_ADD ? 1 : -1;
        for (int i = 0; i < n->type->rank; i++) {
            p->mul[i] = a.mul[i] + sign * b.mul[i];
        }
        p->base = a.base + sign * b.base;
        return true;
    }
    case OP_BROADCAST:
    case OP_RESHAPE:
    case OP_PERMUTE:
    case OP_SLICE: {
        if (!places_of(looks, n->in[0], &a)) {
            return false;
        }
        p->base = a.base;
        for (int i = 0; i < n->type->rank; i++) {
            int64_t start;
            const int in = n->type->dim[i] > 1 ? viewed(n, i, &start) : -1;
            if (in >= 0) {
                p->mul[i] = a.mul[in];
                p->base += a.mul[in] * start;
                a.mul[in] = 0;
            }
        }
        for (int i = 0; i < n->in[0]->type->rank; i++) { /* those that were not met */
            if (a.mul[i] != 0 && n->in[0]->type->dim[i] > 1) {
                return false;
            }
        }
        return true;
    }
    default: return false;
    }
}

/* A comparison of places along the two axes alone. */
static Far compared(int *looks, const Node *n, int ahead, int behind) {
    Places a, b;
    if (ahead < 0 || !places_of(looks, n->in[0], &a) || !places_of(looks, n->in[1], &b)) {
        return unknown;
    }
    for (int i = 0; i < n->type->rank; i++) {
        a.mul[i] -= b.mul[i];
        if (a.mul[i] != 0 && i != ahead && i != behind) {
            return unknown;
        }
    }
    const int64_t base = a.base - b.base, mul = a.mul[ahead];
    if ((mul != 1 && mul != -1) || a.mul[behind] != -mul) {
        return unknown;
    }
    /* base + mul * distance, beside 0; the distance is more than `beyond`. */
    const bool less = n->op != OP_EQ && mul < 0;
    const int64_t edge = mul > 0 ? -base : base;
    const int64_t strict = n->op == OP_LT ? 1 : 0;
    return (Far){true, less, n->op == OP_EQ ? edge : less ? edge - 1 + strict : edge - strict};
}

/* --- what lies far from the diagonal ---------------------------------------------------------- */

static Far far_of(int *looks, const Node *n, int ahead, int behind);

static Far with_value(double value, int64_t beyond) {
    return isnan(value) ? unknown : (Far){true, value, beyond};
}

static int64_t later(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* The nearest of two that are known to be `value`. */
static Far nearest(Far a, Far b, double value) {
    const bool is_a = a.known && a.value == value, is_b = b.known && b.value == value;
    if (!is_a || !is_b) {
        return is_a ? a : is_b ? b : unknown;
    }
    return a.beyond < b.beyond ? a : b;
}

static Far far_minus(Far a) {
    a.value = -a.value;
    return a;
}

static Far far_sum(Far a, Far b) {
    if (a.known && b.known) {
        return with_value(a.value + b.value, later(a.beyond, b.beyond));
    }
    a = a.known ? a : b;
    return a.known && isinf(a.value) ? a : unknown;
}

static Far far_product(Far a, Far b) {
    const Far zero = nearest(a, b, 0);
    return zero.known           ? zero
           : a.known && b.known ? with_value(a.value * b.value, later(a.beyond, b.beyond))
                                : unknown;
}

static Far far_select(Far c, Far a, Far b) {
    if (!c.known) {
        return unknown;
    }
    a = c.value != 0 ? a : b;
    return a.known ? with_value(a.value, later(a.beyond, c.beyond)) : unknown;
}

static Far far_map(int *looks, const Node *n, int ahead, int behind) {
    if (n->op == OP_LT || n->op == OP_LE || n->op == OP_EQ) {
        return compared(looks, n, ahead, behind);
    }
    Far in[3] = {unknown, unknown, unknown};
    if (n->nin > 3 || n->op == OP_IOTA || n->op == OP_RANDOM) {
        return unknown;
    }
    for (int k = 0; k < n->nin; k++) {
        in[k] = far_of(looks, n->in[k], ahead, behind);
    }
    const Far a = in[0], b = in[1];
    switch (n->op) {
    case OP_SELECT: return far_select(a, b, in[2]);
    case OP_AND: return a.known && b.known && a.value != 0 ? b : nearest(a, b, 0);
    case OP_OR: return a.known && b.known && a.value == 0 ? b : nearest(a, b, 1);
    case OP_NOT: return a.known ? with_value(a.value == 0, a.beyond) : unknown;
    case OP_ADD: return far_sum(a, b);
    case OP_SUB: return far_sum(a, far_minus(b));
    case OP_MUL: return far_product(a, b);
    case OP_FMA: {
        const Far product = far_product(a, b);
        return product.known && in[2].known ? far_sum(product, in[2]) : unknown;
    }
    case OP_DIV: return a.known && a.value == 0 ? a : unknown;
    case OP_NEG: return far_minus(a);
    case OP_EXP: return a.known ? with_value(exp(a.value), a.beyond) : unknown;
    case OP_CAST: /* also of a bool; and what 16 bits hold as it is */
    case OP_BF16:
    case OP_F16:
    case OP_AGAIN: return a.known && (a.value == 0 || a.value == 1 || isinf(a.value)) ? a : unknown;
    default: return unknown;
    }
}

/* Through a view: the axes are others; one that the operand lacks leaves what is so everywhere. */
static Far far_view(int *looks, const Node *n, int ahead, int behind) {
    int64_t start[2] = {0, 0};
    const int from = ahead < 0 ? -1 : viewed(n, ahead, &start[0]);
    const int to = ahead < 0 ? -1 : viewed(n, behind, &start[1]);
    if (n->op == OP_PAD || n->op == OP_WINDOW || n->op == OP_FLIP) {
        return unknown;
    }
    const bool both = from >= 0 && to >= 0;
    Far far = far_of(looks, n->in[0], both ? from : -1, both ? to : -1);
    far.beyond -= both && far.beyond > -BAND_OPEN ? start[0] - start[1] : 0;
    return far;
}

/* A slice of a stack is its last axes; what loops leave out of a stack is zero. */
static Far far_pick(int *looks, const Node *n, int ahead, int behind) {
    const Node *loop = n->in[0];
    const int k = n->attr->axis, slice = ahead < 0 ? 0 : 1;
    if (loop->op != OP_LOOP || k < loop->attr->ncarry || (slice && (ahead == 0 || behind == 0))) {
        return unknown;
    }
    const Far far = far_of(looks, loop->body->out.at[k], ahead - slice, behind - slice);
    return loop_ends_itself(loop->attr) && far.value != 0 ? unknown : far;
}

static Far far_of(int *looks, const Node *n, int ahead, int behind) {
    if ((*looks)-- <= 0) {
        return unknown;
    }
    Far far = unknown;
    if (n->op == OP_CONST) {
        const bool integer = elem_is_int(n->type->elem);
        far = with_value(integer ? (double)n->attr->ivalue : n->attr->value, -BAND_OPEN);
    } else if (n->op == OP_BODY_PARAM) {
        bool slice = false;
        const Node *from = outside(n, &slice);
        const int more = slice && ahead >= 0 ? 1 : 0;
        far = from ? far_of(looks, from, ahead + more, behind + more) : unknown;
    } else if (n->op == OP_PICK) {
        far = far_pick(looks, n, ahead, behind);
    } else if (op_info[n->op].cls == CLASS_VIEW) {
        far = far_view(looks, n, ahead, behind);
    } else if (op_info[n->op].cls == CLASS_MAP) {
        far = far_map(looks, n, ahead, behind);
    }
    return far;
}

/* --- what nobody wants ------------------------------------------------------------------------ */

/* The axis of view `n` that runs along `axis` of its operand; -1: none, or not all of it. */
static int seen_as(const Node *n, int axis) {
    for (int i = 0; i < n->type->rank; i++) {
        int64_t start;
        if (n->type->dim[i] == n->in[0]->type->dim[axis] && viewed(n, i, &start) == axis) {
            return i;
        }
    }
    return -1;
}

static Table table_new(Arena *arena, const Region *region) {
    Table t = {.region = region};
    const int count = region->node.count;
    t.first = ARENA_ARRAY(arena, int, count + 2);
    int *end = t.first + 1; /* of the readers filed so far, at the end */
    for (int i = 0; i < count; i++) {
        const Node *n = region->node.at[i];
        const bool compared = n->op == OP_LT || n->op == OP_LE || n->op == OP_EQ;
        const bool given = n->op == OP_BODY_PARAM && n->type->elem == TY_BOOL;
        t.compares = t.compares || given || (compared && elem_is_int(n->in[0]->type->elem));
        for (int k = 0; k < n->nin; k++) {
            end[n->in[k]->id + 1]++;
        }
    }
    for (int i = 0; i < count; i++) {
        end[i + 1] += end[i];
    }
    t.reader = ARENA_ARRAY(arena, const Node *, end[count] + 1);
    for (int i = 0; i < count; i++) {
        const Node *n = region->node.at[i];
        for (int k = 0; k < n->nin; k++) {
            t.reader[end[n->in[k]->id]++] = n;
        }
    }
    return t;
}

Readers *readers_new(Arena *arena) {
    Readers *r = ARENA_NEW(arena, Readers);
    r->arena = arena;
    return r;
}

static const Table *readers_of(Readers *r, const Region *region) {
    for (int i = 0; i < r->table.count; i++) {
        if (r->table.at[i].region == region) {
            return &r->table.at[i];
        }
    }
    VEC_PUSH(r->arena, &r->table, table_new(r->arena, region));
    return &r->table.at[r->table.count - 1];
}

static int64_t wanted(int *looks, Readers *readers, const Node *n, int ahead, int behind);

/* As result `k` of its region, which a loop stacks. */
static int64_t wanted_outside(int *looks, Readers *readers, const Region *region, int k, int ahead,
                              int behind) {
    const Node *loop = region->owner;
    int64_t most = -BAND_OPEN;
    if (!loop || loop->op != OP_LOOP || k < loop->attr->ncarry) {
        return BAND_OPEN;
    }
    const Table t = *readers_of(readers, loop->region);
    for (int i = t.first[loop->id]; i < t.first[loop->id + 1] && most < BAND_OPEN; i++) {
        const Node *pick = t.reader[i];
        const bool same = pick->op == OP_PICK && pick->attr->axis == k;
        most = same ? later(most, wanted(looks, readers, pick, ahead + 1, behind + 1)) : most;
    }
    return most;
}

/* As operand `k` of a loop. */
static int64_t wanted_inside(int *looks, Readers *readers, const Node *loop, int k, int ahead,
                             int behind) {
    const int slice = k >= loop->attr->ncarry + loop->attr->ninv ? 1 : 0;
    if (loop->op != OP_LOOP || k < loop->attr->ncarry || (slice && (ahead == 0 || behind == 0))) {
        return BAND_OPEN;
    }
    return wanted(looks, readers, loop->body->param.at[k + 1], ahead - slice, behind - slice);
}

static int64_t wanted_by(int *looks, Readers *readers, const Node *user, const Node *n, int ahead,
                         int behind) {
    if (op_info[user->op].cls == CLASS_VIEW) {
        const int a = seen_as(user, ahead), b = seen_as(user, behind);
        return a >= 0 && b >= 0 ? wanted(looks, readers, user, a, b) : BAND_OPEN;
    }
    if (op_info[user->op].cls == CLASS_MAP) {
        const Far far = far_of(looks, user, ahead, behind);
        return far.known ? far.beyond : wanted(looks, readers, user, ahead, behind);
    }
    int64_t most = -BAND_OPEN;
    for (int k = 0; k < user->nin; k++) {
        most = user->in[k] == n ? later(most, wanted_inside(looks, readers, user, k, ahead, behind))
                                : most;
    }
    return most;
}

/* Nobody reads `n` where at[ahead] - at[behind] is more than what this gives. */
static int64_t wanted(int *looks, Readers *readers, const Node *n, int ahead, int behind) {
    const Region *region = n->region;
    const Table t = *readers_of(readers, region);
    int64_t most = (*looks)-- > 0 ? -BAND_OPEN : BAND_OPEN;
    for (int i = 0; i < region->out.count && most < BAND_OPEN; i++) {
        most = region->out.at[i] == n
                   ? later(most, wanted_outside(looks, readers, region, i, ahead, behind))
                   : most;
    }
    for (int i = t.first[n->id]; i < t.first[n->id + 1] && most < BAND_OPEN; i++) {
        most = later(most, wanted_by(looks, readers, t.reader[i], n, ahead, behind));
    }
    return most;
}

/* --- products --------------------------------------------------------------------------------- */

/* Is it made of indices? If not there is nothing to be found. */
static bool has_index(int *looks, const Node *n) {
    bool slice;
    if ((*looks)-- <= 0 || n->op == OP_IOTA) {
        return n->op == OP_IOTA;
    }
    if (n->op == OP_BODY_PARAM) {
        const Node *from = outside(n, &slice);
        return from && has_index(looks, from);
    }
    if (n->op == OP_PICK && n->in[0]->op == OP_LOOP && n->attr->axis >= n->in[0]->attr->ncarry) {
        return has_index(looks, n->in[0]->body->out.at[n->attr->axis]);
    }
    bool has = false;
    const bool through = op_info[n->op].cls == CLASS_MAP || op_info[n->op].cls == CLASS_VIEW;
    for (int k = 0; through && k < n->nin && !has; k++) {
        has = has_index(looks, n->in[k]);
    }
    return has;
}

static int64_t zero_beyond(const Node *n, int ahead, int behind) {
    int looks = LOOKS;
    const Far far = far_of(&looks, n, ahead, behind);
    return far.known && far.value == 0 ? later(far.beyond, -BAND_OPEN) : BAND_OPEN;
}

static int64_t unread_beyond(Readers *readers, const Node *n, int ahead, int behind) {
    int looks = LOOKS;
    const int64_t beyond = wanted(&looks, readers, n, ahead, behind);
    return beyond > -BAND_OPEN ? beyond : BAND_OPEN; /* what nobody reads at all is no matter */
}

static Band band_between(int first, int second, int64_t ahead, int64_t behind) {
    const int64_t from = behind >= BAND_OPEN ? -BAND_OPEN : -behind;
    const int64_t until = ahead >= BAND_OPEN ? BAND_OPEN : ahead + 1;
    return (Band){ahead < BAND_OPEN || behind < BAND_OPEN, first, second, {-1, 1}, from, until};
}

/* How many places of first x second lie in it. */
static int64_t band_places(const Band *band, int64_t first, int64_t second) {
    int64_t count = 0;
    for (int64_t i = 0; i < first; i++) { /* by[1] is above 0 */
        const int64_t at = i * band->by[0], up = band->by[1] - 1;
        const int64_t from = band->from - at + up, until = band->until - at + up;
        const int64_t begin = from > 0 ? from / band->by[1] : 0;
        const int64_t end = until < 0 ? 0 : until / band->by[1];
        count +=
            end > begin ? (end < second ? end : second) - (begin < second ? begin : second) : 0;
    }
    return count;
}

int64_t band_part(const Band *band, const int64_t *extent, int64_t count) {
    const int64_t first = extent[band->first], second = extent[band->second];
    return band->known ? count / (first * second) * band_places(band, first, second) : count;
}

/* The narrower of two. */
static void take_better(Band *best, Band band, const int64_t *extent) {
    const int64_t n = extent[band.first], m = extent[band.second];
    const double part = (double)band_places(&band, n, m) / ((double)n * (double)m);
    const int64_t n0 = extent[best->first], m0 = extent[best->second];
    const double known =
        best->known ? (double)band_places(best, n0, m0) / ((double)n0 * (double)m0) : 1;
    if (band.known && part < known) {
        *best = band;
    }
}

Band product_band(const Node *node, Readers *readers) {
    const Attr *a = node->attr;
    const int rank = node->type->rank;
    int64_t extent[3 * MD_RANK];
    const int nlabel = contract_labels(node, extent);
    Band best = {0};
    for (int k = 0; k < 2; k++) {
        const int8_t *labels = k == 0 ? a->la : a->lb;
        const Type *type = node->in[k]->type;
        int looks = LOOKS;
        bool has = type->rank > 1 && has_index(&looks, node->in[k]);
        for (int s = 0; s < nlabel && has; s++) {
            for (int r = 0; r < nlabel; r++) {
                const int at_s = find_label(labels, type->rank, s),
                          at_r = find_label(labels, type->rank, r);
                const bool summed =
                    find_label(a->lo_, rank, s) < 0 && find_label(a->lo_, rank, r) >= 0;
                if (summed && at_s >= 0 && at_r >= 0 && extent[s] > 1 && extent[r] > 1) {
                    take_better(&best,
                                band_between(r, s, zero_beyond(node->in[k], at_s, at_r),
                                             zero_beyond(node->in[k], at_r, at_s)),
                                extent);
                }
            }
        }
    }
    const bool compares = readers_of(readers, node->region)->compares;
    for (int i = 0; i < rank && compares && !best.known; i++) {
        for (int j = 0; j < rank; j++) {
            const int row = a->lo_[i], column = a->lo_[j];
            const bool first = find_label(a->lb, node->in[1]->type->rank, row) < 0;
            const bool second = find_label(a->la, node->in[0]->type->rank, column) < 0;
            if (first && second && extent[row] > 1 && extent[column] > 1) {
                take_better(&best,
                            band_between(row, column, unread_beyond(readers, node, j, i),
                                         unread_beyond(readers, node, i, j)),
                            extent);
            }
        }
    }
    return best;
}
