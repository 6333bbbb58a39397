/* stwide: a safetensors file of F32 tensors as one of F64 tensors with the same values, for
 * programs that were compiled with --precision=f64.
 *
 *     stwide FILE OUT
 *
 * Needs a header as tests/programs/make_programs.py writes it. Status 2 when a file cannot be read
 * or written, or is not such a file. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *path, const char *what) {
    fprintf(stderr, "stwide: %s: %s\n", path, what);
    exit(2);
}

/* The header with F64 for F32 and all offsets doubled, padded with blanks to whole numbers of eight
 * bytes; *out has room for twice its length. */
static size_t widen(const char *path, const char *s, char *out) {
    char *to = out;
    while (*s != '\0') {
        static const char offsets[] = "\"data_offsets\":[%" SCNu64 ",%" SCNu64 "]%n";
        uint64_t begin, end;
        int n = 0;
        if (strncmp(s, "\"dtype\":\"", 9) == 0) {
            if (strncmp(s + 9, "F32\"", 4) != 0) {
                die(path, "holds a tensor that is not F32");
            }
            to += sprintf(to, "\"dtype\":\"F64\"");
            s += 13;
        } else if (sscanf(s, offsets, &begin, &end, &n) == 2 && n > 0) {
            to += sprintf(to, "\"data_offsets\":[%" PRIu64 ",", 2 * begin);
            to += sprintf(to, "%" PRIu64 "]", 2 * end);
            s += n;
        } else {
            *to++ = *s++;
        }
    }
    while ((to - out) % 8 != 0) {
        *to++ = ' ';
    }
    return (size_t)(to - out);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: stwide FILE OUT\n");
        return 2;
    }
    FILE *in = fopen(argv[1], "rb");
    unsigned char length[8];
    if (in == NULL || fread(length, 1, 8, in) != 8) {
        die(argv[1], "cannot be read");
    }
    uint64_t size = 0;
    for (int i = 7; i >= 0; i--) {
        size = size << 8 | length[i];
    }
    char *header = size < 1 << 24 ? calloc(1, size + 1) : NULL;
    char *wide = header != NULL ? malloc(2 * size + 8) : NULL;
    if (wide == NULL || fread(header, 1, size, in) != size) {
        die(argv[1], "has no header");
    }
    size = widen(argv[1], header, wide);
    for (int i = 0; i < 8; i++) {
        length[i] = (unsigned char)(size >> 8 * i);
    }
    FILE *out = fopen(argv[2], "wb");
    if (out == NULL || fwrite(length, 1, 8, out) != 8 || fwrite(wide, 1, size, out) != size) {
        die(argv[2], "cannot be written");
    }
    for (float value; fread(&value, sizeof value, 1, in) == 1;) {
        const double same = value;
        if (fwrite(&same, sizeof same, 1, out) != 1) {
            die(argv[2], "cannot be written");
        }
    }
    if (ferror(in) || fclose(out) != 0) {
        die(argv[2], "is not whole");
    }
    fclose(in);
    free(header);
    free(wide);
    return 0;
}
