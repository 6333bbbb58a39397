/* ode_walk: the way of an `ode` from its start to its end, where `at` and `until` have a say in it:
 * stretches from time to time, each of steps that are equal or go by their error. */
#ifndef MDLC_LANG_ODE_WALK_H
#define MDLC_LANG_ODE_WALK_H

#include "lang/ode_step.h"

/* Of an `ode` that chooses its steps. */
typedef struct {
    Node *rtol, *atol;
    Node *first; /* NULL: chosen */
    int64_t max; /* attempts */
    double part[3]; /* pcoeff, icoeff, dcoeff */
} Control;

/* What a step carries (REACH: how far away the ode is known to be over, infinite at first); then
 * come the carries of the ode, their slopes where the method goes on with them, and the rest of the
 * body. */
enum { GO, TIME, SIZE, ERROR, ERROR_BEFORE, REACH, STOPPED, TAKEN, REJECTED, CARRIES };

typedef struct {
    Node *control[CARRIES];
    Node **y, **slope, **rest;
} Turn;

typedef struct {
    Elab *e;
    Graph *g;
    const Method *m;
    const Control *c; /* NULL: equal steps */
    const Field *field;
    Loc loc;
    int64_t most;      /* steps, or attempts, of a stretch */
    int n;             /* carries */
    Elem real, wide;   /* of times; of all carries in one tensor */
    bool has[CARRIES]; /* which of them a step carries */
    bool until;        /* the first of the field's looks says where the ode ends */
    bool several;      /* stretches */
    bool checkpoint;   /* equal steps keep their carries alone */
    Node *way;         /* how far from its start the ode goes, of steps by their error */
    Node *near_end;    /* so far in front of the end of a stretch a step ends there, and so well the
                          time is found where `until` holds */
    Node *sign;        /* of the direction of time, of the stretch at hand */
} Walk;

/* Does the ode end where it is at the time t? */
Node *walk_stops(const Walk *w, Node *t, Node *const *y, Node *const *rest);
/* From `from` to `to` by the times in `stop` ([count], NULL: there are none). `turn` has the start
 * and gets the end; stack[k] gets what the field's look number k, behind `until`, is at those
 * times. */
void walk_solve(Walk *w, Node *from, Node *to, Node *stop, int64_t count, Turn *turn,
                Node **stack);
Turn walk_turn(const Walk *w);

#endif
