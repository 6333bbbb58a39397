/* access_axis: the axes of one access, each turned into a view of the object. */
#ifndef MDLC_LANG_ACCESS_AXIS_H
#define MDLC_LANG_ACCESS_AXIS_H

#include "lang/access.h"

typedef enum { AXIS_CONST, AXIS_LOOP, AXIS_AFFINE, AXIS_DATA, AXIS_KEEP, AXIS_RANGE } AxisKind;

typedef struct {
    AxisKind kind;
    const Ast *at;
    int number; /* of the object's axis */
    Dim dim;
    Affine affine;
    const Value *data;
    int64_t lo, extent; /* RANGE */
} AxisUse;

/* What an axis of the node under construction stands for. */
typedef struct {
    Index *ix;    /* an index, or */
    AxisUse *use; /* an axis that is still to be treated or stays */
} Label;

typedef struct {
    Elab *e;
    const Ast *ast;
    Node *node;
    Label label[2 * MD_RANK];
    int rank;
    Border border;
    double value;
    bool end; /* the object is known at the end of an evaluation alone */
} Access;

/* The object's name for messages. */
const char *axis_object(Access *a);
/* Where the axis of the object stands in the node under construction. */
int axis_place(const Access *a, const AxisUse *use);
/* Each takes one use of an axis into the node; false: a message says why it cannot be. */
bool axis_const(Access *a, AxisUse *use);
/* The index of a loop around an object from outside: this iteration's slice of a stack. */
bool axis_loop(Access *a, AxisUse *use);
/* One or more indices in the axis at `at`. */
bool axis_window(Access *a, const AxisUse *use, int at, Affine f);
/* Axes with the same index become one. */
void axis_diagonals(Access *a);
/* Picks by all axes that are data; `mask` is set where a border gives the value. */
bool axis_gather(Access *a, AxisUse *use, int nuse, const Value **mask);

#endif
