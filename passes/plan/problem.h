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
    int next;         /* the use whose value takes its place in this list; -1: none */
} Use;

typedef struct {
    Step *step;
    Ints succ, pred, touch; /* items; items; uses that are local */
    VEC(bool) makes;        /* by position in touch: it writes it */
    Ints reads;             /* uses, whoever declares them, but for workspaces */
    Ints over;              /* pairs of uses: an operand that dies, what may take its bytes */
    int64_t inner;          /* peak inside a loop's body */
    int span;               /* steps, with those of a body: see problem_look_inside; 0: one */
    int64_t cost;           /* of running it, see step_cost and problem_by_time */
    bool update;            /* all that it makes ends in parameters and states */
    bool pure;              /* it may run again: it makes local values alone, whole and by itself */
    int stamp;
} Item;

/* What the lists of one entry share. */
typedef struct {
    struct Problem *top; /* of the entry's list, once it is open */
    Arena *arena;
    ProgramEntry *e;
    int *local;        /* by Buf.id: its use in the list that declares it */
    Buf **made_in;     /* by Buf.id: the destination whose bytes its value has; NULL: its own */
    VEC(int *) use_of; /* maps that no open list needs: by Buf.id, all -1 */
    int nbuf;
} ProblemShared;

/* A value and what it is next, which is made in its bytes. */
typedef struct {
    int old, next; /* uses; old: -1 where nothing in the list reads it */
} Gap;

/* What the loop of an item declares inside, at any depth: steps behind the loop itself. */
typedef struct {
    int item, first, last;
    int64_t size;
} Inside;

typedef struct Problem {
    Arena *arena;
    ProblemShared *shared;
    Step *loop; /* whose list it is */
    StepList *list;
    Item *item;
    int n;
    VEC(Use) use;
    VEC(Gap) gap;   /* carries: what their bytes hold between last reader and next is free */
    VEC(Gap) slice; /* of parameters and states, small ones: in any order, which may cost a copy */
    VEC(Inside) inside; /* of the entry's list: see problem_look_inside */
    int *use_of;        /* by Buf.id, -1; while it is opened */
    int stamp;
    Ints stack; /* of searches */
} Problem;

/* What is live while items are taken one after the other. */
typedef struct {
    int64_t live, peak;
    int *left; /* touches to come, by use */
    bool *born;
} Sim;

ProblemShared problem_shared(Program *p, ProgramEntry *e, Arena *arena);
/* The Buf in whose bytes the value of `buf` is made: a destination, or itself. */
const Buf *problem_made_in(const ProblemShared *shared, const Buf *buf);
/* The Buf comes and goes with the list. */
bool problem_declares(const Problem *s, const Buf *buf);
/* Items, uses, dependencies and wishes of `list`, whose loop is `loop`. The lists of the loops in
 * it have their orders. Slices of parameters and states of more than `above` bytes in all are read
 * before they are written. */
Problem *problem_open(ProblemShared *shared, Step *loop, StepList *list, int64_t above);
/* Notes what the loops of an entry's list declare inside, and how many steps they have. */
void problem_look_inside(Problem *s);
/* Items cost from now on what they take on that machine. */
void problem_by_time(Problem *s, const StepTimes *times, int64_t far_share);
/* Bytes that the list touches and that it does not declare. */
int64_t problem_outside(const Problem *s);
/* What all steps of the list cost, and of the loops in it, as often as they run. */
int64_t problem_cost(const StepList *list);
/* Bytes of those that are not, with the items at these places. */
int64_t problem_lost(const Problem *s, const int *place);
Sim sim_new(const Problem *s);
void sim_open(const Problem *s, Sim *sim);
/* Bytes that the item adds while it runs, and bytes that are gone when it has run. */
void sim_effect(const Problem *s, const Sim *sim, int i, int64_t *adds, int64_t *frees);
void sim_take(const Problem *s, Sim *sim, int i);

#endif
