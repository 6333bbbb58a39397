/* fuse_graph: the units of a region as a graph: who reads whom, and is there a way around.
 *
 * Technique: every unit has a level, above the levels of all that it reads; a path from one unit to
 * another can only lead through levels between theirs, which keeps searches short. Merging two
 * units raises what comes behind them. Long searches are paid from Fuse.work; when that is spent, a
 * long one is given up, and who asked takes the answer that merges less. Needs the dependencies of
 * units; gives answers and merged units. */
#include "passes/fuse_units.h"

#include <stdlib.h>

/* When the work is spent: units that a search may meet, and units that one merge may raise. */
enum { NEAR_UNITS = 256 };

Unit *unit_now(Unit *u) {
    while (u->into) {
        u->into = u->into->into ? u->into->into : u->into;
        u = u->into;
    }
    return u;
}

Unit *unit_of(const Fuse *s, uint32_t id) {
    Unit *u = s->f->info[id].unit;
    return u ? unit_now(u) : NULL;
}

static bool dep_has(const Unit *u, uint32_t id) {
    int lo = 0, hi = u->dep.count;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (u->dep.at[mid] < id) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < u->dep.count && u->dep.at[lo] == id;
}

bool unit_reads(const Unit *u, const Unit *from) {
    for (int i = 0; i < from->atom.count; i++) {
        if (dep_has(u, from->atom.at[i]->id)) {
            return true;
        }
    }
    return false;
}

bool units_share(const Fuse *s, const Unit *a, const Unit *b) {
    for (int i = 0, k = 0; i < a->dep.count && k < b->dep.count;) {
        uint32_t x = a->dep.at[i], y = b->dep.at[k];
        const Node *node = s->f->region->node.at[x];
        if (x == y && node->op != OP_LOOP && type_count(*node->type) > 1) {
            return true;
        }
        i += x <= y;
        k += y <= x;
    }
    return false;
}

void units_connect(Fuse *s) {
    int n = s->f->region->node.count;
    s->reader = ARENA_ARRAY(s->scratch, UnitIds, n + 1);
    s->seen = ARENA_ARRAY(s->scratch, int, s->unit.count + 1);
    s->map = ARENA_ARRAY(s->scratch, ReadMaps, n + 1);
    for (int i = 0; i < s->unit.count; i++) {
        Unit *u = s->unit.at[i];
        u->tried = -1;
        for (int k = 0; k < u->dep.count; k++) {
            const Unit *from = unit_of(s, u->dep.at[k]);
            u->level = from && from != u && from->level >= u->level ? from->level + 1 : u->level;
            VEC_PUSH(s->scratch, &s->reader[u->dep.at[k]], i);
        }
    }
}

bool path_between(Fuse *s, const Unit *from, const Unit *to) {
    s->search++;
    s->stack.count = 0;
    VEC_PUSH(s->scratch, &s->stack, to->id);
    for (int met = 0; s->stack.count > 0; met++) {
        const Unit *at = s->unit.at[s->stack.at[--s->stack.count]];
        if (s->work <= 0 && met == NEAR_UNITS) {
            return true;
        }
        s->work -= at->dep.count;
        for (int k = 0; k < at->dep.count; k++) {
            const Unit *u = unit_of(s, at->dep.at[k]);
            if (u == from && at != to) {
                return true;
            }
            if (u && u != to && u->level > from->level && s->seen[u->id] != s->search) {
                s->seen[u->id] = s->search;
                VEC_PUSH(s->scratch, &s->stack, u->id);
            }
        }
    }
    return false;
}

/* --- merging ---------------------------------------------------------------------------------- */

typedef struct {
    Unit *unit;
    int level; /* before */
} Raised;

/* Puts all that reads `u` above it, and so on; false: too much, and nothing has changed. */
static bool raise_readers(Fuse *s, Unit *u) {
    VEC(Raised) raised = {0};
    s->stack.count = 0;
    VEC_PUSH(s->scratch, &s->stack, u->id);
    while (s->stack.count > 0) {
        const Unit *at = s->unit.at[s->stack.at[--s->stack.count]];
        for (int i = 0; i < at->atom.count; i++) {
            const UnitIds *reader = &s->reader[at->atom.at[i]->id];
            s->work -= reader->count;
            for (int k = 0; k < reader->count; k++) {
                Unit *r = unit_now(s->unit.at[reader->at[k]]);
                if (r == at || r->level > at->level) {
                    continue;
                }
                VEC_PUSH(s->scratch, &raised, ((Raised){r, r->level}));
                r->level = at->level + 1;
                VEC_PUSH(s->scratch, &s->stack, r->id);
            }
        }
        if (s->work <= 0 && raised.count > NEAR_UNITS) {
            for (int i = raised.count - 1; i >= 0; i--) {
                raised.at[i].unit->level = raised.at[i].level;
            }
            return false;
        }
    }
    return true;
}

static int id_compare(const void *a, const void *b) {
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

bool unit_absorb(Fuse *s, Unit *a, Unit *b, int64_t rows) {
    int level = a->level, natom = a->atom.count;
    for (int i = 0; i < b->atom.count; i++) {
        VEC_PUSH(s->arena, &a->atom, b->atom.at[i]);
    }
    a->level = b->level > level ? b->level : level;
    b->into = a;
    if (!raise_readers(s, a)) {
        a->level = level;
        a->atom.count = natom;
        b->into = NULL;
        return false;
    }
    /* Both lists ascend; most merges append. */
    for (int i = natom; i < a->atom.count; i++) {
        const Node *node = a->atom.at[i];
        int at = i;
        for (; at > 0 && a->atom.at[at - 1]->id > node->id; at--) {
            a->atom.at[at] = a->atom.at[at - 1];
        }
        a->atom.at[at] = node;
    }
    for (int i = 0; i < b->dep.count; i++) {
        VEC_PUSH(s->arena, &a->dep, b->dep.at[i]);
    }
    if (a->dep.count > 0) {
        qsort(a->dep.at, (size_t)a->dep.count, sizeof *a->dep.at, id_compare);
    }
    int n = 0;
    for (int i = 0; i < a->dep.count; i++) {
        if (n == 0 || a->dep.at[n - 1] != a->dep.at[i]) {
            a->dep.at[n++] = a->dep.at[i];
        }
    }
    a->dep.count = n;
    a->rows = rows;
    a->written += b->written;
    a->early = a->early || b->early;
    a->late = a->late || b->late;
    a->forward = a->forward || b->forward;
    a->again = a->again || b->again;
    a->changed = ++s->clock;
    for (int i = 0; i < a->atom.count; i++) {
        info_of(s, a->atom.at[i])->unit = a;
    }
    return true;
}
