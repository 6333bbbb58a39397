/* cpu_roles: see tiling.h.
 *
 * The strides of each axis are read off the loads of the operands. Axes of a class (batch, rows,
 * columns, summed) that lie behind one another in all operands merge; rows and columns that the
 * plan has no room for become batches, and batches loops around it. Which operand gives the rows
 * is what takes least time. */
#include "passes/schedule/tiling.h"

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
            const Type *copy = p->of->copy[p->swapped];
            digit.image =
                copy && digit.extent == copy->dim[0] && digit.a == type_count(*copy) / copy->dim[0];
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

/* `apart`: wherever they lie in C. */
static bool joins(const Digit *outer, const Digit *inner, bool apart) {
    return !outer->lines && !inner->lines && !outer->image &&
           outer->a == inner->a * inner->extent && outer->b == inner->b * inner->extent &&
           (apart || outer->c == inner->c * inner->extent);
}

/* Sorts by the stride in C (summed axes: in A or B), merges, leaves what does not fit as loops. */
static void group_axes(Class *c, int most, int key, bool apart) {
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
        if (c->ngroup > 0 && joins(&next, &c->group[0], apart)) {
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
    group_axes(from, most, 0, false);
    bool moved = from->loops > 0;
    while (from->loops > 0 && batch->n < DIGITS) {
        int at = 0;
        for (int i = 1; smallest && i < from->n; i++) {
            at = from->digit[i].extent < from->digit[at].extent ? i : at;
        }
        digit_to(from, at, batch);
        group_axes(from, most, 0, false);
    }
    return moved;
}

/* The groups of the roles that are set; false: an operand is read at no plain strides. */
static bool group_all(Tiling *p, bool smallest, bool *moved) {
    if (!read_strides(p)) {
        return false;
    }
    Class *class = p->class;
    bool rows = false;
    if (p->apart) {
        group_axes(&class[ROWS], 2, 1, true);
    } else {
        rows = move_to_batch(&class[ROWS], 2, smallest, &class[BATCH]);
    }
    bool columns = move_to_batch(&class[COLUMNS], 1, smallest, &class[BATCH]);
    *moved = rows || columns;
    group_axes(&class[BATCH], 2, 0, false);
    group_axes(&class[SUMMED], GROUPS, 1, false);
    if (class[SUMMED].loops > 0) {
        group_axes(&class[SUMMED], GROUPS, 2, false);
    }
    return true;
}

int64_t tiling_count(const Class *c) {
    int64_t count = 1;
    for (int i = c->loops; i < c->n; i++) {
        count *= c->digit[i].extent;
    }
    return count;
}

int64_t tiling_times(const Tiling *p) {
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

/* Does a register tile read more than a line of A for two of its rows at a step of the sum, and
 * others at the next one? */
static bool lies_apart(const Tiling *p, double lanes) {
    double rows = MD_TILE_HIGH, lines = 1;
    for (int i = 0; i < p->class[ROWS].ngroup; i++) {
        const Digit m = tiling_group(&p->class[ROWS], i);
        const double n = fmin(rows, (double)m.extent);
        lines *= fmax(1, n * fmin(fabs((double)m.a), lanes) / lanes);
        rows = ceil(rows / n);
    }
    for (int i = 0; i < p->class[SUMMED].ngroup; i++) {
        const Digit k = tiling_group(&p->class[SUMMED], i);
        lines = k.a * k.a == 1 && (double)k.extent >= lanes ? 1 : lines;
    }
    return 2 * lines > MD_TILE_HIGH;
}

/* Where batches have been made of rows or columns, about the time: products of whole vectors, what
 * is read for each batch, and packed, or turned into columns that do not lie together. Of an A
 * whose elements lie apart each panel of two vectors reads other lines at each step. */
static double role_time(const Tiling *p) {
    const Class *n = &p->class[COLUMNS];
    double lanes = MD_ALIGN / (double)elem_bytes(p->of->elem), turn = 0.6, read = 0.25, line = 0.5;
    double rows = (double)tiling_count(&p->class[ROWS]), columns = (double)tiling_count(n);
    double sum = (double)tiling_count(&p->class[SUMMED]);
    double time = (rows * ceil(columns / lanes) + read * (rows + columns)) * sum;
    time += n->ngroup > 0 && n->group[0].b != 1 ? turn * columns * sum : 0;
    time += n->ngroup > 0 && n->group[0].c != 1 ? turn * rows * columns : 0;
    time += lies_apart(p, lanes) ? line * rows * ceil(columns / (2 * lanes)) * sum : 0;
    return time * (double)tiling_count(&p->class[BATCH]) * (double)tiling_times(p);
}

/* --- the plan --------------------------------------------------------------------------------- */

Digit tiling_group(const Class *c, int from_last) {
    Digit one = {.axis = -1, .extent = 1};
    int i = c->ngroup - 1 - from_last;
    return i >= 0 ? c->group[i] : one;
}

static md_tile_shape plan_shape(const Tiling *p, int64_t flags) {
    Digit b2 = tiling_group(&p->class[BATCH], 0), b1 = tiling_group(&p->class[BATCH], 1);
    Digit m2 = tiling_group(&p->class[ROWS], 0), m1 = tiling_group(&p->class[ROWS], 1);
    Digit n = tiling_group(&p->class[COLUMNS], 0);
    Digit k2 = tiling_group(&p->class[SUMMED], 0), k1 = tiling_group(&p->class[SUMMED], 1),
          k0 = tiling_group(&p->class[SUMMED], 2), ko = tiling_group(&p->class[SUMMED], 3);
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

md_tile_shape tiling_shape(const Tiling *p, int64_t flags) {
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
    const md_tile_shape shape = tiling_shape(p, MD_TILE_WINOGRAD);
    return product_half(p->of) == TY_ERROR && tiling_times(p) == 1 &&
           md_tile_winograd(&shape, (int)elem_bytes(p->of->elem), &plan);
}

/* bit 0: swapped; bit 1: the smallest are batches; bit 2: rows apart. */
static bool group_as(Tiling *p, int way, bool *moved) {
    p->swapped = way & 1;
    p->apart = way & 4;
    return group_all(p, way & 2, moved);
}

bool tiling_roles(Tiling *p) {
    static const double little = 0.8; /* of the time: else the places stay together */
    int best = 0, best_cost = 0;
    double least = 0;
    bool moved = false, tiles = false, moves;
    for (int i = 0; i < (moved ? 4 : 2); i++) {
        if (!group_as(p, i, &moves)) {
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
    /* Pairs of Y are packed for each element of the batch: rather rows that follow A alone, while
     * what is added to at each block of the sum stays near. */
    enum { NEAR = 1 << 14 }; /* elements */
    for (int i = 4; i < 6 && moved && product_half(p->of) != TY_ERROR; i++) {
        group_as(p, i, &moves);
        const bool fits = !moves && p->class[ROWS].loops == 0 && p->of->count <= NEAR;
        const double time = role_time(p);
        if (fits && time < least) {
            best = i;
            least = time;
        }
    }
    group_as(p, best, &moves);
    return p->class[SUMMED].loops == 0;
}
