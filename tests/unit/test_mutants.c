/* Broken programs through parser and elaborator: one lost token costs at most two errors, other
 * damage any number, and nothing ends in a fault; what is still a program gives regions that hold,
 * also after differentiation. MUTANTS=n in the environment tries n times as much other damage,
 * SEED=n starts elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lang/elab.h"
#include "lang/scan.h"
#include "passes/grad.h"
#include "tests/fuzz/mutate.h"

enum { OTHERS = 1000, SEED = 20240, MOST_ERRORS = 2, PLACE = 200 };

typedef struct {
    Arena arena;
    VEC(char *) path;
    VEC(char *) text;
    VEC(int) errors; /* of the program as it is: it may use what is refused for now */
    Random random;
    long times;
    const char *now; /* what is being tried, for the message after a fault */
    char at[PLACE];
} Programs;

static Programs programs;

static void say_where(void) {
    if (programs.now) {
        fprintf(stderr, "# while trying %s:\n%s\n", programs.at, programs.now);
    }
}

static int programs_open(void **state) {
    static const char *const patterns[] = {"samples/*.mdl", "tests/library/*.mdl",
                                           "tests/unit/programs/*.mdl"};
    (void)state;
    glob_t found = {0};
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        glob(patterns[i], i ? GLOB_APPEND : 0, NULL, &found);
    }
    for (size_t i = 0; i < found.gl_pathc; i++) {
        FILE *in = fopen(found.gl_pathv[i], "rb");
        Text text = {.arena = &programs.arena};
        char chunk[4096];
        for (size_t n; (n = fread(chunk, 1, sizeof chunk, in)) > 0;) {
            text_addn(&text, chunk, n);
        }
        fclose(in);
        VEC_PUSH(&programs.arena, &programs.path, str_dup(&programs.arena, found.gl_pathv[i]));
        VEC_PUSH(&programs.arena, &programs.text, text.at);
    }
    globfree(&found);
    const char *seed = getenv("SEED"), *times = getenv("MUTANTS");
    uint64_t first = seed ? strtoull(seed, NULL, 10) : SEED;
    programs.random = random_start(first);
    programs.times = times ? strtol(times, NULL, 10) : 1;
    printf("# mutants: seed %llu, times %ld\n", (unsigned long long)first, programs.times);
    atexit(say_where);
    return programs.path.count < 15; /* the programs are not there */
}

static int programs_close(void **state) {
    (void)state;
    programs.now = NULL;
    arena_free(&programs.arena);
    return 0;
}

/* What is left says where it happened, if a signal has ended the test. */
static int test_close(void **state) {
    (void)state;
    say_where();
    programs.now = NULL;
    return 0;
}

/* The number of errors. */
static int compile(const char *text, char **messages) {
    Compile c = {0};
    size_t size;
    FILE *out = open_memstream(messages, &size);
    diag_open(&c.diag, &c.arena, out);
    c.opt.input = "a.mdl";
    c.opt.float_type = TY_F32;
    uint32_t source = diag_add_source(&c.diag, "a.mdl", text, strlen(text));
    const Ast *ast = parse_file(&c, &c.arena, source);
    Module *module = c.diag.errors ? NULL : elaborate(&c, &c.arena, &c.arena, ast);
    for (int i = 0; module && !c.diag.errors && i < module->entry.count; i++) {
        Entry *entry = module->entry.at[i];
        region_verify(entry->region, STAGE_BUILT);
        region_verify(pass_grad(module->graph, entry->region, GRAD_SAVE_CALLS), STAGE_GRAD);
    }
    int errors = c.diag.errors;
    diag_close(&c.diag);
    fclose(out);
    arena_free(&c.arena);
    return errors;
}

static int try(const char *text, int most) {
    char *messages = NULL;
    programs.now = text;
    int errors = compile(text, &messages);
    programs.now = NULL;
    bool silent = errors > 0 && messages[0] == '\0';
    if (errors > most || silent) {
        print_message("%s: %d errors\n%s\n", programs.at, errors, messages);
    }
    free(messages);
    assert_false(silent);
    return errors;
}

static void test_whole(void **state) {
    (void)state;
    for (int i = 0; i < programs.path.count; i++) {
        snprintf(programs.at, sizeof programs.at, "%s", programs.path.at[i]);
        int errors = try(programs.text.at[i], MOST_ERRORS);
        VEC_PUSH(&programs.arena, &programs.errors, errors);
        assert_in_range(errors, 0,
                        strncmp(programs.path.at[i], "samples/", 8) == 0 ? 0 : MOST_ERRORS);
    }
}

/* One lost token is one error, rarely two. In the samples always; the other programs hold some
 * tokens that many statements depend on. */
static void test_lost_token(void **state) {
    (void)state;
    int worst = 0, tried = 0, beyond = 0;
    for (int i = 0; i < programs.path.count; i++) {
        Arena scratch = {0};
        LexTokens tokens = {0};
        const char *origin = programs.text.at[i];
        char *text = str_dup(&scratch, origin);
        lex_text(&scratch, origin, strlen(origin), &tokens);
        /* Of a long text one token in so many: the time grows with the square. */
        bool sample = strncmp(programs.path.at[i], "samples/", 8) == 0;
        int stride = 1 + (int)(strlen(origin) / (sample ? 8192 : 1024));
        for (int k = 0; k + 1 < tokens.count; k += stride) {
            LexToken token = tokens.at[k];
            if (token.kind == LEX_COMMENT || token.kind == LEX_DOC) {
                continue;
            }
            memset(text + token.at, ' ', token.len);
            snprintf(programs.at, sizeof programs.at, "%s without '%.*s' at byte %u",
                     programs.path.at[i], (int)token.len, origin + token.at, (unsigned)token.at);
            int most = programs.errors.at[i] + MOST_ERRORS, errors = try(text, most);
            worst = sample && errors > worst ? errors : worst;
            beyond += errors > most;
            tried++;
            memcpy(text + token.at, origin + token.at, token.len);
        }
        arena_free(&scratch);
    }
    assert_int_equal(worst, MOST_ERRORS);
    assert_in_range(beyond, 0, tried / 500);
}

/* Damage of all kinds, see mutate.h. */
static void test_other_damage(void **state) {
    (void)state;
    long good = 0, n = OTHERS * programs.times;
    Random *r = &programs.random;
    for (long m = 0; m < n; m++) {
        Arena scratch = {0};
        int i = (int)random_below(r, (uint64_t)programs.path.count);
        int k = (int)random_below(r, (uint64_t)programs.path.count);
        Bytes text = {programs.text.at[i], strlen(programs.text.at[i])};
        Bytes other = {programs.text.at[k], strlen(programs.text.at[k])};
        int changes = 1 + (int)random_below(r, 3);
        snprintf(programs.at, sizeof programs.at, "%s, damage %ld", programs.path.at[i], m);
        good += try(mutate(&scratch, r, text, other, NULL, changes).at, 1000) == 0;
        arena_free(&scratch);
    }
    print_message("%ld of %ld are still programs\n", good, n);
    assert_in_range(good, n / 200, n - n / 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_whole, test_close),
        cmocka_unit_test_teardown(test_lost_token, test_close),
        cmocka_unit_test_teardown(test_other_damage, test_close),
    };
    return cmocka_run_group_tests(tests, programs_open, programs_close);
}
