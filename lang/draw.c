/* draw: keys and sites of random numbers. The site is a hash of the entry, the label path and the
 * ordinal of the draw in that call, fixed here; equal sites never meet, so equal draws never merge.
 */
#include "lang/draw.h"

#include "lang/dims.h"

#include <float.h>
#include <math.h>

static Node *counter_node(Elab *e) {
    EntryScope *entry = e->entry;
    if (entry->row[1]) {
        return entry->row[1];
    }
    bool called = entry->entry && entry->entry->kind == ENTRY_CALL;
    if (entry->step && !called) {
        return node_slot(e->g, entry->step);
    }
    if (called) {
        if (!entry->calls) {
            entry->calls = elab_counter(e, "calls", str_printf(e->arena, "%s.calls", entry->name),
                                        TY_I64, 0, entry->entry, entry->entry->loc);
        }
        return node_slot(e->g, entry->calls);
    }
    return node_int(e->g, TY_I64, 0);
}

bool draw_is_wide(double a, double b) {
    return isfinite(a) && isfinite(b) && !(fabs(b - a) <= (double)FLT_MAX);
}

Node *draw_node(Elab *e, Loc loc, Dist dist, int rank, const Dim *dim) {
    if (!e->entry || !e->frame) {
        elab_error(e, loc, 477, "a draw is not known at compile time");
        return NULL;
    }
    if (e->in_adjoint) {
        elab_error(e, loc, 478, "an adjoint may not draw");
        return NULL;
    }
    Node *key[2 + 64];
    int n = 0, at;
    key[n++] = e->entry->row[0] ? e->entry->row[0] : node_slot(e->g, e->seed);
    key[n++] = counter_node(e);
    for (const LoopScope *l = e->loop; l && n < 2 + 64; l = l->up) {
        n++;
    }
    at = n;
    for (const LoopScope *l = e->loop; l && at > 2; l = l->up) { /* the outermost first */
        key[--at] = node_cast(e->g, loop_index(l->builder), TY_I64);
    }
    Frame *owner = e->frame->draw_owner ? e->frame->draw_owner : e->frame;
    uint64_t site = hash_str(hash_str(HASH_START, e->entry->name), " ");
    site = hash_str(site, owner->draw_path ? owner->draw_path : "");
    int ordinal = owner->draws++;
    e->entry->draws++;
    site = hash_bytes(site, &ordinal, sizeof ordinal);
    return node_random(e->g, dist, site, key, n, dims_type(e->g->float_type, rank, dim));
}
