/* cuda: kernels for graphics processors, and what entry functions do around them.
 *
 * A Kernel becomes a function of the host that launches its statements one behind the other: each
 * parallel loop is a __global__ function whose threads are the iterations, a product one whose
 * blocks are tiles. Every thread looks at the status of the call first. Needs a planned Program of
 * a device, made by schedules whose statements are launches; gives CUDA C++; decides nothing. */
#include "emit/needs.h"
#include "emit/printer.h"
#include "emit/stmts.h"

#include <inttypes.h>
#include <string.h>

enum { THREADS = 128, SIDE = 8, GROUP = 64 }; /* the last two as in runtime/cuda.h */

static int64_t blocks_of(int64_t threads) {
    return threads > THREADS ? (threads + THREADS - 1) / THREADS : 1;
}

/* --- launches ---------------------------------------------------------------------------------
 */

/* Opens a __global__ function in front of the host's. */
static void launch_open(Style *s, const char *name, const Words *parameters) {
    const char *first = str_printf(s->out->arena, "__global__ static void %s(", name);
    s->out = s->before;
    words_print(s->out, first, parameters, (int)strlen(first));
    text_add(s->out, ") {\n");
    s->depth = 1;
}

/* Closes it, and launches it where the host's function stands. */
static void launch_close(Style *s, Text *host, const char *name, int64_t blocks, int threads,
                         const Words *words) {
    text_add(s->out, "}\n\n");
    s->out = host;
    const char *first =
        str_printf(host->arena, "    MD_LAUNCH(%s, %" PRId64 ", %d, md_queue, md_status", name,
                   blocks, threads);
    Words all = {0};
    VEC_PUSH(host->arena, &all, first);
    for (int i = 0; i < words->count; i++) {
        VEC_PUSH(host->arena, &all, words->at[i]);
    }
    words_print(host, "", &all, 8);
    text_add(host, ");\n");
}

/* What a launch takes: arguments and numbers, all of them or those that are needed. */
static void launch_words(Style *s, const Needs *n, Words *parameters, Words *words) {
    Arena *arena = s->out->arena;
    const Kernel *k = s->k;
    VEC_PUSH(arena, parameters, "const int32_t *md_status");
    for (int i = 0; i < k->arg.count; i++) {
        const Arg *arg = k->arg.at[i];
        if (!n || n->arg[arg->id]) {
            VEC_PUSH(arena, parameters, arg_parameter(s, arg));
            VEC_PUSH(arena, words, s->arg[arg->id]);
        }
    }
    for (int i = 0; i < scalar_count(k); i++) {
        if (n ? n->scalar[i] : scalar_used(k, i)) {
            VEC_PUSH(arena, parameters, scalar_declared(arena, k, i));
            VEC_PUSH(arena, words, scalar_name(arena, k, i));
        }
    }
}

static void print_loop(Style *s, const Stmt *st) {
    Arena *arena = s->out->arena;
    const Stmt *block[1] = {st};
    StmtList list = {.at = (Stmt **)block, .count = 1};
    Needs n = needs_of(arena, s->k, &list, s->bound);
    if (n.value.count > 0) {
        BUG("a launch of %s uses a value of the host", s->k->name);
    }
    Words parameters = {0}, words = {0};
    launch_words(s, &n, &parameters, &words);
    const char *name = kernel_loop_name(arena, s->k->name, s->nloop++);
    Text *host = s->out;
    launch_open(s, name, &parameters);
    int64_t total = 1, left;
    const Stmt *inner = st;
    for (int i = 0; i < st->parallel; i++) {
        inner = i > 0 ? inner->body.at[0] : st;
        total *= s->k->axis[inner->axis].extent;
    }
    const char *at = st->parallel > 1 ? style_name(s, "at") : s->axis[st->axis];
    const bool shared = st->lanes > 1;
    if (shared && total > 1) {
        line(s, "const int64_t %s = blockIdx.x;", at);
        line(s, "if (*md_status != 0) {");
    } else if (total > 1) {
        line(s, "const int64_t %s = md_thread();", at);
        line(s, "if (%s >= %" PRId64 " || *md_status != 0) {", at, total);
    } else {
        line(s, "if (*md_status != 0) {");
    }
    line(s, "    return;");
    line(s, "}");
    inner = st;
    left = total;
    for (int i = 0; i < st->parallel && st->parallel > 1; i++) {
        inner = i > 0 ? inner->body.at[0] : st;
        int64_t extent = s->k->axis[inner->axis].extent;
        left /= extent;
        if (n.axes >> inner->axis & 1) {
            line(s, "const int64_t %s = %s%s;", s->axis[inner->axis],
                 left == 1 ? at : str_printf(arena, "%s / %" PRId64, at, left),
                 i > 0 ? str_printf(arena, " %% %" PRId64, extent) : "");
        }
    }
    s->block = shared ? st->lanes : 0;
    list_print(s, &inner->body);
    s->block = 0;
    block_unbind(s, &inner->body);
    launch_close(s, host, name, shared ? total : blocks_of(total),
                 shared      ? st->lanes
                 : total > 1 ? THREADS
                             : 1,
                 &words);
}

/* --- products ---------------------------------------------------------------------------------
 */

/* Of Tile.plan: extents in the order of md_product, terms of a piece, what a thread makes,
 * and how many groups of threads a block has. */
enum { B1, B2, M1, M2, N, K0, K1, K2, SPAN = 26, ROWS, COLUMNS, GROUPS };

static int64_t pieces_over(int64_t extent, int64_t piece) {
    return (extent + piece - 1) / piece;
}

/* What follows the product, for the element at hand: its loops are those of the thread. */
static void print_element(Style *s, const Tile *tile, const StmtList *list) {
    for (int i = 0; i < list->count; i++) {
        const Stmt *st = list->at[i];
        const Stmt *one[1] = {st};
        if (st->kind == STMT_FOR && (st->axis == tile->row || st->axis == tile->column)) {
            print_element(s, tile, &st->body);
        } else {
            list_print(s, &(StmtList){.at = (Stmt **)one, .count = 1});
        }
    }
}

static void unbind_element(Style *s, const StmtList *list) {
    for (int i = 0; i < list->count; i++) {
        unbind_element(s, &list->at[i]->body);
    }
    block_unbind(s, list);
}

/* What makes a number to multiply of an element of an operand. */
static const char *reader(Style *s, const Arg *arg, Elem as) {
    const char *half = style_half(arg->elem);
    return half              ? str_printf(s->out->arena, "md_from_%s", half)
           : as == arg->elem ? str_printf(s->out->arena, "md_as_is<%s>", elem_c_name(as))
                             : str_printf(s->out->arena, "md_%sf", elem_name(as));
}

/* The bits of one, where it is multiplied in 16. */
static const char *bits_reader(Style *s, const Arg *arg, Elem as) {
    return arg->elem == as ? "md_as_is<uint16_t>"
                           : str_printf(s->out->arena, "md_to_%s", elem_name(as));
}

static const char *product_text(Style *s, const Tile *tile, const char *type) {
    Arena *arena = s->out->arena;
    const Elem a = tile->as[0], b = tile->as[1];
    if (a == b && elem_is_half(a)) {
        return str_printf(arena, "md_product_halves<%s, md_from_%s, %s, %s, %" PRId64 ">",
                          a == TY_F16 ? "true" : "false", elem_name(a), bits_reader(s, tile->a, a),
                          bits_reader(s, tile->b, b), tile->plan[GROUPS]);
    }
    return str_printf(arena, "md_product_sums<%s, %s, %s, %" PRId64 ">", type,
                      reader(s, tile->a, a), reader(s, tile->b, b), tile->plan[GROUPS]);
}

static void print_shape(Style *s, const Tile *tile, const char *shape) {
    style_indent(s);
    text_printf(s->out, "const md_product %s = {", shape);
    for (int i = 0; i <= SPAN; i++) {
        text_printf(s->out, "%s%" PRId64, i > 0 ? ", " : "", tile->plan[i]);
    }
    text_add(s->out, "};\n");
}

/* C begins as something else, what follows, and where the element goes. */
static void print_end(Style *s, const Tile *tile, const char *shape) {
    const char *batch = s->axis[tile->batch], *m = s->axis[tile->row], *n = s->axis[tile->column];
    s->arg[tile->strip->id] = "block";
    if (tile->plan[B1] * tile->plan[B2] == 1) { /* perhaps nothing needs it */
        line(s, "(void)%s;", batch);
    }
    if (!tile->c && !tile->add) {
        line(s, "(void)block;");
    }
    const char *place =
        str_printf(s->out->arena, "md_product_place(%s, %s, %s, %s)", shape, batch, m, n);
    if (tile->add) {
        line(s, "block[%s - n0] += (%s)[%s];", n, operand_text(s, tile->add, tile->at_c), place);
    }
    print_element(s, tile, &tile->body);
    unbind_element(s, &tile->body);
    if (tile->c) {
        line(s, "(%s)[%s] = block[%s - n0];", operand_text(s, tile->c, tile->at_c), place, n);
    }
}

/* Opens the loop over so many rows or columns of the thread, of `extent` in all. */
static void registers_open(Style *s, const char *name, const char *first, int64_t each,
                           int64_t extent) {
    line(s, "MD_REGISTERS");
    line(s, "for (int64_t %s = %s; %s < %s + %" PRId64 "; %s++) {", name, first, name, first, each,
         name);
    s->depth++;
    if (extent % (SIDE * each) != 0) {
        line(s, "if (%s >= %" PRId64 ") {", name, extent);
        line(s, "    continue;");
        line(s, "}");
    }
}

/* Inside the __global__ function. */
static void print_product(Style *s, const Tile *tile) {
    const int64_t *plan = tile->plan;
    Arena *arena = s->out->arena;
    const char *shape = style_name(s, "shape"), *sum = style_name(s, "sum");
    const char *at = style_name(s, "at");
    const char *batch = s->axis[tile->batch], *m = s->axis[tile->row], *n = s->axis[tile->column];
    const char *type = elem_c_name(tile->strip->elem);
    print_shape(s, tile, shape);
    line(s, "%s %s[%" PRId64 "][%" PRId64 "] = {};", type, sum, plan[ROWS], plan[COLUMNS]);
    line(s, "const md_place %s = md_product_at(%s, blockIdx.x, %s);", at, shape, sum);
    line(s, "const int64_t %s = %s.batch, m0 = %s.m0, n0 = %s.n0;", batch, at, at, at);
    line(s, "if (%s(%s, %s, %s, %s, %s)) {", product_text(s, tile, type), shape,
         operand_text(s, tile->a, tile->at_a), operand_text(s, tile->b, tile->at_b), at, sum);
    s->depth++;
    registers_open(s, m, "m0", plan[ROWS], plan[M1] * plan[M2]);
    if (!tile->work) {
        line(s, "%s *block = %s[%s - m0];", type, sum, m);
    }
    registers_open(s, n, "n0", plan[COLUMNS], plan[N]);
    if (tile->work) {
        const char *flat = str_printf(arena, "md_product_flat(%s, %s, %s, %s)", shape, batch, m, n);
        line(s, "%s[%s.piece * %" PRId64 " + %s] = %s[%s - m0][%s - n0];", s->arg[tile->work->id],
             at, tile->count, flat, sum, m, n);
    } else {
        print_end(s, tile, shape);
    }
    for (int i = 0; i < 3; i++) {
        s->depth--;
        line(s, "}");
    }
}

/* A thread for each element adds up what the pieces have. */
static void print_whole(Style *s, const Tile *tile) {
    const int64_t columns = tile->plan[N], rows = tile->plan[M1] * tile->plan[M2];
    const char *shape = style_name(s, "shape"), *at = style_name(s, "at");
    print_shape(s, tile, shape);
    line(s, "const int64_t %s = md_thread();", at);
    line(s, "if (%s >= %" PRId64 ") {", at, tile->count);
    line(s, "    return;");
    line(s, "}");
    line(s, "const int64_t %s = %s / %" PRId64 ";", s->axis[tile->batch], at, rows * columns);
    line(s, "const int64_t %s = %s / %" PRId64 " %% %" PRId64 ";", s->axis[tile->row], at, columns,
         rows);
    line(s, "const int64_t %s = %s %% %" PRId64 ", n0 = %s;", s->axis[tile->column], at, columns,
         s->axis[tile->column]);
    if (rows == 1) {
        line(s, "(void)%s;", s->axis[tile->row]);
    }
    line(s, "%s block[1] = {md_product_whole(%s, %s, %s, %" PRId64 ")};",
         elem_c_name(tile->strip->elem), shape, s->arg[tile->work->id], at, tile->count);
    print_end(s, tile, shape);
}

/* Opens the __global__ function of a launch, for a call that may go on. */
static void tile_open(Style *s, const char *name, const Words *parameters) {
    launch_open(s, name, parameters);
    line(s, "if (*md_status != 0) {");
    line(s, "    return;");
    line(s, "}");
}

static void print_tile(Style *s, const Stmt *st) {
    Arena *arena = s->out->arena;
    const Tile *tile = kernel_tile(s->k);
    const Stmt *one[1] = {st};
    Needs made = {0}, ends = {0};
    if (tile->work) {
        made = needs_of_pieces(arena, s->k, tile);
        ends = needs_of_end(arena, s->k, tile);
    }
    Words parameters = {0}, words = {0};
    launch_words(s, tile->work ? &made : NULL, &parameters, &words);
    const char *name = str_printf(arena, "%s_tile", s->k->name);
    Text *host = s->out;
    tile_open(s, name, &parameters);
    list_print(s, &(StmtList){.at = (Stmt **)one, .count = 1});
    const int64_t *plan = tile->plan;
    int64_t tiles = pieces_over(plan[M1] * plan[M2], SIDE * plan[ROWS]) *
                    pieces_over(plan[N], SIDE * plan[COLUMNS]) * plan[B1] * plan[B2] *
                    pieces_over(plan[K0] * plan[K1] * plan[K2], plan[SPAN]);
    launch_close(s, host, name, tiles, (int)plan[GROUPS] * GROUP, &words);
    if (tile->work) {
        Words of_end = {0}, given = {0};
        launch_words(s, &ends, &of_end, &given);
        const char *whole = str_printf(arena, "%s_whole", s->k->name);
        tile_open(s, whole, &of_end);
        print_whole(s, tile);
        launch_close(s, host, whole, blocks_of(tile->count), THREADS, &given);
    }
}

/* --- kernels and calls ------------------------------------------------------------------------
 */

static void print_kernel(Text *to, Products *known, const Step *step) {
    static const StyleTarget target = {print_loop, print_product, NULL};
    (void)known;
    const Kernel *k = step->kernel;
    Arena scratch = {0};
    Text text = {.arena = &scratch}, whole = {.arena = &scratch}, *out = &text;
    origin_print(out, step, true);
    Style s = style_open(&whole, k);
    s.target = &target;
    s.lean = true;
    s.name = k->name;
    s.before = out;
    Words words = {0};
    VEC_PUSH(&scratch, &words, "cudaStream_t md_queue");
    VEC_PUSH(&scratch, &words, "const int32_t *md_status");
    Words parameters = kernel_parameters(&s);
    for (int i = 0; i < parameters.count; i++) {
        VEC_PUSH(&scratch, &words, parameters.at[i]);
    }
    const char *first = str_printf(&scratch, "static void %s(", k->name);
    words_print(&whole, first, &words, (int)strlen(first));
    text_add(&whole, ") {\n");
    for (int i = 0; i < k->body.count; i++) {
        const Stmt *st = k->body.at[i];
        if (st->kind == STMT_FOR && st->parallel > 0) {
            print_loop(&s, st);
        } else if (kernel_tile(k)) {
            print_tile(&s, st);
        } else {
            BUG("a statement of %s is no launch", k->name);
        }
    }
    text_addn(to, text.at, text.len);
    text_addn(to, whole.at, whole.len);
    text_add(to, "}\n");
    arena_free(&scratch);
}

static void print_call(Text *out, const Emit *e, const Step *step) {
    text_printf(out, "%s(m->stream, md_status", step->kernel->name);
    call_print(out, e, step, ", ");
    text_add(out, ");");
}

/* --- entries ----------------------------------------------------------------------------------
 */

/* A number of the host, as the input of an entry. */
static const char *number_text(const Emit *e, const ProgramEntry *entry, const Buf *buf) {
    const char *field = field_name(e, buf->slot->c_name);
    return entry->entry->kind == ENTRY_EVAL_END ? str_printf(e->arena, "sums->%s", field)
           : is_rows(entry, buf->slot)          ? "rows"
                                                : str_printf(e->arena, "in->%s", field);
}

static void open_entry(Text *out, const Emit *e, const ProgramEntry *entry, const bool *used) {
    text_printf(out, "    int32_t *md_status = MD_AT(int32_t, m->io, %lld);\n",
                (long long)entry->status_offset);
    text_add(out, "    int md_failed = md_begin(m->stream, md_status);\n");
    for (int i = 0; i < entry->buf.count; i++) {
        const Buf *buf = entry->buf.at[i];
        if (buf->kind != BUF_INPUT || !used[buf->id]) {
            continue;
        }
        const char *from = number_text(e, entry, buf);
        if (buf->type->rank == 0) {
            const char *type = elem_c_name(buf->type->elem);
            text_printf(out, "    const %s md_%s = (%s)%s;\n", type, buf->name, type, from);
            from = str_printf(e->arena, "&md_%s", buf->name);
        }
        text_printf(out, "    md_failed |= md_put(m->stream, %s, %s, %lld);\n", buf->name, from,
                    (long long)buf->bytes);
    }
}

static void print_copy(Text *out, const Step *step, const char *indent) {
    int64_t bytes = step->src->bytes;
    text_printf(out,
                "%sMD_LAUNCH(md_copy, %" PRId64 ", %d, m->stream, md_status, (unsigned char *)%s, "
                "(const unsigned char *)%s, %" PRId64 ");\n",
                indent, blocks_of(bytes), THREADS, buf_local(step->dst)->name,
                buf_local(step->src)->name, bytes);
}

static void print_range(Text *out, const Emit *e, const Step *step, const char *indent) {
    const Slot *slot = step->src->slot;
    int64_t count = type_count(slot->type), lo, hi;
    input_range(slot, &lo, &hi);
    text_printf(out,
                "%sMD_LAUNCH(md_outside<%s>, %" PRId64 ", %d, m->stream, md_status, %s, %" PRId64
                ", %" PRId64 ", %" PRId64 ", %s_ERR_RANGE);\n",
                indent, elem_c_name(slot->type.elem), blocks_of(count), THREADS, step->src->name,
                count, lo, hi, e->upper);
}

static void print_push(Text *out, const Step *step, const char *indent) {
    int64_t capacity = step->dst->type->dim[0], bytes = step->src->bytes;
    text_printf(out,
                "%sMD_LAUNCH(md_push, %" PRId64 ", %d, m->stream, md_status, (unsigned char *)%s, "
                "%s, %" PRId64 ", (const unsigned char *)%s, %" PRId64 ", %" PRId64 ", %s);\n",
                indent, blocks_of(bytes), THREADS, step->dst->name, step->cursor->name, capacity,
                buf_local(step->src)->name, bytes / step->src->type->dim[0], bytes,
                step->in_use != NULL ? step->in_use->name : "NULL");
}

static void print_step(Text *out, const Emit *e, const Step *step, const char *indent) {
    switch (step->kind) {
    case STEP_PUSH: print_push(out, step, indent); return;
    case STEP_NEED:
        text_printf(out,
                    "%sMD_LAUNCH(md_few, 1, 1, m->stream, md_status, %s, %" PRId64
                    ", %s_ERR_STATE);\n",
                    indent, step->cursor->name, step->least, e->upper);
        return;
    case STEP_COPY: print_copy(out, step, indent); return;
    case STEP_RANGE: print_range(out, e, step, indent); return;
    case STEP_CHECK:
        for (int i = 0; i < step->access.count; i++) {
            const Buf *buf = buf_local(step->access.at[i].buf);
            text_printf(out,
                        "%sMD_LAUNCH(md_nonfinite<%s>, 1, 1, m->stream, md_status, %s, "
                        "%s_ERR_NONFINITE);\n",
                        indent, elem_c_name(buf->type->elem), buf->name, e->upper);
        }
        return;
    case STEP_SEED: {
        const char *type = elem_c_name(step->dst->type->elem);
        text_printf(out, "%sconst %s md_seed = (%s)seed;\n", indent, type, type);
        text_printf(out, "%smd_failed |= md_put(m->stream, %s, &md_seed, sizeof md_seed);\n",
                    indent, step->dst->name);
        return;
    }
    case STEP_KERNEL:
    case STEP_LOOP: BUG("a call or a loop is no step of its own");
    case STEP_CLEAR: BUG("a loop that ends by itself");
    }
}

static void print_field(Text *out, const Emit *e, const ProgramEntry *entry, int k,
                        const char *indent) {
    const Buf *buf = result_buf(entry, k);
    text_printf(out, "%sout->%s = %sMD_AT(const %s, m->host, %lld);\n", indent,
                field_name(e, entry->entry->out.at[k].name), buf->type->rank == 0 ? "*" : "",
                elem_c_name(buf->type->elem), (long long)(buf->offset - entry->status_offset));
}

/* What a check has found to be no number is handed out all the same. */
static void print_checked(Text *out, const Emit *e, const ProgramEntry *entry, const Step *check) {
    text_printf(out, "    if (md_code == %s_ERR_NONFINITE) {\n", e->upper);
    for (int i = 0; i < check->access.count; i++) {
        const Buf *result = buf_root(check->access.at[i].buf);
        if (result->kind == BUF_RESULT) {
            print_field(out, e, entry, result->out, "        ");
        }
    }
    text_add(out, "    }\n");
}

static void close_entry(Text *out, const Emit *e, const ProgramEntry *entry) {
    text_printf(out,
                "    md_failed |= md_take(m->stream, m->host, md_status, %lld);\n"
                "    const int md_code = md_failed ? %s_ERR_DEVICE : *MD_AT(const int32_t, "
                "m->host, 0);\n",
                (long long)(entry->io_bytes - entry->status_offset), e->upper);
    for (int i = 0; i < entry->step.count; i++) {
        if (entry->step.at[i]->kind == STEP_CHECK) {
            print_checked(out, e, entry, entry->step.at[i]);
        }
    }
    text_printf(out, "    if (md_code != %s_OK) {\n        return md_code;\n    }\n", e->upper);
    for (int i = 0; i < entry->entry->out.count; i++) {
        if (out_is_result(entry->entry->out.at[i].role)) {
            print_field(out, e, entry, i, "    ");
        }
    }
    text_printf(out, "    return %s_OK;\n}\n\n", e->upper);
}

/* Every kernel that the text launches, once. */
static void print_load(Text *out, const Emit *e) {
    static const char launch[] = "MD_LAUNCH(";
    Arena scratch = {0};
    NameList known = {0};
    for (const char *at = out->at; at != NULL && (at = strstr(at, launch)) != NULL;) {
        at += sizeof launch - 1;
        const char *name = str_printf(&scratch, "%.*s", (int)strcspn(at, ","), at);
        if (names_at(&known, name) < 0) {
            names_push(&scratch, &known, name);
        }
    }
    if (known.name.count > 0) {
        text_add(out, "    static const void *const kernel[] = {\n");
        for (int i = 0; i < known.name.count; i++) {
            text_printf(out, "        (const void *)%s,\n", known.name.at[i]);
        }
        text_printf(
            out, "    };\n    if (md_load(kernel, %d)) {\n        return %s_ERR_DEVICE;\n    }\n",
            known.name.count, e->upper);
    }
    arena_free(&scratch);
}

static const DevicePrinter device = {open_entry, print_step, close_entry, print_load};
const Printer printer_cuda = {print_kernel, print_call, &device};
