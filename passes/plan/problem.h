/* problem: the steps of one list as a dependency graph, and the simulation of what is live while
 * they are taken in some order. */
#ifndef MDLC_PASSES_PLAN_PROBLEM_H
#define MDLC_PASSES_PLAN_PROBLEM_H

#include "compiler/program.h"

typedef VEC(int) Ints;

typedef struct {
    Buf *buf;
    int64_t size;     /* in the arena; 0 when its value is made in its destination */
    Ints read, write; /* items */
    int touches;      /* items that read or write it */
    bool local;       /* declared in this list: comes and goes with it */
    bool kept;        /* lives to the end of the list: a copy to its destination reads it there */
} Use;

typedef struct {
    Step *step;
    Ints succ, pred, touch; /* items; items; uses that are local */
    Ints over;              /* pairs of uses: an operand that dies, what may take its bytes */
    int64_t inner;          /* peak inside a loop's body */
    bool update;            /* all that it makes ends in parameters and states */
    int stamp;
} Item;

/* What the lists of one entry share. */
typedef struct {
    Arena *arena;
    int64_t *slices;   /* by Buf.id: in how many slices loops take it, 0 or 1: whole */
    VEC(int *) use_of; /* maps that no open list needs: by Buf.id, all -1 */
    int nbuf;
} SchedShared;

typedef struct {
    Arena *arena;
    ProgramEntry *e;
    SchedShared *shared;
    Step *loop; /* whose list it is */
    StepList *list;
    Item *item;
    int n;
    VEC(Use) use;
    int *use_of; /* by Buf.id, -1 */
    int stamp;
    Ints stack; /* of searches */
} Sched;

/* What is live while items are taken one after the other. */
typedef struct {
    int64_t live, peak;
    int *left; /* touches to come, by use */
    bool *born;
} Sim;

SchedShared sched_shared(Program *p, ProgramEntry *e, Arena *arena);
/* Items, uses, dependencies and wishes of `list`, whose loop is `loop`. */
Sched sched_open(SchedShared *shared, ProgramEntry *e, Step *loop, StepList *list);
void sched_close(Sched *s); /* its map may serve another list */
Sim sim_new(const Sched *s);
void sim_open(const Sched *s, Sim *sim);
/* Bytes that the item adds while it runs, and bytes that are gone when it has run. */
void sim_effect(const Sched *s, const Sim *sim, int i, int64_t *adds, int64_t *frees);
void sim_take(const Sched *s, Sim *sim, int i);
/* The most bytes live in this order. */
int64_t sim_peak(const Sched *s, Sim *sim, const int *order);

#endif
