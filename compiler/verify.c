/* verify: the invariants of a region at each stage, checked behind every pass.
 * Contract: needs anything that claims to be a region; gives nothing; BUGs with the node that
 * lies. */
#include "compiler/graph.h"
#include "compiler/shape.h"

static const char *stage_name(GraphStage stage) {
    return stage == STAGE_BUILT ? "build" : stage == STAGE_GRAD ? "grad" : "optimise";
}

static void node_verify(const Node *node, const Region *region, GraphStage stage) {
    const char *where = stage_name(stage);
    for (int i = 0; i < node->nin; i++) {
        const Node *in = node->in[i];
        if (in->region != region) {
            BUG("after %s: operand %d of %s (node %u) is of another region", where, i,
                op_info[node->op].name, node->id);
        }
        if (in->id >= node->id || region->node.at[in->id] != in) {
            BUG("after %s: operand %d of %s (node %u) comes later", where, i,
                op_info[node->op].name, node->id);
        }
        if (in->type->elem == TY_TUPLE && node->op != OP_PICK) {
            BUG("after %s: %s (node %u) reads a tuple", where, op_info[node->op].name, node->id);
        }
    }
    Type type = shape_infer(node->op, node->in, node->nin, node->attr, node->body, *node->type);
    if (!type_equal(type, *node->type)) {
        BUG("after %s: %s (node %u) has another type than its operands give", where,
            op_info[node->op].name, node->id);
    }
    if (node->type->elem == TY_ERROR || (node->type->elem == TY_TUPLE && node->op != OP_LOOP)) {
        BUG("after %s: %s (node %u) has no type", where, op_info[node->op].name, node->id);
    }
    if (stage != STAGE_BUILT && op_info[node->op].cls == CLASS_MARK) {
        BUG("after %s: mark '%s' is left (node %u)", where, op_info[node->op].name, node->id);
    }
    if (node->op == OP_SLOT && region->up) {
        BUG("after %s: a body reads slot '%s' itself", where, node->attr->slot->name);
    }
    if (node->body) {
        if (node->body->up != region) {
            BUG("after %s: the body of node %u hangs elsewhere", where, node->id);
        }
        region_verify(node->body, stage);
    }
}

void region_verify(const Region *region, GraphStage stage) {
    for (int i = 0; i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        if (node->region != region || node->id != (uint32_t)i) {
            BUG("after %s: node %d is not where it says", stage_name(stage), i);
        }
        node_verify(node, region, stage);
    }
    for (int k = 0; k < region->param.count; k++) {
        const Node *param = region->param.at[k];
        if (param->region != region || param->op != OP_BODY_PARAM || param->attr->axis != k) {
            BUG("after %s: body parameter %d is out of place", stage_name(stage), k);
        }
    }
    for (int k = 0; k < region->out.count; k++) {
        if (region->out.at[k]->region != region) {
            BUG("after %s: result %d is of another region", stage_name(stage), k);
        }
    }
}
