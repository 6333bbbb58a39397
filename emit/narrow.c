/* narrow: short rows whose bytes go through words.
 *
 * C compilers give all values of a loop vectors of as many elements. Of a row shorter than the
 * bytes of one register they take eight elements or fewer where a byte is among them, and then
 * convert by single steps: the place of the largest in a window of 14 x 14 places took five times
 * what the values took. So the bytes of several such rows, which lie one behind another, are
 * widened to a local array in front of the loop over the rows, or narrowed from it behind that
 * loop, in one long run each; in between a byte is a word like all else. And where the places of a
 * row are no multiple of a vector's, the row is two vectors that overlap: the places that both have
 * are made twice, since gcc would make the last ones of each row one by one, with branches.
 * Needs a loop over rows whose last statement is a vector loop; gives the text around it; changes
 * no values. */
#include "emit/narrow.h"

#include "emit/draws.h"
#include "emit/stmts.h"

#include <inttypes.h>

enum {
    NARROW_LANES = 16,            /* rows shorter than this, */
    NARROW_AT_ONCE = TUNED(32, 3) /* so many at once: up to 2 KiB of the stack */
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
    bool *seen;        /* by Expr.id */
    bool *read, *made; /* by Arg.id */
    int row, place;
    int64_t places;
    bool fits;
    bool wide;  /* something else has words */
    bool twice; /* nothing is added to what is there */
} Search;

/* One array for each argument, which is read or written at one place in each turn. */
static void found(Search *x, const Arg *arg, const Index *at, bool written, bool plain) {
    Narrow *rows = x->rows;
    (written ? x->made : x->read)[arg->id] = true;
    x->twice = x->twice && (plain || !written);
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
    const bool plain = !s->lean && !loop->simd && !loop->unroll && !loop->held && !s->k->flat.known;
    if (!plain || !last || last->kind != STMT_FOR || !last->simd || last->begin) {
        return NULL;
    }
    const int64_t rows = s->k->axis[loop->axis].extent, places = s->k->axis[last->axis].extent;
    return places < NARROW_LANES && rows * places >= NARROW_LANES ? last : NULL;
}

/* An element of row `from`; NULL: of the first row, whose term the index does not need. */
static const char *element_text(Style *s, const Search *x, const NarrowRow *row, const char *from) {
    const char *outer = s->axis[x->row];
    Index at = *row->at;
    Term *term = ARENA_ARRAY(s->out->arena, Term, at.nterm);
    at.nterm = 0;
    for (int i = 0; i < row->at->nterm; i++) {
        const Atom *atom = row->at->term[i].atom;
        if (from || atom->kind != ATOM_AXIS || atom->number != x->row) {
            term[at.nterm++] = row->at->term[i];
        }
    }
    at.term = term;
    s->axis[x->row] = from;
    s->narrow.open = false;
    const char *text = place_text(s, row->arg, &at);
    s->narrow.open = true;
    s->axis[x->row] = outer;
    return text;
}

/* One loop over the elements of all rows at hand, `count` of them, from row `from` on. */
static void copy_rows(Style *s, const Search *x, const NarrowRow *row, const char *from,
                      const char *count) {
    const char *name = s->axis[x->place], *place = element_text(s, x, row, from);
    line(s, "MD_IVDEP");
    line(s, "for (int64_t %s = 0; %s < %s; %s++) {", name, name, count, name);
    if (row->written) {
        line(s, "    %s = (%s)%s[%s];", place, elem_c_name(row->arg->elem), row->name, name);
    } else {
        line(s, "    %s[%s] = %s;", row->name, name, place);
    }
    line(s, "}");
}

static void copy_all(Style *s, const Search *x, bool written, const char *from, const char *count) {
    for (int i = 0; i < s->narrow.count; i++) {
        if (s->narrow.row[i].written == written) {
            copy_rows(s, x, &s->narrow.row[i], from, count);
        }
    }
}

/* What goes through words in the loop; none: it is left alone. */
static Search search(const Style *s, const Stmt *loop, const Stmt *places, Narrow *rows) {
    Search x = {.rows = rows,
                .seen = ARENA_ARRAY(s->out->arena, bool, s->k->expr.count + 1),
                .read = ARENA_ARRAY(s->out->arena, bool, s->k->nargs + 1),
                .made = ARENA_ARRAY(s->out->arena, bool, s->k->nargs + 1),
                .row = loop->axis,
                .place = places->axis,
                .places = s->k->axis[places->axis].extent,
                .fits = true,
                .twice = true};
    /* What has a name already is read in front of the loop. */
    for (int i = 0; i < s->k->expr.count; i++) {
        x.seen[i] = s->bound[i] != NULL;
    }
    if (!find_all(&x, &loop->body, loop->body.count - 1) ||
        !find_all(&x, &places->body, places->body.count) || !x.wide) {
        rows->count = 0;
    }
    return x;
}

/* How many places a vector of two that overlap has; 0: they may not be made twice, since something
 * is read that is written, or need not. */
static int64_t overlapping(const Style *s, const Search *x, const Stmt *places) {
    const int64_t vector = x->places > 8 ? 8 : 4;
    bool twice = x->twice && x->places > vector && x->places % vector != 0 &&
                 x->places < 2 * vector && !places->unroll && !places->held &&
                 places->ahead.count == 0 && !draws_any(s, places->axis, &places->body);
    for (int i = 0; i < s->k->nargs; i++) {
        twice = twice && !(x->read[i] && x->made[i]);
    }
    for (int i = 0; i < s->k->pair.count; i++) {
        const ArgPair *pair = &s->k->pair.at[i];
        twice = twice && !(x->read[pair->in] && x->made[pair->out]);
    }
    return twice ? vector : 0;
}

/* What a row does. */
static void print_row(Style *s, const Search *x, const Stmt *loop) {
    const Stmt *places = loop->body.at[loop->body.count - 1];
    const int64_t vector = overlapping(s, x, places);
    if (vector == 0) {
        block_print(s, &loop->body);
        return;
    }
    StmtList before = loop->body;
    before.count--;
    s->depth++;
    list_print(s, &before);
    const char *name = s->axis[places->axis];
    const char *from = style_name(s, str_printf(s->out->arena, "%s_from", name));
    const int64_t last = x->places - vector;
    line(s, "for (int64_t %s = 0; %s <= %" PRId64 "; %s += %" PRId64 ") {", from, from, last, from,
         last);
    s->depth++;
    line(s, "MD_IVDEP");
    line(s, "for (int64_t %s = %s; %s < %s + %" PRId64 "; %s++) {", name, from, name, from, vector,
         name);
    block_print(s, &places->body);
    line(s, "}");
    s->depth--;
    line(s, "}");
    block_unbind(s, &loop->body);
    s->depth--;
}

bool narrow_loop(Style *s, const Stmt *loop, const char *first, const char *end) {
    const Stmt *places = s->narrow.open ? NULL : places_of(s, loop);
    if (!places) {
        return false;
    }
    Arena *arena = s->out->arena;
    Narrow rows = {.open = true};
    const Search x = search(s, loop, places, &rows);
    if (rows.count == 0) {
        return false;
    }
    const char *row = s->axis[loop->axis], *from = NULL;
    const int64_t extent = s->k->axis[loop->axis].extent;
    const bool once = extent <= NARROW_AT_ONCE && loop->parallel == 0 && !loop->begin;
    const int64_t most = once ? extent : NARROW_AT_ONCE;
    const char *count = str_printf(arena, "%" PRId64, most * x.places);
    for (int i = 0; i < rows.count; i++) {
        rows.row[i].name = style_name(s, "words");
        line(s, "int32_t %s[%s];", rows.row[i].name, count);
    }
    if (!once) {
        from = style_name(s, str_printf(arena, "%s_from", row));
        const char *to = style_name(s, str_printf(arena, "%s_to", row));
        line(s, "for (int64_t %s = %s; %s < %s; %s += %" PRId64 ") {", from, first, from, end, from,
             most);
        s->depth++;
        line(s, "const int64_t %s = %s + %" PRId64 " < %s ? %s + %" PRId64 " : %s;", to, from, most,
             end, from, most, end);
        first = from;
        end = to;
        count = str_printf(arena, "(%s - %s) * %" PRId64, to, from, x.places);
    }
    for (int i = 0; i < rows.count; i++) {
        const char *at = once ? row : str_printf(arena, "(%s - %s)", row, from);
        rows.row[i].place = str_printf(arena, "%s[%s * %" PRId64 " + %s]", rows.row[i].name, at,
                                       x.places, s->axis[places->axis]);
    }
    s->narrow = rows;
    copy_all(s, &x, false, from, count);
    line(s, "for (int64_t %s = %s; %s < %s; %s++) {", row, first, row, end, row);
    print_row(s, &x, loop);
    line(s, "}");
    copy_all(s, &x, true, from, count);
    s->narrow = (Narrow){.count = 0};
    if (!once) {
        s->depth--;
        line(s, "}");
    }
    return true;
}

const char *narrow_place(const Style *s, const Arg *arg) {
    for (int i = 0; s->narrow.open && i < s->narrow.count; i++) {
        if (s->narrow.row[i].arg == arg) {
            return s->narrow.row[i].place;
        }
    }
    return NULL;
}
