/* text_eval: entries of a model text in the reference evaluator, in double. */
#ifndef MDLC_TESTS_TEXT_EVAL_H
#define MDLC_TESTS_TEXT_EVAL_H

#include "compiler/eval.h"
#include "dumped.h"

typedef struct {
    Dumped m;
    Arena arena;
    Eval *ev;
} TextEval;

/* Fails the test where the text has errors. All graph passes have run. */
void text_open(TextEval *t, const char *text);
void text_close(TextEval *t);
/* Result `name` of the entry with its inputs, scalars or rows, in order; NULL: the bool by which
 * a loop says that it met its maximum. */
Value text_run(TextEval *t, const char *entry, const char *name, const double *const *in);
/* The same of an entry with one scalar input and a scalar result. */
double text_number(TextEval *t, const char *entry, const char *name, double in);

#endif
