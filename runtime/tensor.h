/* SPDX-License-Identifier: 0BSD */
/* tensor: the types that an emitted model shares with whoever embeds it: element types, the table
 * of its persistent tensors, the four memory regions, and the two callbacks of save and load.
 * Several emitted headers may be included side by side, hence one guard around all of it.
 * Needs nothing, gives declarations only. */
#ifndef MD_TENSOR_H
#define MD_TENSOR_H

#include <stddef.h>
#include <stdint.h>

enum { MD_MAX_RANK = 12 };

/* Element types. The order is part of nothing: files carry names. */
typedef enum md_dtype {
    MD_BOOL = 1,
    MD_I8,
    MD_I16,
    MD_I32,
    MD_I64,
    MD_U8,
    MD_U16,
    MD_U32,
    MD_U64,
    MD_F16,
    MD_BF16,
    MD_F32,
    MD_F64
} md_dtype;

typedef enum md_region { MD_PARAMS, MD_STATE, MD_IO, MD_ARENA, MD_REGIONS } md_region;

/* What a persistent tensor is, and with it which files carry it. */
typedef enum md_kind {
    MD_PARAM,       /* weight: in weights files and checkpoints */
    MD_LAYER_STATE, /* statistics of a layer: in both; a file without it leaves it as is */
    MD_SLOT,        /* optimizer slot, counter, cursor: in checkpoints only */
    MD_RING         /* rows of a ring: in checkpoints that ask for them */
} md_kind;

/* A set of kinds, for save and load. */
enum {
    MD_SAVE_PARAMS = 1 << MD_PARAM | 1 << MD_LAYER_STATE,
    MD_SAVE_ALL = MD_SAVE_PARAMS | 1 << MD_SLOT,
    MD_SAVE_RINGS = 1 << MD_RING, /* beside MD_SAVE_ALL */
    MD_LOAD_EXACT = 1 << 8,       /* of a load: floats of other types are refused; */
    MD_LOAD_SOME = 1 << 9         /* what the file lacks stays as it is */
};

typedef struct md_tensor {
    const char *name; /* as in files: "fc1.weight", or with `split` a pattern, "h.{}.weight"; slots
                         carry the reserved prefix "mdlc." */
    md_dtype dtype;
    md_region region; /* MD_PARAMS or MD_STATE */
    md_kind kind;
    int trainable; /* 1: some train updates it */
    int rank;
    int64_t shape[MD_MAX_RANK]; /* row-major, dense */
    size_t offset;              /* from the start of its region */
    size_t bytes;
    size_t copy_of; /* 1 + the place in the table of the tensor whose value it takes on when a file
                       without it is loaded; 0: none */
    int split;      /* so many first axes are spread over files, a tensor for each place, whose
                       number stands for each `{}` of the name; 0: it is one tensor there too */
    int transposed; /* 1: its other axes, two, are the other way round in files */
    int64_t lo, hi; /* its integers are at least lo and below hi; lo == hi: any */
} md_tensor;

/* The memory of one instance. The caller owns it; the arena is dead between calls. */
typedef struct md_memory {
    void *params, *state, *io, *arena;
    size_t params_bytes, state_bytes, io_bytes, arena_bytes;
} md_memory;

/* What the loops of an instance have seen of their threads, in seconds; all zero at first. */
typedef struct md_pace {
    double fork;        /* when the last loop was begun */
    int weight;         /* for how many loops it speaks; 0: it is not measured */
    int count, watch;   /* loops until one is measured, and how many are from now on */
    double first;       /* what its first part took */
    double debt, saved; /* what threads lost lately, and saved since they were last called upon */
    double rest, until; /* how long they were left alone, and until when */
    char apart[64];     /* another thread writes what follows */
    double last;        /* what the last part took */
    int alone;          /* the call under way has one thread */
} md_pace;

/* if: calls */
/* What calls of one entry took, on several threads and on one; all zero at first. */
typedef struct md_calls {
    int alone;       /* they are made on one thread, */
    int every, at;   /* for so many calls; then some are timed, and as many the other way */
    double begun;    /* when the one under way was, if it is timed */
    double least[2]; /* seconds of those timed; [1]: on one thread */
} md_calls;
/* end: calls */

/* Takes the next `bytes` of a file being saved; 0, or what save then returns. */
typedef int (*md_write_fn)(void *user, const void *data, size_t bytes);

/* Gives `bytes` bytes at `offset` of a file being loaded; not 0 when it has not all of them. */
typedef int (*md_read_fn)(void *user, uint64_t offset, void *data, size_t bytes);

#endif
