/* report_api: see the header. Declarations are the texts that api.c prints, taken apart here; those
 * of the runtime's structures are written once more, and tests/suites/report.sh compares both with
 * what a C compiler makes of the header. */
#include "emit/report_api.h"

#include "emit/api.h"
#include "emit/host.h"
#include "emit/json.h"
#include "emit/trace.h"

#include <math.h>
#include <string.h>

/* ---- C ------------------------------------------------------------------------------ */

static bool is_word(char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Of "const float *x" or "char apart[64]": "name":"x","type":"float","pointer":true, the count of
 * an array, and the text itself. */
static void c_declared(Text *out, const char *key, const char *text) {
    const char *end = text + strcspn(text, "["), *name = end;
    while (name > text && is_word(name[-1])) {
        name--;
    }
    const char *type = text + (strncmp(text, "const ", 6) == 0 ? 6 : 0), *stop = name;
    bool pointer = stop > type && stop[-1] == '*';
    while (stop > type && (stop[-1] == '*' || stop[-1] == ' ')) {
        stop--;
    }
    text_printf(out, "\"%s\":\"%.*s\",\"type\":\"%.*s\",\"pointer\":%s", key, (int)(end - name),
                name, (int)(stop - type), type, pointer ? "true" : "false");
    if (*end == '[') {
        text_printf(out, ",\"count\":%.*s", (int)strcspn(end + 1, "]"), end + 1);
    }
    json_text(out, "declaration", text);
}

/* Of "int net_bind(net *m, const net_memory *mem)". */
static void c_function(const Emit *e, Text *out, const char *text) {
    const char *open = strchr(text, '('), *name = open;
    while (is_word(name[-1])) {
        name--;
    }
    text_printf(out, "{\"name\":\"%.*s\",\"returns\":\"%.*s\",\"parameters\":[", (int)(open - name),
                name, (int)(name - text) - (name[-1] == ' '), text);
    for (const char *at = open + 1; *at != ')';) {
        size_t n = strcspn(at, ",)");
        text_add(out, at > open + 1 ? ",{" : "{");
        c_declared(out, "name", str_ndup(e->arena, at, n));
        text_add(out, "}");
        at += n;
        at += *at == ',' ? 2 : 0;
    }
    text_add(out, "]");
    json_text(out, "declaration", text);
    text_add(out, "}");
}

static void c_fields(Text *out, const char *const *field) {
    text_add(out, "\"fields\":[");
    for (int i = 0; field[i] != NULL; i++) {
        text_add(out, i > 0 ? ",{" : "{");
        c_declared(out, "field", field[i]);
        text_add(out, "}");
    }
    text_add(out, "]");
}

static void c_struct(Text *out, const char *name, const char *const *field) {
    text_printf(out, "{\"struct\":\"%s\",", name);
    c_fields(out, field);
    text_add(out, "}");
}

/* ---- fields of entries -------------------------------------------------------------- */

/* Begins the object of one field. */
static void print_field(const Emit *e, const char *name, Type type, const char *role, Text *out) {
    text_add(out, "{\"name\":");
    json_string(out, name);
    text_add(out, ",");
    c_declared(out, "field", api_field(e, name, type));
    json_shape(out, type);
    json_number(out, "bytes", type_bytes(type));
    json_text(out, "role", role);
}

static bool is_of_data(const Emit *e, const Entry *entry, const Slot *slot) {
    bool any = false;
    if ((entry->kind == ENTRY_TRAIN || host_is_pass(e->p, entry)) && entry->dataset >= 0) {
        const DataSet *set = &e->p->module->dataset.at[entry->dataset];
        for (int i = 0; i < set->field.count && !any; i++) {
            any = str_eq(set->field.at[i].name, slot->c_name);
        }
    }
    return any;
}

static void print_inputs(const Emit *e, const ProgramEntry *entry, Text *out) {
    const Entry *source = entry->entry;
    const Entry *owner = source->kind == ENTRY_EVAL ? source->train : source;
    bool any = api_has_inputs(entry);
    json_text(out, "in", any ? api_in_type(e, entry) : NULL);
    text_add(out, ",\"inputs\":[");
    for (int i = 0; i < owner->input.count && any; i++) {
        const Slot *slot = owner->input.at[i];
        text_add(out, i > 0 ? ",\n    " : "\n    ");
        print_field(e, slot->c_name, slot->type, slot->target ? "target" : "input", out);
        text_add(out, ",\"required\":true"); /* functions refuse NULL */
        if (slot->optional && isfinite(slot->initial)) {
            text_printf(out, ",\"default\":%.17g", slot->initial);
        } else if (slot->optional) {
            text_add(out, ",\"default\":null"); /* JSON has no infinity */
        }
        if (slot->lo != slot->hi) {
            text_printf(out, ",\"range\":[%lld,%lld]", (long long)slot->lo, (long long)slot->hi);
        }
        if (is_of_data(e, owner, slot)) {
            json_text(out, "dataset", e->p->module->dataset.at[owner->dataset].name);
        }
        text_add(out, "}");
    }
    text_add(out, "]");
}

static const char *role_of(const ProgramEntry *entry, int out) {
    switch (entry->entry->out.at[out].role) {
    case OUT_LOSS: return "loss";
    case OUT_METRIC: return "metric";
    case OUT_GRAD_NORM:
    case OUT_SCALED_NORM: return "gradient_norm";
    case OUT_SUM: return "sum";
    default: break;
    }
    bool number = result_buf(entry, out)->type->rank == 0;
    return entry->entry->kind == ENTRY_TRAIN && number ? "scalar" : "result";
}

static void print_outputs(const Emit *e, const ProgramEntry *entry, Text *out) {
    bool first = true;
    json_text(out, "out", api_has_results(entry) ? api_out_type(e, entry) : NULL);
    text_add(out, ",\"outputs\":[");
    for (int i = 0; i < entry->entry->out.count; i++) {
        if (out_is_result(entry->entry->out.at[i].role)) {
            text_add(out, first ? "\n    " : ",\n    ");
            print_field(e, entry->entry->out.at[i].name, *result_buf(entry, i)->type,
                        role_of(entry, i), out);
            text_add(out, "}");
            first = false;
        }
    }
    text_add(out, "]");
}

/* What stays in the state from call to call and is set by a function of its own. */
static void print_scalars(const Emit *e, const ProgramEntry *entry, Text *out) {
    bool first = true;
    text_add(out, ",\"scalars\":[");
    for (int i = 0; i < e->p->slot.count; i++) {
        const Slot *slot = e->p->slot.at[i]->slot;
        if (!api_settable(slot, entry->entry)) {
            continue;
        }
        bool counter = str_eq(slot->label, "steps") || str_eq(slot->label, "epoch");
        text_add(out, first ? "{\"name\":" : ",{\"name\":");
        first = false;
        json_string(out, slot->label);
        text_printf(out, ",\"type\":\"%s\"", elem_c_name(slot->type.elem));
        json_text(out, "dtype", elem_name(slot->type.elem));
        json_text(out, "role", counter ? slot->label : "hyper");
        if (isfinite(slot->initial)) {
            text_printf(out, ",\"initial\":%.17g", slot->initial);
        } else {
            text_add(out, ",\"initial\":null");
        }
        text_add(out, ",\"function\":");
        c_function(e, out, str_printf(e->arena, "int %s", api_setter(e, entry, slot)));
        text_add(out, "}");
    }
    text_add(out, "]");
}

/* How what the calls of an evaluation gave becomes loss and metrics of all rows. */
static void print_sums(const Emit *e, const ProgramEntry *eval, const ProgramEntry *end,
                       Text *out) {
    Text add = {.arena = e->arena}, finish = {.arena = e->arena};
    VEC(const char *) field = {0};
    VEC_PUSH(e->arena, &field, "int64_t batches");
    for (int i = 0; i < eval->entry->out.count; i++) {
        if (eval->entry->out.at[i].role == OUT_SUM) {
            const char *name = field_name(e, eval->entry->out.at[i].name);
            name = api_sum(e, name, *result_buf(eval, i)->type);
            VEC_PUSH(e->arena, &field, str_printf(e->arena, "double %s", name));
        }
    }
    VEC_PUSH(e->arena, &field, NULL);
    api_eval_add(e, eval, &add);
    api_eval_end(e, end, &finish);
    text_add(out, ",\n   \"sums\":");
    c_struct(out, str_printf(e->arena, "%s_sums", eval->c_name), field.at);
    text_add(out, ",\n   \"add\":");
    c_function(e, out, add.at);
    text_add(out, ",\n   \"end\":{\"function\":");
    c_function(e, out, finish.at);
    print_outputs(e, end, out);
    text_add(out, "}");
}

void report_api_entry(const Emit *e, const ProgramEntry *entry, Text *out) {
    Text parameters = {.arena = e->arena};
    const Entry *source = entry->entry;
    api_parameters(e, entry, &parameters);
    text_add(out, ",\n   \"function\":");
    c_function(e, out, str_printf(e->arena, "int %s(%s)", entry->c_name, parameters.at));
    bool fed = source->kind == ENTRY_EVAL || source->dataset >= 0;
    if (fed && source->rows > 0) {
        json_number(out, "rows", source->rows);
    }
    print_inputs(e, entry, out);
    print_outputs(e, entry, out);
    if (source->kind == ENTRY_TRAIN || source->kind == ENTRY_CALL) {
        print_scalars(e, entry, out);
    }
    const Entry *train = source->kind == ENTRY_TRAIN ? source : source->train;
    const ProgramEntry *eval = train ? entry_eval(e->p, train, ENTRY_EVAL) : NULL;
    const ProgramEntry *end = train ? entry_eval(e->p, train, ENTRY_EVAL_END) : NULL;
    if (source->kind == ENTRY_TRAIN) {
        json_text(out, "evaluation", eval != NULL && end != NULL ? eval->c_name : NULL);
    } else if (source->kind == ENTRY_EVAL && end != NULL) {
        print_sums(e, entry, end, out);
    }
}

/* ---- what entries share ------------------------------------------------------------- */

/* The structures of runtime/ that a host meets. */
static const char *const memory_fields[] = {
    "void *params",    "void *state",         "void *io",
    "void *arena",     "size_t params_bytes", "size_t state_bytes",
    "size_t io_bytes", "size_t arena_bytes",  NULL};
static const char *const device_memory_fields[] = {
    "void *params",       "void *state",         "void *io",
    "void *arena",        "void *host",          "size_t params_bytes",
    "size_t state_bytes", "size_t io_bytes",     "size_t arena_bytes",
    "size_t host_bytes",  "cudaStream_t stream", NULL};
static const char *const tensor_fields[] = {
    "const char *name", "md_dtype dtype",    "md_region region", "md_kind kind", "int trainable",
    "int rank",         "int64_t shape[12]", "size_t offset",    "size_t bytes", "size_t copy_of",
    "int split",        "int transposed",    "int64_t lo",       "int64_t hi",   NULL};
static const char *const pace_fields[] = {
    "double fork", "int weight",   "int count",   "int watch",    "double first",
    "double debt", "double saved", "double rest", "double until", "char apart[64]",
    "double last", "int alone",    NULL};
static const char *const calls_fields[] = {"int alone",    "int every",       "int at",
                                           "double begun", "double least[2]", NULL};
static const char *const damage_fields[] = {"const char *entry", "const char *buffer", "int step",
                                            "int behind",        "size_t byte",        NULL};
static const char *const place_fields[] = {"const char *where", "const char *what", "int given",
                                           NULL};

/* Names with the numbers that C gives them, from `first` on. */
static void print_numbers(Text *out, const char *key, const char *const *name, int count,
                          int first) {
    text_printf(out, "\"%s\":{", key);
    for (int i = 0; i < count; i++) {
        text_printf(out, "%s\"%s\":%d", i > 0 ? "," : "", name[i], first + i);
    }
    text_add(out, "}");
}

static void print_instance(const Emit *e, Text *out) {
    const Options *opt = &e->c->opt;
    VEC(const char *) field = {0};
    static const char *const region[] = {"params", "state", "io", "arena"};
    for (int i = 0; i < 4; i++) {
        VEC_PUSH(e->arena, &field, str_printf(e->arena, "unsigned char *%s", region[i]));
    }
    VEC_PUSH(e->arena, &field, "int bound");
    if (api_has_limits(e->p)) {
        VEC_PUSH(e->arena, &field, "int limit");
    }
    if (opt->canary) {
        VEC_PUSH(e->arena, &field, "md_damage damage");
    }
    if (e->p->device) {
        VEC_PUSH(e->arena, &field, "unsigned char *host");
        VEC_PUSH(e->arena, &field, "cudaStream_t stream");
    } else if (api_has_team(e->p)) {
        VEC_PUSH(e->arena, &field, "md_pace pace");
    }
    const int timed = api_timed_calls(e);
    if (timed > 0) {
        VEC_PUSH(e->arena, &field, str_printf(e->arena, "md_calls calls[%d]", timed));
    }
    int notes = trace_notes(e);
    if (notes > 0 && opt->nan) {
        VEC_PUSH(e->arena, &field, "const md_traced *traced");
        VEC_PUSH(e->arena, &field, str_printf(e->arena, "uint32_t trace[%d]", notes));
    } else if (notes > 0) {
        VEC_PUSH(e->arena, &field, "const void *trace");
    }
    VEC_PUSH(e->arena, &field, NULL);
    text_add(out, ",\n  \"instance\":");
    c_struct(out, e->prefix, field.at);
}

static void print_structs(const Emit *e, Text *out) {
    const Options *opt = &e->c->opt;
    text_add(out, ",\n  \"memory\":");
    c_struct(out, str_printf(e->arena, "%s_memory", e->prefix),
             e->p->device ? device_memory_fields : memory_fields);
    print_instance(e, out);
    text_add(out, ",\n  \"structs\":[\n   ");
    c_struct(out, "md_tensor", tensor_fields);
    if (!e->p->device && api_has_team(e->p)) {
        text_add(out, ",\n   ");
        c_struct(out, "md_pace", pace_fields);
    }
    if (api_timed_calls(e) > 0) {
        text_add(out, ",\n   ");
        c_struct(out, "md_calls", calls_fields);
    }
    if (opt->canary) {
        text_add(out, ",\n   ");
        c_struct(out, "md_damage", damage_fields);
    }
    if (opt->nan && trace_notes(e) > 0) {
        text_add(out, ",\n   ");
        c_struct(out, "md_place", place_fields);
    }
    text_add(out, "]");
}

static void print_callbacks(const Emit *e, Text *out) {
    text_add(out, ",\n  \"callbacks\":[");
    if (!e->p->device) {
        text_add(out, "\n   ");
        c_function(e, out, "int md_write_fn(void *user, const void *data, size_t bytes)");
        text_add(out, ",\n   ");
        c_function(e, out, "int md_read_fn(void *user, uint64_t offset, void *data, size_t bytes)");
    }
    text_add(out, "]");
}

/* By what they do, since prefixes differ. */
static void print_functions(const Emit *e, Text *out) {
    const char *p = e->prefix;
    const struct {
        bool has;
        const char *role, *text;
    } function[] = {
        {true, "bind", str_printf(e->arena, "int %s_bind(%s *m, const %s_memory *mem)", p, p, p)},
        {true, "init", str_printf(e->arena, "int %s_init(%s *m, uint64_t seed)", p, p)},
        {!e->p->device, "save",
         str_printf(e->arena,
                    "int %s_save(const %s *m, unsigned what, md_write_fn write, void *user)", p,
                    p)},
        {!e->p->device, "load",
         str_printf(e->arena, "int %s_load(%s *m, md_read_fn read, void *user)", p, p)},
        {true, "tensors", str_printf(e->arena, "const md_tensor *%s_tensors(size_t *count)", p)},
        {true, "strerror", str_printf(e->arena, "const char *%s_strerror(int code)", p)},
        {e->c->opt.canary, "check",
         str_printf(e->arena, "int %s_check(const %s *m, md_damage *damage)", p, p)},
        {e->c->opt.nan && trace_notes(e) > 0, "nonfinite",
         str_printf(e->arena, "const md_place *%s_nonfinite(%s *m)", p, p)},
    };
    text_add(out, ",\n  \"functions\":{");
    for (size_t i = 0; i < sizeof function / sizeof *function; i++) {
        if (function[i].has) {
            text_printf(out, "%s\n   \"%s\":", i > 0 ? "," : "", function[i].role);
            c_function(e, out, function[i].text);
        }
    }
    text_add(out, "}");
}

static void print_codes(const Emit *e, Text *out) {
    int n;
    const ApiStatus *status = api_status(e, &n);
    text_add(out, ",\n  \"codes\":[");
    for (int i = 0; i < n; i++) {
        text_printf(out, "%s\n   {\"code\":%d,\"name\":\"%s_%s\"", i > 0 ? "," : "", status[i].code,
                    e->upper, status[i].name);
        json_text(out, "meaning", status[i].text);
        text_add(out, "}");
    }
    text_add(out, "]");
}

void report_api(const Emit *e, Text *out) {
    static const char *const region[] = {"params", "state", "io", "arena"};
    static const char *const kind[] = {"param", "layer_state", "slot", "ring"};
    static const char *const dtype[] = {"bool", "i8",  "i16", "i32",  "i64", "u8", "u16",
                                        "u32",  "u64", "f16", "bf16", "f32", "f64"};
    text_printf(out, " \"api\":{\"prefix\":\"%s\",\"align\":%d", e->prefix, MD_ALIGN);
    if (e->p->device) {
        json_number(out, "host_bytes", api_host_bytes(e->p));
    }
    text_add(out, ",\n  \"numbers\":{");
    print_numbers(out, "dtype", dtype, 13, 1);
    text_add(out, ",");
    print_numbers(out, "region", region, 4, 0);
    text_add(out, ",");
    print_numbers(out, "kind", kind, 4, 0);
    text_add(out, e->p->device ? "}" : ",\"save\":{\"params\":3,\"all\":7,\"rings\":8}}");
    print_structs(e, out);
    print_callbacks(e, out);
    print_functions(e, out);
    print_codes(e, out);
    text_add(out, "}");
}
