/* narrow: short rows whose bytes go through words.
 *
 * C compilers give all values of a loop vectors of as many elements. Of a row shorter than the
 * bytes of one register they take eight elements or fewer where a byte is among them, and then
 * convert by single steps: the place of the largest in a window of 14 x 14 places took five times
 * what the values took. So the bytes of several such rows, which lie one behind another, are
 * widened to a local array in front of the loop over the rows, or narrowed from it behind that
 * loop, in one long run each; in between a byte is a word like all else.
 * Needs a loop over rows whose last statement is a vector loop; gives the text around it; changes
 * no values. */
#include "emit/narrow.h"

#include "emit/stmts.h"

#include <inttypes.h>

enum {
    NARROW_LANES = 16,           /* rows shorter than this, */
    NARROW_MOST = TUNED(512, 64) /* and at most so many elements in all: 2 KiB of the stack */
};

static bool is_narrow(const Arg *arg) {
    return elem_bytes(arg->elem) == 1 && !arg->strip && !arg->thread;
}

/* Does the index go up by one with each place of the rows, and stand for no value read here? */
static bool runs_along(const Index *index, int row, int place, int64_t places) {
    int64_t outer, inner;
    return index_stride(index, row, &outer) && index_stride(index, place, &inner) && inner == 1 &&
           outer == places;
}

typedef struct {
    Narrow *rows;
    bool *seen; /* by Expr.id */
    int row, place;
    int64_t places;
    bool fits;
    bool wide; /* something else has words */
} Search;

/* One array for each argument, which is read or written at one place in each turn. */
static void found(Search *x, const Arg *arg, const Index *at, bool written, bool plain) {
    Narrow *rows = x->rows;
    if (!is_narrow(arg)) {
        x->wide = x->wide || elem_bytes(arg->elem) >= sizeof(int32_t);
        return;
    }
    for (int i = 0; i < rows->count; i++) {
        if (rows->row[i].arg == arg) {
            x->fits = x->fits && rows->row[i].at == at && rows->row[i].written == written;
            return;
        }
    }
    x->fits = x->fits && plain && rows->count < NARROW_ROWS &&
              runs_along(at, x->row, x->place, x->places);
    if (x->fits) {
        rows->row[rows->count++] = (NarrowRow){.arg = arg, .at = at, .written = written};
    }
}

static void find_loads(Search *x, const Expr *e) {
    if (x->seen[e->id]) {
        return;
    }
    x->seen[e->id] = true;
    if (e->kind == EXPR_LOAD) {
        found(x, e->arg, e->index, false, e->nin == 0);
    }
    for (int i = 0; i < e->nkid; i++) {
        find_loads(x, e->kid[i]);
    }
}

/* False where a statement is neither a name nor a store. */
static bool find_all(Search *x, const StmtList *list, int count) {
    for (int i = 0; i < count; i++) {
        const Stmt *st = list->at[i];
        if (st->kind != STMT_LET && st->kind != STMT_STORE) {
            return false;
        }
        find_loads(x, st->kind == STMT_LET && st->as ? st->as : st->expr);
        if (st->kind == STMT_STORE) {
            found(x, st->arg, st->index, true, st->add == OP_CONST);
        }
    }
    return x->fits;
}

/* The loop over places; NULL: this is no loop over short rows. */
static const Stmt *places_of(const Style *s, const Stmt *loop) {
    const Stmt *last = loop->body.count > 0 ? loop->body.at[loop->body.count - 1] : NULL;
    const bool plain = !s->lean && loop->parallel == 0 && !loop->simd && !loop->unroll &&
                       !loop->held && !loop->begin && !s->k->flat.known;
    if (!plain || !last || last->kind != STMT_FOR || !last->simd || last->begin) {
        return NULL;
    }
    const int64_t rows = s->k->axis[loop->axis].extent, places = s->k->axis[last->axis].extent;
    const bool fits =
        places < NARROW_LANES && rows * places >= NARROW_LANES && rows <= NARROW_MOST / places;
    return fits ? last : NULL;
}

/* The element of memory that a place of the first row stands for. */
static const char *first_row_text(Style *s, const Stmt *loop, const NarrowRow *row) {
    Index at = *row->at;
    Term *term = ARENA_ARRAY(s->out->arena, Term, at.nterm);
    at.nterm = 0;
    for (int i = 0; i < row->at->nterm; i++) {
        const Atom *atom = row->at->term[i].atom;
        if (atom->kind != ATOM_AXIS || atom->number != loop->axis) {
            term[at.nterm++] = row->at->term[i];
        }
    }
    at.term = term;
    s->narrow.open = false;
    const char *text = place_text(s, row->arg, &at);
    s->narrow.open = true;
    return text;
}

/* The rows lie one behind another, so one loop copies them all. */
static void copy_rows(Style *s, const Stmt *loop, const NarrowRow *row) {
    const int axis = loop->body.at[loop->body.count - 1]->axis;
    const int64_t count = s->k->axis[loop->axis].extent * s->k->axis[axis].extent;
    const char *name = s->axis[axis], *place = first_row_text(s, loop, row);
    line(s, "MD_IVDEP");
    line(s, "for (int64_t %s = 0; %s < %" PRId64 "; %s++) {", name, name, count, name);
    if (row->written) {
        line(s, "    %s = (%s)%s[%s];", place, elem_c_name(row->arg->elem), row->name, name);
    } else {
        line(s, "    %s[%s] = %s;", row->name, name, place);
    }
    line(s, "}");
}

void narrow_open(Style *s, const Stmt *loop) {
    const Stmt *places = s->narrow.loop ? NULL : places_of(s, loop);
    if (!places) {
        return;
    }
    Arena *arena = s->out->arena;
    Narrow rows = {.loop = loop, .open = true};
    Search x = {.rows = &rows,
                .seen = ARENA_ARRAY(arena, bool, s->k->expr.count + 1),
                .row = loop->axis,
                .place = places->axis,
                .places = s->k->axis[places->axis].extent,
                .fits = true};
    /* What has a name already is read in front of the loop. */
    for (int i = 0; i < s->k->expr.count; i++) {
        x.seen[i] = s->bound[i] != NULL;
    }
    if (!find_all(&x, &loop->body, loop->body.count - 1) ||
        !find_all(&x, &places->body, places->body.count) || rows.count == 0 || !x.wide) {
        return;
    }
    const int64_t count = s->k->axis[loop->axis].extent * x.places;
    for (int i = 0; i < rows.count; i++) {
        NarrowRow *row = &rows.row[i];
        row->name = style_name(s, "words");
        row->place = str_printf(arena, "%s[%s * %" PRId64 " + %s]", row->name, s->axis[loop->axis],
                                x.places, s->axis[places->axis]);
        line(s, "int32_t %s[%" PRId64 "];", row->name, count);
    }
    s->narrow = rows;
    for (int i = 0; i < rows.count; i++) {
        if (!rows.row[i].written) {
            copy_rows(s, loop, &rows.row[i]);
        }
    }
}

void narrow_close(Style *s, const Stmt *loop) {
    if (s->narrow.loop != loop) {
        return;
    }
    for (int i = 0; i < s->narrow.count; i++) {
        if (s->narrow.row[i].written) {
            copy_rows(s, loop, &s->narrow.row[i]);
        }
    }
    s->narrow = (Narrow){.count = 0};
}

const char *narrow_place(const Style *s, const Arg *arg) {
    for (int i = 0; s->narrow.open && i < s->narrow.count; i++) {
        if (s->narrow.row[i].arg == arg) {
            return s->narrow.row[i].place;
        }
    }
    return NULL;
}
