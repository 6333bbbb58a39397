/* Schedules: which one a part gets is what the table of the target says, and nothing else changes.
 * Values: test_lower. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiled.h"
#include "passes/check.h"
#include "passes/schedule/product.h"
#include "passes/schedule/schedule.h"
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

/* What the statements of an entry are made of. */
typedef struct {
    int tiles, loops, parallel, unrolled, ahead, most_ahead;
    int64_t own; /* elements of workspaces of which each thread has its own */
} Shape;

/* `open`: axes of the loops around the list. */
static void count_list(const StmtList *list, AxisSet open, Shape *shape) {
    for (int i = 0; i < list->count; i++) {
        const Stmt *s = list->at[i];
        const AxisSet inside = s->kind == STMT_FOR ? open | (AxisSet)1 << s->axis : open;
        for (int k = 0; k < s->ahead.count; k++) {
            assert_int_equal(s->ahead.at[k].at->axes & ~inside, 0);
        }
        shape->tiles += s->kind == STMT_TILE;
        shape->loops += s->kind == STMT_FOR;
        shape->parallel += s->kind == STMT_FOR && s->parallel > 0;
        shape->unrolled += s->unroll;
        shape->ahead += s->ahead.count;
        shape->most_ahead = s->ahead.count > shape->most_ahead ? s->ahead.count : shape->most_ahead;
        count_list(&s->body, inside, shape);
    }
}

/* Elements of workspaces of which each thread has its own. */
static int64_t own_in(const Kernel *k) {
    int64_t own = 0;
    for (int i = 0; i < k->arg.count; i++) {
        own += k->arg.at[i]->thread ? k->arg.at[i]->part : 0;
    }
    return own;
}

/* The statements of the one kernel of a compiled text. */
static Shape shape_in(Dumped *m, const Program *p) {
    assert_non_null(p);
    const ProgramEntry *e = p->entry.at[p->entry.count - 1];
    Shape shape = {0};
    assert_int_equal(e->step.count, 1);
    const Kernel *k = e->step.at[0]->kernel;
    count_list(&k->body, 0, &shape);
    shape.own = own_in(k);
    dumped_done(m);
    return shape;
}

/* For `target`. */
static Shape shape_of(const char *text, const Target *target) {
    Dumped m;
    const Program *p = compiled_target(&m, text, target);
    return shape_in(&m, p);
}

static void test_product(void **state) {
    (void)state;
    const char *text = "entry f(a: [64, 96], b: [96, 80]) {\n"
                       "    y[i, j] = sum[k] a[i, k] * b[k, j];\n    return y;\n}\n";
    assert_int_equal(shape_of(text, &target_cpu).tiles, 1);
    Target slow = target_cpu;
    slow.tile_time = 2 * slow.loop_time;
    Shape loops = shape_of(text, &slow);
    assert_int_equal(loops.tiles, 0);
    assert_true(loops.loops > 0);
}

static void test_threads(void **state) {
    (void)state;
    const char *text = "entry f(x: [1000003]) { return exp(x) + 1; }\n";
    Target far = target_cpu;
    assert_int_equal(shape_of(text, &far).parallel, 1);
    far.launch_time = INT64_MAX / 2;
    assert_int_equal(shape_of(text, &far).parallel, 0);
}

static void test_blocks(void **state) {
    (void)state;
    const char *text = "entry f(x: [640, 512]) { y[i < 512, j < 640] = x[j, i]; return y; }\n";
    Target other = target_cpu;
    int blocks = shape_of(text, &target_cpu).loops;
    assert_int_equal(blocks, 4); /* both axes, and both within a block */
    const Schedule *const few[] = {&cpu_nest, NULL};
    other.schedule = few;
    assert_int_equal(shape_of(text, &other).loops, 2);
    /* Where lines of memory cost nothing, blocks have no reason: of equal ones the first. */
    const Schedule *const both[] = {&cpu_nest, &cpu_turned, NULL};
    other.schedule = both;
    assert_int_equal(shape_of(text, &other).loops, blocks);
    other.byte_time = 0;
    assert_int_equal(shape_of(text, &other).loops, 2);
}

static void test_shared_rows(void **state) {
    (void)state;
    const char *text = "entry f(x: [56, 512], w: [512]) {\n"
                       "    y[i, j] = x[i, j] * tanh(w[j]);\n    return y;\n}\n";
    needs_usual_sizes(); /* what rows share is worth a kernel of its own with others */
    assert_int_equal(shape_of(text, &target_cpu).unrolled, 1);
    Target free_work = target_cpu;
    free_work.loop_time = 0;
    const Schedule *const both[] = {&cpu_nest, &cpu_jammed, NULL};
    free_work.schedule = both;
    assert_int_equal(shape_of(text, &free_work).unrolled, 0);
    free_work.loop_time = 1;
    assert_int_equal(shape_of(text, &free_work).unrolled, 1);
}

/* Tiles and loops of all kernels of an entry that does not stand in loops. */
static Shape shapes_of(const char *text) {
    Dumped m;
    const Program *p = compiled_target(&m, text, &target_cpu);
    assert_non_null(p);
    const ProgramEntry *e = p->entry.at[p->entry.count - 1];
    Shape all = {0};
    for (int i = 0; i < e->step.count; i++) {
        const Kernel *k = e->step.at[i]->kernel;
        for (int j = 0; k && j < k->body.count; j++) {
            const Stmt *s = k->body.at[j];
            const bool tile = s->kind == STMT_TILE;
            Shape shape = {0};
            count_list(&s->body, s->kind == STMT_FOR ? (AxisSet)1 << s->axis : 0, &shape);
            all.tiles += tile;
            all.loops += tile ? 0 : shape.tiles; /* a tile in a loop */
        }
    }
    dumped_done(&m);
    return all;
}

/* A convolution along three axes is a product, and so are its gradients by the input, at a stride
 * of two by eight phases, and by the weights: sums of four axes. None stands in loops but the one
 * that spreads into windows which do not overlap: places and windows are seven axes. */
static void test_volumes(void **state) {
    (void)state;
    needs_usual_sizes();
    static const struct {
        const char *text;
        int products, loops;
    } layers[] = {
        {"conv3d(32, 3, pad = 1)", 3, 0},
        {"conv3d(32, 3, pad = 1, stride = 2)", 10, 0},
        {"conv3d(32, 3, pad = 2, dilation = 2)", 3, 0},
        {"conv3d(32, [1, 3, 5], pad = [0, 1, 2])", 3, 0},
        {"conv3d(32, [3, 1, 1])", 3, 0},
        {"conv3d(32, 2, mode = \"circular\", pad = 1)", 3, 0},
        {"conv_transpose3d(32, 3, pad = 1)", 3, 0},
        {"conv_transpose3d(32, 2, stride = 2)", 2, 1},
    };
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "use nn;\nmodel net(x: [4, 16, 10, 9, 8]) { return x |> l: %s; }\n"
                 "entry f(x: [4, 16, 10, 9, 8]) {\n    y = net(x);\n"
                 "    return y = y, dx = vjp(y, x, cos(y)),\n"
                 "        dw = vjp(y, net.l.weight, cos(y));\n}\n",
                 layers[i].text);
        Shape shape = shapes_of(text);
        if (shape.tiles != layers[i].products || shape.loops != layers[i].loops) {
            fail_msg("%d products, %d in loops: %s", shape.tiles, shape.loops, layers[i].text);
        }
    }
}

/* Which operand gives the rows of a product, where it could be either and the other axis of the
 * weights is a batch: not weights whose rows lie nine floats apart, so that a register tile reads
 * another line for each at each step; but twelve that lie side by side. */
static void test_roles(void **state) {
    (void)state;
    needs_usual_sizes();
    static const struct {
        const char *text;
        int64_t rows, batch;
    } of[] = {
        {"entry f(d: [8, 64, 256], w: [256, 128, 9]) {\n"
         "    y[b, i, p, c] = sum[o] d[b, i, o] * w[o, c, p];\n    return y;\n}\n",
         512, 9},
        {"entry f(d: [64, 12, 12, 32], x: [64, 14, 14, 12]) {\n"
         "    y[o, c, p < 3, q < 3] = sum[b, i, j] d[b, i, j, o] * x[b, i + p, j + q, c];\n"
         "    return y;\n}\n",
         36, 3},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        Dumped m;
        const Program *p = compiled_target(&m, of[i].text, &target_cpu);
        assert_non_null(p);
        const StepList *steps = &p->entry.at[p->entry.count - 1]->step;
        assert_int_equal(steps->count, 1);
        const Tile *tile = kernel_tile(steps->at[0]->kernel);
        assert_non_null(tile);
        const md_tile plan = product_plan(tile);
        assert_int_equal(plan.r1.n * plan.r2.n, of[i].rows);
        assert_int_equal(plan.b1.n * plan.b2.n, of[i].batch);
        dumped_done(&m);
    }
}

/* Channels of what a caller gives lie in front of the places: the copy with a border turns them,
 * and a depthwise convolution and its gradients are loops along them, no products of single rows.
 * So is one behind a 1x1 convolution of what is given. */
static void test_given_channels(void **state) {
    (void)state;
    static const struct {
        const char *layers;
        int tiles; /* of the 1x1 convolution, and its gradient by the weights */
    } of[] = {
        {"l: conv2d(64, 3, pad = 1, groups = 64)", 0},
        {"l: conv2d(64, 5, pad = 2, groups = 64)", 0},
        {"l: conv2d(64, 3, pad = 1, stride = 2, groups = 64)", 0},
        {"c: conv2d(64, 1) |> l: conv2d(64, 3, pad = 1, groups = 64)", 2},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "use nn;\nmodel net(x: [8, 64, 28, 28]) { return x |> %s; }\n"
                 "entry f(x: [8, 64, 28, 28]) {\n    y = net(x);\n    return y = y,\n"
                 "        %s dw = vjp(y, net.l.weight, cos(y));\n}\n",
                 of[i].layers, of[i].tiles > 0 ? "dc = vjp(y, net.c.weight, cos(y))," : "");
        const Shape shape = shapes_of(text);
        if (shape.tiles != of[i].tiles) {
            fail_msg("%d products: %s", shape.tiles, of[i].layers);
        }
    }
}

/* Windows along vectors of channels ask for lines of a tensor that no cache holds, read or written:
 * of those of a window the last one alone. */
static void test_ahead(void **state) {
    (void)state;
    needs_usual_sizes();
    const char *window =
        "y[b, i < %d, j < %d, c] = sum[p < 3, q < 3] x[b, i + p, j + q, c] * w[p, q, c];";
    char line[160], text[320];
    const int side[] = {32, 8}, batch[] = {8, 1};
    for (int i = 0; i < 2; i++) {
        snprintf(line, sizeof line, window, side[i], side[i]);
        snprintf(text, sizeof text,
                 "entry f(x: [%d, %d, %d, 64], w: [3, 3, 64]) {\n    %s\n    return y;\n}\n",
                 batch[i], side[i] + 2, side[i] + 2, line);
        assert_int_equal(shape_of(text, &target_cpu).ahead, i == 0 ? 2 : 0);
    }
}

/* The copy with a border is a sample for each thread: one loop over samples makes and multiplies
 * each, and asks for what the next one is made of and for where the result goes. Its border is not
 * of zeros, which windows of small odd sizes read in place. */
static void test_slices(void **state) {
    (void)state;
    const char *text =
        "entry f(x: [24, 16, 16, 64], w: [3, 3, 64]) {\n    z = max(x, 0);\n"
        "    y[b, i < 16, j < 16, c] = sum[p < 3, q < 3] (z[b, i + p - 1, j + q - 1, c] "
        "else 1) * w[p, q, c];\n    return y;\n}\n";
    const Shape shape = shape_of(text, &target_cpu);
    assert_int_equal(shape.parallel, 1);
    /* The lines of a window; places of small odd sizes lie apart. */
    assert_int_equal(shape.own, 3 * 18 * (ODD_SIZES ? 80 : 64));
    assert_int_equal(shape.ahead, ODD_SIZES ? 3 : 2);
}

/* Who makes the lines of windows asks for the result's, where it has much to do meanwhile and these
 * are half of what is asked for; else the windows ask for all. */
static void test_asks_in_turn(void **state) {
    (void)state;
    needs_usual_sizes();
    const char *little = "max(x[b, i, j, c], 0)";
    const char *much = "max((x[b, i, j, c] - m[c]) * r[c] * g[c] + a[c], 0)";
    const struct {
        const char *made;
        int step, most;
    } of[] = {{little, 1, 2}, {much, 1, 1}, {much, 2, 2}};
    for (int i = 0; i < 3; i++) {
        char text[512];
        const int step = of[i].step, side = 32 / step;
        snprintf(text, sizeof text,
                 "entry f(x: [24, 32, 32, 64], w: [3, 3, 64], m: [64], r: [64], g: [64], a: [64]) "
                 "{\n    z[b, i, j, c] = %s;\n    y[b, i < %d, j < %d, c] = sum[p < 3, q < 3] "
                 "(z[b, %d * i + p - 1, %d * j + q - 1, c] else 0) * w[p, q, c];\n"
                 "    return y;\n}\n",
                 of[i].made, side, side, step, step);
        const Shape shape = shape_of(text, &target_cpu);
        assert_int_equal(shape.own, 3 * (step * (side - 1) + 3) * 64);
        assert_int_equal(shape.ahead, 2);
        assert_int_equal(shape.most_ahead, of[i].most);
    }
}

/* What is made of the sums of windows reads another tensor line by line: the windows ask for its
 * next line, too. */
static void test_asks_behind(void **state) {
    (void)state;
    needs_usual_sizes();
    const Shape shape = shape_of(
        "entry f(x: [24, 32, 32, 64], w: [3, 3, 64], m: [24, 32, 32, 64], p: [64]) {\n"
        "    z = max(x, 0);\n    y[b, i < 32, j < 32, c] = sum[p < 3, q < 3] "
        "(z[b, i + p - 1, j + q - 1, c] else 0) * w[p, q, c];\n"
        "    o[b, i, j, c] = select(m[b, i, j, c] > p[c], y[b, i, j, c], 0);\n    return o;\n}\n",
        &target_cpu);
    assert_int_equal(shape.own, 3 * 34 * 64 + 32 * 64); /* lines of the copy, and one of sums */
    assert_int_equal(shape.most_ahead, 2);
}

/* The elements of a sample's copy that are there at a time, for windows of `k` x `k`. */
static int64_t own_of(int k, int stride, int dilation) {
    char text[512];
    const int pad = k / 2 * dilation;
    snprintf(text, sizeof text,
             "entry f(x: [24, 24, 30, 64], w: [%d, %d, 64]) {\n    z = max(x, 0);\n"
             "    y[b, i < %d, j < %d, c] = sum[p < %d, q < %d] (z[b, %d * i + %d * p - %d, "
             "%d * j + %d * q - %d, c] else 0) * w[p, q, c];\n    return y;\n}\n",
             k, k, 24 / stride, 30 / stride, k, k, stride, dilation, pad, stride, dilation, pad);
    return shape_of(text, &target_cpu).own;
}

/* A window's lines are there at a time, where these are few; else all of the sample. Windows that
 * share little have no copy. */
static void test_lines(void **state) {
    (void)state;
    needs_usual_sizes();
    assert_int_equal(own_of(3, 1, 1), 3 * 32 * 64);
    assert_int_equal(own_of(3, 2, 1), 0);
    assert_int_equal(own_of(5, 1, 1), 28 * 34 * 64);
    assert_int_equal(own_of(3, 1, 2), 28 * 34 * 64);
}

/* The gradient by a window's numbers keeps its sums in registers along a line of many places, and a
 * window's lines are there at a time; along short lines, or where a window fills the first-level
 * cache, through the whole picture. Windows that share little have no copy of values that are
 * little work. */
static void test_lines_of_sums(void **state) {
    (void)state;
    needs_usual_sizes();
    const char *little = "max(x[b, i, j, c], 0)";
    const char *norm = "max((x[b, i, j, c] - m[c]) * r[c] + a[c], 0)";
    const struct {
        int side, channels, window, step;
        const char *made;
        int lines;
    } of[] = {{16, 128, 3, 1, little, 3}, {16, 32, 4, 2, little, 4}, {8, 128, 3, 1, little, 10},
              {16, 64, 4, 2, little, 34}, {16, 64, 3, 2, little, 0}, {16, 128, 3, 2, norm, 0}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char text[512];
        const int side = of[i].side, c = of[i].channels, step = of[i].step, k = of[i].window;
        snprintf(text, sizeof text,
                 "entry f(x: [32, %d, %d, %d], w: [%d, %d, %d], m: [%d], r: [%d], a: [%d]) {\n"
                 "    z[b, i, j, c] = %s;\n"
                 "    y[b, i < %d, j < %d, c] = sum[p, q] (z[b, %d * i + p - 1, %d * j + q - 1, c] "
                 "else 0) * w[p, q, c];\n    return grad(sum(y^3), w);\n}\n",
                 side * step, side * step, c, k, k, c, c, c, c, of[i].made, side, side, step, step);
        Dumped m;
        const Program *p = compiled_target(&m, text, &target_cpu);
        assert_non_null(p);
        const ProgramEntry *e = p->entry.at[p->entry.count - 1];
        assert_int_equal(e->step.count, 2); /* the cotangent, and the gradient */
        const int64_t own = own_in(e->step.at[1]->kernel);
        assert_int_equal(own, of[i].lines * (step * (side - 1) + k) * c);
        dumped_done(&m);
    }
}

/* The rows of a sum of far memory, in parts, are added up slice by slice: what a turn asks for is
 * told by the turns of the slice. */
static void test_slices_of_sums(void **state) {
    (void)state;
    needs_usual_sizes();
    const char *text = "entry f(x: [16, 33, 256], p: [256]) {\n"
                       "    s[c] = sum[b, t] x[b, t, c];\n    return p - 0.1 * s;\n}\n";
    Dumped m; /* on one thread both loops are one */
    const Program *p = compiled_text(&m, text, 1);
    assert_int_equal(shape_in(&m, p).ahead, 1);
}

/* The first loop that asks ahead, or that stores; NULL: none. */
static Stmt *loop_with(const StmtList *list, bool ahead) {
    for (int i = 0; i < list->count; i++) {
        Stmt *s = list->at[i], *inside = loop_with(&s->body, ahead);
        const bool stores = s->body.count > 0 && s->body.at[0]->kind == STMT_STORE;
        if (inside || (s->kind == STMT_FOR && (ahead ? s->ahead.count > 0 : stores))) {
            return inside ? inside : s;
        }
    }
    return NULL;
}

/* The checker of plans refuses a kernel that names the place of a loop it does not stand in, in
 * what it asks for and in what it stores. */
static void test_places_of_loops(void **state) {
    (void)state;
    needs_usual_sizes();
    for (int ahead = 0; ahead < 2; ahead++) {
        Dumped m;
        Program *p = compiled_text(&m,
                                   "entry f(x: [16, 33, 256], p: [256]) {\n"
                                   "    s[c] = sum[b, t] x[b, t, c];\n    return p - 0.1 * s;\n}\n",
                                   1);
        assert_non_null(p);
        compiled_plan(p);
        assert_null(check_program(&m.c.arena, p));
        Kernel *k = p->entry.at[p->entry.count - 1]->step.at[0]->kernel;
        Stmt *loop = loop_with(&k->body, ahead);
        assert_non_null(loop);
        assert_true(k->naxis > 1);
        const int elsewhere = (loop->axis + 1) % k->naxis;
        Index place = {.axes = (AxisSet)1 << elsewhere};
        if (ahead) {
            loop->ahead.at[0].at = &place;
        } else {
            loop->axis = elsewhere;
        }
        const char *wrong = check_program(&m.c.arena, p);
        assert_non_null(wrong);
        assert_non_null(strstr(wrong, "names the place of a loop around something else"));
        dumped_done(&m);
    }
}

/* A window of many places goes along several places of the picture side by side, each of which asks
 * for its lines. Where these are none of a few times as many, those of some of its lines are in
 * registers: the rows of the result are there before, and only what is read is asked for. */
static void test_lines_of_windows(void **state) {
    (void)state;
    needs_usual_sizes();
    static const int k[][4] = {
        {3, 5, 32, 16}, {7, 7, 28, 14}, {3, 5, 31, 2}, {7, 7, 31, 1}, {9, 9, 32, 0}};
    for (size_t i = 0; i < sizeof k / sizeof *k; i++) {
        char text[320];
        snprintf(text, sizeof text,
                 "entry f(x: [8, 40, 40, 64], w: [%d, %d, 64]) {\n"
                 "    y[b, i < 32, j < %d, c] = sum[p, q] x[b, i + p, j + q, c] * w[p, q, c];\n"
                 "    return y;\n}\n",
                 k[i][0], k[i][1], k[i][2]);
        assert_int_equal(shape_of(text, &target_cpu).ahead, k[i][3]);
    }
}

/* Gradients of such numbers have their sums in registers too, of many channels, where a window has
 * few places and many terms. Else rows of channels are added; or the terms, which are few, are the
 * window, and sums of a line of the numbers stand side by side. */
static void test_sums_of_windows(void **state) {
    (void)state;
    needs_usual_sizes();
    static const int k[][4] = {/* places of a window and of a picture, each way; channels; loops */
                               {3, 16, 512, 2},  {3, 16, 1024, 2}, {5, 16, 1024, 2},
                               {3, 16, 4096, 1}, {9, 16, 512, 1},  {5, 8, 1024, 3}};
    for (size_t i = 0; i < sizeof k / sizeof *k; i++) {
        char text[320];
        snprintf(text, sizeof text,
                 "dim P = %d, N = %d, C = %d;\n"
                 "entry f(x: [8, 24, 24, C], d: [8, N, N, C]) {\n"
                 "    y[p < P, q < P, c] = sum[b, i, j] x[b, i + p, j + q, c] * d[b, i, j, c];\n"
                 "    return y;\n}\n",
                 k[i][0], k[i][1], k[i][2]);
        assert_int_equal(shape_of(text, &target_cpu).unrolled, k[i][3]);
    }
}

/* Rows of a tensor that no cache holds share a loop only while they lie within 512 bytes; sums over
 * such rows ask for later ones, each tensor once, where they are more than eight registers. */
static void test_far_rows(void **state) {
    (void)state;
    needs_usual_sizes();
    static const struct {
        int rows, columns, of; /* the body */
        int unrolled, ahead;
    } cases[] = {
        {56, 512, 0, 1, 0},   {4096, 512, 0, 0, 0}, {4096, 64, 0, 1, 0},  {4096, 128, 0, 0, 0},
        {4096, 128, 1, 0, 0}, {4096, 192, 1, 0, 1}, {4096, 192, 2, 0, 2}, {512, 192, 2, 0, 0},
    };
    const char *const body[] = {"y[i, j] = (x[i, j] - u[j]) * w[j] + v[j]", "y[j] = sum[i] x[i, j]",
                                "y[j] = sum[i] max(x[i, j], z[i, j])"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[320];
        snprintf(
            text, sizeof text,
            "dim M = %d, N = %d;\n"
            "entry f(x: [M, N], z: [M, N], u: [N], v: [N], w: [N]) {\n    %s;\n    return y;\n}\n",
            cases[i].rows, cases[i].columns, body[cases[i].of]);
        const Shape shape = shape_of(text, &target_cpu);
        if (shape.unrolled != cases[i].unrolled || shape.ahead != cases[i].ahead) {
            fail_msg("%d unrolled, %d ahead: %s", shape.unrolled, shape.ahead, text);
        }
    }
}

/* Rows of at most 512 bytes whose elements go through a function ask for later rows of each tensor
 * that no cache holds, once for all stages of a row; what has no function, no sum over a row or
 * longer rows does not. */
static void test_rows_with_functions(void **state) {
    (void)state;
    needs_usual_sizes();
    static const struct {
        int rows, columns, of, ahead;
    } cases[] = {{4096, 64, 0, 1}, {4096, 128, 0, 1}, {4096, 192, 0, 0}, {256, 64, 0, 0},
                 {4096, 64, 1, 2}, {4096, 64, 2, 0},  {4096, 64, 3, 0}};
    const char *const body[] = {"y = softmax(x)", "y = softmax(x) * z",
                                "s[i] = sum[j] x[i, j]; y[i, j] = x[i, j] / s[i]", "y = exp(x)"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[320];
        snprintf(text, sizeof text,
                 "use nn;\ndim M = %d, N = %d;\n"
                 "entry f(x: [M, N], z: [M, N]) {\n    %s;\n    return y;\n}\n",
                 cases[i].rows, cases[i].columns, body[cases[i].of]);
        const Shape shape = shape_of(text, &target_cpu);
        if (shape.ahead != cases[i].ahead) {
            fail_msg("%d ahead: %s", shape.ahead, text);
        }
    }
}

/* What the kernels of the text launch on a graphics processor: parallel loops and products, and
 * nothing stands beside them. */
static Shape launches_of(const char *text) {
    Dumped m;
    const Program *p = compiled_target(&m, text, &target_cuda);
    assert_non_null(p);
    const ProgramEntry *e = p->entry.at[p->entry.count - 1];
    Shape all = {0};
    for (int n = 0; n < e->step.count; n++) {
        const Kernel *k = e->step.at[n]->kernel;
        Shape shape = {0};
        for (int i = 0; i < k->body.count; i++) {
            const Stmt *s = k->body.at[i];
            shape.parallel += s->kind == STMT_FOR && s->parallel > 0;
            shape.tiles += s->kind == STMT_TILE;
        }
        assert_int_equal(shape.parallel + shape.tiles, k->body.count);
        assert_int_equal(kernel_parallel_loops(k), shape.parallel);
        for (int i = 0; i < k->arg.count; i++) {
            assert_false(k->arg.at[i]->thread);
        }
        all.parallel += shape.parallel;
        all.tiles += shape.tiles;
    }
    dumped_done(&m);
    return all;
}

static void test_launches(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int parallel, tiles;
    } cases[] = {
        {"entry f(x: [40, 30]) { return exp(x) + 1; }\n", 1, 0},
        {"use nn; entry f(x: [40, 30]) { return softmax(x); }\n", 1, 0},
        {"use nn; entry f(x: [1, 30]) { return softmax(x); }\n", 1, 0},
        {"entry f(x: [40, 30]) { y[j] = sum[i] x[i, j]; return y; }\n", 1, 0},
        {"entry f(x: [20]) { return sum(x); }\n", 1, 0},
        {"entry f(x: [400, 60]) { return sum(x); }\n", 2, 0},
        {"entry f(x: [400, 60]) { return sqrt(sum(x)); }\n", 3, 0},
        {"entry f(x: [40, 30]) { return cumsum(x, axis = 0); }\n", 1, 0},
        {"entry f(a: [64, 96], b: [96, 80]) {\n    y[i, j] = sum[k] a[i, k] * b[k, j];\n"
         "    return exp(y);\n}\n",
         0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Shape shape = launches_of(cases[i].text);
        if (!ODD_SIZES && (shape.parallel != cases[i].parallel || shape.tiles != cases[i].tiles)) {
            fail_msg("%d launches and %d products: %s", shape.parallel, shape.tiles, cases[i].text);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_product),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_shared_rows),
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_asks_in_turn),
        cmocka_unit_test(test_asks_behind),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_lines_of_sums),
        cmocka_unit_test(test_slices_of_sums),
        cmocka_unit_test(test_places_of_loops),
        cmocka_unit_test(test_launches),
        cmocka_unit_test(test_volumes),
        cmocka_unit_test(test_given_channels),
        cmocka_unit_test(test_lines_of_windows),
        cmocka_unit_test(test_sums_of_windows),
        cmocka_unit_test(test_far_rows),
        cmocka_unit_test(test_rows_with_functions),
        cmocka_unit_test(test_roles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
