/* dictionary: see the header. Nothing is listed here: keywords come from the word table, operators
 * and units are found by asking the lexer about all short texts, ops and attributes come from the
 * op table, names from the texts of the library. Needs nothing, gives words, changes no values. */
#include "dictionary.h"

#include "compiler/embed.h"
#include "compiler/graph_text.h"
#include "lang/scan.h"
#include "parse.h"

#include <string.h>

enum { OPERATOR_LONGEST = 3, UNIT_LONGEST = 3 };

static void add(Arena *arena, Words *words, const char *text, size_t n) {
    for (int i = 0; i < words->count; i++)
        if (words->at[i].len == n && memcmp(words->at[i].at, text, n) == 0)
            return;
    Bytes word = {str_ndup(arena, text, n), n};
    VEC_PUSH(arena, words, word);
}

static void add_list(Arena *arena, Words *words, const char *const *list) {
    for (; *list; list++)
        add(arena, words, *list, strlen(*list));
}

/* The kind of a text that is one token, or a negative number. */
static int kind_of(const char *text, size_t n) {
    Arena scratch = {.chunk_bytes = 1024};
    LexTokens tokens = {0};
    lex_text(&scratch, text, n, &tokens);
    int kind = tokens.count == 2 && tokens.at[0].len == n ? tokens.at[0].kind : -1;
    arena_free(&scratch);
    return kind;
}

/* All texts of letters of `alphabet` behind `prefix` that are one token, of kind `kind` if that is
 * not 0. */
static void add_tokens(Arena *arena, Words *words, const char *prefix, const char *alphabet,
                       int longest, int kind) {
    size_t base = strlen(alphabet), skip = strlen(prefix), count = 1;
    for (int n = 1; n <= longest; n++) {
        count *= base;
        for (size_t code = 0; code < count; code++) {
            char text[16];
            memcpy(text, prefix, skip);
            size_t rest = code;
            for (int i = 0; i < n; i++, rest /= base)
                text[skip + (size_t)i] = alphabet[rest % base];
            int found = kind_of(text, skip + (size_t)n);
            if (found > 0 && (kind == 0 || found == kind))
                add(arena, words, text, skip + (size_t)n);
        }
    }
}

static void add_library(Arena *arena, Words *words) {
    for (size_t i = 0; i < nembeds; i++) {
        if (strncmp(embeds[i].name, "lang/", 5) != 0)
            continue;
        for (size_t k = 0; k < embeds[i].count; k++) {
            const char *line = embeds[i].lines[k];
            LexTokens tokens = {0};
            lex_text(arena, line, strlen(line), &tokens);
            for (int t = 0; t < tokens.count; t++)
                if (tokens.at[t].kind == T_NAME)
                    add(arena, words, line + tokens.at[t].at, tokens.at[t].len);
        }
    }
}

Words dictionary_make(Arena *arena) {
    Words words = {0};
    for (int i = 0; word_at(i); i++)
        add(arena, &words, word_at(i), strlen(word_at(i)));
    add_tokens(arena, &words, "", "!#$%&'*+,-./:;<=>?@^_`|~()[]{}", OPERATOR_LONGEST, 0);
    add_tokens(arena, &words, "1", "BGKMTikx", UNIT_LONGEST, T_SIZE);
    for (int op = 0; op < OP_COUNT; op++) {
        const char *text = str_printf(arena, "core.%s", op_info[op].name);
        add(arena, &words, text, strlen(text));
    }
    for (int i = 0; i < nattr_fields; i++) {
        const char *text = str_printf(arena, "%s =", attr_fields[i].name);
        add(arena, &words, text, strlen(text));
    }
    const char *const *const lists[] = {border_words, dist_words, role_words,
                                        entry_words,  out_words,  source_words};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        add_list(arena, &words, lists[i]);
    for (int i = 0; i < TY_COUNT; i++)
        add(arena, &words, elem_name((Elem)i), strlen(elem_name((Elem)i)));
    add_library(arena, &words);
    return words;
}
