/* training: what a train collects while its body runs. */
#ifndef MDLC_LANG_TRAINING_H
#define MDLC_LANG_TRAINING_H

#include "lang/context.h"

typedef struct {
    const char *name;
    const Value *value;
    Loc loc;
    bool derived; /* made of a derivative: reported of steps, not of evaluations */
} Metric;

/* `metric gradients;`: the norm of one parameter's gradient, before clipping. */
typedef struct {
    const char *name;
    Node *node;
} GradNorm;

typedef struct {
    Slot *slot;
    Node *next;
} SlotUpdate;

/* One parameter tensor of one train. */
typedef struct {
    Parameter *param;
    Node *point, *grad, *next;
    VEC(SlotUpdate) state;
} Update;

/* `ema avg = d;` */
typedef struct {
    Item *item; /* the copy */
    const Value *decay;
    Loc loc;
} Average;

typedef enum { CLIP_NONE, CLIP_NORM, CLIP_VALUE } Clip;
typedef struct Accumulation Accumulation; /* accumulate.h */
typedef struct Scaler Scaler;             /* scaler.h */

struct Training {
    const Ast *ast;
    Paths of, freeze;
    const Value *loss;
    Loc loss_loc;
    VEC(Metric) metric;
    VEC(const Ast *) optimizer; /* the clauses */
    Clip clip;
    const Value *clip_limit;
    Loc clip_loc;
    const Value *rate; /* `lr` of the first optimizer that has one, for logs */
    Node *norm;        /* of all gradients, before clipping */
    Loc each_loc;      /* of `metric gradients;` */
    bool each;         /* it is said */
    VEC(GradNorm) grad_norm;
    VEC(Update) update;
    VEC(Average) average;
    Accumulation *accumulation; /* NULL: the clause is not said */
    Scaler *scaler;             /* NULL: gradients are not scaled */
    const Ast *reading;         /* the clause of the optimizer whose numbers are being read */
    const Parameter *at;        /* whose `on` or update is being elaborated */
};

/* The paths behind `of`, which the train updates. */
bool train_read_of(Elab *e, Training *t, const Ast *of, const Ast *train);
/* The counters that `step` and `steps` read in the entry at hand. */
void train_counters(Elab *e, Training *t, Entry *train);

#endif
