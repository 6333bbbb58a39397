/* index: hash-consed integer expressions with range-based simplification; see index.h. */
#include "compiler/index.h"

#include <string.h>

enum { TERMS_MAX = 128 };

/* A sum under construction. */
typedef struct {
    int64_t base;
    int n;
    Term term[TERMS_MAX];
} Sum;

/* Terms behind the last one are never looked at: there is no need to clear two kilobytes. */
static void sum_open(Sum *s, int64_t base) {
    s->base = base;
    s->n = 0;
}

static void sum_copy(Sum *to, const Sum *from) {
    sum_open(to, from->base);
    to->n = from->n;
    memcpy(to->term, from->term, sizeof *to->term * (size_t)from->n);
}

int64_t floor_div(int64_t a, int64_t b) {
    int64_t q = a / b;
    return q - (a % b < 0);
}

static int64_t floor_mod(int64_t a, int64_t b) {
    return a - b * floor_div(a, b);
}

static int64_t gcd(int64_t a, int64_t b) {
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    while (b != 0) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

void index_open(IndexTable *t, Arena *arena) {
    *t = (IndexTable){.arena = arena, .tables = arena};
}

/* --- hash-consing ----------------------------------------------------------------------------- */

static uint64_t sum_hash(int64_t base, int n, const Term *term) {
    uint64_t h = hash_word(HASH_TABLE, (uint64_t)base);
    for (int i = 0; i < n; i++) {
        h = hash_word(h, (uint64_t)term[i].atom->id);
        h = hash_word(h, (uint64_t)term[i].mul);
    }
    return h;
}

static bool sum_is(const Index *a, int64_t base, int n, const Term *term) {
    if (a->base != base || a->nterm != n) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        if (a->term[i].atom != term[i].atom || a->term[i].mul != term[i].mul) {
            return false;
        }
    }
    return true;
}

static void cons_grow(IndexTable *t) {
    const Index **old = t->cons;
    int size = t->cons_size;
    t->cons_size = size ? 2 * size : 64;
    t->cons = ARENA_ARRAY(t->tables, const Index *, t->cons_size);
    uint64_t mask = (uint64_t)t->cons_size - 1;
    for (int i = 0; i < size; i++) {
        if (old[i]) {
            uint64_t h = sum_hash(old[i]->base, old[i]->nterm, old[i]->term);
            while (t->cons[h & mask]) {
                h++;
            }
            t->cons[h & mask] = old[i];
        }
    }
}

/* Bounds stay within this: what a guard keeps from being computed may be anywhere. */
static const int64_t FARTHEST = INT64_MAX / 4;

static int64_t bound_add(int64_t bound, int64_t times, int64_t n) {
    int64_t product, sum;
    if (__builtin_mul_overflow(times, n, &product)) {
        product = (times < 0) == (n < 0) ? FARTHEST : -FARTHEST;
    }
    if (__builtin_add_overflow(bound, product, &sum)) {
        sum = product;
    }
    return sum > FARTHEST ? FARTHEST : sum < -FARTHEST ? -FARTHEST : sum;
}

static const Index *sum_keep(IndexTable *t, int64_t base, int n, const Term *term) {
    if (2 * t->cons_used >= t->cons_size) {
        cons_grow(t);
    }
    uint64_t h = sum_hash(base, n, term), mask = (uint64_t)t->cons_size - 1;
    for (; t->cons[h & mask]; h++) {
        if (sum_is(t->cons[h & mask], base, n, term)) {
            return t->cons[h & mask];
        }
    }
    Index *a = ARENA_NEW(t->arena, Index);
    Term *copy = ARENA_ARRAY(t->arena, Term, n);
    *a = (Index){.base = base, .nterm = n, .term = copy, .least = base, .most = base};
    for (int i = 0; i < n; i++) {
        copy[i] = term[i];
        const Atom *atom = term[i].atom;
        bool up = term[i].mul > 0;
        a->least = bound_add(a->least, term[i].mul, up ? atom->least : atom->most);
        a->most = bound_add(a->most, term[i].mul, up ? atom->most : atom->least);
        a->axes |= term[i].atom->axes;
    }
    t->cons[h & mask] = a;
    t->cons_used++;
    return a;
}

/* One value has a range a use: what picks in axes of two extents is known by each of them alone. */
static const Atom *atom_keep(IndexTable *t, Atom like) {
    for (int i = 0; i < t->atom.count; i++) {
        const Atom *a = t->atom.at[i];
        if (a->kind == like.kind && a->number == like.number && a->value == like.value &&
            a->of == like.of && a->by == like.by && a->least == like.least &&
            a->most == like.most) {
            return a;
        }
    }
    Atom *a = ARENA_NEW(t->arena, Atom);
    *a = like;
    a->id = t->atom.count;
    VEC_PUSH_FROM(t->arena, &t->atom, a, 4);
    return a;
}

static const Index *of_unknown(IndexTable *t, const Atom *atom) {
    Term one = {atom, 1};
    return sum_keep(t, 0, 1, &one);
}

static const Index *of_atom(IndexTable *t, const Atom *atom) {
    return atom->least == atom->most ? index_const(t, atom->least) : of_unknown(t, atom);
}

/* --- sums ------------------------------------------------------------------------------------- */

static void sum_term(Sum *s, const Atom *atom, int64_t mul) {
    int i = 0;
    while (i < s->n && s->term[i].atom->id < atom->id) {
        i++;
    }
    if (i < s->n && s->term[i].atom == atom) {
        s->term[i].mul += mul;
        if (s->term[i].mul == 0) {
            memmove(&s->term[i], &s->term[i + 1], sizeof *s->term * (size_t)(s->n - i - 1));
            s->n--;
        }
        return;
    }
    if (mul == 0) {
        return;
    }
    if (s->n == TERMS_MAX) {
        BUG("an index of more than %d terms", TERMS_MAX);
    }
    memmove(&s->term[i + 1], &s->term[i], sizeof *s->term * (size_t)(s->n - i));
    s->term[i] = (Term){atom, mul};
    s->n++;
}

static void sum_add(Sum *s, const Index *a, int64_t mul) {
    s->base += mul * a->base;
    for (int i = 0; i < a->nterm; i++) {
        sum_term(s, a->term[i].atom, mul * a->term[i].mul);
    }
}

static int sum_find(const Sum *s, const Atom *atom) {
    for (int i = 0; i < s->n; i++) {
        if (s->term[i].atom == atom) {
            return i;
        }
    }
    return -1;
}

/* Puts a remainder and its quotient together again: c*(y mod m) + c*m*(y div m) = c*y. */
static bool sum_join(IndexTable *t, Sum *s) {
    for (int i = 0; i < s->n; i++) {
        const Atom *mod = s->term[i].atom;
        int64_t c = s->term[i].mul;
        if (mod->kind != ATOM_MOD) {
            continue;
        }
        const Index *q = index_div(t, mod->of, mod->by);
        if (q->nterm != 1 || q->base != 0 || q->term[0].mul != 1) {
            continue;
        }
        int j = sum_find(s, q->term[0].atom);
        if (j >= 0 && s->term[j].mul == c * mod->by) {
            sum_term(s, q->term[0].atom, -c * mod->by);
            sum_term(s, mod, -c);
            sum_add(s, mod->of, c);
            return true;
        }
    }
    return false;
}

static const Index *sum_done(IndexTable *t, Sum *s) {
    while (sum_join(t, s)) {
    }
    return sum_keep(t, s->base, s->n, s->term);
}

const Index *index_const(IndexTable *t, int64_t value) {
    return sum_keep(t, value, 0, NULL);
}

const Index *index_axis(IndexTable *t, int number, int64_t extent) {
    if (number < 0 || number >= AXES_MAX) {
        BUG("axis %d out of range", number);
    }
    Atom atom = {.kind = ATOM_AXIS,
                 .number = number,
                 .most = extent > 0 ? extent - 1 : 0,
                 .axes = (AxisSet)1 << number};
    return of_atom(t, atom_keep(t, atom));
}

const Index *index_loop(IndexTable *t, int number, int64_t trip, bool picks) {
    Atom atom = {.kind = ATOM_LOOP, .number = number, .most = trip > 0 ? trip - 1 : 0};
    const Atom *kept = atom_keep(t, atom);
    return picks ? of_unknown(t, kept) : of_atom(t, kept);
}

const Index *index_value(IndexTable *t, const void *value, AxisSet axes, int64_t least,
                         int64_t most) {
    Atom atom = {.kind = ATOM_VALUE, .value = value, .axes = axes, .least = least, .most = most};
    return of_atom(t, atom_keep(t, atom));
}

const Index *index_add(IndexTable *t, const Index *a, const Index *b) {
    Sum s;
    sum_open(&s, 0);
    sum_add(&s, a, 1);
    sum_add(&s, b, 1);
    return sum_done(t, &s);
}

const Index *index_scale(IndexTable *t, const Index *a, int64_t by) {
    Sum s;
    sum_open(&s, 0);
    sum_add(&s, a, by);
    return sum_done(t, &s);
}

const Index *index_offset(IndexTable *t, const Index *a, int64_t by) {
    Sum s;
    sum_open(&s, 0);
    sum_add(&s, a, 1);
    s.base += by;
    return sum_done(t, &s);
}

/* --- quotients and remainders ----------------------------------------------------------------- */

static int64_t sum_least(const Sum *s) {
    int64_t least = s->base;
    for (int i = 0; i < s->n; i++) {
        int64_t lo = s->term[i].mul * s->term[i].atom->least;
        int64_t hi = s->term[i].mul * s->term[i].atom->most;
        least += lo < hi ? lo : hi;
    }
    return least;
}

static int64_t sum_most(const Sum *s) {
    int64_t most = s->base;
    for (int i = 0; i < s->n; i++) {
        int64_t lo = s->term[i].mul * s->term[i].atom->least;
        int64_t hi = s->term[i].mul * s->term[i].atom->most;
        most += lo < hi ? hi : lo;
    }
    return most;
}

/* a = by * whole + rest with 0 <= base of rest < by. */
static void split_multiples(const Index *a, int64_t by, Sum *whole, Sum *rest) {
    sum_open(whole, floor_div(a->base, by));
    sum_open(rest, floor_mod(a->base, by));
    for (int i = 0; i < a->nterm; i++) {
        int64_t mul = a->term[i].mul;
        if (mul % by == 0) {
            sum_term(whole, a->term[i].atom, mul / by);
        } else {
            sum_term(rest, a->term[i].atom, mul);
        }
    }
}

static int64_t magnitude(int64_t x) {
    return x < 0 ? -x : x;
}

/* rest = g * high + low with 0 <= low < g, g > 1 a divisor of `by`: the finest such g, or 1. The
 * terms with the largest multiples go into high. */
static int64_t split_digits(const Sum *rest, int64_t by, Sum *high, Sum *low) {
    Sum left;
    sum_copy(&left, rest);
    sum_open(high, 0);
    int64_t g = by;
    while (left.n > 0) {
        int at = 0;
        for (int i = 1; i < left.n; i++) {
            if (magnitude(left.term[i].mul) > magnitude(left.term[at].mul)) {
                at = i;
            }
        }
        Term big = left.term[at];
        g = gcd(g, big.mul);
        if (g <= 1) {
            return 1;
        }
        sum_term(&left, big.atom, -big.mul);
        sum_term(high, big.atom, big.mul);
        const int64_t base = left.base;
        left.base = floor_mod(base, g);
        const bool ends = sum_least(&left) >= 0 && sum_most(&left) < g;
        if (ends) {
            sum_copy(low, &left);
        }
        left.base = base;
        if (ends) {
            high->base = floor_div(left.base, g);
            for (int i = 0; i < high->n; i++) {
                high->term[i].mul /= g;
            }
            return g;
        }
    }
    return 1;
}

/* The only term of a sum that is one atom, else NULL. */
static const Atom *lone_atom(const Index *a) {
    return a->base == 0 && a->nterm == 1 && a->term[0].mul == 1 ? a->term[0].atom : NULL;
}

/* Where one term of a sum is a quotient: (a + (y div n)) div by = (n * a + y) div (n * by). NULL:
 * none is, or there is no room for what it becomes. */
static const Index *div_of_quotient(IndexTable *t, const Index *of, int64_t by) {
    for (int i = 0; i < of->nterm; i++) {
        const Atom *atom = of->term[i].atom;
        if (atom->kind == ATOM_DIV && of->term[i].mul == 1 &&
            of->nterm + atom->of->nterm <= TERMS_MAX && by <= INT32_MAX / atom->by) {
            Sum s;
            sum_open(&s, 0);
            sum_add(&s, of, atom->by);
            sum_term(&s, atom, -atom->by);
            sum_add(&s, atom->of, 1);
            return index_div(t, sum_done(t, &s), atom->by * by);
        }
    }
    return NULL;
}

static const Index *div_atom(IndexTable *t, const Index *of, int64_t by) {
    const Atom *lone = lone_atom(of);
    const Index *whole = div_of_quotient(t, of, by);
    if (whole) {
        return whole;
    }
    if (lone && lone->kind == ATOM_MOD && lone->by % by == 0) {
        return index_mod(t, index_div(t, lone->of, by), lone->by / by);
    }
    Atom atom = {.kind = ATOM_DIV,
                 .of = of,
                 .by = by,
                 .axes = of->axes,
                 .least = floor_div(of->least, by),
                 .most = floor_div(of->most, by)};
    return of_atom(t, atom_keep(t, atom));
}

const Index *index_div(IndexTable *t, const Index *a, int64_t by) {
    if (by <= 0) {
        BUG("an index divided by %lld", (long long)by);
    }
    if (by == 1) {
        return a;
    }
    Sum whole, rest, high, low;
    split_multiples(a, by, &whole, &rest);
    int64_t least = floor_div(sum_least(&rest), by), most = floor_div(sum_most(&rest), by);
    if (least == most) {
        whole.base += least;
        return sum_done(t, &whole);
    }
    int64_t g = split_digits(&rest, by, &high, &low);
    const Index *tail;
    if (g > 1) {
        const Index *digits = sum_done(t, &high);
        tail = g == by ? digits : index_div(t, digits, by / g);
    } else {
        tail = div_atom(t, sum_keep(t, rest.base, rest.n, rest.term), by);
    }
    sum_add(&whole, tail, 1);
    return sum_done(t, &whole);
}

const Index *index_mod(IndexTable *t, const Index *a, int64_t by) {
    if (by <= 0) {
        BUG("an index modulo %lld", (long long)by);
    }
    Sum whole, rest, high, low;
    split_multiples(a, by, &whole, &rest);
    if (floor_div(sum_least(&rest), by) == floor_div(sum_most(&rest), by)) {
        rest.base -= by * floor_div(sum_least(&rest), by);
        return sum_done(t, &rest);
    }
    int64_t g = split_digits(&rest, by, &high, &low);
    if (g > 1) {
        const Index *digits = sum_done(t, &high);
        const Index *top = g == by ? index_const(t, 0) : index_mod(t, digits, by / g);
        sum_add(&low, top, g);
        return sum_done(t, &low);
    }
    const Index *of = sum_keep(t, rest.base, rest.n, rest.term);
    const Atom *lone = lone_atom(of);
    if (lone && lone->kind == ATOM_MOD && lone->by % by == 0) {
        return index_mod(t, lone->of, by);
    }
    Atom atom = {.kind = ATOM_MOD, .of = of, .by = by, .axes = of->axes, .most = by - 1};
    return of_atom(t, atom_keep(t, atom));
}

/* --- reading ---------------------------------------------------------------------------------- */

const Index *index_subst(IndexTable *t, const Index *a, int number, const Index *with) {
    if (!(a->axes >> number & 1)) {
        return a;
    }
    Sum s;
    sum_open(&s, a->base);
    for (int i = 0; i < a->nterm; i++) {
        const Atom *atom = a->term[i].atom;
        int64_t mul = a->term[i].mul;
        if (!(atom->axes >> number & 1)) {
            sum_term(&s, atom, mul);
        } else if (atom->kind == ATOM_AXIS) {
            sum_add(&s, with, mul);
        } else if (atom->kind == ATOM_DIV) {
            sum_add(&s, index_div(t, index_subst(t, atom->of, number, with), atom->by), mul);
        } else if (atom->kind == ATOM_MOD) {
            sum_add(&s, index_mod(t, index_subst(t, atom->of, number, with), atom->by), mul);
        } else {
            BUG("a value at run time depends on the axis to replace");
        }
    }
    return sum_done(t, &s);
}

bool index_is_const(const Index *a, int64_t *value) {
    *value = a->base;
    return a->nterm == 0;
}

bool index_stride(const Index *a, int number, int64_t *mul) {
    *mul = 0;
    for (int i = 0; i < a->nterm; i++) {
        const Atom *atom = a->term[i].atom;
        if (atom->kind == ATOM_AXIS && atom->number == number) {
            *mul = a->term[i].mul;
        } else if (atom->axes >> number & 1) {
            return false;
        }
    }
    return true;
}
