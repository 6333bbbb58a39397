/* eval: the reference evaluator. Interprets a region in double, loops included.
 *
 * Technique: one rule an op (column `eval` of op.def) on dense row-major values; a value dies with
 * its last use and its memory is used again, so a long loop needs what one iteration needs. Sums
 * run in index order. Floats are computed in double and stay double, or are rounded to the node's
 * element type after each op; integers are exact and wrap to their width. RANDOM gives the numbers
 * of runtime/rng.h: the same draws as emitted programs, whatever the rounding.
 *
 * Needs regions without GRAD; gives the values of their results; changes nothing. */
#ifndef MDLC_COMPILER_EVAL_H
#define MDLC_COMPILER_EVAL_H

#include "compiler/graph.h"

/* One element: `f` of a float, `i` of an integer or bool (0 or 1). */
typedef union {
    double f;
    int64_t i;
} Num;

typedef struct Value Value;
struct Value {
    Type type;
    Num *at;     /* type_count(type) elements, row-major; NULL for a tuple */
    Value *part; /* of a tuple: the results of a LOOP, carries first */
    int nparts;
};

typedef struct {
    bool round;     /* to the element type after each op */
    bool smooth;    /* roundings to 16 bits change nothing, as derivatives go through them */
    bool check_nan; /* remember the first node that gives a NaN or an infinity */
    /* Not 0: each computed float that needs more than 24 bits, or may on the way (a sum), is moved
     * by up to this part of its size, of a sum that of its terms; how far the results move is how
     * much rounding they feel. The same seed moves the same way. */
    double noise;
    uint64_t noise_seed;
} EvalOptions;

typedef struct Eval Eval;
Eval *eval_open(Arena *arena, EvalOptions options);
/* Keeps what an entry's results say is stored: `out` is as eval_region gave it. */
void eval_store(Eval *ev, const Entry *entry, const Value *out);
/* The data is copied; numbers of integer slots are converted, so they must be below 2^53. */
void eval_bind(Eval *ev, const Slot *slot, const double *data);
/* The same, exact; integers fit the element type. */
void eval_bind_num(Eval *ev, const Slot *slot, const Num *data);
void eval_bind_int(Eval *ev, const Slot *slot, int64_t value); /* a scalar, exact */
/* `value` may be a result of eval_region; it is shared, not copied. */
void eval_bind_value(Eval *ev, const Slot *slot, Value value);
/* The value bound to `slot`; false when there is none. */
bool eval_bound(const Eval *ev, const Slot *slot, Value *value);
/* Gives out[region->out.count]. They stay until eval_drop or the end of the arena. BUG when the
 * region reads a slot that was not bound. */
void eval_region(Eval *ev, const Region *region, Value *out);
void eval_drop(Eval *ev, Value value);
Value eval_new(Eval *ev, Type type);      /* not zeroed; for eval_bind_value */
Value eval_share(Eval *ev, Value value);  /* one more owner, who drops it */
double value_get(Value value, int64_t i); /* element i as a double */
/* With check_nan: the first node whose value was not finite since eval_open, or NULL. */
const Node *eval_not_finite(const Eval *ev);

#endif
