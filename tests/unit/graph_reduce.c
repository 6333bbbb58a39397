/* graph_reduce: greedy edits to a fixed point, see the header.
 *
 * An edit is a pair (kind, index), tried in a forked process on the case itself and done again here
 * when it helped. Edits write into nodes and leave the rest to region_rebuild, which drops what is
 * dead; an edit that makes no legal graph dies in its process and was no help. */
#include "graph_reduce.h"

#include "compiler/keep.h"
#include "compiler/loop_builder.h"
#include "compiler/shape.h"

#include <string.h>
#include <time.h>

typedef enum { EDIT_END, EDIT_SKIP, EDIT_DONE } Edit;
typedef Edit (*EditRule)(GraphCase *c, int index);

static Graph *graph_of(const GraphCase *c) {
    return c->module->graph;
}

/* --- nodes by number, the last ones first ----------------------------------------------------- */

static const Node *pick_in(const Region *region, int *index) {
    for (int i = region->node.count - 1; i >= 0; i--) {
        const Node *node = region->node.at[i];
        if ((*index)-- == 0) {
            return node;
        }
        const Node *inside = node->body ? pick_in(node->body, index) : NULL;
        if (inside) {
            return inside;
        }
    }
    return NULL;
}

static Node *node_number(const GraphCase *c, int index, Entry **entry) {
    for (int e = c->module->entry.count - 1; e >= 0; e--) {
        *entry = c->module->entry.at[e];
        const Node *node = pick_in((*entry)->region, &index);
        if (node) {
            return node->region->node.at[node->id];
        }
    }
    return NULL;
}

static int count_nodes(const Region *region) {
    int n = region->node.count;
    for (int i = 0; i < region->node.count; i++) {
        n += region->node.at[i]->body ? count_nodes(region->node.at[i]->body) : 0;
    }
    return n;
}

int graph_size(const GraphCase *c) {
    int n = 0;
    for (int e = 1; e < c->module->entry.count; e++) {
        n += count_nodes(c->module->entry.at[e]->region);
    }
    return n;
}

static Attr *own_attr(GraphCase *c, Node *node) {
    Attr *attr = ARENA_NEW(graph_of(c)->arena, Attr);
    *attr = attr_copy(node->attr);
    node->attr = attr;
    return attr;
}

/* Everybody who reads `from` reads `to`, a node before it. */
static void replace_uses(Region *region, const Node *from, Node *to) {
    for (int i = 0; i < region->node.count; i++) {
        Node *node = region->node.at[i];
        for (int k = 0; k < node->nin; k++) {
            node->in[k] = node->in[k] == from ? to : node->in[k];
        }
    }
    for (int k = 0; k < region->out.count; k++) {
        region->out.at[k] = region->out.at[k] == from ? to : region->out.at[k];
    }
}

/* --- entries, results, slots ------------------------------------------------------------------ */

static Edit drop_entry(GraphCase *c, int index) {
    Module *m = c->module;
    if (index + 1 >= m->entry.count) {
        return EDIT_END;
    }
    int kept = 0;
    for (int i = 0; i < c->input.count; i++) {
        if (c->input.at[i].slot->entry != m->entry.at[index + 1]) {
            c->input.at[kept++] = c->input.at[i];
        }
    }
    c->input.count = kept;
    memmove(&m->entry.at[index + 1], &m->entry.at[index + 2],
            sizeof *m->entry.at * (size_t)(m->entry.count - index - 2));
    m->entry.count--;
    return EDIT_DONE;
}

static void remove_out(Entry *entry, int k) {
    int after = entry->out.count - k - 1;
    memmove(&entry->out.at[k], &entry->out.at[k + 1], sizeof *entry->out.at * (size_t)after);
    memmove(&entry->region->out.at[k], &entry->region->out.at[k + 1],
            sizeof *entry->region->out.at * (size_t)after);
    entry->out.count--;
    entry->region->out.count--;
}

static Edit drop_out(GraphCase *c, int index) {
    for (int e = 1; e < c->module->entry.count; e++) {
        Entry *entry = c->module->entry.at[e];
        if (index >= entry->out.count) {
            index -= entry->out.count;
            continue;
        }
        bool loss = entry->out.at[index].role == OUT_LOSS;
        bool whole = strncmp(entry->name, "smooth", 6) == 0 && index == 0;
        if (loss) { /* then it is no train */
            entry->kind = ENTRY_CALL;
            for (int k = 0; k < entry->out.count; k++) {
                OutRole role = entry->out.at[k].role;
                entry->out.at[k].role = role == OUT_WRITE ? role : OUT_RESULT;
            }
        }
        if (whole) {
            return EDIT_SKIP;
        }
        remove_out(entry, index);
        return EDIT_DONE;
    }
    return EDIT_END;
}

/* A result that is an operand of what it was; a write becomes a result first. */
static Edit raise_out(GraphCase *c, int index) {
    int operand = index % 3, k = index / 3;
    for (int e = 1; e < c->module->entry.count; e++) {
        Entry *entry = c->module->entry.at[e];
        if (k >= entry->out.count) {
            k -= entry->out.count;
            continue;
        }
        EntryOut *out = &entry->out.at[k];
        const Node *node = entry->region->out.at[k];
        node = node->op == OP_PICK ? node->in[0] : node;
        bool smooth = strncmp(entry->name, "smooth", 6) == 0;
        if (smooth || out->role == OUT_LOSS || operand >= node->nin) {
            return EDIT_SKIP;
        }
        if (out->role == OUT_WRITE) {
            *out = (EntryOut){.name = str_printf(&c->arena, "was_write%d", k), .loc = LOC_NONE};
        }
        entry->region->out.at[k] = node->in[operand];
        return EDIT_DONE;
    }
    return EDIT_END;
}

static bool reads_slot(const Region *region, const Slot *slot) {
    for (int i = 0; i < region->node.count; i++) {
        if (region->node.at[i]->op == OP_SLOT && region->node.at[i]->attr->slot == slot) {
            return true;
        }
    }
    return false;
}

static bool is_read(const GraphCase *c, const Slot *slot) {
    for (int e = 0; e < c->module->entry.count; e++) {
        if (reads_slot(c->module->entry.at[e]->region, slot)) {
            return true;
        }
    }
    return false;
}

static Edit drop_slot(GraphCase *c, int index) {
    Module *m = c->module;
    if (index >= m->slot.count) {
        return EDIT_END;
    }
    Slot *slot = m->slot.at[index];
    if (is_read(c, slot)) {
        return EDIT_SKIP;
    }
    for (int e = 0; e < m->entry.count; e++) {
        for (int k = m->entry.at[e]->out.count - 1; k >= 0; k--) {
            if (m->entry.at[e]->out.at[k].slot == slot) {
                remove_out(m->entry.at[e], k);
            }
        }
    }
    m->slot.count--;
    for (int i = index; i < m->slot.count; i++) {
        m->slot.at[i] = m->slot.at[i + 1];
        m->slot.at[i]->index = i;
    }
    return EDIT_DONE;
}

static Edit drop_input(GraphCase *c, int index) {
    if (index >= c->input.count) {
        return EDIT_END;
    }
    Slot *slot = c->input.at[index].slot;
    bool alive = false;
    for (int e = 0; e < c->module->entry.count; e++) {
        alive = alive || c->module->entry.at[e] == slot->entry;
    }
    if (alive && is_read(c, slot)) {
        return EDIT_SKIP;
    }
    Entry *entry = slot->entry;
    int n = 0;
    for (int i = 0; i < entry->input.count; i++) {
        if (entry->input.at[i] != slot) {
            entry->input.at[n] = entry->input.at[i];
            entry->input.at[n]->index = n;
            n++;
        }
    }
    entry->input.count = n;
    c->input.count--;
    for (int i = index; i < c->input.count; i++) {
        c->input.at[i] = c->input.at[i + 1];
    }
    return EDIT_DONE;
}

/* --- nodes ------------------------------------------------------------------------------------ */

static bool is_leaf(const Node *node) {
    return op_info[node->op].cls == CLASS_LEAF || node->op == OP_LOOP;
}

/* Reads an operand of its own type, number `operand`, in its place. */
static Edit bypass(GraphCase *c, int index, int operand) {
    Entry *entry;
    Node *node = node_number(c, index, &entry);
    if (!node) {
        return EDIT_END;
    }
    const Node *from = node->op == OP_PICK ? node->in[0] : node;
    if (node->op == OP_PICK) {
        operand = node->attr->axis < from->attr->ncarry ? node->attr->axis : from->nin;
    }
    if (is_leaf(node) || operand >= from->nin ||
        !type_equal(*from->in[operand]->type, *node->type)) {
        return EDIT_SKIP;
    }
    replace_uses(node->region, node, from->in[operand]);
    return EDIT_DONE;
}

static Edit bypass_first(GraphCase *c, int index) {
    return bypass(c, index, 0);
}
static Edit bypass_second(GraphCase *c, int index) {
    return bypass(c, index, 1);
}
static Edit bypass_third(GraphCase *c, int index) {
    return bypass(c, index, 2);
}

/* Integers may be indices: then nothing but 0 is sure to be in range. */
static bool has_index(const Region *region) {
    for (int i = 0; i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        if (node->op == OP_GATHER || node->op == OP_SCATTER_ADD ||
            (node->body && has_index(node->body))) {
            return true;
        }
    }
    return false;
}

static double *numbers(GraphCase *c, Type t, double lo, int64_t below) {
    int64_t n = type_count(t);
    double *data = ARENA_ARRAY(&c->arena, double, n);
    for (int64_t i = 0; i < n; i++) {
        uint64_t h = hash_bytes(HASH_START, &i, sizeof i);
        double x = (double)(h >> 40) * 0x1p-24;
        data[i] =
            elem_is_float(t.elem) ? lo + x * (1.25 - lo) : (double)((int64_t)(h >> 40) % below);
    }
    return data;
}

/* An input in its place; a table in a body. */
static Edit cut(GraphCase *c, int index, double lo) {
    Entry *entry;
    Node *node = node_number(c, index, &entry);
    if (!node) {
        return EDIT_END;
    }
    bool state = node->op == OP_SLOT && node->attr->slot->kind != SLOT_INPUT;
    if ((is_leaf(node) && !state) || (entry->kind == ENTRY_INIT && node->op == OP_SLOT)) {
        return EDIT_SKIP;
    }
    int64_t below = has_index(entry->region) ? 1 : 2;
    double *data = numbers(c, *node->type, lo, below);
    Attr *attr = ARENA_NEW(graph_of(c)->arena, Attr);
    if (node->region->up || entry->kind == ENTRY_INIT) {
        node->op = OP_TABLE;
        attr->data = data;
    } else {
        bool whole = elem_is_int(node->type->elem);
        node->op = OP_SLOT;
        attr->slot = graph_case_input(c, entry, *node->type, data, 0, whole ? below : 0);
    }
    node->attr = attr;
    node->nin = 0;
    node->body = NULL;
    node->name = NULL;
    return EDIT_DONE;
}

static Edit cut_any(GraphCase *c, int index) {
    return cut(c, index, -1);
}
static Edit cut_positive(GraphCase *c, int index) {
    return cut(c, index, 0.25);
}

/* --- loops ------------------------------------------------------------------------------------ */

static Edit freeze_carry(GraphCase *c, int index) {
    Entry *entry;
    Node *node = node_number(c, index / 4, &entry);
    if (!node) {
        return EDIT_END;
    }
    int k = index % 4;
    if (node->op != OP_LOOP || k >= node->attr->ncarry ||
        node->body->out.at[k] == node->body->param.at[1 + k]) {
        return EDIT_SKIP;
    }
    node->body->out.at[k] = node->body->param.at[1 + k];
    return EDIT_DONE;
}

/* All iterations of a loop that ends by itself. */
static Edit never_end(GraphCase *c, int index) {
    Entry *entry;
    Node *node = node_number(c, index, &entry);
    if (!node) {
        return EDIT_END;
    }
    if (node->op != OP_LOOP || !loop_ends_itself(node->attr)) {
        return EDIT_SKIP;
    }
    Attr *attr = own_attr(c, node);
    attr->go = attr->last = 0;
    return EDIT_DONE;
}

typedef VEC(Node *) NodeList;

static Node *insert(GraphCase *c, NodeList *list, Region *region, OpCode op, Node *in, Attr attr,
                    Type type) {
    Node *node = ARENA_NEW(graph_of(c)->arena, Node);
    node->op = op;
    node->type = type_keep(graph_of(c)->keep, &graph_of(c)->types, type);
    node->in = ARENA_ARRAY(graph_of(c)->arena, Node *, 1);
    node->in[0] = in;
    node->nin = 1;
    node->loc = LOC_NONE;
    node->region = region;
    node->attr = &(const Attr){0};
    *own_attr(c, node) = attr;
    VEC_PUSH(graph_of(c)->arena, list, node);
    return node;
}

/* A body parameter of the first iteration, as a node outside; the parameter itself is dropped. */
static void place_param(GraphCase *c, NodeList *list, const Node *loop, int k) {
    Node *param = loop->body->param.at[k], *to;
    Region *region = loop->region;
    if (k == 0) {
        param->op = OP_CONST;
        param->attr = &(const Attr){0};
        own_attr(c, param);
        param->region = region;
        VEC_PUSH(graph_of(c)->arena, list, param);
        return;
    }
    to = loop->in[k - 1];
    if (k > loop->attr->ncarry + loop->attr->ninv) {
        Attr attr = {0};
        Type one = *to->type;
        for (int i = 0; i < one.rank; i++) {
            attr.hi[i] = i == 0 ? 1 : one.dim[i];
            attr.step[i] = 1;
        }
        one.dim[0] = 1;
        to = insert(c, list, region, OP_SLICE, to, attr, one);
        to = insert(c, list, region, OP_RESHAPE, to, (Attr){0}, *param->type);
    }
    replace_uses(loop->body, param, to);
}

/* The first iteration in place of the loop. */
static Edit inline_loop(GraphCase *c, int index) {
    Entry *entry;
    Node *loop = node_number(c, index, &entry);
    if (!loop) {
        return EDIT_END;
    }
    if (loop->op != OP_LOOP) {
        return EDIT_SKIP;
    }
    Region *region = loop->region, *body = loop->body;
    NodeList list = {0};
    Arena *arena = graph_of(c)->arena;
    for (uint32_t i = 0; i < loop->id; i++) {
        VEC_PUSH(arena, &list, region->node.at[i]);
    }
    for (int k = 0; k < body->param.count; k++) {
        place_param(c, &list, loop, k);
    }
    for (int i = 0; i < body->node.count; i++) {
        Node *node = body->node.at[i];
        if (node->op == OP_BODY_PARAM || node == body->param.at[0]) {
            continue;
        }
        node->region = region;
        if (node->body) {
            node->body->up = region;
        }
        VEC_PUSH(arena, &list, node);
    }
    for (int i = (int)loop->id + 1; i < region->node.count; i++) {
        Node *node = region->node.at[i];
        if (node->op != OP_PICK || node->in[0] != loop) {
            VEC_PUSH(arena, &list, node);
            continue;
        }
        int k = node->attr->axis;
        if (k < loop->attr->ncarry) {
            replace_uses(region, node, body->out.at[k]);
        } else {
            node->op = OP_BROADCAST;
            node->in[0] = body->out.at[k];
            node->attr = &(const Attr){0};
            own_attr(c, node)->axes = 1;
            VEC_PUSH(arena, &list, node);
        }
    }
    for (int i = 0; i < list.count; i++) {
        list.at[i]->id = (uint32_t)i;
    }
    region->node.at = list.at;
    region->node.count = region->node.capacity = list.count;
    return EDIT_DONE;
}

/* --- attributes and extents ------------------------------------------------------------------- */

static Edit plain_attr(GraphCase *c, int index) {
    Entry *entry;
    Node *node = node_number(c, index / 4, &entry);
    if (!node) {
        return EDIT_END;
    }
    const Attr *old = node->attr;
    switch (index % 4) {
    case 0:
        if (!old->reverse) {
            return EDIT_SKIP;
        }
        own_attr(c, node)->reverse = false;
        return EDIT_DONE;
    case 1:
        if (!(node->op == OP_LOOP && old->checkpoint) && !old->exclusive) {
            return EDIT_SKIP;
        }
        own_attr(c, node)->checkpoint = CHECKPOINT_NONE;
        own_attr(c, node)->exclusive = false;
        return EDIT_DONE;
    case 2:
        if (old->border <= BORDER_VALUE && old->value == 0) {
            return EDIT_SKIP;
        }
        own_attr(c, node)->value = node->op == OP_CONST ? old->value : 0;
        own_attr(c, node)->border = old->border ? BORDER_VALUE : BORDER_NONE;
        return old->value == node->attr->value && old->border == node->attr->border ? EDIT_SKIP
                                                                                    : EDIT_DONE;
    default:
        if (node->op != OP_LOOP || node->attr->nxs > 0 || node->attr->nys > 0 || old->trip <= 1) {
            return EDIT_SKIP;
        }
        own_attr(c, node)->trip = old->trip > 2 ? 2 : 1;
        return EDIT_DONE;
    }
}

typedef struct {
    GraphCase *c;
    int64_t from, to;
} Resize;

typedef VEC(int64_t) Extents;

static Type resized(const Resize *r, Type t) {
    for (int i = 0; i < t.rank; i++) {
        t.dim[i] = t.dim[i] == r->from ? r->to : t.dim[i];
    }
    return t;
}

static int64_t clipped(const Resize *r, int64_t n) {
    return n == r->from ? r->to : n;
}

static void resize_attr(const Resize *r, Node *node) {
    Attr *at = own_attr(r->c, node);
    for (int i = 0; node->op == OP_SLICE && i < node->type->rank; i++) {
        int64_t n = node->in[0]->type->dim[i], extent = clipped(r, at->hi[i]);
        at->lo[i] = at->lo[i] < n ? at->lo[i] : 0;
        int64_t most = (n - 1 - at->lo[i]) / at->step[i] + 1;
        at->hi[i] = extent < most ? extent : most;
    }
    if (node->op == OP_WINDOW) {
        at->taps_n = node->in[0]->type->dim[at->axis];
        at->count = clipped(r, at->count);
        at->taps = clipped(r, at->taps);
    } else if (node->op == OP_OVERLAP_ADD) {
        at->count = node->in[0]->type->dim[at->axis];
        at->taps = node->in[0]->type->dim[at->axis + 1];
        at->taps_n = clipped(r, at->taps_n);
    } else if (node->op == OP_LOOP) {
        at->trip = clipped(r, at->trip);
    } else if (node->op == OP_CONST && elem_is_int(node->type->elem)) {
        at->ivalue = clipped(r, at->ivalue); /* of a remainder that keeps an index in range */
    }
}

static void resize_region(const Resize *r, Region *region) {
    for (int i = 0; i < region->node.count; i++) {
        Node *node = region->node.at[i];
        resize_attr(r, node);
        if (node->op == OP_LOOP) {
            for (int k = 0; k < node->nin; k++) {
                Type t = *node->in[k]->type;
                if (k >= node->attr->ncarry + node->attr->ninv) {
                    t = type_make(t.elem, t.rank - 1, t.dim + 1);
                }
                node->body->param.at[1 + k]->type =
                    type_keep(region->graph->keep, &region->graph->types, t);
            }
        }
        if (node->op == OP_CUSTOM) {
            for (int k = 0; k < node->nin; k++) {
                node->body->param.at[k]->type = node->in[k + 1 < node->nin ? k + 1 : 0]->type;
            }
        }
        if (node->body) {
            resize_region(r, node->body);
        }
        if (node->op != OP_BODY_PARAM && node->op != OP_SLOT) {
            Type t = shape_infer(node->op, node->in, node->nin, node->attr, node->body,
                                 resized(r, *node->type));
            node->type = type_keep(region->graph->keep, &region->graph->types, t);
        } else if (node->op == OP_SLOT) {
            node->type =
                type_keep(region->graph->keep, &region->graph->types, node->attr->slot->type);
        }
    }
}

/* Integers that stay below an extent stay below it. */
static void resize_slot(const Resize *r, Slot *slot) {
    slot->type = resized(r, slot->type);
    double *data = graph_case_data(r->c, slot);
    if (slot->lo < slot->hi && slot->hi > r->to) {
        slot->hi = slot->hi > r->from ? slot->hi : r->to;
        for (int64_t i = 0; data && i < type_count(slot->type); i++) {
            data[i] = data[i] < (double)slot->hi ? data[i] : (double)slot->lo;
        }
    }
}

static void note_extent(Extents *list, Arena *arena, int64_t n) {
    for (int i = 0; i < list->count; i++) {
        if (list->at[i] == n) {
            return;
        }
    }
    VEC_PUSH(arena, list, n);
}

static Extents extents_of(const GraphCase *c, Arena *arena) {
    Extents list = {0};
    Entry *entry;
    const Node *node;
    for (int i = 0; (node = node_number(c, i, &entry)) != NULL; i++) {
        for (int k = 0; k < node->type->rank; k++) {
            note_extent(&list, arena, node->type->dim[k]);
        }
        if (node->op == OP_LOOP) {
            note_extent(&list, arena, node->attr->trip);
        }
    }
    return list;
}

/* An extent taken down wherever it stands: to 1, 2 or a half. */
static Edit shrink_extent(GraphCase *c, int index) {
    Arena scratch = {0};
    Extents list = extents_of(c, &scratch);
    int64_t from = index / 3 < list.count ? list.at[index / 3] : 0;
    arena_free(&scratch);
    if (from == 0 && index / 3 >= list.count) {
        return EDIT_END;
    }
    int64_t to = index % 3 == 0 ? 1 : index % 3 == 1 ? 2 : from / 2;
    Resize r = {c, from, to};
    if (to < 1 || to >= from || (to <= 2 && index % 3 == 2)) {
        return EDIT_SKIP;
    }
    for (int i = 0; i < c->module->slot.count; i++) {
        resize_slot(&r, c->module->slot.at[i]);
    }
    for (int i = 0; i < c->input.count; i++) {
        resize_slot(&r, c->input.at[i].slot);
    }
    for (int e = 0; e < c->module->entry.count; e++) {
        resize_region(&r, c->module->entry.at[e]->region);
    }
    return EDIT_DONE;
}

/* --- the search ------------------------------------------------------------------------------- */

static const EditRule rules[] = {
    drop_entry,   drop_out, raise_out,    drop_slot,    drop_input,  bypass_first, bypass_second,
    bypass_third, cut_any,  cut_positive, never_end,    freeze_carry, inline_loop, plain_attr,
    shrink_extent};
enum { RULES = (int)(sizeof rules / sizeof *rules) };

static Edit edit(GraphCase *c, int kind, int index) {
    Edit done = rules[kind](c, index);
    for (int e = 0; done == EDIT_DONE && e < c->module->entry.count; e++) {
        Entry *entry = c->module->entry.at[e];
        entry->region = region_rebuild(graph_of(c), entry->region, NULL, NULL);
    }
    return done;
}

typedef struct {
    GraphCase *c;
    int kind, index;
    StillFails fails;
    void *ctx;
} Trial;

typedef struct {
    Edit edit;
    bool fails;
} Outcome;

static void trial(void *ctx, void *result) {
    Trial *t = ctx;
    Outcome *out = result;
    out->edit = edit(t->c, t->kind, t->index);
    if (out->edit == EDIT_DONE) {
        for (int e = 0; e < t->c->module->entry.count; e++) {
            region_verify(t->c->module->entry.at[e]->region, STAGE_BUILT);
        }
        out->fails = t->fails(t->ctx, t->c);
    }
}

void graph_reduce(GraphCase *c, StillFails fails, void *ctx, int seconds) {
    time_t end = time(NULL) + seconds;
    for (bool again = true; again;) {
        again = false;
        for (int kind = 0; kind < RULES; kind++) {
            for (int index = 0; time(NULL) < end;) {
                Trial t = {c, kind, index, fails, ctx};
                Outcome out = {EDIT_SKIP, false};
                char died[200];
                isolated(trial, &t, &out, sizeof out, seconds, died, sizeof died);
                if (out.edit == EDIT_END) {
                    break;
                }
                if (out.fails) {
                    edit(c, kind, index);
                    again = true;
                } else {
                    index++;
                }
            }
        }
    }
}
