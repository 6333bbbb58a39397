/* sum: long sums as chains of few terms.
 *
 * The error of terms that are added one to another grows with their number. So the loops of a sum
 * of floats are cut into levels, innermost first, of at most SUM_CHAIN turns each: a level adds its
 * terms to a sum of its own, which is one term of the level around it. n terms in chains of c, then
 * of c of these and so on have an error of at most c times the levels times half an ulp of the sum
 * of magnitudes: two levels up to a million terms, three up to a billion
 * (docs/decisions/0013-sums.md). Levels are short where terms are added one by one, in no lanes
 * (docs/decisions/0125-short-chains.md). Where a sum is cut is a function of extents alone.
 * Needs the loops of a sum; gives its levels and the axes that they need; changes no values beyond
 * the order of sums. */
#include "passes/schedule/schedule.h"

enum {
    LANES = TUNED(64, 8),       /* most partial sums of a fold */
    SHORT_FROM = TUNED(128, 4), /* terms of a sum whose levels are short, more than, */
    SHORT_LEAST = TUNED(16, 2), /* and of its first one, least */
    SHORT_MOST = TUNED(64, 3)
};

int64_t sum_even(int64_t span) {
    return span > SHORT_FROM ? align_up(span, SHORT_LEAST) : span;
}

/* So many turns of a piece, or some less, that it has them a whole number of times; 0: none from
 * `least` on. */
static int64_t even_span(int64_t trip, int64_t span, int64_t least) {
    while (span > least && trip % span != 0) {
        span--;
    }
    return trip % span == 0 ? span : 0;
}

int sum_lanes(int64_t extent) {
    for (int lanes = LANES; lanes >= LANES / 4; lanes /= 2) {
        if (extent >= lanes) {
            return lanes;
        }
    }
    return 1;
}

bool sum_rounds(OpCode op, Elem elem) {
    return elem_is_float(elem) && (op == OP_SUM || op == OP_ADD || op == OP_PROD || op == OP_MUL);
}

/* Axes of parts are used again by sums that stand behind one another: a kernel has few axes. */
static int part_axis(KernelBuild *b, int64_t extent) {
    int axis = -1;
    for (int i = 0; i < b->k->naxis && axis < 0; i++) {
        bool free = (b->part_axes & ~b->part_open) >> i & 1;
        axis = free && b->k->axis[i].extent == extent ? i : -1;
    }
    if (axis < 0) {
        axis = kernel_axis(b->k, extent, "c");
        b->part_axes |= (AxisSet)1 << axis;
    }
    b->part_open |= (AxisSet)1 << axis;
    return axis;
}

Turns turns_of(KernelBuild *b, const int *axis, int n) {
    Turns t = {.n = n};
    for (int i = 0; i < n; i++) {
        t.at[i] = (Turn){.axis = axis[i], .trip = b->k->axis[axis[i]].extent};
    }
    return t;
}

void turns_begin(KernelBuild *b, Turns *t, int piece, int64_t span) {
    t->at[0].begin = index_scale(&b->k->index, kernel_axis_index(b->k, piece), span);
    t->at[0].trip = span;
}

static void add_turn(SumLevels *s, Turn turn) {
    Turns *t = &s->level[s->n - 1];
    if (t->n == TURNS) {
        BUG("a sum over more than %d axes", TURNS);
    }
    for (int i = t->n++; i > 0; i--) {
        t->at[i] = t->at[i - 1];
    }
    t->at[0] = turn;
}

static void add_level(SumLevels *s) {
    if (s->n == SUM_LEVELS) {
        BUG("a sum of more than %d levels", SUM_LEVELS);
    }
    s->level[s->n++].n = 0;
}

/* Most turns of a level where terms are not in lanes: about as many as there are such parts, or a
 * line that is not much longer. */
static int64_t short_chain(const Turns *turns) {
    int64_t terms = 1, chain = 0;
    for (int i = 0; i < turns->n; i++) {
        terms = count_add(0, terms, turns->at[i].trip);
    }
    if (terms <= SHORT_FROM) {
        return SUM_CHAIN;
    }
    while (chain < SHORT_MOST && chain * chain < 4 * terms) {
        chain++;
    }
    const int64_t line = turns->at[turns->n - 1].trip;
    chain = chain > SHORT_LEAST ? chain : SHORT_LEAST;
    return line > chain && line <= SHORT_MOST ? line : chain;
}

SumLevels sum_levels(KernelBuild *b, const Turns *turns, int lanes, bool lone) {
    SumLevels s = {.n = 0};
    int64_t chain = 1, most = lone ? short_chain(turns) : SUM_CHAIN;
    add_level(&s);
    for (int i = turns->n - 1; i >= 0; i--) {
        Turn t = turns->at[i];
        int64_t unit = i == turns->n - 1 ? lanes : 1;
        while (chain * ((t.trip + unit - 1) / unit) > most) {
            int64_t span = most / chain * unit;
            if (t.begin && chain == 1 && t.trip % span != 0) {
                const bool longest = most == SUM_CHAIN;
                const int64_t less = even_span(t.trip, span, longest ? 2 : SHORT_LEAST);
                if (longest && (less == 0 || unit > 1)) {
                    BUG("a piece of a sum that is no multiple of its parts");
                }
                most = less > 0 ? less : SUM_CHAIN;
                continue;
            }
            bool even = !t.begin || t.trip % span == 0; /* a piece must not reach into the next */
            if (most / chain > 1 && even) { /* some turns of this axis, the rest around them */
                Turn part = {.axis = t.axis, .begin = t.begin, .trip = span};
                t = (Turn){.axis = part_axis(b, (t.trip + span - 1) / span)};
                t.trip = b->k->axis[t.axis].extent;
                const Index *at = index_scale(&b->k->index, kernel_axis_index(b->k, t.axis), span);
                part.begin = part.begin ? index_add(&b->k->index, part.begin, at) : at;
                add_turn(&s, part);
                unit = 1;
            }
            add_level(&s);
            chain = 1;
        }
        add_turn(&s, t);
        chain *= (t.trip + unit - 1) / unit;
    }
    return s;
}

int64_t sum_span(const Turns *turns, int lanes, int64_t span) {
    int64_t inner = 1;
    for (int i = turns->n - 1; i > 0; i--) {
        int64_t unit = i == turns->n - 1 ? lanes : 1;
        inner *= (turns->at[i].trip + unit - 1) / unit;
        inner = inner < SUM_CHAIN ? inner : SUM_CHAIN;
    }
    int64_t part = turns->n == 1 ? SUM_CHAIN * lanes : SUM_CHAIN / inner;
    part = part > 1 ? part : SUM_CHAIN;
    if (span <= part) {
        return span;
    }
    int64_t trip = turns->at[0].trip, parts = (trip + part - 1) / part;
    int64_t most = 2 * ((trip + span - 1) / span);
    return (parts + most - 1) / most * part;
}

RootList sum_folds(KernelBuild *b, const Radix *f, const RootList *roots) {
    RootList folds = {0};
    for (int i = 0; i < roots->count; i++) {
        Root r = roots->at[i];
        if (r.add != OP_CONST) {
            OpCode op = r.add == OP_MUL   ? OP_PROD
                        : r.add == OP_MAX ? OP_FMAX
                        : r.add == OP_MIN ? OP_FMIN
                                          : OP_SUM;
            r.value = expr_fold(b->k, op, r.arg->elem, r.value, space_set(f));
            r.add = OP_CONST;
        }
        VEC_PUSH(b->scratch, &folds, r);
    }
    return folds;
}
