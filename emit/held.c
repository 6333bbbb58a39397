/* held: loops that have the few sums they add to in local variables.
 *
 * C compilers keep elements of a local array in registers all through a loop. Elements of memory
 * they store in each turn, even where nothing else can be meant by the address.
 * Needs a FOR that is `held`: its last statement is a vector loop, in which loops that are written
 * out end in the store; gives the text around the loop. */
#include "emit/held.h"

#include "emit/stmts.h"

#include <inttypes.h>

static const Stmt *last_of(const Stmt *st) {
    return st->body.at[st->body.count - 1];
}

/* The loops of the copies are those of the sums, without what is added. */
static void held_copy(Style *s, const Stmt *loop, int way) {
    const Stmt *block[1] = {last_of(loop)};
    const StmtList list = {.at = (Stmt **)block, .count = 1};
    s->held.way = way;
    list_print(s, &list);
    s->held.way = HELD_ADD;
}

void held_open(Style *s, const Stmt *loop) {
    Arena *arena = s->out->arena;
    const Stmt *vector = last_of(loop), *at = last_of(vector);
    const int64_t lanes = vector->begin ? vector->span : s->k->axis[vector->axis].extent;
    int64_t count = lanes;
    const char *flat = NULL;
    for (; at->kind == STMT_FOR; at = last_of(at)) {
        const int64_t extent = s->k->axis[at->axis].extent;
        count *= extent;
        flat = flat ? str_printf(arena, "(%s * %" PRId64 " + %s)", flat, extent, s->axis[at->axis])
                    : s->axis[at->axis];
    }
    if (at->kind != STMT_STORE || !flat) {
        BUG("nothing is held");
    }
    const char *first =
        vector->begin ? str_printf(arena, " - %s", index_text(s, vector->begin)) : "";
    const char *name = style_name(s, "held");
    line(s, "%s %s[%" PRId64 "];", elem_c_name(at->arg->elem), name, count);
    s->held = (Held){.store = at,
                     .place = str_printf(arena, "%s[%s * %" PRId64 " + %s%s]", name, flat, lanes,
                                         s->axis[vector->axis], first)};
    held_copy(s, loop, HELD_READ);
}

void held_close(Style *s, const Stmt *loop) {
    held_copy(s, loop, HELD_WRITE);
    s->held = (Held){0};
}

bool held_store(Style *s, const Stmt *store) {
    if (s->held.store != store) {
        return false;
    }
    style_indent(s);
    if (s->held.way == HELD_ADD) {
        style_combine(s, store->add, store->arg->elem, s->held.place, expr_text(s, store->expr));
        text_add(s->out, "\n");
        return true;
    }
    const char *place = place_text(s, store->arg, store->index);
    const bool read = s->held.way == HELD_READ;
    text_printf(s->out, "%s = %s;\n", read ? s->held.place : place, read ? place : s->held.place);
    return true;
}
