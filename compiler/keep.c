/* keep: hash-consing. Types and attributes are large, and few of them differ, so equal ones are
 * one; those of leaves and maps, the most, are kept without what these have not.
 * Contract: needs operands that are kept already; gives what is equal or NULL; changes no values.
 */
#include "compiler/keep.h"

#include <string.h>

const Attr no_attr;

/* Mostly zero: a word at a time, with its place. */
static uint64_t hash_words(uint64_t hash, const void *data, size_t bytes) {
    const char *at = data;
    for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t), at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        if (word) {
            hash = hash_word(hash ^ bytes, word);
        }
    }
    return hash;
}

/* --- tables ----------------------------------------------------------------------------------- */

typedef uint64_t (*HashOf)(const void *key);
typedef bool (*EqualTo)(const void *kept, const void *key);

static const void **empty_place(const KeepTable *table, uint64_t hash) {
    while (table->at[hash & (uint64_t)(table->size - 1)]) {
        hash++;
    }
    return &table->at[hash & (uint64_t)(table->size - 1)];
}

/* Where the equal one is, or NULL stands until it is put there. */
static const void **place_of(Arena *arena, KeepTable *table, const void *key, HashOf hash,
                             EqualTo equal) {
    if (2 * table->used >= table->size) {
        KeepTable old = *table;
        table->size = old.size ? 2 * old.size : 64;
        table->at = ARENA_ARRAY(arena, const void *, table->size);
        for (int i = 0; i < old.size; i++) {
            if (old.at[i]) {
                *empty_place(table, hash(old.at[i])) = old.at[i];
            }
        }
        arena_drop(arena, old.at, sizeof *old.at * (size_t)old.size);
    }
    uint64_t h = hash(key), mask = (uint64_t)table->size - 1;
    while (table->at[h & mask] && !equal(table->at[h & mask], key)) {
        h++;
    }
    table->used += table->at[h & mask] == NULL;
    return &table->at[h & mask];
}

/* --- types ------------------------------------------------------------------------------------ */

static uint64_t type_hash(const void *key) {
    return hash_words(HASH_TABLE, key, sizeof(Type));
}

static bool type_same(const void *kept, const void *key) {
    return memcmp(kept, key, sizeof(Type)) == 0;
}

const Type *type_keep(Arena *arena, KeepTable *types, Type type) {
    const void **place = place_of(arena, types, &type, type_hash, type_same);
    if (!*place) {
        Type *copy = ARENA_NEW(arena, Type);
        *copy = type;
        *place = copy;
    }
    return *place;
}

/* --- attributes ------------------------------------------------------------------------------- */

enum { ATTR_BRIEF = offsetof(Attr, lo) };

static size_t attr_bytes(const Attr *attr) {
    return attr->kept == ATTR_KEPT_BRIEF ? ATTR_BRIEF : sizeof *attr;
}

Attr attr_copy(const Attr *attr) {
    Attr copy = {0};
    memcpy(&copy, attr, attr_bytes(attr));
    copy.kept = ATTR_FRESH;
    return copy;
}

static bool attr_same(const void *kept, const void *key) {
    const Attr *a = kept, *b = key;
    return a->kept == b->kept && memcmp(a, b, attr_bytes(a)) == 0;
}

static uint64_t attr_hash(const void *key) {
    return hash_words(HASH_TABLE, key, attr_bytes(key));
}

const Attr *attr_keep(Graph *g, OpCode op, const Attr *attr) {
    if (!attr || attr->kept != ATTR_FRESH || memcmp(attr, &no_attr, sizeof *attr) == 0) {
        return attr && attr->kept != ATTR_FRESH ? attr : &no_attr;
    }
    bool brief = op_info[op].cls == CLASS_LEAF || op_info[op].cls == CLASS_MAP;
    if (brief && memcmp(attr->lo, no_attr.lo, sizeof *attr - ATTR_BRIEF) != 0) {
        BUG("%s has attributes that its class does not keep", op_info[op].name);
    }
    Attr key = *attr;
    key.kept = brief ? ATTR_KEPT_BRIEF : ATTR_KEPT;
    const void **place = place_of(g->keep, &g->attrs, &key, attr_hash, attr_same);
    if (!*place) {
        Attr *copy = arena_alloc(g->keep, attr_bytes(&key));
        memcpy(copy, &key, attr_bytes(&key));
        *place = copy;
    }
    return *place;
}

/* --- nodes ------------------------------------------------------------------------------------ */

uint32_t node_hash(OpCode op, Node *const *in, int nin, const Attr *attr, const Type *type) {
    uint64_t h = hash_word(HASH_TABLE, (uint64_t)op);
    for (int i = 0; i < nin; i++) {
        h = hash_word(h, (uint64_t)in[i]->id);
    }
    h = hash_word(hash_word(h, (uintptr_t)attr), (uintptr_t)type);
    return (uint32_t)(h ^ h >> 32);
}

static bool node_is(const Node *node, OpCode op, Node *const *in, int nin, const Attr *attr,
                    const Type *type) {
    return node->op == op && node->nin == nin && node->type == type && node->attr == attr &&
           (nin == 0 || memcmp(node->in, in, sizeof *in * (size_t)nin) == 0);
}

static void put(Region *region, ConsSlot slot) {
    uint32_t h = slot.hash, mask = (uint32_t)region->cons_size - 1;
    while (region->cons[h & mask].place) {
        h++;
    }
    region->cons[h & mask] = slot;
    region->cons_used++;
}

void node_note(Region *region, const Node *node, uint32_t hash) {
    if (2 * (region->cons_used + 1) > region->cons_size) {
        ConsSlot *old = region->cons;
        int size = region->cons_size;
        region->cons_size = size ? 2 * size : 64;
        region->cons = ARENA_ARRAY(region->graph->arena, ConsSlot, region->cons_size);
        region->cons_used = 0;
        for (int i = 0; i < size; i++) {
            if (old[i].place) {
                put(region, old[i]);
            }
        }
        arena_drop(region->graph->arena, old, sizeof *old * (size_t)size);
    }
    put(region, (ConsSlot){hash, node->id + 1});
}

void nodes_forget(Region *region) {
    arena_drop(region->graph->arena, region->cons,
               sizeof *region->cons * (size_t)region->cons_size);
    region->cons = NULL;
    region->cons_size = region->cons_used = 0;
    for (int i = 0; i < region->node.count; i++) {
        if (region->node.at[i]->body) {
            nodes_forget(region->node.at[i]->body);
        }
    }
}

Node *node_find(const Region *region, uint32_t hash, OpCode op, Node *const *in, int nin,
                const Attr *attr, const Type *type) {
    if (region->cons_size == 0) {
        return NULL;
    }
    uint32_t mask = (uint32_t)region->cons_size - 1;
    for (uint32_t h = hash; region->cons[h & mask].place; h++) {
        const ConsSlot *slot = &region->cons[h & mask];
        Node *node = slot->hash == hash ? region->node.at[slot->place - 1] : NULL;
        if (node && node_is(node, op, in, nin, attr, type)) {
            return node;
        }
    }
    return NULL;
}
