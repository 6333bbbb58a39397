/* hostile FOLDER PROGRAM SEED PART PARTS KILLS: runs the program of tests/suites/hostile.mdl, built
 * with sanitizers and with tests/suites/faults.c, on several hundred damaged, odd and hostile
 * files, each in a process of its own; then it saves while system calls fail, while files may not
 * grow, and is killed KILLS times. PART of PARTS takes its share of the runs.
 *
 * A file is either taken, and then the program ends with 0 and has read the numbers that stand in
 * it, or it is refused: the documented status and one line on standard error that names the file,
 * the place and the reason. Never may a run hang, show a sanitizer's report, leave a temporary file
 * or change the weights that lie where it would have saved. Prints one line for each case that
 * fails, by the kind and the number of its file, and ends with "N passed, F failed, K skipped".
 *
 * hostile --files TARGET FOLDER: writes the files for which TARGET is the fuzz target.
 *
 * The files are made in hostile_files.h and the headers behind it, faults of saving in
 * hostile_saves.h. */
#define _GNU_SOURCE
#define LLVMFuzzerTestOneInput second_reader
#include "runtime/rng.h"
#include "tests/fuzz/fuzz_csv.c"
#include "tests/support.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { OUTPUT = 1 << 15, WORDS = 32, SEED_MOST = 4096, PATH = 512, SECONDS = 20, LINE_MOST = 2600 };

/* What a file is given to the program as. */
typedef enum { CSV, NPY, IMAGE, LABEL, TEXT, IN_X, IN_K, IN_M, LOAD, WAYS } Way;

typedef enum { TAKEN, REFUSED, EITHER } Want;

typedef struct {
    char folder[PATH / 2], keep[PATH];
    const char *program;
    uint64_t random;
    int passed, failed, skipped, number;
    int part, parts, turn; /* runs that another process makes */
    rlim_t limit;          /* of the size of files, for the next run; 0: none */
    const char *target;    /* nothing is run, files for this fuzz target are kept; NULL: run */
    uint8_t *kept;         /* the bytes of `keep` */
    size_t kept_size;
    char out[OUTPUT], err[OUTPUT];
} Hostile;

static Hostile h;

static uint64_t below(uint64_t n) {
    h.random += UINT64_C(0x9E3779B97F4A7C15);
    return md_mix64(h.random) % n;
}

/* ---- files ---------------------------------------------------------------------------------- */

static void write_file(const char *path, const void *bytes, size_t size) {
    if (!file_write(path, bytes, size)) {
        perror(path);
        exit(2);
    }
}

static uint8_t *read_file(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        return NULL;
    }
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    uint8_t *bytes = malloc(*size + 1);
    if (bytes == NULL || fread(bytes, 1, *size, f) != *size) {
        exit(2);
    }
    fclose(f);
    return bytes;
}

static const char *in_folder(const char *name) {
    static char path[8][PATH];
    static int turn;
    char *p = path[turn++ % 8];
    snprintf(p, PATH, "%s/%s", h.folder, name);
    return p;
}

/* The name of a temporary file in the folder, or NULL. */
static const char *temporary_left(void) {
    static char name[PATH];
    DIR *d = opendir(h.folder);
    name[0] = 0;
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        if (strstr(e->d_name, ".tmp") != NULL) {
            snprintf(name, sizeof name, "%s", e->d_name);
        }
    }
    closedir(d);
    return name[0] == 0 ? NULL : name;
}

/* ---- runs ----------------------------------------------------------------------------------- */

/* What the program wrote; a pipe holds more than it ever writes. */
static void drain(int fd, char *text) {
    size_t used = 0;
    for (ssize_t n; (n = read(fd, text + used, OUTPUT - 1 - used)) > 0;) {
        used += (size_t)n;
    }
    text[used] = 0;
    close(fd);
}

/* A program that runs. */
typedef struct {
    pid_t pid;
    int out, err;
} Run;

/* Starts the program. `closed`: a stream that it does not get. */
static Run start(char *const *words, int closed) {
    int out[2], err[2];
    if (pipe(out) != 0 || pipe(err) != 0) {
        perror("hostile");
        exit(2);
    }
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit limit = {h.limit, h.limit};
        alarm(SECONDS);
        if (dup2(out[1], 1) < 0 || dup2(err[1], 2) < 0) {
            _exit(99);
        }
        for (int fd = 3; fd <= err[1]; fd++) {
            close(fd);
        }
        if (closed >= 0) {
            close(closed);
        }
        if (h.limit > 0) {
            setrlimit(RLIMIT_FSIZE, &limit);
        }
        execv(h.program, words);
        _exit(99);
    }
    close(out[1]);
    close(err[1]);
    if (pid < 0) {
        perror("hostile");
        exit(2);
    }
    return (Run){pid, out[0], err[0]};
}

/* The status of a program, or 128 and its signal. */
static int ended(Run run) {
    int status = 0;
    if (waitpid(run.pid, &status, 0) != run.pid) {
        perror("hostile");
        exit(2);
    }
    drain(run.out, h.out);
    drain(run.err, h.err);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Words of a line; '@' in front stands for the scratch folder. */
static char **words_of(const char *line) {
    static char text[4096];
    static char *words[WORDS + 2];
    int n = 0;
    words[n++] = (char *)(uintptr_t)h.program;
    size_t used = 0;
    for (const char *p = line; *p != 0 && used + PATH < sizeof text; p++) {
        if (*p == '@') {
            used += (size_t)snprintf(text + used, PATH, "%s/", h.folder);
        } else {
            text[used++] = *p;
        }
    }
    text[used] = 0;
    for (char *w = strtok(text, " "); w != NULL && n <= WORDS; w = strtok(NULL, " ")) {
        words[n++] = w;
    }
    words[n] = NULL;
    return words;
}

static int run_line(const char *line, int closed) {
    return ended(start(words_of(line), closed));
}

/* Is this run one of this process? */
static int mine(void) {
    return h.turn++ % h.parts == h.part;
}

/* ---- judging -------------------------------------------------------------------------------- */

static void verdict(const char *name, const char *format, ...) MD_PRINTF(2, 3);
static void verdict(const char *name, const char *format, ...) {
    va_list list;
    h.failed++;
    printf("FAIL %s: ", name);
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    printf("; standard error: %.600s\n", h.err);
}

/* One line of stderr: "hostile: error: ..." with both texts, nothing that a terminal obeys. */
static const char *bad_message(const char *file, const char *text) {
    size_t n = strlen(h.err);
    if (n == 0 || h.err[n - 1] != '\n' || strchr(h.err, '\n') != h.err + n - 1 || n > LINE_MOST) {
        return "not one line";
    }
    for (size_t i = 0; i + 1 < n; i++) {
        if ((unsigned char)h.err[i] < 0x20 || h.err[i] == 0x7F) {
            return "a control character";
        }
    }
    if (strncmp(h.err, "hostile: error: ", 16) != 0) {
        return "not an error of the program";
    }
    return strstr(h.err, file) == NULL   ? "does not name the file"
           : strstr(h.err, text) == NULL ? "another reason"
                                         : NULL;
}

/* The number that says what was read: the metric `s` of a step, or the result `s`. */
static double found_s(void) {
    static const char *const keys[] = {"\"metrics\":{\"s\":", "\"values\":["};
    for (int i = 0; i < 2; i++) {
        const char *p = strstr(h.out, keys[i]);
        if (p != NULL) {
            p += strlen(keys[i]);
            return *p == 'n' ? (double)NAN : strtod(p, NULL);
        }
    }
    return 1e99;
}

static void judge(const char *name, int rc, Want want, int code, double s, const char *file,
                  const char *text) {
    int diverged = want == EITHER && rc == MD_EXIT_NUMBER && strstr(h.err, "the loss of") != NULL;
    int refused = !diverged && (want == REFUSED || (want == EITHER && rc != 0));
    const char *why = refused ? bad_message(file, text) : NULL;
    size_t size = 0;
    uint8_t *now = read_file(h.keep, &size);
    double got = found_s();
    if (diverged) {
        h.passed++; /* a damaged number is a number */
    } else if (rc != (refused ? code : 0)) {
        verdict(name, "status %d, expected %d (the text was to be '%s')", rc, refused ? code : 0,
                refused ? text : "");
    } else if (why != NULL) {
        verdict(name, "%s, '%s' in '%s' was expected", why, text, file);
    } else if (!refused && h.err[0] != 0) {
        verdict(name, "taken, but with a message");
    } else if (want == TAKEN && fabs(got - s) > 1e-5 * (1 + fabs(s)) && !(isnan(got) && isnan(s))) {
        verdict(name, "read as %.9g instead of %.9g", got, s);
    } else if (now == NULL || size != h.kept_size || memcmp(now, h.kept, size) != 0) {
        verdict(name, "the weights that were there are damaged");
        write_file(h.keep, h.kept, h.kept_size);
    } else if (temporary_left() != NULL) {
        verdict(name, "a temporary file is left: %s", temporary_left());
        unlink(in_folder(temporary_left()));
    } else {
        h.passed++;
    }
    free(now);
}

static const struct {
    const char *tail, *line; /* '%' is the file */
} ways[WAYS] = {
    [CSV] = {".csv", "fit --data table=% --log json"},
    [NPY] = {".npy", "fit_array --data array=% --log json"},
    [IMAGE] = {"-idx2-ubyte", "fit_image --data img=% --data lab=@good-idx1-ubyte --log json"},
    [LABEL] = {"-idx1-ubyte", "fit_image --data img=@good-idx2-ubyte --data lab=% --log json"},
    [TEXT] = {".txt", "fit_text --data text=% --log json"},
    [IN_X] = {".npy",
              "echo --load @good.st --in x=% --in k=@k.npy --in m=@m.npy --set gain=1 --log json"},
    [IN_K] = {".npy",
              "echo --load @good.st --in x=@x.npy --in k=% --in m=@m.npy --set gain=1 --log json"},
    [IN_M] = {".npy",
              "echo --load @good.st --in x=@x.npy --in k=@k.npy --in m=% --set gain=1 --log json"},
    [LOAD] = {".st",
              "echo --load % --in x=@x.npy --in k=@k.npy --in m=@m.npy --set gain=1 --log json"},
};

/* Gives the program a path in place of a file; the path begins with '@' when it lies in the
 * scratch folder. A run that should be refused asks for weights to be saved over those there. */
static void give(const char *name, Way way, const char *path, Want want, double s,
                 const char *text) {
    char line[2 * PATH];
    if (!mine()) {
        return;
    }
    const char *mark = strchr(ways[way].line, '%');
    snprintf(line, sizeof line, "%.*s%s%s%s", (int)(mark - ways[way].line), ways[way].line, path,
             mark + 1, want == REFUSED ? " --save @keep.st" : "");
    judge(name, run_line(line, -1), want, 1, s, path[0] == '@' ? path + 1 : path, text);
}

/* Keeps a file that is an input of the fuzz target. */
static void seed(const char *target, const char *name, const void *bytes, size_t size) {
    if (strcmp(target, h.target) == 0 && size <= SEED_MOST) {
        write_file(in_folder(name), bytes, size);
    }
}

static void seeds(const char *name, const char *tail, Way way, const uint8_t *bytes, size_t size) {
    static const char *const targets[WAYS] = {
        [CSV] = "csv",  [NPY] = "npy",  [IMAGE] = "idx", [LABEL] = "idx",        [TEXT] = "text",
        [IN_X] = "npy", [IN_K] = "npy", [IN_M] = "npy",  [LOAD] = "safetensors",
    };
    seed(targets[way], name, bytes, size);
    if (strstr(tail, ".gz") != NULL) {
        seed("gzip", name, bytes, size);
    } else if (way == LOAD && size > 8 && reader_word(bytes, 8, 0) <= size - 8) {
        seed("json", name, bytes + 8, (size_t)reader_word(bytes, 8, 0));
    }
}

static void give_bytes(const char *kind, const char *tail, Way way, const void *bytes, size_t size,
                       Want want, double s, const char *text) {
    char name[PATH / 4], path[PATH / 2];
    snprintf(name, sizeof name, "%s-%03d", kind, ++h.number);
    if (h.target != NULL) {
        seeds(name, tail, way, bytes, size);
        return;
    }
    snprintf(path, sizeof path, "@%s%s", name, tail);
    write_file(in_folder(path + 1), bytes, size);
    give(name, way, path, want, s, text);
    if (h.failed == 0) {
        unlink(in_folder(path + 1));
    }
}

static void taken(const char *kind, Way way, const void *bytes, size_t size, double s) {
    give_bytes(kind, ways[way].tail, way, bytes, size, TAKEN, s, "");
}

static void refused(const char *kind, Way way, const void *bytes, size_t size, const char *text) {
    give_bytes(kind, ways[way].tail, way, bytes, size, REFUSED, 0, text);
}

static void either(const char *kind, Way way, const void *bytes, size_t size) {
    give_bytes(kind, ways[way].tail, way, bytes, size, EITHER, 0, "");
}

/* A command line, with the status and a text of the message that it must have. */
static void line(const char *kind, const char *words, int code, const char *text) {
    char name[PATH / 4];
    snprintf(name, sizeof name, "%s-%03d", kind, ++h.number);
    if (h.target != NULL) { /* one argument a line */
        char text_lines[1024];
        snprintf(text_lines, sizeof text_lines, "%s", words);
        for (char *p = text_lines; *p != 0; p++) {
            *p = *p == ' ' ? '\n' : *p;
        }
        seed("options", name, text_lines, strlen(text_lines));
        return;
    }
    if (!mine()) {
        return;
    }
    int rc = run_line(words, -1);
    judge(name, rc, code == 0 ? TAKEN : REFUSED, code, found_s(), "hostile", text);
}

static void skipped(const char *kind, const char *reason) {
    if (h.part == 0) {
        printf("skip %s: %s\n", kind, reason);
        h.skipped++;
    }
}

#include "tests/tools/hostile_files.h"

#include "tests/tools/hostile_arrays.h"
#include "tests/tools/hostile_packed.h"
#include "tests/tools/hostile_weights.h"

#include "tests/tools/hostile_saves.h"

static void files_of_all_kinds(void) {
    csv_files();
    npy_files();
    idx_files();
    gzip_files();
    text_files();
    in_files();
    weight_files();
    options();
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "--files") == 0) {
        h.target = argv[2];
        snprintf(h.folder, sizeof h.folder, "%s", argv[3]);
        files_of_all_kinds();
        return 0;
    }
    if (argc != 7) {
        fputs("usage: hostile FOLDER PROGRAM SEED PART PARTS KILLS | --files TARGET FOLDER\n",
              stderr);
        return 2;
    }
    snprintf(h.folder, sizeof h.folder, "%s", argv[1]);
    snprintf(h.keep, sizeof h.keep, "%s/keep.st", argv[1]);
    h.program = argv[2];
    h.random = strtoull(argv[3], NULL, 10);
    h.part = (int)strtol(argv[4], NULL, 10);
    h.parts = (int)strtol(argv[5], NULL, 10);
    printf("hostile: seed %llu\n", (unsigned long long)h.random);
    setvbuf(stdout, NULL, _IOLBF, 0);
    good_files();
    files_of_all_kinds();
    special_files();
    outputs();
    system_calls();
    small_files();
    kills((int)strtol(argv[6], NULL, 10));
    printf("hostile: %d passed, %d failed, %d skipped\n", h.passed, h.failed, h.skipped);
    free(h.kept);
    return h.failed > 0;
}
