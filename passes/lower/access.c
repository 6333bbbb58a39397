/* access: how kernels reach memory: the Bufs behind leaves, loads and stores at homes, the
 * slices that they touch, workspaces. Needs the homes of a frame; gives loads, stores and Bufs. */
#include "passes/lower/build.h"

#include <string.h>

Buf *slot_buf(Lower *l, const Slot *slot) {
    if (slot->kind != SLOT_INPUT) {
        return l->p->slot.at[slot->index];
    }
    for (int i = 0; i < l->e->buf.count; i++) {
        if (l->e->buf.at[i]->slot == slot) {
            return l->e->buf.at[i];
        }
    }
    BUG("input '%s' belongs to another entry", slot->name);
}

/* Products read what they compute in. */
static bool read_by_loops(const Frame *f, const Node *node) {
    for (int i = 0; i < f->region->node.count; i++) {
        const Node *user = f->region->node.at[i];
        OpClass cls = op_info[user->op].cls;
        bool loop = cls == CLASS_MAP || cls == CLASS_FOLD;
        if (node_reads(user, node) && !loop && !(cls == CLASS_VIEW && read_by_loops(f, user))) {
            return false;
        }
    }
    return true;
}

Type storage_of(const Frame *f, const Node *node) {
    Type type = *node->type;
    if (f->halves && type.rank > 0 && halves_hold(f->halves, node)) {
        type.elem = halves_elem(f->halves);
        return type;
    }
    Elem storage = f->l->c->opt.storage;
    bool narrow = storage != TY_ERROR && elem_computed(storage) == type.elem;
    if (narrow && op_info[node->op].cls == CLASS_MAP && read_by_loops(f, node)) {
        type.elem = storage;
    }
    return type;
}

static Buf *table_buf(Lower *l, const Node *node) {
    for (int i = 0; i < l->p->table.count; i++) {
        if (l->p->table.at[i]->data == node->attr->data &&
            type_equal(*l->p->table.at[i]->type, *node->type)) {
            return l->p->table.at[i];
        }
    }
    Buf *buf = buf_new(l->p, NULL, BUF_CONST, *node->type, short_name(l, node));
    buf->data = node->attr->data;
    buf->label = node->name;
    buf->loc = node->loc;
    return buf;
}

/* The multiples of loop indices in it. */
static void loop_offsets(const WorkBuild *b, int arg, const Index *flat, OffsetList *list) {
    for (int i = 0; i < flat->nterm; i++) {
        const Atom *atom = flat->term[i].atom;
        if (atom->kind == ATOM_LOOP) {
            Offset o = {arg, b->w.k->call.loop.at[atom->number], flat->term[i].mul};
            VEC_PUSH_FROM(b->w.k->arena, list, o, 2);
        }
    }
}

/* Loops around the kernel pick a slice for it: what they add is not part of the index, but of where
 * the argument begins. All places of one Buf must agree in that; where they do not, all is made
 * again with whole Bufs. */
static const Index *slice_place(WorkBuild *b, Arg *arg, const Index *flat) {
    Call *call = &b->w.k->call;
    Buf *buf = kernel_buf(b->w.k, arg);
    for (int i = 0; i < b->whole.count; i++) {
        if (b->whole.at[i] == buf) {
            return flat;
        }
    }
    OffsetList own = {0};
    loop_offsets(b, arg->id, flat, &own);
    int known = 0;
    for (int i = 0; i < call->offset.count; i++) {
        known += call->offset.at[i].arg == arg->id;
    }
    bool same = !arg->begun || known == own.count;
    for (int i = 0; i < own.count; i++) {
        const Offset *o = &own.at[i];
        if (!arg->begun) {
            VEC_PUSH_FROM(b->w.k->arena, &call->offset, *o, 2);
        }
        same = same && call_offset(call, arg->id, o->loop) == o->mul;
        flat = index_add(&b->w.k->index, flat,
                         index_scale(&b->w.k->index, kernel_loop_index(b->w.k, o->loop), -o->mul));
    }
    arg->begun = true;
    if (!same) {
        VEC_PUSH(b->w.scratch, &b->whole, buf);
        b->again = true;
    }
    return flat;
}

/* The flat index of an index vector. */
static const Index *buf_flat(WorkBuild *b, const Buf *buf, const Index *const *at) {
    IndexTable *table = &b->w.k->index;
    const Index *flat = index_const(table, 0);
    for (int i = 0; i < buf->type->rank; i++) {
        flat = index_add(table, flat, index_scale(table, at[i], buf->stride[i]));
    }
    return flat;
}

/* Adds the access, gives the flat index. The index of a loop that runs once is the number 0, so the
 * loops of a home are taken from there. */
static const Index *kernel_touch(WorkBuild *b, Arg *arg, int mode, const Home *home,
                                 const Index *const *at) {
    const Buf *buf = kernel_buf(b->w.k, arg);
    Touch touch = {.arg = arg, .mode = mode};
    bool leading = true;
    for (int i = 0; i < buf->type->rank; i++) {
        const Step *loop = NULL;
        bool lone = at[i]->nterm == 1 && at[i]->base == 0 && at[i]->term[0].mul == 1 &&
                    at[i]->term[0].atom->kind == ATOM_LOOP;
        if (lone && at[i]->term[0].atom->most + 1 == buf->type->dim[i]) {
            loop = b->w.k->call.loop.at[at[i]->term[0].atom->number];
        } else if (i < home->nprefix && home->prefix[i]->trip == 1) {
            loop = home->prefix[i];
        }
        leading = leading && loop != NULL;
        if (leading && i < ACCESS_SLICES) {
            touch.slice[i] = loop;
        }
    }
    VEC_PUSH(b->w.scratch, &b->touch, touch);
    return slice_place(b, arg, buf_flat(b, buf, at));
}

/* The index vector of a home: its loops, then `at`. */
static void home_index(WorkBuild *b, const Home *home, const Index *const *at, const Index **full) {
    for (int i = 0; i < home->nprefix; i++) {
        full[i] = kernel_loop_index(b->w.k, home->prefix[i]);
    }
    for (int i = home->nprefix; i < home->buf->type->rank; i++) {
        int64_t from = home->at ? home->at[i - home->nprefix] : 0;
        full[i] = index_offset(&b->w.k->index, at[i - home->nprefix], from);
    }
}

const Index *home_place(WorkBuild *b, const Home *home, const Index *const *at) {
    const Index *full[MD_RANK];
    home_index(b, home, at, full);
    return buf_flat(b, home->buf, full);
}

/* A guard keeps loads inside; where all places are, none is needed, and what is read is more often
 * the same for all elements. */
static bool is_inside(const Home *home, const Index *const *full) {
    bool inside = true;
    for (int i = 0; i < home->buf->type->rank; i++) {
        inside = inside && full[i]->least >= 0 && full[i]->most < home->buf->type->dim[i];
    }
    return inside;
}

static const Expr *load_home(WorkBuild *b, Values *v, const Home *home, const Index *const *at) {
    const Index *full[MD_RANK];
    home_index(b, home, at, full);
    const Expr *guard = v->guard && is_inside(home, full) ? NULL : v->guard;
    Arg *arg = kernel_arg(b->w.k, home->buf, ACCESS_READ);
    return expr_load(b->w.k, arg, kernel_touch(b, arg, ACCESS_READ, home, full), guard);
}

static const Expr *load_outer(WorkBuild *b, Values *v, const Node *outer, const Index *const *at) {
    Frame *here = b->at;
    b->at = here->up;
    const Expr *e = value_at(v, outer, at);
    b->at = here;
    return e;
}

static const Expr *load_param(WorkBuild *b, Values *v, const Node *node, const Index *const *at) {
    const Frame *f = b->at;
    int k = node->attr->axis - 1;
    if (k < 0) {
        return expr_index(b->w.k, node->type->elem, kernel_loop_index(b->w.k, f->loop));
    }
    if (k < f->node->attr->ncarry) {
        return load_home(b, v, &f->result[k].at[0], at);
    }
    const Node *outer = f->node->in[k];
    if (k < f->node->attr->ncarry + f->node->attr->ninv) {
        return load_outer(b, v, outer, at);
    }
    const Index *full[MD_RANK];
    full[0] = kernel_loop_index(b->w.k, f->loop);
    memcpy(full + 1, at, sizeof *full * (size_t)node->type->rank);
    return load_outer(b, v, outer, full);
}

bool kernel_known(const WorkBuild *b, const Node *node) {
    UnitKind kind = b->unit->kind;
    bool fold = (kind == UNIT_COLUMN || kind == UNIT_TOTAL) &&
                (fold_is_loop(node) || unit_folds_over(b->unit, node) ||
                 b->frame->fusion->info[node->id].in_row);
    return b->known && (fold || (kind == UNIT_PRODUCT && node == b->unit->atom.at[0]));
}

const Expr *kernel_stored(void *ctx, Values *v, const Node *node, const Index *const *at) {
    WorkBuild *b = ctx;
    const Frame *f = b->at;
    switch (node->op) {
    case OP_SLOT: {
        Home home = {.buf = slot_buf(b->l, node->attr->slot)};
        return load_home(b, v, &home, at);
    }
    case OP_TABLE: {
        Home home = {.buf = table_buf(b->l, node)};
        return load_home(b, v, &home, at);
    }
    case OP_BODY_PARAM: return load_param(b, v, node, at);
    case OP_PICK:
        return load_home(b, v, &f->loops[node->in[0]->id].result[node->attr->axis].at[0], at);
    default: break;
    }
    for (int k = 0; k < 2 && f == b->frame; k++) {
        if (b->own_copy[k].node == node) {
            return load_home(b, v, &b->own_copy[k].home, at);
        }
    }
    const NodeInfo *info = &f->fusion->info[node->id];
    bool own = f == b->frame && info->unit == b->unit;
    bool named = b->unit->kind == UNIT_TOTAL; /* the fold itself */
    bool anew = f == b->frame && unit_makes_anew(b->unit, node);
    if (!info->atom || info->again || anew || (own && (named || !kernel_known(b, node)))) {
        return NULL;
    }
    if (own && b->strip) {
        for (int i = 0; i < node->type->rank; i++) {
            b->elsewhere = b->elsewhere || at[i] != b->strip_at[i];
        }
        return b->strip;
    }
    if (f->home[node->id].count == 0) {
        BUG("%s (node %u) is read but stored nowhere", op_info[node->op].name, node->id);
    }
    return load_home(b, v, &f->home[node->id].at[0], at);
}

/* Where element `at` is stored in a home. */
static Root place_in(WorkBuild *b, const Home *home, const Index *const *at) {
    const Index *full[MD_RANK];
    home_index(b, home, at, full);
    Arg *arg = kernel_arg(b->w.k, home->buf, ACCESS_WRITE);
    int mode = ACCESS_WRITE | (home->part ? ACCESS_PART : 0);
    return (Root){.arg = arg, .index = kernel_touch(b, arg, mode, home, full), .add = OP_CONST};
}

void kernel_store_at(WorkBuild *b, RootList *roots, const Node *node, const Home *home,
                     const Index *const *at, const Expr *value) {
    Root root = place_in(b, home, at);
    root.value = value;
    root.owner = node->loc.owner;
    VEC_PUSH(b->w.scratch, roots, root);
}

static const HomeList *homes_of(const WorkBuild *b, const Node *node) {
    return b->copy ? b->copy : &b->frame->home[node->id];
}

void kernel_store(WorkBuild *b, RootList *roots, const Node *node, const Index *const *at,
                  const Expr *value) {
    const HomeList *homes = homes_of(b, node);
    for (int i = 0; i < homes->count; i++) {
        kernel_store_at(b, roots, node, &homes->at[i], at, value);
    }
}

const Expr *kernel_reload(WorkBuild *b, const Node *node, const Index *const *at) {
    Root root = place_in(b, &homes_of(b, node)->at[0], at);
    return expr_load(b->w.k, root.arg, root.index, NULL);
}

Buf *work_buf(Work *w, Type type, int threads, const char *name) {
    WorkBuild *b = (WorkBuild *)w; /* its first member */
    if (threads > 0) {
        int64_t line = MD_ALIGN / (int64_t)elem_bytes(type.elem);
        type = (Type){
            .elem = type.elem, .rank = 2, .dim = {threads, align_up(type_count(type), line)}};
    }
    int at = b->nwork;
    while (at < b->work.count && !type_equal(*b->work.at[at]->type, type)) {
        at++; /* of an attempt without a copy */
    }
    if (at == b->work.count) {
        Buf *buf = buf_new(b->l->p, b->l->e, BUF_WORK, type, name);
        buf->loop = b->frame->loop;
        buf->per_thread = threads;
        VEC_PUSH(b->w.scratch, &b->work, buf);
    }
    Buf *buf = b->work.at[at];
    b->work.at[at] = b->work.at[b->nwork];
    return b->work.at[b->nwork++] = buf;
}

void kernel_home(WorkBuild *b, const Node *node, const char *name) {
    HomeList *home = &b->frame->home[node->id];
    Home work = {.buf = work_buf(&b->w, *node->type, 0, name)};
    home->count = 0;
    VEC_PUSH_FROM(b->l->scratch, home, work, 1);
}
