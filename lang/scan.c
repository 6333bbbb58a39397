/* scan: from LexTokens to the tokens of the grammar.
 *
 * Keeps a stack of the open brackets and what began the current item or statement; from these it
 * decides which words are keywords at this place, and supplies missing '}' where an item begins in
 * column 1. Faults of characters are reported when the token is reached, so that messages come in
 * the order of the text. Needs lex_text's tokens, gives Tokens with leaves of the tree, changes no
 * values. */
#include "lang/scan.h"

#include "parse.h"

#include <string.h>

Loc source_loc(const Parse *ps, uint32_t at, uint32_t len) {
    return (Loc){ps->source, at, len, 0};
}

/* Just behind the last token. */
static Loc loc_behind(const Parse *ps) {
    return source_loc(ps, ps->token.loc.at + ps->token.loc.len, 0);
}

void scan_stop(Parse *ps, int id, Loc loc, const char *message) {
    if (!ps->stopped)
        diag_error(&ps->c->diag, loc, id, "%s", message);
    ps->stopped = true;
}

void scan_open(Parse *ps, int start) {
    const Source *source = &ps->c->diag.sources.at[ps->source];
    ps->text = source->text;
    ps->start = start;
    ps->at_start = true;
    ps->attr_level = -1;
    const char *nul = memchr(source->text, '\0', source->length);
    if (source->length > SOURCE_LARGEST) {
        scan_stop(ps, 101, source_loc(ps, 0, 0),
                  str_printf(&ps->scratch, "a model text has at most %d MiB; this one has more",
                             SOURCE_LARGEST >> 20));
    } else if (nul) {
        scan_stop(ps, 102, source_loc(ps, (uint32_t)(nul - source->text), 0),
                  "a NUL byte: this is not a model text");
    } else {
        lex_text(&ps->scratch, source->text, source->length, &ps->tokens);
    }
}

/* ---- words ---- */

/* Index of the next LexToken behind `index` that is no comment. */
static int peek(const Parse *ps, int index) {
    do
        index++;
    while (index < ps->tokens.count &&
           (ps->tokens.at[index].kind == LEX_COMMENT || ps->tokens.at[index].kind == LEX_DOC));
    return index < ps->tokens.count ? index : ps->tokens.count - 1;
}

static bool is_name(const Parse *ps, int index) {
    const LexToken *lex = &ps->tokens.at[index];
    int kind;
    return lex->kind == T_NAME && word_class(ps->text + lex->at, lex->len, &kind) != WORD_RESERVED;
}

/* Does an operand begin here? Right behind a name none can. */
static bool is_operand(const Parse *ps, int index) {
    const LexToken *lex = &ps->tokens.at[index];
    int kind = lex->kind;
    if (kind == T_NAME)
        word_class(ps->text + lex->at, lex->len, &kind);
    return kind == T_NUMBER || kind == T_SIZE || kind == T_STRING || kind == T_FOLD ||
           kind == T_MAX || kind == T_NOT || kind == T_NEW || kind == T_FROZEN ||
           is_name(ps, index);
}

static bool ends_operand(int kind) {
    return kind == T_NAME || kind == T_NUMBER || kind == T_SIZE || kind == T_STRING ||
           kind == ')' || kind == ']';
}

static bool ends_statement(int kind) {
    return kind == ';' || kind == '{' || kind == '}';
}

static bool is_loop(int kind) {
    return kind == T_REPEAT || kind == T_SCAN || kind == T_WHILE || kind == T_ODE;
}

static const Bracket *innermost(const Parse *ps) {
    return ps->brackets.count ? &ps->brackets.at[ps->brackets.count - 1] : NULL;
}

/* Do parameters with their types follow, as in the head of an item? */
static bool params_follow(const Parse *ps, int index) {
    int paren = peek(ps, index), name = peek(ps, paren), colon = peek(ps, name);
    return ps->tokens.at[paren].kind == '(' && is_name(ps, name) &&
           ps->tokens.at[colon].kind == ':';
}

/* Does an item begin with this word, whatever is still open? */
static bool begins_item(const Parse *ps, int index, int kind, bool clauses) {
    uint32_t at = ps->tokens.at[index].at;
    if (at > 0 && ps->text[at - 1] != '\n')
        return false;
    int next = peek(ps, index);
    if (!(kind == T_TEST ? ps->tokens.at[next].kind == T_STRING : is_name(ps, next)))
        return false;
    if (ps->nbrace == 0)
        return true;
    if (kind == T_CONST || kind == T_STATE)
        return false; /* as well a statement */
    return kind != T_OPTIMIZER || !clauses || params_follow(ps, peek(ps, index));
}

/* These go on with the item or statement that `head` began. */
static bool goes_on(const Parse *ps, int index, int kind, bool in_block) {
    bool outside = ps->brackets.count == 0;
    if (kind == T_ADJOINT)
        return ps->at_start &&
               (outside || (ps->brackets.count == 1 && innermost(ps)->head == T_OP &&
                            params_follow(ps, index)));
    if (!ends_operand(ps->token.kind))
        return false;
    switch (kind) {
    case T_ON:
        if (in_block && ps->head == T_CLAUSE)
            return true; /* or as below */
        return outside && (ps->head == T_TRAIN || ps->head == T_ENTRY);
    case T_OF: return outside && (ps->head == T_TRAIN || ps->head == T_ENTRY);
    case T_AT:
        return (outside && (ps->head == T_TRAIN || ps->head == T_ENTRY)) ||
               (in_block && ps->head == T_ODE);
    case T_THEN: return outside && ps->head == T_PHASE;
    case T_CARRY: return in_block && is_loop(ps->head);
    default: return in_block && ps->head == T_ODE;
    }
}

/* What the word is here. `start`: a statement may begin with it. Sets `item` if an item does. */
static int word_kind(const Parse *ps, int index, bool start, bool *item) {
    const LexToken *lex = &ps->tokens.at[index];
    const Bracket *inner = innermost(ps);
    bool in_block = inner && inner->kind == '{';
    bool clauses = in_block && inner->clauses;
    int kind;
    WordClass class = word_class(ps->text + lex->at, lex->len, &kind);
    if (ps->token.kind == '.')
        return T_NAME;
    switch (class) {
    case WORD_NAME:
    case WORD_RESERVED: return kind;
    case WORD_ITEM:
        *item = (ps->nbrace == 0 && ps->at_start) || begins_item(ps, index, kind, clauses);
        if (*item)
            return kind;
        if (kind == T_OPTIMIZER && clauses && start)
            return T_CLAUSE;
        if ((kind == T_CONST || kind == T_STATE) && in_block && start &&
            is_name(ps, peek(ps, index)))
            return kind;
        return T_NAME;
    case WORD_CLAUSE:
        if (clauses)
            return start ? kind : T_NAME;
        return in_block && start && is_operand(ps, peek(ps, index)) ? kind : T_NAME;
    case WORD_INNER:
        if (ps->token.kind == T_FROZEN)
            start = kind == T_PARAM;
        return in_block && start && is_name(ps, peek(ps, index)) ? kind : T_NAME;
    case WORD_HEAD: return goes_on(ps, index, kind, in_block) ? kind : T_NAME;
    }
    return T_NAME;
}

/* ---- doc comments ---- */

static void doc_line(Parse *ps, Text *text, const LexToken *lex) {
    const char *p = ps->text + lex->at + 3, *end = ps->text + lex->at + lex->len;
    if (p < end && *p == ' ')
        p++;
    while (end > p && (end[-1] == '\r' || end[-1] == ' '))
        end--;
    if (text->at)
        text_add(text, "\n");
    text_addn(text, p, (size_t)(end - p));
}

const char *scan_doc(const Parse *ps, uint32_t at) {
    int lo = 0, hi = ps->docs.count;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (ps->docs.at[mid].at < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < ps->docs.count && ps->docs.at[lo].at == at ? ps->docs.at[lo].text : NULL;
}

/* Index of the next LexToken that means something; comments, docs and faults are dealt with. */
static int next_index(Parse *ps) {
    Text doc = {.arena = ps->arena};
    for (;; ps->next++) {
        LexToken *lex = &ps->tokens.at[ps->next];
        if (lex->kind == LEX_DOC)
            doc_line(ps, &doc, lex);
        else if (lex->kind < LEX_DOC)
            lex->kind = report_fault(ps, lex);
        if (lex->kind >= 0) {
            if (doc.at) {
                Doc found = {lex->at, doc.at};
                VEC_PUSH(&ps->scratch, &ps->docs, found);
            }
            return ps->next;
        }
    }
}

/* ---- brackets ---- */

static void brackets_cut(Parse *ps, int count) {
    while (ps->brackets.count > count)
        ps->nbrace -= ps->brackets.at[--ps->brackets.count].kind == '{';
}

/* ( and [ do not reach past ; { and }. */
static void brackets_to_brace(Parse *ps) {
    while (ps->brackets.count && innermost(ps)->kind != '{')
        ps->brackets.count--;
}

static void bracket_push(Parse *ps, int kind, Loc loc) {
    if (ps->brackets.count == BRACKET_DEPTH) {
        scan_stop(ps, 113, loc,
                  str_printf(&ps->scratch, "nested too deeply: more than %d open brackets",
                             BRACKET_DEPTH));
        return;
    }
    Bracket bracket = {kind, ps->head, false, loc};
    if (kind == '{') {
        brackets_to_brace(ps);
        const Bracket *outer = innermost(ps);
        bracket.clauses = outer ? outer->clauses && (ps->head == T_WHEN || ps->head == T_ELSE)
                                : ps->head == T_TRAIN || ps->head == T_ENTRY ||
                                      ps->head == T_DATASET || ps->head == T_TEST;
        ps->nbrace++;
    }
    VEC_PUSH(&ps->scratch, &ps->brackets, bracket);
}

static void bracket_pop(Parse *ps, int kind) {
    int open = kind == ')' ? '(' : '[';
    for (int i = ps->brackets.count; i > 0 && ps->brackets.at[i - 1].kind != '{'; i--) {
        if (ps->brackets.at[i - 1].kind == open) {
            ps->brackets.count = i - 1;
            return;
        }
    }
}

static void brackets_update(Parse *ps, Token *token) {
    switch (token->kind) {
    case '(':
    case '[':
    case '{':
        bracket_push(ps, token->kind, token->loc);
        token->level = ps->brackets.count;
        break;
    case ')':
    case ']': bracket_pop(ps, token->kind); break;
    case ';': brackets_to_brace(ps); break;
    case '}':
        brackets_to_brace(ps);
        if (ps->nbrace)
            brackets_cut(ps, ps->brackets.count - 1);
        break;
    default: break;
    }
    if (token->item)
        brackets_cut(ps, 0);
}

/* ---- tokens ---- */

static bool can_begin_statement(int kind) {
    return kind == T_NAME || kind == T_RETURN || kind == T_EMIT || kind == T_WHEN ||
           kind == T_REPEAT || kind == T_SCAN || kind == T_WHILE || kind == T_ODE ||
           kind == T_PARAM || kind == T_CONST || kind == T_STATE || kind == T_CLAUSE ||
           kind == T_FROZEN;
}

/* Says whether the next token begins an item or a statement, and what began the current one. */
static void start_update(Parse *ps, const Token *token) {
    int kind = token->kind;
    if (ends_statement(kind)) {
        ps->at_start = true;
        ps->attr_level = -1;
    } else if (kind == T_ATTR && ps->at_start) {
        /* what it belongs to is still to come */
    } else if (kind == T_ATTRP && ps->at_start) {
        ps->attr_level = ps->brackets.count;
        ps->at_start = false;
    } else if (kind == ')' && ps->attr_level == ps->brackets.count) {
        ps->attr_level = -1;
        ps->at_start = true;
    } else {
        if (ps->at_start || token->item || (token->start && can_begin_statement(kind)) ||
            (kind == T_WHEN && ps->head == T_ELSE))
            ps->head = kind;
        ps->at_start = false;
    }
}

/* How many blocks are open inside of the nearest that may hold clauses; 0: there is none. */
static int blocks_inside_clauses(const Parse *ps) {
    int n = 0;
    for (int i = ps->brackets.count - 1; i >= 0; i--) {
        if (ps->brackets.at[i].clauses)
            return n;
        n += ps->brackets.at[i].kind == '{';
    }
    return 0;
}

/* How many '}' must be missing for this token to stand here. */
static int braces_missing(Parse *ps, const Token *token) {
    const Bracket *inner = innermost(ps);
    switch (token->kind) {
    case 0: return ps->nbrace;
    case T_ADJOINT: return ps->nbrace;
    case T_ELSE: {
        if (!ps->at_start || !inner || inner->head != T_WHEN)
            return 0;
        /* The block that was just closed is still there, behind the open ones. */
        return ps->token.kind != '}' || is_loop(ps->brackets.at[ps->brackets.count].head);
    }
    case T_CLAUSE: {
        bool clauses = inner && inner->clauses;
        int n = clauses ? 0 : blocks_inside_clauses(ps);
        if (!clauses && n == 0 && !ps->skipping)
            diag_error(&ps->c->diag, token->loc, 116,
                       "'%s' stands only in a train, an entry, a dataset or a test",
                       token->leaf->name);
        return n;
    }
    default: return token->item ? ps->nbrace : 0;
    }
}

/* The ends of the `n` innermost blocks are missing before `token`. */
static void supply_begin(Parse *ps, const Token *token, int n) {
    Diag *diag = &ps->c->diag;
    Loc before = token->loc;
    ps->supply = n;
    if (ps->faulty > 0)
        return;
    if (token->kind == 0)
        diag_error(diag, loc_behind(ps), 114, "missing '}' at the end of the file");
    else
        diag_error(diag, before, 115, "missing '}' before this '%.*s'", (int)before.len,
                   ps->text + before.at);
    int i = ps->brackets.count - 1;
    while (ps->brackets.at[i].kind != '{')
        i--;
    diag_note(diag, ps->brackets.at[i].loc, "this '{' is not closed");
}

static Token supply_brace(Parse *ps) {
    Token token = {.kind = '}', .loc = loc_behind(ps), .index = ps->next, .quiet = true};
    token.nbracket = ps->brackets.count;
    token.nbrace = ps->nbrace;
    ps->supply--;
    return token;
}

static Token token_read(Parse *ps) {
    Token token = {.index = ps->stopped ? 0 : next_index(ps)};
    token.nbracket = ps->brackets.count;
    token.nbrace = ps->nbrace;
    if (ps->stopped) {
        token.loc = loc_behind(ps);
        token.quiet = true;
        return token;
    }
    const LexToken *lex = &ps->tokens.at[token.index];
    token.loc = source_loc(ps, lex->at, lex->len);
    token.kind = lex->kind;
    uint32_t behind = loc_behind(ps).at;
    token.first = lex->at > behind && memchr(ps->text + behind, '\n', lex->at - behind);
    const Bracket *inner = innermost(ps);
    token.start = ps->at_start ||
                  (token.first && ends_operand(ps->token.kind) && inner && inner->kind == '{');
    if (token.kind == T_NAME) {
        token.kind = word_kind(ps, token.index, token.start, &token.item);
        token.leaf = leaf_word(ps, lex, 0);
    } else if (token.kind == T_ATTR || token.kind == T_ATTRP) {
        token.leaf = leaf_word(ps, lex, 1);
    } else if (token.kind == T_NUMBER) {
        token.leaf = leaf_number(ps, lex);
    } else if (token.kind == T_SIZE) {
        token.leaf = leaf_size(ps, lex);
    } else if (token.kind == T_STRING) {
        token.leaf = leaf_string(ps, lex);
    }
    int missing = braces_missing(ps, &token);
    if (missing > 0) {
        supply_begin(ps, &token, missing);
        return supply_brace(ps);
    }
    token.quiet = ps->faulty > 0;
    ps->faulty -= ps->faulty > 0;
    if (ends_statement(ps->token.kind))
        ps->silent = false;
    if (token.kind == 0)
        token.loc = loc_behind(ps);
    else
        ps->next++;
    return token;
}

int scan_next(Parse *ps) {
    if (ps->held) {
        ps->held = false;
        return ps->token.kind;
    }
    if (ps->start) {
        ps->token = (Token){.kind = ps->start, .loc = source_loc(ps, 0, 0)};
        ps->start = 0;
        return ps->token.kind;
    }
    Token token = ps->supply > 0 ? supply_brace(ps) : token_read(ps);
    brackets_update(ps, &token);
    start_update(ps, &token);
    ps->last = ps->token;
    ps->token = token;
    return token.kind;
}

/* The last token will be read again. */
static void token_unread(Parse *ps) {
    const Token *token = &ps->token;
    ps->next = token->index;
    ps->brackets.count = token->nbracket;
    ps->nbrace = token->nbrace;
    ps->token = ps->last;
    ps->held = false;
}

int scan_brace(Parse *ps) {
    Token again = ps->token;
    token_unread(ps);
    if (again.kind == '}' && again.loc.len == 0)
        ps->supply += 2; /* the one that is taken back, and the end of this block */
    else if (again.kind == 0 || again.item)
        ps->faulty = 1; /* the block ends at once, and no second message says so */
    Token brace = {.kind = '{', .loc = loc_behind(ps)};
    brackets_update(ps, &brace);
    start_update(ps, &brace);
    return brace.level;
}

void scan_supply(Parse *ps, int n) {
    token_unread(ps);
    ps->supply = n;
}
