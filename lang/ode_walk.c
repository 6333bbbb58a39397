/* ode_walk: a stretch is a loop of steps. With `at` they stand in a loop over the times and, behind
 * them, the end, so that steps end at each: no value is interpolated, and derivatives, also by the
 * times, are those of the steps. With `until` a step looks at the condition at its end, and the
 * loop ends where it holds; stretches behind that make no step.
 * Contract: needs the body of the ode elaborated outside of these loops, without draws and written
 * states; docs/decisions/0032-times.md. */
#include "lang/ode_walk.h"

#include "lang/ode_adapt.h"

#include <float.h>
#include <math.h>
#include <string.h>

Turn walk_turn(const Walk *w) {
    Arena *arena = w->e->scratch;
    return (Turn){.y = ARENA_ARRAY(arena, Node *, w->n),
                  .slope = ARENA_ARRAY(arena, Node *, w->n),
                  .rest = ARENA_ARRAY(arena, Node *, field_rest(w->field) + 1)};
}

/* The k-th of what steps carry; NULL behind the last. */
static Node **turn_at(const Walk *w, Turn *t, int k) {
    int nslope = w->c && w->m->at_end ? w->n : 0;
    for (int i = 0; i < CARRIES; i++) {
        if (w->has[i] && k-- == 0) {
            return &t->control[i];
        }
    }
    if (k < w->n) {
        return &t->y[k];
    }
    k -= w->n;
    if (k < nslope) {
        return &t->slope[k];
    }
    k -= nslope;
    return k < field_rest(w->field) ? &t->rest[k] : NULL;
}

Node *walk_stops(const Walk *w, Node *t, Node *const *y, Node *const *rest) {
    Node **look = ARENA_ARRAY(w->e->scratch, Node *, w->field->looks);
    field_look(w->g, w->field, t, y, rest, look);
    return look[0];
}

/* Step number `index` of equal ones from `from` to `to`. */
static void equal_step(const Walk *w, Node *from, Node *to, Node *index, const Turn *now,
                       Turn *next) {
    Graph *g = w->g;
    Node **slope = ARENA_ARRAY(w->e->scratch, Node *, w->m->stages * w->n);
    Node *dt = node_map2(g, OP_DIV, node_map2(g, OP_SUB, to, from),
                         node_const(g, w->real, (double)w->most));
    Node *t = node_map2(g, OP_ADD, from, node_map2(g, OP_MUL, dt, node_cast(g, index, w->real)));
    memcpy(next->rest, now->rest, sizeof *next->rest * (size_t)field_rest(w->field));
    step_make(g, w->e->scratch, w->m, w->field, NULL, t, dt, now->y, next->rest, slope, next->y);
    if (w->until) {
        Node *last = node_map2(g, OP_EQ, index, node_int(g, TY_I32, w->most - 1));
        Node *t1 = node_select(g, last, to, node_map2(g, OP_ADD, t, dt));
        Node *stops = walk_stops(w, t1, next->y, next->rest);
        next->control[GO] = node_map1(g, OP_NOT, stops);
        next->control[TIME] = t1;
        next->control[STOPPED] = stops;
    }
    if (w->has[TAKEN]) {
        next->control[TAKEN] = node_map2(g, OP_ADD, now->control[TAKEN], node_int(g, TY_I32, 1));
        next->control[REJECTED] = now->control[REJECTED];
    }
}

/* Goes on from `turn` to the time `to`. */
static void stretch(Walk *w, Node *to, Turn *turn) {
    Graph *g = w->g;
    Turn now = walk_turn(w), next = walk_turn(w);
    Node *from = turn->control[TIME], *length = node_map2(g, OP_SUB, to, from), *go = NULL;
    if (w->until) {
        go = node_map1(g, OP_NOT, turn->control[STOPPED]);
    }
    if (w->c) {
        /* A step of no length takes an empty stretch: values by its end have a derivative. */
        Node *away = w->several ? node_const(g, TY_BOOL, 1)
                                : node_map1(g, OP_NOT, node_map2(g, OP_EQ, from, to));
        go = go ? node_map2(g, OP_AND, go, away) : away;
        w->sign = node_stop(g, node_map1(g, OP_SIGN, length));
    }
    turn->control[GO] = go;
    LoopScope *loop = loop_scope_open(w->e, (Dim){.size = w->most}, false);
    loop->stages = true;
    loop_checkpoint(loop->builder, w->checkpoint ? CHECKPOINT_EACH : CHECKPOINT_NONE);
    for (int k = 0; turn_at(w, turn, k); k++) {
        loop_carry(loop->builder, *turn_at(w, turn, k));
        *turn_at(w, &now, k) = loop_carry_value(loop->builder, k);
    }
    if (w->c) {
        adapt_attempt(w, to, &now, &next);
    } else {
        equal_step(w, from, to, loop_index(loop->builder), &now, &next);
    }
    for (int k = 0; turn_at(w, &next, k); k++) {
        loop_next(loop->builder, k, *turn_at(w, &next, k));
    }
    if (go) {
        loop_while(loop->builder, 0);
    }
    Node *done = loop_scope_close(w->e, loop);
    for (int k = 0; turn_at(w, turn, k); k++) {
        *turn_at(w, turn, k) = loop_final(g, done, k);
    }
    if (w->c) {
        loop_note_over(w->e, turn->control[GO], w->loc);
    } else if (!w->until) {
        turn->control[TIME] = to;
    }
}

/* What goes on from one stretch to the next. */
static Node **lasting_at(const Walk *w, Turn *turn, int k) {
    Walk all = *w;
    all.has[GO] = false;
    all.has[TIME] = true;
    return turn_at(&all, turn, k);
}

/* A loop over the times of `stop` and `to` behind them. */
static void by_times(Walk *w, Node *to, Node *stop, int64_t count, Turn *turn, Node **stack) {
    Graph *g = w->g;
    int looks = w->field->looks;
    int64_t one = 1;
    Node *part[] = {stop, node_reshape(g, to, 1, &one)};
    Node *all = node_concat(g, part, 2, 0);
    LoopScope *times = loop_scope_open(w->e, (Dim){.size = count + 1}, false);
    times->stages = true;
    Turn now = walk_turn(w);
    for (int k = 0; lasting_at(w, turn, k); k++) {
        loop_carry(times->builder, *lasting_at(w, turn, k));
        *lasting_at(w, &now, k) = loop_carry_value(times->builder, k);
    }
    Node *time = loop_xs(times->builder, all), **look = ARENA_ARRAY(w->e->scratch, Node *, looks);
    int *at = ARENA_ARRAY(w->e->scratch, int, looks + 1);
    stretch(w, time, &now);
    for (int k = 0; lasting_at(w, &now, k); k++) {
        loop_next(times->builder, k, *lasting_at(w, &now, k));
    }
    field_look(g, w->field, time, now.y, now.rest, look);
    for (int k = w->until; k < looks; k++) {
        if (w->until) { /* 0 where the ode has ended before */
            Node *there = node_map2(g, OP_EQ, now.control[TIME], time);
            look[k] = node_select(g, there, look[k], node_full(g, *look[k]->type, 0));
        }
        at[k] = loop_emit(times->builder, look[k]);
    }
    Node *done = loop_scope_close(w->e, times);
    for (int k = 0; lasting_at(w, turn, k); k++) {
        *lasting_at(w, turn, k) = loop_final(g, done, k);
    }
    for (int k = w->until; k < looks; k++) {
        Node *values = loop_stack(g, done, at[k]);
        stack[k - w->until] = node_slice_axis(g, values, 0, 0, count, 1);
    }
}

/* How far the ode goes from its start, and what of that is no distance: the place where `until`
 * holds and the end of a stretch are looked for no closer than that, nor than times of that size
 * lie apart. Times of `at` may lie outside of its ends, and these may be equal. */
static void measure_way(Walk *w, Node *from, Node *to, Node *stop) {
    Graph *g = w->g;
    const double part = w->real == TY_F64 ? 1e-13 : 1e-5;
    const double apart = w->real == TY_F64 ? DBL_EPSILON : FLT_EPSILON;
    Node *way = node_map1(g, OP_ABS, node_map2(g, OP_SUB, to, from));
    Node *late = node_map2(g, OP_MAX, node_map1(g, OP_ABS, from), node_map1(g, OP_ABS, to));
    if (stop && type_count(*stop->type) > 0) {
        Node *start = node_broadcast_to(g, from, *stop->type);
        Node *away = node_map1(g, OP_ABS, node_map2(g, OP_SUB, stop, start));
        way = node_map2(g, OP_MAX, way, node_fold(g, OP_FMAX, away, 1));
        late = node_map2(g, OP_MAX, late, node_fold(g, OP_FMAX, node_map1(g, OP_ABS, stop), 1));
    }
    w->way = way;
    Node *near = node_map2(g, OP_MUL, way, node_const(g, w->real, part));
    Node *least = node_map2(g, OP_MUL, late, node_const(g, w->real, 2 * apart));
    w->near_end = node_map2(g, OP_MAX, near, least);
}

void walk_solve(Walk *w, Node *from, Node *to, Node *stop, int64_t count, Turn *turn,
                Node **stack) {
    Graph *g = w->g;
    w->several = stop != NULL;
    w->has[GO] = w->c || w->until;
    w->has[TIME] = w->c || w->until;
    w->has[SIZE] = w->has[ERROR] = w->has[ERROR_BEFORE] = w->c;
    w->has[STOPPED] = w->until;
    w->has[REACH] = w->c && w->until;
    turn->control[TIME] = from;
    if (w->c) {
        measure_way(w, from, to, stop);
        adapt_begin(w, from, to, turn);
    }
    if (w->until) {
        turn->control[STOPPED] = walk_stops(w, from, turn->y, turn->rest);
        turn->control[REACH] = node_const(g, w->real, INFINITY);
    }
    turn->control[TAKEN] = turn->control[REJECTED] = node_int(g, TY_I32, 0);
    if (stop) {
        by_times(w, to, stop, count, turn, stack);
    } else {
        stretch(w, to, turn);
    }
}
