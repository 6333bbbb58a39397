/* graph_oracle: whether the compiler keeps the values of a case, stage by stage.
 *
 * The reference is the evaluator on the region with its derivatives expanded and nothing else done.
 * Compared with it: what the text means, where that is known; the region itself, each way to save
 * for derivatives, each pass alone, and the
 * passes in order. Every stage is verified, dumped and read again; derivatives of "smooth" entries
 * meet difference quotients; the program is lowered, planned and checked, and can be written as C
 * beside the values that it must give.
 *
 * How much two ways to compute one thing may differ is measured: the evaluator moves every rounded
 * result by a random part of its size, and the results that move are those that feel rounding. One
 * that moves by much (a kink, cancellation) is not compared, but counted as loose. */
#ifndef MDLC_TESTS_GRAPH_ORACLE_H
#define MDLC_TESTS_GRAPH_ORACLE_H

#include "graph_case.h"

/* Passes of the pipeline by their places. */
enum { ORACLE_GRAD = 2, ORACLE_SIMPLIFY = 3, ORACLE_HOIST = 4 };
typedef Region *(*OraclePass)(Graph *g, const Region *region);
enum { ORACLE_PASSES = 13, ORACLE_CALLS = 2 };
enum { SEEN_TOP, SEEN_LOOP, SEEN_GRAD, SEEN_EMITTED, SEEN_KINDS };

typedef struct {
    OraclePass pass[ORACLE_PASSES]; /* of the pipeline, in order */
    bool reread;                    /* go on with the graph that the dump gives */
    bool plain;                     /* write C of the reference: no pass but grad */
    bool remat;                     /* write C where loops make again what they may */
    const char *write;              /* write C and expected values there: WRITE.c .data .want */
    int number;                     /* names start with g<number> */
} OracleOptions;

typedef struct {
    char check[96];                 /* what failed; empty: nothing */
    char what[400];                 /* how */
    int refused;                    /* texts that are no program; `what` is the message */
    int compared, loose;            /* results */
    int meant;                      /* of them, compared with what the text means too */
    int slopes, unclear;            /* difference quotients; those near a kink */
    int seen[OP_COUNT][SEEN_KINDS]; /* nodes */
    int64_t calls;                  /* of emitted entries */
    int remade;                     /* stacks of loops that went away */
    int thinned;                    /* regions whose loops stack less */
    int behind;                     /* regions that make values again behind a result */
    int ended;                      /* regions that read last values of carries of stacks */
} OracleReport;

OracleOptions oracle_options(void); /* the pipeline as it is */
void oracle_check(GraphCase *c, const OracleOptions *opt, OracleReport *r);

/* Runs `job` in a process of its own: a fault or an endless loop becomes a failed check "died ...",
 * where is known of what it printed. `bytes` of *result come back. */
typedef void (*IsolatedJob)(void *ctx, void *result);
bool isolated(IsolatedJob job, void *ctx, void *result, size_t bytes, int seconds, char *died,
              size_t room);

/* Adds the statistics of one report to another. */
void oracle_add(OracleReport *to, const OracleReport *r);

/* --- shared by graph_oracle.c and graph_emit.c ------------------------------------------------ */

/* What the calls of a case give, in order: the results of each call, then the slots. */
typedef struct {
    VEC(Value) item;
    VEC(Elem) stored;  /* what the emitted program has each as */
    VEC(double) limit; /* how far each may be off; negative: it is loose */
} Trace;

Trace oracle_trace(const GraphCase *c, Arena *arena, Region *const *region, int calls,
                   EvalOptions options);
/* The largest difference in `*gap`; false when it is above the limit. */
bool oracle_same(Value want, Value got, double limit, double *gap);

/* Lowers the case as its entries are, writes C, inputs and expected values. */
bool emit_case(GraphCase *c, Arena *arena, const Trace *want, const OracleOptions *opt,
               OracleReport *r);
extern const char *const emitted_flags[]; /* of the C compiler; ends with NULL */
/* Compiles the cases numbered 0..count-1 of `folder` as one program with `flags`, runs it with so
 * many threads and compares; fills check and what of r[i] for each case that fails. False when it
 * does not compile or ends early: then each case must be tried alone. */
bool emitted_run(const char *folder, const int *number, int count, const char *flags,
                 OracleReport *r);
/* One case alone, at -O0 and -O3, one thread and two. */
void emitted_alone(const char *folder, int number, OracleReport *r);

#endif
