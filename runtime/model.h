/* SPDX-License-Identifier: 0BSD */
/* model: the constant table by which the generic `main` (main.h) drives an emitted model.
 *
 * The compiler prints one `static const md_model` with positional initialisers (C++ knows no others
 * before C++20) and, for each entry, an adapter of a few lines from `md_call` to the typed
 * function of the API. Everything that the command line, the data reader, the log and the files
 * need to know stands here; main.h knows nothing of the model besides.
 * Needs tensor.h, gives declarations only. */
#ifndef MD_MODEL_H
#define MD_MODEL_H

#include "runtime/canary_report.h"
#include "runtime/nan_origin.h"
#include "runtime/profiled.h"
#include "runtime/tensor.h"

/* ---- data sets ------------------------------------------------------------------------------ */

typedef enum md_source {
    MD_COLUMNS, /* columns first .. first + count - 1 of a csv row, or elements of a flat record */
    MD_RECORD,  /* a whole record of `count` elements (all columns, one image, one label) */
    /* if: windows */
    MD_WINDOW, /* row i is the `count` elements from i * stride + first on */
    /* end: windows */
    /* if: made */
    MD_MADE /* no file: `load` makes the row of two i64, the file's seed and the row's number */
    /* end: made */
} md_source;

/* The parts of a data set. Rows to test on are looked at by `eval --part test` alone. */
enum { MD_PART_TRAIN, MD_PART_HELD, MD_PART_TEST, MD_PARTS };

/* if: ordered */
/* The order of the rows of an epoch. */
typedef enum md_order {
    MD_AS_FILED, /* that of the file */
    MD_SHUFFLED, /* a fresh one in every epoch */
    MD_STREAMS   /* row b of a batch goes on where row b of the batch before ended */
} md_order;
/* end: ordered */

/* One `file` clause. */
typedef struct md_file {
    const char *name;            /* of the clause, for messages and --data: "img" */
    const char *paths[MD_PARTS]; /* as written in the source; NULL: no file for that part */
    /* if: made */
    int64_t rows, seed; /* rows > 0: no file, MD_MADE makes the rows from the seed */
    /* end: made */
} md_file;

/* if: norm */
/* Constants of a field, computed from the rows to train on. The model applies them. */
typedef enum md_norm {
    MD_NORM_NONE,
    MD_NORM_STANDARDIZE, /* mean and standard deviation, over n; a deviation of 0 counts as 1 */
    MD_NORM_MINMAX       /* least value and distance to the largest; a distance of 0 counts as 1 */
} md_norm;
/* end: norm */

/* One field of a data set. The raw row (`count` elements of type `raw`, whatever type the file
 * has) goes through `load` and becomes one row of type `dtype` and shape `shape`. */
typedef struct md_field {
    const char *name;
    int file; /* index in md_dataset.files */
    md_source source;
    int64_t first;  /* MD_COLUMNS: first column; MD_WINDOW: offset; else 0 */
    int64_t count;  /* raw elements of a row */
    /* if: windows */
    int64_t stride; /* MD_WINDOW: elements from row to row; else 0 */
    /* end: windows */
    md_dtype raw;   /* element type that `load` reads */
    md_dtype dtype; /* element type of the field */
    int rank;       /* of one row, without the batch axis */
    int64_t shape[MD_MAX_RANK];
    size_t row_bytes; /* of one row of the field */
    int64_t lo, hi;   /* declared range lo..hi, hi excluded; lo == hi: none */
    void (*load)(const void *raw, void *field); /* one row; NULL: convert element by element */
    /* if: norm */
    md_norm norm;
    /* Tensors of the model: the constants of `norm`, and from how many rows they come; 0: none. */
    int centre, spread, known;
    /* end: norm */
} md_field;

typedef struct md_dataset {
    const char *name;
    const md_file *files;
    int file_count;
    const md_field *fields;
    int field_count;
    /* k: every k-th row of the training files belongs to the part; 0: none. Test rows are taken
     * first, held-out rows from what is left. MD_PART_TRAIN: unused. */
    int64_t every[MD_PARTS];
    /* if: ordered */
    md_order order;
    /* end: ordered */
    /* if: passes */
    int in_ring;    /* 1: its rows are those of a ring, by number, as many as were pushed */
    size_t counter; /* then: an int64_t in the state region, how many were */
    /* end: passes */
} md_dataset;

/* ---- entries -------------------------------------------------------------------------------- */

/* What one call is given. Arrays are in the order of the tables of md_entry. */
typedef struct md_call {
    const void *const *in; /* one pointer an input, 64-byte aligned */
    const void **out;      /* MD_ENTRY: the call stores a pointer to each result */
    double *values; /* MD_TRAIN: loss, metrics, extras; eval: the partial sums of this batch */
    int64_t rows;   /* eval: rows in use, 1 .. eval_rows; else 0 */
} md_call;

/* What is no field of the data set. */
enum { MD_FROM_OPTIONS = -1, /* --in or --set gives it */ MD_ROWS_IN_USE = -2 /* of the batch */ };

/* One tensor that goes in (a field of *_in) or comes out (a field of *_out). */
typedef struct md_port {
    const char *name;
    md_dtype dtype;
    int rank; /* with the batch axis; 0: a scalar */
    int64_t shape[MD_MAX_RANK];
    size_t bytes;
    int field;        /* input: index in the fields of the entry's data set; or one of these: */
    size_t io_offset; /* input: where in the io region it is staged; output: unused, 0 */
    int64_t lo, hi;   /* input: declared range, hi excluded; lo == hi: none */
    /* if: scalars */
    int optional; /* input: a scalar that is `initial` where --in and --set say nothing */
    double initial;
    /* end: scalars */
} md_port;

/* A scalar in the state region that is set from outside between `init` and the first call. */
typedef struct md_scalar {
    const char *name; /* as --set names it */
    md_dtype dtype;
    size_t offset; /* in the state region */
} md_scalar;

/* if: rings */
/* Rows that a ring must hold before the entry may be called. */
typedef struct md_need {
    const char *ring;
    size_t counter; /* of the rows pushed so far, an int64_t in the state region */
    int64_t rows;
    int line; /* of the model text */
} md_need;
/* end: rings */

/* if: passes */
/* Rows that a call puts into a ring. */
typedef struct md_push {
    size_t counter; /* of the rows pushed so far, an int64_t in the state region */
    int64_t rows;   /* 0: those of the batch that are in use */
} md_push;
/* end: passes */

/* A pass is an entry that stands in a phase: it is called with batch after batch of its data. */
typedef enum md_entry_kind { MD_TRAIN, MD_ENTRY, MD_PASS } md_entry_kind;

typedef struct md_entry {
    const char *name;
    md_entry_kind kind;
    int (*call)(void *net, const md_call *call); /* one update, or one call; 0 or a status code */
    const md_port *inputs; /* of `call` and of `eval` */
    int input_count;
    const md_port *outputs; /* MD_ENTRY only */
    int output_count;
    /* if: hypers */
    const md_scalar *hypers; /* run-time hyper-parameters, set by --set */
    int hyper_count;
    /* end: hypers */
    /* if: rings */
    const md_need *needs;
    int need_count;
    /* MD_TRAIN: what its call pushes, and no update, for when a ring is too short; NULL: none. It
     * takes the inputs of `call`. */
    int (*fill)(void *net, const md_call *call);
    /* end: rings */
    /* The rest is for MD_TRAIN, of MD_PASS the data: dataset -1 and zeros for an MD_ENTRY. */
    int dataset;            /* index in md_model.datasets; -1: none */
    int64_t rows;           /* rows of data that one call takes (accumulate k: k * B) */
    int64_t eval_rows;      /* rows of data that one call of `eval` takes at most: B */
    int64_t steps, epochs;  /* clause of the source; 0: not given; at most one of them */
    const md_scalar *plan;  /* where the planned number of updates goes; NULL: nobody reads it */
    const md_scalar *epoch; /* where the number of finished epochs goes; NULL: nobody reads it */
    const char *const *metrics; /* values[1 ...] of a step and of an evaluation */
    int metric_count;
    const char *const *extras; /* further values of a step: "lr", "grad_norm" */
    int extra_count;
    int (*eval)(void *net, const md_call *call); /* NULL: no evaluation */
    int eval_sums;                               /* numbers that `eval` stores */
    /* NAME_eval_sums, an int64_t and behind it eval_sums doubles -> loss, metrics */
    void (*eval_end)(const void *net, const void *sums, double *values);
    const md_traced *traced; /* its steps, to say where a NaN came from */
    /* if: passes */
    const md_push *pushes;
    int push_count;
    /* end: passes */
    /* if: scaled */
    int scaled; /* 1 + the extra that is a gradient norm; a step where it is not finite has changed
                   nothing but the scale of the loss; 0: there is no such */
    /* end: scaled */
} md_entry;

/* ---- the model ------------------------------------------------------------------------------ */

/* if: phases */
/* A train or a pass in its place of the run without a name: those of one phase take turns. */
typedef struct md_phase {
    int entry; /* index in md_model.entries */
    int phase; /* 0, 1, ... */
} md_phase;
/* end: phases */

/* if: spans */
/* A stretch of the weights or of the state that some phases need. `last` before `first`: none
 * does, and it is zeros. */
typedef struct md_span {
    md_region region;
    size_t begin, end;
    int first, last; /* phases */
} md_span;
/* end: spans */

typedef struct md_model {
    const char *name;   /* "digits" */
    const char *source; /* file name of the model text, as given to the compiler */
    void *net;          /* the instance that main owns */
    int (*bind)(void *net, const md_memory *memory);
    int (*init)(void *net, uint64_t seed);
    const char *(*error)(int code);                          /* text of a status code */
    size_t params_bytes, state_bytes, io_bytes, arena_bytes; /* arena: maximum over the entries */
    size_t align;                                            /* of every region, a power of two */
    size_t stack_bytes;                                      /* per thread, of any call */
    int threads;                                             /* the most the bound provides for */
    const md_tensor *tensors;
    size_t tensor_count;
    const md_dataset *datasets;
    int dataset_count;
    const md_entry *entries; /* in the order of the source */
    int entry_count;
    /* if: phases */
    const md_phase *phases; /* in their order; may be empty */
    int phase_count;
    /* end: phases */
    /* if: spans */
    const md_span *spans; /* all of params and state, in their order */
    int span_count;       /* 0: all is there in all phases */
    const size_t *arenas; /* what each phase needs of the arena */
    int arena_count;
    /* How what begins with each phase begins, the first as `init` has it; NULL: as zeros. */
    int (*const *inits)(void *net, uint64_t seed);
    /* end: spans */
    const char *const *info; /* lines before the table of memory, NULL, those behind it, NULL */
    /* if: canary */
    const md_damage *damage; /* of the instance, with --checks=canary; else NULL */
    /* end: canary */
    uint32_t *notes;         /* of a call that is traced; NULL: no train */
    const void **trace;      /* of the instance: an md_tracing; NULL: all calls are traced */
    /* if: limits */
    const int *limit, *limit_lines; /* of the instance: which loop ended a call; by that number */
    /* end: limits */
    /* if: profile */
    const md_profiled *profiled; /* what is timed; 0 of them: nothing */
    int profiled_count;
    const md_profile_names *names;
    md_profile **profile; /* of the instance: where calls are noted; NULL there: nowhere */
    /* end: profile */
} md_model;

#endif
