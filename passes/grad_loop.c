/* grad_loop: the adjoint of LOOP is a loop that runs the other way; see grad.h.
 *
 * The adjoint of a carry is a carry, of an invariant a carry that sums, of a stacked input a
 * stacked output, of a stacked output a stacked input. Its body is a reverse sweep over the loop's
 * body. What rules read of the forward iteration is replayed there: by reading it again
 * (invariants, stacked inputs, index), by computing it again, or from a stack that the forward
 * loop is made to emit; one function decides which, and only for what a rule asks for.
 *
 * The forward loop is still private to the pass, so it is extended in place: results are added
 * behind the others, which changes no existing node. Loops inside loops go the same way: an inner
 * stack is a value of the outer body, and is saved or computed again like any other. */
#include "compiler/loop_builder.h"
#include "passes/grad_replay.h"

#include <string.h>

/* --- activity --------------------------------------------------------------------------------- */

/* A sweep over the body with its params active where operands are; carries to a fixed point. */
static Sweep *body_sweep(Sweep *s, const Node *loop, const bool *operand, Replay *replay) {
    const Region *body = loop->body;
    const Attr *a = loop->attr;
    bool *carry = ARENA_ARRAY(s->scratch, bool, a->ncarry);
    memcpy(carry, operand, sizeof *carry * (size_t)a->ncarry);
    for (;;) {
        GradSave save = replay ? replay->save : s->save;
        Sweep *b = sweep_new(s->g, s->scratch, save, s->run, body, body->node.count, replay);
        for (int k = 0; k < loop->nin; k++) {
            b->active[body->param.at[1 + k]->id] = k < a->ncarry ? carry[k] : operand[k];
        }
        sweep_activate(b);
        bool grown = false;
        for (int k = 0; k < a->ncarry; k++) {
            if (b->active[body->out.at[k]->id] && !carry[k]) {
                carry[k] = grown = true;
            }
        }
        if (!grown) {
            return b;
        }
    }
}

void loop_activity(Sweep *s, const Node *loop, const bool *operand, bool *result) {
    Sweep *b = body_sweep(s, loop, operand, NULL);
    for (int k = 0; k < loop->body->out.count; k++) {
        result[k] = b->active[loop->body->out.at[k]->id];
        if (k < loop->attr->ncarry) { /* the start is a result when the trip count is 0 */
            result[k] = result[k] || operand[k];
        }
    }
}

/* Which nodes of the body may get a cotangent when the results `wanted` have one; adds the carries
 * whose next value is then asked for. */
static bool *reach(Sweep *b, const Node *loop, bool *wanted) {
    const Region *body = loop->body;
    for (;;) {
        bool *reached = ARENA_ARRAY(b->scratch, bool, b->count), grown = false;
        for (int k = 0; k < body->out.count; k++) {
            reached[body->out.at[k]->id] |= wanted[k];
        }
        for (int i = b->count - 1; i >= 0; i--) {
            const Node *n = body->node.at[i];
            reached[i] = reached[i] && b->active[i];
            for (int k = 0; reached[i] && k < n->nin; k++) {
                reached[n->in[k]->id] |= sweep_wants(b, n, k);
            }
        }
        for (int k = 0; k < loop->attr->ncarry; k++) {
            if (reached[body->param.at[1 + k]->id] && !wanted[k]) {
                wanted[k] = grown = true;
            }
        }
        if (!grown) {
            return reached;
        }
    }
}

/* --- replay ----------------------------------------------------------------------------------- */

/* Is `n` what else is added to a call, the call by a number or rounded, and the call read by
 * nothing else? Then it is stacked in the place of the call, which no derivative asks for. Gives
 * the call, or NULL. */
static const Node *ended_call(const Replay *r, const Node *n) {
    bool sum = n->op == OP_ADD || n->op == OP_SUB || n->op == OP_NEG || op_rounds(n->op);
    for (int k = 0; (int)n->id < r->nconstant && k < n->nin; k++) {
        const Node *x = n->in[k], *other = n->in[n->nin - 1 - k];
        bool number = other->op == OP_BROADCAST && other->in[0]->op == OP_CONST;
        bool linear = sum || (n->op == OP_MUL && number);
        if (!linear || r->constant[x->id] || r->readers[x->id] != 1) {
            continue;
        }
        const Node *call = op_info[x->op].cls == CLASS_CALL ? x : ended_call(r, x);
        if (call) {
            return call;
        }
    }
    return NULL;
}

/* --- what is planned -------------------------------------------------------------------------- */

/* The node that `n`, which ends `call` or (NULL) none, is kept for. */
static const Node *kept_for(const Node *n, const Node *call) {
    return call ? call : n->op == OP_PICK ? n->in[0] : n;
}

/* What the source says of `n`, which is kept for `what`; NULL: nothing. */
static const KeepHint *hint_of(const Graph *g, const Node *n, const Node *what) {
    for (int i = 0; i < g->hint.count; i++) {
        const KeepHint *hint = &g->hint.at[i];
        const Node *of = hint->keep ? n : what;
        if (loc_equal(hint->loc, of->loc) &&
            (hint->keep ? of->op == hint->op : op_info[of->op].cls == CLASS_CALL)) {
            return hint;
        }
    }
    return NULL;
}

/* Notes what `n` takes that is stacked now. */
static void note_kept(const Replay *r, const Node *n) {
    KeptList *list = r->run->plan->kept;
    if (!list || r->run->plan->late || n->op == OP_BODY_PARAM) {
        return;
    }
    const Node *what = kept_for(n, ended_call(r, n));
    const double trip = (double)r->loop->attr->trip, count = (double)type_count(*n->type);
    Kept *kept = kept_entry(list, what);
    bool counted = what->op == OP_LOOP && kept->flops > 0; /* by another of its results */
    kept->bytes += trip * count * (double)elem_bytes(n->type->elem);
    kept->flops += counted ? 0 : trip * node_flops(what);
}

static Node *outer_value(Replay *r, Node *n) {
    return r->outer ? sweep_value(r->outer, n) : n;
}

/* Result k of the forward loop, as the adjoint loop reads it. */
static Node *forward_result(Replay *r, int k) {
    Region *before = graph_enter(r->g, r->loop->region);
    Attr attr = {.axis = k};
    Node *pick = graph_add(r->g, OP_PICK, &r->loop, 1, &attr, type_scalar(TY_ERROR));
    graph_leave(r->g, before);
    return outer_value(r, pick);
}

/* Makes the forward loop emit `n` of its body, if it does not yet. */
static Node *saved_stack(Replay *r, Node *n) {
    Region *body = r->loop->body;
    for (int k = r->loop->attr->ncarry; k < body->out.count; k++) {
        if (body->out.at[k] == n) {
            return forward_result(r, k);
        }
    }
    Attr *attr = ARENA_NEW(r->g->arena, Attr);
    *attr = *r->loop->attr;
    attr->nys++;
    r->loop->attr = attr;
    VEC_PUSH(r->g->arena, &body->out, n);
    return forward_result(r, body->out.count - 1);
}

/* `n` of the forward body in the adjoint loop, by way of a stack. What has as many axes as there
 * may be, as in loops nested deeply, is stacked flat. */
static Node *saved_value(Replay *r, Node *n) {
    const Type type = *n->type;
    note_kept(r, n);
    if (type.rank < MD_RANK) {
        return loop_xs(r->adjoint, saved_stack(r, n));
    }
    int64_t count = type_count(type);
    Region *before = graph_enter(r->g, r->loop->body);
    Node *flat = node_reshape(r->g, n, 1, &count);
    graph_leave(r->g, before);
    return node_reshape(r->g, loop_xs(r->adjoint, saved_stack(r, flat)), type.rank, type.dim);
}

/* A faithful copy of `from` into the current region, which is a fresh body with equal params. */
static void copy_body(Replay *r, const Region *from);

static Node *copy_loop(Replay *r, const Node *loop, Node *const *in) {
    Graph *g = r->g;
    Region *body = region_new(g, g->region);
    Region *before = graph_enter(g, body);
    for (int k = 0; k < loop->body->param.count; k++) {
        const Node *param = loop->body->param.at[k];
        graph_name(region_param(body, *param->type), param->name);
    }
    copy_body(r, loop->body);
    graph_leave(g, before);
    Node *copy = graph_append(g, OP_LOOP, in, loop->nin, loop->attr, body, *loop->type);
    copy->loc = loop->loc;
    return copy;
}

static void copy_body(Replay *r, const Region *from) {
    Region *to = r->g->region;
    Node **map = ARENA_ARRAY(r->scratch, Node *, from->node.count);
    for (int k = 0; k < from->param.count; k++) {
        map[from->param.at[k]->id] = to->param.at[k];
    }
    for (int i = 0; i < from->node.count; i++) {
        const Node *n = from->node.at[i];
        if (n->op == OP_BODY_PARAM) {
            continue;
        }
        Node **in = ARENA_ARRAY(r->scratch, Node *, n->nin);
        for (int k = 0; k < n->nin; k++) {
            in[k] = map[n->in[k]->id];
        }
        map[i] = n->op == OP_LOOP ? copy_loop(r, n, in) : graph_copy(r->g, n, in);
    }
    for (int k = 0; k < from->out.count; k++) {
        region_result(to, map[from->out.at[k]->id]);
    }
}

/* A carry in the adjoint loop, where the forward loop emits what it becomes. */
static Node *earlier_next(Replay *r, int carry, int stack) {
    Node *start = outer_value(r, r->loop->in[carry]);
    return loop_carry_before(r->adjoint, forward_result(r, stack), start, r->loop->attr->reverse);
}

static Node *replay_param(Replay *r, Node *param) {
    const Attr *a = r->loop->attr;
    int k = param->attr->axis;
    if (k == 0) {
        return loop_index(r->adjoint);
    }
    if (k <= a->ncarry) {
        int stack = loop_next_stack(r->loop, k - 1);
        return stack < 0 ? saved_value(r, param) : earlier_next(r, k - 1, stack);
    }
    Node *operand = outer_value(r, r->loop->in[k - 1]);
    return k <= a->ncarry + a->ninv ? graph_import(r->g, operand) : loop_xs(r->adjoint, operand);
}

/* Does no turn of the loop read what a carry begins with? */
static bool is_unread(const Node *loop, int operand) {
    const Attr *a = loop->attr;
    if (operand >= a->ncarry || a->trip < 1 || loop_ends_itself(a)) {
        return false;
    }
    return region_readers(loop->body, loop->body->param.at[1 + operand]) == 0;
}

static Node *replay_again(Replay *r, Node *n) {
    Node **in = ARENA_ARRAY(r->scratch, Node *, n->nin);
    for (int k = 0; k < n->nin; k++) {
        in[k] = n->op == OP_LOOP && is_unread(n, k) ? node_full(r->g, *n->in[k]->type, 0)
                                                    : replay_value(r, n->in[k]);
    }
    Loc loc = r->g->loc;
    r->g->loc = n->loc;
    Node *again = n->op == OP_LOOP ? copy_loop(r, n, in) : graph_copy(r->g, n, in);
    r->g->loc = loc;
    return n->name ? graph_name(again, n->name) : again;
}

/* Is it looked up where nothing changes, by an index that takes less? Then reading it again is as
 * cheap as reading a stack of it. */
static bool looked_up_again(Replay *r, const Node *n) {
    enum { SMALL = 2 };
    return r->save != GRAD_SAVE_ALL && n->op == OP_GATHER && same_every_time(r, n->in[0]) &&
           type_bytes(*n->in[1]->type) <= type_bytes(*n->type) / SMALL;
}

/* Is `n`, a result of a loop in a body of which carries alone are kept, stacked all the same? So
 * are the slopes of the stages of an equation, with which its adjoint begins each stage, where they
 * are few beside what the field makes on its way to them: where a quarter of what one turn of the
 * inner loop makes holds those of all turns. */
static bool inner_is_kept(Replay *r, const Node *n) {
    enum { PART = 4, FLOPS_A_BYTE = 64 };
    const Node *inner = n->op == OP_PICK && r->save == GRAD_SAVE_CARRIES ? n->in[0] : NULL;
    const double slice = (double)type_bytes(*n->type);
    if (!inner || inner->attr->checkpoint == CHECKPOINT_AFRESH || loop_ends_itself(inner->attr) ||
        loop_ends_itself(r->loop->attr) || node_flops(inner) < FLOPS_A_BYTE * slice) {
        return false;
    }
    const double stack = all_turns(r->loop) * slice;
    const bool kept = r->kept + stack <= made_bytes(inner->body) / PART;
    r->kept += kept ? stack : 0;
    return kept;
}

/* The one decision, of any node but a parameter: made again, or stacked? */
static bool made_again(Replay *r, const Node *n) {
    const Node *decides = n->op == OP_PICK ? n->in[0] : n;
    const Node *call = ended_call(r, n), *what = kept_for(n, call);
    const KeepHint *hint = hint_of(r->g, n, what);
    bool same = same_every_time(r, decides);
    if (hint && (!hint->keep || !computed_again(GRAD_SAVE_ALL, decides, same))) {
        return !hint->keep;
    }
    if (inner_is_kept(r, n)) {
        return false;
    }
    return (!r->run->plan->late && plan_makes_again(r->run->plan, what)) || looked_up_again(r, n) ||
           (computed_again(r->save, decides, same) &&
            !(r->save == GRAD_SAVE_CALLS && call && !is_short(call)));
}

Node *replay_value(Replay *r, Node *n) {
    replay_grow(r);
    if (r->value[n->id]) {
        return r->value[n->id];
    }
    Region *before = graph_enter(r->g, r->at);
    Node *value;
    if (n->op == OP_BODY_PARAM) {
        value = replay_param(r, n);
    } else if (n->op == OP_LOOP || made_again(r, n)) {
        value = replay_again(r, n);
    } else {
        value = saved_value(r, n);
    }
    graph_leave(r->g, before);
    replay_grow(r); /* saving may have added a node to the forward body */
    r->value[n->id] = value;
    return value;
}

static void find_constants(Replay *r) {
    const Region *body = r->loop->body;
    const Attr *a = r->loop->attr;
    r->nconstant = body->node.count;
    r->constant = ARENA_ARRAY(r->scratch, bool, r->nconstant);
    r->readers = ARENA_ARRAY(r->scratch, int, r->nconstant);
    for (int k = 0; k < body->out.count; k++) {
        r->readers[body->out.at[k]->id]++;
    }
    for (int i = 0; i < r->nconstant; i++) {
        const Node *n = body->node.at[i];
        bool same = n->op != OP_BODY_PARAM ||
                    (n->attr->axis > a->ncarry && n->attr->axis <= a->ncarry + a->ninv);
        for (int k = 0; k < n->nin; k++) {
            same = same && r->constant[n->in[k]->id];
            r->readers[n->in[k]->id]++;
        }
        r->constant[i] = same;
    }
}

/* --- the adjoint loop ------------------------------------------------------------------------- */

void vjp_pick(Sweep *s, Node *n, Node *u) {
    LoopSweep *ls = s->loop[n->in[0]->id];
    int k = n->attr->axis;
    if (k < ls->nresults && ls->active[k]) {
        ls->cot[k] = ls->cot[k] ? node_map2(s->g, OP_ADD, ls->cot[k], u) : u;
    }
}

/* The last index of the forward loop as the adjoint reads it; NULL: it runs all iterations. */
static Node *last_index(Replay *r) {
    const Attr *a = r->loop->attr;
    if (a->last) {
        return outer_value(r, r->loop->in[a->ncarry + a->last - 1]);
    }
    if (!a->go) {
        return NULL;
    }
    int carry = loop_last_carry(r->loop);
    if (carry < 0) {
        BUG("a loop with a condition does not say how far it went");
    }
    return forward_result(r, carry);
}

/* The cotangent of a body node at the end of its sweep, or zeros. */
static Node *cotangent_of(Sweep *b, const Node *n) {
    return b->cot[n->id] ? b->cot[n->id] : node_full(b->g, *n->type, 0);
}

/* What the derivative by invariant k of a segment goes on from: the sum of the segments that the
 * adjoint has run, so that it is one sum over all turns, in their order; NULL: from zeros. A loop
 * of one turn goes on from what there is, as if it were no loop: sums of their own would all be
 * there until the last of such loops, as those of the stages of a solver's step. */
static Node *sum_before(const Sweep *s, const Node *n, int k) {
    const Node *from = n->in[k];
    const bool once = n->attr->trip == 1 && !loop_ends_itself(n->attr);
    const bool segment = n->attr->checkpoint == CHECKPOINT_AFRESH && s->replay;
    Node *sum = s->replay ? s->sum[from->id] : NULL, *cot = s->cot[from->id];
    Node *before = once ? (cot ? cot : sum) : segment && !cot ? sum : NULL;
    int operands = 0; /* two of one value would both begin with what it has */
    for (int i = 0; before && i < n->nin; i++) {
        operands += n->in[i] == from;
    }
    return operands == 1 ? before : NULL;
}

/* Does the adjoint of `n`, which runs each turn again from carries that were kept, also give what a
 * turn gives to others? Not where weights have a slice for each turn, as layers do: what is written
 * over them while the adjoint runs may wait for a loss that is made of these stacks. */
static bool gives_stacks(const Sweep *s, const Node *n) {
    const Attr *a = n->attr;
    return !s->replay && !n->region->up && a->checkpoint > 0 && a->ncarry > 0 &&
           !loop_ends_itself(a) && weight_bytes(n) == 0;
}

/* `n` is met after all its results; their cotangents are in s->loop. */
void vjp_loop(Sweep *s, Node *n, Node *u) {
    (void)u;
    Graph *g = s->g;
    /* An adjoint in the body of another loop, as that of a trace, gives nothing to the outside. */
    const bool read = g->region == (s->replay ? s->replay->at : n->region);
    const LoopSweep *ls = s->loop[n->id];
    int nresults = ls->nresults, nin = n->nin, ncarry = n->attr->ncarry, ninv = n->attr->ninv;
    bool *wanted = ARENA_ARRAY(s->scratch, bool, nresults), any = false;
    for (int k = 0; k < nresults; k++) {
        wanted[k] = ls->cot[k] != NULL;
        any = any || wanted[k];
    }
    if (!any) {
        return;
    }
    Replay *r = ARENA_NEW(s->scratch, Replay);
    GradSave save = n->attr->checkpoint > 0                    ? GRAD_SAVE_CARRIES
                    : n->attr->checkpoint == CHECKPOINT_AFRESH ? s->run->plan->save
                                                               : s->save;
    *r = (Replay){.make = replay_value,
                  .g = g,
                  .scratch = s->scratch,
                  .save = save,
                  .run = s->run,
                  .loop = n,
                  .outer = s};
    if (s->replay && made_again(s->replay, n)) {
        r->loop = sweep_value(s, n);
        r->outer = NULL;
    }
    bool *operand = ARENA_ARRAY(s->scratch, bool, nin);
    for (int k = 0; k < nin; k++) {
        operand[k] = s->active[n->in[k]->id];
    }
    find_constants(r);
    Sweep *b = body_sweep(s, r->loop, operand, r);
    bool *reached = reach(b, r->loop, wanted);
    const Region *body = r->loop->body;

    Node *last = last_index(r);
    /* Turns that hand nothing on have no order: their adjoint goes the way that they do. */
    LoopBuilder *loop = loop_open(g, n->attr->trip, n->attr->reverse != (ncarry > 0));
    if (last) {
        loop_until(loop, last);
    }
    r->adjoint = loop;
    r->at = g->region;
    int *carry = ARENA_ARRAY(s->scratch, int, nin);
    bool *goes_on = ARENA_ARRAY(s->scratch, bool, nin);
    for (int k = 0; k < nin; k++) { /* of carries that can be reached, and sums for invariants */
        const Node *param = body->param.at[1 + k];
        carry[k] = -1;
        if (k < ncarry ? b->active[param->id] && wanted[k]
                       : k < ncarry + ninv && reached[param->id]) {
            Node *start = k < ncarry ? ls->cot[k] : sum_before(s, n, k);
            goes_on[k] = k >= ncarry && start;
            Region *before = graph_enter(g, r->at->up);
            start = start ? start : node_full(g, *param->type, 0);
            graph_leave(g, before);
            carry[k] = loop_carry(loop, start);
            sweep_name(g, loop_carry_value(loop, carry[k]), param);
            b->sum[param->id] = k < ncarry ? NULL : loop_carry_value(loop, carry[k]);
        }
    }
    for (int k = 0; k < nresults; k++) {
        if (k < ncarry && carry[k] >= 0) {
            sweep_add(b, body->out.at[k], loop_carry_value(loop, carry[k]));
        } else if (k >= ncarry && ls->cot[k]) {
            sweep_add(b, body->out.at[k], loop_xs(loop, ls->cot[k]));
        }
    }
    sweep_run(b);
    int *emitted = ARENA_ARRAY(s->scratch, int, nin);
    for (int k = 0; k < nin; k++) {
        const Node *param = body->param.at[1 + k];
        emitted[k] = -1;
        if (k < ncarry && carry[k] >= 0) {
            loop_next(loop, carry[k], cotangent_of(b, param));
        } else if (carry[k] >= 0) {
            Node *sum = b->sum[param->id], *more = b->cot[param->id];
            Loc loc = g->loc;
            g->loc = more ? more->loc : loc;
            Node *next = sum && more ? node_map2(g, OP_ADD, sum, more) : more;
            loop_next(loop, carry[k], next ? next : loop_carry_value(loop, carry[k]));
            g->loc = loc;
        } else if (k >= ncarry + ninv && b->cot[param->id]) {
            emitted[k] = loop_emit(loop, b->cot[param->id]);
        }
    }
    const Gifts *gifts = read ? gifts_open(s, r, n, nresults, gives_stacks(s, n)) : NULL;
    loop_checkpoint(loop, gifts && !s->replay ? CHECKPOINT_ADJOINT : CHECKPOINT_NONE);
    Node *adjoint = loop_close(loop);
    if (gifts) {
        gifts_note(s, gifts, adjoint);
    }
    for (int k = 0; k < nin; k++) {
        if (carry[k] >= 0 && goes_on[k]) {
            s->sum[n->in[k]->id] = s->cot[n->in[k]->id] ? s->sum[n->in[k]->id] : NULL;
            s->cot[n->in[k]->id] = loop_final(g, adjoint, carry[k]);
        } else if (carry[k] >= 0) {
            sweep_give(s, n, k, loop_final(g, adjoint, carry[k]));
        } else if (emitted[k] >= 0) {
            sweep_give(s, n, k, loop_stack(g, adjoint, emitted[k]));
        }
    }
}
