/* graph: the program as regions of nodes, and the one builder that makes them.
 *
 * Semantics
 *  - Values are immutable tensors. Elements are of Node.type.elem; floats follow IEEE, integers
 *    wrap in two's complement. Sums may be reassociated by a kernel in a fixed way that depends
 *    on shapes only, never on the number of threads.
 *  - A Region is a list of nodes in topological order. A node reads only nodes of its own
 *    region. What a loop body needs from outside is an operand of the LOOP (carry, invariant or
 *    stacked input) and a BODY_PARAM inside; constants (CONST, TABLE, IOTA) are made again in
 *    each region.
 *  - LOOP: operands = carry starts[ncarry], invariants[ninv], stacks xs[nxs] (leading extent
 *    `trip`); body params in the order: index (i32 scalar, 0..trip-1), carries, invariants, xs
 *    slices; body results = next carries[ncarry], ys slices[nys]; results of the node (through
 *    PICK) = final carries, then ys stacked in front [trip, ...]. With `reverse` the index runs
 *    from trip-1 down to 0 and ys land at their index.
 *  - A LOOP may end by itself. With `go` a carry, a bool, is looked at before each iteration, and
 *    the loop ends where it is false. With `last` an invariant, an i32, says the last index: the
 *    loop runs 0..last, or last down to 0, of at most `trip` iterations; none where it is negative.
 *    What such a loop leaves out of ys is 0. A carry that starts at -1 and becomes the index ends
 *    as the last index of a loop, or -1 where none has run.
 *  - SLOT reads a parameter, a state or an input as it was when the entry began. Writing is a
 *    property of the entry (Entry.out[k].slot), never of a node: an entry is a pure function.
 *  - RANDOM is a pure function of (seed, counter, site, loop indices, element index).
 *
 * The builder (graph_add and the makers below) infers the type, folds constants, applies a few
 * local identities and hash-conses, so equal nodes of one region are one node and a pass
 * *rebuilds* rather than mutates. Where an operand belongs to an enclosing region, the builder
 * threads it through the open loops as an invariant by itself (memoised); an operand of any other
 * region is a BUG. The shape rules BUG on misuse: the elaborator has reported the user's mistakes
 * before. */
#ifndef MDLC_COMPILER_GRAPH_H
#define MDLC_COMPILER_GRAPH_H

#include "compiler/base.h"
#include "compiler/diag.h"
#include "compiler/type.h"

typedef enum {
    CLASS_LEAF,
    CLASS_VIEW,
    CLASS_PLACE,
    CLASS_MAP,
    CLASS_FOLD,
    CLASS_CALL,
    CLASS_LOOP,
    CLASS_MARK
} OpClass;

typedef enum {
#define OP(NAME, name, nin, cls, shape, eval, vjp, lower, made, sample, cost, spelling) OP_##NAME,
#include "compiler/op.def"
#undef OP
    OP_COUNT
} OpCode;

/* Column `made`. */
typedef enum { MADE_inline, MADE_kernel, MADE_either } OpMade;

typedef struct {
    const char *name;
    int nin;
    OpClass cls;
    OpMade made;
    int cost; /* of one element, about one addition each */
    const char *spelling;
} OpInfo;
extern const OpInfo op_info[OP_COUNT];

typedef enum { BORDER_NONE, BORDER_VALUE, BORDER_EDGE, BORDER_WRAP } Border;
typedef enum { DIST_BITS, DIST_UNIFORM, DIST_NORMAL } Dist; /* u32; [0, 1); mean 0, deviation 1 */

/* The 16-bit floats that ops round to; TY_ERROR: the op is none of these. */
static inline Elem op_rounds_to(OpCode op) {
    return op == OP_BF16 ? TY_BF16 : op == OP_F16 ? TY_F16 : TY_ERROR;
}
static inline bool op_rounds(OpCode op) {
    return op_rounds_to(op) != TY_ERROR;
}
/* Those that all that it gives are of; TY_ERROR: none. */
static inline Elem op_gives(OpCode op) {
    return op == OP_BF16_DRAWN ? TY_BF16 : op_rounds_to(op);
}
/* Which products of an entry are rounded. */
enum { ROUND_PRODUCTS = 1, ROUND_CONVOLUTIONS = 2, ROUND_ALL = 3 };
static inline OpCode op_rounding(Elem half) {
    return half == TY_F16 ? OP_F16 : OP_BF16;
}

typedef struct Node Node;
typedef struct Region Region;
typedef struct Graph Graph;
typedef struct Slot Slot;
typedef struct Entry Entry;

/* Are so many rows of so many columns added up in chunks, which threads share? `first`: the extent
 * of the first axis of the rows. */
typedef bool RowSums(int64_t first, int64_t rows, int64_t columns);

/* By the graph of the nodes that have them; those of leaves and maps without `lo` and what follows:
 * see attr_copy. */
typedef enum { ATTR_FRESH, ATTR_KEPT, ATTR_KEPT_BRIEF } AttrKept;

/* Only the fields that the op's row names are used; all others are zero and there is no hidden
 * padding, so attributes compare as bytes. */
typedef struct {
    uint32_t axes;           /* mask */
    int axis;                /* also: index of PICK and BODY_PARAM */
    Border border;           /* PAD, WINDOW; OVERLAP_ADD: NONE or VALUE */
    Dist dist;               /* RANDOM */
    bool reverse, exclusive; /* CUMSUM, LOOP, BF16, F16, ORDER: descending */
    bool exact;              /* CONTRACT, and SUM that may become one: nothing is rounded for it;
                              * CAST of a float to its own type: it is taken for no float of 16
                              * bits any more (node_half) */
    bool aside;              /* LOOP without carries: its iterations run side by side; no hidden
                              * padding is left: attributes compare as bytes */
    int batch;               /* GATHER, SCATTER_ADD */
    double value;            /* CONST of a float or bool; border value */
    int64_t ivalue;          /* CONST of an integer */
    uint64_t site;           /* RANDOM */
    const double *data;      /* TABLE: type_count(type) numbers */
    Slot *slot;              /* SLOT */
    uint64_t kept;           /* AttrKept */
    int64_t lo[MD_RANK], hi[MD_RANK]; /* SLICE: start, extent; PAD: added before, after */
    int64_t step[MD_RANK];            /* SLICE */
    int map[MD_RANK];                 /* PERMUTE */
    /* WINDOW, OVERLAP_ADD: axis of extent taps_n read at s*i + d*k - p, i < count, k < taps.
     * BORDER_NONE: all reads are inside. */
    int64_t s, d, p, count, taps, taps_n;
    /* CONTRACT: a label 0..nlabel-1 for every axis of both operands and of the result. A label in
     * the result and both operands is a batch axis; in the result and one operand a row or column;
     * in both operands only, summed. No label stands twice in one list or in one operand alone. */
    int8_t la[MD_RANK], lb[MD_RANK], lo_[MD_RANK], pad2_[4];
    /* LOOP */
    int64_t trip, checkpoint; /* what is kept for its adjoint: see below */
    int ncarry, ninv, nxs, nys;
    int go;   /* 1 + the number of a carry, see above; 0: none */
    int last; /* 1 + the number of an invariant; 0: none */
} Attr;

/* Attr.checkpoint of a LOOP: n > 0: carries alone, at the start of every n-th iteration; else what
 * the pass that differentiates is told to keep, or CHECKPOINT_NONE: as the loop around it does.
 * CHECKPOINT_ADJOINT: it is an adjoint, and gives stacks that the loss may be made of. */
enum {
    CHECKPOINT_ADJOINT = -2,
    CHECKPOINT_AFRESH = -1,
    CHECKPOINT_NONE = 0,
    CHECKPOINT_EACH = 1
};

/* Does the run decide how many iterations a LOOP has? */
static inline bool loop_ends_itself(const Attr *loop) {
    return loop->go > 0 || loop->last > 0;
}

/* Those of a node to be changed: the node may have but the first part of them. */
Attr attr_copy(const Attr *attr);

struct Node {
    OpCode op;
    uint32_t id;      /* position in its region; unique in it */
    const Type *type; /* kept by the graph: equal types are one */
    Node **in;
    int nin;
    const Attr *attr; /* never NULL */
    Region *region;   /* owner */
    Region *body;     /* LOOP, CUSTOM */
    Loc loc;          /* of the first construct that made it */
    const char *name; /* of the source variable it was bound to, or NULL */
    void *note;       /* free for one pass at a time; passes use side tables by id where they can */
};

typedef struct {
    uint32_t hash, place; /* 1 + Node.id; 0: free */
} ConsSlot;

/* Is it an operand? */
static inline bool node_reads(const Node *user, const Node *node) {
    bool reads = false;
    for (int k = 0; k < user->nin && !reads; k++) {
        reads = user->in[k] == node;
    }
    return reads;
}

struct Region {
    Graph *graph;
    Region *up;               /* the region whose LOOP or CUSTOM holds this one; NULL: an entry */
    Node *owner;              /* that LOOP or CUSTOM, once it is made */
    VEC(Node *) param;        /* BODY_PARAM nodes in order */
    VEC(Node *) node;         /* all nodes, topological */
    VEC(Node *) out;          /* results */
    struct LoopBuilder *loop; /* while it is being built */
    ConsSlot *cons;           /* hash table of the builder */
    int cons_size, cons_used;
};

typedef enum {
    SLOT_PARAM, /* region params, in the weights file */
    SLOT_STATE, /* region state */
    SLOT_INPUT  /* a pointer of the entry's *_in struct; read only */
} SlotKind;

typedef enum {
    STATE_NONE,
    STATE_LAYER,     /* running statistics: in the weights file */
    STATE_OPTIMIZER, /* slots of (train, parameter): checkpoints only */
    STATE_COUNTER,   /* step, seed, call counters, hyper-parameters: scalars, checkpoints only */
    STATE_MODEL,     /* declared by `state` at top level or in an entry */
    STATE_COPY,      /* of a parameter or layer state, `state target = q;`: checkpoints only */
    STATE_RING       /* rows of a ring, and how many were pushed: in files that ask for rings */
} StateRole;

struct Slot {
    SlotKind kind;
    StateRole role;
    const char *name; /* full path with the model: net.fc1.weight, fit.step, fit.fc1.weight.m */
    const char *file_name; /* name in safetensors files: fc1.weight, or a pattern: h.{}.weight */
    const char *c_name;    /* inputs: the field of the *_in struct */
    const char *doc;
    Type type;
    int stacked;     /* leading axes that come from `repeat` */
    int split;       /* so many are spread over files, a tensor for each place: `{}` in file_name */
    bool transposed; /* its other axes, two, are the other way round in files */
    bool frozen;     /* a parameter no train may change */
    bool trainable;  /* a parameter some train updates */
    int uses;        /* a parameter: places where a loss is made of it, see pass_shared */
    bool target;     /* an input of a train that no layer and no model sees */
    bool late;       /* it begins as zero in a phase behind the first: `init` leaves it alone */
    Slot *cursor;    /* role RING: the counter of pushes, whose next row is cursor % capacity */
    Slot *copy_of;  /* role COPY: what it begins as, and becomes when a file without it is loaded */
    int64_t lo, hi; /* range of an integer input or ring field (hi exclusive); lo == hi: none */
    bool optional;  /* an input, a number: `initial` stands for it where nothing is given */
    double initial; /* scalar counters and hyper-parameters: value after init */
    const char
        *label;   /* role COUNTER: "step", "steps", "seed", "calls", or a hyper-parameter's name */
    Entry *entry; /* inputs, counters, optimizer slots: whose; NULL: the module's */
    Loc loc;
    int index; /* position in Module.slot */
};

/* May a number be the value of an input? */
static inline bool slot_takes(const Slot *slot, double x) {
    return elem_holds(slot->type.elem, x) &&
           (slot->lo == slot->hi || (x >= (double)slot->lo && x < (double)slot->hi));
}

/* What is read of it: floats of 16 bits are stored, and computed in f32. */
static inline Type slot_value_type(const Slot *slot) {
    Type type = slot->type;
    type.elem = elem_computed(type.elem);
    return type;
}

/* How many tensors of a file it is. */
static inline int64_t slot_slices(const Slot *slot) {
    int64_t n = 1;
    for (int i = 0; i < slot->split; i++) {
        n *= slot->type.dim[i];
    }
    return n;
}

typedef enum {
    ENTRY_INIT,     /* writes every parameter and state from the seed, see Entry.begins */
    ENTRY_TRAIN,    /* one optimizer update */
    ENTRY_EVAL,     /* infer mode over rows <= B: partial sums of the train's loss and metrics */
    ENTRY_EVAL_END, /* accumulated sums -> loss and metrics */
    ENTRY_CALL,     /* `entry` of the source */
    ENTRY_LOAD,     /* one row of a data set's field: raw -> declared type */
    ENTRY_TEST      /* an expectation: only the evaluator runs it */
} EntryKind;

typedef enum {
    OUT_RESULT,
    OUT_LOSS,
    OUT_METRIC,
    OUT_GRAD_NORM,
    OUT_WRITE,
    OUT_SUM,
    OUT_EXPECT,
    OUT_PUSH,  /* rows that go into a ring's slot behind those of its cursor */
    OUT_NEED,  /* a constant: the entry is refused while its slot, a cursor, is less */
    OUT_LIMIT, /* a bool: where true the entry ends with a status, since a loop met its maximum */
    OUT_SCALED_NORM /* a gradient norm; where it is not finite the step leaves the update out */
} OutRole;

typedef struct {
    const char *name; /* field of the *_out struct; NULL for those with a slot */
    OutRole role;
    Slot *slot; /* OUT_WRITE: region result k becomes this slot's next value */
    Loc loc;
    int64_t least; /* OUT_NEED: its constant, noted by lowering, which frees the nodes */
    Elem half;     /* OUT_RESULT: the float of 16 bits that it is stored as; TY_ERROR: its own */
} EntryOut;

/* Is it a result that the caller sees? */
static inline bool out_is_result(OutRole role) {
    return role != OUT_WRITE && role != OUT_PUSH && role != OUT_NEED && role != OUT_LIMIT;
}

/* Is it looked at before anything is written (STEP_CHECK)? */
static inline bool out_is_awaited(OutRole role) {
    return role == OUT_LOSS || role == OUT_GRAD_NORM || role == OUT_LIMIT;
}

struct Entry {
    EntryKind kind;
    const char *name; /* fit, predict; of EVAL and EVAL_END: the train's name */
    const char *doc;
    Region *region; /* region->out[k] belongs to out[k] */
    Arena nodes[2]; /* of the region, in turn: each pass frees what the one before it has made */
    int passes;     /* that have run */
    const struct GradPlan *keep; /* what loops keep for their adjoints; NULL: as usual */
    VEC(Slot *) input;
    VEC(EntryOut) out;
    int dataset;        /* index in Module.dataset, -1: none */
    int64_t rows;       /* of one call: the batch, or all micro-batches */
    int64_t accumulate; /* TRAIN: micro-batches, an axis in front of the batch; 0: none */
    Entry *train;       /* of EVAL, EVAL_END */
    int begins;         /* INIT: the phase that what it writes begins with, see pass_late */
    /* EVAL: i32 scalar input, the rows in use. CALL: the same, of an entry that goes through a data
     * set: what it pushes of a batch are these rows. */
    Slot *rows_slot;
    int64_t steps, epochs; /* TRAIN: clause or -1 */
    int64_t budget;        /* TRAIN: bytes or -1 */
    bool rounding;         /* for it sums may be made in another order */
    int64_t flops_more;    /* that its loops take, since they keep less for it */
    int64_t touched;       /* bytes of a call whose loops keep what is usual; 0: as the plan says */
    int64_t total_count;   /* of the target, see pass_fuse */
    int64_t chunk;         /* bytes that are large to it, see pass_chunk */
    int copies;            /* the same */
    RowSums *sums;         /* the same */
    int64_t parts;         /* > 1: for it so many parts of the rows are made one by one */
    Elem half;             /* in what products multiply; TY_ERROR: as they are */
    bool always;           /* also where that costs time */
    int64_t rounds;        /* which do: ROUND_PRODUCTS and so on; 0: none */
    /* TEST: gradcheck(train) < tolerance. The region is the train's loss (out[0]) and its gradient
     * to each updated parameter (out[k].slot), in train mode. NULL: expectations. */
    Entry *gradcheck;
    double tolerance;
    Loc budget_loc, loc;
};

/* Of pushed rows of this type only those in use go into the ring: they are those of the batch. */
static inline bool entry_pushes_used(const Entry *entry, const Type *rows) {
    return entry->kind == ENTRY_CALL && entry->rows_slot && rows->rank > 0 &&
           rows->dim[0] == entry->rows;
}

typedef enum { FILE_AUTO, FILE_CSV, FILE_NPY, FILE_IDX, FILE_TEXT, FILE_TOKENS } FileKind;
enum { NORM_NONE, NORM_STANDARDIZE, NORM_MINMAX };
typedef enum { FIELD_COLUMNS, FIELD_RECORD, FIELD_WINDOW, FIELD_MADE } FieldSource;

/* The parts of a data set: rows to train on, held-out rows for choices, rows for the last word. */
enum { PART_TRAIN, PART_HELD, PART_TEST, PARTS };

typedef struct {
    const char *name;        /* of the `file` clause */
    const char *path[PARTS]; /* NULL: no file for that part */
    int64_t rows, seed;      /* rows > 0: there is no file, its fields are functions of the row */
    Loc loc;
} DataFile;

typedef struct {
    const char *name;
    int file; /* index in DataSet.file */
    FieldSource source;
    int64_t first, count;           /* FIELD_COLUMNS: column range */
    int64_t length, offset, stride; /* FIELD_WINDOW */
    Type type;                      /* of one row */
    int64_t lo, hi;                 /* declared range, lo == hi: none */
    Elem raw;                       /* element type handed to `load` */
    int64_t raw_count;              /* elements of a raw row */
    Entry *load;                    /* NULL: a plain conversion raw -> type.elem */
    int64_t norm;                   /* NORM_*: (x - centre) / spread, by the rows to train on */
    Slot *centre, *spread, *known;  /* states: of its type, rows they come from; or NULL */
    Loc loc;
} DataField;

typedef struct {
    const char *name;
    VEC(DataFile) file;
    VEC(DataField) field;
    int64_t every[PARTS]; /* every k-th row belongs to this part; 0: none. PART_TRAIN: unused */
    bool shuffle;
    bool stream;  /* a row of a batch goes on where that row of the batch before ended */
    Slot *cursor; /* its rows are those of a ring, by number, as many as this counts; or NULL */
    Loc loc;
} DataSet;

/* A train or an entry in its place of the run that a program makes without a name. */
typedef struct {
    const char *name;
    int phase; /* 0, 1, ...: one behind the other; those of one phase take turns */
} PhaseEntry;

/* A layer or model that was called. */
typedef struct {
    const char *path; /* net.fc1 */
    Type result;      /* of its first call; elem TY_ERROR: it gives several, or has none yet */
} Layer;

/* Whose nodes are, and what they do there. */
typedef struct {
    int layer;        /* 1 + the place in Module.layer; 0: outside of layers */
    const char *does; /* the item that does it: linear, gelu, adamw */
    bool itself;      /* that is the layer */
    bool open;        /* text of the model, so that what it calls has owners of its own */
} Owner;

/* Everything that the front end gives and the pipeline carries. */
typedef struct {
    Arena *arena;
    Graph *graph;
    const char *name; /* prefix of emitted names */
    const char *doc;
    VEC(Slot *) slot;   /* parameters and states in layout order; inputs are in Entry.input */
    VEC(Entry *) entry; /* INIT first */
    VEC(DataSet) dataset;
    VEC(PhaseEntry) phase; /* in the order of `phase`; empty: none */
    VEC(Layer) layer;
    VEC(Owner) owner; /* Loc.owner of nodes counts from 1 */
} Module;

/* What a node at `loc` belongs to, and the number of its layer; NULL and 0: nothing. */
const Owner *module_owner(const Module *module, Loc loc);
int module_layer(const Module *module, Loc loc);
/* The phase in which an entry, or the train that it evaluates, stands; -1: in none. */
int module_phase(const Module *module, const Entry *entry);

/* Hash table of what is kept once, see compiler/keep.h. */
typedef struct {
    const void **at;
    int used, size;
} KeepTable;

/* What the source says of what a node makes in loops (`@keep`, `@remat`): it is kept for the
 * derivative, or made again. Of what is made again the op does not matter. */
typedef struct {
    Loc loc;
    OpCode op;
    bool keep;
} KeepHint;

struct Graph {
    Arena *arena; /* of regions and nodes; a stage may put another in its place */
    Arena *spent; /* of a region that a pass reads: it may go once that is copied; or NULL */
    Arena *keep;  /* of attributes and types, which go from stage to stage */
    KeepTable attrs, types;
    VEC(KeepHint) hint;
    Region *region; /* where the makers below put nodes: the innermost open one */
    Loc loc;        /* given to new nodes */
    bool exact;     /* given to new products */
    Elem float_type;
    uint32_t next_table;
};

/* --- building -------------------------------------------------------------------------------- */
Graph *graph_new(Arena *arena, Elem float_type);
/* The region that was given is copied: its memory may serve what comes. */
void graph_spend(Graph *g);
Region *region_new(Graph *g, Region *up);
/* Does any node of the region, or of a body in it, pass the test? */
bool region_any(const Region *region, bool (*test)(const Node *node));
/* Makes `region` the current one; returns the one before it. */
Region *graph_enter(Graph *g, Region *region);
void graph_leave(Graph *g, Region *before);

/* The general maker: every other one calls it. `type` is used by ops whose rows say so. */
Node *graph_add(Graph *g, OpCode op, Node *const *in, int nin, const Attr *attr, Type type);
Node *graph_name(Node *node, const char *name); /* keeps the first name; returns node */
/* The same value seen from the current region: itself, or the invariant that carries it. */
Node *graph_import(Graph *g, Node *node);

Node *node_const(Graph *g, Elem elem, double value);
Node *node_int(Graph *g, Elem elem, int64_t value);
Node *node_full(Graph *g, Type type, double value); /* CONST, broadcast */
Node *node_table(Graph *g, Type type, const double *data);
Node *node_slot(Graph *g, Slot *slot);
Node *node_iota(Graph *g, Type type, int axis); /* elem of type is i32 (or any integer) */
Node *node_map1(Graph *g, OpCode op, Node *a);
Node *node_map2(Graph *g, OpCode op, Node *a, Node *b);          /* a scalar operand is broadcast */
Node *node_map3(Graph *g, OpCode op, Node *a, Node *b, Node *c); /* scalars are broadcast */
Node *node_select(Graph *g, Node *c, Node *a, Node *b);
Node *node_cast(Graph *g, Node *a, Elem elem);
Node *node_widen(Graph *g, Node *a); /* a CAST that is `exact` */
Node *node_reshape(Graph *g, Node *a, int rank, const int64_t *dim);
Node *node_permute(Graph *g, Node *a, const int *map);
Node *node_slice(Graph *g, Node *a, const int64_t *lo, const int64_t *extent, const int64_t *step);
Node *node_slice_axis(Graph *g, Node *a, int axis, int64_t lo, int64_t extent, int64_t step);
Node *node_index_axis(Graph *g, Node *a, int axis, int64_t at); /* drops the axis */
Node *node_pad(Graph *g, Node *a, const int64_t *lo, const int64_t *hi, Border border,
               double value);
/* Result axis i is new when bit i of `axes` is set (its extent from dim), else the next of a's. */
Node *node_broadcast(Graph *g, Node *a, uint32_t axes, int rank, const int64_t *dim);
Node *node_broadcast_to(Graph *g, Node *a, Type like); /* a or like is a scalar, or equal shapes */
Node *node_flip(Graph *g, Node *a, uint32_t axes);
Node *node_window(Graph *g, Node *a, int axis, int64_t s, int64_t d, int64_t p, int64_t count,
                  int64_t taps, Border border, double value);
Node *node_overlap_add(Graph *g, Node *a, const Attr *window_attr);
/* Of many, concatenations of CONCAT_PARTS at most: each part has loops of its own in one kernel,
 * whose axes are few. */
enum { CONCAT_PARTS = 12 };
Node *node_concat(Graph *g, Node *const *in, int nin, int axis);
Node *node_fold(Graph *g, OpCode op, Node *a, uint32_t axes);
Node *node_argfold(Graph *g, OpCode op, Node *a, int axis);
Node *node_cumsum(Graph *g, Node *a, int axis, bool reverse, bool exclusive);
Node *node_contract(Graph *g, Node *a, Node *b, const int8_t *la, const int8_t *lb,
                    const int8_t *lo, int rank);
Node *node_gather(Graph *g, Node *x, Node *index, int batch);
Node *node_scatter_add(Graph *g, Node *u, Node *index, int batch, Type type);
/* The first `most` along the last axis; see compiler/order.h, which may be asked for any axis. */
Node *node_places(Graph *g, Node *a, bool descending, int64_t most);
Node *node_random(Graph *g, Dist dist, uint64_t site, Node *const *key, int nkey, Type type);
Node *node_stop(Graph *g, Node *a);
/* The value, equal to none with another site: what a derivative is taken to. */
Node *node_point(Graph *g, Node *a, uint64_t site);
Node *node_grad(Graph *g, Node *value, Node *point, Node *cotangent);
/* The derivative of the value along a direction at the point, two GRADs. */
Node *node_jvp(Graph *g, Node *value, Node *point, Node *direction);
/* `body` was made by region_new(g, current region) with its params added by region_param; it holds
 * the adjoint: params (args..., u) and one result for each arg (none NULL: give zeros). */
Node *node_custom(Graph *g, Node *value, Node *const *arg, int narg, Region *body);
Node *region_param(Region *region, Type type); /* the next BODY_PARAM */
void region_result(Region *region, Node *node);

/* --- loops ----------------------------------------------------------------------------------- */
/* Usage: open; carry/xs (their starts belong to the outer region); build the body with the makers
 * (the current region is the body); next/emit; close gives the LOOP in the outer region. Carries
 * may be added while the body is built. Values of outer regions used in the body become invariants
 * by themselves. */
typedef struct LoopBuilder LoopBuilder;
LoopBuilder *loop_open(Graph *g, int64_t trip, bool reverse);
void loop_checkpoint(LoopBuilder *loop, int64_t kept); /* Attr.checkpoint; NONE at first */
void loop_aside(LoopBuilder *loop);                    /* Attr.aside */
void loop_while(LoopBuilder *loop, int carry);         /* Attr.go */
void loop_until(LoopBuilder *loop, Node *last);        /* Attr.last; a value of the region around */
Node *loop_index(LoopBuilder *loop);                   /* i32 scalar */
int loop_carry(LoopBuilder *loop, Node *start);        /* its number; value: loop_carry_value */
Node *loop_carry_value(const LoopBuilder *loop, int carry);
Node *loop_xs(LoopBuilder *loop, Node *stack); /* the slice of this iteration */
void loop_next(LoopBuilder *loop, int carry, Node *next);
int loop_emit(LoopBuilder *loop, Node *slice); /* its number among ys */
Node *loop_close(LoopBuilder *loop);
Node *loop_final(Graph *g, Node *loop, int carry);
Node *loop_stack(Graph *g, Node *loop, int y);

/* --- rebuilding ------------------------------------------------------------------------------ */
/* Copies what the results of `old` reach into a new region, dead nodes, carries, invariants,
 * stacks left behind. `visit` (may be NULL) sees every node but LOOP, BODY_PARAM after its
 * operands were made new (current region of g is set) and returns the new node; returning NULL
 * asks for the plain copy. */
typedef Node *(*RebuildVisit)(void *ctx, Graph *g, const Node *old, Node *const *in);
Region *region_rebuild(Graph *g, const Region *old, RebuildVisit visit, void *ctx);
/* The same, but `visit` may change each loop before it is closed. */
typedef void (*LoopVisit)(void *ctx, Graph *g, LoopBuilder *loop);
Region *region_rebuild_loops(Graph *g, const Region *old, LoopVisit visit, void *ctx);
/* The same where values may be turned (compiler/turn.h): what goes into loops and comes out of them
 * is what lies behind the views. A carry goes through as it starts. Where its next value is turned
 * in another way, that is noted at the parameter of `old` for a second try, in `notes`, and
 * *differs is set. */
Region *region_rebuild_turned(Graph *g, const Region *old, RebuildVisit visit, void *ctx,
                              Arena *notes, bool *differs);
/* Loops of one region that become one. What goes into the body of another loop has its trip, no
 * carries, no end of its own, and reads nothing that is made of that loop but stacks, slice by
 * slice. */
typedef struct {
    const int *order; /* nodes as they are copied: operands in front, those of guests too */
    const int *next;  /* by LOOP: the next one that goes into the same body; 0: none */
} LoopMerge;
typedef const LoopMerge *(*MergePlanner)(void *ctx, Arena *scratch, const Region *old);
/* The same with the loops of each region, and those in bodies, merged as `merges` says; NULL: as
 * they are. */
Region *region_rebuild_merged(Graph *g, const Region *old, MergePlanner merges, void *ctx);
/* Nodes of `old` that are made in another way: `needed` is copied first, then `make` says what
 * nodes become, by `map`, at least those of `given`, of which `needed` is no part and reads
 * nothing; what is left of `old` is made of these. */
typedef struct {
    const bool *needed, *given;
    void (*make)(void *ctx, Graph *g, Node **map);
    void *ctx;
} RebuildGiven;
Region *region_rebuild_given(Graph *g, const Region *old, const RebuildGiven *given);
/* Stacks that are made again where they are read, slice by slice, by LOOP of a region: which of its
 * results are; NULL: none of it. What reads one is a loop of the same trip, slice by slice. What
 * they are made of is at hand there: of a carry that changes, the stack of its values or of its
 * next ones, which is not made again. */
typedef const bool *const *(*RematPlanner)(void *ctx, Arena *scratch, const Region *old);
/* The same with the stacks of each region, and those in bodies, made again as `again` says; NULL:
 * none of them. */
Region *region_rebuild_remat(Graph *g, const Region *old, RematPlanner again, void *ctx);
/* Carries whose last value nothing behind the loop reads but as the last slice of the stack of
 * their next values, which the loop has then: by LOOP of a region, which of its carries; NULL: none
 * of it. Their loops do not end themselves. */
typedef const bool *const *(*EndsPlanner)(void *ctx, Arena *scratch, const Region *old);
Region *region_rebuild_ends(Graph *g, const Region *old, EndsPlanner ends, void *ctx);
/* The slice of operand `x` of `old` that a loop goes through, while that is open, made in its body
 * of what nodes of `old` have become; NULL: it is a slice of the stack. */
typedef Node *(*SliceMaker)(void *ctx, Graph *g, LoopBuilder *loop, const Node *x,
                            Node *const *map);
Region *region_rebuild_sliced(Graph *g, const Region *old, SliceMaker slice, void *ctx);
/* A copy of the region that `change` changes in place, without what nobody reads then. */
Region *region_changed(Graph *g, const Region *region, void (*change)(Graph *g, Region *own));
/* The first `readers` nodes of the region and its results read stands[id] for the node of that id,
 * of the first `count`; NULL: the node itself. */
void region_read_instead(Region *region, Node *const *stands, int count, int readers);
/* Puts each node of the region behind what it reads, after operands were changed in place. Nothing
 * may be built in it any more. */
void region_settle(Region *region);
/* Copies node `old` with new operands into the current region through the builder. */
Node *graph_copy(Graph *g, const Node *old, Node *const *in);
/* Instantiates region `body` in the current region with `arg` in place of its params; the results
 * go to out[body->out.count]. */
void region_inline(Graph *g, const Region *body, Node *const *arg, Node **out);

/* The float of 16 bits that a value is known to be by how it is made: it was rounded so, is read
 * from what is stored so, or moves the elements of such values; TY_ERROR: none. */
Elem node_half(const Node *node);
/* Is it that one, or a constant that is one? */
bool node_holds_half(const Node *node, Elem half);

/* Is it a constant 0, also a repeated one? */
bool node_is_zero(const Node *n);
/* How many nodes and results of the region read it. */
int region_readers(const Region *region, const Node *x);

/* About what it takes to compute a node, one addition each. */
double node_flops(const Node *n);

/* BUGs with stage and node when `region` breaks an invariant of its stage. */
typedef enum { STAGE_BUILT, STAGE_GRAD, STAGE_OPTIMISED } GraphStage;
void region_verify(const Region *region, GraphStage stage);
/* A model text that is read again as the same graph, for --dump. */
void module_dump(const Module *module, FILE *out);
void region_dump(const Region *region, FILE *out, int indent);

/* Label extents of a CONTRACT; extent[] has 3*MD_RANK places. Returns the number of labels. */
int contract_labels(const Node *contract, int64_t *extent);
/* The place of a label in a list of a contraction; -1: it is not there. */
int find_label(const int8_t *list, int n, int label);

#endif
