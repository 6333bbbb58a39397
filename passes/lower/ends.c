/* ends: loops whose number of iterations the run decides.
 *
 * What such a loop looks at, and the last index that it leaves behind, are Bufs that its step
 * names. It writes a part of its stacks. Where all that reads one are loops with the same last
 * index, as the adjoint of the loop is, nobody sees the rest; else a step clears it. Needs the
 * homes of a frame; gives Step.go, last and made, and STEP_CLEAR. */
#include "passes/lower/build.h"

#include "compiler/loop_builder.h"

#include <string.h>

/* --- the last index --------------------------------------------------------------------------- */

/* Where memory holds the scalar as it is read in `f`; false: it is computed, or no slice that a
 * step can name. */
static bool find_home(Frame *f, const Node *node, Home *home) {
    const HomeList *homes = &f->home[node->id];
    if (node->op == OP_SLOT) {
        *home = (Home){.buf = slot_buf(f->l, node->attr->slot)};
        return true;
    }
    if (node->op == OP_PICK) {
        homes = &f->loops[node->in[0]->id].result[node->attr->axis];
    }
    if (node->op == OP_BODY_PARAM) {
        const Attr *a = f->node->attr;
        int k = node->attr->axis - 1;
        if (k < 0) {
            return false;
        }
        if (k >= a->ncarry) {
            bool stack = k >= a->ncarry + a->ninv;
            if (!find_home(f->up, f->node->in[k], home) ||
                (stack && home->nprefix == ACCESS_SLICES)) {
                return false;
            }
            if (stack) {
                const Step **prefix = ARENA_ARRAY(f->l->scratch, const Step *, home->nprefix + 1);
                for (int i = 0; i < home->nprefix; i++) {
                    prefix[i] = home->prefix[i];
                }
                prefix[home->nprefix++] = f->loop;
                home->prefix = prefix;
            }
            return true;
        }
        homes = &f->result[k];
    }
    if (homes->count == 0 || homes->at[0].part || homes->at[0].at ||
        homes->at[0].nprefix > ACCESS_SLICES) {
        return false;
    }
    *home = homes->at[0];
    return true;
}

static void own_home(Frame *f, Step *loop, const Home *home, int mode) {
    step_own(f->l->p, loop, home->buf, mode, home->prefix, home->nprefix);
}

void ends_before(Frame *f, const Node *loop, Step *step) {
    const Attr *a = loop->attr;
    if (a->go) {
        const Home *home = &f->loops[loop->id].result[a->go - 1].at[0];
        step->go = home->buf;
        own_home(f, step, home, ACCESS_READ);
    }
    if (a->last) {
        const Node *last = loop->in[a->ncarry + a->last - 1];
        Home home;
        if (!find_home(f, last, &home)) {
            home = (Home){.buf = temp_new(f, last, *last->type, "last")};
            lower_copy_to(f, last, home);
        }
        step->last = home.buf;
        own_home(f, step, &home, ACCESS_READ);
    }
}

void ends_in(Frame *f, const Node *loop, Step *step) {
    int made = loop_made_carry(loop);
    if (made >= 0) {
        const Home *home = &f->loops[loop->id].result[made].at[0];
        step->made = home->buf;
        own_home(f, step, home, ACCESS_WRITE);
    }
}

/* --- stacks that are written in part ---------------------------------------------------------- */

typedef VEC(const Node *) NodeSet;

static bool has_node(const NodeSet *set, const Node *node) {
    for (int i = 0; i < set->count; i++) {
        if (set->at[i] == node) {
            return true;
        }
    }
    return false;
}

/* A stack, or a stack of stacks of a loop around: `depth` axes in front of its own. */
typedef struct {
    Arena *scratch;
    const Node *stack;
    const NodeSet *last; /* what holds the last indices, with as many axes in front */
    int depth;
} Partial;

static bool read_alike(const Region *region, const Partial *p);

/* The loop takes the stack as operand j: does it read what is there alone? */
static bool operand_alike(const Node *loop, int j, const Partial *p) {
    const Attr *a = loop->attr;
    bool sliced = j >= a->ncarry + a->ninv;
    if (j < a->ncarry) {
        return false;
    }
    if (sliced && p->depth == 0) {
        return a->last && has_node(p->last, loop->in[a->ncarry + a->last - 1]);
    }
    NodeSet inside = {0};
    for (int k = a->ncarry; k < loop->nin; k++) {
        if ((k >= a->ncarry + a->ninv) == sliced && has_node(p->last, loop->in[k])) {
            VEC_PUSH(p->scratch, &inside, loop->body->param.at[1 + k]);
        }
    }
    Partial inner = {p->scratch, loop->body->param.at[1 + j], &inside, p->depth - sliced};
    return read_alike(loop->body, &inner);
}

/* The body of `loop` gives the stack as its result k. */
static bool result_alike(const Node *loop, int k, const Partial *p) {
    const Attr *a = loop->attr;
    const Region *around = loop->region;
    NodeSet outside = {0};
    if (k < a->ncarry || p->depth + 2 > ACCESS_SLICES) {
        return false;
    }
    for (int i = a->ncarry + a->ninv; i < loop->nin; i++) {
        if (has_node(p->last, loop->body->param.at[1 + i])) {
            VEC_PUSH(p->scratch, &outside, loop->in[i]);
        }
    }
    for (int i = 0; i < around->node.count; i++) {
        const Node *n = around->node.at[i];
        if (n->op == OP_PICK && n->in[0] == loop && n->attr->axis >= a->ncarry &&
            has_node(p->last, loop->body->out.at[n->attr->axis])) {
            VEC_PUSH(p->scratch, &outside, n);
        }
    }
    for (int i = 0; i < around->node.count; i++) {
        const Node *n = around->node.at[i];
        Partial outer = {p->scratch, n, &outside, p->depth + 1};
        if (n->op == OP_PICK && n->in[0] == loop && n->attr->axis == k &&
            !read_alike(around, &outer)) {
            return false;
        }
    }
    return true;
}

/* Do all that read it in the region, and where that gives it on, run to the same last index? */
static bool read_alike(const Region *region, const Partial *p) {
    for (int i = 0; i < region->node.count; i++) {
        const Node *user = region->node.at[i];
        for (int j = 0; j < user->nin; j++) {
            if (user->in[j] == p->stack && (user->op != OP_LOOP || !operand_alike(user, j, p))) {
                return false;
            }
        }
    }
    int given = 0;
    for (int k = 0; k < region->out.count; k++) {
        if (region->out.at[k] == p->stack &&
            (given++ > 0 || region->owner == NULL || region->owner->op != OP_LOOP ||
             !result_alike(region->owner, k, p))) {
            return false;
        }
    }
    return true;
}

/* Result k of the loop, a stack: is its part enough for all that read it? */
static bool part_is_enough(Frame *f, const Node *loop, int k) {
    const Attr *a = loop->attr;
    int made = loop_made_carry(loop);
    NodeSet last = {0};
    Home home; /* what is in no memory is copied for each loop that ends there */
    if (a->last && find_home(f, loop->in[a->ncarry + a->last - 1], &home)) {
        VEC_PUSH(f->l->scratch, &last, loop->in[a->ncarry + a->last - 1]);
    }
    for (int i = 0; i < f->region->node.count; i++) {
        const Node *n = f->region->node.at[i];
        if (n->op == OP_PICK && n->in[0] == loop && n->attr->axis == made && made >= 0) {
            VEC_PUSH(f->l->scratch, &last, n);
        }
    }
    for (int i = 0; i < f->region->node.count; i++) {
        const Node *n = f->region->node.at[i];
        Partial p = {f->l->scratch, n, &last, 0};
        if (n->op == OP_PICK && n->in[0] == loop && n->attr->axis == k &&
            !read_alike(f->region, &p)) {
            return false;
        }
    }
    return true;
}

/* Where the last index of the loop lies. */
static const Access *last_access(Frame *f, const Node *loop, Step *step) {
    if (step->made == NULL && step->last == NULL) {
        step->made = temp_new(f, loop, type_scalar(TY_I32), "last");
        step_own(f->l->p, step, step->made, ACCESS_WRITE, NULL, 0);
    }
    return &step->own.at[step->own.count - 1]; /* go stands before made */
}

void ends_after(Frame *f, const Node *loop, Step *step, const bool *copied) {
    Lower *l = f->l;
    const HomeList *result = f->loops[loop->id].result;
    for (int k = loop->attr->ncarry; k < loop->body->out.count; k++) {
        const Home *home = &result[k].at[0];
        if (type_count(*home->buf->type) == 0 || (!copied[k] && part_is_enough(f, loop, k))) {
            continue;
        }
        const Access *last = last_access(f, loop, step);
        Step *clear = step_new(l->p, STEP_CLEAR, step->loc);
        clear->part = step->part;
        clear->dst = home->buf;
        clear->src = last->buf;
        clear->text = str_printf(l->p->arena, "the rest of %s is 0", home->buf->name);
        clear->bytes_moved = home->buf->bytes;
        step_access_slice(l->p, clear, last->buf, ACCESS_READ, last->slice, ACCESS_SLICES);
        step_access_slice(l->p, clear, home->buf, ACCESS_READ | ACCESS_WRITE | ACCESS_PART,
                          home->prefix, home->nprefix);
        VEC_PUSH(l->p->arena, f->list, clear);
    }
}
