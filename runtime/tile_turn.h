/* SPDX-License-Identifier: 0BSD */
/* tile_turn: what transposes squares of vectors in registers (tile_kernel.h), and adds up their
 * 16-byte lanes (MD_HALVES), is made of, for each width of vectors and element type. */
#ifndef MD_TILE_TURN_H
#define MD_TILE_TURN_H

#include "runtime/md.h"

#if defined(__clang__) || __GNUC__ >= 12
#define MD_SH __builtin_shufflevector
#else
#define MD_SH(a, b, ...) /* by integers as wide as an element */                                   \
    __builtin_shuffle(a, b, (MD_SH_INT(a) __attribute__((vector_size(MD_VBYTES)))){__VA_ARGS__})
#define MD_SH_INT(a) __typeof__(__builtin_choose_expr(sizeof((a)[0]) == 4, 0, 0LL))
#endif

/* Halves of two vectors each are added in one register: what A and B take of them. */
#define MD_FOLD(A, B)                                                                              \
    for (int64_t i = 0; i < n; i += 2) {                                                           \
        v[i / 2] = A(v[i], v[i + (i + 1 < n)]) + B(v[i], v[i + (i + 1 < n)]);                      \
    }                                                                                              \
    n = (n + 1) / 2;

/* Inside 16-byte lanes: interleave low or high elements (and pairs); whole lanes: even or odd. */
#if MD_VBYTES == 64
#define MD_LO_F32(a, b) MD_SH(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define MD_HI_F32(a, b) MD_SH(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#define MD_LO2_F32(a, b) MD_SH(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define MD_HI2_F32(a, b) MD_SH(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
#define MD_EV_F32(a, b) MD_SH(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
#define MD_OD_F32(a, b) MD_SH(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31)
#define MD_HALVES_F32 MD_FOLD(MD_EV_F32, MD_OD_F32) MD_FOLD(MD_EV_F32, MD_OD_F32)
#elif MD_VBYTES == 32
#define MD_LO_F32(a, b) MD_SH(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define MD_HI_F32(a, b) MD_SH(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define MD_LO2_F32(a, b) MD_SH(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define MD_HI2_F32(a, b) MD_SH(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define MD_EV_F32(a, b) MD_SH(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define MD_OD_F32(a, b) MD_SH(a, b, 4, 5, 6, 7, 12, 13, 14, 15)
#define MD_HALVES_F32 MD_FOLD(MD_EV_F32, MD_OD_F32)
#else
#define MD_LO_F32(a, b) MD_SH(a, b, 0, 4, 1, 5)
#define MD_HI_F32(a, b) MD_SH(a, b, 2, 6, 3, 7)
#define MD_LO2_F32(a, b) MD_SH(a, b, 0, 1, 4, 5)
#define MD_HI2_F32(a, b) MD_SH(a, b, 2, 3, 6, 7)
#define MD_HALVES_F32
#endif

/* The same of f64. */
#if MD_VBYTES == 64
#define MD_LO_F64(a, b) MD_SH(a, b, 0, 8, 2, 10, 4, 12, 6, 14)
#define MD_HI_F64(a, b) MD_SH(a, b, 1, 9, 3, 11, 5, 13, 7, 15)
#define MD_EV_F64(a, b) MD_SH(a, b, 0, 1, 4, 5, 8, 9, 12, 13)
#define MD_OD_F64(a, b) MD_SH(a, b, 2, 3, 6, 7, 10, 11, 14, 15)
#define MD_HALVES_F64 MD_FOLD(MD_EV_F64, MD_OD_F64) MD_FOLD(MD_EV_F64, MD_OD_F64)
#elif MD_VBYTES == 32
#define MD_LO_F64(a, b) MD_SH(a, b, 0, 4, 2, 6)
#define MD_HI_F64(a, b) MD_SH(a, b, 1, 5, 3, 7)
#define MD_EV_F64(a, b) MD_SH(a, b, 0, 1, 4, 5)
#define MD_OD_F64(a, b) MD_SH(a, b, 2, 3, 6, 7)
#define MD_HALVES_F64 MD_FOLD(MD_EV_F64, MD_OD_F64)
#else
#define MD_LO_F64(a, b) MD_SH(a, b, 0, 2)
#define MD_HI_F64(a, b) MD_SH(a, b, 1, 3)
#define MD_HALVES_F64
#endif

/* Turns the square u of vectors by w: squares of 16 bytes, E elements, so that column E * l + c of
 * rows E * g .. E * g + E - 1 is in lane l of u[E * g + c]; then whole lanes. */
#if MD_VBYTES == 64
#define MD_TURN_LANES(EV, OD, E, u, w)                                                             \
    for (int c = 0; c < (E); c++) {                                                                \
        w[c] = EV(u[c], u[E + c]), w[E + c] = OD(u[c], u[E + c]);                                  \
        w[2 * E + c] = EV(u[2 * E + c], u[3 * E + c]);                                             \
        w[3 * E + c] = OD(u[2 * E + c], u[3 * E + c]);                                             \
        u[c] = EV(w[c], w[2 * E + c]), u[2 * E + c] = OD(w[c], w[2 * E + c]);                      \
        u[E + c] = EV(w[E + c], w[3 * E + c]), u[3 * E + c] = OD(w[E + c], w[3 * E + c]);          \
    }
#elif MD_VBYTES == 32
#define MD_TURN_LANES(EV, OD, E, u, w)                                                             \
    for (int c = 0; c < (E); c++) {                                                                \
        w[c] = EV(u[c], u[E + c]), w[E + c] = OD(u[c], u[E + c]), u[c] = w[c], u[E + c] = w[E + c];\
    }
#else
#define MD_TURN_LANES(EV, OD, E, u, w)
#endif
#define MD_TURN_F32(u, w)                                                                          \
    for (int i = 0; i < MD_VBYTES / 4; i += 2) {                                                   \
        w[i] = MD_LO_F32(u[i], u[i + 1]), w[i + 1] = MD_HI_F32(u[i], u[i + 1]);                    \
    }                                                                                              \
    for (int i = 0; i < MD_VBYTES / 4; i += 4) {                                                   \
        u[i] = MD_LO2_F32(w[i], w[i + 2]), u[i + 1] = MD_HI2_F32(w[i], w[i + 2]);                  \
        u[i + 2] = MD_LO2_F32(w[i + 1], w[i + 3]), u[i + 3] = MD_HI2_F32(w[i + 1], w[i + 3]);      \
    }                                                                                              \
    MD_TURN_LANES(MD_EV_F32, MD_OD_F32, 4, u, w)
#define MD_TURN_F64(u, w)                                                                          \
    for (int i = 0; i < MD_VBYTES / 8; i += 2) {                                                   \
        w[i] = MD_LO_F64(u[i], u[i + 1]), w[i + 1] = MD_HI_F64(u[i], u[i + 1]);                    \
        u[i] = w[i], u[i + 1] = w[i + 1];                                                          \
    }                                                                                              \
    MD_TURN_LANES(MD_EV_F64, MD_OD_F64, 2, u, w)

#endif
