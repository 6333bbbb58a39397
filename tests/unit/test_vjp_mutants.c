/* Broken rules of derivatives, and whether the checks of the op sweep notice.
 *
 * A mutant is a rule of column `vjp` that runs as it is and is then damaged in one way: in what it
 * gives to an operand (sign, factor, nothing, that of another operand), or in a node that it made
 * (an operand, the op, a number, an attribute). Adjoint loops are damaged where their builder could
 * go wrong: starts, next values, direction, slices. Each mutant must make the directional check of
 * a sample of its row fail. One that changes values unnoticed is a failure, and so is one that
 * changes none, unless `equivalent` says why. MDLC_SEED=n starts elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiler/loop_builder.h"
#include "directional.h"
#include "passes/grad_rule.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double TOLERANCE = 1e-7; /* of the op sweep */
static const double ROUNDING = 1e-14;

typedef enum {
    GIVE_NEGATED,
    GIVE_TWICE,
    GIVE_THOUSANDTH_MORE,
    GIVE_NOTHING,
    GIVE_OTHERS,  /* what the next operand of the same type gets */
    GIVE_LOST,    /* what other rules gave before */
    MADE_FIRST,   /* a sum along axes: the first element only */
    MADE_OPERAND, /* another value of the same type as an operand: `choice` picks place and value */
    MADE_OP,      /* another op of the same kind */
    MADE_NUMBER,  /* a constant a thousandth larger, or 1 for 0 */
    MADE_ATTR,    /* a direction, a border or an edge the other way */
    MADE_PLAIN,   /* a view of the same shape left out */
    LOOP_ZERO_START,
    LOOP_STALE_CARRY, /* the next value of a carry is the last one */
    LOOP_DIRECTION,
    LOOP_NEXT_SLICE, /* a stack is read one iteration late */
    LOOP_LAST_SLICE, /* and from the other end */
    DAMAGES
} Damage;

static const char *const damage_name[DAMAGES] = {
    [GIVE_NEGATED] = "cotangent negated",
    [GIVE_TWICE] = "cotangent twice",
    [GIVE_THOUSANDTH_MORE] = "cotangent * 1.001",
    [GIVE_NOTHING] = "cotangent missing",
    [GIVE_OTHERS] = "cotangent of another operand",
    [GIVE_LOST] = "earlier contributions lost",
    [MADE_FIRST] = "first element for a sum",
    [MADE_OPERAND] = "another operand in node",
    [MADE_OP] = "another op in node",
    [MADE_NUMBER] = "another number in node",
    [MADE_ATTR] = "another attribute in node",
    [MADE_PLAIN] = "view left out in node",
    [LOOP_ZERO_START] = "carry of the adjoint starts at zero",
    [LOOP_STALE_CARRY] = "carry of the adjoint stays",
    [LOOP_DIRECTION] = "adjoint loop runs forward",
    [LOOP_NEXT_SLICE] = "stack read an iteration late",
    [LOOP_LAST_SLICE] = "stack read from the other end",
};

/* What is done to which row, and where: the number of the operand, of the node that the rule made,
 * of the loop's carry or stack. `choice` tells apart several ways of one damage. */
typedef struct {
    OpCode op;
    Damage damage;
    OpCode node; /* of damage to nodes: the at-th of this op is meant, */
    int at, choice;
    int variant;        /* of the row's samples; of the damage to loops: the only one */
    int made[OP_COUNT]; /* and the rule made at most so many */
    bool applied;       /* in the run at hand: there was such a place */
} Mutant;

static Mutant now; /* rules take no context of their own */

/* Damage that changes no derivative of any sample, and why that is right. */
static const struct {
    const char *row;
    Damage damage;
    const char *node, *why;
} equivalent[] = {
    {"slice", MADE_ATTR, "overlap_add", "there is one tap, its distance does not matter"},
    {"min", MADE_OPERAND, "lt", "the least is below x1 where x0 is"},
    {"max", MADE_OPERAND, "lt", "x1 is below the largest where it is below x0"},
    /* where a base is 0 or less and its exponent moves there are no differences to compare with;
     * test_grad.c has the values */
    {"pow", MADE_OPERAND, "log", "the same for positive bases"},
    {"pow", MADE_OPERAND, "lt", "the same for positive bases"},
    {"pow", MADE_OPERAND, "select", "the same for positive bases"},
    {"pow", MADE_OPERAND, "eq", "the same for positive bases"},
    {"pow", MADE_OP, "eq", "the same for positive bases"},
    /* at the origin there is no slope to compare with; tests/library/edges.mdl has the value */
    {"atan2", MADE_OPERAND, "select", "the same away from the origin"},
    {"atan2", MADE_OPERAND, "eq", "the same away from the origin"},
    {"atan2", MADE_OP, "eq", "the same away from the origin"},
};

static bool is_equivalent(const Mutant *m) {
    for (size_t i = 0; i < sizeof equivalent / sizeof *equivalent; i++) {
        if (strcmp(equivalent[i].row, op_info[m->op].name) == 0 &&
            equivalent[i].damage == m->damage && m->node != OP_COUNT &&
            strcmp(equivalent[i].node, op_info[m->node].name) == 0) {
            return true;
        }
    }
    return false;
}

/* --- damage to what is given ------------------------------------------------------------------ */

static Node *nowhere; /* of results that a loop was given during the sweep */

/* Where the rule of `n` puts what it gives: results of a loop for PICK, nodes for all others. */
static Node **place_of(Sweep *s, const Node *n, int k) {
    if (n->op == OP_PICK) {
        LoopSweep *loop = s->loop[n->in[0]->id];
        return n->attr->axis < loop->nresults ? &loop->cot[n->attr->axis] : &nowhere;
    }
    return &s->cot[n->in[k]->id];
}

static Node *scaled(Graph *g, Node *a, double factor) {
    return node_map2(g, OP_MUL, a, node_const(g, a->type->elem, factor));
}

/* given[k] after the damage; NULL: nothing. */
static Node *damaged_gift(Graph *g, Node *const *given, int n, int k) {
    switch (now.damage) {
    case GIVE_NEGATED: return node_map1(g, OP_NEG, given[k]);
    case GIVE_TWICE: return scaled(g, given[k], 2);
    case GIVE_THOUSANDTH_MORE: return scaled(g, given[k], 1.001);
    case GIVE_NOTHING: return NULL;
    case GIVE_OTHERS:
        for (int i = 1; i < n; i++) {
            Node *other = given[(k + i) % n];
            if (other && type_equal(*other->type, *given[k]->type)) {
                return other;
            }
        }
        return given[k];
    default: return given[k];
    }
}

/* --- damage to a node that a rule made -------------------------------------------------------- */

static Node *again(const Node *made, OpCode op, Node *const *in, const Attr *attr) {
    Graph *g = made->region->graph;
    if (op == OP_LOOP) {
        return graph_append(g, op, in, made->nin, attr, made->body, *made->type);
    }
    return graph_add(g, op, in, made->nin, attr, *made->type);
}

/* The choice-th of all pairs (operand, other value) among the values that the rule has at hand. */
static Node *other_operand(Sweep *s, const Node *n, Node *u, Node *made) {
    int choice = 0;
    Node *in[8];
    for (int k = 0; k < made->nin && made->nin <= 8 && !s->replay; k++) {
        for (int i = -1; i <= n->nin; i++) {
            Node *other = i < 0 ? u : i < n->nin ? n->in[i] : s->region->node.at[n->id];
            if (other && other != made->in[k] && other->op != OP_LOOP &&
                type_equal(*other->type, *made->in[k]->type) && choice++ == now.choice) {
                memcpy(in, made->in, sizeof *in * (size_t)made->nin);
                in[k] = other;
                return again(made, made->op, in, made->attr);
            }
        }
    }
    return made;
}

static Node *other_op(Node *made) {
    static const OpCode other[][2] = {
        {OP_ADD, OP_SUB}, {OP_SUB, OP_ADD},       {OP_MUL, OP_ADD},       {OP_DIV, OP_MUL},
        {OP_SIN, OP_COS}, {OP_COS, OP_SIN},       {OP_EXP, OP_EXPM1},     {OP_LOG, OP_LOG1P},
        {OP_NEG, OP_ABS}, {OP_SIGN, OP_ABS},      {OP_LT, OP_EQ},         {OP_EQ, OP_LT},
        {OP_POW, OP_MUL}, {OP_ARGMAX, OP_ARGMIN}, {OP_ARGMIN, OP_ARGMAX}, {OP_SUM, OP_FMAX},
    };
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        if (made->op == other[i][0]) {
            return again(made, other[i][1], made->in, made->attr);
        }
    }
    return made;
}

static Node *other_number(Node *made) {
    bool is = made->op == OP_CONST && elem_is_float(made->type->elem);
    double x = made->attr->value;
    return is ? node_const(made->region->graph, made->type->elem, x == 0 ? 1 : x * 1.001) : made;
}

static Node *other_attr(Node *made) {
    Attr a = attr_copy(made->attr);
    int choice = now.choice;
    bool window = made->op == OP_WINDOW, sums = made->op == OP_OVERLAP_ADD;
    bool moves = sums || (window && a.border != BORDER_NONE);
    if (made->op == OP_CUMSUM && choice == 0) {
        a.reverse = !a.reverse;
    } else if (made->op == OP_CUMSUM && choice == 1) {
        a.exclusive = !a.exclusive;
    } else if (made->op == OP_PAD && choice == 0) {
        a.value = 1 - a.value;
    } else if (window && choice == 0) {
        a.border = a.border == BORDER_WRAP ? BORDER_EDGE : BORDER_WRAP;
    } else if (moves && choice == 1) {
        a.p += 1;
    } else if (moves && choice == 2) {
        a.d = -a.d;
    } else {
        return made;
    }
    return again(made, made->op, made->in, &a);
}

/* The first element along the summed axes: the sum of a product with [1, 0, 0...]. */
static Node *first_of_sum(Node *made) {
    Graph *g = made->region->graph;
    if (made->op != OP_SUM || type_count(*made->in[0]->type) == type_count(*made->type)) {
        return made;
    }
    Type t = *made->in[0]->type;
    double *first = ARENA_ARRAY(g->keep, double, type_count(t));
    for (int64_t i = 0; i < type_count(t); i++) {
        int64_t left = i;
        first[i] = 1;
        for (int k = t.rank - 1; k >= 0; left /= t.dim[k], k--) {
            first[i] *= !(made->attr->axes >> k & 1) || left % t.dim[k] == 0;
        }
    }
    return node_fold(g, OP_SUM, node_map2(g, OP_MUL, made->in[0], node_table(g, t, first)),
                     made->attr->axes);
}

static Node *without_view(Node *made) {
    bool view = op_info[made->op].cls == CLASS_VIEW;
    return view && type_equal(*made->type, *made->in[0]->type) ? made->in[0] : made;
}

/* --- damage to an adjoint loop ---------------------------------------------------------------- */

static Node *damaged_loop(Node *made) {
    Graph *g = made->region->graph;
    const Attr *a = made->attr;
    int carry = now.choice, xs = a->ncarry + a->ninv + now.choice;
    Attr other = attr_copy(a);
    if (made->op != OP_LOOP || (now.damage == LOOP_ZERO_START && carry < a->ncarry &&
                                made->in[carry] == node_full(g, *made->in[carry]->type, 0))) {
        return made;
    }
    Node **in = ARENA_ARRAY(g->arena, Node *, made->nin);
    memcpy(in, made->in, sizeof *in * (size_t)made->nin);
    if (now.damage == LOOP_DIRECTION && now.choice == 0 && a->trip > 1) {
        other.reverse = !a->reverse;
    } else if (now.damage == LOOP_ZERO_START && carry < a->ncarry) {
        in[carry] = node_full(g, *in[carry]->type, 0);
    } else if (now.damage == LOOP_STALE_CARRY && carry < a->ncarry) {
        made->body->out.at[carry] = made->body->param.at[1 + carry]; /* nobody else has this body */
    } else if (now.damage == LOOP_LAST_SLICE && xs < made->nin && a->trip > 1) {
        in[xs] = node_flip(g, in[xs], 1);
    } else if (now.damage == LOOP_NEXT_SLICE && xs < made->nin && a->trip > 1) {
        Node *part[2] = {node_slice_axis(g, in[xs], 0, 1, a->trip - 1, 1),
                         node_slice_axis(g, in[xs], 0, 0, 1, 1)};
        in[xs] = node_concat(g, part, 2, 0);
    } else {
        return made;
    }
    return again(made, OP_LOOP, in, &other);
}

/* --- a rule with the damage ------------------------------------------------------------------- */

static Node *damaged_node(Sweep *s, const Node *n, Node *u, Node *made) {
    switch (now.damage) {
    case MADE_FIRST: return first_of_sum(made);
    case MADE_OPERAND: return other_operand(s, n, u, made);
    case MADE_OP: return other_op(made);
    case MADE_NUMBER: return other_number(made);
    case MADE_ATTR: return other_attr(made);
    case MADE_PLAIN: return without_view(made);
    default: return damaged_loop(made);
    }
}

/* The node meant by `now` among those that the rule made, from `start` on; -1: there is none. */
static int find_place(const Region *region, int start) {
    int count[OP_COUNT] = {0}, place = -1;
    for (int i = start; i < region->node.count; i++) {
        OpCode op = region->node.at[i]->op;
        if (op == now.node && count[op] == now.at) {
            place = i;
        }
        count[op]++;
        now.made[op] = count[op] > now.made[op] ? count[op] : now.made[op];
    }
    return place;
}

/* Makes what depends on that node once more, with the node damaged, and gives that in place of what
 * was given. */
static void damage_made(Sweep *s, const Node *n, Node *u, int start, Node **given, int ngiven) {
    Region *region = s->g->region;
    int at = find_place(region, start), end = region->node.count;
    if (at < 0) {
        return;
    }
    Node **map = ARENA_ARRAY(s->scratch, Node *, end);
    for (int i = at; i < end; i++) {
        Node *node = region->node.at[i], **in = ARENA_ARRAY(s->scratch, Node *, node->nin);
        bool changed = false;
        for (int k = 0; k < node->nin; k++) {
            in[k] = (int)node->in[k]->id >= at ? map[node->in[k]->id] : node->in[k];
            changed = changed || in[k] != node->in[k];
        }
        map[i] = i == at   ? damaged_node(s, n, u, node)
                 : changed ? again(node, node->op, in, node->attr)
                           : node;
    }
    for (int k = 0; k < ngiven; k++) {
        if (given[k] && given[k]->region == region && (int)given[k]->id >= at) {
            now.applied = now.applied || map[given[k]->id] != given[k];
            given[k] = map[given[k]->id];
        }
    }
}

static void broken_rule(Sweep *s, Node *n, Node *u) {
    int count = n->op == OP_PICK ? 1 : n->nin, start = s->g->region->node.count;
    Node **before = ARENA_ARRAY(s->scratch, Node *, count);
    Node **given = ARENA_ARRAY(s->scratch, Node *, count);
    nowhere = NULL;
    for (int k = 0; k < count; k++) {
        before[k] = *place_of(s, n, k);
    }
    for (int k = 0; k < count; k++) {
        *place_of(s, n, k) = NULL;
    }
    vjp_rules[n->op](s, n, u);
    for (int k = 0; k < count; k++) { /* one value may be several operands */
        given[k] = *place_of(s, n, k);
        *place_of(s, n, k) = NULL;
    }
    if (now.damage > GIVE_LOST) {
        damage_made(s, n, u, start, given, count);
    } else if (now.at < count && given[now.at]) {
        Node *gift = damaged_gift(s->g, given, count, now.at);
        now.applied =
            now.applied || gift != given[now.at] || (now.damage == GIVE_LOST && before[now.at]);
        given[now.at] = gift;
    }
    for (int k = count - 1; k >= 0; k--) {
        Node **place = place_of(s, n, k);
        bool lost = now.damage == GIVE_LOST && k == now.at && given[k];
        if (before[k] && !*place && !lost) {
            *place = before[k];
        }
        if (given[k]) {
            *place = *place ? node_map2(s->g, OP_ADD, *place, given[k]) : given[k];
        }
    }
}

/* --- every mutant of every row ---------------------------------------------------------------- */

static uint64_t seed(void) {
    const char *text = getenv("MDLC_SEED");
    return text ? strtoull(text, NULL, 10) : 20240607;
}

static bool of_loops(OpCode op) {
    return op == OP_LOOP || op == OP_PICK;
}

typedef enum { END, NO_PLACE, NO_EFFECT, UNNOTICED, CAUGHT } Fate;

/* The largest difference of results, against the norm of each. */
static double difference(Arena *arena, const Sample *s, const Region *a, const Region *b) {
    Value *x = directional_values(arena, s, a), *y = directional_values(arena, s, b);
    double worst = 0;
    for (int k = 0; k < a->out.count; k++) {
        double size = 1, gap = 0;
        for (int64_t i = 0; i < type_count(x[k].type); i++) {
            size = fmax(size, fabs(value_get(y[k], i)));
            gap = fmax(gap, fabs(value_get(x[k], i) - value_get(y[k], i)));
        }
        worst = fmax(worst, gap / size);
    }
    return worst;
}

/* What the check of the op sweep says of `now` on one sample of its row. */
static Fate fate_on(int variant, GradSave save) {
    now.variant = variant;
    Arena arena = {0};
    Graph *g = graph_new(&arena, TY_F64);
    Region *region = region_new(g, NULL);
    graph_enter(g, region);
    uint64_t rng = seed() + 1000 * (uint64_t)now.op + (uint64_t)variant;
    Sample s = {.g = g, .rng = rng, .elem = TY_F64};
    Node *node = sample_build(&s, of_loops(now.op) ? OP_LOOP : now.op, variant);
    Fate fate = node ? NO_PLACE : END;
    if (node) {
        region_result(region, node);
        region = directional_region(&s, region);
    }
    if (node && region) {
        VjpRule rules[OP_COUNT];
        memcpy(rules, vjp_rules, sizeof rules);
        rules[now.op] = broken_rule;
        now.applied = now.damage == DAMAGES; /* none: the rule as it is */
        Region *broken = grad_by_rules(g, region, save, rules);
        region_verify(broken, STAGE_GRAD);
        if (now.applied) {
            Directional d = directional_check(&arena, &s, broken);
            bool caught = !(d.error[0] < TOLERANCE && d.error[1] < TOLERANCE);
            region = caught ? NULL : pass_grad(g, region, save);
            bool none = region && difference(&arena, &s, broken, region) < ROUNDING;
            fate = caught ? CAUGHT : none ? NO_EFFECT : UNNOTICED;
        }
    }
    arena_free(&arena);
    return fate;
}

/* The best fate on any sample; of loops, whose places differ from one to the next, on this one. */
static Fate fate_of(int variant, GradSave save) {
    if (variant >= 0) {
        return fate_on(variant, save);
    }
    Fate best = NO_PLACE;
    for (int i = 0; best != CAUGHT; i++) {
        Fate fate = fate_on(i, save);
        if (fate == END) {
            break;
        }
        best = fate > best ? fate : best;
    }
    return best;
}

typedef struct {
    int caught, equivalent, idle, survived;
    int by_damage[DAMAGES]; /* caught */
} Tally;

static void count_fate(Fate fate, Tally *tally) {
    tally->caught += fate == CAUGHT;
    tally->by_damage[now.damage] += fate == CAUGHT;
    if (fate == NO_EFFECT &&
        of_loops(now.op)) { /* to a part that nobody reads, or to equal slices */
        tally->idle++;
    } else if (fate == NO_EFFECT && is_equivalent(&now)) {
        tally->equivalent++;
    } else if (fate == NO_EFFECT || fate == UNNOTICED) {
        tally->survived++;
        printf("%s: %s: %s %d %s, choice %d, variant %d\n",
               fate == NO_EFFECT ? "not listed as equivalent" : "survives", op_info[now.op].name,
               damage_name[now.damage], now.at, now.node == OP_COUNT ? "" : op_info[now.node].name,
               now.choice, now.variant);
    }
}

static void try_choices(int variant, GradSave save, Tally *tally) {
    Damage d = now.damage;
    bool chooses = d == MADE_OPERAND || d == MADE_ATTR || d > MADE_PLAIN;
    Fate fate = CAUGHT;
    for (now.choice = 0; fate != NO_PLACE && now.choice < (chooses ? 100 : 1); now.choice++) {
        fate = fate_of(variant, save);
        count_fate(fate, tally);
    }
}

/* All mutants of `now.op`. */
static void try_all(int variant, GradSave save, Tally *tally) {
    memset(now.made, 0, sizeof now.made);
    for (int damage = 0; damage < DAMAGES; damage++) {
        now.damage = (Damage)damage;
        now.node = OP_COUNT;
        for (now.at = 0; damage <= GIVE_LOST && now.at < SAMPLE_SLOTS; now.at++) {
            try_choices(variant, save, tally);
        }
        if (damage == MADE_FIRST) { /* a run that only counts */
            fate_of(variant, save);
        }
        for (int op = 0; damage > GIVE_LOST && op < OP_COUNT; op++) {
            now.node = (OpCode)op;
            for (now.at = 0; now.at < now.made[op]; now.at++) {
                try_choices(variant, save, tally);
            }
        }
    }
}

static void test_mutants(void **state) {
    (void)state;
    Tally all = {0};
    int rows = 0;
    for (int op = 0; op < OP_COUNT; op++) {
        Tally tally = {0};
        now = (Mutant){.op = (OpCode)op, .damage = DAMAGES};
        if (vjp_is_none(now.op) ||
            op_rounds(now.op)) { /* no limit of differences: test_precision */
            continue;
        }
        for (int i = 0; fate_on(i, GRAD_SAVE_ALL) != END; i++) {
            if (fate_on(i, GRAD_SAVE_ALL) == CAUGHT) {
                fail_msg("%s, variant %d: fails without a mutant", op_info[op].name, i);
            }
        }
        if (of_loops(now.op)) {
            for (int i = 0; now.damage = DAMAGES, fate_on(i, GRAD_SAVE_ALL) != END; i++) {
                try_all(i, GRAD_SAVE_ALL, &tally);
                try_all(i, GRAD_SAVE_CARRIES, &tally);
            }
        } else {
            try_all(-1, GRAD_SAVE_ALL, &tally);
        }
        printf("%-12s %3d caught, %d equivalent, %d without effect\n", op_info[op].name,
               tally.caught, tally.equivalent, tally.idle);
        assert_true(tally.by_damage[GIVE_NEGATED] > 0 && tally.by_damage[GIVE_TWICE] > 0);
        assert_true(tally.by_damage[GIVE_THOUSANDTH_MORE] > 0 && tally.by_damage[GIVE_NOTHING] > 0);
        for (int d = LOOP_ZERO_START; op == OP_LOOP && d < DAMAGES; d++) {
            assert_true(tally.by_damage[d] >= 4); /* in several loops */
        }
        all.caught += tally.caught;
        all.equivalent += tally.equivalent;
        all.idle += tally.idle;
        all.survived += tally.survived;
        rows++;
    }
    printf("%d rows: %d mutants caught, %d equivalent, %d without effect, %d survived\n", rows,
           all.caught, all.equivalent, all.idle, all.survived);
    assert_int_equal(all.survived, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mutants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
