/* build: what the files of lowering share: where values live, and a Work under construction. */
#ifndef MDLC_PASSES_LOWER_BUILD_H
#define MDLC_PASSES_LOWER_BUILD_H

#include "compiler/compile.h"
#include "passes/fuse.h"
#include "passes/halves.h"
#include "passes/lower/band.h"
#include "passes/lower/value.h"
#include "passes/lower/work.h"
#include "passes/schedule/schedule.h"

/* Where a value lives: a Buf, the slice of a stack that the loops in `prefix` pick, or a part of a
 * concatenation that begins at `at`. */
typedef struct {
    Buf *buf;
    int nprefix;
    bool part;
    const Step **prefix;
    const int64_t *at; /* on the axes behind the prefix; NULL: at the start of all */
} Home;
typedef VEC(Home) HomeList;

typedef struct {
    Compile *c;
    Program *p;
    ProgramEntry *e;
    const Target *target;
    Arena *arena;     /* of the program */
    Arena *scratch;   /* of this entry */
    Readers *readers; /* of its nodes */
} Lower;

/* Of a LOOP of a region. */
typedef struct {
    HomeList *result;  /* by result */
    VEC(Node *) picks; /* who reads its results */
} LoopHomes;

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
    HomeList *home;        /* by node id; the first is where users read it */
    HomeList *result;      /* of the LOOP `node`: by result, carries first (homes in frame `up`) */
    uint64_t *placed;      /* by node id of a CONCAT: operands whose kernels write their part */
    LoopHomes *loops;      /* by node id of a LOOP */
    const Halves *halves;  /* what 16 bits hold; NULL: no product multiplies in them */
    const Slot **gradient; /* of a train, by node id: the parameter that it is the gradient of, */
    bool *backward;        /* and whether it is one or goes into one, and not into the loss */
    uint32_t *met;         /* by node id: the last search for names that met it */
    uint32_t turn;         /* number of that search */
};

typedef struct {
    const Arg *arg;
    int mode;
    const Step *slice[ACCESS_SLICES];
} Touch;

/* The copy of an operand that a product makes for itself: `node` is read from there. */
typedef struct {
    const Node *node; /* NULL: none */
    Home home;
} OwnCopy;

/* A Work and what lowering alone knows of it. */
typedef struct {
    Work w; /* the first: what schedules are given */
    Lower *l;
    Frame *frame;
    const Unit *unit;
    OwnCopy own_copy[2]; /* while the operands of the product are asked for */
    bool staged;         /* its schedule makes them, bit by bit, */
    bool declined;       /* which it does not */
    int64_t copied;      /* bytes of these copies: each is written and read */
    bool copies;         /* none is left out */
    bool loops;        /* a product as loops, not as a PART_PRODUCT */
    bool known;        /* product or folds of the unit are there: the rest reads them */
    const Expr *strip; /* what stands for the product where it is finished */
    const Index *strip_at[MD_RANK]; /* where */
    bool elsewhere;                 /* and it was asked for at another place */
    const HomeList *copy;           /* stores go here instead of to the homes of their nodes */
    Arena *attempt;                 /* of the kernel, until it is the last one */
    Values v;
    Frame *at; /* the frame whose nodes are being asked for */
    VEC(Touch) touch;
    VEC(Buf *) work; /* workspaces of this step; an attempt uses the first nwork */
    int nwork;
    int first_space;  /* number of the first index space of the nest being made */
    VEC(Radix) radix; /* kept from one attempt to the next */
    VEC(Buf *) whole; /* what loops pick of these is part of indices */
    bool again;       /* one more of them was found: all must be made again */
    Step *step;
} WorkBuild;

/* --- name.c --- */
/* What a value is called without its layer. */
const char *short_name(const Lower *l, const Node *node);
/* Which values of a train are gradients of parameters. */
void name_gradients(Frame *f);
/* Gives the step of a kernel its names, and in trains the places of what else it computes. */
/* What a node of the list of a train is for. */
StepPart part_of(const Frame *f, const Node *node);
void name_step(Frame *f, const Unit *unit, const Node *main, bool copy, Step *step);
const char *result_name(Frame *f, const Node *loop, int k); /* result k of a LOOP */
/* A temporary; without a name it is called after its node. */
Buf *temp_new(Frame *f, const Node *node, Type type, const char *name);

/* --- lower.c --- */
/* The most threads that a kernel of it may have. */
int frame_threads(const Frame *f);
/* A kernel that copies the value of `node` to where it is wanted too. */
void lower_copy_to(Frame *f, const Node *node, Home to);

/* --- ends.c: of loops that end by themselves --- */
/* In front of the loop: where it finds what ends it; the homes of its results are there. */
void ends_before(Frame *f, const Node *loop, Step *step);
void ends_in(Frame *f, const Node *loop, Step *step); /* Step.made */
/* Behind it: clears the rest of stacks where somebody sees it; `copied` by result. */
void ends_after(Frame *f, const Node *loop, Step *step, const bool *copied);

/* --- access.c --- */
/* The type of a value between kernels. What is added up in memory keeps its digits. */
Type storage_of(const Frame *f, const Node *node);
Buf *slot_buf(Lower *l, const Slot *slot);
bool kernel_known(const WorkBuild *b, const Node *node);
const Expr *kernel_stored(void *ctx, Values *v, const Node *node, const Index *const *at);
/* Flat index of element `at` in a home of it. */
const Index *home_place(WorkBuild *b, const Home *home, const Index *const *at);
/* Stores `value` of `node` at `at` into every home of it. */
void kernel_store(WorkBuild *b, RootList *roots, const Node *node, const Index *const *at,
                  const Expr *value);
/* And into this place. */
void kernel_store_at(WorkBuild *b, RootList *roots, const Node *node, const Home *home,
                     const Index *const *at, const Expr *value);
/* What this kernel has stored of `node` at `at`. */
const Expr *kernel_reload(WorkBuild *b, const Node *node, const Index *const *at);
/* A place for a value of this unit that nothing else reads. */
void kernel_home(WorkBuild *b, const Node *node, const char *name);

/* --- finish.c --- */
/* Drops what the statements do not use; orders arguments; sets the accesses, pairs and counts of
 * the step. */
void kernel_finish(WorkBuild *b);

/* --- space.c --- */
/* The axes of a flat space of `count`: number `which` of this kernel. */
Radix *kernel_space(WorkBuild *b, int which, int64_t count, const char *name);
/* True when some quotient of an axis asks for digits: the kernel must be built again. */
bool kernel_refine(WorkBuild *b, const RootList *roots);
/* Index of each of the given dims from a flat space. */
void space_digits(WorkBuild *b, const Radix *r, int n, const int64_t *dim, const Index **at);

/* Each of these adds the parts of a unit; true: the index spaces have more digits now, so all is
 * to be made again. */
/* --- work_nest.c --- */
bool make_nest(WorkBuild *b); /* the atoms of the unit, those aside that are known */
/* The spaces that the rows of an atom run over, and its place in row `row`. */
void nest_spaces(WorkBuild *b, const Node *node, int64_t rows);
void nest_place(WorkBuild *b, const Node *node, const Radix *row, const Index **at);
/* --- work_fold.c --- */
bool make_column(WorkBuild *b);
bool make_total(WorkBuild *b);
/* --- work_fold.c, work_nest.c, work_product.c: of ops with kernels of their own --- */
#define DECLARE_inline(rule)
#define DECLARE_either(rule) bool make_##rule(WorkBuild *b);
#define DECLARE_kernel(rule) bool make_##rule(WorkBuild *b);
#define OP(NAME, name, nin, cls, shape, eval, vjp, lower, made, sample, cost, spelling)            \
    DECLARE_##made(lower)
#include "compiler/op.def"
#undef OP

/* --- work.c --- */
/* The kernel of a unit: its Work, made until its index spaces need no more digits, scheduled. */
void unit_build(WorkBuild *b);

#endif
