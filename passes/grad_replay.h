/* grad_replay: how the adjoint of a LOOP sees the turns of it. Included by grad_loop.c, grad_keep.c
 * and grad_late.c alone. */
#ifndef MDLC_PASSES_GRAD_REPLAY_H
#define MDLC_PASSES_GRAD_REPLAY_H

#include "compiler/loop_builder.h"
#include "passes/grad_rule.h"

typedef struct Late Late;

/* Result `result` of `loop`, made by its adjoint: a stack, or the leaves of a late carry. */
typedef struct {
    const Node *loop;
    int result;
    const Late *late; /* NULL: it is stack[0] */
    Node **stack;     /* by leaf; in the body of the adjoint around */
} Given;

struct Replay {
    Node *(*make)(Replay *r, Node *n); /* replay_value */
    Graph *g;
    Arena *scratch;
    GradSave save;
    const GradRun *run;
    Node *loop;           /* the forward loop */
    Sweep *outer;         /* how what surrounds the forward loop is read; NULL: as it is */
    LoopBuilder *adjoint; /* the loop being built, */
    Region *at;           /* and its body */
    Node **value;         /* by id in the forward body */
    int nvalue;
    bool *constant;   /* the same in every iteration, by id */
    int *readers;     /* by id: of the forward body, its results too */
    int nconstant;    /* of both */
    double kept;      /* bytes of what inner_is_kept has said yes to, of all turns */
    VEC(Given) given; /* results of loops in the body that their adjoints make as well */
};

/* In grad_keep.c. Is it a contraction of few terms, of less than it gives? To multiply again takes
 * less than a stack of it, which goes to memory and comes back. */
bool is_short(const Node *n);
/* What the policy says: is `n` of a forward body computed again in the adjoint (from what it
 * reads), or stacked by the forward loop? `constant`: it is the same in every iteration. */
bool computed_again(GradSave save, const Node *n, bool constant);
bool same_every_time(const Replay *r, const Node *n);
/* Turns of the loop and of those around it. */
double all_turns(const Node *loop);
/* Bytes that a turn of the body makes, bodies of loops in it included. */
double made_bytes(const Region *body);
/* Bytes of the weights that the loop has a slice of for each turn. */
double weight_bytes(const Node *loop);
/* Room for all nodes of the forward body in `value`. */
void replay_grow(Replay *r);

/* In grad_late.c. What the adjoint of `n` makes beside what it is for. */
typedef struct Gifts Gifts;
/* While the adjoint is open and all else of its body is made. `stacks`: all of them anyway. NULL:
 * nothing. */
Gifts *gifts_open(Sweep *s, Replay *r, const Node *n, int nresults, bool stacks);
/* Where the adjoint is closed. */
void gifts_note(Sweep *s, const Gifts *gifts, Node *adjoint);

#endif
