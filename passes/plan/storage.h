/* storage: may the value of a Buf be made in the bytes of another one? Asked of lists whose order
 * is known; changes nothing. */
#ifndef MDLC_PASSES_PLAN_STORAGE_H
#define MDLC_PASSES_PLAN_STORAGE_H

#include "compiler/program.h"

/* Which bytes a Buf has now: equal numbers, equal bytes. */
typedef struct {
    int64_t (*of)(const void *ctx, const Buf *buf);
    const void *ctx;
} Bytes;

/* Element i of both is at the same place. */
bool layouts_agree(const Buf *a, const Buf *b);
/* Of a step that writes `next`: it reads the bytes `old` only before it writes `next` there,
 * element by element, a loop slice by slice. `level`: axes of stacks that loops around it pick
 * from. */
bool step_yields(const Bytes *bytes, const Step *step, int64_t old, const Buf *next, int level);

#endif
