/* uses: see the header. Read off the steps of a checked Program, each looked at once. */
#include "emit/uses.h"

#include <string.h>

StepPart step_part(const Step *step) {
    while (step->part == PART_NONE && step->up != NULL) {
        step = step->up;
    }
    return step->part;
}

const char *step_layer(const Emit *e, const Step *step) {
    int best = 0;
    for (int i = 1; i < step->layer.count; i++) {
        best = step->layer.at[i].flops > step->layer.at[best].flops ? i : best;
    }
    int layer = step->layer.count > 0 ? step->layer.at[best].layer : 0;
    return layer > 0 ? e->p->module->layer.at[layer - 1].path : step->path ? step->path : "";
}

/* --- what the steps say ----------------------------------------------------------------------- */

/* The weight that the step makes of this gradient: it writes one of as many numbers, or the slice
 * that a turn has of one. */
static const Buf *updated_by(const Step *step, const Buf *gradient) {
    const Buf *only = NULL;
    int found = 0;
    for (int i = 0; i < step->access.count; i++) {
        const Access *access = &step->access.at[i];
        const Buf *to = buf_root(access->buf->final ? access->buf->final : access->buf);
        if (to->kind == BUF_PARAM && (access->mode & ACCESS_WRITE)) {
            if (type_count(*to->type) == type_count(*gradient->type)) {
                return to;
            }
            only = to;
            found++;
        }
    }
    bool slice = found == 1 && type_count(*gradient->type) > 1 && only->slot->stacked > 0;
    return slice ? only : NULL;
}

static void note_read(Use *use, const Step *step, const Buf *root) {
    StepPart part = step_part(step);
    if (part == PART_BACKWARD && !use->backward) {
        use->backward = step;
    }
    if (part == PART_UPDATE) {
        use->update = use->update ? use->update : step;
        if (!use->weight && step->kind == STEP_KERNEL) {
            use->weight = updated_by(step, root);
        }
    }
}

static void note_step(void *ctx, Step *step, int depth) {
    Uses *uses = ctx;
    (void)depth;
    const AccessList *touch = step_touches(step);
    for (int i = 0; i < touch->count; i++) {
        const Access *access = &touch->at[i];
        const Buf *root = buf_root(access->buf);
        Use *use = &uses->at[root->id];
        use->saved = use->saved || access->buf->saved;
        use->here = use->here || step->id == uses->entry->peak_step;
        if ((access->mode & ACCESS_WRITE) && !use->maker) {
            use->maker = step;
            use->turns = access->slice[0];
        }
        if (access->mode & ACCESS_READ) {
            note_read(use, step, root);
            bool later = step->id > uses->entry->peak_step;
            use->next = !use->next && later ? step : use->next;
        }
        if (access->buf->final && access->buf->loop) {
            uses->at[buf_root(access->buf->final)->id].carried = access->buf->loop;
        }
    }
}

Uses uses_of(const Emit *e, const ProgramEntry *entry) {
    Uses uses = {.e = e, .entry = entry};
    uses.at = ARENA_ARRAY(e->arena, Use, e->p->nbuf + 1);
    steps_visit(&entry->step, note_step, &uses);
    for (int k = 0; k < entry->entry->out.count; k++) {
        OutRole role = entry->entry->out.at[k].role;
        uses.norm = uses.norm || role == OUT_GRAD_NORM || role == OUT_SCALED_NORM;
    }
    return uses;
}

/* --- in words --------------------------------------------------------------------------------- */

typedef enum { WORKSPACE, CARRY, GRADIENT, SAVED, DERIVATIVE, UPDATE, VALUE } Role;

/* A step of the loss may make its derivative too. Micro-batches are a loop that carries the
 * gradients, and all in it belongs to the loss. */
static Role role_of(const Uses *uses, const Buf *buf) {
    const Use *use = &uses->at[buf->id];
    StepPart made = use->maker ? step_part(use->maker) : PART_NONE;
    bool adds_up = use->carried && uses->entry->entry->accumulate > 1;
    bool derives = made == PART_BACKWARD || (made == PART_LOSS && !use->saved);
    bool product = made == PART_UPDATE && use->maker->products > 0;
    return buf->kind == BUF_WORK                                 ? WORKSPACE
           : use->weight && (derives || product || adds_up)      ? GRADIENT
           : use->carried && use->carried != use->turns          ? CARRY
           : use->saved                                          ? SAVED
           : derives && (made == PART_BACKWARD || use->backward) ? DERIVATIVE
           : made == PART_UPDATE                                 ? UPDATE
                                                                 : VALUE;
}

const char *use_role(const Uses *uses, const Buf *buf) {
    static const char *const word[] = {"workspace",  "carry",  "gradient", "saved",
                                       "derivative", "update", "value"};
    return word[role_of(uses, buf)];
}

const char *use_layer(const Uses *uses, const Buf *buf) {
    const Use *use = &uses->at[buf->id];
    if (role_of(uses, buf) == GRADIENT) { /* of a weight: where that stands, not who makes it */
        const char *path = use->weight->slot->name, *dot = strrchr(path, '.');
        return dot ? str_printf(uses->e->arena, "%.*s", (int)(dot - path), path) : path;
    }
    return use->maker ? step_layer(uses->e, use->maker) : "";
}

static const char *line_of(const Uses *uses, const Step *step) {
    int line = loc_line_of(uses->e, step->loc);
    return line > 0 ? str_printf(uses->e->arena, ", line %d", line) : "";
}

static const char *why_gradient(const Uses *uses, const Use *use) {
    const Slot *slot = use->weight->slot;
    Text out = {.arena = uses->e->arena};
    text_printf(&out, "gradient of %s", slot->name);
    if (slot->uses > 1) {
        text_printf(&out, ", the sum of those of its %d uses", slot->uses);
    }
    if (uses->entry->entry->accumulate > 1) {
        text_printf(&out, "; adds up over %lld micro-batches",
                    (long long)uses->entry->entry->accumulate);
    }
    if (uses->norm) {
        text_printf(&out, "; clip keeps all gradients until their norm is known%s",
                    line_of(uses, use->update));
    }
    return out.at;
}

static const char *why_saved(const Uses *uses, const Use *use) {
    Arena *arena = uses->e->arena;
    const Step *reader = use->backward; /* NULL: the loss makes its derivative at once */
    const char *layer = reader ? step_layer(uses->e, reader) : "";
    return str_printf(
        arena, "saved%s for the derivative%s%s%s",
        use->turns ? str_printf(arena, " in each of %lld turns", (long long)use->turns->trip) : "",
        reader == NULL ? " of the loss"
        : *layer       ? " in "
                       : "",
        layer, reader ? line_of(uses, reader) : "");
}

const char *use_why(const Uses *uses, const Buf *buf) {
    const Use *use = &uses->at[buf->id];
    Arena *arena = uses->e->arena;
    switch (role_of(uses, buf)) {
    case WORKSPACE:
        return buf->per_thread > 1 ? str_printf(arena, "workspace of %d threads", buf->per_thread)
                                   : "workspace";
    case CARRY:
        return str_printf(arena, "carried from turn to turn of a loop%s",
                          line_of(uses, use->carried));
    case GRADIENT: return why_gradient(uses, use);
    case SAVED: return why_saved(uses, use);
    case DERIVATIVE:
    case UPDATE:
    case VALUE: break;
    }
    return "";
}
