/* program: what runs, in which order, over which bytes. Made by lowering, completed by the planner,
 * proved by check, printed by emit, which decides nothing.
 *
 * Semantics
 *  - A Buf is a storage: a range of bytes in one of the regions. A temporary (BUF_TEMP) is written
 *    by one step (or by several that each write their own part: concat) before any step reads it.
 *  - Steps of a list run in order. A STEP_LOOP runs its list `trip` times with its index variable
 *    0..trip-1 (or down with `reverse`); steps inside address slices of stacked buffers with it. A
 *    Buf declared inside the loop (Buf.loop == that step) lives within one iteration.
 *  - A STEP_LOOP may end by itself. It looks at `go`, a bool carry, before each turn and ends where
 *    that is false. `last`, an i32, is the last index: the loop begins there with `reverse` and
 *    ends there without, and does not run where it is negative. `trip` is the most turns. When it
 *    ends it sets `made`, an i32, to its last index, -1 where it has not run. What its body does
 *    not reach of a stack is undefined until a STEP_CLEAR makes it 0, so nothing reads it but the
 *    slices of a loop that has the same last index.
 *  - Carries: the carry Buf belongs to the list outside the loop, is written there before the loop,
 *    read in the body, and overwritten at the end of the body by the step that makes the next value
 *    (Buf.final, see below).
 *  - Buf.final: the value of this temporary must end up in `final` (a parameter, a state, a carry,
 *    a result in io). The planner either makes the temporary *be* the destination (Buf.storage =
 *    final; legal when no later step reads the old value and the writing step reads it only through
 *    an in-place pair) or appends a STEP_COPY at the end of the list.
 *  - An in-place pair (in, out) of a step says that the step reads element i of `in` only before it
 *    writes element i of `out`, same bytes: they may share storage if `in` dies here.
 *  - An Access may say which slices it touches: slice[k] is the enclosing loop whose index picks
 *    the position on axis k of the Buf, for its leading axes. A pair of a step in a loop whose
 *    accesses are such slices lets whole stacks share storage: iteration i touches slice i of both
 *    alone.
 *  - Turns of a STEP_LOOP with `rest` run side by side on up to `team` threads. It has no carries,
 *    and what it writes of Bufs declared outside are slices that its own index picks. What it
 *    declares, at any depth, lies from `base` on in one stretch; `rest`, [team - 1, bytes of it],
 *    is a workspace of the loop itself: the same stretch again for each further thread.
 *  - Workspaces are Bufs of kind BUF_WORK, written and read by one step alone; `per_thread` ones
 *    are already multiplied by the thread count of the bound.
 *  - STEP_CHECK: the entry ends with a status, nothing written to parameters or states, unless
 *    every float that it reads (loss, gradient norm of a train) is finite and every bool (a loop
 *    met its maximum) is false. The planner makes it; no byte of a parameter or a state is written
 *    before it.
 *  - A KERNEL step may run again (Step.again): its results are Bufs of their own, which hold the
 *    same values (Buf.again).
 *  - STEP_RANGE and STEP_NEED come before everything else: what they refuse is not read, and
 *    nothing is written.
 *  - STEP_PUSH writes rows of a ring, once in an entry, behind everything that reads the ring and
 *    before the ring's cursor gets its next value. */
#ifndef MDLC_COMPILER_PROGRAM_H
#define MDLC_COMPILER_PROGRAM_H

#include "compiler/graph.h"
#include "compiler/names.h"

typedef struct Buf Buf;
typedef struct Step Step;
typedef struct Kernel Kernel; /* compiler/kernel.h */

typedef enum {
    BUF_PARAM,
    BUF_STATE,
    BUF_INPUT,  /* a pointer of the *_in struct */
    BUF_RESULT, /* in io: a field of the *_out struct points at it */
    BUF_CONST,  /* a static const table of the emitted file */
    BUF_TEMP,   /* in the arena */
    BUF_WORK    /* in the arena, one step's scratch */
} BufKind;

struct Buf {
    int id;           /* unique in the program */
    const char *name; /* unique in the entry, a C identifier */
    const char *role; /* the name without layer and number */
    BufKind kind;
    const Type *type;   /* kept by the program */
    int64_t *stride;    /* by axis, in elements: dense, row-major */
    int64_t bytes;      /* rounded up to nothing: the true need; planning rounds to 64 */
    Slot *slot;         /* PARAM, STATE, INPUT */
    int out;            /* RESULT: index in Entry.out; else -1 */
    const double *data; /* CONST */
    Buf *final;         /* see above */
    Step *loop;         /* the innermost loop it is declared in; NULL: the entry's list */
    const char *label;  /* name in the source of the value it holds, or NULL, for reports */
    Loc loc;
    int per_thread; /* WORK: number of equal parts, one a thread; 0: one */
    bool saved;     /* lives from the forward to the backward part */
    int64_t near;   /* where column less row is less, it is written; 0: everywhere */
    /* made by the planner */
    const Buf *again; /* it holds the value of this one, made again; NULL: its own */
    Buf *storage;     /* itself, or the Buf whose bytes it uses */
    int64_t offset;  /* bytes from the start of its region; INPUT: of its staging in io, -1: none */
    int first, last; /* half-open in linear step numbers: [first, last) */
    int begins, ends; /* PARAM, STATE: the first and the last phase that it is in memory for */
};

typedef enum {
    STEP_KERNEL,
    STEP_LOOP,
    STEP_COPY,
    STEP_CHECK,
    STEP_PUSH,  /* rows into a ring, behind those of its cursor, which still has its old value */
    STEP_SEED,  /* of init: its parameter into the slot of the seed */
    STEP_RANGE, /* an input is in its range, or the entry ends with a status */
    STEP_NEED,  /* a ring holds what the entry samples, or it ends with a status */
    STEP_CLEAR  /* the slices of a stack behind the last index of a loop become 0 */
} StepKind;
typedef enum { ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_PART = 4 /* only its part */ } AccessMode;

enum { ACCESS_SLICES = 3 };
typedef struct {
    Buf *buf;
    int mode;
    const Step *slice[ACCESS_SLICES]; /* NULL from the first axis on that is not sliced */
    int64_t most; /* bytes that are read at most; 0: all of them */
} Access;
typedef VEC(Access) AccessList;

typedef struct {
    Buf *in, *out;
} InplacePair;

typedef VEC(Step *) StepList;

/* Argument `arg` begins `mul` elements further on for each turn of `loop`: it is the slice that the
 * loops around the call pick. */
typedef struct {
    int arg;
    const Step *loop;
    int64_t mul;
} Offset;
typedef VEC(Offset) OffsetList;

/* What stands for the formals of a kernel where a step calls it. */
typedef struct {
    VEC(Buf *) buf;         /* by Arg.id */
    OffsetList offset;      /* of those that begin elsewhere than at the start of their Buf */
    VEC(const Step *) loop; /* around the step: whose indices, by number in Kernel.loop */
    VEC(uint64_t) site;     /* of draws, by number */
    int64_t size;           /* of the flat loop; 0: it has none */
} Call;

typedef struct {
    int layer; /* 1 + the place in Module.layer; 0: none */
    int64_t flops;
} LayerFlops;

/* What a step of a train is for. */
typedef enum { PART_NONE, PART_FORWARD, PART_LOSS, PART_BACKWARD, PART_UPDATE } StepPart;

struct Step {
    StepKind kind;
    int id;      /* linear number after order: depth first, 0-based */
    int lowered; /* position in its list before order moved it; the checker compares */
    Step *up;    /* the loop whose body holds it, NULL: the entry; made with id by program_number */
    const char *name; /* label: the entry, then the layer or what is made */
    const char *role; /* KERNEL: the same of whichever layer: "weight_update" */
    OpCode op;        /* main operation, for reports */
    const char *text; /* for comments: the line of the source, then the shape of what is made */
    const char *line; /* that line alone, or NULL */
    const char *path; /* KERNEL: the layer that it is for: "fc1"; NULL: none */
    StepPart part;    /* what it is for, in the list of a train */
    Loc loc;
    VEC(Loc) also;     /* KERNEL of a train: places of what else it computes, a few, all distinct */
    AccessList access; /* every Buf it touches, workspaces included; a loop: what its body does */
    VEC(InplacePair) inplace;
    const char *where;     /* KERNEL: file:line, or NULL */
    Kernel *kernel;        /* KERNEL: what it calls, */
    Call call;             /* with these arguments, */
    uint64_t lowered_call; /* which were these when it was lowered: call_hash */
    StepList body;         /* LOOP */
    int64_t trip;          /* LOOP: turns, at most */
    bool reverse;
    bool picks;            /* LOOP: which slices are written depends on the run, here or inside */
    Buf *go, *last, *made; /* LOOP: NULL where it runs all turns, or nobody asks */
    Buf *rest;             /* LOOP: NULL where one turn follows the other */
    int64_t base;          /* LOOP with rest: made by the planner, see above */
    AccessList own;        /* LOOP: how it touches these itself; part of `access` */
    int index;             /* LOOP: number of its index variable: printed as i<index> */
    Buf *dst, *src; /* COPY of whole buffers of equal type; PUSH; SEED: dst; RANGE: src; CLEAR: of
                       the last index `src` */
    Buf *cursor;    /* PUSH, NEED: how many rows the ring has been given */
    int64_t least;  /* NEED: so many */
    Buf *in_use;    /* PUSH: an input, so many of the rows; NULL: all */
    int64_t flops, bytes_moved; /* of one execution */
    int64_t products;           /* KERNEL: FLOPs that its products need */
    int64_t borders;            /* KERNEL: of `flops`, those on zeros around operands */
    int64_t dear;               /* additions that functions and draws take beyond one FLOP each */
    bool wide;                  /* KERNEL: its products are of f64 */
    int team; /* KERNEL, LOOP with rest: the most threads that run a part of it */
    VEC(LayerFlops) layer;      /* KERNEL: the flops by layer */
    const Step *again;          /* KERNEL: this step, run again; NULL: it runs the first time */
    bool sparse;                /* SCATTER_ADD: zero but in rows chosen by data, and so it stays */
};

typedef struct {
    Entry *entry;
    const char *c_name; /* net_fit; program_names gives it */
    StepList step;
    VEC(Buf *) buf;   /* temporaries, workspaces, inputs, results of this entry */
    int nstep;        /* linear step numbers in use */
    VEC(Buf *) limit; /* bools: where one is true, a loop met its maximum; STEP_CHECK says so */
    int64_t arena_bytes, lower_bound_bytes;
    /* What the plan said of both before it was applied. */
    int64_t planned_height, planned_bytes;
    int64_t predicted;     /* picoseconds of a call, see compiler/times.h */
    int64_t touched;       /* bytes of its usual plan, and what it touches besides */
    int64_t far_share;     /* of FAR_WHOLE bytes that steps move so many come from memory */
    int64_t band_bytes;    /* guard band on both sides of every Buf of the arena; 0: none */
    int64_t io_bytes;      /* staged inputs, of a device a status, then results */
    int64_t status_offset; /* in io: where kernels of a device find whether they may run */
    int64_t flops, bytes_moved;
    int64_t dear;         /* as of steps */
    int64_t spared_bytes; /* by steps that run again since they cost hardly any time */
    int64_t flops_again;  /* of them those of steps that run again */
    int steps_again;
    int peak_step;
    const char *order_name; /* which order won */
    bool rounds;            /* something is rounded to a float of 16 bits */
} ProgramEntry;

/* FLOPs of a product that take as long as one of `dear`, as work is counted without times. */
enum { DEAR_FLOPS = 4 };

/* What is in memory while a phase runs. */
typedef struct {
    int64_t params, state, arena, total; /* total: with the inputs and results of the program */
} PhaseNeed;

/* What is known of a machine before schedules are chosen, in picoseconds: an operation of a loop,
 * one of a tile of registers, a byte; and whether it multiplies bfloat16 in pairs. */
typedef struct {
    int64_t loop, tile, byte;
    bool pairs;
} MachineTimes;

/* How long steps take there, in picoseconds, for plans and reports: a FLOP of loops, one of tiles,
 * one of `dear`, a byte that lies in a cache, one that comes from memory, waking the threads. The
 * caches hold `cache` bytes. */
typedef struct {
    int64_t loop, tile, dear, near, far, launch, cache;
} StepTimes;

typedef struct {
    Module *module;
    Arena *arena;
    const char *prefix; /* of emitted names */
    VEC(ProgramEntry *) entry;
    VEC(Buf *) slot;             /* one Buf a Module.slot, same order; BUF_PARAM and BUF_STATE */
    VEC(Buf *) table;            /* BUF_CONST */
    VEC(Kernel *) kernel;        /* each once, by Kernel.id; called by one step or by many */
    struct KernelTable *kernels; /* finds equal ones, while lowering adds to them */
    int64_t params_bytes, state_bytes, io_bytes, arena_bytes;
    int64_t total_bytes;  /* the declared bound: their sum, or with phases that of the largest */
    VEC(PhaseNeed) phase; /* of a program with a main that goes through several; else empty */
    int64_t band_bytes;   /* of guard bands in the arenas of instances; 0: none */
    int64_t stack_bytes;  /* worst chain of emitted frames, a bound that is tested */
    int nbuf, nindex;     /* counters for ids */
    StepTimes times;      /* what planning took the machine for */
    bool device;          /* regions lie where the host does not see them: inputs are brought to io
                            and results fetched from there */
    NameSet *names;       /* of Bufs, see buf_new */
    KeepTable types;      /* of Bufs */
} Program;

/* All regions side by side, as who calls entries in an order of his own has them. */
int64_t program_whole_bytes(const Program *p);
/* Is it called while a phase runs? An evaluation is with its train, `init` with the first. */
bool entry_in_phase(const Program *p, const ProgramEntry *e, int phase);

/* How far argument `arg` moves with each turn of `loop`. */
int64_t call_offset(const Call *call, int arg, const Step *loop);
/* Both begin at one place, if their Bufs do. */
bool call_same_offset(const Call *call, int a, int b);

/* sum + times * n, none negative; stays at the largest number instead of leaving the range. */
int64_t count_add(int64_t sum, int64_t times, int64_t n);

#define MD_ALIGN 64
int64_t align_up(int64_t bytes, int64_t to);

Program *program_new(Arena *arena, Module *module);
/* Makes `name` a C identifier and unique: in the entry and beside the Bufs of the program (e
 * NULL). */
Buf *buf_new(Program *p, ProgramEntry *e, BufKind kind, Type type, const char *name);
void buf_set_type(Program *p, Buf *buf, Type type); /* and strides */
void buf_set_role(Program *p, Buf *buf, const char *role);
Buf *buf_root(const Buf *buf);
const Buf *buf_first(const Buf *buf); /* the Buf whose value it holds again, else itself */
/* Whose pointer emitted functions use for it: the next value of a parameter or a state, where it is
 * made in place, has that of the parameter or state. */
const Buf *buf_local(const Buf *buf);
int64_t buf_extent(const Buf *buf);  /* bytes from the first to the last element */
bool buf_in_arena(const Buf *buf);   /* TEMP or WORK whose root is too */
bool buf_owns_arena(const Buf *buf); /* it has bytes of the arena of its own */
/* What `bytes` of a Buf take of the arena: rounded to the alignment, and its guard bands. */
int64_t arena_room(const ProgramEntry *e, int64_t bytes);
/* The input holds integers in a range that callers of the entry must keep to, or bools. */
bool input_is_ranged(const Entry *entry, const Slot *slot);
void input_range(const Slot *slot, int64_t *lo, int64_t *hi); /* lo..hi, of bools 0..2 */
bool step_refuses(const Step *step);                /* STEP_RANGE, STEP_NEED */
Step *step_new(Program *p, StepKind kind, Loc loc); /* a LOOP gets its index number */
/* Merges with an access already there. */
void step_access(Program *p, Step *step, Buf *buf, int mode);
/* The same, saying that axis k is picked by the index of slice[k], k < nslice; merging keeps the
 * axes on which both agree. */
void step_access_slice(Program *p, Step *step, Buf *buf, int mode, const Step *const *slice,
                       int nslice);
/* What it touches itself: of a loop not what its body does. */
static inline const AccessList *step_touches(const Step *step) {
    return step->kind == STEP_LOOP ? &step->own : &step->access;
}
/* A loop touches `buf` itself, the slice that `home` names. */
void step_own(Program *p, Step *loop, Buf *buf, int mode, const Step *const *slice, int nslice);
/* The outermost loop around what `loop` declares whose turns run side by side; NULL: none. */
const Step *step_aside(const Step *loop);
/* `rest` of such a loop has so many bytes for each further thread. */
void step_set_rest(Program *p, const Step *loop, int64_t bytes);
/* Does a run decide how many turns it has? */
static inline bool step_ends_itself(const Step *loop) {
    return loop->go != NULL || loop->last != NULL;
}
/* Adds what the body of `loop` touches and what was declared outside it. */
void step_access_body(Program *p, Step *loop);
/* What one execution moves: what it touches of the Buf, once to read it, once to write it. */
int64_t access_bytes(const Access *access);
/* The same where an access reads but a part of it. */
int64_t access_needs(const Access *access);
const Access *step_find(const Step *step, const Buf *buf);
/* The step says that `out` may take over the bytes of `in`. */
bool step_pairs(const Step *step, const Buf *in, const Buf *out);
int step_end(const Step *step); /* linear number behind the step and its body */
/* Visits every step depth first, loops before their bodies. */
typedef void (*StepVisit)(void *ctx, Step *step, int depth);
void steps_visit(const StepList *list, StepVisit visit, void *ctx);
void program_number(ProgramEntry *e); /* Step.id, Step.up and nstep from the lists */
/* Of what is passed; a Buf whose value is made again counts as the one that it equals. */
uint64_t call_hash(const Call *call);
/* The step calls the finished kernel, or an equal one that is there already; true: this one is
 * kept, and what lies in its arena belongs to the program. See compiler/kernel_table.h. */
bool program_call(Program *p, Step *step, Kernel *k);
/* Unique emitted names of entries and kernels, none of them one of the API. */
void program_names(Program *p);
/* The function of the k-th parallel loop of a kernel, k from 0. */
const char *kernel_loop_name(Arena *arena, const char *kernel, int k);
bool name_is_reserved(const char *name); /* a word of C or C++, or a name of their libraries */
/* Capitals alone, or before the first '_': such names belong to the macros of C's headers, which
 * differ from system to system. */
bool name_is_macro(const char *name);
void program_dump(const Program *p, FILE *out);

#endif
