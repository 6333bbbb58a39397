/* locals: see the header. Off a checked Program it is read what steps touch; where that lies is the
 * plan's. Numbers stand where Emit.table says. */
#include "emit/locals.h"

#include "emit/numbers.h"

#include <string.h>

/* ---- which of them there are ---------------------------------------------------------------- */

/* Of another function that steps are in: what it is given by this one. */
static void note_given(Locals *names, const Step *step) {
    const AccessList *touch = step_touches(step);
    for (int i = 0; i < touch->count; i++) {
        const Buf *buf = buf_local(touch->at[i].buf);
        names->used[buf->id] |= buf->kind == BUF_INPUT || buf->kind == BUF_CONST;
    }
    for (int i = 0; i < step->body.count; i++) {
        note_given(names, step->body.at[i]);
    }
}

/* Turns side by side have a function of their own, which names what it needs; so have sections. */
static void note_used(Locals *names, const StepList *list) {
    int behind = 0; /* a section */
    for (int i = 0; i < list->count; i++) {
        const Step *step = list->at[i];
        const int section =
            i >= behind && list == names->top ? section_steps(names->e, list, i) : 0;
        behind = section > 0 ? i + section : behind;
        names->calls = names->calls || section > 0;
        if (i < behind) {
            note_given(names, step);
            continue;
        }
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

static Locals open_list(const Emit *e, const Printer *printer, const ProgramEntry *entry,
                        const StepList *list, const char *arena) {
    Locals names = {.e = e, .entry = entry, .top = list, .device = printer->device, .arena = arena};
    names.used = ARENA_ARRAY(&names.scratch, bool, e->p->nbuf + 1);
    names.written = ARENA_ARRAY(&names.scratch, bool, e->p->nbuf + 1);
    note_used(&names, list);
    return names;
}

Locals locals_open(const Emit *e, const Printer *printer, const ProgramEntry *entry,
                   const Step *turns, const char *arena) {
    Locals names = open_list(e, printer, entry, turns ? &turns->body : &entry->step, arena);
    names.turns = turns;
    if (turns != NULL && turns->rest->bytes > 0) {
        names.used[turns->rest->id] = true;
    }
    return names;
}

Locals locals_section(const Emit *e, const Printer *printer, const ProgramEntry *entry,
                      const Step *turns, const StepList *section) {
    Locals names = open_list(e, printer, entry, section, "m->arena");
    names.turns = turns;
    names.section = section;
    return names;
}

/* ---- sections ------------------------------------------------------------------------------- */

/* How many steps it is that need no more than their memory; 0: some of them do. */
static int plain_steps(const Step *step) {
    int count = 1;
    if (step->kind == STEP_LOOP && step->rest == NULL) {
        for (int i = 0; i < step->body.count && count > 0; i++) {
            const int inner = plain_steps(step->body.at[i]);
            count = inner > 0 ? count + inner : 0;
        }
        return count;
    }
    return step->kind == STEP_KERNEL || step->kind == STEP_COPY || step->kind == STEP_CLEAR;
}

int section_steps(const Emit *e, const StepList *list, int first) {
    enum { LEAST = 16 };
    int count = 0, all = 0, inside = 1;
    while (e->sections && first + count < list->count && inside > 0) {
        inside = plain_steps(list->at[first + count]);
        all += inside;
        count += inside > 0;
    }
    return all < LEAST ? 0 : count;
}

const char *section_name(const Locals *names, const Step *first) {
    return str_printf(names->e->arena, "%s_calls%d_", names->entry->c_name, first->id);
}

static const char *given_text(const Locals *names, const Buf *buf, bool typed) {
    const char *type = elem_c_name(buf->type->elem);
    return typed ? str_printf(names->e->arena, "const %s *%s", type, buf->name) : buf->name;
}

void section_arguments(const Locals *section, bool typed, Words *words) {
    const ProgramEntry *entry = section->entry;
    Arena *arena = section->e->arena;
    VEC_PUSH(arena, words, typed ? "const md_frame *m" : "&frame_");
    for (int i = 0; i < entry->buf.count; i++) {
        const Buf *buf = entry->buf.at[i];
        if (buf->kind == BUF_INPUT && section->used[buf->id]) {
            VEC_PUSH(arena, words, given_text(section, buf, typed));
        }
    }
    for (int i = 0; i < section->e->p->table.count; i++) {
        const Buf *buf = section->e->p->table.at[i];
        if (section->used[buf->id]) {
            VEC_PUSH(arena, words, given_text(section, buf, typed));
        }
    }
    if (section->turns != NULL) {
        if (section->turns->rest->bytes > 0) {
            VEC_PUSH(arena, words, typed ? "unsigned char *own_" : "own_");
        }
        VEC_PUSH(arena, words,
                 str_printf(arena, "%si%d", typed ? "int64_t " : "", section->turns->index));
    }
}

/* ---- their lines ---------------------------------------------------------------------------- */

/* TYPE *NAME = MD_AT(TYPE, BASE, OFFSET); what it is, and `more` of that */
static void print_pointer(const Locals *names, const Buf *buf, const char *base, bool constant,
                          const char *more, Text *out) {
    const Step *aside = step_aside(buf->loop); /* each of its threads has bytes of its own */
    Arena *arena = names->e->arena;
    const char *type =
        str_printf(arena, "%s%s", constant ? "const " : "", elem_c_name(buf->type->elem));
    Text what = {.arena = arena};
    if (buf->type->rank > 0) {
        text_shape(&what, *buf->type);
    } else {
        text_add(&what, elem_name(buf->type->elem));
    }
    text_add(&what, more);
    const int64_t offset = buf->offset - (aside ? aside->base : 0);
    const bool apart = names->e->table != NULL; /* there it is said what it is */
    text_printf(out, "    %s *%s = MD_AT(%s, %s, %s);", type, buf->name, type,
                aside ? "own_" : base,
                call_number(names->e, offset, str_printf(arena, "%s: %s", buf->name, what.at)));
    text_add(out, apart ? "\n" : str_printf(arena, " /* %s */\n", what.at));
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

/* Numbers that are known when a program is compiled. */
static void print_tables(const Locals *names, Text *out) {
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

void locals_slots(const Locals *names, Text *out) {
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
            Text path = {.arena = names->e->arena};
            text_add(&path, "");
            if (!says_path(buf->name, buf->slot->name)) {
                text_add(&path, " ");
                text_comment(&path, buf->slot->name);
            }
            print_pointer(names, buf, str_printf(names->e->arena, "m->%s", regions[r].name),
                          !names->written[buf->id], path.at, out);
        }
    }
    if (names->section == NULL) {
        print_tables(names, out);
    }
}

static void print_temp(const Locals *names, const Buf *buf, Text *out) {
    const Buf *root = buf_root(buf);
    switch (root->kind) {
    case BUF_PARAM: /* of another place in it than its beginning */
    case BUF_STATE:
        print_pointer(names, buf, root->kind == BUF_PARAM ? "m->params" : "m->state", false,
                      str_printf(names->e->arena, " in place of %s", root->name), out);
        return;
    case BUF_RESULT:
        if (names->entry->entry->kind == ENTRY_EVAL_END ||
            names->entry->entry->kind == ENTRY_LOAD) {
            text_printf(out, "    %s *%s = %s;\n", elem_c_name(buf->type->elem), buf->name,
                        root->name);
            return;
        }
        print_pointer(names, buf, "m->io", false,
                      str_printf(names->e->arena, " result %s", root->name), out);
        return;
    case BUF_TEMP:
    case BUF_WORK:
    case BUF_INPUT:
    case BUF_CONST: break;
    }
    Text more = {.arena = names->e->arena};
    text_printf(&more, " to %lld, steps %d..%d", (long long)(buf->offset + buf->bytes), buf->first,
                buf->last - 1);
    if (root != buf) {
        text_printf(&more, ", in place of %s", root->name);
    } else if (buf->kind == BUF_WORK) {
        text_add(&more, ", workspace");
    }
    print_pointer(names, buf, names->arena, false, more.at, out);
}

void locals_temps(const Locals *names, const Step *aside, Text *out) {
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
static void require_field(const Locals *names, const Slot *slot) {
    const ProgramEntry *owner = entry_of(names->e->p, names->entry->entry->train);
    for (int i = 0; owner != NULL && i < owner->entry->input.count; i++) {
        if (str_eq(owner->entry->input.at[i]->c_name, slot->c_name)) {
            return;
        }
    }
    BUG("%s reads %s, which its train does not take", names->entry->c_name, slot->c_name);
}

/* Inputs of a function of the API. */
static void print_inputs(const Locals *names, Text *out) {
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
            print_pointer(names, buf, "m->io", false, "", out);
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
}

void locals_ports(const Locals *names, Text *out) {
    const ProgramEntry *entry = names->entry;
    bool first = true;
    if (names->section == NULL) {
        print_inputs(names, out);
    }
    for (int i = 0; i < entry->buf.count; i++) {
        const Buf *buf = entry->buf.at[i];
        bool handed_out = names->device == NULL && names->turns == NULL && names->section == NULL;
        if (buf->kind == BUF_RESULT && (handed_out || names->used[buf->id])) {
            text_add(out, first ? "    /* results */\n" : "");
            first = false;
            print_pointer(names, buf, "m->io", !names->used[buf->id], "", out);
        }
    }
}
