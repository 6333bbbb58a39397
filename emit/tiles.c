/* tiles: products by runtime/tile.h or a library: their plans, the epilogues that run over each
 * block, and the calls. Needs a planned Program; gives C; decides nothing. */
#include "emit/draws.h"
#include "emit/forms.h"
#include "emit/needs.h"
#include "emit/numbers.h"
#include "emit/stmts.h"
#include "runtime/blas.h"
#include "runtime/tile.h"

#include <inttypes.h>
#include <string.h>

/* The axes of loops in it. */
static AxisSet looped(const StmtList *list) {
    AxisSet axes = 0;
    for (int i = 0; i < list->count; i++) {
        const Stmt *s = list->at[i];
        axes |= looped(&s->body) | (s->kind == STMT_FOR ? (AxisSet)1 << s->axis : 0);
    }
    return axes;
}

/* What an epilogue reads and writes: the arguments, loop indices and axes around it. */
static Needs tile_needs(Style *s, const Tile *tile, bool *batch) {
    Needs n = needs_of(s->out->arena, s->k, &tile->body, NULL);
    *batch = n.axes >> tile->batch & 1;
    Needs copy = needs_of(s->out->arena, s->k, &tile->copy, NULL);
    n.axes |= copy.axes & ~looped(&tile->copy);
    for (int i = 0; i < s->k->nargs; i++) {
        n.arg[i] = n.arg[i] || copy.arg[i];
    }
    for (int i = 0; i < scalar_count(s->k); i++) {
        n.scalar[i] = n.scalar[i] || copy.scalar[i];
    }
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
static void print_arguments(Style *s, const Needs *n, int streams, const char *name) {
    const Kernel *k = s->k;
    Text *out = s->out;
    const char *type = "";
    text_add(out, "typedef struct {");
    if (streams > 0) {
        text_printf(out, "\n    md_tile_stream stream[%d];", streams + 1);
    }
    for (int i = 0; i < k->arg.count; i++) {
        const Arg *arg = k->arg.at[i];
        if (n->arg[arg->id]) {
            const char *own =
                str_printf(out->arena, "%s%s", arg->mode & ACCESS_WRITE ? "" : "const ",
                           elem_c_name(arg->elem));
            bool same = str_eq(type, own);
            text_printf(out, "%s%s *%s",
                        same    ? ","
                        : *type ? ";\n    "
                                : "\n    ",
                        same ? "" : own, s->arg[arg->id]);
            type = own;
        }
    }
    text_add(out, *type ? ";\n" : "\n");
    Words words = numbers_needed(s, n, true);
    for (int i = 0; i < words.count; i++) {
        text_printf(out, "    %s;\n", words.at[i]);
    }
    text_printf(out, "} %s_args;\n\n", name);
}

/* The struct as a local, by whose members arguments go from here on; what one of the functions of
 * a product does not use of it is not named. */
static void open_arguments(Style *s, const Needs *all, const StmtList *list, const char *name) {
    Arena *arena = s->out->arena;
    Needs n = needs_of(arena, s->k, list, NULL);
    n.axes &= all->axes;
    Words words = numbers_needed(s, &n, false), typed = numbers_needed(s, &n, true);
    bool any = words.count > 0;
    for (int i = 0; i < s->k->arg.count; i++) {
        any = any || n.arg[s->k->arg.at[i]->id];
    }
    if (!any) {
        line(s, "(void)ctx;");
        return;
    }
    /* a copy: no store of the block can change what it holds */
    line(s, "const %s_args args = *(const %s_args *)ctx;", name, name);
    for (int i = 0; i < s->k->arg.count; i++) {
        const Arg *arg = s->k->arg.at[i];
        if (n.arg[arg->id]) {
            s->arg[arg->id] = str_printf(arena, "args.%s", s->arg[arg->id]);
        }
    }
    for (int i = 0; i < words.count; i++) {
        line(s, "const %s = args.%s;", typed.at[i], words.at[i]);
    }
}

static md_tile tile_plan(const Tile *tile) {
    md_tile plan;
    memcpy(&plan, tile->plan, sizeof plan);
    return plan;
}

/* Of operands of 16 bits. */
static bool tile_is_half(const Tile *tile) {
    return !tile->blas && (tile_plan(tile).is & MD_TILE_HALF);
}

/* What makes A for one element of the batch. */
static void print_copy(Text *out, const Kernel *k, const Tile *tile, const Needs *n,
                       const char *name, Numbers *numbers) {
    Style s = style_open(out, k);
    s.numbers = numbers;
    s.depth = 1;
    text_printf(out, "static const void *%s_copy(void *ctx, int64_t %s, int part) {\n", name,
                s.axis[tile->batch]);
    open_arguments(&s, n, &tile->copy, name);
    const char *type = elem_c_name(tile->halo->elem);
    const char *work = str_printf(s.out->arena, "%s + part * INT64_C(%" PRId64 ")",
                                  s.arg[tile->halo->id], tile->halo->part);
    if (tile_is_half(tile) && !(tile_plan(tile).is & MD_TILE_LONE)) {
        s.lanes = tile->halo;
        type = "md_tile_lane";
        work = str_printf(s.out->arena, "(md_tile_lane *)(void *)(%s)", work);
    }
    line(&s, "%s *halo = %s;", type, work);
    s.arg[tile->halo->id] = "halo";
    list_print(&s, &tile->copy);
    line(&s, "return %s;", operand_text(&s, tile->halo, tile->at_a));
    text_add(out, "}\n\n");
}

enum { APART = 16 };

/* Does a loop over columns store memory alone whose elements do not lie beside one another? As a
 * vector it would take and put each lane by itself, as many instructions as lanes. */
static bool stores_apart(Style *s, const Tile *tile, const StmtList *body) {
    int apart = 0;
    for (int i = 0; i < body->count; i++) {
        const Stmt *st = body->at[i];
        int64_t stride;
        if (st->kind == STMT_STORE && st->arg != tile->strip) {
            if (!index_stride(st->index, tile->column, &stride) || stride == 1) {
                return false;
            }
            apart++;
        } else if (st->kind != STMT_LET) {
            return false;
        }
    }
    return apart > 0 && !draws_any(s, tile->column, body);
}

/* Do all loops of a row? */
static bool rows_apart(Style *s, const Tile *tile, const StmtList *row) {
    bool apart = tile->narrow == 0;
    for (int i = 0; i < row->count; i++) {
        const Stmt *st = row->at[i];
        apart = apart && (st->kind == STMT_LET ||
                          (st->kind == STMT_FOR && stores_apart(s, tile, &st->body)));
    }
    return apart;
}

/* That struct and the epilogue. */
static void print_epilogue(Text *out, const Kernel *k, const Tile *tile, const char *name,
                           Numbers *numbers) {
    Style s = style_open(out, k);
    s.numbers = numbers;
    bool uses_batch;
    Needs n = tile_needs(&s, tile, &uses_batch);
    bool arguments = needs_arguments(k, &n);
    if (arguments) {
        print_arguments(&s, &n, tile->stream.count, name);
    }
    if (tile->halo) {
        print_copy(out, k, tile, &n, name, numbers);
    }
    if (tile->body.count == 0) {
        return;
    }
    s.depth = 1;
    text_printf(out, "static void %s_epilogue", name);
    const char *batch = s.axis[tile->batch], *row = s.axis[tile->row], *col = s.axis[tile->column];
    text_printf(out, block_parameters, batch, elem_c_name(tile->strip->elem));
    if (arguments) {
        open_arguments(&s, &n, &tile->body, name);
    } else {
        line(&s, "(void)ctx;");
    }
    const char *first = "n0", *end = "n0 + cols", *pitch = "ld", *unused = "";
    if (tile->columns > 0 || tile->narrow > 0) {
        first = "0";
        end = str_printf(out->arena, "%" PRId64, tile->narrow > 0 ? tile->narrow : tile->columns);
        pitch = tile->narrow > 0 ? end : pitch;
        unused = tile->narrow > 0 ? "(void)n0, (void)cols, (void)ld" : "(void)n0, (void)cols";
    }
    if (!uses_batch) {
        unused = str_printf(out->arena, "(void)%s%s%s", batch, *unused ? ", " : "", unused);
    }
    if (*unused) {
        line(&s, "%s;", unused);
    }
    s.arg[tile->strip->id] = "block";
    const md_tile plan = tile_plan(tile);
    if (plan.is & MD_TILE_ENDS) {
        line(&s, "cols = md_tile_ends_columns(%" PRId64 ", %" PRId64 ", cols);", plan.cols.n,
             plan.wide);
    }
    for (int i = 0; i < tile->body.count; i++) {
        const Stmt *st = tile->body.at[i];
        if (st->kind != STMT_FOR) {
            let_print(&s, st);
            continue;
        }
        if (tile->narrow > 0) { /* vectors run over several rows */
            line(&s, "MD_IVDEP");
        }
        /* A line of the block and as many lines of memory, which the next rows share, at once. */
        const bool apart = rows_apart(&s, tile, &st->body);
        const char *from_column = first, *to_column = end;
        if (apart) {
            first = style_name(&s, "begin");
            end = style_name(&s, "end");
            line(&s, "for (int64_t %s = %s; %s < %s; %s += %d) {", first, from_column, first,
                 to_column, first, APART);
            s.depth++;
            line(&s, "const int64_t %s = %s < %s - %d ? %s + %d : %s;", end, first, to_column,
                 APART, first, APART, to_column);
        }
        line(&s, "for (int64_t %s = m0; %s < m0 + rows; %s++) {", row, row, row);
        s.depth++;
        line(&s, "%s *block = strip + (%s - m0) * %s;", elem_c_name(tile->strip->elem), row, pitch);
        size_t behind = out->len;
        for (int j = 0; j < st->body.count; j++) {
            const Stmt *inner = st->body.at[j];
            if (inner->kind != STMT_FOR) {
                let_print(&s, inner);
                continue;
            }
            int64_t most = k->axis[tile->column].extent;
            bool parts =
                tile->narrow == 0 && most > DRAWS_ROW && draws_any(&s, tile->column, &inner->body);
            const char *from = first, *to = end;
            if (parts) { /* a row of draws at a time */
                from = style_name(&s, "begin");
                to = style_name(&s, "end");
                line(&s, "for (int64_t %s = %s; %s < %s; %s += %d) {", from, first, from, end, from,
                     DRAWS_ROW);
                s.depth++;
                line(&s, "const int64_t %s = %s < %s + %d ? %s : %s + %d;", to, end, from,
                     DRAWS_ROW, end, from, DRAWS_ROW);
                most = DRAWS_ROW;
            }
            Draws draws = draws_open(&s, tile->column, from, to, most, &inner->body);
            if (!apart) {
                line(&s, tile->narrow > 0 ? "MD_UNROLL(8)" : "MD_IVDEP");
            }
            line(&s, "for (int64_t %s = %s; %s < %s; %s++) {", col, from, col, to, col);
            block_print(&s, &inner->body);
            if (apart) {
                line(&s, "    MD_IN_ORDER;");
            }
            line(&s, "}");
            draws_close(&s, &draws);
            if (parts) {
                s.depth--;
                line(&s, "}");
            }
        }
        block_unbind(&s, &st->body);
        if (strstr(out->at + behind, "block[") == NULL) { /* what is stored needs no sum */
            line(&s, "(void)block;");
        }
        s.depth--;
        line(&s, "}");
        if (apart) {
            s.depth--;
            line(&s, "}");
            first = from_column;
            end = to_column;
        }
    }
    text_add(out, "}\n\n");
}

static const char *tile_suffix(const Tile *tile) {
    return tile->strip->elem == TY_F64 ? "f64" : "f32";
}

static const char *epilogue_name(Arena *arena, const char *of, const Tile *tile) {
    return of != NULL ? str_printf(arena, "%s_epilogue", of)
                      : str_printf(arena, "md_tile_none_%s", tile_suffix(tile));
}

/* The kernel that a text, which names none, is called by: the first one that has it. */
static const char *share(Arena *arena, SharedTexts *known, const Text *text, const char *own) {
    int at = names_at(&known->text, text->at);
    if (at >= 0) {
        return known->owner.at[at];
    }
    names_push(arena, &known->text, str_dup(arena, text->at));
    VEC_PUSH(arena, &known->owner, own);
    return own;
}

static const char *share_epilogue(Text *out, const Kernel *k, const Tile *tile, Products *known) {
    Text text = {.arena = out->arena};
    print_epilogue(&text, k, tile, "", NULL); /* with all its numbers */
    const char *owner = share(known->arena, &known->epilogue, &text, k->name);
    if (owner == k->name) {
        print_epilogue(out, k, tile, k->name, known->numbers);
    }
    return owner;
}

/* A plan as text: of all its numbers, or of a form those that are not read. */
typedef struct {
    Arena *arena;
    const md_tile *p;
    const Form *form; /* NULL: all of them */
} Plan;

static const char *plan_number(const Plan *plan, const int64_t *field) {
    return form_number(plan->arena, plan->form, plan->p, field);
}

/* Axes of a plan: NAME(1, in A 2, ...), of `count` axes of which all but the last may be left out
 * where they have one element, NAME2 with two of them. `of`: operands whose strides are said. */
static const char *axes_text(const Plan *plan, const char *name, const md_tile_axis *axis,
                             int count, const char *of) {
    Text text = {.arena = plan->arena}, *out = &text;
    const bool swapped = plan->p->is & MD_TILE_SWAPPED;
    const bool tiles =
        plan->form != NULL && axis == &plan->p->r1 && (plan->form->is & MD_TILE_TILES);
    int first = 0;
    while (first + 1 < count && axis[first].n == 1 && !tiles) {
        first++;
    }
    if (tiles) {
        text_add(out, form_rows(plan->arena, plan->form));
    } else if (count - first > 1) {
        text_printf(out, "MD_TILE_%s%d(", name, count - first);
    } else {
        text_printf(out, "MD_TILE_%s(", name);
    }
    for (int i = first; i < count; i++) {
        text_printf(out, "%s%s", i == first ? "" : ", ", plan_number(plan, &axis[i].n));
        for (const char *at = of; *at != 0; at++) {
            bool x = *at == 'x';
            text_printf(out, ", /* %c */ %" PRId64,
                        *at == 'c'     ? 'C'
                        : x != swapped ? 'A'
                                       : 'B',
                        *at == 'c' ? axis[i].c
                        : x        ? axis[i].x
                                   : axis[i].y);
        }
    }
    text_add(out, ")");
    return text.at;
}

static const char *flags_text(Arena *arena, int64_t is) {
#define FLAG(name)                                                                                 \
    { MD_TILE_##name, #name }
    static const struct {
        int64_t flag;
        const char *name;
    } flags[] = {
        FLAG(ADD),    FLAG(SHARED),       FLAG(NO_C),          FLAG(IN_PLACE), FLAG(SWAPPED),
        FLAG(PACKED), FLAG(DOTS),         FLAG(ALONG),         FLAG(KEPT),     FLAG(UNCUT),
        FLAG(LISTED), FLAG(NEXT),         FLAG(CLAIMED),       FLAG(HELPED),   FLAG(TAKEN),
        FLAG(HALF),   FLAG(F16),          FLAG(EXACT),         FLAG(SINGLE),   FLAG(SPAN),
        FLAG(MADE),   FLAG(WIDE_A),       FLAG(WIDE_B),        FLAG(ACROSS),   FLAG(STREAMS),
        FLAG(EARLY),  FLAG(AHEAD_UNREAD), FLAG(BEHIND_UNREAD), FLAG(TILES),    FLAG(UNDIVIDED),
        FLAG(BATCHED), FLAG(WINOGRAD),     FLAG(WINOGRAD_SUM),  FLAG(ENDS)};
#undef FLAG
    Text text = {.arena = arena};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (is & flags[i].flag) {
            text_printf(&text, "%sMD_TILE_%s", text.len > 0 ? " | " : "", flags[i].name);
        }
    }
    return text.len > 0 ? text.at : "0";
}

static const char *numbers_text(const Plan *plan, const char *name, const char *const *what,
                                const int64_t *const *field, int count) {
    Text text = {.arena = plan->arena};
    text_printf(&text, "MD_TILE_%s(", name);
    for (int i = 0; i < count; i++) {
        text_printf(&text, "%s/* %s */ %s", i > 0 ? ", " : "", what[i],
                    plan_number(plan, field[i]));
    }
    text_add(&text, ")");
    return text.at;
}

/* A side of a band without an end. */
static const char *edge_text(Arena *arena, int64_t edge) {
    return edge <= -MD_BAND_OPEN / 2  ? "-MD_BAND_OPEN"
           : edge >= MD_BAND_OPEN / 2 ? "MD_BAND_OPEN"
                                      : str_printf(arena, "%" PRId64, edge);
}

/* The same as `work`, and what of the product counts. */
static const char *band_text(Arena *arena, const char *work, const md_tile *p) {
    static const char *const bands[] = {
        "MD_BAND_NONE",      "MD_BAND_ROW_SUM",   "MD_BAND_COLUMN_SUM",   "MD_BAND_ROW_COLUMN",
        "MD_BAND_ROW_STEP0", "MD_BAND_ROW_STEP1", "MD_BAND_BATCH1_STEP1", "MD_BAND_BATCH2_STEP1"};
    return str_printf(arena, "%.*s, %s, /* from */ %s, /* until */ %s)", (int)strlen(work) - 1,
                      work, bands[p->band], edge_text(arena, p->from), edge_text(arena, p->until));
}

/* The fields in their order, in words of runtime/tile.h. */
static Text tile_text(const Plan *plan) {
    Arena *arena = plan->arena;
    const md_tile *p = plan->p;
    const bool one = p->k1.n == 1 && !(p->is & MD_TILE_LISTED);
    const bool batched = p->b1.n != 1 || p->b2.n != 1, skips = p->skip.n != 1;
    static const char *const blocks[] = {"rows", "columns", "vectors", "sum", "sum"};
    static const char *const work[] = {"chunks", "partial sums", "group", "at",
                                       "strip",  "turned",       "all"};
    const bool cut = p->chunks > 1 || p->group > 0; /* or lines of tiles are */
    const int64_t *const block[] = {&p->block_rows, &p->block_cols, &p->wide,
                                    one ? &p->kb2 : &p->kb1, &p->kb2};
    const int64_t *const place[] = {&p->chunks,   &p->partial,   &p->group, &p->group_at,
                                    &p->strip_at, &p->turned_at, &p->slice};
    const char *const word[] = {
        axes_text(plan, "ROWS", &p->r1, 2, "xc"),
        axes_text(plan, "COLUMNS", &p->cols, 1, "yc"),
        skips ? axes_text(plan, "SUM", &p->skip, 4, "xy") : axes_text(plan, "SUM", &p->k0, 3, "xy"),
        batched ? axes_text(plan, "BATCH", &p->b1, 2, "xyc") : "MD_TILE_NO_BATCH",
        p->elem == 8 ? "sizeof(double)" : "sizeof(float)",
        flags_text(arena, plan->form != NULL ? plan->form->is : p->is),
        numbers_text(plan, one ? "BLOCKS" : "BLOCKS2", blocks, block, one ? 4 : 5),
        p->band != MD_BAND_NONE
            ? band_text(arena,
                        cut ? numbers_text(plan, "BAND2", work, place, 7)
                            : numbers_text(plan, "BAND", work + 4, place + 4, 3),
                        p)
        : cut          ? numbers_text(plan, "WORK2", work, place, 7)
        : p->slice > 0 ? numbers_text(plan, "WORK", work + 4, place + 4, 3)
                       : "MD_TILE_NO_WORK"};
    Words words = {0};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++) {
        VEC_PUSH(arena, &words, word[i]);
    }
    Text text = {.arena = arena};
    words_print(&text, "    ", &words, 4);
    return text;
}

static void print_blas(Text *out, const char *name, const md_blas *p) {
    text_printf(out, "static const md_blas %s_blas = {\n", name);
    text_printf(out, "    /* batches */ %" PRId64 ", %" PRId64 ",\n", p->b1, p->b2);
    text_printf(out,
                "    /* rows */ %" PRId64 ", /* columns */ %" PRId64 ", /* sum */ %" PRId64 ",\n",
                p->m, p->n, p->k);
    text_printf(out,
                "    /* pitches of A, B, C */ %" PRId64 ", %" PRId64 ", %" PRId64 ",\n"
                "    /* transposed: A, B */ %" PRId64 ", %" PRId64 ", /* C += */ %" PRId64 ",\n",
                p->lda, p->ldb, p->ldc, p->trans_a, p->trans_b, p->add);
    text_printf(out,
                "    /* batches of A */ %" PRId64 ", %" PRId64 ", /* of B */ %" PRId64 ", %" PRId64
                ", /* of C */ %" PRId64 ", %" PRId64 ",\n",
                p->a_b1, p->a_b2, p->b_b1, p->b_b2, p->c_b1, p->c_b2);
    text_printf(out, "    /* rows of a block */ %" PRId64 "\n};\n\n", p->rows);
}

static void add_feature(Arena *arena, NameList *list, const char *name, bool has) {
    if (has && names_at(list, name) < 0) {
        names_push(arena, list, name);
    }
}

bool tile_pairs(const Tile *tile) {
    return tile_is_half(tile) && (tile_plan(tile).is & MD_TILE_LONE) == 0;
}

bool tile_asks(const Tile *tile) {
    if (tile->blas || tile->stream.count > 0) {
        return tile->stream.count > 0;
    }
    const md_tile plan = tile_plan(tile);
    return md_tile_far(&plan) || (plan.is & MD_TILE_EARLY);
}

void tile_features(Arena *arena, const Tile *tile, bool apart, uint64_t *bodies, NameList *list) {
    static const char *const vectors[] = {"VECTORS1", "VECTORS2", "VECTORS3", "VECTORS4"};
    static const char *const dot_rows[] = {"DOTS1", "DOTS2", "DOTS3", "DOTS4"};
    add_feature(arena, list, tile_suffix(tile)[1] == '6' ? "F64" : "F32", true);
    memcpy(bodies, tile->bodies, sizeof tile->bodies);
    if (tile->blas) {
        return;
    }
    const md_tile plan = tile_plan(tile), *p = &plan;
    const Form form = apart ? form_of(tile, p) : (Form){.known = false};
    if (form.known) {
        memcpy(bodies, form.bodies, sizeof form.bodies);
    }
    add_feature(arena, list, "FORMS", form.known);
    bool dots = p->is & MD_TILE_DOTS, along = p->is & MD_TILE_ALONG, turned = md_tile_turns(p);
    bool in_place = p->is & MD_TILE_IN_PLACE, stored = !(p->is & MD_TILE_NO_C);
    bool half = p->is & MD_TILE_HALF, winograd = p->is & MD_TILE_WINOGRAD;
    bool packed = !dots && !along && !half && ((p->is & MD_TILE_PACKED) || md_tile_packs_last(p));
    add_feature(arena, list, "HALF", half);
    add_feature(arena, list, "DOTS", dots);
    add_feature(arena, list, "DOTS_LONG", dots && p->r2.n == 1 && p->k2.n * p->elem >= 1024);
    add_feature(arena, list, "ALONG", along);
    add_feature(arena, list, "PACKED", packed);
    add_feature(arena, list, "KEPT", p->is & MD_TILE_KEPT);
    add_feature(arena, list, "LISTED", p->is & MD_TILE_LISTED);
    add_feature(arena, list, "SKIP", p->skip.n != 1);
    add_feature(arena, list, "BANDED", p->band != MD_BAND_NONE);
    add_feature(arena, list, "BESIDE", !half && (p->is & MD_TILE_TAKEN));
    add_feature(arena, list, "COPIED", tile->halo != NULL);
    add_feature(arena, list, "BATCHED", p->is & MD_TILE_BATCHED);
    add_feature(arena, list, "WINOGRAD", winograd);
    add_feature(arena, list, "WINOGRAD_SUM", p->is & MD_TILE_WINOGRAD_SUM);
    add_feature(arena, list, "WINOGRAD_TWO",
                winograd && !(p->is & MD_TILE_WINOGRAD_SUM) && p->kb1 == 2);
    add_feature(arena, list, "HELD",
                (md_tile_whole(p) && p->r1.n * p->r2.n > p->block_rows) ||
                    (p->is & MD_TILE_BATCHED));
    bool scattered = stored && (!in_place || (!turned && p->chunks > 1));
    add_feature(arena, list, "TURNED",
                (winograd && p->cols.y != 1) || (packed && p->cols.y != 1 && p->k2.y == 1) ||
                    (scattered && !turned && p->r2.c == 1 && p->cols.c != 1));
    add_feature(arena, list, "APART",
                p->cols.y != 1 && (winograd || (packed && p->k2.y != 1)));
    add_feature(arena, list, "LARGE", tile->large);
    add_feature(arena, list, "BLOCKS", tile->block > 0);
    add_feature(arena, list, "F16", p->is & MD_TILE_F16);
    add_feature(arena, list, "SHARED", p->is & MD_TILE_SHARED);
    add_feature(arena, list, "HELPED", p->is & MD_TILE_HELPED);
    add_feature(arena, list, "STREAMS", p->is & MD_TILE_STREAMS);
    add_feature(arena, list, "ENDS", p->is & MD_TILE_ENDS);
    add_feature(arena, list, "CLAIMED", p->is & MD_TILE_CLAIMED);
    add_feature(arena, list, "FAR", md_tile_far(p));
    add_feature(arena, list, "EARLY", p->is & MD_TILE_EARLY);
    add_feature(arena, list, "TRANSPOSED", turned);
    add_feature(arena, list, "ADD", p->is & MD_TILE_ADD);
    add_feature(arena, list, "CHUNKS", p->chunks > 1);
    add_feature(arena, list, "GROUPS", p->group > 0);
    add_feature(arena, list, "SCATTERED", scattered);
    for (int v = 0; v < 4; v++) {
        add_feature(arena, list, dot_rows[v], dots && p->r2.n == v + 1);
        bool used = dots && p->r2.n > v;
        for (int i = 0; i < TILE_MACHINES; i++) {
            for (int bit = 0; bit < 64; bit++) {
                used = used || ((bodies[i] >> bit & 1) && bit % 4 >= v);
            }
        }
        add_feature(arena, list, vectors[v], used);
    }
}

/* The plan, the first time that it is met, and the first time that a text knows its numbers the
 * form that it has there. Gives the end of the name of what has those. */
static const char *print_plan(Style *s, Text *out, const Tile *tile, const md_tile *plan,
                              Products *known) {
    const char *own = s->k->name;
    const Form form = known->numbers != NULL ? form_of(tile, plan) : (Form){.known = false};
    const Text text = tile_text(&(Plan){out->arena, plan, NULL});
    s->plan = share(known->arena, &known->plan, &text, own);
    if (s->plan == own && form.known) {
        numbers_plan(known->numbers, out, str_printf(out->arena, "md_tile %s_tile", own), text.at);
    } else if (s->plan == own) {
        text_printf(out, "static const md_tile %s_tile = {\n%s\n};\n", own, text.at);
    }
    Text key = {.arena = out->arena}, number = {.arena = out->arena};
    text_add(&key, s->plan);
    text_printf(&number, "%d", tile->block);
    const bool needed = !tile->large || names_at(&known->block.text, number.at) < 0;
    if (form.known && needed && share(known->arena, &known->form, &key, own) == own) {
        const Text seen = tile_text(&(Plan){out->arena, plan, &form});
        text_printf(out, "static const md_tile_apart %s_form = {{\n%s\n}, &%s_tile};\n", s->plan,
                    seen.at, s->plan);
    }
    return form.known ? "form.known" : "tile";
}

void tile_print_plan(Style *s, Text *out, const Tile *tile, Products *known) {
    const Kernel *k = s->k;
    s->plan = k->name;
    bool own = tile->body.count > 0 || tile->halo;
    s->epilogue = own ? share_epilogue(out, k, tile, known) : NULL;
    if (tile->blas) {
        md_blas plan;
        memcpy(&plan, tile->plan, sizeof plan);
        print_blas(out, k->name, &plan);
        return;
    }
    const md_tile plan = tile_plan(tile);
    const char *constant = print_plan(s, out, tile, &plan, known);
    /* In one line: with --line a directive may not stand between the arguments of a macro. */
    const char *epilogue =
        epilogue_name(out->arena, tile->body.count > 0 ? s->epilogue : NULL, tile);
    const char *copy = tile->halo ? str_printf(out->arena, "%s_copy", s->epilogue) : "NULL";
    const char *real = plan.elem == 8 ? "double" : "float", *of = NULL;
    if (tile->block > 0) {
        Text number = {.arena = out->arena};
        text_printf(&number, "%d", tile->block);
        of = share(known->arena, &known->block, &number, k->name);
        if (of == k->name) {
            text_printf(out, "MD_TILE_BLOCK(%s, %s_%s, %s, md_tile_%s_%s)\n", of, s->plan, constant,
                        real, plan.is & MD_TILE_WINOGRAD ? "winograd" : "block",
                        tile_is_half(tile) ? "half" : tile_suffix(tile));
        }
    }
    if (tile->large) {
        const char *run = str_printf(out->arena, "md_tile_%s_of_%s, ",
                                     plan.is & MD_TILE_BATCHED        ? "batched"
                                     : plan.is & MD_TILE_WINOGRAD_SUM ? "winograd_sum"
                                     : plan.is & MD_TILE_WINOGRAD     ? "winograd"
                                                                      : "share",
                                     tile_suffix(tile));
        text_printf(out, "MD_TILE_LARGE_%sPART(%s, %s_tile, %s%s, %s, %s)\n\n",
                    tile_is_half(tile) ? "HALF_" : "", k->name, s->plan,
                    tile_is_half(tile) ? "" : run, epilogue, of, copy);
    } else if (tile_is_half(tile)) {
        text_printf(out, "MD_TILE_HALF_PART(%s, %s_tile, %s, %s)\n\n", k->name, s->plan, epilogue,
                    copy);
    } else if (tile->block > 0) {
        text_printf(out, "MD_TILE_BLOCK_PART(%s, %s_%s, %s, md_tile_share_%s, %s, %s, %s)\n\n",
                    k->name, s->plan, constant, real, tile_suffix(tile), epilogue, of, copy);
    } else if (tile->halo) {
        text_printf(out, "MD_TILE_COPIED_PART(%s, %s_%s, md_tile_part_copied_%s, %s, %s)\n\n",
                    k->name, s->plan, constant, tile_suffix(tile), epilogue, copy);
    } else {
        text_printf(out, "MD_TILE_PART(%s, %s_%s, md_tile_part_%s, %s)\n\n", k->name, s->plan,
                    constant, tile_suffix(tile), epilogue);
    }
}

/* "first, words);" as lines. */
static void print_list(Style *s, const char *first, const Words *words, const char *end) {
    int indent = 4 * s->depth;
    const char *begin = str_printf(s->out->arena, "%*s%s", indent, "", first);
    words_print(s->out, begin, words, indent + 4);
    text_add(s->out, end);
}

/* The arguments of the epilogue in the order of the struct. */
static void print_context(Style *s, const Tile *tile, const Needs *n) {
    Words values = {0}, numbers = numbers_needed(s, n, false);
    for (int i = 0; i < tile->stream.count; i++) {
        const Stream *from = &tile->stream.at[i];
        int64_t bytes = (int64_t)elem_bytes(from->arg->elem);
        VEC_PUSH(s->out->arena, &values,
                 str_printf(s->out->arena, "%s{%s, %" PRId64 ", %" PRId64 ", %" PRId64 ", %d}",
                            i == 0 ? "{" : "", operand_text(s, from->arg, from->at),
                            from->batch * bytes, from->row * bytes, bytes, from->written));
    }
    if (tile->stream.count > 0) {
        VEC_PUSH(s->out->arena, &values, "{NULL, 0, 0, 0, 0}}");
    }
    for (int i = 0; i < s->k->arg.count; i++) {
        const Arg *arg = s->k->arg.at[i];
        if (n->arg[arg->id]) {
            VEC_PUSH(s->out->arena, &values, s->arg[arg->id]);
        }
    }
    for (int i = 0; i < numbers.count; i++) {
        VEC_PUSH(s->out->arena, &values, numbers.at[i]);
    }
    print_list(s, str_printf(s->out->arena, "%s_args args = {", s->epilogue), &values, "};\n");
}

void tile_print(Style *s, const Tile *tile) {
    Arena *arena = s->out->arena;
    const Kernel *k = s->k;
    const char *context = "NULL", *suffix = tile_suffix(tile);
    bool uses_batch;
    Needs n = tile_needs(s, tile, &uses_batch);
    if ((tile->body.count > 0 || tile->halo) && needs_arguments(k, &n)) {
        print_context(s, tile, &n);
        context = "&args";
    }
    if (tile->add) {
        const char *to = operand_text(s, tile->c, tile->at_c);
        const char *from = operand_text(s, tile->add, tile->at_c);
        line(s, "if (%s != %s) {", s->arg[tile->c->id], s->arg[tile->add->id]);
        line(s, "    memcpy(%s, %s, %" PRId64 ");", to, from,
             tile->count * (int64_t)elem_bytes(tile->c->elem));
        line(s, "}");
    }
    const char *work = tile->work ? s->arg[tile->work->id] : "NULL";
    if (tile->common) {
        const char *name = style_name(s, "works");
        line(s, "md_winograd_work %s = {%s, %s};", name, work, s->arg[tile->common->id]);
        work = str_printf(arena, "&%s", name);
    }
    const char *operands[] = {operand_text(s, tile->a, tile->at_a),
                              operand_text(s, tile->b, tile->at_b),
                              operand_text(s, tile->c, tile->at_c), context};
    Words words = {0};
    if (tile->blas) {
        VEC_PUSH(arena, &words, str_printf(arena, "&%s_blas", s->name));
        VEC_PUSH(arena, &words, epilogue_name(arena, s->epilogue, tile));
    } else {
        VEC_PUSH(arena, &words, str_printf(arena, "&%s_tile", s->plan));
        VEC_PUSH(arena, &words, str_printf(arena, "%s_part", s->name));
    }
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++) {
        VEC_PUSH(arena, &words, operands[i]);
    }
    if (!tile->blas) {
        VEC_PUSH(arena, &words, work);
        VEC_PUSH(arena, &words, s->pace ? s->pace : "NULL");
        VEC_PUSH(arena, &words, str_printf(arena, "%d", k->threads));
    }
    const char *run = tile->blas ? str_printf(arena, "md_blas_run_%s(", suffix) : "md_tile_run(";
    print_list(s, run, &words, ");\n");
}
