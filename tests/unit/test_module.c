/* The emitted file around the kernels: a program made by hand, a line fitted to points, is emitted,
 * compiled with strict flags as C and as C++, embedded and run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compiler/sha256.h"
#include "emit/module.h"
#include "emit/prefix.h"
#include "emit/report.h"
#include "passes/check.h"
#include "passes/plan/plan.h"
#include "step_text.h"
#include "tests/support.h"

/* ---- a printer for kernels that are texts --------------------------------------------------- */

typedef struct {
    Kernel kernel; /* what the checker reads: the first, so that a step may point here */
    const char *body;
} TextKernel;

static void text_kernel(Text *out, Products *known, const Step *step) {
    (void)known;
    text_printf(out, "static void %s(", step->kernel->name);
    for (int i = 0; i < step->access.count; i++) {
        const Access *access = &step->access.at[i];
        bool write = (access->mode & ACCESS_WRITE) != 0;
        text_printf(out, "%s%s%s *%c", i > 0 ? ", " : "", write ? "" : "const ",
                    elem_c_name(access->buf->type->elem), 'a' + i);
    }
    text_printf(out, ") {\n    %s\n}\n", ((const TextKernel *)(const void *)step->kernel)->body);
}

static void text_call(Text *out, const Emit *e, const Step *step) {
    (void)e;
    text_printf(out, "%s(", step->kernel->name);
    for (int i = 0; i < step->access.count; i++) {
        text_printf(out, "%s%s", i > 0 ? ", " : "", buf_local(step->access.at[i].buf)->name);
    }
    text_add(out, ");");
}

static const Printer text_printer = {text_kernel, text_call, NULL};

/* ---- the program ---------------------------------------------------------------------------- */

typedef struct {
    Compile c;
    Arena *arena;
    Module *module;
    Program *p;
} Case;

static Type f32(int rank, int64_t a, int64_t b) {
    return type_make(TY_F32, rank, (int64_t[]){a, b});
}

static Buf *slot_add(Case *t, SlotKind kind, StateRole role, const char *name, const char *file,
                     Type type, const char *label, Entry *entry) {
    Slot *slot = ARENA_NEW(t->arena, Slot);
    *slot = (Slot){.kind = kind,
                   .role = role,
                   .name = name,
                   .file_name = file,
                   .type = type,
                   .label = label,
                   .entry = entry,
                   .loc = LOC_NONE,
                   .trainable = kind == SLOT_PARAM,
                   .index = t->module->slot.count};
    VEC_PUSH(t->arena, &t->module->slot, slot);
    Buf *buf = buf_new(t->p, NULL, kind == SLOT_PARAM ? BUF_PARAM : BUF_STATE, type, file);
    buf->slot = slot;
    return buf;
}

static ProgramEntry *entry_add(Case *t, EntryKind kind, const char *name) {
    Entry *entry = ARENA_NEW(t->arena, Entry);
    *entry = (Entry){.kind = kind,
                     .name = name,
                     .dataset = -1,
                     .rows = 8,
                     .steps = -1,
                     .epochs = -1,
                     .budget = -1,
                     .loc = LOC_NONE};
    VEC_PUSH(t->arena, &t->module->entry, entry);
    ProgramEntry *e = ARENA_NEW(t->arena, ProgramEntry);
    e->entry = entry;
    VEC_PUSH(t->arena, &t->p->entry, e);
    return e;
}

static Buf *input_add(Case *t, ProgramEntry *e, const char *name, Type type) {
    Slot *slot = ARENA_NEW(t->arena, Slot);
    *slot = (Slot){.kind = SLOT_INPUT, .name = name, .c_name = name, .type = type, .loc = LOC_NONE};
    VEC_PUSH(t->arena, &e->entry->input, slot);
    Buf *buf = buf_new(t->p, e, BUF_INPUT, type, name);
    buf->slot = slot;
    return buf;
}

static Buf *temp_add(Case *t, ProgramEntry *e, const char *name, Type type, Buf *dest) {
    Buf *buf = buf_new(t->p, e, BUF_TEMP, type, name);
    buf->final = dest;
    if (dest != NULL && dest->slot != NULL) {
        VEC_PUSH(t->arena, &e->entry->out, ((EntryOut){.role = OUT_WRITE, .slot = dest->slot}));
    }
    return buf;
}

static Buf *result_add(Case *t, ProgramEntry *e, OutRole role, const char *name, Type type) {
    VEC_PUSH(t->arena, &e->entry->out, ((EntryOut){.name = name, .role = role}));
    Buf *buf = buf_new(t->p, e, BUF_RESULT, type, name);
    buf->out = e->entry->out.count - 1;
    return buf;
}

/* Statements that touch what the text does, for the checker. */
static void checked_text(void *ctx, Step *step, int depth) {
    Program *p = ctx;
    (void)depth;
    if (step->kind == STEP_KERNEL) {
        Kernel *own = step->kernel;
        const Kernel named = *own;
        step_text(p, step);
        *own = *step->kernel;
        own->id = named.id;
        own->name = named.name;
        step->kernel = own;
        p->kernel.count--; /* the text took its place */
    }
}

/* Operands of the kernel text are a, b, c ... in the order of the list; the first is written. */
static Step *kernel_add(Case *t, StepList *list, const char *name, const char *body, int n,
                        Buf *const *buf) {
    Step *step = step_new(t->p, STEP_KERNEL, LOC_NONE);
    TextKernel *kernel = ARENA_NEW(t->arena, TextKernel);
    kernel->body = body;
    step->kernel = &kernel->kernel;
    step->kernel->id = t->p->kernel.count;
    step->kernel->name = step->name = name;
    VEC_PUSH(t->arena, &t->p->kernel, step->kernel);
    step->text = name;
    for (int i = 0; i < n; i++) {
        step_access(t->p, step, buf[i], i == 0 ? ACCESS_WRITE : ACCESS_READ);
    }
    VEC_PUSH(t->arena, list, step);
    return step;
}
#define KERNEL(t, list, name, body, ...)                                                           \
    kernel_add(t, list, name, body, (int)(sizeof((Buf *[]){__VA_ARGS__}) / sizeof(Buf *)),         \
               (Buf *[]){__VA_ARGS__})

/* A carry of a loop, a table, a copy at the end of the body: total = 11.5. */
static void case_loop(Case *t) {
    static const double half[] = {0.25, 0.5};
    ProgramEntry *e = entry_add(t, ENTRY_CALL, "count");
    Type scalar = f32(0, 0, 0);
    Buf *table = buf_new(t->p, NULL, BUF_CONST, f32(1, 2, 0), "half");
    table->data = half;
    Buf *total = result_add(t, e, OUT_RESULT, "total", scalar);
    Buf *carry = temp_add(t, e, "carry", scalar, total);
    KERNEL(t, &e->step, "start", "*a = 1;", carry);
    Step *loop = step_new(t->p, STEP_LOOP, LOC_NONE);
    loop->trip = 3;
    loop->reverse = true;
    loop->text = "three times";
    VEC_PUSH(t->arena, &e->step, loop);
    Buf *next = temp_add(t, e, "next", scalar, carry);
    next->loop = loop;
    KERNEL(t, &loop->body, "advance", "*a = *b * 2 + c[1];", next, carry, table);
}

/* Rows of points.csv: a number as it stands, and one that is halved on the way in. */
static void case_data(Case *t, Entry *fit) {
    Type scalar = f32(0, 0, 0);
    ProgramEntry *e = entry_add(t, ENTRY_LOAD, "points.y");
    Buf *raw = input_add(t, e, "raw", f32(1, 1, 0));
    Buf *field = result_add(t, e, OUT_RESULT, "y", scalar);
    Buf *twice = temp_add(t, e, "twice", scalar, NULL);
    Buf *value = temp_add(t, e, "value", scalar, field);
    KERNEL(t, &e->step, "quarter", "*a = b[0] / 4;", twice, raw);
    KERNEL(t, &e->step, "double_it", "*a = *b * 2;", value, twice);
    DataSet set = {.name = "points", .every = {[PART_HELD] = 5}, .loc = LOC_NONE};
    VEC_PUSH(t->arena, &set.file, ((DataFile){.name = "f", .path = {"points.csv", NULL}}));
    VEC_PUSH(t->arena, &set.field,
             ((DataField){.name = "x", .count = 1, .type = scalar, .raw = TY_F32, .raw_count = 1}));
    VEC_PUSH(t->arena, &set.field,
             ((DataField){.name = "y",
                          .first = 1,
                          .count = 1,
                          .type = scalar,
                          .raw = TY_F32,
                          .raw_count = 1,
                          .load = e->entry}));
    VEC_PUSH(t->arena, &t->module->dataset, set);
    fit->dataset = 0;
}

/* y = w x + c, squares, plain gradient descent with a rate that --set changes. */
static void case_open(Case *t, Arena *arena, bool no_main) {
    memset(t, 0, sizeof *t);
    t->arena = arena;
    diag_open(&t->c.diag, arena, stderr);
    t->c.opt = (Options){.input = "line.mdl",
                         .output = "line.c",
                         .threads = 8,
                         .float_type = TY_F32,
                         .budget = -1,
                         .no_main = no_main};
    static const char text[] = "model line() { }\n";
    diag_add_source(&t->c.diag, "line.mdl", text, sizeof text - 1);
    t->module = ARENA_NEW(arena, Module);
    t->module->arena = arena;
    t->module->name = "line";
    t->module->doc = "A line through points.\nIts comment may hold */ and /* too.";
    t->p = program_new(arena, t->module);
    t->p->stack_bytes = 4096;

    ProgramEntry *init = entry_add(t, ENTRY_INIT, "init");
    ProgramEntry *fit = entry_add(t, ENTRY_TRAIN, "fit");
    ProgramEntry *eval = entry_add(t, ENTRY_EVAL, "fit");
    ProgramEntry *end = entry_add(t, ENTRY_EVAL_END, "fit");
    ProgramEntry *predict = entry_add(t, ENTRY_CALL, "init"); /* a name of the API */
    eval->entry->train = end->entry->train = fit->entry;
    Type scalar = f32(0, 0, 0), rows = f32(1, 8, 0);
    Buf *w = slot_add(t, SLOT_PARAM, STATE_NONE, "net.w", "w", scalar, NULL, NULL);
    Buf *c = slot_add(t, SLOT_PARAM, STATE_NONE, "net.c", "c", scalar, NULL, NULL);
    Buf *step = slot_add(t, SLOT_STATE, STATE_COUNTER, "fit.step", "fit.step", type_scalar(TY_I64),
                         "step", fit->entry);
    Buf *rate =
        slot_add(t, SLOT_STATE, STATE_COUNTER, "fit.lr", "fit.lr", scalar, "lr", fit->entry);
    rate->slot->initial = 0.1;

    Buf *w0 = temp_add(t, init, "w0", scalar, w), *c0 = temp_add(t, init, "c0", scalar, c);
    KERNEL(t, &init->step, "draw_w", "*a = 0.5f;", w0);
    KERNEL(t, &init->step, "draw_c", "*a = 0;", c0);
    Buf *step0 = temp_add(t, init, "step0", type_scalar(TY_I64), step);
    Buf *rate0 = temp_add(t, init, "rate0", scalar, rate);
    KERNEL(t, &init->step, "start_step", "*a = 0;", step0);
    KERNEL(t, &init->step, "start_rate", "*a = 0.1f;", rate0);

    Buf *x = input_add(t, fit, "x", rows), *y = input_add(t, fit, "y", rows);
    Buf *d = temp_add(t, fit, "d", rows, NULL);
    Buf *loss = result_add(t, fit, OUT_LOSS, "loss", scalar);
    Buf *loss_t = temp_add(t, fit, "loss_value", scalar, loss);
    Buf *next_step = temp_add(t, fit, "next_step", type_scalar(TY_I64), step);
    Buf *next_w = temp_add(t, fit, "next_w", scalar, w),
        *next_c = temp_add(t, fit, "next_c", scalar, c);
    KERNEL(t, &fit->step, "differ", "for (int i = 0; i < 8; i++) { a[i] = *b * c[i] + *d - e[i]; }",
           d, w, x, c, y);
    KERNEL(t, &fit->step, "square",
           "*a = 0; for (int i = 0; i < 8; i++) { *a += b[i] * b[i] / 8; }", loss_t, d);
    KERNEL(
        t, &fit->step, "update_w",
        "float g = 0; for (int i = 0; i < 8; i++) { g += 2 * b[i] * c[i] / 8; } *a = *d - *e * g;",
        next_w, d, x, w, rate);
    KERNEL(t, &fit->step, "update_c",
           "float g = 0; for (int i = 0; i < 8; i++) { g += 2 * b[i] / 8; } *a = *c - *d * g;",
           next_c, d, c, rate);
    KERNEL(t, &fit->step, "count", "*a = *b + 1;", next_step, step);
    for (int i = 2; i < 5; i++) {
        Step *s = fit->step.at[i];
        Buf *in = i == 2 ? w : i == 3 ? c : step;
        VEC_PUSH(arena, &s->inplace, ((InplacePair){in, s->access.at[0].buf}));
        s->flops = 32;
    }

    Buf *ex = input_add(t, eval, "x", rows), *ey = input_add(t, eval, "y", rows);
    Buf *n = input_add(t, eval, "rows", type_scalar(TY_I32));
    eval->entry->rows_slot = n->slot;
    Buf *sum = result_add(t, eval, OUT_SUM, "sum", scalar);
    Buf *sum_t = temp_add(t, eval, "sum_value", scalar, sum);
    Buf *count = result_add(t, eval, OUT_SUM, "count", scalar);
    Buf *count_t = temp_add(t, eval, "count_value", scalar, count);
    KERNEL(
        t, &eval->step, "eval_sum",
        "*a = 0; for (int i = 0; i < *f; i++) { float e1 = *b * c[i] + *d - e[i]; *a += e1 * e1; }",
        sum_t, w, ex, c, ey, n);
    KERNEL(t, &eval->step, "eval_count", "*a = (float)*b;", count_t, n);

    Buf *s0 = input_add(t, end, "sum", scalar), *s1 = input_add(t, end, "count", scalar);
    Buf *mean = result_add(t, end, OUT_LOSS, "loss", scalar);
    Buf *mean_t = temp_add(t, end, "loss_value", scalar, mean);
    KERNEL(t, &end->step, "mean", "*a = *b / *c;", mean_t, s0, s1);

    Buf *px = input_add(t, predict, "x", rows);
    Buf *label = input_add(t, predict, "kind", type_scalar(TY_U8));
    label->slot->hi = 3;
    Step *range = step_new(t->p, STEP_RANGE, LOC_NONE);
    range->src = label;
    step_access(t->p, range, label, ACCESS_READ);
    VEC_PUSH(arena, &predict->step, range);
    Buf *out = result_add(t, predict, OUT_RESULT, "double", rows); /* a word of C */
    Buf *mid = temp_add(t, predict, "mid", rows, NULL),
        *out_t = temp_add(t, predict, "y", rows, out);
    KERNEL(t, &predict->step, "scale", "for (int i = 0; i < 8; i++) { a[i] = *b * c[i] + *d; }",
           mid, w, px, label);
    KERNEL(t, &predict->step, "shift", "for (int i = 0; i < 8; i++) { a[i] = b[i] + *c; }", out_t,
           mid, c);
    case_loop(t);
    case_data(t, fit->entry);
    for (int i = 0; i < t->p->entry.count; i++) {
        steps_visit(&t->p->entry.at[i]->step, checked_text, t->p);
    }
    pass_plan(t->p, !no_main, -1);
    program_names(t->p);
    const char *fault = check_program(arena, t->p);
    if (fault != NULL) {
        fail_msg("%s", fault);
    }
}

/* ---- compilers ------------------------------------------------------------------------------ */

static char folder[SCRATCH_PATH];

static char *in_folder(Arena *arena, const char *name) {
    return str_printf(arena, "%s/%s", folder, name);
}

static void write_file(Arena *arena, const char *name, const char *text, size_t length) {
    assert_true(file_write(in_folder(arena, name), text, length));
}

static void write_case(Arena *arena, const char *name, bool no_main) {
    Case t;
    case_open(&t, arena, no_main);
    Text text = {.arena = arena};
    emit_module_with(&text, &t.c, t.p, &t.c.diag.sources.at[0], &text_printer);
    write_file(arena, name, text.at, text.len);
    Text header = {.arena = arena};
    emit_header(&header, &t.c, t.p, &t.c.diag.sources.at[0]);
    write_file(arena, "line.h", header.at, header.len);
}

static int shell(Arena *arena, const char *fmt, const char *a) {
    char *command = str_printf(arena, "cd %s && %s >log 2>&1", folder, str_printf(arena, fmt, a));
    int status = system(command);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    if (code != 0) {
        print_message("%s\n", command);
        status = system(str_printf(arena, "head -n 30 %s/log", folder));
    }
    return code;
}

#define STRICT "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror "

static bool have(Arena *arena, const char *program) {
    return system(str_printf(arena, "command -v %s >/dev/null 2>&1", program)) == 0;
}

static void test_strict(void **state) {
    (void)state;
    Arena arena = {0};
    write_case(&arena, "line.c", false);
    write_case(&arena, "model.c", true);
    static const char *const compilers[] = {"gcc", "clang"};
    int tried = 0;
    for (int i = 0; i < 2; i++) {
        if (have(&arena, compilers[i])) {
            tried++;
            assert_int_equal(
                shell(&arena, "%s -std=c11 " STRICT "-O1 -c line.c -o line.o", compilers[i]), 0);
            assert_int_equal(
                shell(&arena, "%s -std=c11 " STRICT "-fsyntax-only model.c", compilers[i]), 0);
            assert_int_equal(shell(&arena,
                                   "%s -std=c11 -O1 -fopenmp " STRICT "-fsyntax-only model.c",
                                   compilers[i]),
                             0);
            assert_int_equal(
                shell(&arena, "%s -std=c++17 -x c++ " STRICT "-fsyntax-only line.c", compilers[i]),
                0);
        }
    }
    arena_free(&arena);
    if (tried == 0) {
        skip_because("no C++ compiler");
    }
}

/* Uses every function of the API; prints what the assertions below read. */
static const char embedder[] =
    "#include \"line.h\"\n"
    "#include <stdio.h>\n"
    "#include <string.h>\n"
    "static _Alignas(64) unsigned char bytes[LINE_PARAMS_BYTES + LINE_STATE_BYTES + LINE_IO_BYTES "
    "+ "
    "LINE_ARENA_BYTES + 64];\n"
    "static unsigned char file[4096];\n"
    "static size_t length;\n"
    "static int put(void *user, const void *data, size_t n) {\n"
    "    (void)user;\n"
    "    memcpy(file + length, data, n);\n"
    "    length += n;\n"
    "    return 0;\n"
    "}\n"
    "static int get(void *user, uint64_t at, void *data, size_t n) {\n"
    "    (void)user;\n"
    "    if (at + n > length) return 1;\n"
    "    memcpy(data, file + at, n);\n"
    "    return 0;\n"
    "}\n"
    "#define WANT(x) do { if (!(x)) { printf(\"line %d: %s\\n\", __LINE__, #x); return 1; } } "
    "while (0)\n"
    "int main(void) {\n"
    "    line m;\n"
    "    memset(&m, 0, sizeof m);\n"
    "    line_memory mem = {bytes, bytes + LINE_PARAMS_BYTES, bytes + LINE_PARAMS_BYTES + "
    "LINE_STATE_BYTES,\n"
    "        bytes + LINE_PARAMS_BYTES + LINE_STATE_BYTES + LINE_IO_BYTES, LINE_PARAMS_BYTES,\n"
    "        LINE_STATE_BYTES, LINE_IO_BYTES, LINE_ARENA_BYTES};\n"
    "    WANT(line_init(&m, 1) == LINE_ERR_STATE);\n"
    "    mem.io_bytes--;\n"
    "    WANT(line_bind(&m, &mem) == LINE_ERR_SIZE);\n"
    "    mem.io_bytes++;\n"
    "    mem.params = bytes + 4;\n"
    "    WANT(line_bind(&m, &mem) == LINE_ERR_ALIGN);\n"
    "    mem.params = NULL;\n"
    "    WANT(line_bind(&m, &mem) == LINE_ERR_ARGUMENT);\n"
    "    mem.params = bytes;\n"
    "    WANT(line_bind(&m, &mem) == LINE_OK && line_init(&m, 1) == LINE_OK);\n"
    "    float x[8], y[8];\n"
    "    for (int i = 0; i < 8; i++) { x[i] = (float)i / 4; y[i] = 3 * x[i] - 1; }\n"
    "    line_fit_in in = {x, y};\n"
    "    line_fit_out out;\n"
    "    WANT(line_fit(&m, NULL, &out) == LINE_ERR_ARGUMENT);\n"
    "    WANT(line_fit_set_lr(&m, 0.3f) == LINE_OK);\n"
    "    for (int i = 0; i < 400; i++) { WANT(line_fit(&m, &in, &out) == LINE_OK); }\n"
    "    WANT(out.loss < 1e-9f);\n"
    "    line_fit_eval_out sums;\n"
    "    WANT(line_fit_eval(&m, &in, 9, &sums) == LINE_ERR_ARGUMENT);\n"
    "    WANT(line_fit_eval(&m, &in, 5, &sums) == LINE_OK && sums.count == 5 && sums.sum < "
    "1e-8f);\n"
    "    line_init_entry_in pin = {x, 0};\n"
    "    line_init_entry_out pout;\n"
    "    WANT(line_init_entry(&m, &pin, &pout) == LINE_OK && pout.double_[4] > 1.99f && "
    "pout.double_[4] < 2.01f);\n"
    "    pin.kind = 3;\n"
    "    WANT(line_init_entry(&m, &pin, &pout) == LINE_ERR_RANGE);\n"
    "    WANT(line_save(&m, LINE_SAVE_ALL, put, NULL) == LINE_OK);\n"
    "    float kept[2] = {*(float *)(void *)bytes, *(float *)(void *)(bytes + 64)};\n"
    "    WANT(line_init(&m, 2) == LINE_OK && *(float *)(void *)bytes == 0.5f);\n"
    "    WANT(line_load(&m, get, NULL) == LINE_OK);\n"
    "    WANT(*(float *)(void *)bytes == kept[0] && *(float *)(void *)(bytes + 64) == kept[1]);\n"
    "    length = 0;\n"
    "    WANT(line_save(&m, LINE_SAVE_PARAMS, put, NULL) == LINE_OK && line_init(&m, 2) == "
    "LINE_OK);\n"
    "    WANT(line_load(&m, get, NULL) == LINE_OK && *(float *)(void *)bytes == kept[0]);\n"
    "    file[20] ^= 1;\n"
    "    WANT(line_load(&m, get, NULL) != LINE_OK);\n"
    "    size_t n;\n"
    "    const md_tensor *t = line_tensors(&n);\n"
    "    WANT(n == 4 && strcmp(t[0].name, \"w\") == 0 && strcmp(t[2].name, \"mdlc.fit.step\") == "
    "0);\n"
    "    WANT(*(int64_t *)(void *)(bytes + LINE_PARAMS_BYTES + t[2].offset) == 0);\n"
    "    x[3] = 1e30f;\n"
    "    WANT(line_fit(&m, &in, &out) == LINE_ERR_NONFINITE && out.loss > 1e38f);\n"
    "    WANT(*(float *)(void *)bytes == kept[0]);\n"
    "    WANT(strlen(line_strerror(LINE_ERR_NONFINITE)) > 10 && strlen(line_strerror(99)) > 3);\n"
    "    return 0;\n"
    "}\n";

static void test_embedded(void **state) {
    (void)state;
    Arena arena = {0};
    const char *cc = getenv("CC") != NULL ? getenv("CC") : "cc";
    write_case(&arena, "line.c", true);
    write_file(&arena, "embed.c", embedder, sizeof embedder - 1);
    assert_int_equal(
        shell(&arena,
              "%s -std=c11 -O1 " STRICT
              "-fsanitize=undefined -fno-sanitize-recover=all line.c embed.c -lm -o embed",
              cc),
        0);
    assert_int_equal(shell(&arena, "%s", "./embed"), 0);
    assert_int_equal(shell(&arena, "%s -std=c11 -O1 -c line.c -o line.o", cc), 0);
    /* What the model part may ask of the outside: no allocator, no stdio. */
    assert_int_equal(shell(&arena, "%s",
                           "! nm -u line.o | grep -Ev ' (mem(cpy|set|move|cmp)|"
                           "__stack_chk_fail|_GLOBAL_OFFSET_TABLE_)$'"),
                     0);
    arena_free(&arena);
}

static void test_main_part(void **state) {
    (void)state;
    Arena arena = {0};
    const char *cc = getenv("CC") != NULL ? getenv("CC") : "cc";
    write_case(&arena, "line.c", false);
    assert_int_equal(shell(&arena, "%s -std=c11 -O1 line.c -lm -o line", cc), 0);
    assert_int_equal(shell(&arena, "%s", "./line info"), 0);
    assert_int_equal(shell(&arena, "%s", "./line info | grep -q 'mdlc.fit.lr'"), 0);
    Text rows = {.arena = &arena};
    for (int i = 0; i < 45; i++) {
        text_printf(&rows, "%d,%d\n", i % 5, 2 * (3 * (i % 5) - 1));
    }
    write_file(&arena, "points.csv", rows.at, rows.len);
    /* Trains, evaluates the rows held out in a full batch and a part, saves, loads. */
    static const char train[] =
        "./line fit --steps 900 --set lr=0.05 --save w.safetensors --log json";
    assert_int_equal(shell(&arena, "(%s > run.json)", train), 0);
    assert_int_equal(
        shell(&arena, "%s", "grep -q '\"event\":\"eval\".*\"rows\":9,\"loss\":[0-9.]*e-' run.json"),
        0);
    assert_int_equal(
        shell(&arena, "%s", "(./line eval --load w.safetensors --log json > eval.json)"), 0);
    assert_int_equal(shell(&arena, "%s", "grep -q '\"loss\":[0-9.]*e-' eval.json"), 0);
    assert_int_equal(
        shell(&arena, "%s", "./line count --load w.safetensors | grep -q 'total = 11.5'"), 0);
    /* A loss that is not finite ends with status 4. */
    assert_int_equal(shell(&arena, "%s", "./line fit --steps 900 --set lr=1e20"), 4);
    arena_free(&arena);
}

static void test_same_bytes(void **state) {
    (void)state;
    Arena arena = {0};
    write_case(&arena, "one.c", false);
    write_case(&arena, "two.c", false);
    assert_int_equal(shell(&arena, "cmp one.c two.c%s", ""), 0);
    arena_free(&arena);
}

/* ---- report, names -------------------------------------------------------------------------- */

static void test_report(void **state) {
    (void)state;
    Arena arena = {0};
    Case t;
    case_open(&t, &arena, false);
    Text json = {.arena = &arena}, text = {.arena = &arena};
    emit_report(&json, &t.c, t.p, &t.c.diag.sources.at[0], true);
    emit_report(&text, &t.c, t.p, &t.c.diag.sources.at[0], false);
    char *total = str_printf(&arena, "\"total\":%lld,", (long long)t.p->total_bytes);
    assert_non_null(strstr(json.at, total));
    assert_non_null(
        strstr(json.at, "{\"name\":\"w\",\"dtype\":\"f32\",\"shape\":[],\"region\":\"params\""));
    assert_non_null(strstr(text.at, "fit"));
    write_file(&arena, "report.json", json.at, json.len);
    if (have(&arena, "python3")) {
        assert_int_equal(
            shell(&arena, "python3 -c \"import json;json.load(open('report.json'))\"%s", ""), 0);
    }
    assert_int_equal(budget_check(&t.c, t.p), EXIT_OK);
    t.c.diag.out = fopen("/dev/null", "w");
    t.c.opt.budget = t.p->total_bytes;
    assert_int_equal(budget_check(&t.c, t.p), EXIT_OK);
    t.c.opt.budget = t.p->total_bytes - 1;
    assert_int_equal(budget_check(&t.c, t.p), EXIT_BUDGET);
    fclose(t.c.diag.out);
    arena_free(&arena);
}

static void test_prefix(void **state) {
    (void)state;
    static const char *const pair[][2] = {
        {"a/b/net.mdl", "net"}, {"my-net.v2.mdl", "my_net_v2"}, {"2fast.mdl", "net_2fast"},
        {"int.mdl", "net_int"}, {"exp.mdl", "net_exp"},         {"md.mdl", "net_md"},
        {"_x.mdl", "net__x"},
    };
    Arena arena = {0};
    Compile c = {0};
    diag_open(&c.diag, &c.arena, fopen("/dev/null", "w"));
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        c.opt.input = pair[i][0];
        assert_string_equal(emit_prefix(&c), pair[i][1]);
    }
    c.opt.prefix = "while";
    assert_null(emit_prefix(&c));
    c.opt.prefix = "a-b";
    assert_null(emit_prefix(&c));
    c.opt.prefix = "ab";
    assert_string_equal(emit_prefix(&c), "ab");
    assert_int_equal(c.diag.errors, 2);
    fclose(c.diag.out);
    arena_free(&c.arena);
    arena_free(&arena);
}

/* What a C compiler reads back as the same string or number. */
static void test_texts(void **state) {
    (void)state;
    Arena arena = {0};
    static const struct {
        double value;
        const char *text;
    } numbers[] = {{NAN, "(double)NAN"},
                   {INFINITY, "(double)INFINITY"},
                   {-INFINITY, "-(double)INFINITY"},
                   {-0.0, "-0.0"},
                   {0.1, "0.10000000000000001"},
                   {-3, "-3.0"},
                   {1e300, "1.0000000000000001e+300"}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        Text text = {.arena = &arena};
        text_double(&text, numbers[i].value);
        assert_string_equal(text.at, numbers[i].text);
    }
    Text text = {.arena = &arena};
    text_literal(&text, "a\"\\?\n\x7f z");
    text_literal(&text, NULL);
    assert_string_equal(text.at, "\"a\\\"\\\\\\?\\012\\177 z\"NULL");
    assert_string_equal(field_name(&(Emit){.arena = &arena}, ""), "value");
    arena_free(&arena);
}

static void test_sha256(void **state) {
    (void)state;
    char text[SHA256_TEXT];
    sha256_text("", 0, text);
    assert_string_equal(text, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    sha256_text("abc", 3, text);
    assert_string_equal(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    const char *two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    sha256_text(two, strlen(two), text);
    assert_string_equal(text, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static int open_folder(void **state) {
    (void)state;
    return !scratch_make(folder, "module");
}

static int close_folder(void **state) {
    (void)state;
    return !scratch_remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256),    cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_strict),    cmocka_unit_test(test_embedded),
        cmocka_unit_test(test_main_part), cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_report),    cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
