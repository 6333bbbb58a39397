#include "graph_oracle.h"

#include "compiler/equal.h"
#include "compiler/gradcheck.h"
#include "directional.h"
#include "passes/again.h"
#include "passes/chunk.h"
#include "passes/factor.h"
#include "passes/final.h"
#include "passes/fma.h"
#include "passes/grad.h"
#include "passes/halo.h"
#include "passes/hoist.h"
#include "passes/layout.h"
#include "passes/merge.h"
#include "passes/narrow.h"
#include "passes/parts.h"
#include "passes/remat.h"
#include "passes/repeats.h"
#include "passes/simplify.h"
#include "passes/sink.h"
#include "passes/sums.h"
#include "passes/thin.h"
#include "tests/support.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOISES = 3, MORE_NOISES = 12 };
static const double wide_noise = 0x1p-36, low_noise = 0x1p-22;

static const char *const pass_names[ORACLE_PASSES] = {
    "match", "chunk", "grad",   "simplify", "hoist", "clean", "factor",
    "merge", "halo",  "layout", "narrow",   "sums",  "fma"};
static const GraphStage pass_stages[ORACLE_PASSES] = {
    STAGE_BUILT,     STAGE_BUILT,     STAGE_GRAD,      STAGE_OPTIMISED, STAGE_OPTIMISED,
    STAGE_OPTIMISED, STAGE_OPTIMISED, STAGE_OPTIMISED, STAGE_OPTIMISED, STAGE_OPTIMISED,
    STAGE_OPTIMISED, STAGE_OPTIMISED, STAGE_OPTIMISED};

/* Nothing there is large: by limits that make the smallest chains loops, and with the smallest
 * products over windows of repeated places. */
static Region *chunk(Graph *g, const Region *region) {
    Region *chunks = pass_chunk(g, pass_repeats(g, region, 1), (ChunkLimits){16, 8, false});
    return pass_chunk(g, chunks, chunk_by_rows(16));
}
static Region *grad_calls(Graph *g, const Region *region) {
    return pass_grad(g, region, GRAD_SAVE_CALLS);
}
static Region *grad_carries(Graph *g, const Region *region) {
    return pass_grad(g, region, GRAD_SAVE_CARRIES);
}
static Region *grad_all(Graph *g, const Region *region) {
    return pass_grad(g, region, GRAD_SAVE_ALL);
}

/* Segments of two turns, of which nothing but carries is kept. */
static const GradPlan segments = {.save = GRAD_SAVE_CARRIES, .segment = 2};

static Region *grad_segments(Graph *g, const Region *region) {
    return pass_grad_planned(g, region, &segments);
}

/* What is made of the turns of loops and looked up for them, in them. */
static Region *turns(Graph *g, const Region *region) {
    return pass_sink_turns(g, pass_turns(g, region, &segments), 1, &segments);
}

/* What is stacked otherwise is made again. */
static Region *grad_again(Graph *g, const Region *region) {
    KeptList kept = {.of = {0}, .arena = g->keep};
    GradPlan plan = {.save = GRAD_SAVE_CALLS, .kept = &kept};
    pass_grad_planned(g, region, &plan);
    plan = (GradPlan){.save = GRAD_SAVE_CALLS, .again = kept.of.at, .nagain = kept.of.count};
    return pass_grad_planned(g, region, &plan);
}

/* Every stack that can go away is made again where it is read. */
static Region *remat_all(Graph *g, const Region *region, int *made) {
    KeptList kept = {.of = {0}, .arena = g->keep};
    GradPlan plan = {.kept = &kept};
    pass_remat(g, region, &plan);
    *made += kept.of.count;
    plan = (GradPlan){.again = kept.of.at, .nagain = kept.of.count};
    return pass_remat(g, region, &plan);
}

static Region *merge(Graph *g, const Region *region) {
    return pass_merge(g, region, NULL);
}

OracleOptions oracle_options(void) {
    return (OracleOptions){.pass = {pass_simplify, chunk, grad_calls, pass_simplify, pass_hoist,
                                    pass_simplify, pass_factor, merge, pass_halo, pass_layout,
                                    pass_narrow, pass_sums, pass_fma}};
}

typedef struct {
    GraphCase *c;
    const OracleOptions *opt;
    OracleReport *r;
    Arena arena;
    int n;          /* entries */
    Region **built; /* as the case has them */
    Region **plain; /* the reference */
    bool low;       /* floats narrower than f64 */
    Trace want;
} Oracle;

static bool failed(const Oracle *o) {
    return o->r->check[0] != 0;
}

/* --- values ----------------------------------------------------------------------------------- */

Trace oracle_trace(const GraphCase *c, Arena *arena, Region *const *region, int calls,
                   EvalOptions options) {
    const Module *module = c->module;
    Eval *ev = eval_open(arena, options);
    Trace trace = {.item = {0}};
    for (int i = 0; i < c->input.count; i++) {
        eval_bind(ev, c->input.at[i].slot, c->input.at[i].data);
    }
    for (int i = 0; i < module->slot.count; i++) { /* the driver of emitted programs: seed 1 */
        const Slot *slot = module->slot.at[i];
        bool seed = slot->label && str_eq(slot->label, "seed");
        double start = seed ? 1 : slot->initial;
        if (slot->role == STATE_COUNTER) {
            eval_bind(ev, slot, &start);
        }
    }
    for (int round = 0; round < calls; round++) {
        for (int e = round == 0 ? 0 : 1; e < module->entry.count; e++) {
            const Entry *entry = module->entry.at[e];
            Value *out = ARENA_ARRAY(arena, Value, entry->out.count);
            eval_region(ev, region[e], out);
            eval_store(ev, entry, out);
            for (int k = 0; k < entry->out.count; k++) {
                if (out_is_result(entry->out.at[k].role)) {
                    Elem half = entry->out.at[k].half;
                    VEC_PUSH(arena, &trace.item, out[k]);
                    VEC_PUSH(arena, &trace.stored, half != TY_ERROR ? half : out[k].type.elem);
                }
            }
        }
    }
    for (int i = 0; i < module->slot.count; i++) {
        Value v;
        if (eval_bound(ev, module->slot.at[i], &v)) {
            VEC_PUSH(arena, &trace.item, eval_share(ev, v));
            VEC_PUSH(arena, &trace.stored, module->slot.at[i]->type.elem);
        }
    }
    return trace;
}

bool oracle_same(Value want, Value got, double limit, double *gap) {
    *gap = 0;
    if (!type_equal(want.type, got.type)) {
        *gap = INFINITY;
        return false;
    }
    if (limit < 0) {
        return true;
    }
    bool number = elem_is_float(want.type.elem);
    for (int64_t i = 0; i < type_count(want.type); i++) {
        double d = number                        ? fabs(want.at[i].f - got.at[i].f)
                   : want.at[i].i == got.at[i].i ? 0
                                                 : INFINITY;
        *gap = worse_gap(*gap, d);
    }
    return *gap <= limit;
}

static double size_of(Value v) {
    double size = 0;
    for (int64_t i = 0; elem_is_float(v.type.elem) && i < type_count(v.type); i++) {
        size = fmax(size, fabs(v.at[i].f));
        if (!isfinite(v.at[i].f)) {
            return INFINITY;
        }
    }
    return size;
}

/* Where some floats say nothing, integers that depend on them may be the same a few times by
 * chance: those that stay the same many times are taken to be certain. */
static void doubt_integers(Oracle *o, Trace *want, Region *const *region, int calls, bool low) {
    bool loose = false;
    for (int i = 0; i < want->item.count; i++) {
        loose = loose || (elem_is_float(want->item.at[i].type.elem) && want->limit.at[i] < 0);
    }
    for (int k = 0; loose && k < MORE_NOISES; k++) {
        EvalOptions options = {.noise = low ? low_noise : wide_noise,
                               .noise_seed = (uint64_t)(NOISES + k) + 1};
        Trace moved = oracle_trace(o->c, &o->arena, region, calls, options);
        for (int i = 0; i < want->item.count; i++) {
            double gap;
            oracle_same(want->item.at[i], moved.item.at[i], INFINITY, &gap);
            bool number = elem_is_float(want->item.at[i].type.elem);
            want->limit.at[i] = !number && gap > 0 ? -1 : want->limit.at[i];
        }
    }
}

/* want.limit, from how far the results move under noise. */
static void set_limits(Oracle *o, Trace *want, Region *const *region, int calls, bool low) {
    Trace moved[NOISES + 1];
    double noise = low ? low_noise : wide_noise, unit = low ? 0x1p-23 : 0x1p-52;
    for (int k = 0; k < NOISES; k++) {
        moved[k] = oracle_trace(o->c, &o->arena, region, calls,
                                (EvalOptions){.noise = noise, .noise_seed = (uint64_t)k + 1});
    }
    moved[NOISES] = oracle_trace(o->c, &o->arena, region, calls, (EvalOptions){.round = low});
    for (int i = 0; i < want->item.count; i++) {
        double spread = 0, gap, size = size_of(want->item.at[i]);
        for (int k = 0; k <= NOISES; k++) {
            oracle_same(want->item.at[i], moved[k].item.at[i], INFINITY, &gap);
            spread = worse_gap(spread, gap);
        }
        bool firm = isfinite(size) && spread <= (low ? 1e-2 : 1e-5) * size;
        double limit = low ? 6 * spread : 0x1p-12 * spread;
        limit = limit + 8 * unit * size + (low ? 1e-37 : 1e-300);
        if (!elem_is_float(want->item.at[i].type.elem)) {
            firm = spread == 0;
            limit = 0;
        }
        VEC_PUSH(&o->arena, &want->limit, firm ? limit : -1);
    }
    doubt_integers(o, want, region, calls, low);
}

static void compare(Oracle *o, Region *const *region, const char *check) {
    if (failed(o)) {
        return;
    }
    Trace got = oracle_trace(o->c, &o->arena, region, 1, (EvalOptions){0});
    for (int i = 0; i < o->want.item.count; i++) {
        double gap;
        if (!oracle_same(o->want.item.at[i], got.item.at[i], o->want.limit.at[i], &gap)) {
            snprintf(o->r->check, sizeof o->r->check, "values: %s", check);
            snprintf(o->r->what, sizeof o->r->what, "result %d is off by %g, allowed is %g", i, gap,
                     o->want.limit.at[i]);
            return;
        }
    }
}

/* The reference itself: what the text means. */
static void check_meaning(Oracle *o) {
    const Module *module = o->c->module;
    for (int i = 0; i < o->c->meaning.count && !failed(o); i++) {
        const CaseMeaning *m = &o->c->meaning.at[i];
        int item = m->result;
        for (int e = 0; e < m->entry; e++) {
            for (int k = 0; k < module->entry.at[e]->out.count; k++) {
                item += out_is_result(module->entry.at[e]->out.at[k].role);
            }
        }
        Value v = o->want.item.at[item];
        double limit = o->want.limit.at[item], unit = o->low ? 0x1p-23 : 0x1p-52;
        limit = elem_is_float(v.type.elem) && limit >= 0 ? limit + 64 * unit * size_of(v) : limit;
        for (int64_t k = 0; limit >= 0 && k < type_count(v.type); k++) {
            double got = value_get(v, k);
            if (!(fabs(got - m->data[k]) <= limit) && !failed(o)) {
                snprintf(o->r->check, sizeof o->r->check, "meaning");
                snprintf(o->r->what, sizeof o->r->what,
                         "%s, result %d, element %lld is %.12g, but the text means %.12g",
                         module->entry.at[m->entry]->name, m->result, (long long)k, got,
                         m->data[k]);
            }
        }
        o->r->meant += limit >= 0;
    }
}

/* --- texts ------------------------------------------------------------------------------------ */

static void fail_dump(Oracle *o, const char *stage, const char *what) {
    if (!failed(o)) {
        snprintf(o->r->check, sizeof o->r->check, "dump: %s", stage);
        snprintf(o->r->what, sizeof o->r->what, "%s", what);
    }
}

/* The module as it is now, dumped and read again. */
static void check_dump(Oracle *o, const char *stage) {
    Module *module = o->c->module;
    size_t n, again;
    char *text = dumped_text(&o->arena, module, &n);
    Dumped m;
    dumped_make(&m, "dump.mdl", text, n, module->graph->float_type);
    if (!m.module) {
        fail_dump(o, stage, m.messages);
    } else {
        const char *difference = module_difference(module, m.module);
        char *second = dumped_text(&o->arena, m.module, &again);
        if (difference) {
            fail_dump(o, stage, str_printf(&o->arena, "'%s' is not the same", difference));
        } else if (n != again || memcmp(text, second, n) != 0) {
            fail_dump(o, stage, "the second text differs");
        }
    }
    dumped_done(&m);
}

static void set_regions(Oracle *o, Region *const *region) {
    for (int i = 0; i < o->n; i++) {
        o->c->module->entry.at[i]->region = region[i];
    }
}

static void check_stage(Oracle *o, Region *const *region, GraphStage stage, const char *name) {
    for (int i = 0; i < o->n; i++) {
        region_verify(region[i], stage);
    }
    set_regions(o, region);
    check_dump(o, name);
    set_regions(o, o->built);
}

/* --- statistics ------------------------------------------------------------------------------- */

static void count_ops(OracleReport *r, const Region *region, int depth) {
    for (int i = 0; i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        r->seen[node->op][depth > 0 ? SEEN_LOOP : SEEN_TOP]++;
        if (node->body) {
            count_ops(r, node->body, depth + (node->op == OP_LOOP));
        }
    }
}

/* Nodes between the point and the value of a GRAD, whole bodies where a loop lies between. */
static void count_active(Oracle *o, const Region *region) {
    bool *from = ARENA_ARRAY(&o->arena, bool, region->node.count);
    bool *to = ARENA_ARRAY(&o->arena, bool, region->node.count);
    for (int i = region->node.count - 1; i >= 0; i--) {
        const Node *node = region->node.at[i];
        if (node->op == OP_GRAD) {
            to[node->in[0]->id] = true;
            from[node->in[1]->id] = true;
        }
        for (int k = 0; to[i] && k < node->nin; k++) {
            to[node->in[k]->id] = true;
        }
    }
    for (int i = 0; i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        for (int k = 0; k < node->nin; k++) {
            from[i] = from[i] || from[node->in[k]->id];
        }
        bool active = from[i] && to[i];
        o->r->seen[node->op][SEEN_GRAD] += active;
        for (int k = 0; active && node->body && k < node->body->node.count; k++) {
            o->r->seen[node->body->node.at[k]->op][SEEN_GRAD]++;
        }
        if (node->body) {
            count_active(o, node->body);
        }
    }
}

void oracle_add(OracleReport *to, const OracleReport *r) {
    to->refused += r->refused;
    to->compared += r->compared;
    to->meant += r->meant;
    to->loose += r->loose;
    to->slopes += r->slopes;
    to->unclear += r->unclear;
    to->calls += r->calls;
    to->remade += r->remade;
    to->thinned += r->thinned;
    to->ended += r->ended;
    to->behind += r->behind;
    for (int op = 0; op < OP_COUNT; op++) {
        for (int k = 0; k < SEEN_KINDS; k++) {
            to->seen[op][k] += r->seen[op][k];
        }
    }
}

static bool has_low(const Region *region) {
    for (int i = 0; i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        if ((elem_is_float(node->type->elem) && node->type->elem != TY_F64) ||
            (node->body && has_low(node->body))) {
            return true;
        }
    }
    return false;
}

static bool has_grad(const Region *region) {
    for (int i = 0; i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        if (node->op == OP_GRAD || (node->body && has_grad(node->body))) {
            return true;
        }
    }
    return false;
}

/* --- derivatives ------------------------------------------------------------------------------ */

static void check_slopes(Oracle *o, Region *const *region) {
    for (int e = 1; e < o->n && !failed(o); e++) {
        const Entry *entry = o->c->module->entry.at[e];
        if (strncmp(entry->name, "smooth", 6) != 0 || entry->out.count < 2 ||
            entry->out.count > 64) {
            continue;
        }
        Eval *ev = eval_open(&o->arena, (EvalOptions){.smooth = true});
        for (int i = 0; i < o->c->input.count; i++) {
            eval_bind(ev, o->c->input.at[i].slot, o->c->input.at[i].data);
        }
        Trace start = oracle_trace(o->c, &o->arena, region, 1, (EvalOptions){0});
        int nslot = o->c->module->slot.count, n = 0;
        for (int i = 0; i < nslot; i++) {
            eval_bind_value(ev, o->c->module->slot.at[i],
                            start.item.at[start.item.count - nslot + i]);
        }
        Slot *slot[64];
        const Region *built = o->built[e];
        for (int k = 1; k < built->out.count; k++) {
            if (entry->out.at[k].role == OUT_RESULT) { /* not that a loop met its maximum */
                slot[n++] = built->out.at[k]->in[1]->attr->slot;
            }
        }
        GradCheck check = gradcheck_region(ev, &o->arena, region[e], slot, n, 1, 2);
        o->r->slopes += n;
        if (check.error < 1e-5) {
            continue;
        }
        Slot *input[128];
        const double *data[128];
        int ninput = 0;
        for (int i = 0; i < o->c->input.count && ninput < 128; i++) {
            input[ninput] = o->c->input.at[i].slot;
            data[ninput++] = o->c->input.at[i].data;
        }
        for (int i = 0; i < nslot && ninput < 128; i++) {
            Value v = start.item.at[start.item.count - nslot + i];
            double *copy = ARENA_ARRAY(&o->arena, double, type_count(v.type));
            for (int64_t k = 0; k < type_count(v.type); k++) {
                copy[k] = value_get(v, k);
            }
            input[ninput] = o->c->module->slot.at[i];
            data[ninput++] = copy;
        }
        if (directional_unclear(&o->arena, region[e], input, data, ninput)) {
            o->r->unclear += n;
            continue;
        }
        snprintf(o->r->check, sizeof o->r->check, "slope");
        snprintf(o->r->what, sizeof o->r->what, "%s, %s: %.12g along a direction, quotient %.12g",
                 entry->name, check.worst->name, check.analytic, check.numeric);
    }
}

/* --- all of it -------------------------------------------------------------------------------- */

static Region **apply(Oracle *o, OraclePass pass, Region *const *region) {
    Region **out = ARENA_ARRAY(&o->arena, Region *, o->n);
    for (int i = 0; i < o->n; i++) {
        out[i] = pass(o->c->module->graph, region[i]);
    }
    return out;
}

static void variant(Oracle *o, OraclePass first, OraclePass second, Region *const *from,
                    const char *name) {
    Region **region = apply(o, first, from);
    region = second ? apply(o, second, region) : region;
    for (int i = 0; i < o->n; i++) {
        region_verify(region[i], STAGE_GRAD);
    }
    compare(o, region, name);
}

/* The passes in order; gives what the last one gave. */
static Region **pipeline(Oracle *o) {
    Region **region = o->built;
    check_stage(o, region, STAGE_BUILT, "build");
    for (int p = 0; p < ORACLE_PASSES; p++) {
        region = apply(o, o->opt->pass[p], region);
        check_stage(o, region, pass_stages[p], pass_names[p]);
        if (p >= ORACLE_GRAD) {
            compare(o, region, str_printf(&o->arena, "passes up to %s", pass_names[p]));
        }
    }
    return region;
}

static bool same_bits(Value a, Value b) {
    bool same = true;
    for (int64_t i = 0; i < type_count(a.type) && same; i++) {
        bool number = elem_is_float(a.type.elem);
        same = number ? a.at[i].f == b.at[i].f || (isnan(a.at[i].f) && isnan(b.at[i].f))
                      : a.at[i].i == b.at[i].i;
    }
    return same;
}

static void compare_bits(Oracle *o, Region *const *region, Region *const *other, const char *name) {
    const EvalOptions options = {.round = o->low};
    for (int i = 0; i < o->n; i++) {
        region_verify(other[i], STAGE_OPTIMISED);
    }
    Trace want = oracle_trace(o->c, &o->arena, region, 1, options);
    Trace got = oracle_trace(o->c, &o->arena, other, 1, options);
    for (int i = 0; i < want.item.count && !failed(o); i++) {
        if (!same_bits(want.item.at[i], got.item.at[i])) {
            snprintf(o->r->check, sizeof o->r->check, "values: %s", name);
            snprintf(o->r->what, sizeof o->r->what, "result %d has other bits", i);
        }
    }
}

/* What loops make again is, to the bit, what they have read. Gives the regions where they do. */
static Region **rematerialised(Oracle *o, Region *const *region) {
    Region **again = ARENA_ARRAY(&o->arena, Region *, o->n);
    for (int i = 0; i < o->n; i++) {
        again[i] = remat_all(o->c->module->graph, region[i], &o->r->remade);
    }
    compare_bits(o, region, again, "made again in loops");
    return again;
}

/* Bytes of the stacks of all loops, a turn of the loops around. */
static double stacked_bytes(const Region *region) {
    double bytes = 0;
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        for (int k = n->op == OP_LOOP ? n->attr->ncarry : INT_MAX;
             n->body && k < n->body->out.count; k++) {
            bytes += (double)n->attr->trip * (double)type_bytes(*n->body->out.at[k]->type);
        }
        bytes += n->body ? stacked_bytes(n->body) : 0;
    }
    return bytes;
}

/* The same with stacks of fewer bytes, to the bit. */
static Region **thinned(Oracle *o, Region *const *region) {
    Region **thin = ARENA_ARRAY(&o->arena, Region *, o->n);
    for (int i = 0; i < o->n; i++) {
        thin[i] = pass_thin(o->c->module->graph, region[i], TY_ERROR);
        o->r->thinned += stacked_bytes(thin[i]) < stacked_bytes(region[i]);
    }
    compare_bits(o, region, thin, "thin stacks");
    return thin;
}

/* The same with last values of carries read of stacks, to the bit. */
static Region **ended(Oracle *o, Region *const *region) {
    Region **end = ARENA_ARRAY(&o->arena, Region *, o->n);
    for (int i = 0; i < o->n; i++) {
        o->r->ended += final_applies(region[i], 1);
        end[i] = pass_final(o->c->module->graph, region[i], 1);
    }
    compare_bits(o, region, end, "last values of stacks");
    return end;
}

/* The same with what is read behind a result made again for that, to the bit. */
static Region **made_again(Oracle *o, Region *const *region) {
    const AgainLimits limits = {.least = 1, .total = 1 << 20, .copies = 2};
    Region **made = ARENA_ARRAY(&o->arena, Region *, o->n);
    for (int i = 0; i < o->n; i++) {
        EntryOut *out = ARENA_ARRAY(&o->arena, EntryOut, region[i]->out.count + 1);
        out[0].role = OUT_LOSS;
        o->r->behind += again_applies(region[i], out, limits);
        made[i] = pass_again(o->c->module->graph, region[i], out, limits);
    }
    compare_bits(o, region, made, "made again behind a result");
    return made;
}

static void write_c(Oracle *o, Region *const *region) {
    Trace want =
        oracle_trace(o->c, &o->arena, o->plain, ORACLE_CALLS, (EvalOptions){.round = o->low});
    set_limits(o, &want, o->plain, ORACLE_CALLS, o->low);
    for (int i = 0; i < want.item.count; i++) {
        o->r->compared++;
        o->r->loose += want.limit.at[i] < 0;
    }
    set_regions(o, region);
    for (int i = 0; i < o->n; i++) {
        const Region *top = region[i];
        OracleReport emitted = {.check = {0}};
        count_ops(&emitted, top, 0);
        for (int op = 0; op < OP_COUNT; op++) {
            o->r->seen[op][SEEN_EMITTED] +=
                emitted.seen[op][SEEN_TOP] + emitted.seen[op][SEEN_LOOP];
        }
    }
    emit_case(o->c, &o->arena, &want, o->opt, o->r);
    set_regions(o, o->built);
}

static GraphCase *reread(Oracle *o) {
    size_t n;
    char *text = dumped_text(&o->arena, o->c->module, &n);
    GraphCase *again = ARENA_NEW(&o->arena, GraphCase);
    again->text = ARENA_NEW(&o->arena, Dumped);
    dumped_make(again->text, "dump.mdl", text, n, o->c->module->graph->float_type);
    again->module = again->text->module;
    if (!again->module) {
        fail_dump(o, "build", again->text->messages);
        return NULL;
    }
    graph_case_adopt(o->c, again);
    again->meaning.at = o->c->meaning.at;
    again->meaning.count = o->c->meaning.count;
    return again;
}

void oracle_check(GraphCase *c, const OracleOptions *opt, OracleReport *r) {
    Oracle o = {.c = c, .opt = opt, .r = r, .n = c->module->entry.count};
    if (opt->reread) {
        o.c = reread(&o);
        if (!o.c) {
            arena_free(&o.arena);
            return;
        }
    }
    o.built = ARENA_ARRAY(&o.arena, Region *, o.n);
    for (int i = 0; i < o.n; i++) {
        o.built[i] = o.c->module->entry.at[i]->region;
        region_verify(o.built[i], STAGE_BUILT);
    }
    o.plain = apply(&o, grad_all, o.built);
    bool marks = false;
    for (int i = 0; i < o.n; i++) {
        region_verify(o.plain[i], STAGE_GRAD);
        o.low = o.low || has_low(o.plain[i]);
        marks = marks || has_grad(o.built[i]);
        count_ops(r, o.plain[i], 0);
        count_ops(r, o.built[i], 0);
        count_active(&o, o.built[i]);
    }
    o.want = oracle_trace(o.c, &o.arena, o.plain, 1, (EvalOptions){0});
    set_limits(&o, &o.want, o.plain, 1, o.low);
    for (int i = 0; i < o.want.item.count; i++) {
        r->compared++;
        r->loose += o.want.limit.at[i] < 0;
    }
    check_meaning(&o);
    if (!marks) {
        compare(&o, o.built, "as built");
    }
    variant(&o, grad_calls, NULL, o.built, "grad, calls saved");
    variant(&o, grad_carries, NULL, o.built, "grad, carries saved");
    variant(&o, grad_segments, NULL, o.built, "grad, segments");
    variant(&o, turns, grad_segments, o.built, "turns, then grad");
    variant(&o, grad_again, NULL, o.built, "grad, all again");
    variant(&o, pass_simplify, grad_all, o.built, "match, then grad");
    variant(&o, chunk, grad_calls, o.built, "chunk, then grad");
    variant(&o, opt->pass[ORACLE_SIMPLIFY], NULL, o.plain, "simplify");
    variant(&o, opt->pass[ORACLE_HOIST], NULL, o.plain, "hoist");
    Region **done = failed(&o) ? NULL : pipeline(&o);
    Region **again = failed(&o) ? NULL : rematerialised(&o, done);
    if (!failed(&o)) { /* with more stacks */
        Region **more = apply(&o, pass_fma, apply(&o, pass_simplify, o.plain));
        rematerialised(&o, more);
        ended(&o, thinned(&o, more));
        done = made_again(&o, ended(&o, thinned(&o, done)));
        again = ended(&o, thinned(&o, again));
    }
    if (!failed(&o)) {
        check_slopes(&o, done);
    }
    if (!failed(&o) && opt->write) {
        write_c(&o, opt->plain ? o.plain : opt->remat ? again : done);
    }
    if (opt->reread) {
        graph_case_close(o.c);
    }
    arena_free(&o.arena);
}
