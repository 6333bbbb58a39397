/* gradcheck: see gradcheck.h.
 *
 * Technique: along a random direction d, (f(x + h d) - f(x - h d)) / 2h to fourth order is
 * compared with the sum of gradient times d. The elements of d are of both signs and of many
 * sizes, from 1/2 to 3/2: of one size they cancel where derivatives are equal, and so do those of
 * a wrong gradient. The error is relative to the norm of the gradient, which is about the size
 * that this sum has for a random d; a gradient of nearly zero is measured against a part of the
 * value. A number of an f32 program, such as the 1/6 of a mean, is rounded: terms of a derivative
 * that should cancel, as those by a bias in front of two norms, leave that part of what they were,
 * so a gradient less than it, of the whole one, may be 0. Several h are tried and the best
 * agreement counts: a wrong gradient agrees at none, while one h alone may step over a kink or
 * drown in rounding. Needs a differentiated region and bound slots; gives the worst error; changes
 * nothing. */
#include "compiler/gradcheck.h"

#include <math.h>

static uint64_t bits(uint64_t *state) {
    uint64_t x = *state += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

/* A number of either sign, of a size of 1/2 to 3/2. */
static double element(uint64_t *state) {
    const uint64_t x = bits(state);
    const double size = 0.5 + (double)(x >> 11) * 0x1p-53;
    return x & 1 ? size : -size;
}

typedef struct {
    Eval *ev;
    const Region *value; /* the first result alone */
    const Slot *slot;
    Value start, moved;
    const double *direction;
} Line;

/* The scalar at start + t * direction. */
static double value_at(const Line *line, double t) {
    int64_t n = type_count(line->slot->type);
    for (int64_t i = 0; i < n; i++) {
        line->moved.at[i].f = line->start.at[i].f + t * line->direction[i];
    }
    eval_bind_value(line->ev, line->slot, line->moved);
    Value out;
    eval_region(line->ev, line->value, &out);
    double f = value_get(out, 0);
    eval_drop(line->ev, out);
    return f;
}

static double slope(const Line *line, double h) {
    return (8 * (value_at(line, h) - value_at(line, -h)) -
            (value_at(line, 2 * h) - value_at(line, -2 * h))) /
           (12 * h);
}

/* What rounded numbers leave of a gradient: one part in 2^23 of it in f32, if it is a number. */
static double rounded(const Slot *slot, double whole) {
    return slot->type.elem == TY_F64 || !isfinite(whole) ? 0 : whole / (1 << 23);
}

static void check_line(const Line *line, Value gradient, double f, double whole, GradCheck *check) {
    static const double steps[] = {1e-4, 1e-5, 1e-3, 1e-6}, good = 1e-8;
    double analytic = 0, square = 0, best = INFINITY, at_best = NAN;
    for (int64_t i = 0, n = type_count(line->slot->type); i < n; i++) {
        double g = value_get(gradient, i);
        analytic += g * line->direction[i];
        square += g * g;
    }
    const double size = fmax(sqrt(square), 1e-5 * fabs(f));
    const double left = rounded(line->slot, whole);
    const bool small = sqrt(square) <= left;
    for (size_t k = 0; best > good && k < sizeof steps / sizeof *steps; k++) {
        double numeric = slope(line, steps[k]), gap = fabs(numeric - analytic);
        const bool nothing = small && fabs(numeric) <= left;
        double error = nothing || gap == 0 ? 0 : gap / size;
        if (!isfinite(gap)) { /* stepped out of the domain, or the gradient itself is bad */
            continue;
        }
        if (error < best) {
            best = error;
            at_best = numeric;
        }
    }
    if (!isfinite(best)) {
        best = NAN;
    }
    if (!check->worst || !(best <= check->error)) {
        *check = (GradCheck){best, line->slot, analytic, at_best};
    }
}

/* The norm of all derivatives together. */
static double norm_of(const Value *gradient, int n) {
    double square = 0;
    for (int k = 0; k < n; k++) {
        for (int64_t i = 0; i < type_count(gradient[k].type); i++) {
            const double g = value_get(gradient[k], i);
            square += g * g;
        }
    }
    return sqrt(square);
}

GradCheck gradcheck_region(Eval *ev, Arena *arena, const Region *region, Slot *const *slot,
                           int nslot, uint64_t seed, int directions) {
    GradCheck check = {0};
    Region *value = ARENA_NEW(arena, Region);
    *value = *region;
    value->out.count = 1;
    Value *out = ARENA_ARRAY(arena, Value, region->out.count);
    eval_region(ev, region, out);
    const double whole = norm_of(out + 1, nslot);
    for (int k = 0; k < nslot; k++) {
        int64_t n = type_count(slot[k]->type);
        double *direction = ARENA_ARRAY(arena, double, n);
        Line line = {.ev = ev, .value = value, .slot = slot[k], .direction = direction};
        line.moved = eval_new(ev, slot_value_type(slot[k]));
        if (!eval_bound(ev, slot[k], &line.start)) {
            BUG("slot '%s' is not bound", slot[k]->name);
        }
        line.start = eval_share(ev, line.start);
        for (int d = 0; d < directions; d++) {
            for (int64_t i = 0; i < n; i++) {
                direction[i] = element(&seed);
            }
            check_line(&line, out[1 + k], value_get(out[0], 0), whole, &check);
        }
        eval_bind_value(ev, slot[k], line.start);
        eval_drop(ev, line.start);
        eval_drop(ev, line.moved);
    }
    for (int k = 0; k < region->out.count; k++) {
        eval_drop(ev, out[k]);
    }
    return check;
}
