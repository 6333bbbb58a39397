/* random_text: random model texts that are right by construction, with what they must give.
 *
 * Entries `formula<n>` are made of index notation, folds, slices, reshapes, loops, branches and ops
 * of their own. Each is a small tree (Stmt, Sx) that is printed as text and, apart from that,
 * interpreted element by element over the data of its inputs: what the compiler makes of the text
 * is compared with what the text means, by code that shares nothing with the compiler. Entries
 * `smooth<n>` give a scalar and its derivatives to all inputs. A model with layers of the library
 * and of its own, second sets, states, trains and a check of their gradients stand beside them.
 *
 * Numbers written are multiples of 1/8 and inputs are floats, so that both sides mean the same. Of
 * 16 bits are inputs, what is converted of numbers that no sum has rounded before, states, and
 * parameters and products by a train's `precision`. */
#ifndef MDLC_TESTS_RANDOM_TEXT_H
#define MDLC_TESTS_RANDOM_TEXT_H

#include "tests/fuzz/mutate.h"

#include "compiler/type.h"

enum { RT_RANK = 4, RT_INDICES = 16, RT_TERMS = 2, RT_LOOPS = 4, RT_MOST = 8 };

/* A tensor that has a name. Floats are within -size..size, integers in lo..hi. */
typedef enum { RT_FLOAT, RT_INT, RT_BOOL } RtKind;
typedef struct {
    const char *name;
    int id;
    RtKind kind;
    int rank;
    int64_t dim[RT_RANK];
    double size;
    int64_t lo, hi;
    bool ranged; /* the compiler knows lo..hi too */
    bool exact;  /* FLOAT: no sum, so both sides round it to the same neighbour */
    Elem half;   /* FLOAT: a float of these 16 bits; TY_ERROR: a plain one */
} RtVar;

typedef struct Sx Sx;

/* One place between brackets: a sum of indices, or a value. */
typedef struct {
    int nterm;
    struct {
        int index; /* into the names of indices; negative: -1 - the loop */
        int64_t by;
    } term[RT_TERMS];
    int64_t add;
    Sx *value;
} RtPlace;

typedef enum { SX_NUM, SX_VAR, SX_AT, SX_INDEX, SX_CALL, SX_BIN, SX_FOLD, SX_SELECT } SxKind;
typedef enum { RT_NONE, RT_NUMBER, RT_EDGE, RT_WRAP } RtBorder;

/* An element. A whole tensor's expression is one too: SX_VAR is the element at hand. */
struct Sx {
    SxKind kind;
    RtKind type;
    double size;    /* of floats */
    int64_t lo, hi; /* of integers */
    bool ranged;
    const char *op;   /* CALL: the function; BIN: the operator; FOLD: its word */
    double number;    /* NUM; the value of a border */
    const RtVar *var; /* VAR, AT */
    RtPlace place[RT_RANK];
    RtBorder border;
    int index;          /* INDEX */
    bool written[2];    /* FOLD: the extent of an index */
    int nfold, fold[2]; /* FOLD: its indices */
    Sx *kid[3];
};

typedef enum {
    ST_POINT, /* y = e, over whole tensors */
    ST_INDEX, /* y[i, j] = e */
    ST_SLICE,
    ST_AS,
    ST_AXES, /* a fold or running sum along axes, flip */
    ST_JOIN, /* concat, stack */
    ST_LOOP,
    ST_WHEN,
    ST_CALL
} StKind;

typedef struct Stmt Stmt;
typedef VEC(Stmt *) Stmts;
typedef VEC(const RtVar *) RtVars;

typedef struct {
    const RtVar *var, *start, *next; /* `h`, what it begins as, what it becomes in the body */
} RtCarry;
typedef struct {
    const RtVar *out, *of;
    int axis; /* where the loop's axis goes; -1: in front, without indices */
} RtEmit;

/* How often the body of a loop runs, and at what. */
typedef enum { RT_SCAN, RT_REPEAT, RT_WHILE, RT_ODE } RtLoopKind;

/* A method of Runge and Kutta: the rows below the diagonal of its tableau, its weights, and the
 * weights of slopes in its error, if it has an estimate. */
enum { RT_STAGES = 4, RT_ATTEMPTS = 60, RT_SEARCH = 120 /* more, for the place of an end */ };
typedef struct {
    const char *name;
    int stages, nerror, order;
    double below[RT_STAGES][RT_STAGES], weight[RT_STAGES], error[RT_STAGES + 1];
} RtMethod;

typedef struct {
    RtMethod method;
    Sx *from, *to;
    int nat;
    double at[2];
    int64_t steps; /* equal ones; 0: by their error, */
    double rtol, atol, first;
} RtOde;

struct Stmt {
    StKind kind;
    const RtVar *out;
    Sx *e; /* POINT, INDEX */
    int index[RT_RANK];
    bool written[RT_RANK]; /* the extent of this index */
    const RtVar *from[3];
    int nfrom;
    const char *op; /* AXES, JOIN: the function */
    int axis;
    bool whole; /* AXES: over everything */
    struct {
        int64_t lo, hi; /* hi < lo: one place, and the axis goes */
    } cut[RT_RANK];
    /* LOOP */
    RtLoopKind form;
    int loop; /* 0, 1, ...: its number among all */
    int64_t trip;
    const RtVar *count; /* WHILE: iterations so far; ODE: the time */
    Sx *cond;           /* WHILE: goes on while it holds; ODE: ends where it does, or NULL */
    RtOde ode;
    VEC(RtCarry) carry;
    VEC(RtEmit) emit;
    Stmts body; /* LOOP, WHEN, CALL */
    /* CALL: an op with these parameters, and what it returns */
    RtVars param;
    const RtVar *result;
};

typedef struct {
    const char *name;
    RtVars input, result;
    Stmts body;
} RtEntry;

typedef struct {
    Arena *arena;
    Random random;
    Elem elem; /* of floats */
    Text ops, text;
    VEC(RtEntry *) entry;
    int nvar, nindex, nloop, nop, depth;
    int64_t extent[1024]; /* of index n */
    RtVars scope;         /* what may be read here */
    int loop[RT_LOOPS];   /* open ones with an index */
    int64_t trip[RT_LOOPS];
    int budget; /* statements left */
    int64_t most, work;
    bool smooth;            /* no kinks */
    bool variable[RT_MOST]; /* in an op: the extents that its signature names */
} RandomText;

/* A program: r->text. The same seed gives the same. */
void random_text(RandomText *r, Arena *arena, uint64_t seed, Elem elem);

/* --- shared by random_*.c and text_*.c -------------------------------------------------------- */

int64_t rt_below(RandomText *r, int64_t n);
bool rt_chance(RandomText *r, int percent);
double rt_number(RandomText *r, double most);    /* a multiple of 1/8 */
const char *rt_extent(RandomText *r, int64_t n); /* 3, or the name of a dim */
void rt_model(RandomText *r);

/* RtWhere an expression stands: the indices that it may use, or the tensor that all of its tensors
 * are like. */
typedef struct {
    const RtVar *like; /* NULL: in index notation */
    int n, index[8];
    int depth;
} RtWhere;

Sx *rt_float(RandomText *r, RtWhere *w, int depth);
Sx *rt_int(RandomText *r, RtWhere *w, int depth); /* within -500..500 */
Sx *rt_bool(RandomText *r, RtWhere *w, int depth);
Sx *rt_num(RandomText *r, RtKind type, double x);
Sx *rt_whole(RandomText *r, const RtVar *v);
Sx *rt_bin(RandomText *r, const char *op, RtKind type, Sx *a, Sx *b, double size);
Sx *rt_short(RandomText *r, Sx *e, Elem half);  /* bf16(e), f16(e) */
Elem rt_half(RandomText *r, int percent);       /* of 16 bits, so often; else TY_ERROR */
Sx *rt_calm(RandomText *r, Sx *e, double most); /* made not larger than `most` */
/* Late ones more often: chains grow. NULL: none of the kind. */
const RtVar *rt_some_var(RandomText *r, RtKind kind, int least_rank);
bool rt_same_shape(const RtVar *a, const RtVar *b);
/* Can the compiler tell how far an index of `e` goes? */
bool rt_extent_known(const RandomText *r, int index, const Sx *e);
void rt_write_extents(RandomText *r, Sx *e); /* which folds say so */

RtVar *rt_var_new(RandomText *r, RtKind kind, int rank, const int64_t *dim);
Stmt *rt_stmt_new(RandomText *r, Stmts *list, StKind kind);
/* y = e, over whole tensors of one shape. */
const RtVar *rt_point(RandomText *r, Stmts *list, const RtVar *like, double most);
void rt_statements(RandomText *r, Stmts *list, int n);
void rt_loop(RandomText *r, Stmts *list); /* of any form */
int64_t rt_count(const RtVar *v);
bool rt_depends(const Sx *e); /* on something of the run */

void text_statements(RandomText *r, const Stmts *list, int indent, Text *out);
void text_op(RandomText *r, const char *name, const Stmt *call);
void text_type(RandomText *r, const RtVar *v, Text *out);

/* What the results of an entry are, each type_count numbers, from the data of its inputs. */
double **text_meaning(Arena *arena, const RandomText *r, const RtEntry *entry,
                      const double *const *input);

#endif
