/* fuse_merge: which units become one kernel.
 *
 * Technique: each unit is tried with those that it reads, those that read the same tensor, and, of
 * scalars, all others, the nearest first. Two merge when they have the same rows, every value of
 * one that the other uses is at the same row (what an atom reads where is found once, fuse_map),
 * and no third unit stands between. What did not fit is tried again only when one of the two has
 * changed. Needs connected units; gives merged ones. */
#include "passes/fuse_units.h"

#include "passes/lower/value.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_ATOMS = TUNED(24, 3), /* of one kernel */
    MOST_WRITTEN = 4096,       /* nodes that the expressions of one kernel hold */
    FEW_ROWS = TUNED(8, 3),    /* rows of fewer and */
    LONG_ROW = TUNED(8192, 6), /* longer rows than this are no rows for a kernel of rows */
    FOLDED_ROW = TUNED(64, 2), /* elements of a row that is made while columns are folded */
    SMALL_PART = TUNED(64, 3), /* of what is read, no stream of memory */
    /* On problems too large to try everything: */
    MOST_READERS = 512, /* of a tensor that are all tried; of more, so many before and behind */
    NEAR_READERS = 128, /* the one that asks */
    TRIAL_WORK = 500,   /* what one that does not fit takes from Fuse.work */
    FEW_TRIALS = 4      /* of a unit with others that may fail when the work is spent */
};

/* --- do two units have the same rows ---------------------------------------------------------- */

bool fuse_split(Type type, int64_t rows, int *leading) {
    int64_t product = 1;
    for (int i = 0; i <= type.rank; i++) {
        if (product == rows) {
            *leading = i;
            return true;
        }
        product *= i < type.rank ? type.dim[i] : 1;
    }
    return false;
}

const Node *unit_fold(const Unit *u) {
    for (int i = 0; i < u->atom.count; i++) {
        if (u->kind == UNIT_COLUMN ? fold_is_column(u->atom.at[i]) : fold_is_loop(u->atom.at[i])) {
            return u->atom.at[i];
        }
    }
    BUG("a unit of folds without one");
}

bool unit_folds_over(const Unit *u, const Node *atom) {
    return u->kind == UNIT_COLUMN && !fold_is_loop(atom) &&
           type_count(*atom->type) == type_count(*unit_fold(u)->in[0]->type);
}

/* What of an atom is asked for: of a COLUMN unit either what is folded, element by element
 * (`inside`), or what follows; NULL: nothing. */
static const Node *unit_root(Fuse *s, UnitKind kind, const Unit *of, const Node *atom,
                             bool inside) {
    if (kind != UNIT_COLUMN) {
        return atom;
    }
    if (!fold_is_loop(atom)) {
        int64_t folded = type_count(*unit_fold(of)->in[0]->type);
        return inside == (type_count(*atom->type) == folded) ? atom : NULL;
    }
    const NodeInfo *n = info_of(s, atom->in[0]);
    return inside && !n->atom && !n->leaf ? atom->in[0] : NULL;
}

/* The rows of both together, or 0. */
static int64_t common_rows(const Unit *a, const Unit *b) {
    if (a->rows != 0 && b->rows != 0) {
        return a->rows == b->rows ? a->rows : -1;
    }
    if (a->rows == 0 && b->rows == 0) {
        return a->count == b->count ? 0 : -1;
    }
    return a->rows != 0 ? a->rows : b->rows;
}

/* Every atom has the rows, and rows are worth it. */
static bool rows_fit(const Unit *u, int64_t rows) {
    for (int i = 0; i < u->atom.count; i++) {
        int leading;
        Type type = *u->atom.at[i]->type;
        if (!fuse_split(type, rows, &leading)) {
            return false;
        }
        int64_t inner = type_count(type) / (rows > 0 ? rows : 1);
        if (rows < FEW_ROWS && inner > LONG_ROW) {
            return false;
        }
    }
    return true;
}

/* What the check of a train waits for and what it lets through are never one kernel. */
static bool check_between(const Unit *a, const Unit *b) {
    return (a->early || b->early) && (a->late || b->late);
}

/* What is made again for adjoints is not made with what comes before them: it would be kept. */
static bool loss_between(const Unit *a, const Unit *b) {
    return (a->again && b->forward) || (b->again && a->forward);
}

/* One row is worth a kernel of rows only when all of it has one length. */
static bool single_row_fits(const Unit *a, const Unit *b) {
    int64_t length = 0;
    for (int i = 0; i < a->atom.count + b->atom.count; i++) {
        const Node *atom = i < a->atom.count ? a->atom.at[i] : b->atom.at[i - a->atom.count];
        int64_t inner = fold_is_loop(atom) ? fold_count(atom) : type_count(*atom->type);
        if (inner > 1 && length > 0 && inner != length) {
            return false;
        }
        length = inner > 1 ? inner : length;
    }
    return true;
}

static bool same_fold_space(const Unit *a, const Unit *b) {
    const Node *x = unit_fold(a), *y = unit_fold(b);
    return type_same_shape(*x->in[0]->type, *y->in[0]->type) && folded_axes(x) == folded_axes(y);
}

/* --- merging ---------------------------------------------------------------------------------- */

/* True when the atoms of both, a unit of that kind then, can run row by row together: each is read
 * only where it is computed. The product of a CONTRACT unit and the folds of a COLUMN count as
 * something that memory holds. */
static bool merged_fits(Fuse *s, Unit *a, Unit *b, UnitKind kind, int64_t rows, bool inside) {
    const Unit *folds = b->kind == UNIT_COLUMN ? b : a; /* if there are any */
    for (int i = 0; i < a->atom.count + b->atom.count; i++) {
        const Node *atom = i < a->atom.count ? a->atom.at[i] : b->atom.at[i - a->atom.count];
        const Node *root = unit_root(s, kind, folds, atom, inside);
        const ReadMap *map = root ? read_map(s, root, rows) : NULL;
        if (map && !map->fits) {
            return false;
        }
        for (int k = 0; map && k < map->away.count; k++) {
            const Unit *u = info_of(s, s->f->region->node.at[map->away.at[k]])->unit;
            if (u == a || u == b) {
                return false;
            }
        }
    }
    return true;
}

/* Elements of the vectors that a COLUMN unit adds up. */
static int64_t folded_row(const Unit *u) {
    const Node *fold = unit_fold(u);
    Type type = *fold->in[0]->type;
    int64_t count = 1;
    for (int i = type.rank - 1; i >= 0 && !(folded_axes(fold) >> i & 1); i--) {
        count *= type.dim[i];
    }
    return count;
}

/* Of `a`, which is a COLUMN, `b` reads only what is made before the folds. */
static bool reads_folded_only(Fuse *s, const Unit *a, const Unit *b) {
    for (int i = 0; i < b->dep.count; i++) {
        const Node *node = s->f->region->node.at[b->dep.at[i]];
        if (unit_of(s, node->id) == a && !unit_folds_over(a, node)) {
            return false;
        }
    }
    return true;
}

/* Whether columns can be folded while `a` makes them, or while the folds of `a` do. */
static bool folds_fit(Fuse *s, Unit *a, Unit *b) {
    int64_t count = type_count(*unit_fold(b)->in[0]->type);
    if (a->kind == UNIT_NEST) {
        return s->last && a->rows == 0 && a->count == count && unit_reads(b, a) &&
               folded_row(b) >= FOLDED_ROW;
    }
    return a->kind == UNIT_COLUMN && same_fold_space(a, b) &&
           (unit_reads(b, a) ? reads_folded_only(s, a, b) : units_share(s, a, b));
}

static bool nests_fit(Fuse *s, const Unit *a, const Unit *b, int64_t *rows) {
    *rows = common_rows(a, b);
    bool scalars = a->count == 1 && b->count == 1 && *rows == 0;
    if (*rows < 0 || (!unit_reads(b, a) && !scalars && !units_share(s, a, b))) {
        return false;
    }
    if (*rows > 0 && (!rows_fit(a, *rows) || !rows_fit(b, *rows))) {
        return false;
    }
    return *rows != 1 || single_row_fits(a, b);
}

/* --- sums over the rows of a nest ------------------------------------------------------------- */

/* The first axis of what is folded, where the folded ones are just its leading axes of `rows`. */
static bool folds_rows(const Node *fold, int64_t rows, int64_t *first) {
    const Type type = *fold->in[0]->type;
    int leading;
    bool fits = fuse_split(type, rows, &leading);
    *first = 1;
    for (int i = 0; fits && i < type.rank; i++) {
        const bool folded = folded_axes(fold) >> i & 1;
        fits = type.dim[i] == 1 || folded == (i < leading);
        *first = *first == 1 ? type.dim[i] : *first;
    }
    return fits;
}

/* Is some atom of `u` read by the expression of `node`, whose atoms are its leaves? */
static bool expression_reads(Fuse *s, const Node *node, const Unit *u) {
    for (int k = 0; k < node->nin; k++) {
        const NodeInfo *n = info_of(s, node->in[k]);
        const bool made = (n->atom && !n->again) || n->leaf;
        if (made ? unit_of(s, node->in[k]->id) == u : expression_reads(s, node->in[k], u)) {
            return true;
        }
    }
    return false;
}

/* Is the atom made in each row, or on the way to what is folded? */
static bool is_in_row(Fuse *s, const Unit *u, const Node *atom) {
    return u->kind == UNIT_NEST || info_of(s, atom)->in_row || unit_folds_over(u, atom);
}

/* Of `a`, whose rows they are, `b` reads only what is made in each of them. */
static bool reads_rows_only(Fuse *s, const Unit *a, const Unit *b) {
    for (int i = 0; i < b->dep.count; i++) {
        const Node *node = s->f->region->node.at[b->dep.at[i]];
        if (unit_of(s, node->id) == a && !is_in_row(s, a, node)) {
            return false;
        }
    }
    return true;
}

/* All that `u` makes in a row has the rows, and nothing of both is read at other ones; what follows
 * its folds reads nothing of `other`. */
static bool rows_meet(Fuse *s, const Unit *u, const Unit *other, int64_t rows) {
    for (int i = 0; i < u->atom.count; i++) {
        const Node *atom = u->atom.at[i];
        const bool in_row = is_in_row(s, u, atom);
        if (!in_row && !fold_is_loop(atom) && expression_reads(s, atom, other)) {
            return false;
        }
        const Node *root = in_row ? atom : unit_root(s, UNIT_COLUMN, u, atom, true);
        const ReadMap *map = root ? read_map(s, root, rows) : NULL;
        if (map && !map->fits) {
            return false;
        }
        for (int k = 0; map && k < map->away.count; k++) {
            const Unit *from = unit_of(s, map->away.at[k]);
            if (from == u || from == other) {
                return false;
            }
        }
    }
    return true;
}

/* Whether the folds of `column` add up the rows of `nest`, which may add up others already, and
 * both read the same. */
static bool sums_fit(Fuse *s, const Unit *nest, const Unit *column) {
    const bool rows = nest->rows > 0 && (nest->kind == UNIT_NEST || nest->kind == UNIT_COLUMN);
    if (!s->last || !s->sums || !rows || column->kind != UNIT_COLUMN || column->rows > 0) {
        return false;
    }
    const int64_t columns = folded_row(column);
    int64_t first;
    return columns >= FOLDED_ROW && folds_rows(unit_fold(column), nest->rows, &first) &&
           s->sums(first, nest->rows, columns) &&
           (nest->kind == UNIT_NEST || same_fold_space(nest, column)) &&
           (unit_reads(column, nest) || unit_reads(nest, column) || units_share(s, nest, column)) &&
           reads_rows_only(s, nest, column) && reads_rows_only(s, column, nest);
}

/* Makes `a` and `b` a COLUMN unit with rows, those of `nest`, which is one of the two. */
static bool sums_merge(Fuse *s, Unit *a, Unit *b, const Unit *nest, int *trials) {
    const Unit *column = nest == a ? b : a;
    const int64_t rows = nest->rows, count = column->count;
    if (path_between(s, a, b) || path_between(s, b, a) || (s->work <= 0 && *trials == 0)) {
        return false;
    }
    if (!rows_meet(s, nest, column, rows) || !rows_meet(s, column, nest, rows)) {
        s->work -= TRIAL_WORK;
        --*trials;
        return false;
    }
    const int made = nest->kind == UNIT_NEST ? nest->atom.count : 0;
    const Node **row = ARENA_ARRAY(s->scratch, const Node *, made + 1);
    for (int i = 0; i < made; i++) {
        row[i] = nest->atom.at[i];
    }
    if (!unit_absorb(s, a, b, rows)) {
        return false;
    }
    a->kind = UNIT_COLUMN;
    a->count = count;
    for (int i = 0; i < made; i++) {
        info_of(s, row[i])->in_row = true;
    }
    return true;
}

/* --- what is made behind ---------------------------------------------------------------------- */

/* Does memory hold `node`, which `a` makes, whether `b` becomes a part of `a` or not? */
static bool is_held(Fuse *s, const Unit *a, const Unit *b, const Node *node) {
    const UnitIds *reader = &s->reader[node->id];
    bool held = info_of(s, node)->sink;
    for (int i = 0; i < reader->count && !held; i++) {
        const Unit *u = unit_now(s->unit.at[reader->at[i]]);
        held = u != a && u != b && u->kind != UNIT_NEST;
    }
    return held;
}

/* Is all that `b` reads, but for factors of many, in memory anyway for who reads what `b` makes? */
static bool reads_held(Fuse *s, const Unit *a, const Unit *b, const UnitIds *behind) {
    for (int i = 0; i < b->dep.count; i++) {
        const Node *node = s->f->region->node.at[b->dep.at[i]];
        bool held = type_count(*node->type) <= b->count / SMALL_PART;
        for (int k = 0; k < behind->count && !held; k++) {
            const Unit *u = s->unit.at[behind->at[k]];
            held = ids_have(u->dep.at, u->dep.count, node->id);
        }
        if (!held && (unit_of(s, node->id) != a || !is_held(s, a, b, node))) {
            return false;
        }
    }
    return true;
}

/* What `b` makes is read behind what waits for the whole of `a` alone, as the moments of an
 * optimizer are by a choice between new and old ones: made there, of what lies in memory, it needs
 * none. */
static bool is_made_behind(Fuse *s, const Unit *a, const Unit *b) {
    UnitIds behind = {0};
    for (int i = 0; i < b->atom.count; i++) {
        const UnitIds *reader = &s->reader[b->atom.at[i]->id];
        if (info_of(s, b->atom.at[i])->sink) {
            return false;
        }
        for (int k = 0; k < reader->count; k++) {
            const Unit *u = unit_now(s->unit.at[reader->at[k]]);
            if (u != b && (u->kind != UNIT_NEST || s->work <= 0 || !path_between(s, a, u))) {
                return false;
            }
            VEC_PUSH(s->scratch, &behind, u->id);
        }
    }
    return behind.count > 0 && reads_held(s, a, b, &behind);
}

/* --- two units -------------------------------------------------------------------------------- */

static bool try_merge(Fuse *s, Unit *a, Unit *b, int *trials) {
    if (a->atom.count + b->atom.count > MOST_ATOMS || a->written + b->written > MOST_WRITTEN ||
        a->pick || b->pick || check_between(a, b) || loss_between(a, b)) {
        return false;
    }
    if (sums_fit(s, a, b) || sums_fit(s, b, a)) {
        return sums_merge(s, a, b, a->rows > 0 ? a : b, trials);
    }
    if ((a->kind == UNIT_COLUMN && a->rows > 0) || (b->kind == UNIT_COLUMN && b->rows > 0)) {
        return false;
    }
    int64_t rows = 0, map_rows = 0; /* 0: nothing to look at */
    bool inside = false;
    if (b->kind == UNIT_COLUMN) {
        if (!folds_fit(s, a, b)) {
            return false;
        }
        inside = true;
        map_rows = unit_reads(b, a) ? type_count(*unit_fold(b)->in[0]->type) : 0;
    } else if (a->kind == UNIT_NEST && b->kind == UNIT_NEST) {
        if (!nests_fit(s, a, b, &rows)) {
            return false;
        }
        map_rows = rows > 0 ? rows : a->count;
    } else if (b->kind == UNIT_NEST) {
        bool followed = a->kind == UNIT_PRODUCT || a->kind == UNIT_COLUMN || a->kind == UNIT_TOTAL;
        if (!followed || !unit_reads(b, a) || b->rows != 0 || a->count != b->count) {
            return false;
        }
        if (!s->last && is_made_behind(s, a, b)) {
            b->tried = -1; /* in the end it may become a part of `a` all the same */
            return false;
        }
        map_rows = a->count;
    } else if (a->kind != UNIT_TOTAL || b->kind != UNIT_TOTAL || unit_reads(b, a) ||
               !units_share(s, a, b) || !same_fold_space(a, b)) {
        return false;
    }
    if (path_between(s, a, b) || path_between(s, b, a)) {
        return false;
    }
    if (map_rows > 0) {
        UnitKind kind = a->kind == UNIT_COLUMN ? UNIT_COLUMN : b->kind;
        if (s->work <= 0 && *trials == 0) {
            return false;
        }
        if (!merged_fits(s, a, b, kind, map_rows, inside)) {
            s->work -= TRIAL_WORK;
            --*trials;
            return false;
        }
    }
    if (!unit_absorb(s, a, b, rows)) {
        return false;
    }
    if (b->kind == UNIT_COLUMN) { /* the results are those of the folds */
        a->kind = b->kind;
        a->count = b->count;
    }
    return true;
}

/* --- candidates ------------------------------------------------------------------------------- */

static void candidate_add(Fuse *s, const Unit *b, UnitIds *list, Unit *u) {
    if (u && u->id < b->id && s->seen[u->id] != s->search) {
        s->seen[u->id] = s->search;
        VEC_PUSH(s->scratch, list, u->id);
    }
}

/* Units by id; of very many, those that are near `b`. */
static void candidates_among(Fuse *s, const Unit *b, const UnitIds *among, UnitIds *list) {
    int from = 0, to = among->count;
    if (to > MOST_READERS) {
        int lo = 0;
        while (lo < to && to - lo > 1) {
            int mid = (lo + to) / 2;
            if (among->at[mid] <= b->id) {
                lo = mid;
            } else {
                to = mid;
            }
        }
        from = lo > NEAR_READERS ? lo - NEAR_READERS : 0;
        to = lo + NEAR_READERS < among->count ? lo + NEAR_READERS : among->count;
    }
    for (int i = from; i < to; i++) {
        candidate_add(s, b, list, unit_now(s->unit.at[among->at[i]]));
    }
}

static int descending(const void *a, const void *b) {
    const int *x = a, *y = b;
    return (*x < *y) - (*x > *y);
}

/* Merges `b` into one of the units before it, the nearest that fits. */
static bool merge_unit(Fuse *s, Unit *b, const UnitIds *scalar, UnitIds *list) {
    s->search++;
    list->count = 0;
    for (int i = 0; i < b->dep.count; i++) {
        const Node *node = s->f->region->node.at[b->dep.at[i]];
        candidate_add(s, b, list, unit_of(s, node->id));
        if (node->op != OP_LOOP && type_count(*node->type) > 1) {
            candidates_among(s, b, &s->reader[node->id], list);
        }
    }
    if (b->kind == UNIT_NEST && b->count == 1) {
        candidates_among(s, b, scalar, list);
    }
    if (list->count > 0) {
        qsort(list->at, (size_t)list->count, sizeof *list->at, descending);
    }
    int tried = b->tried, trials = FEW_TRIALS;
    b->tried = s->clock;
    for (int i = 0; i < list->count; i++) {
        Unit *a = s->unit.at[list->at[i]];
        const bool late = s->last && a->kind == UNIT_COLUMN && b->kind == UNIT_NEST && b->rows > 0;
        if ((a->changed > tried || b->changed > tried || late) && try_merge(s, a, b, &trials)) {
            return true;
        }
    }
    return false;
}

void merge_units(Fuse *s) {
    UnitIds scalar = {0}, list = {0};
    for (int i = 0; i < s->unit.count; i++) {
        if (s->unit.at[i]->kind == UNIT_NEST && s->unit.at[i]->count == 1) {
            VEC_PUSH(s->scratch, &scalar, i);
        }
    }
    for (bool again = true; again || !s->last;) {
        s->last = !again;
        again = false;
        for (int i = 1; i < s->unit.count; i++) {
            Unit *b = s->unit.at[i];
            b->tried = s->last && b->kind == UNIT_COLUMN ? -1 : b->tried;
            again = (!b->into && merge_unit(s, b, &scalar, &list)) || again;
        }
    }
}
