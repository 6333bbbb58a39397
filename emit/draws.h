/* draws: random numbers of an innermost loop, made a row at a time. */
#ifndef MDLC_EMIT_DRAWS_H
#define MDLC_EMIT_DRAWS_H

#include "emit/cstyle.h"

enum { DRAWS_ROW = TUNED(1024, 7) }; /* most elements of a row on the stack: 4 KiB */

typedef struct {
    const Expr *draw[4];
    int count;
} Draws;

/* For a loop over `axis` from `first` to `end` (at most `most` iterations) with this body: prints
 * a row and its filling for each uniform f32 draw that goes up by one element an iteration, and
 * binds the draw to the row's element. Other draws stay as they are. */
Draws draws_open(Style *s, int axis, const char *first, const char *end, int64_t most,
                 const StmtList *body);
/* Are there such draws, of any loop? Then a long one may run in parts of a row. */
bool draws_any(const Style *s, int axis, const StmtList *body);
void draws_close(Style *s, const Draws *draws);

#endif
