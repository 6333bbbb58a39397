/* lowered: regions as compiled C, a batch at a time. Each region is lowered and printed with a
 * storage of its own for every Buf, so that kernels are tested without order, in-place and plan; or
 * planned, so that what lowering says about storage is tested too. */
#ifndef MDLC_TESTS_LOWERED_H
#define MDLC_TESTS_LOWERED_H

#include "compiler/compile.h"
#include "compiler/program.h"
#include "emit/printer.h"

typedef struct {
    Compile *c;
    Arena arena;
    Text text; /* the C program */
    Text main;
    VEC(double) input; /* what it reads: the inputs and tables of all cases, in turn */
    VEC(Program *) program;
    bool *printed;         /* by Kernel.id, of the case that is being printed */
    Products products;     /* of its kernels */
    VEC(double **) result; /* by case: out[k] as doubles */
} Lowered;

void lowered_open(Lowered *l, Compile *c);
/* An entry with the given inputs (slots of kind SLOT_INPUT) whose results are the region's. */
Program *lowered_program(Lowered *l, Region *region, Slot *const *slot, int nslot);
/* Order, in-place, plan and check of the program; its storage is then the planned one. */
void lowered_plan(Lowered *l, Program *p);
/* Prints it as the next case of the batch, on `data` for the inputs. Gives its number. */
int lowered_add(Lowered *l, Program *p, double *const *data);
/* Compiles with `flags`, runs, reads the results. False when either fails. */
bool lowered_run(Lowered *l, const char *flags);
void lowered_close(Lowered *l);

#endif
