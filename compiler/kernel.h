/* kernel: kernels as small loop programs, made by lowering and printed by emit.
 *
 * Semantics
 *  - A Kernel is a function of its arguments (in the order outputs, workspaces, inputs), of indices
 *    of the loops around its call, of the sites of its draws, and of nothing else: it knows no Buf.
 *    Its body is structured: statements have effects, expressions have none. Memory is arguments
 *    and flat indices only. What stands for the formals is in the Call of a step; while a kernel is
 *    being built, in Kernel.call.
 *  - Different arguments of a call are different Bufs. Those of a pair in Kernel.pair may lie in
 *    the same bytes, no others.
 *  - Axes are numbered; a FOR or a FOLD binds one, an Index names it by number. An axis may be
 *    bound by several loops one after another, never by two nested ones.
 *  - Every Expr of one kernel exists once; expressions form a DAG. LET binds an expression to a
 *    name in the block it stands in: printing it later in that block prints the name.
 *  - FOR with `parallel` promises independent iterations; with `simd` that no iteration reads what
 *    another writes, so that a compiler may vectorise without looking. All loads of one iteration
 *    come before its stores, so an argument may share storage with one whose elements it reads at
 *    the same place (see Step.inplace).
 *  - FOLD runs the accumulators of `fold` over the given axes, the last one innermost, in `lanes`
 *    parts that are combined in a fixed tree: the order depends on extents only. With `parts` the
 *    last statement of its body is a FOLD of the same expressions over other axes, or over a part
 *    of them, and what it accumulates are the values that this one leaves.
 *  - The element of an argument is what is stored. Expressions compute: a load of a 16-bit float
 *    gives an f32, a STORE rounds it back.
 *  - A guarded load reads only where its guard holds and gives `other` elsewhere. */
#ifndef MDLC_COMPILER_KERNEL_H
#define MDLC_COMPILER_KERNEL_H

#include "compiler/index.h"
#include "compiler/program.h"

typedef struct Expr Expr;
typedef struct Stmt Stmt;
typedef struct Tile Tile;

typedef struct {
    Elem elem;
    int id;           /* below Kernel.nargs; of parameters of a finished kernel their position */
    int mode;         /* ACCESS_READ, ACCESS_WRITE */
    const char *name; /* of the parameter: what it is, whichever layer it is of */
    bool work;        /* scratch of the step alone */
    bool begun;       /* while the kernel is built: its offsets are known */
    bool strip;       /* no parameter: the finished block of a TILE, read at its column axis */
    bool thread;      /* a workspace of which each thread uses its own part */
    int64_t part;     /* elements of one thread's part */
} Arg;

typedef struct {
    int64_t extent;
    const char *name;
} Axis;

/* A loop around the call whose index is a parameter, i<number>. */
typedef struct {
    int64_t trip;
    bool used;
} OuterLoop;

/* The one loop of a kernel whose extent is a parameter: its axis, and the one of its blocks of
 * `span` places or -1. */
typedef struct {
    bool known;
    int axis, block;
    int64_t span;
    bool exact; /* blocks are whole */
} Flat;

/* Elements of `in` are read at the places at which `out` is written, and not behind that. */
typedef struct {
    int in, out; /* Arg.id */
} ArgPair;

typedef enum {
    EXPR_CONST,  /* value of a float or bool, ivalue of an integer */
    EXPR_INDEX,  /* index as a number */
    EXPR_WITHIN, /* lo <= index < hi; bool */
    EXPR_LOAD,   /* arg[index]; guarded when nin == 2: in[0] ? arg[index] : in[1] */
    EXPR_MAP,    /* op of in[] */
    EXPR_KEY,    /* of draws: site, in[0] seed, in[1] counter, in[2..] loop indices; no elem */
    EXPR_DRAW,   /* element `index` of the draw with key in[0] and distribution dist */
    EXPR_FOLD    /* op over the axes `fold` of in[0]; OP_ARGMAX, OP_ARGMIN: the first `index`
                    at which in[0] equals in[1], which is the extreme value */
} ExprKind;

struct Expr {
    ExprKind kind;
    OpCode op;
    Elem elem;
    int id; /* position in Kernel.expr */
    int nin, nkid;
    const Expr **in;
    const Expr **kid; /* in[], then the values that stand in the index: all that it is made of */
    double value;
    int64_t ivalue, lo, hi;
    int site; /* number of the site of draws */
    Dist dist;
    const Index *index;
    const Arg *arg;
    AxisSet fold;     /* axes that this FOLD binds */
    AxisSet axes;     /* axes that it depends on */
    int cost;         /* of computing it from loads, about one addition each */
    bool term;        /* MAP, a product that is rounded together with the sum it is added to */
    const char *name; /* of the source variable, or NULL */
    uint32_t owner;   /* Loc.owner of the node that asked for it first */
};

typedef enum { STMT_FOR, STMT_LET, STMT_STORE, STMT_FOLD, STMT_TILE, STMT_ORDER } StmtKind;
typedef VEC(Stmt *) StmtList;

enum { TILE_PLAN = 64, TILE_MACHINES = 4 };

/* Machines whose register tiles differ. */
typedef struct {
    int bytes;        /* of a vector */
    bool many;        /* 32 vector registers, not 16 */
    const char *when; /* for the preprocessor */
} TileMachine;
extern const TileMachine tile_machine[TILE_MACHINES];

/* What an epilogue reads of memory that lies far off: element (m, n) of batch b lies b * batch +
 * m * row + n elements behind the first. Of a loop: `row` elements from `at` on. */
typedef struct {
    const Arg *arg;
    const Index *at; /* the first element */
    int64_t batch, row;
    bool written; /* too, by what may lie in its place */
} Stream;
typedef VEC(Stream) StreamList;

/* A product by runtime/tile.h: C = A B, block by block; `body` then runs over each block, which is
 * the argument `strip`, and may change it in place. Its loops over `row` and `column` are those of
 * the block; `batch` is known in it. */
struct Tile {
    int64_t plan[TILE_PLAN]; /* the fields of md_tile in order; with `blas` those of md_blas */
    int nplan;
    int outer; /* from 1, the field that is how long the outermost axis is; 0: it has none */
    uint64_t bodies[TILE_MACHINES];      /* register tiles: bit 4 * (rows - 1) + vectors - 1 */
    bool blas;                           /* by the library of --blas */
    bool team;                           /* large enough for several threads */
    bool large;                          /* a loop over tasks that all plans share pays */
    int banded; /* 1: only what lies near a diagonal is computed; from 2 on: not beside a border of
                   zeros, that number of the product's */
    int block;                           /* of one number: they share it; 0: it is in the loop */
    const Arg *a, *b, *c, *work, *strip; /* c, work: NULL where there is none */
    const Arg *common;                   /* workspace that all workers share; NULL: none */
    const Arg *add;                      /* C begins as this, from at_c on; NULL: as nothing */
    int64_t count;                       /* elements of C */
    const Index *at_a, *at_b, *at_c;     /* offsets of the first element */
    Elem as[2];                          /* what A and B are multiplied as, however stored */
    int batch, row, column;              /* axes */
    int64_t narrow;                      /* so few columns that all stand in every block; or 0 */
    int64_t columns;                     /* the same, of whatever pitch the block has; or 0 */
    int64_t flops;
    int64_t spared; /* of them, what a plan by transformed tiles does without, in time */
    uint32_t owner;
    StreamList stream; /* fetched while the product is made, where the plan says STREAMS */
    const Arg *halo; /* A, made by `copy` for each element of the batch; NULL: it lies in memory */
    StmtList copy;
    StmtList body;
};

/* How runtime/sort.h finds an order. */
typedef enum {
    ORDER_LINES, /* line by line, all of each */
    ORDER_LONG,  /* each line by all threads */
    ORDER_FIRST  /* the first few of each line, line by line */
} OrderWay;

/* The places of the first `most` elements in order of each of `rows` lines of `n`, dense in memory,
 * by runtime/sort.h. Nothing of it stands in a loop. */
typedef struct {
    OrderWay way;
    const Arg *x, *out, *work;  /* work: of 64-bit words */
    const Index *at_x, *at_out; /* the first element */
    int64_t rows, n, most;
    bool descending;
    bool team; /* large enough for several threads */
} Ordering;

struct Stmt {
    StmtKind kind;
    int axis;           /* FOR */
    const Index *begin; /* FOR, outermost axis of a FOLD: starts here; NULL: 0 */
    int64_t span;       /* and runs over this many, cut off at the extent; 0: to the extent */
    const Index *until; /* FOR, FOLD of one axis: the turns from this one on, a multiple of `lanes`,
                           are left out, since all that they do is to store `rest`; NULL: none */
    int parallel;       /* FOR: so many nested loops, from this one on, in parallel; 0: serial */
    bool simd;
    bool unroll;        /* FOR of a constant number of turns: written out inside a simd loop */
    bool held;          /* FOR: the few sums that it adds to are local variables meanwhile */
    StreamList ahead;   /* FOR: lines that each turn asks for, which later ones read */
    StmtList body;      /* FOR; FOLD: what each iteration does before it accumulates */
    const Expr *expr;   /* LET: what is bound; STORE: the value */
    const Expr *as;     /* LET: how it is computed here; NULL: as `expr` says */
    const Arg *arg;     /* STORE */
    const Index *index; /* STORE */
    const Expr *rest;   /* STORE: the constant of the turns left out; NULL: nothing is stored */
    int64_t rests;      /* FOR, FOLD: so many of these at most store it; 0: all */
    OpCode add;         /* STORE: OP_ADD, OP_MUL, OP_MAX, OP_MIN combines; OP_CONST overwrites */
    uint32_t owner;     /* STORE: Loc.owner of what it makes */
    VEC(const Expr *) fold; /* FOLD: EXPR_FOLD of the same axes */
    VEC(int) axes;          /* FOLD: outermost first */
    int lanes;              /* 1: plain; FOLD: so many sums; FOR in parallel: threads that share
                               the loops in an iteration */
    bool parts;             /* FOLD: of what the FOLD in its body leaves, not of the terms */
    Tile *tile;             /* TILE */
    Ordering *order;        /* ORDER */
};

struct Kernel {
    Arena *arena;
    int id;            /* in Program.kernel */
    int ncall;         /* steps that call it */
    const char *name;  /* of the emitted function; unique in the program */
    const char *model; /* the type of an instance: no local has this name; or NULL */
    VEC(Arg *) arg;
    int nargs; /* ids of arguments in use */
    VEC(ArgPair) pair;
    VEC(OuterLoop) loop;
    VEC(bool) site; /* by number: it is used, and then a parameter, site<number> */
    Call call;      /* while it is built; then of the step */
    Axis *axis;     /* extents as its first call has them */
    int naxis, axis_room;
    Flat flat;
    StmtList body;
    int threads; /* the most threads that its loops may use */
    bool handed; /* loops on threads: one function runs them, which pays for many kernels */
    IndexTable index;
    VEC(Expr *) expr;
    int *cons;
    int cons_size;
    uint32_t owner; /* of new expressions */
};

Kernel *kernel_new(Arena *arena, int threads);
/* Nothing is added to the kernel any more; all that lies in its arena belongs to `arena`. */
void kernel_keep(Kernel *k, Arena *arena);
Arg *kernel_arg(Kernel *k, Buf *buf, int mode); /* one a Buf; modes merge */
/* What stands for it in the kernel that is being built. */
Buf *kernel_buf(const Kernel *k, const Arg *arg);
/* May the bytes of the argument be those of another one? */
bool kernel_shares(const Kernel *k, const Arg *arg);
int kernel_axis(Kernel *k, int64_t extent, const char *name);
const Index *kernel_axis_index(Kernel *k, int axis);
const Index *kernel_loop_index(Kernel *k, const Step *loop);

const Expr *expr_const(Kernel *k, Elem elem, double value);
const Expr *expr_int(Kernel *k, Elem elem, int64_t value);
const Expr *expr_index(Kernel *k, Elem elem, const Index *index);
/* A constant when ranges decide. */
const Expr *expr_within(Kernel *k, const Index *index, int64_t lo, int64_t hi);
const Expr *expr_load(Kernel *k, const Arg *arg, const Index *index, const Expr *guard);
const Expr *expr_map(Kernel *k, OpCode op, Elem elem, const Expr *const *in, int nin);
/* A term of a product's sum: `a` times `b`, of floats rounded with the sum. Nothing binds it. */
const Expr *expr_term(Kernel *k, Elem elem, const Expr *a, const Expr *b);
const Expr *expr_key(Kernel *k, uint64_t site, const Expr *const *in, int nin);
const Expr *expr_draw(Kernel *k, Dist dist, Elem elem, const Expr *key, const Index *index);
const Expr *expr_fold(Kernel *k, OpCode op, Elem elem, const Expr *body, AxisSet axes);
/* Position of the first extreme of `body` along axis: `best` is its fold. */
const Expr *expr_first(Kernel *k, OpCode op, const Expr *body, const Expr *best, AxisSet axes,
                       const Index *position);
const Expr *expr_and(Kernel *k, const Expr *a, const Expr *b); /* NULL is true */
/* Values read at run time that stand in `index`, each once, added to kid[0..n); gives the new n. */
int index_kids(const Index *index, const Expr **kid, int n, int most);
bool expr_is_true(const Expr *e);
bool expr_is_false(const Expr *e);
void expr_name(const Expr *e, const char *name); /* keeps the first */

/* --- expr_at.c --- */
/* Expressions at one place of an axis, which others may give: by Expr.id what was made of each. */
typedef struct {
    Kernel *k;
    int axis;
    const Index *place;
    const Arg *arg;     /* lies elsewhere then; NULL: none does */
    const Index *by;    /* so much further on; NULL: 0, */
    int64_t ring;       /* in a ring of so many elements; 0: in none, */
    int64_t pitch, gap; /* each `pitch` elements so many more apart; 0: none */
    const Expr **made;
    int nmade;
} ExprAt;

ExprAt expr_at_open(Kernel *k, Arena *scratch, int axis, const Index *place);
/* `e` there; NULL: it holds a fold, a draw or a position read at run time that depends on the axis.
 */
const Expr *expr_at(ExprAt *x, const Expr *e);
/* Where the element at `index` of its argument lies then. */
const Index *expr_at_moved(ExprAt *x, const Index *index);

Stmt *stmt_for(Kernel *k, StmtList *list, int axis);
/* The threads that a parallel FOR has work for, within those of the kernel. */
int stmt_team(const Kernel *k, const Stmt *s);
Stmt *stmt_let(Kernel *k, StmtList *list, const Expr *e, const Expr *as);
Stmt *stmt_store(Kernel *k, StmtList *list, const Arg *arg, const Index *index, const Expr *e);
Stmt *stmt_fold(Kernel *k, StmtList *list, int axis);
Stmt *stmt_tile(Kernel *k, StmtList *list);
Stmt *stmt_order(Kernel *k, StmtList *list);
int order_bits(Elem elem); /* of the keys of an order of such elements */
/* The workspace that it needs, of one thread where each has its own; in bytes. */
int64_t ordering_work(const Kernel *k, const Ordering *order);
/* Makes the extent a parameter (Call.size) if the kernel is one flat loop. */
void kernel_find_flat(Kernel *k);
int64_t flat_blocks(const Flat *flat, int64_t size);
bool kernel_sized(const Kernel *k, int axis); /* its extent depends on the call */
int64_t kernel_extent(const Kernel *k, const Call *call, int axis); /* as this call has it */
/* How many of its loops run on several threads; each becomes a function. */
int kernel_parallel_loops(const Kernel *k);
/* It has such a loop, or a product or an order for several threads. */
bool kernel_has_team(const Kernel *k);
/* Loops inside of an iteration that threads can share: a FOR whose iterations hold no further FOR
 * or hold a FOLD, a FOLD whose iterations hold no loop. */
bool stmt_is_shared(const Stmt *s);
/* The extent of the longest of them; 0: something in the list must be done by one thread alone. */
int64_t list_shared_extent(const Kernel *k, const StmtList *list);
const Tile *kernel_tile(const Kernel *k);      /* a kernel has one at most; NULL: none */
Tile *kernel_own_tile(Kernel *k);              /* the same, to be changed */
const Ordering *kernel_order(const Kernel *k); /* the same */

#endif
