/* json_read: see the header. By recursive descent, so texts nest JSON_DEEPEST levels at most; a
 * string holds no zero byte, so that it ends where C says. */
#include "compiler/json_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    Arena *arena;
    const char *begin, *at, *end;
    const char *fault; /* of the first mistake; NULL: none */
    int depth;
} Reader;

static void fail(Reader *r, const char *why) {
    r->fault = r->fault ? r->fault : why;
    r->end = r->at; /* nothing is read any more */
}

static int peek(const Reader *r) {
    return r->at < r->end ? (unsigned char)*r->at : -1;
}

static void blanks(Reader *r) {
    while (peek(r) == ' ' || peek(r) == '\n' || peek(r) == '\r' || peek(r) == '\t') {
        r->at++;
    }
}

static bool take(Reader *r, int c) {
    bool is = peek(r) == c;
    r->at += is;
    return is;
}

static bool take_word(Reader *r, const char *word) {
    size_t n = strlen(word);
    bool is = (size_t)(r->end - r->at) >= n && memcmp(r->at, word, n) == 0;
    r->at += is ? n : 0;
    return is;
}

/* --- strings ---------------------------------------------------------------------------------- */

static unsigned hex4(Reader *r) {
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdef";
        int c = peek(r);
        const char *digit = c > 0 ? strchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c) : NULL;
        if (!digit) {
            fail(r, "\\u wants four hexadecimal digits");
            return 0;
        }
        value = value * 16 + (unsigned)(digit - digits);
        r->at++;
    }
    return value;
}

static void put_code(Text *text, unsigned code) {
    char utf8[4];
    size_t n = 0;
    if (code < 0x80) {
        utf8[n++] = (char)code;
    } else if (code < 0x800) {
        utf8[n++] = (char)(0xc0 | code >> 6);
    } else if (code < 0x10000) {
        utf8[n++] = (char)(0xe0 | code >> 12);
        utf8[n++] = (char)(0x80 | (code >> 6 & 0x3f));
    } else {
        utf8[n++] = (char)(0xf0 | code >> 18);
        utf8[n++] = (char)(0x80 | (code >> 12 & 0x3f));
        utf8[n++] = (char)(0x80 | (code >> 6 & 0x3f));
    }
    if (code >= 0x80) {
        utf8[n++] = (char)(0x80 | (code & 0x3f));
    }
    text_addn(text, utf8, n);
}

static void escape(Reader *r, Text *text) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    int c = peek(r);
    const char *known = c > 0 ? strchr(from, c) : NULL;
    r->at += c >= 0;
    if (known) {
        text_addn(text, &to[known - from], 1);
        return;
    }
    unsigned code = c == 'u' ? hex4(r) : 0;
    if (code >= 0xd800 && code < 0xdc00 && take_word(r, "\\u")) {
        unsigned low = hex4(r);
        bool pair = low >= 0xdc00 && low < 0xe000;
        code = pair ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : code;
    }
    if (code == 0 || (code >= 0xd800 && code < 0xe000)) {
        fail(r, "an escape that stands for no character");
        return;
    }
    put_code(text, code);
}

static const char *string(Reader *r) {
    Text text = {.arena = r->arena};
    text_add(&text, "");
    if (!take(r, '"')) {
        fail(r, "a string is wanted");
    }
    while (!r->fault && peek(r) != '"') {
        const char *from = r->at;
        while (peek(r) >= 0x20 && peek(r) != '"' && peek(r) != '\\') {
            r->at++;
        }
        text_addn(&text, from, (size_t)(r->at - from));
        if (take(r, '\\')) {
            escape(r, &text);
        } else if (peek(r) != '"') {
            fail(r, peek(r) < 0 ? "a string without an end" : "a control character in a string");
        }
    }
    take(r, '"');
    return text.at;
}

/* --- values ----------------------------------------------------------------------------------- */

static int digits(Reader *r) {
    int n = 0;
    while (peek(r) >= '0' && peek(r) <= '9') {
        r->at++;
        n++;
    }
    return n;
}

static void number(Reader *r, Json *to) {
    const char *from = r->at;
    take(r, '-');
    const char *first = r->at;
    int n = digits(r);
    bool good = n > 0 && (n == 1 || *first != '0');
    to->kind = JSON_NUMBER;
    to->whole = true;
    if (take(r, '.')) {
        good = digits(r) > 0 && good;
        to->whole = false;
    }
    if (take(r, 'e') || take(r, 'E')) {
        (void)(take(r, '+') || take(r, '-'));
        good = digits(r) > 0 && good;
        to->whole = false;
    }
    if (!good) {
        fail(r, "a value is wanted");
        return;
    }
    to->string = str_ndup(r->arena, from, (size_t)(r->at - from));
    errno = 0;
    to->value = strtoll(to->string, NULL, 10);
    to->whole = to->whole && errno == 0;
}

static void value(Reader *r, Json *to);

/* What stands between brackets, or between braces with keys. */
static void items(Reader *r, Json *to, int close) {
    const Json **last = &to->first;
    to->kind = close == '}' ? JSON_OBJECT : JSON_ARRAY;
    r->at++;
    blanks(r);
    if (++r->depth > JSON_DEEPEST) {
        fail(r, "more than 64 levels");
    }
    for (bool more = !take(r, close); more && !r->fault;) {
        Json *item = ARENA_NEW(r->arena, Json);
        blanks(r);
        if (close == '}') {
            item->key = string(r);
            blanks(r);
            if (!take(r, ':')) {
                fail(r, "':' is wanted");
            }
        }
        value(r, item);
        blanks(r);
        *last = item;
        last = &item->next;
        to->count++;
        more = take(r, ',');
        if (!more && !take(r, close)) {
            fail(r, close == '}' ? "',' or '}' is wanted" : "',' or ']' is wanted");
        }
    }
    r->depth--;
}

static void value(Reader *r, Json *to) {
    blanks(r);
    int c = peek(r);
    if (c == '{' || c == '[') {
        items(r, to, c == '{' ? '}' : ']');
    } else if (c == '"') {
        to->kind = JSON_STRING;
        to->string = string(r);
    } else if (take_word(r, "true") || take_word(r, "false")) {
        to->kind = JSON_BOOL;
        to->value = c == 't';
    } else if (!take_word(r, "null")) {
        number(r, to);
    }
}

const Json *json_read(Arena *arena, const char *text, size_t length, const char **fault,
                      size_t *at) {
    Reader r = {.arena = arena, .begin = text, .at = text, .end = text + length};
    Json *top = ARENA_NEW(arena, Json);
    value(&r, top);
    blanks(&r);
    if (r.at < r.end) {
        fail(&r, "nothing may stand behind the value");
    }
    *fault = r.fault;
    *at = (size_t)(r.at - r.begin);
    return r.fault ? NULL : top;
}

const Json *json_member(const Json *object, const char *key) {
    const Json *found = NULL;
    if (object && object->kind == JSON_OBJECT) {
        for (const Json *m = object->first; m; m = m->next) {
            found = str_eq(m->key, key) ? m : found;
        }
    }
    return found;
}

bool json_whole(const Json *object, const char *key, int64_t *value) {
    const Json *member = json_member(object, key);
    bool is = member && member->kind == JSON_NUMBER && member->whole;
    *value = is ? member->value : 0;
    return is;
}

const char *json_text_of(const Json *object, const char *key) {
    const Json *member = json_member(object, key);
    return member && member->kind == JSON_STRING ? member->string : NULL;
}
