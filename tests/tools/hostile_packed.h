/* hostile_packed: IDX files, packed and not. Included in hostile.c, once. */
#ifndef MDLC_TESTS_HOSTILE_PACKED_H
#define MDLC_TESTS_HOSTILE_PACKED_H

/* ---- images and labels, packed and not ------------------------------------------------------ */

static void idx_head(File *f, int type, int rank, const uint64_t *extent) {
    f->size = 0;
    add_word(f, (uint64_t)(type << 8 | rank), 4, 1);
    for (int i = 0; i < rank; i++) {
        add_word(f, extent[i], 4, 1);
    }
}

static const uint64_t four_two[] = {4, 2}, four[] = {4};
enum { IMAGE_S = 36 + 60 }; /* 1..8 and the labels 0 1 2 3 */

static void idx_good(File *f, int type, md_dtype dtype, int labels) {
    idx_head(f, type, labels ? 1 : 2, labels ? four : four_two);
    for (int i = 0; i < (labels ? 4 : 8); i++) {
        add_number(f, labels ? i : i + 1, dtype, 1);
    }
}

static void idx_files(void) {
    static const struct {
        int type;
        md_dtype dtype;
    } types[] = {{8, MD_U8}, {9, MD_I8}, {11, MD_I16}, {12, MD_I32}, {13, MD_F32}, {14, MD_F64}};
    static const struct {
        const char *bytes;
        size_t size;
        const char *text;
    } bad[] = {
        {TEXT_OF(""), "empty"},
        {TEXT_OF("\0\0\x08"), "not an IDX file"},
        {TEXT_OF("\0\0\x08\1"), "not an IDX file"},
        {TEXT_OF("\0\0\x08\0"), "not an IDX file"},
        {TEXT_OF("\0\0\x0A\1\0\0\0\4abcd"), "not an IDX file"},
        {TEXT_OF("\0\1\x08\1\0\0\0\4abcd"), "not an IDX file"},
        {TEXT_OF("\0\0\x08\xFF\0\0\0\4abcd"), "not an IDX file"},
        {TEXT_OF("\4\0\0\0\x08\0\0\0abcd"), "not an IDX file"},
        {TEXT_OF("\0\0\x08\1\0\0\0\0"), "no rows"},
        {TEXT_OF("\0\0\x08\2\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"), ""},
        {TEXT_OF("\0\0\x0E\3\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
                 "ab"),
         ""},
        {TEXT_OF("\0\0\x08\2\x80\0\0\0\x80\0\0\0"), "promises"},
        {TEXT_OF("\0\0\x08\2\0\0\0\4\0\0\0\3abcdefghijkl"),
         "field 'x' of data set 'image' takes 2"},
        {TEXT_OF("\0\0\x08\2\0\0\0\4\0\0\0\2abcdefg"), "promises 8 bytes of data, found 7"},
        {TEXT_OF("\0\0\x08\2\0\0\0\4\0\0\0\2abcdefghi"), "promises 8 bytes of data, found 9"},
    };
    File f = {0};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        idx_good(&f, types[i].type, types[i].dtype, 0);
        taken("idx", IMAGE, f.at, f.size, IMAGE_S);
        idx_good(&f, types[i].type, types[i].dtype, 1);
        taken("idx-label", LABEL, f.at, f.size, IMAGE_S);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        refused("idx", IMAGE, bad[i].bytes, bad[i].size, bad[i].text);
    }
    idx_good(&f, 8, MD_U8, 1);
    f.at[f.size - 1] = 10;
    refused("idx-label", LABEL, f.at, f.size, "row 3, element 0 is 10, outside 0..10");
    idx_good(&f, 12, MD_I32, 1);
    f.at[f.size - 3] = 1;
    refused("idx-label", LABEL, f.at, f.size, "row 3, element 0 is 65539, which does not fit U8");
    idx_good(&f, 13, MD_F32, 0);
    memcpy(f.at + 12, "\x7F\xC0\0\0", 4);
    refused("idx", IMAGE, f.at, f.size, "row 0, element 0 is nan");
    uint64_t three[] = {3};
    idx_head(&f, 8, 1, three);
    add(&f, "\0\1\2", 3);
    refused("idx-label", LABEL, f.at, f.size, "has 3 rows, but");
    drop(&f);
}

/* Bits, lowest first. */
typedef struct {
    File *f;
    uint32_t bits;
    int count;
} Bits;

static void put_bits(Bits *b, uint32_t value, int count) {
    for (int i = 0; i < count; i++) {
        b->bits |= (value >> i & 1u) << b->count;
        if (++b->count == 8) {
            add_word(b->f, b->bits, 1, 0);
            b->bits = 0;
            b->count = 0;
        }
    }
}

/* A Huffman code goes out highest bit first. */
static void put_code(Bits *b, uint32_t code, int count) {
    for (int i = count - 1; i >= 0; i--) {
        put_bits(b, code >> i, 1);
    }
}

typedef enum { STORED, FIXED, DYNAMIC } Block;

/* One block of literals. The dynamic code has 8 bits for all literals but the last, and 9 for that
 * and the end. */
static void put_block(Bits *b, Block kind, const uint8_t *data, size_t size) {
    put_bits(b, 1, 1);
    put_bits(b, (uint32_t)kind, 2);
    if (kind == STORED) {
        put_bits(b, 0, b->count > 0 ? 8 - b->count : 0);
        put_bits(b, (uint32_t)size, 16);
        put_bits(b, (uint32_t)size ^ 0xFFFFu, 16);
    } else if (kind == DYNAMIC) {
        static const int order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                      11, 4,  12, 3, 13, 2, 14, 1, 15};
        put_bits(b, 0, 5);  /* 257 literals */
        put_bits(b, 0, 5);  /* one distance */
        put_bits(b, 15, 4); /* all lengths of lengths: 8 and 9 take two bits, so do 0 and 1 */
        for (int i = 0; i < 19; i++) {
            put_bits(b, order[i] == 0 || order[i] == 1 || order[i] == 8 || order[i] == 9 ? 2 : 0,
                     3);
        }
        for (int i = 0; i < 257; i++) {
            put_code(b, i < 255 ? 2 : 3, 2);
        }
        put_code(b, 0, 2); /* the distance is never used */
    }
    for (size_t i = 0; i < size; i++) {
        uint32_t c = data[i];
        if (kind == STORED) {
            put_bits(b, c, 8);
        } else if (kind == FIXED) {
            put_code(b, c < 144 ? 0x30 + c : 0x190 + c - 144, c < 144 ? 8 : 9);
        } else {
            put_code(b, c < 255 ? c : 0x1FE, c < 255 ? 8 : 9);
        }
    }
    if (kind == FIXED) {
        put_code(b, 0, 7);
    } else if (kind == DYNAMIC) {
        put_code(b, 0x1FF, 9);
    }
}

/* A dynamic block with nothing in it but its end, whose code has `length` bits: 1 or 2. Alone it
 * may have one bit, as zlib allows; with two the code is not complete. */
static void put_lone(Bits *b, int length) {
    put_bits(b, 5, 3);  /* last, dynamic */
    put_bits(b, 0, 10); /* 257 literals, one distance */
    put_bits(b, 15, 4);
    for (int i = 0; i < 19; i++) { /* symbol 18 at place 2, 0 at 3, 2 at 15, 1 at 17 */
        put_bits(b, i == 2 ? 1 : i == 3 || i == (length == 1 ? 17 : 15) ? 2 : 0, 3);
    }
    put_code(b, 0, 1); /* 138 lengths of 0, then 118 */
    put_bits(b, 127, 7);
    put_code(b, 0, 1);
    put_bits(b, 107, 7);
    put_code(b, 3, 2); /* the end */
    put_code(b, 2, 2); /* the distance */
    put_code(b, 0, length);
}

/* A member around one block; `flags` brings the optional parts of the header. */
static void gzip_of(File *f, Block kind, int flags, const uint8_t *data, size_t size) {
    uint8_t head[10] = {0x1F, 0x8B, 8, (uint8_t)flags, 1, 2, 3, 4, 0, 3};
    f->size = 0;
    add(f, head, sizeof head);
    if ((flags & 4) != 0) {
        add(f, "\5\0extra", 7);
    }
    if ((flags & 8) != 0) {
        add(f, "a name", 7);
    }
    if ((flags & 16) != 0) {
        add(f, "a comment", 10);
    }
    if ((flags & 2) != 0) {
        add_word(f, md_crc32(f->at, f->size) & 0xFFFFu, 2, 0);
    }
    Bits b = {f, 0, 0};
    put_block(&b, kind, data, size);
    put_bits(&b, 0, b.count > 0 ? 8 - b.count : 0);
    add_word(f, md_crc32(data, size), 4, 0);
    add_word(f, size, 4, 0);
}

static void gzip_bytes(const char *kind, const File *f, const char *text) {
    give_bytes(kind, "-idx2-ubyte.gz", IMAGE, f->at, f->size, text == NULL ? TAKEN : REFUSED,
               IMAGE_S, text == NULL ? "" : text);
}

static void gzip_files(void) {
    File idx = {0}, f = {0}, g = {0};
    idx_good(&idx, 8, MD_U8, 0);
    for (int kind = 0; kind < 3; kind++) {
        for (int flags = 0; flags < 32; flags += 2) {
            gzip_of(&f, (Block)kind, flags | (flags >> 3 & 1), idx.at, idx.size);
            gzip_bytes("gz", &f, NULL);
        }
    }
    gzip_of(&f, FIXED, 2, idx.at, idx.size);
    f.at[10] ^= 1;
    gzip_bytes("gz-head", &f, "the checksum of its header is wrong");
    gzip_of(&f, FIXED, 0, idx.at, idx.size);
    size_t n = f.size;
    static const struct {
        int at;       /* from the end if negative */
        uint8_t with; /* exclusive or */
        const char *text;
    } flips[] = {
        {2, 1, "no gzip file"},
        {3, 0x20, "no gzip file"},
        {3, 0x80, "no gzip file"},
        {10, 4, ""},
        {-8, 1, "checksum"},
        {-5, 0x80, "checksum"},
        {-4, 1, ""},
        {-3, 1, ""},
        {-1, 0x80, "make no sense"},
        {-1, 1, "make no sense"},
        {10, 6, ""},
        {15, 0xFF, ""},
    };
    for (size_t i = 0; i < sizeof flips / sizeof *flips; i++) {
        gzip_of(&f, FIXED, 0, idx.at, idx.size);
        f.at[flips[i].at < 0 ? (int)n + flips[i].at : flips[i].at] ^= flips[i].with;
        gzip_bytes("gz-flip", &f, flips[i].text);
    }
    gzip_of(&f, DYNAMIC, 0, idx.at, idx.size);
    n = f.size;
    for (int i = 0; i < 40; i++) { /* behind time, level and system every bit counts */
        size_t at = 10 + below(n - 10);
        uint8_t bit = (uint8_t)(1u << below(8));
        f.at[at] ^= bit;
        either("gz-flip", IMAGE, f.at, n);
        f.at[at] ^= bit;
    }
    for (f.size = 2; f.size < n; f.size += 1 + f.size / 10) {
        gzip_bytes("gz-cut", &f, "it is cut short");
        if (f.size == 2) {
            f.size = 16;
        }
    }
    f.size = n;
    add_text(&f, "x");
    gzip_bytes("gz-tail", &f, "goes on behind its end");
    f.size = n;
    add(&f, "\0\0\0\0\x14\0\0\0", 8);
    gzip_bytes("gz-tail", &f, "something follows");
    gzip_of(&f, STORED, 0, idx.at, idx.size);
    gzip_of(&g, STORED, 0, idx.at, idx.size);
    add(&f, g.at, g.size);
    gzip_bytes("gz-members", &f, "one member only");
    gzip_of(&f, STORED, 0, idx.at, 10);
    gzip_of(&g, STORED, 0, idx.at + 10, idx.size - 10);
    add(&f, g.at, g.size);
    gzip_bytes("gz-members", &f, "");
    gzip_of(&f, FIXED, 0, idx.at, idx.size);
    gzip_of(&g, FIXED, 0, f.at, f.size);
    gzip_bytes("gz-twice", &g, "not an IDX file");
    gzip_of(&f, FIXED, 0, idx.at, 0);
    gzip_bytes("gz-empty", &f, "not an IDX file");
    for (int length = 1; length <= 2; length++) {
        gzip_of(&f, STORED, 0, idx.at, 0);
        f.size = 10;
        Bits b = {&f, 0, 0};
        put_lone(&b, length);
        put_bits(&b, 0, b.count > 0 ? 8 - b.count : 0);
        add(&f, "\0\0\0\0\0\0\0\0", 8);
        gzip_bytes("gz-lone", &f, length == 1 ? "not an IDX file" : "a code table is invalid");
    }
    gzip_of(&f, FIXED, 0, idx.at, idx.size - 1);
    gzip_bytes("gz-idx", &f, "promises 8 bytes of data, found 7");
    drop(&idx);
    drop(&f);
    drop(&g);
}

#endif
