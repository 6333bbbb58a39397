/* forms: see the header.
 *
 * Another batch makes one axis of a product longer or shorter, the outermost one. From its length
 * follow those of blocks, and places in the workspace: these are read from the plan. Register tiles
 * have constant rows; of a long axis all have as many as the highest one, or one less. The runtime
 * asks of each such field whether it is read, which costs nothing where that is a constant. Needs a
 * finished plan; gives what text has of it. */
#include "emit/forms.h"

#include <inttypes.h>
#include <string.h>

/* Those that may be read. */
static const struct {
    size_t at;
    const char *name;
} fields[] = {
    {offsetof(md_tile, b1.n), "b1.n"},
    {offsetof(md_tile, b2.n), "b2.n"},
    {offsetof(md_tile, r1.n), "r1.n"},
    {offsetof(md_tile, r2.n), "r2.n"},
    {offsetof(md_tile, cols.n), "cols.n"},
    {offsetof(md_tile, k0.n), "k0.n"},
    {offsetof(md_tile, k1.n), "k1.n"},
    {offsetof(md_tile, k2.n), "k2.n"},
    {offsetof(md_tile, block_rows), "block_rows"},
    {offsetof(md_tile, block_cols), "block_cols"},
    {offsetof(md_tile, kb1), "kb1"},
    {offsetof(md_tile, kb2), "kb2"},
    {offsetof(md_tile, partial), "partial"},
    {offsetof(md_tile, strip_at), "strip_at"},
    {offsetof(md_tile, turned_at), "turned_at"},
    {offsetof(md_tile, slice), "slice"},
};

static size_t place_of(const md_tile *p, const int64_t *field) {
    return (size_t)(field - (const int64_t *)(const void *)p);
}

/* The rows of register tiles of a long axis; the lower ones may be missing. */
static void set_tiles(Form *form, const md_tile *p) {
    form->is |= MD_TILE_TILES;
    for (int i = 0; i < TILE_MACHINES; i++) {
        const TileMachine *on = &tile_machine[i];
        const md_tile_cut u = md_tile_cut_rows(p, on->bytes / p->elem, on->bytes, on->many);
        form->big[i] = u.big;
        form->little[i] = u.little < u.big || u.big == u.unit ? u.little : u.big - u.unit;
    }
}

/* Bodies of the rows and vectors that it may come to. */
static void set_bodies(Form *form, const md_tile *p, bool columns) {
    for (int i = 0; i < TILE_MACHINES; i++) {
        const TileMachine *on = &tile_machine[i];
        const int64_t lanes = on->bytes / p->elem;
        const md_tile_cut u = md_tile_cut_rows(p, lanes, on->bytes, on->many);
        const bool tiles = form->is & MD_TILE_TILES;
        const int64_t rows[2] = {tiles ? form->big[i] : u.big, tiles ? form->little[i] : u.little};
        const int64_t rest = (p->cols.n % u.nr + lanes - 1) / lanes;
        for (int64_t v = 1; v <= u.nr / lanes; v++) {
            const bool used = columns || v == rest || (v * lanes == u.nr && p->cols.n >= u.nr);
            for (int k = 0; k < 2 && used; k++) {
                form->bodies[i] |= UINT64_C(1) << (4 * (rows[k] - 1) + v - 1);
            }
        }
    }
}

Form form_of(const Tile *tile, const md_tile *plan) {
    Form form = {.known = false};
    md_tile p = *plan;
    const int64_t none = MD_TILE_HALF | MD_TILE_BATCHED | MD_TILE_WINOGRAD;
    if (tile->blas || tile->outer == 0 || (p.is & none)) {
        return form;
    }
    const int64_t *length = (const int64_t *)(const void *)&p + tile->outer - 1;
    if ((p.is & MD_TILE_LISTED) && (length == &p.k0.n || length == &p.k1.n || length == &p.k2.n)) {
        return form; /* how long the list is says how its steps go */
    }
    form.known = true;
    memcpy(form.bodies, tile->bodies, sizeof form.bodies);
    form.is = p.is & ~(int64_t)(MD_TILE_SHARED | MD_TILE_HELPED | MD_TILE_UNCUT);
    form.read[place_of(&p, length)] = true;
    const bool rows = length == &p.r1.n || length == &p.r2.n, columns = length == &p.cols.n;
    form.read[place_of(&p, &p.block_rows)] = rows || columns;
    form.read[place_of(&p, &p.block_cols)] = rows || columns;
    form.read[place_of(&p, &p.kb1)] = length == &p.k1.n;
    form.read[place_of(&p, &p.kb2)] = length == &p.k2.n;
    const int64_t *const in_work[] = {&p.partial, &p.strip_at, &p.turned_at, &p.slice};
    for (size_t i = 0; i < sizeof in_work / sizeof *in_work; i++) {
        form.read[place_of(&p, in_work[i])] = *in_work[i] > 0;
    }
    const bool sum = length == &p.k1.n || length == &p.k2.n;
    if (sum && (p.is & MD_TILE_LISTED) == 0 && md_tile_blocks(&p) == 1) {
        form.is |= MD_TILE_UNDIVIDED;
    }
    const md_tile_cut u = md_tile_cut_rows(&p, 64 / p.elem, 64, true);
    if (rows && (length == &p.r1.n) == (u.count == u.cuts && p.r1.n > 1)) {
        set_tiles(&form, &p);
    }
    if ((p.is & (MD_TILE_DOTS | MD_TILE_ALONG)) == 0) {
        set_bodies(&form, &p, columns);
    }
    return form;
}

const char *form_number(Arena *arena, const Form *form, const md_tile *p, const int64_t *field) {
    const bool read = form != NULL && form->read[place_of(p, field)];
    return read ? "MD_TILE_READ" : str_printf(arena, "%" PRId64, *field);
}

const char *form_rows(Arena *arena, const Form *form) {
    Text text = {.arena = arena};
    text_add(&text, "MD_TILE_ROWS_IN(");
    for (int k = 0; k < 2; k++) {
        const int64_t *rows = k == 0 ? form->big : form->little;
        text_add(&text, "MD_TILE_ON(");
        for (int i = 0; i < TILE_MACHINES; i++) {
            text_printf(&text, "%s%" PRId64, i > 0 ? ", " : "", rows[i]);
        }
        text_add(&text, "), ");
    }
    return text.at;
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The field that may be read whose name begins here; 0: none does. */
static size_t field_length(const char *at) {
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const size_t n = strlen(fields[i].name);
        if (strncmp(at, fields[i].name, n) == 0 && !is_word(at[n])) {
            return n;
        }
    }
    return 0;
}

const char *form_line(Arena *arena, const char *line) {
    Text out = {.arena = arena};
    const char *from = line;
    for (const char *at = line; (at = strstr(at, "->")) != NULL; at += 2) {
        const size_t n = field_length(at + 2);
        const char *plan = at;
        while (plan > from && is_word(plan[-1])) {
            plan--;
        }
        if (n > 0) {
            text_addn(&out, from, (size_t)(plan - from));
            text_printf(&out, "MD_TILE_OF(%.*s, %.*s)", (int)(at - plan), plan, (int)n, at + 2);
            from = at + 2 + n;
        }
    }
    if (from == line) {
        return line;
    }
    text_add(&out, from);
    return out.at;
}
