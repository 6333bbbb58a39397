/* step_text: kernels for steps that were made by hand: loops that touch what the step says. */
#ifndef MDLC_TESTS_STEP_TEXT_H
#define MDLC_TESTS_STEP_TEXT_H

#include "compiler/kernel.h"

/* Gives `step` a kernel that writes every result element by element and, for each element, reads an
 * operand at the same place where the step names the pair, else all of it. Of a Buf that it writes
 * in part and not by slices it writes half number step->index. The kernel belongs to the program
 * and is shared with no other step. */
void step_text(Program *p, Step *step);
/* The same for every kernel step of the entry. */
void entry_text(Program *p, ProgramEntry *e);
/* The elements from..to-1 of a block of `count` that the step writes: all, or its half. */
void step_written(const Step *step, const Access *out, int64_t count, int64_t *from, int64_t *to);

#endif
