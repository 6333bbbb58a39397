/* notation: index notation. An expression with free indices is a scalar whose value has one axis
 * for each index it depends on; the left side or the brackets of a fold bind the indices. */
#ifndef MDLC_LANG_NOTATION_H
#define MDLC_LANG_NOTATION_H

#include "lang/context.h"

/* A use of an index as an axis, collected before a statement is elaborated. */
typedef struct IndexScope IndexScope;
typedef struct {
    bool bare, border;
    Dim axis;
    bool known; /* the axis is */
    const Ast *at, *object;
    int number;        /* of the axis */
    IndexScope *scope; /* what is bound where it stands */
} IndexUse;

struct Index {
    const char *name;
    Loc loc;
    int seq;            /* order of binding: outer before inner, left before right */
    const Ast *written; /* of `i < n` */
    bool known;
    Dim extent;
    bool seen;
    VEC(IndexUse) use;
};

/* The indices bound at one place. */
struct IndexScope {
    IndexScope *up;
    VEC(Index *) index;     /* without the pack */
    VEC(const Ast *) order; /* as written: a name, `i < n`, PACK or a loop index */
    bool has_pack, pack_known;
    int npack;
    Index *pack[MD_RANK];
    Loc pack_loc;
};

typedef struct {
    const Ast *ast;
    const Value *value;
} ObjectValue;

typedef struct {
    const Ast *ast;
    IndexScope *scope;
} FoldScope;

/* One statement (or stand-alone fold) in index notation. */
struct IndexNotation {
    IndexScope *scope;       /* innermost while an expression is evaluated */
    VEC(ObjectValue) object; /* of `object[...]`, evaluated once */
    VEC(FoldScope) fold;
    bool failed;
};

/* Is any index of the notation at hand named so? */
Index *notation_find(Elab *e, const char *name);
const Value *notation_value(Elab *e, Index *ix);
/* Where an `emit` puts the axis of the iterations: in front of that index, -1: nowhere; reversed:
 * the last iteration first. */
typedef struct {
    int position;
    bool reversed;
} LoopAxis;
/* `left[i, j < n] = right`, the name bound to the tensor; `loop` axes are left out (emit). */
const Value *notation_statement(Elab *e, const Ast *left_index, const Ast *right, LoopAxis *loop);
/* The scalar v, whose span is among `all`, as r, whose span and axes are these. */
const Value *notation_axes(Elab *e, const Value *v, Value *r, Index *const *all);
const Value *notation_fold(Elab *e, const Ast *fold);
const Value *notation_access(Elab *e, const Ast *indexed);
/* Is it a list of scalar indices (else slices)? */
bool notation_is_scalar_list(const Ast *index);
/* Opens the notation of a stand-alone expression; gives what to restore. */
IndexNotation *notation_save(Elab *e);
void notation_restore(Elab *e, IndexNotation *before);

#endif
