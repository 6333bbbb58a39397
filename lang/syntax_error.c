/* syntax_error: says what is wrong when the grammar cannot go on.
 *
 * From the offending token, the one before and the tokens that the grammar would take, the first
 * fitting explanation is chosen, the most special one first. Needs ps->token as bison's lookahead,
 * gives one message, changes no values. */
#include "lang/foreign.h"
#include "lang/scan.h"

#include "parse.h"

#include <string.h>

enum { FOUND_LONGEST = 30 };

typedef struct {
    const char *const *name;
    int count;
} Expected;

static bool takes(Expected expected, const char *name) {
    for (int i = 0; i < expected.count; i++)
        if (strcmp(expected.name[i], name) == 0)
            return true;
    return false;
}

static const char *found_text(Parse *ps) {
    const Token *token = &ps->token;
    if (token->kind == 0 || token->loc.len == 0)
        return "the end of the file";
    int n = token->loc.len > FOUND_LONGEST ? FOUND_LONGEST : (int)token->loc.len;
    return str_printf(&ps->scratch, "'%.*s'%s", n, ps->text + token->loc.at,
                      n < (int)token->loc.len ? "..." : "");
}

static bool is_reserved(const Parse *ps, Loc loc) {
    int kind;
    return word_class(ps->text + loc.at, loc.len, &kind) == WORD_RESERVED;
}

static bool is_comparison(int kind) {
    return kind == '<' || kind == '>' || kind == T_LE || kind == T_GE || kind == T_EQ ||
           kind == T_NE;
}

static bool is_operator(const char *name) {
    static const char *const operators[] = {"'and'", "'or'", "'as'", "'|>'", "'<'", "'>'", "'<='",
                                            "'>='",  "'=='", "'!='", "'+'",  "'-'", "'*'", "'/'",
                                            "'%'",   "'^'",  "'('",  "'['",  "'.'"};
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++)
        if (strcmp(operators[i], name) == 0)
            return true;
    return false;
}

/* "';', ',' or '='". After an operand, what goes on with the expression goes without saying. */
static const char *expected_text(Parse *ps, Expected expected) {
    bool after_operand = takes(expected, "'+'");
    int left = 0;
    for (int i = 0; i < expected.count; i++)
        left += !after_operand || !is_operator(expected.name[i]);
    Text text = {.arena = &ps->scratch};
    for (int i = 0; i < expected.count; i++) {
        if (after_operand && is_operator(expected.name[i]))
            continue;
        text_add(&text, expected.name[i]);
        left--;
        text_add(&text, left > 1 ? ", " : left == 1 ? " or " : "");
    }
    return text.at ? text.at : "nothing more";
}

static Loc behind_last(const Parse *ps) {
    Loc loc = ps->last.loc;
    loc.at += loc.len;
    loc.len = 0;
    return loc;
}

/* A clause of a train, outside of its brackets? */
static bool in_train_clause(const Parse *ps) {
    const int n = ps->brackets.count;
    return ps->head == T_CLAUSE && n > 0 && ps->brackets.at[n - 1].kind == '{' &&
           ps->brackets.at[n - 1].head == T_TRAIN;
}

/* Slips that say more than what the grammar wants here. */
static bool report_slip(Parse *ps, Expected expected) {
    Diag *diag = &ps->c->diag;
    Loc loc = ps->token.loc;
    bool operand = takes(expected, "a number");
    switch (ps->token.kind) {
    case '=':
        if (ps->last.kind == T_CLAUSE) {
            diag_error(diag, loc, 130, "'%s' begins a clause here and cannot be set",
                       ps->last.leaf->name);
            diag_hint(diag, "a clause has no '=' behind its word; a value needs another name");
            return true;
        }
        if (operand)
            return false;
        diag_error(diag, loc, 131, "unexpected '=' inside an expression");
        if (is_reserved(ps, ps->last.loc))
            diag_hint(diag, "'%.*s' is a reserved word and cannot be a name",
                      (int)ps->last.loc.len, ps->text + ps->last.loc.at);
        else if (in_train_clause(ps))
            diag_hint(diag, "a clause takes plain names: metric acc = ...");
        else
            diag_hint(diag, "write '==' to compare");
        return true;
    case T_UPDATE:
        if (operand)
            return false;
        diag_error(diag, loc, 132, "unexpected '<-' inside an expression");
        diag_hint(diag, "to compare with a negative number, write a < -1");
        return true;
    case T_RANGE:
        if (operand)
            return false;
        diag_error(diag, loc, 133, "a range stands only as an argument, as an index or after 'in'");
        return true;
    case T_ELSE:
        if (takes(expected, "'return'")) {
            diag_error(diag, loc, 134, "'else' without a 'when' block before it");
            return true;
        }
        return false;
    default:
        if (!is_comparison(ps->token.kind) || operand || takes(expected, "'<'"))
            return false;
        if (takes(expected, "'='")) {
            diag_error(diag, loc, 149, "a comparison is no statement");
            diag_hint(diag, "'expect a < b;' checks one in a test");
            return true;
        }
        diag_error(diag, loc, 135, "comparisons do not chain");
        diag_hint(diag, "write a < b and b < c");
        return true;
    }
}

static void report_item(Parse *ps, const char *found) {
    Diag *diag = &ps->c->diag;
    if (ps->token.kind == '}') {
        diag_error(diag, ps->token.loc, 136, "'}' without a '{' before it");
        return;
    }
    diag_error(diag, ps->token.loc, 137,
               "expected an item such as 'dim', 'model' or 'train', found %s", found);
    const char *near =
        ps->token.kind == T_NAME ? word_nearest(ps->token.leaf->name, WORD_ITEM) : NULL;
    if (near)
        diag_hint(diag, "did you mean '%s'?", near);
}

static void report_bracket(Parse *ps, const char *found, const char *close) {
    Diag *diag = &ps->c->diag;
    int kind = strcmp(close, "')'") == 0 ? '(' : '[';
    bool ended = ps->token.kind == 0 || ps->token.kind == ';' || ps->token.kind == '{' ||
                 ps->token.kind == '}' || ps->token.first;
    if (ended)
        diag_error(diag, behind_last(ps), 138, "expected %s", close);
    else
        diag_error(diag, ps->token.loc, 139, "expected ',' or %s, found %s", close, found);
    if (!ended && kind == '[' && ps->token.kind == ':')
        diag_hint(diag, "a range is written a..b");
    /* Brackets past the count were just closed by the offending token; they are still there. */
    int i = ps->token.nbracket - 1;
    if (i >= 0 && ps->brackets.at[i].kind == kind)
        diag_note(diag, ps->brackets.at[i].loc, "to close this '%c'", kind);
}

/* A word where only clauses have a word in front: `epoch 60;` in a train. */
static bool report_clause(Parse *ps) {
    int open = ps->token.nbracket;
    if (ps->last.kind != T_NAME || !ps->last.start || open == 0 ||
        !ps->brackets.at[open - 1].clauses)
        return false;
    Diag *diag = &ps->c->diag;
    const char *word = ps->last.leaf->name, *near = word_nearest(word, WORD_CLAUSE);
    int head = ps->brackets.at[open - 1].head;
    diag_error(diag, ps->last.loc, 150, "unknown clause '%s'", word);
    const Foreign *row = head == T_TRAIN ? foreign_find(word) : NULL;
    if (row && row->place == FOREIGN_TRAIN)
        diag_hint(diag, "'%s' is written so here: %s, for example: %s", word, row->form,
                  row->example);
    else if (near)
        diag_hint(diag, "did you mean '%s'?", near);
    else if (head == T_TRAIN)
        diag_hint(diag, "a train has loss, metric, optimizer, clip, steps, epochs, freeze, budget, "
                        "precision");
    else if (head == T_DATASET)
        diag_hint(diag, "a dataset has file, holdout, shuffle and fields 'x: f32[4] = ...'");
    return true;
}

static void report_end(Parse *ps, Expected expected, const char *found) {
    Diag *diag = &ps->c->diag;
    bool ended = ps->token.first || ps->token.item || ps->token.kind == 0 ||
                 ps->token.kind == '}' || ps->token.kind == T_CLAUSE;
    if (ended)
        diag_error(diag, behind_last(ps), 140, "expected ';' after this %s",
                   ps->token.nbrace ? "statement" : "declaration");
    else if (takes(expected, "'='")) {
        const char *word = ps->last.kind == T_NAME ? ps->last.leaf->name : "";
        bool elsewhere = strcmp(word, "if") == 0 || strcmp(word, "for") == 0;
        if (!elsewhere && report_clause(ps))
            return;
        diag_error(diag, ps->token.loc, 141, "expected '=', '<-' or ';', found %s", found);
        if (strcmp(word, "if") == 0)
            diag_hint(diag, "'when' decides at compile time, select(c, a, b) chooses data");
        else if (elsewhere)
            diag_hint(diag, "a loop is written: scan i < n carry x = x0 { ... }");
    } else
        diag_error(diag, ps->token.loc, 142, "expected an operator or ';', found %s", found);
}

/* Does the word stand in front of what is at `loc`, in the same line? */
static bool is_behind(const Parse *ps, Loc loc, const char *word) {
    size_t end = loc.at, len = strlen(word);
    while (end > 0 && ps->text[end - 1] == ' ')
        end--;
    const bool whole = end == len || (end > len && strchr(" (=>", ps->text[end - len - 1]));
    return whole && strncmp(ps->text + end - len, word, len) == 0;
}

void parse_error(Parse *ps, const char *const *names, int n) {
    Diag *diag = &ps->c->diag;
    Expected expected = {names, n};
    if (ps->stopped || ps->token.quiet || ps->silent)
        return;
    ps->silent = true;
    const char *found = found_text(ps);
    Loc loc = ps->token.loc;
    if (report_slip(ps, expected))
        return;
    if (takes(expected, "'model'"))
        report_item(ps, found);
    else if (takes(expected, "';'") && !takes(expected, "'return'"))
        report_end(ps, expected, found);
    else if (takes(expected, "')'") && !takes(expected, "a number") && !takes(expected, "a name"))
        report_bracket(ps, found, "')'");
    else if (takes(expected, "']'") && !takes(expected, "a number"))
        report_bracket(ps, found, "']'");
    else if (takes(expected, "'{'"))
        diag_error(diag, loc, 143, "expected '{' to begin the body, found %s", found);
    else if (takes(expected, "'return'"))
        diag_error(diag, loc, 144, "expected a statement, found %s", found);
    else if (takes(expected, "a number") && takes(expected, "a name"))
        diag_error(diag, loc, 145, "expected an expression, found %s", found);
    else if (takes(expected, "a name"))
        diag_error(diag, loc, 146, "expected a name, found %s", found);
    else
        diag_error(diag, loc, 147, "expected %s, found %s", expected_text(ps, expected), found);
    if (ps->token.kind == ']' && ps->last.kind == '[')
        diag_hint(diag, "shapes and lists are not empty; the type of a scalar is written f32");
    if (ps->token.kind == ':' && is_behind(ps, ps->last.loc, "frozen"))
        diag_hint(diag, "a label stands in front: %.*s: frozen layer(...)", (int)ps->last.loc.len,
                  ps->text + ps->last.loc.at);
    /* `param` may be a name itself, so that what stands behind it need not be one. */
    bool declared = ps->last.kind == T_NAME && strcmp(ps->last.leaf->name, "param") == 0;
    if ((takes(expected, "a name") || declared) && is_reserved(ps, loc))
        diag_hint(diag, "%s is a reserved word and cannot be a name", found);
    else if (ps->token.kind == ':' && is_reserved(ps, ps->last.loc))
        diag_hint(diag, "'%.*s' is a reserved word and cannot be a label", (int)ps->last.loc.len,
                  ps->text + ps->last.loc.at);
}
