/* tiles: products by runtime/tile.h or a library: their plans, the epilogues that run over each
 * block, and the calls. Needs a planned Program; gives C; decides nothing. */
#include "emit/draws.h"
#include "emit/needs.h"
#include "emit/stmts.h"

#include <inttypes.h>

/* What an epilogue reads and writes: the arguments, loop indices and axes around it. */
static Needs tile_needs(Style *s, const Tile *tile) {
    Needs n = needs_of(s->out->arena, s->k, &tile->body, NULL);
    n.axes &= ~((AxisSet)1 << tile->batch | (AxisSet)1 << tile->row | (AxisSet)1 << tile->column);
    return n;
}

static const char *const block_parameters =
    "(void *ctx, int64_t %s, int64_t m0, int64_t rows, int64_t n0,\n"
    "    int64_t cols, %s *strip, int64_t ld) {\n";

/* An epilogue may look at its own block alone. */
static bool needs_arguments(const Kernel *k, const Needs *n) {
    bool any = n->axes != 0;
    for (int i = 0; i < k->arg.count; i++) { /* the strip is none of them */
        any = any || n->arg[k->arg.at[i]->id];
    }
    for (int i = 0; i < scalar_count(k); i++) {
        any = any || n->scalar[i];
    }
    return any;
}

/* The axes and scalars that a block uses of what is around it, with their types or without. */
static Words numbers_needed(Style *s, const Needs *n, bool typed) {
    Arena *arena = s->out->arena;
    Words words = {0};
    for (int i = 0; i < s->k->naxis; i++) {
        if (n->axes >> i & 1) {
            VEC_PUSH(arena, &words, str_printf(arena, "%s%s", typed ? "int64_t " : "", s->axis[i]));
        }
    }
    for (int i = 0; i < scalar_count(s->k); i++) {
        if (n->scalar[i]) {
            VEC_PUSH(arena, &words,
                     typed ? scalar_declared(arena, s->k, i) : scalar_name(arena, s->k, i));
        }
    }
    return words;
}

/* The struct that carries the kernel's arguments to the epilogue. */
static void print_arguments(Style *s, const Needs *n) {
    const Kernel *k = s->k;
    text_add(s->out, "typedef struct {\n");
    s->depth = 1;
    for (int i = 0; i < k->arg.count; i++) {
        const Arg *arg = k->arg.at[i];
        if (n->arg[arg->id]) {
            line(s, "%s%s *%s;", arg->mode & ACCESS_WRITE ? "" : "const ", elem_c_name(arg->elem),
                 s->arg[arg->id]);
        }
    }
    Words words = numbers_needed(s, n, true);
    for (int i = 0; i < words.count; i++) {
        line(s, "%s;", words.at[i]);
    }
    text_printf(s->out, "} %s_args;\n\n", k->name);
}

/* That struct and the epilogue. */
static void print_epilogue(Text *out, const Kernel *k, const Tile *tile) {
    Style s = style_open(out, k);
    Needs n = tile_needs(&s, tile);
    bool arguments = needs_arguments(k, &n);
    if (arguments) {
        print_arguments(&s, &n);
    }
    s.depth = 1;
    text_printf(out, "static void %s_epilogue", k->name);
    const char *batch = s.axis[tile->batch], *row = s.axis[tile->row], *col = s.axis[tile->column];
    text_printf(out, block_parameters, batch, elem_c_name(tile->strip->elem));
    if (arguments) {
        line(&s, "const %s_args *args = (const %s_args *)ctx;", k->name, k->name);
    } else {
        line(&s, "(void)ctx;");
    }
    for (int i = 0; i < k->arg.count; i++) {
        const Arg *arg = k->arg.at[i];
        if (n.arg[arg->id]) {
            line(&s, "%s%s *%s = args->%s;", arg->mode & ACCESS_WRITE ? "" : "const ",
                 elem_c_name(arg->elem), s.arg[arg->id], s.arg[arg->id]);
        }
    }
    Words words = numbers_needed(&s, &n, false), typed = numbers_needed(&s, &n, true);
    for (int i = 0; i < words.count; i++) {
        line(&s, "const %s = args->%s;", typed.at[i], words.at[i]);
    }
    line(&s, "(void)%s;", batch);
    const char *first = "n0", *end = "n0 + cols", *pitch = "ld";
    if (tile->narrow > 0) {
        first = "0";
        end = pitch = str_printf(out->arena, "%" PRId64, tile->narrow);
        line(&s, "(void)n0, (void)cols, (void)ld;");
    }
    s.arg[tile->strip->id] = "block";
    for (int i = 0; i < tile->body.count; i++) {
        const Stmt *st = tile->body.at[i];
        if (st->kind != STMT_FOR) {
            let_print(&s, st);
            continue;
        }
        if (tile->narrow > 0) { /* vectors run over several rows */
            line(&s, "MD_IVDEP");
        }
        line(&s, "for (int64_t %s = m0; %s < m0 + rows; %s++) {", row, row, row);
        s.depth++;
        line(&s, "%s *block = strip + (%s - m0) * %s;", elem_c_name(tile->strip->elem), row, pitch);
        for (int j = 0; j < st->body.count; j++) {
            const Stmt *inner = st->body.at[j];
            if (inner->kind != STMT_FOR) {
                let_print(&s, inner);
                continue;
            }
            int64_t most = k->axis[tile->column].extent;
            Draws draws = draws_open(&s, tile->column, first, end, most, &inner->body);
            line(&s, tile->narrow > 0 ? "MD_UNROLL" : "MD_IVDEP");
            line(&s, "for (int64_t %s = %s; %s < %s; %s++) {", col, first, col, end, col);
            block_print(&s, &inner->body);
            line(&s, "}");
            draws_close(&s, &draws);
        }
        block_unbind(&s, &st->body);
        s.depth--;
        line(&s, "}");
    }
    text_add(out, "}\n\n");
}

static const char *tile_suffix(const Tile *tile) {
    return tile->strip->elem == TY_F64 ? "f64" : "f32";
}

/* What stands in front of the kernel's function. */
void tile_print_plan(Text *out, const Kernel *k, const Tile *tile) {
    const char *kind = tile->blas ? "blas" : "tile";
    text_printf(out, "static const md_%s %s_%s = {\n    ", kind, k->name, kind);
    for (int i = 0; i < tile->nplan; i++) {
        text_printf(out, "%" PRId64 "%s", tile->plan[i],
                    i + 1 == tile->nplan ? "\n};\n\n"
                    : i % 16 == 15       ? ",\n    "
                                         : ", ");
    }
    if (tile->body.count > 0) {
        print_epilogue(out, k, tile);
    }
    if (tile->blas) {
        return;
    }
    const char *suffix = tile_suffix(tile);
    text_printf(out,
                "static void %s_part(const md_tile_call *call, int part) {\n"
                "    md_tile_part_%s(&%s_tile, call, part, ",
                k->name, suffix, k->name);
    if (tile->body.count > 0) {
        text_printf(out, "%s_epilogue);\n}\n\n", k->name);
    } else {
        text_printf(out, "md_tile_none_%s);\n}\n\n", suffix);
    }
}

/* `x + offset`, without an offset of zero. */
static const char *operand_text(Style *s, const Arg *arg, const Index *at) {
    int64_t value;
    if (!arg) {
        return "NULL";
    }
    if (index_is_const(at, &value) && value == 0) {
        return s->arg[arg->id];
    }
    return str_printf(s->out->arena, "%s + (%s)", s->arg[arg->id], index_text(s, at));
}

void tile_print(Style *s, const Tile *tile) {
    const Kernel *k = s->k;
    const char *context = "NULL";
    Needs n = tile_needs(s, tile);
    if (tile->body.count > 0 && needs_arguments(k, &n)) {
        context = "&args";
        line(s, "%s_args args;", s->name);
        for (int i = 0; i < k->arg.count; i++) {
            if (n.arg[k->arg.at[i]->id]) {
                const char *name = s->arg[k->arg.at[i]->id];
                line(s, "args.%s = %s;", name, name);
            }
        }
        Words words = numbers_needed(s, &n, false);
        for (int i = 0; i < words.count; i++) {
            line(s, "args.%s = %s;", words.at[i], words.at[i]);
        }
    }
    if (tile->add) {
        const char *to = operand_text(s, tile->c, tile->at_c);
        const char *from = operand_text(s, tile->add, tile->at_c);
        line(s, "if (%s != %s) {", s->arg[tile->c->id], s->arg[tile->add->id]);
        line(s, "    memcpy(%s, %s, %" PRId64 ");", to, from,
             tile->count * (int64_t)elem_bytes(tile->c->elem));
        line(s, "}");
    }
    if (tile->blas) {
        const char *suffix = tile_suffix(tile);
        const char *epilogue = str_printf(s->out->arena, "md_tile_none_%s", suffix);
        if (tile->body.count > 0) {
            epilogue = str_printf(s->out->arena, "%s_epilogue", s->name);
        }
        line(s, "md_blas_run_%s(&%s_blas, %s, %s, %s, %s, %s);", suffix, s->name, epilogue,
             operand_text(s, tile->a, tile->at_a), operand_text(s, tile->b, tile->at_b),
             operand_text(s, tile->c, tile->at_c), context);
        return;
    }
    line(s, "md_tile_run(&%s_tile, %s_part, %s, %s, %s, %s, %s, %s, %d);", s->name, s->name,
         operand_text(s, tile->a, tile->at_a), operand_text(s, tile->b, tile->at_b),
         operand_text(s, tile->c, tile->at_c), context,
         tile->work ? s->arg[tile->work->id] : "NULL", s->pace ? s->pace : "NULL", k->threads);
}
