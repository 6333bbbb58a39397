/* The bytes of a carry serve others between its last reader in a turn and its next value, where
 * nobody can tell; where somebody could, the planner does not do it and the checker refuses it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "passes/check.h"
#include "passes/plan/plan.h"
#include "random_program.h"
#include "step_text.h"

typedef enum {
    BOTH,      /* `mid` is made over the carry, and the next carry over it */
    INSIDE,    /* it is made and read in between */
    OVER_ALL,  /* it is made while all of the carry is read, */
    UNDER_ALL, /* or read as a whole while the next carry is made, */
    READ_LATE, /* or the carry is read behind it */
    LIVES_ON,  /* or it is read behind the next carry */
    WIDER,     /* or it is larger */
    FORMS
} Form;

typedef struct {
    Program *p;
    ProgramEntry *e;
    Step *loop;
    Buf *carry, *mid, *next;
} Gap;

static Step *kernel(Gap *g, StepList *list, const char *name) {
    Step *step = step_new(g->p, STEP_KERNEL, LOC_NONE);
    step->name = name;
    VEC_PUSH(g->p->arena, list, step);
    return step;
}

static void pair(Gap *g, Step *step, Buf *in, Buf *out) {
    VEC_PUSH(g->p->arena, &step->inplace, ((InplacePair){in, out}));
}

/* carry = ..; three times: first = f(carry); mid = g(first or carry); other = h(mid); next = u(mid,
 * other); at last what the carry is. */
static Gap build(Arena *arena, Form form) {
    Gap g = {.p = random_program(arena, 5, 0)}; /* its module, slots and entry serve */
    Program *p = g.p;
    ProgramEntry *e = g.e = p->entry.at[0];
    e->step.count = e->buf.count = e->entry->out.count = 0;
    Type row = type_make(TY_I64, 1, (int64_t[]){32}), rows = type_make(TY_I64, 1, (int64_t[]){48});
    g.carry = buf_new(p, e, BUF_TEMP, row, "carry");
    g.mid = buf_new(p, e, BUF_TEMP, form == WIDER ? rows : row, "mid");
    g.next = buf_new(p, e, BUF_TEMP, row, "next");
    Buf *other = buf_new(p, e, BUF_TEMP, row, "other"), *end = buf_new(p, e, BUF_TEMP, row, "end");
    Buf *sum = buf_new(p, e, BUF_TEMP, row, "sum");
    Buf *result = buf_new(p, e, BUF_RESULT, row, "sum_out");
    result->out = 0;
    sum->final = result;
    g.next->final = g.carry;
    VEC_PUSH(arena, &e->entry->out, ((EntryOut){.name = "sum", .role = OUT_RESULT}));
    step_access(p, kernel(&g, &e->step, "start"), g.carry, ACCESS_WRITE);
    Step *loop = g.loop = step_new(p, STEP_LOOP, LOC_NONE);
    loop->trip = 3;
    g.mid->loop = g.next->loop = other->loop = loop;
    VEC_PUSH(arena, &e->step, loop);

    Buf *first = g.carry;
    if (form == INSIDE) {
        first = buf_new(p, e, BUF_TEMP, row, "first");
        first->loop = loop;
        Step *step = kernel(&g, &loop->body, "first");
        step_access(p, step, g.carry, ACCESS_READ);
        step_access(p, step, first, ACCESS_WRITE);
    }
    Step *make = kernel(&g, &loop->body, "make"), *read = kernel(&g, &loop->body, "read");
    step_access(p, make, first, ACCESS_READ);
    step_access(p, make, g.mid, ACCESS_WRITE);
    step_access(p, read, g.mid, ACCESS_READ);
    step_access(p, read, other, ACCESS_WRITE);
    if (form == READ_LATE) {
        step_access(p, read, g.carry, ACCESS_READ);
    }
    if (form != OVER_ALL && form != INSIDE && form != WIDER) {
        pair(&g, make, g.carry, g.mid);
    }
    Step *again = kernel(&g, &loop->body, "again");
    step_access(p, again, other, ACCESS_READ);
    step_access(p, again, g.next, ACCESS_WRITE);
    if (form != INSIDE) {
        step_access(p, again, g.mid, ACCESS_READ);
    }
    if (form != UNDER_ALL && form != INSIDE && form != WIDER) {
        pair(&g, again, g.mid, g.next);
    }
    if (form == LIVES_ON) {
        Step *late = kernel(&g, &loop->body, "late");
        step_access(p, late, g.mid, ACCESS_READ);
        step_access(p, late, g.next, ACCESS_READ);
        end->loop = loop;
        step_access(p, late, end, ACCESS_WRITE);
    }
    Step *last = kernel(&g, &e->step, "last");
    step_access(p, last, g.carry, ACCESS_READ);
    step_access(p, last, sum, ACCESS_WRITE);
    entry_text(p, e);
    return g;
}

static void test_gaps(void **state) {
    (void)state;
    for (int form = BOTH; form < FORMS; form++) {
        Arena arena = {0};
        Gap g = build(&arena, (Form)form);
        const uint64_t meant = program_run_private(&arena, g.p);
        pass_plan(g.p, true, -1);
        const char *fault = check_program(&arena, g.p);
        if (fault != NULL) {
            fail_msg("form %d: %s", form, fault);
        }
        if (program_run_planned(&arena, g.p) != meant) {
            program_dump(g.p, stderr);
            fail_msg("form %d computes something else", form);
        }
        assert_int_equal(g.e->lower_bound_bytes, g.e->planned_bytes);
        assert_int_equal(g.e->arena_bytes, g.e->planned_height);
        assert_ptr_equal(buf_root(g.next), g.carry);
        const bool shares = form <= INSIDE;
        assert_int_equal(buf_root(g.mid) == g.carry, shares);
        if (!shares) {
            g.mid->storage = g.carry;
            g.mid->offset = g.carry->offset;
            assert_non_null(check_program(&arena, g.p));
        }
        arena_free(&arena);
    }
}

/* A plan of good gaps, its steps in another order: who reads the carry finds something else. */
static void test_gaps_in_another_order(void **state) {
    (void)state;
    for (int form = BOTH; form <= INSIDE; form++) {
        Arena arena = {0};
        Gap g = build(&arena, (Form)form);
        pass_plan(g.p, true, -1);
        StepList *body = &g.loop->body;
        const int last = body->count - 1;
        Step *step = body->at[last]; /* the next carry before what reads what lies there */
        body->at[last] = body->at[last - 1];
        body->at[last - 1] = step;
        program_number(g.e);
        assert_non_null(check_program(&arena, g.p));
        arena_free(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gaps),
                                       cmocka_unit_test(test_gaps_in_another_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
