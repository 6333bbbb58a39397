/* module: puts the emitted file together: header comment, declarations, the runtime pieces that the
 * kernels use and no others, tables, kernels, entry functions, services, and `main` unless it is
 * not wanted. Needs a checked Program; the same input gives the same bytes. */
#include "emit/module.h"

#include "compiler/flags.h"
#include "compiler/kernel.h"
#include "compiler/sha256.h"
#include "compiler/version.h"
#include "emit/api.h"
#include "emit/bodies.h"
#include "emit/entry.h"
#include "emit/features.h"
#include "emit/host.h"
#include "emit/lines.h"
#include "emit/numbers.h"
#include "emit/pieces.h"
#include "emit/split.h"
#include "emit/stmts.h"
#include "emit/trace.h"

#include <stdlib.h>
#include <string.h>

/* ---- header comment ------------------------------------------------------------------------- */

static void print_options(const Emit *e, Text *out) {
    const Options *opt = &e->c->opt;
    if (e->p->device) {
        text_add(out, " * Options: --target=cuda");
    } else {
        text_printf(out, " * Options: --threads=%d", opt->threads);
    }
    if (opt->float_type != TY_F32 || opt->half != TY_ERROR) {
        bool quoted = opt->always || opt->no_master;
        text_printf(out, quoted ? " '--precision=%s%s%s'" : " --precision=%s",
                    elem_name(opt->half != TY_ERROR ? opt->half : opt->float_type),
                    opt->no_master ? "(master=false)" : "", opt->always ? ", always" : "");
    }
    if (opt->machine) {
        text_printf(out, " --for=%s", opt->machine->name);
    }
    if (opt->openblas) {
        text_add(out, " --blas=openblas");
    }
    if (opt->canary) {
        text_add(out, opt->nan ? " --checks=canary,nan" : " --checks=canary");
    } else if (opt->nan) {
        text_add(out, " --checks=nan");
    }
    if (opt->no_main) {
        text_add(out, " --no-main");
    }
    if (opt->split > 0) {
        text_printf(out, " --split=%d", opt->split);
    }
    if (opt->budget >= 0) {
        text_printf(out, opt->rounding ? " '--budget=%lld, rounding'" : " --budget=%lld",
                    (long long)opt->budget);
    }
    for (int i = 0; i < opt->noverride; i++) {
        text_printf(out, " -D %s=", opt->override[i].name);
        text_comment(out, opt->override[i].value);
    }
    text_add(out, "\n");
}

static void print_build(const Emit *e, Text *out) {
    const Options *opt = &e->c->opt;
    bool file = opt->output != NULL && !str_eq(opt->output, "-");
    const char *name = file ? path_base(opt->output) : str_printf(e->arena, "%s.c", e->prefix);
    const char *to = path_stem(e->arena, name);
    Text files = {.arena = e->arena};
    text_comment(&files, name);
    for (int i = 0; i < opt->split; i++) {
        text_add(&files, " ");
        text_comment(&files, path_base(path_numbered(e->arena, name, i + 1)));
    }
    text_add(out, " * Build:\n *     ");
    text_add(out, e->p->device ? "nvcc " : "cc ");
    flags_compile(out, e->p->device ? CC_NVCC : CC_GNU, opt->machine ? opt->machine : &machines[0]);
    text_printf(out, " %s", files.at);
    if (e->p->device) {
        text_add(out, " -c -o ");
        text_comment(out, to);
        text_add(out, ".o\n * Weights files are neither read nor written here: the table of "
                      "tensors says where each\n * lies in params and state, which are memory of "
                      "the device.\n");
        return;
    }
    if (opt->no_main && opt->split > 0) {
        text_add(out, " -c\n");
    } else if (opt->no_main) {
        text_add(out, " -c -o ");
        text_comment(out, to);
        text_add(out, ".o\n");
    } else {
        text_add(out, " ");
        flags_libraries(out, opt->openblas);
        text_add(out, " -o ");
        text_comment(out, to);
        text_add(out, "\n");
    }
    text_add(out, " * It also builds and runs, slower, without any of these flags.\n");
}

static void print_comment(const Emit *e, Text *out) {
    const Program *p = e->p;
    char hash[SHA256_TEXT];
    sha256_text(e->source->text, e->source->length, hash);
    text_printf(out, "/* %s: emitted by mdlc %s from ", e->prefix, MDLC_VERSION);
    text_comment(out, path_base(e->source->name));
    text_printf(out, ".\n * Source sha256: %s\n", hash);
    print_options(e, out);
    print_build(e, out);
    text_add(out, " *\n * Memory in bytes; all of it is the caller's, nothing is allocated:\n");
    const struct {
        const char *name, *what;
        int64_t bytes;
    } row[] = {
        {"params", "weights", p->params_bytes},
        {"state", "optimizer slots, states, counters", p->state_bytes},
        {"io", e->c->opt.no_main && !p->device ? "results" : "batch staging and results",
         p->io_bytes},
        {"arena", "scratch, dead between calls", p->arena_bytes},
        {"total", p->phase.count > 0 ? "of the largest phase" : "", p->total_bytes},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        /* Numbers are not padded: the text is the same for any depth but for its digits. */
        text_printf(out, " *   %-8s %lld%s%s\n", row[i].name, (long long)row[i].bytes,
                    row[i].what[0] != 0 ? "  " : "", row[i].what);
    }
    if (p->device) {
        text_printf(out, " * and of the host %lld, the mirror of the results.\n *\n",
                    (long long)api_host_bytes(p));
    } else {
        text_printf(out, " * and at most %lld bytes of stack a thread, for up to %d threads.\n *\n",
                    (long long)p->stack_bytes, e->c->opt.threads);
    }
    for (int i = 0; i < p->entry.count; i++) {
        const ProgramEntry *entry = p->entry.at[i];
        text_printf(out,
                    " *   %s: arena %lld (least possible %lld), FLOPs %lld, "
                    "bytes moved %lld\n",
                    entry->c_name, (long long)entry->arena_bytes,
                    (long long)entry->lower_bound_bytes, (long long)entry->flops,
                    (long long)entry->bytes_moved);
    }
    text_add(out, " */\n");
}

/* ---- services: bind, save, load, tensors, strerror ------------------------------------------- */

static void print_bind(const Emit *e, const Printer *printer, Text *out) {
    static const char *const region[] = {"params", "state", "io", "arena", "host"};
    static const char *const upper[] = {"PARAMS", "STATE", "IO", "ARENA", "HOST"};
    const int64_t bytes[] = {e->p->params_bytes, e->p->state_bytes, e->p->io_bytes,
                             e->p->arena_bytes, api_host_bytes(e->p)};
    int regions = e->p->device ? 5 : 4;
    const bool called = api_is_called(e);
    if (called) {
        text_printf(out,
                    "int %s_bind(%s *m, const %s_memory *mem) {\n"
                    "    if (m == NULL || mem == NULL) {\n        return %s_ERR_ARGUMENT;\n    }\n"
                    "    m->bound = 0;\n",
                    e->prefix, e->prefix, e->prefix, e->upper);
    } else { /* the main gives what is declared */
        text_printf(out,
                    "static int %s_host_bind(void *instance, const md_memory *mem) {\n"
                    "    struct %s *m = (struct %s *)instance;\n",
                    e->prefix, e->prefix, e->prefix);
    }
    int asked = 0; /* where nothing is asked for, anything will do */
    for (int i = 0; i < regions && called; i++) {
        if (bytes[i] > 0) {
            text_printf(out, "%s        {mem->%s, mem->%s_bytes, %s_%s_BYTES},\n",
                        asked++ == 0 ? "    const struct {\n        const void *at;\n"
                                       "        size_t bytes, least;\n    } region[] = {\n"
                                     : "",
                        region[i], region[i], e->upper, upper[i]);
        }
    }
    if (asked > 0) {
        const char *X = e->upper;
        text_printf(out,
                    "    };\n    for (int i = 0; i < %d; i++) {\n"
                    "        const int small = region[i].bytes < region[i].least;\n"
                    "        if (region[i].at == NULL || small || "
                    "(uintptr_t)region[i].at %% %s_ALIGN != 0) {\n"
                    "            return region[i].at == NULL ? %s_ERR_ARGUMENT : small ? "
                    "%s_ERR_SIZE : %s_ERR_ALIGN;\n        }\n    }\n",
                    asked, X, X, X, X);
    }
    if (printer->device != NULL) {
        printer->device->load(out, e);
    }
    for (int i = 0; i < regions; i++) {
        text_printf(out, "    m->%s = (unsigned char *)mem->%s;\n", region[i], region[i]);
    }
    if (e->c->opt.canary) {
        text_add(out, "    memset(&m->damage, 0, sizeof m->damage);\n");
    }
    if (e->p->device) {
        text_add(out, "    m->stream = mem->stream;\n");
    } else if (api_has_team(e->p)) {
        text_add(out, "    memset(&m->pace, 0, sizeof m->pace);\n");
    }
    if (api_timed_calls(e) > 0) {
        text_add(out, "    memset(m->calls, 0, sizeof m->calls);\n");
    }
    if (trace_notes(e) > 0) {
        text_add(out, e->c->opt.nan ? "    m->traced = NULL;\n" : "    m->trace = NULL;\n");
    }
    text_printf(out, "    m->bound = 1;\n    return %s_OK;\n}\n\n", e->upper);
}

/* What a file, or a call that sets it, may give a slot's integers. Counters of steps and pushes
 * become places: they never fall below 0. */
static void file_range(const Slot *slot, int64_t *lo, int64_t *hi) {
    bool pushes = slot->role == STATE_RING && !slot->cursor;
    bool steps = slot->role == STATE_COUNTER && slot->label &&
                 (str_eq(slot->label, "step") || str_eq(slot->label, "steps") ||
                  str_eq(slot->label, "calls"));
    bool counts = slot->kind == SLOT_STATE && slot->type.elem == TY_I64 && (pushes || steps);
    *lo = counts ? 0 : slot->lo;
    *hi = counts ? INT64_MAX : slot->hi;
}

static void print_tensor(const Emit *e, const Buf *buf, Text *out) {
    const Slot *slot = buf->slot;
    bool layer = slot->kind == SLOT_STATE && slot->role == STATE_LAYER;
    const char *name = slot->file_name;
    if (slot->kind == SLOT_STATE && !layer && strncmp(name, "mdlc.", 5) != 0) {
        name = str_printf(e->arena, "mdlc.%s", name); /* reserved: checkpoints only */
    }
    int64_t lo, hi;
    file_range(slot, &lo, &hi);
    text_add(out, "    {");
    text_literal(out, name);
    text_printf(out, ", %s, %s, %s, %d, %d, {", host_dtype(slot->type.elem),
                slot->kind == SLOT_PARAM ? "MD_PARAMS" : "MD_STATE",
                slot->kind == SLOT_PARAM   ? "MD_PARAM"
                : layer                    ? "MD_LAYER_STATE"
                : slot->role == STATE_RING ? "MD_RING"
                                           : "MD_SLOT",
                slot->trainable && !slot->frozen, slot->type.rank);
    for (int i = 0; i < slot->type.rank; i++) {
        text_printf(out, "%s%lld", i > 0 ? ", " : "", (long long)slot->type.dim[i]);
    }
    text_printf(out, "%s}, %lld, %lld, %d, %d, %d, %lld, %lld},\n", slot->type.rank == 0 ? "0" : "",
                (long long)buf->offset, (long long)type_bytes(slot->type),
                slot->copy_of ? slot->copy_of->index + 1 : 0, slot->split, slot->transposed,
                (long long)lo, (long long)hi);
}

static void print_tensors(const Emit *e, Text *out) {
    int n = e->p->slot.count;
    if (n > 0) {
        text_printf(out,
                    "static const md_tensor %s_tensor_table[%d] = {\n"
                    "    /* name, dtype, region, kind, trainable, rank, shape, offset, bytes,\n"
                    "     * copy of, split, transposed, lo, hi */\n",
                    e->prefix, n);
        for (int i = 0; i < n; i++) {
            print_tensor(e, e->p->slot.at[i], out);
        }
        text_add(out, "};\n\n");
    }
    if (!api_is_called(e)) {
        return;
    }
    text_printf(out, "const md_tensor *%s_tensors(size_t *count) {\n", e->prefix);
    text_printf(out, "    if (count != NULL) {\n        *count = %d;\n    }\n", n);
    text_printf(out, "    return %s;\n}\n\n",
                n > 0 ? str_printf(e->arena, "%s_tensor_table", e->prefix) : "NULL");
}

static void print_save_load(const Emit *e, Text *out) {
    const char *x = e->prefix, *X = e->upper;
    int slices = 0; /* tensors of a file */
    for (int i = 0; i < e->p->slot.count; i++) {
        slices += (int)slot_slices(e->p->slot.at[i]->slot);
    }
    text_printf(out,
                "static md_memory %s_regions(const %s *m) {\n"
                "    const md_memory memory = {m->params, m->state, m->io, m->arena, "
                "%s_PARAMS_BYTES,\n"
                "                              %s_STATE_BYTES, %s_IO_BYTES, %s_ARENA_BYTES};\n"
                "    return memory;\n"
                "}\n\n",
                x, x, X, X, X, X);
    text_printf(out, "int %s_save(const %s *m, unsigned what, md_write_fn write, void *user) {\n",
                x, x);
    const char *kinds = str_printf(
        e->arena,
        "what != %s_SAVE_PARAMS && (what | %s_SAVE_RINGS) != (%s_SAVE_ALL | %s_SAVE_RINGS)", X, X,
        X, X);
    api_refusals(e, str_printf(e->arena, "write == NULL || (%s)", kinds), out);
    text_printf(out,
                "    const md_memory memory = %s_regions(m);\n"
                "    return md_save_tensors(%s, &memory, what, NULL, NULL, write, user);\n"
                "}\n\n",
                x, api_tensors(e));
    text_printf(out, "int %s_load(%s *m, md_read_fn read, void *user) {\n", x, x);
    api_refusals(e, "read == NULL", out);
    text_printf(out,
                "    const md_memory memory = %s_regions(m);\n"
                "    unsigned char seen[%d];\n"
                "    /* A checkpoint if it is one, else weights. */\n"
                "    const unsigned what[2] = {MD_SAVE_ALL | MD_SAVE_RINGS, MD_SAVE_PARAMS};\n"
                "    int code = %s_ERR_NAME;\n"
                "    for (int i = 0; i < 2 && code == %s_ERR_NAME; i++) {\n"
                "        md_load l;\n"
                "        memset(&l, 0, sizeof l);\n"
                "        code = md_load_tensors(&l, %s, &memory, what[i], seen, read, user);\n"
                "    }\n"
                "    return code;\n"
                "}\n\n",
                x, slices > 0 ? slices : 1, X, X, api_tensors(e));
}

static void print_strerror(const Emit *e, Text *out) {
    int n;
    const ApiStatus *status = api_status(e, &n);
    text_printf(out, "const char *%s_strerror(int code) {\n    switch (code) {\n", e->prefix);
    for (int i = 0; i < n; i++) {
        if (api_gives(e, status[i].code)) {
            text_printf(out, "    case %s_%s: return ", e->upper, status[i].name);
            text_literal(out, status[i].text);
            text_add(out, ";\n");
        }
    }
    text_add(out, "    default: return \"unknown status\";\n    }\n}\n\n");
}

static void print_damage(const Emit *e, Text *out) {
    text_printf(out, "int %s_check(const %s *m, md_damage *damage) {\n", e->prefix, e->prefix);
    api_refusals(e, "damage == NULL", out);
    text_printf(out,
                "    *damage = m->damage;\n"
                "    return m->damage.entry != NULL ? %s_ERR_CANARY : %s_OK;\n}\n\n",
                e->upper, e->upper);
}

static void print_setters(const Emit *e, Text *out) {
    for (int i = 0; i < e->p->entry.count; i++) {
        const ProgramEntry *entry = e->p->entry.at[i];
        for (int k = 0; k < e->p->slot.count; k++) {
            const Buf *buf = e->p->slot.at[k];
            if (!api_settable(buf->slot, entry->entry)) {
                continue;
            }
            const char *type = elem_c_name(buf->type->elem);
            text_printf(out, "int %s {\n", api_setter(e, entry, buf->slot));
            api_refusals(e, "", out);
            int64_t lo, hi;
            file_range(buf->slot, &lo, &hi);
            if (lo < hi) {
                text_printf(out,
                            "    if (value < %lld || value >= %lld) {\n"
                            "        return %s_ERR_RANGE;\n    }\n",
                            (long long)lo, (long long)hi, e->upper);
            }
            if (e->p->device) {
                text_printf(out,
                            "    return md_put(m->stream, m->state + %lld, &value, sizeof value) ? "
                            "%s_ERR_DEVICE : %s_OK;\n}\n\n",
                            (long long)buf->offset, e->upper, e->upper);
                continue;
            }
            text_printf(out,
                        "    *(%s *)(void *)(m->state + %lld) = value;\n"
                        "    return %s_OK;\n}\n\n",
                        type, (long long)buf->offset, e->upper);
        }
    }
}

/* ---- kernels and entries -------------------------------------------------------------------- */

/* What the file has already. */
typedef struct {
    bool *kernel; /* by Kernel.id */
    Products products;
    Chunks chunks; /* of kernels */
} Printed;

typedef struct {
    const Emit *e;
    const Printer *printer;
    Text *out;
    Printed *done;
    StepList call; /* of an entry */
} KernelWalk;

typedef VEC(ProgramEntry *) EntryList;

static void print_kernel(void *ctx, Step *step, int depth) {
    KernelWalk *walk = ctx;
    (void)depth;
    if (step->kind == STEP_KERNEL && !walk->done->kernel[step->kernel->id]) {
        walk->done->kernel[step->kernel->id] = true;
        Chunk chunk = {.from = walk->out->len};
        if (walk->e->c->opt.line) {
            Text own = {.arena = walk->e->arena};
            walk->printer->kernel(&own, &walk->done->products, step);
            lines_all(walk->e, step->loc, own.at, walk->out);
        } else {
            walk->printer->kernel(walk->out, &walk->done->products, step);
        }
        text_add(walk->out, "\n");
        chunk.end = walk->out->len;
        VEC_PUSH(walk->e->arena, &walk->done->chunks, chunk);
    }
}

static bool is_main_only(EntryKind kind) {
    return kind == ENTRY_LOAD;
}

/* What a reader looks for comes first: trains and calls, then how weights begin. */
static EntryList reading_order(const Emit *e) {
    EntryList order = {0};
    for (int last = 0; last < 2; last++) {
        for (int i = 0; i < e->p->entry.count; i++) {
            ProgramEntry *entry = e->p->entry.at[i];
            if ((entry->entry->kind == ENTRY_INIT) == (last == 1)) {
                VEC_PUSH(e->arena, &order, entry);
            }
        }
    }
    return order;
}

static void add_call(void *ctx, Step *step, int depth) {
    KernelWalk *walk = ctx;
    (void)depth;
    if (step->kind == STEP_KERNEL && !step->again) {
        VEC_PUSH(walk->e->arena, &walk->call, step);
    }
}

/* By the kernel, of several calls by where they are from. */
static int by_name(const void *a, const void *b) {
    const Step *x = *(Step *const *)a, *y = *(Step *const *)b;
    const int name = strcmp(x->kernel->name, y->kernel->name);
    const uint64_t from = (uint64_t)x->loc.source << 32 | x->loc.at;
    const uint64_t other = (uint64_t)y->loc.source << 32 | y->loc.at;
    const int line = (from > other) - (from < other);
    return name != 0 ? name : line != 0 ? line : (x->id > y->id) - (x->id < y->id);
}

/* Each once, in front of the first entry of the file that has it. */
static void print_kernels(const Emit *e, const Printer *printer, const ProgramEntry *entry,
                          Printed *done, Text *out) {
    KernelWalk walk = {.e = e, .printer = printer, .out = out, .done = done};
    if (e->c->opt.split > 0) { /* sizes decide which step is first */
        steps_visit(&entry->step, add_call, &walk);
        if (walk.call.count > 0) {
            qsort(walk.call.at, (size_t)walk.call.count, sizeof *walk.call.at, by_name);
        }
        for (int i = 0; i < walk.call.count; i++) {
            print_kernel(&walk, walk.call.at[i], 0);
        }
    } else {
        steps_visit(&entry->step, print_kernel, &walk);
    }
}

/* Kernels and entry functions. */
static void print_model(const Emit *e, const Printer *printer, Printed *done, Text *out) {
    entry_tables(e, out);
    api_refusal(e, out);
    if (!e->p->device) {
        entry_helpers(e, out);
    }
    bool init = false;
    const EntryList order = reading_order(e);
    for (int i = 0; i < order.count; i++) {
        EntryKind kind = order.at[i]->entry->kind;
        init = init || kind == ENTRY_INIT;
        if (is_main_only(kind) || kind == ENTRY_TEST) {
            continue;
        }
        print_kernels(e, printer, order.at[i], done, out);
        if (kind == ENTRY_EVAL_END) {
            entry_eval_end(e, printer, order.at[i], out);
        } else {
            const Sections sections = {&done->chunks, done->products.numbers};
            entry_function(e, printer, order.at[i], &sections, out);
        }
    }
    if (!init) {
        BUG("a module without its init entry");
    }
}

/* What else the model part has: nobody needs to read it to follow a step. */
static void print_services(const Emit *e, const Printer *printer, Text *out) {
    for (int i = 0; i < e->p->entry.count; i++) {
        if (!e->c->opt.nan) { /* then their train uses them */
            trace_table(e, e->p->entry.at[i], out);
        }
    }
    if (api_is_called(e)) {
        print_setters(e, out);
    }
    print_tensors(e, out);
    print_bind(e, printer, out);
    if (!e->p->device && api_is_called(e)) {
        print_save_load(e, out);
    }
    if (e->c->opt.canary) {
        print_damage(e, out);
    }
    if (e->c->opt.nan && trace_notes(e) > 0) {
        trace_accessor(e, out);
    }
    print_strerror(e, out);
}

static void print_includes(Text *out) {
    text_add(
        out,
        "#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n\n");
}

/* What the declarations use. */
static void need_pieces(const Compile *c, Pieces *pieces) {
    pieces_need(pieces, "runtime/tensor.h");
    if (c->opt.canary) {
        pieces_need(pieces, "runtime/canary_report.h");
    }
    if (c->opt.nan) {
        pieces_need(pieces, "runtime/nan_origin.h");
    }
}

static void print_interface(Text *out, const Text *api) {
    text_add(out, "/* ---- interface ---- */\n\n");
    text_addn(out, api->at, api->len);
    text_add(out, "/* ---- model ---- */\n\n");
}

/* A program is put together of these; the model is there already. */
typedef struct {
    Text front, api, services, host;
} Parts;

/* Sizes that the runtime of a program with a main has from its model. */
static void print_sizes(const Emit *e, Text *out) {
    if (!e->c->opt.no_main) {
        host_sizes(e, out);
    }
}

/* The runtime comes first: a local variable in it may have the name of the model's type. */
static void join_whole(const Emit *e, Pieces *pieces, Parts *parts, Text *out) {
    print_includes(&parts->front);
    need_pieces(e->c, pieces);
    pieces_need(pieces, "runtime/md.h");
    pieces_scan(pieces, out->at, out->len);
    pieces_scan(pieces, parts->host.at, parts->host.len);
    print_sizes(e, &parts->front);
    pieces_print(pieces, &parts->front);
    print_interface(&parts->front, &parts->api);
    text_prepend(out, parts->front.at, parts->front.len);
}

/* The runtime comes first here too: its kernels are templates, which are not declared before. */
static void join_device(const Emit *e, Parts *parts, Text *out) {
    NameList features = {0};
    if (features_has(e, "halves")) {
        names_push(e->arena, &features, "halves");
    }
    Pieces *pieces = pieces_of_device(e->arena, &features);
    pieces_scan(pieces, parts->api.at, parts->api.len);
    pieces_scan(pieces, out->at, out->len);
    pieces_print(pieces, &parts->front);
    print_interface(&parts->front, &parts->api);
    text_prepend(out, parts->front.at, parts->front.len);
}

/* In front of a file that is compiled alone. */
static void print_alone(Text *out) {
    text_add(
        out,
        "#ifdef MD_RUNTIME\n#error \"several models in one file: compile each alone, or emit "
        "them with --runtime=whole\"\n"
        "#elif defined(__GNUC__) && __GNUC__ >= 8 && defined(__OPTIMIZE__) /* it takes long */\n"
        "#pragma GCC optimize(\"no-ipa-cp-clone\")\n#endif\n#define MD_RUNTIME\n\n");
}

/* In front of all that a program with a main includes. */
static void print_system(const Emit *e, Text *out) {
    if (!e->c->opt.no_main) {
        text_add(out, "#ifndef _GNU_SOURCE\n#define _GNU_SOURCE 1\n#endif\n");
    }
}

/* A local variable in the runtime may have the name of the model's type. */
static void print_runtime(Pieces *pieces, Text *out) {
    text_add(out, "#ifdef __GNUC__\n#pragma GCC diagnostic push\n"
                  "#pragma GCC diagnostic ignored \"-Wshadow\"\n#endif\n\n");
    pieces_print(pieces, out);
    text_add(out, "#ifdef __GNUC__\n#pragma GCC diagnostic pop\n#endif\n\n");
}

/* What is to be read comes first: declarations, the interface, the model. */
static void join_used(const Emit *e, Pieces *pieces, Parts *parts, Text *out) {
    print_alone(&parts->front);
    pieces_scan_front(pieces, parts->api.at, parts->api.len);
    pieces_scan_front(pieces, out->at, out->len);
    pieces_scan(pieces, parts->services.at, parts->services.len);
    pieces_scan(pieces, parts->host.at, parts->host.len);
    pieces_print_front(pieces, &parts->front);
    print_interface(&parts->front, &parts->api);
    text_prepend(out, parts->front.at, parts->front.len);
    text_add(out, "/* ---- runtime ---- */\n\n");
    if (e->c->opt.split == 0) {
        print_sizes(e, out);
    }
    print_runtime(pieces, out);
    text_add(out, "/* ---- memory and files of the model ---- */\n\n");
    text_addn(out, parts->services.at, parts->services.len);
}

/* A part of a program in several files: `unit` has its kernels, if any, and gets what of the
 * runtime these use. What stands in front of them is not about the rest of the model, so that a
 * file without a change is the same text. `defines`: what of the runtime the other files have from
 * this one, or NULL; `program`: what the main does is among it. */
static void join_unit(const Emit *e, Pieces *pieces, const char *what, const NameList *defines,
                      bool program, Text *unit) {
    Text front = {.arena = e->arena};
    pieces_share(pieces, e->prefix, defines);
    pieces_scan_front(pieces, unit->at, unit->len);
    for (int i = 0; defines != NULL && i < defines->name.count; i++) {
        pieces_scan_front(pieces, defines->name.at[i], strlen(defines->name.at[i]));
    }
    text_printf(&front, "/* %s: %s; emitted by mdlc %s. */\n", e->prefix, what, MDLC_VERSION);
    if (program) {
        print_system(e, &front);
    }
    print_alone(&front);
    pieces_print_front(pieces, &front);
    if (unit->len > 0) {
        text_add(&front, "/* ---- model ---- */\n\n");
    }
    text_prepend(unit, front.at, front.len);
    text_add(unit, "/* ---- runtime ---- */\n\n");
    if (program) {
        print_sizes(e, unit);
    }
    print_runtime(pieces, unit);
}

/* What of the runtime runs seldom does not change with the model, so it has the last part to
 * itself: kernels stand in those before it. */
static int kernel_units(int units) {
    return units > 1 ? units - 1 : units;
}

static Pieces *open_pieces(const Emit *e, const Tiles *tiles) {
    Pieces *pieces = pieces_new(e->arena, e->c->opt.whole_runtime ? NULL : &tiles->features);
    pieces_before_tiles(pieces, tile_bodies(e, tiles));
    return pieces;
}

/* What of the runtime kernels have in common stands in the last part of these: products are there,
 * which most of it is for. `rest`: of the file of -o. */
static void join_units(const Emit *e, const Tiles *tiles, int units, Text *unit,
                       const Pieces *rest) {
    NameList often = {0}, seldom = {0};
    const int kernels = kernel_units(units);
    NameList *both = units > kernels ? &often : &seldom;
    pieces_shared(rest, both, &seldom);
    for (int i = 0; i < kernels; i++) {
        const bool defines = i + 1 == kernels;
        Pieces *pieces = open_pieces(e, tiles);
        const char *what = units > kernels ? str_printf(e->arena, "the model, part %d", i + 1)
                                           : "the model and the runtime";
        join_unit(e, pieces, what, defines ? both : NULL, units == kernels, &unit[i]);
        pieces_shared(pieces, both, &seldom);
    }
    if (units > kernels) {
        join_unit(e, open_pieces(e, tiles), "the runtime", &seldom, true, &unit[kernels]);
    }
}

static void print_module(Text *out, Text *unit, int units, Compile *c, const Program *p,
                         const Source *source, const Printer *printer) {
    Emit e = emit_open(c, p, source);
    if (out->len > 0) {
        BUG("a module in the middle of a text");
    }
    Arena arena = {0};
    Parts parts = {.front = {.arena = &arena},
                   .api = {.arena = &arena},
                   .services = {.arena = &arena},
                   .host = {.arena = &arena}};
    Printed done = {.products.arena = e.arena};
    done.products.numbers = units > 0 ? numbers_new(e.arena, e.prefix) : NULL;
    done.kernel = ARENA_ARRAY(e.arena, bool, p->kernel.count + 1);
    print_model(&e, printer, &done, out); /* the largest part is made where it stays */
    if (units > 0) {
        split_chunks(e.arena, &done.chunks, e.prefix, out, kernel_units(units), unit);
        const Text *tables = numbers_tables(done.products.numbers);
        if (tables->len > 0) {
            text_printf(out, "/* Numbers of kernels. */\n%s\n", tables->at);
        }
        done.products.numbers = NULL; /* those of the main stand in this file */
    }
    const bool behind = !p->device && !c->opt.whole_runtime;
    if (behind) {
        api_print_files(&e, &parts.services);
    }
    print_services(&e, printer, behind ? &parts.services : out);
    if (!c->opt.no_main) {
        for (int i = 0; i < p->entry.count; i++) {
            if (is_main_only(p->entry.at[i]->entry->kind)) {
                print_kernels(&e, printer, p->entry.at[i], &done, &parts.host);
            }
        }
        host_print(&e, printer, &parts.host);
    }
    print_comment(&e, &parts.front);
    print_system(&e, &parts.front);
    api_print(&e, &parts.api);
    if (!behind) {
        api_print_files(&e, &parts.api);
    }
    if (p->device) {
        join_device(&e, &parts, out);
        arena_free(&arena);
        return;
    }
    Tiles tiles = tiles_of(&e);
    features_add(&e, &tiles.features);
    Pieces *pieces = open_pieces(&e, &tiles);
    if (units > 0) {
        pieces_share(pieces, e.prefix, NULL);
    }
    if (c->opt.whole_runtime) {
        join_whole(&e, pieces, &parts, out);
    } else {
        join_used(&e, pieces, &parts, out);
    }
    if (!c->opt.no_main) {
        text_add(out, "/* ---- program ---- */\n\n");
        text_addn(out, parts.host.at, parts.host.len);
    }
    if (units > 0) {
        join_units(&e, &tiles, units, unit, pieces);
    }
    lines_finish(&e, out);
    arena_free(&arena);
}

void emit_module_with(Text *out, Compile *c, const Program *p, const Source *source,
                      const Printer *printer) {
    print_module(out, NULL, 0, c, p, source, printer);
}

void emit_module_split(Text *out, Text *unit, int units, Compile *c, const Program *p,
                       const Source *source) {
    print_module(out, unit, units, c, p, source, &printer_c);
}

void emit_module(Text *out, Compile *c, const Program *p, const Source *source) {
    emit_module_with(out, c, p, source, p->device ? &printer_cuda : &printer_c);
}

void emit_header(Text *out, Compile *c, const Program *p, const Source *source) {
    Emit e = emit_open(c, p, source);
    text_printf(out, "/* %s: declarations of a model emitted by mdlc %s from ", e.prefix,
                MDLC_VERSION);
    text_comment(out, path_base(source->name));
    text_printf(out, ". */\n#ifndef %s_MODEL_H\n#define %s_MODEL_H\n\n", e.upper, e.upper);
    text_add(out, "#include <stddef.h>\n#include <stdint.h>\n\n");
    Pieces *pieces = pieces_new(e.arena, NULL);
    need_pieces(c, pieces);
    pieces_print(pieces, out);
    api_print(&e, out);
    api_print_files(&e, out);
    text_add(out, "#endif\n");
}
