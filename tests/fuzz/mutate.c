/* mutate: see the header. A text is cut by the lexer into tokens, each with the blanks and comments
 * before it; changes are made on that list, so that most results are still tokens in a row and
 * reach behind the lexer. Needs texts without NUL bytes, gives a text, changes no values. */
#include "mutate.h"

#include "lang/scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUN = 12 /* tokens moved, doubled or lost at once, at most */ };

Random random_start(uint64_t seed) {
    /* Neighbouring seeds give unlike sequences. */
    uint64_t x = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    x ^= x >> 31;
    return (Random){x ? x : 1};
}

uint64_t random_below(Random *r, uint64_t n) {
    r->state ^= r->state >> 12;
    r->state ^= r->state << 25;
    r->state ^= r->state >> 27;
    return (r->state * 0x2545f4914f6cdd1du >> 20) % n;
}

/* A token and what stands before it. */
typedef struct {
    Bytes gap, token;
} Piece;
typedef VEC(Piece) Pieces;

static void cut(Arena *arena, Bytes text, Pieces *pieces) {
    LexTokens tokens = {0};
    lex_text(arena, text.at, text.len, &tokens);
    size_t end = 0;
    for (int i = 0; i + 1 < tokens.count; i++) {
        const LexToken *lex = &tokens.at[i];
        Piece piece = {{text.at + end, lex->at - end}, {text.at + lex->at, lex->len}};
        VEC_PUSH(arena, pieces, piece);
        end = lex->at + lex->len;
    }
}

/* A token from elsewhere needs blanks around it. */
static Piece foreign(Bytes token) {
    return (Piece){{" ", 1}, token};
}

static int place(Random *r, const Pieces *pieces) {
    return (int)random_below(r, (uint64_t)pieces->count);
}

/* Puts items [from, from + n) of `source` in place of [at, at + lost). */
static void replace(Arena *arena, Pieces *pieces, int at, int lost, const Piece *from, int n) {
    Pieces result = {0};
    for (int i = 0; i < at; i++)
        VEC_PUSH(arena, &result, pieces->at[i]);
    for (int i = 0; i < n; i++)
        VEC_PUSH(arena, &result, foreign(from[i].token));
    for (int i = at + lost; i < pieces->count; i++)
        VEC_PUSH(arena, &result, pieces->at[i]);
    *pieces = result;
}

static int run_length(Random *r, const Pieces *pieces, int at) {
    int n = 1 + (int)random_below(r, RUN), left = pieces->count - at;
    return n < left ? n : left;
}

static void change_number(Arena *arena, Random *r, Pieces *pieces) {
    static const char *const extreme[] = {"0",
                                          "1",
                                          "2",
                                          "-1",
                                          "7",
                                          "63",
                                          "127",
                                          "1000",
                                          "65536",
                                          "2147483647",
                                          "2147483648",
                                          "4294967296",
                                          "1099511627776",
                                          "4611686018427387904",
                                          "9223372036854775807",
                                          "9223372036854775808",
                                          "99999999999999999999",
                                          "0.5",
                                          "1e308",
                                          "1e-308",
                                          "1e999",
                                          "0.1e-400"};
    int first = place(r, pieces);
    for (int i = 0; i < pieces->count; i++) {
        Piece *piece = &pieces->at[(first + i) % pieces->count];
        char digit = piece->token.at[0];
        if (digit < '0' || digit > '9')
            continue;
        const char *text = extreme[random_below(r, sizeof extreme / sizeof *extreme)];
        if (random_below(r, 2)) {
            int64_t value = strtoll(str_ndup(arena, piece->token.at, piece->token.len), NULL, 10);
            uint64_t kind = random_below(r, 4);
            uint64_t x = (uint64_t)value;
            x = kind == 0 ? x + 1 : kind == 1 ? x - 1 : kind == 2 ? x * 2 : x / 2;
            text = str_printf(arena, "%" PRId64, (int64_t)x);
        }
        *piece = foreign((Bytes){text, strlen(text)});
        return;
    }
}

static void change_byte(Arena *arena, Random *r, Bytes *token) {
    char *copy = str_ndup(arena, token->at, token->len);
    copy[random_below(r, token->len)] = (char)(1 + random_below(r, 255));
    token->at = copy;
}

static void change(Arena *arena, Random *r, Pieces *pieces, const Pieces *other,
                   const Words *words) {
    int at = place(r, pieces), n = run_length(r, pieces, at), k = place(r, pieces);
    Piece one = foreign(pieces->at[k].token);
    bool known = words && words->count > 0;
    Bytes word = known ? words->at[random_below(r, (uint64_t)words->count)] : one.token;
    switch (random_below(r, 14)) {
    case 0: replace(arena, pieces, at, 1, NULL, 0); break;
    case 1: replace(arena, pieces, at, 0, &pieces->at[at], 1); break;
    case 2: {
        Bytes token = pieces->at[at].token;
        pieces->at[at].token = pieces->at[k].token;
        pieces->at[k].token = token;
        break;
    }
    case 3:
    case 4: pieces->at[at] = one; break;
    case 5: replace(arena, pieces, at, 0, &one, 1); break;
    case 6: pieces->at[at] = foreign(word); break;
    case 7: replace(arena, pieces, at, 0, &(Piece){{"", 0}, word}, 1); break;
    case 8:
    case 9: change_number(arena, r, pieces); break;
    case 10: replace(arena, pieces, at, n, NULL, 0); break;
    case 11: replace(arena, pieces, k, 0, &pieces->at[at], n); break;
    case 12:
        if (other->count > 0) {
            int from = place(r, other);
            replace(arena, pieces, at, n, &other->at[from], run_length(r, other, from));
        }
        break;
    default: change_byte(arena, r, &pieces->at[at].token); break;
    }
}

Bytes mutate(Arena *arena, Random *r, Bytes text, Bytes other, const Words *words, int changes) {
    Pieces pieces = {0}, others = {0};
    cut(arena, text, &pieces);
    if (other.at)
        cut(arena, other, &others);
    for (int i = 0; i < changes && pieces.count > 0; i++)
        change(arena, r, &pieces, &others, words);
    Text out = {.arena = arena};
    text_add(&out, "");
    for (int i = 0; i < pieces.count; i++) {
        text_addn(&out, pieces.at[i].gap.at, pieces.at[i].gap.len);
        text_addn(&out, pieces.at[i].token.at, pieces.at[i].token.len);
    }
    text_add(&out, "\n");
    return (Bytes){out.at, out.len};
}
