/* dims: identity of extents, written shapes, and types of signatures. */
#ifndef MDLC_LANG_DIMS_H
#define MDLC_LANG_DIMS_H

#include "lang/context.h"

/* Declared against declared by name, anything else by size; the name wins. */
bool dims_agree(Dim a, Dim b);
Dim dims_join(Dim a, Dim b);

/* The value of a written extent. Names must be known here. size < 0 after an error. */
bool dims_eval(Elab *e, const Ast *expr, Dim *dim);
/* Errors: more than MD_RANK axes; an extent below 0 or out of all proportion. */
const Value *dims_too_many(Elab *e, Loc loc);
bool dims_extent_possible(Elab *e, int64_t extent, Loc loc);
/* The extents of a TYPE whose axes are all known, `...` from the frame. False after an error. */
bool dims_eval_type(Elab *e, const Ast *type, int *rank, Dim *dim);
/* The element type a TYPE names: unmarked is the build's float; TY_ERROR for `int` (any integer).
 */
bool dims_elem(Elab *e, const Ast *type, Elem *elem);
/* Is the tensor small enough to count its bytes? False after an error. `like` needs no node. */
bool dims_possible(Elab *e, Loc loc, const Value *like);
Type dims_type(Elem elem, int rank, const Dim *dim);
/* `in a..b`; false after an error. */
/* The range of what has integer elements of that type; false after an error. */
bool dims_elem_range(Elab *e, const Ast *range, Elem elem, int64_t *lo, int64_t *hi);
bool dims_range(Elab *e, const Ast *range, int64_t *lo, int64_t *hi);

/* Is v known to be in `range` (NULL: none)? False after an error, which calls it `what`. */
bool dims_within(Elab *e, const Ast *range, const Value *v, Loc loc, const char *what);

/* Is such a name in a shape of a signature a dim variable? In `file`, constants are numbers. */
bool dims_is_variable(const File *file, const char *name);

/* Unifies the axes of `type` with those of v, binding dim variables and the pack in e->scope and
 * e->frame. Axes that are no plain names are left for `late`. Gives the joined dims. */
typedef enum { DIMS_BIND, DIMS_LATE } DimsPass;
bool dims_unify(Elab *e, const Ast *type, const Value *v, Loc loc, const char *what, DimsPass pass,
                Dim *out);
/* dims_unify where every name is known: results and annotations. */
const Value *dims_annotate(Elab *e, const Ast *type, const Value *v, Loc loc, const char *what);

#endif
