/* main: sets up one run of the compiler, and sees that what it printed has arrived. */
#include "compiler/driver/diff.h"
#include "compiler/driver/explain.h"
#include "compiler/driver/flags.h"
#include "compiler/driver/init.h"
#include "compiler/driver/options.h"
#include "compiler/driver/pipeline.h"
#include "compiler/driver/version.h"
#include "compiler/driver/what_if.h"

#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Has standard output taken all that was printed? */
static int printed(int code) {
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == EXIT_OK) {
        fprintf(stderr, "mdlc: cannot write standard output: %s\n", strerror(errno));
        return EXIT_FILE;
    }
    return code;
}

/* Large blocks go back to the system as they are freed. glibc learns from the first of them to keep
 * its like, among small ones: of 10,000 layers 43 MB more. */
static void map_large_blocks(void) {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
#endif
}

static int command_run(Compile *c) {
    switch (c->opt.command) {
    case COMMAND_EXPLAIN: return explain_print(c->opt.input);
    case COMMAND_FLAGS: return flags_print(c);
    case COMMAND_INIT: return init_run(c);
    case COMMAND_DIFF: return diff_run(c);
    case COMMAND_REPORT:
        return c->opt.what_if || c->opt.report == REPORT_HTML ? what_if_run(c) : pipeline_run(c);
    default: return pipeline_run(c);
    }
}

int main(int argc, char **argv) {
    Compile c = {0};
    map_large_blocks();
    diag_open(&c.diag, &c.arena, stderr);
    c.diag.color = isatty(STDERR_FILENO) != 0;
    c.out = stdout;
    c.opt.threads = THREADS_USUAL;
    c.opt.budget = -1;
    c.opt.calls = 1;
    c.opt.growth_share = -1;
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow further is a message */
    for (int i = 1; i < argc; i++) {
        if (str_eq(argv[i], "--help")) {
            fputs(options_usage, stdout);
            return printed(EXIT_OK);
        }
        if (str_eq(argv[i], "--version")) {
            version_print(stdout);
            return printed(EXIT_OK);
        }
    }
    int code = options_parse(&c, argc, argv);
    if (code == EXIT_OK) {
        code = printed(command_run(&c));
    }
    arena_free(&c.arena);
    return code;
}
