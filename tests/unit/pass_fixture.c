/* pass_fixture: see pass_fixture.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pass_fixture.h"
#include "passes/factor.h"
#include "passes/halo.h"
#include "passes/hoist.h"
#include "passes/layout.h"
#include "passes/merge.h"
#include "passes/narrow.h"
#include "passes/simplify.h"
#include "passes/unroll.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint64_t seed(void) {
    const char *text = getenv("MDLC_SEED");
    return text ? strtoull(text, NULL, 10) : 20240608;
}

void fixture_open(Fixture *f, Elem elem, uint64_t number) {
    memset(f, 0, sizeof *f);
    f->g = graph_new(&f->arena, elem);
    f->region = region_new(f->g, NULL);
    graph_enter(f->g, f->region);
    f->s = (Sample){.g = f->g, .rng = seed() + number, .elem = elem};
}

static void evaluate(Fixture *f, const Region *region, EvalOptions options, Value *out) {
    Eval *ev = eval_open(&f->arena, options);
    for (int k = 0; k < f->s.nslot; k++) {
        eval_bind(ev, f->s.slot[k], f->s.data[k]);
    }
    eval_region(ev, region, out);
}

Region *optimise(Fixture *f, const Region *region) {
    Region *now = pass_simplify(f->g, region);
    region_verify(now, STAGE_GRAD);
    now = pass_hoist(f->g, now);
    region_verify(now, STAGE_GRAD);
    now = pass_simplify(f->g, now);
    region_verify(now, STAGE_GRAD);
    now = pass_factor(f->g, now);
    region_verify(now, STAGE_GRAD);
    now = pass_unroll(f->g, now);
    region_verify(now, STAGE_GRAD);
    now = pass_merge(f->g, now, NULL);
    region_verify(now, STAGE_GRAD);
    return now;
}

Region *shaped(Fixture *f, const Region *region) {
    Region *now = pass_narrow(f->g, pass_layout(f->g, pass_halo(f->g, optimise(f, region))));
    region_verify(now, STAGE_GRAD);
    return now;
}

double difference_with(Fixture *f, const Region *a, const Region *b, EvalOptions options) {
    int n = a->out.count;
    Value *x = ARENA_ARRAY(&f->arena, Value, n), *y = ARENA_ARRAY(&f->arena, Value, n);
    double worst = 0;
    evaluate(f, a, (EvalOptions){0}, x);
    evaluate(f, b, options, y);
    for (int k = 0; k < n; k++) {
        double size = 1e-3, gap = 0;
        assert_true(type_equal(x[k].type, y[k].type));
        for (int64_t i = 0; i < type_count(x[k].type); i++) {
            double p = value_get(x[k], i), q = value_get(y[k], i);
            size = fmax(size, fabs(p));
            gap = fmax(gap, p == q || (isnan(p) && isnan(q)) ? 0 : fabs(p - q));
        }
        worst = fmax(worst, isnan(gap) ? INFINITY : gap / size);
    }
    return worst;
}

double difference(Fixture *f, const Region *a, const Region *b) {
    return difference_with(f, a, b, (EvalOptions){0});
}

double tolerance(Fixture *f, const Region *region) {
    double spread = 0;
    for (uint64_t k = 1; k <= 3; k++) {
        EvalOptions noisy = {.noise = 0x1p-36, .noise_seed = k};
        spread = fmax(spread, difference_with(f, region, region, noisy));
    }
    return fmax(1e-10, 0x1p-12 * spread);
}

Node *total(Fixture *f, Node *a) {
    return a->type->rank == 0 ? a : node_fold(f->g, OP_SUM, a, (1u << a->type->rank) - 1);
}

void add_gradients(Fixture *f) {
    Node *out = f->region->out.at[0];
    if (!elem_is_float(out->type->elem)) {
        return;
    }
    Node *value = total(f, node_map2(f->g, OP_MUL, out, sample_table(&f->s, *out->type, -1, 1)));
    for (int k = 0; k < f->s.nslot; k++) {
        if (elem_is_float(f->s.slot[k]->type.elem)) {
            Node *slot = node_slot(f->g, f->s.slot[k]);
            region_result(f->region,
                          node_grad(f->g, value, slot, node_const(f->g, value->type->elem, 1)));
        }
    }
}

int fixture_count(Fixture *f, const Region *region, bool (*test)(const Node *node)) {
    bool *live = ARENA_ARRAY(&f->arena, bool, region->node.count + 1);
    int n = 0;
    for (int i = 0; i < region->out.count; i++) {
        live[region->out.at[i]->id] = true;
    }
    for (int i = region->node.count - 1; i >= 0; i--) {
        const Node *node = region->node.at[i];
        n += live[i] && test(node);
        for (int k = 0; live[i] && k < node->nin; k++) {
            live[node->in[k]->id] = true;
        }
    }
    return n;
}
