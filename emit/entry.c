/* entry: see the header. A function checks its arguments, names its memory, calls its kernels in
 * order and hands out its results: a table of contents. It decides nothing; the Program says where
 * all lies. */
#include "emit/entry.h"

#include "compiler/names.h"
#include "emit/api.h"
#include "emit/guard.h"
#include "emit/lines.h"
#include "emit/profile.h"
#include "emit/trace.h"

#include <math.h>
#include <string.h>

/* ---- tables --------------------------------------------------------------------------------- */

void entry_tables(const Emit *e, Text *out) {
    for (int i = 0; i < e->p->table.count; i++) {
        const Buf *buf = e->p->table.at[i];
        int64_t n = type_count(*buf->type);
        text_printf(out, "/* ");
        text_shape(out, *buf->type);
        text_printf(out, " */\n%sstatic const %s %s_%s[%lld] = {",
                    e->p->device ? "__device__ " : "", elem_c_name(buf->type->elem), e->prefix,
                    buf->name, (long long)(n > 0 ? n : 1));
        for (int64_t k = 0; k < n; k++) {
            text_add(out, k % 8 == 0 ? "\n    " : " ");
            text_constant(out, buf->type->elem, buf->data[k]);
            text_add(out, k + 1 < n ? "," : "\n");
        }
        text_printf(out, "%s};\n\n", n > 0 ? "" : "0");
    }
}

/* ---- range checks --------------------------------------------------------------------------- */

void entry_helpers(const Emit *e, Text *out) {
    bool done[TY_COUNT] = {false};
    for (int i = 0; i < e->p->entry.count; i++) {
        const ProgramEntry *entry = e->p->entry.at[i];
        for (int k = 0; k < entry->entry->input.count; k++) {
            const Slot *slot = entry->entry->input.at[k];
            Elem elem = slot->type.elem;
            if (!input_is_ranged(entry->entry, slot) || done[elem]) {
                continue;
            }
            done[elem] = true;
            text_printf(
                out,
                "static int %s_outside_%s(const %s *x, int64_t count, int64_t lo, int64_t hi) {\n"
                "    int outside = 0;\n"
                "    for (int64_t i = 0; i < count; i++) {\n"
                "        outside |= (int64_t)x[i] < lo || (int64_t)x[i] >= hi;\n"
                "    }\n"
                "    return outside;\n"
                "}\n\n",
                e->prefix, elem_name(elem), elem_c_name(elem));
        }
    }
}

static void print_checks(const Emit *e, const ProgramEntry *entry, Text *out) {
    const Entry *source = entry->entry;
    bool in = api_has_inputs(entry), results = api_has_results(entry);
    Text cannot_be = {.arena = e->arena};
    text_printf(&cannot_be, "%s%s", in ? " || in == NULL" : "", results ? " || out == NULL" : "");
    if (source->kind == ENTRY_EVAL) {
        text_printf(&cannot_be, " || rows < 1 || rows > %lld", (long long)source->rows);
    }
    for (int i = 0; i < source->input.count; i++) {
        const Slot *slot = source->input.at[i];
        if (!is_rows(entry, slot) && slot->type.rank > 0) {
            text_printf(&cannot_be, " || in->%s == NULL", field_name(e, slot->c_name));
        }
    }
    api_refusals(e, cannot_be.len > 0 ? cannot_be.at + strlen(" || ") : "", out);
}

/* ---- memory --------------------------------------------------------------------------------- */

typedef struct {
    const Emit *e;
    const ProgramEntry *entry;
    bool *used;    /* by Buf.id: a step names it */
    bool *written; /* by Buf.id: a step writes it, or what lies in its bytes */
    bool seeded;   /* the parameter of init is used */
    const DevicePrinter *device;
    const char *arena; /* expression */
    const Step *turns; /* whose function it is; NULL: the entry's */
    NameSet met;       /* places in the source whose text stands in the function */
    const Step *last;  /* that a comment was for */
    StepPart part;     /* of a train, at hand */
    Arena scratch;
} Names;

/* Turns side by side have a function of their own, which names what it needs. */
static void note_used(Names *names, const StepList *list) {
    for (int i = 0; i < list->count; i++) {
        const Step *step = list->at[i];
        const AccessList *touch = step_touches(step);
        names->seeded = names->seeded || step->kind == STEP_SEED;
        for (int k = 0; k < touch->count && step->rest == NULL; k++) {
            const Buf *buf = touch->at[k].buf;
            names->used[buf_local(buf)->id] = true;
            if (touch->at[k].mode & ACCESS_WRITE) {
                names->written[buf->id] = names->written[buf_root(buf)->id] = true;
            }
        }
        if (step->rest == NULL) {
            note_used(names, &step->body);
        }
    }
}

/* Of the entry, or of a loop of it whose turns have a function of their own. */
static Names names_open(const Emit *e, const Printer *printer, const ProgramEntry *entry,
                        const Step *turns, const char *arena) {
    Names names = {.e = e, .entry = entry, .device = printer->device, .arena = arena};
    names.used = ARENA_ARRAY(&names.scratch, bool, e->p->nbuf + 1);
    names.written = ARENA_ARRAY(&names.scratch, bool, e->p->nbuf + 1);
    names.turns = turns;
    note_used(&names, turns ? &turns->body : &entry->step);
    if (turns != NULL && turns->rest->bytes > 0) {
        names.used[turns->rest->id] = true;
    }
    return names;
}

/* TYPE *NAME = MD_AT(TYPE, BASE, OFFSET); what it is */
static void print_pointer(const Names *names, const Buf *buf, const char *base, bool constant,
                          Text *out) {
    const Step *aside = step_aside(buf->loop); /* each of its threads has bytes of its own */
    const char *type =
        str_printf(names->e->arena, "%s%s", constant ? "const " : "", elem_c_name(buf->type->elem));
    text_printf(out, "    %s *%s = MD_AT(%s, %s, %lld); /* ", type, buf->name, type,
                aside ? "own_" : base, (long long)(buf->offset - (aside ? aside->base : 0)));
    if (buf->type->rank > 0) {
        text_shape(out, *buf->type);
    } else {
        text_add(out, elem_name(buf->type->elem));
    }
}

/* l1_weight says net.l1.weight. */
static bool says_path(const char *name, const char *path) {
    const char *dot = strchr(path, '.');
    path = dot != NULL ? dot + 1 : path;
    while (*path != '\0' && *name == (*path == '.' ? '_' : *path)) {
        name++;
        path++;
    }
    return *path == '\0' && *name == '\0';
}

static void print_slots(const Names *names, Text *out) {
    static const struct {
        BufKind kind;
        const char *name;
    } regions[] = {{BUF_PARAM, "params"}, {BUF_STATE, "state"}};
    for (int r = 0; r < 2; r++) {
        bool first = true;
        for (int i = 0; i < names->e->p->slot.count; i++) {
            const Buf *buf = names->e->p->slot.at[i];
            if (buf->kind != regions[r].kind || !names->used[buf->id]) {
                continue;
            }
            text_printf(out, "%s",
                        first ? str_printf(names->e->arena, "    /* %s */\n", regions[r].name)
                              : "");
            first = false;
            print_pointer(names, buf, str_printf(names->e->arena, "m->%s", regions[r].name),
                          !names->written[buf->id], out);
            if (!says_path(buf->name, buf->slot->name)) {
                text_add(out, " ");
                text_comment(out, buf->slot->name);
            }
            text_add(out, " */\n");
        }
    }
    for (int i = 0; i < names->e->p->table.count; i++) {
        const Buf *buf = names->e->p->table.at[i];
        const char *type = elem_c_name(buf->type->elem);
        if (names->used[buf->id] && names->device != NULL) {
            text_printf(out, "    const %s *%s = (const %s *)md_symbol(%s_%s);\n", type, buf->name,
                        type, names->e->prefix, buf->name);
        } else if (names->used[buf->id]) {
            text_printf(out, "    const %s *%s = %s_%s;\n", type, buf->name, names->e->prefix,
                        buf->name);
        }
    }
}

static void print_temp(const Names *names, const Buf *buf, Text *out) {
    const Buf *root = buf_root(buf);
    switch (root->kind) {
    case BUF_PARAM: /* of another place in it than its beginning */
    case BUF_STATE:
        print_pointer(names, buf, root->kind == BUF_PARAM ? "m->params" : "m->state", false, out);
        text_printf(out, " in place of %s */\n", root->name);
        return;
    case BUF_RESULT:
        if (names->entry->entry->kind == ENTRY_EVAL_END ||
            names->entry->entry->kind == ENTRY_LOAD) {
            text_printf(out, "    %s *%s = %s;\n", elem_c_name(buf->type->elem), buf->name,
                        root->name);
            return;
        }
        print_pointer(names, buf, "m->io", false, out);
        text_printf(out, " result %s */\n", root->name);
        return;
    case BUF_TEMP:
    case BUF_WORK:
    case BUF_INPUT:
    case BUF_CONST: break;
    }
    print_pointer(names, buf, names->arena, false, out);
    text_printf(out, " to %lld, steps %d..%d", (long long)(buf->offset + buf->bytes), buf->first,
                buf->last - 1);
    if (root != buf) {
        text_printf(out, ", in place of %s", root->name);
    } else if (buf->kind == BUF_WORK) {
        text_add(out, ", workspace");
    }
    text_add(out, " */\n");
}

/* Those of the entry, or of a loop whose turns run side by side. */
static void print_temps(const Names *names, const Step *aside, Text *out) {
    bool first = true;
    for (int i = 0; i < names->entry->buf.count; i++) {
        const Buf *buf = names->entry->buf.at[i];
        bool own = buf->kind == BUF_TEMP || buf->kind == BUF_WORK;
        if (own && names->used[buf->id] && step_aside(buf->loop) == aside) {
            text_add(out, first && aside == NULL ? "    /* arena */\n" : "");
            first = false;
            print_temp(names, buf, out);
        }
    }
}

/* An evaluation takes the inputs of its train. */
static void require_field(const Names *names, const Slot *slot) {
    const ProgramEntry *owner = entry_of(names->e->p, names->entry->entry->train);
    for (int i = 0; owner != NULL && i < owner->entry->input.count; i++) {
        if (str_eq(owner->entry->input.at[i]->c_name, slot->c_name)) {
            return;
        }
    }
    BUG("%s reads %s, which its train does not take", names->entry->c_name, slot->c_name);
}

/* Inputs and results of a function of the API. */
static void print_ports(const Names *names, Text *out) {
    const ProgramEntry *entry = names->entry;
    bool first = true;
    for (int i = 0; i < entry->buf.count; i++) {
        const Buf *buf = entry->buf.at[i];
        if (buf->kind != BUF_INPUT || !names->used[buf->id]) {
            continue;
        }
        text_add(out, first ? "    /* inputs */\n" : "");
        first = false;
        const char *type = elem_c_name(buf->type->elem);
        if (names->device != NULL) {
            print_pointer(names, buf, "m->io", false, out);
            text_add(out, " */\n");
            continue;
        }
        if (entry->entry->kind == ENTRY_INIT || is_rows(entry, buf->slot)) {
            text_printf(out, "    const %s %s[1] = {(%s)%s};\n", type, buf->name, type,
                        entry->entry->kind == ENTRY_INIT ? "seed" : "rows");
            continue;
        }
        if (entry->entry->kind == ENTRY_EVAL) {
            require_field(names, buf->slot);
        }
        text_printf(out, "    const %s *%s = %sin->%s; /* ", type, buf->name,
                    buf->type->rank == 0 ? "&" : "", field_name(names->e, buf->slot->c_name));
        text_shape(out, *buf->type);
        text_add(out, " */\n");
    }
    first = true;
    for (int i = 0; i < entry->buf.count; i++) {
        const Buf *buf = entry->buf.at[i];
        bool handed_out = names->device == NULL && names->turns == NULL;
        if (buf->kind == BUF_RESULT && (handed_out || names->used[buf->id])) {
            text_add(out, first ? "    /* results */\n" : "");
            first = false;
            print_pointer(names, buf, "m->io", !names->used[buf->id], out);
            text_add(out, " */\n");
        }
    }
}

/* ---- steps ---------------------------------------------------------------------------------- */

/* What is given is not what the entry asks for: nothing has been written. */
static void print_refusal(const Names *names, const Step *step, Text *out, const char *indent) {
    const Slot *slot = step->kind == STEP_RANGE ? step->src->slot : step->cursor->slot;
    if (step->kind == STEP_RANGE) {
        text_printf(out, "%sif (%s_outside_%s(%s, %lld, %lld, %lld)) {", indent, names->e->prefix,
                    elem_name(slot->type.elem), step->src->name, (long long)type_count(slot->type),
                    (long long)slot->lo, (long long)slot->hi);
    } else {
        text_printf(out, "%sif (*%s < %lld) { /* ", indent, step->cursor->name,
                    (long long)step->least);
        text_comment(out, slot->name);
        text_add(out, " */");
    }
    text_add(out, "\n");
    guard_close(names->entry, str_printf(names->e->arena, "%s    ", indent), out);
    text_printf(out, "%s    return %s_ERR_%s;\n%s}\n", indent, names->e->upper,
                step->kind == STEP_RANGE ? "RANGE" : "STATE", indent);
}

/* Row by row, since the ring may end between them. */
static void print_push(const Step *step, Text *out, const char *indent) {
    long long capacity = step->dst->type->dim[0], rows = step->src->type->dim[0];
    long long row = type_count(*step->dst->type) / capacity;
    text_printf(out, "%sfor (int64_t md_row = 0; md_row < ", indent);
    if (step->in_use != NULL) {
        text_printf(out, "*%s; md_row++) { /* ", step->in_use->name);
    } else {
        text_printf(out, "%lld; md_row++) { /* ", rows);
    }
    text_comment(out, step->text);
    text_printf(
        out,
        " */\n%s    memcpy(%s + (*%s + md_row) %% %lld * %lld, %s + md_row * %lld, %lld);\n%s}\n",
        indent, step->dst->name, step->cursor->name, capacity, row, buf_local(step->src)->name, row,
        row * (long long)elem_bytes(step->dst->type->elem), indent);
}

/* What ends the call: floats that are not finite. */
static void print_finite(const Names *names, const Step *step, Text *out, const char *indent) {
    int n = 0;
    for (int i = 0; i < step->access.count; i++) {
        const Buf *buf = step->access.at[i].buf;
        if (buf->type->elem != TY_BOOL) {
            text_printf(out, n++ == 0 ? "%sif (" : " || ", indent);
            text_printf(out, "!isfinite(*%s)", buf_local(buf)->name);
        }
    }
    if (n == 0) {
        return;
    }
    text_add(out, ") {\n");
    guard_close(names->entry, str_printf(names->e->arena, "%s    ", indent), out);
    text_printf(out, "%s    return %s_ERR_NONFINITE; /* nothing is updated */\n%s}\n", indent,
                names->e->upper, indent);
}

/* Bools that say that a loop met its maximum, and the line of that loop. */
static void print_limits(const Names *names, const Step *step, Text *out, const char *indent) {
    for (int i = 0; i < step->access.count; i++) {
        const Buf *buf = step->access.at[i].buf;
        if (buf->type->elem != TY_BOOL) {
            continue;
        }
        text_printf(out, "%sif (*%s) {\n%s    m->limit = %d; /* line %d */\n", indent,
                    buf_local(buf)->name, indent, api_limit_number(names->e->p, buf),
                    loc_line_of(names->e, buf->loc));
        guard_close(names->entry, str_printf(names->e->arena, "%s    ", indent), out);
        text_printf(out, "%s    return %s_ERR_LIMIT; /* nothing is updated */\n%s}\n", indent,
                    names->e->upper, indent);
    }
}

static void print_check(const Names *names, const Step *step, Text *out, const char *indent) {
    const Entry *source = names->entry->entry;
    for (int i = 0; i < step->access.count; i++) {
        const Buf *buf = step->access.at[i].buf;
        const Buf *result = buf->kind == BUF_RESULT ? buf : buf->final;
        if (result != NULL && result->kind == BUF_RESULT) {
            text_printf(out, "%sout->%s = *%s;\n", indent,
                        field_name(names->e, source->out.at[result->out].name),
                        buf_local(buf)->name);
        }
    }
    print_finite(names, step, out, indent);
    print_limits(names, step, out, indent);
}

/* A comment in front of what comes next: the part of a train, the layer, and the line with its text
 * where it is met first; nothing where the step before had the same. */
static void print_source(Names *names, const Step *step, Text *out, const char *indent) {
    static const char *const part[] = {NULL, "forward", "loss", "backward", "update"};
    int line = loc_line_of(names->e, step->loc);
    const Step *last = names->last;
    bool same = last != NULL && loc_line_of(names->e, last->loc) == line &&
                (last->up == step->up || last == step->up) &&
                (step->path == NULL || last->path == NULL ? step->path == last->path
                                                          : str_eq(step->path, last->path));
    if (step->part != PART_NONE && step->part != names->part) {
        text_printf(out, "\n%s/* ---- %s ---- */\n", indent, part[step->part]);
        names->part = step->part;
        same = false;
    }
    names->last = step;
    if (same || (line == 0 && step->path == NULL)) {
        return;
    }
    text_printf(out, "%s/* %s", indent, step->path ? step->path : "");
    if (line > 0) {
        text_printf(out, "%sline %d", step->path ? ", " : "", line);
    }
    const char *place = str_printf(&names->scratch, "%u:%d", step->loc.source, line);
    if (line > 0 && step->line != NULL && !names_has(&names->met, NULL, place)) {
        text_add(out, ": ");
        text_comment(out, step->line);
        names_add(&names->scratch, &names->met, NULL, place);
    }
    text_add(out, " */\n");
}

static void print_kernel_call(Names *names, const Printer *printer, const Step *step,
                              const char *indent, Text *out) {
    Text call = {.arena = &names->scratch}, lines = {.arena = &names->scratch};
    printer->call(&call, names->e->p, step);
    text_printf(&call, " /* %d%s */\n", step->id, step->again ? ", again" : "");
    text_wrapped(&lines, indent, call.at);
    lines_all(names->e, step->loc, lines.at, out);
}

/* Where the slice of `buf` begins that the loops around the step pick, in elements behind its
 * start; "" where it has no slices. */
static const char *slice_start(const Names *names, const Access *access) {
    Text at = {.arena = names->e->arena};
    text_add(&at, "");
    for (int k = 0; k < ACCESS_SLICES && access->slice[k] != NULL; k++) {
        text_printf(&at, " + i%d * %lld", access->slice[k]->index,
                    (long long)access->buf->stride[k]);
    }
    return at.at;
}

/* A scalar that a loop touches itself, or another step: *n, or n[i2 * 4]. */
static const char *scalar_place(const Names *names, const Step *step, const Buf *buf) {
    const AccessList *touch = step_touches(step);
    for (int i = 0; i < touch->count; i++) {
        if (touch->at[i].buf == buf) {
            const char *start = slice_start(names, &touch->at[i]), *name = buf_local(buf)->name;
            return *start == '\0' ? str_printf(names->e->arena, "*%s", name)
                                  : str_printf(names->e->arena, "%s[%s]", name, start + 3);
        }
    }
    BUG("step %d does not touch %s", step->id, buf->name);
}

/* The loop's line. What it looks at lies in memory, so it is asked for before each turn. */
static void print_loop_head(const Names *names, const Step *step, const char *indent, Text *out) {
    int i = step->index;
    long long trip = step->trip;
    const char *first = "0", *end = str_printf(names->e->arena, "i%d < %lld", i, trip);
    if (step->last != NULL) {
        const char *last = scalar_place(names, step, step->last);
        const char *most =
            str_printf(names->e->arena, "(%s < %lld ? %s : %lld)", last, trip - 1, last, trip - 1);
        first = step->reverse ? most : "0";
        end = str_printf(names->e->arena, "i%d <= %s", i, most);
    } else if (step->reverse) {
        first = str_printf(names->e->arena, "%lld", trip - 1);
    } else if (step->go != NULL) {
        end = str_printf(names->e->arena, "%s && %s", end, scalar_place(names, step, step->go));
    }
    end = step->reverse ? str_printf(names->e->arena, "i%d >= 0", i) : end;
    const char *begin = str_printf(names->e->arena, "int64_t i%d = %s", i, first);
    if (step->made != NULL) { /* the index is read behind the loop */
        text_printf(out, "%s%s;\n", indent, begin);
        begin = "";
    }
    text_printf(out, "%sfor (%s; %s; i%d%s) {\n", indent, begin, end, i,
                step->reverse ? "--" : "++");
}

/* The slices behind the last index. */
static void print_clear(const Names *names, const Step *step, Text *out, const char *indent) {
    const Access *to = step_find(step, step->dst);
    int axis = 0;
    while (axis < ACCESS_SLICES && to->slice[axis] != NULL) {
        axis++;
    }
    const char *last = scalar_place(names, step, step->src), *name = buf_local(step->dst)->name;
    long long slice = step->dst->stride[axis], trip = step->dst->type->dim[axis];
    text_printf(out, "%sif (%s < %lld) { /* ", indent, last, trip - 1);
    text_comment(out, step->text);
    text_printf(out,
                " */\n%s    int64_t md_from = %s < 0 ? 0 : %s + 1;\n"
                "%s    memset(%s%s + md_from * %lld, 0, (size_t)(%lld - md_from) * %lld);\n%s}\n",
                indent, last, last, indent, name, slice_start(names, to), slice, trip,
                slice * (long long)elem_bytes(step->dst->type->elem), indent);
}

/* The name of the function of a loop whose turns run side by side; no kernel's ends so. */
static const char *turns_name(const Names *names, const Step *loop) {
    return str_printf(names->e->arena, "%s_turns%d_", names->entry->c_name, loop->index);
}

/* A step that is traced is looked at by one thread. */
static void print_turns_call(const Names *names, const Step *loop, const char *indent, Text *out) {
    const char *name = turns_name(names, loop);
    text_printf(out, "%sconst %sargs args%d_ = {m%s};\n", indent, name, loop->index,
                api_has_inputs(names->entry) ? ", in" : "");
    text_printf(out, "%smd_team_run(&m->pace, %s%d, %lld, %s, &args%d_);\n", indent,
                trace_wanted(names->e, names->entry) ? "m->trace != NULL ? 1 : " : "", loop->team,
                (long long)loop->trip, name, loop->index);
}

static void print_steps(Names *names, const Printer *printer, const StepList *list, int depth,
                        Text *out) {
    const char *indent = str_printf(names->e->arena, "%*s", 4 * depth, "");
    for (int i = 0; i < list->count; i++) {
        const Step *step = list->at[i];
        guard_before(names->entry, step, indent, out);
        if (names->device != NULL && step->kind != STEP_KERNEL && step->kind != STEP_LOOP) {
            names->device->step(out, names->e, step, indent);
            continue;
        }
        switch (step->kind) {
        case STEP_KERNEL: {
            print_source(names, step, out, indent);
            print_kernel_call(names, printer, step, indent, out);
            break;
        }
        case STEP_COPY:
            text_printf(out, "%smemcpy(%s, %s, %lld);\n", indent, buf_local(step->dst)->name,
                        buf_local(step->src)->name, (long long)step->src->bytes);
            break;
        case STEP_CHECK: print_check(names, step, out, indent); break;
        case STEP_RANGE:
        case STEP_NEED: print_refusal(names, step, out, indent); break;
        case STEP_PUSH: print_push(step, out, indent); break;
        case STEP_SEED:
            text_printf(out, "%s*%s = (%s)seed;\n", indent, step->dst->name,
                        elem_c_name(step->dst->type->elem));
            break;
        case STEP_LOOP:
            print_source(names, step, out, indent);
            if (step->rest != NULL) {
                print_turns_call(names, step, indent, out);
                break;
            }
            print_loop_head(names, step, indent, out);
            print_steps(names, printer, &step->body, depth + 1, out);
            text_printf(out, "%s}\n", indent);
            if (step->made != NULL) {
                text_printf(out, "%s%s = (int32_t)(i%d - 1);\n", indent,
                            scalar_place(names, step, step->made), step->index);
            }
            break;
        case STEP_CLEAR: print_clear(names, step, out, indent); break;
        }
        guard_after(names->e, names->entry, step, indent, out);
        trace_after(names->e, names->entry, step, indent, out);
        profile_after(names->e, names->entry, step, indent, out);
    }
}

/* What is given, the steps, what comes of them, in memory of a device. */
static void print_on_device(Names *names, const Printer *printer, Text *out) {
    const ProgramEntry *entry = names->entry;
    names->device->open(out, names->e, entry, names->used);
    text_add(out, "\n");
    print_steps(names, printer, &entry->step, 1, out);
    names->device->close(out, names->e, entry);
}

static void print_results(const Names *names, Text *out) {
    const Entry *source = names->entry->entry;
    for (int i = 0; i < source->out.count; i++) {
        if (out_is_result(source->out.at[i].role)) {
            const Buf *buf = result_buf(names->entry, i);
            text_printf(out, "    out->%s = %s%s;\n", field_name(names->e, source->out.at[i].name),
                        buf->type->rank == 0 ? "*" : "", buf->name);
        }
    }
}

/* Is it so long that a C compiler takes seconds where it puts kernels inside of it? */
static bool is_list(const Printer *printer, const ProgramEntry *entry) {
    enum { LONG = 48 };
    return printer->device == NULL && entry->nstep >= LONG;
}

/* The turns of a loop side by side: each part does some of them, with memory of its own for what
 * they declare. */
static void print_turns(const Emit *e, const Printer *printer, const ProgramEntry *entry,
                        const Step *loop, Text *out) {
    Names names = names_open(e, printer, entry, loop, "m->arena");
    const char *name = turns_name(&names, loop);
    bool in = false;
    text_printf(out, "typedef struct {\n    %s *m;\n", e->prefix);
    if (api_has_inputs(entry)) {
        text_printf(out, "    const %s_in *in;\n", entry->c_name);
    }
    for (int i = 0; i < entry->buf.count; i++) {
        in = in || (entry->buf.at[i]->kind == BUF_INPUT && names.used[entry->buf.at[i]->id]);
    }
    text_printf(out, "} %sargs;\n\n/* Turns of the loop of step %d, side by side. */\n", name,
                loop->id);
    text_printf(out, "%sstatic void %s(const void *args_, int part_, int parts_) {\n",
                is_list(printer, entry) ? "MD_LIST\n" : "", name);
    text_printf(out, "    %s *m = ((const %sargs *)args_)->m;\n", e->prefix, name);
    if (in) {
        text_printf(out, "    const %s_in *in = ((const %sargs *)args_)->in;\n", entry->c_name,
                    name);
    }
    print_ports(&names, out);
    print_slots(&names, out);
    print_temps(&names, NULL, out);
    if (loop->rest->bytes > 0) {
        text_printf(out,
                    "    /* the part's own, %lld bytes */\n    unsigned char *own_ =\n"
                    "        part_ == 0 ? m->arena + %lld : %s + (part_ - 1) * (int64_t)%lld;\n",
                    (long long)loop->rest->type->dim[1], (long long)loop->base, loop->rest->name,
                    (long long)loop->rest->type->dim[1]);
    }
    print_temps(&names, loop, out);
    text_printf(out, "\n    for (int64_t i%d = part_; i%d < %lld; i%d += parts_) {\n", loop->index,
                loop->index, (long long)loop->trip, loop->index);
    print_steps(&names, printer, &loop->body, 2, out);
    text_add(out, "    }\n}\n\n");
    arena_free(&names.scratch);
}

void entry_function(const Emit *e, const Printer *printer, const ProgramEntry *entry, Text *out) {
    const Entry *source = entry->entry;
    for (int i = 0; i < entry->step.count; i++) {
        if (entry->step.at[i]->rest != NULL) {
            print_turns(e, printer, entry, entry->step.at[i], out);
        }
    }
    Names names = names_open(e, printer, entry, NULL, "m->arena");
    if (e->c->opt.nan) {
        trace_table(e, entry, out);
    }
    text_printf(out, "/* %s: %d steps, %lld bytes of arena, %lld FLOPs", entry->c_name,
                entry->nstep, (long long)entry->arena_bytes, (long long)entry->flops);
    int line = loc_line_of(e, source->loc);
    if (line > 0) {
        text_printf(out, ", line %d", line);
    }
    text_printf(out, " */\n%sint %s(", is_list(printer, entry) ? "MD_LIST\n" : "", entry->c_name);
    api_parameters(e, entry, out);
    text_add(out, ") {\n");
    print_checks(e, entry, out);
    if (source->kind == ENTRY_INIT && !names.seeded) {
        text_add(out, "    (void)seed;\n");
    }
    print_ports(&names, out);
    print_slots(&names, out);
    print_temps(&names, NULL, out);
    if (printer->device != NULL) {
        print_on_device(&names, printer, out);
        arena_free(&names.scratch);
        return;
    }
    guard_open(entry, out);
    trace_open(e, entry, out);
    text_add(out, "\n");
    print_steps(&names, printer, &entry->step, 1, out);
    guard_close(entry, "    ", out);
    trace_close(e, entry, out);
    print_results(&names, out);
    text_printf(out, "    return %s_OK;\n}\n\n", e->upper);
    arena_free(&names.scratch);
}

/* ---- functions without an instance ---------------------------------------------------------- */

/* Scratch of its own: these run where no instance is at hand. */
static const char *print_scratch(const ProgramEntry *entry, Text *out) {
    enum { STACK_MOST = 16384 };
    if (entry->arena_bytes == 0) {
        return "NULL";
    }
    text_printf(out,
                "    %sunion {\n        double align;\n        unsigned char bytes[%lld];\n    } "
                "scratch;\n",
                entry->arena_bytes > STACK_MOST ? "static " : "", (long long)entry->arena_bytes);
    return "scratch.bytes";
}

void entry_load(const Emit *e, const Printer *printer, const ProgramEntry *entry, Text *out) {
    text_printf(out, "/* One row of %s as it is read -> as the model sees it. */\n",
                entry->entry->name);
    text_printf(out, "static void %s(const void *raw, void *field) {\n", entry->c_name);
    Names names = names_open(e, printer, entry, NULL, print_scratch(entry, out));
    for (int i = 0; i < entry->buf.count; i++) {
        const Buf *buf = entry->buf.at[i];
        const char *type = elem_c_name(buf->type->elem);
        if (buf->kind == BUF_INPUT && names.used[buf->id]) {
            text_printf(out, "    const %s *%s = (const %s *)raw;\n", type, buf->name, type);
        } else if (buf->kind == BUF_INPUT) {
            text_add(out, "    (void)raw;\n");
        } else if (buf->kind == BUF_RESULT) {
            text_printf(out, "    %s *%s = (%s *)field;\n", type, buf->name, type);
        }
    }
    print_slots(&names, out);
    print_temps(&names, NULL, out);
    print_steps(&names, printer, &entry->step, 1, out);
    text_add(out, "}\n\n");
    arena_free(&names.scratch);
}

/* ---- sums over batches ---------------------------------------------------------------------- */

static void print_add(const Emit *e, const ProgramEntry *eval, Text *out) {
    api_eval_add(e, eval, out);
    text_printf(out, " {\n    if (sums == NULL%s) {\n        return %s_ERR_ARGUMENT;\n    }\n",
                api_has_results(eval) ? " || part == NULL" : "", e->upper);
    for (int i = 0; i < eval->entry->out.count; i++) {
        if (eval->entry->out.at[i].role == OUT_SUM) {
            const char *field = field_name(e, eval->entry->out.at[i].name);
            const Type *type = result_buf(eval, i)->type;
            if (type->rank > 0) {
                text_printf(out,
                            "    for (int i = 0; i < %lld; i++) {\n"
                            "        sums->%s[i] += (double)part->%s[i];\n    }\n",
                            (long long)type_count(*type), field, field);
            } else {
                text_printf(out, "    sums->%s += (double)part->%s;\n", field, field);
            }
        }
    }
    text_printf(out, "    sums->batches++;\n    return %s_OK;\n}\n\n", e->upper);
}

void entry_eval_end(const Emit *e, const Printer *printer, const ProgramEntry *entry, Text *out) {
    const ProgramEntry *eval = entry_eval(e->p, entry->entry->train, ENTRY_EVAL);
    if (api_is_called(e)) {
        print_add(e, eval, out);
    }
    Names names = names_open(e, printer, entry, NULL, "m->arena");
    text_printf(out, "/* Sums over all rows -> loss and metrics of %s. */\n", entry->entry->name);
    api_eval_end(e, entry, out);
    text_add(out, " {\n");
    api_refusals(e, "sums == NULL || out == NULL", out);
    text_printf(out, "    if (sums->batches < 1) {\n        return %s_ERR_STATE;\n    }\n",
                e->upper);
    if (printer->device != NULL) {
        print_ports(&names, out);
        print_slots(&names, out);
        print_temps(&names, NULL, out);
        print_on_device(&names, printer, out);
        arena_free(&names.scratch);
        return;
    }
    for (int i = 0; i < entry->entry->input.count; i++) {
        const Buf *buf = input_buf(entry, entry->entry->input.at[i]);
        if (buf != NULL && names.used[buf->id]) {
            const char *type = elem_c_name(buf->type->elem);
            const char *field = field_name(e, entry->entry->input.at[i]->c_name);
            if (buf->type->rank > 0) {
                text_printf(out, "    const %s *%s = sums->%s;\n", type, buf->name, field);
            } else {
                text_printf(out, "    const %s %s[1] = {(%s)sums->%s};\n", type, buf->name, type,
                            field);
            }
        }
    }
    for (int i = 0; i < entry->buf.count; i++) {
        const Buf *buf = entry->buf.at[i];
        if (buf->kind == BUF_RESULT) {
            text_printf(out, "    %s %s[%lld];\n", elem_c_name(buf->type->elem), buf->name,
                        (long long)type_count(*buf->type));
        }
    }
    print_slots(&names, out);
    print_temps(&names, NULL, out);
    print_steps(&names, printer, &entry->step, 1, out);
    for (int i = 0; i < entry->entry->out.count; i++) {
        text_printf(out, "    out->%s = *%s;\n", field_name(e, entry->entry->out.at[i].name),
                    result_buf(entry, i)->name);
    }
    text_printf(out, "    return %s_OK;\n}\n\n", e->upper);
    arena_free(&names.scratch);
}
