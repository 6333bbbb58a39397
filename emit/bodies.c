/* bodies: see the header. A register tile has so many rows and vectors on each machine; which ones
 * a product takes, its plan knows. Needs a finished program; gives text and names of features. */
#include "emit/bodies.h"

#include "emit/stmts.h"

static void add_tile(void *ctx, Step *step, int depth) {
    (void)depth;
    Tiles *tiles = ctx;
    const Tile *tile = step->kernel ? kernel_tile(step->kernel) : NULL;
    uint64_t bodies[TILE_MACHINES];
    if (tile) {
        tile_features(tiles->arena, tile, tiles->apart, bodies, &tiles->features);
    }
    for (int i = 0; tile && i < TILE_MACHINES; i++) {
        tiles->bodies[i] |= bodies[i];
    }
}

Tiles tiles_of(const Emit *e) {
    Tiles tiles = {.arena = e->arena, .apart = e->c->opt.split > 0};
    for (int i = 0; i < e->p->entry.count; i++) {
        steps_visit(&e->p->entry.at[i]->step, add_tile, &tiles);
    }
    return tiles;
}

/* The rows of register tiles, and the columns of dot products, are written out by macros. */
static void print_rows(const Tiles *tiles, Text *out) {
    enum { MOST = 16 };
    static const char *const dots[] = {"DOTS1", "DOTS2", "DOTS3", "DOTS4"};
    bool used[MOST + 1] = {false};
    for (int i = 0; i < 4; i++) {
        const int columns = i == 0 ? 8 : 4;
        used[columns] = used[columns] || names_at(&tiles->features, dots[i]) >= 0;
    }
    for (int i = 0; i < TILE_MACHINES; i++) {
        for (int bit = 0; bit < 64; bit++) {
            used[bit / 4 + 1] = used[bit / 4 + 1] || (tiles->bodies[i] >> bit & 1);
        }
    }
    text_add(out, "/* F for each of some rows, written out. */\n");
    for (int n = 1; n <= MOST; n++) {
        if (used[n]) {
            text_printf(out, "#define MD_ROWS%d(F)", n);
            for (int row = 0; row < n; row++) {
                text_printf(out, " F(%d)", row);
            }
            text_add(out, "\n");
        }
    }
    text_add(out, "\n");
}

const char *tile_bodies(const Emit *e, const Tiles *tiles) {
    Text text = {.arena = e->arena};
    text_add(&text, "/* Rows and vectors of the register tiles that are used. */\n");
    if (e->c->opt.whole_runtime) {
        text_add(&text, "#if defined(MD_TILE_BODIES) && !defined(MD_TILE_EVERY)\n"
                        "#error \"several models in one file: compile each alone, or define "
                        "MD_TILE_EVERY\"\n#endif\n#undef MD_TILE_BODIES\n");
    }
    for (int i = 0; i < TILE_MACHINES; i++) {
        text_printf(&text, "#%s %s\n#define MD_TILE_BODIES(F)", i ? "elif" : "if",
                    tile_machine[i].when);
        int n = 0;
        for (int bit = 0; bit < 64; bit++) {
            if (tiles->bodies[i] >> bit & 1) {
                text_printf(&text, "%s F(%d, %d)", n > 0 && n % 8 == 0 ? " \\\n   " : "",
                            bit / 4 + 1, bit % 4 + 1);
                n++;
            }
        }
        text_add(&text, "\n");
    }
    text_add(&text, "#endif\n\n");
    if (!e->c->opt.whole_runtime) {
        print_rows(tiles, &text);
    }
    return text.at;
}
