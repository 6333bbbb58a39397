/* Elaboration: paths, order and shapes of slots; sites of draws; what index notation becomes; the
 * sums of an evaluation; modules, overrides and messages. Values are checked in the evaluator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compiler/eval.h"
#include "dumped.h"
#include "tests/support.h"

/* What is made is verified too. */
static void make_with(Dumped *m, Options options, const char *text) {
    dumped_make_with(m, options, text, strlen(text));
    for (int i = 0; m->module && i < m->module->entry.count; i++) {
        region_verify(m->module->entry.at[i]->region, STAGE_BUILT);
    }
}

static void make_at(Dumped *m, const char *path, const char *text) {
    make_with(m, (Options){.input = path, .float_type = TY_F32}, text);
}

static void make(Dumped *m, const char *text) {
    make_at(m, "a.mdl", text);
}

static const Slot *slot_at(const Dumped *m, int i, const char *name) {
    assert_non_null(m->module);
    assert_true(i < m->module->slot.count);
    assert_string_equal(m->module->slot.at[i]->name, name);
    return m->module->slot.at[i];
}

static Entry *entry_of(const Dumped *m, EntryKind kind, const char *name) {
    assert_non_null(m->module);
    Entry *entry = module_entry(m->module, kind, name);
    assert_non_null(entry);
    return entry;
}

static void assert_shape(const Slot *slot, int rank, const int64_t *dim) {
    assert_int_equal(slot->type.rank, rank);
    for (int i = 0; i < rank; i++) {
        assert_int_equal(slot->type.dim[i], dim[i]);
    }
}

/* --- slots ----------------------------------------------------------------------------------- */

static const char stacked_text[] =
    "use nn;\n"
    "dim B = 4, L = 3;\n"
    "layer blk(x: [b, c]) -> [b, c] { return x + (fc: linear(x, c)); }\n"
    "layer two(x: [b, c]) -> [b, c] { repeat 2 carry x { x <- blk(x); } return x; }\n"
    "model deep(x: [B, 5]) -> [B, 5] {\n"
    "    f = new linear(5);\n"
    "    repeat L carry x { y = f(x); x <- two(y); }\n"
    "    scan t < 7 carry x { z = cell: linear(x, 5); x <- z; }\n"
    "    return x;\n"
    "}\n"
    "train fit(x: [B, 5]) of deep { loss mean(deep(x)); optimizer sgd(lr = 0.1, momentum = 0.9); "
    "}\n";

static void test_stacking(void **state) {
    (void)state;
    Dumped m;
    make(&m, stacked_text);
    assert_shape(slot_at(&m, 0, "deep.f.weight"), 2, (int64_t[]){5, 5});
    const Slot *w = slot_at(&m, 2, "deep.two.blk.fc.weight");
    assert_shape(w, 4, (int64_t[]){3, 2, 5, 5});
    assert_int_equal(w->stacked, 2);
    assert_string_equal(w->file_name, "two.blk.fc.weight");
    assert_true(w->trainable);
    assert_shape(slot_at(&m, 4, "deep.cell.weight"), 2, (int64_t[]){5, 5});
    assert_shape(slot_at(&m, 8, "fit.two.blk.fc.weight.b"), 4, (int64_t[]){3, 2, 5, 5});
    dumped_done(&m);
}

/* What parameters are called in files: segments of `@name` in place of labels. */
static void test_file_names(void **state) {
    (void)state;
    Dumped m;
    make(&m, "use nn;\n"
             "layer blk(x: [b, c]) -> [b, c] {\n"
             "    @name(\"k\", transpose = true) p = x |> fc: linear(c);\n"
             "    @name(\"n.m\") q = p |> norm: batchnorm;\n"
             "    @name(\"at.{}.b{}.k\", whole = true, transpose = false)\n"
             "    r = q |> side: linear(c);\n"
             "    @name(\"inner\", transpose = false, whole = false)\n"
             "    return q + r |> last: linear(c);\n"
             "}\n"
             "model deep(x: [4, 5]) -> [4, 5] {\n"
             "    @name(\"one\") f = new linear(5);\n"
             "    @name(\"w.w\", transpose = true) param m: [5, 5] = 1;\n"
             "    y[b, j] = sum[i] f(x)[b, i] * m[i, j];\n"
             "    repeat 3 carry g = y {\n"
             "        repeat 2 carry h = g { @name(\"a.{}.b{}\", transpose = true) h <- blk(h); }\n"
             "        @name(\"flat\") g <- late: linear(h, 5);\n"
             "    }\n"
             "    return g;\n"
             "}\n"
             "state copy = deep;\n"
             "train fit(x: [4, 5]) of deep {\n"
             "    loss mean(deep(x));\n"
             "    optimizer sgd(lr = 0.1, momentum = 0.9);\n"
             "}\n"
             "entry go(x: [4, 5]) { return copy(x); }\n");
    static const struct {
        const char *path, *file;
        int split;
        bool transposed;
    } row[] = {
        {"deep.f.weight", "one.weight", 0, false},
        {"deep.f.bias", "one.bias", 0, false},
        {"deep.m", "w.w", 0, true},
        {"deep.blk.fc.weight", "a.{}.b{}.k.weight", 2, true},
        {"deep.blk.fc.bias", "a.{}.b{}.k.bias", 2, false},
        {"deep.blk.norm.weight", "a.{}.b{}.n.m.weight", 2, false},
        {"deep.blk.norm.running_mean", "a.{}.b{}.n.m.running_mean", 2, false},
        {"deep.blk.side.weight", "at.{}.b{}.k.weight", 2, false},
        {"deep.blk.last.weight", "a.{}.b{}.inner.weight", 2, false},
        {"deep.late.weight", "flat.weight", 0, false},
        {"fit.blk.fc.weight.b", "fit.blk.fc.weight.b", 0, false},
        {"copy.blk.fc.weight", "copy.blk.fc.weight", 0, false},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const Slot *slot = NULL;
        for (int k = 0; k < m.module->slot.count; k++) {
            slot = str_eq(m.module->slot.at[k]->name, row[i].path) ? m.module->slot.at[k] : slot;
        }
        if (slot == NULL) {
            fail_msg("no slot %s", row[i].path);
        }
        assert_string_equal(slot->file_name, row[i].file);
        assert_int_equal(slot->split, row[i].split);
        assert_int_equal(slot->transposed, row[i].transposed);
    }
    dumped_done(&m);
}

static void test_order(void **state) {
    (void)state;
    /* the order of models, not that of their use; then states, with counters labelled */
    Dumped m;
    make(&m, "use nn;\ndim B = 2;\n"
             "model a(x: [B, 3]) -> [B, 3] { return x |> fc: linear(3); }\n"
             "model b(x: [B, 3]) -> [B, 3] { return x |> fc: linear(3); }\n"
             "train fit(x: [B, 3], lr: real = 0.5) of b { loss mean(b(a(x))); "
             "optimizer sgd(lr = lr); steps 9; }\n");
    slot_at(&m, 0, "a.fc.weight");
    slot_at(&m, 2, "b.fc.weight");
    assert_false(m.module->slot.at[0]->trainable);
    assert_true(m.module->slot.at[2]->trainable);
    assert_string_equal(m.module->slot.at[0]->file_name, "a.fc.weight");
    assert_string_equal(slot_at(&m, 4, "seed")->label, "seed");
    assert_string_equal(slot_at(&m, 5, "fit.step")->label, "step");
    assert_int_equal((int)slot_at(&m, 6, "fit.steps")->initial, 9);
    assert_true(slot_at(&m, 7, "fit.lr")->initial == 0.5);
    assert_int_equal(region_count(entry_of(&m, ENTRY_TRAIN, "fit")->region, OP_GRAD), 2);
    dumped_done(&m);
}

static void test_frozen(void **state) {
    (void)state;
    Dumped m;
    make(&m, "use nn;\ndim B = 2;\n"
             "model a(x: [B, 3]) -> [B, 3] { return x |> fc: frozen linear(3) |> up: linear(3); }\n"
             "train fit(x: [B, 3]) of a { loss mean(a(x)); optimizer sgd(lr = 1.0); "
             "freeze a.up.bias; }\n");
    assert_true(slot_at(&m, 0, "a.fc.weight")->frozen);
    assert_false(m.module->slot.at[0]->trainable);
    assert_true(slot_at(&m, 2, "a.up.weight")->trainable);
    assert_false(slot_at(&m, 3, "a.up.bias")->trainable);
    dumped_done(&m);
}

static void test_f64(void **state) {
    (void)state;
    Dumped m;
    make_with(&m, (Options){.input = "a.mdl", .float_type = TY_F64}, stacked_text);
    const Region *region = entry_of(&m, ENTRY_TRAIN, "fit")->region;
    for (int i = 0; i < region->node.count; i++) {
        assert_int_not_equal(region->node.at[i]->type->elem, TY_F32);
    }
    dumped_done(&m);
}

/* --- draws ----------------------------------------------------------------------------------- */

static uint64_t nth_site(const Region *region, int n) {
    for (int i = 0; i < region->node.count; i++) {
        if (region->node.at[i]->op == OP_RANDOM && n-- == 0) {
            return region->node.at[i]->attr->site;
        }
    }
    return 0;
}

static void test_sites(void **state) {
    (void)state;
    static const char start[] = "use nn;\ndim B = 2;\nmodel a(x: [B, 3]) -> [B, 3] { "
                                "return x |> fc: linear(3) |> dropout(0.5) |> dropout(0.5)";
    static const char end[] = "; }\ntrain fit(x: [B, 3], y: [B, 3]) of a { "
                              "loss mean(a(x) + a(y) + a(x)); optimizer sgd(lr = 0.1); }\n";
    char text[600];
    snprintf(text, sizeof text, "%s%s", start, end);
    Dumped m;
    make(&m, text);
    const Region *region = entry_of(&m, ENTRY_TRAIN, "fit")->region;
    /* two draws in a(x), two others in a(y); the second a(x) is the first */
    assert_int_equal(region_count(region, OP_RANDOM), 4);
    assert_int_equal(region_count(region, OP_CONTRACT), 2);
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < i; k++) {
            assert_true(nth_site(region, i) != nth_site(region, k));
        }
    }
    uint64_t weight = nth_site(entry_of(&m, ENTRY_INIT, NULL)->region, 0);
    uint64_t bias = nth_site(entry_of(&m, ENTRY_INIT, NULL)->region, 1);
    dumped_done(&m);
    snprintf(text, sizeof text, "%s |> more: linear(3)%s", start, end);
    make(&m, text); /* a new layer changes no draw of the others */
    assert_true(nth_site(entry_of(&m, ENTRY_INIT, NULL)->region, 0) == weight);
    assert_true(nth_site(entry_of(&m, ENTRY_INIT, NULL)->region, 1) == bias);
    assert_true(nth_site(entry_of(&m, ENTRY_INIT, NULL)->region, 2) != weight);
    dumped_done(&m);
}

/* --- index notation -------------------------------------------------------------------------- */

static void test_contractions(void **state) {
    (void)state;
    static const struct {
        const char *body;
        int contract, sum, gather, window, loop;
    } cases[] = {
        {"y[i, o] = sum[k] x[i, k] * w[o, k];", 1, 0, 0, 0, 0},
        {"y[i, o] = mean[k] -2 * x[i, k] * w[o, k] / 7;", 1, 0, 0, 0, 0},
        {"y[i, o] = sum[k] x[i, k] * w[o, k] * c[i];", 1, 0, 0, 0, 0},
        {"y[i] = sum[k, o] x[i, k] * w[o, k];", 1, 1, 0, 0, 0}, /* o is summed in w */
        {"y[i, o] = sum[k, j] x[i, k] * w[o, k] * c[j];", 1, 1, 0, 0, 0},
        {"y = sum[i, k] x[i, k] * x[i, k];", 0, 1, 0, 0, 0}, /* no rows, no columns */
        {"y[i] = sum[k] x[i, k]^2;", 0, 1, 0, 0, 0},
        {"y[i, o < 3] = sum[k < 3] x[i, o + k] * c[k];", 1, 0, 0, 1, 0},
        {"y[i] = x[i, div(i, 2)];", 0, 0, 1, 0, 0},
        {"y[j, i] = x[i, 5 - j] + x[i, j];", 0, 0, 0, 0, 0},
        {"scan t < 4 carry s = 0.0 { s <- s + x[t, 1]; } y = s;", 0, 0, 0, 0, 1},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[400];
        snprintf(text, sizeof text, "entry go(x: [4, 6], w: [5, 6], c: [4]) { %s return y; }\n",
                 cases[k].body);
        Dumped m;
        make(&m, text);
        if (!m.module) {
            fail_msg("%s: %s", cases[k].body, m.messages);
        }
        const Region *region = entry_of(&m, ENTRY_CALL, "go")->region;
        if (region_count(region, OP_CONTRACT) != cases[k].contract ||
            region_count(region, OP_SUM) != cases[k].sum ||
            region_count(region, OP_GATHER) != cases[k].gather ||
            region_count(region, OP_WINDOW) != cases[k].window ||
            region_count(region, OP_LOOP) != cases[k].loop) {
            region_dump(region, stderr, 0);
            fail_msg("%s", cases[k].body);
        }
        for (int i = 0; i < region->node.count; i++) {
            const Node *node = region->node.at[i];
            for (int j = 0; node->op == OP_CONTRACT && j < 2; j++) {
                assert_int_not_equal(node->in[j]->op, OP_BROADCAST);
            }
            if (node->op == OP_LOOP) { /* the picked row is a stacked input */
                assert_int_equal(node->attr->nxs, 1);
                assert_int_equal(node->attr->ninv, 0);
            }
        }
        dumped_done(&m);
    }
}

/* --- evaluation ------------------------------------------------------------------------------ */

static void test_evaluation(void **state) {
    (void)state;
    Dumped m;
    make(&m, "use nn;\ndim B = 4;\n"
             "dataset d { file f = \"d.csv\"; x: f32[3] = f.columns(0..3); y: f32 = f.column(3); "
             "holdout every(5); }\n"
             "model a(x: [B, 3]) -> [B, 3] { param w: [3] = 2; z[b, k] = x[b, k] * w[k]; "
             "return z; }\n"
             "train fit of a on d[B] {\n"
             "    z = a(x);\n"
             "    loss mean(z^2) + 0.5 * sum(a.w^2);\n"
             "    metric r2 = 1 - sum((z[:, 0] - y)^2) / (sum(y^2) - sum(y)^2 / f32(n));\n"
             "    n = sum(i32(y * 0) + 1);\n"
             "    metric flat = sqrt(mean(z as [B * 3]));\n"
             "    optimizer sgd(lr = 0.1);\n"
             "}\n");
    assert_null(m.module); /* n is used before it has a value */
    dumped_done(&m);
    make(&m,
         "use nn;\ndim B = 4;\n"
         "dataset d { file f = \"d.csv\"; x: f32[3] = f.columns(0..3); y: f32 = f.column(3); "
         "holdout every(5); }\n"
         "model a(x: [B, 3]) -> [B, 3] { param w: [3] = 2; z[b, k] = x[b, k] * w[k]; return z; }\n"
         "train fit of a on d[B] {\n"
         "    z = a(x);\n"
         "    n = sum(i32(y * 0) + 1);\n"
         "    loss mean(z^2) + 0.5 * sum(a.w^2);\n"
         "    metric r2 = 1 - sum((z[:, 0] - y)^2) / (sum(y^2) - sum(y)^2 / f32(n));\n"
         "    metric flat = sqrt(mean(z as [B * 3]));\n"
         "    metric twice = 2 * loss;\n"
         "    optimizer sgd(lr = 0.1);\n"
         "}\n");
    if (!m.module) {
        fail_msg("%s", m.messages);
    }
    enum { ROWS = 7, FULL = 4, MOST_SUMS = 16 };
    double x[ROWS][3], y[ROWS], sum[MOST_SUMS] = {0};
    double squares = 0, total = 0, rest = 0, sy = 0, syy = 0;
    for (int i = 0; i < ROWS; i++) {
        y[i] = 0.3 * i - 1;
        sy += y[i];
        syy += y[i] * y[i];
        for (int k = 0; k < 3; k++) {
            x[i][k] = 0.25 * (i + 1) + 0.5 * k;
            squares += 4 * x[i][k] * x[i][k];
            total += 2 * x[i][k];
        }
        rest += (2 * x[i][0] - y[i]) * (2 * x[i][0] - y[i]);
    }
    Entry *eval = entry_of(&m, ENTRY_EVAL, "fit"), *end = entry_of(&m, ENTRY_EVAL_END, "fit");
    Arena arena = {0};
    Eval *ev = eval_open(&arena, (EvalOptions){0});
    for (int i = 0; i < m.module->slot.count; i++) {
        double two[3] = {2, 2, 2};
        if (m.module->slot.at[i]->kind == SLOT_PARAM) {
            eval_bind(ev, m.module->slot.at[i], two);
        }
    }
    for (int first = 0; first < ROWS; first += FULL) {
        int rows = ROWS - first < FULL ? ROWS - first : FULL;
        double batch[FULL][3], label[FULL];
        for (int i = 0; i < FULL; i++) { /* unused rows repeat row 0 */
            int from = first + (i < rows ? i : 0);
            memcpy(batch[i], x[from], sizeof batch[i]);
            label[i] = y[from];
        }
        for (int i = 0; i < eval->input.count; i++) {
            Slot *slot = eval->input.at[i];
            double n = rows;
            eval_bind(ev, slot,
                      slot == eval->rows_slot     ? &n
                      : str_eq(slot->c_name, "x") ? batch[0]
                                                  : label);
        }
        Value out[MOST_SUMS];
        assert_in_range(eval->region->out.count, 1, MOST_SUMS);
        eval_region(ev, eval->region, out);
        for (int i = 0; i < eval->region->out.count; i++) {
            assert_int_equal(eval->out.at[i].role, OUT_SUM);
            sum[i] += value_get(out[i], 0);
        }
    }
    assert_int_equal(end->input.count, eval->region->out.count);
    for (int i = 0; i < end->input.count; i++) {
        assert_string_equal(end->input.at[i]->name, eval->out.at[i].name);
        eval_bind(ev, end->input.at[i], &sum[i]);
    }
    Value out[4];
    assert_int_equal(end->region->out.count, 4);
    assert_int_equal(end->out.at[0].role, OUT_LOSS);
    assert_string_equal(end->out.at[1].name, "r2");
    eval_region(ev, end->region, out);
    double loss = squares / (3 * ROWS) + 0.5 * 12;
    assert_true(fabs(value_get(out[0], 0) - loss) < 1e-6 * loss);
    assert_true(fabs(value_get(out[1], 0) - (1 - rest / (syy - sy * sy / ROWS))) < 1e-5);
    assert_true(fabs(value_get(out[2], 0) - sqrt(total / (3 * ROWS))) < 1e-6);
    assert_true(fabs(value_get(out[3], 0) - 2 * loss) < 1e-6 * loss);
    arena_free(&arena);
    dumped_done(&m);
}

/* --- overrides, modules, messages ------------------------------------------------------------ */

static void test_override(void **state) {
    (void)state;
    static const char text[] = "dim N = 4;\nconst k = 2;\nentry go(x: [N]) { return x * k; }\n";
    Override override = {"N", "3 * 2"};
    Options options = {
        .input = "a.mdl", .float_type = TY_F32, .override = &override, .noverride = 1};
    Dumped m;
    make_with(&m, options, text);
    assert_int_equal(entry_of(&m, ENTRY_CALL, "go")->input.at[0]->type.dim[0], 6);
    dumped_done(&m);
    override.name = "M";
    make_with(&m, options, text);
    assert_null(m.module);
    assert_non_null(strstr(m.messages, "no dim or const 'M'"));
    dumped_done(&m);
}

static void write_text(const char *path, const char *text) {
    assert_true(file_write(path, text, strlen(text)));
}

static void test_modules(void **state) {
    (void)state;
    char folder[SCRATCH_PATH], path[4][SCRATCH_PATH + 16];
    assert_true(scratch_make(folder, "elab"));
    snprintf(path[0], sizeof path[0], "%s/mine.mdl", folder);
    snprintf(path[1], sizeof path[1], "%s/ping.mdl", folder);
    snprintf(path[2], sizeof path[2], "%s/pong.mdl", folder);
    snprintf(path[3], sizeof path[3], "%s/main.mdl", folder);
    write_text(path[0], "use nn;\nop twice(x: [...]) -> [...] { return 2 * relu(x); }\n");
    write_text(path[1], "use pong;\n");
    write_text(path[2], "use ping;\n");
    static const char text[] = "use mine;\nentry go(x: [3]) { return twice(x); }\n";
    Dumped m;
    make_at(&m, path[3], text);
    assert_int_equal(region_count(entry_of(&m, ENTRY_CALL, "go")->region, OP_MAX), 1);
    assert_string_equal(m.module->name, "main");
    dumped_done(&m);
    /* what a module uses is its own affair */
    make_at(&m, path[3], "use mine;\nentry go(x: [3]) { return relu(x); }\n");
    assert_non_null(strstr(m.messages, "unknown op or layer 'relu'"));
    dumped_done(&m);
    /* an item of the file hides that of a module */
    make_at(&m, path[3],
            "use mine;\nop twice(x: [...]) -> [...] { return x; }\n"
            "entry go(x: [3]) { return twice(x); }\n");
    assert_int_equal(region_count(entry_of(&m, ENTRY_CALL, "go")->region, OP_MAX), 0);
    dumped_done(&m);
    make_at(&m, path[3], "use ping;\n");
    assert_null(m.module);
    assert_non_null(strstr(m.messages, "uses itself"));
    dumped_done(&m);
    assert_true(scratch_remove(folder));
}

static void test_said_once(void **state) {
    (void)state;
    /* the layer is elaborated by a train and an entry, in a loop and outside; one message */
    Dumped m;
    make(&m, "use nn;\ndim B = 2;\n"
             "layer bad(x: [b, c]) -> [b, c] { return x + nothing; }\n"
             "model a(x: [B, 3]) -> [B, 3] { y = one: bad(x); return y |> two: bad; }\n"
             "train fit(x: [B, 3]) of a { loss mean(a(x)); optimizer sgd(lr = 0.1); }\n"
             "entry go(x: [B, 3]) { return a(x), w = a.one.weight; }\n");
    assert_null(m.module);
    assert_int_equal(m.c.diag.errors, 1);
    assert_non_null(strstr(m.messages, "a.mdl:3:45: error: unknown name 'nothing' [E0205]"));
    dumped_done(&m);
}

/* What is unused is elaborated for its errors alone: a warning, and nothing in the module. */
static void test_unused(void **state) {
    (void)state;
    Dumped m;
    make(&m, "use nn;\ndim B = 2;\n"
             "op once(x: [..., n]) -> [..., n] { y[..., j] = x[..., j] * n; return y; }\n"
             "model a(x: [B, 3]) -> [B, 3] { return x |> fc: linear(3) |> bn: batchnorm; }\n"
             "model b(x: [B, 3]) -> [B, 3] { return 2 * a(x) |> dropout(0.5); }\n"
             "entry go(x: [B, 3]) { return x; }\n");
    assert_non_null(m.module);
    assert_int_equal(m.c.diag.warnings, 2);
    assert_non_null(strstr(m.messages, "a.mdl:4:7: warning: model 'a' is used by no train"));
    assert_int_equal(m.module->slot.count, 1); /* the seed */
    dumped_done(&m);
    make(&m, "use nn;\ndim B = 2;\n"
             "model a(x: [b, 3]) -> [b, 3] { return x |> fc: linear(3); }\n"
             "entry go(x: [B, 3]) { return x; }\n");
    assert_int_equal(m.c.diag.errors, 0); /* its rows are not known: only names are looked up */
    assert_int_equal(m.c.diag.warnings, 1);
    dumped_done(&m);
}

/* A train on data that does not say how long a run lasts. */
static void test_no_length(void **state) {
    (void)state;
    static const char text[] =
        "use nn;\ndim B = 2;\n"
        "dataset d { file f = \"d.csv\"; x: f32[3] = f.columns(0..3); }\n"
        "model a(x: [B, 3]) -> [B, 1] { return x |> fc: linear(1); }\n"
        "train fit of a on d[B] { loss mean(a(x)^2); optimizer sgd(lr = 0.1); %s }\n";
    static const char *const clauses[] = {"", "steps 3;", "epochs 3;"};
    for (int i = 0; i < 3; i++) {
        char whole[512];
        snprintf(whole, sizeof whole, text, clauses[i]);
        Dumped m;
        make(&m, whole);
        assert_non_null(m.module);
        assert_int_equal(m.c.diag.warnings, i == 0);
        if (i == 0) {
            assert_non_null(strstr(m.messages, "a.mdl:5:7: warning: train 'fit' has neither"));
        }
        dumped_done(&m);
    }
}

/* `step`, `steps` and `epoch` are counters of the train, made when they are read. */
static void test_counters(void **state) {
    (void)state;
    Dumped m;
    make(&m, "use nn;\ndim B = 2;\n"
             "model a(x: [B, 3]) -> [B, 1] { return x |> fc: linear(1); }\n"
             "train fit(x: [B, 3]) of a { loss mean(a(x)^2); metric seen = f32(epoch);\n"
             "    optimizer sgd(lr = 0.1); steps 7; }\n"
             "entry go() { return e = epoch, s = step, n = steps; }\n");
    assert_non_null(m.module);
    int found = 0;
    for (int i = 0; i < m.module->slot.count; i++) {
        const Slot *slot = m.module->slot.at[i];
        if (str_eq(slot->name, "fit.epoch") || str_eq(slot->name, "fit.steps")) {
            assert_true(slot->entry == entry_of(&m, ENTRY_TRAIN, "fit"));
            assert_true(slot->initial == (str_eq(slot->name, "fit.steps") ? 7 : 0));
            found++;
        }
    }
    assert_int_equal(found, 2);
    dumped_done(&m);
}

/* The evaluator keeps what entries store, as emitted programs do (tests/suites/entries.c). */
static void test_stored(void **state) {
    (void)state;
    Dumped m;
    make(&m, "ring r[3] { x: f32[2]; k: i32 in 1..4; }\n"
             "state n: i32 = 7;\n"
             "entry put(x: f32[2, 2], k: i32[2] in 1..4) { r.push(x, k); n <- n + 1; }\n"
             "entry get() { b = r.sample(2); return n = n, b = b.x; }\n");
    Arena arena = {0};
    Eval *ev = eval_open(&arena, (EvalOptions){0});
    Value out[16];
    const Entry *init = entry_of(&m, ENTRY_INIT, NULL), *put = entry_of(&m, ENTRY_CALL, "put");
    const Entry *get = entry_of(&m, ENTRY_CALL, "get");
    for (int i = 0; i < m.module->slot.count; i++) {
        if (m.module->slot.at[i]->role == STATE_COUNTER) {
            eval_bind_int(ev, m.module->slot.at[i], 0);
        }
    }
    eval_region(ev, init->region, out);
    eval_store(ev, init, out);
    for (int i = 0; i < 2; i++) {
        double x[4] = {i + 1.0, 2, i + 3.0, 4}, k[2] = {1 + i, 2 + i};
        eval_bind(ev, put->input.at[0], x);
        eval_bind(ev, put->input.at[1], k);
        eval_region(ev, put->region, out);
        eval_store(ev, put, out);
    }
    static const double want_x[6] = {4, 4, 3, 4, 2, 2}; /* the fourth row came round */
    static const int64_t want_k[3] = {3, 2, 2};
    for (int i = 0; i < m.module->slot.count; i++) {
        Value v;
        const Slot *slot = m.module->slot.at[i];
        assert_true(eval_bound(ev, slot, &v));
        for (int k = 0; k < 6 && str_eq(slot->name, "r.x"); k++) {
            assert_true(v.at[k].f == want_x[k]);
        }
        for (int k = 0; k < 3 && str_eq(slot->name, "r.k"); k++) {
            assert_int_equal(v.at[k].i, want_k[k]);
        }
        assert_true(!str_eq(slot->name, "r.count") || v.at[0].i == 4);
        assert_true(!str_eq(slot->name, "n") || v.at[0].i == 9);
    }
    assert_int_equal(get->out.at[get->out.count - 2].role, OUT_NEED);
    assert_int_equal(get->region->out.at[get->out.count - 2]->attr->ivalue, 2);
    arena_free(&arena);
    dumped_done(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stacking),     cmocka_unit_test(test_file_names),
        cmocka_unit_test(test_order),        cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_f64),          cmocka_unit_test(test_sites),
        cmocka_unit_test(test_contractions), cmocka_unit_test(test_evaluation),
        cmocka_unit_test(test_override),     cmocka_unit_test(test_modules),
        cmocka_unit_test(test_said_once),    cmocka_unit_test(test_unused),
        cmocka_unit_test(test_no_length),    cmocka_unit_test(test_counters),
        cmocka_unit_test(test_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
