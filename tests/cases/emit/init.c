/* init: emitted by mdlc 0.1.0 from init.mdl.
 * Source sha256: 350fd8fe7dc0ad1e2c3be66e90243cd9ecdb2624afe366dd06bde7b29c2645b3
 * Options: --threads=8 --no-main
 * Build:
 *     cc -O3 -march=native -fopenmp -ffp-contract=off -fno-math-errno -fno-trapping-math x.c -c -o x.o
 * It also builds and runs, slower, without any of these flags.
 *
 * Memory in bytes; all of it is the caller's, nothing is allocated:
 *   params   128  weights
 *   state    64  optimizer slots, states, counters
 *   io       64  results
 *   arena    0  scratch, dead between calls
 *   total    256
 * and at most 8576 bytes of stack a thread, for up to 8 threads.
 *
 *   init_init: arena 0 (least possible 0), FLOPs 24, bytes moved 64
 *   init_run: arena 0 (least possible 0), FLOPs 36, bytes moved 96
 */
#ifdef MD_RUNTIME
#error "several models in one file: compile each alone, or emit them with --runtime=whole"
#elif defined(__GNUC__) && __GNUC__ >= 8 && defined(__OPTIMIZE__) /* it takes long */
#pragma GCC optimize("no-ipa-cp-clone")
#endif
#define MD_RUNTIME


/* ---- interface ---- */

#define INIT_ALIGN 64
#define INIT_PARAMS_BYTES 128 /* weights */
#define INIT_STATE_BYTES 64 /* optimizer slots, states, counters */
#define INIT_IO_BYTES 64 /* results */
#define INIT_ARENA_BYTES 0 /* scratch, dead between calls */
#define INIT_ARENA_INIT_BYTES 0
#define INIT_ARENA_RUN_BYTES 0

/* What every function returns. */
enum {
    INIT_OK = 0, /* ok */
    INIT_ERR_ARGUMENT = 1, /* a null pointer or a value outside its documented range */
    INIT_ERR_SIZE = 2, /* a memory region is smaller than declared */
    INIT_ERR_ALIGN = 3, /* a memory region is not aligned as declared */
    INIT_ERR_READ = 4, /* the reader failed or ended early */
    INIT_ERR_WRITE = 5, /* the writer failed */
    INIT_ERR_FORMAT = 6, /* not a safetensors file */
    INIT_ERR_NAME = 7, /* a tensor is missing or unknown */
    INIT_ERR_SHAPE = 8, /* a tensor has another type or shape */
    INIT_ERR_RANGE = 9, /* an input, or a number of a file, is outside its declared range */
    INIT_ERR_NONFINITE = 10, /* the loss or the gradient norm is NaN or infinite */
    INIT_ERR_STATE = 11 /* called too early: no memory is bound, or a ring has too few rows */
};

typedef md_memory init_memory;

/* An instance. The caller owns it and its memory; one call at a time. */
typedef struct init {
    unsigned char *params, *state, *io, *arena;
    int bound;
} init;

typedef struct init_run_in {
    const float *x; /* [2, 3] */
} init_run_in;

typedef struct init_run_out {
    const float *y; /* [2, 3] */
} init_run_out;

#ifdef __cplusplus
extern "C" {
#endif
/* Checks presence, sizes and alignment; allocates nothing. */
int init_bind(init *m, const init_memory *mem);
/* Every weight and state from the seed. */
int init_init(init *m, uint64_t seed);
/* The output for one batch. */
int init_run(init *m, const init_run_in *in, init_run_out *out);
const char *init_strerror(int code);
#ifdef __cplusplus
}
#endif

/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int init_refused(const init *m) {
    return m != NULL && !m->bound ? INIT_ERR_STATE : INIT_ERR_ARGUMENT;
}

/* init.mdl:5  model net(x: [B, N]) -> [B, N] { return x |> fc: linear(out = N); }  [2, 3] */
static void init_run_y(float *MD_RESTRICT y, const float *MD_RESTRICT x,
        const float *MD_RESTRICT weight, const float *MD_RESTRICT bias) {
    for (int64_t i = 0; i < 2; i++) {
        const float x_value = x[i * 3];
        const float x_value_2 = x[i * 3 + 1];
        const float x_value_3 = x[i * 3 + 2];
        MD_IVDEP
        for (int64_t i_2 = 0; i_2 < 3; i_2++) {
            y[i * 3 + i_2] = x_value * weight[i_2 * 3] + x_value_2 * weight[i_2 * 3 + 1] + x_value_3 * weight[i_2 * 3 + 2] + bias[i_2];
        }
    }
}

/* init_run: 1 steps, 0 bytes of arena, 36 FLOPs, line 7 */
int init_run(init *m, const init_run_in *in, init_run_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return init_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [2, 3] */
    /* results */
    float *y = MD_AT(float, m->io, 0); /* [2, 3] */
    /* params */
    const float *fc_weight = MD_AT(const float, m->params, 0); /* [3, 3] */
    const float *fc_bias = MD_AT(const float, m->params, 64); /* [3] */

    /* fc, line 5: model net(x: [B, N]) -> [B, N] { return x |> fc: linear(out = N); } */
    init_run_y(y, x, fc_weight, fc_bias); /* 0 */
    out->y = y;
    return INIT_OK;
}

/* init.mdl:5  model net(x: [B, N]) -> [B, N] { return x |> fc: linear(out = N); }  [3, 3]; called at 2 places */
static void init_bias(float *MD_RESTRICT weight_next, const int64_t *MD_RESTRICT seed,
        uint64_t site0, int64_t n) {
    const md_key key = md_key_make((uint64_t)seed[0], site0, (uint64_t)0);
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        weight_next[i] = md_madf(md_rand_uniform_f32(key, (uint64_t)i), 1.1547005f, -0.57735026f);
    }
}

/* init_init: 3 steps, 0 bytes of arena, 24 FLOPs */
int init_init(init *m, uint64_t seed) {
    if (m == NULL || !m->bound) {
        return init_refused(m);
    }
    /* params */
    float *fc_weight = MD_AT(float, m->params, 0); /* [3, 3] */
    float *fc_bias = MD_AT(float, m->params, 64); /* [3] */
    /* state */
    int64_t *seed_ = MD_AT(int64_t, m->state, 0); /* i64 seed */

    *seed_ = (int64_t)seed;
    /* fc, line 5: model net(x: [B, N]) -> [B, N] { return x |> fc: linear(out = N); } */
    init_bias(fc_weight, seed_, UINT64_C(18328856871208909481), 9); /* 1 */
    init_bias(fc_bias, seed_, UINT64_C(7944105771414287370), 3); /* 2 */
    return INIT_OK;
}

/* ---- runtime ---- */

#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/* ---- memory and files of the model ---- */

enum {
    INIT_SAVE_PARAMS = MD_SAVE_PARAMS,
    INIT_SAVE_ALL = MD_SAVE_ALL,
    INIT_SAVE_RINGS = MD_SAVE_RINGS
};

#ifdef __cplusplus
extern "C" {
#endif
/* A safetensors file: INIT_SAVE_PARAMS, or INIT_SAVE_ALL for an exact resume (with
 * | INIT_SAVE_RINGS the rows of rings too). */
int init_save(const init *m, unsigned what, md_write_fn write, void *user);
/* Checks every name, type and shape before it writes a byte. */
int init_load(init *m, md_read_fn read, void *user);
const md_tensor *init_tensors(size_t *count);
#ifdef __cplusplus
}
#endif

static const md_tensor init_tensor_table[3] = {
    /* name, dtype, region, kind, trainable, rank, shape, offset, bytes,
     * copy of, split, transposed, lo, hi */
    {"fc.weight", MD_F32, MD_PARAMS, MD_PARAM, 0, 2, {3, 3}, 0, 36, 0, 0, 0, 0, 0},
    {"fc.bias", MD_F32, MD_PARAMS, MD_PARAM, 0, 1, {3}, 64, 12, 0, 0, 0, 0, 0},
    {"mdlc.seed", MD_I64, MD_STATE, MD_SLOT, 0, 0, {0}, 0, 8, 0, 0, 0, 0, 0},
};

const md_tensor *init_tensors(size_t *count) {
    if (count != NULL) {
        *count = 3;
    }
    return init_tensor_table;
}

int init_bind(init *m, const init_memory *mem) {
    if (m == NULL || mem == NULL) {
        return INIT_ERR_ARGUMENT;
    }
    m->bound = 0;
    const struct {
        const void *at;
        size_t bytes, least;
    } region[] = {
        {mem->params, mem->params_bytes, INIT_PARAMS_BYTES},
        {mem->state, mem->state_bytes, INIT_STATE_BYTES},
        {mem->io, mem->io_bytes, INIT_IO_BYTES},
    };
    for (int i = 0; i < 3; i++) {
        const int small = region[i].bytes < region[i].least;
        if (region[i].at == NULL || small || (uintptr_t)region[i].at % INIT_ALIGN != 0) {
            return region[i].at == NULL ? INIT_ERR_ARGUMENT : small ? INIT_ERR_SIZE : INIT_ERR_ALIGN;
        }
    }
    m->params = (unsigned char *)mem->params;
    m->state = (unsigned char *)mem->state;
    m->io = (unsigned char *)mem->io;
    m->arena = (unsigned char *)mem->arena;
    m->bound = 1;
    return INIT_OK;
}

static md_memory init_regions(const init *m) {
    const md_memory memory = {m->params, m->state, m->io, m->arena, INIT_PARAMS_BYTES,
                              INIT_STATE_BYTES, INIT_IO_BYTES, INIT_ARENA_BYTES};
    return memory;
}

int init_save(const init *m, unsigned what, md_write_fn write, void *user) {
    if (m == NULL || !m->bound || write == NULL ||
            (what != INIT_SAVE_PARAMS && (what | INIT_SAVE_RINGS) != (INIT_SAVE_ALL | INIT_SAVE_RINGS))) {
        return init_refused(m);
    }
    const md_memory memory = init_regions(m);
    return md_save_tensors(init_tensor_table, 3, &memory, what, NULL, NULL, write, user);
}

int init_load(init *m, md_read_fn read, void *user) {
    if (m == NULL || !m->bound || read == NULL) {
        return init_refused(m);
    }
    const md_memory memory = init_regions(m);
    unsigned char seen[3];
    /* A checkpoint if it is one, else weights. */
    const unsigned what[2] = {MD_SAVE_ALL | MD_SAVE_RINGS, MD_SAVE_PARAMS};
    int code = INIT_ERR_NAME;
    for (int i = 0; i < 2 && code == INIT_ERR_NAME; i++) {
        md_load l;
        memset(&l, 0, sizeof l);
        code = md_load_tensors(&l, init_tensor_table, 3, &memory, what[i], seen, read, user);
    }
    return code;
}

const char *init_strerror(int code) {
    switch (code) {
    case INIT_OK: return "ok";
    case INIT_ERR_ARGUMENT: return "a null pointer or a value outside its documented range";
    case INIT_ERR_SIZE: return "a memory region is smaller than declared";
    case INIT_ERR_ALIGN: return "a memory region is not aligned as declared";
    case INIT_ERR_READ: return "the reader failed or ended early";
    case INIT_ERR_WRITE: return "the writer failed";
    case INIT_ERR_FORMAT: return "not a safetensors file";
    case INIT_ERR_NAME: return "a tensor is missing or unknown";
    case INIT_ERR_SHAPE: return "a tensor has another type or shape";
    case INIT_ERR_RANGE: return "an input, or a number of a file, is outside its declared range";
    case INIT_ERR_NONFINITE: return "the loss or the gradient norm is NaN or infinite";
    case INIT_ERR_STATE: return "called too early: no memory is bound, or a ring has too few rows";
    default: return "unknown status";
    }
}

