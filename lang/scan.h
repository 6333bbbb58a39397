/* scan: what the lexer, the scanner, the grammar and the formatter share. Private to lang/.
 *
 * lex.l cuts the whole text into LexTokens, without meaning. scan.c hands them to the grammar one
 * by one and decides what depends on context: which words are keywords here, doc comments, open
 * brackets, where a missing '}' is supplied, where to go on after an error. */
#ifndef MDLC_LANG_SCAN_H
#define MDLC_LANG_SCAN_H

#include "lang/ast.h"

enum { BRACKET_DEPTH = 400 }; /* open ( [ { at one place */

/* Kinds of LexToken that are no tokens of the grammar; those are positive. */
enum {
    LEX_COMMENT = -1,     /* line or block comment */
    LEX_DOC = -2,         /* one `///` line */
    LEX_BAD_COMMENT = -3, /* block comment without end */
    LEX_BAD_STRING = -4,  /* string without end */
    LEX_BAD_NUMBER = -5,
    LEX_BAD_WORD = -6, /* a word with letters beyond ASCII */
    LEX_BAD_CHAR = -7, /* or several beyond ASCII */
    LEX_FOREIGN = -8,  /* an operator of another language, such as && */
};

typedef struct {
    int kind;
    uint32_t at, len;
} LexToken;
typedef VEC(LexToken) LexTokens;

/* Cuts `text` (without NUL bytes) into tokens; their memory is in `arena`. The last one is the end
 * of the file, kind 0. */
void lex_text(Arena *arena, const char *text, size_t length, LexTokens *tokens);

typedef VEC(Ast *) AstList;

typedef struct {
    int kind;     /* '(' '[' '{' */
    int head;     /* '{': the token that began the item or statement with this block */
    bool clauses; /* '{': clause words are tokens directly inside */
    Loc loc;
} Bracket;

/* A token as the grammar gets it. */
typedef struct {
    int kind;
    Loc loc;
    Ast *leaf;            /* of a word, number, size or string */
    int level;            /* of an opening bracket: how many are open with it */
    int index;            /* of its LexToken */
    int nbracket, nbrace; /* open before it */
    bool first;           /* on its line */
    bool start;           /* stands where a statement may begin */
    bool item;            /* begins an item */
    bool quiet; /* supplied, or beside a fault of the scanner: no second message about it */
} Token;

typedef struct {
    uint32_t at;
    const char *text;
} Doc;

typedef struct {
    Compile *c;
    Arena *arena;  /* of the tree */
    Arena scratch; /* of everything else */
    uint32_t source;
    const char *text;
    LexTokens tokens;
    int next;  /* index of the next LexToken */
    int start; /* token that says to the grammar what to read; 0 once it was given */
    VEC(Bracket) brackets;
    int nbrace;        /* how many of them are '{' */
    VEC(int) blocks;   /* the parser's open blocks: how many brackets are open inside each */
    bool at_start;     /* the next token begins an item or a statement */
    int head;          /* kind of the token that began the current item or statement */
    int attr_level;    /* brackets open outside of the ( of an attribute; -1: not in one */
    int supply;        /* how many '}' are still to be supplied */
    int faulty;        /* so many tokens from here are quiet */
    bool held;         /* `token` is to be given again */
    bool skipping;     /* going on after an error: what is passed over is not judged */
    bool silent;       /* this statement has had its message */
    bool stopped;      /* gave up: only the end of the file follows */
    Token token, last; /* the one given last, and the one before */
    VEC(Doc) docs;
    AstList items;
    Ast *expr;
} Parse;

/* Cuts the source into tokens; `start` is the grammar's first token. */
void scan_open(Parse *ps, int start);
/* The next token of the grammar, also in ps->token. */
int scan_next(Parse *ps);
/* Reports that the text nests too deeply; nothing after it is read. */
void scan_stop(Parse *ps, int id, Loc loc, const char *message);
/* The doc comment that stands right before `at`, or NULL. */
const char *scan_doc(const Parse *ps, uint32_t at);
/* The grammar went into a block (`level` of its '{') and out of it. */
void scan_block_open(Parse *ps, int level);
void scan_block_close(Parse *ps);

Loc source_loc(const Parse *ps, uint32_t at, uint32_t len);
Ast *leaf_number(Parse *ps, const LexToken *lex);
Ast *leaf_size(Parse *ps, const LexToken *lex);
Ast *leaf_string(Parse *ps, const LexToken *lex);
Ast *leaf_word(Parse *ps, const LexToken *lex, uint32_t skip); /* without `skip` characters */
/* Reports a LexToken that is none, once, and gives what it counts as: a comment or a token. */
int report_fault(Parse *ps, const LexToken *lex);

/* Going on after a syntax error; the last token is looked at again if ps->held. Only the last
 * token is still there to be taken back. */
void recover_item(Parse *ps);      /* at the next item */
void recover_statement(Parse *ps); /* behind ';' or '}' of this statement, at '}' of the block */
void recover_semicolon(Parse *ps); /* at once where a statement may begin, else as above */
void recover_bracket(Parse *ps, int level); /* behind the bracket's end, or where it must end */
int recover_brace(Parse *ps); /* behind the next '{', or as if it stood here; gives its level */

/* Takes a '{' as standing before the last token, which is read again; gives its level. */
int scan_brace(Parse *ps);
/* Takes `n` '}' as standing before the last token. */
void scan_supply(Parse *ps, int n);

/* Reports ps->token; `expected` are names of tokens as the grammar calls them. */
void parse_error(Parse *ps, const char *const *expected, int n);

typedef enum {
    WORD_NAME,
    WORD_RESERVED, /* never a name */
    WORD_ITEM,     /* begins an item; const and state also a statement */
    WORD_CLAUSE,   /* begins a statement in a train, an entry, a data set or a test */
    WORD_INNER,    /* param, ode: begin a statement */
    WORD_HEAD,     /* of, on, ...: go on with what an item or a loop began */
} WordClass;
/* `kind` is set to the token that the word is where it is one. */
WordClass word_class(const char *word, size_t length, int *kind);
/* Word i = 0.. of the table; NULL behind the last. */
const char *word_at(int i);
/* The word of that class nearest to what was written, or NULL. */
const char *word_nearest(const char *word, WordClass class);

/* Constructors. Kids may be NULL where ast.def allows it. */
Ast *node_make(Parse *ps, AstKind kind, Loc loc, Ast *const *kid, int nkid);
/* kid: first (left out if NULL), then the list. */
Ast *node_of_list(Parse *ps, AstKind kind, Loc loc, Ast *first, const AstList *list);
Ast *node_named(Ast *node, const Ast *word);
Ast *node_flag(Ast *node, unsigned flags);
/* Named by a path of names and dots; kid: args, or none if NULL. */
Ast *node_path(Parse *ps, AstKind kind, Loc loc, const Ast *path, Ast *args);
Ast *node_doc(Parse *ps, Ast *node, const AstList *attrs);
AstList *list_make(Parse *ps, Ast *first);
AstList *list_add(Parse *ps, AstList *list, Ast *item);

#endif
