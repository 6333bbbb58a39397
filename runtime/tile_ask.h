/* SPDX-License-Identifier: 0BSD */
/* tile_ask: what register tiles of a product (tile_kernel.h, tile_half.h) do for its epilogue: they
 * ask for the memory that it reads and writes while they multiply; and of a plan with MD_TILE_ENDS
 * they give it their own rows and columns as soon as these are made. Gives md_tile_ask. */
#ifndef MD_TILE_ASK_H
#define MD_TILE_ASK_H

#include "runtime/tile.h"

/* if: STREAMS */
/* What an epilogue reads of memory, element by element: element (m, n) of batch b lies at
 * at + b * batch + m * row bytes, n elements on. NULL ends a list. */
typedef struct {
    const void *at;
    int64_t batch, row, elem, written; /* `written`: what it stores lies there too */
} md_tile_stream;

enum { MD_TILE_ASKED = 8 }; /* streams, most, that tiles ask for */

/* What a register tile asks for while it multiplies: of each stream the first row's address, its
 * lines, how far the next row lies; so many `rows` more, one every `pause` steps, 0: none now. */
typedef struct {
    const md_tile_stream *of; /* ctx begins with them */
    int64_t batch, rows, pause;
    struct {
        uintptr_t at;
        int64_t lines, row, written;
    } stream[MD_TILE_ASKED];
    int streams;
    void (*ends)(void); /* the epilogue of MD_TILE_ENDS */
} md_tile_ask;

#if MD_VBYTES > 0
/* Asks for the next row of all streams; as many lines as a panel of floats has without a loop. */
MD_INLINE void md_tile_ask_row(md_tile_ask *ask) {
    ask->rows--;
    for (int i = 0; i < ask->streams; i++) {
        const uintptr_t at = ask->stream[i].at;
        const int64_t lines = ask->stream[i].lines;
        ask->stream[i].at = at + (uintptr_t)ask->stream[i].row;
#define MD_TILE_ASK_LINES(written)                                                                 \
    MD_FETCH_FOR(at, written);                                                                     \
    if (lines > 1) {                                                                               \
        MD_FETCH_FOR(at + 64, written);                                                            \
    }                                                                                              \
    if (lines > 2) {                                                                               \
        MD_FETCH_FOR(at + 128, written);                                                           \
    }                                                                                              \
    for (int64_t l = 3; l < lines; l++) {                                                          \
        MD_FETCH_FOR(at + (uintptr_t)(l * 64), written);                                           \
    }
        if (ask->stream[i].written) {
            MD_TILE_ASK_LINES(1)
        } else {
            MD_TILE_ASK_LINES(0)
        }
#undef MD_TILE_ASK_LINES
    }
}
#endif

/* if: ENDS */
enum { MD_TILE_ENDS_AHEAD = 4 }; /* register tiles: memory may take as long as two of them */
/* end: ENDS */

/* What register tile t, of t0 to t1, of panel p asks for over `steps` of its sum: its own elements;
 * with MD_TILE_ENDS, which reads them as soon as the sum ends, those of a later tile. Its panel may
 * be wider than is left. */
MD_INLINE void md_tile_ask_of(md_tile_ask *ask, const md_tile *s, md_tile_cut u, int64_t t,
                              int64_t t0, int64_t t1, int64_t p, int64_t steps) {
    /* if: ENDS */
    if (s->is & MD_TILE_ENDS) {
        p += (t - t0 + MD_TILE_ENDS_AHEAD) / (t1 - t0);
        t = t0 + (t - t0 + MD_TILE_ENDS_AHEAD) % (t1 - t0);
        steps = p * u.nr < s->cols.n ? steps : 0;
    }
    /* end: ENDS */
    (void)t0, (void)t1;
    const int64_t row = md_tile_row(s, u, t), rows = md_tile_row(s, u, t + 1) - row;
    const int64_t column = p * u.nr, columns = md_tile_min(u.nr, s->cols.n - column);
    const int turned = md_tile_turns(s);
    const int64_t m = turned ? column : row, n = turned ? row : column;
    ask->rows = turned ? columns : rows;
    ask->pause = steps / ask->rows;
    ask->streams = 0;
    for (int i = 0; i < MD_TILE_ASKED && steps > 0 && ask->of[i].at != NULL; i++) {
        const md_tile_stream *from = &ask->of[i];
        const uintptr_t at = (uintptr_t)from->at + (size_t)(ask->batch * from->batch +
                                                            m * from->row + n * from->elem);
        const int64_t into = from->row % 64 == 0 ? (int64_t)(at % 64) : 63; /* a line, most */
        ask->stream[i].at = at;
        ask->stream[i].lines = (into + (turned ? rows : columns) * from->elem + 63) / 64;
        ask->stream[i].row = from->row;
        ask->stream[i].written = from->written;
        ask->streams = i + 1;
    }
}
/* end: STREAMS */

/* if: ENDS */
/* Columns that the epilogue of such a plan gets: those of a panel, a constant where panels of
 * `wide` vectors fill all `n`. */
MD_INLINE int64_t md_tile_ends_columns(int64_t n, int64_t wide, int64_t cols) {
    const int64_t nr = MD_TILE_WIDTH(wide, MD_VBYTES) * MD_LANES_F32;
    return n % nr == 0 ? nr : cols;
}
/* end: ENDS */

#endif
