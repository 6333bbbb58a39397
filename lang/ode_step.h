/* ode_step: the methods of an `ode`, its body at a stage, and a step made of stages. */
#ifndef MDLC_LANG_ODE_STEP_H
#define MDLC_LANG_ODE_STEP_H

#include "lang/loop.h"

typedef struct {
    int stages;
    int order;      /* that the error goes by; 0: no estimate */
    double *row;    /* [stages + 1, stages], 0 from the diagonal on; the last one: the weights */
    double *place;  /* [stages + 1], of each stage in the step; the last one: 1 */
    double *error;  /* [stages + 1]: how much of each slope the error is; NULL: no estimate */
    bool at_end;    /* the slope at the end of the step has a part in the error */
} Method;

/* The body of an `ode`, elaborated once: the body of a LOOP that never runs. Its carries are the
 * time, the carries of the ode (the values at a stage go in, the slopes come out), then states and
 * the status of a `while` in it. */
typedef struct {
    Node *loop;
    int count;  /* carries of the ode */
    int looks;  /* what `until` and the emits of the body are at a time, besides the slopes */
    int *look;  /* by look: its stack in the body; two of one value have one */
    bool apart; /* each stage is a loop of its own, which runs once */
    bool again; /* then: it keeps for its adjoint only what goes in, and is made again there */
} Field;

/* Reads the list that a method is; false after an error. */
bool method_read(Elab *e, const Ast *name, Method *m);

/* The slopes at the time t for the values y, in the current region. `inv`: what stands for the
 * invariants of the body, NULL: they themselves. `rest`: its other carries, before and after. */
void field_slopes(Graph *g, const Field *field, Node *const *inv, int stage, Node *t,
                  Node *const *y, Node **rest, Node **slope);
/* What `until` and the emits are at the time t for the values y: out[looks]. */
void field_look(Graph *g, const Field *field, Node *t, Node *const *y, Node *const *rest,
                Node **out);
/* How many carries of the body are none of the ode. */
int field_rest(const Field *field);
/* What they start from; memory of `arena`. */
Node **field_rest_start(Arena *arena, const Field *field);

/* start + dt * sum over j < n of weight[j] * slope[j]; weights that are 0 cost nothing. */
Node *step_moved(Graph *g, Node *start, Node *dt, const double *weight, Node *const *slope, int n);

/* A step from `t` and `y`: slope[stages][count] gets the slopes of the stages (the first one is
 * taken as it is where it stands there), `end` the values at t + dt. */
void step_make(Graph *g, Arena *arena, const Method *m, const Field *field, Node *const *inv,
               Node *t, Node *dt, Node *const *y, Node **rest, Node **slope, Node **end);

#endif
