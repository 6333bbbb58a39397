/* literal: leaves of the tree from the characters of a token, and the faults of characters.
 *
 * Needs a LexToken, gives a NUMBER, SIZE, STRING or NAME with its value, or a message and what the
 * faulty text counts as; changes no values. */
#include "lang/foreign.h"
#include "lang/scan.h"

#include "parse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static Ast *leaf_make(Parse *ps, AstKind kind, const LexToken *lex) {
    Loc loc = source_loc(ps, lex->at, lex->len);
    Ast *leaf = node_make(ps, kind, loc, NULL, 0);
    leaf->name_loc = loc;
    return leaf;
}

Ast *leaf_number(Parse *ps, const LexToken *lex) {
    Ast *leaf = leaf_make(ps, AST_NUMBER, lex);
    char *digits = arena_alloc(ps->arena, lex->len + 1u);
    uint32_t n = 0;
    bool integer = true;
    for (uint32_t i = 0; i < lex->len; i++) {
        char c = ps->text[lex->at + i];
        if (c != '_')
            digits[n++] = c;
        integer = integer && ((c >= '0' && c <= '9') || c == '_');
    }
    leaf->text = digits;
    leaf->number = strtod(digits, NULL);
    leaf->flags = integer ? AST_INTEGER : 0;
    if (isinf(leaf->number)) {
        diag_error(&ps->c->diag, leaf->loc, 103, "this number is too large");
        leaf->number = 0;
    }
    return leaf;
}

Ast *leaf_size(Parse *ps, const LexToken *lex) {
    static const struct {
        const char *unit;
        double bytes;
    } units[] = {{"KiB", 1024}, {"MiB", 1048576},    {"GiB", 1073741824},
                 {"kB", 1000},  {"MB", 1000 * 1000}, {"GB", 1e9},
                 {"B", 1}};
    Ast *leaf = leaf_number(ps, lex);
    leaf->kind = AST_SIZE;
    leaf->flags = 0;
    leaf->text = str_ndup(ps->arena, ps->text + lex->at, lex->len);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        size_t n = strlen(units[i].unit);
        if (lex->len > n && strncmp(leaf->text + lex->len - n, units[i].unit, n) == 0) {
            leaf->number *= units[i].bytes;
            break;
        }
    }
    return leaf;
}

/* The last quote is missing if that was a fault. */
Ast *leaf_string(Parse *ps, const LexToken *lex) {
    Ast *leaf = leaf_make(ps, AST_STRING, lex);
    char *out = arena_alloc(ps->arena, lex->len + 1u);
    leaf->text = out;
    uint32_t end = lex->at + lex->len;
    if (lex->len > 1 && ps->text[end - 1] == '"')
        end--;
    for (uint32_t i = lex->at + 1; i < end; i++) {
        char c = ps->text[i];
        if (c == '\\' && i + 1 < end) {
            c = ps->text[++i];
            if (c == 'n')
                c = '\n';
            else if (c == 't')
                c = '\t';
            else if (c != '"' && c != '\\') {
                diag_error(&ps->c->diag, source_loc(ps, i - 1, 2), 104,
                           "unknown escape in a string");
                diag_hint(&ps->c->diag, "\\\" \\\\ \\n and \\t are known");
            }
        }
        *out++ = c;
    }
    return leaf;
}

Ast *leaf_word(Parse *ps, const LexToken *lex, uint32_t skip) {
    Ast *leaf = leaf_make(ps, AST_NAME, lex);
    leaf->name = str_ndup(ps->arena, ps->text + lex->at + skip, lex->len - skip);
    return leaf;
}

/* ---- faults of characters ---- */

static void report_character(Parse *ps, Loc loc) {
    static const struct {
        const char *character, *instead;
    } known[] = {{"\u00d7", "*"},   {"\u00b7", "*"},
                 {"\u2212", "-"},   {"\u2013", "-"},
                 {"\u2014", "-"},   {"\u2192", "->"},
                 {"\u2190", "<-"},  {"\u2264", "<="},
                 {"\u2265", ">="},  {"\u2260", "!="},
                 {"\u201c", "\""},  {"\u201d", "\""},
                 {"\u2026", "..."}, {"\u00a0", "a plain blank"}};
    Diag *diag = &ps->c->diag;
    const unsigned char *p = (const unsigned char *)ps->text + loc.at;
    if (*p < 0x80) {
        bool visible = *p >= 0x20 && *p < 0x7f;
        const char text[2] = {(char)*p, 0};
        const Foreign *row = foreign_find(text);
        diag_error(diag, loc, 105, "stray character %s",
                   str_printf(&ps->scratch, visible ? "'%c'" : "0x%02x", *p));
        if (row) {
            diag_hint(diag, "%s", row->form);
        }
        return;
    }
    uint32_t n = *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : *p >= 0xc2 ? 2 : 1;
    uint32_t code = n == 4 ? *p & 7u : n == 3 ? *p & 15u : *p & 31u;
    for (uint32_t i = 1; i < n; i++) {
        if (i >= loc.len || (p[i] & 0xc0) != 0x80) {
            n = 1;
            break;
        }
        code = code << 6 | (p[i] & 63u);
    }
    if (n == 1) {
        diag_error(diag, loc, 106, "stray byte 0x%02x; a model text is UTF-8", *p);
        return;
    }
    diag_error(diag, loc, 107, "stray character '%.*s' (U+%04X)", (int)n, (const char *)p,
               (unsigned)code);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strncmp(known[i].character, (const char *)p, n) == 0)
            diag_hint(diag, "write %s", known[i].instead);
}

static int report_foreign(Parse *ps, Loc loc) {
    static const struct {
        const char *op, *hint;
        int kind;
    } known[] = {
        {"&&", "write 'and'", T_AND},    {"||", "write 'or'", T_OR},  {"**", "write '^'", '^'},
        {"++", "write x <- x + 1", '+'}, {"!", "write 'not'", T_NOT},
    };
    Diag *diag = &ps->c->diag;
    const char *p = ps->text + loc.at;
    diag_error(diag, loc, 108, "'%.*s' is not an operator here", (int)loc.len, p);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strncmp(known[i].op, p, loc.len) == 0) {
            diag_hint(diag, "%s", known[i].hint);
            return known[i].kind;
        }
    }
    diag_hint(diag, "write x <- x %c ...", *p);
    return T_UPDATE;
}

int report_fault(Parse *ps, const LexToken *lex) {
    Diag *diag = &ps->c->diag;
    Loc loc = source_loc(ps, lex->at, lex->len);
    ps->faulty = 2;
    switch (lex->kind) {
    case LEX_BAD_COMMENT:
        loc.len = 2;
        diag_error(diag, loc, 109, "this comment has no end");
        diag_hint(diag, "close it with */");
        return LEX_COMMENT;
    case LEX_BAD_STRING:
        loc.len = 1;
        diag_error(diag, loc, 110, "this string has no end on its line");
        return T_STRING;
    case LEX_BAD_NUMBER:
        diag_error(diag, loc, 111, "'%.*s' is not a number", (int)(loc.len < 40 ? loc.len : 40),
                   ps->text + loc.at);
        if (memchr(ps->text + loc.at, '.', loc.len))
            diag_hint(diag, "digits stand on both sides of the dot, as in 0.5");
        return T_NUMBER;
    case LEX_BAD_WORD:
        diag_error(diag, loc, 112, "a name has only the letters a to z and A to Z, digits and '_'");
        return T_NAME;
    case LEX_FOREIGN: return report_foreign(ps, loc);
    default: report_character(ps, loc); return LEX_COMMENT;
    }
}
