/* fuse_units: what the files of fuse share: the units under way and the graph that they make. */
#ifndef MDLC_PASSES_FUSE_UNITS_H
#define MDLC_PASSES_FUSE_UNITS_H

#include "compiler/program.h"
#include "passes/fuse.h"

typedef VEC(int) UnitIds;

/* Which atoms a value reads elsewhere than at its own place, in a kernel of so many rows. */
typedef struct {
    const Node *root;
    int64_t rows;
    bool fits;          /* the value has the rows */
    VEC(uint32_t) away; /* node ids */
} ReadMap;
typedef VEC(ReadMap *) ReadMaps;

typedef struct {
    Arena *arena;   /* of the result */
    Arena *scratch; /* of the pass */
    Fusion *f;
    VEC(Unit *) unit; /* merged ones too; ids ascend like those of their first atoms */
    UnitIds *reader;  /* by node id: the units that were made with it among what they read */
    int *seen;        /* by unit id: the last search that met it */
    int search;
    UnitIds stack;
    ReadMaps *map;      /* by node id: what was asked for so far */
    Buf fake[TY_COUNT]; /* something to load from, by element */
    int clock;          /* number of merges so far */
    bool last;          /* all else has merged: folds take in what they fold */
    int64_t work;       /* left for far searches and trials that fail */
    int64_t total;      /* see pass_fuse */
    int copies;        /* the same */
    RowSums *sums;     /* the same */
} Fuse;

/* Steps of all far searches of a region; no usual model comes near. */
enum { FUSE_WORK = 20000000 };

static inline NodeInfo *info_of(Fuse *s, const Node *node) {
    return &s->f->info[node->id];
}

static inline bool ids_have(const uint32_t *id, int count, uint32_t of) {
    bool found = false;
    for (int i = 0; i < count && !found; i++) {
        found = id[i] == of;
    }
    return found;
}

/* --- fuse_graph.c --- */
/* The unit that `u` has become. */
Unit *unit_now(Unit *u);
/* The unit that makes node `id`; NULL: memory holds it from the start. */
Unit *unit_of(const Fuse *s, uint32_t id);
bool unit_reads(const Unit *u, const Unit *from);
/* Both read one tensor that is not tiny. */
bool units_share(const Fuse *s, const Unit *a, const Unit *b);
/* Readers and levels of fresh units. */
void units_connect(Fuse *s);
/* True when `from` is read by `to` through at least one unit other than the two, or when it would
 * take too long to find out. */
bool path_between(Fuse *s, const Unit *from, const Unit *to);
/* Makes `b` part of `a`, which no path through others joins; false: what comes behind them is too
 * much to renumber, and nothing has changed. */
bool unit_absorb(Fuse *s, Unit *a, Unit *b, int64_t rows);

/* --- fuse_anew.c --- */
/* Which large values merged units make again instead of reading them: Unit.anew. */
void units_make_anew(Fuse *s);

/* --- fuse_map.c --- */
const ReadMap *read_map(Fuse *s, const Node *root, int64_t rows);

/* --- fuse_merge.c --- */
void merge_units(Fuse *s);

#endif
