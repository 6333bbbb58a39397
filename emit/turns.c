/* turns: see the header. Needs a finished kernel; gives text; decides nothing. */
#include "emit/turns.h"

#include "emit/numbers.h"
#include "emit/stmts.h"

#include <inttypes.h>

const char *turns_extent(const Style *s, int axis) {
    const Flat *flat = &s->k->flat;
    if (flat->known && axis == flat->axis) {
        return s->size;
    }
    if (flat->known && axis == flat->block) {
        return flat->exact ? str_printf(s->out->arena, "%s / %" PRId64, s->size, flat->span)
                           : str_printf(s->out->arena, "(%s + %" PRId64 ") / %" PRId64, s->size,
                                        flat->span - 1, flat->span);
    }
    const char *element = numbers_extent(s->numbers, axis);
    return element != NULL ? element
                           : str_printf(s->out->arena, "%" PRId64, s->k->axis[axis].extent);
}

/* Of a loop that may begin later and end earlier than its axis. */
static void bounds(Style *s, int axis, const Index *begin, int64_t span, const char **first,
                   const char **end) {
    int64_t extent = s->k->axis[axis].extent;
    Arena *arena = s->out->arena;
    const char *whole = turns_extent(s, axis);
    const Flat *flat = &s->k->flat;
    *first = "0";
    *end = whole;
    int64_t value;
    if (begin && index_is_const(begin, &value)) {
        *first = str_printf(arena, "%" PRId64, value);
        *end = str_printf(arena, "%" PRId64, value + span < extent ? value + span : extent);
    } else if (begin) {
        *first = index_text(s, begin);
        *end = style_name(s, str_printf(arena, "%s_end", s->axis[axis]));
        if (flat->known ? flat->exact : begin->most + span <= extent) {
            line(s, "const int64_t %s = %s + %" PRId64 ";", *end, *first, span);
        } else {
            line(s, "const int64_t %s = %s + %" PRId64 " < %s ? %s + %" PRId64 " : %s;", *end,
                 *first, span, whole, *first, span, whole);
        }
    }
}

/* Not before the first turn, nor behind the last one. */
static const char *until_text(Style *s, const Stmt *st, int axis, const char *first,
                              const char *end) {
    Arena *arena = s->out->arena;
    const Index *until = st->until;
    const bool early = st->begin || until->least < 0;
    const bool late = st->begin || until->most > s->k->axis[axis].extent;
    const char *name = style_name(s, str_printf(arena, "%s_end", s->axis[axis]));
    if (!early && !late) {
        line(s, "const int64_t %s = %s;", name, index_text(s, until));
        return name;
    }
    const char *edge = style_name(s, "edge");
    line(s, "const int64_t %s = %s;", edge, index_text(s, until));
    const char *least = early ? str_printf(arena, "%s < %s ? %s : ", edge, first, first) : "";
    const char *most = late ? str_printf(arena, "%s > %s ? %s : ", edge, end, end) : "";
    line(s, "const int64_t %s = %s%s%s;", name, least, most, edge);
    return name;
}

const char *turns_most(Style *s, int axis, const char *first, int64_t most) {
    const char *name = style_name(s, str_printf(s->out->arena, "%s_zero", s->axis[axis]));
    const char *whole = turns_extent(s, axis);
    line(s, "const int64_t %s = %s + %" PRId64 " < %s ? %s + %" PRId64 " : %s;", name, first, most,
         whole, first, most, whole);
    return name;
}

void turns_bounds(Style *s, const Stmt *st, int i, const char **first, const char **end) {
    const int axis = st->kind == STMT_FOLD ? st->axes.at[i] : st->axis;
    bounds(s, axis, i == 0 ? st->begin : NULL, st->span, first, end);
    if (st->until) {
        *end = until_text(s, st, axis, *first, *end);
    }
}

bool turns_uneven(const StmtList *list, int axis) {
    bool uneven = false;
    for (int i = 0; i < list->count && !uneven; i++) {
        const Stmt *st = list->at[i];
        uneven = (st->until && (st->until->axes >> axis & 1)) || turns_uneven(&st->body, axis);
    }
    return uneven;
}

void turns_even(Style *s, int axis, const char *turn) {
    const char *name = s->axis[axis];
    const char *at = style_name(s, str_printf(s->out->arena, "%s_turn", name));
    line(s, "    const int64_t %s = %s;", at, turn);
    line(s, "    const int64_t %s = %s %% 2 == 0 ? %s / 2 : %" PRId64 " - %s / 2;", name, at, at,
         s->k->axis[axis].extent - 1, at);
}
