/* draws: a Philox block serves four elements in a row; a loop that asks for one element at a time
 * would compute each block four times. So the row is made first, and the loop reads it. A flat loop
 * over a tensor of any size has no rows unless it runs in blocks: its text does not depend on the
 * size.
 * Needs an innermost loop whose bounds are printed; gives the same numbers as the draws
 * themselves. */
#include "emit/draws.h"

#include <inttypes.h>
#include <string.h>

enum { DRAWS_MOST = 4 };

/* `seen` by Expr.id: values are made of others in many ways. */
static void find(const Style *s, int axis, const Expr *e, bool *seen, Draws *draws) {
    int64_t mul;
    if (s->bound[e->id] || seen[e->id] || draws->count == DRAWS_MOST) {
        return;
    }
    seen[e->id] = true;
    if (e->kind == EXPR_DRAW && e->dist == DIST_UNIFORM && e->elem == TY_F32 &&
        index_stride(e->index, axis, &mul) && mul == 1) {
        draws->draw[draws->count++] = e;
        return;
    }
    for (int i = 0; i < e->nkid; i++) {
        find(s, axis, e->kid[i], seen, draws);
    }
}

static const char *operand(Style *s, const char *text) {
    bool plain = strspn(text, "abcdefghijklmnopqrstuvwxyz_0123456789") == strlen(text);
    return plain ? text : str_printf(s->out->arena, "(%s)", text);
}

/* The index with `first` in place of the loop's variable. */
static const char *start_text(Style *s, int axis, const Index *index, const char *first) {
    Text text = {.arena = s->out->arena}, *out = s->out;
    const char *name = s->axis[axis];
    s->axis[axis] = operand(s, first);
    s->out = &text;
    style_index(s, index);
    s->out = out;
    s->axis[axis] = name;
    size_t n = text.len;
    if (n > 4 && strcmp(text.at + n - 4, " + 0") == 0) {
        text.at[n - 4] = 0;
    }
    return text.at;
}

/* False where it is not the innermost loop. */
static bool find_all(const Style *s, int axis, const StmtList *body, Draws *draws) {
    bool *seen = ARENA_ARRAY(s->out->arena, bool, s->k->expr.count + 1);
    for (int i = 0; i < body->count; i++) {
        const Stmt *st = body->at[i];
        if (st->kind != STMT_LET && st->kind != STMT_STORE) {
            return false;
        }
        find(s, axis, st->kind == STMT_LET && st->as ? st->as : st->expr, seen, draws);
    }
    return true;
}

bool draws_any(const Style *s, int axis, const StmtList *body) {
    Draws draws = {.count = 0};
    return find_all(s, axis, body, &draws) && draws.count > 0;
}

Draws draws_open(Style *s, int axis, const char *first, const char *end, int64_t most,
                 const StmtList *body) {
    Draws draws = {.count = 0};
    const Flat *flat = &s->k->flat;
    bool sized = flat->known && axis == flat->axis;
    most = sized ? flat->span : most;
    if (most > DRAWS_ROW || most < 4 || (sized && flat->block < 0)) {
        return draws;
    }
    if (!find_all(s, axis, body, &draws)) {
        return (Draws){.count = 0};
    }
    bool from_zero = strcmp(first, "0") == 0;
    for (int i = 0; i < draws.count; i++) {
        const Expr *e = draws.draw[i];
        const char *row = style_name(s, "draw");
        style_indent(s);
        text_printf(s->out, "float %s[%" PRId64 "];\n", row, most);
        style_indent(s);
        text_add(s->out, "md_rand_fill_f32(");
        style_expr(s, e->in[0]);
        size_t n = strlen(first);
        bool sum = strncmp(end, first, n) == 0 && strncmp(end + n, " + ", 3) == 0;
        const char *count = from_zero ? end
                            : sum     ? end + n + 3
                                  : str_printf(s->out->arena, "%s - %s", end, operand(s, first));
        const char *start = start_text(s, axis, e->index, first);
        bool one = start[0] == '(' && strchr(start, ')') == start + strlen(start) - 1;
        text_printf(s->out, one ? ", (uint64_t)%s, %s, %s);\n" : ", (uint64_t)(%s), %s, %s);\n",
                    start, count, row);
        s->bound[e->id] = from_zero ? str_printf(s->out->arena, "%s[%s]", row, s->axis[axis])
                                    : str_printf(s->out->arena, "%s[%s - %s]", row, s->axis[axis],
                                                 operand(s, first));
    }
    return draws;
}

void draws_close(Style *s, const Draws *draws) {
    for (int i = 0; i < draws->count; i++) {
        s->bound[draws->draw[i]->id] = NULL;
    }
}
