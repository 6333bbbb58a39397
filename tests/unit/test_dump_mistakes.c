/* Dumped graphs that are wrong: each mistake is one message, and damage ends in messages or in a
 * module that every graph pass takes, never in a fault. MUTANTS=n in the environment tries n times
 * as much damage, SEED=n starts elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dumped.h"
#include "op_sample.h"

static const char right[] =
    "@graph(float = f32)\n"
    "use core;\n"
    "state s0: f32[4] = core.parameter(\"net.w\", trainable = true);\n"
    "state s1: i64 = core.counter(\"seed\", label = \"seed\");\n"
    "state s2: i64 = core.counter(\"fit.step\", label = \"step\", entry = e1);\n"
    "state s3: f32[4] = core.copy(\"old.w\", of = \"net.w\");\n"
    "@graph(shuffle = true, holdout = 5)\n"
    "dataset rows {\n"
    "    core.file(\"f\", \"a.csv\");\n"
    "    x: f32[3] = core.columns(0, count = 3, raw_count = 3, raw = f32, load = e6);\n"
    "}\n"
    "const t0 = [1.0, 2.0, 3.0, 4.0];\n"
    "op a0(p0: f32[4], p1: f32[4]) {\n"
    "    n0: f32[4] = core.param(p0);\n"
    "    n1: f32[4] = core.param(p1);\n"
    "    return n1;\n"
    "}\n"
    "@graph(init, \"init\")\n"
    "entry e0() {\n"
    "    n0: f32[4] = core.table(t0);\n"
    "    n1: i64 = core.const(-1);\n"
    "    return core.write(n0, slot = \"net.w\"), core.write(n1, slot = \"fit.step\"),\n"
    "        core.write(n0, slot = \"old.w\");\n"
    "}\n"
    "@graph(train, \"fit\", data = rows, rows = 2)\n"
    "entry e1(x: f32[2, 3], k: i32 in 0..9) {\n"
    "    n0: f32[4] = core.slot(\"net.w\");\n"
    "    n1: f32[2, 3] = core.slot(x);\n"
    "    @loop(n2, carry = 1, invariant = 1)\n"
    "    scan 2 carry p0, p1 = n0, p2 = n0, p3 = n1 {\n"
    "        n0: i32 = core.param(p0);\n"
    "        n1: f32[4] = core.param(p1, name = \"h\");\n"
    "        n2: f32[4] = core.param(p2);\n"
    "        n3: f32[3] = core.param(p3);\n"
    "        n4: f32[4] = core.add(n1, n2);\n"
    "        n5: f32[4] = core.custom(n4, n1, body = a0);\n"
    "        return n5, n3;\n"
    "    }\n"
    "    n3: f32[4] = core.pick(n2, result = 0);\n"
    "    n4: f32[2, 3] = core.pick(n2, result = 1);\n"
    "    n5: f32 = core.sum(n4, axes = [0, 1]);\n"
    "    n6: f32[3, 2] = core.permute(n4, map = [1, 0]);\n"
    "    n7: f32[2, 2] = core.contract(n4, n6, a = \"ab\", b = \"bc\", to = \"ac\");\n"
    "    n8: i64 = core.slot(\"fit.step\");\n"
    "    return core.loss(n5, name = \"loss\"), core.write(n3, slot = \"net.w\"),\n"
    "        core.write(n8, slot = \"fit.step\");\n"
    "}\n"
    "@graph(eval, \"fit\", data = rows, rows = 2, train = e1, in_use = rows)\n"
    "entry e2(x: f32[2, 3], rows: i32 in 1..3) {\n"
    "    n0: f32[2, 3] = core.slot(x);\n"
    "    n1: f32 = core.sum(n0, axes = [0, 1]);\n"
    "    return core.sum(n1, name = \"sum0\");\n"
    "}\n"
    "@graph(eval_end, \"fit\", train = e1)\n"
    "entry e3(sum0: f32) { n0: f32 = core.slot(sum0); return core.loss(n0, name = \"loss\"); }\n"
    "@graph(call, \"go\")\n"
    "entry e4(x: f32[5]) {\n"
    "    n0: f32[5] = core.slot(x);\n"
    "    n1: f32[2, 3] = core.window(n0, axis = 0, s = 1, d = 1, p = 0, count = 2, taps = 3, n = "
    "5);\n"
    "    n2: i64 = core.slot(\"seed\");\n"
    "    n3: f32 = core.random(n2, n2, dist = normal, site = 18446744073709551615);\n"
    "    return core.result(n1, name = \"out\"), core.result(n3, name = \"draw\");\n"
    "}\n"
    "@graph(test, \"a test\")\n"
    "entry e5() { n0: bool = core.const(true); return core.expect(n0, name = \"expect\"); }\n"
    "@graph(load, \"x\")\n"
    "entry e6(row: f32[3]) { n0: f32[3] = core.slot(row); return core.result(n0, name = \"x\"); }\n"
    "@graph(test, \"check\", gradcheck = e1, tolerance = 1e-5)\n"
    "entry e7() {\n"
    "    n0: f32 = core.const(nan);\n"
    "    n1: f32[4] = core.broadcast(n0, axes = [0]);\n"
    "    return core.loss(n0, name = \"loss\"), core.result(n1, name = \"net.w\", slot = "
    "\"net.w\");\n"
    "}\n";

typedef struct {
    const char *old, *new;
    int id;
} Mistake;

static const Mistake mistakes[] = {
    /* arguments and literals */
    {"core.table(t0)", "f(t0)", 801},
    {"core.table(t0)", "core.table(t0, 3)", 816},
    {"core.table(t0)", "core.table(t0, axis = 3)", 802},
    {"holdout = 5", "holdout = 5.5", 803},
    {"holdout = 5", "holdout = -5", 804},
    {"holdout = 5", "holdout = 5, test = 1", 804},
    {"raw_count = 3, raw", "raw_count = 3, norm = 1, raw", 884},
    {"raw_count = 3, raw", "raw_count = 3, centre = \"net.w\", raw", 819},
    {"core.const(-1)", "core.const(-9223372036854775809)", 804},
    {"core.const(-1)", "core.const(99999999999999999999)", 804},
    {"i64 = core.const(-1)", "u8 = core.const(-1)", 804},
    {"18446744073709551615", "18446744073709551616", 805},
    {"18446744073709551615", "normal", 805},
    {"core.const(nan)", "core.const(x)", 806},
    {"[1.0, 2.0", "[1.0, x", 806},
    {"core.const(true)", "core.const(1)", 807},
    {"core.file(\"f\"", "core.file(f", 808},
    {"\"net.w\", trainable", "\"net w\", trainable", 809},
    {"\"net.w\", trainable", "\"\", trainable", 809},
    {"\"net.w\", trainable", "\"3\", trainable", 809},
    {"label = \"seed\"", "label = \"a.b\"", 809},
    {"core.counter(\"seed\"", "core.conter(\"seed\"", 810},
    {"@graph(train", "@graph(trains", 810},
    {"dist = normal", "dist = norm", 810},
    {"core.columns", "core.column", 810},
    {"core.expect", "core.expects", 810},
    {"dist = normal", "dist = 2", 811},
    {"n0: f32[4] = core.table", "n0: x[4] = core.table", 812},
    {"float = f32", "float = x", 812},
    {"n0: f32[4] = core.table", "n0: bf16[4] = core.table", 813},
    {"entry e4(x: f32[5])", "entry e4(x: f32[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])", 814},
    {"entry e4(x: f32[5])", "entry e4(x: f32[10000000, 10000000])", 815},
    /* regions */
    {"n1: i64 = core.const", "n0: i64 = core.const", 820},
    {"core.add(n1, n2)", "core.add(n1, n9)", 821},
    {"core.add(n1, n2)", "core.add(n1, 2)", 821},
    {"n3: f32[4] = core.pick(n2", "n3: f32[4] = core.pick(n5", 821},
    {"core.slot(row)", "core.slot(row, 3)", 816},
    {"core.slot(row)", "core.slot(3)", 822},
    {"core.slot(row)", "core.slot()", 822},
    {"core.slot(row)", "core.slot(x)", 823},
    {"core.slot(\"seed\")", "core.slot(\"sed\")", 823},
    {"a = \"ab\"", "a = \"abc\"", 824},
    {"a = \"ab\"", "a = \"a0\"", 824},
    {"axes = [0, 1]", "axes = 0", 825},
    {"map = [1, 0]", "map = [1]", 817},
    {"map = [1, 0]", "map = [1, 12]", 804},
    {"core.table(t0)", "core.table()", 826},
    {"3.0, 4.0]", "3.0]", 827},
    {"n0: f32[4] = core.table", "n0: i32[4] = core.table", 888},
    {"n1: i64 = core.const(-1)", "n1: i32[4] = core.table(t1)", 829},
    {"core.table(t0)", "core.table(\"t0\")", 829},
    {"core.param(p3)", "core.param(p4)", 830},
    {"core.param(p3)", "core.param()", 830},
    {"n0: f32[4] = core.table(t0)", "n0: f32[4] = core.param(p0)", 830},
    {"core.param(p2)", "core.param(p1)", 831},
    {"f32[4] = core.param(p2)", "f32[5] = core.param(p2)", 832},
    {"        n0: i32 = core.param(p0);\n", "", 833},
    {"core.sum(n4", "core.sum(n2", 834},
    {"core.add(n1, n2);", "core.custom(n1, n2, body = a0);", 835},
    {"body = a0", "body = a1", 836},
    {", body = a0", "", 836},
    {"custom(n4, n1", "custom(n4, n1, n2", 837},
    {"carry p0, p1 = n0", "carry p0 = n0, p1 = n0", 838},
    {"carry p0, p1 = n0", "carry p0, p1", 838},
    {"p2 = n0, p3", "p1 = n0, p3", 839},
    {"p3 = n1 {", "p3 = n3 {", 821},
    {"n1: f32[2, 3] = core.slot(x);\n    @loop", "n1: f32 = core.const(1.0);\n    @loop", 840},
    {"invariant = 1)", "invariant = 0)", 832},
    {"    @loop(n2, carry = 1, invariant = 1)\n", "", 841},
    {"@loop(n2, ", "@loop(", 842},
    {"@loop(n2, ", "@lop(n2, ", 841},
    {"return n5, n3;", "", 843},
    {"scan 2 carry", "scan 3 carry", 844},
    {"return n5, n3;", "return n3, n5;", 844},
    {"core.add(n1", "core.ad(n1", 845},
    {"core.add(n1", "core.loop(n1", 845},
    {"n0: i32 = core.param(p0);", "n0: f32[4] = core.slot(\"net.w\");", 846},
    {"f32[5] = core.slot(x)", "f32[4] = core.slot(x)", 847},
    {"core.add(n1, n2)", "core.add(n1)", 848},
    {"core.add(n1, n2)", "core.add(n1, n3)", 848},
    {"axes = [0, 1]);\n    n6", "axes = [0, 2]);\n    n6", 848},
    {"a = \"ab\"", "a = \"ad\"", 848},
    {"a = \"ab\"", "a = \"aa\"", 848},
    {"result = 1", "result = 2", 848},
    {"s = 1, d", "s = 3, d", 848},
    {"s = 1, d", "s = 1099511627776, d", 848},
    {"count = 2, taps", "count = 1099511627776, taps", 848},
    {"axes = [0]);", "axes = [0, 1]);", 848},
    {"n5: f32 =", "n5: f32[2] =", 849},
    {"n1: f32[2, 3] = core.slot(x)", "n1: f32[2, 3] in 0..1 = core.slot(x)", 850},
    {"core.const(-1)", "core.const()", 851},
    {"return n5, n3;", "return n5, n3; n6: i32 = core.const(1);", 852},
    {"return n5, n3;", "x = n5; return n5, n3;", 853},
    {"scan 2", "repeat 2", 853},
    /* items */
    {"@graph(shuffle", "@grph(shuffle", 860},
    {"float = f32", "float = f64", 861},
    {"trainable = true", "split = 1", 804},
    {"trainable = true", "transposed = true", 818},
    {"trainable = true", "stacked = 1, split = 1", 818},
    {"of = \"net.w\"", "of = \"net.v\"", 819},
    {"state s3: f32[4]", "state s3: f32[3]", 819},
    {"const t0 = [1.0, 2.0, 3.0, 4.0];", "const t0 = 1;", 862},
    {"const t0", "const t0 = [1.0], t0", 863},
    {"op a0(p0: f32[4], p1: f32[4]) {", "op a0() { } op a0(p0: f32[4], p1: f32[4]) {", 863},
    {"entry e4(x", "entry e5(x", 863},
    {"x: f32[2, 3], k: i32", "x: f32[2, 3], x: i32", 863},
    {"@graph(shuffle", "dataset rows { }\n@graph(shuffle", 863},
    {"op a0(p0: f32[4], p1: f32[4]) {", "op a0(p0: f32[4], p1: f32[4]) -> f32[4] {", 864},
    {"const t0", "dim B = 3;\nconst t0", 865},
    {"entry e5()", "entry e5() at B = 1", 865},
    {"use core;", "use core; use nn;", 866},
    {"entry = e1", "entry = e9", 867},
    {"core.counter(\"seed\", ", "core.counter(", 868},
    {"state s0: f32[4] =", "state s0 =", 869},
    {"core.file(\"f\", \"a.csv\")", "core.file(\"f\")", 870},
    {"core.columns(0, ", "core.columns(", 871},
    {"raw = f32, ", "", 872},
    {"core.file(\"f\", \"a.csv\");", "shuffle true;", 873},
    {"k: i32 in 0..9)", "k: i32 in 0..9 = 9)", 874},
    {"data = rows, rows = 2)", "data = row, rows = 2)", 875},
    {"@graph(call, \"go\")", "@graph(call)", 876},
    {"core.loss(n5, ", "core.loss(", 877},
    {"n5: f32[4] = core.custom(n4, n1, body = a0)", "n5: f32[4] = core.add(n4, n1)", 878},
    /* modules */
    {"core.counter(\"fit.step\"", "core.counter(\"seed\"", 880},
    {"state s0: f32[4]", "state s0: i32[4]", 881},
    {"state s1: i64 =", "state s1: i64[2] =", 882},
    {", label = \"seed\"", "", 882},
    {"core.file(\"f\", \"a.csv\");\n", "", 804},
    {"raw_count = 3", "raw_count = 2", 884},
    {"load = e6", "load = e4", 884},
    {"rows = 2)\nentry e1(x: f32[2, 3]", "rows = 3)\nentry e1(x: f32[2, 3]", 885},
    {"core.sum(n1, name", "core.loss(n1, name", 886},
    {"core.loss(n5, name = \"loss\")", "core.loss(n5)", 887},
    {"core.write(n1, slot = \"fit.step\")", "core.write(n1)", 887},
    {"core.write(n3, slot = \"net.w\")", "core.write(n4, slot = \"net.w\")", 888},
    {"core.write(n3, slot = \"net.w\")", "core.write(n4, slot = x)", 888},
    {"core.loss(n5,", "core.loss(n4,", 889},
    {"core.loss(n5,", "core.loss(n2,", 889},
    {"n0: bool = core.const(true)", "n0: f32 = core.const(1.0)", 890},
    {"core.result(n1, name = \"out\")", "core.result(n1, name = \"draw\")", 891},
    {"core.write(n1, slot = \"fit.step\")", "core.write(n0, slot = \"net.w\")", 891},
    {", core.write(n1, slot = \"fit.step\")", "", 892},
    {"entry e0()", "entry e0(x: f32)", 893},
    {"train = e1, in_use = rows", "in_use = rows", 894},
    {", in_use = rows", "", 894},
    {"entry e2(x: f32[2, 3], rows", "entry e2(x: f32[2, 3], y: f32, rows", 895},
    {"entry e3(sum0: f32) { n0: f32 = core.slot(sum0)",
     "entry e3(sum1: f32) { n0: f32 = core.slot(sum1)", 896},
    {"gradcheck = e1", "gradcheck = e4", 897},
    {", gradcheck = e1", "", 898},
    {"@graph(call", "@graph(init", 899},
    {"data = rows, rows = 2)", "data = rows)", 900},
    {"data = rows, rows = 2)", "data = rows, rows = 2, accumulate = 4)", 855},
    {"core.loss(n5, name = \"loss\")", "core.result(n5, name = \"loss\")", 901},
    {"@graph(call, ", "@graph(eval_end, ", 886},
    {"@graph(test, \"a test\")\nentry e5() {",
     "@graph(eval_end, \"fit\") entry e8() { }\n@graph(test, \"a test\")\nentry e5() {", 902},
    {"entry e6(row: f32[3])", "entry e6(row: f32[3], other: f32[3])", 903},
    {"float = f32)", "float = f32, phase = [\"fit\"])", 904},
    {"float = f32)", "float = f32, phase = [[\"fit\"], [\"fit\"]])", 905},
    {"float = f32)", "float = f32, phase = [[\"init\"]])", 905},
    {"\"go\")\nentry e4(", "\"go\", in_use = r)\nentry e4(r: i32, ", 906},
    {"@graph(shuffle = true, holdout = 5)", "@graph(shuffle = true, ring = \"seed\")", 907},
};

static void expect_error(Dumped *m, const char *what, int id) {
    char text[16];
    snprintf(text, sizeof text, "[E%04d]", id);
    if (m->module || m->c.diag.errors != 1 || !strstr(m->messages, text)) {
        fail_msg("%s: not one %s:\n%s", what, text, m->messages);
    }
    dumped_done(m);
}

static char *exchange(Arena *arena, const char *text, const char *old, const char *new) {
    const char *at = strstr(text, old);
    if (!at) {
        fail_msg("\"%s\" does not occur", old);
    }
    return str_printf(arena, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
}

static void test_mistakes(void **state) {
    (void)state;
    Dumped m;
    dumped_make(&m, "right.mdl", right, sizeof right - 1, TY_F32);
    if (!m.module) {
        fail_msg("%s", m.messages);
    }
    assert_null(dumped_fault(&m.c.arena, m.module, "reading"));
    dumped_done(&m);
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        Arena arena = {0};
        char *wrong = exchange(&arena, right, mistakes[i].old, mistakes[i].new);
        dumped_make(&m, "wrong.mdl", wrong, strlen(wrong), TY_F32);
        expect_error(&m, str_printf(&arena, "%s -> %s", mistakes[i].old, mistakes[i].new),
                     mistakes[i].id);
        arena_free(&arena);
    }
}

static void test_limits(void **state) {
    (void)state;
    Dumped m;
    static const char empty[] = "use core;";
    dumped_make(&m, "empty.mdl", empty, strlen(empty), TY_F32);
    expect_error(&m, "no entries", 899);
    Arena arena = {0};
    Text text = {.arena = &arena};
    text_add(&text, "use core;\n@graph(init, \"init\")\nentry e0() {\n");
    for (int i = 0; i < 101; i++) {
        text_add(&text, "@loop(n1) scan 2 carry p0 { n0: i32 = core.param(p0);\n");
    }
    for (int i = 0; i < 101; i++) {
        text_add(&text, "}");
    }
    text_add(&text, "}");
    dumped_make(&m, "deep.mdl", text.at, text.len, TY_F32);
    expect_error(&m, "deep loops", 854);
    arena_free(&arena);
}

/* --- damage ----------------------------------------------------------------------------------- */

/* Another word or number of the text in place of one of its own; what is still a graph goes on. */
static char *damage(Arena *arena, const char *text, uint64_t *rng) {
    static const char word[] = "0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.\"";
    size_t n = strlen(text);
    Sample s = {.rng = *rng};
    const char *from = text + sample_below(&s, (int64_t)n),
               *to = text + sample_below(&s, (int64_t)n);
    from += strcspn(from, word);
    to += strcspn(to, word);
    bool lost = sample_below(&s, 8) == 0;
    *rng = s.rng;
    return str_printf(arena, "%.*s%.*s%s", (int)(to - text), text,
                      lost ? 0 : (int)strspn(from, word), from, to + strspn(to, word));
}

static void survive(const char *text) {
    Dumped m;
    dumped_make(&m, "damaged.mdl", text, strlen(text), TY_F32);
    if (m.module) {
        for (int p = 0; p < DUMPED_PASSES; p++) {
            dumped_pass(m.module, p);
        }
    }
    dumped_done(&m);
}

static void test_damage(void **state) {
    (void)state;
    const char *times = getenv("MUTANTS"), *seed = getenv("SEED");
    long count = 3000 * (times ? strtol(times, NULL, 10) : 1);
    uint64_t rng = seed ? strtoull(seed, NULL, 10) : 20240;
    for (long i = 0; i < count; i++) {
        Arena arena = {0};
        survive(damage(&arena, i % 2 ? right : damage(&arena, right, &rng), &rng));
        arena_free(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
