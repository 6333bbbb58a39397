/* parse: the grammar of .mdl. Builds raw trees; every action is a constructor call, or says where
 * to go on after an error. What words are keywords here is decided by scan.c. Needs the tokens of
 * one source, gives a FILE or one expression in the Parse, looks nothing up. */
%define api.pure full
%define api.prefix {mdl_}
%define api.token.prefix {T_}
%define api.location.type {Loc}
%define parse.error custom
%locations
%expect 0
%parse-param {Parse *ps}
%lex-param {Parse *ps}

%code requires {
#include "lang/scan.h"
}

%union {
    Ast *ast;
    AstList *list;
    int level;
}

%code {
#define YYMAXDEPTH 10000
#define YYLLOC_DEFAULT(now, rhs, n) ((now) = loc_of_rule((rhs), (n)))
/* Lets the scanner go on as it sees fit; it may give the last token again. Bison drops a token
 * that is refused twice in a row, so it is told when this is another one. */
#define RECOVER(call)                                                                              \
    do {                                                                                           \
        int index_ = ps->token.index;                                                              \
        ps->held = yychar != T_MDL_EMPTY;                                                          \
        yychar = T_MDL_EMPTY;                                                                      \
        call;                                                                                      \
        if (yyerrstatus == 3 && (!ps->held || ps->token.index != index_))                          \
            yyerrstatus = 2;                                                                       \
    } while (0)

#define NODE(kind, loc, ...)                                                                       \
    node_make(ps, AST_##kind, (loc), (Ast *[]){__VA_ARGS__},                                       \
              (int)(sizeof((Ast *[]){__VA_ARGS__}) / sizeof(Ast *)))
#define LEAF(kind, loc) node_make(ps, AST_##kind, (loc), NULL, 0)
#define LIST(kind, loc, list) node_of_list(ps, AST_##kind, (loc), NULL, (list))

/* From the first part that is not empty to the last. */
static Loc loc_of_rule(const Loc *rhs, int n) {
    if (n == 0)
        return (Loc){rhs[0].source, rhs[0].at + rhs[0].len, 0, 0};
    int i = 1;
    while (i < n && rhs[i].len == 0)
        i++;
    return loc_span(rhs[i], rhs[n]);
}

static Ast *binary(Parse *ps, AstOp op, Loc loc, Loc op_loc, Ast *left, Ast *right) {
    Ast *node = NODE(BINARY, loc, left, right);
    node->op = op;
    node->name_loc = op_loc;
    return node;
}

static Ast *unary(Parse *ps, AstOp op, Loc loc, Ast *operand) {
    Ast *node = NODE(UNARY, loc, operand);
    node->op = op;
    return node;
}

/* `type` is a RESULT or NULL, `init` an ARGS of one; both only carry their kids here. */
static Ast *node_state(Parse *ps, Loc loc, const Ast *word, const Ast *type, const Ast *init) {
    Ast *node = NODE(STATE, loc, type ? type->kid[0] : NULL, type ? type->kid[1] : NULL,
                     init->kid[0]);
    return node_flag(node_named(node, word), init->flags);
}

static Ast *node_param(Parse *ps, Loc loc, const Ast *word, Ast *type, const Ast *init) {
    return node_flag(node_named(NODE(PARAM, loc, type, init->kid[0]), word), init->flags);
}

static int mdl_lex(MDL_STYPE *value, Loc *loc, Parse *ps) {
    int kind = scan_next(ps);
    *loc = ps->token.loc;
    if (kind == '(' || kind == '[' || kind == '{')
        value->level = ps->token.level;
    else
        value->ast = ps->token.leaf;
    return kind;
}

/* Called by bison only when its stack is full; its words are replaced. */
static void mdl_error(const Loc *loc, Parse *ps, const char *message) {
    (void)message;
    scan_stop(ps, 121, *loc, "nested too deeply");
}
}

%token START_FILE START_EXPR
%token USE "'use'" DIM "'dim'" CONST "'const'" STATE "'state'" RING "'ring'" OP "'op'"
%token LAYER "'layer'" MODEL "'model'" OPTIMIZER "'optimizer'" DATASET "'dataset'" TEST "'test'"
%token PHASE "'phase'" TRAIN "'train'" ENTRY "'entry'"
%token ADJOINT "'adjoint'" OF "'of'" ON "'on'" AT "'at'" THEN "'then'"
%token PARAM "'param'" EMIT "'emit'" RETURN "'return'" WHEN "'when'" ELSE "'else'"
%token REPEAT "'repeat'" SCAN "'scan'" WHILE "'while'" ODE "'ode'"
%token CARRY "'carry'" FROM "'from'" TO "'to'" USING "'using'" UNTIL "'until'"
%token NEW "'new'" FROZEN "'frozen'" AS "'as'" AND "'and'" OR "'or'" NOT "'not'" IN "'in'"
%token <ast> CLAUSE "a clause" FOLD "a fold" MAX "'max'"
%token <ast> NAME "a name" NUMBER "a number" SIZE "a size" STRING "a string"
%token <ast> ATTR "an attribute" ATTRP "an attribute with arguments"
%token <level> '(' '[' '{'
%token ARROW "'->'" UPDATE "'<-'" LE "'<='" GE "'>='" EQ "'=='" NE "'!='" PIPE "'|>'"
%token RANGE "'..'" PACK "'...'"

%precedence PIPE AS
%left OR
%left AND
%precedence NOT
%nonassoc '<' '>' LE GE EQ NE
%left '+' '-'
%precedence FOLDING
%left '*' '/' '%'
%precedence NEGATION
%right '^'

%type <ast> item def params result opt_result block opt_adjoint opt_params opt_of opt_on opt_at
%type <ast> opt_times opt_until type range opt_type init path phase_step ring_field param stmt when opt_clause_on
%type <ast> carry carry_var arg result_value args clause_args call_args opt_call_args index shape
%type <ast> axis index_item part stage_callee
%type <ast> expr postfix primary callee fold stage border attr group list
%type <list> attrs defs def_list paths path_list phase_steps ring_fields param_list exprs expr_list
%type <list> stmts carry_list arg_list result_list index_list axis_list value_list
%type <level> open

%%

start: START_FILE file
     | START_EXPR expr { ps->expr = $2; }
     ;

file: %empty
    | file ';'
    | file attrs item { node_doc(ps, $3, $2); list_add(ps, &ps->items, $3); }
    | file attrs error { RECOVER(recover_item(ps)); }
    ;

attrs: %empty { $$ = NULL; }
     | attrs attr { $$ = $1 ? list_add(ps, $1, $2) : list_make(ps, $2); }
     ;

attr: ATTR { $$ = node_named(LEAF(ATTR, @$), $1); }
    | ATTRP call_args { $$ = node_named(NODE(ATTR, @$, $2), $1); }
    ;

item: USE path semi { $$ = node_path(ps, AST_USE, @$, $2, NULL); }
    | DIM defs semi { $$ = LIST(DIMS, @$, $2); }
    | CONST defs semi { $$ = LIST(CONSTS, @$, $2); }
    | STATE NAME opt_type init semi { $$ = node_state(ps, @$, $2, $3, $4); }
    | RING NAME '[' expr ']' open ring_fields close
        { $$ = node_named(node_of_list(ps, AST_RING, @$, $4, $7), $2); }
    | OP NAME params opt_result block opt_adjoint
        { $$ = node_named(NODE(OP, @$, $3, $4, $5, $6), $2); }
    | LAYER NAME params opt_result block { $$ = node_named(NODE(LAYER, @$, $3, $4, $5), $2); }
    | MODEL NAME params opt_result block { $$ = node_named(NODE(MODEL, @$, $3, $4, $5), $2); }
    | OPTIMIZER NAME params block { $$ = node_named(NODE(OPTIMIZER, @$, $3, $4), $2); }
    | DATASET NAME block { $$ = node_named(NODE(DATASET, @$, $3), $2); }
    | TEST STRING block { $$ = NODE(TEST, @$, $3); $$->text = $2->text; $$->name_loc = @2; }
    | PHASE phase_steps semi { $$ = LIST(PHASE, @$, $2); }
    | TRAIN NAME opt_params opt_of opt_on opt_at block
        { $$ = node_named(NODE(TRAIN, @$, $3, $4, $5, $6, $7), $2); }
    | ENTRY NAME opt_params opt_of opt_on opt_at block
        { $$ = node_named(NODE(ENTRY, @$, $3, $4, $5, $6, $7), $2); }
    ;

semi: ';'
    | error { RECOVER(recover_semicolon(ps)); }
    ;

path: NAME
    | path '.' NAME { $$ = node_named(NODE(DOT, @$, $1), $3); }
    ;

defs: def_list
    | def_list ','
    ;

def_list: def { $$ = list_make(ps, $1); }
        | def_list ',' def { $$ = list_add(ps, $1, $3); }
        ;

def: NAME '=' expr { $$ = node_doc(ps, node_named(NODE(DEF, @$, NULL, $3), $1), NULL); }
   | NAME '[' index ']' '=' expr
       { $$ = node_doc(ps, node_named(NODE(DEF, @$, $3, $6), $1), NULL); }
   ;

opt_type: %empty { $$ = NULL; }
        | ':' type range { $$ = NODE(RESULT, @$, $2, $3); }
        ;

init: '=' expr { $$ = NODE(ARGS, @$, $2); }
    | '~' expr { $$ = node_flag(NODE(ARGS, @$, $2), AST_DRAW); }
    ;

ring_fields: %empty { $$ = NULL; }
           | ring_fields ';'
           | ring_fields ring_field { $$ = list_add(ps, $1, $2); }
           | ring_fields error { RECOVER(recover_statement(ps)); }
           ;

ring_field: NAME ':' type range semi
              { $$ = node_doc(ps, node_named(NODE(FIELD, @$, $3, $4), $1), NULL); }
          ;

opt_adjoint: %empty { $$ = NULL; }
           | ADJOINT params block { $$ = NODE(ADJOINT, @$, $2, $3); }
           ;

phase_steps: phase_step { $$ = list_make(ps, $1); }
           | phase_steps THEN phase_step { $$ = list_add(ps, $1, $3); }
           ;

phase_step: paths { $$ = LIST(PHASE_STEP, @$, $1); }
          ;

paths: path_list
     | path_list ','
     ;

path_list: path { $$ = list_make(ps, node_path(ps, AST_PATH, @1, $1, NULL)); }
         | path_list ',' path { $$ = list_add(ps, $1, node_path(ps, AST_PATH, @3, $3, NULL)); }
         ;

opt_params: %empty { $$ = NULL; }
          | params
          ;

opt_of: %empty { $$ = NULL; }
      | OF paths { $$ = LIST(PATHS, @$, $2); }
      ;

opt_on: %empty { $$ = NULL; }
      | ON NAME '[' expr ']' { $$ = node_named(NODE(ON, @$, $4), $2); }
      ;

opt_at: %empty { $$ = NULL; }
      | AT defs { $$ = LIST(AT, @$, $2); }
      ;

/* ---- signatures and types ---- */

params: '(' ')' { $$ = LEAF(PARAMS, @$); }
      | '(' param_list ')' { $$ = LIST(PARAMS, @$, $2); }
      | '(' param_list ',' ')' { $$ = LIST(PARAMS, @$, $2); }
      | '(' param_list error { $$ = LIST(PARAMS, @$, $2); RECOVER(recover_bracket(ps, $1)); }
      ;

param_list: param { $$ = list_make(ps, $1); }
          | param_list ',' param { $$ = list_add(ps, $1, $3); }
          ;

param: NAME ':' type range
         { $$ = node_doc(ps, node_named(NODE(PARAM_DECL, @$, $3, $4, NULL), $1), NULL); }
     | NAME ':' type range '=' expr
         { $$ = node_doc(ps, node_named(NODE(PARAM_DECL, @$, $3, $4, $6), $1), NULL); }
     ;

opt_result: %empty { $$ = NULL; }
          | result
          ;

result: ARROW type range { $$ = NODE(RESULT, @$, $2, $3); }
      | ARROW params { $$ = $2; }
      ;

type: NAME { $$ = node_named(LEAF(TYPE, @$), $1); }
    | NAME shape { $$ = node_named($2, $1); $$->loc = @$; }
    | shape
    ;

range: %empty { $$ = NULL; }
     | IN expr RANGE expr { $$ = NODE(RANGE, @$, $2, $4); }
     ;

shape: '[' axis_list ']' { $$ = node_flag(LIST(TYPE, @$, $2), AST_SHAPED); }
     | '[' axis_list ',' ']' { $$ = node_flag(LIST(TYPE, @$, $2), AST_SHAPED); }
     | '[' axis_list error
         { $$ = node_flag(LIST(TYPE, @$, $2), AST_SHAPED); RECOVER(recover_bracket(ps, $1)); }
     ;

axis_list: axis { $$ = list_make(ps, $1); }
         | axis_list ',' axis { $$ = list_add(ps, $1, $3); }
         ;

axis: expr
    | PACK { $$ = LEAF(PACK, @$); }
    ;

/* ---- statements ---- */

block: open stmts close { $$ = LIST(BLOCK, @$, $2); }
     ;

open: '{' { scan_block_open(ps, $1); $$ = $1; }
    | error { RECOVER($$ = recover_brace(ps)); scan_block_open(ps, $$); }
    ;

close: '}' { scan_block_close(ps); }
     ;

stmts: %empty { $$ = NULL; }
     | stmts ';'
     | stmts attrs stmt { $$ = list_add(ps, $1, node_doc(ps, $3, $2)); }
     | stmts attrs error { $$ = list_add(ps, $1, LEAF(ERROR, @3)); RECOVER(recover_statement(ps)); }
     ;

stmt: exprs semi { $$ = LIST(EXPR_STMT, @$, $1); }
    | exprs '=' expr semi { $$ = NODE(ASSIGN, @$, LIST(LHS, @1, $1), $3); }
    | exprs UPDATE expr semi { $$ = NODE(UPDATE, @$, LIST(LHS, @1, $1), $3); }
    | postfix '\'' '=' expr semi { $$ = NODE(DERIV, @$, $1, $4); }
    | NAME ':' type range '=' expr semi { $$ = node_named(NODE(DATA_FIELD, @$, $3, $4, $6), $1); }
    | CONST defs semi { $$ = LIST(CONSTS, @$, $2); }
    | PARAM NAME ':' type init semi { $$ = node_param(ps, @$, $2, $4, $5); }
    | FROZEN PARAM NAME ':' type init semi
        { $$ = node_flag(node_param(ps, @$, $3, $5, $6), AST_FROZEN); }
    | STATE NAME opt_type init semi { $$ = node_state(ps, @$, $2, $3, $4); }
    | EMIT postfix '=' expr semi { $$ = NODE(EMIT, @$, $2, $4); }
    | RETURN result_list semi { $$ = LIST(RETURN, @$, $2); }
    | RETURN result_list ',' semi { $$ = LIST(RETURN, @$, $2); }
    | CLAUSE clause_args opt_clause_on semi { $$ = node_named(NODE(CLAUSE, @$, $2, $3), $1); }
    | when
    | REPEAT expr carry block { $$ = NODE(REPEAT, @$, $2, $3, $4); }
    | SCAN expr carry block { $$ = NODE(SCAN, @$, $2, $3, $4); }
    | WHILE expr MAX expr carry block { $$ = NODE(WHILE, @$, $2, $4, $5, $6); }
    | ODE NAME FROM expr TO expr USING expr opt_times opt_until carry block
        { $$ = node_named(NODE(ODE, @$, $4, $6, $8, $9, $10, $11, $12), $2); }
    ;

opt_times: %empty { $$ = NULL; }
         | AT expr { $$ = $2; }
opt_until: %empty { $$ = NULL; }
         | UNTIL expr { $$ = $2; }

opt_clause_on: %empty { $$ = NULL; }
             | ON expr { $$ = $2; }
             ;

when: WHEN expr block { $$ = NODE(WHEN, @$, $2, $3, NULL); }
    | WHEN expr block ELSE block { $$ = NODE(WHEN, @$, $2, $3, $5); }
    | WHEN expr block ELSE when { $$ = NODE(WHEN, @$, $2, $3, $5); }
    ;

carry: CARRY carry_list { $$ = LIST(CARRY, @$, $2); }
     | CARRY carry_list ',' { $$ = LIST(CARRY, @$, $2); }
     ;

carry_list: carry_var { $$ = list_make(ps, $1); }
          | carry_list ',' carry_var { $$ = list_add(ps, $1, $3); }
          ;

carry_var: NAME range { $$ = node_named(NODE(CARRY_VAR, @1, NULL, $2), $1); }
         | NAME '=' expr range { $$ = node_named(NODE(CARRY_VAR, @$, $3, $4), $1); }
         ;

/* ---- expressions ---- */

args: arg_list { $$ = LIST(ARGS, @$, $1); }
    | arg_list ',' { $$ = LIST(ARGS, @$, $1); }
    ;

arg_list: arg { $$ = list_make(ps, $1); }
        | arg_list ',' arg { $$ = list_add(ps, $1, $3); }
        ;

clause_args: result_list { $$ = LIST(ARGS, @$, $1); }
           | result_list ',' { $$ = LIST(ARGS, @$, $1); }
           ;

/* The word of a fold names an argument, `normal(mean = 0, std = 1)`, but no result and no metric. */
arg: result_value
   | fold '=' expr { $$ = node_named(NODE(ARG, @$, $3), $1); }
   ;

result_list: result_value { $$ = list_make(ps, $1); }
           | result_list ',' result_value { $$ = list_add(ps, $1, $3); }
           ;

result_value: expr
            | NAME '=' expr { $$ = node_named(NODE(ARG, @$, $3), $1); }
            | expr RANGE expr { $$ = NODE(RANGE_EXPR, @$, $1, $3); }
            ;

call_args: '(' ')' { $$ = LEAF(ARGS, @$); }
         | '(' args ')' { $$ = $2; $$->loc = @$; }
         | '(' args error { $$ = $2; RECOVER(recover_bracket(ps, $1)); }
         ;

opt_call_args: %empty { $$ = NULL; }
             | call_args
             ;

index: index_list { $$ = LIST(INDEX, @$, $1); }
     | index_list ',' { $$ = LIST(INDEX, @$, $1); }
     ;

index_list: index_item { $$ = list_make(ps, $1); }
          | index_list ',' index_item { $$ = list_add(ps, $1, $3); }
          ;

index_item: expr
          | expr RANGE expr { $$ = NODE(RANGE_EXPR, @$, $1, $3); }
          | ':' { $$ = LEAF(COLON, @$); }
          | PACK { $$ = LEAF(PACK, @$); }
          ;

exprs: expr_list
     | expr_list ','
     ;

expr_list: postfix { $$ = list_make(ps, $1); }
         | expr_list ',' postfix { $$ = list_add(ps, $1, $3); }
         ;

expr: postfix
    | expr OR expr { $$ = binary(ps, AO_OR, @$, @2, $1, $3); }
    | expr AND expr { $$ = binary(ps, AO_AND, @$, @2, $1, $3); }
    | expr '<' expr { $$ = binary(ps, AO_LT, @$, @2, $1, $3); }
    | expr '>' expr { $$ = binary(ps, AO_GT, @$, @2, $1, $3); }
    | expr LE expr { $$ = binary(ps, AO_LE, @$, @2, $1, $3); }
    | expr GE expr { $$ = binary(ps, AO_GE, @$, @2, $1, $3); }
    | expr EQ expr { $$ = binary(ps, AO_EQ, @$, @2, $1, $3); }
    | expr NE expr { $$ = binary(ps, AO_NE, @$, @2, $1, $3); }
    | expr '+' expr { $$ = binary(ps, AO_ADD, @$, @2, $1, $3); }
    | expr '-' expr { $$ = binary(ps, AO_SUB, @$, @2, $1, $3); }
    | expr '*' expr { $$ = binary(ps, AO_MUL, @$, @2, $1, $3); }
    | expr '/' expr { $$ = binary(ps, AO_DIV, @$, @2, $1, $3); }
    | expr '%' expr { $$ = binary(ps, AO_MOD, @$, @2, $1, $3); }
    | expr '^' expr { $$ = binary(ps, AO_POW, @$, @2, $1, $3); }
    | NOT expr { $$ = unary(ps, AO_NOT, @$, $2); }
    | '-' expr %prec NEGATION { $$ = unary(ps, AO_NEG, @$, $2); }
    | fold '[' index ']' expr %prec FOLDING { $$ = node_named(NODE(FOLD, @$, $3, $5), $1); }
    | expr PIPE stage { $$ = NODE(PIPE, @$, $1, $3); }
    | expr AS shape { $$ = NODE(AS, @$, $1, $3); }
    ;

stage: stage_callee opt_call_args { $$ = NODE(CALL, @$, $1, $2); }
     | FROZEN stage_callee opt_call_args { $$ = node_flag(NODE(CALL, @$, $2, $3), AST_FROZEN); }
     | NAME ':' stage_callee opt_call_args { $$ = node_named(NODE(CALL, @$, $3, $4), $1); }
     | NAME ':' FROZEN stage_callee opt_call_args
         { $$ = node_flag(node_named(NODE(CALL, @$, $4, $5), $1), AST_FROZEN); }
     ;

postfix: primary
       | postfix call_args { $$ = NODE(CALL, @$, $1, $2); }
       | postfix '.' NAME { $$ = node_named(NODE(DOT, @$, $1), $3); }
       | postfix '[' index ']' border { $$ = NODE(INDEXED, @$, $1, $3, $5); }
       | postfix '[' index error
           { $$ = NODE(INDEXED, @$, $1, $3, NULL); RECOVER(recover_bracket(ps, $2)); }
       ;

border: %empty { $$ = NULL; }
      | ELSE NUMBER { $$ = $2; }
      | ELSE '-' NUMBER { $$ = unary(ps, AO_NEG, loc_span(@2, @3), $3); }
      | ELSE NAME { $$ = $2; }
      ;

primary: NAME
       | NUMBER
       | SIZE
       | STRING
       | group
       | list
       | fold call_args { $$ = NODE(CALL, @$, $1, $2); }
       | FROZEN callee call_args { $$ = node_flag(NODE(CALL, @$, $2, $3), AST_FROZEN); }
       | NAME ':' callee call_args { $$ = node_named(NODE(CALL, @$, $3, $4), $1); }
       | NAME ':' FROZEN callee call_args
           { $$ = node_flag(node_named(NODE(CALL, @$, $4, $5), $1), AST_FROZEN); }
       | NEW path call_args { $$ = node_path(ps, AST_NEW, @$, $2, $3); }
       | FROZEN NEW path call_args { $$ = node_flag(node_path(ps, AST_NEW, @$, $3, $4), AST_FROZEN); }
       ;

group: '(' expr ')' { $$ = node_flag($2, AST_PAREN); }
     | '(' expr error { $$ = node_flag($2, AST_PAREN); RECOVER(recover_bracket(ps, $1)); }
     ;

list: '[' value_list ']' { $$ = LIST(LIST, @$, $2); }
    | '[' value_list ',' ']' { $$ = LIST(LIST, @$, $2); }
    | '[' value_list error { $$ = LIST(LIST, @$, $2); RECOVER(recover_bracket(ps, $1)); }
    ;

value_list: expr { $$ = list_make(ps, $1); }
          | value_list ',' expr { $$ = list_add(ps, $1, $3); }
          ;

callee: path
      | fold
      ;

stage_callee: part
            | fold
            ;

/* A path with indices: `net.block[2].up`, a part of a model. */
part: NAME
    | part '.' NAME { $$ = node_named(NODE(DOT, @$, $1), $3); }
    | part '[' index ']' { $$ = NODE(INDEXED, @$, $1, $3, NULL); }
    ;

fold: FOLD
    | MAX
    ;

%%

static int yyreport_syntax_error(const yypcontext_t *context, Parse *ps) {
    yysymbol_kind_t kind[YYNTOKENS];
    const char *name[YYNTOKENS];
    int n = yypcontext_expected_tokens(context, kind, YYNTOKENS);
    for (int i = 0; i < n; i++)
        name[i] = yysymbol_name(kind[i]);
    parse_error(ps, name, n);
    return 0;
}
