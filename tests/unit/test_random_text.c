/* Random model texts through the whole compiler: what the compiler makes of a text is what the text
 * means, through every pass and in the emitted program; see random_text.h and graph_oracle.h.
 *
 * As a test it is deterministic. SEED and COUNT choose other texts; with SECONDS=n it is a soak as
 * test_random is one, and each finding leaves build/findings/text-SEED.mdl, short of the lines that
 * do not matter, and where there is one the reduced graph-SEED.mdl. SHOW=1 prints the texts of
 * SEED..SEED+COUNT. A text that is refused is no finding, but may be no more than one in fifty. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph_session.h"
#include "passes/precision.h"
#include "random_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SHRINK_SECONDS = 60 };

static Elem elem_of(uint64_t seed) {
    return seed % 2 ? TY_F64 : TY_F32;
}

/* ---- a case of a text ----------------------------------------------------------------------- */

/* Numbers for an input: floats in -1..1, integers in their range. */
static double *numbers(Arena *arena, const Slot *slot, Random *random) {
    int64_t n = type_count(slot->type);
    double *data = ARENA_ARRAY(arena, double, n + 1);
    for (int64_t i = 0; i < n; i++) {
        double u = (double)random_below(random, 1u << 24) / (1u << 24);
        int64_t lo = slot->lo, hi = slot->lo < slot->hi ? slot->hi : 2;
        data[i] =
            elem_is_float(slot->type.elem)
                ? num_round(elem_is_half(slot->type.elem) ? slot->type.elem : TY_F32, 2 * u - 1)
                : (double)(lo + (int64_t)(u * (double)(hi - lo)));
    }
    return data;
}

/* A check of gradients becomes an entry like those named smooth. */
static void adopt_gradcheck(Entry *entry) {
    Region *region = entry->region;
    int kept = 0;
    entry->kind = ENTRY_CALL;
    entry->name = "smooth_fit";
    for (int k = 0; k < entry->out.count; k++) {
        Node *node = region->out.at[k];
        bool slope = node->op == OP_GRAD && node->in[1]->op == OP_SLOT;
        if (k == 0 || slope) {
            region->out.at[kept] = node;
            entry->out.at[kept] = entry->out.at[k];
            entry->out.at[kept].role = OUT_RESULT;
            entry->out.at[kept].slot = NULL;
            entry->out.at[kept].name = kept == 0 ? "v" : NULL;
            kept++;
        }
    }
    entry->out.count = region->out.count = kept;
}

/* Parses and elaborates; false: it is refused. */
static bool case_of_text(GraphCase *c, const char *text, Elem elem, uint64_t seed) {
    memset(c, 0, sizeof *c);
    c->text = ARENA_NEW(&c->arena, Dumped);
    dumped_make(c->text, "text.mdl", text, strlen(text), elem);
    c->module = c->text->module;
    if (!c->module) {
        return false;
    }
    Random random = random_start(seed);
    for (int i = 0; i < c->module->entry.count; i++) {
        Entry *entry = c->module->entry.at[i];
        const Entry *says = entry->train ? entry->train : entry;
        if (entry->kind != ENTRY_TEST && says->half != TY_ERROR) {
            entry->half = says->half;
            entry->rounds = ROUND_ALL;
            entry->region =
                pass_precision(c->module->graph, entry->region, entry->half, entry->rounds);
        }
        if (entry->kind == ENTRY_TEST) {
            adopt_gradcheck(entry);
            for (int k = 1; k < entry->out.count; k++) {
                entry->out.at[k].name = str_printf(&c->arena, "d%d", k);
            }
        }
        for (int k = 0; k < entry->input.count; k++) {
            Slot *slot = entry->input.at[k];
            slot->entry = entry;
            VEC_PUSH(&c->arena, &c->input, ((CaseInput){slot, numbers(&c->arena, slot, &random)}));
        }
    }
    return true;
}

static void add_meaning(GraphCase *c, const RandomText *r) {
    for (int i = 0; i < r->entry.count; i++) {
        const RtEntry *e = r->entry.at[i];
        const Entry *entry = NULL;
        int at = 0;
        for (; at < c->module->entry.count && !entry; at++) {
            entry = str_eq(c->module->entry.at[at]->name, e->name) ? c->module->entry.at[at] : NULL;
        }
        if (e->result.count == 0 || !entry) {
            continue;
        }
        const double *data[16];
        for (int k = 0; k < entry->input.count; k++) {
            data[k] = graph_case_data(c, entry->input.at[k]);
        }
        double **result = text_meaning(&c->arena, r, e, data);
        for (int k = 0; k < e->result.count; k++) {
            VEC_PUSH(&c->arena, &c->meaning, ((CaseMeaning){at - 1, k, result[k]}));
        }
    }
}

static bool make(const Job *j, GraphCase *c, OracleReport *r) {
    RandomText made;
    Arena arena = {0};
    random_text(&made, &arena, j->seed, elem_of(j->seed));
    bool ok = case_of_text(c, j->text ? j->text : made.text.at, made.elem, j->seed);
    if (!ok) {
        r->refused = 1;
        snprintf(r->what, sizeof r->what, "%s", c->text->messages);
        if (!strstr(c->text->messages, "error: ")) {
            snprintf(r->check, sizeof r->check, "refused without a message");
        }
        graph_case_close(c);
    } else {
        add_meaning(c, &made);
    }
    arena_free(&arena);
    return ok;
}

/* ---- findings ------------------------------------------------------------------------------- */

/* Without the lines first..end-1. */
static char *without(Arena *arena, const char *text, int first, int end) {
    Text out = {.arena = arena};
    text_add(&out, "");
    for (int k = 0; *text; k++) {
        size_t n = strcspn(text, "\n") + (strchr(text, '\n') != NULL);
        if (k < first || k >= end) {
            text_addn(&out, text, n);
        }
        text += n;
    }
    return out.at;
}

static int lines_of(const char *text) {
    int n = 0;
    while ((text = strchr(text, '\n'))) {
        text++;
        n++;
    }
    return n;
}

/* Leaves out lines, many at once and then fewer, as long as it fails in the same way. */
static const char *shrunk(Job *j, Arena *arena, const char *text, const char *check) {
    time_t end = time(NULL) + SHRINK_SECONDS;
    for (int chunk = lines_of(text) / 2; chunk > 0; chunk /= 2) {
        for (int at = 0; at + chunk <= lines_of(text) && time(NULL) < end;) {
            OracleReport r;
            j->text = without(arena, text, at, at + chunk);
            job_run(j, &r);
            bool same = job_same_fault(check, r.check);
            text = same ? j->text : text;
            at += same ? 0 : 1;
        }
    }
    j->text = text;
    return text;
}

static bool save(Job *j, const char *path, const OracleReport *r) {
    RandomText made;
    Arena arena = {0};
    random_text(&made, &arena, j->seed, elem_of(j->seed));
    const char *text = shrunk(j, &arena, made.text.at, r->check);
    FILE *out = fopen(path, "wb");
    if (out) {
        fprintf(out, "// seed %llu, here and there without a line: %s\n",
                (unsigned long long)j->seed, r->check);
        fprintf(out, "// %.*s\n// precision %s\n", (int)strcspn(r->what, "\n"), r->what,
                elem_name(made.elem));
        GraphCase c; /* the inputs, where the compiler comes that far */
        if (strncmp(r->check, "died", 4) != 0 && case_of_text(&c, text, made.elem, j->seed)) {
            graph_case_print_inputs(&c, out);
            graph_case_close(&c);
        }
        fprintf(out, "%s", text);
    }
    j->text = NULL;
    arena_free(&arena);
    return out && fclose(out) == 0;
}

static Job job_of(uint64_t seed) {
    Job j = {.seed = seed, .opt = oracle_options(), .make = make, .save = save};
    j.opt.reread = seed % 5 == 0;
    j.opt.plain = seed % 4 == 0;
    j.opt.remat = seed % 4 == 1;
    return j;
}

/* ---- as a test ------------------------------------------------------------------------------ */

static void test_texts(void **state) {
    (void)state;
    Session s;
    assert_true(session_open(&s, "text", job_of));
    uint64_t first = session_number("SEED", 1), count = session_number("COUNT", 60);
    for (uint64_t i = 0; i < count; i++) {
        session_run(&s, first + i, i % 6 == 0);
        if (s.count == SESSION_BATCH) {
            session_flush(&s, SESSION_BATCH / 4);
        }
        if (getenv("SHOW")) {
            RandomText made;
            Arena arena = {0};
            random_text(&made, &arena, first + i, elem_of(first + i));
            printf("// seed %llu\n%s\n", (unsigned long long)(first + i), made.text.at);
            arena_free(&arena);
        }
    }
    session_flush(&s, SESSION_BATCH / 4);
    session_close(&s);
    printf(
        "%d texts, %d refused, %d results, %d by meaning, %d loose, %d slopes, %d unclear, %lld "
        "calls, %d stacks made again, %d thinner, %d with ends of stacks, %d made again behind a "
        "result\n",
        s.executions, s.all.refused, s.all.compared, s.all.meant, s.all.loose, s.all.slopes,
        s.all.unclear, (long long)s.all.calls, s.all.remade, s.all.thinned, s.all.ended,
        s.all.behind);
    assert_int_equal(s.findings, 0);
    assert_true(s.all.refused * 50 <= s.executions);
    if (count >= 60) {
        assert_true(s.all.meant > 3 * s.executions && s.all.slopes > s.executions);
        assert_true(s.all.loose * 10 < s.all.compared && s.all.unclear * 10 <= s.all.slopes);
        assert_true(s.all.remade > s.executions / 2 && s.all.thinned > 0 && s.all.behind > 0);
    }
}

/* ---- planted faults ------------------------------------------------------------------------- */

/* The text of the seed with one thing in it that means something else. */
static const char *planted(Arena *arena, const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from), *formula = strstr(text, "entry formula");
    while (at && (at < formula || strncmp(at + strlen(from), "1 <", 3) == 0)) {
        at = strstr(at + 1, from);
    }
    if (!formula || !at || (strstr(text, "entry smooth") && at > strstr(text, "entry smooth"))) {
        return NULL;
    }
    return str_printf(arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

/* A text that means something else than its tree is seen, and found again by fewer lines. */
static void test_planted(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"= sum[", "= mean["},      {"cumsum(", "flip("}, {"else wrap", "else edge"},
        {"select(", "select(not "}, {" - ", " + "},       {"tanh(", "sin("},
        {"axis = 0", "axis = -1"},  {"0..2", "1..3"},     {"steps = 2", "steps = 1"},
        {" + 1;", " + 2;"}};
    Arena arena = {0};
    int tried = 0, seen = 0;
    for (uint64_t seed = 1; seed <= 240; seed++) {
        RandomText made;
        random_text(&made, &arena, seed, elem_of(seed));
        Job j = job_of(seed);
        OracleReport r;
        j.text = planted(&arena, made.text.at, pairs[seed % 10][0], pairs[seed % 10][1]);
        if (!j.text) {
            continue;
        }
        job_run(&j, &r);
        tried += !r.refused;
        seen += str_eq(r.check, "meaning");
        if (r.check[0] && !str_eq(r.check, "meaning")) {
            printf("seed %llu: %s: %s\n", (unsigned long long)seed, r.check, r.what);
        }
        assert_true(str_eq(r.check, "meaning") || !r.check[0]);
    }
    arena_free(&arena);
    printf("%d planted, %d seen\n", tried, seen); /* some change nothing that is looked at */
    assert_true(tried >= 10 && seen * 3 >= tried);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_planted),
    };
    return getenv("SECONDS") ? session_soak("text", job_of)
                             : cmocka_run_group_tests(tests, NULL, NULL);
}
