/* api: see the header. The names and meanings are a contract with programs that embed a model. */
#include "emit/api.h"

#include "compiler/kernel.h"
#include "emit/profile.h"
#include "emit/trace.h"

#include <string.h>

/* Does some entry have loops that end by a condition? */
bool api_has_limits(const Program *p) {
    for (int i = 0; i < p->entry.count; i++) {
        if (p->entry.at[i]->limit.count > 0) {
            return true;
        }
    }
    return false;
}

int api_limit_number(const Program *p, const Buf *limit) {
    int number = 1;
    for (int i = 0; i < p->entry.count; i++) {
        for (int k = 0; k < p->entry.at[i]->limit.count; k++, number++) {
            if (p->entry.at[i]->limit.at[k] == limit) {
                return number;
            }
        }
    }
    BUG("%s is no limit", limit->name);
}

const ApiStatus *api_status(const Emit *e, int *count) {
    static const ApiStatus table[] = {
        {"OK", 0, "ok"},
        {"ERR_ARGUMENT", 1, "a null pointer or a value outside its documented range"},
        {"ERR_SIZE", 2, "a memory region is smaller than declared"},
        {"ERR_ALIGN", 3, "a memory region is not aligned as declared"},
        {"ERR_READ", 4, "the reader failed or ended early"},
        {"ERR_WRITE", 5, "the writer failed"},
        {"ERR_FORMAT", 6, "not a safetensors file"},
        {"ERR_NAME", 7, "a tensor is missing or unknown"},
        {"ERR_SHAPE", 8, "a tensor has another type or shape"},
        {"ERR_RANGE", 9, "an input, or a number of a file, is outside its declared range"},
        {"ERR_NONFINITE", 10, "the loss or the gradient norm is NaN or infinite"},
        {"ERR_STATE", 11, "called too early: no memory is bound, or a ring has too few rows"},
        {"ERR_CANARY", 12, "a guard band of the arena was overwritten"},
        {"ERR_LIMIT", 14, "a loop met its maximum with its condition still true"},
    };
    static const ApiStatus device[] = {
        {"OK", 0, "ok"},
        {"ERR_ARGUMENT", 1, "a null pointer or a value outside its documented range"},
        {"ERR_SIZE", 2, "a memory region is smaller than declared"},
        {"ERR_ALIGN", 3, "a memory region is not aligned as declared"},
        {"ERR_RANGE", 9, "an input is outside its declared range"},
        {"ERR_NONFINITE", 10, "the loss or the gradient norm is NaN or infinite"},
        {"ERR_STATE", 11, "called too early: no memory is bound, or a ring has too few rows"},
        {"ERR_DEVICE", 13, "a call of the CUDA runtime failed"},
    };
    if (e->p->device) {
        *count = (int)(sizeof device / sizeof *device);
        return device;
    }
    int n = (int)(sizeof table / sizeof *table);
    ApiStatus *status = ARENA_ARRAY(e->arena, ApiStatus, n);
    *count = 0;
    for (int i = 0; i < n; i++) {
        bool left_out = (table[i].code == 12 && !e->c->opt.canary) ||
                        (table[i].code == 14 && !api_has_limits(e->p));
        if (!left_out) {
            status[(*count)++] = table[i];
        }
    }
    return status;
}

bool api_has_inputs(const ProgramEntry *entry) {
    for (int i = 0; i < entry->entry->input.count; i++) {
        if (!is_rows(entry, entry->entry->input.at[i])) {
            return true;
        }
    }
    return false;
}

bool api_has_results(const ProgramEntry *entry) {
    for (int i = 0; i < entry->entry->out.count; i++) {
        if (out_is_result(entry->entry->out.at[i].role)) {
            return true;
        }
    }
    return false;
}

static void find_team(void *ctx, Step *step, int depth) {
    bool *found = ctx;
    (void)depth;
    *found = *found || step->rest != NULL ||
             (step->kind == STEP_KERNEL && kernel_has_team(step->kernel));
}

bool api_has_team(const Program *p) {
    bool found = false;
    for (int i = 0; i < p->entry.count; i++) {
        steps_visit(&p->entry.at[i]->step, find_team, &found);
    }
    return found;
}

/* Loops on threads; those of a loop of the program run many times. */
static void count_teams(void *ctx, Step *step, int depth) {
    int *count = ctx;
    if (step->rest != NULL || (step->kind == STEP_KERNEL && kernel_has_team(step->kernel))) {
        *count += depth > 0 ? CALLS_TIMED_TEAMS : 1;
    }
}

/* Those that a call of the entry has, so far as calls may be timed. */
static int call_teams(const Program *p, const ProgramEntry *entry) {
    const EntryKind kind = entry->entry->kind;
    int count = 0;
    if (!p->device && (kind == ENTRY_TRAIN || kind == ENTRY_EVAL || kind == ENTRY_CALL)) {
        steps_visit(&entry->step, count_teams, &count);
    }
    return count;
}

static const TimedCalls *timed_calls(const Emit *e) {
    int most = 0;
    for (int i = 0; i < e->p->entry.count && !e->timed->known; i++) {
        const int teams = call_teams(e->p, e->p->entry.at[i]);
        most = teams > most ? teams : most;
        if (teams > 0) {
            VEC_PUSH(e->arena, &e->timed->entry, e->p->entry.at[i]);
        }
    }
    if (!e->timed->known && most < CALLS_TIMED_TEAMS) {
        e->timed->entry.count = 0;
    }
    e->timed->known = true;
    return e->timed;
}

int api_timed_calls(const Emit *e) {
    return timed_calls(e)->entry.count;
}

int api_timed_call(const Emit *e, const ProgramEntry *entry) {
    const TimedCalls *timed = timed_calls(e);
    for (int i = 0; i < timed->entry.count; i++) {
        if (timed->entry.at[i] == entry) {
            return i;
        }
    }
    return -1;
}

const char *api_in_type(const Emit *e, const ProgramEntry *entry) {
    const ProgramEntry *owner =
        entry->entry->kind == ENTRY_EVAL ? entry_of(e->p, entry->entry->train) : entry;
    return str_printf(e->arena, "%s_in", owner->c_name);
}

const char *api_out_type(const Emit *e, const ProgramEntry *entry) {
    return str_printf(e->arena, "%s_out", entry->c_name);
}

void api_parameters(const Emit *e, const ProgramEntry *entry, Text *out) {
    text_printf(out, "%s *m", e->prefix);
    if (entry->entry->kind == ENTRY_INIT) {
        text_add(out, ", uint64_t seed");
        return;
    }
    if (api_has_inputs(entry)) {
        text_printf(out, ", const %s *in", api_in_type(e, entry));
    }
    if (entry->entry->kind == ENTRY_EVAL) {
        text_add(out, ", int64_t rows");
    }
    if (api_has_results(entry)) {
        text_printf(out, ", %s *out", api_out_type(e, entry));
    }
}

void api_refusal(const Emit *e, Text *out) {
    text_printf(out,
                "/* Why a call is refused: no memory is bound, or an argument is none that is "
                "allowed. */\n"
                "static int %s_refused(const %s *m) {\n"
                "    return m != NULL && !m->bound ? %s_ERR_STATE : %s_ERR_ARGUMENT;\n}\n\n",
                e->prefix, e->prefix, e->upper, e->upper);
}

void api_refusals(const Emit *e, const char *cannot_be, Text *out) {
    text_wrapped(out, "    ",
                 str_printf(e->arena, "if (m == NULL || !m->bound%s%s) {\n",
                            cannot_be[0] != 0 ? " || " : "", cannot_be));
    text_printf(out, "        return %s_refused(m);\n    }\n", e->prefix);
}

bool api_settable(const Slot *slot, const Entry *entry) {
    return slot->kind == SLOT_STATE && slot->role == STATE_COUNTER && slot->entry == entry &&
           slot->label != NULL && !str_eq(slot->label, "step") && !str_eq(slot->label, "seed") &&
           !str_eq(slot->label, "calls") && !str_eq(slot->label, "clean_steps");
}

static bool api_is_public(EntryKind kind) {
    return kind != ENTRY_LOAD && kind != ENTRY_TEST;
}

/* ---- pieces of the declarations ------------------------------------------------------------- */

bool api_is_called(const Emit *e) {
    return e->c->opt.no_main || e->c->opt.header != NULL || e->c->opt.whole_runtime;
}

bool api_gives(const Emit *e, int code) {
    return api_is_called(e) || code < 2 || code > 8; /* of bind, of loads and saves */
}

static void print_sizes(const Emit *e, Text *out) {
    const Program *p = e->p;
    text_printf(out, "#define %s_ALIGN %d\n", e->upper, MD_ALIGN);
    text_printf(out, "#define %s_PARAMS_BYTES %lld /* weights */\n", e->upper,
                (long long)p->params_bytes);
    text_printf(out, "#define %s_STATE_BYTES %lld /* optimizer slots, states, counters */\n",
                e->upper, (long long)p->state_bytes);
    text_printf(out, "#define %s_IO_BYTES %lld /* %sresults */\n", e->upper, (long long)p->io_bytes,
                e->c->opt.no_main && !p->device ? "" : "batch staging, ");
    if (p->device) {
        text_printf(out, "#define %s_HOST_BYTES %lld /* results, where the host sees them */\n",
                    e->upper, (long long)api_host_bytes(p));
    }
    text_printf(out, "#define %s_ARENA_BYTES %lld /* scratch, dead between calls */\n", e->upper,
                (long long)p->arena_bytes);
    NameSet used = {0};
    for (int i = 0; i < p->entry.count; i++) {
        const ProgramEntry *entry = p->entry.at[i];
        EntryKind kind = entry->entry->kind;
        if (api_is_public(kind) && api_is_called(e)) {
            char *name = str_dup(e->arena, entry->c_name + strlen(e->prefix) + 1);
            for (char *s = name; *s != 0; s++) {
                *s = (char)(*s >= 'a' && *s <= 'z' ? *s - 'a' + 'A' : *s);
            }
            const char *own = name; /* `ab` and `Ab` are two entries */
            while (names_has(&used, NULL, own)) {
                int n = names_number(e->arena, &used, NULL, name);
                own = str_printf(e->arena, "%s_%d", name, n);
            }
            names_add(e->arena, &used, NULL, own);
            text_printf(out, "#define %s_ARENA_%s_BYTES %lld\n", e->upper, own,
                        (long long)entry->arena_bytes);
        }
    }
    text_add(out, "\n");
}

int64_t api_host_bytes(const Program *p) {
    int64_t most = 0;
    for (int i = 0; i < p->entry.count; i++) {
        const ProgramEntry *e = p->entry.at[i];
        int64_t bytes = e->io_bytes - e->status_offset;
        most = bytes > most && e->entry->kind != ENTRY_LOAD ? bytes : most;
    }
    return most;
}

static void print_status(const Emit *e, Text *out) {
    int n;
    const ApiStatus *status = api_status(e, &n);
    text_add(out, "/* What every function returns. */\nenum {\n");
    for (int i = 0; i < n; i++) {
        if (api_gives(e, status[i].code)) {
            text_printf(out, "    %s_%s = %d%s /* %s */\n", e->upper, status[i].name,
                        status[i].code, i + 1 < n ? "," : "", status[i].text);
        }
    }
    text_add(out, "};\n\n");
}

const char *api_field(const Emit *e, const char *name, Type type) {
    return str_printf(e->arena, type.rank == 0 ? "%s %s" : "const %s *%s", elem_c_name(type.elem),
                      field_name(e, name));
}

static void print_field(const Emit *e, Text *out, const char *name, Type type, const char *doc) {
    text_doc(out, "    ", doc);
    text_printf(out, "    %s;", api_field(e, name, type));
    if (type.rank > 0) {
        text_printf(out, " /* %s", elem_is_half(type.elem) ? elem_name(type.elem) : "");
        text_shape(out, type);
        text_add(out, elem_is_half(type.elem) ? ", its bits */" : " */");
    }
    text_add(out, "\n");
}

/* What a program takes for inputs that it is not given; a host may do so too. */
static void print_presets(const Emit *e, const ProgramEntry *entry, Text *out) {
    int n = 0;
    for (int i = 0; i < entry->entry->input.count; i++) {
        const Slot *slot = entry->entry->input.at[i];
        if (slot->optional) {
            text_add(out, n++ == 0 ? "/* What the program takes where it is not told. */\n" : "");
            text_printf(out, "#define %s_DEFAULT_%s ", entry->c_name, field_name(e, slot->c_name));
            text_constant(out, slot->type.elem, slot->initial);
            text_add(out, "\n");
        }
    }
    text_add(out, n > 0 ? "\n" : "");
}

static void print_structs(const Emit *e, const ProgramEntry *entry, Text *out) {
    bool evaluation = entry->entry->kind == ENTRY_EVAL || entry->entry->kind == ENTRY_EVAL_END;
    if (api_has_inputs(entry) && !evaluation) {
        text_printf(out, "typedef struct %s {\n", api_in_type(e, entry));
        for (int i = 0; i < entry->entry->input.count; i++) {
            const Slot *slot = entry->entry->input.at[i];
            print_field(e, out, slot->c_name, slot->type, slot->doc);
        }
        text_printf(out, "} %s;\n\n", api_in_type(e, entry));
        print_presets(e, entry, out);
    }
    if (api_has_results(entry)) {
        text_printf(out, "typedef struct %s {\n", api_out_type(e, entry));
        for (int i = 0; i < entry->entry->out.count; i++) {
            const EntryOut *field = &entry->entry->out.at[i];
            if (out_is_result(field->role)) {
                print_field(e, out, field->name, *result_buf(entry, i)->type, NULL);
            }
        }
        text_printf(out, "} %s;\n\n", api_out_type(e, entry));
    }
    if (entry->entry->kind == ENTRY_EVAL) {
        text_printf(out,
                    "/* Of any number of batches; all zero at first. */\n"
                    "typedef struct %s_sums {\n    int64_t batches;\n",
                    entry->c_name);
        for (int i = 0; i < entry->entry->out.count; i++) {
            if (entry->entry->out.at[i].role == OUT_SUM) {
                const char *name = field_name(e, entry->entry->out.at[i].name);
                text_printf(out, "    double %s;\n", api_sum(e, name, *result_buf(entry, i)->type));
            }
        }
        text_printf(out, "} %s_sums;\n\n", entry->c_name);
    }
}

const char *api_sum(const Emit *e, const char *name, Type type) {
    return type.rank == 0 ? name
                          : str_printf(e->arena, "%s[%lld]", name, (long long)type_count(type));
}

void api_eval_add(const Emit *e, const ProgramEntry *eval, Text *out) {
    text_printf(out, "int %s_add(%s_sums *sums", eval->c_name, eval->c_name);
    if (api_has_results(eval)) {
        text_printf(out, ", const %s *part", api_out_type(e, eval));
    }
    text_add(out, ")");
}

void api_eval_end(const Emit *e, const ProgramEntry *end, Text *out) {
    const ProgramEntry *eval = entry_eval(e->p, end->entry->train, ENTRY_EVAL);
    text_printf(out, "int %s(const %s *m, const %s_sums *sums, %s *out)", end->c_name, e->prefix,
                eval->c_name, api_out_type(e, end));
}

static void print_prototype(const Emit *e, const ProgramEntry *entry, Text *out) {
    switch (entry->entry->kind) {
    case ENTRY_TRAIN:
        text_doc(out, "", entry->entry->doc);
        text_add(out, "/* One update of the parameters. */\n");
        break;
    case ENTRY_EVAL:
        text_printf(out,
                    "/* Sums of loss and metrics over the first `rows` rows, at most %lld; the\n"
                    " * arrays are whole batches all the same. */\n",
                    (long long)entry->entry->rows);
        break;
    case ENTRY_CALL: text_doc(out, "", entry->entry->doc); break;
    case ENTRY_INIT:
        text_add(out, entry->entry->begins > 0
                          ? "/* And what only later phases read, from this one on. */\n"
                          : "/* Every weight and state from the seed. */\n");
        break;
    case ENTRY_EVAL_END:
        text_add(out,
                 api_is_called(e) ? "/* Adds the sums of a batch, in whatever order; then loss and "
                                    "metrics of all rows. */\n"
                                  : "/* Loss and metrics of all rows. */\n");
        if (api_is_called(e)) {
            api_eval_add(e, entry_eval(e->p, entry->entry->train, ENTRY_EVAL), out);
            text_add(out, ";\n");
        }
        api_eval_end(e, entry, out);
        text_add(out, ";\n");
        return;
    case ENTRY_LOAD:
    case ENTRY_TEST: break;
    }
    text_printf(out, "int %s(", entry->c_name);
    api_parameters(e, entry, out);
    text_add(out, ");\n");
}

const char *api_setter(const Emit *e, const ProgramEntry *entry, const Slot *slot) {
    return str_printf(e->arena, "%s_set_%s(%s *m, %s value)", entry->c_name, slot->label, e->prefix,
                      elem_c_name(slot->type.elem));
}

static void print_setters(const Emit *e, const ProgramEntry *entry, Text *out) {
    for (int i = 0; i < e->p->slot.count; i++) {
        const Slot *slot = e->p->slot.at[i]->slot;
        if (api_settable(slot, entry->entry) && api_is_called(e)) {
            text_printf(out, "int %s;\n", api_setter(e, entry, slot));
        }
    }
}

const char *api_tensors(const Emit *e) {
    const int n = e->p->slot.count;
    return n > 0 ? str_printf(e->arena, "%s_tensor_table, %d", e->prefix, n) : "NULL, 0";
}

static const char extern_c[] = "#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
static const char extern_c_end[] = "#ifdef __cplusplus\n}\n#endif\n\n";

void api_print(const Emit *e, Text *out) {
    print_sizes(e, out);
    print_status(e, out);
    if (api_is_called(e)) {
        text_printf(out, "typedef %s %s_memory;\n\n",
                    e->p->device ? "md_device_memory" : "md_memory", e->prefix);
    }
    text_doc(out, "", e->p->module->doc);
    static const char limit[] =
        "    int limit; /* behind ERR_LIMIT: the number of the loop that met its maximum */\n";
    text_printf(out,
                "/* An instance. The caller owns it and its memory; one call at a time. */\n"
                "typedef struct %s {\n"
                "    unsigned char *params, *state, *io, *arena;\n"
                "    int bound;\n%s%s",
                e->prefix, api_has_limits(e->p) ? limit : "",
                e->c->opt.canary ? "    md_damage damage;\n" : "");
    if (e->p->device) {
        text_add(out, "    unsigned char *host;\n    cudaStream_t stream;\n");
    } else if (api_has_team(e->p)) {
        text_add(out, "    md_pace pace;\n");
    }
    if (api_timed_calls(e) > 0) {
        text_printf(out, "    md_calls calls[%d];\n", api_timed_calls(e));
    }
    trace_member(e, out);
    profile_member(e, out);
    text_printf(out, "} %s;\n\n", e->prefix);
    for (int i = 0; i < e->p->entry.count; i++) {
        EntryKind kind = e->p->entry.at[i]->entry->kind;
        if (api_is_public(kind) && kind != ENTRY_INIT) {
            print_structs(e, e->p->entry.at[i], out);
        }
    }
    if (api_is_called(e)) {
        text_printf(out,
                    "%s/* Checks presence, sizes and alignment; allocates nothing. */\n"
                    "int %s_bind(%s *m, const %s_memory *mem);\n",
                    extern_c, e->prefix, e->prefix, e->prefix);
    }
    for (int i = 0; i < e->p->entry.count; i++) {
        const ProgramEntry *entry = e->p->entry.at[i];
        EntryKind kind = entry->entry->kind;
        if (api_is_public(kind)) {
            print_prototype(e, entry, out);
        }
        if (kind == ENTRY_TRAIN || kind == ENTRY_CALL) {
            print_setters(e, entry, out);
        }
    }
    text_printf(out, "const char *%s_strerror(int code);\n", e->prefix);
    if (e->c->opt.canary) {
        text_printf(
            out,
            "/* What the last call found that returned %s_ERR_CANARY: that code again, and\n"
            " * in *damage what was overwritten. %s_OK when no call did since bind. */\n"
            "int %s_check(const %s *m, md_damage *damage);\n",
            e->upper, e->upper, e->prefix, e->prefix);
    }
    if (e->c->opt.nan && trace_notes(e) > 0) {
        text_printf(out,
                    "/* Where the first NaN or infinity came from, in the last train that\n"
                    " * returned %s_ERR_NONFINITE; NULL when nothing of the kind was seen. */\n"
                    "const md_place *%s_nonfinite(%s *m);\n",
                    e->upper, e->prefix, e->prefix);
    }
    text_add(out, api_is_called(e) ? extern_c_end : "\n");
}

void api_print_files(const Emit *e, Text *out) {
    if (!api_is_called(e)) {
        return;
    }
    if (!e->p->device) {
        text_printf(out,
                    "enum {\n    %s_SAVE_PARAMS = MD_SAVE_PARAMS,\n"
                    "    %s_SAVE_ALL = MD_SAVE_ALL,\n"
                    "    %s_SAVE_RINGS = MD_SAVE_RINGS\n};\n\n",
                    e->upper, e->upper, e->upper);
    }
    text_add(out, extern_c);
    if (!e->p->device) {
        text_printf(
            out,
            "/* A safetensors file: %s_SAVE_PARAMS, or %s_SAVE_ALL for an exact resume (with\n"
            " * | %s_SAVE_RINGS the rows of rings too). */\n"
            "int %s_save(const %s *m, unsigned what, md_write_fn write, void *user);\n"
            "/* Checks every name, type and shape before it writes a byte. */\n"
            "int %s_load(%s *m, md_read_fn read, void *user);\n",
            e->upper, e->upper, e->upper, e->prefix, e->prefix, e->prefix, e->prefix);
    }
    text_printf(out, "const md_tensor *%s_tensors(size_t *count);\n", e->prefix);
    text_add(out, extern_c_end);
}
