/* SPDX-License-Identifier: 0BSD */
/* half: floats of 16 bits as bits, from and to float. Needs md.h. */
#ifndef MD_HALF_H
#define MD_HALF_H

#include "runtime/md.h"

/* Without branches, so that loops of them become vectors. */
MD_INLINE float md_from_f16(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t rest = (uint32_t)(h & 0x7FFFu) << 13;
    const uint32_t large = rest >= 0x0F800000u ? 0x70000000u : 0x38000000u; /* infinite, NaN */
    uint32_t bits = rest + (rest < 0x00800000u ? 0x38800000u : large);
    float f;
    memcpy(&f, &bits, sizeof f);
    const float small = f - 6.103515625e-5f; /* subnormal: exact */
    f = rest < 0x00800000u ? small : f;
    memcpy(&bits, &f, sizeof bits);
    bits |= sign;
    memcpy(&f, &bits, sizeof f);
    return f;
}

MD_FN float md_from_bf16(uint16_t h) {
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* if: halves */
/* `a` where `which` is 1, `b` where it is 0: no branch that a compiler could thread through. */
MD_INLINE uint32_t md_pick_bits(int which, uint32_t a, uint32_t b) {
    return b ^ ((a ^ b) & (0u - (uint32_t)which));
}

/* The bits of the nearest float that bf16 holds, in the upper half; ties to even. */
MD_INLINE uint32_t md_near_bf16(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    const uint32_t near = bits + 0x7FFFu + (bits >> 16 & 1u);
    return md_pick_bits(f != f, bits | 0x400000u, near);
}
MD_FN uint16_t md_to_bf16(float f) {
    return (uint16_t)(md_near_bf16(f) >> 16);
}

/* That float; the bits of one. */
MD_FN float md_bf16f(float f) {
    const uint32_t bits = md_near_bf16(f) & 0xFFFF0000u;
    memcpy(&f, &bits, sizeof f);
    return f;
}
/* One of the two of bf16 around f, whichever `draw`, of [0, 1), says: so that their mean is f. */
MD_FN float md_bf16_drawn(float f, float draw) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    const uint32_t next = bits + (uint32_t)(int32_t)(draw * 65536.0f);
    bits = md_pick_bits(f != f, bits | 0x400000u, next) & 0xFFFF0000u;
    memcpy(&f, &bits, sizeof f);
    return f;
}
MD_FN uint16_t md_cut_bf16(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)(bits >> 16);
}

/* Round to nearest even; what is too large becomes infinite. Below 2^-14 the sum with 0.5 rounds to
 * a multiple of 2^-24, as subnormals are. */
MD_INLINE uint16_t md_to_f16(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000u;
    const uint32_t size = bits & 0x7FFFFFFFu;
    const float shifted = fabsf(f) + 0.5f;
    uint32_t small;
    memcpy(&small, &shifted, sizeof small);
    const uint32_t normal = (size + 0xFFFu + (size >> 13 & 1u)) >> 13;
    uint32_t h = size < 0x38800000u ? small - 0x3F000000u : normal - 0x1C000u;
    h = size >= 0x477FF000u ? 0x7C00u : h; /* from 65520 on */
    h = size > 0x7F800000u ? 0x7E00u : h;
    return (uint16_t)(h | sign);
}

/* The nearest float that f16 holds, and the bits of one: fewer steps than by way of the other. */
MD_INLINE float md_f16f(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    const uint32_t size = bits & 0x7FFFFFFFu;
    const float coarse = fabsf(f) + 0.5f;
    const float small = coarse - 0.5f;
    uint32_t near;
    memcpy(&near, &small, sizeof near);
    const uint32_t normal = (size + 0xFFFu + (size >> 13 & 1u)) & 0xFFFFE000u;
    near = md_pick_bits(size < 0x38800000u, near, normal);
    near = md_pick_bits(size >= 0x477FF000u, 0x7F800000u, near); /* from 65520 on */
    near |= (0u - (uint32_t)(size > 0x7F800000u)) & 0x7FC00000u;
    near |= bits & 0x80000000u;
    memcpy(&f, &near, sizeof f);
    return f;
}
MD_INLINE uint16_t md_cut_f16(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    const uint32_t size = bits & 0x7FFFFFFFu;
    const float shifted = fabsf(f) + 0.5f;
    uint32_t small;
    memcpy(&small, &shifted, sizeof small);
    uint32_t h = md_pick_bits(size < 0x38800000u, small - 0x3F000000u, (size >> 13) - 0x1C000u);
    h = md_pick_bits(size >= 0x7F800000u, 0x7C00u | (size >> 13 & 0x3FFu), h); /* with its NaN */
    return (uint16_t)(h | (bits >> 16 & 0x8000u));
}
/* end: halves */

#endif
