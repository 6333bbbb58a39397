/* grad_rule: what the rules of column `vjp` see of a reverse sweep. Included by grad*.c and vjp*.c
 * alone. */
#ifndef MDLC_PASSES_GRAD_RULE_H
#define MDLC_PASSES_GRAD_RULE_H

#include "compiler/graph.h"
#include "passes/grad.h"

typedef struct Replay Replay;
typedef struct GradRun GradRun;
typedef struct Sweep Sweep;

/* Gives contributions to the operands of `n`, whose cotangent is `u`. */
typedef void (*VjpRule)(Sweep *s, Node *n, Node *u);

/* A result of a LOOP, and the equal one that its adjoint makes. */
typedef struct {
    const Node *loop;
    int result;
    Node *again;
} Moved;
typedef struct {
    VEC(Moved) of;
} MovedList;

/* What is the same for all of a region and the bodies in it. */
struct GradRun {
    const GradPlan *plan;
    const VjpRule *rules; /* by op */
    MovedList *moved;
};

/* Of a LOOP in the region of a sweep, by result. */
typedef struct {
    int nresults; /* when the sweep began; saved values may have been added since */
    bool *active;
    Node **cot;
} LoopSweep;

/* One reverse sweep over the nodes of `region` from the last one on; the adjoint is built in the
 * current region of the graph. All arrays are by node id, up to `count`. */
struct Sweep {
    Graph *g;
    Arena *scratch;
    GradSave save; /* of this region */
    const GradRun *run;
    const Region *region;
    int count;
    bool *active; /* a float that depends on a point */
    Node **cot;   /* cotangents so far */
    LoopSweep **loop;
    Node **sum;     /* of body parameters: what iterations before have added up; NULL: nothing */
    Replay *replay; /* how the adjoint sees values of `region`; NULL: it can read them */
};

#define OP(NAME, name, nin, cls, shape, eval, vjp, lower, made, sample, cost, spelling)            \
    void vjp_##vjp(Sweep *s, Node *n, Node *u);
#include "compiler/op.def"
#undef OP

/* Column `vjp` of the table. */
extern const VjpRule vjp_rules[OP_COUNT];
/* pass_grad by the given rules; `none` stands for the rows that it stands for in the table. A test
 * of the tests hands in broken ones. */
Region *grad_by_rules(Graph *g, const Region *region, GradSave save, const VjpRule *rules);

/* See grad_moved.c. */
void moved_apply(Region *region, const MovedList *list);

Sweep *sweep_new(Graph *g, Arena *scratch, GradSave save, const GradRun *run, const Region *region,
                 int count, Replay *replay);
/* Fills `active` forward from the nodes that are set in it. */
void sweep_activate(Sweep *s);
void sweep_run(Sweep *s);

/* `n` of the swept region as the adjoint reads it. */
Node *sweep_value(Sweep *s, Node *n);
bool sweep_wants(const Sweep *s, const Node *n, int k);
/* Adds to the cotangent of operand k of n, or of a node itself. */
void sweep_give(Sweep *s, const Node *n, int k, Node *cotangent);
void sweep_add(Sweep *s, const Node *n, Node *cotangent);

/* Whether column `vjp` of `op` is `none`. */
bool vjp_is_none(OpCode op);

/* In grad_loop.c. Which results of a loop are active when operand k is where operand[k]. */
void loop_activity(Sweep *s, const Node *loop, const bool *operand, bool *result);
Node *replay_value(Replay *r, Node *n);
/* Calls the cotangent net.fc1.d_out that is of net.fc1.out, if it has no name. */
void sweep_name(const Graph *g, Node *cotangent, const Node *of);

#endif
