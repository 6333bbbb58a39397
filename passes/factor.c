/* factor: sums of loops whose terms differ by what is the same in every turn, as one sum.
 *
 * The adjoint of a loop adds up what each turn gives to the cotangents of what all turns read. Of
 * v * tanh'(x) * s those by tanh' and by s are q * s and q * tanh', with q of the turn: two arrays
 * that go to memory and come back in every turn, where one of q is enough. So a carry whose next
 * value is itself plus a product of values of the turn and values that all turns share is split
 * into both, and carries with equal values of the turn become one.
 *
 * The region is a copy of the pass's own, so it is changed in place; a last rebuild leaves behind
 * what nobody reads. Carries that have no partner stay as they are. Needs and gives: see
 * factor.h. */
#include "passes/factor.h"

enum { LEAVES = 16 };

/* What a carry adds up: the product of `turn`, in the order of ids, and `shared`. */
typedef struct {
    int carry, nturn, nshared;
    Node *turn[LEAVES];   /* of the body */
    Node *shared[LEAVES]; /* of the body, the same in every turn */
    int minus;            /* how often its sign changes */
} Term;

/* Does the carry begin with zeros of more than one element? */
static bool sums_up(const Node *loop, int carry) {
    const Node *start = loop->in[carry];
    return elem_is_float(start->type->elem) && node_is_zero(start) && type_count(*start->type) > 1;
}

/* --- what is the same in every turn ----------------------------------------------------------- */

static bool is_shared(const Node *loop, const Node *n) {
    const Attr *a = loop->attr;
    while (op_info[n->op].cls == CLASS_VIEW && n->nin == 1) {
        n = n->in[0];
    }
    return n->op == OP_CONST || (n->op == OP_BODY_PARAM && n->attr->axis > a->ncarry &&
                                 n->attr->axis <= a->ncarry + a->ninv);
}

/* A shared value in the region around the loop, which is the current one. */
static Node *around(Graph *g, const Node *loop, const Node *n) {
    if (n->op == OP_BODY_PARAM) {
        return loop->in[n->attr->axis - 1];
    }
    Node *in = n->nin > 0 ? around(g, loop, n->in[0]) : NULL;
    return graph_copy(g, n, &in);
}

/* --- terms ------------------------------------------------------------------------------------ */

static bool add_leaf(const Node *loop, Term *t, Node *n) {
    bool shared = is_shared(loop, n);
    int *count = shared ? &t->nshared : &t->nturn;
    Node **to = shared ? t->shared : t->turn;
    if (*count == LEAVES) {
        return false;
    }
    int at = (*count)++;
    for (; at > 0 && to[at - 1]->id > n->id; at--) {
        to[at] = to[at - 1];
    }
    to[at] = n;
    return true;
}

static bool split(const Node *loop, Term *t, Node *n) {
    if (n->op == OP_MUL && !is_shared(loop, n)) {
        return split(loop, t, n->in[0]) && split(loop, t, n->in[1]);
    }
    if (n->op == OP_NEG) {
        t->minus++;
        return split(loop, t, n->in[0]);
    }
    return add_leaf(loop, t, n);
}

/* The term of a carry that is read by its own sum alone. */
static bool find_term(const Node *loop, int carry, const int *readers, Term *t) {
    const Node *param = loop->body->param.at[1 + carry], *next = loop->body->out.at[carry];
    *t = (Term){.carry = carry};
    if (next->op != OP_ADD || readers[next->id] != 1 || readers[param->id] != 1 ||
        !sums_up(loop, carry) || next->in[0] == next->in[1]) {
        return false;
    }
    int at = next->in[0] == param ? 1 : next->in[1] == param ? 0 : -1;
    return at >= 0 && split(loop, t, next->in[at]) && t->nturn > 0;
}

static bool same_turn(const Term *a, const Term *b) {
    bool same = a->nturn == b->nturn;
    for (int i = 0; same && i < a->nturn; i++) {
        same = a->turn[i] == b->turn[i];
    }
    return same;
}

/* --- what is done ----------------------------------------------------------------------------- */

static Node *find_pick(const Node *loop, int carry) {
    const Region *region = loop->region;
    for (int i = (int)loop->id + 1; i < region->node.count; i++) {
        Node *n = region->node.at[i];
        if (n->op == OP_PICK && n->in[0] == loop && n->attr->axis == carry) {
            return n;
        }
    }
    return NULL;
}

static void add_up(Graph *g, Node *loop, const Term *t) {
    Region *body = loop->body, *before = graph_enter(g, body);
    Node *next = body->out.at[t->carry], *product = t->turn[0];
    g->loc = next->loc;
    for (int i = 1; i < t->nturn; i++) {
        product = node_map2(g, OP_MUL, product, t->turn[i]);
    }
    body->out.at[t->carry] = node_map2(g, OP_ADD, body->param.at[1 + t->carry], product);
    graph_leave(g, before);
}

/* What the carry of the term is behind the loop, of the sum. */
static Node *behind(Graph *g, const Node *loop, Node *sum, const Term *t) {
    for (int i = 0; i < t->nshared; i++) {
        sum = node_map2(g, OP_MUL, sum, around(g, loop, t->shared[i]));
    }
    return t->minus % 2 ? node_map1(g, OP_NEG, sum) : sum;
}

static int *count_readers(const Region *region, Arena *scratch) {
    int *readers = ARENA_ARRAY(scratch, int, region->node.count + 1);
    for (int i = 0; i < region->node.count; i++) {
        for (int k = 0; k < region->node.at[i]->nin; k++) {
            readers[region->node.at[i]->in[k]->id]++;
        }
    }
    for (int k = 0; k < region->out.count; k++) {
        readers[region->out.at[k]->id]++;
    }
    return readers;
}

/* Notes in stands[] what the last values of carries that become one are read as. */
static bool factor_loop(Graph *g, Node *loop, Node **stands, Arena *scratch) {
    const int ncarry = loop->attr->ncarry;
    const int *readers = count_readers(loop->body, scratch);
    Term *term = ARENA_ARRAY(scratch, Term, ncarry + 1);
    bool *found = ARENA_ARRAY(scratch, bool, ncarry + 1), any = false;
    for (int k = 0; k < ncarry; k++) {
        found[k] = find_term(loop, k, readers, &term[k]) && find_pick(loop, k);
    }
    for (int k = 0; k < ncarry; k++) {
        Node *sum = NULL;
        for (int other = k + 1; found[k] && other < ncarry; other++) {
            if (found[other] && same_turn(&term[k], &term[other])) {
                Node *pick = find_pick(loop, other);
                sum = find_pick(loop, k);
                stands[pick->id] = behind(g, loop, sum, &term[other]);
                found[other] = false;
            }
        }
        if (sum) {
            stands[sum->id] = behind(g, loop, sum, &term[k]);
            add_up(g, loop, &term[k]);
            region_settle(loop->body);
            any = true;
        }
    }
    return any;
}

static void factor_region(Graph *g, Region *region) {
    Arena scratch = {0};
    const int count = region->node.count;
    Node **stands = ARENA_ARRAY(&scratch, Node *, count + 1);
    bool any = false;
    Region *before = graph_enter(g, region);
    for (int i = 0; i < count; i++) {
        Node *n = region->node.at[i];
        if (n->body) {
            factor_region(g, n->body);
        }
        if (n->op == OP_LOOP && !loop_ends_itself(n->attr)) {
            any = factor_loop(g, n, stands, &scratch) || any;
        }
    }
    graph_leave(g, before);
    if (any) {
        region_read_instead(region, stands, count, count);
        region_settle(region);
    }
    arena_free(&scratch);
}

static bool has_sums(const Node *n) {
    int sums = 0;
    for (int k = 0; n->op == OP_LOOP && k < n->attr->ncarry; k++) {
        sums += sums_up(n, k);
    }
    return sums > 1;
}

bool factor_applies(const Region *region) {
    return region_any(region, has_sums);
}

Region *pass_factor(Graph *g, const Region *region) {
    return region_changed(g, region, factor_region);
}
