/* recover: where the parser goes on after a syntax error.
 *
 * Items and statements are skipped by counting brackets; a missing ';' ')' ']' '{' is taken as
 * written where what follows makes that likely, so that one slip costs one message. Needs ps->token
 * as the offending token (held), leaves a token held or taken, changes no values. */
#include "lang/scan.h"

#include "parse.h"

enum { BRACE_FARTHEST = 200 }; /* tokens looked over for a '{' */

void scan_block_open(Parse *ps, int level) {
    VEC_PUSH(&ps->scratch, &ps->blocks, level);
}

void scan_block_close(Parse *ps) {
    ps->blocks.count--;
}

/* The next LexToken that the scanner will read, comments aside. */
static int upcoming(const Parse *ps) {
    int i = ps->next;
    while (ps->tokens.at[i].kind == LEX_COMMENT || ps->tokens.at[i].kind == LEX_DOC)
        i++;
    return i;
}

static bool else_follows(const Parse *ps) {
    if (ps->stopped)
        return false;
    const LexToken *lex = &ps->tokens.at[upcoming(ps)];
    int kind;
    return lex->kind == T_NAME &&
           word_class(ps->text + lex->at, lex->len, &kind) == WORD_RESERVED && kind == T_ELSE;
}

void recover_item(Parse *ps) {
    int kind;
    ps->skipping = true;
    do
        kind = scan_next(ps);
    while (kind != 0 && !ps->token.item &&
           !((kind == T_ATTR || kind == T_ATTRP) && ps->brackets.count == 0 && ps->token.start));
    ps->held = true;
    ps->skipping = false;
}

void recover_statement(Parse *ps) {
    int level = ps->blocks.count ? ps->blocks.at[ps->blocks.count - 1] : 0;
    ps->skipping = true;
    for (bool over = false; !over;) {
        int kind = scan_next(ps);
        int open = ps->brackets.count;
        over = open == level && (kind == ';' || (kind == '}' && !else_follows(ps)));
        if (!over)
            over = ps->held = kind == 0 || ps->token.item || open < level;
    }
    ps->skipping = false;
    /* The end of a block went by unseen. */
    if (ps->held && !ps->stopped && ps->blocks.count > 0 && ps->nbrace == 0 &&
        ps->token.kind != '}')
        scan_supply(ps, ps->blocks.count);
}

static bool begins_statement(int kind) {
    switch (kind) {
    case '}':
    case 0:
    case T_RETURN:
    case T_EMIT:
    case T_WHEN:
    case T_REPEAT:
    case T_SCAN:
    case T_WHILE:
    case T_ODE:
    case T_CONST:
    case T_STATE:
    case T_PARAM:
    case T_ATTR:
    case T_ATTRP:
    case T_CLAUSE: return true;
    default: return false;
    }
}

void recover_semicolon(Parse *ps) {
    if (!ps->token.first && !ps->token.item && !begins_statement(ps->token.kind))
        recover_statement(ps);
}

void recover_bracket(Parse *ps, int level) {
    int close = ps->brackets.at[level - 1].kind == '(' ? ')' : ']';
    for (;;) {
        int kind = scan_next(ps);
        if (kind == close && ps->brackets.count == level - 1)
            return;
        if (kind == 0 || kind == '{' || ps->brackets.count < level) {
            ps->held = true;
            return;
        }
    }
}

/* Is there a '{' soon, before the statement ends? */
static bool brace_follows(const Parse *ps) {
    int end = ps->token.index + BRACE_FARTHEST;
    for (int i = ps->token.index; i < end && i < ps->tokens.count; i++) {
        int kind = ps->tokens.at[i].kind;
        if (kind == '{')
            return true;
        if (kind == ';' || kind == '}' || kind == 0)
            return false;
    }
    return false;
}

int recover_brace(Parse *ps) {
    int kind = ps->token.kind;
    if (!ps->stopped && !begins_statement(kind) && brace_follows(ps)) {
        while (scan_next(ps) != '{')
            if (ps->token.kind == 0 || ps->token.item)
                break;
        if (ps->token.kind == '{')
            return ps->token.level;
    }
    return scan_brace(ps);
}
