/* SPDX-License-Identifier: 0BSD */
/* winograd_plan: plans of products of windows whose tiles are transformed (tile_winograd.h), and
 * whether that pays.
 *
 * Runs in the compiler, as plans do. Gives md_tile_winograd and md_tile_winograd_sum. */
#ifndef MD_WINOGRAD_PLAN_H
#define MD_WINOGRAD_PLAN_H

#include "runtime/tile_shape.h"
#include "runtime/tile_winograd.h"

/* The summed axes of a shape, by how X goes along them: at[1], at[2] those with these steps, or
 * backwards, where that `may` be, and of so many places, any if 0; at[0] the one that is left,
 * which may have become one axis with places beside it. False: there are others. */
MD_FN int md_winograd_steps(const md_tile_shape *s, const int64_t *step, int64_t places, int may,
                            md_tile_axis *at) {
    md_tile_axis sum[4] = {{s->ko, s->a_ko, s->b_ko, 0},
                           {s->k0, s->a_k0, s->b_k0, 0},
                           {s->k1, s->a_k1, s->b_k1, 0},
                           {s->k2, s->a_k2, s->b_k2, 0}};
    for (int i = 0; i < 16; i++) { /* such an axis, and room for the places */
        md_tile_axis *both = &sum[i / 4], *free = &sum[i % 4];
        if (places > 0 && both->x == 1 && both->n == places * step[1] && free->n == 1) {
            *free = (md_tile_axis){places, step[1], step[1] * both->y, 0};
            both->n = step[1];
        }
    }
    int found[3] = {0, 0, 0};
    at[0] = (md_tile_axis){1, 0, 0, 0};
    for (int i = 0; i < 4; i++) {
        const int so_many = places == 0 || sum[i].n == places;
        const int first = sum[i].x == step[0] || (may && sum[i].x == -step[0]);
        const int second = sum[i].x == step[1] || (may && sum[i].x == -step[1]);
        const int which = so_many && first ? 1 : so_many && second ? 2 : 0;
        if (sum[i].n > 1) {
            at[which] = sum[i];
            found[which]++;
        }
    }
    return step[0] > 0 && step[1] > 0 && step[0] != step[1] && found[0] <= 1 && found[1] == 1 &&
           found[2] == 1;
}

/* How many lines of tiles a block has, of so many `bytes` each: some tiles, fewer where blocks are
 * few for a team, whose memory should not be more than what it works on. */
MD_FN void md_winograd_group(md_tile *p, int64_t bytes) {
    const int64_t across = md_winograd_tiles(p), lines = md_winograd_lines(p);
    const int64_t more = p->is & MD_TILE_WINOGRAD_SUM ? 2 : 1; /* smaller ones, of fewer workers */
    const int64_t most = more * MD_TILE_WINOGRAD_HIGH;
    int64_t tiles = more * lines * across / (4 * MD_TILE_WINOGRAD_TEAM);
    tiles = md_tile_min(tiles < MD_TILE_HIGH ? MD_TILE_HIGH : tiles, most);
    const int64_t group = md_tile_min(tiles / across, MD_TILE_WINOGRAD_BYTES / bytes);
    p->group = group < 1 ? 1 : md_tile_min(group, lines);
}

/* Do transformed tiles pay? They spare multiply-adds, there are many for each value that is
 * transformed, and what a team has is little beside the operands, with weights twice. */
MD_FN int md_winograd_pays(const md_tile *p) {
    const int64_t channels = md_winograd_channels(p), rows = md_winograd_lines(p);
    const int64_t tiles = rows * md_winograd_tiles(p), sets = md_winograd_sets(p);
    const int sum = (p->is & MD_TILE_WINOGRAD_SUM) != 0;
    const int one = md_winograd_images(p) == 1, two = !sum && p->kb1 == 2;
    const int64_t taps = sum ? 9 : p->kb1 * p->kb2;
    const double places = (double)md_winograd_images(p) * (double)md_winograd_height(p) *
                          (double)md_winograd_width(p);
    const double both = (double)channels * (double)p->cols.n;
    const double products = (double)taps * places * both;
    const double held =
        places * (double)(channels + p->cols.n) + 2 * (double)(taps * sets) * both;
    const int64_t team = md_tile_min(MD_TILE_WINOGRAD_TEAM, rows);
    const int halves = two   ? MD_TILE_WINOGRAD_HELD2
                       : one ? MD_TILE_WINOGRAD_HELD1
                             : MD_TILE_WINOGRAD_HELD;
    const int64_t least = sum ? MD_TILE_WINOGRAD_SUMS : MD_TILE_WINOGRAD_LEAST;
    return (sum ? channels : p->k0.n) >= least && p->cols.n >= least &&
           tiles >= sets * MD_TILE_WINOGRAD_TILES &&
           products >= (one ? MD_TILE_WINOGRAD_FROM1 : MD_TILE_WINOGRAD_FROM) &&
           p->slice * p->elem <= MD_TILE_WINOGRAD_MOST &&
           100 * 16 * (double)tiles <= MD_TILE_WINOGRAD_WORTH * (double)taps * places &&
           2 * (double)(p->partial + team * p->slice) <= halves * held;
}

/* What plans by transformed tiles have in common, of such summed axes: each is one block. */
MD_FN md_tile md_winograd_plan(const md_tile_shape *s, const md_tile_axis *at, int elem,
                               int64_t is) {
    const double products = (double)s->b1 * (double)s->b2 * (double)s->m1 * (double)s->m2 *
                            (double)s->n * (double)at[0].n * (double)at[1].n * (double)at[2].n;
    const int shared = products > MD_TILE_SERIAL_NEAR ? MD_TILE_SHARED : 0;
    const int helped = products >= MD_TILE_HELPED_FROM ? MD_TILE_HELPED : 0;
    const md_tile p = {.r1 = {s->m1, s->a_m1, 0, s->c_m1},
                       .r2 = {s->m2, s->a_m2, 0, s->c_m2},
                       .cols = {s->n, 0, s->b_n, s->c_n},
                       .skip = {1, 0, 0, 0},
                       .k0 = at[0],
                       .k1 = at[1],
                       .k2 = at[2],
                       .b1 = {s->b1, s->a_b1, s->b1 == 1 ? 0 : s->b_b1, s->c_b1},
                       .b2 = {s->b2, s->a_b2, s->b2 == 1 ? 0 : s->b_b2, s->c_b2},
                       .elem = elem,
                       .is = is | shared | helped,
                       .block_cols = MD_WINOGRAD_VECTORS * (64 / elem),
                       .wide = MD_WINOGRAD_VECTORS,
                       .kb1 = at[1].n,
                       .kb2 = at[2].n,
                       .chunks = 1};
    return p;
}

/* What a worker has: a block of tiles and its products, or weights that it packs; and a strip. */
MD_FN void md_winograd_slice(md_tile *p) {
    const int64_t line = 64 / p->elem, panel = MD_WINOGRAD_VECTORS * line;
    const int64_t pack = MD_WINOGRAD_CHANNELS * 9 * panel;
    p->group_at = md_tile_up(16 * md_winograd_next_x(p), line);
    p->slice = p->group_at + md_tile_up(16 * md_winograd_next_c(p), line);
    p->slice = pack > p->slice ? pack : p->slice;
    if (p->is & MD_TILE_NO_C) {
        p->strip_at = p->slice;
        p->slice += md_winograd_outs(p) * p->r1.c;
    }
}

/* The plan of windows of 3 x 3 places, or 2 x 2, at stride 1, or of r times as many at stride r,
 * whose tiles are transformed; false: it is not such a shape, or that does not pay. */
MD_FN int md_tile_winograd(const md_tile_shape *shape, int elem, md_tile *p) {
    const int other = MD_TILE_ACROSS | MD_TILE_HALF, none = (shape->flags & MD_TILE_NO_C) != 0;
    const int64_t line = 64 / elem;
    const int64_t wide = md_tile_min(MD_WINOGRAD_VECTORS * line, md_tile_up(shape->n, line));
    md_tile_shape with_strip = *shape, *s = &with_strip;
    md_tile_axis at[3];
    int64_t taps = 0;
    if (none) { /* C is a strip, whose lines lie apart where those of the shape do */
        s->c_m1 = s->m2 * wide + (s->c_m1 == s->m2 * s->c_m2 ? 0 : line);
        s->c_m2 = wide, s->c_n = 1;
    }
    if ((s->flags & other) || s->c_n != 1 || s->c_m1 < s->m2 * s->c_m2) {
        return 0;
    }
    for (int64_t i = 0; i < 2 * MD_TILE_WINOGRAD_STRIDE && taps == 0; i++) {
        const int64_t r = i / 2 + 1, step[2] = {s->a_m1 / r, s->a_m2 / r};
        const int is = s->a_m1 % r == 0 && s->a_m2 % r == 0 &&
                       md_winograd_steps(s, step, (3 - i % 2) * r, 1, at);
        taps = is ? 3 - i % 2 : 0;
    }
    if (taps == 0 || at[0].x != 1) {
        return 0;
    }
    const int c = none ? MD_TILE_NO_C : MD_TILE_IN_PLACE;
    *p = md_winograd_plan(s, at, elem, MD_TILE_WINOGRAD | c | (s->flags & MD_TILE_ADD));
    p->kb1 = p->kb2 = taps;
    p->block_cols = wide;
    p->block_rows = s->c_m1 == s->m2 * s->c_m2 ? md_winograd_outs(p) * s->m2 : s->m2;
    md_winograd_group(p, 16 * md_winograd_tiles(p) * md_winograd_pitch(p) * elem);
    p->partial = md_winograd_sets(p) * 16 * md_winograd_channels(p) * md_winograd_columns(p);
    md_winograd_slice(p);
    return md_winograd_pays(p);
}

/* The same of a sum over all places of images, of X at 3 x 3 shifts. */
MD_FN int md_tile_winograd_sum(const md_tile_shape *s, int elem, md_tile *p) {
    const int other = MD_TILE_ADD | MD_TILE_ACROSS | MD_TILE_HALF;
    const int first = s->b1 == 3 && s->b2 == 1, second = s->b2 == 3 && s->b1 == 1;
    const int64_t step[2] = {first ? s->a_b1 : s->a_b2, s->a_m2}, line = 64 / elem;
    md_tile_axis at[3];
    if ((s->flags & other) || !(first || second) || (first ? s->b_b1 : s->b_b2) != 0 ||
        s->m2 != 3 || s->a_m1 != 1 || s->b_n != 1 || !md_winograd_steps(s, step, 0, 0, at)) {
        return 0;
    }
    *p = md_winograd_plan(
        s, at, elem, MD_TILE_WINOGRAD | MD_TILE_WINOGRAD_SUM | (s->flags & MD_TILE_NO_C));
    p->block_rows = 3 * MD_WINOGRAD_CHANNELS;
    p->kb1 = 1;
    const int64_t columns = md_winograd_columns(p), tiles = md_winograd_tiles(p);
    const int64_t strips = 3 * p->block_rows * p->block_cols;
    const int64_t whole = md_winograd_pitch(p) + columns;
    md_winograd_group(p, 4 * tiles * whole * elem);
    /* Of many channels or columns a block has a part, and more tiles in the same memory. */
    const int64_t cuts = (columns + MD_TILE_WINOGRAD_PART - 1) / MD_TILE_WINOGRAD_PART;
    p->kb1 = (p->r1.n + MD_TILE_WINOGRAD_PART - 1) / MD_TILE_WINOGRAD_PART;
    p->kb2 = md_tile_up((columns + cuts - 1) / cuts, p->block_cols);
    const int64_t group = p->group * whole / (md_winograd_pitch(p) + p->kb2);
    const int64_t most = md_tile_min(md_winograd_lines(p), 2 * MD_TILE_WINOGRAD_HIGH / tiles);
    p->group = md_tile_min(group < 1 ? 1 : group, most > p->group ? most : p->group);
    const int64_t panels = p->kb2 / (MD_WINOGRAD_VECTORS * 16 / elem); /* of any machine, most */
    p->partial = 16 * p->r1.n * columns;
    p->group_at = md_tile_up(4 * md_winograd_next_x(p), line);
    p->slice = p->group_at + 4 * (p->group * tiles * p->kb2 + panels * line);
    p->slice = strips > p->slice ? strips : p->slice;
    return md_winograd_pays(p);
}

#endif
