/* Slices that loops pick are where an argument begins, not part of the kernel: layers inside of a
 * loop and outside share kernels, and the checker knows from the call alone which slice it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiled.h"
#include "compiler/kernel.h"
#include "passes/check.h"

#include <string.h>

#define LAYERS(body)                                                                               \
    "use nn;\ndim B = 8, W = 16;\n"                                                                \
    "model net(x: [B, W]) -> [B, W] {\n" body "}\n"                                                \
    "entry f(x: [B, W]) { return net(x); }\n"

#define ONE_AND_LOOP                                                                               \
    "    a = tanh(l: linear(x, W));\n"                                                             \
    "    repeat 4 carry h = a { h <- tanh(linear(h, W)); }\n"                                      \
    "    return h;\n"
#define LOOP                                                                                       \
    "    repeat 4 carry h = x { h <- tanh(linear(h, W)); }\n"                                      \
    "    return h;\n"

static const char *const looped = "dim N = 5, W = 32;\n"
                                  "entry f(a: [N, W], b: [N, W]) {\n"
                                  "    scan t < N carry s = zeros([W]) {\n"
                                  "        next[w] = s[w] + a[t, w] * b[t, w];\n"
                                  "        emit y[t, w] = next[w];\n"
                                  "        s <- next;\n"
                                  "    }\n"
                                  "    return y;\n"
                                  "}\n";

static const ProgramEntry *last_entry(const Program *p) {
    return p->entry.at[p->entry.count - 1];
}

/* The kernel step in the first loop that begins in most slices. */
static Step *sliced_step(const Program *p) {
    const ProgramEntry *e = last_entry(p);
    Step *best = NULL;
    for (int i = 0; i < e->step.count; i++) {
        for (int k = 0; k < e->step.at[i]->body.count; k++) {
            Step *step = e->step.at[i]->body.at[k];
            if (!best || step->call.offset.count > best->call.offset.count) {
                best = step;
            }
        }
    }
    assert_non_null(best);
    return best;
}

static void test_no_index(void **state) {
    (void)state;
    Dumped m;
    const Program *p = compiled_text(&m, looped, 1);
    assert_non_null(p);
    const Step *step = sliced_step(p);
    assert_int_equal(step->call.offset.count, 3); /* of a, b and y */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(step->call.offset.at[i].mul, 32);
        assert_ptr_equal(step->call.offset.at[i].loop, step->up);
    }
    for (int i = 0; i < step->kernel->loop.count; i++) {
        assert_false(step->kernel->loop.at[i].used);
    }
    dumped_done(&m);
}

/* A Buf that is read at two places of the loop is passed whole, with the loop's index. */
static void test_two_places(void **state) {
    (void)state;
    Dumped m;
    const Program *p = compiled_text(&m,
                                     "dim N = 5, W = 32;\n"
                                     "entry f(a: [N, W]) {\n"
                                     "    scan t < N carry s = zeros([W]) {\n"
                                     "        s <- s * a[t, :] + a[N - 1 - t, :];\n"
                                     "    }\n"
                                     "    return s;\n"
                                     "}\n",
                                     1);
    assert_non_null(p);
    const Step *step = sliced_step(p);
    assert_int_equal(step->call.offset.count, 0);
    assert_int_equal(step->kernel->loop.count, 1);
    assert_true(step->kernel->loop.at[0].used);
    dumped_done(&m);
}

static int kernels_of(const char *text) {
    Dumped m;
    const Program *p = compiled_text(&m, text, 1);
    assert_non_null(p);
    const ProgramEntry *e = last_entry(p);
    bool *seen = ARENA_ARRAY(&m.c.arena, bool, p->kernel.count);
    int n = 0;
    for (int i = 0; i < e->step.count; i++) {
        const Step *step = e->step.at[i];
        for (int k = 0; k < (step->kind == STEP_LOOP ? step->body.count : 1); k++) {
            const Step *s = step->kind == STEP_LOOP ? step->body.at[k] : step;
            if (s->kind == STEP_KERNEL && !seen[s->kernel->id]) {
                seen[s->kernel->id] = true;
                n++;
            }
        }
    }
    dumped_done(&m);
    return n;
}

/* A layer in front of a loop of equal layers needs no kernel of its own. */
static void test_shared(void **state) {
    (void)state;
    assert_int_equal(kernels_of(LAYERS(LOOP)), 2); /* the layer, a copy of x */
    assert_int_equal(kernels_of(LAYERS(ONE_AND_LOOP)), 1);
}

/* --- harmful calls ---------------------------------------------------------------------------- */

typedef enum { HARM_NONE, HARM_HASH, HARM_FAR, HARM_GONE, HARM_LOOP, HARM_ARG, HARMS } Harm;

static const char *spoil(Arena *arena, Step *step, Harm harm) {
    Offset *o = &step->call.offset.at[0];
    const char *expected = NULL;
    switch (harm) {
    case HARM_HASH: step->lowered_call++; return "is not called with what it was lowered with";
    case HARM_FAR:
        o->mul *= 2;
        expected = "it reaches from";
        break;
    case HARM_GONE:
        step->call.offset.at[0] = step->call.offset.at[--step->call.offset.count];
        expected = "it leaves the slice of";
        break;
    case HARM_LOOP: {
        Step *other = ARENA_NEW(arena, Step);
        *other = *o->loop;
        o->loop = other;
        expected = "a loop picks which is not around it";
        break;
    }
    case HARM_ARG:
        o->arg = step->kernel->arg.count;
        expected = "it passes a slice";
        break;
    case HARM_NONE:
    case HARMS: break;
    }
    step->lowered_call = call_hash(&step->call);
    return expected;
}

static void test_harmful(void **state) {
    (void)state;
    for (int harm = HARM_NONE; harm < HARMS; harm++) {
        Dumped m;
        Program *p = compiled_text(&m, looped, 1);
        assert_non_null(p);
        compiled_plan(p);
        const char *expected = spoil(&m.c.arena, sliced_step(p), (Harm)harm);
        const char *message = check_program(&m.c.arena, p);
        if ((message == NULL) != (expected == NULL) || (message && !strstr(message, expected))) {
            fail_msg("harm %d: %s; expected: %s", harm, message ? message : "passes", expected);
        }
        dumped_done(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_index),
        cmocka_unit_test(test_two_places),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_harmful),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
