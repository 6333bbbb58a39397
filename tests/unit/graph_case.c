#include "graph_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void graph_case_open(GraphCase *c, Elem float_type) {
    memset(c, 0, sizeof *c);
    c->module = ARENA_NEW(&c->arena, Module);
    c->module->arena = &c->arena;
    c->module->graph = graph_new(&c->arena, float_type);
    graph_case_entry(c, ENTRY_INIT, "init");
}

void graph_case_close(GraphCase *c) {
    if (c->text) {
        dumped_done(c->text);
    }
    arena_free(&c->arena);
}

Entry *graph_case_entry(GraphCase *c, EntryKind kind, const char *name) {
    Entry *entry = ARENA_NEW(&c->arena, Entry);
    entry->kind = kind;
    entry->name = str_dup(&c->arena, name);
    entry->region = region_new(c->module->graph, NULL);
    entry->dataset = -1;
    entry->steps = entry->epochs = entry->budget = -1;
    entry->loc = entry->budget_loc = LOC_NONE;
    VEC_PUSH(&c->arena, &c->module->entry, entry);
    return entry;
}

static Slot *slot_new(GraphCase *c, SlotKind kind, const char *name, Type type) {
    Slot *slot = ARENA_NEW(&c->arena, Slot);
    slot->kind = kind;
    slot->name = slot->file_name = str_dup(&c->arena, name);
    slot->c_name = kind == SLOT_INPUT ? slot->name : NULL;
    slot->type = type;
    slot->loc = LOC_NONE;
    return slot;
}

Slot *graph_case_slot(GraphCase *c, SlotKind kind, StateRole role, const char *name, Node *start) {
    Slot *slot = slot_new(c, kind, name, *start->type);
    slot->role = role;
    slot->trainable = kind == SLOT_PARAM;
    slot->index = c->module->slot.count;
    VEC_PUSH(&c->arena, &c->module->slot, slot);
    graph_case_write_slot(c, c->module->entry.at[0], slot, start);
    return slot;
}

Slot *graph_case_input(GraphCase *c, Entry *entry, Type type, double *data, int64_t lo,
                       int64_t hi) {
    int n = 0;
    for (int i = 0; i < entry->input.count; i++) { /* a reduced entry may have holes */
        int number = atoi(entry->input.at[i]->name + 1);
        n = number >= n ? number + 1 : n;
    }
    Slot *slot = slot_new(c, SLOT_INPUT, str_printf(&c->arena, "x%d", n), type);
    slot->entry = entry;
    slot->index = entry->input.count;
    slot->lo = lo;
    slot->hi = hi;
    VEC_PUSH(&c->arena, &entry->input, slot);
    VEC_PUSH(&c->arena, &c->input, ((CaseInput){slot, data}));
    return slot;
}

void graph_case_result(GraphCase *c, Entry *entry, OutRole role, Node *node) {
    EntryOut out = {.role = role, .loc = LOC_NONE};
    out.name = str_printf(&c->arena, "out%d", entry->out.count);
    region_result(entry->region, node);
    VEC_PUSH(&c->arena, &entry->out, out);
}

void graph_case_write_slot(GraphCase *c, Entry *entry, Slot *slot, Node *node) {
    EntryOut out = {.role = OUT_WRITE, .slot = slot, .loc = LOC_NONE};
    region_result(entry->region, node);
    VEC_PUSH(&c->arena, &entry->out, out);
}

double *graph_case_data(const GraphCase *c, const Slot *slot) {
    for (int i = 0; i < c->input.count; i++) {
        if (c->input.at[i].slot == slot) {
            return c->input.at[i].data;
        }
    }
    return NULL;
}

static Slot *find_input(const Module *module, const char *entry, const char *name) {
    for (int i = 0; i < module->entry.count; i++) {
        const Entry *e = module->entry.at[i];
        for (int k = 0; str_eq(e->name, entry) && k < e->input.count; k++) {
            if (str_eq(e->input.at[k]->name, name)) {
                return e->input.at[k];
            }
        }
    }
    return NULL;
}

void graph_case_adopt(const GraphCase *from, GraphCase *to) {
    to->lone = from->lone;
    to->input.count = 0;
    for (int i = 0; i < from->input.count; i++) {
        const Slot *old = from->input.at[i].slot;
        Slot *slot = find_input(to->module, old->entry->name, old->name);
        if (slot) {
            VEC_PUSH(&to->arena, &to->input, ((CaseInput){slot, from->input.at[i].data}));
        }
    }
}

/* --- files ------------------------------------------------------------------------------------ */

void graph_case_print_inputs(const GraphCase *c, FILE *out) {
    for (int i = 0; i < c->input.count; i++) {
        const Slot *slot = c->input.at[i].slot;
        fprintf(out, "// input %s.%s:", slot->entry->name, slot->name);
        for (int64_t k = 0; k < type_count(slot->type); k++) {
            fprintf(out, " %.17g", c->input.at[i].data[k]);
        }
        fprintf(out, "\n");
    }
}

bool graph_case_save(const GraphCase *c, const char *path, const char *head) {
    FILE *out = fopen(path, "wb");
    if (!out) {
        return false;
    }
    while (*head) {
        int n = (int)strcspn(head, "\n");
        fprintf(out, "// %.*s\n", n, head);
        head += n + (head[n] == '\n');
    }
    fprintf(out, "// precision %s\n", elem_name(c->module->graph->float_type));
    fputs(c->lone ? "// threads 1\n" : "", out);
    graph_case_print_inputs(c, out);
    module_dump(c->module, out);
    return fclose(out) == 0;
}

/* `// input call0.x1: numbers` */
static bool read_input(GraphCase *c, const char *line) {
    char entry[64], name[64];
    int used = 0;
    if (sscanf(line, "// input %63[^.].%63[^:]:%n", entry, name, &used) != 2 || used == 0) {
        return false;
    }
    Slot *slot = find_input(c->module, entry, name);
    if (!slot) {
        return false;
    }
    int64_t n = type_count(slot->type), k = 0;
    double *data = ARENA_ARRAY(&c->arena, double, n);
    for (const char *at = line + used; k < n; k++) {
        char *end;
        data[k] = strtod(at, &end);
        if (end == at) {
            return false;
        }
        at = end;
    }
    VEC_PUSH(&c->arena, &c->input, ((CaseInput){slot, data}));
    return true;
}

bool graph_case_load(GraphCase *c, const char *path, const char **message) {
    memset(c, 0, sizeof *c);
    size_t length;
    char *text = dumped_file(&c->arena, path, &length);
    if (!text) {
        *message = "cannot be read";
        return false;
    }
    bool wide = strstr(text, "// precision f64\n") != NULL;
    c->lone = strstr(text, "// threads 1\n") != NULL;
    c->text = ARENA_NEW(&c->arena, Dumped);
    dumped_make(c->text, path, text, length, wide ? TY_F64 : TY_F32);
    c->module = c->text->module;
    if (!c->module) {
        *message = c->text->messages;
        return false;
    }
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "// input ", 9) == 0 && !read_input(c, line)) {
            *message = str_printf(&c->arena, "'%.40s'", line);
            return false;
        }
    }
    for (int i = 0; i < c->module->entry.count; i++) {
        const Entry *e = c->module->entry.at[i];
        for (int k = 0; k < e->input.count; k++) {
            if (!graph_case_data(c, e->input.at[k])) {
                *message =
                    str_printf(&c->arena, "%s.%s has no data", e->name, e->input.at[k]->name);
                return false;
            }
        }
    }
    return true;
}
