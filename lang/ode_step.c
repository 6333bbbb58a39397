/* ode_step: methods are lists of numbers in the library (nn/ode.mdl), read into a tableau. A step
 * is written out by stages: the body of the ode is instantiated once a stage, with the stage's
 * number for its index, and begins at the slopes so far, weighed by those numbers of the row that
 * are not 0. So a step costs what its tableau holds, and the body is elaborated once, whatever the
 * method, as its parameters, labels, states and draws ask. Needs a closed LOOP of the body; changes
 * no values. */
#include "lang/ode_step.h"

#include "lang/expr.h"

enum { STAGES = 64 };

/* --- methods ---------------------------------------------------------------------------------- */

static bool all_numbers(const Value *v) {
    bool ok = v->kind == V_LIST;
    for (int i = 0; ok && i < v->count; i++) {
        ok = value_is_number(v->item[i]);
    }
    return ok;
}

/* `[order, tableau, error]` gives the tableau and reads the other two. */
static const Value *read_estimate(const Value *v, Method *m, const Value **error) {
    bool three = v->kind == V_LIST && v->count == 3 && v->item[0]->kind == V_INT;
    if (!three || v->item[0]->integer < 1 || v->item[0]->integer > STAGES ||
        v->item[1]->kind != V_LIST || !all_numbers(v->item[2])) {
        return v;
    }
    m->order = (int)v->item[0]->integer;
    *error = v->item[2];
    return v->item[1];
}

bool method_read(Elab *e, const Ast *name, Method *m) {
    const Value *v = elab_expr(e, name), *error = NULL;
    if (!elab_ok(v)) {
        return false;
    }
    v = read_estimate(v, m, &error);
    int numbers = v->kind == V_LIST ? v->count : 0, s = 0;
    while (s < STAGES && (s + 1) * (s + 2) / 2 <= numbers) {
        s++;
    }
    bool ok = s > 0 && s * (s + 1) / 2 == numbers && all_numbers(v) &&
              (!error || error->count == s || error->count == s + 1);
    if (!ok) {
        elab_error(e, name->loc, 331,
                   "a method is a list of numbers: the rows below the diagonal of its tableau, "
                   "then its weights, 1, 3, 6, 10, ... in all");
        diag_hint(&e->c->diag, "with an estimate of its error: [order, tableau, error], an error "
                               "weight for each stage, and one for the slope at the end");
        return false;
    }
    m->stages = s;
    m->row = ARENA_ARRAY(e->arena, double, (s + 1) * s);
    m->place = ARENA_ARRAY(e->arena, double, s + 1);
    int at = 0;
    for (int k = 1; k <= s; k++) {
        for (int j = 0; j < k; j++) {
            m->row[k * s + j] = value_number(v->item[at++]);
            m->place[k] += m->row[k * s + j];
        }
    }
    m->place[s] = 1;
    m->error = error ? ARENA_ARRAY(e->arena, double, s + 1) : NULL;
    for (int j = 0; error && j < error->count; j++) {
        m->error[j] = value_number(error->item[j]);
        m->at_end = m->at_end || (j == s && m->error[j] != 0);
    }
    return true;
}

/* --- stages ----------------------------------------------------------------------------------- */

int field_rest(const Field *field) {
    return field->loop->attr->ncarry - 1 - field->count;
}

Node **field_rest_start(Arena *arena, const Field *field) {
    int n = field_rest(field);
    Node **rest = ARENA_ARRAY(arena, Node *, n + 1);
    for (int k = 0; k < n; k++) {
        rest[k] = field->loop->in[1 + field->count + k];
    }
    return rest;
}

/* The body as a loop that runs once: with `again` its adjoint keeps of it what goes in alone, and
 * cotangents are added up in the same order with and without. */
static void run_once(Graph *g, const Field *field, Node **arg, Node **out) {
    const Node *body = field->loop;
    int n = body->attr->ncarry;
    LoopBuilder *loop = loop_open(g, 1, false);
    loop_checkpoint(loop, field->again ? CHECKPOINT_EACH : CHECKPOINT_NONE);
    for (int k = 0; k < n; k++) {
        arg[1 + k] = loop_carry_value(loop, loop_carry(loop, arg[1 + k]));
    }
    region_inline(g, body->body, arg, out);
    for (int k = 0; k < n; k++) {
        loop_next(loop, k, out[k]);
    }
    Node *done = loop_close(loop);
    for (int k = 0; k < n; k++) {
        out[k] = loop_final(g, done, k);
    }
}

/* The arguments of the body: the number of the stage, its carries, its invariants. */
static Node **body_arguments(Graph *g, Arena *scratch, const Field *field, Node *const *inv,
                             int stage, Node *t, Node *const *y, Node *const *rest) {
    const Node *loop = field->loop;
    const Attr *a = loop->attr;
    int n = field->count, nrest = field_rest(field);
    Node **arg = ARENA_ARRAY(scratch, Node *, 1 + loop->nin);
    if (a->nxs > 0 || a->nys > field->looks) {
        BUG("the body of an ode has stacks");
    }
    arg[0] = node_int(g, TY_I32, stage);
    arg[1] = t;
    for (int k = 0; k < n; k++) {
        arg[2 + k] = y[k];
    }
    for (int k = 0; k < nrest; k++) {
        arg[2 + n + k] = rest[k];
    }
    for (int k = 0; k < a->ninv; k++) {
        arg[1 + a->ncarry + k] = inv ? inv[k] : loop->in[a->ncarry + k];
    }
    return arg;
}

void field_slopes(Graph *g, const Field *field, Node *const *inv, int stage, Node *t,
                  Node *const *y, Node **rest, Node **slope) {
    Arena scratch = {0};
    Node **arg = body_arguments(g, &scratch, field, inv, stage, t, y, rest);
    Node **out = ARENA_ARRAY(&scratch, Node *, field->loop->body->out.count);
    if (field->apart) {
        run_once(g, field, arg, out);
    } else {
        region_inline(g, field->loop->body, arg, out);
    }
    for (int k = 0; k < field->count; k++) {
        slope[k] = out[1 + k];
    }
    for (int k = 0; k < field_rest(field); k++) {
        rest[k] = out[1 + field->count + k];
    }
    arena_free(&scratch);
}

void field_look(Graph *g, const Field *field, Node *t, Node *const *y, Node *const *rest,
                Node **out) {
    Arena scratch = {0};
    Node **arg = body_arguments(g, &scratch, field, NULL, 0, t, y, rest);
    Node **all = ARENA_ARRAY(&scratch, Node *, field->loop->body->out.count);
    region_inline(g, field->loop->body, arg, all);
    for (int k = 0; k < field->looks; k++) {
        out[k] = all[field->loop->attr->ncarry + field->look[k]];
    }
    arena_free(&scratch);
}

Node *step_moved(Graph *g, Node *start, Node *dt, const double *weight, Node *const *slope, int n) {
    Elem elem = start->type->elem;
    Node *sum = NULL;
    for (int j = 0; j < n; j++) {
        if (weight[j] == 0) {
            continue;
        }
        Node *part = weight[j] == 1
                         ? slope[j]
                         : node_map2(g, OP_MUL, slope[j], node_const(g, elem, weight[j]));
        sum = sum ? node_map2(g, OP_ADD, sum, part) : part;
    }
    return sum ? node_map2(g, OP_ADD, start, node_map2(g, OP_MUL, sum, node_cast(g, dt, elem)))
               : start;
}

void step_make(Graph *g, Arena *arena, const Method *m, const Field *field, Node *const *inv,
               Node *t, Node *dt, Node *const *y, Node **rest, Node **slope, Node **end) {
    int n = field->count, s = m->stages;
    Node **column = ARENA_ARRAY(arena, Node *, s), **value = ARENA_ARRAY(arena, Node *, n);
    for (int k = 0; k <= s; k++) {
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < k; j++) {
                column[j] = slope[j * n + i];
            }
            (k < s ? value : end)[i] = step_moved(g, y[i], dt, m->row + k * s, column, k);
        }
        if (k == s || (k == 0 && slope[0])) {
            continue;
        }
        Node *place = node_const(g, dt->type->elem, m->place[k]);
        Node *now = m->place[k] == 0
                        ? t
                        : node_map2(g, OP_ADD, t, node_map2(g, OP_MUL, dt, place));
        field_slopes(g, field, inv, k, now, value, rest, slope + k * n);
    }
}
