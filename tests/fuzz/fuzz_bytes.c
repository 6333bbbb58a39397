/* The whole compiler on texts that are damaged byte by byte, without regard to tokens: what a cut
 * or mixed up file, an editor, or somebody who means harm may hand over. Bits are flipped, pieces
 * lost, copied and spliced from other texts, what is there is repeated until the text is long and
 * nested deeply, and bytes come in that are no text: NUL, UTF-8 that is none, marks and lines of
 * other systems, openings without an end. */
#include "fuzz.h"

#include "mutate.h"

#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t size, const uint8_t *other,
                                 size_t nother, uint8_t *out, size_t most, unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_whole(data, size);
    return 0;
}

/* ---- mutators ---- */

enum { PIECE = 64, UNIT = 40, FLIPS = 8 };

/* A text in a block of `most` bytes. */
typedef struct {
    uint8_t *at;
    size_t size, most;
    Random random;
} Draft;

static size_t below(Draft *d, size_t n) {
    return n == 0 ? 0 : (size_t)random_below(&d->random, n);
}

/* Somewhere, and so many bytes from there. */
static size_t piece(Draft *d, size_t longest, size_t *n) {
    size_t at = below(d, d->size), left = d->size - at;
    *n = 1 + below(d, longest);
    *n = *n > left ? left : *n;
    return at;
}

/* Makes room for n bytes at `at`; gives how many there is room for. */
static size_t open_gap(Draft *d, size_t at, size_t n) {
    n = d->size + n > d->most ? d->most - d->size : n;
    memmove(d->at + at + n, d->at + at, d->size - at);
    d->size += n;
    return n;
}

static void put(Draft *d, size_t at, const void *bytes, size_t n) {
    memcpy(d->at + at, bytes, open_gap(d, at, n));
}

static void flip(Draft *d) {
    for (size_t n = 1 + below(d, FLIPS); d->size > 0 && n > 0; n--) {
        d->at[below(d, d->size)] ^= (uint8_t)(1u << below(d, 8));
    }
}

/* A piece goes, or all behind it. */
static void lose(Draft *d) {
    size_t n, at = piece(d, PIECE, &n);
    n = below(d, 8) == 0 ? d->size - at : n;
    memmove(d->at + at, d->at + at + n, d->size - at - n);
    d->size -= n;
}

static void copy(Draft *d) {
    uint8_t bytes[PIECE];
    size_t n, from = piece(d, PIECE, &n);
    memcpy(bytes, d->at + from, n);
    put(d, below(d, d->size + 1), bytes, n);
}

static void noise(Draft *d) {
    uint8_t bytes[PIECE];
    size_t n = 1 + below(d, 8);
    for (size_t i = 0; i < n; i++) {
        bytes[i] = (uint8_t)below(d, 256);
    }
    put(d, below(d, d->size + 1), bytes, n);
}

/* A short piece again and again, at once or with what ends it as often behind: `((((...))))`. */
static void repeat(Draft *d) {
    static const char *const pairs[][2] = {
        {"(", ")"},        {"[", "]"},        {"{", "}"},          {"-", ""},
        {"not ", ""},      {"x[", "]"},       {"f(", ")"},         {"sum[i] ", ""},
        {"/*", "*/"},      {"1+", ""},        {"a.", ""},          {"1^", ""},
        {"when 1 {", "}"}, {"scan 2 {", "}"}, {"repeat 1 {", "}"}, {"|> ", ""}};
    uint8_t bytes[UNIT];
    size_t n, at = piece(d, UNIT, &n), times = (size_t)1 << below(d, 15);
    memcpy(bytes, d->at + at, n);
    const void *first = bytes, *last = "";
    size_t nlast = 0;
    if (below(d, 2) == 0) {
        size_t k = below(d, sizeof pairs / sizeof *pairs);
        first = pairs[k][0];
        n = strlen(pairs[k][0]);
        last = pairs[k][1];
        nlast = strlen(pairs[k][1]);
    }
    for (size_t i = 0; i < times && d->size + n + nlast <= d->most; i++) {
        put(d, at, first, n);
        put(d, at + n * (i + 1), last, nlast);
    }
}

/* Bytes that are no text, or are read otherwise elsewhere. */
static void strange(Draft *d) {
    static const struct {
        const char *at;
        size_t n;
    } bytes[] = {{"\0", 1},
                 {"\0\0", 2},
                 {"\xff", 1},
                 {"\xfe\xff", 2},
                 {"\xef\xbb\xbf", 3}, /* a mark of UTF-8 */
                 {"\xc0\xaf", 2},     /* longer than need be */
                 {"\xe0\x80\x80", 3},
                 {"\xed\xa0\x80", 3}, /* half of a pair */
                 {"\xf4\x90\x80\x80", 4},
                 {"\xc3", 1},
                 {"\xe2\x82", 2},
                 {"\xf0\x9f\x98", 3},
                 {"\x80", 1},
                 {"\xe2\x80\xae", 3},
                 {"\xc2\xa0", 2},
                 {"\xe2\x80\xa8", 3},
                 {"\xce\xb1", 2},
                 {"\r", 1},
                 {"\r\n", 2},
                 {"\f", 1},
                 {"\v", 1},
                 {"\x1a", 1},
                 {"\x1b[31m", 5},
                 {"\x7f", 1},
                 {"/*", 2},
                 {"*/", 2},
                 {"//", 2},
                 {"///", 3},
                 {"\"", 1},
                 {"\\", 1},
                 {"\"\\", 2},
                 {"'", 1},
                 {"?\?/", 3},
                 {"%s%n", 4},
                 {"*/\n#error", 9},
                 {"@", 1}};
    size_t k = below(d, sizeof bytes / sizeof *bytes);
    size_t at = below(d, 8) == 0 ? 0 : below(d, d->size + 1);
    if (below(d, 2) == 0 && d->size - at >= bytes[k].n) {
        memcpy(d->at + at, bytes[k].at, bytes[k].n);
    } else {
        put(d, at, bytes[k].at, bytes[k].n);
    }
}

/* A digit becomes another, or many. */
static void digits(Draft *d) {
    size_t at = below(d, d->size);
    for (size_t i = 0; i < d->size; i++, at = (at + 1) % d->size) {
        if (d->at[at] >= '0' && d->at[at] <= '9') {
            d->at[at] = (uint8_t)('0' + below(d, 10));
            uint8_t more[PIECE];
            size_t n = below(d, 4) == 0 ? 1 + below(d, PIECE) : below(d, 3);
            memset(more, '0' + (int)below(d, 10), n);
            put(d, at, more, n);
            return;
        }
    }
}

/* All line ends of another system. */
static void lines(Draft *d) {
    bool two = below(d, 2) == 0;
    for (size_t i = 0; i < d->size; i++) {
        if (d->at[i] == '\n' && !two) {
            d->at[i] = '\r';
        } else if (d->at[i] == '\n' && d->size < d->most) {
            put(d, i++, "\r", 1);
        }
    }
}

static void change(Draft *d) {
    switch (below(d, d->size > 0 ? 12 : 1)) {
    case 0: noise(d); break;
    case 1:
    case 2: flip(d); break;
    case 3:
    case 4: lose(d); break;
    case 5:
    case 6: copy(d); break;
    case 7: repeat(d); break;
    case 8:
    case 9: strange(d); break;
    case 10: digits(d); break;
    default: lines(d); break;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    Draft d = {data, size > most ? most : size, most, random_start(seed)};
    if (below(&d, 6) == 0) {
        return LLVMFuzzerMutate(data, d.size, most);
    }
    for (size_t n = 1 + below(&d, 3); n > 0; n--) {
        change(&d);
    }
    return d.size;
}

/* Pieces of both in turn, cut anywhere. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t size, const uint8_t *other,
                                 size_t nother, uint8_t *out, size_t most, unsigned seed) {
    Draft d = {out, 0, most, random_start(seed)};
    const uint8_t *from[] = {data, other};
    const size_t left[] = {size, nother};
    for (size_t i = 0, n = 2 + below(&d, 4); i < n && d.size < most; i++) {
        size_t begin = i == 0 ? 0 : below(&d, left[i % 2]);
        size_t end = begin + below(&d, left[i % 2] - begin + 1);
        put(&d, d.size, from[i % 2] + begin, end - begin);
    }
    return d.size;
}
