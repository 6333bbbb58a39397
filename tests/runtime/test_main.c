/* test_main: the host part end to end, driven through its command line in child processes over the
 * hand-written model: train, evaluate, save, load, predict, and what a person gets wrong. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include <cmocka.h>

#define FAKE_WITHOUT_MAIN
#include "tests/runtime/fake_model.c"
#include "tests/support.h"

enum { ARGS = 24, TEXT = 1 << 16 };

static char folder[SCRATCH_PATH];
static char out[TEXT], err[TEXT]; /* of the last run */

typedef enum { PLAIN, SIGNAL, SMALL_FILES, TIGHT } Mode;

static void slurp(const char *name, char *to) {
    FILE *f = fopen(name, "rb");
    assert_non_null(f);
    size_t n = fread(to, 1, TEXT - 1, f);
    to[n] = 0;
    fclose(f);
}

/* In the child: limits and redirections, then the program. */
static void child(int argc, char **argv, Mode mode, size_t limit) {
    int o = open("stdout", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    int e = open("stderr", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    signal(SIGSEGV, SIG_DFL); /* a crash of the child is not one of the test runner */
    if (o < 0 || e < 0 || dup2(o, 1) < 0 || dup2(e, 2) < 0) {
        _exit(99);
    }
    struct rlimit r;
    r.rlim_cur = limit;
    r.rlim_max = limit;
    if (mode == SMALL_FILES) {
        setrlimit(RLIMIT_FSIZE, &r);
    } else if (mode == TIGHT) {
        r.rlim_cur += (rlim_t)md_proc_number("/proc/self/status", "VmSize:", 0) * 1024;
        r.rlim_max = r.rlim_cur;
        setrlimit(RLIMIT_AS, &r);
    }
    exit(md_main(&fake_descriptor, argc, argv));
}

static int run_mode(Mode mode, size_t limit, const char *line) {
    static char words[1024];
    char *argv[ARGS + 1];
    char program[] = "fake";
    int argc = 0, status = 0;
    argv[argc++] = program;
    snprintf(words, sizeof words, "%s", line);
    for (char *w = strtok(words, " "); w != NULL && argc < ARGS; w = strtok(NULL, " ")) {
        argv[argc++] = w;
    }
    argv[argc] = NULL;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        child(argc, argv, mode, limit);
    }
    if (mode == SIGNAL) {
        usleep(100000);
        kill(pid, SIGTERM);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    slurp("stdout", out);
    slurp("stderr", err);
    if (!WIFEXITED(status)) {
        fail_msg("%s: killed by %d: %s", line, WTERMSIG(status), err);
    }
    return WEXITSTATUS(status);
}

static int run(const char *line) {
    return run_mode(PLAIN, 0, line);
}

/* Runs and wants this exit code and, in one line of stderr, this text. */
static void refuses(int code, const char *line, const char *text) {
    int rc = run(line);
    char *end = strchr(err, '\n');
    if (rc != code || strstr(err, text) == NULL || end == NULL || end[1] != 0) {
        fail_msg("%s: exit %d, stderr '%s'", line, rc, err);
    }
}

static void put(const char *name, const void *bytes, size_t count) {
    assert_true(file_write(name, bytes, count));
}

static void put_npy(const char *name, md_dtype dtype, int rank, const int64_t *shape,
                    const void *data, size_t bytes) {
    char buffer[4096];
    md_text t = md_text_make(buffer, sizeof buffer);
    md_npy_header(&t, dtype, rank, shape);
    memcpy(buffer + t.used, data, bytes);
    put(name, buffer, t.used + bytes);
}

/* 103 rows whose target the model can reach exactly. */
static void put_rows(const char *name, int rows, const char *tail) {
    char *csv = malloc((size_t)rows * 80 + 1000);
    size_t used = 0;
    assert_non_null(csv);
    used += (size_t)sprintf(csv + used, "a,b,c,k,y\n");
    for (int i = 0; i < rows; i++) {
        double x[3];
        static const double class_[] = {0, 1, -1, 2};
        for (int j = 0; j < 3; j++) {
            x[j] = (double)(md_mix64((uint64_t)(3 * i + j)) >> 40) / 16777216.0 * 4 - 2;
        }
        double y = (x[0] - 2 * x[1] + 0.5 * x[2]) / 2 + class_[i % 7 % 4];
        used +=
            (size_t)sprintf(csv + used, "%.6f,%.6f,%.6f,%d,%.6f\n", x[0], x[1], x[2], i % 7 % 4, y);
    }
    used += (size_t)sprintf(csv + used, "%s", tail);
    put(name, csv, used);
    free(csv);
}

static double number(const char *line, const char *key) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *p = strstr(line, quoted);
    if (p == NULL) {
        fail_msg("no %s in %s", key, line);
        return 0;
    }
    return strtod(p + strlen(quoted), NULL);
}

static const char *event(const char *name, int last) {
    char wanted[64];
    const char *found = NULL;
    snprintf(wanted, sizeof wanted, "{\"event\":\"%s\"", name);
    for (const char *p = strstr(out, wanted); p != NULL; p = strstr(p + 1, wanted)) {
        found = p;
        if (!last) {
            break;
        }
    }
    assert_non_null(found);
    return found;
}

static int setup(void **state) {
    (void)state;
    if (!scratch_make(folder, "main") || chdir(folder) != 0) {
        return 1;
    }
    put_rows("rows.csv", 103, "");
    return 0;
}

static int teardown(void **state) {
    (void)state;
    return !scratch_remove(folder);
}

/* ---- what works ----------------------------------------------------------------------------- */

static void test_train(void **state) {
    (void)state;
    assert_int_equal(run("fit --steps 400 --eval-every 100 --log json"), 0);
    assert_string_equal(err, "");
    const char *memory = event("memory", 0);
    assert_true(memory == out);
    assert_int_equal(number(memory, "total"), 128 + 384 + 512 + 64);
    assert_int_equal(number(memory, "pad"), 4096 - 1088);
    const char *step = event("step", 0);
    assert_int_equal(number(step, "step"), 10); /* 400 steps: a line every 10 */
    assert_int_equal(number(step, "epoch"), 1); /* 83 rows to train on, 10 batches of 8 */
    assert_true(number(step, "grad_norm") > 0);
    const char *eval = event("eval", 0);
    assert_int_equal(number(eval, "step"), 100);
    assert_int_equal(number(eval, "rows"), 20);
    const char *end = event("end", 1);
    assert_int_equal(number(end, "steps"), 400);
    assert_true(number(end, "loss") < 1e-9);
    assert_true(number(end, "mae") < 1e-4);
    assert_int_equal(number(end, "bound_bytes"), 4096);
    assert_int_equal(number(end, "resident_growth_pages"), 0);
    /* the clause of the source: 3 epochs of 10 batches */
    assert_int_equal(run("fit --log json --log-every 1"), 0);
    assert_int_equal(number(event("step", 1), "step"), 30);
    assert_int_equal(run("fit --log json --epochs 2"), 0);
    assert_int_equal(number(event("end", 1), "steps"), 20);
    assert_int_equal(run("fit --steps 5"), 0);
    assert_non_null(strstr(out, "  total                 1,088  the declared bound\n"));
    assert_non_null(strstr(out, "eval at step 5: rows, 20 validation rows:  loss"));
    assert_int_equal(run("fit --steps 5 --log none"), 0);
    assert_string_equal(out, "");
}

/* The same seed gives the same bytes, another one others. */
static void test_seed(void **state) {
    (void)state;
    static char first[TEXT], second[TEXT];
    assert_int_equal(run("fit --steps 50 --seed 3 --save a.st --log none"), 0);
    assert_int_equal(run("fit --steps 50 --seed 3 --save b.st --log none"), 0);
    slurp("a.st", first);
    slurp("b.st", second);
    assert_memory_equal(first, second, 300);
    assert_int_equal(run("fit --steps 50 --seed 4 --save b.st --log none"), 0);
    slurp("b.st", second);
    assert_true(memcmp(first, second, 300) != 0);
}

static void test_save_load(void **state) {
    (void)state;
    assert_int_equal(run("fit --steps 100 --save w.st --log json"), 0);
    double loss = number(event("eval", 1), "loss");
    assert_int_equal(run("eval --load w.st --log json"), 0);
    assert_true(number(event("eval", 0), "loss") == loss);
    assert_int_equal(number(event("eval", 0), "step"), 0);
    /* other data by name of the file or of the data set; two paths: train, held-out */
    put_rows("other.csv", 40, "");
    assert_int_equal(run("eval --load w.st --log json --data rows=other.csv"), 0);
    assert_int_equal(number(event("eval", 0), "rows"), 8);
    assert_int_equal(run("eval fit --load w.st --log json --data f=rows.csv,other.csv"), 0);
    assert_int_equal(number(event("eval", 0), "rows"), 40);
    /* going on from weights */
    assert_int_equal(run("fit --steps 1 --load w.st --log json"), 0);
    assert_true(number(event("step", 0), "loss") < 0.1);
    assert_int_equal(run("weights --load=w.st"), 0);
    assert_non_null(strstr(out, "w [3] = "));
    assert_non_null(strstr(out, "\nc [4] = "));
    assert_int_equal(access("w.st.tmp", F_OK), -1);
}

static void test_predict(void **state) {
    (void)state;
    static const int64_t s63[] = {6, 3}, s6[] = {6}, s23[] = {2, 3}, s2[] = {2};
    double x[18];
    int64_t k[6] = {0, 1, 2, 3, 0, 1};
    for (int i = 0; i < 18; i++) {
        x[i] = 0.25 * i - 2;
    }
    put_npy("x.npy", MD_F64, 2, s63, x, sizeof x);
    put_npy("k.npy", MD_I64, 1, s6, k, sizeof k);
    assert_int_equal(run("fit --steps 400 --log none --save w.st"), 0);
    assert_int_equal(run("predict --load w.st --in x=x.npy --in k=k.npy --set gain=1 --out y.npy"),
                     0);
    assert_string_equal(out, "");
    md_array a;
    char buffer[512];
    md_text message = md_text_make(buffer, sizeof buffer);
    assert_int_equal(md_npy_open(&a, "y.npy", MD_FILE_IN_MEMORY, &message), 0);
    assert_true(a.rank == 1 && a.shape[0] == 6 && a.dtype == MD_F32);
    for (int i = 0; i < 6; i++) {
        static const double class_[] = {0, 1, -1, 2};
        double want = x[3 * i] - 2 * x[3 * i + 1] + 0.5 * x[3 * i + 2] + class_[k[i]];
        assert_true(fabs(md_get_number(a.data + 4 * i, MD_F32, 0).f - want) < 1e-2);
    }
    md_array_close(&a);
    assert_int_equal(
        run("predict predict --load w.st --in x=x.npy --in k=k.npy --set gain=2 --out y=y2.npy"),
        0);
    assert_int_equal(run("predict --load w.st --in x=x.npy --in k=k.npy --set gain=2"), 0);
    assert_non_null(strstr(out, "y [2] = "));
    assert_int_equal(run("predict --load w.st --in x=x.npy --in k=k.npy --set gain=0 --log json"),
                     0);
    assert_non_null(strstr(out, "{\"event\":\"result\",\"entry\":\"predict\",\"call\":2,"
                                "\"name\":\"y\",\"shape\":[2],\"values\":["));
    assert_int_equal(
        run("predict --load w.st --in x=x.npy --in k=k.npy --set gain=2 --out /dev/stdout"), 0);
    assert_memory_equal(out, "\x93NUMPY", 6);
    /* refusals */
    refuses(2, "predict --load w.st --in x=x.npy --in k=k.npy --set gain=1e39",
            "not a value of f32");
    refuses(2, "weights --load w.st --out w=o.npy --out c=./o.npy",
            "--out o.npy and --out ./o.npy are one file");
    refuses(2, "weights --load w.st --out w=o.npy --save o.npy",
            "--save o.npy and --out o.npy are one file");
    refuses(2, "weights --load w.st --out w=./w.st", "--out ./w.st and --load w.st are one file");
    assert_int_equal(access("o.npy", F_OK), -1);
    refuses(2, "predict --load w.st --in k=k.npy --set gain=2",
            "needs input 'x', F32[2, 3]: --in x=FILE.npy");
    refuses(2, "predict --load w.st --in x=x.npy --in k=k.npy",
            "needs input 'gain', F32: --in gain=FILE.npy or --set");
    refuses(2, "predict --load w.st --in x=x.npy --in k=k.npy --set gain=two",
            "not a value of f32");
    refuses(2, "predict --in x=x.npy", "needs weights: --load FILE");
    refuses(1, "predict --load w.st --in x=k.npy --in k=k.npy --set gain=2",
            "shape [6]; input 'x' of 'predict' takes [2, 3]");
    put_npy("x1.npy", MD_F64, 2, s23, x, 48);
    put_npy("k2.npy", MD_I64, 1, s2, k + 3, 16);
    assert_int_equal(run("predict --load w.st --in x=x1.npy --in k=k2.npy --set gain=2"), 0);
    k[4] = 4;
    put_npy("k4.npy", MD_I64, 1, s6, k, sizeof k);
    refuses(1, "predict --load w.st --in x=x.npy --in k=k4.npy --set gain=2",
            "k4.npy: element 4 is 4, which input 'k' (U8 in 0..4) cannot take");
    static const int64_t s43[] = {4, 3};
    put_npy("x4.npy", MD_F64, 2, s43, x, 96);
    refuses(1, "predict --load w.st --in x=x4.npy --in k=k.npy --set gain=2",
            "holds 3 calls of 'predict', but x4.npy holds 2");
}

/* A train whose inputs are tensors: the leading axis is the update. */
static void test_feed(void **state) {
    (void)state;
    static const int64_t sx[] = {2, 8, 3}, sy[] = {8};
    float x[48], y[8];
    for (int i = 0; i < 48; i++) {
        x[i] = (float)(i % 5) - 2;
    }
    for (int i = 0; i < 8; i++) {
        y[i] = 1;
    }
    put_npy("fx.npy", MD_F32, 3, sx, x, sizeof x);
    put_npy("fy.npy", MD_F32, 1, sy, y, sizeof y);
    assert_int_equal(run("feed --steps 9 --in x=fx.npy --in y=fy.npy --set lr=0.01 --log json"), 0);
    const char *end = event("end", 1);
    assert_int_equal(number(end, "steps"), 9);
    assert_int_equal(number(event("step", 0), "epoch"), 0);
    refuses(2, "feed --in x=fx.npy --in y=fy.npy", "does not say how long it trains: --steps N");
    refuses(2, "feed --epochs 2 --in x=fx.npy --in y=fy.npy", "has no data set, so no epochs");
}

static void test_info(void **state) {
    (void)state;
    assert_int_equal(run("info"), 0);
    assert_non_null(strstr(out, "mdlc.fit.c.m"));
    assert_non_null(strstr(out, "7 parameters\n"));
    assert_int_equal(run("--help"), 0);
    assert_non_null(strstr(out, "--save-every N"));
}

static void test_signal(void **state) {
    (void)state;
    unlink("s.st");
    assert_int_equal(run_mode(SIGNAL, 0, "fit --steps 1000000000 --save s.st --log json"),
                     128 + SIGTERM);
    double steps = number(event("end", 1), "steps");
    assert_true(steps > 0 && steps < 1e9);
    assert_int_equal(run("weights --load s.st"), 0);
}

/* ---- what a person gets wrong --------------------------------------------------------------- */

static void test_usage(void **state) {
    (void)state;
    /* Without a name the first train runs: the option is missing, not the name. */
    refuses(2, "--steps", "--steps needs a value: [TRAIN=]N");
    refuses(2, "fti", "'fti' cannot be run; there are: fit feed predict weights; and the commands");
    refuses(2, "predict fit", "'fit' has nothing to call");
    refuses(2, "fit --stpes 3", "unknown option '--stpes'");
    refuses(2, "fit --steps", "--steps needs a value: [TRAIN=]N");
    refuses(2, "fit --steps -1", "--steps needs a whole number from 0 up, not '-1'");
    refuses(2, "fit --save-every 0", "--save-every needs a whole number from 1 up, not '0'");
    refuses(2, "fit --steps 1e3", "--steps needs a whole number");
    refuses(2, "fit --steps 3 --epochs 2", "exclude each other");
    refuses(2, "fit --only w", "--only says what --load takes");
    refuses(2, "fit --load x --only fc", "has no weights under 'fc'");
    refuses(2, "fit --load x --only w,fc", "--only: the model has no weights under 'fc'");
    refuses(2, "fit --save x --save-only fc,w", "--save-only: the model has no weights under 'fc'");
    refuses(2, "fit --load x --only w,fc,gc", "has no weights under 'fc'; ");
    refuses(2, "fit --resume x --seed 3", "--seed begin a new run");
    refuses(2, "fit --save-every 3", "needs --save FILE or --checkpoint FILE");
    refuses(2, "fit --log csv", "json|none or csv=FILE");
    refuses(2, "fit --log xml", "--log takes text|json|none or csv=FILE, not ");
    refuses(2, "fit --set rate=3", "'fit' has no such name; there are: lr");
    refuses(2, "fit --set lr", "--set needs NAME=VALUE");
    refuses(2, "fit --set lr=fast", "--set lr=fast: not a value of f32; a finite number is");
    refuses(2, "fit --data digits=x.csv", "there are: f rows");
    refuses(2, "fit --in x=x.npy", "'fit' has no such name");
    refuses(2, "fit --out x.npy", "--out makes no sense here");
    refuses(2, "fit --threads 9", "the memory bound provides for 8");
    refuses(2, "fit --save-every 3", "--save-every needs --save FILE");
    refuses(2, "eval", "'fit' needs weights");
    refuses(2, "eval feed --load x", "'feed' has nothing to evaluate");
}

static void test_data_faults(void **state) {
    (void)state;
    refuses(1, "fit --data f=none.csv", "cannot open 'none.csv': No such file or directory");
    put_rows("bad.csv", 20, "1,2,3,1\n");
    refuses(1, "fit --data f=bad.csv", "bad.csv:22: 4 columns, but the first row has 5");
    put_rows("bad.csv", 20, "1,nan,3,1,2\n");
    refuses(1, "fit --data f=bad.csv",
            "bad.csv:22:2: 'nan' is not a finite number (field 'x' of data set 'rows')");
    put_rows("bad.csv", 20, "1,2,3,4,2\n");
    refuses(1, "fit --data f=bad.csv", "bad.csv:22:4: 4 is outside 0..4");
    put_rows("few.csv", 9, "");
    assert_int_equal(run("fit --data f=few.csv --steps 1 --log none"), 0);
    put_rows("few.csv", 7, "");
    refuses(1, "fit --data f=few.csv",
            "data set 'rows' has 6 rows to train on; one update of 'fit' takes 8");
    assert_string_equal(out, ""); /* before step 0 */
}

static void test_weight_faults(void **state) {
    (void)state;
    static const char header[] =
        "{\"w\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}        ";
    char file[100];
    size_t n = (sizeof header - 1) / 8 * 8;
    memset(file, 0, sizeof file);
    file[0] = (char)n;
    memcpy(file + 8, header, n);
    put("wrong.st", file, 8 + n + 16);
    refuses(1, "fit --load wrong.st",
            "wrong.st: does not fit 'fake': tensor 'w' is F32[4] in the file and F32[3] in "
            "the model; tensor 'c' is missing");
    refuses(1, "fit --load rows.csv", "rows.csv: does not fit 'fake': not a safetensors file");
    static const char odd[] = "{\"a\\n\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}} ";
    file[0] = sizeof odd - 1;
    memcpy(file + 8, odd, sizeof odd - 1);
    put("wrong.st", file, 8 + sizeof odd - 1 + 4);
    refuses(1, "fit --load wrong.st", "unknown tensor 'a?'; "); /* one line, whatever is in it */
    file[0] = (char)n;
    memcpy(file + 8, header, n);
    put("wrong.st", file, 4);
    refuses(1, "fit --load wrong.st", "shorter than the 8 bytes");
    refuses(1, "fit --load none.st", "cannot open 'none.st'");
}

static void test_diverges(void **state) {
    (void)state;
    unlink("d.st");
    refuses(4, "fit --steps 100 --set lr=1e20 --log none --save d.st",
            "the loss of 'fit' became infinite in step 2; nothing was saved");
    assert_int_equal(access("d.st", F_OK), -1);
    refuses(4, "fit --steps 100 --set lr=1e20 --log none --save d.st --save-every 1",
            "'d.st' holds the weights of step 1");
    assert_int_equal(run("weights --load d.st"), 0);
}

/* The old file survives a disk that is full; so does the run itself between saves. */
static void test_full_disk(void **state) {
    (void)state;
    static char before[TEXT], after[TEXT];
    assert_int_equal(run("fit --steps 3 --log none --save f.st"), 0);
    slurp("f.st", before);
    assert_int_equal(run_mode(SMALL_FILES, 100, "fit --steps 6 --log none --save f.st"), 1);
    assert_non_null(strstr(err, "cannot write 'f.st': File too large; the file is as it was"));
    slurp("f.st", after);
    assert_string_equal(before, after);
    assert_int_equal(
        run_mode(SMALL_FILES, 100, "fit --steps 6 --log none --save f.st --save-every 2"), 1);
    assert_non_null(strstr(err, "warning: cannot write 'f.st'"));
    assert_int_equal(system("ls f.st.tmp* 2>/dev/null | grep -q . && exit 1 || exit 0"), 0);
    if (access("/dev/full", W_OK) == 0) {
        refuses(1, "fit --steps 3 --log none --save /dev/full",
                "cannot write '/dev/full': No space left on device");
        assert_int_equal(access("/dev/full", W_OK), 0);
    }
    /* what lies about under such a name is left alone, and no link of it is followed */
    char temp[64];
    pid_t pid = fork();
    if (pid == 0) {
        static md_out o;
        md_text message = md_text_make(temp, sizeof temp);
        char own[64];
        snprintf(own, sizeof own, "t.st.tmp%ld", (long)getpid());
        _exit(symlink("rows.csv", own) != 0 || md_out_open(&o, "t.st", &message) != 0 ||
              md_out_write(&o, "new", 3) != 0 || md_out_close(&o, &message) != 0 ||
              unlink(own) != 0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    slurp("t.st", after);
    assert_string_equal(after, "new");
    slurp("rows.csv", after);
    assert_memory_equal(after, "a,b,c,k,y\n", 10);
    assert_int_equal(system("ls t.st.tmp* 2>/dev/null | grep -q . && exit 1 || exit 0"), 0);
    refuses(1, "fit --steps 3 --log none --save nowhere/f.st",
            "cannot write 'nowhere/f.st': No such file or directory");
    /* a link stays a link */
    assert_int_equal(symlink("f.st", "link.st"), 0);
    assert_int_equal(run("fit --steps 9 --log none --save link.st"), 0);
    char target[64];
    assert_int_equal(readlink("link.st", target, sizeof target), 4);
    slurp("f.st", after);
    assert_true(memcmp(before, after, 250) != 0);
}

/* With an address space that is a page too small the program refuses before step 0; with that page
 * it runs to its end. */
static void test_memory_limit(void **state) {
    (void)state;
#ifdef SANITIZED
    skip_because("the sanitizer reserves terabytes");
#endif
    size_t page = md_page();
    int least = -1;
    assert_int_equal(run("fit --steps 20 --threads 1 --log json"), 0);
    const char *memory = event("memory", 0);
    size_t declared =
        (size_t)(number(memory, "total") + number(memory, "pad") + number(memory, "data")) +
        2 * page;
    for (int pages = 0; pages < 64 && least < 0; pages++) {
        int rc = run_mode(TIGHT, (size_t)pages * page, "fit --steps 20 --threads 1 --log text");
        if (rc == 0) {
            least = pages;
        } else {
            if (rc != MD_EXIT_MEMORY || strstr(err, "memory") == NULL) {
                fail_msg("%d pages: exit %d, '%s'", pages, rc, err);
            }
            assert_string_equal(out, "");
        }
    }
    assert_int_equal(least, declared / page);
}

/* The regions lie between pages that cannot be touched. */
static void test_guards(void **state) {
    (void)state;
    static const size_t sizes[][4] = {{64, 0, 64, 128},
                                      {4096, 8192, 64, 64},
                                      {64, 64, 64, 9 << 20},
                                      {8 << 20, 16 << 20, 0, 9 << 20}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        md_model m = fake_descriptor;
        md_regions r;
        char buffer[256];
        md_text message = md_text_make(buffer, sizeof buffer);
        m.params_bytes = sizes[i][0];
        m.state_bytes = sizes[i][1];
        m.io_bytes = sizes[i][2];
        m.arena_bytes = sizes[i][3];
        assert_int_equal(md_regions_map(&r, &m, &message), 0);
        assert_int_equal(r.total, sizes[i][0] + sizes[i][1] + sizes[i][2] + sizes[i][3]);
        assert_int_equal(r.mapped % md_page(), 0);
        char *const regions[] = {r.memory.params, r.memory.state, r.memory.io, r.memory.arena};
        for (int k = 0; k < 4; k++) {
            assert_int_equal((uintptr_t)regions[k] % 64, 0);
            if (sizes[i][k] >= MD_HUGE_FROM) {
                assert_int_equal((uintptr_t)regions[k] % MD_HUGE_PAGE, 0);
            }
            memset(regions[k], 1, sizes[i][k]);
            assert_true(regions[k] + sizes[i][k] <= r.base + r.mapped);
        }
        md_touch_write(r.base, r.mapped);
        for (int side = 0; side < 2; side++) {
            pid_t pid = fork();
            int status = 0;
            if (pid == 0) {
                signal(SIGSEGV, SIG_DFL);
                *(volatile char *)(side == 0 ? r.base - 1 : r.base + r.mapped) = 1;
                _exit(0);
            }
            assert_int_equal(waitpid(pid, &status, 0), pid);
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
        }
        munmap(r.base - md_page(), r.mapped + 2 * md_page());
    }
}

/* Of every step of runs of up to 1000: 87 of 300 was shown as 28 %. */
static void test_percent(void **state) {
    (void)state;
    for (int steps = 1; steps <= 1000; steps++) {
        for (int step = 0; step <= steps; step++) {
            assert_int_equal(md_percent(step, steps), 100 * step / steps);
        }
    }
    assert_int_equal(md_percent(1000000007, 2000000014), 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_train),        cmocka_unit_test(test_seed),
        cmocka_unit_test(test_save_load),    cmocka_unit_test(test_predict),
        cmocka_unit_test(test_feed),         cmocka_unit_test(test_info),
        cmocka_unit_test(test_signal),       cmocka_unit_test(test_usage),
        cmocka_unit_test(test_data_faults),  cmocka_unit_test(test_weight_faults),
        cmocka_unit_test(test_diverges),     cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_memory_limit), cmocka_unit_test(test_guards),
        cmocka_unit_test(test_percent),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
