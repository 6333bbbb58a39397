/* trace: see the header. A step's place is its number; behind the steps come what the train reads
 * (parameters, states, inputs), then the loss, and last all that must be finite. What is
 * computed from what is read off the steps' accesses; what the notes mean is runtime/trace.h. */
#include "emit/trace.h"

#include "emit/lines.h"
#include "emit/numbers.h"
#include "emit/stmts.h"

#include <string.h>

typedef VEC(const Step *) Steps;

/* What of a train can be looked at. */
typedef struct {
    Arena arena;
    Steps step;             /* by number */
    VEC(const Buf *) given; /* floats that it reads and that no step computes */
    int *place;             /* by Buf.id: of a given one, else -1 */
    Steps *writer;          /* by Buf.id: what gives it its values */
    int nbuf;
} Traced;

bool trace_wanted(const Emit *e, const ProgramEntry *entry) {
    return entry->entry->kind == ENTRY_TRAIN && (e->c->opt.nan || !e->c->opt.no_main);
}

static void add_step(void *ctx, Step *step, int depth) {
    Traced *t = ctx;
    (void)depth;
    VEC_PUSH(&t->arena, &t->step, step);
}

static bool is_given(const Buf *buf) {
    return buf->kind == BUF_PARAM || buf->kind == BUF_STATE || buf->kind == BUF_INPUT;
}

static void note_access(Traced *t, const Step *step, const Access *a) {
    const Buf *buf = a->buf;
    bool reads = (a->mode & ACCESS_READ) != 0, writes = (a->mode & ACCESS_WRITE) != 0;
    if (is_given(buf) && reads && t->place[buf->id] < 0 && elem_is_float(buf->type->elem)) {
        t->place[buf->id] = t->step.count + t->given.count;
        VEC_PUSH(&t->arena, &t->given, buf);
    }
    if (writes) {
        VEC_PUSH_FROM(&t->arena, &t->writer[buf->id], step, 1);
    }
    if (writes && buf->final != NULL) { /* a carry gets its next value */
        VEC_PUSH_FROM(&t->arena, &t->writer[buf->final->id], step, 1);
    }
}

static Traced traced_open(const Emit *e, const ProgramEntry *entry) {
    Traced t = {.nbuf = e->p->nbuf + 1};
    steps_visit(&entry->step, add_step, &t);
    t.place = ARENA_ARRAY(&t.arena, int, t.nbuf);
    t.writer = ARENA_ARRAY(&t.arena, Steps, t.nbuf);
    for (int i = 0; i < t.nbuf; i++) {
        t.place[i] = -1;
    }
    for (int i = 0; i < t.step.count; i++) {
        const Step *step = t.step.at[i];
        for (int k = 0; step->kind != STEP_LOOP && k < step->access.count; k++) {
            note_access(&t, step, &step->access.at[k]);
        }
    }
    return t;
}

/* Steps, what is given, the loss, and all that must be finite. */
static int place_count(const Traced *t) {
    return t->step.count + t->given.count + 2;
}

int trace_notes(const Emit *e) {
    int most = 0;
    for (int i = 0; i < e->p->entry.count; i++) {
        if (trace_wanted(e, e->p->entry.at[i])) {
            Traced t = traced_open(e, e->p->entry.at[i]);
            int notes = 1 + 2 * place_count(&t);
            most = notes > most ? notes : most;
            arena_free(&t.arena);
        }
    }
    return most;
}

void trace_member(const Emit *e, Text *out) {
    int notes = trace_notes(e);
    if (notes > 0 && e->c->opt.nan) {
        text_printf(out, "    const md_traced *traced;\n    uint32_t trace[%d];\n", notes);
    } else if (notes > 0) {
        text_add(out, "    const void *trace;\n");
    }
}

/* ---- the table ------------------------------------------------------------------------------ */

/* "net.mdl:14", or "net.mdl:14, 15" for what is computed together; lines ascend. */
static const char *where_text(const Emit *e, Loc loc, const Step *step) {
    int line[24], count = 0, also = step != NULL ? step->also.count : 0;
    for (int i = 0; i <= also && count < 24; i++) {
        Loc at = i == 0 ? loc : step->also.at[i - 1];
        int number = at.source == loc.source ? loc_line_of(e, at) : 0, k = 0;
        while (k < count && line[k] < number) {
            k++;
        }
        if (number > 0 && (k == count || line[k] != number)) {
            memmove(line + k + 1, line + k, sizeof *line * (size_t)(count - k));
            line[k] = number;
            count++;
        }
    }
    Text where = {.arena = e->arena};
    for (int i = 0; i < count; i++) {
        const char *file = path_base(e->c->diag.sources.at[loc.source].name);
        text_printf(&where, i == 0 ? "%s:%d" : "%.0s, %d", file, line[i]);
    }
    return count > 0 ? where.at : "";
}

/* Of a whole buffer or a slice: can its elements be reached as rows of numbers? */
static bool is_looked_at(const Access *a) {
    const Buf *buf = a->buf;
    return (a->mode & ACCESS_WRITE) != 0 && (a->mode & ACCESS_PART) == 0 && buf->kind != BUF_WORK &&
           elem_is_float(buf->type->elem);
}

/* What md_trace_rows is told of elements. */
static const char *form_of(Elem elem) {
    return elem == TY_F16 ? "0x7C00" : elem == TY_BF16 ? "0x7F80" : elem == TY_F64 ? "8" : "4";
}

static const Access *looked_at(const Step *step) {
    for (int i = 0; step->kind == STEP_KERNEL && i < step->access.count; i++) {
        if (is_looked_at(&step->access.at[i])) {
            return &step->access.at[i];
        }
    }
    return NULL;
}

/* A place of the table; `what` NULL: it is not looked at. */
static void add_place(const Emit *e, const char *where, const char *what, int given, Words *out) {
    Text text = {.arena = e->arena};
    text_add(&text, "{");
    text_literal(&text, where);
    text_add(&text, ", ");
    text_literal(&text, what);
    text_printf(&text, ", %d}", given);
    VEC_PUSH(e->arena, out, text.at);
}

static void add_given(const Emit *e, const Buf *buf, Words *out) {
    const char *kind = buf->kind == BUF_PARAM   ? "parameter"
                       : buf->kind == BUF_STATE ? "state"
                                                : "input";
    /* Where it is declared, a host may ask for; programs with a main say what it is. */
    add_place(e, e->c->opt.nan ? where_text(e, buf->loc, NULL) : "",
              str_printf(e->arena, "%s %s", kind, buf->slot->name), 1, out);
}

static void print_places(const Emit *e, const ProgramEntry *entry, const Traced *t, Text *out) {
    Words places = {0};
    for (int i = 0; i < t->step.count; i++) {
        const Step *step = t->step.at[i];
        const char *op = op_info[step->op].name, *what = step->text ? step->text : op;
        const char *where = where_text(e, step->loc, step);
        if (e->c->opt.nan && step->text) { /* the kernel does nothing else */
            what = str_printf(e->arena, "%s in '%s'", op, step->text);
        } else if (strchr(where, ',') != NULL) {
            what = "computed together; --checks=nan tells them apart";
        }
        add_place(e, where, looked_at(step) ? what : NULL, 0, &places);
    }
    for (int i = 0; i < t->given.count; i++) {
        add_given(e, t->given.at[i], &places);
    }
    add_place(e, "", NULL, 0, &places);
    add_place(e, "", NULL, 0, &places);
    text_printf(out, "static const md_place %s_places[] = {\n", entry->c_name);
    words_print(out, "    ", &places, 4);
    text_add(out, "\n};\n");
}

typedef struct {
    Arena *arena;
    Words words;
} NumberList;

static void add_number(NumberList *n, int number) {
    VEC_PUSH(n->arena, &n->words, str_printf(n->arena, "%d", number));
}

static void print_numbers(const NumberList *n, const char *entry, const char *name, Text *out) {
    text_printf(out, "static const int %s_%s[] = {\n", entry, name);
    words_print(out, "    ", &n->words, 4);
    text_add(out, "\n};\n");
}

/* The places that give what `step` reads. */
static void print_from(const Traced *t, const Step *step, NumberList *n) {
    for (int i = 0; step->kind != STEP_LOOP && i < step->access.count; i++) {
        const Buf *buf = step->access.at[i].buf;
        if ((step->access.at[i].mode & ACCESS_READ) == 0) {
            continue;
        }
        if (t->place[buf->id] >= 0) {
            add_number(n, t->place[buf->id]);
        }
        for (int k = 0; !is_given(buf) && k < t->writer[buf->id].count; k++) {
            if (t->writer[buf->id].at[k] != step) {
                add_number(n, t->writer[buf->id].at[k]->id);
            }
        }
    }
}

/* Does the step give the result of this role? */
static bool gives(const ProgramEntry *entry, const Step *step, OutRole role) {
    for (int k = 0; step->kind == STEP_KERNEL && k < step->access.count; k++) {
        const Access *a = &step->access.at[k];
        const Buf *to = a->buf->kind == BUF_RESULT ? a->buf : a->buf->final;
        bool result = to != NULL && to->kind == BUF_RESULT;
        if (result && (a->mode & ACCESS_WRITE) != 0 && entry->entry->out.at[to->out].role == role) {
            return true;
        }
    }
    return false;
}

/* Does the step give a parameter or what an optimizer keeps its next value? */
static bool is_update(const Step *step) {
    for (int i = 0; step->kind != STEP_LOOP && i < step->access.count; i++) {
        const Buf *buf = step->access.at[i].buf, *to = buf->final != NULL ? buf->final : buf;
        bool kept =
            to->kind == BUF_PARAM || (to->kind == BUF_STATE && to->slot->role == STATE_OPTIMIZER);
        if (kept && (step->access.at[i].mode & ACCESS_WRITE) != 0) {
            return true;
        }
    }
    return false;
}

static const char *region_of(const Buf *buf) {
    switch (buf_root(buf)->kind) {
    case BUF_PARAM: return "MD_PARAMS";
    case BUF_STATE: return "MD_STATE";
    case BUF_INPUT:
    case BUF_RESULT: return "MD_IO";
    case BUF_TEMP:
    case BUF_WORK:
    case BUF_CONST: break;
    }
    return "MD_ARENA";
}

static bool is_dense(const Buf *buf) {
    return buf->bytes == type_count(*buf->type) * (int64_t)elem_bytes(buf->type->elem);
}

/* In one place, all of it written. */
static bool lies_still(const Access *a) {
    return a->slice[0] == NULL && is_dense(buf_local(a->buf)) && buf_first(a->buf)->near == 0;
}

static void add_look(const Emit *e, int place, const Buf *buf, Words *looks) {
    VEC_PUSH(e->arena, looks,
             str_printf(e->arena, "{%d, %s, %lld, %s, %lld}", place, region_of(buf),
                        (long long)buf->offset, form_of(buf->type->elem),
                        (long long)type_count(*buf->type)));
}

/* What places give that lies still and dense; the rest is told of where it is written. */
static const char *print_looks(const Emit *e, const ProgramEntry *entry, const Traced *t,
                               Text *out) {
    Words looks = {0};
    for (int i = 0; i < t->step.count; i++) {
        const AccessList *access = &t->step.at[i]->access;
        for (int k = 0; looked_at(t->step.at[i]) != NULL && k < access->count; k++) {
            if (is_looked_at(&access->at[k]) && lies_still(&access->at[k])) {
                add_look(e, i, buf_local(access->at[k].buf), &looks);
            }
        }
    }
    for (int i = 0; i < t->given.count; i++) {
        if (is_dense(t->given.at[i])) {
            add_look(e, t->step.count + i, t->given.at[i], &looks);
        }
    }
    if (looks.count == 0) {
        return ",\n    NULL, 0";
    }
    text_printf(out, "static const md_look %s_looks[] = {\n", entry->c_name);
    words_print(out, "    ", &looks, 4);
    text_add(out, "\n};\n");
    return str_printf(e->arena, ",\n    %s_looks, %d", entry->c_name, looks.count);
}

void trace_table(const Emit *e, const ProgramEntry *entry, Text *out) {
    if (!trace_wanted(e, entry)) {
        return;
    }
    Traced t = traced_open(e, entry);
    NumberList from = {.arena = &t.arena}, first = {.arena = &t.arena};
    print_places(e, entry, &t, out);
    for (int i = 0; i < t.step.count; i++) {
        add_number(&first, from.words.count);
        print_from(&t, t.step.at[i], &from);
    }
    for (int i = 0; i <= t.given.count; i++) {
        add_number(&first, from.words.count);
    }
    for (int i = 0; i < t.step.count; i++) {
        if (gives(entry, t.step.at[i], OUT_LOSS)) {
            add_number(&from, i);
        }
    }
    add_number(&first, from.words.count);
    for (int i = 0; i < t.step.count; i++) {
        const Step *step = t.step.at[i];
        if (step->kind == STEP_CHECK || is_update(step) || gives(entry, step, OUT_SCALED_NORM)) {
            add_number(&from, i);
        }
    }
    add_number(&first, from.words.count);
    add_number(&from, -1); /* never empty */
    print_numbers(&first, entry->c_name, "first", out);
    print_numbers(&from, entry->c_name, "from", out);
    const char *looks = e->c->opt.whole_runtime ? ", NULL, 0" : "";
    if (!e->c->opt.nan) {
        looks = print_looks(e, entry, &t, out);
    }
    text_printf(out, "static const md_traced %s_traced = {", entry->c_name);
    text_literal(out, entry->entry->name);
    text_printf(out, ", %s_places, %d,\n    %s_first, %s_from%s};\n\n", entry->c_name,
                place_count(&t), entry->c_name, entry->c_name, looks);
    arena_free(&t.arena);
}

/* ---- the lines of the function -------------------------------------------------------------- */

static const char *numbers_of(const Emit *e, const int64_t *number, int count) {
    Text list = {.arena = e->arena};
    for (int i = 0; i < count; i++) {
        text_printf(&list, "%s%s", i > 0 ? ", " : "", call_number(e, number[i], NULL));
    }
    return list.at;
}

/* Of matrices that are written near the diagonal, those behind the first `lead` axes: rows in all,
 * their length, rows of one, and how far ahead. */
static const char *near_of(const Emit *e, const Buf *buf, int lead) {
    const int64_t *dim = buf->type->dim;
    const int rank = buf->type->rank;
    int64_t rows = 1;
    for (int i = lead; i < rank - 1; i++) {
        rows *= dim[i];
    }
    const int64_t number[] = {rows, dim[rank - 1], dim[rank - 2], buf_first(buf)->near};
    return numbers_of(e, number, 4);
}

/* Rows, length and stride of what `a` touches behind its first `lead` axes; NULL: no such form. */
static const char *rows_of(const Emit *e, const Buf *buf, int lead) {
    int rank = buf->type->rank;
    int64_t rows = 1, length = 1, dense = 1;
    int k = rank;
    while (k > lead && buf->stride[k - 1] == dense) {
        length *= buf->type->dim[k - 1];
        dense *= buf->type->dim[k - 1];
        k--;
    }
    int64_t stride = k > lead ? buf->stride[k - 1] : length, next = stride;
    for (; k > lead; k--) {
        if (buf->stride[k - 1] != next) {
            return NULL;
        }
        rows *= buf->type->dim[k - 1];
        next *= buf->type->dim[k - 1];
    }
    const int64_t number[] = {rows, length, stride};
    return numbers_of(e, number, 3);
}

void trace_open(const Emit *e, const ProgramEntry *entry, Text *out) {
    if (!trace_wanted(e, entry) || !e->c->opt.nan) {
        return;
    }
    Traced t = traced_open(e, entry);
    text_printf(out, "    m->traced = &%s_traced;\n", entry->c_name);
    text_printf(out, "    md_trace_clear(m->trace, %d);\n", place_count(&t));
    for (int i = 0; i < t.given.count; i++) {
        const Buf *buf = t.given.at[i];
        long long n = (long long)type_count(*buf->type);
        text_printf(out, "    md_trace_rows(m->trace, %d, %s, %s, 1, %lld, %lld);\n",
                    t.step.count + i, buf->name, form_of(buf->type->elem), n, n);
    }
    arena_free(&t.arena);
}

/* In the line of the call, in the place of its number, where there is room. */
static void add_trace(const Emit *e, const Step *step, const char *indent, Text *out) {
    const char *trace = str_printf(e->arena, " MD_TRACE(m->trace, %d);", step->id);
    if (!lines_add(out, str_printf(e->arena, " /* %d */\n", step->id), trace)) {
        text_printf(out, "%s%s\n", indent, trace + 1);
    }
}

void trace_after(const Emit *e, const ProgramEntry *entry, const Step *step, const char *indent,
                 Text *out) {
    if (!trace_wanted(e, entry) || looked_at(step) == NULL) {
        return;
    }
    bool nan = e->c->opt.nan, still = false; /* something is in the table */
    for (int i = 0; i < step->access.count; i++) {
        const Access *a = &step->access.at[i];
        if (!is_looked_at(a)) {
            continue;
        }
        Text at = {.arena = e->arena};
        int lead = 0;
        text_add(&at, buf_local(a->buf)->name);
        for (; lead < ACCESS_SLICES && a->slice[lead] != NULL; lead++) {
            const char *stride = call_number(e, a->buf->stride[lead], NULL);
            text_printf(&at, " + i%d * %s", a->slice[lead]->index, stride);
        }
        if (!nan && lies_still(a)) {
            still = true;
            continue;
        }
        const bool near = buf_first(a->buf)->near > 0;
        const char *rows = near ? near_of(e, a->buf, lead) : rows_of(e, a->buf, lead);
        const char *look = nan ? "md_trace_rows" : near ? "MD_TRACE_NEAR" : "MD_TRACE_SLICE";
        if (rows != NULL) {
            text_printf(out, "%s%s(m->trace, %d, %s, %s, %s);\n", indent, look, step->id, at.at,
                        form_of(a->buf->type->elem), rows);
        }
    }
    if (still) {
        add_trace(e, step, indent, out);
    }
}

void trace_close(const Emit *e, const ProgramEntry *entry, Text *out) {
    const char *norm = NULL; /* a step without an update may hold infinities */
    for (int i = 0; i < entry->entry->out.count; i++) {
        bool scaled = entry->entry->out.at[i].role == OUT_SCALED_NORM;
        norm = scaled ? buf_local(result_buf(entry, i))->name : norm;
    }
    if (trace_wanted(e, entry) && e->c->opt.nan) {
        const char *judged = norm ? str_printf(e->arena, "isfinite(*%s) && ", norm) : "";
        text_printf(out,
                    "    if (%smd_trace_found(m->traced, m->trace)) {\n"
                    "        return %s_ERR_NONFINITE; /* of the optimizer: they are updated */\n"
                    "    }\n",
                    judged, e->upper);
    }
}

void trace_accessor(const Emit *e, Text *out) {
    text_printf(out,
                "const md_place *%s_nonfinite(%s *m) {\n"
                "    int infinite = -1;\n"
                "    int origin = m == NULL || !m->bound || m->traced == NULL\n"
                "                     ? -1\n"
                "                     : md_trace_origin(m->traced, m->trace, &infinite);\n"
                "    return origin < 0 ? NULL : &m->traced->places[origin];\n}\n\n",
                e->prefix, e->prefix);
}
