/* write: see the header. */
#include "emit/write.h"

#include <math.h>
#include <string.h>

Emit emit_open(Compile *c, const Program *p, const Source *source) {
    Emit e = {.c = c, .p = p, .source = source, .arena = p->arena, .prefix = p->prefix};
    e.features = ARENA_NEW(p->arena, NameList);
    e.timed = ARENA_NEW(p->arena, TimedCalls);
    char *upper = str_dup(e.arena, p->prefix);
    for (char *s = upper; *s != 0; s++) {
        *s = (char)(*s >= 'a' && *s <= 'z' ? *s - 'a' + 'A' : *s);
    }
    e.upper = upper;
    return e;
}

const char *path_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

const char *path_stem(Arena *arena, const char *path) {
    const char *base = path_base(path), *dot = strrchr(base, '.');
    return dot != NULL && dot != base ? str_ndup(arena, base, (size_t)(dot - base)) : base;
}

const char *path_numbered(Arena *arena, const char *path, int number) {
    const size_t n = strlen(path);
    const bool named = n > 2 && str_eq(path + n - 2, ".c");
    return str_printf(arena, "%.*s.%d.c", (int)(named ? n - 2 : n), path, number);
}

void text_comment(Text *out, const char *s) {
    for (; *s != 0; s++) {
        char pair[3] = {s[0], s[1], 0};
        if ((unsigned char)*s >= ' ' && strcmp(pair, "??") != 0) {
            text_addn(out, s, 1);
        }
        if (strcmp(pair, "*/") == 0 || strcmp(pair, "/*") == 0) {
            text_add(out, " ");
        }
    }
}

void text_wrapped(Text *out, const char *indent, const char *s) {
    enum { WIDTH = 100, DEEPER = 8 };
    int begin = (int)strlen(indent), column = begin;
    text_add(out, indent);
    while (*s != 0) {
        const char *comma = strstr(s, ", "), * or = strstr(s, " || ");
        const char *end = or &&(!comma || or < comma) ? or +3 : comma ? comma + 1 : s + strlen(s);
        if (column + (int)(end - s) > WIDTH && column > begin) {
            text_printf(out, "\n%s%*s", indent, DEEPER, "");
            column = begin + DEEPER;
            s += *s == ' ';
        }
        text_addn(out, s, (size_t)(end - s));
        column += (int)(end - s);
        s = end;
    }
}

void text_doc(Text *out, const char *indent, const char *doc) {
    if (doc == NULL || doc[0] == 0) {
        return;
    }
    text_printf(out, "%s/* ", indent);
    while (*doc != 0) {
        size_t n = strcspn(doc, "\n");
        Text line = {.arena = out->arena};
        text_addn(&line, doc, n);
        text_comment(out, n > 0 ? line.at : "");
        doc += n + (doc[n] == '\n');
        if (*doc != 0) {
            text_printf(out, "\n%s * ", indent);
        }
    }
    text_add(out, " */\n");
}

void text_literal(Text *out, const char *s) {
    if (s == NULL) {
        text_add(out, "NULL");
        return;
    }
    text_add(out, "\"");
    for (; *s != 0; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '\\' || c == '"' || c == '?') {
            text_printf(out, "\\%c", c);
        } else if (c < 32 || c > 126) {
            text_printf(out, "\\%03o", c);
        } else {
            text_addn(out, s, 1);
        }
    }
    text_add(out, "\"");
}

void text_double(Text *out, double value) {
    if (isnan(value)) {
        text_add(out, "(double)NAN");
    } else if (isinf(value)) {
        text_add(out, value < 0 ? "-(double)INFINITY" : "(double)INFINITY");
    } else if (value == floor(value) && fabs(value) < 1e15) {
        text_printf(out, "%s%.1f", value == 0 && signbit(value) ? "-" : "",
                    fabs(value) == 0 ? 0 : value);
    } else {
        text_printf(out, "%.17g", value);
    }
}

void text_shape(Text *out, Type type) {
    text_add(out, "[");
    for (int i = 0; i < type.rank; i++) {
        text_printf(out, "%s%lld", i > 0 ? ", " : "", (long long)type.dim[i]);
    }
    text_add(out, "]");
}

int loc_line_of(const Emit *e, Loc loc) {
    int line = 0, col = 0;
    if (loc.source < (uint32_t)e->c->diag.sources.count) {
        loc_line(&e->c->diag, loc, &line, &col);
    }
    return line;
}

const char *field_name(const Emit *e, const char *name) {
    Text text = {.arena = e->arena};
    for (const char *s = name; *s != 0; s++) {
        bool word = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || *s == '_' ||
                    (*s >= '0' && *s <= '9' && s > name);
        text_addn(&text, word ? s : "_", 1);
    }
    if (text.len == 0) {
        text_add(&text, "value");
    }
    /* What C or a header claims gets a letter in front or a '_' behind, and so does what looks
     * like such a result: different names stay different. */
    const char *rest = text.at + strspn(text.at, "v");
    if (rest[0] == '_' && (rest[1] == '_' || (rest[1] >= 'A' && rest[1] <= 'Z'))) {
        return str_printf(e->arena, "v%s", text.at);
    }
    size_t length = text.len;
    while (length > 1 && text.at[length - 1] == '_') {
        length--;
    }
    const char *stem = str_ndup(e->arena, text.at, length);
    if (name_is_reserved(stem) || name_is_macro(stem)) {
        text_add(&text, "_");
    }
    return text.at;
}

const ProgramEntry *entry_of(const Program *p, const Entry *entry) {
    for (int i = 0; i < p->entry.count; i++) {
        if (p->entry.at[i]->entry == entry) {
            return p->entry.at[i];
        }
    }
    return NULL;
}

const ProgramEntry *entry_eval(const Program *p, const Entry *train, EntryKind kind) {
    for (int i = 0; i < p->entry.count; i++) {
        const Entry *entry = p->entry.at[i]->entry;
        if (entry->kind == kind && entry->train == train) {
            return p->entry.at[i];
        }
    }
    return NULL;
}

bool is_rows(const ProgramEntry *e, const Slot *slot) {
    return e->entry->kind == ENTRY_EVAL && slot == e->entry->rows_slot;
}

Buf *input_buf(const ProgramEntry *e, const Slot *slot) {
    for (int i = 0; i < e->buf.count; i++) {
        if (e->buf.at[i]->kind == BUF_INPUT && e->buf.at[i]->slot == slot) {
            return e->buf.at[i];
        }
    }
    return NULL;
}

Buf *result_buf(const ProgramEntry *e, int out) {
    for (int i = 0; i < e->buf.count; i++) {
        if (e->buf.at[i]->kind == BUF_RESULT && e->buf.at[i]->out == out) {
            return e->buf.at[i];
        }
    }
    return NULL;
}

void text_constant(Text *out, Elem elem, double value) {
    if (elem == TY_BF16 || elem == TY_F16) {
        BUG("a constant of %s", elem_name(elem));
    }
    if (!elem_is_float(elem)) {
        text_printf(out, "%lld", (long long)value);
    } else if (elem == TY_F64) {
        text_double(out, value);
    } else if (isnan(value) || isinf(value)) {
        text_add(out, isnan(value) ? "NAN" : value < 0 ? "-INFINITY" : "INFINITY");
    } else {
        char text[64];
        snprintf(text, sizeof text, "%.9g", (double)(float)value);
        text_printf(out, "%s%sf", text, strpbrk(text, ".e") != NULL ? "" : ".0");
    }
}
