/* accumulate: the loop over micro-batches, and the values that the update sees behind it. A value
 * of the body goes on behind the loop if it is made of folds over the batch, whose totals are
 * carries of the loop, and of what does not differ between the turns. */
#include "lang/accumulate.h"

#include "compiler/flow.h"
#include "compiler/loop_builder.h"
#include "lang/derive.h"
#include "lang/expr.h"
#include "lang/loop.h"
#include "lang/scaler.h"
#include "lang/stmt.h"
#include "lang/train.h"

enum { MOST_ASIDE = 64 }; /* micro-batches: gradients of all of them are there at once */

/* A value of the body that is added up over the turns. */
typedef struct {
    Node *node;
    bool large; /* more than one number: where a metric reads it */
    bool mean;  /* of equally many rows each turn */
    bool guess; /* which axis is the batch is not known: a total only if the turns differ */
    bool none;  /* no total after all */
    int sum;
    Node *total; /* behind the loop; no gradient goes through it */
} Total;

/* What is known of a node of the body when it is complete. */
typedef struct {
    bool differs; /* from turn to turn */
    bool linear;  /* the mean over the turns is what all rows together give */
    bool moves;   /* it can be made behind the loop, of totals and of what does not differ */
    bool counts;  /* the same, of large totals too */
    bool folded;  /* made of a fold over the rows that the train writes */
    bool nested;  /* made of a total over such a fold, which is of the rows of one turn */
    int total;    /* -1: none */
    Node *moved;
} Fact;

/* What the gradient of the loss is made of: gradients of totals, or of the loss itself. */
typedef struct {
    Node *value; /* in the body */
    int total;   /* -1: the loss of a turn */
    const Flow *flow;
} Part;

typedef struct {
    const Slot *slot; /* of the parameter */
    int part, sum;
} GradientSum;

struct Accumulation {
    const Ast *clause;
    int64_t count;
    bool torch_compat;
    bool aside;        /* the turns run side by side: what they add up are stacks, not carries */
    LoopScope *loop;   /* NULL: not opened, or closed */
    bool rows_known;   /* an input has an axis of rows */
    const Item *batch; /* the declared dim of it, if it has one */
    VEC(Total) total;
    VEC(const Node *) fold; /* over the rows, by the train; a layer may fold over a turn's */
    Fact *fact;             /* by id; made when the body is complete */
    bool whole;             /* parts are totals */
    VEC(Part) part;
    VEC(GradientSum) sum;
    VEC(const Ast *) later;
};

/* --- the clause ------------------------------------------------------------------------------ */

static bool holds_clause(const Ast *ast) {
    bool holds = ast && ast->kind == AST_CLAUSE && str_eq(ast->name, "accumulate");
    for (int i = 0; ast && !holds && i < ast->nkid; i++) {
        holds = holds_clause(ast->kid[i]);
    }
    return holds;
}

/* The first that will run. */
static const Ast *find_clause(Elab *e, const Ast *block) {
    for (int i = 0; block && i < block->nkid; i++) {
        const Ast *ast = block->kid[i], *found = NULL;
        bool condition;
        if (ast->kind == AST_CLAUSE && holds_clause(ast)) {
            return ast;
        }
        if (ast->kind == AST_WHEN && holds_clause(ast) &&
            elab_condition(e, ast->kid[0], &condition)) {
            found = find_clause(e, condition ? ast->kid[1] : ast->kid[2]);
        }
        if (found) {
            return found;
        }
    }
    return NULL;
}

static void read_clause(Elab *e, Accumulation *a) {
    const struct {
        const char *name;
        bool *to;
    } words[] = {{"torch_compat", &a->torch_compat}, {"parallel", &a->aside}};
    enum { WORDS = sizeof words / sizeof *words };
    const Ast *args = a->clause->kid[0], *said[WORDS] = {NULL};
    const Ast *count = args && args->nkid > 0 ? args->kid[0] : NULL;
    bool known = count && count->kind != AST_ARG;
    for (int i = 1; known && i < args->nkid; i++) {
        const Ast *arg = args->kid[i];
        int k = 0;
        while (k < WORDS && (arg->kind != AST_ARG || !str_eq(arg->name, words[k].name))) {
            k++;
        }
        known = k < WORDS && said[k] == NULL;
        if (known) {
            said[k] = arg;
        }
    }
    if (!known) {
        elab_error(e, a->clause->loc, 494,
                   "'accumulate' takes the number of micro-batches, and behind it torch_compat and "
                   "parallel, which are true or false");
        return;
    }
    if (elab_int(e, count, "'accumulate'", &a->count) && a->count < 1) {
        elab_error(e, count->loc, 523, "'%s' must be positive, found %lld", a->clause->name,
                   (long long)a->count);
    } else if (a->count > INT32_MAX) {
        elab_error(e, count->loc, 462, "%lld iterations are not possible", (long long)a->count);
    }
    for (int k = 0; k < WORDS; k++) {
        if (said[k]) {
            elab_condition(e, said[k]->kid[0], words[k].to);
        }
    }
    if (a->aside && a->count > MOST_ASIDE) {
        elab_error(e, count->loc, 722,
                   "at most %d micro-batches run side by side, each with gradients of its own, "
                   "found %lld",
                   MOST_ASIDE, (long long)a->count);
    }
}

bool accumulate_open(Elab *e, Training *t, const Ast *block) {
    int errors = e->errors;
    const Ast *clause = find_clause(e, block);
    if (clause) {
        t->accumulation = ARENA_NEW(e->arena, Accumulation);
        *t->accumulation = (Accumulation){.clause = clause, .count = 1};
        read_clause(e, t->accumulation);
    }
    if (e->errors != errors) {
        return false;
    }
    if (clause && t->accumulation->count > 1) {
        Accumulation *a = t->accumulation;
        e->entry->entry->accumulate = a->count;
        a->loop = loop_scope_open(e, (Dim){.size = a->count}, false);
        if (a->aside) {
            loop_aside(a->loop->builder);
        }
        e->frame->call_loop = a->loop; /* a train's body is not the body of a written loop */
    }
    return true;
}

void accumulate_clause(Elab *e, const Training *t, const Ast *clause) {
    bool read = t->accumulation && t->accumulation->clause == clause;
    if (!read && t->accumulation && e->entry->entry->kind == ENTRY_TRAIN) {
        elab_error(e, clause->loc, 558, "'%s' is said twice", clause->name);
    }
}

/* --- in the body ----------------------------------------------------------------------------- */

static Accumulation *running(const EntryScope *scope) {
    Accumulation *a = scope && scope->training ? scope->training->accumulation : NULL;
    return a && a->loop ? a : NULL;
}

bool accumulate_running(const EntryScope *scope) {
    return running(scope) != NULL;
}

Type accumulate_stacked(const Elab *e, Type type) {
    const Accumulation *a = running(e->entry);
    Type stacked = {.elem = type.elem, .rank = type.rank + 1, .dim = {a->count}};
    for (int i = 0; i < type.rank; i++) {
        stacked.dim[i + 1] = type.dim[i];
    }
    return stacked;
}

Node *accumulate_slice(Elab *e, Slot *slot) {
    LoopScope *loop = running(e->entry)->loop;
    Region *before = graph_enter(e->g, loop->outer);
    Node *stack = node_slot(e->g, slot);
    graph_leave(e->g, before);
    return loop_slice(loop, stack);
}

bool accumulate_defers(Elab *e, const Ast *ast) {
    Accumulation *a = running(e->entry);
    if (!a || e->loop != a->loop || e->frame->up) {
        return false;
    }
    VEC_PUSH(e->arena, &a->later, ast);
    return true;
}

void accumulate_batch(Elab *e, Dim *rows) {
    Accumulation *a = running(e->entry);
    if (a) {
        rows->batch = 1;
        a->batch = a->rows_known ? a->batch : rows->name;
        a->rows_known = true;
    }
}

bool accumulate_rows(const Elab *e, Dim dim) {
    const Accumulation *a = running(e->entry);
    return a && (!a->rows_known || dim.batch != 0 || (dim.name && dim.name == a->batch));
}

static bool in_layer(const Frame *frame) {
    while (frame && (!frame->item || frame->item->kind == AST_OP)) {
        frame = frame->up;
    }
    return frame != NULL;
}

const Value *accumulate_fold(Elab *e, const char *name, const Value *v) {
    Accumulation *a = running(e->entry);
    bool mean = str_eq(name, "mean");
    if (!elab_ok(v) || v->kind != V_TENSOR || v->node->region != a->loop->body) {
        return v;
    }
    if (a->rows_known && !in_layer(e->frame)) {
        VEC_PUSH(e->arena, &a->fold, v->node);
    }
    if (!(mean || str_eq(name, "sum"))) {
        return v;
    }
    for (int i = 0; i < a->total.count; i++) {
        Total *total = &a->total.at[i];
        if (total->node == v->node) { /* over one row both may be one node */
            total->none = total->none || total->mean != mean;
            return v;
        }
    }
    bool large = v->node->type->rank > 0;
    Total total = {.node = v->node, .large = large, .mean = mean, .guess = !a->rows_known};
    VEC_PUSH(e->arena, &a->total, total);
    return v;
}

const Value *accumulate_count(Elab *e, int64_t n) {
    /* A node that is no constant: behind the loop it is the sum over the turns. */
    Node *node = node_stop(e->g, node_const(e->g, e->g->float_type, (double)n));
    return accumulate_fold(e, "sum", value_scalar(e->scratch, node));
}

/* --- what differs between the turns ---------------------------------------------------------- */

/* The state that `node`, a body parameter, is of, if no turn moves it; NULL: it is of none.
 * Assignments of the train run behind the loop, so only what a layer sets differs from turn to
 * turn, which is known when the body is complete. */
static Slot *state_kept(const Accumulation *a, const Node *node) {
    const LoopScope *loop = a->loop;
    for (int i = 0; i < loop->state.count; i++) {
        const LoopState *s = &loop->state.at[i];
        if (s->value == node && !s->written && !s->stacked) {
            return s->slot;
        }
    }
    return NULL;
}

static bool is_linear(const Fact *fact, const Node *node) {
    const Fact *x = node->nin > 0 ? &fact[node->in[0]->id] : NULL;
    const Fact *y = node->nin > 1 ? &fact[node->in[1]->id] : NULL;
    bool sum = node->op == OP_ADD || node->op == OP_SUB;
    bool product = node->op == OP_MUL || node->op == OP_DIV;
    if (sum) {
        return x->linear && y->linear;
    }
    if (product) {
        return (x->linear && !y->differs) || (node->op == OP_MUL && !x->differs && y->linear);
    }
    return (node->op == OP_NEG || node->op == OP_CAST || node->op == OP_POINT) && x->linear;
}

static bool made_of_folds(const Fact *fact, const Node *node) {
    bool made = false;
    for (int i = 0; i < node->nin; i++) {
        made = made || fact[node->in[i]->id].folded;
    }
    return made;
}

static void learn(Elab *e, Accumulation *a) {
    const Region *body = a->loop->body;
    Fact *fact = ARENA_ARRAY(e->scratch, Fact, body->node.count);
    bool *fold = ARENA_ARRAY(e->scratch, bool, body->node.count);
    for (int i = 0; i < a->fold.count; i++) {
        fold[a->fold.at[i]->id] = true;
    }
    for (int i = 0; i < body->node.count; i++) {
        const Node *node = body->node.at[i];
        bool same = node->op != OP_BODY_PARAM || loop_captured(a->loop->builder, node) ||
                    state_kept(a, node);
        fact[i] = (Fact){.differs = !same, .total = -1};
        fact[i].moves = fact[i].counts = same && !node->body && node->op != OP_GRAD;
        for (int k = 0; k < node->nin; k++) {
            const Fact *in = &fact[node->in[k]->id];
            fact[i].differs = fact[i].differs || in->differs;
            fact[i].moves = fact[i].moves && in->moves;
            fact[i].counts = fact[i].counts && in->counts;
            fact[i].nested = fact[i].nested || in->nested;
        }
        for (int k = 0; k < a->total.count; k++) {
            Total *total = &a->total.at[k];
            if (total->node == node) {
                total->none = total->none || (total->guess && !fact[i].differs);
                fact[i].total = total->none ? -1 : k;
            }
        }
        const Total *total = fact[i].total >= 0 ? &a->total.at[fact[i].total] : NULL;
        fact[i].moves = fact[i].moves || (total && !total->large);
        fact[i].counts = fact[i].counts || total;
        /* The sum that a mean divides may be a fold of the text, too. */
        const bool divided = total && total->mean && node->nin > 0 && fold[node->in[0]->id];
        const Node *sum = divided ? node->in[0] : node;
        fact[i].nested = fact[i].nested || (total && made_of_folds(fact, sum));
        fact[i].folded = fold[i] || made_of_folds(fact, node);
        /* A state that moves with the turns is no row: it has a mean over them. */
        const bool carried = !same && !loop_stack_of(node);
        fact[i].linear = total ? total->mean : !fact[i].differs || carried || is_linear(fact, node);
    }
    a->fact = fact;
}

static bool moves(const Accumulation *a, const Value *v) {
    return a->fact[v->node->id].moves;
}

static Node *moved(Elab *e, Accumulation *a, Node *node) {
    Fact *fact = &a->fact[node->id];
    if (!fact->moved && node->op == OP_BODY_PARAM) {
        Slot *state = state_kept(a, node);
        fact->moved = state ? node_slot(e->g, state) : loop_captured(a->loop->builder, node);
    } else if (!fact->moved) {
        Node **in = ARENA_ARRAY(e->scratch, Node *, node->nin);
        for (int i = 0; i < node->nin; i++) {
            in[i] = moved(e, a, node->in[i]);
        }
        fact->moved = graph_copy(e->g, node, in);
    }
    return fact->moved;
}

/* --- gradients ------------------------------------------------------------------------------- */

/* Sets met[] of the totals that `node` is made of, none behind another one. */
static void meet_totals(Elab *e, const Accumulation *a, const Node *node, bool large, bool *met) {
    bool *reached = ARENA_ARRAY(e->scratch, bool, (int)node->id + 1);
    reached[node->id] = true;
    for (int i = (int)node->id; i >= 0; i--) {
        const Node *n = a->loop->body->node.at[i];
        int total = a->fact[i].total;
        if (reached[i] && total >= 0 && (large || !a->total.at[total].large)) {
            met[total] = true;
            continue;
        }
        for (int k = 0; reached[i] && k < n->nin; k++) {
            reached[n->in[k]->id] = true;
        }
    }
}

static void add_part(Elab *e, Accumulation *a, Node *value, int total) {
    Part part = {value, total, flow_of(e->arena, value)};
    VEC_PUSH(e->arena, &a->part, part);
}

/* Why turns do not add up to the value that all rows would give. */
static const char *why_not(Elab *e, const Accumulation *a, const Node *node) {
    return a->fact[node->id].nested
               ? "a fold over the batch inside of another one is of the rows of one micro-batch"
               : str_printf(e->arena,
                            "it is not made of sums and means over the batch, so it is the mean of "
                            "%lld numbers",
                            (long long)a->count);
}

static void find_parts(Elab *e, Accumulation *a, const Training *t) {
    Node *loss = t->loss->node;
    learn(e, a);
    a->whole = !a->torch_compat && !a->fact[loss->id].linear && moves(a, t->loss);
    if (!a->torch_compat && (a->fact[loss->id].nested || !(a->fact[loss->id].linear || a->whole))) {
        elab_warn(e, t->loss_loc, 495,
                  "the accumulated loss of '%s' is not the loss of all rows: %s", e->entry->name,
                  why_not(e, a, loss));
    }
    if (a->whole) {
        bool *met = ARENA_ARRAY(e->scratch, bool, a->total.count);
        meet_totals(e, a, loss, false, met);
        for (int i = a->total.count - 1; i >= 0; i--) {
            if (met[i]) {
                add_part(e, a, a->total.at[i].node, i);
            }
        }
        return;
    }
    add_part(e, a, loss, -1);
}

/* What adds up `node`: a carry that begins with zeros, or of turns side by side a stack. */
static int add_up(Elab *e, Accumulation *a, Node *node) {
    if (a->aside) {
        return loop_emit(a->loop->builder, node);
    }
    Region *before = graph_enter(e->g, a->loop->outer);
    Node *zero = node_full(e->g, *node->type, 0);
    graph_leave(e->g, before);
    int carry = loop_carry(a->loop->builder, zero);
    Node *sum = node_map2(e->g, OP_ADD, loop_carry_value(a->loop->builder, carry), node);
    loop_next(a->loop->builder, carry, sum);
    return carry;
}

void accumulate_gradient(Elab *e, Training *t, const Update *u) {
    Accumulation *a = t->accumulation;
    if (!a->fact) {
        find_parts(e, a, t);
    }
    for (int i = 0; i < a->part.count; i++) {
        Part *part = &a->part.at[i];
        if (flow_has(part->flow, u->point)) {
            Node *start = scaler_start(e, t, part->value->type->elem);
            Node *grad = node_grad(e->g, part->value, u->point, start);
            GradientSum sum = {u->param->slot, i, add_up(e, a, grad)};
            VEC_PUSH(e->arena, &a->sum, sum);
        }
    }
}

/* --- behind the loop ------------------------------------------------------------------------- */

/* What add_up gives in the end. Stacks are added up in the order of the turns, as carries are. */
static Node *added(Elab *e, const Accumulation *a, Node *loop, int sum) {
    if (!a->aside) {
        return loop_final(e->g, loop, sum);
    }
    Node *stack = loop_stack(e->g, loop, sum), *all = node_index_axis(e->g, stack, 0, 0);
    for (int64_t i = 1; i < a->count; i++) {
        all = node_map2(e->g, OP_ADD, all, node_index_axis(e->g, stack, 0, i));
    }
    return all;
}

static Node *divided(Elab *e, Node *node, int64_t by) {
    return node_map2(e->g, OP_MUL, node, node_const(e->g, node->type->elem, 1.0 / (double)by));
}

/* The totals are the values behind the loop that stand for their nodes. */
static void make_totals(Elab *e, Accumulation *a, Node *loop) {
    for (int i = 0; i < a->total.count; i++) {
        Total *total = &a->total.at[i];
        if (total->none) {
            continue;
        }
        Node *sum = added(e, a, loop, total->sum);
        if (total->mean) {
            sum = divided(e, sum, a->count);
        }
        /* Its gradient has been added up; none goes back through the loop. */
        total->total = elem_is_float(sum->type->elem) ? node_stop(e->g, sum) : sum;
        a->fact[total->node->id].moved = total->total;
    }
}

/* v behind the loop; `sum` adds up to the mean over the turns, -1: it moves. */
static const Value *behind(Elab *e, Accumulation *a, const Value *v, Node *loop, int sum) {
    if (sum >= 0) {
        a->fact[v->node->id].moved = divided(e, added(e, a, loop, sum), a->count);
    }
    return value_with(e->scratch, v, moved(e, a, v->node));
}

/* The gradient of the loss of all rows: those of the totals, each times how the loss changes with
 * it, and what the loss itself says of the parameter (a penalty of weights). */
static void set_gradient(Elab *e, Training *t, Update *u, Node *loop) {
    Accumulation *a = t->accumulation;
    Node *loss = t->loss->node, *grad = NULL;
    const Flow *flow = flow_of(e->scratch, loss);
    u->point = node_slot(e->g, u->param->slot);
    for (int i = 0; i < a->sum.count; i++) {
        const GradientSum *s = &a->sum.at[i];
        if (s->slot != u->param->slot) {
            continue;
        }
        Node *term = added(e, a, loop, s->sum);
        int total = a->part.at[s->part].total;
        if (!a->whole || a->total.at[total].mean) {
            term = divided(e, term, a->count);
        }
        if (a->whole) {
            Node *one = node_const(e->g, loss->type->elem, 1);
            term =
                node_map2(e->g, OP_MUL, term, node_grad(e->g, loss, a->total.at[total].total, one));
        }
        grad = grad ? node_map2(e->g, OP_ADD, grad, term) : term;
    }
    if (a->whole && flow_has(flow, u->point)) {
        Node *start = scaler_start(e, t, loss->type->elem);
        Node *own = node_grad(e->g, loss, u->point, start);
        grad = grad ? node_map2(e->g, OP_ADD, grad, own) : own;
    }
    u->grad = grad;
}

static bool in_body(const Accumulation *a, const Value *v) {
    bool inside = v && v->kind == V_TENSOR && v->node->region == a->loop->body;
    for (int i = 0; v && (v->kind == V_LIST || v->kind == V_RECORD) && i < v->count; i++) {
        inside = inside || in_body(a, v->item[i]);
    }
    return inside;
}

/* The loss or metric that a name of the body is of, as it is reported; NULL: it is of none. One of
 * a derivative is the mean of what the turns have, not that of the update: none either. */
static const Value *reported(const Training *t, const ScopeName *n) {
    if (str_eq(n->name, "loss") && loc_equal(n->loc, t->loss_loc)) {
        return t->loss;
    }
    for (int i = 0; i < t->metric.count; i++) {
        const Metric *m = &t->metric.at[i];
        if (!m->derived && str_eq(m->name, n->name) && loc_equal(m->loc, n->loc)) {
            return m->value;
        }
    }
    return NULL;
}

/* The names of the body, as what comes behind the loop may read them. */
static void move_names(Elab *e, Accumulation *a, const Training *t) {
    const Scope *body = e->scope;
    e->scope = scope_new(e->scratch, NULL, e->root);
    for (int i = 0; i < body->name.count; i++) {
        const ScopeName *n = body->name.at[i];
        const Value *v = n->value;
        BindKind kind = n->kind;
        const Value *update = reported(t, n);
        if (update) {
            v = update;
        } else if (elab_ok(v) && in_body(a, v)) {
            bool can = v->kind == V_TENSOR && v->nspan == 0 && moves(a, v);
            kind = can ? kind : BIND_MICRO_BATCH;
            v = can ? behind(e, a, v, NULL, -1) : v;
        }
        scope_add(e->scratch, e->scope, n->name, n->loc, kind, v);
    }
}

/* Turns that run side by side do not know what others have made. */
static void check_hands_on(Elab *e, const Accumulation *a) {
    const LoopScope *loop = a->loop;
    for (int i = 0; i < loop->state.count; i++) {
        if (loop->state.at[i].written) {
            elab_error(e, a->clause->loc, 723,
                       "'%s' moves with each micro-batch, so these cannot run side by side",
                       loop->state.at[i].slot->name);
            diag_hint(&e->c->diag, "without 'parallel = true' they run one behind the other");
            return;
        }
    }
    if (loop->over) {
        elab_error(e, loop->over_loc, 724,
                   "this loop may meet its maximum, which micro-batches side by side cannot say");
        diag_note(&e->c->diag, a->clause->loc, "they are asked for here");
    }
}

/* How each metric is had behind the loop: -1: of totals, else the sum over the turns of what they
 * have. Totals that nobody reads are none. */
static int *add_up_metrics(Elab *e, Accumulation *a, const Training *t) {
    int *metric = ARENA_ARRAY(e->scratch, int, t->metric.count);
    bool *read = ARENA_ARRAY(e->scratch, bool, a->total.count);
    for (int i = 0; i < t->metric.count; i++) {
        const Metric *m = &t->metric.at[i];
        metric[i] = -1;
        if (!elab_ok(m->value)) {
            continue;
        }
        const Fact *fact = &a->fact[m->value->node->id];
        if (!a->torch_compat && (fact->nested || !(fact->linear || fact->counts))) {
            elab_warn(e, m->loc, 725,
                      "the metric '%s' of an update is not that of all its rows: %s", m->name,
                      why_not(e, a, m->value->node));
        }
        if (fact->counts) {
            meet_totals(e, a, m->value->node, true, read);
            continue;
        }
        metric[i] = add_up(e, a, m->value->node);
    }
    for (int i = 0; i < a->total.count; i++) {
        Total *total = &a->total.at[i];
        total->none = total->none || (total->large && !read[i]);
        total->sum = total->none ? -1 : add_up(e, a, total->node);
    }
    return metric;
}

void accumulate_close(Elab *e, Training *t) {
    Accumulation *a = t->accumulation;
    Loc before = elab_at(e, t->loss_loc);
    bool mean = a->torch_compat || !moves(a, t->loss);
    int loss = mean ? add_up(e, a, t->loss->node) : -1;
    const int *metric = add_up_metrics(e, a, t);
    e->frame->call_loop = NULL;
    if (a->aside) {
        check_hands_on(e, a);
    }
    Node *loop = loop_scope_close(e, a->loop);
    make_totals(e, a, loop);
    t->loss = behind(e, a, t->loss, loop, loss);
    for (int i = 0; i < t->metric.count; i++) {
        const Value *v = t->metric.at[i].value;
        t->metric.at[i].value = elab_ok(v) ? behind(e, a, v, loop, metric[i]) : v;
    }
    for (int i = 0; i < t->update.count; i++) {
        set_gradient(e, t, &t->update.at[i], loop);
    }
    e->g->loc = before;
    move_names(e, a, t);
    a->loop = NULL;
    for (int i = 0; i < a->later.count; i++) {
        stmt_one(e, a->later.at[i]);
    }
}
