/* schedule: from the Work of a kernel to its statements, by one of several schedules for each part.
 *
 * A schedule is a file: it says what it would do with a part, what that costs, and does it. A
 * target has a list of them; the cheapest that fits is taken. */
#ifndef MDLC_PASSES_SCHEDULE_SCHEDULE_H
#define MDLC_PASSES_SCHEDULE_SCHEDULE_H

#include "passes/lower/work.h"

typedef struct Target Target;

/* Needs a Work; gives the statements of its kernel. False: its product is cheaper made of loops;
 * there are no statements then. */
bool work_schedule(Work *w, const Target *target);

/* --- cost ------------------------------------------------------------------------------------- */

/* What the busiest thread does for a part, and the loops that wake the threads. */
typedef struct {
    int64_t loop; /* operations of loops: about an addition with its loads */
    int64_t tile; /* additions and multiplications in a tile of registers */
    int64_t bytes;
    int64_t launches;
} Cost;

/* --- one loop of a sum, and its levels -------------------------------------------------------- */

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

/* --- the kernel under way --------------------------------------------------------------------- */

typedef struct {
    Work *work;
    Kernel *k; /* of the Work, as is */
    const Target *target;
    Arena *scratch;
    int64_t operations; /* of the part at hand, see nest_work; -1: not counted yet */
    const Turn *piece;  /* folds that begin with this axis run over this part of it; NULL: all */
    RootList known;     /* folds (`named`) that parts before have left in memory, and their loads */
    AxisSet part_axes;  /* axes made for parts of sums, */
    AxisSet part_open;  /* and those that some loop around runs over */
    bool *bound;        /* by Expr.id: a LET in scope */
    bool *forced;
    int *uses;
    int nbound;
} KernelBuild;

/* How to run one part. */
typedef struct {
    const char *name;
    unsigned parts; /* mask of PartKind */
    /* NULL: any such part. It may leave in *plan what the others need, and add axes and
     * expressions, but no statements. */
    bool (*fits)(KernelBuild *b, const Part *part, void **plan);
    /* NULL: no other schedule does such parts. */
    Cost (*cost)(KernelBuild *b, const Part *part, const void *plan);
    void (*emit)(KernelBuild *b, const Part *part, void *plan); /* NULL: the Work without product */
} Schedule;

/* What planning knows of a machine. Times are picoseconds each; of the first four only the order
 * that they put schedules in matters. */
struct Target {
    const char *name;
    const Schedule *const *schedule; /* of equal ones the first is taken; the last is NULL */
    int64_t loop_time, tile_time, byte_time, launch_time;
    StepTimes step;      /* of what schedules made */
    bool sizes;          /* the extent of a flat loop may be a parameter */
    int64_t total_count; /* sums of at least so many elements are TOTAL parts */
    int64_t chunk;       /* values of so many bytes between two products exist by chunks */
    bool device;         /* regions lie where the host does not see them: Program.device */
    bool copies;         /* a product may have parts of its kernel in front of it */
    RowSums *sums;       /* which of them schedules take as COLUMN parts; NULL: none */
    bool orders;         /* it has schedules for ORDER parts */
    bool thread_row; /* a thread runs rows by itself: folds have lanes, dear values a kept row, and
                        loops end where the rest is known */
};

extern const Target target_cpu;  /* cpu.c */
extern const Target target_cuda; /* cuda.c */

/* The target that options ask for; NULL: the usual one. */
static inline const Target *target_asked(const Target *asked) {
    return asked ? asked : &target_cpu;
}
/* So many of its threads may each make a copy of the operand of a product, see pass_fuse. */
static inline int target_copies(const Target *target, int threads) {
    return target->copies ? threads : 0;
}

MachineTimes target_times(const Target *target);
/* The time of it, at most what an int64_t holds. */
int64_t cost_time(const Target *target, Cost cost);

extern const Schedule cpu_nest, cpu_pieces, cpu_rows; /* cpu_nest.c */
extern const Schedule cpu_across;                     /* cpu_across.c */
extern const Schedule cpu_turned, cpu_jammed;         /* cpu_block.c */
extern const Schedule cpu_spelled;                    /* cpu_spelled.c */
extern const Schedule cpu_column, cpu_total;          /* cpu_column.c, cpu_total.c */
extern const Schedule cpu_tile, cpu_library;          /* cpu_tile.c */
extern const Schedule cpu_loops;                      /* cpu_loops.c: a product made of loops */
extern const Schedule cpu_running, cpu_scatter;       /* cpu_running.c */
extern const Schedule cpu_order_lines, cpu_order_long, cpu_order_first; /* cpu_order.c */
extern const Schedule cuda_nest, cuda_column;         /* cuda_nest.c */
extern const Schedule cuda_total;                     /* cuda_total.c */
extern const Schedule cuda_tile, cuda_loops;          /* cuda_tile.c */
extern const Schedule cuda_running, cuda_scatter;     /* cuda_running.c */

/* --- bind.c --- */
/* A workspace of the kernel; with `threads` that many of the type, one a thread. */
Arg *kernel_work(KernelBuild *b, Type type, int threads, const char *name);
/* One for each thread, which sees its own only. */
Arg *kernel_row(KernelBuild *b, Type type, const char *name);

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
AxisSet axes_with(AxisSet set, const int *axis, int n); /* of both */
AxisSet turns_with(AxisSet set, const Turns *turns);    /* the same */
void nest_open(KernelBuild *b, const RootList *roots); /* counts uses; nothing is bound */
void bind_uses(KernelBuild *b, const RootList *roots); /* counts those of other roots instead */
/* The roots at one place of `axis`, which may be an index of others; false: some are not known. */
bool roots_at(KernelBuild *b, const RootList *roots, int axis, const Index *place, RootList *to);
void bind_room(KernelBuild *b);    /* for expressions that scheduling itself has made */
bool expr_is_plain(const Expr *e); /* a number or an index: never worth a name */
Binder bind_open(KernelBuild *b, StmtList *list, AxisSet scope, ExprList *made);
/* Binds what `e` needs; `deeper`: it is used in a loop inside this block. */
void bind_expr(Binder *x, const Expr *e, bool deeper);
void bind_root(Binder *x, const Root *root);
void bind_end(KernelBuild *b, const ExprList *made);

/* --- stage.c --- */
/* What one loop of a row does. */
typedef struct {
    AxisSet set; /* inner axes; 0: no loop */
    int depth;
    bool search; /* the folds are OP_ARGMAX or OP_ARGMIN: a loop of their own */
    ExprList fold;
    RootList root;
    ExprList keep;    /* row values that this stage leaves for later ones */
    ExprList kept_as; /* loads of them */
    ExprList take;    /* what it reads of those */
} Stage;
typedef VEC(Stage) StageList;
/* The stages of a row, in order: what each folds, and what it stores; `scope`: the axes of rows. */
StageList nest_stages(KernelBuild *b, AxisSet scope, const RootList *roots);
/* Binds what `roots` need outside of the axes of inner loops, in `list`, where `scope` is bound. */
void nest_lets(KernelBuild *b, StmtList *list, AxisSet scope, const RootList *roots);
void nest_stage(KernelBuild *b, StmtList *list, AxisSet scope, const int *axis, int naxis,
                const RootList *roots);
/* Vectors along `last`, in each turn of which the few places along the `n` axes `row` are written
 * out, behind what `first` stores (NULL: nothing) along the last `nfirst` of them; the loop over
 * these is the last statement of the one that comes back. */
Stmt *nest_written_out(KernelBuild *b, StmtList *list, AxisSet scope, int last, const int *row,
                       int n, const RootList *first, int nfirst, const RootList *roots);
/* Sets the part of its axis that a loop runs over: piece number `piece` (an axis) of `span`. */
void nest_piece(KernelBuild *b, Stmt *loop, int piece, int64_t span);
/* Elements of the pieces in which threads share a long vector axis: the same for all that makes or
 * reads such vectors, so that pieces stay in the cache of the thread; 0: it is too short. */
int64_t nest_piece_span(int64_t extent);
/* Opens nested FORs; gives the innermost body. */
StmtList *nest_turns(KernelBuild *b, StmtList *list, const Turns *turns);
void nest_rows(KernelBuild *b, StmtList *list, AxisSet scope, const RootList *roots);
bool kernel_parallel(const KernelBuild *b, int64_t work); /* is it worth several threads */
/* Opens nested FORs over the axes; gives the innermost body. */
StmtList *nest_loops(KernelBuild *b, StmtList *list, const int *axis, int n, bool parallel);

/* --- cpu_nest.c --- */
/* The operations of all that the roots of the part at hand compute, counted once. */
int64_t nest_work(KernelBuild *b, const Part *part);
bool nest_parallel(KernelBuild *b, const Part *part); /* so many that threads pay */
/* Of nested loops, the vector loop over `last` (-1: of rows, along each by itself). Where a load
 * jumps along it, a cache line is moved for each element, but not where blocks of the axis `turned`
 * (-1: none) use it up. */
Cost nest_cost(KernelBuild *b, const Part *part, int last, int turned);

/* --- cpu_column.c --- */
/* Whether a COLUMN part of so many terms goes by chunks of them; `first`: of their first axis. */
bool column_in_chunks(int64_t first, int64_t terms, int64_t columns);
/* What the sums among the roots begin with. */
void column_identity(KernelBuild *b, const RootList *roots, RootList *init);

/* --- cpu_spelled.c --- */
/* Of a COLUMN part: what is left to be done when loops of their own have made what it stores on the
 * way; as it is where nothing is gained. */
Part spelled_before(KernelBuild *b, const Part *part);

/* --- cpu_block.c --- */
enum { JAM_ROWS = 8 }; /* most rows that share a vector loop */
/* Loops over `grid` inside `scope`, a few rows of its last axis at a time in one vector loop over
 * `last`, which is given back; NULL, and nothing done, where rows have too little in common.
 * `most`: such rows; `first`: which part of its first axis, NULL: all. */
Stmt *block_jam(KernelBuild *b, StmtList *list, AxisSet scope, const int *grid, int n, int last,
                int most, bool parallel, const Turn *first, const RootList *roots);

/* --- far.c --- */
bool far_arg(const Kernel *k, const Arg *arg); /* does no near cache hold all of it? */
/* So many turns ahead a loop asks for what it touches, which moves by so many elements a turn. */
int64_t far_turns(const Arg *arg, int64_t stride);
/* Most rows, along the axis `row`, that one vector loop over `last` may go through side by side. */
int far_rows(const KernelBuild *b, int row, int last, const RootList *roots);
/* A loop that adds a row along `last` to sums in each turn asks for later rows of far tensors,
 * where these sums are more than stay in registers. */
void far_sums(KernelBuild *b, Stmt *loop, int last, const RootList *roots);
/* A loop over short rows, inside of `around`, that it is one of, asks for later ones of far tensors
 * where functions of their elements take so long that the processor does not. */
void far_functions(KernelBuild *b, Stmt *loop, AxisSet around, const RootList *roots);

/* --- cpu_taps.c --- */
/* How many of the first axes of a window loops go along, for the places of the others, which
 * nest_taps gets, to fit registers. */
int nest_taps_around(const KernelBuild *b, const Turn *turn, const int *tap, int n,
                     const RootList *roots);
/* How many of the last loops of a sum that adds to a window of vectors share these. */
int nest_taps_loops(const KernelBuild *b, const Turns *turns, const Radix *v,
                    const RootList *roots);
/* Loops that add the few terms of a window, or add to the few sums of one, along the vector axis
 * `last`: the places of the window (`tap`, axes) are written out, and a loop over one register of
 * `last` at a time runs around the turns, so that what does not depend on them stays in registers,
 * or sums of several turns stand side by side. `first`: stores in front of the window's. False, and
 * nothing done, where that does not fit. */
bool nest_taps(KernelBuild *b, StmtList *list, AxisSet scope, const Turns *turns, const int *tap,
               int n, int last, const RootList *first, const RootList *roots);

/* --- cpu_inner.c --- */
/* The places of a window, and the vector at each. */
typedef struct {
    const int *tap;
    int n, last;
    bool begins; /* each place of the picture is a sum over them, which begins there */
} WindowAxes;

/* Loops over the `n` axes of a picture, one or two, whose windows read their operand where it lies:
 * the places at its border apart. False: the operand has to be copied. */
bool nest_inner(KernelBuild *b, const WindowAxes *w, StmtList *list, AxisSet scope,
                const int *axis, int n, const RootList *roots);

/* --- cpu_running.c --- */
/* The sum behind `old` and `term`, and in `lost` (whose place is set) what it loses. */
const Expr *sum_keeping(KernelBuild *b, const Expr *old, const Expr *term, Root *lost);

/* --- cuda_launch.c --- */
/* A launch: a thread for each element of `n` spaces. Gives what a thread does, where folds that are
 * known and used have names. */
StmtList *cuda_launch(KernelBuild *b, const Radix *const *space, int n);
AxisSet cuda_scope(const Radix *const *space, int n); /* the axes that a thread knows */
/* --- cuda_total.c --- */
/* Sums of a COLUMN part that few threads would make: launches the folds of pieces of the terms, and
 * makes the roots folds of these. */
void cuda_sums(KernelBuild *b, const Part *part, RootList *roots);

/* --- join.c --- */
/* Makes one loop of the two that touch a workspace of the finished statements, slice by slice;
 * gives the elements of it that each thread needs then, or 0, and nothing is done. */
int64_t loops_join(Kernel *k, Arena *scratch, Arg *arg);

/* --- edge.c --- */
/* Loops of the finished statements that go through rows of which the rest is known end there. */
void loops_end_early(Kernel *k, Arena *scratch);

/* --- sum.c --- */
/* What is combined over `f`, as a value: a fold over it. */
RootList sum_folds(KernelBuild *b, const Radix *f, const RootList *roots);
/* All of the axes. */
Turns turns_of(KernelBuild *b, const int *axis, int n);
/* The first axis runs over piece number `piece` (an axis) of `span`. */
void turns_begin(KernelBuild *b, Turns *t, int piece, int64_t span);
/* Levels of at most SUM_CHAIN turns; `lanes` turns of the last axis count as one. `lone`: terms are
 * in no lanes, so levels are short. The axes of their parts stay open. */
SumLevels sum_levels(KernelBuild *b, const Turns *turns, int lanes, bool lone);
/* Turns of a piece of a long sum, `span` or a few more, of which short levels have a whole part. */
int64_t sum_even(int64_t span);
/* For pieces of the first axis of about `span`, half of it at least: so long that they end where
 * parts of a sum do. */
int64_t sum_span(const Turns *turns, int lanes, int64_t span);
int sum_lanes(int64_t extent);         /* partial sums of a fold along an axis */
bool sum_rounds(OpCode op, Elem elem); /* whether the order matters to `op` */

/* --- unread.c --- */
/* Of a lowered program: zeros far from a diagonal that nobody reads are not stored. */
void kernels_unread(Program *p);

/* --- many.c --- */
/* Of a lowered program: which products share the loop over their tasks, beside large ones, and
 * whether loops on threads are run by one function. `apart`: numbers of a batch stand apart from
 * the text of kernels, so none of them decides it. */
void kernels_many(Program *p, bool apart);

#endif
