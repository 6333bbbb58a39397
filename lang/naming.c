/* naming: see the header. A name in files is made of segments as a path is, with those of `@name`
 * in place of labels; a `whole` one begins the name anew. `{}` in it stands for the number of an
 * iteration of the `repeat` around it, `{1}` for that number counted from 1, and the stacked tensor
 * is one tensor of the file for each. Such a number is all digits there are at its place, so that a
 * name of a file belongs to one pattern or none, and two patterns meet exactly if they are equal
 * word by word, where words are numbers, `{}` and single characters. */
#include "lang/naming.h"

#include "lang/expr.h"
#include "lang/stmt.h"
#include "lang/train.h"

#include <string.h>

enum { NAME_BYTES = 200, FILE_TENSORS = 65536, FIRST_DIGITS = 6 };

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* The length of the `{}` or `{first}` that `at` begins with, and where it counts from; 0: none. */
static size_t hole_at(const char *at, int64_t *first) {
    size_t n = at[0] == '{';
    for (*first = 0; n > 0 && is_digit(at[n]) && n <= FIRST_DIGITS; n++) {
        *first = *first * 10 + (at[n] - '0');
    }
    bool plain = n < 3 || at[1] != '0'; /* no zeros in front */
    return n > 0 && plain && at[n] == '}' ? n + 1 : 0;
}

static bool is_hole(const char *at) {
    int64_t first;
    return hole_at(at, &first) > 0;
}

/* What is wrong with a text as a name in files; NULL: nothing. */
static const char *name_fault(const char *text) {
    for (const char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20) {
            return "it has a control character";
        }
        int64_t first;
        size_t hole = hole_at(at, &first);
        if (hole > 0) {
            const char *end = at + hole;
            if (is_digit(*end) || is_hole(end) || (at > text && is_digit(at[-1]))) {
                return "'{}' stands for a number, so nothing may join it that looks like one";
            }
            at = end - 1;
        } else if (*at == '{' || *at == '}') {
            return "a brace stands only in '{}', the number of an iteration, or '{1}'";
        }
    }
    return text[0] == '\0'                  ? "it is empty"
           : strncmp(text, "mdlc.", 5) == 0 ? "'mdlc.' is kept for checkpoints"
           : str_eq(text, "__metadata__")   ? "the format keeps this one"
                                            : NULL;
}

/* --- the attribute --------------------------------------------------------------------------- */

/* Takes `transpose = true` and the like into n; false: it is no argument of `@name`. */
static bool read_option(Elab *e, const Ast *arg, Naming *n) {
    bool turn = arg->kind == AST_ARG && str_eq(arg->name, "transpose");
    if (!turn && (arg->kind != AST_ARG || !str_eq(arg->name, "whole"))) {
        return false;
    }
    const Value *v = elab_expr(e, arg->kid[0]);
    bool *says = turn ? &n->says_transpose : &n->says_whole;
    if (v->kind != V_BOOL || *says) {
        return false;
    }
    *says = true;
    *(turn ? &n->transpose : &n->whole) = v->truth;
    return true;
}

static void read_arguments(Elab *e, const Ast *attr, Naming *n) {
    const Ast *args = attr->nkid > 0 ? attr->kid[0] : NULL;
    bool good = args && args->nkid > 0 && args->kid[0]->kind == AST_STRING;
    if (good) {
        n->text = args->kid[0]->text;
    }
    for (int i = 1; good && i < args->nkid; i++) {
        good = read_option(e, args->kid[i], n);
    }
    if (!good || !n->text) {
        elab_error(e, attr->loc, 456,
                   "'@name' takes a text, and perhaps 'transpose' and 'whole': "
                   "@name(\"h.{}.weight\", transpose = true)");
        n->text = NULL;
        return;
    }
    const char *fault = name_fault(n->text);
    if (strlen(n->text) > NAME_BYTES) {
        fault = "it is longer than 200 bytes";
    }
    if (fault) {
        elab_error(e, args->kid[0]->loc, 457, "\"%s\" cannot be a name in files: %s", n->text,
                   fault);
        n->text = NULL;
    }
}

static const Ast *name_attribute(const Ast *ast) {
    for (int i = 0; i < ast->nattr; i++) {
        if (str_eq(ast->attr[i]->name, "name")) {
            return ast->attr[i];
        }
    }
    return NULL;
}

static void nothing_named(Elab *e, Loc loc) {
    e->unnamed++;
    elab_error(e, loc, 458,
               "'@name' stands before a 'param', a 'state' or a call of a layer that has "
               "parameters; here is none");
}

void naming_refuse(Elab *e, const Ast *ast) {
    const Ast *attr = name_attribute(ast);
    if (attr) {
        nothing_named(e, attr->loc);
    }
}

Naming *naming_open(Elab *e, const Ast *statement) {
    Naming *before = e->naming;
    const Ast *attr = name_attribute(statement);
    e->naming = NULL;
    if (attr && (!e->frame || !e->frame->file)) {
        naming_refuse(e, statement);
    } else if (attr) {
        Naming *n = ARENA_NEW(e->scratch, Naming);
        n->loc = attr->loc;
        n->errors = e->errors;
        read_arguments(e, attr, n);
        e->naming = n;
        e->named = true;
    }
    return before;
}

void naming_close(Elab *e, Naming *before) {
    const Naming *n = e->naming;
    e->naming = before;
    if (!n || !n->text || n->errors != e->errors) {
        return;
    }
    if (n->taken == 0 && e->errors > e->unnamed) {
        return; /* what it calls may have been left out for a mistake in front of it */
    }
    if (n->taken == 0) {
        nothing_named(e, n->loc);
    } else if (n->taken > 1) {
        elab_error(e, n->loc, 459, "'@name' names one call, and this statement has %d", n->taken);
        diag_hint(&e->c->diag, "make statements of their own of them");
    } else if (n->transpose && n->inside && n->turned == 0) {
        elab_error(e, n->loc, 368, "nothing below \"%s\" has two axes that could be transposed",
                   n->text);
    }
}

/* --- names ----------------------------------------------------------------------------------- */

/* The name of a part of what is called `up`, and who says whether it is transposed. */
static const char *join(Elab *e, const Frame *up, const char *segment, Naming **turn) {
    Naming *n = e->naming;
    *turn = up->turn;
    if (n) {
        n->taken++;
        n->up = n->transpose ? *turn : NULL;
        segment = n->text ? n->text : segment;
        *turn = !n->says_transpose ? *turn : n->transpose ? n : NULL;
    }
    const char *front = n && n->whole ? "" : up->file;
    return !segment           ? front
           : front[0] != '\0' ? str_printf(e->arena, "%s.%s", front, segment)
                              : segment;
}

void naming_root(const Elab *e, Frame *frame, const char *model) {
    frame->file = e->nmodel == 1 ? "" : model;
}

void naming_call(Elab *e, const Frame *up, Item *item, const char *segment, const char **file,
                 Naming **turn) {
    Naming *n = e->naming;
    if (!train_owns_parameters(item)) {
        e->naming = NULL;
    } else if (n) {
        n->inside = true;
    }
    *file = join(e, up, segment, turn);
    e->naming = n;
}

static int count_holes(const char *text) {
    int n = 0;
    for (; *text != '\0'; text++) {
        n += is_hole(text);
    }
    return n;
}

/* A number in a pattern is that of a loop; so all loops have one, or none. */
static void check_holes(Elab *e, Slot *slot, Loc loc) {
    bool loops = !e->entry || !e->entry->dropped; /* else they may be around the call */
    if (slot->split > 0 && slot->split != slot->stacked && loops) {
        elab_error(e, loc, 365,
                   "\"%s\" has %d '{}' for the %d 'repeat' around '%s': one for each, or none",
                   slot->file_name, slot->split, slot->stacked, slot->name);
        slot->split = 0;
    }
}

void naming_slot(Elab *e, Slot *slot, const char *name, Loc loc) {
    Naming *turn;
    const char *file = join(e, e->frame, name, &turn);
    int axes = slot->type.rank - slot->stacked;
    bool transposed = turn && axes == 2;
    if (transposed) {
        for (Naming *n = turn; n; n = n->up) {
            n->turned++;
        }
    } else if (turn && turn == e->naming) {
        elab_error(e, turn->loc, 367, "'%s' has %d ax%s; what is transposed has two", slot->name,
                   axes, axes == 1 ? "is" : "es");
    }
    if (slot->file_name != slot->name) { /* it has been here before */
        if (!str_eq(slot->file_name, file) || slot->transposed != transposed) {
            elab_error(e, loc, 369, "'%s' has another name in files here than where it was made",
                       slot->name);
            diag_hint(&e->c->diag, "it is \"%s\" there and \"%s\" here", slot->file_name, file);
        }
        return;
    }
    slot->file_name = file;
    slot->split = count_holes(file);
    slot->transposed = transposed;
    check_holes(e, slot, loc);
    const char *fault = name_fault(file);
    if (fault) {
        elab_error(e, loc, 457, "\"%s\" cannot be a name in files: %s", file, fault);
    }
}

/* --- the end --------------------------------------------------------------------------------- */

static bool in_weights(const Slot *slot) {
    return slot->kind == SLOT_PARAM || slot->role == STATE_LAYER;
}

/* A word of a name: a number, `{}` or one character. */
static size_t word_length(const char *at) {
    int64_t first;
    size_t hole = hole_at(at, &first), n = hole > 0 ? hole : 1;
    while (is_digit(at[0]) && is_digit(at[n])) {
        n++;
    }
    return n;
}

/* Is the number `text` one that `hole`, `{}` number `axis` of the slot, stands for? */
static bool holds(const Slot *slot, int axis, const char *hole, const char *text, size_t n) {
    int64_t value = 0, first;
    hole_at(hole, &first);
    int64_t end = first + slot->type.dim[axis];
    for (size_t i = 0; i < n && value < end; i++) {
        value = value * 10 + (text[i] - '0');
    }
    return (text[0] != '0' || n == 1) && value >= first && value < end;
}

/* Have two holes a number in common? */
static bool holes_meet(const Slot *a, int i, const char *x, const Slot *b, int k, const char *y) {
    int64_t from, other;
    hole_at(x, &from);
    hole_at(y, &other);
    return from < other + b->type.dim[k] && other < from + a->type.dim[i];
}

/* Have the two a name in common? */
static bool names_meet(const Slot *a, const Slot *b) {
    const char *x = a->file_name, *y = b->file_name;
    for (int i = 0, k = 0; *x != '\0' && *y != '\0';) {
        size_t n = word_length(x), m = word_length(y);
        bool left = is_hole(x), right = is_hole(y);
        if (left && right) {
            if (!holes_meet(a, i, x, b, k, y)) {
                return false;
            }
        } else if (left || right) {
            if (left ? !is_digit(*y) || !holds(a, i, x, y, m)
                     : !is_digit(*x) || !holds(b, k, y, x, n)) {
                return false;
            }
        } else if (n != m || memcmp(x, y, n) != 0) {
            return false;
        }
        i += left;
        k += right;
        x += n;
        y += m;
        if (*x == '\0' || *y == '\0') {
            return *x == *y;
        }
    }
    return false;
}

static void same_name(Elab *e, const Slot *a, const Slot *b) {
    elab_error(e, b->loc, 366, "'%s' and '%s' are both \"%s\" in files", a->name, b->name,
               b->file_name);
    diag_note(&e->c->diag, a->loc, "the other is here, \"%s\"", a->file_name);
}

void naming_finish(Elab *e) {
    NameList names = {0};
    VEC(Slot *) slot = {0};
    int64_t tensors = 0;
    for (int i = 0; e->named && i < e->module->slot.count; i++) {
        Slot *at = e->module->slot.at[i];
        if (!in_weights(at)) {
            continue;
        }
        tensors += at->split > 0 ? slot_slices(at) : 0;
        if (tensors > FILE_TENSORS) {
            elab_error(e, at->loc, 379, "patterns of '@name' make more than %d tensors of a file",
                       FILE_TENSORS);
            return;
        }
        int same = names_at(&names, at->file_name);
        if (same >= 0) {
            same_name(e, slot.at[same], at);
        }
        for (int k = 0; k < slot.count && same < 0; k++) {
            if ((at->split > 0 || slot.at[k]->split > 0) && names_meet(slot.at[k], at)) {
                same_name(e, slot.at[k], at);
            }
        }
        names_push(e->scratch, &names, at->file_name);
        VEC_PUSH(e->scratch, &slot, at);
    }
}
