/* merge: see merge.h.
 *
 * Technique: a loop (the guest) that reads stacks of a loop of the same trip (its host) runs inside
 * of that. Without carries it does whichever way it goes: iteration i of both handles slice i
 * alone. With carries it goes the same way, and does so only where a stack goes away for it. What
 * else the guest reads must be there before the host runs, made of no loop behind it, so that no
 * two groups wait for each other. A slot that the guest reads will be overwritten by what it
 * computes, slice by slice: whoever else reads that slot must be able to come before the host, and
 * the host may read slices alone. Where a result that all writing waits for is made of the host,
 * and where stacks would take more than those that go away, all stays as it is.
 * A loop that makes again the products of a loop in front, of the same slices, and reads nothing
 * that is made of it (the adjoint of a loss by chunks of rows, whose cotangent is a number) is a
 * guest too: in one turn both are made once.
 * Needs and gives: see merge.h. */
#include "passes/merge.h"

#include <limits.h>

typedef struct {
    const Region *region;
    int *loop;   /* by node: the last LOOP that it is made of, or is; -1: none */
    int *reader; /* by node: the last node that reads it, also through what is no LOOP */
    int *first;  /* by node: where its readers begin in `user`; they end where the next one's do */
    int *user;
    int *host;    /* by LOOP that is a guest; else -1 */
    int *early;   /* by node: it comes before that LOOP; INT_MAX: it stays where it is */
    int awaits;   /* the last LOOP that an awaited result is made of */
    bool updates; /* what a guest makes may be written over a slot that it reads */
} Merge;

typedef struct {
    const bool *awaited;
    const Node *only; /* the one guest; NULL: all that fit */
    bool any;         /* something was merged */
} Pass;

static int larger(int a, int b) {
    return a > b ? a : b;
}

/* --- what is made of what --------------------------------------------------------------------- */

static void list_users(Merge *m, Arena *scratch) {
    const Region *region = m->region;
    int n = region->node.count, edges = 0;
    m->first = ARENA_ARRAY(scratch, int, n + 2);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < region->node.at[i]->nin; k++, edges++) {
            m->first[region->node.at[i]->in[k]->id + 2]++;
        }
    }
    for (int i = 0; i < n; i++) {
        m->first[i + 2] += m->first[i + 1];
    }
    m->user = ARENA_ARRAY(scratch, int, edges + 1);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < region->node.at[i]->nin; k++) {
            m->user[m->first[region->node.at[i]->in[k]->id + 1]++] = i;
        }
    }
}

static void survey(Merge *m, Arena *scratch, const bool *awaited) {
    const Region *region = m->region;
    int n = region->node.count;
    m->loop = ARENA_ARRAY(scratch, int, n);
    m->reader = ARENA_ARRAY(scratch, int, n);
    m->host = ARENA_ARRAY(scratch, int, n);
    m->early = ARENA_ARRAY(scratch, int, n);
    m->awaits = -1;
    list_users(m, scratch);
    for (int i = 0; i < n; i++) {
        const Node *node = region->node.at[i];
        m->loop[i] = node->op == OP_LOOP ? i : -1;
        m->reader[i] = m->host[i] = -1;
        m->early[i] = INT_MAX;
        for (int k = 0; k < node->nin; k++) {
            m->loop[i] = larger(m->loop[i], m->loop[node->in[k]->id]);
        }
    }
    for (int i = 0; i < region->out.count; i++) {
        int id = (int)region->out.at[i]->id;
        m->reader[id] = n;
        m->awaits = awaited && awaited[i] ? larger(m->awaits, m->loop[id]) : m->awaits;
    }
    for (int i = n - 1; i >= 0; i--) {
        const Node *node = region->node.at[i];
        int behind = node->op == OP_LOOP ? i : larger(i, m->reader[i]);
        for (int k = 0; k < node->nin; k++) {
            int *reader = &m->reader[node->in[k]->id];
            *reader = larger(*reader, behind);
        }
    }
}

/* --- guests ----------------------------------------------------------------------------------- */

/* Turns that run side by side stay a loop of their own. */
static bool runs_through(const Node *n) {
    return n->op == OP_LOOP && !loop_ends_itself(n->attr) && n->attr->trip > 0 && !n->attr->aside;
}

static bool reads_stack(const Node *loop, int k) {
    return k >= loop->attr->ncarry + loop->attr->ninv;
}

/* The LOOP that makes the stack which operand k of `loop` goes through; NULL: none does. */
static const Node *stack_maker(const Node *loop, int k) {
    const Node *x = loop->in[k], *maker = x->op == OP_PICK ? x->in[0] : NULL;
    return maker && reads_stack(loop, k) && x->attr->axis >= maker->attr->ncarry ? maker : NULL;
}

static int host_of(const Merge *m, const Node *loop) {
    return m->host[loop->id] >= 0 ? m->host[loop->id] : (int)loop->id;
}

/* The loop in whose body it could be; NULL: none. */
static const Node *find_host(const Merge *m, const Node *guest) {
    int host = -1;
    for (int k = 0; k < guest->nin; k++) {
        const Node *maker = stack_maker(guest, k);
        host = maker ? larger(host, host_of(m, maker)) : host;
    }
    const Node *found = host >= 0 ? m->region->node.at[host] : NULL;
    bool one = found && runs_through(found) && found->attr->trip == guest->attr->trip;
    return one && (guest->attr->ncarry == 0 || found->attr->reverse == guest->attr->reverse) ? found
                                                                                             : NULL;
}

static bool is_product_of(const Node *n, const Region *body) {
    bool found = false;
    for (int i = 0; n->op == OP_CONTRACT && i < body->node.count && !found; i++) {
        const Node *other = body->node.at[i];
        found = other->op == OP_CONTRACT && loc_equal(other->loc, n->loc) &&
                type_equal(*other->type, *n->type);
    }
    return found;
}

/* Does `guest` make a product of `loop` again? */
static bool makes_again(const Node *guest, const Node *loop) {
    bool again = false;
    for (int i = 0; i < guest->body->node.count && !again; i++) {
        again = is_product_of(guest->body->node.at[i], loop->body);
    }
    return again;
}

/* The loop in front without carries whose products it makes again of the same slices; NULL. */
static const Node *find_twin(const Merge *m, const Node *guest) {
    for (int k = guest->attr->ncarry + guest->attr->ninv; k < guest->nin; k++) {
        int x = (int)guest->in[k]->id;
        for (int i = m->first[x]; i < m->first[x + 1]; i++) {
            const Node *loop = m->region->node.at[m->user[i]];
            if (runs_through(loop) && loop->id < guest->id && m->host[loop->id] < 0 &&
                loop->attr->ncarry == 0 && loop->attr->trip == guest->attr->trip &&
                loop->attr->reverse == guest->attr->reverse && makes_again(guest, loop)) {
                return loop;
            }
        }
    }
    return NULL;
}

static bool in_group(const Merge *m, const Node *loop, const Node *guest, const Node *host) {
    return loop == guest || loop == host || m->host[loop->id] == (int)host->id;
}

static bool slices_alone(const Node *loop, const Node *x) {
    bool alone = true;
    for (int k = 0; k < loop->nin; k++) {
        alone = alone && (loop->in[k] != x || reads_stack(loop, k));
    }
    return alone;
}

static Type stack_type(const Node *loop, int k) {
    Type type = *loop->body->out.at[k]->type;
    for (int i = type.rank++; i > 0; i--) {
        type.dim[i] = type.dim[i - 1];
    }
    type.dim[0] = loop->attr->trip;
    return type;
}

/* May its bytes be overwritten by a stack of the guest, one of its type? Those of a body: where
 * they are a carry or a slice of a slot. The seed and the counter of steps, which draws of an
 * update read, are no stacks. */
static bool may_change(const Node *x, const Node *guest) {
    bool kept = x->op == OP_BODY_PARAM || (x->op == OP_SLOT && x->attr->slot->kind != SLOT_INPUT);
    bool same = false;
    for (int k = guest->attr->ncarry; kept && !same && k < guest->body->out.count; k++) {
        same = guest->body->out.at[k]->type->rank < MD_RANK &&
               type_equal(stack_type(guest, k), *x->type);
    }
    return same;
}

/* Can all others that read it come before the host? */
static bool can_change(const Merge *m, const Node *x, const Node *guest, const Node *host) {
    bool can = m->reader[x->id] < m->region->node.count;
    for (int i = m->first[x->id]; can && i < m->first[x->id + 1]; i++) {
        const Node *user = m->region->node.at[m->user[i]];
        if (user->op == OP_LOOP && in_group(m, user, guest, host)) {
            can = slices_alone(user, x);
        } else {
            int last = user->op == OP_LOOP ? (int)user->id : m->reader[user->id];
            can = last < (int)host->id;
        }
    }
    return can;
}

/* Is the stack read by the group alone? */
static bool goes_away(const Merge *m, const Node *stack, const Node *guest, const Node *host) {
    bool away = m->reader[stack->id] < m->region->node.count;
    for (int i = m->first[stack->id]; away && i < m->first[stack->id + 1]; i++) {
        const Node *user = m->region->node.at[m->user[i]];
        away = user->op == OP_LOOP && in_group(m, user, guest, host);
    }
    return away;
}

static bool fits(const Merge *m, const Node *guest, const Node *host, bool twin) {
    const int at = (int)host->id;
    int64_t more = 0;
    bool fit = true;
    for (int k = 0; k < guest->nin && fit; k++) {
        const Node *x = guest->in[k], *maker = stack_maker(guest, k);
        if (maker && host_of(m, maker) == at) {
            more -= goes_away(m, x, guest, host) ? type_bytes(*x->type) : 0;
            continue;
        }
        fit = m->loop[x->id] < at;
        if (m->updates && may_change(x, guest) &&
            (guest->attr->ncarry == 0 || reads_stack(guest, k))) {
            fit = fit && at > m->awaits && can_change(m, x, guest, host);
            more -= reads_stack(guest, k) ? type_bytes(*x->type) : 0;
        }
    }
    for (int k = guest->attr->ncarry; k < guest->body->out.count; k++) {
        more += guest->attr->trip * type_bytes(*guest->body->out.at[k]->type);
    }
    return fit && (twin || (guest->attr->ncarry == 0 ? more <= 0 : more < 0));
}

/* What it reads comes before its host. */
static void need_early(Merge *m, const Node *guest, const Node *host) {
    for (int k = 0; k < guest->nin; k++) {
        const Node *maker = stack_maker(guest, k);
        int x = (int)guest->in[k]->id, at = (int)host->id;
        if (!(maker && host_of(m, maker) == at) && x > at && at < m->early[x]) {
            m->early[x] = at;
        }
    }
}

/* --- a region --------------------------------------------------------------------------------- */

/* Each node behind its operands, and what is early directly in front of its loop. */
static const int *find_order(Merge *m, Arena *scratch) {
    int n = m->region->node.count, count = 0;
    int *order = ARENA_ARRAY(scratch, int, n + 1), *next = ARENA_ARRAY(scratch, int, n + 1);
    int *front = ARENA_ARRAY(scratch, int, n + 1); /* by LOOP: 1 + the first that is early for it */
    for (int i = n - 1; i >= 0; i--) {
        const Node *node = m->region->node.at[i];
        for (int k = 0; m->early[i] < INT_MAX && k < node->nin; k++) {
            int x = (int)node->in[k]->id;
            if (x > m->early[i] && m->early[i] < m->early[x]) {
                m->early[x] = m->early[i];
            }
        }
        if (m->early[i] < INT_MAX) {
            next[i] = front[m->early[i]];
            front[m->early[i]] = 1 + i;
        }
    }
    for (int i = 0; i < n; i++) {
        for (int k = front[i]; k > 0; k = next[k - 1]) {
            order[count++] = k - 1;
        }
        if (m->early[i] == INT_MAX) {
            order[count++] = i;
        }
    }
    return order;
}

static const LoopMerge *plan_merges(void *ctx, Arena *scratch, const Region *region) {
    Pass *pass = ctx;
    Merge m = {.region = region, .updates = !pass->only};
    int n = region->node.count, *next = ARENA_ARRAY(scratch, int, n + 1);
    int *last = ARENA_ARRAY(scratch, int, n + 1); /* by host: its last guest, 0: none */
    bool any = false;
    survey(&m, scratch, region->owner ? NULL : pass->awaited);
    for (int i = 0; i < n; i++) {
        const Node *guest = region->node.at[i], *host = NULL;
        bool twin = false;
        if (runs_through(guest) && (!pass->only || guest == pass->only)) {
            host = find_host(&m, guest);
            twin = !host;
            host = host ? host : find_twin(&m, guest);
        }
        if (host && fits(&m, guest, host, twin)) {
            need_early(&m, guest, host);
            m.host[i] = (int)host->id;
            next[last[host->id] > 0 ? last[host->id] : (int)host->id] = i;
            last[host->id] = i;
            any = true;
        }
    }
    if (!any) {
        return NULL;
    }
    LoopMerge *merge = ARENA_NEW(scratch, LoopMerge);
    *merge = (LoopMerge){find_order(&m, scratch), next};
    pass->any = true;
    return merge;
}

static bool is_guest(const Node *n) {
    bool found = false;
    for (int k = 0; runs_through(n) && k < n->nin; k++) {
        found = found || reads_stack(n, k);
    }
    return found;
}

bool merge_applies(const Region *region) {
    return region_any(region, is_guest);
}

Region *pass_merge(Graph *g, const Region *region, const bool *awaited) {
    Pass pass = {.awaited = awaited, .any = true};
    Region *fresh = NULL;
    while (pass.any) { /* loops inside loops that were merged */
        pass.any = false;
        fresh = region_rebuild_merged(g, region, plan_merges, &pass);
        region = pass.any ? region_rebuild(g, fresh, NULL, NULL) : fresh; /* without its stacks */
    }
    return fresh;
}

Region *pass_merge_one(Graph *g, const Region *region, const Node *guest) {
    Pass pass = {.only = guest};
    Region *fresh = region_rebuild_merged(g, region, plan_merges, &pass);
    return pass.any ? region_rebuild(g, fresh, NULL, NULL) : NULL; /* without its stacks */
}
