/* run: entries and test blocks in the reference evaluator.
 * Contract: needs a module whose GRAD nodes are expanded; prints results; changes nothing. */
#include "compiler/driver/run.h"

#include "compiler/array_file.h"
#include "compiler/eval.h"
#include "compiler/gradcheck.h"

#include <inttypes.h>
#include <string.h>

typedef struct {
    Compile *c;
    const Module *module;
    Arena arena;
    Eval *eval;
    FILE *out;
} Run;

/* `smooth`: for derivatives, in double and without roundings. */
static void open_run(Run *r, Compile *c, const Module *module, FILE *out, bool smooth) {
    *r = (Run){.c = c, .module = module, .out = out};
    bool round = !smooth && c->opt.float_type == TY_F32;
    r->eval = eval_open(&r->arena, (EvalOptions){.round = round, .smooth = smooth});
}

/* The loop that met its maximum, as a text; NULL: none did. */
static const char *limit_met(Run *r, const Entry *entry, const Value *value) {
    for (int k = 0; k < entry->out.count; k++) {
        const EntryOut *limit = &entry->out.at[k];
        if (limit->role == OUT_LIMIT && value[k].at[0].i) {
            int line, col;
            loc_line(&r->c->diag, limit->loc, &line, &col);
            return str_printf(&r->arena,
                              "'%s': a loop met its maximum with its condition still true "
                              "(%s:%d)",
                              entry->name, loc_file(&r->c->diag, limit->loc), line);
        }
    }
    return NULL;
}

/* Runs the entry once; what it writes is bound for the next call. NULL and a message: it ends
 * without a result. */
static Value *call(Run *r, const Entry *entry, const char **message) {
    int n = entry->region->out.count;
    Value *value = ARENA_ARRAY(&r->arena, Value, n);
    eval_region(r->eval, entry->region, value);
    *message = limit_met(r, entry, value);
    if (*message) {
        return NULL;
    }
    eval_store(r->eval, entry, value);
    return value;
}

/* Every parameter and state as after `init` with the seed. */
static void initialise(Run *r) {
    for (int i = 0; i < r->module->slot.count; i++) {
        const Slot *slot = r->module->slot.at[i];
        if (slot->role == STATE_COUNTER) {
            double start = slot->initial;
            if (elem_is_int(slot->type.elem)) {
                bool seed = slot->label && str_eq(slot->label, "seed");
                eval_bind_int(r->eval, slot, seed ? (int64_t)r->c->opt.seed : (int64_t)start);
            } else {
                eval_bind(r->eval, slot, &start);
            }
        }
    }
    for (int i = 0; i < r->module->entry.count; i++) {
        if (r->module->entry.at[i]->kind == ENTRY_INIT) {
            const char *none;
            call(r, r->module->entry.at[i], &none);
        }
    }
}

static void print_value(FILE *out, const char *name, Elem elem, Value value) {
    fprintf(out, "%s", name);
    if (value.type.rank > 0) {
        fprintf(out, " %s", elem_name(elem));
        for (int i = 0; i < value.type.rank; i++) {
            fprintf(out, "%s%" PRId64, i ? ", " : "[", value.type.dim[i]);
        }
        fprintf(out, "]");
    }
    fprintf(out, " =");
    int64_t n = type_count(value.type);
    for (int64_t i = 0; i < n; i++) {
        if (elem_is_float(value.type.elem)) {
            fprintf(out, " %.9g", value_get(value, i));
        } else {
            fprintf(out, " %" PRId64, value.at[i].i);
        }
    }
    fprintf(out, "\n");
}

static int fail(Run *r, int code, const char *message) {
    fprintf(r->c->diag.out, "mdlc: %s\n", message);
    arena_free(&r->arena);
    return code;
}

static bool same_shape_up_to_ones(Type a, Type b) {
    int i = 0, j = 0;
    for (;;) {
        while (i < a.rank && a.dim[i] == 1) {
            i++;
        }
        while (j < b.rank && b.dim[j] == 1) {
            j++;
        }
        if (i == a.rank || j == b.rank) {
            return i == a.rank && j == b.rank;
        }
        if (a.dim[i++] != b.dim[j++]) {
            return false;
        }
    }
}

/* Binds one input from its file, checked against the declared shape and range. */
static const char *bind_input(Run *r, const Slot *slot, const char *path, int *code) {
    Type type;
    Num *data;
    const char *message;
    *code = EXIT_FILE;
    if (!array_file_read(&r->arena, path, slot->type.elem, &type, &data, &message)) {
        return str_printf(&r->arena, "input '%s': %s", slot->c_name, message);
    }
    *code = EXIT_USAGE;
    if (!same_shape_up_to_ones(type, slot->type)) {
        return str_printf(&r->arena, "input '%s': %s has another shape than the model declares",
                          slot->c_name, path);
    }
    int64_t n = type_count(slot->type);
    bool ranged = slot->lo != slot->hi && !elem_is_float(slot->type.elem);
    for (int64_t i = 0; i < n; i++) {
        if (ranged && (data[i].i < slot->lo || data[i].i >= slot->hi)) {
            return str_printf(&r->arena,
                              "input '%s': element %" PRId64 " of %s is %" PRId64
                              ", outside %" PRId64 "..%" PRId64,
                              slot->c_name, i, path, data[i].i, slot->lo, slot->hi);
        }
    }
    eval_bind_num(r->eval, slot, data);
    return NULL;
}

/* What keeps a call of the entry back: a ring with fewer rows than it samples; NULL: nothing. */
static const char *short_ring(Run *r, const Entry *entry) {
    for (int k = 0; k < entry->out.count; k++) {
        const EntryOut *need = &entry->out.at[k];
        Value held;
        if (need->role != OUT_NEED || !eval_bound(r->eval, need->slot, &held)) {
            continue;
        }
        int64_t rows = entry->region->out.at[k]->attr->ivalue;
        if (held.at[0].i < rows) {
            int line, col;
            loc_line(&r->c->diag, need->loc, &line, &col);
            return str_printf(&r->arena,
                              "'%s': ring '%.*s' holds %" PRId64 " rows, and %" PRId64
                              " are sampled (%s:%d); push rows first",
                              entry->name, (int)strcspn(need->slot->name, "."), need->slot->name,
                              held.at[0].i, rows, loc_file(&r->c->diag, need->loc), line);
        }
    }
    return NULL;
}

/* Calls what makes the rows that a train needs, until they are there; or what keeps it back. */
static const char *fill_rings(Run *r, const Entry *entry) {
    const Entry *fill = NULL;
    for (int i = 0; i < r->module->entry.count; i++) {
        const Entry *other = r->module->entry.at[i];
        fill = other->kind == ENTRY_CALL && other->train == entry ? other : fill;
    }
    const char *before = NULL, *message = short_ring(r, entry);
    while (message && fill && !(before && str_eq(before, message))) {
        for (int i = 0; i < fill->input.count; i++) {
            Value value;
            if (eval_bound(r->eval, entry->input.at[i], &value)) {
                eval_bind_value(r->eval, fill->input.at[i], value);
            }
        }
        if (!call(r, fill, &before)) {
            return before;
        }
        before = message;
        message = short_ring(r, entry);
    }
    return message;
}

static const Entry *find_entry(const Compile *c, const Module *module) {
    for (int i = 0; i < module->entry.count; i++) {
        const Entry *entry = module->entry.at[i];
        if (entry->kind != ENTRY_TRAIN && entry->kind != ENTRY_CALL) {
            continue;
        }
        if (!c->opt.entry || str_eq(c->opt.entry, entry->name)) {
            return entry;
        }
    }
    return NULL;
}

int run_entry(Compile *c, const Module *module, FILE *out) {
    Run run, *r = &run;
    open_run(r, c, module, out, false);
    const Entry *entry = find_entry(c, module);
    if (!entry) {
        const char *message = c->opt.entry
                                  ? str_printf(&r->arena, "no train or entry '%s'", c->opt.entry)
                                  : "the file has no train and no entry to run";
        return fail(r, EXIT_USAGE, message);
    }
    for (int k = 0; k < c->opt.nbinding; k++) {
        bool known = false;
        for (int i = 0; i < entry->input.count; i++) {
            known |= str_eq(entry->input.at[i]->c_name, c->opt.binding[k].name);
        }
        if (!known) {
            return fail(r, EXIT_USAGE,
                        str_printf(&r->arena, "'%s' has no input '%s'", entry->name,
                                   c->opt.binding[k].name));
        }
    }
    for (int i = 0; i < entry->input.count; i++) {
        const Slot *slot = entry->input.at[i];
        const char *path = NULL;
        for (int k = 0; k < c->opt.nbinding; k++) {
            if (str_eq(slot->c_name, c->opt.binding[k].name)) {
                path = c->opt.binding[k].path;
            }
        }
        if (!path && slot->optional) {
            eval_bind(r->eval, slot, &slot->initial);
            continue;
        }
        if (!path) {
            return fail(r, EXIT_USAGE,
                        str_printf(&r->arena, "'%s' needs the input '%s': give --in %s=FILE.npy",
                                   entry->name, slot->c_name, slot->c_name));
        }
        int code;
        const char *message = bind_input(r, slot, path, &code);
        if (message) {
            return fail(r, code, message);
        }
    }
    initialise(r);
    for (int64_t i = 0; i < c->opt.calls; i++) {
        const char *message = fill_rings(r, entry);
        if (message) {
            return fail(r, EXIT_USAGE, message);
        }
        Value *value = call(r, entry, &message);
        if (!value) {
            return fail(r, EXIT_SOURCE, message);
        }
        for (int k = 0; k < entry->out.count; k++) {
            const EntryOut *result = &entry->out.at[k];
            if (result->name) {
                Elem elem = result->half != TY_ERROR ? result->half : value[k].type.elem;
                print_value(out, result->name, elem, value[k]);
            }
        }
    }
    arena_free(&r->arena);
    return EXIT_OK;
}

/* Inputs of a gradient check: any numbers will do, as long as they are in the declared range. */
static void bind_random(Run *r, const Slot *slot, uint64_t *state) {
    int64_t n = type_count(slot->type);
    double *data = ARENA_ARRAY(&r->arena, double, n);
    for (int64_t i = 0; i < n; i++) {
        /* splitmix64 (Steele et al. 2014) */
        uint64_t z = *state += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        double u = (double)((z ^ z >> 31) >> 11) * 0x1p-53;
        if (elem_is_float(slot->type.elem)) {
            data[i] = 2 * u - 1;
        } else {
            int64_t lo = slot->lo, hi = slot->lo == slot->hi ? 2 : slot->hi;
            data[i] = (double)(lo + (int64_t)(u * (double)(hi - lo)));
        }
    }
    eval_bind(r->eval, slot, data);
}

enum { GRADCHECK_DIRECTIONS = 2 };

/* The gradients of a train against central differences in double, parameter by parameter. */
static bool run_gradcheck(Run *r, const Entry *test) {
    uint64_t state = r->c->opt.seed;
    for (int i = 0; i < test->input.count; i++) {
        bind_random(r, test->input.at[i], &state);
    }
    VEC(Slot *) slot = {0};
    for (int k = 1; k < test->out.count; k++) {
        VEC_PUSH(&r->arena, &slot, test->out.at[k].slot);
    }
    GradCheck check = gradcheck_region(r->eval, &r->arena, test->region, slot.at, slot.count,
                                       r->c->opt.seed, GRADCHECK_DIRECTIONS);
    bool ok = check.error < test->tolerance; /* false for a NaN */
    fprintf(r->out, "%s \"%s\": gradcheck(%s): worst relative error %.2e in %d parameters",
            ok ? "ok" : "FAILED", test->name, test->gradcheck->name, check.error, slot.count);
    if (!ok) {
        fprintf(r->out, "; limit %.2e; %s: analytic %.9g, numeric %.9g", test->tolerance,
                check.worst ? check.worst->name : "no parameter", check.analytic, check.numeric);
    }
    fprintf(r->out, "\n");
    return ok;
}

/* One test block: every expectation is a bool. */
static bool run_expectations(Run *r, const Entry *test) {
    bool ok = true;
    const char *message;
    Value *value = call(r, test, &message);
    if (!value) {
        fprintf(r->out, "FAILED %s\n", message);
        return false;
    }
    for (int k = 0; k < test->out.count; k++) {
        if (test->out.at[k].role == OUT_EXPECT && value_get(value[k], 0) == 0) {
            int line, col;
            loc_line(&r->c->diag, test->out.at[k].loc, &line, &col);
            fprintf(r->out, "FAILED \"%s\": the expectation at %s:%d:%d does not hold\n",
                    test->name, loc_file(&r->c->diag, test->out.at[k].loc), line, col);
            ok = false;
        }
    }
    if (ok && test->out.count > 0) {
        fprintf(r->out, "ok \"%s\": %d expectation%s\n", test->name, test->out.count,
                test->out.count == 1 ? "" : "s");
    }
    return ok;
}

int run_tests(Compile *c, const Module *module, FILE *out) {
    int failed = 0, tests = 0;
    for (int i = 0; i < module->entry.count; i++) {
        const Entry *test = module->entry.at[i];
        if (test->kind != ENTRY_TEST) {
            continue;
        }
        Run run;
        open_run(&run, c, module, out, test->gradcheck != NULL);
        initialise(&run);
        tests++;
        failed += test->gradcheck ? !run_gradcheck(&run, test) : !run_expectations(&run, test);
        arena_free(&run.arena);
    }
    if (tests == 0) {
        fprintf(out, "no test blocks in '%s'\n", c->opt.input);
    }
    return failed ? EXIT_SOURCE : EXIT_OK;
}
