/* held: what sums add, and loops that have the few they add to in local variables.
 *
 * C compilers keep elements of a local array in registers all through a loop. Elements of memory
 * they store in each turn, even where nothing else can be meant by the address.
 * Needs a FOR that is `held`: its last statements end in a vector loop, or it is one itself. In
 * that, loops that are written out end in the store, and may begin with one. Gives the text around
 * the loop, or around what a turn of the vector loop does. */
#include "emit/held.h"

#include "emit/stmts.h"

#include <inttypes.h>

static const Stmt *last_of(const Stmt *st) {
    return st->body.at[st->body.count - 1];
}

/* The loop along the elements that a lane adds to: that of a vector loop is each turn's own. */
static const Stmt *vector_of(const Stmt *loop) {
    while (!loop->simd) {
        loop = last_of(loop);
    }
    return loop;
}

static bool along(const Stmt *loop, const Stmt *store) {
    return store->index->axes >> loop->axis & 1;
}

static const Stmt *store_in(const Stmt *st) {
    while (st->kind == STMT_FOR) {
        st = last_of(st);
    }
    return st;
}

/* The lanes of a vector loop, of which there are a constant number. */
static void copy_lanes(Style *s, const Stmt *vector) {
    const char *lane = s->axis[vector->axis];
    line(s, "for (int64_t %s = 0; %s < %" PRId64 "; %s++) {", lane, lane,
         s->k->axis[vector->axis].extent, lane);
    s->depth++;
    list_print(s, &vector->body);
    s->depth--;
    line(s, "}");
}

/* The loops of the copies are those of the sums, without what is added and what is added up. */
static void held_copy(Style *s, const Stmt *loop, int way) {
    s->held.way = way;
    if (loop->simd) {
        const Stmt *block[1] = {last_of(loop)};
        while (!along(block[0], s->held.store)) {
            block[0] = last_of(block[0]);
        }
        list_print(s, &(StmtList){.at = (Stmt **)block, .count = 1});
    } else {
        copy_lanes(s, vector_of(loop));
    }
    s->held.way = HELD_ADD;
}

void held_open(Style *s, const Stmt *loop) {
    Arena *arena = s->out->arena;
    const Stmt *vector = vector_of(loop), *store = store_in(vector);
    const int64_t lanes = loop->simd ? 1 : s->k->axis[vector->axis].extent;
    int64_t count = lanes;
    const char *flat = NULL;
    for (const Stmt *at = last_of(vector); at->kind == STMT_FOR; at = last_of(at)) {
        if (along(at, store)) {
            const int64_t extent = s->k->axis[at->axis].extent;
            const char *name = s->axis[at->axis];
            count *= extent;
            flat = flat ? str_printf(arena, "(%s * %" PRId64 " + %s)", flat, extent, name) : name;
        }
    }
    if (store->kind != STMT_STORE || !flat || (vector->begin && !loop->simd)) {
        BUG("nothing is held");
    }
    const char *name = style_name(s, "held");
    line(s, "%s %s[%" PRId64 "];", elem_c_name(store->arg->elem), name, count);
    const char *lane =
        loop->simd ? "" : str_printf(arena, " * %" PRId64 " + %s", lanes, s->axis[vector->axis]);
    const Stmt *begins = loop->simd ? store_in(vector->body.at[0]) : store;
    s->held = (Held){.store = store, .place = str_printf(arena, "%s[%s%s]", name, flat, lane)};
    if (begins->kind == STMT_STORE && begins != store && begins->add == OP_CONST) {
        s->held.first = begins;
    } else {
        held_copy(s, loop, HELD_READ);
    }
}

void held_close(Style *s, const Stmt *loop) {
    held_copy(s, loop, HELD_WRITE);
    s->held = (Held){0};
}

void held_turn(Style *s, const Stmt *loop) {
    s->depth++;
    held_open(s, loop);
    list_print(s, &loop->body);
    held_close(s, loop);
    block_unbind(s, &loop->body);
    s->depth--;
}

void combined_print(Style *s, OpCode op, Elem elem, const char *a, const Expr *e) {
    if (!e->term || (op != OP_ADD && op != OP_SUM)) {
        style_combine(s, op, elem, a, expr_text(s, e));
        return;
    }
    const char *x = expr_text(s, e->in[0]), *y = expr_text(s, e->in[1]);
    text_printf(s->out, "%s = %s(%s, %s, %s);", a, elem == TY_F64 ? "md_mad" : "md_madf", x, y, a);
}

bool held_store(Style *s, const Stmt *store) {
    if (s->held.store != store && s->held.first != store) {
        return false;
    }
    style_indent(s);
    if (s->held.first == store) {
        text_printf(s->out, "%s = %s;\n", s->held.place, expr_text(s, store->expr));
        return true;
    }
    if (s->held.way == HELD_ADD) {
        combined_print(s, store->add, store->arg->elem, s->held.place, store->expr);
        text_add(s->out, "\n");
        return true;
    }
    const char *place = place_text(s, store->arg, store->index);
    const bool read = s->held.way == HELD_READ;
    text_printf(s->out, "%s = %s;\n", read ? s->held.place : place, read ? place : s->held.place);
    return true;
}
