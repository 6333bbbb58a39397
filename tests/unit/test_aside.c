/* Micro-batches side by side: where what their turns declare lies, what further threads have, and
 * which plans of such loops the checker refuses. What programs give with them is in
 * suites/accumulate.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiled.h"
#include "compiler/kernel.h"
#include "passes/check.h"

#include <string.h>

static const char *const text =
    "use nn;\n"
    "model net(x: [8, 16]) -> [8, 4] { return x |> a: linear(32) |> tanh |> b: linear(4); }\n"
    "train fit(x: [8, 16], y: [8, 4]) of net {\n"
    "    loss mean((net(x) - y)^2);\n"
    "    optimizer sgd(lr = 0.1);\n"
    "    accumulate 4%s;\n"
    "    steps 10;\n"
    "}\n";

typedef struct {
    Dumped m;
    Program *p;
    ProgramEntry *e;
    Step *loop; /* that of the micro-batches */
} Planned;

/* In place: the Program knows where its arena is. */
static void plan_it(Planned *x, int threads, const char *how) {
    *x = (Planned){.p = NULL};
    char all[1024];
    (void)snprintf(all, sizeof all, text, how);
    x->p = compiled_text(&x->m, all, threads);
    assert_non_null(x->p);
    compiled_plan(x->p);
    for (int i = 0; i < x->p->entry.count; i++) {
        x->e = x->p->entry.at[i]->entry->kind == ENTRY_TRAIN ? x->p->entry.at[i] : x->e;
    }
    for (int i = 0; i < x->e->step.count; i++) {
        x->loop = x->e->step.at[i]->kind == STEP_LOOP ? x->e->step.at[i] : x->loop;
    }
    assert_non_null(x->loop);
}

static bool is_inside(const Buf *buf) {
    return (buf->kind == BUF_TEMP || buf->kind == BUF_WORK) && step_aside(buf->loop) != NULL &&
           buf->first < buf->last;
}

static const char *verdict(const Planned *x) {
    static char said[256];
    Arena scratch = {0};
    const char *fault = check_program(&scratch, x->p);
    (void)snprintf(said, sizeof said, "%s", fault != NULL ? fault : "");
    arena_free(&scratch);
    return said;
}

/* As many threads as turns at most; each further one has what the turns of one declare. */
static void test_plan(void **state) {
    (void)state;
    static const int team[] = {1, 1, 2, 3, 4, 4, 4, 4, 4};
    int64_t one = 0;
    for (int threads = 1; threads <= 8; threads++) {
        Planned x;
        plan_it(&x, threads, ", parallel = true");
        assert_string_equal(verdict(&x), "");
        if (threads == 1) {
            assert_null(x.loop->rest);
            one = x.e->arena_bytes;
            dumped_done(&x.m);
            continue;
        }
        const int64_t own = x.loop->rest->type->dim[1];
        assert_int_equal(x.loop->team, team[threads]);
        assert_int_equal(x.loop->rest->bytes, (x.loop->team - 1) * own);
        assert_int_equal(x.loop->rest->per_thread, threads < 4 ? threads - 1 : 0);
        assert_true(own >= 8 * 32 * 4 && own < one);
        assert_int_equal(x.e->arena_bytes, one + x.loop->rest->bytes);
        int inside = 0;
        for (int i = 0; i < x.e->buf.count; i++) {
            const Buf *buf = x.e->buf.at[i];
            if (is_inside(buf)) {
                assert_true(buf->offset >= x.loop->base);
                assert_true(buf->offset + buf->bytes <= x.loop->base + own);
                inside++;
            }
        }
        assert_true(inside >= 3); /* tanh, the difference, a gradient of tanh */
        for (int i = 0; i < x.loop->body.count; i++) {
            assert_int_equal(x.loop->body.at[i]->kernel->threads, 1);
        }
        dumped_done(&x.m);
    }
}

/* Who asks for nothing has one turn behind the other, and loops that the whole team shares. */
static void test_without(void **state) {
    (void)state;
    static const char *const how[] = {"", ", parallel = false"};
    for (int i = 0; i < 2; i++) {
        Planned x;
        plan_it(&x, 4, how[i]);
        assert_string_equal(verdict(&x), "");
        assert_null(x.loop->rest);
        dumped_done(&x.m);
    }
}

/* --- what a planner with a fault could give --------------------------------------------------- */

static Buf *some_inside(const Planned *x, BufKind kind) {
    Buf *found = NULL;
    for (int i = 0; i < x->e->buf.count; i++) {
        Buf *buf = x->e->buf.at[i];
        found = is_inside(buf) && buf->kind == kind && buf->storage == buf ? buf : found;
    }
    assert_non_null(found);
    return found;
}

static Access *some_stack(const Planned *x) {
    for (int i = 0; i < x->loop->body.count; i++) {
        AccessList *list = &x->loop->body.at[i]->access;
        for (int k = 0; k < list->count; k++) {
            if ((list->at[k].mode & ACCESS_WRITE) && list->at[k].slice[0] == x->loop) {
                return &list->at[k];
            }
        }
    }
    fail();
    return NULL;
}

static void move_base(Planned *x) {
    x->loop->base += 64;
}
static void fewer_bytes(Planned *x) {
    Type type = *x->loop->rest->type;
    type.dim[1] -= 64;
    buf_set_type(x->p, x->loop->rest, type);
    x->loop->rest->bytes = type_bytes(type);
}
static void fewer_threads(Planned *x) {
    Type type = *x->loop->rest->type;
    type.dim[0] -= 1;
    buf_set_type(x->p, x->loop->rest, type);
    x->loop->rest->bytes = type_bytes(type);
}
static void move_outside(Planned *x) {
    some_inside(x, BUF_TEMP)->offset = x->loop->rest->offset;
}
static void move_rest(Planned *x, int64_t offset) {
    const int64_t more = x->loop->rest->bytes;
    x->loop->rest->offset = offset;
    x->e->arena_bytes += more; /* nothing ends behind it */
    x->p->arena_bytes += more;
    x->p->total_bytes += more;
}
static void over_stack(Planned *x) {
    move_rest(x, buf_root(some_stack(x)->buf)->offset);
}
static void over_stretch(Planned *x) {
    move_rest(x, x->loop->base);
}
static void short_life(Planned *x) {
    x->loop->rest->last = x->loop->id + 1;
}
static void whole_stack(Planned *x) {
    memset(some_stack(x)->slice, 0, sizeof some_stack(x)->slice);
}
static void more_threads(Planned *x) {
    x->loop->body.at[0]->kernel->threads = 2;
}
static void shared_work(Planned *x) {
    some_inside(x, BUF_TEMP)->loop = NULL;
}

static void test_faults(void **state) {
    (void)state;
    static const struct {
        void (*spoil)(Planned *x);
        const char *says;
    } faults[] = {
        {move_base, "is not in the stretch that threads of loop"},
        {fewer_bytes, "is not in the stretch that threads of loop"},
        {fewer_threads, "has no memory for 3 further threads"},
        {move_outside, "is not in the stretch that threads of loop"},
        {over_stack, "is written by it"},
        {over_stretch, "is written by it"},
        {short_life, "lives in"},
        {whole_stack, "which other turns of loop"},
        {more_threads, "has threads of its own inside of loop"},
        {shared_work, "which other turns of loop"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        Planned x;
        plan_it(&x, 8, ", parallel = true");
        faults[i].spoil(&x);
        const char *said = verdict(&x);
        if (strstr(said, faults[i].says) == NULL) {
            fail_msg("%zu: '%s' for '%s'", i, said, faults[i].says);
        }
        dumped_done(&x.m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_without),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
