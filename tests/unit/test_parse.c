/* Parser: every program parses; one lost token costs at most two messages; broken texts of any
 * kind end in messages, soon; trees and messages of small texts; the formatter keeps trees and is
 * stable. Run from the root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lang/ast.h"
#include "lang/fmt.h"
#include "lang/scan.h"

enum { SEED = 20240611, MUTANTS = 3000, MUTATIONS = 6 };

/* What the parser made of one text. */
typedef struct {
    Arena arena;
    int errors;
    char *messages, *dump;
} Parsed;

static char *dump_of(Arena *arena, const Ast *ast) {
    char *text;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    ast_dump(ast, out);
    fclose(out);
    char *copy = str_ndup(arena, text, n);
    free(text);
    return copy;
}

typedef enum { WANT_FILE, WANT_EXPR, WANT_FORMAT } Want;

static Parsed parse_text(const char *text, size_t length, Want want) {
    Parsed parsed = {0};
    char *messages;
    size_t n;
    Compile c = {0};
    FILE *out = open_memstream(&messages, &n);
    diag_open(&c.diag, &c.arena, out);
    uint32_t source = diag_add_source(&c.diag, "a.mdl", text, length);
    if (want == WANT_FORMAT) {
        const char *laid_out = fmt_source(&c, &c.arena, source);
        parsed.dump = laid_out ? str_dup(&parsed.arena, laid_out) : NULL;
    } else {
        const Ast *ast =
            want == WANT_FILE ? parse_file(&c, &c.arena, source) : parse_expr(&c, &c.arena, source);
        parsed.dump = ast ? dump_of(&parsed.arena, ast) : NULL;
    }
    diag_close(&c.diag);
    fclose(out);
    parsed.errors = c.diag.errors;
    parsed.messages = str_ndup(&parsed.arena, messages, n);
    free(messages);
    arena_free(&c.arena);
    return parsed;
}

static int errors_of(const char *text, size_t length) {
    Parsed parsed = parse_text(text, length, WANT_FILE);
    arena_free(&parsed.arena);
    return parsed.errors;
}

/* ---- the programs ---- */

typedef struct {
    Arena arena;
    VEC(char *) path;
    VEC(char *) text;
} Programs;

static int programs_open(void **state) {
    static const char *const patterns[] = {"tests/unit/programs/*.mdl", "samples/*.mdl",
                                           "lang/*.mdl", "lang/*/*.mdl", "tests/library/*.mdl"};
    Programs *programs = calloc(1, sizeof *programs);
    glob_t found = {0};
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        glob(patterns[i], i ? GLOB_APPEND : 0, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        FILE *in = fopen(found.gl_pathv[i], "rb");
        Text text = {.arena = &programs->arena};
        char chunk[4096];
        for (size_t n; (n = fread(chunk, 1, sizeof chunk, in)) > 0;)
            text_addn(&text, chunk, n);
        fclose(in);
        VEC_PUSH(&programs->arena, &programs->path, str_dup(&programs->arena, found.gl_pathv[i]));
        VEC_PUSH(&programs->arena, &programs->text, text.at);
    }
    globfree(&found);
    *state = programs;
    return programs->path.count < 15; /* the fixtures are not there */
}

static int programs_close(void **state) {
    Programs *programs = *state;
    arena_free(&programs->arena);
    free(programs);
    return 0;
}

static void test_programs_parse(void **state) {
    const Programs *programs = *state;
    for (int i = 0; i < programs->path.count; i++) {
        Parsed parsed = parse_text(programs->text.at[i], strlen(programs->text.at[i]), WANT_FILE);
        if (parsed.errors)
            fail_msg("%s:\n%s", programs->path.at[i], parsed.messages);
        assert_null(strstr(parsed.dump, "error\n"));
        arena_free(&parsed.arena);
    }
}

/* Of a long text one place in so many: the time grows with the square. test_mutants takes every
 * token out of the samples, and looks at more than syntax. */
static int stride_of(size_t length) {
    return 1 + (int)(length / 1024);
}

static void test_one_lost_token(void **state) {
    const Programs *programs = *state;
    int most = 0;
    for (int i = 0; i < programs->path.count; i++) {
        const char *text = programs->text.at[i];
        size_t length = strlen(text);
        Arena scratch = {0};
        LexTokens tokens = {0};
        lex_text(&scratch, text, length, &tokens);
        char *without = str_ndup(&scratch, text, length);
        for (int k = 0; k + 1 < tokens.count; k += stride_of(length)) {
            LexToken token = tokens.at[k];
            if (token.kind == LEX_COMMENT || token.kind == LEX_DOC)
                continue;
            memset(without + token.at, ' ', token.len);
            Parsed parsed = parse_text(without, length, WANT_FILE);
            if (parsed.errors > 2)
                fail_msg("%s without '%.*s' at byte %u:\n%s", programs->path.at[i], (int)token.len,
                         text + token.at, (unsigned)token.at, parsed.messages);
            most = parsed.errors > most ? parsed.errors : most;
            arena_free(&parsed.arena);
            memcpy(without + token.at, text + token.at, token.len);
        }
        arena_free(&scratch);
    }
    assert_in_range(most, 1, 2);
}

/* A text that ends anywhere ends in few messages too. */
static void test_cut_short(void **state) {
    const Programs *programs = *state;
    for (int i = 0; i < programs->path.count; i++) {
        const char *text = programs->text.at[i];
        size_t length = strlen(text), step = 3 * (size_t)stride_of(length);
        for (size_t n = 0; n < length; n += step) {
            int errors = errors_of(text, n);
            if (errors > 3)
                fail_msg("%s cut at byte %zu: %d errors", programs->path.at[i], n, errors);
        }
    }
}

static uint64_t random_next(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = *seed ^ *seed >> 29;
    return x * 0xbf58476d1ce4e5b9u >> 16;
}

static void mutate(uint64_t *seed, char *text, size_t *length, size_t room) {
    static const char pool[] = ";{}()[],.=<>-+*/^%~@'\"\n\t \\_:09aA\x80\xc3";
    size_t at = random_next(seed) % (*length + 1);
    size_t n = random_next(seed) % 12;
    if (n > *length - at)
        n = *length - at;
    switch (random_next(seed) % 5) {
    case 0: /* overwrite */
        if (at < *length)
            text[at] = (char)random_next(seed);
        break;
    case 1: /* put in a character that means something */
        if (*length + 1 < room) {
            memmove(text + at + 1, text + at, *length - at);
            text[at] = pool[random_next(seed) % (sizeof pool - 1)];
            ++*length;
        }
        break;
    case 2: /* take out */
        memmove(text + at, text + at + n, *length - at - n);
        *length -= n;
        break;
    case 3: /* double */
        if (*length + n < room) {
            memmove(text + at + n, text + at, *length - at);
            *length += n;
        }
        break;
    default: /* move */
        if (n) {
            size_t from = random_next(seed) % (*length - n + 1);
            memmove(text + at, text + from, n);
        }
        break;
    }
}

/* Broken texts give messages; texts that still parse keep their trees when they are laid out. */
static void test_mutants(void **state) {
    const Programs *programs = *state;
    uint64_t seed = SEED;
    int good = 0;
    printf("# mutants: seed %d, %d texts\n", SEED, MUTANTS);
    for (int i = 0; i < MUTANTS; i++) {
        const char *origin = programs->text.at[random_next(&seed) % (uint64_t)programs->path.count];
        size_t length = strlen(origin), room = length + 64;
        char *text = malloc(room + 1);
        memcpy(text, origin, length);
        for (uint64_t k = random_next(&seed) % MUTATIONS + 1; k > 0; k--)
            mutate(&seed, text, &length, room);
        text[length] = '\0';
        Parsed parsed = parse_text(text, length, WANT_FILE);
        assert_true((parsed.errors > 0) == (parsed.messages[0] != '\0'));
        if (parsed.errors == 0) {
            Parsed once = parse_text(text, length, WANT_FORMAT);
            Parsed again = parse_text(once.dump, strlen(once.dump), WANT_FILE);
            assert_string_equal(again.dump, parsed.dump);
            good++;
            arena_free(&once.arena);
            arena_free(&again.arena);
        }
        arena_free(&parsed.arena);
        free(text);
    }
    assert_in_range(good, MUTANTS / 50, MUTANTS - MUTANTS / 50);
}

static void test_format(void **state) {
    const Programs *programs = *state;
    for (int i = 0; i < programs->path.count; i++) {
        const char *text = programs->text.at[i];
        Parsed tree = parse_text(text, strlen(text), WANT_FILE);
        Parsed once = parse_text(text, strlen(text), WANT_FORMAT);
        assert_non_null(once.dump);
        Parsed twice = parse_text(once.dump, strlen(once.dump), WANT_FORMAT);
        Parsed again = parse_text(once.dump, strlen(once.dump), WANT_FILE);
        assert_string_equal(once.dump, twice.dump);
        assert_string_equal(again.dump, tree.dump);
        arena_free(&tree.arena);
        arena_free(&once.arena);
        arena_free(&twice.arena);
        arena_free(&again.arena);
    }
}

static void test_format_text(void **state) {
    (void)state;
    static const char text[] =
        "\n\nuse nn;const c=1 . w;dim B=4;   // batch\nmodel f(x:[B , 3],\n  y : u8 [B] in 0 .. 3)"
        "->[B]\n{ when x==-y^2 {z=sum [i] x [:,0]*(y+1) ;\r\n\n\n} else { w=- y; }\n"
        "@a @b(3) repeat  3 carry q = 4 { q<-q  ; } // loop\n  u' = 160MiB\n|> f; v=1KiB+2kB; }";
    static const char wanted[] = "use nn;\n"
                                 "const c = 1 .w;\n"
                                 "dim B = 4;  // batch\n"
                                 "model f(x: [B, 3],\n"
                                 "    y: u8[B] in 0..3) -> [B] {\n"
                                 "    when x == -y^2 {\n"
                                 "        z = sum[i] x[:, 0]*(y+1);\n"
                                 "    } else { w = -y; }\n"
                                 "    @a @b(3) repeat 3 carry q = 4 { q <- q; }  // loop\n"
                                 "    u' = 160 MiB\n"
                                 "        |> f; v = 1 KiB+2 kB;\n"
                                 "}\n";
    Parsed parsed = parse_text(text, sizeof text - 1, WANT_FORMAT);
    assert_string_equal(parsed.messages, "");
    assert_string_equal(parsed.dump, wanted);
    arena_free(&parsed.arena);
    parsed = parse_text("dim B = ;", 9, WANT_FORMAT);
    assert_null(parsed.dump);
    assert_int_equal(parsed.errors, 1);
    arena_free(&parsed.arena);
}

/* ---- texts made to hurt ---- */

/* front + middle * times + back: gives the messages. */
static void check_repeated(const char *front, const char *middle, int times, const char *back,
                           const char *wanted) {
    Arena arena = {0};
    Text text = {.arena = &arena};
    text_add(&text, front);
    for (int i = 0; i < times; i++)
        text_add(&text, middle);
    text_add(&text, back);
    clock_t start = clock();
    Parsed parsed = parse_text(text.at, text.len, WANT_FILE);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (!strstr(parsed.messages, wanted))
        fail_msg("'%s%s...': wanted '%s', got\n%.400s", front, middle, wanted, parsed.messages);
    if (seconds > 10)
        fail_msg("'%s%s...' took %.1f s", front, middle, seconds);
    arena_free(&parsed.arena);
    arena_free(&arena);
}

static void test_deep(void **state) {
    (void)state;
    static const char deep[] = "nested too deeply";
    check_repeated("const a = ", "(", 100000, "", deep);
    check_repeated("const a = ", "(", 100000, ";", deep);
    check_repeated("const a = ", "[", 100000, "", deep);
    check_repeated("const a = ", "f(", 100000, "1;", deep);
    check_repeated("const a = ", "-", 100000, "1;", deep);
    check_repeated("const a = ", "not ", 100000, "1;", deep);
    check_repeated("const a = ", "sum[i] ", 100000, "1;", deep);
    check_repeated("const a = x", " |> f", 100000, ";", deep);
    check_repeated("const a = x", " + 1", 100000, ";", deep);
    check_repeated("const a = x", "^2", 100000, ";", deep);
    check_repeated("const a = x", ".y", 100000, ";", deep);
    check_repeated("const a = x", "()", 100000, ";", deep);
    check_repeated("use a", ".b", 100000, ";", deep);
    check_repeated("op f(x: [n]) {", "when a { } else ", 100000, "{ } }", deep);
    check_repeated("op f(x: [n]) {", "when a { ", 100000, "", deep);
}

static void test_long(void **state) {
    (void)state;
    check_repeated("", "", 1, "", "");
    check_repeated("", ";", 300000, "", "");
    check_repeated("", "}", 300000, "", "'}' without a '{'");
    check_repeated("", "{", 300000, "", "expected an item");
    check_repeated("", "\"", 300000, "", "expected an item");
    check_repeated("", "/* ", 300000, "", "this comment has no end");
    check_repeated("", "$", 300000, "", "299980 more errors");
    check_repeated("", "train a\n", 50000, "", "expected '{'");
    check_repeated("", "model a(x: [b]) {\n", 50000, "", "missing '}'");
    check_repeated("op f(x: [n]) {", "repeat x y ", 50000, "", "expected 'carry'");
    check_repeated("op f(x: [n]) {", "x = ;", 50000, "", "more errors");
    check_repeated("", "/// doc\n", 100000, "dim B = 4;", "");
    check_repeated("", "@a ", 100000, "", "expected an item");
}

static void test_not_a_model(void **state) {
    (void)state;
    size_t length = 50u << 20;
    char *text = malloc(length + 1);
    memset(text, 'a', length);
    text[length] = '\0';
    Parsed parsed = parse_text(text, length, WANT_FILE);
    assert_non_null(strstr(parsed.messages, "a model text has at most 4 MiB; this one has more"));
    assert_int_equal(parsed.errors, 1);
    arena_free(&parsed.arena);
    memset(text, 0, 1000000);
    parsed = parse_text(text, 1000000, WANT_FILE);
    assert_non_null(strstr(parsed.messages, "a.mdl:1:1: error: a NUL byte"));
    assert_int_equal(parsed.errors, 1);
    arena_free(&parsed.arena);
    free(text);
}

/* ---- messages and trees of small texts ---- */

/* Each is a text and the messages it must give, whole. */
static const char *const messages[][2] = {
    {"op f(x: [B]) {\n\ty = x +;\n}\n",
     "a.mdl:2:9: error: expected an expression, found ';' [E0145]\n"
     "    2 | \ty = x +;\n"
     "      | \t       ^\n"},
    {"use nn\ndim B = 4;\n", "a.mdl:1:7: error: expected ';' after this declaration [E0140]\n"
                             "    1 | use nn\n"
                             "      |       ^\n"},
    {"op f(x: [B]) {\r\n    y = x  // here\r\n    z = y;\r\n}\r\n",
     "a.mdl:2:10: error: expected ';' after this statement [E0140]\n"
     "    2 |     y = x  // here\n"
     "      |          ^\n"},
    {"op f(x: [B]) { when x = 3 { y = 1; } }",
     "a.mdl:1:23: error: unexpected '=' inside an expression [E0131]\n"
     "    1 | op f(x: [B]) { when x = 3 { y = 1; } }\n"
     "      |                       ^\n"
     "hint: write '==' to compare\n"},
    {"op f(x: [B]) { y = f(x <-1); }",
     "a.mdl:1:24: error: unexpected '<-' inside an expression [E0132]\n"
     "    1 | op f(x: [B]) { y = f(x <-1); }\n"
     "      |                        ^^\n"
     "hint: to compare with a negative number, write a < -1\n"},
    {"const a = b < c < d;", "a.mdl:1:17: error: comparisons do not chain [E0135]\n"
                             "    1 | const a = b < c < d;\n"
                             "      |                 ^\n"
                             "hint: write a < b and b < c\n"},
    {"op f(x: [B]) {\n    y = x;\n\ntrain t of m { loss 1; }\n",
     "a.mdl:4:1: error: missing '}' before this 'train' [E0115]\n"
     "    4 | train t of m { loss 1; }\n"
     "      | ^^^^^\n"
     "a.mdl:1:14: note: this '{' is not closed\n"},
    {"const a = gr\xc3\xb6\xc3\x9f"
     "e;",
     "a.mdl:1:11: error: a name has only the letters a to z and A to Z, digits and '_' [E0112]\n"
     "    1 | const a = gr\xc3\xb6\xc3\x9f"
     "e;\n"
     "      |           ^^^^^\n"},
    {"const a = 2 \xc3\x97 3;", "a.mdl:1:13: error: stray character '\xc3\x97' (U+00D7) [E0107]\n"
                                "    1 | const a = 2 \xc3\x97 3;\n"
                                "      |             ^\n"
                                "hint: write *\n"},
    {"const a = \xff;", "a.mdl:1:11: error: stray byte 0xff; a model text is UTF-8 [E0106]\n"
                        "    1 | const a = ?;\n"
                        "      |           ^\n"},
    {"modle a(x: [B]) { }",
     "a.mdl:1:1: error: expected an item such as 'dim', 'model' or 'train', found 'modle' [E0137]\n"
     "    1 | modle a(x: [B]) { }\n"
     "      | ^^^^^\n"
     "hint: did you mean 'model'?\n"},
    {"test \"a\" { x = \"b; }\n", "a.mdl:1:16: error: this string has no end on its line [E0110]\n"
                                  "    1 | test \"a\" { x = \"b; }\n"
                                  "      |                ^\n"},
    {"dim B = 4; /* open", "a.mdl:1:12: error: this comment has no end [E0109]\n"
                           "    1 | dim B = 4; /* open\n"
                           "      |            ^^\n"
                           "hint: close it with */\n"},
};

static void test_messages(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        Parsed parsed = parse_text(messages[i][0], strlen(messages[i][0]), WANT_FILE);
        assert_string_equal(parsed.messages, messages[i][1]);
        arena_free(&parsed.arena);
    }
}

static void test_long_line_is_cut(void **state) {
    (void)state;
    Arena arena = {0};
    Text text = {.arena = &arena};
    for (int i = 0; i < 100; i++)
        text_add(&text, "dim B = 4; ");
    text_add(&text, "dim C 4; ");
    for (int i = 0; i < 100; i++)
        text_add(&text, "dim D = 4; ");
    Parsed parsed = parse_text(text.at, text.len, WANT_FILE);
    assert_int_equal(parsed.errors, 1);
    assert_true(strlen(parsed.messages) < 400);
    const char *caret = strstr(parsed.messages, " | ...");
    assert_non_null(caret);
    arena_free(&parsed.arena);
    arena_free(&arena);
}

static void check_expr(const char *text, const char *wanted) {
    Parsed parsed = parse_text(text, strlen(text), WANT_EXPR);
    if (!parsed.dump)
        fail_msg("'%s': %s", text, parsed.messages);
    /* "+ (a) (b)" is easier to read than a dump: blanks show the depth. */
    Text flat = {.arena = &parsed.arena};
    for (const char *p = parsed.dump; *p; p++)
        text_addn(&flat, *p == '\n' ? "|" : p, 1);
    assert_string_equal(flat.at, wanted);
    arena_free(&parsed.arena);
}

static void test_expressions(void **state) {
    (void)state;
    check_expr("-x^2", "unary -|  binary ^|    name x|    number 2|");
    check_expr("t^-0.5*u", "binary *|  binary ^|    name t|    unary -|      number 0.5|  name u|");
    check_expr("a + b * c", "binary +|  name a|  binary *|    name b|    name c|");
    check_expr("a^b^c", "binary ^|  name a|  binary ^|    name b|    name c|");
    check_expr("not a == b and c",
               "binary and|  unary not|    binary ==|      name a|      name b|  name c|");
    check_expr("sum[i] a * b + c", "binary +|  fold sum|    indices|      name i|    binary *|"
                                   "      name a|      name b|  name c|");
    check_expr("a - b - c", "binary -|  binary -|    name a|    name b|  name c|");
    check_expr("1_000", "number 1000|");
    check_expr("1.5e-3", "number 0.0015|");
    check_expr("160 MiB", "size 167772160|");
    check_expr("900kB", "size 900000|");
    check_expr("f(0..64)", "call|  name f|  args|    ..|      number 0|      number 64|");
    check_expr("x[i] else -1 * y", "binary *|  index|    name x|    indices|      name i|"
                                   "    unary -|      number 1|  name y|");
    check_expr("x |> f |> g: h(1) as [B]",
               "as|  |>|    |>|      name x|      call|        name f|        -|    call g|"
               "      name h|      args|        number 1|  type []|    name B|");
    check_expr("frozen new a.b(c)", "new a.b frozen|  args|    name c|");
    check_expr("\"a\\\"b\\n\"", "string \"a\\\"b\\n\"|");
    check_expr("[1, 2,]", "list|  number 1|  number 2|");
    Parsed parsed = parse_text("1 +", 3, WANT_EXPR);
    assert_null(parsed.dump);
    arena_free(&parsed.arena);
    parsed = parse_text("1 2", 3, WANT_EXPR);
    assert_null(parsed.dump);
    assert_int_equal(parsed.errors, 1);
    arena_free(&parsed.arena);
}

/* Words that are keywords somewhere are names elsewhere. */
static void test_words(void **state) {
    (void)state;
    int kind;
    for (int i = 0; word_at(i); i++) { /* each word of the table is found in it */
        assert_int_not_equal(word_class(word_at(i), strlen(word_at(i)), &kind), WORD_NAME);
    }
    assert_int_equal(word_class("loss_of", 7, &kind), WORD_NAME);
    static const char *const texts[] = {
        "op of(on: [at], at: int = 3) { then = on; state = then; const = 3; param = 4;\n"
        "    model = 5; train = model; from = to; ode = using; return carry; }",
        "op f(x: [n]) { ode from from to to to using using(1) carry carry = x { carry' = x; } }",
        "op f(x: [n]) { repeat carry carry carry { carry <- carry; } }",
        "train fit of of on on[at] at at = 1 { loss loss; metric metric = metric; steps steps; }",
        "entry loss() { when train { budget 3 B; when infer { steps 4; } else { epochs 5; } } }",
        "op f(x: [n]) { loss = 3; steps = loss; file = x.max; return file.sum.in; }",
        "phase a, then then then, b;",
        "op f(x: [n]) {\nstate = 3;\nmodel = 4;\nconst c = 4;\nstate s = 3;\n}",
        "train f of g {\noptimizer adamw(lr = 3);\noptimizer sgd(x);\n}",
        "op f(x: [n]) -> [n] { return x; } adjoint(u: [n]) { return u; }",
        "\xef\xbb\xbf"
        "dim B = 4;",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        Parsed parsed = parse_text(texts[i], strlen(texts[i]), WANT_FILE);
        assert_string_equal(parsed.messages, "");
        arena_free(&parsed.arena);
    }
}

static void test_docs(void **state) {
    (void)state;
    static const char text[] =
        "/// A net.\n///  Two lines.\n//// none\n@a\nmodel f(x: [B], /// in\n y: [B]) {\n"
        "    /// A weight.\n    param w: [n] ~ normal(0, 1);\n}\n";
    Parsed parsed = parse_text(text, sizeof text - 1, WANT_FILE);
    assert_string_equal(
        parsed.dump, "file\n"
                     "  model f doc \"A net.\\n Two lines.\"\n"
                     "    attr a\n"
                     "    params\n"
                     "      param decl x\n        type []\n          name B\n        -\n        -\n"
                     "      param decl y doc \"in\"\n        type []\n          name B\n"
                     "        -\n        -\n"
                     "    -\n"
                     "    block\n"
                     "      param w ~ doc \"A weight.\"\n"
                     "        type []\n          name n\n"
                     "        call\n          name normal\n          args\n"
                     "            number 0\n            number 1\n");
    arena_free(&parsed.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs_parse),
        cmocka_unit_test(test_one_lost_token),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_mutants),
        cmocka_unit_test(test_format),
        cmocka_unit_test(test_format_text),
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_not_a_model),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_long_line_is_cut),
        cmocka_unit_test(test_expressions),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_docs),
    };
    return cmocka_run_group_tests(tests, programs_open, programs_close);
}
