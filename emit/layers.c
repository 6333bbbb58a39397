/* layers: see the header. Counted in the program as it is emitted: what a kernel computes belongs
 * to the layers whose nodes its expressions and products come from, in the derivative too; what is
 * kept between the forward and the backward part of a train, or lies in the arena of an entry, to
 * the layer that made it. Of a program with several entries the first train counts, or the first
 * entry. Needs a checked Program. */
#include "emit/layers.h"

#include <string.h>

typedef struct {
    const char *path;
    const Type *result; /* NULL: not one tensor */
    int64_t params, bytes, flops;
} Row;

typedef struct {
    Row *at; /* [0]: what belongs to no layer, then Module.layer, then other owners of parameters */
    int count;
    NameList paths; /* of the rows */
} Rows;

static const ProgramEntry *counted(const Program *p) {
    const ProgramEntry *found = NULL;
    for (int i = 0; i < p->entry.count; i++) {
        const ProgramEntry *entry = p->entry.at[i];
        EntryKind kind = entry->entry->kind;
        if (kind == ENTRY_TRAIN && (found == NULL || found->entry->kind != ENTRY_TRAIN)) {
            found = entry;
        } else if (kind == ENTRY_CALL && found == NULL) {
            found = entry;
        }
    }
    return found;
}

static void add_steps(Rows *rows, const StepList *list, int64_t times) {
    for (int i = 0; i < list->count; i++) {
        const Step *step = list->at[i];
        for (int k = 0; k < step->layer.count; k++) {
            Row *row = &rows->at[step->layer.at[k].layer];
            row->flops = count_add(row->flops, times, step->layer.at[k].flops);
        }
        add_steps(rows, &step->body, count_add(0, times, step->kind == STEP_LOOP ? step->trip : 0));
    }
}

static bool is_kept(const ProgramEntry *entry, const Buf *buf) {
    return buf->kind == BUF_TEMP && buf_in_arena(buf) && buf->first < buf->last &&
           (buf->saved || entry->entry->kind != ENTRY_TRAIN);
}

static void add_bytes(Rows *rows, const Module *module, const ProgramEntry *entry) {
    for (int i = 0; i < entry->buf.count; i++) {
        const Buf *buf = entry->buf.at[i];
        /* Of Bufs in one place the first counts. */
        if (is_kept(entry, buf) && (buf->storage == buf || !is_kept(entry, buf->storage))) {
            rows->at[module_layer(module, buf->loc)].bytes += buf->bytes;
        }
    }
}

/* Parameters by the path that owns them: net.fc1.weight belongs to net.fc1. */
static void add_params(const Emit *e, Rows *rows) {
    for (int i = 0; i < e->p->slot.count; i++) {
        const Slot *slot = e->p->slot.at[i]->slot;
        const char *dot = strrchr(slot->name, '.');
        size_t length = dot != NULL ? (size_t)(dot - slot->name) : strlen(slot->name);
        if (slot->kind != SLOT_PARAM) {
            continue;
        }
        const char *path = str_ndup(e->arena, slot->name, length);
        int k = names_at(&rows->paths, path);
        if (k < 0) {
            k = rows->count++;
            rows->at[k].path = path;
            names_push(e->arena, &rows->paths, path);
        }
        rows->at[k].params += type_count(slot->type);
    }
}

static Rows count_rows(const Emit *e) {
    const Module *module = e->p->module;
    Rows rows = {.at = ARENA_ARRAY(e->arena, Row, 1 + module->layer.count + e->p->slot.count),
                 .count = 1 + module->layer.count};
    const ProgramEntry *entry = counted(e->p);
    rows.at[0].path = "outside of layers";
    names_push(e->arena, &rows.paths, rows.at[0].path);
    for (int i = 0; i < module->layer.count; i++) {
        const Layer *layer = &module->layer.at[i];
        rows.at[i + 1].path = layer->path;
        names_push(e->arena, &rows.paths, layer->path);
        rows.at[i + 1].result = layer->result.elem != TY_ERROR ? &layer->result : NULL;
    }
    add_params(e, &rows);
    if (entry != NULL) {
        add_steps(&rows, &entry->step, 1);
        add_bytes(&rows, module, entry);
    }
    return rows;
}

void layers_info(const Emit *e, NameList *lines) {
    Rows rows = count_rows(e);
    const ProgramEntry *of = counted(e->p);
    const bool train = of != NULL && of->entry->kind == ENTRY_TRAIN;
    int count = 0;
    for (int i = 1; i <= rows.count; i++) { /* what is outside comes last */
        const Row *row = &rows.at[i % rows.count];
        if (row->params == 0 && row->bytes == 0 && row->flops == 0) {
            continue;
        }
        if (count++ == 0) {
            names_push(e->arena, lines,
                       str_printf(e->arena, "\nlayers in a %s of '%s': bytes %s\n",
                                  train ? "step" : "call", of != NULL ? of->entry->name : "",
                                  train ? "kept for its backward part" : "in the arena"));
            names_push(e->arena, lines,
                       str_printf(e->arena, "  %-26s %20s %12s %14s %14s\n", "", "result",
                                  "parameters", "bytes", "FLOPs"));
        }
        Text shape = {.arena = e->arena};
        text_add(&shape, "");
        if (row->result != NULL) {
            text_shape(&shape, *row->result);
        }
        names_push(e->arena, lines,
                   str_printf(e->arena, "  %-26s %20s %12lld %14lld %14lld\n", row->path,
                              shape.len > 0 ? shape.at : "", (long long)row->params,
                              (long long)row->bytes, (long long)row->flops));
    }
}

HalfRows layers_halves(const Emit *e, const ProgramEntry *entry) {
    const Module *module = e->p->module;
    HalfRows rows = {0};
    int *place = ARENA_ARRAY(e->arena, int, 1 + module->layer.count);
    for (int i = 0; i < entry->buf.count; i++) {
        const Buf *buf = entry->buf.at[i];
        if (!elem_is_half(buf->type->elem) || buf->kind != BUF_TEMP || buf->storage != buf ||
            buf->first >= buf->last) {
            continue;
        }
        int layer = module_layer(module, buf->loc);
        if (place[layer] == 0) {
            HalfRow row = {.path =
                               layer == 0 ? "outside of layers" : module->layer.at[layer - 1].path};
            VEC_PUSH(e->arena, &rows, row);
            place[layer] = rows.count;
        }
        HalfRow *row = &rows.at[place[layer] - 1];
        row->bytes += buf->bytes;
        row->kept += buf->saved ? buf->bytes : 0;
    }
    return rows;
}
