/* context: messages with the calls they were met in, and the slots of a module. */
#include "lang/context.h"

#include "lang/foreign.h"

#include <string.h>

enum { NOTED_CALLS = 3 };

static File *file_of(const Elab *e, Loc loc) {
    for (int i = 0; i < e->file.count; i++) {
        if (e->file.at[i]->ast->loc.source == loc.source) {
            return e->file.at[i];
        }
    }
    return NULL;
}

static bool said_before(Elab *e, Loc loc, int id) {
    for (int i = 0; i < e->said.count; i++) {
        const Said *s = &e->said.at[i];
        if (s->id == id && s->loc.source == loc.source && s->loc.at == loc.at) {
            e->c->diag.muted = true; /* nor are its notes */
            return true;
        }
    }
    Said s = {loc, id};
    VEC_PUSH(e->arena, &e->said, s);
    return false;
}

static void say(Elab *e, Loc loc, int id, const char *text) {
    diag_error(&e->c->diag, loc, id, "%s", text);
    int left = NOTED_CALLS;
    for (const Frame *f = e->frame; f && f->item && left > 0; f = f->up, left--) {
        if (f->call.source == f->item->loc.source && f->call.at == f->item->loc.at) {
            break; /* elaborated alone, by no call */
        }
        if (f->call.source == loc.source && f->call.at == loc.at && f->call.len == loc.len) {
            continue; /* it is the call */
        }
        diag_note(&e->c->diag, f->call, "in this call of '%s'", f->item->name);
    }
}

/* Is it about how the call fits the signature of an item of the user's own? The item may be at
 * fault, and then all calls are: one message is enough. */
static bool about_signature(const Elab *e, Loc loc) {
    const Frame *f = e->frame;
    return f && f->item && !f->item->file->library && f->call.source == loc.source &&
           loc.at >= f->call.at && loc.at + loc.len <= f->call.at + f->call.len;
}

const Value *elab_error(Elab *e, Loc loc, int id, const char *fmt, ...) {
    if (about_signature(e, loc) && !elab_first(e, id, e->frame->item->name)) {
        return &value_poison;
    }
    e->errors++;
    if (!said_before(e, loc, id)) {
        va_list ap;
        va_start(ap, fmt);
        say(e, loc, id, str_vprintf(e->arena, fmt, ap));
        va_end(ap);
    }
    return &value_poison;
}

const Value *elab_later(Elab *e, Loc loc, int id, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *text = str_vprintf(e->arena, fmt, ap);
    va_end(ap);
    if (elab_first(e, id, text)) {
        e->errors++;
        say(e, loc, id, text);
    }
    return &value_poison;
}

bool elab_first(Elab *e, int id, const char *what) {
    Loc anywhere = {UINT32_MAX, (uint32_t)hash_str(HASH_TABLE, what), 0, 0};
    if (said_before(e, anywhere, id)) {
        e->errors++;
        return false;
    }
    return true;
}

bool elab_first_in_body(Elab *e, int id, const char *what) {
    const char *body = e->frame && e->frame->item ? e->frame->item->name
                       : e->entry                 ? e->entry->name
                                                  : "";
    return elab_first(e, id, str_printf(e->arena, "%s in %s", what, body));
}

void elab_warn(Elab *e, Loc loc, int id, const char *fmt, ...) {
    if (said_before(e, loc, id)) {
        return;
    }
    va_list ap;
    va_start(ap, fmt);
    char *text = str_vprintf(e->arena, fmt, ap);
    va_end(ap);
    diag_warn(&e->c->diag, loc, id, "%s", text);
}

bool elab_hint_foreign(Elab *e, const char *name) {
    const Foreign *row = foreign_find(name);
    if (row) {
        diag_hint(&e->c->diag, "'%s' is written so here: %s", name, row->form);
        diag_hint(&e->c->diag, "for example: %s", row->example);
    }
    return row != NULL;
}

bool elab_hint_foreign_arg(Elab *e, const char *name, const Ast *params) {
    const ForeignArg *row = foreign_arg_find(name);
    for (int i = 0; row && params && i < params->nkid; i++) {
        if (foreign_among(row->parameters, params->kid[i]->name)) {
            diag_hint(&e->c->diag,
                      row->words ? "it is called '%s' here: %s" : "it is called '%s' here",
                      params->kid[i]->name, row->words);
            return true;
        }
    }
    if (row && row->words) {
        diag_hint(&e->c->diag, "there is no '%s' here: %s", name, row->words);
    }
    return row && row->words;
}

void elab_hint_nearest(Elab *e, const Nearest *n) {
    if (n->best) {
        diag_hint(&e->c->diag, "did you mean '%s'?", n->best);
    }
}

void elab_note_dim(Elab *e, Dim dim) {
    if (dim.name && dim.name->kind == AST_DIMS) {
        diag_note(&e->c->diag, dim.name->loc, "%s = %lld is declared here", dim.name->name,
                  (long long)dim.size);
    }
}

bool elab_ok(const Value *v) {
    return v->kind != V_POISON;
}

void elab_explained(const Elab *e) {
    if (e->errors == 0 && e->c->diag.errors == 0) {
        BUG("a value was lost without a message");
    }
}

bool elab_plain(Elab *e, Loc loc, const Value *v) {
    if (v->kind == V_TENSOR && v->end) {
        elab_error(
            e, loc, 551,
            "a fold over the batch is used here together with single rows; an evaluation over "
            "several batches knows it only at the end");
        diag_hint(&e->c->diag, "write the metric with outermost folds, for example "
                               "sum(y^2) - sum(y)^2 / count(y) for a variance");
        return false;
    }
    return v->kind != V_POISON;
}

bool elab_outside_adjoint(Elab *e, Loc loc, const char *what) {
    if (e->in_adjoint && elab_first_in_body(e, 612, what)) {
        elab_error(
            e, loc, 612,
            "an adjoint sees the op's arguments and the cotangent alone; '%s' can be neither "
            "read nor set in it",
            what);
        diag_hint(&e->c->diag, "pass what is needed to the op as an argument");
    }
    return !e->in_adjoint;
}

Loc elab_at(Elab *e, Loc loc) {
    Loc before = e->g->loc;
    const File *file = file_of(e, loc);
    if (!file || !file->library) {
        loc.owner = before.owner;
        e->g->loc = loc;
    }
    return before;
}

Slot *elab_state_slot(Elab *e, StateRole role, const char *name, Type type, Entry *entry, Loc loc) {
    int known = names_at(&e->states, name);
    if (known >= 0) {
        return e->state.at[known];
    }
    Slot *slot = ARENA_NEW(e->arena, Slot);
    slot->kind = SLOT_STATE;
    slot->role = role;
    slot->name = name;
    slot->file_name = name;
    slot->type = type;
    slot->entry = entry;
    slot->loc = loc;
    VEC_PUSH(e->arena, &e->state, slot);
    names_push(e->arena, &e->states, name);
    return slot;
}

Slot *elab_counter(Elab *e, const char *label, const char *name, Elem elem, double initial,
                   Entry *entry, Loc loc) {
    int known = e->state.count;
    Slot *slot = elab_state_slot(e, STATE_COUNTER, name, type_scalar(elem), entry, loc);
    if (e->state.count > known) {
        slot->label = label;
        slot->initial = initial;
    }
    return slot;
}
