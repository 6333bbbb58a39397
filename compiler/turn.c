/* turn: see turn.h. */
#include "compiler/turn.h"

Turn turn_of(const Node *x) {
    const Turn none = {0, 0};
    int rank = x->type->rank, axis = 0;
    if (x->op != OP_PERMUTE) {
        return none;
    }
    const int *map = x->attr->map;
    while (axis < rank && map[axis] == axis) {
        axis++;
    }
    if (axis == 0 || axis == rank) {
        return none;
    }
    Turn t = {axis, rank - map[axis]};
    for (int i = axis; i < rank; i++) {
        if (map[i] != turn_place(t, rank, i)) {
            return none;
        }
    }
    return t;
}

bool turn_equal(Turn a, Turn b) {
    return a.count == b.count && (a.count == 0 || a.axis == b.axis);
}

int turn_place(Turn t, int rank, int axis) {
    return axis < t.axis || t.count == 0 ? axis
           : axis < t.axis + t.count     ? rank - t.count + axis - t.axis
                                         : axis - t.count;
}

uint32_t turn_axes(Turn t, int rank, uint32_t axes) {
    uint32_t behind = 0;
    for (int i = 0; i < rank; i++) {
        behind |= (axes >> i & 1) << turn_place(t, rank, i);
    }
    return behind;
}

void turn_list(Turn t, int rank, const int64_t *from, int64_t *to) {
    for (int i = 0; i < rank; i++) {
        to[turn_place(t, rank, i)] = from[i];
    }
}

static Node *permuted(Graph *g, Node *x, Turn t) {
    int map[MD_RANK] = {0}, rank = x->type->rank;
    for (int i = 0; i < rank; i++) {
        map[turn_place(t, rank, i)] = i;
    }
    return node_permute(g, x, map);
}

/* Its own axes in the order that they have behind the view, then repeated. */
static Node *repeated(Graph *g, const Node *x, Turn t) {
    int rank = x->type->rank, map[MD_RANK] = {0}, own[MD_RANK], count = 0;
    int64_t dim[MD_RANK];
    for (int i = 0, k = 0; i < rank; i++) {
        own[turn_place(t, rank, i)] = x->attr->axes >> i & 1 ? -1 : k++;
    }
    for (int i = 0; i < rank; i++) {
        if (own[i] >= 0) {
            map[count++] = own[i];
        }
    }
    turn_list(t, rank, x->type->dim, dim);
    return node_broadcast(g, node_permute(g, x->in[0], map), turn_axes(t, rank, x->attr->axes),
                          rank, dim);
}

Node *turn_behind(Graph *g, Node *x, Turn t) {
    Turn own = turn_of(x);
    return t.count == 0                           ? x
           : own.count != 0 && turn_equal(own, t) ? x->in[0]
           : x->op == OP_BROADCAST                ? repeated(g, x, t)
                                                  : permuted(g, x, t);
}

Node *turn_view(Graph *g, Node *behind, Turn t) {
    int map[MD_RANK] = {0}, rank = behind->type->rank;
    for (int i = 0; i < rank; i++) {
        map[i] = turn_place(t, rank, i);
    }
    return t.count == 0 ? behind : node_permute(g, behind, map);
}

Turn turn_shifted(Turn t, int more) {
    Turn shifted = {t.axis + more, t.count};
    return t.count == 0 || shifted.axis < 1 ? (Turn){0, 0} : shifted;
}
