/* isolated: a job in a process of its own, see graph_oracle.h. */
#include "graph_oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A build for coverage counts what such a process runs too. */
#ifdef MDLC_COVERAGE
void __gcov_dump(void);
#define COUNT_LINES() __gcov_dump()
#else
#define COUNT_LINES() (void)0
#endif

/* The line that says most: of an internal fault or a sanitizer, else the last one. */
static void last_words(FILE *from, char *died, size_t room) {
    char line[400];
    rewind(from);
    while (fgets(line, sizeof line, from)) {
        line[strcspn(line, "\n")] = 0;
        bool telling = strstr(line, "ERROR:") || strstr(line, "runtime error") ||
                       strstr(line, "internal fault");
        if (line[0]) {
            const char *what = strstr(line, "ERROR:"); /* without the process number */
            snprintf(died, room, "died: %.300s", what ? what : line);
        }
        if (telling) {
            break;
        }
    }
}

bool isolated(IsolatedJob job, void *ctx, void *result, size_t bytes, int seconds, char *died,
              size_t room) {
    FILE *words = tmpfile(), *back = tmpfile();
    if (!words || !back) {
        BUG("no temporary file");
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        BUG("no new process");
    }
    if (pid == 0) {
        alarm((unsigned)seconds);
        dup2(fileno(words), STDERR_FILENO);
        dup2(fileno(words), STDOUT_FILENO);
        job(ctx, result);
        bool ok = fwrite(result, 1, bytes, back) == bytes && fflush(back) == 0;
        fflush(NULL);
        COUNT_LINES();
        _exit(ok ? 0 : 1);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
    }
    bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    rewind(back);
    if (ok) {
        ok = fread(result, 1, bytes, back) == bytes;
    } else {
        if (WIFSIGNALED(status)) {
            snprintf(died, room, "died: signal %d", WTERMSIG(status));
        } else {
            snprintf(died, room, "died: status %d", WEXITSTATUS(status));
        }
        last_words(words, died, room);
    }
    fclose(words);
    fclose(back);
    return ok;
}
