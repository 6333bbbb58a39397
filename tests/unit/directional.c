/* directional: see the header. Differences are of fourth order, with several steps: a wrong
 * gradient agrees at none, while one step alone may cross a kink. */
#include "directional.h"
#include "tests/support.h"

#include <math.h>
#include <string.h>

enum { TRIP = 3 };

static bool is_float(const Slot *slot) {
    return elem_is_float(slot->type.elem);
}

static Node *total(Graph *g, Node *a) {
    return a->type->rank == 0 ? a : node_fold(g, OP_SUM, a, (1u << a->type->rank) - 1);
}

/* sum(a * random numbers) as f64 */
static Node *weighed(Sample *s, Node *a) {
    Node *w = sample_table(s, *a->type, -1, 1);
    return node_cast(s->g, total(s->g, node_map2(s->g, OP_MUL, a, w)), TY_F64);
}

static Node *weighed_sum(Sample *s, Node *const *a, int n) {
    Node *sum = node_const(s->g, TY_F64, 0);
    for (int k = 0; k < n; k++) {
        sum = node_map2(s->g, OP_ADD, sum, weighed(s, a[k]));
    }
    return sum;
}

/* Appends the value and its derivative to each float slot to the results of the region. */
static void append_gradients(Sample *s, Region *region, Node *value) {
    region_result(region, value);
    for (int k = 0; k < s->nslot; k++) {
        if (is_float(s->slot[k])) {
            Node *point = node_slot(s->g, s->slot[k]);
            region_result(region, node_grad(s->g, value, point, node_const(s->g, TY_F64, 1)));
        }
    }
}

/* Copies the nodes of `region`, its float results first. Gives how many these are, and how many
 * slots are floats; NULL: there are none of one of them. */
static Region *floats_first(Sample *s, const Region *region, int *n, int *nslot) {
    Region *copy = region_rebuild(s->g, region, NULL, NULL);
    *n = *nslot = 0;
    for (int k = 0; k < s->nslot; k++) {
        *nslot += is_float(s->slot[k]);
    }
    for (int k = 0; k < copy->out.count; k++) {
        Node *out = copy->out.at[k];
        if (elem_is_float(out->type->elem)) {
            copy->out.at[k] = copy->out.at[*n];
            copy->out.at[(*n)++] = out;
        }
    }
    return *n > 0 && *nslot > 0 ? copy : NULL;
}

Region *directional_region(Sample *s, const Region *region) {
    int nfloat, nslot;
    Region *made = floats_first(s, region, &nfloat, &nslot);
    if (!made) {
        return NULL;
    }
    Region *before = graph_enter(s->g, made);
    Node *value = weighed_sum(s, made->out.at, nfloat);
    made->out.count = 0;
    append_gradients(s, made, value);
    append_gradients(s, made, weighed_sum(s, made->out.at + 1, nslot));
    graph_leave(s->g, before);
    region_verify(made, STAGE_BUILT);
    return made;
}

Region *directional_forward(Sample *s, const Region *region) {
    int nfloat, nslot;
    Region *made = floats_first(s, region, &nfloat, &nslot);
    if (!made) {
        return NULL;
    }
    Graph *g = s->g;
    Region *before = graph_enter(g, made);
    Node *value = weighed_sum(s, made->out.at, nfloat), *one = node_const(g, TY_F64, 1);
    Node *forward = node_const(g, TY_F64, 0), *gap = forward;
    for (int k = 0; k < s->nslot; k++) {
        if (is_float(s->slot[k])) {
            Node *point = node_slot(g, s->slot[k]);
            Node *d = sample_table(s, *point->type, -1, 1);
            Node *back = node_map2(g, OP_MUL, node_grad(g, value, point, one), d);
            Node *along = node_jvp(g, value, point, d);
            forward = node_map2(g, OP_ADD, forward, along);
            back = node_cast(g, total(g, back), TY_F64);
            gap =
                node_map2(g, OP_ADD, gap, node_map1(g, OP_ABS, node_map2(g, OP_SUB, along, back)));
        }
    }
    made->out.count = 0;
    append_gradients(s, made, value);
    append_gradients(s, made, forward);
    region_result(made, gap);
    graph_leave(g, before);
    region_verify(made, STAGE_BUILT);
    return made;
}

/* Results with the data moved by t along `direction` (may be NULL). */
static Value *values_at(Arena *arena, const Sample *s, const Region *region, double t,
                        double *const *direction) {
    Eval *ev = eval_open(arena, (EvalOptions){.smooth = true});
    Value *out = ARENA_ARRAY(arena, Value, region->out.count);
    for (int k = 0; k < s->nslot; k++) {
        int64_t n = type_count(s->slot[k]->type);
        double *data = ARENA_ARRAY(arena, double, n);
        for (int64_t i = 0; i < n; i++) {
            data[i] = s->data[k][i] + (direction && direction[k] ? t * direction[k][i] : 0);
        }
        eval_bind(ev, s->slot[k], data);
    }
    eval_region(ev, region, out);
    return out;
}

Value *directional_values(Arena *arena, const Sample *s, const Region *region) {
    return values_at(arena, s, region, 0, NULL);
}

static double **random_direction(Arena *arena, Sample *s) {
    double **d = ARENA_ARRAY(arena, double *, s->nslot);
    for (int k = 0; k < s->nslot; k++) {
        int64_t n = is_float(s->slot[k]) ? type_count(s->slot[k]->type) : 0;
        d[k] = n ? ARENA_ARRAY(arena, double, n) : NULL;
        for (int64_t i = 0; i < n; i++) {
            d[k][i] = sample_uniform(s, -1, 1);
        }
    }
    return d;
}

Directional directional_check(Arena *arena, Sample *s, const Region *expanded) {
    static const double steps[] = {1e-3, 1e-4, 1e-5}, good = 1e-9;
    Directional r = {.error = {INFINITY, INFINITY}};
    double **d = random_direction(arena, s), analytic[2] = {0};
    int half = expanded->out.count / 2;
    Value *here = values_at(arena, s, expanded, 0, NULL);
    for (int order = 0; order < 2; order++) {
        for (int k = 0, at = order * half + 1; k < s->nslot; k++) {
            for (int64_t i = 0; d[k] && i < type_count(s->slot[k]->type); i++) {
                double term = d[k][i] * value_get(here[at], i);
                analytic[order] += term;
                r.size[order] += fabs(term);
            }
            at += d[k] != NULL;
        }
    }
    bool done = false;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !done; i++) {
        double h = steps[i];
        Value *out[4];
        for (int k = 0; k < 4; k++) {
            out[k] = values_at(arena, s, expanded, (k < 2 ? k - 2 : k - 1) * h, d);
        }
        done = true;
        for (int order = 0; order < 2; order++) {
            int at = order * half;
            double numeric = (8 * (value_get(out[2][at], 0) - value_get(out[1][at], 0)) -
                              (value_get(out[3][at], 0) - value_get(out[0][at], 0))) /
                             (12 * h);
            double error = fabs(analytic[order] - numeric) / (1e-3 + r.size[order]);
            r.error[order] = error < r.error[order] ? error : r.error[order];
            done = done && r.error[order] < good;
        }
    }
    for (int order = 0; order < 2; order++) {
        r.error[order] = isfinite(r.error[order]) ? r.error[order] : NAN;
    }
    return r;
}

/* --- in a loop -------------------------------------------------------------------------------- */

typedef struct {
    const Sample *s;
    int slot[SAMPLE_SLOTS]; /* of each parameter */
} SlotParams;

static Node *slot_to_param(void *ctx, Graph *g, const Node *old, Node *const *in) {
    SlotParams *p = ctx;
    (void)in;
    for (int k = 0; old->op == OP_SLOT && k < p->s->nslot; k++) {
        if (old->attr->slot == p->s->slot[k]) {
            p->slot[g->region->param.count] = k;
            return region_param(g->region, *old->type);
        }
    }
    return NULL;
}

/* Slices a + 0.01 t: they differ, and stay in the domain that `a` was drawn from. */
static Node *stack_of(Graph *g, Node *a) {
    Type t = {.elem = a->type->elem, .rank = a->type->rank + 1, .dim = {TRIP}};
    memcpy(t.dim + 1, a->type->dim, sizeof *t.dim * (size_t)a->type->rank);
    Type at = t;
    at.elem = TY_I32;
    Node *number = node_cast(g, node_iota(g, at, 0), t.elem);
    Node *shift = node_map2(g, OP_MUL, number, node_const(g, t.elem, 0.01));
    return node_map2(g, OP_ADD, node_broadcast(g, a, 1, t.rank, t.dim), shift);
}

Region *directional_looped(Sample *s, const Region *region, bool reverse, int64_t checkpoint) {
    Graph *g = s->g;
    SlotParams p = {.s = s};
    Region *function = region_rebuild(g, region, slot_to_param, &p);
    Region *made = region_new(g, NULL), *before = graph_enter(g, made);
    LoopBuilder *loop = loop_open(g, TRIP, reverse);
    loop_checkpoint(loop, checkpoint);
    int c = loop_carry(loop, node_const(g, TY_F64, 0.5)), nfloat = 0;
    Node *carry = loop_carry_value(loop, c);
    Node *arg[SAMPLE_SLOTS] = {0};
    for (int k = 0; k < function->param.count; k++) {
        Slot *slot = s->slot[p.slot[k]];
        Region *body = graph_enter(g, made);
        Node *outside = node_slot(g, slot), *stack = NULL;
        if (is_float(slot) && nfloat % 2 == 0) {
            stack = stack_of(g, outside);
        }
        graph_leave(g, body);
        arg[k] = stack ? loop_xs(loop, stack) : graph_import(g, outside);
        if (is_float(slot) && nfloat++ == 0) {
            Node *move =
                node_map2(g, OP_MUL, node_map1(g, OP_SIN, carry), node_const(g, TY_F64, 0.01));
            arg[k] = node_map2(g, OP_ADD, arg[k], node_cast(g, move, slot->type.elem));
        }
    }
    Node **out = ARENA_ARRAY(g->arena, Node *, function->out.count);
    region_inline(g, function, arg, out);
    Node *next = node_map2(g, OP_MUL, carry, node_const(g, TY_F64, 0.5));
    int *number = ARENA_ARRAY(g->arena, int, function->out.count);
    for (int k = 0; k < function->out.count; k++) {
        number[k] = loop_emit(loop, out[k]);
        if (elem_is_float(out[k]->type->elem)) {
            next = node_map2(g, OP_ADD, next, weighed(s, out[k]));
        }
    }
    loop_next(loop, c, next);
    Node *done = loop_close(loop);
    region_result(made, loop_final(g, done, c));
    for (int k = 0; k < function->out.count; k++) {
        region_result(made, loop_stack(g, done, number[k]));
    }
    graph_leave(g, before);
    return made;
}

double directional_turn(Arena *arena, const Region *region, Slot *const *slot,
                        const double *const *data, int nslot, double step) {
    double worst = 0;
    int nout = region->out.count;
    Value *out[2];
    for (int side = 0; side < 2; side++) {
        Eval *ev = eval_open(arena, (EvalOptions){.smooth = true});
        uint64_t h = 7;
        for (int i = 0; i < nslot; i++) {
            int64_t n = type_count(slot[i]->type);
            double *moved = ARENA_ARRAY(arena, double, n + 1);
            for (int64_t k = 0; k < n; k++) {
                h = hash_bytes(h, &k, sizeof k);
                double way = (h >> 40 & 1) ? step : -step;
                bool moves = elem_is_float(slot[i]->type.elem);
                moved[k] = data[i][k] + (moves ? (side ? way : -way) : 0);
            }
            eval_bind(ev, slot[i], moved);
        }
        out[side] = ARENA_ARRAY(arena, Value, nout);
        eval_region(ev, region, out[side]);
    }
    for (int k = 1; k < nout; k++) {
        double gap = 0, size = 1e-9;
        int64_t n = elem_is_float(out[0][k].type.elem) ? type_count(out[0][k].type) : 0;
        for (int64_t i = 0; i < n; i++) {
            double d = fabs(out[0][k].at[i].f - out[1][k].at[i].f);
            gap = worse_gap(gap, d);
            size = fmax(size, fabs(out[0][k].at[i].f));
        }
        worst = worse_gap(worst, gap / size);
    }
    return worst;
}

bool directional_unclear(Arena *arena, const Region *region, Slot *const *slot,
                         const double *const *data, int nslot) {
    return !(directional_turn(arena, region, slot, data, nslot, 1e-6) <= 1e-4 &&
             directional_turn(arena, region, slot, data, nslot, 1e-4) <= 0.3);
}
