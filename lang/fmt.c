/* fmt: prints a model text in canonical layout.
 *
 * Works on tokens and comments in their order; blanks, indents and blank lines are made anew, line
 * breaks are kept as written. A block with a line break inside has its braces at line ends and its
 * end on a line of its own; trailing comments on successive lines are aligned. `+ - * / %` stay
 * tight where they were tight. Needs a text that parses, gives a text with the same tree, and
 * itself for its own result. */
#include "lang/fmt.h"

#include "lang/scan.h"
#include "parse.h"

#include <string.h>

enum { INDENT = 4 };

/* A token or a comment. */
typedef struct {
    Token token;
    bool comment;
    uint32_t at, len;
    int breaks;   /* line breaks before it, 2 at most */
    bool tight;   /* no blank before it in the text */
    bool folding; /* the ']' of a fold's index */
    bool unary;   /* a sign, not an operator between two operands */
    bool spread;  /* '{' of a block over several lines, or its '}' */
    bool begins;  /* an item, a statement, or an attribute before one */
} Piece;
typedef VEC(Piece) Pieces;

typedef struct {
    Text code;
    const char *note; /* trailing comment or NULL */
    size_t note_len;
} Line;
typedef VEC(Line) Lines;

static bool is_note(const char *text, const Piece *piece) {
    return piece->comment && strncmp(text + piece->at, "//", 2) == 0;
}

static void piece_add(Parse *ps, Pieces *pieces, Piece piece) {
    uint32_t behind = 0;
    if (pieces->count) {
        const Piece *last = &pieces->at[pieces->count - 1];
        behind = last->at + last->len;
    }
    for (uint32_t i = behind; i < piece.at; i++)
        piece.breaks += ps->text[i] == '\n' && piece.breaks < 2;
    piece.tight = behind == piece.at;
    VEC_PUSH(&ps->scratch, pieces, piece);
}

/* The comments up to LexToken `end`. */
static int comments_add(Parse *ps, Pieces *pieces, int from, int end) {
    for (; from < end; from++) {
        const LexToken *lex = &ps->tokens.at[from];
        if (lex->kind != LEX_COMMENT && lex->kind != LEX_DOC)
            continue;
        Piece piece = {.comment = true, .at = lex->at, .len = lex->len};
        piece_add(ps, pieces, piece);
    }
    return end + 1;
}

static bool ends_operand(const Piece *piece) {
    int kind = piece->token.kind;
    return !piece->folding && (kind == T_NAME || kind == T_NUMBER || kind == T_SIZE ||
                               kind == T_STRING || kind == ')' || kind == ']' || kind == '\'');
}

/* Marks what a token alone does not show: signs, ends of fold indices, blocks over many lines. */
static void pieces_mark(Parse *ps, Pieces *pieces) {
    VEC(int) open = {0};
    const Piece *last = NULL;                 /* the last token */
    int attribute = -1, after_attribute = -1; /* its '(', and what comes behind its ')' */
    for (int i = 0; i < pieces->count; i++) {
        Piece *piece = &pieces->at[i];
        int kind = piece->token.kind;
        if (piece->breaks && open.count) {
            for (int k = open.count - 1; k >= 0 && !pieces->at[open.at[k]].spread; k--)
                pieces->at[open.at[k]].spread = true;
        }
        if (piece->comment)
            continue;
        piece->begins = !last || last->token.kind == ';' || last->token.kind == '{' ||
                        last->token.kind == '}' || (last->begins && last->token.kind == T_ATTR) ||
                        i == after_attribute;
        if (kind == '(' || kind == '[' || kind == '{') {
            piece->folding =
                kind == '[' && last && (last->token.kind == T_FOLD || last->token.kind == T_MAX);
            if (last && last->token.kind == T_ATTRP)
                attribute = last->begins ? i : -1;
            VEC_PUSH(&ps->scratch, &open, i);
        } else if (kind == ')' || kind == ']' || kind == '}') {
            const Piece *begin = &pieces->at[open.at[--open.count]];
            piece->folding = begin->folding;
            piece->spread = begin->spread;
            if (attribute == open.at[open.count]) {
                attribute = -1;
                after_attribute = i + 1;
            }
        } else if (kind == '-') {
            piece->unary = !last || !ends_operand(last);
        }
        last = piece;
    }
}

/* ---- blanks ---- */

static bool is_arithmetic(const Piece *piece) {
    int kind = piece->token.kind;
    return !piece->unary &&
           (kind == '+' || kind == '-' || kind == '*' || kind == '/' || kind == '%');
}

/* Is the operator written without blanks on both sides? */
static bool is_tight(const Pieces *pieces, int i) {
    return pieces->at[i].tight && i + 1 < pieces->count && pieces->at[i + 1].tight;
}

static bool blank_between(const Pieces *pieces, int left, int right) {
    const Piece *a = &pieces->at[left], *b = &pieces->at[right];
    int ka = a->token.kind, kb = b->token.kind;
    if (b->comment)
        return true;
    if (kb == '.' && ka == T_NUMBER) /* "1.x" is no number */
        return true;
    if (kb == ',' || kb == ';' || kb == ')' || kb == ']' || kb == '.' || kb == '\'')
        return false;
    if (a->comment)
        return true;
    if (ka == '(' || ka == '[' || ka == '.' || (ka == '-' && a->unary))
        return false;
    if (ka == '^' || kb == '^' || ka == T_RANGE || kb == T_RANGE)
        return false;
    if (kb == ':')
        return ka == ',';
    if (is_arithmetic(a))
        return !is_tight(pieces, left);
    if (is_arithmetic(b))
        return !is_tight(pieces, right);
    if (kb == '(' || kb == '[')
        return !(ends_operand(a) || ka == T_FOLD || ka == T_MAX || ka == T_ATTRP ||
                 ka == T_ADJOINT);
    return true;
}

/* ---- lines ---- */

static bool breaks_before(const char *text, const Pieces *pieces, int i) {
    const Piece *piece = &pieces->at[i], *last = &pieces->at[i - 1];
    int kind = piece->token.kind;
    if (is_note(text, last))
        return true;
    if (piece->comment)
        return piece->breaks > 0;
    if (kind == ';' || kind == '{')
        return last->comment && piece->breaks > 0;
    if (piece->spread && kind == '}')
        return true;
    if (last->token.kind == '{' && last->spread)
        return true;
    if (last->token.kind == '}' && last->spread && kind != T_ELSE && kind != T_ADJOINT)
        return true;
    return piece->breaks > 0 || piece->token.item;
}

static void text_indent(Text *text, int n) {
    for (; n > 0; n--)
        text_add(text, " ");
}

/* The characters of a piece, without blanks at line ends; a size has one blank inside. */
static void piece_print(const Parse *ps, Text *out, const Piece *piece) {
    const char *p = ps->text + piece->at, *end = p + piece->len;
    if (piece->token.kind == T_SIZE) {
        size_t n = strcspn(p, " \tBKkMG");
        const char *unit = p + n + strspn(p + n, " \t");
        text_addn(out, p, n);
        text_add(out, " ");
        text_addn(out, unit, (size_t)(end - unit));
        return;
    }
    if (!piece->comment) {
        text_addn(out, p, piece->len);
        return;
    }
    while (p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *stop = newline ? newline : end;
        while (stop > p && (stop[-1] == ' ' || stop[-1] == '\t' || stop[-1] == '\r'))
            stop--;
        text_addn(out, p, (size_t)(stop - p));
        if (!newline)
            break;
        text_add(out, "\n");
        p = newline + 1;
    }
}

/* Brackets open before a piece, and how the line that it begins is indented. */
typedef struct {
    int braces, others;
} Depth;

static int indent_of(const Piece *piece, const Piece *next_token, Depth depth) {
    int kind = piece->token.kind;
    if (kind == '}')
        return INDENT * (depth.braces - 1);
    if (kind == ')' || kind == ']')
        return INDENT * (depth.braces + depth.others - 1);
    if (depth.others)
        return INDENT * (depth.braces + depth.others);
    bool begins = !next_token || next_token->begins || next_token->token.kind == '}';
    return INDENT * (depth.braces + (begins ? 0 : 1));
}

static const Piece *token_from(const Pieces *pieces, int i) {
    while (i < pieces->count && pieces->at[i].comment)
        i++;
    return i < pieces->count ? &pieces->at[i] : NULL;
}

static void line_begin(Parse *ps, Arena *arena, Lines *lines) {
    Line line = {.code = {.arena = arena}};
    VEC_PUSH(&ps->scratch, lines, line);
}

static Lines lines_make(Parse *ps, const Pieces *pieces) {
    Lines lines = {0};
    Depth depth = {0, 0};
    for (int i = 0; i < pieces->count; i++) {
        const Piece *piece = &pieces->at[i];
        int kind = piece->token.kind;
        bool fresh = i == 0 || breaks_before(ps->text, pieces, i);
        if (fresh) {
            bool gap =
                i > 0 && piece->breaks > 1 && kind != '}' && pieces->at[i - 1].token.kind != '{';
            if (gap)
                line_begin(ps, &ps->scratch, &lines);
            line_begin(ps, &ps->scratch, &lines);
        }
        Line *line = &lines.at[lines.count - 1];
        if (fresh)
            text_indent(&line->code, indent_of(piece, token_from(pieces, i), depth));
        if (!fresh && is_note(ps->text, piece)) {
            Text note = {.arena = &ps->scratch};
            piece_print(ps, &note, piece);
            line->note = note.at;
            line->note_len = note.len;
        } else {
            if (!fresh && blank_between(pieces, i - 1, i))
                text_add(&line->code, " ");
            piece_print(ps, &line->code, piece);
        }
        depth.braces += (kind == '{') - (kind == '}');
        depth.others += (kind == '(' || kind == '[') - (kind == ')' || kind == ']');
    }
    return lines;
}

/* Columns of the last line in a text. */
static size_t width_of(const Text *code) {
    const char *newline = code->at ? strrchr(code->at, '\n') : NULL;
    const char *p = newline ? newline + 1 : code->at ? code->at : "";
    size_t n = 0;
    for (; *p; p++)
        n += ((unsigned char)*p & 0xc0) != 0x80;
    return n;
}

static void lines_print(const Lines *lines, Text *out) {
    for (int i = 0; i < lines->count; i++) {
        size_t widest = 0;
        int end = i;
        while (end < lines->count && lines->at[end].note) {
            size_t width = width_of(&lines->at[end].code);
            widest = width > widest ? width : widest;
            end++;
        }
        for (; i < end; i++) {
            const Line *line = &lines->at[i];
            text_addn(out, line->code.at, line->code.len);
            text_indent(out, (int)(widest - width_of(&line->code)) + 2);
            text_addn(out, line->note, line->note_len);
            text_add(out, "\n");
        }
        if (i < lines->count) {
            text_addn(out, lines->at[i].code.at, lines->at[i].code.len);
            text_add(out, "\n");
        }
    }
}

char *fmt_source(Compile *c, Arena *arena, uint32_t source) {
    Parse ps = {.c = c, .source = source};
    ps.arena = &ps.scratch;
    int errors = c->diag.errors;
    parse_file(c, &ps.scratch, source);
    char *result = NULL;
    if (c->diag.errors == errors) {
        Pieces pieces = {0};
        int next = 0;
        scan_open(&ps, T_START_FILE);
        scan_next(&ps);
        while (scan_next(&ps) != 0) {
            Piece piece = {.token = ps.token, .at = ps.token.loc.at, .len = ps.token.loc.len};
            next = comments_add(&ps, &pieces, next, ps.token.index);
            piece_add(&ps, &pieces, piece);
        }
        comments_add(&ps, &pieces, next, ps.tokens.count - 1);
        pieces_mark(&ps, &pieces);
        Lines lines = lines_make(&ps, &pieces);
        Text out = {.arena = arena};
        text_add(&out, "");
        lines_print(&lines, &out);
        result = out.at;
    }
    arena_free(&ps.scratch);
    return result;
}
