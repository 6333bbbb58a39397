/* Random graphs through the whole compiler, a reducer for those that fail, and both on planted
 * faults.
 *
 * As a test it is deterministic. SEED and COUNT choose other graphs; with SECONDS=n it is a soak:
 * it runs for n seconds from SEED on, reduces each finding to build/findings/graph-SEED.mdl, goes
 * on, and ends with `executions N, findings M`; the C of EMIT percent of them (10) is compiled,
 * which costs a hundred times as much as the rest. Such a file in tests/cases/graph is a case: it
 * goes through the same checks. CASES is the pattern of other files to check so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph_oracle.h"
#include "graph_reduce.h"
#include "passes/grad_rule.h"
#include "passes/simplify.h"
#include "random_module.h"
#include "tests/support.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 20, JOB_SECONDS = 60, REDUCE_SECONDS = 60 };

static uint64_t number_of(const char *name, uint64_t usual) {
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : usual;
}

/* --- one graph -------------------------------------------------------------------------------- */

typedef struct {
    GenWish wish;
    OracleOptions opt;
    const char *folder; /* compile the C at once there: NULL, leave it to a batch */
    GraphCase *c;       /* made already: the wish does not count */
} Job;

static void run_job(void *ctx, void *result) {
    const Job *j = ctx;
    OracleReport *r = result;
    GraphCase made, *c = j->c;
    if (!c) {
        c = &made;
        random_module(c, &j->wish);
    }
    oracle_check(c, &j->opt, r);
    if (j->folder && !r->check[0]) {
        emitted_alone(j->folder, j->opt.number, r);
    }
}

/* A fault of the compiler is a failed check too. */
static void run_isolated(Job *j, OracleReport *r) {
    OracleReport fresh = {.check = {0}};
    *r = fresh;
    if (!isolated(run_job, j, r, sizeof *r, JOB_SECONDS, fresh.check, sizeof fresh.check)) {
        *r = fresh;
    }
}

static Job job_of(uint64_t seed) {
    Job j = {.opt = oracle_options()};
    j.wish = (GenWish){.seed = seed * 7919,
                       .elem = seed % 2 ? TY_F64 : TY_F32,
                       .big = seed % 16 == 5,
                       .nodes = seed % 16 == 5 ? 6 : 5 + (int)(seed % 5) * 6};
    j.opt.reread = seed % 3 == 0;
    j.opt.plain = seed % 4 == 0;
    return j;
}

/* --- findings --------------------------------------------------------------------------------- */

/* The part of a failure's name that stays while the graph shrinks: up to the place of a fault. */
static size_t class_length(const char *check) {
    const char *end = strstr(check, "internal fault at ");
    end = end ? strstr(end, ": ") : strstr(check, " on ");
    return end ? (size_t)(end - check) : strlen(check);
}

typedef struct {
    Job job;
    char check[96];
} Finding;

static bool still_fails(void *ctx, GraphCase *c) {
    Finding *f = ctx;
    OracleReport r;
    Job j = f->job;
    j.c = c;
    run_isolated(&j, &r);
    size_t n = class_length(f->check);
    return class_length(r.check) == n && strncmp(r.check, f->check, n) == 0;
}

/* Reduces the case of `f` and gives what fails about it then. */
static OracleReport reduce(Finding *f, GraphCase *c) {
    OracleReport r;
    graph_reduce(c, still_fails, f, REDUCE_SECONDS);
    Job j = f->job;
    j.c = c;
    run_isolated(&j, &r);
    return r;
}

static void show_finding(uint64_t seed, Finding *f, const char *folder) {
    GraphCase c;
    char path[300], head[900];
    bool emitted = strncmp(f->check, "emitted", 7) == 0;
    snprintf(path, sizeof path, "%s/0", folder);
    f->job.opt.write = path; /* lowering is part of it */
    f->job.opt.number = 0;
    f->job.folder = emitted ? folder : NULL;
    random_module(&c, &f->job.wish);
    int before = graph_size(&c);
    OracleReport r = reduce(f, &c);
    snprintf(head, sizeof head, "seed %llu: %s\n%s\n%d nodes of %d", (unsigned long long)seed,
             f->check, r.what, graph_size(&c), before);
    char file[200];
    const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
    snprintf(file, sizeof file, "%s/findings", build);
    mkdir(build, 0777);
    mkdir(file, 0777);
    snprintf(file, sizeof file, "%s/findings/graph-%llu.mdl", build, (unsigned long long)seed);
    bool saved = graph_case_save(&c, file, head);
    printf("%s\n%s%s\n", head, saved ? "in " : "cannot write ", file);
    fflush(stdout);
    graph_case_close(&c);
}

/* --- batches ---------------------------------------------------------------------------------- */

typedef struct {
    char folder[SCRATCH_PATH];
    uint64_t seed[BATCH];
    OracleReport r[BATCH];
    int number[BATCH], count;
    OracleReport all; /* statistics */
    int executions, findings;
} Session;

static bool session_open(Session *s) {
    memset(s, 0, sizeof *s);
    return scratch_make(s->folder, "graphs");
}

static void session_close(Session *s) {
    if (!scratch_remove(s->folder)) {
        printf("%s is left\n", s->folder);
    }
}

static void session_finding(Session *s, uint64_t seed, const OracleReport *r) {
    Finding f = {.job = job_of(seed)};
    memcpy(f.check, r->check, sizeof f.check);
    printf("SEED=%llu: %s: %s\n", (unsigned long long)seed, r->check, r->what);
    s->findings++;
    show_finding(seed, &f, s->folder);
}

/* Through all stages; with `emit` its C waits for session_flush. */
static void session_run(Session *s, uint64_t seed, bool emit) {
    Job j = job_of(seed);
    char base[100];
    snprintf(base, sizeof base, "%s/%d", s->folder, s->count);
    j.opt.write = emit ? base : NULL;
    j.opt.number = s->count;
    OracleReport *r = &s->r[s->count];
    run_isolated(&j, r);
    s->executions++;
    oracle_add(&s->all, r);
    if (r->check[0]) {
        OracleReport copy = *r;
        session_finding(s, seed, &copy);
    } else if (emit) {
        s->seed[s->count] = seed;
        s->number[s->count] = s->count;
        s->count++;
    }
}

/* Compiles and runs those that wait: all at -O0, the first `fast` at -O3 too. */
static void session_build(Session *s, int fast) {
    for (int k = 0; emitted_flags[k]; k++) {
        int count = k == 0 || s->count < fast ? s->count : fast;
        if (count == 0 || emitted_run(s->folder, s->number, count, emitted_flags[k], s->r)) {
            continue;
        }
        for (int i = 0; i < count; i++) { /* which of them? */
            emitted_run(s->folder, &s->number[i], 1, emitted_flags[k], &s->r[i]);
        }
    }
}

static void session_flush(Session *s, int fast) {
    session_build(s, fast);
    int count = s->count;
    s->count = 0;
    for (int i = 0; i < count; i++) {
        if (s->r[i].check[0]) {
            OracleReport copy = s->r[i];
            session_finding(s, s->seed[i], &copy);
        }
    }
}

static int soak(void) {
    Session s;
    time_t end = time(NULL) + (time_t)number_of("SECONDS", 0);
    if (!session_open(&s)) {
        return 1;
    }
    uint64_t emit = number_of("EMIT", 10);
    for (uint64_t seed = number_of("SEED", 1); time(NULL) < end; seed++) {
        session_run(&s, seed, seed * 37 % 100 < emit);
        if (s.count == BATCH) {
            session_flush(&s, BATCH / 4);
        }
    }
    session_flush(&s, BATCH / 4);
    session_close(&s);
    printf("executions %d, findings %d\n", s.executions, s.findings);
    return s.findings > 0;
}

/* --- as a test -------------------------------------------------------------------------------- */

/* Every row at the top, in loops and between a derivative and its point, as far as it may stand
 * there. Fails when the generator lost one. */
static void check_coverage(const OracleReport *all, int least) {
    int missed = 0;
    for (int op = 0; op < OP_COUNT; op++) {
        bool body = op != OP_SLOT, top = op != OP_BODY_PARAM;
        bool leaf = op_info[op].cls == CLASS_LEAF || op == OP_STOP;
        bool active = !leaf && !vjp_is_none((OpCode)op);
        int want[SEEN_EMITTED] = {top ? 4 * least : 0, body ? least : 0, active ? least : 0};
        for (int kind = 0; kind < SEEN_EMITTED; kind++) {
            if (all->seen[op][kind] < want[kind]) {
                printf("%s: %d times %s, fewer than %d\n", op_info[op].name, all->seen[op][kind],
                       kind == SEEN_TOP    ? "at the top"
                       : kind == SEEN_LOOP ? "in loops"
                                           : "under a derivative",
                       want[kind]);
                missed++;
            }
        }
    }
    assert_int_equal(missed, 0);
}

static void test_stages(void **state) {
    (void)state;
    Session s;
    assert_true(session_open(&s));
    uint64_t first = number_of("SEED", 1), count = number_of("COUNT", 200);
    for (uint64_t i = 0; i < count; i++) {
        session_run(&s, first + i, false);
    }
    session_close(&s);
    printf("%d graphs, %d results, %d loose, %d slopes, %d unclear\n", s.executions, s.all.compared,
           s.all.loose, s.all.slopes, s.all.unclear);
    assert_int_equal(s.findings, 0);
    if (count >= 200) {
        check_coverage(&s.all, 3);
        assert_true(s.all.loose * 20 < s.all.compared);
        assert_true(s.all.slopes > 60 && s.all.unclear * 10 < s.all.slopes);
    }
}

static void test_emitted(void **state) {
    (void)state;
    Session s;
    assert_true(session_open(&s));
    uint64_t first = number_of("SEED", 1) + 100000;
    for (uint64_t i = 0; i < 2 * BATCH; i++) {
        session_run(&s, first + i, true);
        if (s.count == BATCH) {
            session_flush(&s, i < BATCH ? BATCH / 4 : 0);
        }
    }
    session_flush(&s, 0);
    session_close(&s);
    int rows = 0;
    for (int op = 0; op < OP_COUNT; op++) {
        rows += s.all.seen[op][SEEN_EMITTED] > 0;
    }
    printf("%d graphs in C, %lld calls, %d rows of the op table\n", s.executions,
           (long long)s.all.calls, rows);
    assert_int_equal(s.findings, 0);
    assert_true(rows >= OP_COUNT - 4); /* marks are gone */
}

/* --- cases ------------------------------------------------------------------------------------ */

static void test_cases(void **state) {
    (void)state;
    Session s;
    glob_t found = {0};
    int bad = 0;
    assert_true(session_open(&s));
    const char *pattern = getenv("CASES");
    glob(pattern ? pattern : "tests/cases/graph/*.mdl", 0, NULL, &found);
    const char *path[BATCH];
    for (size_t i = 0; i < found.gl_pathc; i++) {
        GraphCase c;
        const char *message;
        char base[100];
        snprintf(base, sizeof base, "%s/%d", s.folder, s.count);
        Job j = {.opt = oracle_options(), .c = &c};
        j.opt.write = base;
        j.opt.number = s.count;
        OracleReport *r = &s.r[s.count];
        if (!graph_case_load(&c, found.gl_pathv[i], &message)) {
            fail_msg("%s: %s", found.gl_pathv[i], message);
        }
        run_isolated(&j, r);
        if (r->check[0]) {
            printf("%s: %s: %s\n", found.gl_pathv[i], r->check, r->what);
            bad++;
        } else {
            s.number[s.count] = s.count;
            path[s.count++] = found.gl_pathv[i];
        }
        graph_case_close(&c);
        if (s.count == BATCH || i + 1 == found.gl_pathc) {
            session_build(&s, s.count);
            for (int k = 0; k < s.count; k++) {
                if (s.r[k].check[0]) {
                    printf("%s: %s: %s\n", path[k], s.r[k].check, s.r[k].what);
                    bad++;
                }
            }
            s.count = 0;
        }
    }
    printf("%d cases\n", (int)found.gl_pathc);
    globfree(&found);
    session_close(&s);
    assert_int_equal(bad, 0);
}

/* --- planted faults --------------------------------------------------------------------------- */

static Node *turn_sub(void *ctx, Graph *g, const Node *old, Node *const *in) {
    (void)ctx;
    return old->op == OP_SUB ? node_map2(g, OP_SUB, in[1], in[0]) : NULL;
}

static Region *wrong_simplify(Graph *g, const Region *region) {
    return region_rebuild(g, pass_simplify(g, region), turn_sub, NULL);
}

static Region *broken_hoist(Graph *g, const Region *region) {
    (void)g;
    for (int i = 0; i < region->node.count; i++) {
        if (region->node.at[i]->op == OP_CUMSUM) {
            BUG("planted");
        }
    }
    return region_rebuild(g, region, NULL, NULL);
}

/* The first graph from `seed` on that fails with the passes of `opt`, reduced. */
static int reduced_size(OracleOptions opt, const char *check, const char *path) {
    for (uint64_t seed = 1; seed < 60; seed++) {
        Finding f = {.job = job_of(seed)};
        OracleReport r;
        memcpy(f.job.opt.pass, opt.pass, sizeof opt.pass);
        run_isolated(&f.job, &r);
        if (!r.check[0]) {
            continue;
        }
        assert_memory_equal(r.check, check, strlen(check));
        memcpy(f.check, r.check, sizeof f.check);
        GraphCase c;
        random_module(&c, &f.job.wish);
        r = reduce(&f, &c);
        assert_memory_equal(r.check, check, strlen(check));
        int size = graph_size(&c);
        if (path) {
            assert_true(graph_case_save(&c, path, r.what));
        }
        graph_case_close(&c);
        return size;
    }
    fail_msg("no graph meets the planted fault");
    return 0;
}

/* A rewrite that is wrong is found, and what is left is hardly more than the node it is about; the
 * file of it fails in the same way, and passes when the fault is gone. */
static void test_reducer(void **state) {
    (void)state;
    char folder[SCRATCH_PATH], path[SCRATCH_PATH + 16];
    assert_true(scratch_make(folder, "reduced"));
    snprintf(path, sizeof path, "%s/graph.mdl", folder);
    OracleOptions opt = oracle_options();
    opt.pass[2] = wrong_simplify;
    int size = reduced_size(opt, "values: simplify", path);
    printf("%d nodes\n", size);
    assert_true(size <= 5);
    GraphCase c;
    const char *message;
    assert_true(graph_case_load(&c, path, &message));
    Job j = {.opt = opt, .c = &c};
    OracleReport r;
    run_isolated(&j, &r);
    assert_string_equal(r.check, "values: simplify");
    j.opt = oracle_options();
    run_isolated(&j, &r);
    assert_string_equal(r.check, "");
    graph_case_close(&c);
    assert_true(scratch_remove(folder));
}

/* So is one that ends the compiler. */
static void test_reducer_of_faults(void **state) {
    (void)state;
    OracleOptions opt = oracle_options();
    opt.pass[3] = broken_hoist;
    int size = reduced_size(opt, "died: mdlc: internal fault at tests/unit/test_random.c", NULL);
    printf("%d nodes\n", size);
    assert_true(size <= 5);
}

/* Emitted code that computes something else is found by its values; a wrong derivative that all
 * passes agree on is found by difference quotients. */
static void test_planted(void **state) {
    (void)state;
    Session s;
    GraphCase c;
    OracleReport r;
    char base[100];
    assert_true(session_open(&s));
    snprintf(base, sizeof base, "%s/0", s.folder);
    graph_case_open(&c, TY_F32);
    Graph *g = c.module->graph;
    Entry *entry = graph_case_entry(&c, ENTRY_CALL, "call0");
    double data[2][3] = {{0.5, -1, 2}, {1, 0.25, -3}};
    Type t = type_make(TY_F32, 1, (int64_t[]){3});
    graph_enter(g, entry->region);
    Node *x = node_slot(g, graph_case_input(&c, entry, t, data[0], 0, 0));
    Node *y = node_slot(g, graph_case_input(&c, entry, t, data[1], 0, 0));
    graph_case_result(&c, entry, OUT_RESULT, node_map2(g, OP_SUB, x, y));
    Job j = {.opt = oracle_options(), .c = &c, .folder = s.folder};
    j.opt.write = base;
    run_isolated(&j, &r);
    assert_string_equal(r.check, "");
    FILE *text = fopen(str_printf(&c.arena, "%s.c", base), "rb+");
    assert_non_null(text);
    char line[400];
    long at = 0;
    while (fgets(line, sizeof line, text) && !strstr(line, "= x0[i] - x1[i];")) {
        at = ftell(text);
    }
    fseek(text, at + (long)(strchr(line, '-') - line), SEEK_SET);
    fputc('+', text);
    assert_int_equal(fclose(text), 0);
    emitted_alone(s.folder, 0, &r);
    assert_string_equal(r.check, "emitted: values");
    graph_case_close(&c);
    session_close(&s);
}

static void test_planted_slope(void **state) {
    (void)state;
    GraphCase c;
    OracleReport r;
    graph_case_open(&c, TY_F64);
    Graph *g = c.module->graph;
    Entry *entry = graph_case_entry(&c, ENTRY_CALL, "smooth");
    double data[1] = {0.5};
    graph_enter(g, entry->region);
    Node *x = node_slot(g, graph_case_input(&c, entry, type_scalar(TY_F64), data, 0, 0));
    Region *body = region_new(g, g->region), *before = graph_enter(g, body);
    region_param(body, x->type);
    Node *u = region_param(body, x->type);
    region_result(body, node_map2(g, OP_MUL, u, node_const(g, TY_F64, 2)));
    graph_leave(g, before);
    Node *value = node_custom(g, node_map1(g, OP_SIN, x), &x, 1, body);
    graph_case_result(&c, entry, OUT_RESULT, value);
    graph_case_result(&c, entry, OUT_RESULT, node_grad(g, value, x, node_const(g, TY_F64, 1)));
    Job j = {.opt = oracle_options(), .c = &c};
    run_isolated(&j, &r);
    assert_string_equal(r.check, "slope");
    graph_case_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_stages),
        cmocka_unit_test(test_emitted),
        cmocka_unit_test(test_reducer),
        cmocka_unit_test(test_reducer_of_faults),
        cmocka_unit_test(test_planted),
        cmocka_unit_test(test_planted_slope),
    };
    return getenv("SECONDS") ? soak() : cmocka_run_group_tests(tests, NULL, NULL);
}
