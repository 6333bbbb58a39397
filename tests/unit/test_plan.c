/* The planner and its checker: random Programs that must pass the checker and compute what they
 * mean, and one plan with each fault that it must refuse. Random changes: test_plan_random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiled.h"
#include "compiler/times.h"
#include "passes/check.h"
#include "passes/plan/plan.h"
#include "passes/schedule/schedule.h"
#include "random_program.h"
#include "step_text.h"

/* ---- plans ---------------------------------------------------------------------------------- */

static void plan_all(Program *p) {
    pass_plan(p, true, -1);
}

/* It passes the checker, computes what it means, and needs what the plan said. */
static void assert_right(Arena *arena, const Program *p, uint64_t meant, uint64_t seed) {
    const char *fault = check_program(arena, p);
    const ProgramEntry *e = p->entry.at[0];
    if (fault != NULL) {
        program_dump(p, stderr);
        fail_msg("seed %llu: %s", (unsigned long long)seed, fault);
    }
    if (program_run_planned(arena, p) != meant) {
        program_dump(p, stderr);
        fail_msg("seed %llu computes something else", (unsigned long long)seed);
    }
    assert_true(e->arena_bytes >= e->lower_bound_bytes);
    assert_int_equal(e->lower_bound_bytes, e->planned_bytes);
    assert_int_equal(e->arena_bytes, e->planned_height);
}

static int repeats_of(const StepList *list) {
    int repeats = 0;
    for (int i = 0; i < list->count; i++) {
        repeats += list->at[i]->again != NULL;
    }
    return repeats;
}

/* Budgets below what the best order needs: some are met by running steps again. */
static void test_budgets(void **state) {
    (void)state;
    int tried = 0, met = 0, repeats = 0;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        Arena arena = {0};
        int size = 6 + (int)(seed % 40);
        Program *p = random_program(&arena, seed, size);
        uint64_t meant = program_run_private(&arena, p);
        plan_all(p);
        int64_t budget = p->total_bytes - p->arena_bytes * (int64_t)(1 + seed % 5) / 10;
        p = random_program(&arena, seed, size);
        pass_plan(p, true, budget);
        assert_right(&arena, p, meant, seed);
        tried++;
        met += p->total_bytes <= budget;
        repeats += repeats_of(&p->entry.at[0]->step);
        arena_free(&arena);
    }
    print_message("%d budgets, %d met, %d steps run again\n", tried, met, repeats);
    assert_true(met >= 50 && repeats >= 1000);
}

static void test_random_plans(void **state) {
    (void)state;
    int64_t arena_sum = 0, bound_sum = 0;
    int copies = 0, shared = 0;
    for (uint64_t seed = 1; seed <= 600; seed++) {
        Arena arena = {0};
        Program *p = random_program(&arena, seed, 3 + (int)(seed % 20));
        uint64_t meant = program_run_private(&arena, p);
        plan_all(p);
        assert_right(&arena, p, meant, seed);
        const ProgramEntry *e = p->entry.at[0];
        arena_sum += e->arena_bytes;
        bound_sum += e->lower_bound_bytes;
        for (int i = 0; i < e->buf.count; i++) {
            shared += e->buf.at[i]->storage != e->buf.at[i];
            copies += e->buf.at[i]->final != NULL && e->buf.at[i]->storage != e->buf.at[i]->final;
        }
        arena_free(&arena);
    }
    assert_true((double)arena_sum <= 1.01 * (double)bound_sum);
    assert_true(shared > 1000 && copies > 50); /* both ways were taken */
}

static void test_plans_are_deterministic(void **state) {
    (void)state;
    char *text[2];
    size_t length[2];
    for (int i = 0; i < 2; i++) {
        Arena arena = {0};
        FILE *out = open_memstream(&text[i], &length[i]);
        Program *p = random_program(&arena, 99, 40);
        plan_all(p);
        program_dump(p, out);
        fclose(out);
        arena_free(&arena);
    }
    assert_string_equal(text[0], text[1]);
    free(text[0]);
    free(text[1]);
}

/* ---- each fault by itself -------------------------------------------------------------------- */

/* x = f(in); y = g(x); loss = h(x, y); p' = u(p, y) */
typedef struct {
    Program *p;
    ProgramEntry *e;
    Buf *param, *x, *y, *loss, *next, *work;
} Tiny;

static Tiny tiny_program(Arena *arena) {
    Tiny t = {0};
    Program *p = t.p = random_program(arena, 5, 0); /* its module, slots and entry serve */
    ProgramEntry *e = t.e = p->entry.at[0];
    e->step.count = e->buf.count = e->entry->out.count = 0;
    t.param = p->slot.at[0];
    Type row = type_make(TY_F32, 1, (int64_t[]){64});
    t.x = buf_new(p, e, BUF_TEMP, row, "x");
    t.y = buf_new(p, e, BUF_TEMP, row, "y");
    t.work = buf_new(p, e, BUF_WORK, row, "work");
    t.next = buf_new(p, e, BUF_TEMP, *t.param->type, "next");
    t.loss = buf_new(p, e, BUF_TEMP, type_scalar(TY_F32), "loss");
    Buf *result = buf_new(p, e, BUF_RESULT, type_scalar(TY_F32), "loss_out");
    result->out = 0;
    t.loss->final = result;
    t.next->final = t.param;
    VEC_PUSH(arena, &e->entry->out, ((EntryOut){.name = "loss", .role = OUT_LOSS}));
    Buf *list[4][4] = {{t.x}, {t.y, t.x, t.work}, {t.loss, t.x, t.y}, {t.next, t.param, t.y}};
    for (int i = 0; i < 4; i++) {
        Step *step = step_new(p, STEP_KERNEL, LOC_NONE);
        step->name = str_printf(arena, "s%d", i);
        for (int k = 0; k < 4 && list[i][k] != NULL; k++) {
            bool work = list[i][k] == t.work;
            step_access(p, step, list[i][k], k == 0 || work ? ACCESS_WRITE : ACCESS_READ);
        }
        VEC_PUSH(arena, &e->step, step);
    }
    VEC_PUSH(arena, &e->step.at[3]->inplace, ((InplacePair){t.param, t.next}));
    entry_text(p, e);
    plan_all(p);
    return t;
}

typedef enum {
    FAULT_NONE,
    FAULT_OFFSET,
    FAULT_ALIGN,
    FAULT_PLACE,
    FAULT_BOUND,
    FAULT_LIFE,
    FAULT_SHRINK,
    FAULT_ALIAS,
    FAULT_WORK,
    FAULT_ORDER,
    FAULT_CHECK,
    FAULT_DEST,
    FAULT_TOTAL,
    FAULT_NUMBER,
    FAULT_PAIR,
    FAULT_RESTRICT,
    FAULT_CALL_FEW,
    FAULT_CALL_TWICE,
    FAULT_CALL_KIND,
    FAULT_CALL_OTHER,
    FAULT_WRONG_PAIR,
    FAULT_NO_TEXT,
    FAULT_ACCESS,
    FAULT_NO_ROOT,
    FAULT_ROOT_WORK,
    FAULT_NOT_IN_ROOT,
    FAULT_NOT_WRITTEN,
    FAULT_PARTS,
    FAULT_CONSTANT,
    FAULT_NO_KERNEL,
    FAULT_LOOP,
    FAULT_COPY,
    FAULT_NO_NEXT,
    FAULT_REGIONS,
    FAULT_SLOT,
    FAULT_RESULT,
    FAULT_NO_CHECK,
    FAULTS
} Fault;

static void swap_steps(ProgramEntry *e, int i, int k) {
    Step *step = e->step.at[i];
    e->step.at[i] = e->step.at[k];
    e->step.at[k] = step;
    program_number(e);
}

static void remove_step(ProgramEntry *e, int i) {
    memmove(&e->step.at[i], &e->step.at[i + 1], sizeof(Step *) * (size_t)(e->step.count - i - 1));
    e->step.count--;
    program_number(e);
}

/* A step that does this to `buf`, with its text. */
static void touch(Tiny *t, int step, Buf *buf, int mode) {
    step_access(t->p, t->e->step.at[step], buf, mode);
    step_text(t->p, t->e->step.at[step]);
}

/* Spoils the plan; gives what the checker must say of it. */
static const char *plant(Arena *arena, Tiny *t, Fault fault) {
    Step *const *step = t->e->step.at;
    Buf *more;
    switch (fault) {
    case FAULT_OFFSET:
        t->y->offset = t->x->offset;
        return "y and x_2 share bytes: an iteration of i may read of x_2";
    case FAULT_ALIGN: t->x->offset += 32; return "x_2 is not aligned";
    case FAULT_PLACE: /* of what lives all the time */
        more = t->e->buf.at[t->e->buf.count - 1];
        assert_int_equal(more->kind, BUF_INPUT);
        more->offset += 32;
        return "is not aligned";
    case FAULT_BOUND: t->e->arena_bytes -= 64; return "past the bound";
    case FAULT_LIFE: t->x->last--; return "touches x_2, which lives in";
    case FAULT_SHRINK: t->x->bytes -= 4; return "x_2 has 252 bytes and needs 256";
    case FAULT_ALIAS:
        t->y->storage = t->x;
        t->y->offset = t->x->offset;
        return "may read of x_2 what another one writes to y";
    case FAULT_WORK: t->work->offset = t->x->offset; return "work";
    case FAULT_ORDER: swap_steps(t->e, 0, 1); return "touches x_2 later than it may";
    case FAULT_CHECK:
        assert_int_equal(step[3]->kind, STEP_CHECK);
        swap_steps(t->e, 3, 4);
        t->next->first = 0;
        t->loss->last++;
        return "is written before step 4 checks the loss";
    case FAULT_DEST:
        t->next->storage = t->next;
        t->next->offset = 0;
        return "next";
    case FAULT_TOTAL: t->p->total_bytes -= 64; return "the totals do not add up";
    case FAULT_NUMBER: step[2]->id = 7; return "step 7 is not numbered in order";
    case FAULT_PAIR:
        step[4]->inplace.count = 0;
        step_text(t->p, step[4]);
        return "next";
    case FAULT_RESTRICT: /* its parameters are restrict, though its text would allow it */
        step[4]->kernel->pair.count = 0;
        return "the kernel takes them for different places";
    case FAULT_CALL_FEW: step[1]->call.buf.count--; return "it does not pass what its kernel takes";
    case FAULT_CALL_TWICE:
        step[1]->call.buf.at[2] = step[1]->call.buf.at[1]; /* work, x, y */
        return "twice";
    case FAULT_CALL_KIND: /* a workspace where none is taken */
        step[0]->call.buf.at[0] = t->work;
        return "it passes work for x, which is of another kind";
    case FAULT_CALL_OTHER: /* not the one that the step says it writes */
        more = buf_new(t->p, t->e, BUF_TEMP, *t->x->type, "more");
        step[0]->call.buf.at[0] = more;
        return "it touches more and does not say so";
    case FAULT_WRONG_PAIR:
        VEC_PUSH(arena, &step[1]->inplace, ((InplacePair){t->x, t->y}));
        return "the pair (y over x_2) is wrong";
    case FAULT_NO_TEXT: step[0]->kernel = NULL; return "step 0 (s0) has no text";
    case FAULT_ACCESS: /* y, x, work */
        step[1]->access.at[1] = step[1]->access.at[2];
        step[1]->access.count--;
        return "it touches x_2 and does not say so";
    case FAULT_NO_ROOT:
        t->x->storage = t->y;
        t->y->storage = t->x;
        return "has no root";
    case FAULT_ROOT_WORK:
        t->y->storage = t->work;
        t->y->offset = t->work->offset;
        return "y must not lie in work";
    case FAULT_NOT_IN_ROOT: t->next->offset += 64; return "does not lie in the bytes of";
    case FAULT_NOT_WRITTEN:
        step[0]->access.count = 0;
        step_text(t->p, step[0]);
        return "step 1 reads x_2 before it is written";
    case FAULT_PARTS: /* the other half comes after the loss */
        step_access(t->p, step[1], t->y, ACCESS_PART);
        step_access(t->p, step[4], t->y, ACCESS_WRITE | ACCESS_PART);
        step[4]->index = 1;
        entry_text(t->p, t->e);
        step[4]->lowered = 0;
        return "y";
    case FAULT_CONSTANT:
        more = buf_new(t->p, NULL, BUF_CONST, *t->x->type, "table");
        touch(t, 0, more, ACCESS_WRITE);
        return "step 0 writes table, which is read only";
    case FAULT_NO_KERNEL:
        VEC_PUSH(arena, &step[3]->inplace, ((InplacePair){t->x, t->y}));
        return "is no kernel and names pairs";
    case FAULT_LOOP:
        t->y->loop = step_new(t->p, STEP_LOOP, LOC_NONE);
        return "step 1 touches y outside the loop that declares it";
    case FAULT_COPY: /* of 64 elements into one */
        step[2]->kind = STEP_COPY;
        step[2]->kernel = NULL;
        step[2]->src = t->x;
        step[2]->dst = t->loss;
        return "step 2 copies between unequal Bufs";
    case FAULT_NO_NEXT: remove_step(t->e, 4); return "next, the next value of p0, is not written";
    case FAULT_REGIONS: t->e->arena_bytes += 64; return "it needs more than the regions have";
    case FAULT_SLOT: /* where the parameter is, and no check looks */
        t->e->entry->kind = ENTRY_CALL;
        step[3]->kind = STEP_KERNEL;
        step[3]->access.count = 0;
        step_text(t->p, step[3]);
        more = buf_new(t->p, NULL, t->param->kind, *t->param->type, "other");
        more->offset = t->param->offset;
        t->p->slot.at[0] = more;
        t->p->slot.at[t->p->slot.count - 1] = t->param;
        return "other is overwritten";
    case FAULT_RESULT: t->loss->final = NULL; return "the result loss_out is not there at the end";
    case FAULT_NO_CHECK: step[3]->access.at[0].buf = t->y; return "the loss is not checked";
    case FAULT_NONE:
    case FAULTS: break;
    }
    return NULL;
}

static void test_each_fault(void **state) {
    (void)state;
    for (int fault = FAULT_NONE; fault < FAULTS; fault++) {
        Arena arena = {0};
        Tiny t = tiny_program(&arena);
        assert_int_equal(t.e->step.count, 5); /* with the check */
        assert_ptr_equal(t.next->storage, t.param);
        const char *expected = plant(&arena, &t, (Fault)fault);
        const char *message = check_program(&arena, t.p);
        if ((message == NULL) != (expected == NULL) || (message && !strstr(message, expected))) {
            program_dump(t.p, stderr);
            fail_msg("fault %d: %s; expected: %s", fault, message ? message : "passes", expected);
        }
        arena_free(&arena);
    }
}

/* A loop reads x in every turn and writes one line of a stack. A line that only a late turn writes
 * lies over x; a turn reads all of what the stack takes over; the loop runs otherwise than the
 * stack is long. */
static void test_stacks(void **state) {
    (void)state;
    enum { GOOD, LATE, OVER, TRIP, KINDS };
    for (int kind = GOOD; kind < KINDS; kind++) {
        Arena arena = {0};
        Tiny t = tiny_program(&arena);
        t.e->step.count = t.e->buf.count = 0;
        t.loss->final = t.next->final = NULL;
        Type line = type_make(TY_F32, 1, (int64_t[]){16});
        Type lines = type_make(TY_F32, 2, (int64_t[]){4, 16});
        Buf *x = buf_new(t.p, t.e, BUF_TEMP, kind == OVER ? lines : line, "x3");
        Buf *stack = buf_new(t.p, t.e, BUF_TEMP, lines, "stack");
        Buf *loss = buf_new(t.p, t.e, BUF_TEMP, type_scalar(TY_F32), "loss3");
        Buf *result = buf_new(t.p, t.e, BUF_RESULT, type_scalar(TY_F32), "loss_out3");
        loss->final = result;
        result->out = 0;
        Step *first = step_new(t.p, STEP_KERNEL, LOC_NONE),
             *loop = step_new(t.p, STEP_LOOP, LOC_NONE);
        Step *body = step_new(t.p, STEP_KERNEL, LOC_NONE),
             *last = step_new(t.p, STEP_KERNEL, LOC_NONE);
        const Step *by = loop;
        loop->trip = 4;
        step_access(t.p, first, x, ACCESS_WRITE);
        step_access(t.p, body, x, ACCESS_READ);
        step_access_slice(t.p, body, stack, ACCESS_WRITE | ACCESS_PART, &by, 1);
        step_access(t.p, last, stack, ACCESS_READ);
        step_access(t.p, last, loss, ACCESS_WRITE);
        VEC_PUSH(&arena, &loop->body, body);
        VEC_PUSH(&arena, &t.e->step, first);
        VEC_PUSH(&arena, &t.e->step, loop);
        VEC_PUSH(&arena, &t.e->step, last);
        entry_text(t.p, t.e);
        plan_all(t.p);
        assert_null(check_program(&arena, t.p));
        assert_int_equal(t.e->arena_bytes, (kind == OVER ? 8 : 5) * 64);
        const char *expected = NULL;
        if (kind == LATE) {
            stack->offset = 0;
            x->offset = 3 * 64;
            expected = "shares bytes with stack, a stack of loop 1";
        } else if (kind == OVER) {
            stack->storage = x;
            stack->offset = x->offset;
            expected = "stack";
        } else if (kind == TRIP) {
            loop->trip = 3;
            expected = "it passes the index of a loop that is not around it, or of another length";
        }
        const char *fault = check_program(&arena, t.p);
        assert_int_equal(fault == NULL, expected == NULL);
        if (fault && !strstr(fault, expected)) {
            fail_msg("kind %d: %s", kind, fault);
        }
        arena_free(&arena);
    }
}

/* Steps inside a loop keep their order too: the first writes all of z, the second a part of it
 * again, and the third reads it. The other way round nothing is read before it is written. */
static void test_order_in_a_loop(void **state) {
    (void)state;
    for (int swapped = 0; swapped < 2; swapped++) {
        Arena arena = {0};
        Tiny t = tiny_program(&arena);
        Buf *z = buf_new(t.p, t.e, BUF_TEMP, *t.x->type, "z");
        Step *loop = step_new(t.p, STEP_LOOP, LOC_NONE), *body[3];
        loop->trip = 3;
        for (int i = 0; i < 3; i++) {
            body[i] = step_new(t.p, STEP_KERNEL, LOC_NONE);
            body[i]->name = str_printf(&arena, "b%d", i);
            VEC_PUSH(&arena, &loop->body, body[i]);
        }
        Buf *sum = buf_new(t.p, t.e, BUF_TEMP, *t.x->type, "sum");
        z->loop = sum->loop = loop;
        step_access(t.p, body[0], z, ACCESS_WRITE);
        step_access(t.p, body[1], z, ACCESS_WRITE | ACCESS_PART);
        step_access(t.p, body[2], z, ACCESS_READ);
        step_access(t.p, body[2], sum, ACCESS_WRITE);
        VEC_PUSH(&arena, &t.e->step, loop);
        entry_text(t.p, t.e);
        plan_all(t.p);
        assert_null(check_program(&arena, t.p));
        if (swapped) {
            loop->body.at[0] = body[1];
            loop->body.at[1] = body[0];
            program_number(t.e);
        }
        const char *fault = check_program(&arena, t.p);
        assert_int_equal(fault != NULL, swapped);
        if (fault != NULL && !strstr(fault, "(b0) touches z later than it may")) {
            fail_msg("%s", fault);
        }
        arena_free(&arena);
    }
}

/* A step makes two results over one dying operand and nobody reads the first: they must not both
 * get its bytes. */
static void test_two_results_of_one_operand(void **state) {
    (void)state;
    Arena arena = {0};
    Tiny t = tiny_program(&arena);
    Type row = *t.x->type;
    t.e->step.count = 0;
    Buf *x = buf_new(t.p, t.e, BUF_TEMP, row, "x2"),
        *dead = buf_new(t.p, t.e, BUF_TEMP, row, "dead");
    Buf *used = buf_new(t.p, t.e, BUF_TEMP, row, "used");
    Buf *loss = buf_new(t.p, t.e, BUF_TEMP, type_scalar(TY_F32), "loss2");
    loss->final = t.loss->final;
    t.loss->final = t.next->final = NULL;
    Buf *list[3][3] = {{x}, {dead, x}, {loss, used}};
    for (int i = 0; i < 3; i++) {
        Step *step = step_new(t.p, STEP_KERNEL, LOC_NONE);
        step->name = str_printf(&arena, "t%d", i);
        for (int k = 0; k < 3 && list[i][k] != NULL; k++) {
            step_access(t.p, step, list[i][k], k == 0 ? ACCESS_WRITE : ACCESS_READ);
        }
        VEC_PUSH(&arena, &t.e->step, step);
    }
    Step *both = t.e->step.at[1];
    step_access(t.p, both, used, ACCESS_WRITE);
    VEC_PUSH(&arena, &both->inplace, ((InplacePair){x, dead}));
    VEC_PUSH(&arena, &both->inplace, ((InplacePair){x, used}));
    entry_text(t.p, t.e);
    plan_all(t.p);
    assert_ptr_not_equal(buf_root(dead), buf_root(used));
    arena_free(&arena);
}

/* ---- rings ---------------------------------------------------------------------------------- */

static const char ring_text[] =
    "use nn; dim B = 4; ring old[16] { x: f32[3]; y: f32; }\n"
    "model q(x: [n, 3]) -> [n, 1] { return x |> fc: linear(out = 1); }\n"
    "train fit(x: [B, 3]) of q {\n"
    "    old.push(x, 2 * x[:, 0]); b = old.sample(5);\n"
    "    loss mean((q(b.x)[:, 0] - b.y)^2); optimizer sgd(lr = 0.1); steps 3;\n"
    "}\n";

/* One kernel makes the row, the clock and the next cursor, which is copied behind the push. */
static const char clock_text[] =
    "ring old[16] { x: f32; } state clock: f32 = 0;\n"
    "entry put() { now = clock + 1; clock <- now; old.push(0.5 * now); return now; }\n";

/* Of those that callers call the one with the most steps, the last such. */
static ProgramEntry *longest_entry(const Program *p) {
    ProgramEntry *e = p->entry.at[0];
    for (int i = 0; i < p->entry.count; i++) {
        bool called = p->entry.at[i]->entry->kind != ENTRY_INIT;
        e = called && p->entry.at[i]->nstep >= e->nstep ? p->entry.at[i] : e;
    }
    return e;
}

/* The checker says what is expected; NULL: nothing. */
static void assert_fault(Arena *arena, const Program *p, const char *expected, int kind) {
    const char *fault = check_program(arena, p);
    if ((fault == NULL) != (expected == NULL) ||
        (fault != NULL && strstr(fault, expected) == NULL)) {
        program_dump(p, stderr);
        fail_msg("kind %d: %s", kind, fault != NULL ? fault : "passes");
    }
}

static int place_of(const StepList *list, const Step *step) {
    int at = 0;
    while (list->at[at] != step) {
        at++;
    }
    return at;
}

static void move_step(ProgramEntry *e, Step *step, int to) {
    int at = place_of(&e->step, step);
    for (; at != to; at += to > at ? 1 : -1) {
        e->step.at[at] = e->step.at[to > at ? at + 1 : at - 1];
    }
    e->step.at[to] = step;
    program_number(e);
    for (int i = 0; i < e->buf.count; i++) { /* lifetimes are not what is wrong */
        Buf *buf = e->buf.at[i];
        buf->last = buf->first < buf->last ? e->nstep : buf->last;
        buf->first = buf->first < buf->last ? 0 : buf->first;
    }
}

/* A push that comes twice, behind its next cursor, before what is read of the ring, before the
 * check of the loss, or of rows of another size. */
static void test_pushes(void **state) {
    (void)state;
    static const char *const expected[] = {
        NULL,
        "pushes to x again",
        "behind its next cursor",
        TUNED("touches x later than it may", "later than it may"),
        "is written before step",
        "pushes no rows of x"};
    for (int kind = 0; kind < (int)(sizeof expected / sizeof *expected); kind++) {
        Dumped m;
        Arena arena = {0};
        Program *p = compiled_text(&m, kind == 2 ? clock_text : ring_text, 1);
        compiled_plan(p);
        ProgramEntry *e = longest_entry(p);
        Step *push = NULL, *check = NULL;
        for (int i = e->step.count - 1; i >= 0; i--) {
            Step *step = e->step.at[i];
            int rank = kind == 2 || kind == 4 ? 1 : 2;
            push = step->kind == STEP_PUSH && step->src->type->rank == rank ? step : push;
            check = step->kind == STEP_CHECK ? step : check;
        }
        assert_non_null(push);
        assert_true(kind == 2 || push->id > check->id);
        if (kind == 1) {
            VEC_PUSH(p->arena, &e->step, push);
            Step *again = step_new(p, STEP_PUSH, push->loc);
            *again = *push;
            e->step.at[e->step.count - 1] = again;
            move_step(e, again, place_of(&e->step, push) + 1);
        } else if (kind == 2) {
            move_step(e, push, e->step.count - 1);
            push->lowered = INT32_MAX; /* as if it belonged there */
        } else if (kind == 3) {
            move_step(e, push, place_of(&e->step, check) - 1);
        } else if (kind == 4) {
            int made = 0;
            while (step_find(e->step.at[made], push->src) == NULL) {
                made++;
            }
            move_step(e, e->step.at[made], place_of(&e->step, check));
            move_step(e, push, place_of(&e->step, check));
        } else if (kind == 5) {
            push->src = check->access.at[0].buf;
            push->access.at[0].buf = push->src;
        }
        assert_fault(&arena, p, expected[kind], kind);
        arena_free(&arena);
        dumped_done(&m);
    }
}

/* Rows of a batch go into a ring as far as they are in use: a push of all of them, of as many as
 * something else says, or that does not look at the number, is refused. */
static void test_rows_in_use(void **state) {
    (void)state;
    static const char text[] =
        "use nn; dim B = 4; ring old[16] { x: f32[3]; }\n"
        "dataset d { file f = \"d.csv\"; x: f32[3] = f.columns(0..3); }\n"
        "entry put(n: i32 in 0..9) on d[B] { old.push(x * f32(n)); } phase put;\n";
    static const char *const expected[] = {NULL, "not in use", "not in use", "not in use"};
    for (int kind = 0; kind < (int)(sizeof expected / sizeof *expected); kind++) {
        Dumped m;
        Arena arena = {0};
        Program *p = compiled_text(&m, text, 1);
        compiled_plan(p);
        ProgramEntry *e = longest_entry(p);
        Step *push = NULL;
        Buf *other = NULL;
        for (int i = 0; i < e->step.count; i++) {
            push = e->step.at[i]->kind == STEP_PUSH ? e->step.at[i] : push;
        }
        for (int i = 0; i < e->buf.count; i++) {
            const Slot *slot = e->buf.at[i]->slot;
            other = slot != NULL && str_eq(slot->name, "n") ? e->buf.at[i] : other;
        }
        assert_non_null(push);
        assert_non_null(push->in_use);
        assert_non_null(other);
        for (int i = 0; i < push->access.count; i++) {
            Access *access = &push->access.at[i];
            if (access->buf == push->in_use && kind > 0) {
                *access = kind == 2 ? (Access){.buf = other, .mode = ACCESS_READ}
                                    : push->access.at[--push->access.count];
                break;
            }
        }
        push->in_use = kind == 1 ? NULL : kind == 2 ? other : push->in_use;
        assert_fault(&arena, p, expected[kind], kind);
        arena_free(&arena);
        dumped_done(&m);
    }
}

/* What an entry refuses it looks at before it uses it and before it writes anything. */
static void test_refusals(void **state) {
    (void)state;
    static const char text[] =
        "entry pick(x: [4], i: u8[3] in 0..4) { y[k < 3] = x[i[k]]; return y; }\n";
    for (int kind = 0; kind < 4; kind++) {
        Dumped m;
        Arena arena = {0};
        Program *p = compiled_text(&m, kind < 2 ? text : ring_text, 1);
        compiled_plan(p);
        ProgramEntry *e = longest_entry(p);
        Step *first = e->step.at[0];
        assert_int_equal(first->kind, kind < 2 ? STEP_RANGE : STEP_NEED);
        if (kind % 2 == 1) {
            first->lowered = INT32_MAX; /* as if it belonged there */
            move_step(e, first, kind == 1 ? e->step.count - 1 : e->step.count - 2);
        }
        const char *expected = kind == 1 ? "the range of i is not looked at before it is used"
                               : kind == 3
                                   ? TUNED("checks what is given", "has written count_next there")
                                   : NULL;
        assert_fault(&arena, p, expected, kind);
        arena_free(&arena);
        dumped_done(&m);
    }
}

/* On a device what is given lies where kernels see it, and nothing lies on the status. */
static void test_device(void **state) {
    (void)state;
    static const char *const expected[] = {NULL, "lies where kernels do not see it",
                                           "lies on its status", "lies on its status",
                                           "there is no place for its status"};
    for (int kind = 0; kind < (int)(sizeof expected / sizeof *expected); kind++) {
        Dumped m;
        Arena arena = {0};
        Program *p = compiled_target(&m, "entry f(x: [40, 30]) { return y = exp(x), z = x + 1; }\n",
                                     &target_cuda);
        pass_plan(p, false, -1);
        ProgramEntry *e = longest_entry(p);
        Buf *input = NULL, *result = NULL;
        for (int i = 0; i < e->buf.count; i++) {
            input = e->buf.at[i]->kind == BUF_INPUT ? e->buf.at[i] : input;
            result = e->buf.at[i]->kind == BUF_RESULT ? e->buf.at[i] : result;
        }
        if (kind == 1) {
            input->offset = -1;
        } else if (kind == 2) {
            e->status_offset = input->offset;
        } else if (kind == 3) {
            result->offset = e->status_offset;
        } else if (kind == 4) {
            e->status_offset = e->io_bytes;
        }
        assert_fault(&arena, p, expected[kind], kind);
        arena_free(&arena);
        dumped_done(&m);
    }
}

/* What fits the caches is near, for each thread; of twice as much one half is. */
static void test_times(void **state) {
    (void)state;
    const StepTimes times = {
        .loop = 10, .tile = 4, .dear = 20, .near = 4, .far = 16, .launch = 1000, .cache = 1 << 20};
    assert_int_equal(times_far_share(&times, 0), 0);
    assert_int_equal(times_far_share(&times, 1 << 20), 0);
    assert_int_equal(times_far_share(&times, 2 << 20), FAR_WHOLE / 2);
    assert_in_range(times_far_share(&times, INT64_MAX), FAR_WHOLE - 1, FAR_WHOLE);
    assert_int_equal(bytes_time(&times, 0, 1000, 1), 4000);
    assert_int_equal(bytes_time(&times, 0, 1000, 2), 2000);
    assert_int_equal(bytes_time(&times, FAR_WHOLE, 1000, 2), 16000);
    assert_int_equal(bytes_time(&times, FAR_WHOLE / 2, 1000, 1), 10000);
    Step step = {.kind = STEP_COPY, .flops = 300, .dear = 5, .team = 1, .bytes_moved = 100};
    assert_int_equal(step_time(&times, 0, &step), 3000 + 100 + 400);
    step.team = 2;
    assert_int_equal(step_time(&times, FAR_WHOLE, &step), 1550 + 1600 + 1000);
    Step loop = {.kind = STEP_LOOP, .trip = 3};
    Step *body[] = {&step, &step};
    loop.body.at = body;
    loop.body.count = 2;
    assert_int_equal(step_time(&times, FAR_WHOLE, &loop), 6 * (1550 + 1600 + 1000));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),           cmocka_unit_test(test_random_plans),
        cmocka_unit_test(test_budgets),         cmocka_unit_test(test_pushes),
        cmocka_unit_test(test_rows_in_use),     cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_device),          cmocka_unit_test(test_plans_are_deterministic),
        cmocka_unit_test(test_each_fault),      cmocka_unit_test(test_stacks),
        cmocka_unit_test(test_order_in_a_loop), cmocka_unit_test(test_two_results_of_one_operand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
