/* numbers: what kernels and calls have of a model's numbers in tables, where these stand in another
 * file. */
#ifndef MDLC_EMIT_NUMBERS_H
#define MDLC_EMIT_NUMBERS_H

#include "compiler/kernel.h"
#include "emit/write.h"

typedef struct Numbers Numbers;

/* `prefix`: of all names. */
Numbers *numbers_new(Arena *arena, const char *prefix);
/* From here on up to numbers_close the numbers are those of `k`. */
void numbers_open(Numbers *n, const Kernel *k);
/* An element of a table that is the extent of the axis; NULL: it is written out. */
const char *numbers_extent(Numbers *n, int axis);
/* The same of the base of an index that lies behind all turns of an axis of it. */
const char *numbers_base(Numbers *n, const Index *index);
/* The same of the turns of several loops, from that over the axis on, and of a constant. */
const char *numbers_turns(Numbers *n, int axis, int64_t turns);
const char *numbers_constant(Numbers *n, const Expr *e);
/* Declares the tables of the kernel. */
void numbers_close(Numbers *n, Text *out);
/* Declares a constant, `declared` by its type and name, that stands with the tables. */
void numbers_plan(Numbers *n, Text *out, const char *declared, const char *value);
/* A number of a call, or of what is around it: written out, or a new element of Emit.table, beside
 * which it is said what it is (NULL: nothing is). The local constant n_ is that table. */
const char *call_number(const Emit *e, int64_t number, const char *what);
/* The tables of all kernels, and these. */
const Text *numbers_tables(const Numbers *n);

#endif
