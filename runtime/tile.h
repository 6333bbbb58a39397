/* SPDX-License-Identifier: 0BSD */
/* tile: a planned contraction C[m, n] (+)= sum over k of A[m, k] * B[k, n], and its thread loop.
 *
 * A product is a shape (tile_plan.h) turned into the md_tile below by md_tile_plan when the program
 * is emitted; the emitted program holds the finished plan as a static const, whose fields the
 * compiler folds into the arithmetic of tile_kernel.h. One product is written
 *
 *     static const md_tile s = {...};
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
#if MD_FUSED && MD_VBYTES == 16 && defined(__aarch64__)
#include <arm_neon.h>
#endif

/* md_mad of vectors of MD_VBYTES: no compiler before gcc 13 and clang 17 has one for all machines.
 * All lanes of a mask are 1, in the type that each compiler has for it. */
#if MD_FUSED && MD_VBYTES == 64
#if defined(__clang__)
#define MD_ALL_16 ((uint16_t)-1)
#else
#define MD_ALL_16 ((int16_t)-1)
#endif
#define md_tile_vmad_f32(a, b, c)                                                                  \
    ((md_vf32)__builtin_ia32_vfmaddps512_mask(a, b, c, MD_ALL_16, 4))
#define md_tile_vmad_f64(a, b, c)                                                                  \
    ((md_vf64)__builtin_ia32_vfmaddpd512_mask(a, b, c, (uint8_t)-1, 4))
#elif MD_FUSED && MD_VBYTES == 32
#define md_tile_vmad_f32(a, b, c) ((md_vf32)__builtin_ia32_vfmaddps256(a, b, c))
#define md_tile_vmad_f64(a, b, c) ((md_vf64)__builtin_ia32_vfmaddpd256(a, b, c))
#elif MD_FUSED && MD_VBYTES == 16 && defined(__aarch64__)
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

/* The plan, for any machine. X is the operand that gives rows and is broadcast, Y the one that
 * gives vectors: A and B, or the other way round when `swapped`; then the strip is C transposed,
 * rows are columns of C. Strides count elements. All fields are int64_t, so a plan prints as a
 * plain list. */
typedef struct {
    int64_t b1, b2;                                   /* batch axes */
    int64_t r1, r2, cols;                             /* rows r = i1 * r2 + i2; columns */
    int64_t k0, k1, k2;                               /* summed axes, k2 the fastest */
    int64_t x_b1, x_b2, x_r1, x_r2, x_k0, x_k1, x_k2; /* strides of X */
    int64_t y_b1, y_b2, y_k0, y_k1, y_k2, y_c;        /* strides of Y */
    int64_t c_b1, c_b2, c_m1, c_m2, c_n;              /* strides of C */
    int64_t m2;                                       /* row m of C is at m / m2, m % m2 */
    int64_t elem;                                     /* bytes of an element: 4, 8 */
    int64_t add, stored;                              /* C += ...; C is stored at all */
    int64_t inplace;                                  /* the strip is C itself */
    int64_t swapped, packed;                          /* roles; Y goes through packed panels */
    int64_t dots;                                     /* few rows: vectors run along k2 */
    int64_t all;                                      /* blocks and tasks span all columns */
    int64_t wide;                                     /* vectors across a panel: 2, 3 or 4 */
    int64_t kb1, kb2;                                 /* blocks of k1 and k2 */
    int64_t chunks;                                   /* of the summed axes, added in order */
    int64_t shared;                                   /* work enough for several threads */
    int64_t block_rows, block_cols;                   /* what the epilogue gets at most */
    int64_t group;                                    /* blocks that are added one to another */
    int64_t strip_at, turned_at, group_at, slice;     /* elements: workspace of one worker */
    int64_t partial;                                  /* elements: partial sums of the chunks */
} md_tile;

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
} md_tile_call;

typedef void (*md_tile_part_fn)(const md_tile_call *call, int part);

/* Rows of the highest register tile of any machine. A block holds one tile at least. */
enum { MD_TILE_HIGH = 14 };

/* 32 vector registers rather than 16. */
#if MD_VBYTES == 64 || defined(__aarch64__)
#define MD_TILE_MANY 1
#else
#define MD_TILE_MANY 0
#endif

MD_INLINE int64_t md_tile_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* How rows are cut into tiles on a machine. Tiles are even to one row: the `cut` axis (i2, or i1
 * where r2 is short and a tile holds several whole i1, `unit` rows each) is split into `cuts`
 * parts; tiles have `big` rows or `little` ones, and panels `nr` columns. */
typedef struct {
    int64_t nr, rm, cut, cuts, unit, big, little, count;
} md_tile_cut;

/* `lanes`: elements of a vector, `bytes` long; `many`: there are 32 registers rather than 16. */
MD_INLINE md_tile_cut md_tile_cut_rows(const md_tile *s, int64_t lanes, int bytes, int many) {
    md_tile_cut u;
    int64_t nv = s->wide == 3 && bytes != 64 ? 2 : s->wide;
    int64_t mr = nv == 4 ? 3 : !many ? 6 : nv == 3 ? 8 : MD_TILE_HIGH;
    int64_t group = s->r1 > 1 ? mr / s->r2 : 0;
    u.nr = nv * lanes;
    u.rm = group > 1 ? s->r2 : 64; /* rows of one i1 in a tile */
    u.cut = group > 1 ? s->r1 : s->r2;
    u.unit = group > 1 ? s->r2 : 1;
    u.cuts = group > 1 ? (s->r1 + group - 1) / group : (s->r2 + mr - 1) / mr;
    u.big = (u.cut + u.cuts - 1) / u.cuts * u.unit;
    u.little = u.cut / u.cuts * u.unit;
    u.count = group > 1 ? u.cuts : s->r1 * u.cuts;
    return u;
}

/* The most workers that a product has, of `threads`: small ones do not pay for a team. */
MD_FN int md_tile_workers(const md_tile *s, int threads) {
    return s->shared ? threads : 1;
}

/* Bytes of workspace for up to `threads` threads. */
MD_FN size_t md_tile_workspace(const md_tile *s, int threads) {
    return (size_t)((s->partial + s->slice * (threads > 1 ? threads : 1)) * s->elem);
}

/* Cuts the tasks for `parts` workers so that the busiest has least to do; ties go to cuts between
 * columns, whose panels are then packed only once. */
MD_FN void md_tile_grid(const md_tile *s, md_tile_call *call) {
    int64_t batch = s->b1 * s->b2 * s->chunks;
    int64_t tiles = (s->r1 * s->r2 + MD_TILE_HIGH - 1) / MD_TILE_HIGH;
    int64_t width = s->wide * (64 / s->elem);
    int64_t panels = (s->cols + width - 1) / width;
    int64_t parts = call->parts;
    int64_t best = INT64_MAX;
    for (int64_t gm = 1; gm <= md_tile_min(parts, tiles); gm++) {
        int64_t gn = s->all ? 1 : md_tile_min((parts + gm - 1) / gm, panels);
        int64_t cost = (batch * gm * gn + parts - 1) / parts * ((tiles + gm - 1) / gm) *
                       ((panels + gn - 1) / gn);
        if (cost < best) {
            best = cost;
            call->gm = gm;
            call->gn = gn;
        }
    }
    call->parts = (int)md_tile_min(parts, batch * call->gm * call->gn);
}

/* Runs every part of one product on up to `threads` threads (what work was sized for); on the
 * calling one inside a parallel region, and while threads do not pay (team.h; not asked where
 * `pace` is NULL). A region always asks for the whole team, though some may find nothing to do:
 * OpenMP ends and starts threads when the size of a team changes. */
MD_FN void md_tile_run(const md_tile *s, md_tile_part_fn fn, const void *a, const void *b, void *c,
                       void *ctx, void *work, md_pace *pace, int threads) {
    md_tile_call call;
    call.a = a;
    call.b = b;
    call.c = c;
    call.ctx = ctx;
    call.work = work != NULL ? work : &call; /* not touched; offsets from null are undefined in C */
    call.gm = 1;
    call.gn = 1;
    const int most = md_tile_workers(s, threads);
    const int team = most == 1 ? 1 : md_team(pace, most);
    call.parts = team;
    if (team > 1) {
        md_tile_grid(s, &call);
    }
    for (call.sum = 0; call.sum < (s->chunks > 1 ? 2 : 1); call.sum++) {
        if (call.parts == 1) {
            fn(&call, 0);
            continue;
        }
        MD_OMP(parallel for schedule(static, 1) num_threads(team))
        for (int part = 0; part < call.parts; part++) {
            const double begun = md_part_begin(pace, part);
            fn(&call, part);
            md_part_end(pace, part, call.parts, begun);
        }
        md_team_join(pace, call.parts);
    }
}

#endif
