/* host: see the header. Every initialiser follows the order of the fields in runtime/model.h: C++
 * knows no designated ones before C++20. */
#include "emit/host.h"

#include "emit/api.h"
#include "emit/entry.h"
#include "emit/features.h"
#include "emit/layers.h"
#include "emit/profile.h"
#include "emit/trace.h"

#include <stdlib.h>
#include <string.h>

const char *host_dtype(Elem elem) {
    static const char *const names[TY_COUNT] = {
        [TY_BOOL] = "MD_BOOL", [TY_I8] = "MD_I8",     [TY_I16] = "MD_I16", [TY_I32] = "MD_I32",
        [TY_I64] = "MD_I64",   [TY_U8] = "MD_U8",     [TY_U16] = "MD_U16", [TY_U32] = "MD_U32",
        [TY_F16] = "MD_F16",   [TY_BF16] = "MD_BF16", [TY_F32] = "MD_F32", [TY_F64] = "MD_F64",
    };
    if (names[elem] == NULL) {
        BUG("%s has no dtype", elem_name(elem));
    }
    return names[elem];
}

/* "MD_F32, 2, {8, 3}, 96" */
static void print_type(Text *out, Type type) {
    text_printf(out, "%s, %d, {", host_dtype(type.elem), type.rank);
    for (int i = 0; i < type.rank; i++) {
        text_printf(out, "%s%lld", i > 0 ? ", " : "", (long long)type.dim[i]);
    }
    text_printf(out, "%s}, %lld", type.rank == 0 ? "0" : "", (long long)type_bytes(type));
}

/* ---- adapters ------------------------------------------------------------------------------- */

static void print_in(const Emit *e, const ProgramEntry *entry, const ProgramEntry *owner,
                     Text *out) {
    if (!api_has_inputs(entry)) {
        return;
    }
    text_printf(out, "    const %s in = {", api_in_type(e, entry));
    for (int i = 0; i < owner->entry->input.count; i++) {
        const Slot *slot = owner->entry->input.at[i];
        text_printf(out, "%s%s(const %s *)call->in[%d]",
                    i == 0       ? ""
                    : i % 3 == 0 ? ",\n        "
                                 : ", ",
                    slot->type.rank == 0 ? "*" : "", elem_c_name(slot->type.elem), i);
    }
    text_add(out, "};\n");
}

static void print_values(const Emit *e, const ProgramEntry *entry, OutRole role, int *index,
                         Text *out) {
    for (int i = 0; i < entry->entry->out.count; i++) {
        if (entry->entry->out.at[i].role != role) {
            continue;
        }
        const char *field = field_name(e, entry->entry->out.at[i].name);
        const Type *type = result_buf(entry, i)->type;
        if (type->rank > 0) {
            int n = (int)type_count(*type);
            text_printf(out,
                        "    for (int i = 0; i < %d; i++) {\n"
                        "        call->values[%d + i] = (double)out.%s[i];\n    }\n",
                        n, *index, field);
            *index += n;
        } else {
            text_printf(out, "    call->values[%d] = (double)out.%s;\n", (*index)++, field);
        }
    }
}

/* A result of a train that is one number goes to the log beside the metrics. */
static bool is_extra(const ProgramEntry *entry, int out) {
    OutRole role = entry->entry->out.at[out].role;
    return role == OUT_GRAD_NORM || role == OUT_SCALED_NORM ||
           (role == OUT_RESULT && result_buf(entry, out)->type->rank == 0);
}

/* 1 + which extra is the norm of scaled gradients; 0: none. */
static int scaled_extra(const ProgramEntry *entry) {
    int at = 0;
    for (int i = 0; i < entry->entry->out.count; i++) {
        at += is_extra(entry, i);
        if (entry->entry->out.at[i].role == OUT_SCALED_NORM) {
            return at;
        }
    }
    return 0;
}

bool host_has_scaled(const Program *p) {
    bool has = false;
    for (int i = 0; i < p->entry.count; i++) {
        has = has || scaled_extra(p->entry.at[i]) > 0;
    }
    return has;
}

static void print_adapter(const Emit *e, const ProgramEntry *entry, Text *out) {
    const Entry *source = entry->entry;
    const ProgramEntry *owner = source->kind == ENTRY_EVAL ? entry_of(e->p, source->train) : entry;
    bool results = api_has_results(entry), inputs = api_has_inputs(entry);
    text_printf(out, "static int %s_call(void *instance, const md_call *call) {\n", entry->c_name);
    print_in(e, entry, owner, out);
    if (results) {
        text_printf(out, "    %s out;\n%s", api_out_type(e, entry),
                    source->kind == ENTRY_CALL ? "" : "    memset(&out, 0, sizeof out);\n");
    } else if (!inputs) {
        text_add(out, "    (void)call;\n");
    }
    profile_open(e, entry, out);
    text_printf(out, "    int code = %s((struct %s *)instance%s%s%s);\n", entry->c_name, e->prefix,
                inputs ? ", &in" : "", source->kind == ENTRY_EVAL ? ", call->rows" : "",
                results ? ", &out" : "");
    profile_close(e, entry, out);
    int index = 0;
    if (source->kind == ENTRY_TRAIN) {
        print_values(e, entry, OUT_LOSS, &index, out);
        print_values(e, entry, OUT_METRIC, &index, out);
        for (int i = 0; i < source->out.count; i++) {
            if (is_extra(entry, i)) {
                text_printf(out, "    call->values[%d] = (double)out.%s;\n", index++,
                            field_name(e, source->out.at[i].name));
            }
        }
    } else if (source->kind == ENTRY_EVAL) {
        print_values(e, entry, OUT_SUM, &index, out);
    } else {
        for (int i = 0; i < source->out.count; i++) {
            if (out_is_result(source->out.at[i].role)) { /* scalars too: where they lie */
                text_printf(out, "    call->out[%d] = ((struct %s *)instance)->io + %lld;\n",
                            index++, e->prefix, (long long)result_buf(entry, i)->offset);
            }
        }
    }
    text_add(out, "    return code;\n}\n\n");
}

static void print_end_adapter(const Emit *e, const ProgramEntry *entry, Text *out) {
    const ProgramEntry *eval = entry_eval(e->p, entry->entry->train, ENTRY_EVAL);
    text_printf(out,
                "static void %s_call(const void *instance, const void *sums, double *values) {\n"
                "    %s out;\n    memset(&out, 0, sizeof out);\n"
                "    (void)%s((const struct %s *)instance, (const %s_sums *)sums, &out);\n",
                entry->c_name, api_out_type(e, entry), entry->c_name, e->prefix, eval->c_name);
    for (int i = 0; i < entry->entry->out.count; i++) {
        text_printf(out, "    values[%d] = (double)out.%s;\n", i,
                    field_name(e, entry->entry->out.at[i].name));
    }
    text_add(out, "}\n\n");
}

bool host_is_pass(const Program *p, const Entry *entry) {
    bool named = module_phase(p->module, entry) >= 0;
    return named && entry->kind == ENTRY_CALL && entry->train == NULL;
}

bool host_has_passes(const Program *p) {
    bool has = false;
    for (int i = 0; i < p->entry.count; i++) {
        has = has || host_is_pass(p, p->entry.at[i]->entry);
    }
    for (int i = 0; i < p->module->dataset.count; i++) {
        has = has || p->module->dataset.at[i].cursor != NULL;
    }
    return has;
}

/* Do the tables have the fields that are for passes? */
static bool knows_passes(const Emit *e) {
    return host_has_passes(e->p) || e->c->opt.whole_runtime;
}

/* ---- data sets ------------------------------------------------------------------------------ */

static void print_dataset(const Emit *e, const DataSet *set, int index, Text *out) {
    const bool made = features_has(e, "made");
    text_printf(out,
                "static const md_file %s_files_%d[] = {\n    /* name, {train, held out, test}%s "
                "*/\n",
                e->prefix, index, made ? ", rows, seed" : "");
    for (int i = 0; i < set->file.count; i++) {
        text_add(out, "    {");
        text_literal(out, set->file.at[i].name);
        for (int part = 0; part < PARTS; part++) {
            text_add(out, part == 0 ? ", {" : ", ");
            text_literal(out, set->file.at[i].path[part]);
        }
        text_add(out, "}");
        if (made) {
            text_printf(out, ", %lld, %lld", (long long)set->file.at[i].rows,
                        (long long)set->file.at[i].seed);
        }
        text_add(out, "},\n");
    }
    text_printf(out, "};\n\nstatic const md_field %s_fields_%d[] = {\n", e->prefix, index);
    const bool norms = features_has(e, "norm"), windows = features_has(e, "windows");
    text_printf(out,
                "    /* name, file, source, first, count,%s raw, dtype, rank, shape, row_bytes,\n"
                "     * lo, hi, load",
                windows ? " stride," : "");
    text_add(out, norms ? ", norm, centre, spread, known */\n" : " */\n");
    for (int i = 0; i < set->field.count; i++) {
        static const char *const source[] = {"MD_COLUMNS", "MD_RECORD", "MD_WINDOW", "MD_MADE"};
        const DataField *field = &set->field.at[i];
        bool window = field->source == FIELD_WINDOW;
        text_add(out, "    {");
        text_literal(out, field->name);
        text_printf(out, ", %d, %s, %lld, %lld, ", field->file, source[field->source],
                    (long long)(window ? field->offset : field->first),
                    (long long)field->raw_count);
        if (windows) {
            text_printf(out, "%lld, ", (long long)(window ? field->stride : 0));
        }
        text_printf(out, "%s, ", host_dtype(field->raw));
        print_type(out, field->type);
        const ProgramEntry *load = field->load != NULL ? entry_of(e->p, field->load) : NULL;
        static const char *const norm[] = {"MD_NORM_NONE", "MD_NORM_STANDARDIZE", "MD_NORM_MINMAX"};
        text_printf(out, ", %lld, %lld, %s", (long long)field->lo, (long long)field->hi,
                    load != NULL ? load->c_name : "NULL");
        if (norms) {
            text_printf(out, ", %s, %d, %d, %d", norm[field->norm],
                        field->centre != NULL ? field->centre->index : 0,
                        field->spread != NULL ? field->spread->index : 0,
                        field->known != NULL ? field->known->index : 0);
        }
        text_add(out, "},\n");
    }
    text_add(out, "};\n\n");
}

static void print_datasets(const Emit *e, Text *out) {
    const Module *module = e->p->module;
    for (int i = 0; i < module->dataset.count; i++) {
        print_dataset(e, &module->dataset.at[i], i, out);
    }
    if (module->dataset.count == 0) {
        return;
    }
    const bool ordered = features_has(e, "ordered");
    text_printf(out,
                "static const md_dataset %s_datasets[] = {\n"
                "    /* name, files, file_count, fields, field_count, every%s%s */\n",
                e->prefix, ordered ? ", order" : "", knows_passes(e) ? ", in_ring, counter" : "");
    for (int i = 0; i < module->dataset.count; i++) {
        const DataSet *set = &module->dataset.at[i];
        text_add(out, "    {");
        text_literal(out, set->name);
        text_printf(out, ", %s_files_%d, %d, %s_fields_%d, %d, {0, %lld, %lld}%s", e->prefix, i,
                    set->file.count, e->prefix, i, set->field.count,
                    (long long)set->every[PART_HELD], (long long)set->every[PART_TEST],
                    !ordered       ? ""
                    : set->stream  ? ", MD_STREAMS"
                    : set->shuffle ? ", MD_SHUFFLED"
                                   : ", MD_AS_FILED");
        if (knows_passes(e)) {
            const Buf *counter = set->cursor ? e->p->slot.at[set->cursor->index] : NULL;
            text_printf(out, ", %d, %lld", counter != NULL,
                        counter != NULL ? (long long)counter->offset : 0);
        }
        text_add(out, "},\n");
    }
    text_add(out, "};\n\n");
}

/* ---- entries -------------------------------------------------------------------------------- */

static int field_of(const Emit *e, const Entry *entry, const Slot *slot) {
    enum { FROM_OPTIONS = -1, ROWS_IN_USE = -2 }; /* as in runtime/model.h */
    if (slot == entry->rows_slot) {
        return ROWS_IN_USE;
    }
    if (entry->dataset >= 0) {
        const DataSet *set = &e->p->module->dataset.at[entry->dataset];
        for (int i = 0; i < set->field.count; i++) {
            if (str_eq(set->field.at[i].name, slot->c_name)) {
                return i;
            }
        }
    }
    return FROM_OPTIONS;
}

static void print_port(Text *out, const char *name, Type type, int field, int64_t offset,
                       const Slot *in, bool scalars) {
    text_add(out, "    {");
    text_literal(out, name);
    text_add(out, ", ");
    print_type(out, type);
    text_printf(out, ", %d, %lld, %lld, %lld", field, (long long)offset,
                (long long)(in ? in->lo : 0), (long long)(in ? in->hi : 0));
    if (scalars) {
        text_printf(out, ", %d, ", in && in->optional);
        text_double(out, in && in->optional ? in->initial : 0);
    }
    text_add(out, "},\n");
}

/* Tables of one entry; each is left out when it would be empty. */
typedef struct {
    int inputs, outputs, hypers, needs, metrics, extras, pushes;
    const Buf *plan, *epoch;
} Counts;

bool host_is_hyper(const Slot *slot, const Entry *entry) {
    return api_settable(slot, entry) && !str_eq(slot->label, "steps") &&
           !str_eq(slot->label, "epoch");
}

static void print_scalar(const char *name, const Buf *buf, Text *out) {
    text_add(out, "{");
    text_literal(out, name);
    text_printf(out, ", %s, %lld}", host_dtype(buf->type->elem), (long long)buf->offset);
}

static const Buf *counter_of(const Emit *e, const Entry *entry, const char *label) {
    for (int i = 0; i < e->p->slot.count; i++) {
        const Slot *slot = e->p->slot.at[i]->slot;
        if (slot->kind == SLOT_STATE && slot->role == STATE_COUNTER && slot->entry == entry &&
            slot->label != NULL && str_eq(slot->label, label)) {
            return e->p->slot.at[i];
        }
    }
    return NULL;
}

/* A line of the log must hold the names and numbers of all trains, which a run may have. */
void host_sizes(const Emit *e, Text *out) {
    enum { USUAL = 4096, KEYS = 512, NUMBER = 40 };
    size_t most = KEYS;
    for (int i = 0; i < e->p->entry.count; i++) {
        const ProgramEntry *entry = e->p->entry.at[i];
        for (int k = 0; entry->entry->kind == ENTRY_TRAIN && k < entry->entry->out.count; k++) {
            const EntryOut *field = &entry->entry->out.at[k];
            bool said = field->role == OUT_METRIC || is_extra(entry, k);
            most += said ? strlen(field->name) + NUMBER : 0;
        }
    }
    if (most > USUAL) {
        text_printf(out, "#define MD_LINE_BYTES %zu\n\n", most);
    }
}

static void print_names(const Emit *e, const ProgramEntry *entry, bool extras, int *count,
                        Text *out) {
    Text list = {.arena = e->arena};
    for (int i = 0; i < entry->entry->out.count; i++) {
        const EntryOut *field = &entry->entry->out.at[i];
        if (extras ? is_extra(entry, i) : field->role == OUT_METRIC) {
            text_add(&list, (*count)++ > 0 ? ", " : "");
            text_literal(&list, field->name);
        }
    }
    if (*count > 0) {
        text_printf(out, "static const char *const %s_%s[] = {%s};\n", entry->c_name,
                    extras ? "extras" : "metrics", list.at);
    }
}

/* Rows that go into rings, by the count of each. */
static int print_pushes(const Emit *e, const ProgramEntry *entry, Text *out) {
    VEC(const Buf *) done = {0};
    for (int i = 0; i < entry->step.count && knows_passes(e); i++) {
        const Step *step = entry->step.at[i];
        bool known = step->kind != STEP_PUSH;
        for (int k = 0; k < done.count && !known; k++) {
            known = done.at[k] == step->cursor;
        }
        if (known) {
            continue;
        }
        if (done.count == 0) {
            text_printf(out, "static const md_push %s_pushes[] = {\n    /* counter, rows */\n",
                        entry->c_name);
        }
        VEC_PUSH(e->arena, &done, step->cursor);
        text_printf(out, "    {%lld, %lld},\n", (long long)step->cursor->offset,
                    step->in_use != NULL ? 0 : (long long)step->src->type->dim[0]);
    }
    text_add(out, done.count > 0 ? "};\n" : "");
    return done.count;
}

static Counts print_entry_tables(const Emit *e, const ProgramEntry *entry, Text *out) {
    const Entry *source = entry->entry;
    Counts n = {0};
    const bool scalars = features_has(e, "scalars");
    const char *columns =
        scalars ? "    /* name, dtype, rank, shape, bytes, field, io_offset, lo, hi, optional, "
                  "initial */\n"
                : "    /* name, dtype, rank, shape, bytes, field, io_offset, lo, hi */\n";
    for (int i = 0; i < source->input.count; i++) {
        const Slot *slot = source->input.at[i];
        if (n.inputs++ == 0) {
            text_printf(out, "static const md_port %s_inputs[] = {\n%s", entry->c_name, columns);
        }
        print_port(out, slot->c_name, slot->type, field_of(e, source, slot),
                   input_buf(entry, slot)->offset, slot, scalars);
    }
    text_add(out, n.inputs > 0 ? "};\n" : "");
    for (int i = 0; source->kind == ENTRY_CALL && i < source->out.count; i++) {
        if (out_is_result(source->out.at[i].role)) {
            if (n.outputs++ == 0) {
                text_printf(out, "static const md_port %s_outputs[] = {\n%s", entry->c_name,
                            columns);
            }
            print_port(out, source->out.at[i].name, *result_buf(entry, i)->type, -1, 0, NULL,
                       scalars);
        }
    }
    text_add(out, n.outputs > 0 ? "};\n" : "");
    for (int i = 0; i < e->p->slot.count; i++) {
        if (host_is_hyper(e->p->slot.at[i]->slot, source)) {
            if (n.hypers++ == 0) {
                text_printf(out,
                            "static const md_scalar %s_hypers[] = {\n"
                            "    /* name, dtype, offset */\n",
                            entry->c_name);
            }
            text_add(out, "    ");
            print_scalar(e->p->slot.at[i]->slot->label, e->p->slot.at[i], out);
            text_add(out, ",\n");
        }
    }
    text_add(out, n.hypers > 0 ? "};\n" : "");
    for (int i = 0; i < source->out.count; i++) {
        const EntryOut *o = &source->out.at[i];
        if (o->role != OUT_NEED) {
            continue;
        }
        if (n.needs++ == 0) {
            text_printf(out,
                        "static const md_need %s_needs[] = {\n"
                        "    /* ring, offset of its count, rows, line */\n",
                        entry->c_name);
        }
        text_add(out, "    {");
        text_literal(out, str_ndup(e->arena, o->slot->name, strcspn(o->slot->name, ".")));
        text_printf(out, ", %lld, %lld, %d},\n", (long long)e->p->slot.at[o->slot->index]->offset,
                    (long long)o->least, loc_line_of(e, o->loc));
    }
    text_add(out, n.needs > 0 ? "};\n" : "");
    n.pushes = print_pushes(e, entry, out);
    n.plan = counter_of(e, source, "steps");
    n.epoch = counter_of(e, source, "epoch");
    for (int k = 0; k < 2; k++) {
        const Buf *buf = k == 0 ? n.plan : n.epoch;
        if (buf != NULL) {
            text_printf(out, "static const md_scalar %s_%s = ", entry->c_name,
                        k == 0 ? "plan" : "epoch");
            print_scalar(buf->slot->label, buf, out);
            text_add(out, ";\n");
        }
    }
    if (source->kind == ENTRY_TRAIN) {
        print_names(e, entry, false, &n.metrics, out);
        print_names(e, entry, true, &n.extras, out);
    }
    text_add(out, "\n");
    return n;
}

static const char *table_name(const Emit *e, const ProgramEntry *entry, const char *table,
                              int count) {
    return count > 0 ? str_printf(e->arena, "%s_%s, %d", entry->c_name, table, count) : "NULL, 0";
}

static int sums_of(const ProgramEntry *eval) {
    int n = 0;
    for (int i = 0; i < eval->entry->out.count; i++) {
        bool sum = eval->entry->out.at[i].role == OUT_SUM;
        n += sum ? (int)type_count(*result_buf(eval, i)->type) : 0;
    }
    return n;
}

static void print_entry(const Emit *e, const ProgramEntry *entry, const Counts *n, Text *out) {
    const Entry *source = entry->entry;
    bool train = source->kind == ENTRY_TRAIN;
    const ProgramEntry *eval = train ? entry_eval(e->p, source, ENTRY_EVAL) : NULL;
    const ProgramEntry *end = train ? entry_eval(e->p, source, ENTRY_EVAL_END) : NULL;
    bool pass = host_is_pass(e->p, source), data = (train || pass) && source->dataset >= 0;
    text_add(out, "    {");
    text_literal(out, source->name);
    text_printf(out, ", %s, %s_call,\n     %s, %s,",
                train  ? "MD_TRAIN"
                : pass ? "MD_PASS"
                       : "MD_ENTRY",
                entry->c_name, table_name(e, entry, "inputs", n->inputs),
                table_name(e, entry, "outputs", n->outputs));
    if (features_has(e, "hypers")) {
        text_printf(out, " %s,", table_name(e, entry, "hypers", n->hypers));
    }
    text_add(out, "\n");
    if (features_has(e, "rings")) {
        const ProgramEntry *fill = train ? entry_eval(e->p, source, ENTRY_CALL) : NULL;
        text_printf(out, "     %s, %s,\n", table_name(e, entry, "needs", n->needs),
                    fill != NULL ? str_printf(e->arena, "%s_call", fill->c_name) : "NULL");
    }
    text_printf(out, "     %d, %lld, %lld, %lld, %lld, %s, %s,\n", data ? source->dataset : -1,
                (long long)(data ? source->rows : 0),
                (long long)(data && eval != NULL             ? eval->entry->rows
                            : data && source->accumulate > 0 ? source->rows / source->accumulate
                            : data                           ? source->rows
                                                             : 0),
                (long long)(train && source->steps > 0 ? source->steps : 0),
                (long long)(train && source->epochs > 0 ? source->epochs : 0),
                n->plan != NULL ? str_printf(e->arena, "&%s_plan", entry->c_name) : "NULL",
                n->epoch != NULL ? str_printf(e->arena, "&%s_epoch", entry->c_name) : "NULL");
    bool whole = eval != NULL && end != NULL;
    text_printf(out, "     %s, %s, %s, %d, %s, %s", table_name(e, entry, "metrics", n->metrics),
                table_name(e, entry, "extras", n->extras),
                whole ? str_printf(e->arena, "%s_call", eval->c_name) : "NULL",
                whole ? sums_of(eval) : 0,
                whole ? str_printf(e->arena, "%s_call", end->c_name) : "NULL",
                train ? str_printf(e->arena, "&%s_traced", entry->c_name) : "NULL");
    if (knows_passes(e)) {
        text_printf(out, ",\n     %s", table_name(e, entry, "pushes", n->pushes));
    }
    if (host_has_scaled(e->p) || e->c->opt.whole_runtime) {
        text_printf(out, ",\n     %d", scaled_extra(entry));
    }
    text_add(out, "},\n");
}

static void print_entries(const Emit *e, Text *out, int *count) {
    Text tables = {.arena = e->arena}, rows = {.arena = e->arena};
    for (int i = 0; i < e->p->entry.count; i++) {
        const ProgramEntry *entry = e->p->entry.at[i];
        if (entry->entry->kind == ENTRY_TRAIN || entry->entry->kind == ENTRY_CALL) {
            Counts n = print_entry_tables(e, entry, &tables);
            print_entry(e, entry, &n, &rows);
            (*count)++;
        }
    }
    if (*count == 0) {
        return;
    }
    text_add(out, tables.at);
    text_printf(
        out,
        "static const md_entry %s_entries[] = {\n"
        "    /* name, kind, call,\n"
        "     * inputs, input_count, outputs, output_count,%s%s\n"
        "     * dataset, rows, eval_rows, steps, epochs, plan, epoch,\n"
        "     * metrics, metric_count, extras, extra_count, eval, eval_sums, eval_end */\n%s};\n\n",
        e->prefix, features_has(e, "hypers") ? " hypers, hyper_count," : "",
        features_has(e, "rings") ? " needs, need_count, fill," : "", rows.at);
}

/* ---- phases --------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b) {
    const Buf *x = *(const Buf *const *)a, *y = *(const Buf *const *)b;
    int region = (x->kind == BUF_STATE) - (y->kind == BUF_STATE);
    return region != 0 ? region : x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Of a program that goes through phases: what lies side by side and is there in the same ones. */
static int print_spans(const Emit *e, Text *out) {
    const Program *p = e->p;
    int slots = 0, n = 0;
    const Buf **slot = ARENA_ARRAY(e->arena, const Buf *, p->slot.count + 1);
    for (int i = 0; i < p->slot.count && p->phase.count > 0; i++) {
        slot[slots] = p->slot.at[i];
        slots += slot[slots]->bytes > 0;
    }
    qsort(slot, (size_t)slots, sizeof *slot, by_place);
    for (int i = 0, next = 0; i < slots; i = next) {
        const Buf *one = slot[i];
        int64_t end = one->offset;
        for (; next < slots && slot[next]->kind == one->kind && slot[next]->begins == one->begins &&
               slot[next]->ends == one->ends;
             next++) {
            end += align_up(slot[next]->bytes, MD_ALIGN);
        }
        if (n++ == 0) {
            text_printf(out,
                        "static const md_span %s_spans[] = {\n"
                        "    /* region, begin, end, first and last phase */\n",
                        e->prefix);
        }
        text_printf(out, "    {%s, %lld, %lld, %d, %d},\n",
                    one->kind == BUF_PARAM ? "MD_PARAMS" : "MD_STATE", (long long)one->offset,
                    (long long)end, one->begins, one->ends);
    }
    text_add(out, n > 0 ? "};\n" : "");
    for (int i = 0; i < p->phase.count && n > 0; i++) {
        text_printf(out, i == 0 ? "static const size_t %s_arenas[] = { /* by phase */" : "%s",
                    i == 0 ? e->prefix : ",");
        text_printf(out, "%s%lld", i % 8 == 0 ? "\n    " : " ", (long long)p->phase.at[i].arena);
    }
    text_add(out, n > 0 ? "\n};\n\n" : "");
    return n;
}

/* `init` of a phase behind the first; NULL: nothing but zeros begins there. */
static const ProgramEntry *init_of(const Program *p, int phase) {
    for (int i = 0; i < p->entry.count; i++) {
        const Entry *entry = p->entry.at[i]->entry;
        if (entry->kind == ENTRY_INIT && entry->begins == phase) {
            return p->entry.at[i];
        }
    }
    return NULL;
}

static void print_inits(const Emit *e, Text *out) {
    Text table = {.arena = e->arena};
    text_printf(&table, "%s_host_init", e->prefix);
    for (int k = 1; k < e->p->phase.count; k++) {
        const ProgramEntry *init = init_of(e->p, k);
        if (init != NULL) {
            text_printf(out,
                        "static int %s_call(void *instance, uint64_t seed) {\n"
                        "    return %s((struct %s *)instance, seed);\n}\n\n",
                        init->c_name, init->c_name, e->prefix);
        }
        text_printf(&table, ",\n    %s%s", init ? init->c_name : "NULL", init ? "_call" : "");
    }
    if (e->p->phase.count > 0) {
        text_printf(out,
                    "static int (*const %s_inits[])(void *, uint64_t) = { /* by phase */\n"
                    "    %s\n};\n\n",
                    e->prefix, table.at);
    }
}

static void print_phases(const Emit *e, Text *out) {
    const Module *module = e->p->module;
    for (int i = 0; i < module->phase.count; i++) {
        if (i == 0) {
            text_printf(out, "static const md_phase %s_phases[] = {\n    /* entry, phase */\n",
                        e->prefix);
        }
        int entry = 0; /* among the rows of print_entries */
        for (int k = 0; k < e->p->entry.count; k++) {
            const Entry *other = e->p->entry.at[k]->entry;
            if (str_eq(other->name, module->phase.at[i].name) &&
                (other->kind == ENTRY_TRAIN || host_is_pass(e->p, other))) {
                break;
            }
            entry += other->kind == ENTRY_TRAIN || other->kind == ENTRY_CALL;
        }
        text_printf(out, "    {%d, %d},\n", entry, module->phase.at[i].phase);
    }
    text_add(out, module->phase.count > 0 ? "};\n\n" : "");
}

/* What `info` says in front of the table of memory, then behind it. */
static void print_info(const Emit *e, Text *out) {
    NameList lines[2] = {{{0}, {0}}, {{0}, {0}}};
    const char *source = path_base(e->source->name);
    names_push(e->arena, &lines[0],
               str_printf(e->arena, "model '%s' from %s\n\n", e->prefix, source));
    names_push(e->arena, &lines[0],
               str_printf(e->arena, "entries%31s %16s\n", "arena bytes", "FLOPs"));
    for (int i = 0; i < e->p->entry.count; i++) {
        const ProgramEntry *entry = e->p->entry.at[i];
        const Entry *source_of = entry->entry;
        if (source_of->kind != ENTRY_TRAIN && source_of->kind != ENTRY_CALL) {
            continue;
        }
        names_push(e->arena, &lines[0],
                   str_printf(e->arena, "  %-20s %-6s %9lld %16lld\n", source_of->name,
                              source_of->kind == ENTRY_TRAIN ? "train" : "entry",
                              (long long)entry->arena_bytes, (long long)entry->flops));
        for (int k = 0; k < e->p->slot.count; k++) {
            const Slot *slot = e->p->slot.at[k]->slot;
            if (host_is_hyper(slot, source_of)) {
                names_push(e->arena, &lines[0],
                           str_printf(e->arena, "    --set %s=%.9g\n", slot->label, slot->initial));
            }
        }
        for (int k = 0; k < source_of->input.count; k++) {
            const Slot *slot = source_of->input.at[k];
            if (slot->optional) {
                names_push(e->arena, &lines[0],
                           str_printf(e->arena, "    --set %s=%.*g\n", slot->c_name,
                                      elem_is_int(slot->type.elem) ? 17 : 9, slot->initial));
            }
        }
    }
    names_push(e->arena, &lines[0], "\n");
    layers_info(e, &lines[1]);
    text_printf(out, "static const char *const %s_info[] = { /* around the table of memory */\n",
                e->prefix);
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < lines[i].name.count; k++) {
            text_add(out, "    ");
            text_literal(out, lines[i].name.at[k]);
            text_add(out, ",\n");
        }
        text_add(out, "    NULL,\n");
    }
    text_add(out, "};\n\n");
}

/* ---- the whole ------------------------------------------------------------------------------ */

void host_print(const Emit *e, const Printer *printer, Text *out) {
    for (int i = 0; i < e->p->entry.count; i++) {
        const ProgramEntry *entry = e->p->entry.at[i];
        switch (entry->entry->kind) {
        case ENTRY_LOAD: entry_load(e, printer, entry, out); break;
        case ENTRY_EVAL_END: print_end_adapter(e, entry, out); break;
        case ENTRY_TRAIN:
        case ENTRY_CALL:
        case ENTRY_EVAL: print_adapter(e, entry, out); break;
        case ENTRY_INIT:
        case ENTRY_TEST: break;
        }
    }
    if (api_is_called(e)) {
        text_printf(out,
                    "static int %s_host_bind(void *instance, const md_memory *memory) {\n"
                    "    return %s_bind((struct %s *)instance, memory);\n}\n\n",
                    e->prefix, e->prefix, e->prefix);
    }
    text_printf(out,
                "static int %s_host_init(void *instance, uint64_t seed) {\n"
                "    return %s_init((struct %s *)instance, seed);\n}\n\n",
                e->prefix, e->prefix, e->prefix);
    print_inits(e, out);
    print_datasets(e, out);
    int entries = 0, datasets = e->p->module->dataset.count;
    print_entries(e, out, &entries);
    print_phases(e, out);
    int phases = e->p->module->phase.count, spans = print_spans(e, out);
    print_info(e, out);
    profile_tables(e, out);
    text_printf(out, "int main(int argc, char **argv) {\n    static %s instance;\n", e->prefix);
    if (trace_notes(e) > 0 && !e->c->opt.nan) {
        text_printf(out, "    static uint32_t notes[%d];\n", trace_notes(e));
    }
    if (api_has_limits(e->p)) {
        text_add(out, "    static const int limit_lines[] = {0");
        for (int i = 0; i < e->p->entry.count; i++) {
            for (int k = 0; k < e->p->entry.at[i]->limit.count; k++) {
                text_printf(out, ", %d", loc_line_of(e, e->p->entry.at[i]->limit.at[k]->loc));
            }
        }
        text_add(out, "};\n");
    }
    text_add(out, "    const md_model descriptor = {\n        ");
    text_literal(out, e->prefix);
    text_add(out, ", ");
    text_literal(out, path_base(e->source->name));
    text_printf(out, ", &instance, %s_host_bind, %s_host_init, %s_strerror,\n", e->prefix,
                e->prefix, e->prefix);
    text_printf(out,
                "        %s_PARAMS_BYTES, %s_STATE_BYTES, %s_IO_BYTES, %s_ARENA_BYTES, %s_ALIGN,\n",
                e->upper, e->upper, e->upper, e->upper, e->upper);
    text_printf(out, "        %lld, %d, /* stack_bytes, threads */\n        %s,\n",
                (long long)e->p->stack_bytes, e->c->opt.threads, api_tensors(e));
    const char *notes = trace_notes(e) == 0 ? "NULL" : e->c->opt.nan ? "instance.trace" : "notes";
    const char *by_phase =
        spans > 0 ? str_printf(e->arena, " %s_spans, %d, %s_arenas, %d, %s_inits,", e->prefix,
                               spans, e->prefix, e->p->phase.count, e->prefix)
        : e->c->opt.whole_runtime ? " NULL, 0, NULL, 0, NULL,"
                                  : "";
    const char *in_phases =
        phases > 0                  ? str_printf(e->arena, " %s_phases, %d,", e->prefix, phases)
        : features_has(e, "phases") ? " NULL, 0,"
                                    : "";
    text_printf(out, "        %s, %d, %s, %d,%s%s %s_info,\n        %s%s, %s,\n",
                datasets > 0 ? str_printf(e->arena, "%s_datasets", e->prefix) : "NULL", datasets,
                entries > 0 ? str_printf(e->arena, "%s_entries", e->prefix) : "NULL", entries,
                in_phases, by_phase, e->prefix,
                e->c->opt.canary          ? "&instance.damage, "
                : e->c->opt.whole_runtime ? "NULL, "
                                          : "",
                notes, str_eq(notes, "notes") ? "&instance.trace" : "NULL");
    text_add(out, api_has_limits(e->p)      ? "        &instance.limit, limit_lines,\n"
                  : e->c->opt.whole_runtime ? "        NULL, NULL,\n"
                                            : "");
    profile_descriptor(e, out);
    text_add(out, "    };\n");
    text_add(out, "    return md_main(&descriptor, argc, argv);\n}\n");
}
