/* half: which values floats of 16 bits hold by the way they are made, for the front end, where such
 * a float is an element type: states, inputs and results store it, and what is read of them, what
 * was rounded (`bf16(x)`), and what moves the elements of such values is of that type. Needs nodes
 * of any region, also of loops that are being built; changes nothing. */
#include "compiler/graph.h"
#include "compiler/loop_builder.h"

/* Sets of such floats: a constant may be of both. HALF_SAID: not all of it are numbers that just
 * happen to be of the set. */
enum { NO_HALF = 0, HALF_BF16 = 1, HALF_F16 = 2, HALF_SAID = 4 };

static int half_set(Elem elem) {
    return elem == TY_BF16 ? HALF_BF16 : elem == TY_F16 ? HALF_F16 : NO_HALF;
}

static int half_said(Elem elem) {
    return half_set(elem) != NO_HALF ? half_set(elem) | HALF_SAID : NO_HALF;
}

static int sets_of_number(double x) {
    return (num_round(TY_BF16, x) == x ? HALF_BF16 : 0) |
           (num_round(TY_F16, x) == x ? HALF_F16 : 0);
}

/* More nodes than that are not looked at: `left` counts down. */
enum { LOOK_MOST = 1000 };

static int sets_of(const Node *node, int *left);

/* What a loop is given, or what it stacks; its carries may be any floats. */
static int sets_through_loop(const Node *node, int *left) {
    if (node->op == OP_PICK) {
        const Node *loop = node->in[0];
        bool stack = loop->op == OP_LOOP && node->attr->axis >= loop->attr->ncarry;
        return stack ? sets_of(loop->body->out.at[node->attr->axis], left) : NO_HALF;
    }
    const Node *outer = loop_stack_of(node), *loop = node->region->owner;
    if (!outer && node->region->loop) {
        outer = loop_captured(node->region->loop, node);
    } else if (!outer && loop && loop->op == OP_LOOP && node->attr->axis > loop->attr->ncarry) {
        outer = loop->in[node->attr->axis - 1];
    }
    return outer ? sets_of(outer, left) : NO_HALF;
}

static int sets_of(const Node *node, int *left) {
    OpClass cls = op_info[node->op].cls;
    if (--*left < 0) {
        return NO_HALF;
    }
    if (node->op == OP_CONST) {
        return sets_of_number(node->attr->value);
    }
    if (node->op == OP_SLOT || op_gives(node->op) != TY_ERROR) {
        /* Parameters are floats of the build in the text, whatever they are stored as. */
        bool param = node->op == OP_SLOT && node->attr->slot->kind == SLOT_PARAM;
        return param                 ? NO_HALF
               : node->op == OP_SLOT ? half_said(node->attr->slot->type.elem)
                                     : half_said(op_gives(node->op));
    }
    if (node->op == OP_BODY_PARAM || node->op == OP_PICK) {
        return sets_through_loop(node, left);
    }
    if (cls != CLASS_VIEW && cls != CLASS_PLACE && node->op != OP_GATHER) {
        return NO_HALF;
    }
    /* PAD and WINDOW may have a value around the elements. */
    bool border = cls == CLASS_VIEW && node->attr->border == BORDER_VALUE;
    int sets = border ? sets_of_number(node->attr->value) : HALF_BF16 | HALF_F16, said = 0;
    for (int k = 0; sets && k < (node->op == OP_GATHER ? 1 : node->nin); k++) {
        const int one = sets_of(node->in[k], left);
        sets &= one;
        said |= one & HALF_SAID;
    }
    return sets ? sets | said : NO_HALF;
}

static int sets(const Node *node) {
    int left = LOOK_MOST;
    return node->type->elem == TY_F32 ? sets_of(node, &left) : NO_HALF;
}

bool node_holds_half(const Node *node, Elem half) {
    return (sets(node) & half_set(half)) != 0;
}

Elem node_half(const Node *node) {
    int found = sets(node);
    return found == (HALF_BF16 | HALF_SAID)  ? TY_BF16
           : found == (HALF_F16 | HALF_SAID) ? TY_F16
                                             : TY_ERROR;
}
