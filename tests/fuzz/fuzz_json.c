/* JSON, of weights files and of reports: a report is taken exactly when a recursive reader of RFC
 * 8259 takes it; strings and lists of whole numbers of a weights file when that reader or a few
 * lines here take them, with the same values. */
#define _GNU_SOURCE
#include "compiler/json_read.h"
#include "runtime/json.h"
#include "tests/fuzz/readers.h"
#include "tests/memory_file.h"

typedef struct {
    const uint8_t *at, *end;
    int bad;
    char string[256]; /* the last one, decoded */
    size_t length;
} Plain;

static int peek(const Plain *t) {
    return t->bad || t->at == t->end ? -1 : *t->at;
}

static int next(Plain *t) {
    int c = peek(t);
    t->at += c >= 0;
    return c;
}

static int take(Plain *t, int c) {
    if (peek(t) != c)
        return 0;
    t->at++;
    return 1;
}

static void blanks(Plain *t) {
    while (peek(t) == ' ' || peek(t) == '\n' || peek(t) == '\r' || peek(t) == '\t')
        t->at++;
}

static void put(Plain *t, unsigned c) {
    if (t->length < sizeof t->string)
        t->string[t->length] = (char)(unsigned char)c;
    t->length++;
}

static unsigned hex4(Plain *t) {
    unsigned v = 0;
    for (int i = 0; i < 4; i++) {
        int c = next(t);
        const char *digits = "0123456789abcdef";
        const char *d = c > 0 ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;
        t->bad |= d == NULL;
        v = v * 16 + (d == NULL ? 0 : (unsigned)(d - digits));
    }
    return v;
}

static void string(Plain *t) {
    t->length = 0;
    t->bad |= !take(t, '"');
    while (!t->bad && peek(t) != '"') {
        int c = next(t);
        t->bad |= c < 0x20;
        if (c != '\\') {
            put(t, (unsigned)c);
            continue;
        }
        int e = next(t);
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
        const char *known = e > 0 ? strchr(from, e) : NULL;
        if (known != NULL) {
            put(t, (unsigned char)to[known - from]);
        } else if (e == 'u') {
            unsigned p = hex4(t);
            if (p >= 0xD800 && p < 0xDC00) {
                int escape = take(t, '\\') && take(t, 'u');
                unsigned low = escape ? hex4(t) : 0;
                t->bad |= low < 0xDC00 || low > 0xDFFF;
                p = 0x10000 + (p - 0xD800) * 0x400 + (low - 0xDC00) % 0x400;
            } else {
                t->bad |= p == 0 || (p >= 0xDC00 && p < 0xE000);
            }
            if (p < 0x80) {
                put(t, p);
            } else if (p < 0x800) {
                put(t, 0xC0 | p >> 6), put(t, 0x80 | (p & 63));
            } else if (p < 0x10000) {
                put(t, 0xE0 | p >> 12), put(t, 0x80 | (p >> 6 & 63)), put(t, 0x80 | (p & 63));
            } else {
                put(t, 0xF0 | p >> 18), put(t, 0x80 | (p >> 12 & 63));
                put(t, 0x80 | (p >> 6 & 63)), put(t, 0x80 | (p & 63));
            }
        } else {
            t->bad = 1;
        }
    }
    t->bad |= !take(t, '"');
}

static void digits(Plain *t) {
    t->bad |= peek(t) < '0' || peek(t) > '9';
    while (peek(t) >= '0' && peek(t) <= '9')
        t->at++;
}

static void value(Plain *t, int depth) {
    blanks(t);
    int c = peek(t), open = c == '{' || c == '[';
    static const char *const words[] = {"true", "false", "null"};
    if (open && depth == 0) {
        t->bad = 1;
    } else if (open) {
        int close = c == '{' ? '}' : ']';
        t->at++;
        blanks(t);
        if (take(t, close))
            return;
        do {
            blanks(t);
            if (c == '{') {
                string(t);
                blanks(t);
                t->bad |= !take(t, ':');
            }
            value(t, depth - 1);
            blanks(t);
        } while (take(t, ','));
        t->bad |= !take(t, close);
    } else if (c == '"') {
        string(t);
    } else if (c == 't' || c == 'f' || c == 'n') {
        const char *word = words[c == 't' ? 0 : c == 'f' ? 1 : 2];
        for (; *word != 0; word++)
            t->bad |= next(t) != *word;
    } else {
        (void)take(t, '-');
        if (!take(t, '0'))
            digits(t);
        if (take(t, '.'))
            digits(t);
        if (take(t, 'e') || take(t, 'E')) {
            if (!take(t, '-'))
                (void)take(t, '+');
            digits(t);
        }
    }
}

/* The reader of reports. */
static void read_tree(const uint8_t *data, size_t size) {
    Plain t = {.at = data, .end = data + size};
    Arena arena = {0};
    const char *fault;
    size_t at;
    value(&t, JSON_DEEPEST);
    blanks(&t);
    int want = !t.bad && t.at == t.end;
    const Json *tree = json_read(&arena, (const char *)data, size, &fault, &at);
    if ((tree != NULL) != want || (tree != NULL) == (fault != NULL) || at > size) {
        finding("a tree: %s at %zu, expected the other", fault == NULL ? "taken" : fault, at);
    }
    if (tree != NULL && tree->kind == JSON_STRING && t.length < sizeof t.string &&
        (strlen(tree->string) != t.length || memcmp(tree->string, t.string, t.length) != 0)) {
        finding("a tree: other bytes in a string");
    }
    arena_free(&arena);
}

enum { NUMBERS = 4 };

/* A list of whole numbers below 2^63; gives the count, -1: it is none, or longer than NUMBERS. */
static int whole_numbers(Plain *t, uint64_t *out) {
    int n = 0;
    blanks(t);
    t->bad |= !take(t, '[');
    blanks(t);
    int empty = take(t, ']');
    while (!t->bad && !empty) {
        uint64_t v = 0;
        const uint8_t *from = t->at;
        blanks(t);
        from = t->at;
        while (peek(t) >= '0' && peek(t) <= '9') {
            uint64_t digit = (uint64_t)(next(t) - '0');
            t->bad |= v > (INT64_MAX - digit) / 10;
            v = v * 10 + digit;
        }
        t->bad |= t->at == from || (*from == '0' && t->at > from + 1) || n == NUMBERS;
        if (!t->bad)
            out[n++] = v;
        blanks(t);
        if (take(t, ']'))
            break;
        t->bad |= !take(t, ',');
    }
    return t->bad ? -1 : n;
}

static void read_list(const uint8_t *data, size_t size) {
    Plain t = {.at = data, .end = data + size};
    MemoryFile m = {.data = data, .size = size};
    md_json j;
    uint64_t want[NUMBERS], got[NUMBERS];
    int count = whole_numbers(&t, want);
    md_json_start(&j, memory_read, &m, 0, size);
    int n = md_json_integers(&j, got, NUMBERS);
    if ((count < 0) != (j.why != NULL) || (j.why != NULL && j.at > size)) {
        finding("a list: %s at %llu, expected the other", j.why == NULL ? "taken" : j.why,
                (unsigned long long)j.at);
    }
    if (count >= 0 && (n != count || memcmp(want, got, (size_t)n * sizeof *got) != 0)) {
        finding("other numbers in a list");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    read_tree(data, size);
    read_list(data, size);
    MemoryFile m = {.data = data, .size = size};
    md_json j;
    Plain t;
    t = (Plain){.at = data, .end = data + size};
    string(&t);
    char buffer[64];
    md_json_start(&j, memory_read, &m, 0, size);
    md_json_string(&j, buffer, sizeof buffer);
    int fits = !t.bad && t.length < sizeof buffer && peek(&t) != ' ';
    if (!t.bad && t.length < sizeof buffer && j.why != NULL) {
        finding("a string: %s", j.why);
    }
    if (fits && j.why == NULL && memcmp(buffer, t.string, t.length) != 0) {
        finding("other bytes in a string");
    }
    return 0;
}
