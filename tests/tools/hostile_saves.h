/* hostile_saves: saving while something goes wrong. The file that was there stays as it was, or is
 * replaced by a complete one; nothing else is left. Included in hostile.c, once. */
#ifndef MDLC_TESTS_HOSTILE_SAVES_H
#define MDLC_TESTS_HOSTILE_SAVES_H

#define SAVES "fit --data table=@good.csv --log none --save @saved.st"
#define RESULT                                                                                     \
    "echo --load @good.st --in x=@x.npy --in k=@k.npy --in m=@m.npy --set gain=1 --log none "      \
    "--out @saved.st"
#define LOADS                                                                                      \
    "echo --load @saved.st --in x=@x.npy --in k=@k.npy --in m=@m.npy --set gain=1 --log none"

static int same_as(const char *name, const uint8_t *bytes, size_t size) {
    size_t found = 0;
    uint8_t *now = read_file(in_folder(name), &found);
    int same = now != NULL && found == size && memcmp(now, bytes, size) == 0;
    free(now);
    return same;
}

/* Each call of each kind in turn fails, in each way that it can. A run that goes on must end with
 * the new file, one that gives up with the old one and one line. */
static void system_calls(void) {
    static const struct {
        const char *name;
        int errors[4];
    } calls[] = {
        {"open", {EACCES}},
        {"close", {EIO}},
        {"fsync", {EIO}},
        {"fchmod", {EPERM}},
        {"fstat", {EIO}},
        {"rename", {EACCES, EISDIR, EXDEV}},
        {"linkat", {EPERM, ENOENT}},
        {"write", {ENOSPC, EINTR, EIO}},
        {"read", {EIO, EINTR}},
        {"pread", {EIO, EINTR}},
        {"mmap", {ENOMEM}},
        {"mprotect", {ENOMEM}},
    };
    static const char *const lines[] = {SAVES, RESULT};
    size_t fresh_size[2] = {0, 0};
    uint8_t *fresh[2];
    for (int k = 0; k < 2; k++) {
        run_line(lines[k], -1);
        fresh[k] = read_file(in_folder("saved.st"), &fresh_size[k]);
        unlink(in_folder("saved.st"));
        if (fresh[k] == NULL) {
            verdict("system calls", "nothing is saved");
            return;
        }
    }
    setenv("FAULT_HIT", in_folder("hit"), 1);
    for (size_t i = 0; i < 2 * sizeof calls / sizeof *calls; i++) {
        int k = (int)(i % 2);
        const char *name = calls[i / 2].name;
        int halves = strcmp(name, "write") == 0 || strstr(name, "read") != NULL;
        for (int e = halves ? -1 : 0; e < 4 && (e < 0 || calls[i / 2].errors[e] != 0); e++) {
            int hit = mine();
            for (int n = 1; hit && n < 100; n++) {
                char fault[64], what[96];
                int error = e < 0 ? 0 : calls[i / 2].errors[e];
                snprintf(fault, sizeof fault, "%s %d %d", name, n, error);
                snprintf(what, sizeof what, "%s with '%s'", k == 0 ? "save" : "result", fault);
                write_file(in_folder("saved.st"), h.kept, h.kept_size);
                setenv("FAULT", fault, 1);
                int rc = run_line(lines[k], -1);
                unsetenv("FAULT");
                hit = unlink(in_folder("hit")) == 0;
                int old = same_as("saved.st", h.kept, h.kept_size);
                int new = same_as("saved.st", fresh[k], fresh_size[k]);
                if (rc != 0 && rc != MD_EXIT_DATA && rc != MD_EXIT_MEMORY) {
                    verdict(what, "status %d", rc);
                } else if (rc == 0 ? !new : !old && !(new &&strcmp(name, "write") == 0)) {
                    verdict(what, "status %d, and the file is %s", rc,
                            old   ? "the old one"
                            : new ? "the new one"
                                  : "damaged");
                } else if (rc != 0 && bad_message("", "") != NULL && strcmp(name, "write") != 0) {
                    verdict(what, "%s", bad_message("", ""));
                } else if (temporary_left() != NULL) {
                    verdict(what, "left: %s", temporary_left());
                    unlink(in_folder(temporary_left()));
                } else {
                    h.passed++;
                }
            }
        }
    }
    unsetenv("FAULT_HIT");
    free(fresh[0]);
    free(fresh[1]);
}

/* Files may not grow beyond a size: stands for a full disk. */
static void small_files(void) {
    for (size_t limit = 1; limit < h.kept_size; limit += 16) {
        h.limit = (rlim_t)limit;
        line("small files", "fit --data table=@good.csv --log none --save @keep.st", 1,
             "File too large; the file is as it was");
        h.limit = 0;
    }
}

/* Has the folder files without a name? Then a program that is killed leaves none. */
static int nameless_files(void) {
#ifdef O_TMPFILE
    int fd = open(h.folder, O_TMPFILE | O_RDWR, 0666);
    if (fd >= 0) {
        close(fd);
        return 1;
    }
#endif
    return 0;
}

/* SIGKILL at any moment of a run that saves after every step. */
static void kills(int count) {
    for (int i = h.part; i < count; i += h.parts) {
        struct stat before, now;
        write_file(in_folder("saved.st"), h.kept, h.kept_size);
        stat(in_folder("saved.st"), &before);
        Run run = start(words_of(SAVES " --steps 1000000000 --save-every 1 --set lr=0"), -1);
        for (int wait = 0; wait < 10000; wait++) { /* until it has saved once */
            usleep(1000);
            if (stat(in_folder("saved.st"), &now) == 0 && now.st_ino != before.st_ino) {
                break;
            }
        }
        usleep((useconds_t)below(8000));
        kill(run.pid, SIGKILL);
        int rc = ended(run);
        const char *left = temporary_left();
        struct stat size = {0};
        if (rc != 128 + SIGKILL) {
            verdict("kill", "status %d before it was killed", rc);
        } else if (run_line(LOADS, -1) != 0) {
            verdict("kill", "what is there does not load");
        } else if (left != NULL &&
                   (stat(in_folder(left), &size) != 0 ||
                    (nameless_files() && (size_t)size.st_size != (size_t)now.st_size))) {
            verdict("kill", "left: %s", left);
        } else {
            h.passed++;
        }
        if (left != NULL) {
            unlink(in_folder(left));
        }
    }
    unlink(in_folder("saved.st"));
}

#endif
