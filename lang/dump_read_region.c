/* dump_read_region: nodes of dumped graphs, line by line, through the builder.
 *
 * A line names an op of the op table, so graph_add makes its node: what it would fold or merge was
 * folded or merged when the graph was built, and hash-consing gives each line a node of its own.
 * Loops, adjoints and body parameters, which the builder places while a body grows, are put where
 * they stand. The shape rules decide what is legal, here as messages.
 * Contract: needs a block; gives nodes that hold at STAGE_BUILT, or one message. */
#include "lang/dump_read_region.h"

#include "compiler/graph_text.h"
#include "compiler/loop_builder.h"
#include "compiler/shape.h"
#include "lang/scope.h"

#include <string.h>

enum { BODY_DEPTH = 100 };

/* A parameter of the body at hand: p0, p1, ... */
typedef struct {
    const char *name;
    Type type;
    Loc loc;
} RawParam;

typedef struct {
    DumpRead *r;
    DumpNames *names;
    const RawParam *param;
    int nparam;
} Block;

static bool read_block(DumpRead *r, const Ast *block, const RawParam *param, int nparam,
                       DumpNames *names);

/* --- names ------------------------------------------------------------------------------------ */

static RawName *name_place(const DumpNames *names, const char *name) {
    uint64_t mask = (uint64_t)names->size - 1, h = hash_str(HASH_TABLE, name);
    while (names->at[h & mask].name && !str_eq(names->at[h & mask].name, name)) {
        h++;
    }
    return &names->at[h & mask];
}

static bool name_add(DumpRead *r, DumpNames *names, const char *name, Loc loc, Node *node) {
    if (2 * (names->used + 1) > names->size) {
        DumpNames old = *names;
        names->size = old.size ? 2 * old.size : 64;
        names->at = ARENA_ARRAY(r->arena, RawName, names->size);
        for (int i = 0; i < old.size; i++) {
            if (old.at[i].name) {
                *name_place(names, old.at[i].name) = old.at[i];
            }
        }
    }
    RawName *place = name_place(names, name);
    if (place->name) {
        return dump_error(r, loc, 820, "'%s' has a value already", name);
    }
    *place = (RawName){name, node};
    names->used++;
    return true;
}

Node *dump_value(DumpRead *r, const DumpNames *names, const Ast *expr) {
    const RawName *place =
        expr->kind == AST_NAME && names->size > 0 ? name_place(names, expr->name) : NULL;
    if (place && place->name) {
        return place->node;
    }
    dump_error(r, expr->loc, 821, "a value of a line above in this region is needed here");
    return NULL;
}

Slot *dump_slot(DumpRead *r, const Ast *expr) {
    bool input = expr->kind == AST_NAME;
    const char *name = input ? expr->name : expr->text;
    if (!input && expr->kind != AST_STRING) {
        dump_error(r, expr->loc, 822, "the name of an input or a \"slot\" is needed here");
        return NULL;
    }
    int n = input ? r->at->input.count : r->module->slot.count;
    for (int i = 0; i < n; i++) {
        Slot *slot = input ? r->at->input.at[i] : r->module->slot.at[i];
        if (str_eq(slot->name, name)) {
            return slot;
        }
    }
    dump_error(r, expr->loc, 823, input ? "the entry has no input '%s'" : "there is no slot \"%s\"",
               name);
    return NULL;
}

/* --- attributes ------------------------------------------------------------------------------- */

typedef struct {
    OpCode op;
    Type type; /* of the result */
    Node **in;
    int nin;
    Attr attr;
    const char *name;
    Loc loc;
    const Ast *word; /* that names it on the left */
} Line;

static bool read_labels(DumpRead *r, const AttrField *f, const Ast *expr, int n, Attr *attr) {
    const char *text;
    if (!dump_string(r, expr, &text)) {
        return false;
    }
    if ((int)strlen(text) != n || strspn(text, "abcdefghijklmnopqrstuvwxyz") != strlen(text)) {
        return dump_error(r, expr->loc, 824, "a letter for each of %d axes is needed here", n);
    }
    for (int k = 0; k < n; k++) {
        attr_set(f, attr, k, text[k] - 'a');
    }
    return true;
}

static bool read_list(DumpRead *r, const AttrField *f, const Ast *expr, int n, Attr *attr) {
    bool mask = f->kind == ATTR_AXES;
    if (expr->kind != AST_LIST || (!mask && expr->nkid != n)) {
        return mask ? dump_error(r, expr->loc, 825, "a list of axes is needed here")
                    : dump_error(r, expr->loc, 817, "a list of %d integers is needed here", n);
    }
    int64_t most = f->kind == ATTR_LIST ? (int64_t)1 << 40 : MD_RANK - 1, x;
    for (int k = 0; k < expr->nkid; k++) {
        if (!dump_int(r, expr->kid[k], 0, most, &x)) {
            return false;
        }
        attr_set(f, attr, mask ? (int)x : k, mask ? 1 : x);
    }
    return true;
}

static bool read_field(DumpRead *r, const AttrField *f, const Ast *expr, Line *line) {
    Attr *attr = &line->attr;
    int64_t x = 0, far = (int64_t)1 << 40;
    uint64_t site;
    double number;
    bool flag, ok = true;
    int word = 0, axes = f->of == OF_RESULT  ? line->type.rank
                         : f->of < line->nin ? line->in[f->of]->type->rank
                                             : 0;
    switch (f->kind) {
    case ATTR_INT: ok = dump_int(r, expr, 0, INT32_MAX, &x); break;
    case ATTR_INT64: ok = dump_int(r, expr, -far, far, &x); break;
    case ATTR_SITE:
        ok = dump_site(r, expr, &site);
        x = ok ? (int64_t)site : 0;
        break;
    case ATTR_BOOL:
        ok = dump_flag(r, expr, &flag);
        x = flag;
        break;
    case ATTR_BORDER:
    case ATTR_DIST:
        ok = dump_word(r, expr, f->kind == ATTR_BORDER ? border_words : dist_words, &word);
        x = word;
        break;
    case ATTR_NUMBER:
        ok = dump_number(r, expr, &number);
        if (ok) {
            attr_set_number(f, attr, number);
        }
        return ok;
    case ATTR_LABELS: return read_labels(r, f, expr, axes, attr);
    case ATTR_AXES:
    case ATTR_LIST:
    case ATTR_MAP: return read_list(r, f, expr, axes, attr);
    }
    if (ok) {
        attr_set(f, attr, 0, x);
    }
    return ok;
}

/* The attributes of the op by name, and `name`. */
static bool read_fields(DumpArgs *args, Line *line) {
    for (int i = 0; i < nattr_fields; i++) {
        const AttrField *f = &attr_fields[i];
        const Ast *expr = f->op == line->op ? dump_named(args, f->name) : NULL;
        if (expr && !read_field(args->r, f, expr, line)) {
            return false;
        }
    }
    return dump_named_name(args, "name", true, &line->name);
}

/* --- leaves ----------------------------------------------------------------------------------- */

static bool read_const(DumpRead *r, const Ast *expr, Line *line) {
    Elem elem = line->type.elem;
    if (elem == TY_BOOL) {
        bool flag;
        bool ok = dump_flag(r, expr, &flag);
        line->attr.value = ok && flag;
        return ok;
    }
    if (!elem_is_int(elem)) {
        return dump_number(r, expr, &line->attr.value);
    }
    int64_t least, most;
    elem_range(elem, &least, &most);
    return dump_int(r, expr, least, most, &line->attr.ivalue);
}

static bool read_table(DumpRead *r, const Ast *expr, Line *line) {
    static const double none;
    int64_t count = type_count(line->type);
    line->attr.data = &none;
    if (!expr) {
        return count == 0 || dump_error(r, line->loc, 826, "a table needs its numbers");
    }
    for (int i = 0; i < r->table.count; i++) {
        const RawTable *table = &r->table.at[i];
        if (expr->kind != AST_NAME || !str_eq(table->name, expr->name)) {
            continue;
        }
        if (table->count != count) {
            return dump_error(r, expr->loc, 827, "'%s' has %lld numbers, but %lld are needed",
                              table->name, (long long)table->count, (long long)count);
        }
        for (int64_t k = 0; k < count && !elem_is_float(line->type.elem); k++) {
            double x = table->data[k];
            if (!(x >= -0x1p63 && x < 0x1p63 && x == (double)(int64_t)x)) {
                return dump_error(r, expr->loc, 828, "number %lld of '%s' is no integer",
                                  (long long)k, table->name);
            }
        }
        line->attr.data = table->data;
        return true;
    }
    return dump_error(r, expr->loc, 829, "the name of a 'const' is needed here");
}

static bool make_param(Block *b, DumpArgs *args, Line *line, Node **made) {
    DumpRead *r = b->r;
    const Ast *expr = dump_next(args);
    int k = 0;
    while (k < b->nparam &&
           !(expr && expr->kind == AST_NAME && str_eq(b->param[k].name, expr->name))) {
        k++;
    }
    if (!expr || k == b->nparam) {
        return dump_error(r, expr ? expr->loc : line->loc, 830,
                          "a parameter of the body is needed here");
    }
    Region *region = r->g->region;
    if (region->param.at[k]) {
        return dump_error(r, expr->loc, 831, "'%s' has a line above", b->param[k].name);
    }
    if (!type_equal(line->type, b->param[k].type)) {
        return dump_error(r, line->loc, 832, "'%s' has another type", b->param[k].name);
    }
    line->attr.axis = k;
    *made = graph_append(r->g, OP_BODY_PARAM, NULL, 0, &line->attr, NULL, line->type);
    region->param.at[k] = *made;
    return true;
}

/* --- bodies ----------------------------------------------------------------------------------- */

/* A body with its parameters and results; NULL after an error. */
static Region *read_body(DumpRead *r, const Ast *ast, const RawParam *param, int nparam) {
    Graph *g = r->g;
    DumpNames names = {0};
    if (++r->depth > BODY_DEPTH) {
        dump_error(r, ast->loc, 854, "nested too deeply: more than %d bodies", BODY_DEPTH);
        return NULL;
    }
    Region *body = region_new(g, g->region);
    for (int k = 0; k < nparam; k++) {
        VEC_PUSH(g->arena, &body->param, NULL);
    }
    Region *before = graph_enter(g, body);
    bool ok = read_block(r, ast, param, nparam, &names);
    graph_leave(g, before);
    for (int k = 0; ok && k < nparam; k++) {
        if (!body->param.at[k]) {
            ok = dump_error(r, param[k].loc, 833, "'%s' has no line: n0: type = core.param(%s);",
                            param[k].name, param[k].name);
        }
    }
    for (int k = 0; ok && names.result && k < names.result->nkid; k++) {
        Node *node = dump_value(r, &names, names.result->kid[k]);
        ok = node != NULL;
        if (ok && node->type->elem == TY_TUPLE) {
            ok = dump_error(r, names.result->kid[k]->loc, 834, "a loop is read through core.pick");
        }
        if (ok) {
            region_result(body, node);
        }
    }
    r->depth--;
    return ok ? body : NULL;
}

static RawBody *find_body(DumpRead *r, const Ast *expr, Loc loc) {
    for (int i = 0; expr && expr->kind == AST_NAME && i < r->body.count; i++) {
        RawBody *body = &r->body.at[i];
        if (!str_eq(body->ast->name, expr->name)) {
            continue;
        }
        if (body->used) {
            dump_error(r, expr->loc, 835, "the body '%s' is used already", expr->name);
            return NULL;
        }
        body->used = true;
        return body;
    }
    dump_error(r, expr ? expr->loc : loc, 836, "'body' is the name of an 'op' of this file");
    return NULL;
}

static bool make_custom(DumpRead *r, DumpArgs *args, Line *line, Node **made) {
    const RawBody *item = find_body(r, dump_named(args, "body"), line->loc);
    if (!item) {
        return false;
    }
    const Ast *list = item->ast->kid[0], *block = item->ast->kid[2];
    RawParam *param = ARENA_ARRAY(r->arena, RawParam, list->nkid + 1);
    for (int k = 0; k < list->nkid; k++) {
        const Ast *decl = list->kid[k];
        param[k] = (RawParam){.name = decl->name, .loc = decl->loc};
        if (!dump_value_type(r, decl->kid[0], &param[k].type)) {
            return false;
        }
    }
    Region *body = read_body(r, block, param, list->nkid);
    if (!body) {
        return false;
    }
    const char *fault;
    Type type = shape_check(OP_CUSTOM, line->in, line->nin, &line->attr, body, line->type, &fault);
    if (fault || !type_equal(type, line->type)) {
        return dump_error(r, line->loc, 837, "core.custom: %s", fault ? fault : "result type");
    }
    r->g->loc = line->loc;
    *made = node_custom(r->g, line->in[0], line->in + 1, line->nin - 1, body);
    return true;
}

static Type slice_of(Type t) {
    return type_make(t.elem, t.rank - 1, t.dim + 1);
}

/* The operands of a loop stand in its `carry`, behind the index. */
static bool loop_operands(Block *b, const Ast *carry, Line *line, RawParam *param) {
    DumpRead *r = b->r;
    for (int k = 0; k < carry->nkid; k++) {
        const Ast *var = carry->kid[k];
        param[k] = (RawParam){.name = var->name, .type = type_scalar(TY_I32), .loc = var->loc};
        if (!var->kid[0] != (k == 0)) {
            return dump_error(r, var->loc, 838,
                              "'carry' holds the index, then operands: carry p0, p1 = n4");
        }
        for (int i = 0; i < k; i++) {
            if (str_eq(param[i].name, var->name)) {
                return dump_error(r, var->loc, 839, "'%s' stands here twice", var->name);
            }
        }
        if (k == 0) {
            continue;
        }
        Node *node = dump_value(r, b->names, var->kid[0]);
        if (!node) {
            return false;
        }
        param[k].type = *node->type;
        bool stack = k - 1 >= line->attr.ncarry + (int64_t)line->attr.ninv;
        if (node->type->elem == TY_TUPLE || (stack && node->type->rank == 0)) {
            return dump_error(r, var->loc, 840, "this is no operand of a loop");
        }
        if (stack) {
            param[k].type = slice_of(*node->type);
        }
        line->in[line->nin++] = node;
    }
    return true;
}

static bool read_loop(Block *b, const Ast *ast) {
    DumpRead *r = b->r;
    const Ast *mark = ast->nattr == 1 ? ast->attr[0] : NULL, *carry = ast->kid[1];
    if (!mark || !str_eq(mark->name, "loop")) {
        return dump_error(r, ast->loc, 841, "a loop of a dumped graph stands behind '@loop(n7)'");
    }
    DumpArgs args = dump_args(r, mark->nkid > 0 ? mark->kid[0] : NULL, mark->loc);
    const Ast *word = dump_next(&args);
    Line line = {.op = OP_LOOP, .loc = ast->loc};
    if (!word || word->kind != AST_NAME) {
        return dump_error(r, mark->loc, 842, "'@loop' names the loop: @loop(n7)");
    }
    RawParam *param = ARENA_ARRAY(r->arena, RawParam, carry->nkid);
    line.in = ARENA_ARRAY(r->arena, Node *, carry->nkid);
    if (!read_fields(&args, &line) || !dump_done(&args) ||
        !dump_int(r, ast->kid[0], 0, INT32_MAX, &line.attr.trip) ||
        !loop_operands(b, carry, &line, param)) {
        return false;
    }
    Region *body = read_body(r, ast->kid[2], param, carry->nkid);
    if (!body) {
        return false;
    }
    int64_t nxs = line.nin - (int64_t)line.attr.ncarry - line.attr.ninv;
    if (nxs < 0 || body->out.count < line.attr.ncarry) {
        return dump_error(r, mark->loc, 843, "the loop has fewer operands or results than carries");
    }
    line.attr.nxs = (int)nxs;
    line.attr.nys = body->out.count - line.attr.ncarry;
    const char *fault;
    Type type = type_scalar(TY_TUPLE);
    type = shape_check(OP_LOOP, line.in, line.nin, &line.attr, body, type, &fault);
    if (fault) {
        return dump_error(r, ast->loc, 844, "loop: %s", fault);
    }
    r->g->loc = ast->loc;
    Node *node = graph_append(r->g, OP_LOOP, line.in, line.nin, &line.attr, body, type);
    node->name = line.name;
    return name_add(r, b->names, word->name, word->loc, node);
}

/* --- lines ------------------------------------------------------------------------------------ */

static bool find_op(DumpRead *r, const Ast *expr, const char *name, OpCode *op) {
    Nearest n = nearest_start(name);
    for (int i = 0; i < OP_COUNT; i++) {
        if (str_eq(op_info[i].name, name) && i != OP_LOOP) {
            *op = (OpCode)i;
            return true;
        }
        nearest_add(&n, op_info[i].name);
    }
    dump_error(r, expr->loc, 845, "there is no operation 'core.%s'", name);
    if (n.best) {
        diag_hint(&r->c->diag, "did you mean '%s'?", n.best);
    }
    return false;
}

static bool read_operands(Block *b, DumpArgs *args, Line *line) {
    int most = args->list ? args->list->nkid : 0;
    const Ast *expr;
    line->in = ARENA_ARRAY(b->r->arena, Node *, most + 1);
    while ((expr = dump_next(args))) {
        Node *node = dump_value(b->r, b->names, expr);
        if (!node) {
            return false;
        }
        if (node->type->elem == TY_TUPLE && line->op != OP_PICK) {
            return dump_error(b->r, expr->loc, 834, "a loop is read through core.pick");
        }
        line->in[line->nin++] = node;
    }
    return true;
}

static bool make_slot(DumpRead *r, const Ast *expr, Line *line, Node **made) {
    if (r->g->region->up) {
        return dump_error(r, line->loc, 846, "a body reads no slot; give it what it needs");
    }
    Slot *slot = expr ? dump_slot(r, expr) : NULL;
    if (!slot) {
        return expr ? false
                    : dump_error(r, line->loc, 822,
                                 "the name of an input or a \"slot\" is needed here");
    }
    if (!type_equal(slot_value_type(slot), line->type)) {
        return dump_error(r, line->loc, 847, "slot '%s' has another type", slot->name);
    }
    *made = node_slot(r->g, slot);
    return true;
}

static bool make_node(DumpRead *r, Line *line, Node **made) {
    const char *fault, *op = op_info[line->op].name;
    Type type = shape_check(line->op, line->in, line->nin, &line->attr, NULL, line->type, &fault);
    if (fault) {
        return dump_error(r, line->loc, 848, "core.%s: %s", op, fault);
    }
    if (!type_equal(type, line->type)) {
        return dump_error(r, line->loc, 849, "core.%s gives another type than is written here", op);
    }
    r->g->loc = line->loc;
    *made = graph_add(r->g, line->op, line->in, line->nin, &line->attr, line->type);
    return true;
}

static bool read_line(Block *b, const Ast *ast) {
    DumpRead *r = b->r;
    const char *name;
    DumpArgs args;
    Line line = {.loc = ast->loc};
    Node *node = NULL;
    if (ast->kid[1]) {
        return dump_error(r, ast->kid[1]->loc, 850, "a value of a graph has no range");
    }
    if (!dump_value_type(r, ast->kid[0], &line.type) || !dump_call(r, ast->kid[2], &name, &args) ||
        !find_op(r, ast->kid[2], name, &line.op)) {
        return false;
    }
    bool ok;
    if (line.op == OP_BODY_PARAM) {
        ok = read_fields(&args, &line) && make_param(b, &args, &line, &node);
    } else if (line.op == OP_SLOT) {
        ok = read_fields(&args, &line) && make_slot(r, dump_next(&args), &line, &node);
    } else if (line.op == OP_CONST) {
        const Ast *expr = dump_next(&args);
        ok = !expr ? dump_error(r, line.loc, 851, "a constant needs its value")
                   : read_const(r, expr, &line) && read_fields(&args, &line) &&
                         make_node(r, &line, &node);
    } else if (line.op == OP_TABLE) {
        ok = read_table(r, dump_next(&args), &line) && read_fields(&args, &line) &&
             make_node(r, &line, &node);
    } else if (line.op == OP_CUSTOM) {
        ok = read_operands(b, &args, &line) && read_fields(&args, &line) &&
             make_custom(r, &args, &line, &node);
    } else {
        ok = read_operands(b, &args, &line) && read_fields(&args, &line) &&
             make_node(r, &line, &node);
    }
    if (!ok || !dump_done(&args)) {
        return false;
    }
    if (line.name && (!node->name || line.op == OP_SLOT)) {
        node->name = line.name;
    }
    return name_add(r, b->names, ast->name, ast->loc, node);
}

static bool read_block(DumpRead *r, const Ast *block, const RawParam *param, int nparam,
                       DumpNames *names) {
    Block b = {r, names, param, nparam};
    for (int i = 0; i < block->nkid; i++) {
        const Ast *ast = block->kid[i];
        bool ok = true;
        if (names->result) {
            ok = dump_error(r, ast->loc, 852, "nothing stands behind 'return'");
        } else if (ast->kind == AST_DATA_FIELD) {
            r->g->loc = ast->loc;
            ok = read_line(&b, ast);
        } else if (ast->kind == AST_SCAN) {
            ok = read_loop(&b, ast);
        } else if (ast->kind == AST_RETURN) {
            names->result = ast;
        } else {
            ok = dump_error(r, ast->loc, 853,
                            "a dumped graph holds lines 'n2: f32 = core.add(n0, n1);', loops and "
                            "one 'return'");
        }
        if (!ok) {
            return false;
        }
    }
    return true;
}

bool dump_region(DumpRead *r, Entry *entry, const Ast *block, DumpNames *names) {
    *names = (DumpNames){0};
    r->at = entry;
    Region *before = graph_enter(r->g, entry->region);
    bool ok = read_block(r, block, NULL, 0, names);
    graph_leave(r->g, before);
    return ok;
}
