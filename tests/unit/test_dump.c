/* A dump is a model text: read again, it gives the same slots, data sets, entries and regions, node
 * by node, at every stage; and what it compiles to is the same program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/equal.h"
#include "dumped.h"
#include "emit/module.h"
#include "op_sample.h"
#include "passes/lower/lower.h"
#include "passes/plan/plan.h"
#include "random_graph.h"

/* Dumps and reads again, as built and after each pass. */
static void check_stages(Module *module, const char *what) {
    Arena arena = {0};
    const char *fault = dumped_stages_fault(&arena, module);
    if (fault) {
        fail_msg("%s %s", what, fault);
    }
    arena_free(&arena);
}

/* Every program that elaborates without an error, in both precisions; at least so many do. */
static void each_program(const char *const *patterns, int n, int least,
                         void (*run)(Dumped *m, const char *path, Elem float_type)) {
    Arena arena = {0};
    glob_t found = {0};
    int count = 0;
    for (int i = 0; i < n; i++) {
        glob(patterns[i], i ? GLOB_APPEND : 0, NULL, &found);
    }
    for (size_t i = 0; i < 2 * found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i / 2];
        Elem float_type = i % 2 ? TY_F64 : TY_F32;
        size_t length;
        const char *text = dumped_file(&arena, path, &length);
        assert_non_null(text);
        Dumped m;
        dumped_make(&m, path, text, length, float_type);
        if (m.module) {
            count += float_type == TY_F32;
            run(&m, path, float_type);
        }
        dumped_done(&m);
    }
    printf("%d programs\n", count);
    assert_true(count >= least);
    globfree(&found);
    arena_free(&arena);
}

static void program_stages(Dumped *m, const char *path, Elem float_type) {
    (void)float_type;
    check_stages(m->module, path);
}

static void test_programs(void **state) {
    (void)state;
    static const char *const patterns[] = {"samples/*.mdl", "tests/library/*.mdl",
                                           "tests/cases/run/*.mdl", "tests/unit/programs/*.mdl"};
    each_program(patterns, 4, 22, program_stages);
}

/* --- the same program ------------------------------------------------------------------------- */

/* The emitted text without blanks, comments and the places of values: these name lines. */
static char *emitted(Dumped *m, const Source *source) {
    Arena *arena = &m->c.arena;
    m->module->name = "net";
    m->module->layer.count = m->module->owner.count = 0; /* which a dump does not have */
    for (int p = 0; p < DUMPED_PASSES; p++) {
        dumped_pass(m->module, p);
    }
    Program *p = pass_lower(&m->c, arena, m->module);
    assert_int_equal(m->c.diag.errors, 0);
    pass_plan(p, true, -1);
    program_names(p);
    Text out = {.arena = arena};
    emit_module(&out, &m->c, p, source);
    char *to = out.at;
    for (const char *at = out.at; *at;) {
        /* Tables with lines of the text. */
        static const char places[] = "static const md_place ", needs[] = "static const md_need ",
                          limits[] = "static const int limit_lines";
        if (at[0] == '/' && at[1] == '*') {
            at = strstr(at, "*/") + 2;
        } else if (*at == ' ' || *at == '\n') { /* of lines that were comments */
            at++;
        } else if (strncmp(at, places, sizeof places - 1) == 0 ||
                   strncmp(at, needs, sizeof needs - 1) == 0 ||
                   strncmp(at, limits, sizeof limits - 1) == 0) {
            at = strstr(at, "};") + 2;
        } else {
            *to++ = *at++;
        }
    }
    *to = '\0';
    return out.at;
}

static void program_emitted(Dumped *m, const char *path, Elem float_type) {
    size_t n;
    const Source *source = &m->c.diag.sources.at[m->source];
    if (float_type != TY_F32) {
        return;
    }
    char *text = dumped_text(&m->c.arena, m->module, &n);
    Dumped again;
    dumped_make(&again, path, text, n, float_type);
    assert_non_null(again.module);
    const char *one = emitted(m, source), *two = emitted(&again, source);
    assert_true(strlen(one) > 10000);
    if (strcmp(one, two) != 0) {
        fail_msg("%s: its dump is another program", path);
    }
    dumped_done(&again);
}

static void test_emitted(void **state) {
    (void)state;
    static const char *const patterns[] = {"samples/*.mdl", "tests/library/structure.mdl"};
    each_program(patterns, 2, 5, program_emitted);
}

/* --- modules around single regions ------------------------------------------------------------ */

typedef struct {
    Arena arena;
    Module *module;
    Graph *g;
    Entry *call;
    Sample s;
} Fixture;

static Entry *entry_new(Fixture *f, EntryKind kind, const char *name) {
    Entry *entry = ARENA_NEW(&f->arena, Entry);
    entry->kind = kind;
    entry->name = name;
    entry->region = region_new(f->g, NULL);
    entry->dataset = -1;
    entry->steps = entry->epochs = entry->budget = -1;
    VEC_PUSH(&f->arena, &f->module->entry, entry);
    return entry;
}

static void fixture_open(Fixture *f, Elem elem, uint64_t rng) {
    memset(f, 0, sizeof *f);
    f->module = ARENA_NEW(&f->arena, Module);
    f->module->arena = &f->arena;
    f->module->graph = f->g = graph_new(&f->arena, elem);
    entry_new(f, ENTRY_INIT, "init");
    f->call = entry_new(f, ENTRY_CALL, "call");
    f->s = (Sample){.g = f->g, .rng = rng, .elem = elem};
    graph_enter(f->g, f->call->region);
}

static void result_add(Fixture *f, Node *node) {
    EntryOut out = {.name = str_printf(&f->arena, "out%d", f->call->out.count)};
    region_result(f->call->region, node);
    VEC_PUSH(&f->arena, &f->call->out, out);
}

/* The slots of the sample become the entry's inputs. */
static void take_inputs(Fixture *f) {
    for (int k = 0; k < f->s.nslot; k++) {
        Slot *slot = f->s.slot[k];
        slot->entry = f->call;
        slot->index = k;
        VEC_PUSH(&f->arena, &f->call->input, slot);
    }
}

static void add_gradients(Fixture *f, Node *value) {
    Node *one = node_full(f->g, *value->type, 1);
    for (int k = 0; k < f->s.nslot && elem_is_float(value->type->elem); k++) {
        if (elem_is_float(f->s.slot[k]->type.elem)) {
            result_add(f, node_grad(f->g, value, node_slot(f->g, f->s.slot[k]), one));
        }
    }
}

static void test_ops(void **state) {
    (void)state;
    int count = 0;
    for (int op = 0; op < OP_COUNT; op++) {
        for (int variant = 0; variant < 1000; variant++) {
            Fixture f;
            fixture_open(&f, variant % 2 ? TY_F64 : TY_F32,
                         1000 * (uint64_t)op + (uint64_t)variant);
            Node *node = sample_build(&f.s, (OpCode)op, variant);
            if (node) {
                take_inputs(&f);
                result_add(&f, node);
                add_gradients(&f, node);
                check_stages(f.module, op_info[op].name);
                count++;
            }
            arena_free(&f.arena);
            if (!node) {
                break;
            }
        }
    }
    printf("%d samples\n", count);
    assert_true(count > 200);
}

static void test_random(void **state) {
    (void)state;
    for (uint64_t number = 0; number < 60; number++) {
        Fixture f;
        RandomGraph r;
        fixture_open(&f, TY_F64, 7919 * number);
        Node *sum = random_graph(&r, &f.s, 20);
        take_inputs(&f);
        result_add(&f, sum);
        add_gradients(&f, sum);
        check_stages(f.module, str_printf(&f.arena, "random graph %d", (int)number));
        arena_free(&f.arena);
    }
}

/* --- what programs seldom hold ---------------------------------------------------------------- */

static void test_numbers(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f, TY_F64, 1);
    static const double values[] = {0.0,       -0.0, INFINITY, -INFINITY,  NAN,    0x1p-1074,
                                    0x1p1023,  1e20, 1.0 / 3,  -2.5e-7,    0x1p53, -NAN,
                                    123456789, 1e15, 0x1p62,   1 - 0x1p-53};
    enum { N = sizeof values / sizeof *values };
    for (int i = 0; i < N; i++) {
        result_add(&f, node_const(f.g, TY_F64, values[i]));
        result_add(&f, node_const(f.g, TY_F32, values[i]));
    }
    static const int64_t integers[] = {0, -1, INT64_MAX, INT64_MIN, INT64_MIN + 1, 1ll << 53};
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        result_add(&f, node_int(f.g, TY_I64, integers[i]));
    }
    result_add(&f, node_int(f.g, TY_I8, -128));
    result_add(&f, node_int(f.g, TY_U32, 4294967295));
    result_add(&f, node_const(f.g, TY_BOOL, 1));
    result_add(&f, node_const(f.g, TY_BOOL, 0));
    result_add(&f, node_table(f.g, type_make(TY_F64, 1, (int64_t[]){N}), values));
    result_add(&f, node_table(f.g, type_make(TY_F64, 2, (int64_t[]){2, N / 2}), values));
    static const double whole[] = {-0x1p53, 3, 2147483647};
    result_add(&f, node_table(f.g, type_make(TY_I64, 1, (int64_t[]){3}), whole));
    result_add(&f, node_table(f.g, type_make(TY_F64, 2, (int64_t[]){0, 3}), values));
    Node *a = node_full(f.g, type_make(TY_F64, 1, (int64_t[]){4}), 2);
    Node *x =
        node_map2(f.g, OP_ADD, a,
                  node_cast(f.g, node_iota(f.g, type_make(TY_I32, 1, (int64_t[]){4}), 0), TY_F64));
    static const int64_t one[] = {1};
    result_add(&f, node_pad(f.g, x, one, one, BORDER_VALUE, -INFINITY));
    result_add(&f, node_pad(f.g, x, one, one, BORDER_VALUE, -0.0));
    result_add(&f, node_pad(f.g, x, one, one, BORDER_WRAP, 0));
    Node *key[2] = {node_int(f.g, TY_I64, INT64_MIN), node_int(f.g, TY_I64, 3)};
    result_add(&f, node_random(f.g, DIST_BITS, UINT64_MAX, key, 2, type_scalar(TY_U32)));
    assert_null(dumped_fault(&f.arena, f.module, "build"));
    /* a difference is seen */
    size_t n;
    char *text = dumped_text(&f.arena, f.module, &n);
    *strstr(text, "0.3333333333333333") = '1';
    Dumped m;
    dumped_make(&m, "dump.mdl", text, n, TY_F64);
    assert_non_null(m.module);
    assert_string_equal(module_difference(f.module, m.module), "call");
    dumped_done(&m);
    arena_free(&f.arena);
}

/* Bodies in bodies: a loop in an adjoint in a loop, dead nodes, names and all kinds of operands. */
static void test_bodies(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f, TY_F32, 1);
    Graph *g = f.g;
    Type row = type_make(TY_F32, 1, (int64_t[]){4});
    Node *xs = sample_input(&f.s, type_make(TY_F32, 2, (int64_t[]){3, 4}), -1, 1);
    Node *w = sample_input(&f.s, row, -1, 1);
    take_inputs(&f);
    LoopBuilder *loop = loop_open(g, 3, true);
    loop_checkpoint(loop, 3);
    int dead = loop_carry(loop, node_full(g, type_scalar(TY_F32), 2));
    int c = loop_carry(loop, node_full(g, row, 1));
    Node *x = graph_name(loop_xs(loop, xs), "slice");
    Node *y = node_map2(g, OP_MUL, x, graph_import(g, w));
    Region *adjoint = region_new(g, g->region);
    Node *point = region_param(adjoint, row), *u = region_param(adjoint, row);
    Region *before = graph_enter(g, adjoint);
    LoopBuilder *inner = loop_open(g, 2, false);
    int k = loop_carry(inner, u);
    loop_next(inner, k, node_map2(g, OP_MUL, loop_carry_value(inner, k), graph_import(g, point)));
    region_result(adjoint, loop_final(g, loop_close(inner), k));
    graph_leave(g, before);
    Node *custom = graph_name(node_custom(g, y, &x, 1, adjoint), "custom.out");
    loop_next(loop, c, node_map2(g, OP_ADD, custom, loop_carry_value(loop, c)));
    int kept = loop_emit(loop, node_cast(g, loop_index(loop), TY_F32));
    Node *made = loop_close(loop);
    (void)dead;
    LoopBuilder *bare = loop_open(g, 5, false); /* no operand, no result */
    loop_close(bare);
    result_add(&f, loop_final(g, made, c));
    result_add(&f, loop_stack(g, made, kept));
    Node *sum = node_fold(g, OP_SUM, loop_final(g, made, c), 1);
    result_add(&f, node_grad(g, sum, w, node_const(g, TY_F32, 1)));
    check_stages(f.module, "bodies");
    arena_free(&f.arena);
}

static const char texts[] =
    "use nn;\n"
    "dim B = 4, T = 3;\n"
    "dataset rows {\n"
    "    file f = \"a \\\"b\\\\.csv\", \"held.csv\";\n"
    "    shuffle false;\n"
    "    x: f32[3] = f.columns(0..3) * 2;\n"
    "    label: u8 in 0..5 = f.column(3);\n"
    "}\n"
    "/// A line with \"quotes\".\n"
    "///\n"
    "/// // and another\n"
    "model net(x: [B, 3]) -> [B] { return x |> a: frozen linear(2) |> b: linear(1) |> squeeze; }\n"
    "/// Trains.\n"
    "train fit(/// how fast\n lr: real = 0.125) of net on rows[B] {\n"
    "    loss mean(net(x)^2); optimizer adam(lr = lr); steps 7; budget 1 MiB;\n"
    "}\n"
    "train more of net on rows[B] { loss mean(net(x)); optimizer sgd(lr = 0.1); }\n"
    "train last of net.b { loss mean(net(zeros([B, 3]))); optimizer sgd(lr = 0.1); steps 3; }\n"
    "phase more, fit then last;\n"
    "/// Calls.\n"
    "entry call(/// what\n/// goes in\n x: [B, 3], n: i32 in 0..9) at B = 1 { return y = net(x), k "
    "= n; }\n"
    "test \"a \\\"title\\\"\" { expect 1 < 2; }\n"
    "test \"gradients\" { expect gradcheck(fit) < 1e-5; }\n";

static void test_texts(void **state) {
    (void)state;
    Dumped m;
    dumped_make(&m, "texts.mdl", texts, sizeof texts - 1, TY_F32);
    if (!m.module) {
        fail_msg("%s", m.messages);
    }
    assert_int_equal(m.module->phase.count, 3);
    m.module->doc = "First line\n\nthird";
    check_stages(m.module, "texts");
    dumped_done(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs), cmocka_unit_test(test_emitted),
        cmocka_unit_test(test_ops),      cmocka_unit_test(test_random),
        cmocka_unit_test(test_numbers),  cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
