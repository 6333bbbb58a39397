/* steps: see the header. It decides nothing; the Program says what is called in which order, and
 * where all lies. */
#include "emit/steps.h"

#include "emit/api.h"
#include "emit/guard.h"
#include "emit/lines.h"
#include "emit/numbers.h"
#include "emit/profile.h"
#include "emit/trace.h"

#include <string.h>

/* What is given is not what the entry asks for: nothing has been written. */
static void print_refusal(const Locals *names, const Step *step, Text *out, const char *indent) {
    const Slot *slot = step->kind == STEP_RANGE ? step->src->slot : step->cursor->slot;
    if (step->kind == STEP_RANGE) {
        int64_t lo, hi;
        input_range(slot, &lo, &hi);
        text_printf(out, "%sif (%s_outside_%s(%s, %lld, %lld, %lld)) {", indent, names->e->prefix,
                    elem_name(slot->type.elem), step->src->name, (long long)type_count(slot->type),
                    (long long)lo, (long long)hi);
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
static void print_finite(const Locals *names, const Step *step, Text *out, const char *indent) {
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
static void print_limits(const Locals *names, const Step *step, Text *out, const char *indent) {
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

static void print_check(const Locals *names, const Step *step, Text *out, const char *indent) {
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
static void print_source(Locals *names, const Step *step, Text *out, const char *indent) {
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

static void print_kernel_call(Locals *names, const Printer *printer, const Step *step,
                              const char *indent, Text *out) {
    Text call = {.arena = &names->scratch}, lines = {.arena = &names->scratch};
    printer->call(&call, names->e, step);
    text_printf(&call, " /* %d%s */\n", step->id, step->again ? ", again" : "");
    text_wrapped(&lines, indent, call.at);
    lines_all(names->e, step->loc, lines.at, out);
}

/* Where the slice of `buf` begins that the loops around the step pick, in elements behind its
 * start; "" where it has no slices. */
static const char *slice_start(const Locals *names, const Access *access) {
    Text at = {.arena = names->e->arena};
    text_add(&at, "");
    for (int k = 0; k < ACCESS_SLICES && access->slice[k] != NULL; k++) {
        text_printf(&at, " + i%d * %s", access->slice[k]->index,
                    call_number(names->e, access->buf->stride[k], NULL));
    }
    return at.at;
}

/* A scalar that a loop touches itself, or another step: *n, or n[i2 * 4]. */
static const char *scalar_place(const Locals *names, const Step *step, const Buf *buf) {
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
static void print_loop_head(const Locals *names, const Step *step, const char *indent, Text *out) {
    int i = step->index;
    const bool until = step->last == NULL && !step->reverse;
    const char *turns = call_number(names->e, until ? step->trip : step->trip - 1, NULL);
    const char *first = "0", *end = str_printf(names->e->arena, "i%d < %s", i, turns);
    if (step->last != NULL) {
        const char *last = scalar_place(names, step, step->last);
        const char *most =
            str_printf(names->e->arena, "(%s < %s ? %s : %s)", last, turns, last, turns);
        first = step->reverse ? most : "0";
        end = str_printf(names->e->arena, "i%d <= %s", i, most);
    } else if (step->reverse) {
        first = turns;
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

/* A number that C has as a size. */
static const char *bytes_text(const Emit *e, int64_t bytes) {
    const char *number = call_number(e, bytes, NULL);
    return e->table != NULL ? str_printf(e->arena, "(size_t)%s", number) : number;
}

/* The slices behind the last index. */
static void print_clear(const Locals *names, const Step *step, Text *out, const char *indent) {
    const Access *to = step_find(step, step->dst);
    int axis = 0;
    while (axis < ACCESS_SLICES && to->slice[axis] != NULL) {
        axis++;
    }
    const char *last = scalar_place(names, step, step->src), *name = buf_local(step->dst)->name;
    const int64_t slice = step->dst->stride[axis], trip = step->dst->type->dim[axis];
    const char *most = call_number(names->e, trip - 1, NULL);
    text_printf(out, "%sif (%s < %s) { /* ", indent, last, most);
    text_comment(out, step->text);
    const char *start = slice_start(names, to), *length = call_number(names->e, slice, NULL);
    const char *turns = call_number(names->e, trip, NULL);
    const char *bytes = bytes_text(names->e, slice * (int64_t)elem_bytes(step->dst->type->elem));
    text_printf(out,
                " */\n%s    int64_t md_from = %s < 0 ? 0 : %s + 1;\n"
                "%s    memset(%s%s + md_from * %s, 0, (size_t)(%s - md_from) * %s);\n%s}\n",
                indent, last, last, indent, name, start, length, turns, bytes, indent);
}

const char *turns_name(const Locals *names, const Step *loop) {
    return str_printf(names->e->arena, "%s_turns%d_", names->entry->c_name, loop->index);
}

/* A step that is traced is looked at by one thread. */
static void print_turns_call(const Locals *names, const Step *loop, const char *indent, Text *out) {
    const char *name = turns_name(names, loop);
    text_printf(out, "%sconst %sargs args%d_ = {m%s};\n", indent, name, loop->index,
                api_has_inputs(names->entry) ? ", in" : "");
    text_printf(out, "%smd_team_run(&m->pace, %s%d, %lld, %s, &args%d_);\n", indent,
                trace_wanted(names->e, names->entry) ? "m->trace != NULL ? 1 : " : "", loop->team,
                (long long)loop->trip, name, loop->index);
}

/* Steps that are a function of their own; gives how many they are, or 0. */
static int print_section_call(Locals *names, const Printer *printer, const StepList *list,
                              int first, const char *indent, Text *out) {
    const int count = list == names->top ? section_steps(names->e, list, first) : 0;
    if (count == 0) {
        return 0;
    }
    const StepList section = {.at = list->at + first, .count = count};
    Locals own = locals_section(names->e, printer, names->entry, names->turns, &section);
    Words words = {0};
    section_arguments(&own, false, &words);
    const char *begin =
        str_printf(names->e->arena, "%s%s(", indent, section_name(names, list->at[first]));
    words_print(out, begin, &words, (int)strlen(begin));
    text_add(out, ");\n");
    arena_free(&own.scratch);
    return count;
}

void steps_print(Locals *names, const Printer *printer, const StepList *list, int depth,
                 Text *out) {
    const char *indent = str_printf(names->e->arena, "%*s", 4 * depth, "");
    for (int i = 0; i < list->count; i++) {
        const int section = print_section_call(names, printer, list, i, indent, out);
        if (section > 0) {
            i += section - 1;
            continue;
        }
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
            text_printf(out, "%smemcpy(%s, %s, %s);\n", indent, buf_local(step->dst)->name,
                        buf_local(step->src)->name, bytes_text(names->e, step->src->bytes));
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
            steps_print(names, printer, &step->body, depth + 1, out);
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
