/* order: sorting, the first k in order, and sums by segments. */
#ifndef MDLC_LANG_ORDER_H
#define MDLC_LANG_ORDER_H

#include "lang/context.h"

typedef enum { ORDER_PLACES, ORDER_VALUES } OrderKind;
/* Along an axis of the tensor x; poison after an error. */
const Value *order_sorted(Elab *e, const char *name, Loc loc, const Value *x, int axis,
                          bool descending, OrderKind kind);
/* values and indices of the first k. */
const Value *order_first(Elab *e, Loc loc, const Value *x, const Value *k, Loc k_at, int axis,
                         bool largest);
/* In row s of n: the sum of the elements of x whose id is s. */
const Value *order_segment_sum(Elab *e, const char *name, Loc loc, const Value *x,
                               const Value *ids, Dim n);

#endif
