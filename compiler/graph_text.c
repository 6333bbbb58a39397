/* graph_text: tables of words, and attributes by name.
 * Contract: needs nothing; gives names for fields and values; changes only what it is told to. */
#include "compiler/graph_text.h"

#include <string.h>

#define FIELD(op, name, kind, member, of)                                                          \
    { OP_##op, name, ATTR_##kind, offsetof(Attr, member), of }

const AttrField attr_fields[] = {
    FIELD(IOTA, "axis", INT, axis, 0),
    FIELD(PERMUTE, "map", MAP, map, OF_FIRST),
    FIELD(SLICE, "start", LIST, lo, OF_FIRST),
    FIELD(SLICE, "extent", LIST, hi, OF_FIRST),
    FIELD(SLICE, "step", LIST, step, OF_FIRST),
    FIELD(PAD, "before", LIST, lo, OF_FIRST),
    FIELD(PAD, "after", LIST, hi, OF_FIRST),
    FIELD(PAD, "border", BORDER, border, 0),
    FIELD(PAD, "value", NUMBER, value, 0),
    FIELD(BROADCAST, "axes", AXES, axes, 0),
    FIELD(FLIP, "axes", AXES, axes, 0),
    FIELD(WINDOW, "axis", INT, axis, 0),
    FIELD(WINDOW, "s", INT64, s, 0),
    FIELD(WINDOW, "d", INT64, d, 0),
    FIELD(WINDOW, "p", INT64, p, 0),
    FIELD(WINDOW, "count", INT64, count, 0),
    FIELD(WINDOW, "taps", INT64, taps, 0),
    FIELD(WINDOW, "n", INT64, taps_n, 0),
    FIELD(WINDOW, "border", BORDER, border, 0),
    FIELD(WINDOW, "value", NUMBER, value, 0),
    FIELD(CONCAT, "axis", INT, axis, 0),
    FIELD(RANDOM, "dist", DIST, dist, 0),
    FIELD(RANDOM, "site", SITE, site, 0),
    FIELD(POINT, "site", SITE, site, 0),
    FIELD(SUM, "axes", AXES, axes, 0),
    FIELD(SUM, "exact", BOOL, exact, 0),
    FIELD(PROD, "axes", AXES, axes, 0),
    FIELD(FMAX, "axes", AXES, axes, 0),
    FIELD(FMIN, "axes", AXES, axes, 0),
    FIELD(ARGMAX, "axis", INT, axis, 0),
    FIELD(ARGMIN, "axis", INT, axis, 0),
    FIELD(BF16, "reverse", BOOL, reverse, 0),
    FIELD(F16, "reverse", BOOL, reverse, 0),
    FIELD(CAST, "exact", BOOL, exact, 0),
    FIELD(CUMSUM, "axis", INT, axis, 0),
    FIELD(CUMSUM, "reverse", BOOL, reverse, 0),
    FIELD(CUMSUM, "exclusive", BOOL, exclusive, 0),
    FIELD(OVERLAP_ADD, "axis", INT, axis, 0),
    FIELD(OVERLAP_ADD, "s", INT64, s, 0),
    FIELD(OVERLAP_ADD, "d", INT64, d, 0),
    FIELD(OVERLAP_ADD, "p", INT64, p, 0),
    FIELD(OVERLAP_ADD, "count", INT64, count, 0),
    FIELD(OVERLAP_ADD, "taps", INT64, taps, 0),
    FIELD(OVERLAP_ADD, "n", INT64, taps_n, 0),
    FIELD(OVERLAP_ADD, "border", BORDER, border, 0),
    FIELD(OVERLAP_ADD, "value", NUMBER, value, 0),
    FIELD(CONTRACT, "a", LABELS, la, OF_FIRST),
    FIELD(CONTRACT, "b", LABELS, lb, OF_SECOND),
    FIELD(CONTRACT, "to", LABELS, lo_, OF_RESULT),
    FIELD(CONTRACT, "exact", BOOL, exact, 0),
    FIELD(GATHER, "batch", INT, batch, 0),
    FIELD(SCATTER_ADD, "batch", INT, batch, 0),
    FIELD(ORDER, "reverse", BOOL, reverse, 0),
    FIELD(LOOP, "carry", INT, ncarry, 0),
    FIELD(LOOP, "invariant", INT, ninv, 0),
    FIELD(LOOP, "reverse", BOOL, reverse, 0),
    FIELD(LOOP, "aside", BOOL, aside, 0),
    FIELD(LOOP, "checkpoint", INT64, checkpoint, 0),
    FIELD(LOOP, "go", INT, go, 0),
    FIELD(LOOP, "last", INT, last, 0),
    FIELD(PICK, "result", INT, axis, 0),
};
const int nattr_fields = (int)(sizeof attr_fields / sizeof *attr_fields);

const char *const border_words[] = {"none", "value", "edge", "wrap", NULL};
const char *const dist_words[] = {"bits", "uniform", "normal", NULL};
const char *const role_words[] = {"parameter", "layer", "optimizer", "counter",
                                  "model",     "copy",  "ring",      NULL};
const char *const entry_words[] = {"init", "train", "eval", "eval_end",
                                   "call", "load",  "test", NULL};
const char *const out_words[] = {"result", "loss",   "metric", "grad_norm", "write",
                                 "sum",    "expect", "push",   "need",      "limit",
                                 "scaled_norm", NULL};
const char *const source_words[] = {"columns", "record", "window", "made", NULL};

const DataNumber data_numbers[] = {
    {"first", offsetof(DataField, first)},   {"count", offsetof(DataField, count)},
    {"length", offsetof(DataField, length)}, {"offset", offsetof(DataField, offset)},
    {"stride", offsetof(DataField, stride)}, {"raw_count", offsetof(DataField, raw_count)},
    {"norm", offsetof(DataField, norm)},
};
const int ndata_numbers = (int)(sizeof data_numbers / sizeof *data_numbers);

/* Reads and writes by offset, with the type that the kind says. */
#define GET(T)                                                                                     \
    {                                                                                              \
        T x;                                                                                       \
        memcpy(&x, at + (size_t)k * sizeof x, sizeof x);                                           \
        return (int64_t)x;                                                                         \
    }
#define SET(T)                                                                                     \
    {                                                                                              \
        T x = (T)value;                                                                            \
        memcpy(at + (size_t)k * sizeof x, &x, sizeof x);                                           \
        return;                                                                                    \
    }

int64_t attr_get(const AttrField *f, const Attr *attr, int k) {
    const char *at = (const char *)attr + f->at;
    switch (f->kind) {
    case ATTR_INT:
    case ATTR_MAP: GET(int)
    case ATTR_INT64:
    case ATTR_LIST: GET(int64_t)
    case ATTR_SITE: GET(uint64_t)
    case ATTR_BOOL: GET(bool)
    case ATTR_BORDER: GET(Border)
    case ATTR_DIST: GET(Dist)
    case ATTR_LABELS: GET(int8_t)
    case ATTR_AXES: return attr->axes >> k & 1;
    case ATTR_NUMBER: break;
    }
    BUG("'%s' is no integer", f->name);
}

void attr_set(const AttrField *f, Attr *attr, int k, int64_t value) {
    char *at = (char *)attr + f->at;
    switch (f->kind) {
    case ATTR_INT:
    case ATTR_MAP: SET(int)
    case ATTR_INT64:
    case ATTR_LIST: SET(int64_t)
    case ATTR_SITE: SET(uint64_t)
    case ATTR_BOOL: SET(bool)
    case ATTR_BORDER: SET(Border)
    case ATTR_DIST: SET(Dist)
    case ATTR_LABELS: SET(int8_t)
    case ATTR_AXES: attr->axes |= value ? 1u << k : 0; return;
    case ATTR_NUMBER: break;
    }
    BUG("'%s' is no integer", f->name);
}

double attr_number(const AttrField *f, const Attr *attr) {
    double x;
    memcpy(&x, (const char *)attr + f->at, sizeof x);
    return x;
}

void attr_set_number(const AttrField *f, Attr *attr, double value) {
    memcpy((char *)attr + f->at, &value, sizeof value);
}
