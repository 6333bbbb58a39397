/* eval_rule: what the rules of column `eval` see of the evaluator. Included by compiler/eval*.c
 * alone. */
#ifndef MDLC_COMPILER_EVAL_RULE_H
#define MDLC_COMPILER_EVAL_RULE_H

#include "compiler/eval.h"

/* One application of an op. A rule sets `result`, through eval_out or by sharing a value. */
typedef struct {
    Eval *ev;
    const Node *node; /* NULL in eval_scalar: then attr, type, in and nin are all there is */
    const Attr *attr;
    Type type;
    const Value *in;
    int nin;
    bool smooth; /* EvalOptions */
    double tilt; /* how far what is rounded to 16 bits may be off: of its size, under noise */
    Value result;
} EvalCall;

typedef void (*EvalRule)(EvalCall *c);

/* A rule for each word of the column; a missing one does not link, an orphan does not compile. */
#define OP(NAME, name, nin, cls, shape, eval, vjp, lower, made, sample, cost, spelling)            \
    void eval_##eval(EvalCall *c);
#include "compiler/op.def"
#undef OP
extern const EvalRule eval_rule[OP_COUNT];

/* Memory for a result of c->type, which becomes c->result. Not zeroed. */
Num *eval_out(EvalCall *c);
/* Evaluates a loop body or an entry; `param` has one value for each of its params, all kept by the
 * caller; the results in out[] are the caller's. */
void eval_run(Eval *ev, const Region *region, const Value *param, Value *out);

/* Row-major element strides of `type`. */
void value_strides(Type type, int64_t *stride);
/* Steps a row-major multi-index of `rank` axes; false at the end. */
bool value_step(int64_t *index, const int64_t *dim, int rank);

#endif
