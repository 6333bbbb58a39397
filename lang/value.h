/* value: what an expression is worth while a program is elaborated.
 *
 * Numbers that are known now stay numbers; everything else is a node of the graph with its shape.
 * The axes of a tensor's node are first its span (one axis for each index of an enclosing index
 * notation that the value depends on, in any order), then its own axes. A scalar of index notation
 * thus has only a span. Values are never changed once made, so they share their axes. */
#ifndef MDLC_LANG_VALUE_H
#define MDLC_LANG_VALUE_H

#include "compiler/graph.h"

typedef struct Item Item;
typedef struct Index Index;
typedef struct LoopScope LoopScope;
typedef struct Instance Instance;

/* An extent. `name` is the declared dim it belongs to: dims are compared by name. */
typedef struct {
    int64_t size;
    const Item *name;
    /* While an evaluation is elaborated: elements of this axis for one row of the batch, if the
     * batch is its outermost part; 0: no batch in it; BATCH_LOST: in it, but not outermost. */
    int64_t batch;
} Dim;
#define BATCH_LOST (-1)

typedef enum {
    V_POISON, /* of an expression with an error: whatever uses it stays silent */
    V_INT,
    V_REAL,
    V_BOOL,
    V_STRING,
    V_LIST, /* [a, b]: shapes, mostly */
    V_TENSOR,
    V_RECORD,   /* several results */
    V_INSTANCE, /* `new` */
    V_PATH      /* net, net.fc1: a model or a part of it */
} ValueKind;

typedef struct Value Value;
struct Value {
    ValueKind kind;
    int64_t integer;    /* INT */
    const Item *dim_of; /* INT: the declared dim that it is the size of, or NULL */
    double real;
    Elem as; /* INT, REAL: what it was converted to; TY_ERROR: it takes the type that it meets */
    bool truth;
    const char *text;   /* STRING, PATH */
    const Value **item; /* LIST, RECORD */
    const char **field; /* RECORD */
    int count;
    Instance *instance;
    Item *model; /* PATH: where it begins */
    /* TENSOR */
    Node *node;
    int nspan, rank;
    Index *const *span;
    const Dim *dim;
    bool ranged; /* an integer in lo..hi (hi exclusive) */
    int64_t lo, hi;
    bool end;              /* the node lives in the end region of an evaluation */
    const LoopScope *loop; /* it is the index of this loop */
    bool from_shape;       /* LIST: shape(x) of a value with a span */
};

extern const Value value_poison;
extern const Value value_nothing; /* of a call that only does something */

const Value *value_int(Arena *arena, int64_t i);
const Value *value_dim(Arena *arena, Dim dim); /* a V_INT that remembers its name */
const Value *value_real(Arena *arena, double r);
const Value *value_bool(Arena *arena, bool b);
const Value *value_string(Arena *arena, const char *s);
const Value *value_list(Arena *arena, const Value *const *item, int count);
const Value *value_tensor(Arena *arena, Node *node, int rank, const Dim *dim);
const Value *value_scalar(Arena *arena, Node *node);
const Value *value_ranged(Arena *arena, const Value *v, int64_t lo, int64_t hi);
/* Room for so many indices and axes of `v`, which keeps those that it has: they are its own. */
typedef struct {
    Index **span;
    Dim *dim;
} Axes;
Axes value_axes(Arena *arena, Value *v, int nspan, int rank);
bool value_same_span(const Value *a, const Value *b); /* the same indices in the same order */
/* The same value by another node of the same shape. */
const Value *value_with(Arena *arena, const Value *v, Node *node);

bool value_is_number(const Value *v); /* INT or REAL */
double value_number(const Value *v);
Elem value_elem(const Value *v); /* of a tensor */
Dim value_to_dim(const Value *v);

/* For messages: "T = 64", "[B, 64]", "a tensor f32[B, 64]". */
const char *dim_text(Arena *arena, Dim dim);
const char *shape_text(Arena *arena, int rank, const Dim *dim);
const char *value_text(Arena *arena, const Value *v);
const char *type_text(Arena *arena, Type type); /* "f32[64]" */
const char *value_kind_text(const Value *v);

#endif
