/* blocks: see the header. A FOR is shared whose iterations hold no further FOR, a FOLD whose
 * iterations hold no loop; what stands around those every thread does, but for stores, which the
 * first does between two meetings. So each element of memory that one thread writes another reads
 * only behind a meeting. Folds of threads are combined in a fixed tree. Needs statements that
 * list_shared_extent allows; gives text. */
#include "emit/blocks.h"

#include "emit/stmts.h"

#include <string.h>

void block_meet(Style *s) {
    static const char meet[] = "__syncthreads();\n";
    const Text *out = s->out;
    const size_t n = sizeof meet - 1;
    bool met = out->len >= n && memcmp(out->at + out->len - n, meet, n) == 0;
    if (s->block > 0 && !met) {
        style_indent(s);
        text_add(s->out, meet);
    }
}

int block_loop(Style *s, const Stmt *st, const char *name, const char *first, const char *end) {
    int shared = s->block > 0 && stmt_is_shared(st) ? s->block : 0;
    if (shared == 0) {
        line(s, "for (int64_t %s = %s; %s < %s; %s++) {", name, first, name, end, name);
        return 0;
    }
    const char *lane =
        str_eq(first, "0") ? "threadIdx.x" : str_printf(s->out->arena, "%s + threadIdx.x", first);
    line(s, "for (int64_t %s = %s; %s < %s; %s += %d) {", name, lane, name, end, name, shared);
    s->block = 0;
    return shared;
}

void block_loop_end(Style *s, int shared) {
    line(s, "}");
    s->block = shared > 0 ? shared : s->block;
}

void block_fold(Style *s, const Stmt *st, const char *const *place, int shared) {
    for (int k = 0; k < st->fold.count && shared > 0; k++) {
        const Expr *e = st->fold.at[k];
        const char *type = elem_c_name(e->elem);
        style_indent(s);
        text_printf(s->out, "%s = md_block_fold<%d>(%s, [](%s a, %s b) { ", place[k], shared,
                    place[k], type, type);
        style_combine(s, e->op, e->elem, "a", "b");
        text_add(s->out, " return a; });\n");
    }
}
