/* SPDX-License-Identifier: 0BSD */
/* tile_plan: from the shape of a contraction to its plan (tile.h), the same for every machine.
 *
 * Runs in the compiler, so emitted programs need not contain it: it chooses roles, packing, blocks
 * and chunks and counts the workspace. Gives md_tile_plan and md_tile_bodies, pure functions. */
#ifndef MD_TILE_PLAN_H
#define MD_TILE_PLAN_H

#include "runtime/tile_columns.h"
#include "runtime/winograd_plan.h"

#include <stdlib.h>

/* Should the roles be swapped, C^T = B^T A^T? Yes for a B that is contiguous along k (a weight
 * stored [out, in]) and a small batch, because then only the small A is packed, and for an A
 * contiguous along m where the few columns of B would leave vectors empty. Counted in FMAs of one
 * 64-byte vector, two of which take a cycle; moving an element by a register transpose costs about
 * 1/3 of a cycle. */
MD_FN int md_tile_swaps(const md_tile_shape *s, int64_t lanes) {
    int64_t m = s->m2;
    int64_t k = s->ko * s->k0 * s->k1 * s->k2;
    if (s->n == 1 || s->m1 != 1 || m < 4 || (s->b_n == 1 && s->a_m2 != 1)) {
        return 0;
    }
    double turn = 0.6;
    double straight = (double)md_tile_up(s->n, lanes) / (double)lanes * (double)m * (double)k +
                      (s->b_n == 1 ? 0 : turn * (double)s->n * (double)k);
    double swapped = (double)md_tile_up(m, lanes) / (double)lanes * (double)s->n * (double)k +
                     turn * (double)m * (double)s->n;
    if (s->a_m2 != 1) {
        swapped += turn * (double)m * (double)k;
        if (m > 160 && m * k > MD_TILE_SWAP_MOST) {
            return 0; /* the packed A would leave the second-level cache */
        }
    }
    return swapped < straight;
}

/* An axis where the operands change places. */
MD_FN md_tile_axis md_tile_turned(md_tile_axis a) {
    const md_tile_axis turned = {a.n, a.y, a.x, a.c};
    return turned;
}

/* Is Y the same in all of some batches? */
MD_FN int md_tile_repeats(const md_tile *p) {
    return p->b1.n * p->b2.n >= MD_TILE_KEEP_BATCHES && (p->b1.n == 1 || p->b1.y == 0) &&
           (p->b2.n == 1 || p->b2.y == 0);
}

/* Is all of Y, the same in all batches, worth to be kept in panels, and little enough? */
MD_FN int md_tile_keeps(const md_tile *p) {
    const int64_t rows = p->r1.n * p->r2.n, batches = p->b1.n * p->b2.n;
    const int64_t panel = p->wide * (64 / p->elem);
    const int64_t count = p->k0.n * p->k1.n * p->k2.n * md_tile_up(p->cols.n, panel);
    return md_tile_repeats(p) && rows <= MD_TILE_KEEP_ROWS &&
           count * p->elem <= MD_TILE_KEEP_BYTES &&
           MD_TILE_KEEP_PART * count <= batches * rows * p->cols.n;
}

/* The four summed axes of a plan, outermost first. */
MD_FN void md_tile_unskipped(const md_tile *p, md_tile_axis axis[4]) {
    const md_tile_axis k0 = p->k0, skip = p->skip;
    const md_tile_axis outer = {k0.n / skip.n, skip.n * k0.x + skip.x, skip.n * k0.y + skip.y, 0};
    const md_tile_axis inner = {skip.n, k0.x, k0.y, 0};
    axis[0] = outer;
    axis[1] = inner;
    axis[2] = p->k1;
    axis[3] = p->k2;
}

/* Two axes as k0 and what it skips. */
MD_FN void md_tile_skips(md_tile *p, md_tile_axis outer, md_tile_axis inner) {
    const md_tile_axis skip = {inner.n, outer.x - inner.n * inner.x,
                               outer.y - inner.n * inner.y, 0};
    const md_tile_axis none = {1, 0, 0, 0};
    const int two = outer.n > 1 && inner.n > 1;
    p->skip = two ? skip : none;
    p->k0 = inner.n == 1 ? outer : inner;
    p->k0.n = outer.n * inner.n;
}

/* Sorts the summed axes of `p` as Y lies in memory. Gives how many steps of the sum lie there at a
 * stride: all of them, or those within each of the outermost axis, whose stride in Y is that of k0
 * then; 0: neither, or no list is made. */
MD_FN int64_t md_tile_listed_run(md_tile *p) {
    md_tile_axis axis[4], given[4], none = {1, 0, 0, 0};
    int64_t count = 0, all = p->k0.n * p->k1.n * p->k2.n, far = 0;
    md_tile_unskipped(p, given);
    for (int i = 0; i < 4; i++) {
        int64_t at = count;
        if (given[i].n > 1) {
            for (; at > 0 && llabs(axis[at - 1].y) < llabs(given[i].y); at--) {
                axis[at] = axis[at - 1];
            }
            axis[at] = given[i];
            count++;
            far += (given[i].n - 1) * llabs(given[i].x);
        }
    }
    if (count < 2 || all > MD_TILE_LIST || far > INT32_MAX || axis[count - 1].y == 0) {
        return 0;
    }
    int64_t run = axis[count - 1].n, inner = count - 1;
    for (; inner > 0 && axis[inner - 1].y == run * axis[count - 1].y; inner--) {
        run *= axis[inner - 1].n;
    }
    if (inner > 1) {
        return 0;
    }
    for (int i = 0; i < 4; i++) {
        const int64_t from = i - 4 + count; /* those of a run are the last ones */
        given[i] = from >= inner ? axis[from] : none;
    }
    const int outside = count < 4 ? 1 : 0;
    given[outside] = inner == 1 ? axis[0] : given[outside];
    md_tile_skips(p, given[0], given[1]);
    p->k1 = given[2];
    p->k2 = given[3];
    if (inner == 1 && outside == 0) { /* the blocks of Y are those of the outermost axis */
        p->k0.y = axis[0].y;
        p->skip.y = 0;
    }
    return run;
}

/* The plan of a shape in normal form (see md_tile_normal; others are right but slower). elem is
 * sizeof(float) or sizeof(double); with MD_TILE_HALF in its flags, whose strides of A and B count
 * elements of 16 bits, sizeof(float). */
MD_FN md_tile md_tile_plan(md_tile_shape s, int elem) {
    int64_t lanes = 64 / elem;
    md_tile p;
    if ((s.flags & MD_TILE_WINOGRAD) &&
        (md_tile_winograd(&s, elem, &p) || md_tile_winograd_sum(&s, elem, &p))) {
        return p;
    }
    s.flags &= ~MD_TILE_WINOGRAD;
    memset(&p, 0, sizeof p);
    const md_tile_axis m1 = {s.m1, s.a_m1, 0, s.c_m1};
    const md_tile_axis m2 = {s.m2, s.a_m2, 0, s.c_m2};
    const md_tile_axis n = {s.n, 0, s.n == 1 ? 1 : s.b_n, s.c_n};
    const md_tile_axis ko = {s.ko, s.a_ko, s.b_ko, 0};
    const md_tile_axis k0 = {s.k0, s.a_k0, s.b_k0, 0};
    const md_tile_axis k1 = {s.k1, s.a_k1, s.b_k1, 0};
    const md_tile_axis k2 = {s.k2, s.a_k2, s.b_k2, 0};
    const md_tile_axis b1 = {s.b1, s.a_b1, s.b_b1, s.c_b1};
    const md_tile_axis b2 = {s.b2, s.a_b2, s.b_b2, s.c_b2};
    const md_tile_axis none = {1, 0, 0, 0};
    const int across = (s.flags & MD_TILE_ACROSS) != 0;
    const int inplace = (s.flags & MD_TILE_NO_C) == 0 && (s.m1 == 1 || s.c_m1 == s.m2 * s.c_m2) &&
                        (across ? s.c_m2 == 1 : s.c_n == 1 || s.n == 1);
    const int swapped = md_tile_swaps(&s, lanes);
    const int turned = swapped != across;
    p.elem = elem;
    p.r1 = swapped ? none : m1;
    p.r2 = swapped ? md_tile_turned(n) : m2;
    p.cols = swapped ? md_tile_turned(m2) : n;
    md_tile_skips(&p, swapped ? md_tile_turned(ko) : ko, swapped ? md_tile_turned(k0) : k0);
    p.k1 = swapped ? md_tile_turned(k1) : k1;
    p.k2 = swapped ? md_tile_turned(k2) : k2;
    p.b1 = swapped ? md_tile_turned(b1) : b1;
    p.b2 = swapped ? md_tile_turned(b2) : b2;
    const int64_t rows = p.r1.n * p.r2.n;

    /* Y must be packed where its elements are not neighbours along the columns, and should be
     * where a pitch of 4096 bytes makes its rows evict each other. */
    const int half = (s.flags & MD_TILE_HALF) != 0; /* pairs do not lie side by side */
    const int lone = (s.flags & MD_TILE_LONE) != 0; /* one element in 32 bits */
    int packed = half || p.cols.y != 1 ||
                 (rows >= MD_TUNED(48, 4) && p.k1.n * p.k2.n >= MD_TUNED(64, 3) && p.k2.n > 1 &&
                  p.k2.y * elem % MD_TILE_PITCH == 0);

    /* One to four rows times a Y that is contiguous along k (a weight stored [out, in]): packing
     * would cost more than the product, so these are dot products. Not for many short sums of
     * more than one row: the lanes of each would be added up one by one. */
    const int brief =
        rows > 1 && p.cols.n >= MD_TILE_DOTS_LEAST && p.k2.n < MD_TILE_DOTS_LEAST;
    const int dots = !half && !brief && (rows <= 3 || (rows == 4 && p.k2.n >= MD_TILE_LONG)) &&
                     p.r1.n == 1 && p.cols.y != 1 && p.k2.y == 1 && p.k2.x == 1 && p.k2.n >= lanes;
    const int64_t sums = p.k0.n * p.k1.n * p.k2.n;

    /* Few columns by more rows than that: most lanes of a vector of columns would be empty. Along
     * the sum all but the last vector of a run are full. */
    const int64_t steps = md_tile_up(p.k2.n, lanes) * sums / p.k2.n; /* lanes of these */
    const int along = !half && !dots && p.k2.x == 1 && p.k2.y == 1 && p.k2.n >= lanes &&
                      sums >= MD_TILE_ALONG_LEAST &&
                      100 * p.cols.n * steps <=
                          MD_TILE_ALONG_WORTH * md_tile_up(p.cols.n, lanes) * sums;
    packed = packed && !dots && !along;

    /* More vectors for few rows, to keep enough sums in flight; for a row pitch of 4096 bytes of X,
     * where fewer rows share a set of the first-level cache; and for large products, which then
     * load 11 times for 24 multiply-adds and not 16 times for 28: in place, and all of
     * 16 bits, whose strips and packed rows would else be passed over more often. */
    const int64_t vectors = (p.cols.n + lanes - 1) / lanes;
    const int fits = vectors >= MD_TILE_WIDE || vectors % 3 == 0;
    const int pitched = p.r2.x != 0 && p.r2.x * elem % MD_TILE_PITCH == 0;
    const int high =
        (inplace || half) && !turned && rows >= MD_TILE_WIDE_ROWS && sums >= MD_TILE_K_PART;
    p.wide = rows <= 3 ? 4 : rows > 8 && (pitched || (high && fits)) ? 3 : 2;
    if (along) {
        const int64_t panels = (p.cols.n + MD_TILE_ALONG_PANEL - 1) / MD_TILE_ALONG_PANEL;
        p.wide = (p.cols.n + panels - 1) / panels;
    }

    /* Few rows of each batch do not pay for packing its panels again for them. */
    const int batched = (s.flags & MD_TILE_BATCHED) && packed && inplace && !turned && !swapped &&
                        !half && md_tile_repeats(&p) && !md_tile_keeps(&p) &&
                        rows <= MD_TILE_BATCHED_ROWS && sums <= MD_TILE_LIST &&
                        rows * p.cols.n * sums >= MD_TILE_BATCHED_FROM;
    s.flags &= batched ? s.flags : ~(int64_t)MD_TILE_BATCHED;

    /* Weights of a convolution lie elsewhere than the windows that they multiply: the sum goes as
     * they lie, so that they are packed by runs, and its short axes are one loop. Where a step
     * multiplies one vector, or packing is little, one more load a step is too many. */
    const int plain = half || dots || swapped || !packed || p.cols.y == 1;
    const int listed = !plain && vectors > 1 && rows <= MD_TILE_LIST_ROWS && !md_tile_keeps(&p);
    const int64_t run = listed ? md_tile_listed_run(&p) : 0;

    /* Blocks of the summed axes: some of k2 at a time, or several k1 where k2 is short. */
    int once = packed && !batched && rows <= MD_TILE_HIGH; /* larger panels would gain little */
    /* Rows side by side, and a pitch of 4096 bytes along the sum: a line that tiles share is gone
     * before the next one where a block is long. */
    const int far = p.r2.x == 1 && p.k2.n > 1 && p.k2.x * elem % MD_TILE_PITCH == 0;
    /* A small result of operands that come from memory and are read once: what the next block
     * reads is fetched under this one, all of it by the time that it begins. */
    const int next = !half && !packed && !dots && sums == p.k2.n && p.r1.n == 1 && p.r2.x == 1 &&
                     p.k2.x * elem >= MD_TILE_LEAP && p.k2.y * elem >= MD_TILE_LEAP &&
                     rows * p.cols.n <= MD_TILE_NEXT_C &&
                     (double)(rows + p.cols.n) * (double)sums * elem >= MD_TILE_NEXT_BYTES;
    int64_t most = (along  ? MD_TILE_K_ALONG
                    : dots ? MD_TILE_K_DOTS
                    : next ? MD_TILE_K_NEXT
                    : once ? MD_TILE_K_ONCE
                    : far  ? MD_TILE_K_FAR
                           : MD_TILE_K_BYTES) /
                   elem;
    /* Chunks only where C is too small to give threads work and the sum is long: each worker then
     * adds up rows that it mostly made itself, which lie in its cache. */
    const int64_t tiles =
        p.b1.n * p.b2.n * ((rows + MD_TILE_HIGH - 1) / MD_TILE_HIGH) * ((p.cols.n + 31) / 32);
    const double products = (double)p.b1.n * (double)p.b2.n * (double)rows * (double)p.cols.n *
                            (double)p.k0.n * (double)p.k1.n * (double)p.k2.n;
    const int few = tiles < (products < MD_TILE_CHUNKED_MORE ? 8 : 16);
    const int chunked =
        (!swapped || dots || along) && !batched && few && products >= MD_TILE_CHUNKED;
    if (chunked && p.k0.n * p.k1.n == 1 && p.k2.n >= 2 * MD_TILE_K_PART) {
        most = md_tile_min(most, (p.k2.n + 1) / (dots ? MD_TILE_DOTS_PARTS : 2));
    }
    int64_t blocks = (k2.n + most - 1) / most;
    const int64_t step = along ? lanes : MD_TILE_K_UNIT; /* a vector ends inside of its run */
    p.kb2 = blocks <= 1 ? k2.n : md_tile_up((k2.n + blocks - 1) / blocks, step);
    most /= k2.n > 0 ? k2.n : 1;
    blocks = most <= 1 ? k1.n : (k1.n + most - 1) / most;
    p.kb1 = blocks <= 1 ? k1.n : (k1.n + blocks - 1) / blocks;
    if (run > 0) { /* with the list such a block takes no more room than another */
        int64_t unit = run == sums ? MD_TILE_K_UNIT : run;
        int64_t room = p.kb1 * p.kb2 - sums / (p.wide * lanes) - 1;
        const int64_t line = lanes * p.k1.n * p.k2.n, square = lanes / p.wide; /* md_tile_line */
        if (p.k0.x == 1 && p.k0.n % lanes == 0 && p.skip.n == 1 && line + square <= room) {
            unit = line;
            room -= square;
        }
        blocks = (sums + (room > unit ? room : unit) - 1) / (room > unit ? room : unit);
        p.kb1 = run;
        p.kb2 = md_tile_up((sums + blocks - 1) / blocks, unit);
        p.kb2 = p.kb2 > room && p.kb2 > unit ? p.kb2 - unit : p.kb2;
    }

    double bytes =
        (double)elem * (double)p.b1.n * (double)p.b2.n *
        (((double)rows + (double)p.cols.n) * (double)p.k0.n * (double)p.k1.n * (double)p.k2.n +
         (double)rows * (double)p.cols.n);
    const int far_dots = dots && bytes > MD_TILE_NEAR; /* which takes as long as it takes to read */
    const int shared =
        far_dots || products > (bytes > MD_TILE_NEAR ? MD_TILE_SERIAL : MD_TILE_SERIAL_NEAR);
    p.is = run > 0 ? MD_TILE_LISTED : 0;
    const int64_t kblocks = md_tile_blocks(&p);
    p.is |= s.flags | (shared ? MD_TILE_SHARED : 0) | (inplace ? MD_TILE_IN_PLACE : 0) |
            (swapped ? MD_TILE_SWAPPED : 0) | (packed ? MD_TILE_PACKED : 0) |
            (dots ? MD_TILE_DOTS : 0) | (along ? MD_TILE_ALONG : 0);
    const int wide = swapped ? MD_TILE_WIDE_B : MD_TILE_WIDE_A;
    const int even = p.k2.n % 2 == 0 && p.kb2 % 2 == 0;
    const int paired = !(p.is & wide) && p.k2.x == 1 && even;
    const int made = half && md_tile_makes_x(&p); /* X is read where it is */
    const int taken = half && !made && (lone || !paired);
    /* Of rows that lie side by side few steps of the sum fit the first-level cache, if these lie
     * 4096 bytes apart. Packed they lie one behind another, for all panels of a block. From memory
     * they are better fetched step by step, while others are multiplied. */
    const int beside = !half && !dots && !swapped && !listed && !chunked && !next && far &&
                       p.r1.n == 1 && rows >= MD_TILE_TAKEN_ROWS &&
                       p.cols.n >= MD_TILE_TAKEN_COLS && products >= MD_TILE_TAKEN_FROM &&
                       rows * sums * elem <= MD_TILE_TAKEN_MOST;
    p.is |= taken || beside ? MD_TILE_TAKEN : 0;
    const double results = (double)p.b1.n * (double)p.b2.n * (double)rows * (double)p.cols.n * elem;
    /* Lines that two rows share are there once the first of them is stored. */
    const int claims = inplace && !turned && !half && !dots && !along &&
                       sums <= MD_TILE_CLAIM_STEPS && p.cols.n % lanes == 0 &&
                       !(s.flags & MD_TILE_ADD) && results >= MD_TILE_CLAIM_BYTES;
    p.is |= (next ? MD_TILE_NEXT : 0) | (claims ? MD_TILE_CLAIMED : 0);
    p.is |= shared && products >= MD_TILE_HELPED_FROM ? MD_TILE_HELPED : 0;
    p.is |= md_tile_whole(&p) && rows * sums * elem > MD_TILE_BOTH ? MD_TILE_UNCUT : 0;
    p.is |= made && !paired ? MD_TILE_SINGLE : 0;
    p.chunks = 1;
    if (chunked) { /* of few blocks each is one: some of them beside pairs would be waited for */
        const int64_t want = (15 + tiles) / tiles;
        p.chunks = md_tile_min(kblocks < 2 * want && want < 8 ? kblocks : want, kblocks);
    }

    /* A block is what is multiplied by one set of panels and what the epilogue gets: small enough
     * for the second-level cache. */
    int64_t panel = p.wide * (along ? 1 : lanes);
    p.block_cols = md_tile_up(p.cols.n, panel);
    p.block_rows = MD_TILE_BLOCK_ROWS;
    if (!swapped || !packed) {
        /* What is stored in 16 bits is made in a strip; rows that are packed for each block, as
         * those are whose sum has several, should find many columns there. */
        const int again = taken && kblocks > 1;
        const int64_t most_panels = inplace          ? MD_TILE_BLOCK_IN
                                    : half && !again ? MD_TILE_BLOCK_HALF
                                                     : MD_TILE_BLOCK_OUT;
        int64_t side = most_panels;
        if (inplace && packed && !turned && !half) {
            const int64_t cuts = (rows + MD_TILE_BLOCK_HIGH - 1) / MD_TILE_BLOCK_HIGH;
            p.block_rows = md_tile_up((rows + cuts - 1) / cuts, MD_TILE_HIGH);
            side = MD_TILE_BLOCK_SIZE / (p.block_rows * panel);
            side = side < 1 ? 1 : md_tile_min(side, most_panels);
        }
        p.block_cols = md_tile_min(p.block_cols, panel * side);
    }
    /* Streams are fetched row by row of the strip, over sums that are long enough to hide them. */
    if ((p.is & MD_TILE_STREAMS) && (dots || along || p.chunks > 1 || sums < MD_TILE_K_PART)) {
        p.is &= ~(int64_t)MD_TILE_STREAMS;
    }
    if (half && packed && !turned && rows > p.block_rows && rows <= MD_TILE_BLOCK_HIGH) {
        p.block_rows = rows; /* else the last ones pack all panels again */
    }
    if ((p.is & MD_TILE_STREAMS) && kblocks == 1 && !inplace && !half) {
        p.block_rows = MD_TILE_BLOCK_FAR;
    }
    const int ends = (p.is & MD_TILE_STREAMS) && half && packed && !turned && !swapped &&
                     kblocks == 1 && rows > p.block_rows && (inplace || (p.is & MD_TILE_NO_C));
    p.is &= ends ? ~INT64_C(0) : ~(int64_t)MD_TILE_ENDS;
    if (p.is & MD_TILE_ENDS) {
        const int64_t cuts = (rows * sums * 2 + MD_TILE_ENDS_BYTES - 1) / MD_TILE_ENDS_BYTES;
        p.block_rows = md_tile_up((rows + cuts - 1) / cuts, MD_TILE_HIGH1);
    }
    p.block_rows = md_tile_min(p.block_rows, rows);
    if (batched) {
        const int64_t one = (run > 0 ? p.kb2 : p.kb1 * p.kb2) * panel * elem;
        const int64_t far_x = p.b1.n * p.b2.n * rows * (run > 0 ? p.k0.n : sums) * elem;
        const int64_t side = far_x > MD_TILE_FAR ? MD_TILE_KEEP_BYTES / one : 1;
        p.block_rows = rows;
        p.block_cols = md_tile_min(md_tile_up(p.cols.n, panel), panel * (side < 1 ? 1 : side));
    }
    if (half && !made) { /* an eighth of what a large one reads and writes; a quarter for pairs, if
                          * all rows are one block then: a second one packs all panels again */
        const double row = (double)(p.kb1 * p.kb2 * elem);
        const double most_bytes = bytes / 8 > MD_TILE_TAKEN_BYTES ? bytes / 8 : MD_TILE_TAKEN_BYTES;
        const int all = p.block_rows == rows && paired && !lone && 4 * row * (double)rows <= bytes;
        const int64_t some = (int64_t)(most_bytes / (row + 1));
        const int64_t room = all ? rows : some > MD_TILE_HIGH ? some : MD_TILE_HIGH;
        p.block_rows = md_tile_min(p.block_rows, room);
    }
    const int64_t span = half && !made ? md_tile_span(&p) : 0;
    /* Rows that lie neither along the sum nor side by side are packed one by one. */
    const int runs = p.k2.x == 1 || (p.r2.x == 1 && p.r2.n >= lanes);
    const int64_t read = md_tile_taken_rows(&p) * p.kb1 * p.kb2;
    if (span > 0 && span <= (runs ? read / MD_TILE_SPAN_READS : read * MD_TILE_SPAN_GAPS)) {
        p.is |= MD_TILE_SPAN | (even ? 0 : MD_TILE_SINGLE);
    }
    if (turned && p.chunks > 1) { /* the sum of all chunks is turned at once */
        p.block_rows = rows;
        p.block_cols = md_tile_up(p.cols.n, panel);
    }

    /* The slice of a worker: packed panels (of one panel, or of all of Y when swapped; a direct Y
     * needs one for last columns that do not fill a vector), strip, transposed strip. A panel of
     * few columns is as wide as whole vectors need; narrower vectors never need more. */
    const int64_t width = md_tile_up(p.cols.n, panel);
    if (packed && !swapped && p.chunks == 1 && md_tile_keeps(&p)) {
        p.is |= MD_TILE_KEPT;
    }
    /* Where they are so large that no near cache holds them until they are packed or read. */
    const int early_y = md_tile_early_y(&p) && sums * p.cols.n * elem >= MD_TILE_EARLY_BYTES;
    const int early_x = md_tile_early_x(&p) && kblocks > 1 && rows * sums * elem >= MD_TILE_FAR;
    const int plain_steps = !half && !dots && !along && !batched && run == 0 && !next;
    p.is |= plain_steps && rows >= MD_TILE_EARLY_ROWS && (early_x || early_y) ? MD_TILE_EARLY : 0;
    int64_t k = run > 0 ? p.kb2 : p.kb1 * p.kb2;
    const int64_t rest =
        md_tile_packs_last(&p) && !dots && !along ? md_tile_up(p.cols.n % panel, lanes) : 0;
    p.strip_at = k * (!packed   ? rest
                      : swapped ? p.block_cols
                                : md_tile_min(panel, md_tile_up(p.cols.n, lanes)));
    p.strip_at = p.is & MD_TILE_KEPT ? sums * width : batched ? k * p.block_cols : p.strip_at;
    const int64_t block = (p.is & MD_TILE_ENDS ? MD_TILE_HIGH1 : p.block_rows) *
                          (p.is & MD_TILE_ENDS ? panel : p.block_cols);
    p.turned_at = p.strip_at + (p.chunks == 1 && (turned || !inplace) ? block : 0);
    int64_t end = md_tile_up(p.turned_at + (turned && !inplace ? block : 0), lanes);
    p.slice = end;
    if (kblocks > p.chunks * MD_TILE_GROUP && !batched) { /* a strip for all groups but one */
        p.group = MD_TILE_GROUP;
        p.group_at = p.slice = end > 0 ? end : lanes;
        p.slice += p.chunks > 1 ? rows * md_tile_up(p.cols.n, panel) : p.block_rows * p.block_cols;
    }
    p.slice += half || beside ? md_tile_up(md_tile_taken_count(&p), lanes) : 0;
    p.slice += md_tile_list_count(&p);
    p.partial = p.chunks > 1 ? p.chunks * p.b1.n * p.b2.n * rows * md_tile_up(p.cols.n, lanes) : 0;
    return p;
}

/* Adds to a plan what of its shape counts, of m2, n and k2: see md_tile. Plans whose sums go by a
 * list, by vectors or along several axes compute all. */
MD_FN void md_tile_set_band(md_tile *p, int64_t band, int64_t from, int64_t until) {
    const int all =
        MD_TILE_DOTS | MD_TILE_ALONG | MD_TILE_LISTED | MD_TILE_SPAN | MD_TILE_BATCHED;
    const int swapped = (p->is & MD_TILE_SWAPPED) != 0;
    if ((p->is & (all | MD_TILE_WINOGRAD)) || p->k0.n != 1 || p->k1.n != 1 || p->r1.n != 1 ||
        band == MD_BAND_NONE) {
        return;
    }
    const int of_sum = swapped == (band == MD_BAND_ROW_SUM) ? MD_BAND_COLUMN_SUM : MD_BAND_ROW_SUM;
    const int turned = swapped && band == MD_BAND_ROW_COLUMN;
    p->band = band == MD_BAND_ROW_COLUMN ? band : of_sum;
    p->from = turned ? 1 - until : from;
    p->until = turned ? 1 - from : until;
}

/* Adds to a plan that terms outside of from <= by[0] * place + by[1] * step < until are zero by a
 * border of what it reads: of the axes of `band`. False: it goes through them. */
MD_FN int md_tile_set_border(md_tile *p, int64_t band, const int64_t by[2], int64_t from,
                             int64_t until) {
    const int lines = md_tile_line(p) > 1; /* whose taps are k1 and k2 */
    const int all = MD_TILE_DOTS | MD_TILE_ALONG | (lines ? 0 : MD_TILE_LISTED | MD_TILE_BATCHED);
    band = lines && band == MD_BAND_ROW_STEP0 ? MD_BAND_ROW_STEP1 : band;
    const int rows = band == MD_BAND_ROW_STEP0 || band == MD_BAND_ROW_STEP1;
    const md_tile_axis place = rows ? p->r1 : band == MD_BAND_BATCH1_STEP1 ? p->b1 : p->b2;
    const md_tile_axis step = band == MD_BAND_ROW_STEP0 ? p->k0 : p->k1;
    const int of_x = place.x != 0;
    const int64_t pitch = (of_x ? place.x : place.y) / by[0];
    const int runs = lines || (p->kb1 == p->k1.n && p->kb2 == p->k2.n);
    const int whole = runs && (rows || p->group_at == 0);
    const int outer = p->chunks == 1 && p->group_at == 0; /* all blocks at once */
    const int fits = band == MD_BAND_ROW_STEP0 ? outer : whole;
    if ((p->is & (all | MD_TILE_WINOGRAD)) || p->skip.n != 1 ||
        (rows && (p->is & MD_TILE_SWAPPED)) || !fits || place.n == 1 || step.n == 1 || pitch <= 0 ||
        (of_x ? step.x : step.y) != pitch * by[1] || (of_x ? place.x : place.y) != pitch * by[0]) {
        return 0;
    }
    p->band = band;
    p->from = from * pitch;
    p->until = until * pitch;
    return 1;
}

/* The register tiles that a plan runs on a machine (md_tile_cut_rows): bit 4 * (rows - 1) +
 * vectors - 1 for each. */
MD_FN uint64_t md_tile_bodies(const md_tile *s, int bytes, int many) {
    const int64_t lanes = bytes / s->elem;
    const md_tile_cut u = md_tile_cut_rows(s, lanes, bytes, many);
    const int64_t rows[2] = {u.big, u.little};
    const int64_t vectors[2] = {u.nr / lanes, (s->cols.n % u.nr + lanes - 1) / lanes};
    uint64_t all = 0;
    for (int i = 0; i < 4 && !(s->is & (MD_TILE_DOTS | MD_TILE_ALONG)); i++) {
        if (vectors[i / 2] > 0) {
            all |= UINT64_C(1) << (4 * (rows[i % 2] - 1) + vectors[i / 2] - 1);
        }
    }
    return all;
}

/* The most parts that a product is ever cut into on up to `threads` threads: what the workspace is
 * for. A small product has fewer tiles than a large team has threads. */
MD_FN int md_tile_most_parts(const md_tile *s, int threads) {
    int most = 1;
    for (int team = 2; team <= md_tile_workers(s, threads); team++) {
        md_tile_call call;
        memset(&call, 0, sizeof call);
        call.parts = team;
        md_tile_grid(s, &call);
        most = call.parts > most ? call.parts : most;
    }
    return most;
}

#endif
