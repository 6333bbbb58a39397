/* scaler: see the header. Everything is a value of the graph, so that whatever runs a graph skips
 * the same updates; the choice between old and new is part of the kernel that makes the new one.
 * The check reads no gradient that the norm of all has not read. */
#include "lang/scaler.h"

#include "lang/entry.h"

enum { SCALE_FIRST = 65536, CLEAN_STEPS = 2000 };

struct Scaler {
    Slot *scale, *clean; /* clean: updates in a row */
    Node *now;           /* the scale of this step */
    Node *finite;        /* NULL: not known yet */
};

void scaler_open(Elab *e, Training *t, Entry *train) {
    Elem option = e->c->opt.half;
    if ((option != TY_ERROR ? option : train->half) != TY_F16) {
        return;
    }
    Scaler *s = ARENA_NEW(e->arena, Scaler);
    const char *scale = str_printf(e->arena, "%s.loss_scale", train->name);
    const char *clean = str_printf(e->arena, "%s.clean_steps", train->name);
    s->scale = elab_counter(e, "loss_scale", scale, TY_F32, SCALE_FIRST, train, train->loc);
    s->clean = elab_counter(e, "clean_steps", clean, TY_I32, 0, train, train->loc);
    Region *before = graph_enter(e->g, train->region);
    s->now = node_slot(e->g, s->scale);
    graph_leave(e->g, before);
    t->scaler = s;
}

Node *scaler_start(Elab *e, const Training *t, Elem elem) {
    return t->scaler ? t->scaler->now : node_const(e->g, elem, 1);
}

void scaler_close(Elab *e, Training *t) {
    if (!t->scaler) {
        return;
    }
    Node *one = node_const(e->g, TY_F32, 1);
    Node *inverse = node_map2(e->g, OP_DIV, one, t->scaler->now);
    for (int i = 0; i < t->update.count; i++) {
        t->update.at[i].grad = node_map2(e->g, OP_MUL, t->update.at[i].grad, inverse);
    }
}

void scaler_judge(Elab *e, Training *t) {
    if (t->scaler) {
        t->scaler->finite = node_map1(e->g, OP_ISFINITE, t->norm);
    }
}

Node *scaler_choose(Elab *e, const Training *t, Node *next, Node *now) {
    return t->scaler ? node_select(e->g, t->scaler->finite, next, now) : next;
}

void scaler_outputs(Elab *e, Training *t) {
    Graph *g = e->g;
    Scaler *s = t->scaler;
    if (!s) {
        return;
    }
    entry_out(e, OUT_RESULT, "loss_scale", NULL, s->now, t->loss_loc);
    Node *half = node_map2(g, OP_MUL, s->now, node_const(g, TY_F32, 0.5));
    Node *twice = node_map2(g, OP_MUL, s->now, node_const(g, TY_F32, 2));
    Node *larger = node_select(g, node_map1(g, OP_ISFINITE, twice), twice, s->now);
    Node *run = node_map2(g, OP_ADD, node_slot(g, s->clean), node_int(g, TY_I32, 1));
    Node *full = node_map2(g, OP_LE, node_int(g, TY_I32, CLEAN_STEPS), run);
    Node *none = node_int(g, TY_I32, 0);
    Node *scale = node_select(g, s->finite, node_select(g, full, larger, s->now), half);
    Node *clean = node_select(g, s->finite, node_select(g, full, none, run), none);
    entry_out(e, OUT_WRITE, NULL, s->scale, scale, s->scale->loc);
    entry_out(e, OUT_WRITE, NULL, s->clean, clean, s->clean->loc);
}
