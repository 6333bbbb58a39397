/* compile: one run of the compiler. All state hangs off this, so several may run in one process. */
#ifndef MDLC_COMPILER_COMPILE_H
#define MDLC_COMPILER_COMPILE_H

#include "compiler/diag.h"
#include "compiler/type.h"

typedef VEC(const char *) Paths;

typedef struct {
    const char *name;  /* of a top-level dim or const */
    const char *value; /* text of an .mdl expression without names */
} Override;

typedef enum {
    COMMAND_COMPILE,
    COMMAND_CHECK,
    COMMAND_REPORT,
    COMMAND_TEST,
    COMMAND_RUN,
    COMMAND_FMT,
    COMMAND_EXPLAIN,
    COMMAND_FLAGS,
    COMMAND_INIT,
    COMMAND_DIFF
} Command;

enum { THREADS_USUAL = 8 }; /* the most that the bound provides for, without --threads */

typedef enum { REPORT_NONE, REPORT_TEXT, REPORT_JSON, REPORT_HTML } ReportFormat;

typedef struct {
    const char *name; /* of an input of `mdlc run`, or of an output */
    const char *path;
} Binding;

typedef struct {
    Command command;
    uint64_t given;      /* options that not all commands or targets have, see driver/options.c */
    const char *input;   /* path of the model file; of COMMAND_EXPLAIN a code, of COMMAND_INIT a
                            template, of both NULL where none was given */
    const char *other;   /* of COMMAND_DIFF: the second report; `input` is the first */
    const char *output;  /* -o; NULL: nothing is written; "-": Compile.out */
    const char *header;  /* -H */
    const char *prefix;  /* of emitted names; NULL: file stem */
    const char *depfile; /* -MF; NULL with depend: output with .d */
    bool depend;         /* -MD */
    bool depend_rules;   /* -MP: a rule for each module too */
    bool line;           /* --line: a debugger shows the source */
    bool no_main;
    int split;           /* --split: that many more C files; 0: one alone */
    bool profile;       /* --profile: the program notes how long its calls take */
    bool whole_runtime; /* --runtime=whole */
    bool openblas;
    const struct Target *target; /* what planning knows of the machine; NULL: target_cpu */
    bool nan;                    /* --checks=nan: each operation apart, its values looked at */
    Elem storage;                /* of tests: of f32 values between kernels; TY_ERROR: f32 */
    uint64_t stored; /* of tests: a random part of all values is stored, by this number; 0: none */
    bool canary;     /* --checks=canary: guard bands in the arena, looked at after each step */
    int threads;     /* the most threads the bound provides for */
    Elem float_type; /* what an unmarked float type means; TY_ERROR: as the source says, until that
                        is elaborated */
    Elem half;       /* in what all entries multiply; TY_ERROR: as their trains say */
    bool always;     /* also where that costs time */
    bool no_master;  /* parameters that trains update are kept in bf16 */
    int64_t budget;  /* --budget in bytes, -1: as the source says */
    bool rounding;   /* for it sums may be made in another order */
    Override *override;
    int noverride;
    const char *dump;    /* --dump=STAGE: print after that stage and end */
    bool stats;          /* --stats: print counts */
    bool what_if;        /* report: and what changes would do */
    ReportFormat report; /* printed beside a compile; command report: the format asked for */
    const char *entry;   /* run: which entry; NULL: the first */
    uint64_t seed;       /* run, test */
    int64_t calls;       /* run: how many times */
    Binding *binding;    /* run: --in NAME=FILE.npy */
    int nbinding;
    const struct Machine *machine; /* --for; NULL: flags: this one, else any */
    const char *compiler;          /* flags: --cc; NULL: cc */
    bool libraries;                /* flags: --libs */
    const char *data;              /* init: --data */
    const char *column;            /* --target as given; init: NULL is the last one */
    bool force, templates;         /* init: --force, --list */
    int64_t growth;                /* diff: --max-growth in bytes, */
    double growth_share;           /* or in percent; -1: in bytes */
} Options;

typedef struct Compile {
    Arena arena; /* everything that lives as long as the compile */
    Diag diag;
    FILE *out; /* stdout, or a memory stream in tests and fuzzers */
    Options opt;
    int64_t total_bytes; /* that the program declares, once there is one */
    int64_t rounded_bytes; /* it could declare with `rounding`, where a budget is too small; 0 */
} Compile;

#endif
