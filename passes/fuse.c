/* fuse: which nodes of a region get storage, and which of them one kernel computes.
 *
 * Technique: atoms are the nodes that are computed once (folds, products, what must be in memory,
 * maps too dear to compute again for each user, the ends of very long expressions); everything else
 * is written out inside the expressions of its users. Each atom starts as a unit of its own;
 * fuse_merge makes one of several. Views always vanish. Needs a region without marks; gives the
 * Fusion of fuse.h; changes no values. */
#include "passes/fuse_units.h"

#include "compiler/loop_builder.h"
#include "passes/halo.h"
#include "passes/lower/value.h"
#include "passes/view.h"

#include <stdlib.h>

enum {
    CHEAP = TUNED(40, 6),         /* what each user may compute again (an erf and its neighbours) */
    CHEAP_LOADS = TUNED(2, 1),    /* while it reads no more than this many tensors */
    MOST_NODES = TUNED(1024, 12), /* an expression of more is cut */
    LONG_COLUMNS = TUNED(1024, 6), /* so many make a factor of all of them worth storing */
    ROOT = 5,                      /* costs that of a square root or a quotient at least: */
    REPEATED = TUNED(64, 3),       /* so many rows that read it make it worth storing; */
    OFTEN = TUNED(4096, 6)         /* so many do whatever it costs beyond a conversion */
};

/* --- atoms ------------------------------------------------------------------------------------ */

static bool is_leaf(const Node *node) {
    return node->op == OP_SLOT || node->op == OP_TABLE || node->op == OP_BODY_PARAM ||
           node->op == OP_PICK;
}

static bool folds_trailing(const Node *node) {
    bool folded = false;
    Type type = *node->in[0]->type;
    for (int i = 0; i < type.rank; i++) {
        bool axis = folded_axes(node) >> i & 1;
        if (type.dim[i] != 1 && folded && !axis) {
            return false;
        }
        folded = folded || (axis && type.dim[i] != 1);
    }
    return true;
}

bool fold_is_column(const Node *node) {
    return fold_is_loop(node) && node->op != OP_ARGMAX && node->op != OP_ARGMIN &&
           !folds_trailing(node);
}

static UnitKind unit_kind(const Fuse *s, const Node *node) {
    if (node_has_kernel(node)) {
        return node->op == OP_LOOP ? UNIT_LOOP : node->op == OP_CONTRACT ? UNIT_PRODUCT : UNIT_CALL;
    }
    if (!fold_is_loop(node) || node->op == OP_ARGMAX || node->op == OP_ARGMIN) {
        return UNIT_NEST;
    }
    if (fold_is_column(node)) {
        return UNIT_COLUMN;
    }
    return type_count(*node->type) == 1 && fold_count(node) >= s->total ? UNIT_TOTAL : UNIT_NEST;
}

/* What a view is taken of: the nearest value behind the views that memory holds anyway, or the
 * last; of what is `copied` a pad too. */
static const Node *base_of(Fuse *s, const Node *node, bool copied) {
    while (op_info[node->op].cls == CLASS_VIEW && !info_of(s, node)->sink &&
           !(copied && node->op == OP_PAD)) {
        node = node->in[0];
    }
    return node;
}

/* Memory must hold that value, which it gives. */
static const Node *require_base(Fuse *s, const Node *node, bool copied) {
    const Node *base = base_of(s, node, copied);
    if (!is_leaf(base) && base->op != OP_CONST) {
        info_of(s, base)->sink = true;
    }
    return base;
}

static void mark_live(Fuse *s) {
    const Region *region = s->f->region;
    for (int i = 0; i < region->out.count; i++) {
        NodeInfo *n = info_of(s, region->out.at[i]);
        if (type_count(*region->out.at[i]->type) == 0) {
            continue; /* nothing to write */
        }
        n->live = true;
        n->sink = n->sink || region->out.at[i]->op != OP_PICK;
    }
    for (int i = region->node.count - 1; i >= 0; i--) {
        const Node *node = region->node.at[i];
        for (int k = 0; s->f->info[i].live && k < node->nin; k++) {
            info_of(s, node->in[k])->live = true;
        }
    }
}

/* Values with a place of their own: starts of carries, parts of concatenations. */
static void mark_places(Fuse *s) {
    const Region *region = s->f->region;
    for (int i = 0; i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        int n = node->op == OP_CONCAT ? node->nin : node->op == OP_LOOP ? node->attr->ncarry : 0;
        int made = node->op == OP_LOOP ? loop_made_carry(node) : -1;
        for (int k = 0; s->f->info[i].live && k < n; k++) {
            const Node *in = node->in[k];
            if (k == made) {
                continue; /* the loop sets it */
            }
            const Node *base = node->op == OP_LOOP ? in : view_base(in);
            bool copied = is_leaf(base) || (node->op == OP_CONCAT && base->op == OP_CONST);
            info_of(s, in)->sink = info_of(s, in)->sink || !copied;
        }
    }
}

/* Of a product that is summed over leading axes, the factor that is the same for all columns: each
 * of them would compute it again. */
static void require_factor(Fuse *s, const Node *fold) {
    const Node *product = fold->in[0];
    const bool of_two = product->op == OP_MUL || product->op == OP_TERM;
    for (int k = 0; of_two && k < 2; k++) {
        const Node *x = product->in[k];
        if (x->op == OP_BROADCAST &&
            type_count(*x->in[0]->type) <= type_count(*x->type) / LONG_COLUMNS) {
            require_base(s, x->in[0], false);
        }
    }
}

/* What is the same for many rows, and not for the places of one, as a scale by channel: the loop
 * over a row would compute it again for each of them. */
static void mark_repeated(Fuse *s, const Node *node) {
    const Type *type = node->type;
    int last = type->rank - 1;
    while (last > 0 && type->dim[last] == 1) {
        last--;
    }
    const Node *x = view_base(node->in[0]), *each = node->in[0];
    if (each->op == OP_RESHAPE && each->in[0]->op == OP_BROADCAST && x->op != OP_CONST &&
        type_count(*each->type) <= type_count(*type) / REPEATED) {
        info_of(s, each)->sink = true; /* of a group, for each channel: layout */
        return;
    }
    if (!(node->attr->axes >> last & 1) && type_count(*x->type) > 1 &&
        type_count(*x->type) <= type_count(*type) / REPEATED) {
        NodeInfo *n = info_of(s, x);
        n->repeated = true;
        n->often = n->often || type_count(*x->type) <= type_count(*type) / OFTEN;
    }
}

/* Is it made of several elements of something? Under the guard of a border that is slow. */
static bool pools(const Node *node, int depth) {
    OpClass cls = op_info[node->op].cls;
    bool found = fold_is_tiny(node);
    for (int k = 0; !found && depth > 0 && k < node->nin; k++) {
        found = (cls == CLASS_MAP || cls == CLASS_VIEW) &&
                pools(node->in[k], depth - !op_rounds(node->op));
    }
    return found;
}

/* What a product reads as it is in memory and rounds itself: a copy would live as long as what is
 * copied is of use. */
static bool rounds_leaf(const Node *node) {
    return op_rounds(node->op) && is_leaf(view_base(node->in[0]));
}

/* Few elements that are looked up in a large product, as a loss by labels does in logits. In a
 * kernel of its own in front of the others: what is made of all of the product may lie in its
 * place then. */
static bool picks(const Node *node) {
    enum { LARGE = TUNED(1 << 18, 64), FEWER = TUNED(64, 4) }; /* elements; times */
    const Node *base = node->op == OP_GATHER ? view_base(node->in[0]) : NULL;
    if (base && op_rounds(base->op)) {
        base = base->in[0];
    }
    if (base && base->op == OP_ADD) { /* a bias */
        base = base->in[base->in[0]->op == OP_BROADCAST];
    }
    return base && base->op == OP_CONTRACT && type_count(*base->type) >= LARGE &&
           type_count(*node->type) <= type_count(*base->type) / FEWER;
}

/* Where axis 0 of `pad` stands in what views make of it; -1: nowhere as it is. */
static int first_axis(const Node *node, const Node *pad) {
    if (node == pad) {
        return 0;
    }
    int below = op_info[node->op].cls == CLASS_VIEW ? first_axis(node->in[0], pad) : -1;
    if (node->op == OP_WINDOW) {
        return below == node->attr->axis || below < 0 ? -1 : below + (below > node->attr->axis);
    }
    for (int i = 0; node->op == OP_PERMUTE && i < node->type->rank; i++) {
        if (node->attr->map[i] == below) {
            return i;
        }
    }
    return -1;
}

/* Does the product read its operand `k` one place of the first axis of `pad` after the other? Its
 * rows have more axes than a tile then, of which that one is the outermost. */
static bool reads_in_turn(const Fuse *s, const Node *node, int k, const Node *pad) {
    const int8_t *own = k == 0 ? node->attr->la : node->attr->lb;
    const int8_t *other = k == 0 ? node->attr->lb : node->attr->la;
    int axis = first_axis(node->in[k], pad), rows = 0;
    bool first = false;
    for (int i = 0; i < node->type->rank; i++) {
        int8_t label = node->attr->lo_[i];
        bool alone = find_label(own, node->in[k]->type->rank, label) >= 0 &&
                     find_label(other, node->in[!k]->type->rank, label) < 0;
        rows += alone && node->type->dim[i] > 1;
        first = first || (alone && axis >= 0 && own[axis] == label);
    }
    return first && rows >= 3 && pad->type->dim[0] > s->copies;
}

/* May the product make that copy for itself? Loops do it in slices where there are enough. */
static bool makes_copy(const Fuse *s, const Node *product, int k, const Node *pad) {
    return pad->op == OP_PAD && s->copies > 0 &&
           (halo_is_tiled(product, k) ||
            (halo_is_worth(product, k) && pad->type->dim[0] > s->copies));
}

/* Is it a copy with a border around it, which operand `k` of a product is read from? */
static bool is_halo(const Node *product, int k, const Node *node) {
    return node->op == OP_PAD && halo_is_worth(product, k);
}

/* Is it a sum over windows of the terms of a product that lie in rows shorter than a vector? What
 * else is read with them lies in another order. */
static bool sums_short_rows(const Node *node) {
    enum { SHORT = TUNED(8, 2) };
    const Type *type = node->type;
    bool short_rows = node->op == OP_OVERLAP_ADD && type->dim[type->rank - 1] < SHORT;
    while (short_rows && (node->op == OP_OVERLAP_ADD || node->op == OP_PERMUTE)) {
        node = node->in[0];
    }
    return short_rows && node->op == OP_CONTRACT;
}

static void mark_required(Fuse *s) {
    enum { POOL_DEPTH = 6 }; /* an activation behind a pool */

    const Region *region = s->f->region;
    for (int i = 0; i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        if (!s->f->info[i].live) {
            continue;
        }
        for (int k = 0; k < node->nin && node->op != OP_OVERLAP_ADD; k++) {
            NodeInfo *in = info_of(s, node->in[k]);
            in->sink = in->sink || sums_short_rows(node->in[k]);
        }
        if (node->op == OP_CONTRACT && node_has_kernel(node)) {
            for (int k = 0; k < 2; k++) {
                const Node *base = node->in[k];
                while (op_info[base->op].cls == CLASS_VIEW && !is_halo(node, k, base)) {
                    base = base->in[0];
                }
                if (halo_turns(node, k)) {
                    info_of(s, node->in[k])->sink = true;
                } else if (!is_leaf(base) && halo_orders(node, k)) {
                    require_base(s, node->in[k], false); /* others read what is copied */
                    info_of(s, node->in[k])->sink = true;
                } else if (rounds_leaf(base)) {
                    continue;
                }
                const Node *pad = base_of(s, node->in[k], halo_is_worth(node, k));
                if (makes_copy(s, node, k, pad)) {
                    NodeInfo *n = info_of(s, pad);
                    n->shared = n->copied;
                    n->in_turn = reads_in_turn(s, node, k, pad);
                    n->copied = true;
                } else {
                    require_base(s, pad, true);
                }
                if (pad->op == OP_PAD && pools(pad->in[0], POOL_DEPTH)) {
                    require_base(s, pad->in[0], false);
                }
            }
        } else if (node->op == OP_ORDER) {
            require_base(s, node->in[0], false);
        } else if (node->op == OP_LOOP) {
            for (int k = node->attr->ncarry; k < node->nin; k++) {
                require_base(s, node->in[k], false);
            }
        } else if (node->op == OP_SUM && unit_kind(s, node) == UNIT_COLUMN) {
            require_factor(s, node);
        } else if (node->op == OP_BROADCAST) {
            mark_repeated(s, node);
        } else if (picks(node)) {
            info_of(s, node)->sink = info_of(s, node)->pick = true;
        }
    }
}

/* What is rounded for copies with borders alone is rounded while they are made. */
static void mark_plain(Fuse *s) {
    const Region *region = s->f->region;
    for (int i = 0; i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        const NodeInfo *n = &s->f->info[i];
        bool view = op_info[node->op].cls == CLASS_VIEW;
        if (!n->live || (view && !n->sink)) {
            continue;
        }
        for (int k = 0; k < node->nin; k++) {
            const Node *x = node->in[k];
            while (op_info[x->op].cls == CLASS_VIEW && !info_of(s, x)->sink &&
                   !info_of(s, x)->copied) {
                x = x->in[0];
            }
            NodeInfo *in = info_of(s, x);
            in->plain = in->plain || (op_rounds(x->op) && node->op != OP_PAD);
        }
    }
}

/* What is stored changes no bits: tests hold that against random choices. */
static void mark_some(Fuse *s, uint64_t stored) {
    const Region *region = s->f->region;
    for (int i = 0; i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        OpClass cls = op_info[node->op].cls;
        NodeInfo *n = &s->f->info[i];
        bool value = (cls == CLASS_MAP && node->op != OP_TERM) || cls == CLASS_FOLD ||
                     cls == CLASS_CALL;
        bool chosen = hash_word(hash_word(stored, node->id), stored) % 3 == 0;
        n->sink = n->sink || (n->live && value && chosen && type_count(*node->type) > 0);
    }
}

static bool is_adjoint(const Node *n) {
    return n->op == OP_LOOP && n->attr->checkpoint == CHECKPOINT_ADJOINT;
}

/* A train ends without any change when its loss or gradient norm is not finite, so what that check
 * waits for and what it lets through are never one kernel. */
static void mark_check(Fuse *s, const EntryOut *out) {
    const Region *region = s->f->region;
    for (int i = 0; out && i < region->out.count; i++) {
        NodeInfo *n = info_of(s, region->out.at[i]);
        n->early = n->early || out[i].role == OUT_LOSS || out[i].role == OUT_GRAD_NORM;
        n->late = n->late || out[i].role == OUT_WRITE;
        n->forward = n->forward || out[i].role == OUT_LOSS;
    }
    for (int i = region->node.count - 1; i >= 0; i--) {
        const Node *node = region->node.at[i];
        for (int k = 0; k < node->nin; k++) {
            NodeInfo *in = info_of(s, node->in[k]);
            in->early = in->early || s->f->info[i].early;
            bool cotangent = is_adjoint(node) && k < node->attr->ncarry;
            in->forward = in->forward || (s->f->info[i].forward && !cotangent);
        }
    }
    for (int i = 0; i < region->node.count; i++) {
        NodeInfo *n = &s->f->info[i];
        n->forward = n->forward && !is_adjoint(region->node.at[i]);
    }
}

/* What is added up over a graph stays at this: more says no more. */
enum { MANY = 1 << 16 };

static int at_most_many(int64_t count) {
    return count < MANY ? (int)count : MANY;
}

/* Does it read operand `k` at places that are not its own? */
static bool moves(const Node *node, int k) {
    return node->op == OP_GATHER ? k == 0
                                 : op_info[node->op].cls == CLASS_VIEW && node->op != OP_RESHAPE &&
                                       node->op != OP_BROADCAST;
}

/* How often the users read each element, about: a broadcast or a window makes it more than once. */
static void count_uses(Fuse *s) {
    const Region *region = s->f->region;
    for (int i = region->node.count - 1; i >= 0; i--) {
        const Node *node = region->node.at[i];
        const NodeInfo *n = &s->f->info[i];
        bool view = op_info[node->op].cls == CLASS_VIEW;
        /* Every row of a product that is written out reads all of its operand's. */
        int64_t reads = type_count(*node->type);
        reads = node->op == OP_CONTRACT && !node_has_kernel(node)
                    ? count_add(0, reads, fold_count(node))
                    : reads;
        for (int k = 0; n->live && k < node->nin; k++) {
            NodeInfo *in = info_of(s, node->in[k]);
            bool again = reads > type_count(*node->in[k]->type);
            bool seen = view && !n->sink && !n->copied;
            in->uses = at_most_many(in->uses + (seen ? n->uses : 1) * (again ? 2 : 1));
            in->moved = in->moved || moves(node, k) || (seen && n->moved);
            int64_t all = type_count(*node->in[k]->type);
            bool picked = view || (node->op == OP_GATHER && k == 0) || reads > all;
            in->reads = count_add(in->reads, 1, seen ? n->reads : picked ? reads : all);
        }
    }
}

static void sum_costs(Fuse *s, const Node *node, NodeInfo *n) {
    int64_t times = 1, written = 0, loads = 0;
    n->made = true;
    if (fold_is_tiny(node)) {
        times = fold_count(node);
    } else if (node->op == OP_OVERLAP_ADD) {
        times = 4 * (int64_t)at_most_many(node->attr->taps);
    }
    int64_t own = op_info[node->op].cls == CLASS_MAP ? op_info[node->op].cost : 1;
    if (node->op == OP_RANDOM) {
        own = node->attr->dist == DIST_NORMAL ? 60 : 25;
    } else if (op_info[node->op].cls == CLASS_VIEW || node->op == OP_CONST) {
        own = 0;
    }
    for (int k = 0; k < node->nin; k++) {
        const NodeInfo *in = info_of(s, node->in[k]);
        int64_t count = type_count(*node->in[k]->type);
        written += in->atom || in->leaf ? 1 : in->written;
        bool scalar = count == 1;
        own += scalar ? 0 : in->cost;
        /* What is read again and again for a broadcast is not traffic. */
        loads += count <= type_count(*node->type) / 4 ? 0 : in->loads;
        n->made = n->made && (in->made || scalar);
    }
    n->cost = at_most_many(at_most_many(own) * times);
    n->written = at_most_many((at_most_many(written) + 1) * times);
    n->loads = at_most_many(loads);
}

static void choose_atoms(Fuse *s, bool apart) {
    const Region *region = s->f->region;
    for (int i = 0; i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        NodeInfo *n = &s->f->info[i];
        n->leaf = is_leaf(node);
        if (!n->live) {
            continue;
        }
        if (n->leaf && !n->sink) {
            n->loads = type_count(*node->type) > 1;
            continue;
        }
        sum_costs(s, node, n);
        bool asks = n->copied; /* some product does */
        bool map = op_info[node->op].cls != CLASS_VIEW && node->op != OP_CONST &&
                   node->op != OP_TERM; /* rounded with the sum of it, whatever it costs */
        bool dear = n->cost > CHEAP || n->loads > CHEAP_LOADS;
        /* A copy that products share takes a place from the first of them to the last; one that a
         * product makes bit by bit takes hardly any, but what it is made from stays for longer. */
        bool worth = n->shared || (n->in_turn && n->loads <= 1);
        n->copied = n->copied && worth && !n->sink && !dear && n->written <= MOST_NODES;
        n->sink = n->sink || (asks && !n->copied);
        /* What is rounded takes half of what it was rounded from.
         * Where an extreme stands is read by the adjoint of a pool, tap by tap, as a byte. */
        bool first = node->op == OP_ARGMAX || node->op == OP_ARGMIN;
        const Node *whole = node->op == OP_CAST ? node->in[0] : node;
        first = first || ((whole->op == OP_ARGMAX || whole->op == OP_ARGMIN) &&
                          elem_bytes(node->type->elem) < elem_bytes(whole->type->elem));
        /* What is made of no memory its users make again, as a mask in the backward pass; a table
         * that is read at other places would be made again at each of them, and those of chains
         * of tables for each way through the chain. */
        bool anew = n->moved && n->reads / 2 >= type_count(*node->type);
        n->atom = n->sink || fold_is_loop(node) || node_has_kernel(node) || first ||
                  (map && (!n->made || anew) && n->uses > 1 && dear) ||
                  (map && !n->made && n->repeated && n->cost >= (n->often ? 2 : ROOT)) ||
                  (op_rounds(node->op) && n->plain && !rounds_leaf(node)) ||
                  (map && n->written > MOST_NODES) ||
                  (map && apart && elem_is_float(node->type->elem));
        if (n->atom) {
            n->again = view_base(node)->op == OP_CONST;
            n->cost = 0;
            n->loads = !n->again && type_count(*node->type) > 1;
            n->made = n->again;
        }
    }
}

/* --- units ------------------------------------------------------------------------------------ */

/* Adds the atoms and leaves that the expression of `node` reads; `seen` by node id. */
static void collect_deps(Fuse *s, const Node *node, Unit *u, int *seen) {
    for (int k = 0; k < node->nin; k++) {
        const Node *in = node->in[k];
        const NodeInfo *n = info_of(s, in);
        if (seen[in->id] == u->id + 1) {
            continue;
        }
        seen[in->id] = u->id + 1;
        u->again = u->again || (in->op == OP_AGAIN && !n->atom);
        if ((n->atom && !n->again) || n->leaf) {
            VEC_PUSH(s->arena, &u->dep, in->id);
            if (in->op == OP_PICK && seen[in->in[0]->id] != u->id + 1) { /* the loop makes it */
                seen[in->in[0]->id] = u->id + 1;
                VEC_PUSH(s->arena, &u->dep, in->in[0]->id);
            }
        } else {
            collect_deps(s, in, u, seen);
        }
    }
}

static int id_compare(const void *a, const void *b) {
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static bool has_dep(const Unit *u, uint32_t id) {
    for (int i = 0; i < u->dep.count; i++) {
        if (u->dep.at[i] == id) {
            return true;
        }
    }
    return false;
}

static void make_units(Fuse *s) {
    const Region *region = s->f->region;
    int *seen = ARENA_ARRAY(s->scratch, int, region->node.count + 1);
    for (int i = 0; i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        NodeInfo *n = &s->f->info[i];
        if (!n->atom) {
            continue;
        }
        Unit *u = ARENA_NEW(s->arena, Unit);
        *u = (Unit){.kind = unit_kind(s, node), .id = s->unit.count};
        u->count = type_count(*node->type);
        u->rows = u->kind == UNIT_NEST && fold_is_loop(node) ? u->count : 0;
        u->written = n->written;
        u->early = n->early;
        u->late = n->late;
        u->forward = n->forward;
        u->again = node->op == OP_AGAIN;
        u->pick = n->pick;
        if (n->leaf) { /* a copy of what memory holds; loops put their results in place */
            VEC_PUSH(s->arena, &u->dep, node->id);
        } else {
            collect_deps(s, node, u, seen);
        }
        /* What a carry starts from is there before the loop, also what others compute again. */
        for (int k = 0; u->kind == UNIT_LOOP && k < node->attr->ncarry; k++) {
            if (info_of(s, node->in[k])->atom && !has_dep(u, node->in[k]->id)) {
                VEC_PUSH(s->arena, &u->dep, node->in[k]->id);
            }
        }
        if (u->dep.count > 1) {
            qsort(u->dep.at, (size_t)u->dep.count, sizeof *u->dep.at, id_compare);
        }
        VEC_PUSH(s->arena, &u->atom, node);
        VEC_PUSH(s->scratch, &s->unit, u);
        n->unit = u;
    }
}

const Node *fuse_copied(const Fusion *f, const Node *contract, int k) {
    const Node *node = contract->in[k];
    while (op_info[node->op].cls == CLASS_VIEW && !f->info[node->id].copied &&
           !f->info[node->id].atom) {
        node = node->in[0];
    }
    return f->info[node->id].copied && halo_is_worth(contract, k) ? node : NULL;
}

/* --- the result ------------------------------------------------------------------------------- */

/* Is it the node, or a view of it? Views may be stored themselves, so the node may be one too. */
static bool is_view_of(const Node *view, const Node *node) {
    while (view != node && op_info[view->op].cls == CLASS_VIEW) {
        view = view->in[0];
    }
    return view == node;
}

/* What a loop only carries on is copied into the carry, what is only put together is written into
 * its part: neither is read from a place of its own. */
static bool reads_value(const Unit *u, const Node *node) {
    const Node *main = u->atom.at[0];
    if (main->op == OP_CONCAT) {
        for (int i = 0; i < main->nin; i++) {
            if (main->in[i] == node) {
                return false;
            }
        }
    }
    if (u->kind != UNIT_LOOP) {
        return true;
    }
    for (int i = main->attr->ncarry; i < main->nin; i++) {
        if (is_view_of(main->in[i], node)) {
            return true;
        }
    }
    return false;
}

static void decide_stored(Fuse *s) {
    for (int i = 0; i < s->unit.count; i++) {
        const Unit *u = s->unit.at[i];
        for (int k = 0; !u->into && k < u->dep.count; k++) {
            NodeInfo *n = &s->f->info[u->dep.at[k]];
            if (n->atom && n->unit != u) {
                n->stored = true;
                n->read = n->read || reads_value(u, s->f->region->node.at[u->dep.at[k]]);
            }
        }
    }
    for (int k = 0; k < s->f->region->node.count; k++) {
        s->f->info[k].stored = s->f->info[k].stored || (s->f->info[k].atom && s->f->info[k].sink);
    }
}

/* Units that are ready, as a heap: what is picked first, then the earliest atom. */
typedef VEC(Unit *) Ready;

static bool unit_before(const Unit *a, const Unit *b) {
    return a->pick != b->pick ? a->pick : a->atom.at[0]->id < b->atom.at[0]->id;
}

static void ready_push(Fuse *s, Ready *ready, Unit *u) {
    VEC_PUSH(s->scratch, ready, u);
    for (int i = ready->count - 1; i > 0 && unit_before(u, ready->at[(i - 1) / 2]);
         i = (i - 1) / 2) {
        ready->at[i] = ready->at[(i - 1) / 2];
        ready->at[(i - 1) / 2] = u;
    }
}

static Unit *ready_pop(Ready *ready) {
    Unit *first = ready->at[0], *last = ready->at[--ready->count];
    int i = 0;
    for (int k; (k = 2 * i + 1) < ready->count; i = k) {
        k += k + 1 < ready->count && unit_before(ready->at[k + 1], ready->at[k]);
        if (!unit_before(ready->at[k], last)) {
            break;
        }
        ready->at[i] = ready->at[k];
    }
    ready->at[i] = last;
    return first;
}

/* Puts units behind what they read; among those that are ready, the one with the earliest atom. */
static void order_units(Fuse *s) {
    int *left = ARENA_ARRAY(s->scratch, int, s->unit.count + 1), all = 0;
    Ready ready = {0};
    for (int i = 0; i < s->unit.count; i++) {
        Unit *u = s->unit.at[i];
        for (int k = 0; !u->into && k < u->dep.count; k++) {
            const Unit *from = unit_of(s, u->dep.at[k]);
            left[i] += from != NULL && from != u;
        }
        if (!u->into && left[i] == 0) {
            ready_push(s, &ready, u);
        }
        all += u->into == NULL;
    }
    while (ready.count > 0) {
        Unit *next = ready_pop(&ready);
        VEC_PUSH(s->arena, &s->f->unit, next);
        for (int i = 0; i < next->atom.count; i++) {
            const UnitIds *reader = &s->reader[next->atom.at[i]->id];
            s->search++;
            for (int k = 0; k < reader->count; k++) {
                Unit *u = unit_now(s->unit.at[reader->at[k]]);
                if (u != next && s->seen[u->id] != s->search) {
                    s->seen[u->id] = s->search;
                    if (--left[u->id] == 0) {
                        ready_push(s, &ready, u);
                    }
                }
            }
        }
    }
    if (s->f->unit.count != all) {
        BUG("kernels depend on each other in a circle");
    }
}

Fusion *pass_fuse(Arena *arena, const Region *region, const EntryOut *out, bool apart,
                  uint64_t stored, int64_t total, int copies, RowSums *sums) {
    Arena scratch = {0};
    Fuse s = {.arena = arena, .scratch = &scratch, .work = FUSE_WORK, .total = total};
    s.copies = apart ? 0 : copies;
    s.sums = sums;
    s.f = ARENA_NEW(arena, Fusion);
    s.f->region = region;
    s.f->info = ARENA_ARRAY(arena, NodeInfo, region->node.count + 1);
    mark_live(&s);
    mark_places(&s);
    mark_required(&s);
    mark_plain(&s);
    if (stored) {
        mark_some(&s, stored);
    }
    mark_check(&s, out);
    count_uses(&s);
    choose_atoms(&s, apart);
    make_units(&s);
    units_connect(&s);
    if (!apart) {
        merge_units(&s);
        units_make_anew(&s);
    }
    decide_stored(&s);
    order_units(&s);
    arena_free(&scratch);
    return s.f;
}
