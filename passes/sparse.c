/* sparse: see the header. Rows are chosen by data where the index comes from a slot or a draw:
 * those of an upsampling are known numbers, and reach every row. What is added to the sum, also
 * through a carry and behind the loop, must be such a sum too: the gradient of a table that is a
 * weight as well is not. Needs the graph that is lowered; changes nothing. */
#include "passes/sparse.h"

#include "compiler/base.h"

typedef struct {
    const Region *of;
    bool *seen; /* by Node.id of `of` */
    Arena arena;
} Walk;

/* What a parameter of a body is in the region around it; NULL: the index of the loop. */
static const Node *outside(const Node *param) {
    int k = param->attr->axis - 1;
    const Node *owner = param->region->owner;
    return k >= 0 && owner != NULL && k < owner->nin ? owner->in[k] : NULL;
}

static bool is_carry(const Node *param) {
    const Node *owner = param->region->owner;
    int k = param->attr->axis - 1;
    return param->op == OP_BODY_PARAM && owner != NULL && owner->op == OP_LOOP && k >= 0 &&
           k < owner->attr->ncarry;
}

static bool from_data(Walk *w, const Node *node) {
    if (node->op == OP_SLOT || node->op == OP_RANDOM || node->op == OP_PICK || is_carry(node)) {
        return true;
    }
    if (node->op == OP_BODY_PARAM) {
        const Node *given = outside(node);
        Walk up = {.of = given != NULL ? given->region : NULL};
        if (given == NULL) {
            return false;
        }
        up.seen = ARENA_ARRAY(&up.arena, bool, up.of->node.count + 1);
        bool data = from_data(&up, given);
        arena_free(&up.arena);
        return data;
    }
    if (w->seen[node->id]) {
        return false;
    }
    w->seen[node->id] = true;
    for (int i = 0; i < node->nin; i++) {
        if (from_data(w, node->in[i])) {
            return true;
        }
    }
    return false;
}

/* A sum with no more rows than are added has none to spare. */
static bool is_lookup(const Node *node) {
    if (node->op != OP_SCATTER_ADD ||
        node->type->dim[node->attr->batch] <= type_count(*node->in[1]->type)) {
        return false;
    }
    Walk w = {.of = node->region};
    w.seen = ARENA_ARRAY(&w.arena, bool, w.of->node.count + 1);
    bool data = from_data(&w, node->in[1]);
    arena_free(&w.arena);
    return data;
}

/* A decay of 0 times the table is one too. */
static bool is_zero(const Node *node) {
    while (node->op == OP_BROADCAST || node->op == OP_RESHAPE) {
        node = node->in[0];
    }
    if (node->op == OP_MUL) {
        return is_zero(node->in[0]) || is_zero(node->in[1]);
    }
    return node->op == OP_CONST && node->attr->value == 0 && node->attr->ivalue == 0;
}

/* Zero but in rows of lookups. A carry is what it begins as and what is added to it, and that is
 * looked at where it is added. */
static bool is_sum_of_lookups(const Node *node, int depth) {
    if (depth == 0) {
        return false;
    }
    if (node->op == OP_RESHAPE || node->op == OP_PERMUTE) {
        return is_sum_of_lookups(node->in[0], depth - 1);
    }
    if (node->op == OP_ADD) {
        return is_sum_of_lookups(node->in[0], depth - 1) &&
               is_sum_of_lookups(node->in[1], depth - 1);
    }
    if (node->op == OP_BODY_PARAM) {
        return is_carry(node) && is_sum_of_lookups(outside(node), depth - 1);
    }
    if (node->op == OP_PICK) {
        const Node *loop = node->in[0];
        int k = node->attr->axis;
        return k < loop->attr->ncarry && is_sum_of_lookups(loop->body->out.at[k], depth - 1);
    }
    return is_zero(node) || is_lookup(node);
}

/* Does it depend on parameters and states alone? Notes whether on a state. */
static bool is_of_slots(Walk *w, const Node *node, bool *state) {
    if (node->op == OP_SLOT) {
        *state = *state || node->attr->slot->kind == SLOT_STATE;
        return node->attr->slot->kind != SLOT_INPUT;
    }
    if (node->op == OP_PICK || node->op == OP_BODY_PARAM || node->op == OP_RANDOM) {
        return false;
    }
    for (int i = 0; i < node->nin && !w->seen[node->id]; i++) {
        if (!is_of_slots(w, node->in[i], state)) {
            return false;
        }
    }
    w->seen[node->id] = true;
    return true;
}

/* What a node adds to another operand: one that is added, or the factors of an OP_FMA. */
typedef struct {
    Node *const *factor;
    int n;
} Term;

/* The term that stands beside `node` in a sum; none where `user` is no sum of it. */
static Term beside(const Node *user, const Node *node) {
    if (user->op == OP_FMA && user->in[2] == node) {
        return (Term){user->in, 2};
    }
    int k = user->op == OP_ADD ? user->in[0] == node : 0;
    return (Term){&user->in[k], user->op == OP_ADD};
}

static bool is_lookups(Term t, int depth) {
    return t.n == 1 ? is_sum_of_lookups(t.factor[0], depth)
                    : is_zero(t.factor[0]) || is_zero(t.factor[1]);
}

/* What an optimizer adds a gradient to: the parameter, or what is made of its states, such as
 * momentum and decay. A loss that adds to the gradient has no state in it. */
static bool is_update(Term t) {
    const Node *node = t.factor[0];
    while (t.n == 1 && (node->op == OP_RESHAPE || node->op == OP_PERMUTE)) {
        node = node->in[0];
    }
    if (t.n == 1 && node->op == OP_SLOT) {
        return node->attr->slot->kind != SLOT_INPUT;
    }
    bool state = false, slots = true;
    Walk w = {.of = node->region};
    w.seen = ARENA_ARRAY(&w.arena, bool, w.of->node.count + 1);
    for (int k = 0; slots && k < t.n; k++) {
        slots = is_of_slots(&w, t.factor[k], &state);
    }
    arena_free(&w.arena);
    return slots && state;
}

/* Nothing dense is added to `node` by whoever uses it. */
static bool stays_sparse(const Node *node, int depth) {
    const Region *region = node->region;
    if (depth == 0) {
        return false;
    }
    for (int i = 0; i < region->node.count; i++) {
        const Node *user = region->node.at[i];
        Term other = beside(user, node);
        if (!node_reads(user, node) ||
            (other.n == 0 && user->op != OP_RESHAPE && user->op != OP_PERMUTE)) {
            continue;
        }
        bool sum = other.n == 0 || is_lookups(other, depth - 1);
        if (!sum && !is_update(other)) {
            return false;
        }
        if (sum && !stays_sparse(user, depth - 1)) {
            return false;
        }
    }
    const Node *owner = region->owner;
    for (int k = 0; owner != NULL && owner->op == OP_LOOP && k < owner->attr->ncarry; k++) {
        for (int i = 0; region->out.at[k] == node && i < owner->region->node.count; i++) {
            const Node *pick = owner->region->node.at[i];
            if (pick->op == OP_PICK && pick->in[0] == owner && pick->attr->axis == k &&
                !stays_sparse(pick, depth - 1)) {
                return false;
            }
        }
    }
    return true;
}

bool scatter_is_sparse(const Node *node) {
    enum { DEPTH = 16 };
    return is_lookup(node) && stays_sparse(node, DEPTH);
}
