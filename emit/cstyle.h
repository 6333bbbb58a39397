/* cstyle: expressions, indices and names of kernels in C-like languages. */
#ifndef MDLC_EMIT_CSTYLE_H
#define MDLC_EMIT_CSTYLE_H

#include "compiler/kernel.h"
#include "compiler/names.h"

typedef struct Style Style;

/* What statements become that no target shares with another. */
typedef struct {
    void (*parallel)(Style *s, const Stmt *loop);
    void (*product)(Style *s, const Tile *tile);
    void (*order)(Style *s, const Ordering *order); /* NULL: the target has none */
} StyleTarget;

/* The sums that a loop has in local variables (held.h). */
typedef struct {
    const Stmt *store; /* what adds to them; NULL: there are none */
    const Stmt *first; /* what they begin as; NULL: they are read */
    const char *place; /* the variable that stands for its element */
    enum { HELD_ADD, HELD_READ, HELD_WRITE } way; /* inside the loop, in front of it, behind it */
} Held;

/* The bytes of short rows that are words in local arrays (narrow.h). */
enum { NARROW_ROWS = 4 };
typedef struct {
    const Arg *arg;
    const Index *at;
    bool written;
    const char *name, *place; /* of the array, and the element that stands for the argument's */
} NarrowRow;
typedef struct {
    bool open; /* false: the arguments themselves are meant */
    int count;
    NarrowRow row[NARROW_ROWS];
} Narrow;

struct Style {
    Text *out;
    const Kernel *k;
    const StyleTarget *target;
    bool lean;                /* threads are many: none has a row of draws on its stack */
    const char *name;         /* of the function */
    const char *plan;         /* the kernel that its product's plan is called by; */
    const char *epilogue;     /* the same of its epilogue; or NULL */
    int depth;                /* indentation */
    const char **bound;       /* by Expr.id: the name a LET gave it, in scope */
    const char **axis;        /* by axis number */
    const char **arg;         /* by Arg.id */
    NameSet used;             /* every name of the function */
    Text *before;             /* functions that this one calls */
    int nloop;                /* how many of its loops became functions */
    const char *size;         /* the extent of its flat loop; NULL: it has none */
    const Arg *lanes;         /* what a product makes for itself in lanes; NULL: no argument */
    const char *pace;         /* what it knows of its threads; NULL: it has no such loop */
    const char *part, *parts; /* in such a loop: the number of the thread's part, and of all */
    int block; /* threads that share the loops of what is printed; 0: each does all */
    Held held;
    Narrow narrow;
    struct Numbers *numbers; /* of them some stand in tables; NULL: all are written out */
};

Style style_open(Text *out, const Kernel *k);
/* `base` made a fresh name of this function. */
const char *style_name(Style *s, const char *base);
/* The name for a bound expression: of the source where it has one. */
const char *style_expr_name(Style *s, const Expr *e, const char *base);
void style_indent(Style *s);
void style_index(Style *s, const Index *index);
const char *style_half(Elem storage); /* what converts it is named by this; NULL: nothing does */
void style_place(Style *s, const Arg *arg, const Index *index); /* an element of memory */
void style_expr(Style *s, const Expr *e);                       /* as a full expression */
void style_value(Style *s, const Expr *e,
                 int level); /* in parentheses where the context binds tighter */
void style_number(Text *out, Elem elem, double value, int64_t ivalue);
/* C type of a local variable: bools are int there. */
const char *style_type(Elem elem);
const char *style_fold_word(OpCode op); /* what the result of a fold is called: "sum" */
/* a = a combined with b, by the op of a fold or an accumulating store, as a statement. */
void style_combine(Style *s, OpCode op, Elem elem, const char *a, const char *b);

#endif
