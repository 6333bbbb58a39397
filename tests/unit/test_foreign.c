/* The names of other libraries (lang/foreign.def, lang/foreign_args.def): every example compiles,
 * every name gives its row as a hint and none is one of ours, every argument is one that the
 * library has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiler/embed.h"
#include "dumped.h"
#include "lang/foreign.h"
#include "lang/prelude.h"

#include <ctype.h>
#include <string.h>

/* The file in which examples stand; its tensors are those that they name. */
static const char inputs[] =
    "x: [B, K], y: [B, K], w: [K, 3], v: [K], s: [B], h: [B, 3], i: i32[B] in 0..K, "
    "r: i32[B] in 0..B, n: i32[B, K], c: bool[B, K], line: [2, 4, 8], image: [2, 4, 8, 8], "
    "volume: [2, 4, 4, 4, 4]";
static const char given[] = "x, y, w, v, s, h, i, r, n, c, line, image, volume";

/* A whole model file around an example or, in its place, around a wrong text. */
static const char *file_with(Arena *arena, ForeignPlace place, const char *text) {
    bool loss = strncmp(text, "loss", 4) == 0, optimizer = strstr(text, "optimizer ") != NULL;
    return str_printf(arena,
                      "use nn;\ndim B = 4, K = 6;\n%s\n"
                      "layer body(%s) -> [B, K] {\n%s\nreturn x;\n}\n"
                      "model net(%s) -> [B, K] { return l: body(%s); }\n"
                      "model plain(x: [B, K]) -> [B, K] { return x |> fc: linear(K); }\n"
                      "train fit(x: [B, K], y: i32[B] in 0..K) of plain {\n"
                      "logits = plain(x);\n%s%s\n%s\nsteps 3;\n}\n"
                      "entry go(%s) { return net(%s); }\n",
                      place == FOREIGN_ITEM ? text : "", inputs, place == FOREIGN_BODY ? text : "",
                      inputs, given, loss ? "" : "loss mean(cross_entropy(logits, y));\n",
                      place == FOREIGN_TRAIN ? text : "",
                      optimizer ? "" : "optimizer sgd(lr = 0.1);", inputs, given);
}

static void test_examples(void **state) {
    (void)state;
    for (int i = 0; i < foreign_count; i++) {
        Arena arena = {0};
        Dumped m;
        const char *text = file_with(&arena, foreign_rows[i].place, foreign_rows[i].example);
        dumped_make(&m, "example.mdl", text, strlen(text), TY_F32);
        if (!m.module) {
            fail_msg("%s: '%s' does not compile:\n%s", foreign_rows[i].names,
                     foreign_rows[i].example, m.messages);
        }
        dumped_done(&m);
        arena_free(&arena);
    }
}

/* The words of a list, one call each. */
static int each_word(const char *list, void (*visit)(void *ctx, const char *word), void *ctx) {
    int count = 0;
    for (const char *at = list; *at != '\0';) {
        char word[64];
        size_t n = strcspn(at, " ");
        if (n > 0) {
            assert_true(n < sizeof word);
            memcpy(word, at, n);
            word[n] = '\0';
            visit(ctx, word);
            count++;
        }
        at += n + (at[n] == ' ');
    }
    return count;
}

typedef struct {
    const Foreign *row;
    const char *library;
} NameCheck;

static void check_name(void *ctx, const char *name) {
    const NameCheck *check = ctx;
    Arena arena = {0};
    if (foreign_find(name) != check->row) {
        fail_msg("'%s' stands twice", name);
    }
    if (prelude_has(name)) {
        fail_msg("'%s' is in the prelude", name);
    }
    for (int k = 0; k < 4; k++) {
        static const char *const kinds[] = {"op", "layer", "model", "optimizer"};
        if (strstr(check->library, str_printf(&arena, "\n%s %s(", kinds[k], name))) {
            fail_msg("'%s' is in the library", name);
        }
    }
    if (isalpha((unsigned char)name[0]) || name[0] == '_') {
        Dumped m;
        const char *call = str_printf(&arena, "z = %s(x, y);", name);
        const char *text = file_with(&arena, FOREIGN_BODY, call);
        dumped_make(&m, "wrong.mdl", text, strlen(text), TY_F32);
        const char *hint =
            str_printf(&arena, "'%s' is written so here: %s", name, check->row->form);
        const char *example = str_printf(&arena, "for example: %s", check->row->example);
        if (m.module || !strstr(m.messages, hint) || !strstr(m.messages, example)) {
            fail_msg("'%s' is not hinted at:\n%s", name, m.module ? "" : m.messages);
        }
        dumped_done(&m);
    }
    arena_free(&arena);
}

static char *library_text(Arena *arena) {
    Text text = {.arena = arena};
    text_add(&text, "\n");
    for (size_t i = 0; i < nembeds; i++) {
        bool ours = strncmp(embeds[i].name, "lang/nn/", 8) == 0;
        for (size_t k = 0; ours && k < embeds[i].count; k++) {
            text_add(&text, embeds[i].lines[k]);
            text_add(&text, "\n");
        }
    }
    return text.at;
}

static void test_names(void **state) {
    (void)state;
    Arena arena = {0};
    int names = 0;
    const char *library = library_text(&arena);
    for (int i = 0; i < foreign_count; i++) {
        NameCheck check = {&foreign_rows[i], library};
        names += each_word(foreign_rows[i].names, check_name, &check);
    }
    printf("%d rows, %d names\n", foreign_count, names);
    assert_true(names >= 150);
    assert_null(foreign_find("linear"));
    assert_null(foreign_find("whe"));
    assert_null(foreign_find(""));
    arena_free(&arena);
}

/* --- arguments -------------------------------------------------------------------------------- */

typedef struct {
    const ForeignArg *row;
    const char *library;
} ArgCheck;

static void check_parameter(void *ctx, const char *name) {
    const ArgCheck *check = ctx;
    Arena arena = {0};
    if (!strstr(check->library, str_printf(&arena, "%s: ", name))) {
        fail_msg("the library has no parameter '%s'", name);
    }
    arena_free(&arena);
}

static void check_argument(void *ctx, const char *name) {
    const ArgCheck *check = ctx;
    if (foreign_arg_find(name) != check->row) {
        fail_msg("argument '%s' stands twice", name);
    }
}

/* What the message about `text` in a body says. */
static void assert_said(ForeignPlace place, const char *text, const char *said) {
    Arena arena = {0};
    Dumped m;
    const char *file = file_with(&arena, place, text);
    dumped_make(&m, "wrong.mdl", file, strlen(file), TY_F32);
    if (m.module || !strstr(m.messages, said)) {
        fail_msg("%s: no '%s' in\n%s", text, said, m.module ? "" : m.messages);
    }
    dumped_done(&m);
    arena_free(&arena);
}

static void test_arguments(void **state) {
    (void)state;
    Arena arena = {0};
    const char *library = library_text(&arena);
    for (int i = 0; i < foreign_arg_count; i++) {
        ArgCheck check = {&foreign_args[i], library};
        assert_true(foreign_args[i].parameters[0] != '\0' || foreign_args[i].words);
        each_word(foreign_args[i].names, check_argument, &check);
        each_word(foreign_args[i].parameters, check_parameter, &check);
    }
    assert_said(FOREIGN_BODY, "z = image |> a: conv2d(4, kernel_size = 3);",
                "it is called 'k' here");
    assert_said(FOREIGN_BODY, "z = fc: linear(x, 4, bias = false);",
                "it is called 'use_bias' here");
    assert_said(FOREIGN_BODY, "z = fc: linear(x, in_features = 6);",
                "there is no 'in_features' here: the extent comes from the input");
    assert_said(FOREIGN_BODY, "z = line |> r: lstm(4, num_layers = 2);",
                "it is called 'layers' here");
    assert_said(FOREIGN_TRAIN, "optimizer adamw(lr = 1e-3, weight_decay = 0.1);",
                "it is called 'decay' here");
    assert_said(FOREIGN_BODY, "z = dropout(x, rate = 0.1);", "it is called 'p' here");
    assert_said(FOREIGN_BODY, "z = sum(x, keepdim = true);", "there is no 'keepdim' here");
    arena_free(&arena);
}

/* Names with a library in front, methods, fields, optimizers and clauses. */
static void test_places(void **state) {
    (void)state;
    assert_said(FOREIGN_BODY, "z = torch.cat(x, y);", "concat(a, b, axis = n)");
    assert_said(FOREIGN_BODY, "z = nn.functional.relu(x);",
                "it is called by its plain name: relu(...)");
    assert_said(FOREIGN_BODY, "z = np.tanh(x);", "it is called by its plain name: tanh(...)");
    assert_said(FOREIGN_BODY, "z = nn.Linear(x, 4);", "'Linear' is written so here");
    assert_said(FOREIGN_BODY, "z = F.sofmax(x);", "did you mean 'softmax'?");
    assert_said(FOREIGN_BODY, "z = x.permute(1, 0);", "'permute' is written so here");
    assert_said(FOREIGN_BODY, "z = x.T;", "'T' is written so here");
    assert_said(FOREIGN_BODY, "z = np.newaxis;", "'np' is written so here");
    assert_said(FOREIGN_BODY, "z = None;", "'None' is written so here");
    assert_said(FOREIGN_BODY, "z = x |> Linear(4);", "'Linear' is written so here");
    assert_said(FOREIGN_TRAIN, "optimizer SGD(lr = 0.1);", "'SGD' is written so here");
    assert_said(FOREIGN_TRAIN, "scheduler cosine(0.1);", "'scheduler' is written so here");
    assert_said(FOREIGN_BODY, "z = T * x;", "unknown name 'T'");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
