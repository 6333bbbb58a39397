/* dump: a module as text, one node a line, for --dump=STAGE and failing tests.
 * Contract: needs a module of any stage; prints it; changes nothing. */
#include "compiler/graph.h"

#include <inttypes.h>

static void print_type(Type t, FILE *out) {
    fprintf(out, "%s", t.elem == TY_TUPLE ? "tuple" : elem_name(t.elem));
    for (int i = 0; i < t.rank; i++) {
        fprintf(out, "%s%" PRId64 "%s", i == 0 ? "[" : ", ", t.dim[i], i == t.rank - 1 ? "]" : "");
    }
}

static void print_list(FILE *out, const char *name, const int64_t *list, int n) {
    fprintf(out, ", %s = [", name);
    for (int i = 0; i < n; i++) {
        fprintf(out, "%s%" PRId64, i ? ", " : "", list[i]);
    }
    fprintf(out, "]");
}

static void print_labels(FILE *out, const char *name, const int8_t *list, int n) {
    fprintf(out, ", %s = \"", name);
    for (int i = 0; i < n; i++) {
        fputc('a' + list[i], out);
    }
    fprintf(out, "\"");
}

static void print_axes(FILE *out, uint32_t axes) {
    fprintf(out, ", axes = [");
    for (int i = 0, n = 0; i < MD_RANK; i++) {
        if (axes >> i & 1) {
            fprintf(out, "%s%d", n++ ? ", " : "", i);
        }
    }
    fprintf(out, "]");
}

static void print_attr(const Node *node, FILE *out) {
    const Attr *at = node->attr;
    int rank = node->nin > 0 ? node->in[0]->type.rank : 0;
    if (node->op == OP_CONST) {
        if (elem_is_int(node->type.elem)) {
            fprintf(out, "%" PRId64, at->ivalue);
        } else {
            fprintf(out, "%.17g", at->value);
        }
        return;
    }
    if (node->op == OP_SLOT) {
        fprintf(out, "%s", at->slot->name);
        return;
    }
    if (at->axes) {
        print_axes(out, at->axes);
    }
    switch (node->op) { /* text of attributes, the dump's own table */
    case OP_PERMUTE: {
        int64_t map[MD_RANK];
        for (int i = 0; i < rank; i++) {
            map[i] = at->map[i];
        }
        print_list(out, "map", map, rank);
        break;
    }
    case OP_SLICE:
        print_list(out, "start", at->lo, rank);
        print_list(out, "extent", at->hi, rank);
        print_list(out, "step", at->step, rank);
        break;
    case OP_PAD:
        print_list(out, "before", at->lo, rank);
        print_list(out, "after", at->hi, rank);
        break;
    case OP_WINDOW:
    case OP_OVERLAP_ADD:
        fprintf(out, ", axis = %d, s = %" PRId64 ", d = %" PRId64 ", p = %" PRId64, at->axis, at->s,
                at->d, at->p);
        break;
    case OP_CONTRACT:
        print_labels(out, "a", at->la, node->in[0]->type.rank);
        print_labels(out, "b", at->lb, node->in[1]->type.rank);
        print_labels(out, "to", at->lo_, node->type.rank);
        break;
    case OP_LOOP:
        fprintf(out, ", trip = %" PRId64 ", carry = %d, inv = %d, xs = %d, ys = %d%s", at->trip,
                at->ncarry, at->ninv, at->nxs, at->nys, at->reverse ? ", reverse" : "");
        break;
    case OP_RANDOM:
        fprintf(out, ", dist = %d, site = %" PRIu64, (int)at->dist, at->site);
        break;
    case OP_GATHER:
    case OP_SCATTER_ADD:
        fprintf(out, ", batch = %d", at->batch);
        break;
    case OP_CONCAT:
    case OP_IOTA:
    case OP_ARGMAX:
    case OP_ARGMIN:
    case OP_CUMSUM:
    case OP_PICK:
    case OP_BODY_PARAM:
        fprintf(out, ", axis = %d", at->axis);
        break;
    default:
        break;
    }
    if (at->border != BORDER_NONE) {
        fprintf(out, ", border = %d, value = %.9g", (int)at->border, at->value);
    }
}

void region_dump(const Region *region, FILE *out, int indent) {
    for (int i = 0; i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        fprintf(out, "%*sn%u: ", indent, "", node->id);
        print_type(node->type, out);
        fprintf(out, " = %s(", op_info[node->op].name);
        for (int k = 0; k < node->nin; k++) {
            fprintf(out, "%sn%u", k ? ", " : "", node->in[k]->id);
        }
        print_attr(node, out);
        fprintf(out, ")");
        if (node->body) {
            fprintf(out, " {\n");
            region_dump(node->body, out, indent + 4);
            fprintf(out, "%*s}", indent, "");
        }
        fprintf(out, ";%s%s\n", node->name ? " // " : "", node->name ? node->name : "");
    }
    fprintf(out, "%*sreturn", indent, "");
    for (int k = 0; k < region->out.count; k++) {
        fprintf(out, "%s n%u", k ? "," : "", region->out.at[k]->id);
    }
    fprintf(out, ";\n");
}

void module_dump(const Module *module, FILE *out) {
    static const char *const kinds[] = {"init", "train", "eval", "eval_end", "entry", "load", "test"};
    for (int i = 0; i < module->slot.count; i++) {
        const Slot *slot = module->slot.at[i];
        fprintf(out, "%s %s: ", slot->kind == SLOT_PARAM ? "param" : "state", slot->name);
        print_type(slot->type, out);
        fprintf(out, ";\n");
    }
    for (int i = 0; i < module->entry.count; i++) {
        const Entry *entry = module->entry.at[i];
        fprintf(out, "%s %s {\n", kinds[entry->kind], entry->name);
        region_dump(entry->region, out, 4);
        for (int k = 0; k < entry->out.count; k++) {
            const EntryOut *o = &entry->out.at[k];
            fprintf(out, "    // result %d: %s %s\n", k, o->slot ? "writes" : "gives",
                    o->slot ? o->slot->name : o->name);
        }
        fprintf(out, "}\n");
    }
}
