/* formulas: the updates of optimizers and the rates of schedules, in double, for one train each of
 * tests/library/derivatives.mdl. Written from the papers and from PyTorch, not from lang/nn. */
#ifndef MDLC_TESTS_FORMULAS_H
#define MDLC_TESTS_FORMULAS_H

#include <stdbool.h>

enum { ELEMENTS = 6 };

typedef struct {
    double p[ELEMENTS];
    double a[ELEMENTS], b[ELEMENTS], c[ELEMENTS]; /* what the optimizer keeps; 0 before step 1 */
} Weights;

typedef struct Rule Rule;
struct Rule {
    const char *train;
    const char *parameter; /* NULL: "held.p" */
    void (*update)(const Rule *r, int t, double lr, const double *g, Weights *w);
    int rows; /* of a matrix of ELEMENTS; 0: a vector */
    double momentum, dampening, beta1, beta2, eps, eps2, decay, lr_decay, initial, limit;
    bool nesterov, amsgrad, decoupled, centered, blocks;
    double clip_norm, clip_value;
    int block; /* elements whose 8 bits have one scale */
};

extern const Rule rules[];
extern const int nrules;

void formula_clip(const Rule *r, double *g);

/* The rate of update k + 1 under a peak of 1. */
typedef struct {
    const char *train;
    double (*rate)(double k);
} ScheduleFormula;

extern const ScheduleFormula schedules[];
extern const int nschedules;

#endif
