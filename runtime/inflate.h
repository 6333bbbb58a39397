/* SPDX-License-Identifier: 0BSD */
/* inflate: unpacks a gzip file (RFC 1952) of one member into memory of known size.
 *
 * The output is the window, so nothing else is kept but three small tables. Codes of up to 9 bits
 * are looked up, longer ones are decoded bit by bit by their canonical order. The checksum and the
 * length at the end are verified, and the checksum of the header where there is one. Needs host.h,
 * gives the bytes or says what is wrong. */
#ifndef MD_INFLATE_H
#define MD_INFLATE_H

#include "runtime/host.h"

enum { MD_HUFF_BITS = 9, MD_HUFF_LONGEST = 15, MD_HUFF_SYMBOLS = 288 };

typedef struct md_huff {
    uint16_t count[MD_HUFF_LONGEST + 1]; /* codes of each length */
    uint16_t symbol[MD_HUFF_SYMBOLS];    /* in canonical order */
    uint16_t fast[1 << MD_HUFF_BITS];    /* length << 9 | symbol, 0: longer than that */
} md_huff;

typedef struct md_inflate {
    md_stream *stream;
    uint64_t bits; /* the next bits, lowest first */
    int bit_count;
    unsigned char *out;
    size_t used, size;
    const char *why; /* NULL: no fault so far */
    uint32_t crc;    /* of the header */
    md_huff literal, distance;
} md_inflate;

MD_FN void md_inflate_fault(md_inflate *z, const char *why) {
    z->why = z->why == NULL ? why : z->why;
}

/* Makes at least `n` <= 32 bits available, as far as the file goes. */
MD_FN void md_inflate_fill(md_inflate *z, int n) {
    for (int c = 0; z->bit_count < n && (c = md_stream_next(z->stream)) >= 0; z->bit_count += 8) {
        z->bits |= (uint64_t)(unsigned)c << z->bit_count;
    }
}

/* The same; past the end of the file zeros are supplied, once. */
MD_FN void md_inflate_need(md_inflate *z, int n) {
    md_inflate_fill(z, n);
    if (z->bit_count < n) {
        md_inflate_fault(z, "it is cut short");
        z->bit_count = n;
    }
}

MD_FN uint32_t md_inflate_take(md_inflate *z, int n) {
    md_inflate_need(z, n);
    uint32_t value = (uint32_t)(z->bits & ((UINT64_C(1) << n) - 1));
    z->bits >>= n;
    z->bit_count -= n;
    return value;
}

/* Builds the tables of a code from its lengths; 0 when the lengths are no complete prefix code.
 * With `lone` the code may also be a single symbol of one bit, or none. */
MD_FN int md_huff_make(md_huff *h, const unsigned char *length, int symbols, int lone) {
    uint16_t offset[MD_HUFF_LONGEST + 2];
    int left = 1;
    memset(h, 0, sizeof *h);
    for (int i = 0; i < symbols; i++) {
        h->count[length[i]]++;
    }
    h->count[0] = 0;
    offset[1] = 0;
    for (int len = 1; len <= MD_HUFF_LONGEST; len++) {
        left = left * 2 - h->count[len];
        if (left < 0) {
            return 0;
        }
        offset[len + 1] = (uint16_t)(offset[len] + h->count[len]);
    }
    int used = offset[MD_HUFF_LONGEST + 1];
    for (int i = 0; i < symbols; i++) {
        if (length[i] != 0) {
            h->symbol[offset[length[i]]++] = (uint16_t)i;
        }
    }
    uint32_t code = 0;
    int index = 0;
    for (int len = 1; len <= MD_HUFF_BITS; len++) {
        for (int k = 0; k < h->count[len]; k++, code++, index++) {
            uint32_t reversed = 0;
            for (int b = 0; b < len; b++) {
                reversed |= (code >> b & 1u) << (len - 1 - b);
            }
            for (; reversed < 1u << MD_HUFF_BITS; reversed += 1u << len) {
                h->fast[reversed] = (uint16_t)(len << 9 | h->symbol[index]);
            }
        }
        code <<= 1;
    }
    return left == 0 || used == 0 || (lone && used == 1 && h->count[1] == 1);
}

MD_FN int md_inflate_symbol(md_inflate *z, const md_huff *h) {
    md_inflate_need(z, 1);
    md_inflate_fill(z, MD_HUFF_LONGEST);
    uint16_t entry = h->fast[z->bits & ((1u << MD_HUFF_BITS) - 1)];
    int length = entry >> 9;
    if (entry != 0 && length <= z->bit_count) {
        z->bits >>= length;
        z->bit_count -= length;
        return entry & 511;
    }
    int code = 0, first = 0, index = 0;
    for (int len = 1; len <= MD_HUFF_LONGEST; len++) {
        code |= (int)md_inflate_take(z, 1);
        int count = h->count[len];
        if (code - count < first) {
            return h->symbol[index + code - first];
        }
        index += count;
        first = (first + count) << 1;
        code <<= 1;
    }
    md_inflate_fault(z, "a code is invalid");
    return 256;
}

MD_FN void md_inflate_put(md_inflate *z, unsigned char byte) {
    if (z->used == z->size) {
        md_inflate_fault(z, "it holds more than its last bytes say; it may have one member only");
        return;
    }
    z->out[z->used++] = byte;
}

MD_FN void md_inflate_copy(md_inflate *z, size_t distance, size_t length) {
    if (distance > z->used) {
        md_inflate_fault(z, "a distance is too large");
        return;
    }
    for (size_t i = 0; i < length && z->why == NULL; i++) {
        md_inflate_put(z, z->out[z->used - distance]);
    }
}

/* A length less 3, or a distance less 1. Of symbols behind the first groups, of 4 or 2, each group
 * has a bit more behind it than the one before, and reaches twice as far. */
MD_FN size_t md_inflate_reach(md_inflate *z, int symbol, int group) {
    const int more = symbol < 2 * group ? 0 : symbol / group - 1;
    const size_t base = more == 0 ? (size_t)symbol : (size_t)(group + symbol % group) << more;
    return base + md_inflate_take(z, more);
}

/* The symbols of one block. */
MD_FN void md_inflate_codes(md_inflate *z) {
    for (;;) {
        int symbol = md_inflate_symbol(z, &z->literal);
        if (z->why != NULL || symbol == 256) {
            return;
        }
        if (symbol < 256) {
            md_inflate_put(z, (unsigned char)symbol);
            continue;
        }
        symbol -= 257;
        if (symbol >= 29) {
            md_inflate_fault(z, "a length is invalid");
            return;
        }
        size_t length = symbol == 28 ? 258 : 3 + md_inflate_reach(z, symbol, 4);
        int far = md_inflate_symbol(z, &z->distance);
        if (far >= 30) {
            md_inflate_fault(z, "a distance is invalid");
            return;
        }
        md_inflate_copy(z, 1 + md_inflate_reach(z, far, 2), length);
    }
}

MD_FN void md_inflate_fixed(md_inflate *z) {
    unsigned char length[MD_HUFF_SYMBOLS];
    for (int i = 0; i < MD_HUFF_SYMBOLS; i++) {
        length[i] = (unsigned char)(i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8);
    }
    md_huff_make(&z->literal, length, MD_HUFF_SYMBOLS, 0);
    memset(length, 5, 30);
    md_huff_make(&z->distance, length, 30, 0);
    /* Codes 30 and 31 never occur, so this code is rightly not complete. */
    md_inflate_codes(z);
}

/* Code lengths are themselves coded; the literal code holds that first code meanwhile. */
MD_FN void md_inflate_dynamic(md_inflate *z) {
    static const uint8_t order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                      11, 4,  12, 3, 13, 2, 14, 1, 15};
    unsigned char length[320];
    int literals = (int)md_inflate_take(z, 5) + 257;
    int distances = (int)md_inflate_take(z, 5) + 1;
    int codes = (int)md_inflate_take(z, 4) + 4;
    memset(length, 0, sizeof length);
    for (int i = 0; i < codes; i++) {
        length[order[i]] = (unsigned char)md_inflate_take(z, 3);
    }
    if (literals > 286 || distances > 30 || !md_huff_make(&z->literal, length, 19, 0)) {
        md_inflate_fault(z, "a code table is invalid");
        return;
    }
    int i = 0;
    while (i < literals + distances && z->why == NULL) {
        int symbol = md_inflate_symbol(z, &z->literal);
        int repeat = 1;
        unsigned char value = (unsigned char)symbol;
        if (symbol >= 16) {
            value = symbol == 16 && i > 0 ? length[i - 1] : 0;
            repeat = symbol == 16   ? 3 + (int)md_inflate_take(z, 2)
                     : symbol == 17 ? 3 + (int)md_inflate_take(z, 3)
                                    : 11 + (int)md_inflate_take(z, 7);
        }
        if (symbol > 18 || (symbol == 16 && i == 0) || i + repeat > literals + distances) {
            md_inflate_fault(z, "a code table is invalid");
            return;
        }
        memset(length + i, value, (size_t)repeat);
        i += repeat;
    }
    if (!md_huff_make(&z->literal, length, literals, 1) || length[256] == 0 ||
        !md_huff_make(&z->distance, length + literals, distances, 1)) {
        md_inflate_fault(z, "a code table is invalid");
        return;
    }
    md_inflate_codes(z);
}

MD_FN void md_inflate_stored(md_inflate *z) {
    md_inflate_take(z, z->bit_count % 8);
    uint32_t length = md_inflate_take(z, 16);
    uint32_t check = md_inflate_take(z, 16);
    if (length != (check ^ 0xFFFFu)) {
        md_inflate_fault(z, "a stored block is damaged");
    }
    for (uint32_t i = 0; i < length && z->why == NULL; i++) {
        md_inflate_put(z, (unsigned char)md_inflate_take(z, 8));
    }
}

/* A step of the checksum, by the byte in its low bits. */
MD_FN uint32_t md_crc_byte(uint32_t crc) {
    for (int k = 0; k < 8; k++) {
        crc = (crc & 1u) != 0 ? 0xEDB88320u ^ crc >> 1 : crc >> 1;
    }
    return crc;
}

MD_FN uint32_t md_crc32(const unsigned char *data, size_t bytes) {
    uint32_t table[256], crc = 0xFFFFFFFFu;
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = md_crc_byte(i);
    }
    for (size_t i = 0; i < bytes; i++) {
        crc = table[(crc ^ data[i]) & 255u] ^ crc >> 8;
    }
    return crc ^ 0xFFFFFFFFu;
}

/* A byte of the header. */
MD_FN uint32_t md_inflate_head(md_inflate *z) {
    uint32_t byte = md_inflate_take(z, 8);
    z->crc = md_crc_byte(z->crc ^ byte);
    return byte;
}

MD_FN void md_inflate_header(md_inflate *z) {
    uint32_t fixed[10]; /* magic (2), method, flags, time (4), level, system */
    z->crc = 0xFFFFFFFFu;
    for (int i = 0; i < 10; i++) {
        fixed[i] = md_inflate_head(z);
    }
    uint32_t flags = fixed[3];
    if (fixed[0] != 0x1F || fixed[1] != 0x8B || fixed[2] != 8 || (flags & 0xE0u) != 0) {
        md_inflate_fault(z, "it is no gzip file");
        return;
    }
    if ((flags & 4u) != 0) {
        uint32_t low = md_inflate_head(z);
        for (uint32_t n = low | md_inflate_head(z) << 8; n > 0 && z->why == NULL; n--) {
            md_inflate_head(z);
        }
    }
    for (uint32_t text = 8; text <= 16; text *= 2) { /* name, comment */
        while ((flags & text) != 0 && md_inflate_head(z) != 0 && z->why == NULL) {
        }
    }
    uint32_t crc = (z->crc ^ 0xFFFFFFFFu) & 0xFFFFu;
    if ((flags & 2u) != 0 && md_inflate_take(z, 16) != crc) {
        md_inflate_fault(z, "the checksum of its header is wrong");
    }
}

/* Fills out[size] with the content of a gzip stream, which must be exactly that long. Gives NULL,
 * or what was wrong. */
MD_FN const char *md_gunzip(md_stream *stream, unsigned char *out, size_t size) {
    md_inflate z;
    memset(&z, 0, sizeof z);
    z.stream = stream;
    z.out = out;
    z.size = size;
    md_inflate_header(&z);
    int last = 0;
    while (!last && z.why == NULL) {
        last = (int)md_inflate_take(&z, 1);
        uint32_t type = md_inflate_take(&z, 2);
        if (type == 0) {
            md_inflate_stored(&z);
        } else if (type == 1) {
            md_inflate_fixed(&z);
        } else if (type == 2) {
            md_inflate_dynamic(&z);
        } else {
            md_inflate_fault(&z, "a block is of no known type");
        }
    }
    md_inflate_take(&z, z.bit_count % 8);
    uint32_t crc = md_inflate_take(&z, 32);
    uint32_t length = md_inflate_take(&z, 32);
    if (z.why == NULL &&
        (z.used != size || length != (uint32_t)size || crc != md_crc32(out, size))) {
        md_inflate_fault(&z, "its checksum or length is wrong");
    }
    if (z.why == NULL && (z.bit_count > 0 || md_stream_next(stream) >= 0)) {
        md_inflate_fault(&z, "something follows behind its end; it may have one member only");
    }
    return z.why;
}

#endif
