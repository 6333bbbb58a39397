/* dump: a module as a model text that mdlc reads again, for --dump=STAGE and failing tests.
 *
 * `use core;` says what the text is. A slot is a `state` item, a table of numbers a `const`, the
 * adjoint of a CUSTOM an `op`, an entry an `entry`; a node is one line, numbered as in its region,
 * `n7: f32[4] = core.add(n3, n5);`; a loop is a `scan` whose carries are its operands. Each region
 * has names of its own. Reading gives the same slots, entries and regions, node by node.
 * Contract: needs a module of any stage; prints it; changes nothing. */
#include "compiler/graph_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 100 };

typedef struct {
    const double *data;
    Type type;
} DumpTable;

typedef struct {
    Arena arena;
    FILE *out;
    Text line;
    const Module *module;     /* NULL: a region alone */
    VEC(DumpTable) table;     /* t0, t1, ... */
    VEC(const Node *) custom; /* those whose bodies are a0, a1, ... */
} Dump;

/* --- lines ------------------------------------------------------------------------------------ */

/* Ends the statement in d->line: prints it, broken after commas, better not in lists, where it is
 * too long. */
static void line_end(Dump *d, int indent) {
    const char *at = d->line.at;
    bool first = true;
    while (*at) {
        int column = first ? indent : indent + 4, n = 0, outside = 0, inside = 0;
        bool quoted = false, list = false;
        for (; at[n] && (column + n < COLUMNS || outside + inside == 0); n++) {
            quoted = quoted != (at[n] == '"' && (n == 0 || at[n - 1] != '\\'));
            list = quoted ? list : at[n] == '[' || (list && at[n] != ']');
            if (at[n] == ',' && at[n + 1] == ' ' && !quoted) {
                *(list ? &inside : &outside) = n + 1;
            }
        }
        n = !at[n] ? n : outside > 0 ? outside : inside;
        fprintf(d->out, "%*s%.*s\n", column, "", n, at);
        at += n;
        at += *at == ' ';
        first = false;
    }
    d->line.len = 0;
}

static void add_string(Dump *d, const char *s) {
    text_add(&d->line, "\"");
    for (; *s; s++) {
        char c[2] = {*s, 0};
        text_add(&d->line, *s == '\n'                ? "\\n"
                           : *s == '\t'              ? "\\t"
                           : *s == '"' || *s == '\\' ? "\\"
                                                     : "");
        text_add(&d->line, *s == '\n' || *s == '\t' ? "" : c);
    }
    text_add(&d->line, "\"");
}

/* Begins another argument. */
static void add_argument(Dump *d, const char *name) {
    text_add(&d->line, d->line.at[d->line.len - 1] == '(' ? "" : ", ");
    if (name) {
        text_printf(&d->line, "%s = ", name);
    }
}

static void add_type(Dump *d, Type t) {
    text_add(&d->line, elem_name(t.elem));
    for (int i = 0; i < t.rank; i++) {
        text_printf(&d->line, "%s%" PRId64 "%s", i == 0 ? "[" : ", ", t.dim[i],
                    i == t.rank - 1 ? "]" : "");
    }
}

/* The shortest digits that give the same number again. */
static void add_number(Dump *d, double x) {
    char text[40];
    if (isnan(x) || isinf(x)) {
        text_printf(&d->line, "%s%s", signbit(x) ? "-" : "", isnan(x) ? "nan" : "inf");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x) {
            break;
        }
    }
    text_printf(&d->line, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

static void print_doc(Dump *d, const char *doc, int indent) {
    while (doc) {
        const char *end = strchr(doc, '\n');
        int n = end ? (int)(end - doc) : (int)strlen(doc);
        fprintf(d->out, "%*s///%s%.*s\n", indent, "", n > 0 ? " " : "", n, doc);
        doc = end ? end + 1 : NULL;
    }
}

/* --- what stands before the regions ----------------------------------------------------------- */

static int table_number(const Dump *d, const Node *node) {
    for (int i = 0; i < d->table.count; i++) {
        if (d->table.at[i].data == node->attr->data &&
            type_count(d->table.at[i].type) == type_count(*node->type)) {
            return i;
        }
    }
    return -1;
}

static int custom_number(const Dump *d, const Node *node) {
    for (int i = 0; i < d->custom.count; i++) {
        if (d->custom.at[i] == node) {
            return i;
        }
    }
    BUG("a body without a number");
}

static void collect(Dump *d, const Region *region) {
    for (int i = 0; i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        if (node->op == OP_TABLE && type_count(*node->type) > 0 && table_number(d, node) < 0) {
            DumpTable table = {node->attr->data, *node->type};
            VEC_PUSH(&d->arena, &d->table, table);
        }
        if (node->body) {
            collect(d, node->body);
        }
        if (node->op == OP_CUSTOM) {
            VEC_PUSH(&d->arena, &d->custom, node);
        }
    }
}

static void print_tables(Dump *d) {
    for (int i = 0; i < d->table.count; i++) {
        const DumpTable *table = &d->table.at[i];
        fprintf(d->out, "%s", i ? "" : "\n");
        text_printf(&d->line, "const t%d = [", i);
        for (int64_t k = 0, n = type_count(table->type); k < n; k++) {
            text_add(&d->line, k ? ", " : "");
            add_number(d, table->data[k]);
        }
        text_add(&d->line, "];");
        line_end(d, 0);
    }
}

/* --- nodes ------------------------------------------------------------------------------------ */

static void add_slot_name(Dump *d, const Slot *slot) {
    if (slot->kind == SLOT_INPUT) {
        text_add(&d->line, slot->name);
    } else {
        add_string(d, slot->name);
    }
}

static int field_count(const AttrField *f, const Node *node) {
    if (f->kind == ATTR_AXES) {
        return MD_RANK;
    }
    return f->of == OF_RESULT ? node->type->rank : node->in[f->of]->type->rank;
}

static void add_list(Dump *d, const AttrField *f, const Node *node) {
    int n = 0;
    for (int k = 0; k < field_count(f, node); k++) {
        int64_t x = attr_get(f, node->attr, k);
        if (f->kind == ATTR_LABELS) {
            text_printf(&d->line, "%c", (char)('a' + x));
        } else if (f->kind != ATTR_AXES || x) {
            text_printf(&d->line, "%s%" PRId64, n++ ? ", " : "", f->kind == ATTR_AXES ? k : x);
        }
    }
}

/* Flags that are off, no border and the number 0 are left out: they are what a reader assumes. */
static void add_field(Dump *d, const AttrField *f, const Node *node) {
    Text *line = &d->line;
    if (f->kind == ATTR_NUMBER) {
        double x = attr_number(f, node->attr);
        if (x != 0 || signbit(x)) {
            add_argument(d, f->name);
            add_number(d, x);
        }
        return;
    }
    if (f->kind >= ATTR_AXES) {
        add_argument(d, f->name);
        text_add(line, f->kind == ATTR_LABELS ? "\"" : "[");
        add_list(d, f, node);
        text_add(line, f->kind == ATTR_LABELS ? "\"" : "]");
        return;
    }
    int64_t x = attr_get(f, node->attr, 0);
    if (x == 0 && (f->kind == ATTR_BOOL || f->kind == ATTR_BORDER)) {
        return;
    }
    add_argument(d, f->name);
    switch (f->kind) {
    case ATTR_BOOL: text_add(line, "true"); break;
    case ATTR_BORDER: text_add(line, border_words[x]); break;
    case ATTR_DIST: text_add(line, dist_words[x]); break;
    case ATTR_SITE: text_printf(line, "%" PRIu64, (uint64_t)x); break;
    default: text_printf(line, "%" PRId64, x); break;
    }
}

/* Attributes and the name: the tail of an argument list. */
static void add_attributes(Dump *d, const Node *node) {
    for (int i = 0; i < nattr_fields; i++) {
        if (attr_fields[i].op == node->op) {
            add_field(d, &attr_fields[i], node);
        }
    }
    bool implied = node->op == OP_SLOT && str_eq(node->name, node->attr->slot->name);
    if (node->name && !implied) {
        add_argument(d, "name");
        add_string(d, node->name);
    }
}

/* What stands in place of operands. */
static void add_leaf(Dump *d, const Node *node) {
    const Attr *at = node->attr;
    switch (node->op) { /* the leaves, and the body of a CUSTOM */
    case OP_CONST:
        if (node->type->elem == TY_BOOL) {
            text_add(&d->line, at->value != 0 ? "true" : "false");
        } else if (elem_is_int(node->type->elem)) {
            text_printf(&d->line, "%" PRId64, at->ivalue);
        } else {
            add_number(d, at->value);
        }
        break;
    case OP_TABLE:
        if (type_count(*node->type) > 0) {
            text_printf(&d->line, "t%d", table_number(d, node));
        }
        break;
    case OP_SLOT: add_slot_name(d, at->slot); break;
    case OP_BODY_PARAM: text_printf(&d->line, "p%d", at->axis); break;
    case OP_CUSTOM:
        add_argument(d, "body");
        text_printf(&d->line, "a%d", custom_number(d, node));
        break;
    default: break;
    }
}

static void print_nodes(Dump *d, const Region *region, int indent);

static void print_loop(Dump *d, const Node *node, int indent) {
    text_printf(&d->line, "@loop(n%u", node->id);
    add_attributes(d, node);
    text_add(&d->line, ")");
    line_end(d, indent);
    text_printf(&d->line, "scan %" PRId64 " carry p0", node->attr->trip);
    for (int k = 0; k < node->nin; k++) {
        text_printf(&d->line, ", p%d = n%u", 1 + k, node->in[k]->id);
    }
    text_add(&d->line, " {");
    line_end(d, indent);
    print_nodes(d, node->body, indent + 4);
    text_add(&d->line, "}");
    line_end(d, indent);
}

static void print_node(Dump *d, const Node *node, int indent) {
    Text *line = &d->line;
    if (node->op == OP_LOOP) {
        print_loop(d, node, indent);
        return;
    }
    text_printf(line, "n%u: ", node->id);
    add_type(d, *node->type);
    text_printf(line, " = core.%s(", op_info[node->op].name);
    for (int k = 0; k < node->nin; k++) {
        add_argument(d, NULL);
        text_printf(line, "n%u", node->in[k]->id);
    }
    add_leaf(d, node);
    add_attributes(d, node);
    text_add(line, ");");
    line_end(d, indent);
}

static void print_nodes(Dump *d, const Region *region, int indent) {
    for (int i = 0; i < region->node.count; i++) {
        print_node(d, region->node.at[i], indent);
    }
    if (!region->up && d->module) {
        return; /* an entry says what its results are */
    }
    for (int k = 0; k < region->out.count; k++) {
        text_printf(&d->line, "%sn%u", k ? ", " : "return ", region->out.at[k]->id);
    }
    if (region->out.count > 0) {
        text_add(&d->line, ";");
        line_end(d, indent);
    }
}

static void print_adjoints(Dump *d) {
    for (int i = 0; i < d->custom.count; i++) {
        const Region *body = d->custom.at[i]->body;
        fprintf(d->out, "\n");
        text_printf(&d->line, "op a%d(", i);
        for (int k = 0; k < body->param.count; k++) {
            text_printf(&d->line, "%sp%d: ", k ? ", " : "", k);
            add_type(d, *body->param.at[k]->type);
        }
        text_add(&d->line, ") {");
        line_end(d, 0);
        print_nodes(d, body, 4);
        text_add(&d->line, "}");
        line_end(d, 0);
    }
}

/* --- items ------------------------------------------------------------------------------------ */

static int entry_number(const Dump *d, const Entry *entry) {
    for (int i = 0; i < d->module->entry.count; i++) {
        if (d->module->entry.at[i] == entry) {
            return i;
        }
    }
    BUG("an entry that is not of the module");
}

static void add_entry(Dump *d, const char *what, const Entry *entry) {
    if (entry) {
        text_printf(&d->line, ", %s = e%d", what, entry_number(d, entry));
    }
}

static void add_range(Dump *d, int64_t lo, int64_t hi) {
    if (lo != hi) {
        text_printf(&d->line, " in %" PRId64 "..%" PRId64, lo, hi);
    }
}

static void print_slot(Dump *d, const Slot *slot, int number) {
    Text *line = &d->line;
    print_doc(d, slot->doc, 0);
    text_printf(line, "state s%d: ", number);
    add_type(d, slot->type);
    add_range(d, slot->lo, slot->hi);
    text_printf(line, " = core.%s(", role_words[slot->role]);
    add_string(d, slot->name);
    if (!str_eq(slot->file_name, slot->name)) {
        text_add(line, ", file = ");
        add_string(d, slot->file_name);
    }
    if (slot->stacked) {
        text_printf(line, ", stacked = %d", slot->stacked);
    }
    if (slot->split) {
        text_printf(line, ", split = %d", slot->split);
    }
    text_add(line, slot->transposed ? ", transposed = true" : "");
    text_add(line, slot->frozen ? ", fixed = true" : "");
    text_add(line, slot->trainable ? ", trainable = true" : "");
    if (slot->cursor) {
        text_add(line, ", cursor = ");
        add_string(d, slot->cursor->name);
    }
    if (slot->copy_of) {
        text_add(line, ", of = ");
        add_string(d, slot->copy_of->name);
    }
    if (slot->label) {
        text_add(line, ", label = ");
        add_string(d, slot->label);
    }
    if (slot->initial != 0 || signbit(slot->initial)) {
        text_add(line, ", initial = ");
        add_number(d, slot->initial);
    }
    add_entry(d, "entry", slot->entry);
    text_add(line, ");");
    line_end(d, 0);
}

static void print_field(Dump *d, const DataField *f) {
    Text *line = &d->line;
    text_printf(line, "%s: ", f->name);
    add_type(d, f->type);
    add_range(d, f->lo, f->hi);
    text_printf(line, " = core.%s(%d", source_words[f->source], f->file);
    for (int i = 0; i < ndata_numbers; i++) {
        int64_t x;
        memcpy(&x, (const char *)f + data_numbers[i].at, sizeof x);
        if (x != 0) {
            text_printf(line, ", %s = %" PRId64, data_numbers[i].name, x);
        }
    }
    text_printf(line, ", raw = %s", elem_name(f->raw));
    add_entry(d, "load", f->load);
    if (f->centre) {
        text_add(line, ", centre = ");
        add_string(d, f->centre->name);
        text_add(line, ", spread = ");
        add_string(d, f->spread->name);
        text_add(line, ", known = ");
        add_string(d, f->known->name);
    }
    text_add(line, ");");
    line_end(d, 4);
}

static void print_data(Dump *d, const DataSet *set) {
    fprintf(d->out, "\n");
    text_printf(&d->line, "@graph(shuffle = %s", set->shuffle ? "true" : "false");
    if (set->every[PART_HELD]) {
        text_printf(&d->line, ", holdout = %" PRId64, set->every[PART_HELD]);
    }
    if (set->every[PART_TEST]) {
        text_printf(&d->line, ", test = %" PRId64, set->every[PART_TEST]);
    }
    if (set->stream) {
        text_add(&d->line, ", stream = true");
    }
    if (set->cursor) {
        text_add(&d->line, ", ring = ");
        add_string(d, set->cursor->name);
    }
    text_add(&d->line, ")");
    line_end(d, 0);
    text_printf(&d->line, "dataset %s {", set->name);
    line_end(d, 0);
    for (int i = 0; i < set->file.count; i++) {
        const DataFile *file = &set->file.at[i];
        text_add(&d->line, "core.file(");
        add_string(d, file->name);
        for (int part = 0; part < PARTS; part++) {
            if (file->path[part]) {
                text_add(&d->line, part == PART_TEST ? ", test = " : ", ");
                add_string(d, file->path[part]);
            }
        }
        if (file->rows > 0) {
            text_printf(&d->line, ", rows = %" PRId64 ", seed = %" PRId64, file->rows, file->seed);
        }
        text_add(&d->line, ");");
        line_end(d, 4);
    }
    for (int i = 0; i < set->field.count; i++) {
        print_field(d, &set->field.at[i]);
    }
    text_add(&d->line, "}");
    line_end(d, 0);
}

static void print_entry_head(Dump *d, const Entry *entry) {
    Text *line = &d->line;
    fprintf(d->out, "\n");
    print_doc(d, entry->doc, 0);
    text_printf(line, "@graph(%s, ", entry_words[entry->kind]);
    add_string(d, entry->name);
    if (entry->dataset >= 0) {
        text_printf(line, ", data = %s", d->module->dataset.at[entry->dataset].name);
    }
    const struct {
        const char *name;
        int64_t value, none;
    } number[] = {{"rows", entry->rows, 0},
                  {"accumulate", entry->accumulate, 0},
                  {"steps", entry->steps, -1},
                  {"epochs", entry->epochs, -1},
                  {"budget", entry->budget, -1},
                  {"rounding", entry->rounding, 0},
                  {"bf16", entry->half == TY_BF16, 0},
                  {"f16", entry->half == TY_F16, 0},
                  {"always", entry->always, 0},
                  {"rounds", entry->rounds, 0}};
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        if (number[i].value != number[i].none) {
            text_printf(line, ", %s = %" PRId64, number[i].name, number[i].value);
        }
    }
    add_entry(d, "train", entry->train);
    if (entry->rows_slot) {
        text_printf(line, ", in_use = %s", entry->rows_slot->name);
    }
    if (entry->gradcheck) {
        add_entry(d, "gradcheck", entry->gradcheck);
        text_add(line, ", tolerance = ");
        add_number(d, entry->tolerance);
    }
    text_add(line, ")");
    line_end(d, 0);
}

static void print_inputs(Dump *d, const Entry *entry) {
    bool doc = false;
    text_printf(&d->line, "entry e%d(", entry_number(d, entry));
    for (int i = 0; i < entry->input.count; i++) {
        doc = doc || entry->input.at[i]->doc;
    }
    if (doc) {
        line_end(d, 0);
    }
    for (int i = 0; i < entry->input.count; i++) {
        const Slot *slot = entry->input.at[i];
        bool last = i + 1 == entry->input.count;
        print_doc(d, slot->doc, 4);
        text_printf(&d->line, "%s: ", slot->name);
        add_type(d, slot->type);
        add_range(d, slot->lo, slot->hi);
        if (slot->optional) {
            text_add(&d->line, " = ");
            add_number(d, slot->initial);
        }
        if (!last) {
            text_add(&d->line, doc ? "," : ", ");
        }
        if (doc) {
            line_end(d, 4);
        }
    }
    text_add(&d->line, ") {");
    line_end(d, 0);
}

static void print_entry(Dump *d, const Entry *entry) {
    Text *line = &d->line;
    print_entry_head(d, entry);
    print_inputs(d, entry);
    print_nodes(d, entry->region, 4);
    for (int k = 0; k < entry->out.count; k++) {
        const EntryOut *o = &entry->out.at[k];
        if (k == 0) {
            text_add(line, "return");
            line_end(d, 4);
        }
        text_printf(line, "core.%s(n%u", out_words[o->role], entry->region->out.at[k]->id);
        if (o->name) {
            text_add(line, ", name = ");
            add_string(d, o->name);
        }
        if (o->slot) {
            text_add(line, ", slot = ");
            add_slot_name(d, o->slot);
        }
        if (o->half != TY_ERROR) {
            text_printf(line, ", half = %s", elem_name(o->half));
        }
        text_add(line, k + 1 < entry->out.count ? ")," : ");");
        line_end(d, 8);
    }
    text_add(line, "}");
    line_end(d, 0);
}

static void print_head(Dump *d) {
    const Module *module = d->module;
    print_doc(d, module->doc, 0);
    text_printf(&d->line, "@graph(float = %s", elem_name(module->graph->float_type));
    for (int i = 0; i < module->phase.count; i++) {
        bool turns = i > 0 && module->phase.at[i].phase == module->phase.at[i - 1].phase;
        text_add(&d->line, i == 0 ? ", phase = [[" : turns ? ", " : "], [");
        add_string(d, module->phase.at[i].name);
    }
    text_add(&d->line, module->phase.count > 0 ? "]])" : ")");
    line_end(d, 0);
    text_add(&d->line, "use core;");
    line_end(d, 0);
    fprintf(d->out, "\n");
}

static void dump_open(Dump *d, FILE *out) {
    *d = (Dump){.out = out};
    d->line.arena = &d->arena;
}

void region_dump(const Region *region, FILE *out, int indent) {
    Dump d;
    dump_open(&d, out);
    collect(&d, region);
    print_tables(&d);
    print_adjoints(&d);
    print_nodes(&d, region, indent);
    arena_free(&d.arena);
}

void module_dump(const Module *module, FILE *out) {
    Dump d;
    dump_open(&d, out);
    d.module = module;
    for (int i = 0; i < module->entry.count; i++) {
        collect(&d, module->entry.at[i]->region);
    }
    print_head(&d);
    for (int i = 0; i < module->slot.count; i++) {
        print_slot(&d, module->slot.at[i], i);
    }
    for (int i = 0; i < module->dataset.count; i++) {
        print_data(&d, &module->dataset.at[i]);
    }
    print_tables(&d);
    print_adjoints(&d);
    for (int i = 0; i < module->entry.count; i++) {
        print_entry(&d, module->entry.at[i]);
    }
    arena_free(&d.arena);
}
