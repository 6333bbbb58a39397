/* context: the state of one elaboration and what all of its files need.
 *
 * Elaboration is a typed abstract interpretation: statements are run once with values that are
 * numbers or graph nodes; ops and layers are inlined at each call with their dim variables bound to
 * the shapes of the arguments. */
#ifndef MDLC_LANG_CONTEXT_H
#define MDLC_LANG_CONTEXT_H

#include "compiler/compile.h"
#include "lang/scope.h"

typedef struct Elab Elab;
typedef struct Frame Frame;
typedef struct EntryScope EntryScope;
typedef struct IndexNotation IndexNotation;
typedef struct Evaluation Evaluation;
typedef struct Training Training;
typedef struct Naming Naming;
typedef struct ModelPart ModelPart;

typedef struct {
    const char *name;
    Loc loc;
} Segment;

typedef struct {
    const char *name;
    const Value *value;
} Given;

/* A state inside a loop: a carry, or (stacked by `repeat`) a slice in and a slice out. */
typedef struct {
    Slot *slot;
    Node *value;
    bool stacked, written;
    int number; /* of the carry or stack */
} LoopState;

typedef struct {
    const char *path;
    int count;
} Visit;

typedef struct {
    Slot *slot;
    Node *node;
    Loc loc;
} SlotWrite;

typedef struct {
    Node *node;
    Loc loc;
} NodePlace;

/* A ring must hold so many rows before the entry may be called. */
typedef struct {
    Slot *cursor;
    int64_t rows;
    Loc loc;
} RowNeed;

typedef struct {
    const Item *item;
    Dim dim;
    Loc loc;
} Rebind;

typedef struct {
    Slot *slot;
    Node *node;
} InitialValue;

/* One body that is being inlined: of an op, layer, model, optimizer, entry or train. */
struct Frame {
    Frame *up;        /* the caller; NULL: an entry */
    Item *item;       /* NULL: an entry or train */
    Loc call;
    const char *path; /* where its parameters live: "net.fc1"; NULL: it cannot own any */
    const char *file; /* the same in files: "fc1"; "" for the only model; NULL: as `path` */
    Naming *turn;     /* what says that tensors here are transposed in files; NULL: nothing */
    bool frozen;
    Frame *names;         /* whose labels: its own, or with the label `_` the caller's */
    VEC(Segment) segment; /* labels and parameters used so far */
    NameList segments;    /* their names */
    /* `...` of the signature */
    bool pack_bound;
    int npack;
    Dim pack[MD_RANK];
    /* stacking of parameters: loops opened inside this call count, then those of the home */
    LoopScope *call_loop;
    const Instance *instance; /* the home, if it is not the caller */
    bool root;                /* a model: nothing outside counts */
    /* draws */
    Frame *draw_owner; /* whose path and counter number the draws */
    const char *draw_path;
    int draws;
    bool returned;
    const Value *result;
    Loc result_loc; /* of the `return` that gave it */
};

/* `new`: a layer with its arguments, called later. */
struct Instance {
    Item *item;
    bool failed; /* a call of it has an error that was reported */
    const char *path, *file;
    Naming *turn;
    Loc loc;
    bool frozen;
    Frame *frame;     /* home; NULL: a copy of a model */
    LoopScope *loop;  /* home */
    VEC(Given) given; /* by `new`, or by the model that a part belongs to */
    bool part;        /* of a model, called from outside of it: part.h */
    int nindex;       /* a part: the iterations of the `repeat` loops around it, outermost first */
    const Value **index;
    int64_t trip[MD_RANK]; /* of those loops */
};

typedef struct {
    const char *name;
    Loc loc;
    const Value *value; /* of the iteration: nodes of the loop's body */
    int position;       /* place of the stacked axis */
    bool reversed;      /* the last iteration stands first */
    int number;         /* among the ys of the loop */
} Emitted;

struct LoopScope {
    LoopScope *up;
    LoopBuilder *builder;
    Region *outer, *body;
    Dim trip;
    bool repeat; /* parameters inside are stacked */
    bool stages; /* of an ode: its iterations are not for the user to see */
    bool times;  /* then: it has an iteration for each time of `at`, for emits */
    const char *index_name;
    const Value *index;
    Scope *scope; /* of its body */
    int depth;
    VEC(Emitted) emitted;
    VEC(LoopState) state;
    Node *over;     /* a `while` in the body met its maximum, now or before; or NULL */
    int over_carry; /* the carry that says so */
    Loc over_loc;
};

/* A state as the next statement of the entry sees it, outside of all loops. */
typedef struct {
    Slot *slot;
    Node *value;
    bool written;
} StateValue;

typedef struct {
    const char *path; /* of the model, or of a copy */
    Region *region;
    int narg;
    const Value **arg;
    const char *label; /* of the call, or NULL: others of it are another value, with other draws */
    bool frozen, draws;
    bool exact; /* its products are */
    Loc loc;
    const Value *result;
    bool uses_state;
    int moves; /* of states, before it */
} ModelCall;

/* What an entry point of the module needs while its body runs. */
struct EntryScope {
    Entry *entry;
    bool train;   /* mode: train or infer */
    bool dropped; /* a body is looked at by itself: what only callers know is taken as it comes */
    const char *name;
    Node *row[2];           /* of a made row: the keys of its draws, seed and number; else NULL */
    const Value *row_shape; /* of its field: what a draw without a shape gets */
    Slot *calls;            /* counter of an entry that draws, made on first use */
    Slot *step, *steps;
    bool in_update; /* `step` counts the update at hand */
    bool passes;    /* goes through a data set in a phase: the last batch may have few rows */
    VEC(ModelCall) call;
    int64_t draws; /* made so far */
    VEC(Visit) visit;
    NameList visits; /* their paths */
    VEC(StateValue) state;
    int state_uses, state_moves; /* so far, and those that make an equal call another one */
    int by_mode;                 /* blocks around that only a train, or only an entry has */
    VEC(SlotWrite) write;        /* parameters assigned by `<-` */
    VEC(SlotWrite) push;         /* rows of rings */
    VEC(RowNeed) need;
    VEC(NodePlace) over;         /* where true, a `while` met its maximum */
    Evaluation *evaluation;     /* NULL: not an evaluation */
    Training *training;         /* NULL: not a train */
    Entry *train_entry;         /* whose counters and hyper-parameters it reads */
    VEC(const Ast *) gradcheck; /* of a test */
};

typedef struct {
    Slot *slot;
    const Item *model;
    Dim dim[MD_RANK]; /* as written, without stacking axes */
    int rank;
    int order;
    Node *initial; /* in the INIT region */
} Parameter;

/* A body is elaborated once a call: what was said of a place is not said again. */
typedef struct {
    Loc loc;
    int id;
} Said;

/* The names that a body takes derivatives by. */
typedef struct {
    const void *body; /* the item, or the file of an entry or a train */
    NameList name;
} Points;

struct Elab {
    Compile *c;
    Arena *arena;   /* of the module and its texts */
    Arena *scratch; /* of values, scopes and calls: until what is elaborated just now is done */
    Arena *lasting; /* of values that others will meet too: until the module is there */
    Module *module;
    Graph *g;
    File *root;
    VEC(File *) file;
    Scope *scope;
    Frame *frame;
    LoopScope *loop;
    IndexNotation *index;
    EntryScope *entry;
    int stamp; /* of the rebinding in force */
    VEC(Rebind) rebind;
    int next_index, depth;
    VEC(Parameter *) param;
    NameList params;   /* their paths */
    VEC(ModelPart *) part; /* layers that models call, as they are called: part.h */
    VEC(Slot *) state; /* all other slots */
    NameList states;   /* their paths */
    NameList owners;   /* keys of Module.owner */
    Entry *init;
    VEC(InitialValue) initial; /* of `state`, in the INIT region */
    Slot *seed;
    int nmodel;     /* models in the root file */
    Naming *naming; /* of the statement at hand; NULL: it has no `@name` */
    bool named;     /* some statement has one */
    Paths no_master; /* parameters under these are kept in bf16 */
    bool in_adjoint;
    VEC(Points) points; /* of the bodies that names were bound in: point.h */
    uint64_t point;     /* the last one */
    const char *each; /* NULL, or the path below models that stands for them: copies.h */
    int errors;       /* every one, also those that were said before and are not printed again */
    int unnamed; /* of these that say that @name has nothing to name */
    VEC(Said) said;
};

/* One error, with the calls it was met in as notes. Returns poison, so that it can be returned. */
const Value *elab_error(Elab *e, Loc loc, int id, const char *fmt, ...) MDLC_PRINTF(4, 5);
/* Is this message the first of its kind about `what`, in the file or in the body at hand? If not,
 * it counts as an error and is not to be printed. */
bool elab_first(Elab *e, int id, const char *what);
bool elab_first_in_body(Elab *e, int id, const char *what);
/* What is not supported yet: said once a feature, however often a file uses it. */
const Value *elab_later(Elab *e, Loc loc, int id, const char *fmt, ...) MDLC_PRINTF(4, 5);
void elab_warn(Elab *e, Loc loc, int id, const char *fmt, ...) MDLC_PRINTF(4, 5);
/* What is written here for a name of another language; false: not known. */
bool elab_hint_foreign(Elab *e, const char *name);
/* What an argument of other libraries is called here, of an item with these parameters. */
bool elab_hint_foreign_arg(Elab *e, const char *name, const Ast *params);
void elab_hint_nearest(Elab *e, const Nearest *n);
/* A note that says where a declared dim comes from; nothing for a plain size. */
void elab_note_dim(Elab *e, Dim dim);
bool elab_ok(const Value *v); /* not poison */
/* Called where poison ends up: some message must have explained it, or parts of the program would
 * be missing without a word. */
void elab_explained(const Elab *e);
/* False and an error if v is known only at the end of an evaluation. */
bool elab_plain(Elab *e, Loc loc, const Value *v);
/* False and an error inside an adjoint, which sees its arguments and the cotangent alone; `what`
 * belongs to the run. */
bool elab_outside_adjoint(Elab *e, Loc loc, const char *what);
/* Sets the place of new nodes; texts of the library keep the place of the call. */
Loc elab_at(Elab *e, Loc loc);

/* A slot of the module that is no parameter. */
Slot *elab_state_slot(Elab *e, StateRole role, const char *name, Type type, Entry *entry, Loc loc);
Slot *elab_counter(Elab *e, const char *label, const char *name, Elem elem, double initial,
                   Entry *entry, Loc loc);

#endif
