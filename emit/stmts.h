/* stmts: what the printers of statements share: target_c.c, tiles.c and cuda.c. */
#ifndef MDLC_EMIT_STMTS_H
#define MDLC_EMIT_STMTS_H

#include "emit/cstyle.h"
#include "emit/printer.h"

typedef VEC(const char *) Words;

/* One line at the depth of the style. */
static inline void line(Style *s, const char *fmt, ...) MDLC_PRINTF(2, 3);
static inline void line(Style *s, const char *fmt, ...) {
    style_indent(s);
    va_list ap;
    va_start(ap, fmt);
    text_vprintf(s->out, fmt, ap);
    va_end(ap);
    text_add(s->out, "\n");
}

/* What style_index would print, as a string. */
static inline const char *index_text(Style *s, const Index *index) {
    Text *out = s->out, text = {.arena = out->arena};
    s->out = &text;
    style_index(s, index);
    s->out = out;
    return text.at;
}

/* The same of style_expr. */
static inline const char *expr_text(Style *s, const Expr *e) {
    Text *out = s->out, text = {.arena = out->arena};
    s->out = &text;
    style_expr(s, e);
    s->out = out;
    return text.at;
}

/* The same of style_place. */
static inline const char *place_text(Style *s, const Arg *arg, const Index *index) {
    Text *out = s->out, text = {.arena = out->arena};
    s->out = &text;
    style_place(s, arg, index);
    s->out = out;
    return text.at;
}

/* Where an operand begins: `x + offset`, without an offset of zero; NULL: there is none. */
static inline const char *operand_text(Style *s, const Arg *arg, const Index *at) {
    int64_t value;
    if (!arg) {
        return "NULL";
    }
    bool zero = index_is_const(at, &value) && value == 0;
    return zero ? s->arg[arg->id]
                : str_printf(s->out->arena, "%s + (%s)", s->arg[arg->id], index_text(s, at));
}

/* --- target_c.c --- */
/* "first(a, b, c" in lines of at most 100 columns, those behind the first one indented. */
void words_print(Text *out, const char *first, const Words *words, int indent);
const char *arg_parameter(Style *s, const Arg *arg); /* type and name */
Words kernel_parameters(Style *s);                   /* its arguments, then its numbers */
/* The source of the call that is met first, as a comment. `sized`: with the shape of its result,
 * and how many calls there are. */
void origin_print(Text *out, const Step *step, bool sized);
/* What a call passes, `comma` in front of the first. */
void call_print(Text *out, const Emit *e, const Step *step, const char *comma);
void let_print(Style *s, const Stmt *st);
/* --- orders.c --- */
void order_print(Style *s, const Ordering *order);
/* --- target_c.c --- */
void list_print(Style *s, const StmtList *list);
void block_print(Style *s, const StmtList *list);  /* one step deeper; its names end with it */
void block_unbind(Style *s, const StmtList *list); /* its names end */

/* --- tiles.c --- */
void tile_print(Style *s, const Tile *tile);
/* Parts of runtime/tile_kernel.h that it uses, by the names of their regions, and its register
 * tiles (Tile.bodies). `apart`: plans stand in another file. */
void tile_features(Arena *arena, const Tile *tile, bool apart, uint64_t *bodies, NameList *list);
bool tile_pairs(const Tile *tile); /* multiplies bfloat16 in pairs, where a machine does that */
bool tile_asks(const Tile *tile); /* for memory that something else reads later */
/* What stands in front of the kernel's function. Sets the kernels by which its plan and its
 * epilogue are called, its own or one of `known`; of the epilogue NULL: it has none. */
void tile_print_plan(Style *s, Text *out, const Tile *tile, Products *known);

#endif
