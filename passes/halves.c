/* halves: see the header. What is rounded or stored so is one, and so is what picks, moves or
 * compares such values. Stacks of loops and their slices are what the body emits; carries are taken
 * for f32.
 * Needs any region, changes nothing. */
#include "passes/halves.h"

#include "compiler/eval_rule.h"

typedef struct {
    const Region *region;
    bool *half; /* by node id */
} Known;

struct Halves {
    Arena *arena;
    Elem elem;
    VEC(Known) known;
};

static const bool *known_of(const Halves *h, const Region *region) {
    for (int i = 0; i < h->known.count; i++) {
        if (h->known.at[i].region == region) {
            return h->known.at[i].half;
        }
    }
    return NULL;
}

/* A slice of a stack that goes into the loop, or what is the same in all iterations. */
static bool param_holds(const Halves *h, const Node *param) {
    const Node *loop = param->region->owner;
    int k = param->attr->axis;
    if (!loop || loop->op != OP_LOOP || k <= loop->attr->ncarry) {
        return false;
    }
    return halves_hold(h, loop->in[k - 1]);
}

/* Stack `axis` of a loop. */
static bool pick_holds(const Halves *h, const Node *n) {
    const Node *loop = n->in[0];
    const bool *body = loop->op == OP_LOOP ? known_of(h, loop->body) : NULL;
    int k = n->attr->axis;
    return body && k >= loop->attr->ncarry && body[loop->body->out.at[k]->id];
}

static bool is_short(const Halves *h, double value) {
    return num_round(h->elem, value) == value;
}

/* Operands whose elements, and those alone, an op gives; its own value stands in a border. */
typedef enum { FROM_NONE, FROM_ALL, FROM_FIRST, FROM_CHOICES, FROM_BORDER } From;
static const From from[OP_COUNT] = {
    [OP_RESHAPE] = FROM_ALL,   [OP_PERMUTE] = FROM_ALL,  [OP_SLICE] = FROM_ALL,
    [OP_FLIP] = FROM_ALL,      [OP_CONCAT] = FROM_ALL,   [OP_BROADCAST] = FROM_ALL,
    [OP_NEG] = FROM_ALL,       [OP_AGAIN] = FROM_ALL,    [OP_ABS] = FROM_ALL,
    [OP_MIN] = FROM_ALL,       [OP_MAX] = FROM_ALL,      [OP_PAD] = FROM_BORDER,
    [OP_WINDOW] = FROM_BORDER, [OP_GATHER] = FROM_FIRST, [OP_SELECT] = FROM_CHOICES};

static bool holds(const Halves *h, const Node *n, const bool *half) {
    if (n->op == OP_CONST) {
        return is_short(h, n->attr->value);
    }
    if (n->op == OP_SLOT) {
        return n->attr->slot->type.elem == h->elem;
    }
    if (n->op == OP_BODY_PARAM || n->op == OP_PICK) {
        return n->op == OP_PICK ? pick_holds(h, n) : param_holds(h, n);
    }
    From which = from[n->op];
    bool all = which != FROM_NONE && (which != FROM_BORDER || is_short(h, n->attr->value));
    for (int k = which == FROM_CHOICES; all && k < (which == FROM_FIRST ? 1 : n->nin); k++) {
        all = half[n->in[k]->id];
    }
    return all || op_gives(n->op) == h->elem;
}

static void look_at(Halves *h, const Region *region) {
    bool *half = ARENA_ARRAY(h->arena, bool, region->node.count + 1);
    Known known = {region, half};
    VEC_PUSH(h->arena, &h->known, known);
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        half[i] = n->type->elem == TY_F32 && holds(h, n, half);
        if (n->op == OP_LOOP) {
            look_at(h, n->body);
        }
    }
}

Halves *halves_new(Arena *arena, const Region *region, Elem elem) {
    Halves *h = ARENA_NEW(arena, Halves);
    h->arena = arena;
    h->elem = elem;
    look_at(h, region);
    return h;
}

Elem halves_elem(const Halves *h) {
    return h->elem;
}

bool halves_hold(const Halves *h, const Node *node) {
    const bool *half = known_of(h, node->region);
    return half && half[node->id];
}
