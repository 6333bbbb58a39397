/* What a program in phases has in memory when: by hand for two trains behind an entry, with weights
 * that are read in loops that end by themselves. Plans that take something away too early, bring it
 * too late or count it wrong are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiled.h"
#include "passes/check.h"
#include "passes/plan/plan.h"

#include <string.h>

static const char text[] =
    "use nn;\n"
    "dim B = 4;\n"
    "ring cache[8] { e: f32[16]; }\n"
    "dataset rows { file f = synthetic(8, seed = 1); x: f32[32] = normal(0, 1, [32]); }\n"
    "model body(x: [B, 32]) -> [B, 16] {\n"
    "    while i < 2 max 3 carry h = x[:, 0..16], i = 0 {\n"
    "        h <- h + (x |> fc: linear(16, use_bias = false)); i <- i + 1;\n"
    "    }\n"
    "    return h;\n"
    "}\n"
    "model head(e: [B, 16]) -> [B, 8] {\n"
    "    ode t from 0.0 to 1.0 using heun(rtol = 0.1, atol = 0.1, max = 20)\n"
    "    carry y = zeros([B, 8]) {\n"
    "        y' = t * (e |> fc: linear(8, use_bias = false));\n"
    "    }\n"
    "    return y;\n"
    "}\n"
    "model last(e: [B, 16]) -> [B, 4] { return e |> fc: linear(4, use_bias = false); }\n"
    "entry encode on rows[B] { cache.push(body(x)); }\n"
    "train fit of head on cache[B] { loss mean(head(e)^2); optimizer adam(lr = 1e-3); steps 2; }\n"
    "train tune of head, last on cache[B] { loss mean(head(e)^2) + mean(last(e)^2);\n"
    "    optimizer sgd(lr = 1e-3, momentum = 0.9); steps 2; }\n"
    "phase encode then fit then tune;\n"
    "entry whole(x: [B, 32]) { return last(body(x)); }\n";

static void there(const Program *p, const char *name, int begins, int ends) {
    const Buf *buf = compiled_slot(p, name);
    if (buf->begins != begins || buf->ends != ends) {
        fail_msg("%s: %d to %d, expected %d to %d", name, buf->begins, buf->ends, begins, ends);
    }
}

/* Each slot is there from where it is first read or written to where it is last. */
static void test_when(void **state) {
    (void)state;
    Dumped m = {0};
    Program *p = compiled_text(&m, text, 1);
    assert_non_null(p);
    compiled_plan(p);
    there(p, "body.fc.weight", 0, 0);
    there(p, "head.fc.weight", 1, 2);
    there(p, "last.fc.weight", 2, 2);
    there(p, "cache.e", 0, 2);
    there(p, "fit.head.fc.weight.m", 1, 1);
    there(p, "fit.head.fc.weight.v", 1, 1);
    there(p, "tune.head.fc.weight.b", 2, 2);
    there(p, "tune.last.fc.weight.b", 2, 2);
    there(p, "fit.step", 0, 2);
    assert_int_equal(p->phase.count, 3);
    enum { BODY = 16 * 32 * 4, HEAD = 8 * 16 * 4, LAST = 4 * 16 * 4 };
    assert_int_equal(p->phase.at[0].params, BODY);
    assert_int_equal(p->phase.at[1].params, HEAD);
    assert_int_equal(p->phase.at[2].params, HEAD + LAST);
    int64_t numbers = p->phase.at[0].state; /* and the ring */
    assert_int_equal(p->phase.at[1].state, numbers + 2 * HEAD);
    assert_int_equal(p->phase.at[2].state, numbers + HEAD + LAST);
    assert_int_equal(p->state_bytes, numbers + 3 * HEAD + LAST);
    assert_int_equal(p->params_bytes, BODY + HEAD + LAST);
    int64_t most = 0;
    for (int k = 0; k < 3; k++) {
        int64_t sum =
            p->phase.at[k].params + p->phase.at[k].state + p->phase.at[k].arena + p->io_bytes;
        assert_int_equal(p->phase.at[k].total, sum);
        most = sum > most ? sum : most;
    }
    assert_int_equal(p->total_bytes, most);
    Arena arena = {0};
    assert_null(check_program(&arena, p));
    arena_free(&arena);
    dumped_done(&m);
}

/* A host calls entries as it likes. */
static void test_hosts(void **state) {
    (void)state;
    Dumped m = {0};
    Program *p = compiled_text(&m, text, 1);
    assert_non_null(p);
    pass_plan(p, false, -1);
    assert_int_equal(p->phase.count, 0);
    assert_int_equal(p->total_bytes, program_whole_bytes(p));
    dumped_done(&m);
}

typedef enum {
    GOOD,
    GONE,    /* a weight is given back while the entry still reads it */
    EARLY,   /* slots of the last train are taken to end a phase before it */
    BEFORE,  /* the ring begins where it is first read, and not where it is pushed to */
    NUMBERS, /* a counter that a run sets is away in one phase */
    INIT,    /* `init` writes what is not there yet */
    LATER,   /* that of a later phase does */
    WRONG,   /* that of a later phase runs in front of it */
    LARGEST, /* the bound is that of another phase */
    PHASE,   /* a phase counts less than it has */
    ARENA,   /* or less scratch */
    MISSING, /* a phase is not counted at all */
    OVER,    /* slots of one phase lie on a weight of all */
    HARMS
} Harm;

static ProgramEntry *init_of(const Program *p, int phase) {
    for (int i = 0; i < p->entry.count; i++) {
        ProgramEntry *e = p->entry.at[i];
        if (e->entry->kind == ENTRY_INIT && e->entry->begins == phase) {
            return e;
        }
    }
    fail_msg("nothing begins with phase %d", phase);
    return NULL;
}

static bool writes(const ProgramEntry *e, const Buf *weight) {
    bool found = false;
    for (int i = 0; i < e->step.count; i++) {
        const AccessList *list = &e->step.at[i]->access;
        for (int k = 0; k < list->count; k++) {
            bool is = buf_root(list->at[k].buf) == weight || list->at[k].buf->final == weight;
            found = found || (is && (list->at[k].mode & ACCESS_WRITE) != 0);
        }
    }
    return found;
}

/* What each `init` writes, and no other. */
static void test_inits(void **state) {
    (void)state;
    Dumped m = {0};
    Program *p = compiled_text(&m, text, 1);
    assert_non_null(p);
    compiled_plan(p);
    static const struct {
        int phase;
        const char *name, *weight, *other[2];
    } expected[] = {{0, "net_init", "body.fc.weight", {"head.fc.weight", "last.fc.weight"}},
                    {1, "net_init_phase_2", "head.fc.weight", {"body.fc.weight", "last.fc.weight"}},
                    {2, "net_init_phase_3", "last.fc.weight", {"body.fc.weight", "fit.step"}}};
    for (int i = 0; i < 3; i++) {
        const ProgramEntry *e = init_of(p, expected[i].phase);
        assert_string_equal(e->c_name, expected[i].name);
        assert_true(writes(e, compiled_slot(p, expected[i].weight)));
        assert_false(writes(e, compiled_slot(p, expected[i].other[0])));
        assert_false(writes(e, compiled_slot(p, expected[i].other[1])));
    }
    dumped_done(&m);
}

static const char *harm(Program *p, Harm which) {
    PhaseNeed *need = p->phase.at;
    switch (which) {
    case GONE:
        compiled_slot(p, "head.fc.weight")->ends = 1;
        need[2].params -= 512;
        need[2].total -= 512;
        return "tune touches fc_weight_2 in phase 2, which is there in 1 to 1";
    case EARLY: {
        compiled_slot(p, "tune.last.fc.weight.b")->begins = 1;
        compiled_slot(p, "tune.last.fc.weight.b")->ends = 1;
        need[1].state += 256, need[1].total += 256;
        need[2].state -= 256, need[2].total -= 256;
        return "in phase 2, which is there in 1 to 1";
    }
    case BEFORE:
        compiled_slot(p, "cache.e")->begins = 1;
        need[0].state -= 512, need[0].total -= 512;
        return "in phase 0, which is there in 1 to 2";
    case NUMBERS: compiled_slot(p, "fit.step")->ends = 1; return "is not there in all phases";
    case INIT:
        compiled_slot(p, "body.fc.weight")->begins = 1;
        compiled_slot(p, "body.fc.weight")->ends = 1;
        need[0].params -= 2048, need[0].total -= 2048;
        need[1].params += 2048, need[1].total += 2048;
        return "init touches";
    case LATER:
        compiled_slot(p, "head.fc.weight")->begins = 2;
        need[1].params -= 512, need[1].total -= 512;
        return "in phase 1, which is there in 2 to 2";
    case WRONG: init_of(p, 2)->entry->begins = 1; return "init_phase_3 touches";
    case LARGEST: /* not that of the largest phase */
        p->total_bytes = need[need[1].total == p->total_bytes ? 0 : 1].total;
        return "the totals do not add up";
    case PHASE:
        need[1].state -= 64, need[1].total -= 64;
        return "the totals of a phase do not add up";
    case ARENA:
        need[0].arena -= 64, need[0].total -= 64;
        return "the totals of a phase do not add up";
    case MISSING: p->phase.count--; return "a phase is missing";
    case OVER:
        compiled_slot(p, "fit.head.fc.weight.m")->offset = compiled_slot(p, "cache.e")->offset;
        return "is overwritten";
    case GOOD:
    case HARMS: break;
    }
    return NULL;
}

static void test_harms(void **state) {
    (void)state;
    for (int which = GOOD; which < HARMS; which++) {
        Dumped m = {0};
        Arena arena = {0};
        Program *p = compiled_text(&m, text, 1);
        compiled_plan(p);
        const char *expected = harm(p, (Harm)which), *fault = check_program(&arena, p);
        if ((fault == NULL) != (expected == NULL) || (fault && !strstr(fault, expected))) {
            fail_msg("harm %d: %s; expected: %s", which, fault ? fault : "passes",
                     expected ? expected : "none");
        }
        arena_free(&arena);
        dumped_done(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_when),
        cmocka_unit_test(test_inits),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_harms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
