/* train: one update. The body runs like any entry in train mode; its clauses are collected. Then
 * come the gradients of the loss, clipping, and the written optimizer for each parameter tensor. */
#include "lang/train.h"

#include "compiler/flow.h"
#include "lang/accumulate.h"
#include "lang/arith.h"
#include "lang/data.h"
#include "lang/derive.h"
#include "lang/entry.h"
#include "lang/evaluation.h"
#include "lang/expr.h"
#include "lang/fill.h"
#include "lang/model_copy.h"
#include "lang/optim.h"
#include "lang/owner.h"
#include "lang/params.h"
#include "lang/phase.h"
#include "lang/precision.h"
#include "lang/scaler.h"
#include "lang/stmt.h"
#include "lang/target.h"
#include "lang/test.h"
#include "lang/training.h"

#include <string.h>

/* --- step, steps and epoch ------------------------------------------------------------------- */

/* The train whose counters the entry at hand reads: its own, or the only one of the file. */
static Slot *counter_slot(Elab *e, const char *name) {
    EntryScope *scope = e->entry;
    Entry *own = scope->train_entry;
    if (own && !str_eq(name, "epoch")) {
        return str_eq(name, "steps") ? scope->steps : scope->step;
    }
    const Ast *train = NULL;
    int n = 0;
    for (int i = 0; i < e->root->item.count; i++) {
        if (e->root->item.at[i]->kind == AST_TRAIN) {
            train = e->root->item.at[i]->ast;
            n++;
        }
    }
    if (!own && n != 1) {
        return NULL;
    }
    const char *path = str_printf(e->arena, "%s.%s", own ? own->name : train->name, name);
    Slot *slot = elab_counter(e, name, path, TY_I64, 0, own, own ? own->loc : train->loc);
    slot->entry = own ? own : slot->entry; /* another entry may have met it before */
    return slot;
}

const Value *train_counter(Elab *e, const char *name, Loc loc) {
    if (e->in_adjoint) {
        return elab_error(e, loc, 514, "'%s' may not be used in an adjoint; pass it as an argument",
                          name);
    }
    Slot *slot = e->entry ? counter_slot(e, name) : NULL;
    if (!slot && e->entry && e->entry->dropped) { /* its caller may be a train */
        slot = ARENA_NEW(e->arena, Slot);
        slot->kind = SLOT_INPUT;
        slot->name = name;
        slot->type = type_scalar(TY_I64);
    }
    if (!slot) {
        return elab_error(e, loc, 515, "'%s' counts the %s of a train, and there is none here",
                          name, str_eq(name, "epoch") ? "epochs" : "updates");
    }
    Node *node = node_slot(e->g, slot);
    if (str_eq(name, "step") && e->entry->in_update) {
        node = node_map2(e->g, OP_ADD, node, node_int(e->g, TY_I64, 1));
    }
    return value_scalar(e->scratch, node);
}

/* --- clauses --------------------------------------------------------------------------------- */

static const Ast *only_argument(Elab *e, const Ast *clause) {
    const Ast *args = clause->kid[0];
    if (!args || args->nkid != 1 || args->kid[0]->kind == AST_ARG) {
        elab_error(e, clause->loc, 516, "'%s' takes one value", clause->name);
        return NULL;
    }
    return args->kid[0];
}

/* `v`, what `expr` is worth, as a scalar; `besides`: what else it may be. */
static const Value *train_number(Elab *e, const Ast *expr, const Value *v, const char *what,
                                 const char *besides) {
    if (!elab_ok(v)) {
        return v;
    }
    if (value_is_number(v)) {
        return arith_lift(e, expr->loc, value_real(e->scratch, value_number(v)));
    }
    if (v->kind != V_TENSOR || v->rank > 0 || !elem_is_float(value_elem(v))) {
        elab_error(e, expr->loc, 517, "%s must be a float scalar%s, found %s", what, besides,
                   value_text(e->arena, v));
        if (v->kind == V_TENSOR && v->rank > 0) {
            diag_hint(&e->c->diag, "mean(...) or sum(...) makes it one number");
        } else if (v->kind == V_TENSOR) {
            diag_hint(&e->c->diag, "f32(...) converts");
        }
        return &value_poison;
    }
    return v;
}

const Value *train_scalar(Elab *e, const Ast *expr, const char *what) {
    return train_number(e, expr, elab_expr(e, expr), what, "");
}

/* Optimizers are read behind the whole body, but as the reader of the text expects: a state that a
 * statement below the clause sets is the one that it was. */
bool train_reads_before(const Elab *e, Loc loc) {
    const Training *t = e->entry ? e->entry->training : NULL;
    return t && t->reading && t->reading->loc.source == loc.source &&
           t->reading->loc.at < loc.at;
}

static void loss_clause(Elab *e, Training *t, const Ast *clause) {
    const Ast *expr = only_argument(e, clause);
    if (!expr) {
        t->loss = t->loss ? t->loss : &value_poison;
        return;
    }
    if (t->loss) {
        elab_error(e, clause->loc, 518, "a train has one loss; add several with '+'");
        diag_note(&e->c->diag, t->loss_loc, "the first is here");
        return;
    }
    t->loss = train_scalar(e, expr, "the loss");
    t->loss_loc = expr->loc;
    if (!scope_find_here(e->scope, "loss")) {
        scope_add(e->scratch, e->scope, "loss", expr->loc, BIND_VALUE, t->loss);
    }
}

/* Columns that the table of steps has beside loss and metrics, and keys of a line of the log. There
 * metrics stand in `metrics`, but derived ones beside it. */
static bool is_key(const char *name, bool derived) {
    static const char *const keys[] = {"event", "entry", "step", "epoch"};
    bool found = derived && str_eq(name, "metrics");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        found = found || str_eq(keys[i], name);
    }
    return found;
}

/* The most numbers that a metric of a tensor reports. */
#define MOST_METRICS 1024

static void metric_add(Elab *e, Training *t, const char *name, const Value *v, Loc loc) {
    for (int k = 0; k < t->metric.count; k++) {
        if (str_eq(t->metric.at[k].name, name)) {
            elab_error(e, loc, 520, "metric '%s' is defined twice", name);
            return;
        }
    }
    Metric m = {name, v, loc, elab_ok(v) && derive_used(e, v->node)};
    if (is_key(name, m.derived)) {
        elab_error(e, loc, 498, "'%s' is a word of the log of steps; give the metric another name",
                   name);
        return;
    }
    VEC_PUSH(e->arena, &t->metric, m);
}

/* Has it an axis for the rows that the train reads? */
static bool has_batch(const Training *t, const Value *v) {
    const Ast *on = t->ast->kid[2];
    const Ast *rows = on ? on->kid[0] : NULL;
    bool found = false;
    for (int i = 0; rows && rows->kind == AST_NAME && i < v->rank; i++) {
        found = found || (v->dim[i].name && str_eq(v->dim[i].name->name, rows->name));
    }
    return found;
}

/* The elements of a tensor are metrics of their own: table_0_0, table_0_1. */
static void metric_elements(Elab *e, Training *t, const char *name, const Value *v, Loc loc) {
    const Type *type = v->node->type;
    int64_t n = type_count(*type);
    if (n > MOST_METRICS) {
        elab_error(e, loc, 681, "metric '%s' has %lld numbers; at most %d are reported", name,
                   (long long)n, MOST_METRICS);
        diag_hint(&e->c->diag, "an entry returns a tensor of any size");
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        Region *before = evaluation_enter(e, v);
        Node *node = v->node;
        const char *own = name;
        int64_t block = n;
        for (int axis = 0; axis < v->rank; axis++) {
            block /= type->dim[axis];
            int64_t at = i / block % type->dim[axis];
            node = node_slice_axis(e->g, node, axis, at, 1, 1);
            own = str_printf(e->arena, "%s_%lld", own, (long long)at);
        }
        const Value *one = value_scalar(e->scratch, node_reshape(e->g, node, 0, NULL));
        metric_add(e, t, own, evaluation_leave(e, v, before, one), loc);
    }
}

static void metric_clause(Elab *e, Training *t, const Ast *clause) {
    const Ast *args = clause->kid[0];
    for (int i = 0; args && i < args->nkid; i++) {
        const Ast *arg = args->kid[i];
        if (arg->kind == AST_NAME && str_eq(arg->name, "gradients") && !t->each) {
            t->each = true;
            t->each_loc = arg->loc;
            continue;
        }
        if (arg->kind != AST_ARG) {
            elab_error(e, arg->loc, 519, "a metric has a name: metric acc = ...");
            continue;
        }
        if (str_eq(arg->name, "loss") || str_eq(arg->name, "lr") ||
            str_eq(arg->name, "grad_norm") || str_eq(arg->name, "loss_scale")) {
            elab_error(e, arg->loc, 566,
                       "'%s' is reported by every train; give the metric "
                       "another name",
                       arg->name);
            continue;
        }
        const Value *v = elab_expr(e, arg->kid[0]);
        if (elab_ok(v) && v->kind == V_TENSOR && v->rank > 0 && elem_is_float(value_elem(v)) &&
            !has_batch(t, v)) {
            metric_elements(e, t, arg->name, v, arg->loc);
        } else {
            v = train_number(e, arg->kid[0], v, "a metric", " or a float tensor without the batch");
            metric_add(e, t, arg->name, v, arg->loc);
        }
        if (!scope_find_here(e->scope, arg->name)) {
            scope_add(e->scratch, e->scope, arg->name, arg->loc, BIND_VALUE, v);
        }
    }
}

static void clip_clause(Elab *e, Training *t, const Ast *clause) {
    const Ast *call = only_argument(e, clause);
    const char *name = call && call->kind == AST_CALL && call->kid[0]->kind == AST_NAME &&
                               call->kid[1] && call->kid[1]->nkid == 1
                           ? call->kid[0]->name
                           : "";
    if (!call) {
        return;
    }
    if (!str_eq(name, "norm") && !str_eq(name, "value")) {
        elab_error(e, call->loc, 521, "'clip' takes norm(c) or value(c)");
        if (call->kind == AST_NUMBER) {
            diag_hint(&e->c->diag, "clip norm(%s);", call->text);
        }
        return;
    }
    if (t->clip) {
        elab_error(e, clause->loc, 522, "a train has one 'clip'");
        return;
    }
    t->clip = str_eq(name, "norm") ? CLIP_NORM : CLIP_VALUE;
    t->clip_loc = clause->loc;
    t->clip_limit = train_scalar(e, call->kid[1]->kid[0], "the limit of 'clip'");
    const Node *limit = elab_ok(t->clip_limit) ? t->clip_limit->node : NULL;
    if (limit && limit->op == OP_CONST && !(limit->attr->value > 0)) {
        elab_error(e, call->kid[1]->kid[0]->loc, 567, "the limit of 'clip' must be positive");
        diag_hint(&e->c->diag, "without clipping: leave the clause out");
    }
}

static void count_value(Elab *e, const Ast *clause, const Ast *expr, int64_t *out) {
    int64_t n;
    if (*out >= 0) {
        elab_error(e, clause->loc, 558, "'%s' is said twice", clause->name);
        return;
    }
    if (!expr || !elab_int(e, expr, str_printf(e->arena, "'%s'", clause->name), &n)) {
        return;
    }
    if (n < 1) {
        elab_error(e, expr->loc, 523, "'%s' must be positive, found %lld", clause->name,
                   (long long)n);
        return;
    }
    *out = n;
}

static void count_clause(Elab *e, const Ast *clause, int64_t *out) {
    count_value(e, clause, only_argument(e, clause), out);
}

/* `budget 2 GiB;` or `budget 2 GiB, rounding;` */
static void budget_clause(Elab *e, const Ast *clause, Entry *entry) {
    const Ast *args = clause->kid[0], *word = args && args->nkid == 2 ? args->kid[1] : NULL;
    if (word && !(word->kind == AST_NAME && str_eq(word->name, "rounding"))) {
        elab_error(e, word->loc, 697, "'budget' takes a size and perhaps the word 'rounding': "
                                      "budget 2 GiB, rounding;");
        return;
    }
    entry->rounding = word != NULL;
    count_value(e, clause, word ? args->kid[0] : only_argument(e, clause), &entry->budget);
    entry->budget_loc = clause->loc;
}

/* `steps` and `epochs`: how long a run lasts. */
static void length_clause(Elab *e, const Ast *clause, bool steps) {
    Entry *entry = e->entry->entry;
    if (!steps && entry->dataset < 0) {
        elab_error(e, clause->loc, 559, "'epochs' counts passes over a data set, and '%s' has none",
                   entry->name);
        diag_hint(&e->c->diag, "'steps' counts updates");
    } else if ((steps ? entry->epochs : entry->steps) >= 0) {
        elab_error(e, clause->loc, 563, "'steps' and 'epochs' exclude each other");
    } else {
        count_clause(e, clause, steps ? &entry->steps : &entry->epochs);
    }
}

static void freeze_clause(Elab *e, Training *t, const Ast *clause) {
    const Ast *args = clause->kid[0];
    for (int i = 0; args && i < args->nkid; i++) {
        const char *path = elab_path(e, args->kid[i]);
        if (!path || !elab_ok(elab_expr(e, args->kid[i]))) {
            if (!path) {
                elab_error(e, args->kid[i]->loc, 526, "'freeze' takes paths: freeze net.fc1;");
            }
            continue;
        }
        VEC_PUSH(e->arena, &t->freeze, path);
    }
}

void train_clause(Elab *e, const Ast *clause) {
    const char *name = clause->name;
    Training *t = e->entry ? e->entry->training : NULL;
    if (str_eq(name, "expect")) {
        if (e->entry && e->entry->entry && e->entry->entry->kind == ENTRY_TEST) {
            test_expect(e, clause);
        } else {
            elab_error(e, clause->loc, 527, "'expect' stands in a test");
        }
        return;
    }
    if (str_eq(name, "budget") && e->entry && e->entry->entry) {
        budget_clause(e, clause, e->entry->entry);
        return;
    }
    if (!t) {
        elab_error(e, clause->loc, 528, "'%s' stands in a train", name);
        return;
    }
    if (str_eq(name, "loss")) {
        loss_clause(e, t, clause);
    } else if (str_eq(name, "metric")) {
        metric_clause(e, t, clause);
    } else if (str_eq(name, "freeze")) {
        freeze_clause(e, t, clause);
    } else if (e->entry->evaluation) {
        return; /* the rest concerns updates */
    } else if (str_eq(name, "optimizer")) {
        VEC_PUSH(e->arena, &t->optimizer, clause);
    } else if ((str_eq(name, "clip") || str_eq(name, "ema")) && accumulate_defers(e, clause)) {
        return;
    } else if (str_eq(name, "clip")) {
        clip_clause(e, t, clause);
    } else if (str_eq(name, "steps")) {
        length_clause(e, clause, true);
    } else if (str_eq(name, "epochs")) {
        length_clause(e, clause, false);
    } else if (str_eq(name, "precision")) {
        precision_clause(e, clause);
    } else if (str_eq(name, "ema")) {
        model_copy_ema_clause(e, t, clause);
    } else if (str_eq(name, "accumulate")) {
        accumulate_clause(e, t, clause);
    } else {
        elab_error(e, clause->loc, 530, "'%s' stands in a dataset, not in a train", name);
    }
}

/* --- which parameters ------------------------------------------------------------------------ */

bool train_read_of(Elab *e, Training *t, const Ast *of, const Ast *train) {
    if (!of) {
        elab_error(e, train->name_loc, 531, "train '%s' does not say what it updates", train->name);
        diag_hint(&e->c->diag, "train %s of MODEL ...", train->name);
        return false;
    }
    for (int i = 0; i < of->nkid; i++) {
        const char *path = of->kid[i]->name, *dot = strchr(path, '.');
        const char *model = str_ndup(e->arena, path, dot ? (size_t)(dot - path) : strlen(path));
        const Item *item = file_find(e->root, model);
        if (!item || item->kind != AST_MODEL) {
            elab_error(e, of->kid[i]->loc, 532, item ? "'%s' is no model" : "unknown model '%s'",
                       model);
            Nearest n = nearest_start(model);
            for (int k = 0; k < e->root->item.count; k++) {
                if (e->root->item.at[k]->kind == AST_MODEL) {
                    nearest_add(&n, e->root->item.at[k]->name);
                }
            }
            elab_hint_nearest(e, &n);
            return false;
        }
        VEC_PUSH(e->arena, &t->of, path);
    }
    return true;
}

static bool under_any(const Paths *paths, const char *path) {
    for (int i = 0; i < paths->count; i++) {
        if (params_under(path, paths->at[i])) {
            return true;
        }
    }
    return false;
}

static bool names_parameters(const File *file, const Ast *ast) {
    if (!ast || ast->kind == AST_PARAM) {
        return ast != NULL;
    }
    Item *item = ast->kind == AST_NAME || ast->kind == AST_NEW ? file_find(file, ast->name) : NULL;
    if (item && (item->kind == AST_LAYER || item->kind == AST_MODEL) &&
        train_owns_parameters(item)) {
        return true;
    }
    for (int i = 0; i < ast->nkid; i++) {
        if (names_parameters(file, ast->kid[i])) {
            return true;
        }
    }
    return false;
}

bool train_owns_parameters(Item *item) {
    if (item->parameters == PARAMETERS_UNKNOWN) {
        item->parameters = PARAMETERS_NONE; /* a layer that names itself adds nothing */
        item->parameters =
            names_parameters(item->file, item->ast) ? PARAMETERS_SOME : PARAMETERS_NONE;
    }
    return item->parameters == PARAMETERS_SOME;
}

bool train_writes_state(Elab *e, const Slot *slot) {
    const Training *t = e->entry->training;
    if (!t || (slot->role != STATE_LAYER && slot->role != STATE_COPY) ||
        under_any(&t->of, slot->name)) {
        return true;
    }
    /* Statistics of another model stay as they are; one that has nothing to train runs on. */
    const char *name = str_ndup(e->arena, slot->name, strcspn(slot->name, "."));
    Item *model = file_find(e->root, name);
    return model && !train_owns_parameters(model);
}

static bool check_paths(Elab *e, const Training *t, const Ast *of) {
    int errors = e->errors;
    for (int i = 0; i < t->of.count; i++) {
        bool any = false;
        for (int k = 0; k < e->param.count; k++) {
            any = any || params_under(e->param.at[k]->slot->name, t->of.at[i]);
        }
        if (!any) {
            elab_error(e, of->kid[i]->loc, 533, "'%s' has no parameters in this train",
                       t->of.at[i]);
            params_hint(e, t->of.at[i]);
        }
    }
    return e->errors == errors;
}

/* The parameters that this train updates and the gradients of the loss. */
static void gradients(Elab *e, Training *t, bool quiet) {
    Text apart = {.arena = e->arena};
    int napart = 0;
    const Flow *flow = flow_of(e->scratch, t->loss->node);
    for (int i = 0; i < e->param.count; i++) {
        Parameter *p = e->param.at[i];
        if (!under_any(&t->of, p->slot->name) || p->slot->frozen || !p->initial ||
            under_any(&t->freeze, p->slot->name) || type_count(p->slot->type) == 0) {
            continue; /* of an empty one there is nothing to update */
        }
        Node *point = node_slot(e->g, p->slot);
        if (!flow_has(flow, point)) {
            text_printf(&apart, napart++ ? ", '%s'" : "'%s'", p->slot->name);
            continue;
        }
        p->slot->trainable = true;
        Update u = {.param = p, .point = point};
        if (accumulate_running(e->entry)) {
            accumulate_gradient(e, t, &u);
        } else {
            Node *start = scaler_start(e, t, value_elem(t->loss));
            u.grad = node_grad(e->g, t->loss->node, point, start);
        }
        VEC_PUSH(e->arena, &t->update, u);
    }
    if (napart > 0 && t->update.count > 0 && !quiet) {
        elab_warn(e, t->loss_loc, 534, "the loss of '%s' does not depend on %s, so %s not updated",
                  e->entry->name, apart.at, napart == 1 ? "it is" : "they are");
    }
}

static Node *square_sum(Graph *g, Node *x) {
    return node_fold(g, OP_SUM, node_map2(g, OP_MUL, x, x), (1u << x->type->rank) - 1);
}

/* The norm of each gradient by the name of its parameter, net.fc1.weight as grad_net_fc1_weight. */
static void gradient_norms(Elab *e, Training *t) {
    for (int i = 0; t->each && i < t->update.count; i++) {
        const Update *u = &t->update.at[i];
        char *name = str_printf(e->arena, "grad_%s", u->param->slot->name);
        for (char *at = name; *at; at++) {
            *at = (char)(*at == '.' ? '_' : *at);
        }
        bool twice = false;
        for (int k = 0; k < t->metric.count; k++) {
            twice = twice || str_eq(t->metric.at[k].name, name);
        }
        for (int k = 0; k < t->grad_norm.count; k++) {
            twice = twice || str_eq(t->grad_norm.at[k].name, name);
        }
        if (twice || str_eq(name, "grad_norm")) {
            elab_error(e, t->each_loc, 469,
                       "the norm of the gradient of '%s' would be the second '%s'",
                       u->param->slot->name, name);
            continue;
        }
        GradNorm norm = {name, node_map1(e->g, OP_SQRT, square_sum(e->g, u->grad))};
        VEC_PUSH(e->arena, &t->grad_norm, norm);
    }
}

/* The norm of all gradients as they are before a clip, which would make numbers of infinities. It
 * is checked before anything is updated: --checks=nan and scalers want it without a clip, too. */
static void take_norm(Elab *e, Training *t) {
    Graph *g = e->g;
    if (t->clip != CLIP_NORM && !e->c->opt.nan && !t->scaler) {
        return;
    }
    Node *total = NULL;
    const Loc loc = g->loc;
    for (int i = 0; i < t->update.count; i++) {
        if (!t->clip) { /* --checks=nan names the parameter's line, there is no other */
            g->loc = t->update.at[i].param->slot->loc;
        }
        Node *sum = square_sum(g, t->update.at[i].grad);
        g->loc = t->clip ? loc : t->loss_loc;
        total = total ? node_map2(g, OP_ADD, total, sum) : sum;
    }
    t->norm = node_map1(g, OP_SQRT, total);
    g->loc = loc;
    scaler_judge(e, t);
}

static void clip_gradients(Elab *e, Training *t) {
    Graph *g = e->g;
    if (t->clip && !elab_ok(t->clip_limit)) {
        return;
    }
    take_norm(e, t);
    Node *limit = t->clip ? t->clip_limit->node : NULL, *scale = NULL;
    if (t->clip == CLIP_NORM) {
        Elem elem = t->norm->type->elem;
        scale = node_map2(g, OP_ADD, t->norm, node_const(g, elem, 1e-6));
        scale = node_map2(g, OP_MIN, node_map2(g, OP_DIV, limit, scale), node_const(g, elem, 1));
    }
    for (int i = 0; t->clip && i < t->update.count; i++) {
        Node *grad = t->update.at[i].grad;
        if (t->clip == CLIP_NORM) {
            t->update.at[i].grad = node_map2(g, OP_MUL, grad, scale);
        } else {
            grad = node_map2(g, OP_MIN, grad, limit);
            t->update.at[i].grad = node_map2(g, OP_MAX, grad, node_map1(g, OP_NEG, limit));
        }
    }
}

static void outputs(Elab *e, Training *t) {
    entry_out(e, OUT_LOSS, "loss", NULL, t->loss->node, t->loss_loc);
    for (int i = 0; i < t->metric.count; i++) {
        if (elab_ok(t->metric.at[i].value) && !t->metric.at[i].derived) {
            entry_out(e, OUT_METRIC, t->metric.at[i].name, NULL, t->metric.at[i].value->node,
                      t->metric.at[i].loc);
        }
    }
    if (t->norm) {
        OutRole role = t->scaler ? OUT_SCALED_NORM : OUT_GRAD_NORM;
        entry_out(e, role, "grad_norm", NULL, t->norm, t->loss_loc);
    }
    if (t->rate && elab_ok(t->rate)) {
        entry_out(e, OUT_RESULT, "lr", NULL, t->rate->node, t->loss_loc);
    }
    for (int i = 0; i < t->metric.count; i++) {
        if (elab_ok(t->metric.at[i].value) && t->metric.at[i].derived) {
            entry_out(e, OUT_RESULT, t->metric.at[i].name, NULL, t->metric.at[i].value->node,
                      t->metric.at[i].loc);
        }
    }
    for (int i = 0; i < t->grad_norm.count; i++) {
        const GradNorm *norm = &t->grad_norm.at[i];
        entry_out(e, OUT_RESULT, norm->name, NULL, norm->node, t->each_loc);
    }
    for (int i = 0; i < t->update.count; i++) {
        const Update *u = &t->update.at[i];
        entry_out(e, OUT_WRITE, NULL, u->param->slot, u->next, u->param->slot->loc);
        for (int k = 0; k < u->state.count; k++) {
            entry_out(e, OUT_WRITE, NULL, u->state.at[k].slot, u->state.at[k].next,
                      u->state.at[k].slot->loc);
        }
    }
    scaler_outputs(e, t);
    Slot *step = e->entry->step;
    Node *now = node_slot(e->g, step);
    Node *next = node_map2(e->g, OP_ADD, now, node_int(e->g, TY_I64, 1));
    entry_out(e, OUT_WRITE, NULL, step, scaler_choose(e, t, next, now), step->loc);
}

void train_counters(Elab *e, Training *t, Entry *train) {
    EntryScope *scope = e->entry;
    const char *step = str_printf(e->arena, "%s.step", train->name);
    const char *steps = str_printf(e->arena, "%s.steps", train->name);
    scope->training = t;
    scope->train_entry = train;
    scope->step = elab_counter(e, "step", step, TY_I64, 0, train, train->loc);
    scope->steps = elab_counter(e, "steps", steps, TY_I64,
                                train->steps > 0 ? (double)train->steps : 0, train, train->loc);
    scope->step->entry = scope->steps->entry = train; /* another entry may have met them before */
}

void train_gradcheck(Elab *e, const Ast *ast, Entry *train, const char *title, double tolerance,
                     Loc loc) {
    const Ast *params = ast->kid[0], *of = ast->kid[1], *on = ast->kid[2], *at = ast->kid[3];
    int errors = e->errors;
    Training t = {.ast = ast};
    EntryScope *scope = entry_open(e, ENTRY_TEST, title, ast);
    scope->train = true;
    scope->name = ast->name; /* the draws of the train */
    scope->entry->gradcheck = train;
    scope->entry->tolerance = tolerance;
    scope->entry->loc = loc;
    train_counters(e, &t, train);
    scope->in_update = true;
    bool ok = train_read_of(e, &t, of, ast) && entry_rebind(e, at) && (!on || entry_data(e, on)) &&
              entry_inputs(e, params);
    if (ok) {
        stmt_block(e, ast->kid[4]);
    }
    if (ok && e->errors == errors && t.loss && elab_ok(t.loss)) {
        bool quiet = true;
        gradients(e, &t, quiet);
        entry_out(e, OUT_LOSS, "loss", NULL, t.loss->node, t.loss_loc);
        for (int i = 0; i < t.update.count; i++) {
            const Update *u = &t.update.at[i];
            entry_out(e, OUT_RESULT, u->param->slot->name, u->param->slot, u->grad,
                      u->param->slot->loc);
        }
    }
    entry_close(e);
}

void train_entry(Elab *e, const Ast *ast) {
    const Ast *params = ast->kid[0], *of = ast->kid[1], *on = ast->kid[2], *at = ast->kid[3];
    int errors = e->errors;
    Training t = {.ast = ast};
    EntryScope *scope = entry_open(e, ENTRY_TRAIN, ast->name, ast);
    Entry *entry = scope->entry;
    train_counters(e, &t, entry);
    scope->in_update = true;
    bool ok = train_read_of(e, &t, of, ast);
    ok = entry_rebind(e, at) && ok;
    ok = accumulate_open(e, &t, ast->kid[4]) && ok;
    ok = (!on || entry_data(e, on)) && ok;
    ok = entry_inputs(e, params) && ok;
    if (ok) {
        stmt_block(e, ast->kid[4]);
        scope->steps->initial = entry->steps > 0 ? (double)entry->steps : 0;
        if (!t.loss) {
            elab_error(e, ast->name_loc, 535, "train '%s' has no loss", ast->name);
        }
        if (t.optimizer.count == 0) {
            elab_error(e, ast->name_loc, 536, "train '%s' has no optimizer", ast->name);
            diag_hint(&e->c->diag, "optimizer adamw(lr = 3e-3);");
        }
        if (e->frame->returned) {
            elab_error(e, ast->name_loc, 537,
                       "a train returns nothing; its results are loss and metrics");
        }
    }
    ok = ok && t.loss && elab_ok(t.loss);
    if (!ok) {
        elab_explained(e);
    }
    if (ok && e->errors == errors && check_paths(e, &t, of)) {
        scaler_open(e, &t, entry);
        gradients(e, &t, false);
        if (t.update.count == 0) {
            elab_error(e, ast->name_loc, 538,
                       "the loss of '%s' depends on no parameter that it may update", ast->name);
            if (t.freeze.count > 0) {
                diag_hint(&e->c->diag, "'freeze' leaves none of them");
            }
        } else {
            if (accumulate_running(scope)) {
                accumulate_close(e, &t);
            }
            scaler_close(e, &t);
            gradient_norms(e, &t);
            Loc outside = elab_at(e, t.clip ? t.clip_loc : e->g->loc);
            uint32_t owner = owner_enter_op(e, "clip");
            clip_gradients(e, &t);
            owner_leave(e, owner);
            e->g->loc = outside;
            if (optim_apply(e, &t)) {
                model_copy_ema(e, &t);
            }
        }
    }
    if (ok && e->errors == errors) {
        outputs(e, &t);
        entry_writes(e);
        target_mark(e, entry);
    }
    bool fills = !accumulate_running(scope) && fill_wanted(e);
    entry_close(e);
    if (fills && ok && e->errors == errors) {
        fill_entry(e, ast, entry, scope);
    }
    if (on && ok && e->errors == errors) {
        const DataSet *set = &e->module->dataset.at[entry->dataset];
        if (data_has_part(set, PART_HELD) || data_has_part(set, PART_TEST)) {
            evaluation_entry(e, ast, entry);
        }
    }
    if (e->errors == 0 && on && entry->steps < 0 && entry->epochs < 0 && !e->c->opt.no_main &&
        !phase_names(e, ast->name)) {
        elab_warn(e, ast->name_loc, 550,
                  "train '%s' has neither 'steps' nor 'epochs'; a run will need --steps or "
                  "--epochs",
                  ast->name);
    }
}
