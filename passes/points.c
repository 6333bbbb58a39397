/* points: the values to which a region takes derivatives, its points, while GRAD nodes stand in it
 * (STAGE_BUILT).
 *
 * What is rewritten so that it is no longer computed from a point, but from what the point is made
 * of, has no derivative to it any more: it would silently be 0. So who looks through values in
 * front of the pass that differentiates asks here. Changes nothing. */
#include "passes/points.h"

/* Whether a derivative is taken to a value that no rule can change or make equal to another one: a
 * parameter, state or input, a carry, a hidden constant. `loop`: whose body this is, or NULL; then
 * what is borrowed from outside is noted in borrowed[], by operand. */
static bool point_is_fixed(const Node *point, const Node *loop, bool *borrowed) {
    if (point->op == OP_BODY_PARAM && loop && point->attr->axis > loop->attr->ncarry) {
        borrowed[point->attr->axis - 1] = true; /* as fixed as it is outside */
        return true;
    }
    const Node *behind = point->op == OP_STOP ? point->in[0] : NULL;
    behind = behind && behind->op == OP_BROADCAST ? behind->in[0] : behind;
    const bool hidden = behind && behind->op == OP_CONST;
    return point->op == OP_SLOT || point->op == OP_BODY_PARAM || hidden;
}

/* The same of all GRAD nodes of `region` and its bodies. */
static bool points_are_fixed(const Region *region, const Node *loop, bool *borrowed) {
    for (int i = region->node.count - 1; i >= 0; i--) {
        const Node *n = region->node.at[i];
        const Node *point = n->op == OP_GRAD ? n->in[1] : NULL;
        if (n->body) {
            bool *of_body = ARENA_ARRAY(region->graph->arena, bool, n->nin + 1);
            if (!points_are_fixed(n->body, n->op == OP_LOOP ? n : NULL, of_body)) {
                return false;
            }
            for (int k = 0; n->op == OP_LOOP && k < n->nin; k++) {
                if (of_body[k] && !point_is_fixed(n->in[k], loop, borrowed)) {
                    return false;
                }
            }
        }
        if (point && !point_is_fixed(point, loop, borrowed)) {
            return false;
        }
    }
    return true;
}

bool points_fixed(const Region *region) {
    return points_are_fixed(region, NULL, NULL);
}

void points_note(const Region *region, bool *point) {
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        if (n->op == OP_GRAD) {
            point[n->in[1]->id] = true;
        }
    }
}
