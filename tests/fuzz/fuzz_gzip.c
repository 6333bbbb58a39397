/* gzip: a stream is taken exactly when zlib takes it, and gives the same bytes; so is the input as
 * bare deflate with the right end put behind it, so that the checksum does not hide what the codes
 * do; what zlib packs is unpacked, and refused when its end is missing. Without zlib only faults in
 * memory are found. */
#define _GNU_SOURCE
#include "tests/fuzz/readers.h"

#if defined(__has_include)
#if __has_include(<zlib.h>)
#include <zlib.h>
#define WITH_ZLIB 1
#endif
#endif

enum { MOST = 1 << 16 };
static unsigned char ours[MOST];

static const char *unpack(const uint8_t *data, size_t size, size_t length) {
    md_text message = reader_message();
    if (md_stream_open(&reader_stream, reader_file(data, size), &message) != MD_EXIT_OK) {
        finding("the stream does not open");
    }
    memset(ours, 0xA5, length < MOST ? length + 1 : length);
    const char *why = md_gunzip(&reader_stream, ours, length);
    close(reader_stream.fd);
    if (length < MOST && ours[length] != 0xA5) {
        finding("written behind the end");
    }
    return why;
}

#ifdef WITH_ZLIB
static unsigned char theirs[MOST], packed[MOST + 4096];

/* What zlib says of the stream, whose form `bits` names; the bytes it gave and those it read. */
static int zlib_reads(const uint8_t *data, size_t size, int bits, size_t *length, size_t *used) {
    z_stream z;
    memset(&z, 0, sizeof z);
    if (inflateInit2(&z, bits) != Z_OK) {
        exit(2);
    }
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)size;
    z.next_out = theirs;
    z.avail_out = MOST;
    int rc = inflate(&z, Z_FINISH);
    *length = MOST - z.avail_out;
    *used = size - z.avail_in;
    inflateEnd(&z);
    return rc;
}

/* The input as the blocks of a member. */
static void blocks(const uint8_t *data, size_t size) {
    static const uint8_t head[10] = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3};
    size_t length, used;
    int rc = zlib_reads(data, size, -15, &length, &used);
    used = rc == Z_STREAM_END ? used : size;
    if (rc == Z_BUF_ERROR && length == MOST) {
        return; /* larger than what is compared */
    }
    memcpy(packed, head, sizeof head);
    memcpy(packed + sizeof head, data, used);
    uint32_t ends[2] = {(uint32_t)crc32(0, theirs, (uInt)length), (uint32_t)length};
    memcpy(packed + sizeof head + used, ends, sizeof ends);
    const char *why = unpack(packed, sizeof head + used + sizeof ends, length);
    if ((why == NULL) != (rc == Z_STREAM_END)) {
        finding("blocks: %s, zlib says %d", why == NULL ? "taken" : why, rc);
    }
    if (why == NULL && memcmp(ours, theirs, length) != 0) {
        finding("blocks: other bytes than those of zlib");
    }
}

static void pack(const uint8_t *data, size_t size) {
    static const int strategies[] = {Z_DEFAULT_STRATEGY, Z_HUFFMAN_ONLY, Z_FIXED, Z_RLE};
    z_stream z;
    memset(&z, 0, sizeof z);
    int level = size > 0 ? data[0] % 10 : 0, strategy = size > 1 ? data[1] % 4 : 0;
    if (deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 1 + level % 9, strategies[strategy]) != Z_OK) {
        exit(2);
    }
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)size;
    z.next_out = packed;
    z.avail_out = sizeof packed;
    if (deflate(&z, Z_FINISH) != Z_STREAM_END) {
        exit(2);
    }
    size_t bytes = sizeof packed - z.avail_out;
    deflateEnd(&z);
    const char *why = unpack(packed, bytes, size);
    if (why != NULL || memcmp(ours, data, size) != 0) {
        finding("what zlib packed: %s", why == NULL ? "other bytes" : why);
    }
    if (unpack(packed, bytes - 1, size) == NULL || unpack(packed, bytes * 2 / 3, size) == NULL) {
        finding("a stream without its end was taken");
    }
    packed[bytes] = 0;
    if (unpack(packed, bytes + 1, size) == NULL) {
        finding("a stream with a byte behind its end was taken");
    }
}
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t length = size < 4 ? 0 : (size_t)reader_word(data + size - 4, 4, 0);
    length = length > MOST ? MOST : length;
    const char *why = unpack(data, size, length);
#ifdef WITH_ZLIB
    size_t theirs_length, used;
    int rc = zlib_reads(data, size, 15 + 16, &theirs_length, &used);
    int takes = rc == Z_STREAM_END && used == size; /* all of it, as one member */
    if (takes && theirs_length < MOST && theirs_length != length) {
        finding("zlib found %zu bytes, the end says %zu", theirs_length, length);
    }
    if ((why == NULL) != takes && theirs_length < MOST) {
        finding("%s, zlib %s it", why == NULL ? "taken" : why, takes ? "takes" : "refuses");
    }
    if (why == NULL && memcmp(ours, theirs, length) != 0) {
        finding("other bytes than those of zlib");
    }
    if (size < MOST / 2) {
        blocks(data, size);
        pack(data, size);
    }
#else
    (void)why;
#endif
    return 0;
}
