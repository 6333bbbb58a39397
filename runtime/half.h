/* SPDX-License-Identifier: 0BSD */
/* half: floats of 16 bits as bits, from and to float. Needs md.h. */
#ifndef MD_HALF_H
#define MD_HALF_H

#include "runtime/md.h"

MD_FN float md_from_f16(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t exponent = h >> 10 & 31u;
    uint32_t fraction = h & 0x3FFu;
    uint32_t bits = sign | (exponent + 112) << 23 | fraction << 13;
    float f;
    if (exponent == 31) {
        bits = sign | 0x7F800000u | fraction << 13;
    } else if (exponent == 0) {
        f = (float)fraction * (1.0f / 16777216.0f); /* subnormal: fraction x 2^-24 */
        return sign != 0 ? -f : f;
    }
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
/* Round to nearest even. */
MD_FN uint16_t md_to_bf16(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (f != f) {
        return (uint16_t)(bits >> 16 | 0x40u);
    }
    return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

/* The nearest float that bf16 holds; the bits of one. */
MD_FN float md_bf16f(float f) {
    return md_from_bf16(md_to_bf16(f));
}
MD_FN uint16_t md_cut_bf16(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)(bits >> 16);
}

/* Round to nearest even; what is too large becomes infinite. */
MD_FN uint16_t md_to_f16(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000u;
    float a = fabsf(f);
    if (f != f) {
        return (uint16_t)(sign | 0x7E00u);
    }
    if (a >= 65520.0f) {
        return (uint16_t)(sign | 0x7C00u);
    }
    if (a < 6.103515625e-5f) { /* below 2^-14: subnormal, a multiple of 2^-24 */
        return (uint16_t)(sign | (uint32_t)lrintf(a * 16777216.0f));
    }
    uint32_t rounded = (bits & 0x7FFFFFFFu) + 0xFFFu + (bits >> 13 & 1u);
    return (uint16_t)(sign | ((rounded >> 13) - (112u << 10)));
}
/* end: halves */

#endif
