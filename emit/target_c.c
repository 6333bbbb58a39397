/* target_c: kernels as static C functions: heads, loops, folds, calls.
 *
 * Loops over a grid run on OpenMP threads by a static schedule where the kernel says so; folds keep
 * their lanes in a local array that a C compiler holds in registers. Needs a planned Program
 * (storage that two arguments share must not be called restrict); gives readable C; decides
 * nothing. */
#include "compiler/eval_rule.h"
#include "emit/blocks.h"
#include "emit/cstyle.h"
#include "emit/draws.h"
#include "emit/held.h"
#include "emit/inorder.h"
#include "emit/narrow.h"
#include "emit/needs.h"
#include "emit/numbers.h"
#include "emit/printer.h"
#include "emit/stmts.h"
#include "emit/turns.h"
#include "emit/write.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* --- simple statements -------------------------------------------------------------------------
 */

void let_print(Style *s, const Stmt *st) {
    const Expr *e = st->expr;
    bool key = e->kind == EXPR_KEY;
    const char *text = expr_text(s, st->as ? st->as : e);
    const char *name = style_expr_name(s, e, key ? "key" : "t");
    const bool word = !st->as && e->kind == EXPR_LOAD && narrow_place(s, e->arg);
    const char *type = key ? "md_key" : word ? "int32_t" : style_type(e->elem);
    line(s, "const %s %s = %s;", type, name, text);
    s->bound[e->id] = name;
}

/* Does `half` hold what is computed? Choices, and what is read of memory that holds it. */
static bool is_short(const Expr *e, Elem half) {
    switch (e->kind) {
    case EXPR_CONST: return num_round(half, e->value) == e->value;
    case EXPR_LOAD: return e->arg->elem == half && (e->nin < 2 || is_short(e->in[1], half));
    case EXPR_MAP:
        return op_gives(e->op) == half ||
               (e->op == OP_SELECT && is_short(e->in[1], half) && is_short(e->in[2], half));
    default: return false;
    }
}

static void print_store(Style *s, const Stmt *st) {
    if (held_store(s, st)) {
        return;
    }
    /* What is rounded here alone is rounded as it is stored. */
    const Expr *e = st->expr;
    const char *half = style_half(st->arg->elem), *how = "to";
    if (half && e->kind == EXPR_MAP && op_rounds(e->op)) {
        how = s->bound[e->id] ? "cut" : how;
        e = s->bound[e->id] ? e : e->in[0];
    } else if (half && is_short(e, st->arg->elem)) {
        how = "cut";
    }
    const char *value = expr_text(s, e), *place = place_text(s, st->arg, st->index);
    /* What is stored so already goes as it is, whatever NaN it may be. */
    if (half && e->kind == EXPR_LOAD && e->nin == 0 && !s->bound[e->id] &&
        e->arg->elem == st->arg->elem) {
        value = place_text(s, e->arg, e->index);
        half = NULL;
    }
    Elem elem = st->arg->elem;
    style_indent(s);
    if (half && st->add != OP_CONST) {
        BUG("a sum is kept in %s", half);
    } else if (half) {
        text_printf(s->out, "%s = md_%s_%s(%s);", place, how, half, value);
    } else if (st->add != OP_CONST) {
        combined_print(s, st->add, elem, place, e);
    } else if (st->arg == s->lanes) {
        text_printf(s->out, "%s = MD_TILE_AS_LANE(%s);", place, value);
    } else if (elem == TY_BOOL) {
        text_printf(s->out, "%s = (uint8_t)(%s);", place, value);
    } else {
        text_printf(s->out, "%s = %s;", place, value);
    }
    text_add(s->out, "\n");
}

void block_unbind(Style *s, const StmtList *list) {
    for (int i = 0; i < list->count; i++) {
        const Stmt *st = list->at[i];
        if (st->kind == STMT_LET) {
            s->bound[st->expr->id] = NULL;
        }
        for (int k = 0; st->kind == STMT_FOLD && k < st->fold.count; k++) {
            s->bound[st->fold.at[k]->id] = NULL;
        }
    }
}

void block_print(Style *s, const StmtList *list) {
    s->depth++;
    list_print(s, list);
    block_unbind(s, list);
    s->depth--;
}

/* --- loops -------------------------------------------------------------------------------------
 */

/* Each thread's own part of a workspace that the loop needs. */
static void print_thread_args(Style *s, const Needs *n) {
    for (int i = 0; i < s->k->arg.count; i++) {
        const Arg *arg = s->k->arg.at[i];
        if (arg->thread && n->arg[arg->id]) {
            const char *all = s->arg[arg->id];
            const char *own = style_name(s, str_printf(s->out->arena, "%s_own", all));
            line(s, "%s *%s = %s + (int64_t)%s * %" PRId64 ";", elem_c_name(arg->elem), own, all,
                 s->part, arg->part);
            s->arg[arg->id] = own;
        }
    }
}

void words_print(Text *out, const char *first, const Words *words, int indent) {
    size_t column = strlen(first);
    text_add(out, first);
    for (int i = 0; i < words->count; i++) {
        size_t length = strlen(words->at[i]);
        if (i > 0 && column + length + 5 > 100) {
            text_printf(out, ",\n%*s", indent, "");
            column = (size_t)indent;
        } else if (i > 0) {
            text_add(out, ", ");
            column += 2;
        }
        text_add(out, words->at[i]);
        column += length;
    }
}

/* `how`: what stands between the type and the name of the pointer. */
static const char *arg_declared(Style *s, const Arg *arg, const char *how) {
    return str_printf(s->out->arena, "%s%s *%s%s", arg->mode & ACCESS_WRITE ? "" : "const ",
                      elem_c_name(arg->elem), how, s->arg[arg->id]);
}

const char *arg_parameter(Style *s, const Arg *arg) {
    /* A function that hands its arguments on touches none of them. */
    bool hands_on = s->k->body.count == 1 && s->k->body.at[0]->kind == STMT_TILE;
    return arg_declared(s, arg, hands_on || kernel_shares(s->k, arg) ? "" : "MD_RESTRICT ");
}

/* The part of a parallel loop that falls to one thread, as a function of its own. */
static void print_loop_part(Style *s, const Stmt *st, const char *name, const Words *parameters,
                            const Needs *n) {
    Arena *arena = s->out->arena;
    const char **outer = ARENA_ARRAY(arena, const char *, s->k->nargs + 1);
    memcpy(outer, s->arg, sizeof *outer * (size_t)s->k->nargs);
    const char *first = str_printf(arena, "MD_NOINLINE void %s(", name);
    words_print(s->out, first, parameters, 8);
    text_add(s->out, ") {\n");
    s->depth = 1;
    int64_t total = 1;
    const Stmt *inner = st;
    for (int i = 0; i < st->parallel; i++) {
        inner = i > 0 ? inner->body.at[0] : st;
        total *= s->k->axis[inner->axis].extent;
        if (inner->begin) {
            BUG("a parallel loop that does not begin at 0");
        }
    }
    const bool uneven = turns_uneven(&inner->body, inner->axis), flat = st->parallel > 1 || uneven;
    const char *at = flat ? style_name(s, "at") : s->axis[st->axis];
    const char *end = style_name(s, str_printf(arena, "%s_end", at));
    const char *turns = flat ? numbers_turns(s->numbers, st->axis, total) : NULL;
    const char *all = turns != NULL ? turns
                      : flat        ? str_printf(arena, "%" PRId64, total)
                                    : turns_extent(s, st->axis);
    line(s, "const int64_t %s = md_split(%s, %s + 1, %s);", end, all, s->part, s->parts);
    print_thread_args(s, n);
    const char *begin = str_printf(arena, "md_split(%s, %s, %s)", all, s->part, s->parts);
    if (flat || !narrow_loop(s, st, begin, end)) {
        line(s, "for (int64_t %s = %s; %s < %s; %s++) {", at, begin, at, end, at);
        inner = st;
        for (int i = 0; i < st->parallel && flat; i++) {
            inner = i > 0 ? inner->body.at[0] : st;
            const int64_t extent = s->k->axis[inner->axis].extent;
            const bool last = i == st->parallel - 1;
            total /= extent;
            const char *digit = str_printf(
                arena, "%s%s", total == 1 ? at : str_printf(arena, "%s / %" PRId64, at, total),
                i > 0 ? str_printf(arena, " %% %" PRId64, extent) : "");
            if (last && uneven) {
                turns_even(s, inner->axis, digit);
            } else if (n->axes >> inner->axis & 1) {
                line(s, "    const int64_t %s = %s;", s->axis[inner->axis], digit);
            }
        }
        block_print(s, &inner->body);
        line(s, "}");
    }
    text_add(s->out, "}\n\n");
    memcpy(s->arg, outer, sizeof *outer * (size_t)s->k->nargs);
}

/* A region asks for the whole team even where some of it find nothing to do: OpenMP ends and starts
 * threads when the size of a team changes. A team of one is no team: libraries take memory for
 * each. */
static void print_region(Style *s, int most, const char *name, const Words *words) {
    Arena *arena = s->out->arena;
    const char *team = s->parts, *begun = style_name(s, "begun");
    if (most == s->k->threads) {
        line(s, "const int %s = md_team(%s, %d);", s->parts, s->pace, most);
    } else {
        team = style_name(s, "team");
        line(s, "const int %s = md_team(%s, %d);", team, s->pace, s->k->threads);
        line(s, "const int %s = %s < %d ? %s : %d;", s->parts, team, most, team, most);
    }
    line(s, "if (%s == 1) {", s->parts);
    for (int i = 0; i < 2; i++) {
        Words all = {0};
        for (int k = 0; k < words->count; k++) {
            VEC_PUSH(arena, &all, words->at[k]);
        }
        VEC_PUSH(arena, &all, i == 0 ? "0" : s->part);
        VEC_PUSH(arena, &all, i == 0 ? "1" : s->parts);
        int indent = 4 * (s->depth + 1 + i);
        words_print(s->out, str_printf(arena, "%*s%s(", indent, "", name), &all, indent + 4);
        text_add(s->out, ");\n");
        if (i == 0) {
            line(s, "} else {");
            line(s, "    MD_OMP(parallel for schedule(static, 1) num_threads(%s))", team);
            line(s, "    for (int %s = 0; %s < %s; %s++) {", s->part, s->part, s->parts, s->part);
            line(s, "        const double %s = md_part_begin(%s, %s);", begun, s->pace, s->part);
        }
    }
    line(s, "        md_part_end(%s, %s, %s, %s);", s->pace, s->part, s->parts, begun);
    line(s, "    }");
    line(s, "    md_team_join(%s, %s);", s->pace, s->parts);
    line(s, "}");
}

/* The same by one function for all loops (team.h), which takes what they need as a struct. A region
 * is a function to a C compiler, which costs it more than the handing on. */
static void print_team_run(Style *s, int most, const char *name, const Words *members,
                           const Words *words) {
    Arena *arena = s->out->arena;
    Text *to = s->before;
    Words values = {0};
    text_add(to, "typedef struct {\n");
    for (int i = 0; i < members->count; i++) {
        text_printf(to, "    %s;\n", members->at[i]);
        VEC_PUSH(arena, &values, str_printf(arena, "args->%s", words->at[i]));
    }
    VEC_PUSH(arena, &values, s->part);
    VEC_PUSH(arena, &values, s->parts);
    text_printf(to, "} %s_args;\n\n", name);
    text_printf(to, "static void %s_part(const void *ctx, int %s, int %s) {\n", name, s->part,
                s->parts);
    text_printf(to, "    const %s_args *args = (const %s_args *)ctx;\n", name, name);
    words_print(to, str_printf(arena, "    %s(", name), &values, 8);
    text_add(to, ");\n}\n\n");
    const char *args = style_name(s, "loop");
    const int indent = 4 * s->depth;
    words_print(s->out, str_printf(arena, "%*sconst %s_args %s = {", indent, "", name, args), words,
                indent + 4);
    text_add(s->out, "};\n");
    line(s, "md_team_run(%s, %d, %d, %s_part, &%s);", s->pace, s->k->threads, most, name, args);
}

/* A loop on several threads. */
static void print_parallel(Style *s, const Stmt *st) {
    Arena *arena = s->out->arena;
    const Stmt *block[1] = {st};
    StmtList list = {.at = (Stmt **)block, .count = 1};
    Needs n = needs_of(arena, s->k, &list, s->bound);
    Words parameters = {0}, members = {0}, words = {0};
    for (int i = 0; i < s->k->arg.count; i++) {
        const Arg *arg = s->k->arg.at[i];
        if (n.arg[arg->id]) {
            VEC_PUSH(arena, &parameters, arg_parameter(s, arg));
            VEC_PUSH(arena, &members, arg_declared(s, arg, ""));
            VEC_PUSH(arena, &words, s->arg[arg->id]);
        }
    }
    const int pointers = parameters.count;
    for (int i = 0; i < n.value.count; i++) {
        const Expr *e = n.value.at[i];
        const char *name = s->bound[e->id];
        const char *type = e->kind == EXPR_KEY ? "md_key" : style_type(e->elem);
        VEC_PUSH(arena, &parameters, str_printf(arena, "%s %s", type, name));
        VEC_PUSH(arena, &words, name);
    }
    for (int i = 0; i < scalar_count(s->k); i++) {
        if (n.scalar[i]) {
            VEC_PUSH(arena, &parameters, scalar_declared(arena, s->k, i));
            VEC_PUSH(arena, &words, scalar_name(arena, s->k, i));
        }
    }
    if (s->size) {
        VEC_PUSH(arena, &parameters, str_printf(arena, "int64_t %s", s->size));
        VEC_PUSH(arena, &words, s->size);
    }
    for (int i = pointers; i < parameters.count; i++) {
        VEC_PUSH(arena, &members, parameters.at[i]);
    }
    s->part = style_name(s, "part");
    s->parts = style_name(s, "parts");
    VEC_PUSH(arena, &parameters, str_printf(arena, "int %s", s->part));
    VEC_PUSH(arena, &parameters, str_printf(arena, "int %s", s->parts));
    const char *name = kernel_loop_name(arena, s->name, s->nloop++);
    Text *out = s->out;
    int depth = s->depth;
    s->out = s->before;
    print_loop_part(s, st, name, &parameters, &n);
    s->out = out;
    s->depth = depth;
    if (s->k->handed) {
        print_team_run(s, stmt_team(s->k, st), name, &members, &words);
    } else {
        print_region(s, stmt_team(s->k, st), name, &words);
    }
}

/* Numbers, not pointers: what is asked for may lie behind the tensor. */
static void print_ahead(Style *s, const StreamList *ahead) {
    for (int i = 0; i < ahead->count; i++) {
        const Stream *of = &ahead->at[i];
        const int64_t bytes = (int64_t)elem_bytes(of->arg->elem);
        const char *name = s->arg[of->arg->id], *at = index_text(s, of->at);
        for (int64_t line_at = 0; line_at < of->row * bytes; line_at += MD_ALIGN) {
            const char *more =
                line_at == 0 ? "" : str_printf(s->out->arena, " + %" PRId64, line_at);
            line(s, "    MD_FETCH((uintptr_t)%s + (size_t)(%s) * %" PRId64 "%s);", name, at, bytes,
                 more);
        }
    }
}

/* What the turns that a loop leaves out store, from `first` on. */
static void print_rest(Style *s, const Stmt *st, const char *first) {
    const int axis = st->kind == STMT_FOLD ? st->axes.at[0] : st->axis;
    const char *name = s->axis[axis];
    bool any = false;
    for (int i = 0; i < st->body.count; i++) {
        any = any || st->body.at[i]->rest;
    }
    if (!any) {
        return;
    }
    const char *end = st->rests > 0 ? turns_most(s, axis, first, st->rests) : turns_extent(s, axis);
    line(s, "MD_IVDEP");
    line(s, "for (int64_t %s = %s; %s < %s; %s++) {", name, first, name, end, name);
    s->depth++;
    for (int i = 0; i < st->body.count; i++) {
        Stmt store = *st->body.at[i];
        store.expr = store.rest;
        if (store.rest) {
            print_store(s, &store);
        }
    }
    s->depth--;
    line(s, "}");
}

static void print_for(Style *s, const Stmt *st) {
    if (st->parallel > 0) {
        s->target->parallel(s, st);
        return;
    }
    if (st->held && !st->simd) {
        held_open(s, st);
    }
    const char *name = s->axis[st->axis], *first, *end;
    turns_bounds(s, st, 0, &first, &end);
    if (narrow_loop(s, st, first, end)) {
        return;
    }
    int64_t extent = s->k->axis[st->axis].extent;
    int64_t most = st->begin && st->span < extent ? st->span : extent;
    Draws draws = {.count = 0};
    if (!s->lean) {
        draws = draws_open(s, st->axis, first, end, most, &st->body);
    }
    if (st->simd) {
        line(s, "MD_IVDEP");
    }
    if (st->unroll) {
        line(s, "MD_UNROLL(8)");
    }
    block_meet(s);
    const int shared = block_loop(s, st, name, first, end);
    print_ahead(s, &st->ahead);
    if (st->held && st->simd) {
        held_turn(s, st);
    } else {
        block_print(s, &st->body);
    }
    block_loop_end(s, shared);
    block_meet(s);
    draws_close(s, &draws);
    print_rest(s, st, end);
    if (st->held && !st->simd) {
        held_close(s, st);
    }
}

/* --- folds -------------------------------------------------------------------------------------
 */

static void fold_start(Text *out, OpCode op, Elem elem) {
    if (op == OP_FMAX || op == OP_FMIN) {
        if (elem_is_float(elem)) {
            style_number(out, elem, op == OP_FMAX ? -INFINITY : INFINITY, 0);
        } else {
            int64_t least, most;
            elem_range(elem, &least, &most);
            style_number(out, elem, 0, op == OP_FMIN ? most : least);
        }
    } else {
        style_number(out, elem, op == OP_PROD, op == OP_PROD);
    }
}

static const char *start_text(Style *s, OpCode op, Elem elem) {
    Text text = {.arena = s->out->arena};
    fold_start(&text, op, elem);
    return text.at;
}

/* Are its lanes the keys of floats (md_key_of_f32)? */
static bool lanes_are_keys(const Expr *e) {
    return e->elem == TY_F32 && (e->op == OP_FMAX || e->op == OP_FMIN);
}

/* The body of one iteration and what it adds to place[k]; `lanes`: a lane of it. */
static void fold_body(Style *s, const Stmt *st, const char **place, bool lanes) {
    s->depth++;
    list_print(s, &st->body);
    for (int k = 0; k < st->fold.count; k++) {
        const Expr *e = st->fold.at[k];
        const Expr *of = st->parts ? e : e->in[0];
        if (lanes && lanes_are_keys(e)) {
            const char *value = expr_text(s, of);
            const char *minus = e->op == OP_FMIN ? "-" : "", *open = *minus ? "(" : "";
            line(s, "%s = md_max_key(md_key_of_f32(%s%s%s%s), %s);", place[k], minus, open, value,
                 *minus ? ")" : "", place[k]);
            continue;
        }
        style_indent(s);
        combined_print(s, e->op, e->elem, place[k], of);
        text_add(s->out, "\n");
    }
    block_unbind(s, &st->body);
    s->depth--;
}

/* Opens the loops over all axes but the last; the last one's bounds are printed too. */
static void fold_outer(Style *s, const Stmt *st, const char **first, const char **end) {
    int n = st->axes.count;
    for (int i = 0; i < n; i++) {
        turns_bounds(s, st, i, first, end);
        if (i < n - 1) {
            const char *name = s->axis[st->axes.at[i]];
            line(s, "for (int64_t %s = %s; %s < %s; %s++) {", name, *first, name, *end, name);
            s->depth++;
        }
    }
}

static void fold_close(Style *s, const Stmt *st) {
    if (fold_in_order(s->out->arena, s->k, st)) {
        line(s, "MD_IN_ORDER;");
    }
    for (int i = 0; i < st->axes.count - 1; i++) {
        s->depth--;
        line(s, "}");
    }
}

/* The first position where the value is the extreme one. */
static void print_search(Style *s, const Stmt *st) {
    const char *first, *end;
    const char **place = ARENA_ARRAY(s->out->arena, const char *, st->fold.count);
    const char **found = ARENA_ARRAY(s->out->arena, const char *, st->fold.count);
    for (int k = 0; k < st->fold.count; k++) {
        place[k] = style_expr_name(s, st->fold.at[k], style_fold_word(st->fold.at[k]->op));
        found[k] = style_name(s, "found");
        line(s, "int32_t %s = 0;", place[k]);
        line(s, "int %s = 0;", found[k]);
    }
    fold_outer(s, st, &first, &end);
    const char *name = s->axis[st->axes.at[st->axes.count - 1]];
    style_indent(s);
    text_printf(s->out, "for (int64_t %s = %s; %s < %s && !(", name, first, name, end);
    for (int k = 0; k < st->fold.count; k++) {
        text_printf(s->out, "%s%s", k ? " && " : "", found[k]);
    }
    text_printf(s->out, "); %s++) {\n", name);
    s->depth++;
    list_print(s, &st->body);
    for (int k = 0; k < st->fold.count; k++) {
        const Expr *e = st->fold.at[k];
        const char *value = expr_text(s, e->in[0]), *best = expr_text(s, e->in[1]);
        line(s, "if (!%s && %s == %s) {", found[k], value, best);
        line(s, "    %s = (int32_t)(%s);", place[k], index_text(s, e->index));
        line(s, "    %s = 1;", found[k]);
        line(s, "}");
    }
    block_unbind(s, &st->body);
    s->depth--;
    line(s, "}");
    fold_close(s, st);
    for (int k = 0; k < st->fold.count; k++) {
        s->bound[st->fold.at[k]->id] = place[k];
    }
}

static void print_plain_fold(Style *s, const Stmt *st) {
    const char *first, *end;
    const char **place = ARENA_ARRAY(s->out->arena, const char *, st->fold.count);
    for (int k = 0; k < st->fold.count; k++) {
        const Expr *e = st->fold.at[k];
        place[k] = style_expr_name(s, e, style_fold_word(e->op));
        line(s, "%s %s = %s;", elem_c_name(e->elem), place[k], start_text(s, e->op, e->elem));
    }
    for (int i = 0; i < st->body.count; i++) {
        if (st->body.at[i]->kind == STMT_STORE) {
            block_meet(s);
        }
    }
    fold_outer(s, st, &first, &end);
    const char *name = s->axis[st->axes.at[st->axes.count - 1]];
    const int shared = block_loop(s, st, name, first, end);
    fold_body(s, st, place, false);
    block_loop_end(s, shared);
    fold_close(s, st);
    print_rest(s, st, end);
    block_fold(s, st, place, shared);
    for (int k = 0; k < st->fold.count; k++) {
        s->bound[st->fold.at[k]->id] = place[k];
    }
}

/* Whether an iteration depends on where it is; equal terms may be folded too. */
static bool reads_axis(Style *s, const Stmt *st, int axis) {
    const Stmt *block[1] = {st};
    StmtList list = {.at = (Stmt **)block, .count = 1};
    return needs_of(s->out->arena, s->k, &list, s->bound).axes >> axis & 1;
}

/* Lanes: element i of every `lanes` goes to sum i; the rest of a row fills the first lanes. */
static void print_lanes_fold(Style *s, const Stmt *st) {
    Arena *arena = s->out->arena;
    const char *first, *end;
    const char **lane = ARENA_ARRAY(arena, const char *, st->fold.count);
    const char **place = ARENA_ARRAY(arena, const char *, st->fold.count);
    const char *l = style_name(s, "l");
    bool start = false; /* some do not begin at 0 */
    for (int k = 0; k < st->fold.count; k++) {
        const Expr *e = st->fold.at[k];
        const bool keys = lanes_are_keys(e), zero = keys || e->op == OP_SUM;
        lane[k] = style_name(s, str_printf(arena, "%s_part", style_fold_word(e->op)));
        place[k] = str_printf(arena, "%s[%s]", lane[k], l);
        start = start || !zero;
        line(s, "%s %s[%d]%s;", keys ? "uint32_t" : elem_c_name(e->elem), lane[k], st->lanes,
             zero ? " = {0}" : "");
    }
    if (start) {
        line(s, "for (int64_t %s = 0; %s < %d; %s++) {", l, l, st->lanes, l);
        for (int k = 0; k < st->fold.count; k++) {
            const Expr *e = st->fold.at[k];
            if (e->op != OP_SUM && !lanes_are_keys(e)) {
                line(s, "    %s = %s;", place[k], start_text(s, e->op, e->elem));
            }
        }
        line(s, "}");
    }
    fold_outer(s, st, &first, &end);
    int last = st->axes.at[st->axes.count - 1];
    const char *name = s->axis[last];
    const char *base = style_name(s, str_printf(arena, "%s_base", name));
    int64_t extent = s->k->axis[last].extent;
    bool cut = st->axes.count == 1 && st->begin && st->begin->most + st->span > extent;
    int64_t turns = st->axes.count == 1 && st->begin ? st->span : extent;
    bool placed = reads_axis(s, st, last);
    line(s, "int64_t %s = %s;", base, first);
    line(s, "for (; %s + %d <= %s; %s += %d) {", base, st->lanes, end, base, st->lanes);
    s->depth++;
    line(s, "for (int64_t %s = 0; %s < %d; %s++) {", l, l, st->lanes, l);
    if (placed) {
        line(s, "    const int64_t %s = %s + %s;", name, base, l);
    }
    fold_body(s, st, place, true);
    line(s, "}");
    s->depth--;
    line(s, "}");
    if (cut || turns % st->lanes != 0 || numbers_extent(s->numbers, last) != NULL) {
        line(s, "for (int64_t %s = 0; %s < %s - %s; %s++) {", l, l, end, base, l);
        if (placed) {
            line(s, "    const int64_t %s = %s + %s;", name, base, l);
        }
        fold_body(s, st, place, true);
        line(s, "}");
    }
    fold_close(s, st);
    print_rest(s, st, end);
    for (int k = 0; k < st->fold.count; k++) {
        const Expr *e = st->fold.at[k];
        const char *word = e->op == OP_SUM    ? "add"
                           : e->op == OP_PROD ? "mul"
                           : e->op == OP_FMAX ? "max"
                                              : "min";
        const char *result = style_expr_name(s, e, style_fold_word(e->op));
        const bool least = e->op == OP_FMIN && lanes_are_keys(e);
        line(s, "const %s %s = %smd_lanes_%s%s(%s, %d);", elem_c_name(e->elem), result,
             least ? "-" : "", least ? "max" : word, e->elem == TY_F64 ? "" : "f", lane[k],
             st->lanes);
        s->bound[e->id] = result;
    }
}

static void print_fold(Style *s, const Stmt *st) {
    bool floats = true;
    for (int k = 0; k < st->fold.count; k++) {
        floats = floats && elem_is_float(st->fold.at[k]->elem);
    }
    if (st->fold.at[0]->nin == 2) {
        print_search(s, st);
    } else if (st->lanes > 1 && floats) {
        print_lanes_fold(s, st);
    } else {
        print_plain_fold(s, st);
    }
}

/* Of what a block has once, by its first thread. */
static void print_one_store(Style *s, const Stmt *st) {
    block_meet(s);
    if (s->block > 0) {
        line(s, "if (threadIdx.x == 0) {");
        s->depth++;
        print_store(s, st);
        s->depth--;
        line(s, "}");
    } else {
        print_store(s, st);
    }
    block_meet(s);
}

/* --- lists -------------------------------------------------------------------------------------
 */

void list_print(Style *s, const StmtList *list) {
    for (int i = 0; i < list->count; i++) {
        const Stmt *st = list->at[i];
        switch (st->kind) {
        case STMT_FOR: print_for(s, st); break;
        case STMT_LET:
            if (s->held.way == HELD_ADD) {
                let_print(s, st);
            }
            break;
        case STMT_STORE: print_one_store(s, st); break;
        case STMT_FOLD: print_fold(s, st); break;
        case STMT_TILE: s->target->product(s, st->tile); break;
        case STMT_ORDER: s->target->order(s, st->order); break;
        }
    }
}

/* --- functions ---------------------------------------------------------------------------------
 */

Words kernel_parameters(Style *s) {
    const Kernel *k = s->k;
    Arena *arena = s->out->arena;
    Words words = {0};
    for (int i = 0; i < k->arg.count; i++) {
        VEC_PUSH(arena, &words, arg_parameter(s, k->arg.at[i]));
    }
    for (int i = 0; i < scalar_count(k); i++) {
        if (scalar_used(k, i)) {
            VEC_PUSH(arena, &words, scalar_declared(arena, k, i));
        }
    }
    if (s->size) {
        VEC_PUSH(arena, &words, str_printf(arena, "int64_t %s", s->size));
    }
    return words;
}

static void kernel_head(Style *s) {
    Arena *arena = s->out->arena;
    Words words = kernel_parameters(s);
    if (s->pace) {
        VEC_PUSH(arena, &words, str_printf(arena, "md_pace *%s", s->pace));
    }
    const char *first = str_printf(arena, "static void %s(", s->k->name);
    words_print(s->out, first, &words, 8);
    text_add(s->out, words.count > 0 ? ") {\n" : "void) {\n");
}

/* The text without the shape behind it. */
static const char *without_shape(Arena *arena, const char *text) {
    const char *shape = NULL;
    for (const char *at = text; (at = strstr(at, "  [")) != NULL; at++) {
        shape = at;
    }
    return shape != NULL ? str_ndup(arena, text, (size_t)(shape - text)) : text;
}

void origin_print(Text *out, const Step *step, bool sized) {
    const char *text = step->text ? step->text : "";
    text_add(out, "/* ");
    if (step->where) {
        text_comment(out, step->where);
        text_add(out, "  ");
    }
    text_comment(out, sized ? text : without_shape(out->arena, text));
    if (step->kernel->ncall > 1 && sized) {
        text_printf(out, "; called at %d places", step->kernel->ncall);
    }
    text_add(out, " */\n");
}

static void print_kernel(Text *to, Products *known, const Step *step) {
    const Kernel *k = step->kernel;
    const Tile *tile = kernel_tile(k);
    Arena scratch = {0};
    Text text = {.arena = &scratch}, whole = {.arena = &scratch}, *out = &text;
    Numbers *numbers = known->numbers;
    origin_print(out, step, numbers == NULL);
    static const StyleTarget target = {print_parallel, tile_print, order_print};
    Style s = style_open(&whole, k);
    s.target = &target;
    s.name = k->name;
    Text behind = {.arena = &scratch};
    s.numbers = numbers;
    s.before = numbers != NULL ? &behind : out;
    if (numbers != NULL) {
        numbers_open(numbers, k);
    }
    if (tile) {
        tile_print_plan(&s, s.before, tile, known);
    }
    s.size = k->flat.known ? style_name(&s, "n") : NULL;
    s.pace = kernel_has_team(k) ? style_name(&s, "pace") : NULL;
    kernel_head(&s);
    block_print(&s, &k->body);
    if (numbers != NULL) {
        numbers_close(numbers, out);
    }
    text_addn(to, text.at, text.len);
    text_addn(to, behind.at, behind.len);
    text_addn(to, whole.at, whole.len);
    text_add(to, "}\n");
    arena_free(&scratch);
}

void call_print(Text *out, const Emit *e, const Step *step, const char *comma) {
    const Kernel *k = step->kernel;
    const Call *call = &step->call;
    for (int i = 0; i < k->arg.count; i++) {
        text_printf(out, "%s%s", comma, buf_local(call->buf.at[i])->name);
        for (int j = 0; j < call->offset.count; j++) {
            const Offset *o = &call->offset.at[j];
            if (o->arg == i) {
                text_printf(out, " + i%d * %s", o->loop->index, call_number(e, o->mul, NULL));
            }
        }
        comma = ", ";
    }
    for (int i = 0; i < scalar_count(k); i++) {
        if (!scalar_used(k, i)) {
            continue;
        }
        if (i < k->loop.count) {
            text_printf(out, "%si%d", comma, call->loop.at[i]->index);
        } else {
            text_printf(out, "%sUINT64_C(%" PRIu64 ")", comma, call->site.at[i - k->loop.count]);
        }
        comma = ", ";
    }
    if (k->flat.known) {
        text_printf(out, "%s%s", comma, call_number(e, call->size, NULL));
    }
}

static void print_call(Text *out, const Emit *e, const Step *step) {
    text_printf(out, "%s(", step->kernel->name);
    call_print(out, e, step, "");
    const char *pace = e->table != NULL ? ", m->pace" : ", &m->pace";
    text_printf(out, "%s);", kernel_has_team(step->kernel) ? pace : "");
}

const Printer printer_c = {print_kernel, print_call, NULL};
