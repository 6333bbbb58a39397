/* keep: what a graph holds once: types, attributes, and the nodes of a region, found by what they
 * are. */
#ifndef MDLC_COMPILER_KEEP_H
#define MDLC_COMPILER_KEEP_H

#include "compiler/graph.h"

/* The one type of the table that equals this, which lives as long as the arena does. */
const Type *type_keep(Arena *arena, KeepTable *types, Type type);
/* The one attributes of the graph that equal these; NULL: none. */
const Attr *attr_keep(Graph *g, OpCode op, const Attr *attr);
extern const Attr no_attr;

/* Of attributes and types that are kept. */
uint32_t node_hash(OpCode op, Node *const *in, int nin, const Attr *attr, const Type *type);
/* A node of the region that was added with this hash and is the same; NULL: there is none. */
Node *node_find(const Region *region, uint32_t hash, OpCode op, Node *const *in, int nin,
                const Attr *attr, const Type *type);
void node_note(Region *region, const Node *node, uint32_t hash);
/* The region and those in it are complete: the tables of their nodes go. */
void nodes_forget(Region *region);

#endif
