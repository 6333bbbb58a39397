/* SPDX-License-Identifier: 0BSD */
/* tile: a planned contraction C[m, n] (+)= sum over k of A[m, k] * B[k, n], and its thread loop.
 *
 * A product is a shape (tile_plan.h) turned into the md_tile below by md_tile_plan when the program
 * is emitted; the emitted program holds the finished plan as a static const, whose fields the
 * compiler folds into the arithmetic of tile_kernel.h. One product is written
 *
 *     static const md_tile s = {MD_TILE_ROWS(...), ..., MD_TILE_WORK(...)};
 *     static void s_part(const md_tile_call *call, int part) {
 *         md_tile_part_f32(&s, call, part, my_epilogue);
 *     }
 *     ... md_tile_run(&s, s_part, a, b, c, &my_context, work, pace, threads);
 *
 * where `work` has md_tile_workspace(&s, threads) bytes, 64-byte aligned, and C overlaps neither A,
 * B nor work. Every element of C is a sum over blocks of k, each a chain of multiply-adds in order:
 * blocks are added in groups, groups and `chunks` one to another. So no chain is long
 * (docs/decisions/0013-sums.md), and each is a function of the plan alone. Threads share rows,
 * columns and chunks, so the same bits come out for any number of them. Needs team.h. */
#ifndef MD_TILE_H
#define MD_TILE_H

#include "runtime/team.h"

/* md_mad of vectors of MD_VBYTES: no compiler before gcc 13 and clang 17 has one for all machines.
 * All lanes of a mask are 1, in the type that each compiler has for it. */
#if MD_FUSED && MD_VBYTES == 64
#if defined(__clang__)
#define MD_ALL_16 ((uint16_t)-1)
#else
#define MD_ALL_16 ((int16_t)-1)
#endif
#define md_tile_vmad_f32(a, b, c) ((md_vf32)__builtin_ia32_vfmaddps512_mask(a, b, c, MD_ALL_16, 4))
#define md_tile_vmad_f64(a, b, c)                                                                  \
    ((md_vf64)__builtin_ia32_vfmaddpd512_mask(a, b, c, (uint8_t)-1, 4))
#elif MD_FUSED && MD_VBYTES == 32
#define md_tile_vmad_f32(a, b, c) ((md_vf32)__builtin_ia32_vfmaddps256(a, b, c))
#define md_tile_vmad_f64(a, b, c) ((md_vf64)__builtin_ia32_vfmaddpd256(a, b, c))
#elif MD_FUSED && MD_VBYTES == 16 && defined(__aarch64__)
#include <arm_neon.h>
#define md_tile_vmad_f32(a, b, c)                                                                  \
    ((md_vf32)vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#define md_tile_vmad_f64(a, b, c)                                                                  \
    ((md_vf64)vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b)))
#else
#define md_tile_vmad_f32(a, b, c) ((a) * (b) + (c))
#define md_tile_vmad_f64(a, b, c) ((a) * (b) + (c))
#endif
#define md_tile_mad_f32(a, b, c) md_madf(a, b, c)
#define md_tile_mad_f64(a, b, c) md_mad(a, b, c)

/* An axis of a product: how long it is, and how many elements lie between two neighbours along it
 * in X, Y and C; 0 in what does not have it. */
typedef struct {
    int64_t n, x, y, c;
} md_tile_axis;

/* The plan, for any machine. X is the operand that gives rows and is broadcast, Y the one that
 * gives vectors: A and B, or the other way round when `swapped`; then the strip is C transposed,
 * rows are columns of C. Absent axes are of length 1. All fields are int64_t. */
typedef struct {
    md_tile_axis r1, r2, cols;   /* rows r = i1 * r2 + i2; columns */
    /* if: SKIP */
    md_tile_axis skip; /* k0 is two axes: behind each `n` places x and y go on by so much more */
    /* end: SKIP */
    md_tile_axis k0, k1, k2;     /* summed axes, k2 the fastest */
    md_tile_axis b1, b2;         /* batch axes */
    int64_t elem;                /* bytes of an element: 4, 8 */
    int64_t is;                  /* MD_TILE_ADD and so on */
    int64_t block_rows;          /* what the epilogue gets at most */
    int64_t block_cols, wide;    /* the same, and vectors across a panel: 2, 3 or 4; or columns */
    int64_t kb1, kb2;            /* blocks of k1 and k2; listed: steps at one stride of Y, of all */
    int64_t chunks, partial;     /* of the summed axes, added in order; elements for their sums */
    int64_t group, group_at;     /* blocks that are added one to another; where, in the slice */
    int64_t strip_at, turned_at; /* the same of the strip and its transpose */
    int64_t slice;               /* elements of workspace of one worker */
    /* if: BANDED */
    int64_t band, from, until; /* of two axes: from <= place on the second - on the first < until;
                                * or what both go on by in X, else Y, which has a border */
    /* end: BANDED */
} md_tile;

/* if: BANDED */
/* What counts lies near a diagonal: of which two axes. Else terms are zero, or C is not read. */
enum {
    MD_BAND_NONE,
    MD_BAND_ROW_SUM,
    MD_BAND_COLUMN_SUM,
    MD_BAND_ROW_COLUMN,
    MD_BAND_ROW_STEP0, /* what counts does not lie in a border: of r1 and k0, r1 and k1, */
    MD_BAND_ROW_STEP1,
    MD_BAND_BATCH1_STEP1, /* a batch axis and k1 */
    MD_BAND_BATCH2_STEP1
};
#define MD_BAND_OPEN (INT64_MAX / 4) /* no end on that side */
enum {
    MD_TILE_AHEAD_UNREAD = 67108864,   /* in `is`: nobody reads C so far beyond `until`, */
    MD_TILE_BEHIND_UNREAD = 134217728, /* or so far before `from` */
    MD_TILE_UNREAD = 128               /* places: more than a register tile that reads it has */
};
/* end: BANDED */

enum {
    MD_TILE_ADD = 1,       /* C += the product */
    MD_TILE_SHARED = 2,    /* work enough for several threads */
    MD_TILE_NO_C = 4,      /* C is not stored, the epilogue alone uses the strip; c may be null */
    MD_TILE_IN_PLACE = 8,  /* the strip is C itself */
    MD_TILE_SWAPPED = 16,  /* X is B */
    MD_TILE_PACKED = 32,   /* Y goes through packed panels */
    MD_TILE_DOTS = 64,     /* few rows: vectors run along k2 */
    MD_TILE_KEPT = 128,    /* Y is the same in all batches: a worker packs all of it, once */
    MD_TILE_HALF = 256,    /* A and B are floats of 16 bits, read in pairs along k2 (tile_half.h) */
    MD_TILE_TAKEN = 512,   /* rows of X are packed too: not in pairs, or side by side, far steps */
    MD_TILE_WIDE_A = 1024, /* A is float, rounded while it is packed */
    MD_TILE_WIDE_B = 2048, /* and so is B */
    MD_TILE_F16 = 8192,    /* the 16 bits are IEEE's: widened, one by one, while they are packed */
    MD_TILE_EXACT = 16384, /* an operand that is float is multiplied as it is, not rounded */
    MD_TILE_SINGLE = 32768, /* no machine multiplies them in pairs */
    MD_TILE_LONE = MD_TILE_F16 | MD_TILE_EXACT | MD_TILE_SINGLE, /* any of these */
    MD_TILE_MADE = 131072, /* A is made for the product alone, in lanes where these are single */
    MD_TILE_SPAN = 65536,  /* rows of X overlap, as windows do: lanes are made of all between */
    MD_TILE_STREAMS = 262144, /* ctx begins with its epilogue's md_tile_stream */
    MD_TILE_LISTED = 1048576, /* steps of the sum go as Y lies, those of X by a list in the slice */
    MD_TILE_NEXT = 2097152,    /* X and Y come from memory: fetched one block of the sum ahead */
    MD_TILE_CLAIMED = 4194304, /* C goes there: its lines are asked for before they are made */
    MD_TILE_HELPED = 8388608, /* large: who is done begins what others have not (team.h) */
    MD_TILE_ALONG = 16777216, /* few rows and columns: vectors run along k2 (tile_along.h) */
    MD_TILE_EARLY = 33554432, /* what is packed next, or X of the next block, is asked for */
    MD_TILE_UNCUT = 524288, /* X is large: tasks have all columns, whose panels are packed first */
    MD_TILE_ACROSS = 4096  /* rows lie side by side in C: the epilogue gets the transpose */
};
/* if: BATCHED */
/* In `is`: Y is the same in all batches, each panel is packed once for them (tile_batched.h). */
enum { MD_TILE_BATCHED = 1 << 30 };
/* end: BATCHED */
/* if: ENDS */
/* In `is`: each register tile is given to the epilogue as soon as it is made, which finds it, and
 * what an earlier tile asked for, in the near cache; the strip is one tile (tile_ask.h). */
#define MD_TILE_ENDS INT64_C(0x200000000)
/* end: ENDS */
/* if: WINOGRAD */
/* X are windows of kb1 x kb1 places, 2 or 3, in tiles of 4 x 4 (tile_winograd.h). Fields with other
 * meanings: `partial` are elements for transformed weights, `group` lines of tiles that a block
 * has, `group_at` where the products of a block lie, which has `block_cols` columns. */
#define MD_TILE_WINOGRAD INT64_C(0x80000000)
/* The same of a sum over places, of shifts r2 and a batch axis of 3 (tile_winograd_sum.h): the 16
 * products, and where Y of a block lies, of kb2 columns, in each of kb1 parts of the channels. */
#define MD_TILE_WINOGRAD_SUM INT64_C(0x100000000)
/* What `work` of such a product points to: the slices of its workers, and `partial` elements that
 * all of them share. */
typedef struct {
    void *slices, *common;
} md_winograd_work;
/* Tiles, or lines of them, for so many places: each makes two or three along an axis. */
MD_INLINE int64_t md_winograd_outs(const md_tile *s) {
    return s->is & MD_TILE_WINOGRAD_SUM ? 2 : 5 - s->kb1;
}
MD_INLINE int64_t md_winograd_rows(const md_tile *s, int64_t places) {
    return (places + md_winograd_outs(s) - 1) / md_winograd_outs(s);
}
/* end: WINOGRAD */
/* if: FORMS */

/* A plan of which some numbers are read from another one (tile_form.h). What stands for s->f here,
 * where f may be one of these, is MD_TILE_OF(s, f) in a program that has forms. */
enum { MD_TILE_READ = -1 };
typedef struct {
    md_tile known;
    const md_tile *whole;
} md_tile_apart;
#define MD_TILE_OF(s, f)                                                                           \
    ((s)->f != MD_TILE_READ ? (s)->f : ((const md_tile_apart *)(const void *)(s))->whole->f)

/* In `is` of a form. */
enum {
    MD_TILE_TILES = 1 << 28,    /* rows of a register tile are r1.y, or r2.y: no row has one in Y */
    MD_TILE_UNDIVIDED = 1 << 29 /* the sum is one block */
};
/* end: FORMS */

/* A plan is written in these lines, in this order. */
#define MD_TILE_AXIS(n, x, y, c)                                                                   \
    { n, x, y, c }
#define MD_TILE_ROWS(n, x, c) MD_TILE_ROWS2(1, 0, 0, n, x, c)
#define MD_TILE_ROWS2(n1, x1, c1, n, x, c) MD_TILE_AXIS(n1, x1, 0, c1), MD_TILE_AXIS(n, x, 0, c)
#define MD_TILE_COLUMNS(n, y, c) MD_TILE_AXIS(n, 0, y, c)
#define MD_TILE_SUM(n, x, y) MD_TILE_SUM2(1, 0, 0, n, x, y)
#define MD_TILE_SUM2(n1, x1, y1, n, x, y) MD_TILE_SUM3(1, 0, 0, n1, x1, y1, n, x, y)
#define MD_TILE_SUM3(n0, x0, y0, n1, x1, y1, n, x, y)                                              \
    MD_TILE_AXIS(n0, x0, y0, 0), MD_TILE_AXIS(n1, x1, y1, 0), MD_TILE_AXIS(n, x, y, 0)
/* if: SKIP */
#undef MD_TILE_SUM3
#define MD_TILE_SUM3(n0, x0, y0, n1, x1, y1, n, x, y)                                              \
    MD_TILE_SUM4(1, 0, 0, n0, x0, y0, n1, x1, y1, n, x, y)
#define MD_TILE_SUM4(every, skip_x, skip_y, n0, x0, y0, n1, x1, y1, n, x, y)                       \
    MD_TILE_AXIS(every, skip_x, skip_y, 0), MD_TILE_AXIS(n0, x0, y0, 0),                           \
        MD_TILE_AXIS(n1, x1, y1, 0), MD_TILE_AXIS(n, x, y, 0)
/* end: SKIP */
#define MD_TILE_NO_BATCH MD_TILE_BATCH(1, 0, 0, 0)
#define MD_TILE_BATCH(n, x, y, c) MD_TILE_BATCH2(1, 0, 0, 0, n, x, y, c)
#define MD_TILE_BATCH2(n1, x1, y1, c1, n, x, y, c)                                                 \
    MD_TILE_AXIS(n1, x1, y1, c1), MD_TILE_AXIS(n, x, y, c)
#define MD_TILE_BLOCKS(rows, cols, wide, k2) MD_TILE_BLOCKS2(rows, cols, wide, 1, k2)
#define MD_TILE_BLOCKS2(rows, cols, wide, k1, k2) rows, cols, wide, k1, k2
#define MD_TILE_NO_WORK MD_TILE_WORK(0, 0, 0)
#define MD_TILE_WORK(strip, turned, slice) MD_TILE_WORK2(1, 0, 0, 0, strip, turned, slice)
#define MD_TILE_WORK2(chunks, partial, group, at, strip, turned, slice)                            \
    chunks, partial, group, at, strip, turned, slice
/* if: BANDED */
#undef MD_TILE_WORK2
#define MD_TILE_WORK2(chunks, partial, group, at, strip, turned, slice)                            \
    MD_TILE_BAND2(chunks, partial, group, at, strip, turned, slice, MD_BAND_NONE, 0, 0)
#define MD_TILE_BAND(strip, turned, slice, band, from, until)                                      \
    MD_TILE_BAND2(1, 0, 0, 0, strip, turned, slice, band, from, until)
#define MD_TILE_BAND2(chunks, partial, group, at, strip, turned, slice, band, from, until)         \
    chunks, partial, group, at, strip, turned, slice, band, from, until
/* end: BANDED */

/* What a part function receives. */
typedef struct {
    const void *a;
    const void *b;
    void *c;
    void *ctx; /* handed on to the epilogue */
    void *work;
    int64_t gm, gn; /* the tasks of one batch element: row ranges x column ranges */
    int parts;      /* workers; worker w owns slice w of the workspace */
    int sum;        /* second phase: adds the partial sums of the chunks */
    struct md_help *help; /* NULL: each does its own share */
} md_tile_call;

typedef void (*md_tile_part_fn)(const md_tile_call *call, int part);

/* Makes worker `part`'s copy of what A is in batch element `batch`, and gives its first element;
 * NULL in its place: A lies in memory. */
typedef const void *(*md_tile_copy_fn)(void *ctx, int64_t batch, int part);

/* NAME_part of a plan: a function of its own, in which the plan's numbers are constants. `run` is
 * md_tile_part_f32 or md_tile_part_f64. */
#define MD_TILE_PART(name, plan, run, epilogue)                                                    \
    static void name##_part(const md_tile_call *call, int part) {                                  \
        run(&(plan), call, part, epilogue);                                                        \
    }

/* if: COPIED */
/* The same of a product whose A is made batch element by batch element, as long as each is in
 * cache. */
#define MD_TILE_COPIED_PART(name, plan, run, epilogue, copy)                                       \
    static void name##_part(const md_tile_call *call, int part) {                                  \
        run(&(plan), call, part, epilogue, copy);                                                  \
    }
/* end: COPIED */

/* if: BLOCKS */
/* What multiplies a block is made for the plan, once for all plans that look the same to it, as a
 * function of its own. `block` is md_tile_block_f32, _f64 or _half. */
#define MD_TILE_BLOCK(name, plan, real, block)                                                     \
    static void name##_block(const md_tile *s, const void *x, const void *y, int64_t t0,           \
                             int64_t t1, int64_t p0, int64_t p1, int64_t q0, int64_t q1,           \
                             real *strip, int64_t ld, real *panels, int add, int room, int again,  \
                             void *ask) {                                                          \
        (void)s;                                                                                   \
        md_tile_known(&(plan), &q0, &q1, &add, &room, &ask);                                       \
        block(&(plan), x, y, t0, t1, p0, p1, q0, q1, strip, ld, panels, add, room, again, ask);    \
    }
/* A small product that has such a block, that of product `of`. `run` is md_tile_share_f32 or _f64,
 * `copy` makes A or is NULL. */
#define MD_TILE_BLOCK_PART(name, plan, real, run, epilogue, of, copy)                              \
    static void name##_part(const md_tile_call *call, int part) {                                  \
        run(&(plan), call, part, epilogue, of##_block, sizeof(real), sizeof(real), copy);          \
    }
/* end: BLOCKS */

/* if: LARGE */
/* A large one, whose loop over tasks and blocks is one for all plans. `run` is
 * md_tile_share_of_f32 or _f64. */
#define MD_TILE_LARGE_PART(name, plan, run, epilogue, of, copy)                                    \
    static void name##_part(const md_tile_call *call, int part) {                                  \
        run(&(plan), call, part, epilogue, of##_block, copy);                                      \
    }
/* end: LARGE */

enum {
    MD_TILE_HIGH = 14,  /* rows of the highest register tile of any machine; a block has one */
    MD_TILE_HIGH1 = 16, /* and of pairs with one vector */
    MD_TILE_LEAP = 256, /* steps of a sum that lie so many bytes apart are fetched so many steps */
    MD_TILE_AHEAD = 8,  /* ahead: sets of the first-level cache, and pages, are few */
    MD_TILE_FAR = 1 << 20, /* bytes of an operand that comes from memory, */
    MD_TILE_SHARES = 1 << 18, /* or that streams and strips drive out of the near cache */
    MD_TILE_PACKS = 3,  /* register tiles that take as long as their panel takes to pack, */
    MD_TILE_FETCHES = 2 /* or to be fetched; half of one: three vectors of a near Y */
};

/* if: ALONG */
/* Sums of a register tile whose vectors run along k2, with 32 registers and with 16. */
enum { MD_TILE_ALONG_MOST = 24, MD_TILE_ALONG_FEW = 10 };
/* end: ALONG */

/* 32 vector registers rather than 16. */
#if MD_VBYTES == 64 || defined(__aarch64__)
#define MD_TILE_MANY 1
#else
#define MD_TILE_MANY 0
#endif

MD_INLINE int64_t md_tile_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* if: CLAIMED */
/* For each of so many rows that a tile asks for at the next step of its sum; due: what is left to a
 * later one, times the steps. At a border these are not constant, so nothing divides by them. */
#define MD_TILE_CLAIMS(due, rows, steps) for (due += (rows); due >= (steps); due -= (steps))

#if MD_VBYTES > 0
/* Asks for the lines from p to `bytes` behind it, those that will be written for writing. */
MD_INLINE void md_tile_lines(const void *p, int64_t bytes, int written) {
    uintptr_t at = (uintptr_t)p;
    const uintptr_t end = at + (size_t)bytes;
    for (at -= at % 64; bytes > 0 && at < end; at += 64) {
        if (written) {
            __builtin_prefetch((const void *)at, 1);
        } else {
            __builtin_prefetch((const void *)at);
        }
    }
}

/* Asks for what a register tile of so many rows and vectors will store in row r at c, and where
 * rows of X are runs of memory for the one behind the tile's own at x, which the next tile reads: a
 * row each time as the sum goes on. All of them at once would fill the queue of misses, and the
 * tile's own loads wait. */
MD_INLINE void md_tile_claim(int64_t r, int64_t nk1, int64_t nk2, int64_t rows, int64_t vectors,
                             const void *c, int64_t ld, const void *x, int64_t xr2, int64_t xk2,
                             int64_t elem) {
    const uintptr_t to = (uintptr_t)c + (size_t)r * (size_t)(ld * elem);
    const uintptr_t next = (uintptr_t)x + (size_t)(rows + r) * (size_t)(xr2 * elem);
    md_tile_lines((const void *)to, vectors * MD_VBYTES, 1);
    md_tile_lines((const void *)next, nk1 == 1 && xk2 == 1 ? nk2 * elem : 0, 0);
}
#endif
/* end: CLAIMED */

/* Elements of a vector; of what plain loops take in its place. */
#define MD_LANES_F32 (MD_VBYTES > 0 ? MD_VBYTES / 4 : 4)
#define MD_LANES_F64 (MD_VBYTES > 0 ? MD_VBYTES / 8 : 4)

/* if: TEMPLATE */
/* F for each of some rows, written out. */
#define MD_ROWS1(F) F(0)
#define MD_ROWS2(F) F(0) F(1)
#define MD_ROWS3(F) F(0) F(1) F(2)
#define MD_ROWS4(F) F(0) F(1) F(2) F(3)
#define MD_ROWS5(F) F(0) F(1) F(2) F(3) F(4)
#define MD_ROWS6(F) F(0) F(1) F(2) F(3) F(4) F(5)
#define MD_ROWS7(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6)
#define MD_ROWS8(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)
#define MD_ROWS9(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8)
#define MD_ROWS10(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9)
#define MD_ROWS11(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10)
#define MD_ROWS12(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11)
#define MD_ROWS13(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12)
#define MD_ROWS14(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13)

/* F for the rows and vectors of every register tile. */
#define MD_FEW_ROWS(F, V) F(1, V) F(2, V) F(3, V)
#define MD_SIX_ROWS(F, V) MD_FEW_ROWS(F, V) F(4, V) F(5, V) F(6, V)
#define MD_ALL_ROWS(F, V)                                                                          \
    MD_SIX_ROWS(F, V) F(7, V) F(8, V) F(9, V) F(10, V) F(11, V) F(12, V) F(13, V) F(14, V)
#if MD_VBYTES == 64
#define MD_TILE_ALL_BODIES(F)                                                                      \
    MD_ALL_ROWS(F, 1) MD_ALL_ROWS(F, 2) MD_SIX_ROWS(F, 3) F(7, 3) F(8, 3) MD_FEW_ROWS(F, 4)
#elif MD_TILE_MANY
#define MD_TILE_ALL_BODIES(F)                                                                      \
    MD_ALL_ROWS(F, 1) MD_ALL_ROWS(F, 2) MD_FEW_ROWS(F, 3) MD_FEW_ROWS(F, 4)
#else
#define MD_TILE_ALL_BODIES(F)                                                                      \
    MD_SIX_ROWS(F, 1) MD_SIX_ROWS(F, 2) MD_FEW_ROWS(F, 3) MD_FEW_ROWS(F, 4)
#endif
/* end: TEMPLATE */

/* Do blocks and tasks span all columns? */
MD_INLINE int md_tile_whole(const md_tile *s) {
    return (s->is & MD_TILE_SWAPPED) && (s->is & MD_TILE_PACKED);
}

/* if: HELD */
/* Of a block with the columns of the one before: are their panels packed, each with all its sum? */
MD_INLINE int md_tile_lies(const md_tile *s, int again) {
    const int one = s->k0.n == 1 && s->kb1 == s->k1.n && s->kb2 == s->k2.n;
    int lies = md_tile_whole(s) && (again & 2) && one;
    /* if: BATCHED */
    lies = lies || ((s->is & MD_TILE_BATCHED) && (again & 2)); /* of this block of the sum alone */
    /* end: BATCHED */
    return lies;
}
/* end: HELD */

/* Is the strip's transpose what the epilogue gets? */
MD_INLINE int md_tile_turns(const md_tile *s) {
    return ((s->is & MD_TILE_SWAPPED) != 0) != ((s->is & MD_TILE_ACROSS) != 0);
}

/* Where the element of C lies that the epilogue has in row m, column n. */
MD_INLINE int64_t md_tile_in_c(const md_tile *s, int64_t m, int64_t n) {
    const int64_t row = md_tile_turns(s) ? n : m, col = md_tile_turns(s) ? m : n;
    return row / s->r2.n * s->r1.c + row % s->r2.n * s->r2.c + col * s->cols.c;
}

/* Block q of the summed axes: where it begins, in X and Y too, and how much of k1 and k2 it has. */
typedef struct {
    int64_t i0, i1, i2, nk1, nk2, x, y;
} md_tile_sums;

MD_INLINE md_tile_sums md_tile_sums_of(const md_tile *s, int64_t q) {
    /* if: FORMS */
    if (s->is & MD_TILE_UNDIVIDED) {
        const md_tile_sums all = {0, 0, 0, s->k1.n, s->k2.n, 0, 0};
        return all;
    }
    /* end: FORMS */
    const int64_t n1 = (s->k1.n + s->kb1 - 1) / s->kb1, n2 = (s->k2.n + s->kb2 - 1) / s->kb2;
    md_tile_sums b = {q / n2 / n1, q / n2 % n1 * s->kb1, q % n2 * s->kb2, 0, 0, 0, 0};
    b.nk1 = md_tile_min(s->kb1, s->k1.n - b.i1);
    b.nk2 = md_tile_min(s->kb2, s->k2.n - b.i2);
    /* if: LISTED */
    if (s->is & MD_TILE_LISTED) {
        const int64_t all = s->k0.n * s->k1.n * s->k2.n, at = q * s->kb2;
        const int64_t steps = md_tile_min(s->kb2, all - at), run = md_tile_min(s->kb1, steps);
        b = (md_tile_sums){at / s->kb1, 0, at % s->kb1, steps / run, run, 0, 0};
    }
    /* end: LISTED */
    b.x = b.i0 * s->k0.x + b.i1 * s->k1.x + b.i2 * s->k2.x;
    b.y = b.i0 * s->k0.y + b.i1 * s->k1.y + b.i2 * s->k2.y;
    /* if: SKIP */
    b.x += b.i0 / s->skip.n * s->skip.x;
    b.y += b.i0 / s->skip.n * s->skip.y;
    /* end: SKIP */
    return b;
}

/* Blocks that the whole sum has. */
MD_INLINE int64_t md_tile_blocks(const md_tile *s) {
    /* if: FORMS */
    if (s->is & MD_TILE_UNDIVIDED) {
        return 1;
    }
    /* end: FORMS */
    /* if: LISTED */
    if (s->is & MD_TILE_LISTED) {
        return (s->k0.n * s->k1.n * s->k2.n + s->kb2 - 1) / s->kb2;
    }
    /* end: LISTED */
    return s->k0.n * ((s->k1.n + s->kb1 - 1) / s->kb1) * ((s->k2.n + s->kb2 - 1) / s->kb2);
}

/* if: BLOCKS */
/* What a block of a plan is told that follows from the plan, unless the sum is cut. Of a sum of
 * several blocks most are added to what is there, so it has to look whether the first one is. */
MD_INLINE void md_tile_known(const md_tile *s, int64_t *q0, int64_t *q1, int *add, int *room,
                             void **ask) {
    *ask = s->is & MD_TILE_STREAMS ? *ask : NULL;
    /* if: BATCHED */
    if (s->is & MD_TILE_BATCHED) {
        *room = 0;
        return;
    }
    /* end: BATCHED */
    /* if: WINOGRAD */
    if (s->is & MD_TILE_WINOGRAD) {
        return;
    }
    /* end: WINOGRAD */
    if (s->chunks == 1 && s->group_at == 0) {
        *q0 = 0;
        *q1 = md_tile_blocks(s);
        *add = *q1 == 1 ? (s->is & MD_TILE_ADD) && !md_tile_turns(s) : *add;
        *room = !(s->is & MD_TILE_IN_PLACE) || md_tile_turns(s);
    }
}
/* end: BLOCKS */

/* if: LISTED */
/* Channels whose places lie side by side in X: the sum takes a line of them for one tap, then for
 * the next, so that few lines are in use at a time; 1: one channel with all of its taps. */
MD_INLINE int64_t md_tile_line(const md_tile *s) {
    const int64_t line = 64 / s->elem, taps = s->k1.n * s->k2.n;
    int lies = (s->is & MD_TILE_LISTED) && s->k0.x == 1 && taps > 1;
    /* if: SKIP */
    lies = lies && s->skip.n == 1;
    /* end: SKIP */
    return lies && s->k0.n % line == 0 && s->kb2 % (line * taps) == 0 ? line : 1;
}

/* The list: where X has each step of the sum. It is the last of a worker's slice, with room for a
 * square behind it where there are such lines. */
MD_INLINE int64_t md_tile_list_bytes(const md_tile *s) {
    const int64_t bytes = s->k0.n * s->k1.n * s->k2.n * (int64_t)sizeof(int32_t);
    return (bytes + 63) / 64 * 64;
}

MD_INLINE int64_t md_tile_list_count(const md_tile *s) {
    const int64_t line = md_tile_line(s), square = line > 1 ? line * line : 0;
    return s->is & MD_TILE_LISTED ? md_tile_list_bytes(s) / s->elem + square : 0;
}

MD_INLINE void md_tile_list(const md_tile *s, int32_t *to) {
    const int64_t line = md_tile_line(s), taps = s->k1.n * s->k2.n;
    for (int64_t at = 0; at < s->k0.n * taps; at++) {
        const int64_t i = at / (line * taps) * line + at % line, tap = at / line % taps;
        to[at] = (int32_t)(i * s->k0.x + tap / s->k2.n * s->k1.x + tap % s->k2.n * s->k2.x);
        /* if: SKIP */
        to[at] += (int32_t)(i / s->skip.n * s->skip.x);
        /* end: SKIP */
    }
}
/* end: LISTED */

/* Is Y, which panels of 16 bits are made of, so large that its lines are asked for? */
MD_INLINE int md_tile_far(const md_tile *s) {
    const int wide = (s->is & (s->is & MD_TILE_SWAPPED ? MD_TILE_WIDE_A : MD_TILE_WIDE_B)) != 0;
    const int64_t count = s->k0.n * s->k1.n * s->k2.n * s->cols.n;
    return (s->is & MD_TILE_HALF) && !(s->is & MD_TILE_KEPT) && !md_tile_whole(s) &&
           count >= MD_TILE_SHARES / (wide ? 4 : 2);
}

/* Rows that a block of operands of 16 bits has: with chunks all of them. */
MD_INLINE int64_t md_tile_taken_rows(const md_tile *s) {
    return s->chunks > 1 ? s->r1.n * s->r2.n : s->block_rows;
}

/* Elements from the first to the last that such a block reads of X; 0: an axis runs backwards. */
MD_INLINE int64_t md_tile_span(const md_tile *s) {
    const int64_t rows = md_tile_taken_rows(s);
    const int64_t outer = md_tile_min(s->r1.n, (rows + s->r2.n - 2) / s->r2.n + 1);
    const int64_t inner = s->r1.n == 1 ? rows : s->r2.n;
    if (s->r1.x < 0 || s->r2.x < 0 || s->k1.x < 0 || s->k2.x < 0) {
        return 0;
    }
    return (outer - 1) * s->r1.x + (inner - 1) * s->r2.x + (s->kb1 - 1) * s->k1.x +
           (s->kb2 - 1) * s->k2.x + 1;
}

/* Is X what the product makes for itself? */
MD_INLINE int md_tile_makes_x(const md_tile *s) {
    return (s->is & (MD_TILE_MADE | MD_TILE_SWAPPED)) == MD_TILE_MADE;
}

/* What a worker has of them in its slice, at its end. */
MD_INLINE int64_t md_tile_taken_count(const md_tile *s) {
    return md_tile_makes_x(s)     ? 0
           : s->is & MD_TILE_SPAN ? md_tile_span(s)
                                  : md_tile_taken_rows(s) * s->kb1 * s->kb2;
}

/* How rows are cut into tiles, even to one row: axis `cut` (i2, or i1 where a tile holds several,
 * `unit` rows each) has `cuts` parts, tiles `big` or `little` rows, panels `nr` columns. */
typedef struct {
    int64_t nr, rm, cut, cuts, unit, big, little, count;
} md_tile_cut;

#define MD_TILE_WIDTH(wide, bytes) ((wide) == 3 && (bytes) != 64 ? 2 : (wide)) /* of a panel */
/* `lanes`: elements of a vector, `bytes` long; `many`: there are 32 registers rather than 16. */
MD_INLINE md_tile_cut md_tile_cut_rows(const md_tile *s, int64_t lanes, int bytes, int many) {
    md_tile_cut u;
    int64_t nv = MD_TILE_WIDTH(s->wide, bytes);
    int64_t mr = nv == 4 ? 3 : !many ? 6 : nv == 3 ? 8 : MD_TILE_HIGH;
    /* if: ALONG */
    if (s->is & MD_TILE_ALONG) {
        nv = s->wide, lanes = 1;
        mr = md_tile_min((many ? MD_TILE_ALONG_MOST : MD_TILE_ALONG_FEW) / nv, MD_TILE_HIGH);
    }
    /* end: ALONG */
    /* if: HALF */
    const int one = many && s->cols.n <= lanes && s->block_rows >= MD_TILE_HIGH1;
    mr = (s->is & MD_TILE_HALF) && one ? (int)MD_TILE_HIGH1 : mr;
    /* end: HALF */
    int64_t group = s->r1.n > 1 ? mr / s->r2.n : 0;
    u.nr = nv * lanes;
    /* if: WINOGRAD */
    if (s->is & MD_TILE_WINOGRAD) { /* of the tiles of a block, or of channels */
        const int64_t tiles = s->group * md_winograd_rows(s, s->r2.n);
        const int64_t rows = s->is & MD_TILE_WINOGRAD_SUM ? s->r1.n : tiles;
        const int64_t cuts = (rows + mr - 1) / mr;
        u = (md_tile_cut){u.nr, 64, rows, cuts, 1, (rows + cuts - 1) / cuts, rows / cuts, cuts};
        return u;
    }
    /* end: WINOGRAD */
    u.rm = group > 1 ? s->r2.n : 64; /* rows of one i1 in a tile */
    u.cut = group > 1 ? s->r1.n : s->r2.n, u.unit = group > 1 ? s->r2.n : 1;
    u.cuts = group > 1 ? (s->r1.n + group - 1) / group : (s->r2.n + mr - 1) / mr;
    u.big = (u.cut + u.cuts - 1) / u.cuts * u.unit;
    u.little = u.cut / u.cuts * u.unit;
    /* if: FORMS */
    u.big = s->is & MD_TILE_TILES ? s->r1.y : u.big;
    u.little = s->is & MD_TILE_TILES ? s->r2.y : u.little;
    /* end: FORMS */
    u.count = group > 1 ? u.cuts : s->r1.n * u.cuts;
    return u;
}

/* Are the last columns of a Y that is read where it is packed, on some machine? Those that fill no
 * vector of their panel: others are part of one that begins inside the vector before it. */
MD_FN int md_tile_packs_last(const md_tile *p) {
    int packs = 0;
    for (int bytes = 16; bytes <= 64; bytes *= 2) {
        const int64_t lanes = bytes / p->elem;
        const int64_t rest = p->cols.n % md_tile_cut_rows(p, lanes, bytes, 1).nr;
        packs = packs || (rest != 0 && rest < lanes);
    }
    return packs;
}

/* First flat row of tile t; `count` gives the end of the last. */
MD_INLINE int64_t md_tile_row(const md_tile *s, md_tile_cut u, int64_t t) {
    if (u.count == u.cuts) {
        return md_split(u.cut, t, u.cuts) * u.unit;
    }
    return t / u.cuts * s->r2.n + md_split(s->r2.n, t % u.cuts, u.cuts);
}

/* if: EARLY */
/* Which operand is asked for ahead (tile_early.h): one whose panels are packed one by one, in runs
 * of memory; one whose far steps are rows side by side. */
MD_INLINE int md_tile_early_y(const md_tile *s) {
    const int runs = s->cols.y == 1 || s->k2.y == 1;
    return runs && (s->is & MD_TILE_PACKED) && !(s->is & MD_TILE_KEPT) && !md_tile_whole(s);
}

MD_INLINE int md_tile_early_x(const md_tile *s) {
    return s->r1.n == 1 && s->r2.x == 1 && s->k2.x * s->elem >= MD_TILE_LEAP && !md_tile_whole(s);
}
/* end: EARLY */

/* The most workers that a product has, of `threads`: small ones do not pay for a team. */
MD_FN int md_tile_workers(const md_tile *s, int threads) {
    return s->is & MD_TILE_SHARED ? threads : 1;
}

/* if: HELPED */
enum { MD_TILE_UNIT = 1 << 22 }; /* multiply-adds that are begun at once: 15 to 30 us */

/* Is there more to do for worker `part`? Then in places *at .. *end, `each` of a task: its share,
 * or where all help a unit of that of worker *of, -1 before the first. */
MD_INLINE int md_tile_unit(const md_tile_call *call, int part, int *of, int64_t tasks, int64_t each,
                           int64_t *at, int64_t *end) {
    int more = *of < 0, unit = 0, units = 1;
    *of = more ? part : *of;
    if (call->help != NULL) {
        unit = md_help_next(call->help, part, of);
        more = unit >= 0;
        units = call->help->units;
    }
    const int64_t first = md_split(tasks, *of, call->parts) * each;
    const int64_t all = md_split(tasks, *of + 1, call->parts) * each - first;
    *at = first + md_split(all, unit, units);
    *end = first + md_split(all, unit + 1, units);
    return more;
}
/* `while`, in front of a loop that stands alone where nobody helps. */
#define MD_WHILE(more) while (more)

/* Units of each share of so many multiply-adds; two at least, that there is something to begin. */
MD_INLINE double md_tile_units(const md_tile *s, int parts) {
    const double products = (double)s->b1.n * (double)s->b2.n * (double)s->r1.n * (double)s->r2.n *
                            (double)s->cols.n * (double)s->k0.n * (double)s->k1.n * (double)s->k2.n;
    return 2 + products / (MD_TILE_UNIT * (double)parts);
}
/* end: HELPED */

/* Bytes of workspace for up to `threads` threads. */
MD_FN size_t md_tile_workspace(const md_tile *s, int threads) {
    return (size_t)((s->partial + s->slice * (threads > 1 ? threads : 1)) * s->elem);
}

/* Cuts the tasks for `parts` workers so that the busiest has least to do, panels included. Cuts
 * between rows of A may take an eighth more: a worker made many of them in the step before. */
MD_FN void md_tile_grid(const md_tile *s, md_tile_call *call) {
    int64_t batch = s->b1.n * s->b2.n * s->chunks, parts = call->parts;
    int64_t bytes = s->k0.n * s->k1.n * s->k2.n * s->cols.n * s->elem;
    int64_t near = s->wide == 3 && !(s->is & MD_TILE_PACKED) && bytes <= MD_TILE_FAR;
    int64_t high = near ? 8 : MD_TILE_HIGH, tiles = (s->r1.n * s->r2.n + high - 1) / high;
    int64_t width = s->wide * (64 / s->elem), panels = (s->cols.n + width - 1) / width;
    int64_t panel = near ? 1 : 2 * (s->is & MD_TILE_PACKED ? MD_TILE_PACKS : MD_TILE_FETCHES);
    int64_t best = INT64_MAX, slack = s->is & MD_TILE_SWAPPED ? INT64_MAX : 8, each = 1;
    /* if: BATCHED */
    if (s->is & MD_TILE_BATCHED) { /* cut between elements of the batch */
        each = tiles, tiles = batch, batch = 1;
    }
    /* end: BATCHED */
    /* if: WINOGRAD */
    if (s->is & MD_TILE_WINOGRAD) { /* between lines of tiles */
        tiles = batch * md_winograd_rows(s, s->r1.n), batch = 1;
    }
    if (s->is & MD_TILE_WINOGRAD_SUM) { /* four tasks, each of some columns */
        call->gm = 4;
        call->gn = md_tile_min((parts + 3) / 4, panels);
        call->parts = (int)md_tile_min(parts, 4 * call->gn);
        return;
    }
    /* end: WINOGRAD */
    for (int64_t gm = 1; gm <= md_tile_min(parts, tiles); gm++) {
        int64_t gn = s->is & MD_TILE_UNCUT ? 1 : md_tile_min((parts + gm - 1) / gm, panels);
        int64_t cost = (batch * gm * gn + parts - 1) / parts *
                       (2 * each * ((tiles + gm - 1) / gm) + panel) * ((panels + gn - 1) / gn);
        if (best == INT64_MAX || cost <= best + best / slack) {
            best = md_tile_min(cost, best);
            call->gm = gm;
            call->gn = gn;
        }
    }
    call->parts = (int)md_tile_min(parts, batch * call->gm * call->gn);
}

/* Runs a product on up to `threads` threads, on one in a region or while threads do not pay
 * (team.h, unless `pace` is NULL). The whole team is asked: a smaller one would end threads. */
MD_NOINLINE void md_tile_run(const md_tile *s, md_tile_part_fn fn, const void *a, const void *b,
                             void *c, void *ctx, void *work, md_pace *pace, int threads) {
    md_tile_call call = {a, b, c, ctx, work, 1, 1, 1, 0, NULL};
    call.work = work != NULL ? work : &call; /* not touched; offsets from null are undefined in C */
    (void)pace, (void)threads;
    /* if: SHARED */
    const int most = md_tile_workers(s, threads);
    const int team = most == 1 ? 1 : md_team(pace, most);
    call.parts = team;
    if (team > 1) {
        md_tile_grid(s, &call);
    }
    /* end: SHARED */
    int rounds = s->chunks > 1 ? 2 : 1;
    /* if: WINOGRAD */
    rounds = s->is & MD_TILE_WINOGRAD ? 2 : rounds;
    /* end: WINOGRAD */
    for (; call.sum < rounds; call.sum++) {
        /* if: SHARED */
        if (call.parts > 1) {
            /* if: HELPED */
            md_help help;
            if (s->is & MD_TILE_HELPED) {
                call.help = md_help_open(&help, call.parts, md_tile_units(s, call.parts));
            }
            /* end: HELPED */
            MD_OMP(parallel for schedule(static, 1) num_threads(team))
            for (int part = 0; part < call.parts; part++) {
                const double begun = md_part_begin(pace, part);
                fn(&call, part);
                md_part_end(pace, part, call.parts, begun);
            }
            /* if: HELPED */
            md_help_close(call.help, pace);
            /* end: HELPED */
            md_team_join(pace, call.parts);
            continue;
        }
        /* end: SHARED */
        fn(&call, 0);
    }
}

#endif
