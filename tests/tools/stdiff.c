/* stdiff: compares two safetensors files tensor by tensor.
 *
 *     stdiff FILE REFERENCE TOLERANCE
 *
 * Every tensor of REFERENCE must be in FILE with the same type and shape and with a relative error,
 * |a - b| / |b| in the Euclidean norm, of at most TOLERANCE; 0 asks for the same bytes. F32 and F64
 * are compared as numbers, other types byte by byte. Prints one line a tensor; status 1 when one
 * differs, 2 when a file cannot be read. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TENSORS = 512, NAME_BYTES = 256, SHAPE_BYTES = 128 };

typedef struct {
    char name[NAME_BYTES], dtype[8], shape[SHAPE_BYTES];
    uint64_t begin, end;
} Tensor;

typedef struct {
    unsigned char *bytes, *data; /* data: where the offsets count from */
    uint64_t size, data_size;
    Tensor tensor[MAX_TENSORS];
    int count;
} File;

static void die(const char *path, const char *what) {
    fprintf(stderr, "stdiff: %s: %s\n", path, what);
    exit(2);
}

/* The headers of safetensors are JSON objects of objects without escapes in what is read here. */
static const char *skip_blank(const char *s) {
    while (*s == ' ' || *s == '\n' || *s == '\t' || *s == ',' || *s == ':') {
        s++;
    }
    return s;
}

static const char *read_string(const char *s, char *out, size_t size) {
    size_t n = 0;
    for (s++; *s != '"' && *s != '\0'; s++) {
        if (n + 1 < size) {
            out[n++] = *s;
        }
    }
    out[n] = '\0';
    return *s == '"' ? s + 1 : s;
}

static const char *skip_object(const char *s) {
    int depth = 0;
    do {
        if (*s == '"') {
            char unused[2];
            s = read_string(s, unused, sizeof unused);
            continue;
        }
        depth += (*s == '{') - (*s == '}');
        s++;
    } while (depth > 0 && *s != '\0');
    return s;
}

static const char *read_tensor(const char *path, const char *s, Tensor *t) {
    if (*s != '{') {
        die(path, "the header is not as expected");
    }
    for (s = skip_blank(s + 1); *s == '"'; s = skip_blank(s)) {
        char key[32];
        s = skip_blank(read_string(s, key, sizeof key));
        if (strcmp(key, "dtype") == 0) {
            s = read_string(s, t->dtype, sizeof t->dtype);
        } else if (strcmp(key, "shape") == 0) {
            size_t n = strcspn(s, "]");
            snprintf(t->shape, sizeof t->shape, "%.*s]", (int)n, s);
            s += n + 1;
        } else if (strcmp(key, "data_offsets") == 0) {
            if (sscanf(s, "[%" SCNu64 " , %" SCNu64, &t->begin, &t->end) != 2) {
                die(path, "bad data_offsets");
            }
            s += strcspn(s, "]") + 1;
        } else {
            die(path, "an unknown key in the header");
        }
    }
    return s + (*s == '}');
}

static File *file_read(const char *path) {
    File *f = calloc(1, sizeof *f);
    FILE *in = fopen(path, "rb");
    if (f == NULL || in == NULL || fseek(in, 0, SEEK_END) != 0) {
        die(path, "cannot be read");
    }
    long size = ftell(in);
    rewind(in);
    if (size < 8 || (f->bytes = malloc((size_t)size + 1)) == NULL ||
        fread(f->bytes, 1, (size_t)size, in) != (size_t)size) {
        die(path, "is short");
    }
    fclose(in);
    f->size = (uint64_t)size;
    uint64_t header = 0;
    for (int i = 7; i >= 0; i--) {
        header = header << 8 | f->bytes[i];
    }
    if (header > f->size - 8) {
        die(path, "the header is longer than the file");
    }
    f->data = f->bytes + 8 + header;
    f->data_size = f->size - 8 - header;
    char *text = malloc((size_t)header + 1);
    if (text == NULL) {
        die(path, "no memory");
    }
    memcpy(text, f->bytes + 8, (size_t)header);
    text[header] = '\0';
    const char *s = skip_blank(text);
    for (s = skip_blank(s + (*s == '{')); *s == '"'; s = skip_blank(s)) {
        char name[NAME_BYTES];
        s = skip_blank(read_string(s, name, sizeof name));
        if (strcmp(name, "__metadata__") == 0) {
            s = skip_object(s);
            continue;
        }
        if (f->count == MAX_TENSORS) {
            die(path, "too many tensors");
        }
        Tensor *t = &f->tensor[f->count++];
        memcpy(t->name, name, sizeof name);
        s = read_tensor(path, s, t);
        if (t->begin > t->end || t->end > f->data_size) {
            die(path, "an offset lies outside the file");
        }
    }
    free(text);
    return f;
}

static const Tensor *file_find(const File *f, const char *name) {
    for (int i = 0; i < f->count; i++) {
        if (strcmp(f->tensor[i].name, name) == 0) {
            return &f->tensor[i];
        }
    }
    return NULL;
}

static double element(const unsigned char *data, uint64_t i, bool is_double) {
    if (is_double) {
        double d;
        memcpy(&d, data + 8 * i, sizeof d);
        return d;
    }
    float f;
    memcpy(&f, data + 4 * i, sizeof f);
    return (double)f;
}

/* Gives the relative error, or infinity where the tensors are of different kinds. */
static double tensor_error(const File *fa, const Tensor *a, const File *fb, const Tensor *b) {
    uint64_t bytes = b->end - b->begin;
    const unsigned char *da = fa->data + a->begin, *db = fb->data + b->begin;
    if (strcmp(a->dtype, b->dtype) != 0 || strcmp(a->shape, b->shape) != 0 ||
        a->end - a->begin != bytes) {
        return INFINITY;
    }
    if (memcmp(da, db, (size_t)bytes) == 0) {
        return 0;
    }
    bool is_double = strcmp(b->dtype, "F64") == 0;
    if (!is_double && strcmp(b->dtype, "F32") != 0) {
        return INFINITY;
    }
    double difference = 0, size = 0;
    for (uint64_t i = 0; i < bytes / (is_double ? 8 : 4); i++) {
        double x = element(da, i, is_double), y = element(db, i, is_double);
        difference += (x - y) * (x - y);
        size += y * y;
    }
    double error = sqrt(difference / size);
    return error == 0 ? 5e-324 : error; /* other bytes, same numbers: 0 and -0 */
}

static void file_free(File *f) {
    free(f->bytes);
    free(f);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: stdiff FILE REFERENCE TOLERANCE\n");
        return 2;
    }
    File *a = file_read(argv[1]), *b = file_read(argv[2]);
    double tolerance = strtod(argv[3], NULL);
    bool differ = b->count == 0;
    for (int i = 0; i < b->count; i++) {
        const Tensor *tb = &b->tensor[i], *ta = file_find(a, tb->name);
        double error = ta == NULL ? INFINITY : tensor_error(a, ta, b, tb);
        bool good = error <= tolerance; /* NaN is not good */
        printf("%s %-28s %s %s relative error %.2e\n", good ? "ok " : "BAD", tb->name, tb->dtype,
               tb->shape, error);
        differ |= !good;
    }
    file_free(a);
    file_free(b);
    return differ ? 1 : 0;
}
