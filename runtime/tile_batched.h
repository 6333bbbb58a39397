/* SPDX-License-Identifier: 0BSD */
/* tile_batched: products whose Y, the same for all of the batch, is worth packing once although its
 * panels fit no near cache: weights of a convolution with many channels and few places
 * (tile_kernel.h). A panel of some steps of the sum is packed, multiplied by the rows of one
 * element of the batch after the other, and dropped; so C is added to where it lies. Where X comes
 * from far it meets a few panels at a time. Gives MD_BATCHED, by which the template has its
 * function. */
#ifndef MD_TILE_BATCHED_H
#define MD_TILE_BATCHED_H

#include "runtime/tile.h"

/* if: BATCHED */
/* NAME: the share of worker `part`: panels of its columns, by its elements of the batch. */
#define MD_BATCHED(NAME, REAL, LANES, EPI, BLOCK_FN)                                               \
    MD_NOINLINE void NAME(const md_tile *s, const md_tile_call *call, int part, EPI epi,           \
                          BLOCK_FN block, md_tile_copy_fn copy) {                                  \
        const md_tile_cut u = md_tile_cut_rows(s, LANES, MD_VBYTES, MD_TILE_MANY);                 \
        const int64_t panels = (s->cols.n + u.nr - 1) / u.nr, batches = s->b1.n * s->b2.n;         \
        const int64_t kblocks = md_tile_blocks(s), tasks = call->gm * call->gn;                    \
        const int64_t dp = s->block_cols / u.nr;                                                   \
        const int64_t each = ((panels + call->gn - 1) / call->gn + dp - 1) / dp;                   \
        REAL *slice = (REAL *)call->work + part * s->slice;                                        \
        int64_t at = md_split(tasks, part, call->parts) * each;                                    \
        int64_t end = md_split(tasks, part + 1, call->parts) * each;                               \
        (void)copy;                                                                                \
        /* if: LISTED */                                                                           \
        if (s->is & MD_TILE_LISTED) {                                                              \
            md_tile_list(s, (int32_t *)(void *)(slice + s->slice - md_tile_list_count(s)));        \
        }                                                                                          \
        /* end: LISTED */                                                                          \
        /* if: HELPED */                                                                           \
        int of = -1;                                                                               \
        MD_WHILE(md_tile_unit(call, part, &of, tasks, each, &at, &end))                            \
        /* end: HELPED */                                                                          \
        for (; at < end; at++) {                                                                   \
            const int64_t in = at / each % call->gn, im = at / each / call->gn;                    \
            const int64_t p = md_split(panels, in, call->gn) + at % each * dp;                     \
            const int64_t pe = md_tile_min(p + dp, md_split(panels, in + 1, call->gn));            \
            const int64_t first = md_split(batches, im, call->gm);                                 \
            const int64_t last = md_split(batches, im + 1, call->gm);                              \
            const int64_t col = p * u.nr, cols = md_tile_min(pe * u.nr, s->cols.n) - col;          \
            const int64_t places = p < pe ? last - first : 0;                                      \
            for (int64_t i = 0; i < kblocks * places; i++) {                                       \
                const int64_t q = i / places, batch = first + i % places;                          \
                const int64_t i1 = batch / s->b2.n, i2 = batch % s->b2.n;                          \
                const int ends = q + 1 == kblocks;                                                 \
                REAL *c = (REAL *)call->c + i1 * s->b1.c + i2 * s->b2.c + col;                     \
                void *ask = NULL;                                                                  \
                int again = batch > first ? 2 : 0; /* columns as before */                         \
                /* if: BANDED */                                                                   \
                again |= (int)md_tile_border_place(s, i1, i2) * 4;                                 \
                /* end: BANDED */                                                                  \
                /* if: STREAMS */                                                                  \
                md_tile_ask here;                                                                  \
                here.of = (const md_tile_stream *)call->ctx, here.batch = batch;                   \
                ask = (s->is & MD_TILE_STREAMS) && ends ? &here : NULL;                            \
                /* end: STREAMS */                                                                 \
                block(s, (const REAL *)call->a + i1 * s->b1.x + i2 * s->b2.x, call->b, 0, u.count, \
                      p, pe, q, q + 1, c, s->r2.c, slice, q > 0 || (s->is & MD_TILE_ADD), 0,       \
                      again, ask);                                                                 \
                if (ends) {                                                                        \
                    epi(call->ctx, batch, 0, s->r1.n * s->r2.n, col, cols, c, s->r2.c);            \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
/* end: BATCHED */

#endif
