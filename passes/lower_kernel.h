/* lower_kernel: what the files of lowering share: where values live, and a kernel under
 * construction. */
#ifndef MDLC_PASSES_LOWER_KERNEL_H
#define MDLC_PASSES_LOWER_KERNEL_H

#include "compiler/compile.h"
#include "passes/fuse.h"
#include "passes/lower_value.h"

/* Where a value lives: a Buf, the slice of a stack that the loops in `prefix` pick, or a part of a
 * concatenation that begins at `at`. */
typedef struct {
    Buf *buf;
    int nprefix;
    const Step *prefix[MD_RANK];
    bool part;
    int64_t at[MD_RANK]; /* on the axes behind the prefix */
} Home;
typedef VEC(Home) HomeList;

typedef struct {
    Compile *c;
    Program *p;
    ProgramEntry *e;
    Arena *arena;   /* of the program */
    Arena *scratch; /* of this entry */
} Lower;

typedef VEC(Node *) PickList;

/* One region being lowered: the entry's, or the body of a LOOP. */
typedef struct Frame Frame;
struct Frame {
    Lower *l;
    const Region *region;
    Fusion *fusion;
    Frame *up;
    const Node *node; /* the LOOP whose body this is */
    Step *loop;
    StepList *list;
    HomeList *home;         /* by node id; the first is where users read it */
    HomeList *result;       /* of the LOOP `node`: by result, carries first (homes in frame `up`) */
    uint64_t *placed;       /* by node id of a CONCAT: operands whose kernels write their part */
    HomeList **loop_result; /* by node id of a LOOP of this region */
    PickList *picks;        /* by node id of a LOOP: who reads its results */
};

/* A flat index space and the axes that its digits became. */
typedef struct {
    int64_t count;
    const char *name;
    int n;
    int64_t digit[MD_RANK]; /* outermost first */
    int axis[MD_RANK];
    AxisSet set;
} Radix;

typedef struct {
    const Arg *arg;
    int mode;
    const Step *slice[ACCESS_SLICES];
} Touch;

/* One loop of a sum. */
typedef struct {
    int axis;
    const Index *begin; /* as in Stmt; NULL: all of the axis */
    int64_t trip;       /* turns at most: the span where there is a begin, else the extent */
} Turn;

enum { TURNS = 2 * MD_RANK + 2, SUM_LEVELS = 40 };

/* Nested loops, outermost first. */
typedef struct {
    int n;
    Turn at[TURNS];
} Turns;

/* The loops of a sum by levels, innermost first: each adds to a sum of its own. */
typedef struct {
    int n;
    Turns level[SUM_LEVELS];
} SumLevels;

/* The pieces of a flat loop are multiples of this: whole cache lines. */
enum { CHUNK_UNIT = TUNED(64, 1) };

/* A value on its way to memory. */
typedef struct {
    const Arg *arg;
    const Index *index;
    const Expr *value;
    OpCode add; /* OP_CONST: overwrites */
    uint32_t layer;
} Root;
typedef VEC(Root) RootList;

typedef struct {
    Lower *l;
    Frame *frame;
    const Unit *unit;
    bool known;               /* product or folds of the unit are there: what follows takes them */
    const Expr **known_value; /* by node id; NULL: from memory */
    const Expr *strip;        /* what stands for the product in the epilogue of a tile */
    const Index *strip_at[MD_RANK]; /* where */
    bool plain;                     /* no tile: plain loops */
    const HomeList *copy;           /* stores go here instead of to the homes of their nodes */
    Arena *scratch;
    Arena *attempt; /* of the kernel, until it is the last one */
    Kernel *k;
    Values v;
    Frame *at; /* the frame whose nodes are being asked for */
    VEC(Touch) touch;
    VEC(Buf *) work; /* workspaces of this step; an attempt uses the first nwork */
    int nwork;
    int first_space;   /* number of the first index space of the nest being built */
    VEC(Radix) radix;  /* kept from one attempt to the next */
    const Turn *piece; /* folds that begin with this axis run over this part of it; NULL: all */
    AxisSet part_axes; /* axes made for parts of sums, */
    AxisSet part_open; /* and those that some loop around runs over */
    Step *step;
    bool *bound; /* by Expr.id: a LET in scope */
    bool *forced;
    int *uses;
    int nbound;
} KernelBuild;

/* --- lower_access.c --- */
/* What a value is called: of the source, else its operation. */
const char *short_name(Arena *arena, const Node *node);
Buf *slot_buf(Lower *l, const Slot *slot);
bool kernel_known(const KernelBuild *b, const Node *node);
const Expr *kernel_stored(void *ctx, Values *v, const Node *node, const Index *const *at);
/* Adds the access, gives the flat index. */
const Index *kernel_touch(KernelBuild *b, const Arg *arg, int mode, const Index *const *at);
/* Flat index of element `at` in a home of it. */
const Index *home_place(KernelBuild *b, const Home *home, const Index *const *at);
/* Stores `value` of `node` at `at` into every home of it. */
void kernel_store(KernelBuild *b, RootList *roots, const Node *node, const Index *const *at,
                  const Expr *value);
/* What this kernel has stored of `node` at `at`. */
const Expr *kernel_reload(KernelBuild *b, const Node *node, const Index *const *at);
/* A workspace of this step; with `parts` that many of the type, one a thread. */
Buf *kernel_work(KernelBuild *b, Type type, int parts, const char *name);

/* --- lower_finish.c --- */
/* Drops what the statements do not use; orders arguments; sets the accesses, pairs and counts of
 * the step. */
void kernel_finish(KernelBuild *b);

/* --- lower_space.c --- */
/* The axes of a flat space of `count`: number `which` of this kernel. */
Radix *kernel_space(KernelBuild *b, int which, int64_t count, const char *name);
const Index *radix_flat(KernelBuild *b, const Radix *r);
/* True when some quotient of an axis asks for digits: the kernel must be built again. */
bool kernel_refine(KernelBuild *b, const RootList *roots);
/* Index of each of the given dims from a flat space. */
void space_digits(KernelBuild *b, const Radix *r, int n, const int64_t *dim, const Index **at);
int space_axes(const Radix *r); /* axes worth a loop: none of a space of one element */
AxisSet space_set(const Radix *r);
int64_t count_dims(int n, const int64_t *dim);

/* --- lower_bind.c --- */
typedef VEC(const Expr *) ExprList;

typedef struct {
    KernelBuild *b;
    StmtList *list;
    AxisSet scope;
    bool *seen;
    ExprList *made; /* what was bound here, to be unbound when the block ends; may be NULL */
    bool early;     /* its loops come later: leave alone what holds a fold or what they write */
} Binder;

AxisSet root_axes(const Root *root);
void nest_open(KernelBuild *b, const RootList *roots); /* counts uses; nothing is bound */
void bind_room(KernelBuild *b);    /* for expressions that scheduling itself has made */
bool expr_is_plain(const Expr *e); /* a number or an index: never worth a name */
Binder bind_open(KernelBuild *b, StmtList *list, AxisSet scope, ExprList *made);
/* Binds what `e` needs; `deeper`: it is used in a loop inside this block. */
void bind_expr(Binder *x, const Expr *e, bool deeper);
void bind_root(Binder *x, const Root *root);
void bind_end(KernelBuild *b, const ExprList *made);

/* --- lower_nest.c --- */
/* Loops over `grid` (outermost first), in them the stages that make `roots`; the last grid axis is
 * the vector loop when `flat`. */
void nest_emit(KernelBuild *b, const int *grid, int ngrid, bool flat, const RootList *roots);
/* Binds what `roots` need outside of the axes of inner loops, in `list`, where `scope` is bound. */
void nest_lets(KernelBuild *b, StmtList *list, AxisSet scope, const RootList *roots);
void nest_stage(KernelBuild *b, StmtList *list, AxisSet scope, const int *axis, int naxis,
                const RootList *roots);
/* Sets the part of its axis that a loop runs over: piece number `piece` (an axis) of `span`. */
void nest_piece(KernelBuild *b, Stmt *loop, int piece, int64_t span);
/* Opens nested FORs; gives the innermost body. */
StmtList *nest_turns(KernelBuild *b, StmtList *list, const Turns *turns);
void nest_rows(KernelBuild *b, StmtList *list, AxisSet scope, const RootList *roots);
bool kernel_parallel(const KernelBuild *b, int64_t work); /* is it worth several threads */
/* Opens nested FORs over the axes; gives the innermost body. */
StmtList *nest_loops(KernelBuild *b, StmtList *list, const int *axis, int n, bool parallel);

/* --- lower_block.c --- */
/* The loops of a flat nest by blocks, where that pays; false: nothing is done. */
bool block_emit(KernelBuild *b, const int *grid, int n, bool parallel, const RootList *roots);
/* Loops over `grid` inside `scope`, a few rows of its last axis at a time in one vector loop over
 * `last`, which is given back; NULL, and nothing done, where rows have too little in common.
 * `first`: which part of its first axis; NULL: all. */
Stmt *block_jam(KernelBuild *b, StmtList *list, AxisSet scope, const int *grid, int n, int last,
                bool parallel, const Turn *first, const RootList *roots);

/* --- lower_sum.c --- */
Turns turns_of(KernelBuild *b, const int *axis, int n);
/* The first axis runs over piece number `piece` (an axis) of `span`. */
void turns_begin(KernelBuild *b, Turns *t, int piece, int64_t span);
/* Levels of at most SUM_CHAIN turns; `lanes` turns of the last axis count as one. The axes of their
 * parts stay open. */
SumLevels sum_levels(KernelBuild *b, const Turns *turns, int lanes);
/* For pieces of the first axis of about `span`, half of it at least: so long that they end where
 * parts of a sum do. */
int64_t sum_span(const Turns *turns, int lanes, int64_t span);
int sum_lanes(int64_t extent);         /* partial sums of a fold along an axis */
bool sum_rounds(OpCode op, Elem elem); /* whether the order matters to `op` */

/* --- lower_contract.c --- */
/* A product and what follows it; true: build again. */
bool build_contract(KernelBuild *b);

/* --- lower_column.c --- */
/* Loops of a fold over rows f whose result is a vector v, for each of the outer rows g; or a number
 * for each, where v has one element. */
void emit_column(KernelBuild *b, const Radix *g, const Radix *f, const Radix *v,
                 const RootList *roots);
/* A kernel's vector of sums over leading axes; true: build again. */
bool build_column(KernelBuild *b);

/* --- lower_running.c --- */
bool build_scan(KernelBuild *b);    /* a CUMSUM; true: build again */
bool build_scatter(KernelBuild *b); /* a SCATTER_ADD; true: build again */

/* --- lower_row.c --- */
/* The nest of a unit's atoms, those aside that are known; true: build again. */
bool build_nest(KernelBuild *b);
/* A place for a value of this unit that nothing else reads. */
void kernel_home(KernelBuild *b, const Node *node, const char *name);

/* --- lower_unit.c --- */
/* The kernel of a unit; runs until the index spaces need no more digits. */
void unit_build(KernelBuild *b);

#endif
