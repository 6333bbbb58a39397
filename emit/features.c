/* features: see the header. What a program can never come to is not printed into it. A feature is
 * asked of the module and the options; the lines that it is for stand between "if: NAME" and
 * "end: NAME" in the files of runtime/. Needs a finished module, changes nothing. */
#include "emit/features.h"

#include "compiler/kernel.h"
#include "emit/api.h"
#include "emit/host.h"
#include "emit/profile.h"
#include "emit/stmts.h"
#include "runtime/format.h"

typedef struct {
    bool split, turned, copies, escapes; /* tensors in files */
    bool windows, made, norm;            /* fields of data sets, */
    bool csv, arrays, idx, raw;          /* formats of their files, */
    bool ordered, files;                 /* and how they are read */
    int paths;                           /* all of them */
    bool trains, rings, hypers, scalars; /* entries */
    bool blind;                          /* rows that no function evaluates */
    bool halves;                         /* anywhere */
    bool near;                           /* matrices of which a part is written */
    bool fetches;                        /* memory that is asked for before it is read */
} Has;

/* Has a name characters that JSON writes, or may write, in another way? */
static bool is_escaped(const char *name) {
    for (; *name != 0; name++) {
        const unsigned char c = (unsigned char)*name;
        if (c == '"' || c == '\\' || c < 0x20 || c > 0x7E) {
            return true;
        }
    }
    return false;
}

static void look_at_slots(const Emit *e, Has *has) {
    for (int i = 0; i < e->p->slot.count; i++) {
        const Slot *slot = e->p->slot.at[i]->slot;
        has->split = has->split || slot->split > 0;
        has->turned = has->turned || slot->transposed;
        has->copies = has->copies || slot->copy_of != NULL;
        has->escapes = has->escapes || is_escaped(slot->file_name);
        has->halves = has->halves || elem_is_half(slot->type.elem);
        for (int k = 0; k < e->p->entry.count; k++) {
            has->hypers = has->hypers || host_is_hyper(slot, e->p->entry.at[k]->entry);
        }
    }
}

/* A file whose name says nothing may hold anything, and so may another one in its place. */
static void look_at_path(const char *path, Has *has) {
    const md_format format = path != NULL ? md_format_of(path) : MD_FORMAT_NPY;
    const bool any = format == MD_FORMAT_AUTO;
    has->arrays = has->arrays || any || (path != NULL && format != MD_FORMAT_CSV);
    has->csv = has->csv || any || format == MD_FORMAT_CSV;
    has->idx = has->idx || any || format == MD_FORMAT_IDX;
    has->raw = has->raw || any || format >= MD_FORMAT_U8;
}

static void look_at_data(const Emit *e, Has *has) {
    for (int i = 0; i < e->p->module->dataset.count; i++) {
        const DataSet *set = &e->p->module->dataset.at[i];
        has->ordered = has->ordered || !set->shuffle;
        has->files = has->files || set->file.count > 1;
        has->paths += set->file.count;
        for (int k = 0; k < set->file.count * PARTS; k++) {
            look_at_path(set->file.at[k / PARTS].path[k % PARTS], has);
        }
        for (int k = 0; k < set->field.count; k++) {
            const DataField *field = &set->field.at[k];
            has->windows = has->windows || field->source == FIELD_WINDOW;
            has->made = has->made || set->file.at[field->file].rows > 0;
            has->norm = has->norm || field->centre != NULL;
            has->halves = has->halves || elem_is_half(field->raw) || elem_is_half(field->type.elem);
        }
    }
}

static void look_at_entries(const Emit *e, Has *has) {
    for (int i = 0; i < e->p->entry.count; i++) {
        const Entry *entry = e->p->entry.at[i]->entry;
        const bool train = entry->kind == ENTRY_TRAIN;
        has->trains = has->trains || train;
        has->blind = has->blind || host_is_pass(e->p, entry) ||
                     (train && !entry_eval(e->p, entry, ENTRY_EVAL));
        has->halves = has->halves || e->p->entry.at[i]->rounds;
        for (int k = 0; k < entry->out.count; k++) {
            has->rings = has->rings || entry->out.at[k].role == OUT_NEED;
            bool result = out_is_result(entry->out.at[k].role);
            has->halves = has->halves ||
                          (result && elem_is_half(result_buf(e->p->entry.at[i], k)->type->elem));
        }
        for (int k = 0; k < e->p->entry.at[i]->buf.count; k++) {
            has->near = has->near || e->p->entry.at[i]->buf.at[k]->near > 0;
        }
        for (int k = 0; k < entry->input.count; k++) {
            const Slot *slot = entry->input.at[k];
            bool call = entry->kind == ENTRY_TRAIN || entry->kind == ENTRY_CALL;
            has->scalars = has->scalars || (call && slot->type.rank == 0);
            has->halves = has->halves || elem_is_half(slot->type.elem);
        }
    }
}

static bool has_ahead(const StmtList *list) {
    bool has = false;
    for (int i = 0; i < list->count && !has; i++) {
        has = list->at[i]->ahead.count > 0 || has_ahead(&list->at[i]->body);
    }
    return has;
}

static void look_at_kernels(const Emit *e, Has *has) {
    for (int i = 0; i < e->p->kernel.count; i++) {
        const Kernel *k = e->p->kernel.at[i];
        const Tile *tile = kernel_tile(k);
        for (int a = 0; a < k->arg.count; a++) {
            const Arg *arg = k->arg.at[a];
            has->halves = has->halves || (elem_is_half(arg->elem) && arg->mode & ACCESS_WRITE);
        }
        has->fetches = has->fetches || has_ahead(&k->body) || (tile && tile_asks(tile));
    }
}

/* Is a region large enough for huge pages? (MD_HUGE_FROM) */
static bool has_huge(const Program *p) {
    const int64_t from = 8 << 20;
    return p->params_bytes >= from || p->state_bytes >= from || p->io_bytes >= from ||
           p->arena_bytes >= from;
}

bool features_has(const Emit *e, const char *name) {
    if (e->features->name.count == 0) {
        features_add(e, e->features);
        names_push(e->arena, e->features, ""); /* known, if there are none too */
    }
    return e->c->opt.whole_runtime || names_at(e->features, name) >= 0;
}

void features_add(const Emit *e, NameList *features) {
    Has has = {0};
    look_at_slots(e, &has);
    look_at_data(e, &has);
    look_at_entries(e, &has);
    look_at_kernels(e, &has);
    bool main = !e->c->opt.no_main;
    const struct {
        const char *name;
        bool has;
    } feature[] = {
        {"main", main},               /* without it nobody sees messages of a load */
        {"plot", main && has.trains}, /* of a run of theirs */
        {"again", main && has.trains && !e->c->opt.nan}, /* steps that end in a NaN */
        {"split", has.split},                            /* tensors that are several of a file */
        {"turned", has.turned},                          /* transposed in files */
        {"copies", has.copies},                          /* second sets of parameters */
        {"escapes", main || has.escapes},                /* in names; files may hold anything */
        {"windows", has.windows},                        /* of a text or of tokens */
        {"made", has.made},                              /* rows without a file */
        {"csv", has.csv},                                /* readers: tables, */
        {"idx", has.idx},                                /* images, also packed, */
        {"raw", has.raw},                                /* texts and tokens */
        {"guessed", has.idx || has.raw}, /* what a file without such an ending holds */
        {"arrays", has.arrays},          /* files of them; a table is read number by number */
        {"tables", !has.arrays},         /* no other files */
        {"rows", has.arrays || has.made || has.norm}, /* that are converted */
        {"bulk", !has.csv || has.arrays},             /* many elements at a time */
        {"ordered", has.ordered},                     /* rows not in a fresh order */
        {"files", has.files},                         /* data sets of several */
        {"many", has.paths > 16},                     /* MD_PATHS / MD_PARTS */
        {"norm", has.norm},                           /* constants of fields */
        {"rings", has.rings},                         /* that an entry samples from */
        {"hypers", has.hypers},                       /* scalars of --set beside inputs */
        {"scalars", has.scalars},                     /* inputs, by --set */
        {"settable", has.hypers || has.scalars},      /* any of both */
        {"halves", has.halves}, /* f16, bf16 of the model, not only of files */
        {"near", has.near},     /* matrices that are not written as a whole */
        {"fetches", has.fetches},
        {"blind", has.blind},
        {"pairs", profile_has_pairs(e)}, /* that a profile measures */
        {"phases", e->p->module->phase.count > 0 || host_has_passes(e->p)},
        {"several", e->p->module->phase.count > 1},      /* trains in one run */
        {"partial", has.rings || host_has_scaled(e->p)}, /* batches that give no update */
        {"huge", has_huge(e->p)},                        /* pages */
        {"limits", api_has_limits(e->p)},                /* loops that may meet their maximum */
        {"passes", host_has_passes(e->p)}, /* entries of phases, rows of a ring as data */
        {"calls", api_timed_calls(e) > 0}, /* that are timed on one thread too */
        {"scaled", host_has_scaled(e->p)}, /* losses, whose updates may be left out */
        {"spans", e->p->phase.count > 0 && e->p->slot.count > 0}, /* memory that goes by phases */
        {"canary", e->c->opt.canary},
        {"profile", e->c->opt.profile},
    };
    for (size_t i = 0; i < sizeof feature / sizeof *feature; i++) {
        if (feature[i].has) {
            names_push(e->arena, features, feature[i].name);
        }
    }
}
