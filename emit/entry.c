/* entry: see the header. A function checks its arguments, names its memory, calls its kernels in
 * order and hands out its results: a table of contents. It decides nothing; the Program says where
 * all lies. */
#include "emit/entry.h"

#include "compiler/names.h"
#include "emit/api.h"
#include "emit/guard.h"
#include "emit/steps.h"
#include "emit/trace.h"

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

/* What is given, the steps, what comes of them, in memory of a device. */
static void print_on_device(Locals *names, const Printer *printer, Text *out) {
    const ProgramEntry *entry = names->entry;
    names->device->open(out, names->e, entry, names->used);
    text_add(out, "\n");
    steps_print(names, printer, &entry->step, 1, out);
    names->device->close(out, names->e, entry);
}

static void print_results(const Locals *names, Text *out) {
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
    Locals names = locals_open(e, printer, entry, loop, "m->arena");
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
    locals_ports(&names, out);
    locals_slots(&names, out);
    locals_temps(&names, NULL, out);
    if (loop->rest->bytes > 0) {
        text_printf(out,
                    "    /* the part's own, %lld bytes */\n    unsigned char *own_ =\n"
                    "        part_ == 0 ? m->arena + %lld : %s + (part_ - 1) * (int64_t)%lld;\n",
                    (long long)loop->rest->type->dim[1], (long long)loop->base, loop->rest->name,
                    (long long)loop->rest->type->dim[1]);
    }
    locals_temps(&names, loop, out);
    sections_frame(&names, out);
    text_printf(out, "\n    for (int64_t i%d = part_; i%d < %lld; i%d += parts_) {\n", loop->index,
                loop->index, (long long)loop->trip, loop->index);
    steps_print(&names, printer, &loop->body, 2, out);
    text_add(out, "    }\n}\n\n");
    arena_free(&names.scratch);
}

void entry_function(const Emit *model, const Printer *printer, const ProgramEntry *entry,
                    const Sections *sections, Text *out) {
    const Entry *source = entry->entry;
    Emit own = *model;
    const Emit *e = &own;
    own.sections = sections->numbers != NULL && sections_wanted(e);
    sections_print(e, printer, entry, sections, out);
    for (int i = 0; i < entry->step.count; i++) {
        if (entry->step.at[i]->rest != NULL) {
            print_turns(e, printer, entry, entry->step.at[i], out);
        }
    }
    Locals names = locals_open(e, printer, entry, NULL, "m->arena");
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
    locals_ports(&names, out);
    locals_slots(&names, out);
    locals_temps(&names, NULL, out);
    if (printer->device != NULL) {
        print_on_device(&names, printer, out);
        arena_free(&names.scratch);
        return;
    }
    sections_frame(&names, out);
    guard_open(entry, out);
    trace_open(e, entry, out);
    const int timed = api_timed_call(e, entry);
    if (timed >= 0) {
        text_printf(out, "    md_calls_begin(&m->pace, &m->calls[%d], md_clock());\n", timed);
    }
    text_add(out, "\n");
    steps_print(&names, printer, &entry->step, 1, out);
    if (timed >= 0) {
        text_printf(out, "    md_calls_end(&m->pace, &m->calls[%d], md_clock());\n", timed);
    }
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
    Locals names = locals_open(e, printer, entry, NULL, print_scratch(entry, out));
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
    locals_slots(&names, out);
    locals_temps(&names, NULL, out);
    steps_print(&names, printer, &entry->step, 1, out);
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
    Locals names = locals_open(e, printer, entry, NULL, "m->arena");
    text_printf(out, "/* Sums over all rows -> loss and metrics of %s. */\n", entry->entry->name);
    api_eval_end(e, entry, out);
    text_add(out, " {\n");
    api_refusals(e, "sums == NULL || out == NULL", out);
    text_printf(out, "    if (sums->batches < 1) {\n        return %s_ERR_STATE;\n    }\n",
                e->upper);
    if (printer->device != NULL) {
        locals_ports(&names, out);
        locals_slots(&names, out);
        locals_temps(&names, NULL, out);
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
    locals_slots(&names, out);
    locals_temps(&names, NULL, out);
    steps_print(&names, printer, &entry->step, 1, out);
    for (int i = 0; i < entry->entry->out.count; i++) {
        text_printf(out, "    out->%s = *%s;\n", field_name(e, entry->entry->out.at[i].name),
                    result_buf(entry, i)->name);
    }
    text_printf(out, "    return %s_OK;\n}\n\n", e->upper);
    arena_free(&names.scratch);
}
