/* check_value: what check.c, check_value.c and check_loop.c know of a Program while they run it. */
#ifndef MDLC_PASSES_CHECK_VALUE_H
#define MDLC_PASSES_CHECK_VALUE_H

#include "compiler/program.h"
#include "passes/check_kernel.h"

typedef struct {
    int64_t lo, hi, token;
} Span;

typedef VEC(Span) SpanMap; /* sorted, disjoint, no gaps are kept */

typedef struct {
    const Buf *buf;
    int step;     /* -1: before the entry */
    int64_t same; /* the token of the value that it equals, its own where it is made first */
} Origin;

typedef struct {
    const Step *step;
    bool part; /* one of several that write the Buf together */
    bool seen; /* it has run in this scope */
} Writer;

typedef struct {
    int64_t token; /* of the last write, 0: none in this scope */
    int64_t block; /* offset of the slice that was marked last */
    bool ranged;   /* of an input: it has been looked at */
    const Step *part[ACCESS_SLICES]; /* by axis: the loop that wrote its slices up to its end */
    bool beside[ACCESS_SLICES]; /* and that end is picked by other loops than the slices are */
    const Step *counts; /* the loop whose last index it is, by turns of those around; or NULL */
    VEC(Writer) writer;
} Value;

typedef struct {
    const Step *loop;
    int64_t turn; /* 0 or 1 */
} Turn;

/* Where a loop that ended by itself did so. */
typedef struct {
    const Step *counts; /* the loop whose condition has ended it, or one before it */
    const Buf *last;    /* what it looked at, */
    int64_t token;      /* and its value then */
} Ends;

typedef VEC(const Buf *) BufList;

enum { PARAMS, STATE, IO, ARENA, REGIONS, MAX_TURNS = 64 };

typedef struct {
    Arena *arena;
    const Program *p;
    const ProgramEntry *e;
    SpanMap map[REGIONS];
    Value *value;              /* by Buf.id */
    const KernelSites **sites; /* by Kernel.id, NULL: not read yet */
    Arena text;                /* of the sites */
    int read;                  /* how many there are */
    bool *proved;              /* by Step.id: what it says agrees with its kernel's text */
    Ends *ends;                /* by Step.id */
    BufList *declared;         /* by 1 + Step.id of a loop, [0] the entry: what lives in a turn */
    VEC(Origin) origin;
    int64_t **first; /* by Step.id, of steps that run again later: values by access; else NULL */
    Turn turn[MAX_TURNS];
    int depth;
    struct Progress *progress[MAX_TURNS + 1]; /* by nesting; by Buf.id; NULL: not needed yet */
    const char *fault;
} Check;

/* What is declared in the loop; NULL: in the entry. */
static inline const BufList *check_declared(const Check *c, const Step *loop) {
    return &c->declared[loop != NULL ? 1 + loop->id : 0];
}

/* Notes the fault; false. */
bool check_fail(Check *c, const char *fmt, ...) MDLC_PRINTF(2, 3);

/* Bytes [lo, hi) hold the token. */
void check_mark(Arena *arena, SpanMap *map, int64_t lo, int64_t hi, int64_t token);
/* The token of the first byte in [lo, hi) that does not hold `token`; `token` when all do. */
int64_t check_other(const SpanMap *map, int64_t lo, int64_t hi, int64_t token);

const Buf *check_root(const Buf *buf);
int check_region(const Buf *buf); /* -1: none that the plan lays out */
/* The Buf lies in its root and in its region, which ends at `limit`. */
bool check_place(Check *c, const Buf *buf, int64_t limit);

int64_t check_token(Check *c, const Buf *buf, int step); /* a new one */
/* The turn of a loop that runs now; NULL: it does not. */
const Turn *check_turn(const Check *c, const Step *loop);
int64_t check_position(const Turn *turn, int64_t at);
/* Is the step in the body of `loop`, or `loop` itself? */
bool check_is_around(const Step *loop, const Step *step);
bool check_declared_in(const Buf *buf, const Step *loop); /* there, at any depth */
bool check_picks(const Step *loop, const Access *access); /* a slice, by its index */
bool check_written_inside(const Check *c, const Buf *buf, const Step *loop);
/* The bytes that an access touches now, relative to the region. */
bool check_block(Check *c, const Step *step, const Access *access, int64_t *lo, int64_t *hi);
bool check_complete(const Value *v); /* all parts of it are written */
bool check_read(Check *c, const Step *step, const Access *access);
/* `token`: of what is moved there; 0: a new value. */
bool check_write(Check *c, const Step *step, const Access *access, int64_t token);

#endif
