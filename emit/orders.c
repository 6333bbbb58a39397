/* orders: the call of runtime/sort.h that a statement ORDER is. Needs the style of its kernel;
 * gives its text; decides nothing. */
#include "emit/stmts.h"

#include <inttypes.h>

void order_print(Style *s, const Ordering *o) {
    Arena *arena = s->out->arena;
    const char *plan = style_name(s, "lines");
    int bits = order_bits(o->x->elem);
    line(s,
         "const md_sort_lines %s = {/* lines */ %" PRId64 ", /* of */ %" PRId64
         ", /* the first */ %" PRId64 ",",
         plan, o->rows, o->n, o->most);
    line(s, "        sizeof(%s), /* descending */ %d};", elem_c_name(o->x->elem), o->descending);
    bool shared = o->way == ORDER_LONG;
    Words words = {0};
    VEC_PUSH(arena, &words, str_printf(arena, "&%s", plan));
    VEC_PUSH(arena, &words,
             str_printf(arena, "md_sort_%s_%d", o->way == ORDER_FIRST ? "first" : "line", bits));
    if (shared) {
        VEC_PUSH(arena, &words, str_printf(arena, "md_sort_stretch_%d", bits));
    }
    VEC_PUSH(arena, &words, str_printf(arena, "md_sort_keys_%s", elem_name(o->x->elem)));
    VEC_PUSH(arena, &words, operand_text(s, o->out, o->at_out));
    VEC_PUSH(arena, &words, operand_text(s, o->x, o->at_x));
    VEC_PUSH(arena, &words, s->arg[o->work->id]);
    if (!shared) {
        VEC_PUSH(arena, &words, str_printf(arena, "/* bytes */ %" PRId64, ordering_work(s->k, o)));
    }
    VEC_PUSH(arena, &words, o->team ? s->pace : "NULL");
    VEC_PUSH(arena, &words, str_printf(arena, "%d", o->team ? s->k->threads : 1));
    const char *run = shared ? "md_sort_run_long(" : "md_sort_run(";
    int indent = 4 * s->depth;
    words_print(s->out, str_printf(arena, "%*s%s", indent, "", run), &words, indent + 4);
    text_add(s->out, ");\n");
}
