/* data: where rows come from. A field is a source (columns, the whole record, a window) and an
 * elementwise expression of it; the expression becomes an entry of its own that loads one row. */
#include "lang/data.h"

#include "lang/arith.h"
#include "lang/dims.h"
#include "lang/entry.h"
#include "lang/expr.h"
#include "lang/half.h"
#include "lang/made.h"
#include "lang/naming.h"
#include "lang/normalise.h"
#include "lang/stmt.h"

#include <string.h>

bool data_has_part(const DataSet *set, int part) {
    for (int i = 0; i < set->file.count; i++) {
        if (set->file.at[i].path[part]) {
            return true;
        }
    }
    return set->every[part] > 0;
}

/* --- clauses --------------------------------------------------------------------------------- */

static void file_clause(Elab *e, DataSet *set, const Ast *clause) {
    const Ast *args = clause->kid[0];
    DataFile file = {.loc = clause->loc};
    for (int i = 0; args && i < args->nkid; i++) {
        const Ast *arg = args->kid[i], *path = arg->kind == AST_ARG ? arg->kid[0] : arg;
        bool named = arg->kind == AST_ARG, test = i > 0 && named && str_eq(arg->name, "test");
        int part = test ? PART_TEST : i;
        if (i == 0 ? !named : named && !test) {
            elab_error(e, arg->loc, 570,
                       "a file is written: file f = \"train.csv\", \"validation.csv\", "
                       "test = \"test.csv\";");
            return;
        }
        if (i == 0 && made_is(path)) {
            file.name = arg->name;
            if (args->nkid > 1 || set->file.count > 0) {
                elab_error(e, clause->loc, 319,
                           "a data set of rows without a file has no other file; 'holdout' keeps "
                           "rows of it for evaluation");
                return;
            }
            if (!made_file(e, &file, path)) {
                return;
            }
            continue;
        }
        if (path->kind != AST_STRING || part > PART_TEST || file.path[part] ||
            (part == PART_TEST && !test)) {
            elab_error(e, path->loc, 571,
                       path->kind != AST_STRING ? "the path of a file is a string"
                       : test                   ? "a file has one path of test rows"
                                                : "a file has at most two paths and test rows: "
                                                  "file f = \"train.csv\", \"validation.csv\", "
                                                  "test = \"test.csv\";");
            return;
        }
        if (i == 0) {
            file.name = arg->name;
        }
        file.path[part] = path->text;
    }
    for (int i = 0; i < set->file.count; i++) {
        if (set->file.at[i].rows > 0) {
            elab_error(e, clause->loc, 319,
                       "a data set of rows without a file has no other file; 'holdout' keeps rows "
                       "of it for evaluation");
            return;
        }
        if (str_eq(set->file.at[i].name, file.name)) {
            elab_error(e, clause->loc, 572, "file '%s' is declared twice", file.name);
            return;
        }
    }
    VEC_PUSH(e->arena, &set->file, file);
}

/* `holdout every(5), test = every(10);`: one of them or both. */
static void holdout_clause(Elab *e, DataSet *set, const Ast *clause) {
    const Ast *args = clause->kid[0];
    for (int i = 0; i == 0 || (args && i < args->nkid); i++) {
        const Ast *arg = args ? args->kid[i] : NULL;
        bool test = arg && arg->kind == AST_ARG && str_eq(arg->name, "test");
        const Ast *call = test ? arg->kid[0] : arg;
        int64_t *k = &set->every[test ? PART_TEST : PART_HELD];
        bool every = call && call->kind == AST_CALL && call->kid[0]->kind == AST_NAME &&
                     str_eq(call->kid[0]->name, "every") && call->kid[1] && call->kid[1]->nkid == 1;
        if (!every || *k != 0) {
            elab_error(e, clause->loc, 573,
                       "'holdout' is written: holdout every(5); or "
                       "holdout every(5), test = every(10);");
            return;
        }
        if (elab_int(e, call->kid[1]->kid[0], "the argument of 'every'", k) && *k < 2) {
            elab_error(e, call->kid[1]->kid[0]->loc, 574,
                       "holdout every(k) needs k >= 2; with less no row is left to train on");
            *k = 0;
        }
    }
}

static void clause(Elab *e, DataSet *set, const Ast *ast) {
    const Ast *args = ast->kid[0];
    if (str_eq(ast->name, "file")) {
        file_clause(e, set, ast);
    } else if (str_eq(ast->name, "holdout")) {
        holdout_clause(e, set, ast);
    } else if (str_eq(ast->name, "shuffle")) {
        const Value *on = args && args->nkid == 1 ? elab_expr(e, args->kid[0]) : NULL;
        if (!on || (elab_ok(on) && on->kind != V_BOOL)) {
            elab_error(e, ast->loc, 575, "'shuffle' is written: shuffle true; or shuffle false;");
        } else if (elab_ok(on)) {
            set->shuffle = on->truth;
        }
    } else {
        elab_error(e, ast->loc, 576, "'%s' may not stand in a dataset; it belongs to the train",
                   ast->name);
    }
}

/* --- fields ---------------------------------------------------------------------------------- */

static int file_number(const DataSet *set, const Ast *ast) {
    for (int i = 0; ast->kind == AST_NAME && i < set->file.count; i++) {
        if (str_eq(set->file.at[i].name, ast->name)) {
            return i;
        }
    }
    return -1;
}

/* The part of the expression that names a file: `f` or `f.columns(...)`. */
static const Ast *find_source(const DataSet *set, const Ast *ast, int *file) {
    if (!ast) {
        return NULL;
    }
    if (ast->kind == AST_CALL && ast->kid[0]->kind == AST_DOT &&
        file_number(set, ast->kid[0]->kid[0]) >= 0) {
        *file = file_number(set, ast->kid[0]->kid[0]);
        return ast;
    }
    if (file_number(set, ast) >= 0) {
        *file = file_number(set, ast);
        return ast;
    }
    for (int i = 0; i < ast->nkid; i++) {
        const Ast *found = find_source(set, ast->kid[i], file);
        if (found) {
            return found;
        }
    }
    return NULL;
}

/* The tree with `part` exchanged for `with`. */
static const Ast *exchange(Elab *e, const Ast *ast, const Ast *part, const Ast *with) {
    if (ast == part) {
        return with;
    }
    if (!ast) {
        return NULL;
    }
    Ast *copy = ARENA_NEW(e->arena, Ast);
    *copy = *ast;
    copy->kid = ARENA_ARRAY(e->arena, Ast *, ast->nkid);
    for (int i = 0; i < ast->nkid; i++) {
        copy->kid[i] = (Ast *)exchange(e, ast->kid[i], part, with);
    }
    return copy;
}

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* What a row's elements are before `load`, by the name of the file. */
static Elem dump_elem(const Elab *e, const char *path) {
    static const struct {
        const char *end;
        Elem elem;
    } known[] = {{"ubyte", TY_U8}, {"ubyte.gz", TY_U8}, {".idx", TY_U8},  {".idx.gz", TY_U8},
                 {".txt", TY_U8},  {".u8", TY_U8},      {".u16", TY_U16}, {".i32", TY_I32}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (ends_with(path, known[i].end)) {
            return known[i].elem;
        }
    }
    return e->g->float_type;
}

/* A stream has windows side by side: the order of its rows is what makes it one. */
static bool window_source(Elab *e, DataField *f, const Ast *args, bool stream, Loc loc) {
    f->source = FIELD_WINDOW;
    f->stride = -1;
    bool sized = false;
    for (int i = 0; args && i < args->nkid; i++) {
        const Ast *arg = args->kid[i];
        int64_t n, *to = &f->length;
        if (arg->kind == AST_ARG) {
            to = str_eq(arg->name, "offset")              ? &f->offset
                 : str_eq(arg->name, "stride") && !stream ? &f->stride
                                                          : NULL;
            arg = arg->kid[0];
        } else {
            to = sized ? NULL : to;
            sized = true;
        }
        if (!to) {
            elab_error(e, arg->loc, 577,
                       "a window is written: f.window(T, offset = 1, stride = T); a stream: "
                       "f.stream(T, offset = 1)");
            return false;
        }
        if (!elab_int(e, arg, stream ? "an argument of 'stream'" : "an argument of 'window'", &n)) {
            return false;
        }
        if (n < (to == &f->offset ? 0 : 1)) {
            elab_error(e, arg->loc, 578, "the %s of a window is at least %d, found %lld",
                       to == &f->offset   ? "offset"
                       : to == &f->stride ? "stride"
                                          : "length",
                       to == &f->offset ? 0 : 1, (long long)n);
            return false;
        }
        *to = n;
    }
    if (!sized) {
        elab_error(e, loc, 579, "'%s' needs its length: f.%s(T)", stream ? "stream" : "window",
                   stream ? "stream" : "window");
        return false;
    }
    if (f->stride < 0) {
        f->stride = f->length;
    }
    return true;
}

/* `f.columns(a..b)`, `f.column(c)`, `f.window(T)`; rank and extents of the raw row. */
static bool method_source(Elab *e, DataField *f, const Ast *call, int *rank, Dim *dim) {
    const char *name = call->kid[0]->name;
    const Ast *args = call->kid[1], *arg = args && args->nkid == 1 ? args->kid[0] : NULL;
    if (str_eq(name, "columns") && arg && arg->kind == AST_RANGE_EXPR) {
        int64_t hi;
        if (!elab_int(e, arg->kid[0], "the first column", &f->first) ||
            !elab_int(e, arg->kid[1], "the end of the columns", &hi)) {
            return false;
        }
        if (f->first < 0 || hi <= f->first) {
            elab_error(e, arg->loc, 580,
                       "there are no columns %lld..%lld: the range starts at 0 or later and ends "
                       "before its end",
                       (long long)f->first, (long long)hi);
            return false;
        }
        f->source = FIELD_COLUMNS;
        f->count = hi - f->first;
        *rank = 1;
        dim[0] = (Dim){.size = f->count};
        return true;
    }
    if (str_eq(name, "column") && arg) {
        f->source = FIELD_COLUMNS;
        f->count = 1;
        *rank = 0;
        if (!elab_int(e, arg, "a column", &f->first)) {
            return false;
        }
        if (f->first < 0) {
            elab_error(e, arg->loc, 581,
                       "there is no column %lld: they are counted from 0 on the "
                       "left",
                       (long long)f->first);
            return false;
        }
        return true;
    }
    if (str_eq(name, "window") || str_eq(name, "stream")) {
        *rank = 1;
        bool ok = window_source(e, f, args, str_eq(name, "stream"), call->loc);
        dim[0] = (Dim){.size = f->length};
        return ok;
    }
    elab_error(e, call->loc, 583, "a file has columns(a..b), column(c), window(T) and stream(T)");
    static const char *const methods[] = {"columns", "column", "window", "stream"};
    Nearest n = nearest_start(name);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        nearest_add(&n, methods[i]);
    }
    elab_hint_nearest(e, &n);
    return false;
}

/* Closes the entry that loads a row: its result is the expression, of the field's type. */
static Entry *load_close(Elab *e, const DataField *f, const Ast *expr) {
    Entry *entry = e->entry->entry;
    const Value *v = elab_expr(e, expr);
    Type want = f->type;
    if (elab_ok(v)) {
        v = arith_lift(e, expr->loc, v);
    }
    bool shape = elab_ok(v) && v->rank == want.rank;
    for (int i = 0; shape && i < v->rank; i++) {
        shape = v->dim[i].size == want.dim[i];
    }
    if (elab_ok(v) && (!shape || !half_fits(v, want.elem))) {
        elab_error(e, expr->loc, 584, "field '%s' is declared as %s, but this is %s", f->name,
                   type_text(e->arena, want), value_text(e->arena, v));
        if (elab_ok(v) && shape) {
            diag_hint(&e->c->diag, "%s(...) converts", elem_name(want.elem));
        } else {
            diag_hint(&e->c->diag, "'as [..]' gives a row another shape");
        }
        v = &value_poison;
    }
    if (elab_ok(v)) {
        entry_out(e, OUT_RESULT, f->name, NULL, v->node, expr->loc);
        entry->out.at[0].half = elem_is_half(want.elem) ? want.elem : TY_ERROR;
    }
    entry_close(e);
    return elab_ok(v) ? entry : NULL;
}

/* The row loader of an expression that is more than a conversion. */
static Entry *load_entry(Elab *e, const DataField *f, const Ast *expr, const Ast *source,
                         const Ast *ast, int rank, const Dim *dim) {
    Ast name = {.kind = AST_NAME, .loc = source->loc, .name = "the row"};
    entry_open(e, ENTRY_LOAD, f->name, ast);
    Slot *slot = entry_input_slot(e, "row", dims_type(f->raw, rank, dim), source->loc);
    scope_add(e->scratch, e->scope, name.name, source->loc, BIND_ARGUMENT,
              value_tensor(e->scratch, node_slot(e->g, slot), rank, dim));
    return load_close(e, f, exchange(e, expr, source, &name));
}

/* A pipe hands its value on to `part`. */
static bool is_piped_to(const Ast *ast, const Ast *part) {
    bool found = ast && ast->kind == AST_PIPE && ast->kid[1] == part;
    for (int i = 0; ast && !found && i < ast->nkid; i++) {
        found = is_piped_to(ast->kid[i], part);
    }
    return found;
}

/* What stands before the '.' of a method, if the expression has one. */
static const Ast *method_object(const Ast *ast) {
    const Ast *found = NULL;
    if (ast && ast->kind == AST_CALL && ast->kid[0]->kind == AST_DOT) {
        found = ast->kid[0]->kid[0];
    }
    for (int i = 0; ast && !found && i < ast->nkid; i++) {
        found = method_object(ast->kid[i]);
    }
    return found;
}

static void unknown_source(Elab *e, const DataSet *set, const Ast *expr) {
    const Ast *object = method_object(expr);
    if (!object || object->kind != AST_NAME) {
        elab_error(e, expr->loc, 587, "a field names a file of its data set: f.columns(0..4)");
        return;
    }
    elab_error(e, object->loc, 594, "there is no file '%s' in data set '%s'", object->name,
               set->name);
    Nearest n = nearest_start(object->name);
    for (int i = 0; i < set->file.count; i++) {
        nearest_add(&n, set->file.at[i].name);
    }
    if (!n.best && set->file.count == 1) {
        n.best = set->file.at[0].name;
    }
    elab_hint_nearest(e, &n);
}

/* `broken`: a file may be missing because of an error before. */
static bool field(Elab *e, DataSet *set, const Ast *ast, bool broken) {
    DataField f = {.name = ast->name, .loc = ast->loc};
    const Ast *expr = ast->kid[2];
    Dim want[MD_RANK], raw[MD_RANK];
    int rank, raw_rank;
    Elem elem;
    for (int i = 0; i < set->field.count; i++) {
        if (str_eq(set->field.at[i].name, f.name)) {
            elab_error(e, ast->loc, 585, "field '%s' is declared twice", f.name);
            return false;
        }
    }
    if (!dims_elem(e, ast->kid[0], &elem) || !dims_eval_type(e, ast->kid[0], &rank, want)) {
        return false;
    }
    f.type = dims_type(elem == TY_ERROR ? TY_I32 : elem, rank, want);
    if (ast->kid[1]) {
        if (!dims_elem_range(e, ast->kid[1], f.type.elem, &f.lo, &f.hi)) {
            return false;
        }
    }
    expr = normalise_take(e, &f, expr);
    if (expr && set->file.count > 0 && set->file.at[0].rows > 0) {
        made_open(e, set, &f, ast, rank, want);
        f.load = load_close(e, &f, expr);
        if (f.load) {
            normalise_states(e, set, &f);
            VEC_PUSH(e->arena, &set->field, f);
        }
        return f.load != NULL;
    }
    const Ast *source = expr ? find_source(set, expr, &f.file) : NULL;
    if (!expr) {
        return false;
    }
    if (!source) {
        if (expr->kind != AST_ERROR && !broken) {
            unknown_source(e, set, expr);
        }
        return false;
    }
    if (is_piped_to(expr, source)) {
        elab_error(e, source->loc, 599,
                   "a part of a file takes no value; it begins the expression");
        return false;
    }
    int other;
    static const Ast gone = {.kind = AST_ERROR};
    if (find_source(set, exchange(e, expr, source, &gone), &other)) {
        elab_error(e, expr->loc, 588,
                   "a field reads one part of one file; declare a field for "
                   "each part and join them in the train");
        return false;
    }
    f.source = FIELD_RECORD;
    raw_rank = rank;
    memcpy(raw, want, sizeof raw);
    if (source->kind == AST_CALL && !method_source(e, &f, source, &raw_rank, raw)) {
        return false;
    }
    f.raw = dump_elem(e, set->file.at[f.file].path[0]);
    f.raw_count = 1;
    for (int i = 0; i < raw_rank; i++) {
        f.raw_count *= raw[i].size;
    }
    if (f.raw_count == 0) {
        elab_error(e, expr->loc, 691,
                   "field '%s' has no elements, so no file says how many rows it has", f.name);
        diag_hint(&e->c->diag,
                  "leave the field out and write zeros(s) with its shape in the train");
        return false;
    }
    const Ast *core = expr;
    while (core->kind == AST_AS) {
        core = core->kid[0];
    }
    if (core == source) { /* a plain conversion; the row keeps its order */
        if (f.raw_count != type_count(f.type)) {
            elab_error(e, expr->loc, 589, "field '%s' has %lld elements, but its source has %lld",
                       f.name, (long long)type_count(f.type), (long long)f.raw_count);
            return false;
        }
    } else if (f.source == FIELD_WINDOW) {
        elab_error(e, expr->loc, 590,
                   "a window is taken as it is; compute with the field in the train");
        return false;
    } else {
        f.load = load_entry(e, &f, expr, source, ast, raw_rank, raw);
        if (!f.load) {
            return false;
        }
    }
    normalise_states(e, set, &f);
    VEC_PUSH(e->arena, &set->field, f);
    return true;
}

static bool said_twice(Elab *e, const Ast *block, int at) {
    const Ast *ast = block->kid[at];
    for (int i = 0; i < at && !str_eq(ast->name, "file"); i++) {
        if (block->kid[i]->kind == AST_CLAUSE && str_eq(block->kid[i]->name, ast->name)) {
            elab_error(e, ast->loc, 586, "'%s' is said twice", ast->name);
            diag_note(&e->c->diag, block->kid[i]->loc, "the first is here");
            return true;
        }
    }
    return false;
}

/* The rows of a part are a rule for all files, or files of their own beside all of them. */
static void check_part(Elab *e, const DataSet *set, int part) {
    const char *rows = part == PART_TEST ? "test" : "held-out";
    const DataFile *with = NULL, *without = NULL;
    for (int i = 0; i < set->file.count; i++) {
        const DataFile *f = &set->file.at[i];
        with = !with && f->path[part] ? f : with;
        without = !without && !f->path[part] ? f : without;
    }
    if (with && set->every[part] > 0) {
        elab_error(e, with->loc, 597, "%s rows come from '%s' or from 'holdout', not from both",
                   rows, with->path[part]);
    } else if (with && without) {
        elab_error(e, without->loc, 598, "file '%s' has no %s rows, but file '%s' has: '%s'",
                   without->name, rows, with->name, with->path[part]);
    }
}

/* Is the source of the field a stream? */
static bool is_stream(const DataSet *set, const Ast *field) {
    int file;
    const Ast *source = field->kid[2] ? find_source(set, field->kid[2], &file) : NULL;
    return source && source->kind == AST_CALL && str_eq(source->kid[0]->name, "stream");
}

/* Rows of streams have their order from the batches, so all fields are streams of one length, and
 * no rule takes rows out of it. */
static void check_stream(Elab *e, DataSet *set, const Ast *block) {
    const Ast *stream = NULL, *other = NULL, *rule = NULL;
    for (int i = 0; i < block->nkid; i++) {
        const Ast *ast = block->kid[i];
        if (ast->kind == AST_DATA_FIELD) {
            const Ast **at = is_stream(set, ast) ? &stream : &other;
            *at = *at ? *at : ast;
        } else if (ast->kind == AST_CLAUSE && (str_eq(ast->name, "holdout") ||
                                               (str_eq(ast->name, "shuffle") && set->shuffle))) {
            rule = rule ? rule : ast;
        }
    }
    if (!stream) {
        return;
    }
    set->stream = true;
    bool lengths = true;
    for (int i = 0; i < set->field.count; i++) {
        lengths = lengths && set->field.at[i].length == set->field.at[0].length;
    }
    if (other || !lengths) {
        elab_error(e, (other ? other : stream)->loc, 656,
                   "the fields of a data set with a stream are streams of one length");
    } else if (rule) {
        elab_error(e, rule->loc, 657,
                   "'%s' would tear the stream apart, whose rows go on from batch to batch",
                   rule->name);
        diag_hint(&e->c->diag, str_eq(rule->name, "holdout")
                                   ? "file f = \"train.u16\", \"validation.u16\";"
                                   : "a stream is in order without it");
    }
    set->shuffle = false;
}

static void check_files_read(Elab *e, const DataSet *set) {
    for (int i = 0; i < set->file.count && set->file.at[i].rows == 0; i++) {
        bool read = false;
        for (int k = 0; k < set->field.count; k++) {
            read = read || set->field.at[k].file == i;
        }
        if (!read) {
            elab_warn(e, set->file.at[i].loc, 596, "no field reads file '%s'",
                      set->file.at[i].name);
        }
    }
}

int data_set(Elab *e, Item *item) {
    for (int i = 0; i < e->module->dataset.count; i++) {
        if (str_eq(e->module->dataset.at[i].name, item->name)) {
            return item->failed ? -1 : i;
        }
    }
    DataSet set = {.name = item->name, .shuffle = true, .loc = item->loc};
    const Ast *block = item->ast->kid[0];
    Frame frame = {0};
    int errors = e->errors;
    for (int pass = 0; pass < 2; pass++) { /* files first */
        bool broken = e->errors != errors;
        for (int i = 0; i < block->nkid; i++) {
            const Ast *ast = block->kid[i];
            e->scope = scope_new(e->scratch, NULL, item->file);
            e->frame = &frame;
            if (pass == 0) {
                stmt_attributes(e, ast);
                naming_refuse(e, ast);
            }
            if (ast->kind == AST_CLAUSE) {
                if (pass == 0 && !said_twice(e, block, i)) {
                    clause(e, &set, ast);
                }
            } else if (ast->kind == AST_DATA_FIELD) {
                if (pass == 1) {
                    field(e, &set, ast, broken);
                }
            } else if (pass == 0 && ast->kind != AST_ERROR) {
                elab_error(e, ast->loc, 591,
                           "a dataset holds 'file', 'holdout', 'shuffle' and fields "
                           "'x: f32[4] = ...'");
            }
        }
    }
    e->scope = NULL;
    e->frame = NULL;
    check_part(e, &set, PART_HELD);
    check_part(e, &set, PART_TEST);
    if (set.file.count == 0 && e->errors == errors) {
        elab_error(e, item->loc, 592, "data set '%s' has no file", item->name);
    } else if (set.field.count == 0 && e->errors == errors) {
        elab_error(e, item->loc, 593, "data set '%s' has no fields", item->name);
        diag_hint(&e->c->diag, "x: f32[4] = %s.columns(0..4);", set.file.at[0].name);
    } else if (e->errors == errors) {
        check_files_read(e, &set);
        check_stream(e, &set, block);
    }
    item->failed = e->errors != errors; /* trains on it stay silent */
    VEC_PUSH(e->arena, &e->module->dataset, set);
    return item->failed ? -1 : e->module->dataset.count - 1;
}
