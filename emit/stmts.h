/* stmts: what the printers of statements share, target_c.c and tiles.c. */
#ifndef MDLC_EMIT_STMTS_H
#define MDLC_EMIT_STMTS_H

#include "emit/cstyle.h"

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

/* "first(a, b, c" in lines of at most 100 columns, those behind the first one indented. */
void words_print(Text *out, const char *first, const Words *words, int indent);
void let_print(Style *s, const Stmt *st);
void block_print(Style *s, const StmtList *list);  /* one step deeper; its names end with it */
void block_unbind(Style *s, const StmtList *list); /* its names end */

void tile_print(Style *s, const Tile *tile);
/* Parts of runtime/tile_kernel.h that it uses, by the names of their regions. */
void tile_features(Arena *arena, const Tile *tile, NameList *list);
/* What stands in front of the kernel's function. */
void tile_print_plan(Text *out, const Kernel *k, const Tile *tile);

#endif
