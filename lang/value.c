/* value: makers and texts of elaboration values. */
#include "lang/value.h"

#include "lang/half.h"
#include "lang/scope.h"

const Value value_poison = {.kind = V_POISON};
const Value value_nothing = {.kind = V_RECORD};

const Value *value_int(Arena *arena, int64_t i) {
    Value *v = ARENA_NEW(arena, Value);
    v->kind = V_INT;
    v->integer = i;
    return v;
}

const Value *value_dim(Arena *arena, Dim dim) {
    Value *v = ARENA_NEW(arena, Value);
    v->kind = V_INT;
    v->integer = dim.size;
    v->dim_of = dim.name;
    return v;
}

const Value *value_real(Arena *arena, double r) {
    Value *v = ARENA_NEW(arena, Value);
    v->kind = V_REAL;
    v->real = r;
    return v;
}

const Value *value_bool(Arena *arena, bool b) {
    Value *v = ARENA_NEW(arena, Value);
    v->kind = V_BOOL;
    v->truth = b;
    return v;
}

const Value *value_string(Arena *arena, const char *s) {
    Value *v = ARENA_NEW(arena, Value);
    v->kind = V_STRING;
    v->text = s;
    return v;
}

const Value *value_list(Arena *arena, const Value *const *item, int count) {
    Value *v = ARENA_NEW(arena, Value);
    v->kind = V_LIST;
    v->item = ARENA_ARRAY(arena, const Value *, count);
    for (int i = 0; i < count; i++) {
        v->item[i] = item[i];
    }
    v->count = count;
    return v;
}

Axes value_axes(Arena *arena, Value *v, int nspan, int rank) {
    Axes axes = {ARENA_ARRAY(arena, Index *, nspan), ARENA_ARRAY(arena, Dim, rank)};
    for (int i = 0; i < v->nspan && i < nspan; i++) {
        axes.span[i] = v->span[i];
    }
    for (int i = 0; i < v->rank && i < rank; i++) {
        axes.dim[i] = v->dim[i];
    }
    v->span = axes.span;
    v->dim = axes.dim;
    return axes;
}

bool value_same_span(const Value *a, const Value *b) {
    bool same = a->nspan == b->nspan;
    for (int i = 0; same && i < a->nspan; i++) {
        same = a->span[i] == b->span[i];
    }
    return same;
}

const Value *value_tensor(Arena *arena, Node *node, int rank, const Dim *dim) {
    Value *v = ARENA_NEW(arena, Value);
    v->kind = V_TENSOR;
    v->node = node;
    Axes axes = value_axes(arena, v, 0, rank);
    v->rank = rank;
    for (int i = 0; i < rank; i++) {
        axes.dim[i] = dim[i];
    }
    return v;
}

const Value *value_scalar(Arena *arena, Node *node) {
    return value_tensor(arena, node, 0, NULL);
}

const Value *value_ranged(Arena *arena, const Value *v, int64_t lo, int64_t hi) {
    Value *r = ARENA_NEW(arena, Value);
    *r = *v;
    r->ranged = true;
    r->lo = lo;
    r->hi = hi;
    return r;
}

const Value *value_with(Arena *arena, const Value *v, Node *node) {
    Value *r = ARENA_NEW(arena, Value);
    *r = *v;
    r->node = node;
    r->loop = NULL;
    r->ranged = false;
    return r;
}

bool value_is_number(const Value *v) {
    return v->kind == V_INT || v->kind == V_REAL;
}

double value_number(const Value *v) {
    return v->kind == V_INT ? (double)v->integer : v->real;
}

Elem value_elem(const Value *v) {
    return v->node->type->elem;
}

Dim value_to_dim(const Value *v) {
    return (Dim){.size = v->integer, .name = v->dim_of};
}

const char *dim_text(Arena *arena, Dim dim) {
    return dim.name ? str_printf(arena, "%s = %lld", dim.name->name, (long long)dim.size)
                    : str_printf(arena, "%lld", (long long)dim.size);
}

const char *shape_text(Arena *arena, int rank, const Dim *dim) {
    Text t = {.arena = arena};
    text_add(&t, "[");
    for (int i = 0; i < rank; i++) {
        text_printf(&t, i ? ", %s" : "%s", dim_text(arena, dim[i]));
    }
    text_add(&t, "]");
    return t.at;
}

const char *type_text(Arena *arena, Type type) {
    Dim dim[MD_RANK] = {0};
    for (int i = 0; i < type.rank; i++) {
        dim[i].size = type.dim[i];
    }
    const char *shape = type.rank ? shape_text(arena, type.rank, dim) : "";
    return str_printf(arena, "%s%s", elem_name(type.elem), shape);
}

const char *value_kind_text(const Value *v) {
    switch (v->kind) {
    case V_POISON: return "an unknown value";
    case V_INT: return "a compile-time integer";
    case V_REAL: return "a compile-time number";
    case V_BOOL: return "a compile-time bool";
    case V_STRING: return "a string";
    case V_LIST: return "a list";
    case V_TENSOR: return v->rank ? "a tensor" : "a run-time scalar";
    case V_RECORD: return "a record of several results";
    case V_INSTANCE: return "an instance";
    case V_PATH: return "a model or a part of one";
    }
    return "";
}

const char *value_text(Arena *arena, const Value *v) {
    if (v->kind == V_TENSOR) {
        const char *shape = v->rank ? shape_text(arena, v->rank, v->dim) : "";
        return str_printf(arena, "%s%s", elem_name(half_elem(v)), shape);
    }
    if (v->kind == V_INT) {
        return str_printf(arena, "%lld", (long long)v->integer);
    }
    if (v->kind == V_REAL) {
        return str_printf(arena, "%g", v->real);
    }
    return value_kind_text(v);
}
