/* SPDX-License-Identifier: 0BSD */
/* out: a file that is replaced as a whole or not at all.
 *
 * Bytes go to a temporary file in the same folder, which is synced and then renamed over the old
 * one, and the folder is synced; a full disk or a power cut leaves the old file or the new one.
 * Where the system has files without a name (Linux), the temporary file gets one when it is
 * complete, so that a program that is killed leaves nothing behind, but between the two calls that
 * replace a file.
 * What is no regular file (a device, a pipe) and what is open already (/dev/stdout) is written in
 * place. Needs host.h; allocates nothing. */
#ifndef MD_OUT_H
#define MD_OUT_H

#include "runtime/host.h"

enum { MD_OUT_BYTES = 4096, MD_LINKS = 8, MD_OUT_TRIES = 16, MD_OUT_STEM = 200 };

typedef struct md_out {
    int fd;
    int error;    /* errno of the first failure */
    int special;  /* written in place */
    int nameless; /* the temporary file has no name yet */
    const char *path;
    char keep[MD_PATH_BYTES + 8];  /* not empty: what was there gets this name */
    char target[MD_PATH_BYTES];    /* path with links followed */
    char temp[MD_PATH_BYTES + 64]; /* next to it */
    size_t used;
    char buffer[MD_OUT_BYTES];
} md_out;

/* ---- paths ---------------------------------------------------------------------------------- */

/* Follows symbolic links of the last part, so that a link stays a link. `target` and `scratch` have
 * MD_PATH_BYTES; 0 or an errno. */
MD_COLD int md_out_resolve(char *target, char *scratch, const char *path) {
    size_t n = strlen(path);
    if (n >= MD_PATH_BYTES) {
        return ENAMETOOLONG;
    }
    memcpy(target, path, n + 1);
    for (int i = 0; i < MD_LINKS; i++) {
        ssize_t got = readlink(target, scratch, MD_PATH_BYTES - 1);
        if (got < 0) {
            return 0; /* not a link */
        }
        char *slash = strrchr(target, '/');
        size_t folder = scratch[0] == '/' || slash == NULL ? 0 : (size_t)(slash - target) + 1;
        if (folder + (size_t)got >= MD_PATH_BYTES) {
            return ENAMETOOLONG;
        }
        memcpy(target + folder, scratch, (size_t)got);
        target[folder + (size_t)got] = 0;
    }
    return ELOOP;
}

/* Where the name begins behind the folder. */
MD_COLD size_t md_out_stem(const char *target) {
    const char *slash = strrchr(target, '/');
    return slash == NULL ? 0 : (size_t)(slash - target) + 1;
}

/* The descriptor that a path such as /dev/stdout or /dev/fd/3 stands for; -1: it is a path. */
MD_COLD int md_out_descriptor(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    int64_t fd;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        size_t n = strlen(folders[i]);
        if (strncmp(path, folders[i], n) == 0 && path[n] >= '0' && path[n] <= '9' &&
            md_parse_integer(path + n, &fd) && fd <= INT_MAX) {
            return (int)fd;
        }
    }
    return strcmp(path, "/dev/stdout") == 0   ? STDOUT_FILENO
           : strcmp(path, "/dev/stderr") == 0 ? STDERR_FILENO
                                              : -1;
}

/* Do two paths mean one regular file? By what the system says of files that are there, else by
 * folder and name, links followed. */
MD_COLD int md_out_same(const char *a, const char *b) {
    char target[2][MD_PATH_BYTES + 2], scratch[MD_PATH_BYTES];
    struct stat info[2];
    int there[2] = {stat(a, &info[0]) == 0, stat(b, &info[1]) == 0};
    if (there[0] != there[1] || (there[0] && !S_ISREG(info[0].st_mode))) {
        return 0;
    }
    if (!there[0]) {
        for (int i = 0; i < 2; i++) {
            if (md_out_resolve(target[i], scratch, i == 0 ? a : b) != 0) {
                return 0;
            }
        }
        if (strcmp(target[0] + md_out_stem(target[0]), target[1] + md_out_stem(target[1])) != 0) {
            return 0;
        }
        for (int i = 0; i < 2; i++) {
            size_t stem = md_out_stem(target[i]);
            memcpy(target[i] + stem, ".", 2);
            if (stat(target[i], &info[i]) != 0) {
                return 0;
            }
        }
    }
    return info[0].st_dev == info[1].st_dev && info[0].st_ino == info[1].st_ino;
}

/* ---- opening -------------------------------------------------------------------------------- */

MD_COLD int md_out_fail(md_out *o, md_text *message) {
    return md_fail(message, MD_EXIT_DATA, "cannot write '%s': %s%s", o->path, strerror(o->error),
                   o->special || access(o->path, F_OK) != 0 ? "" : "; the file is as it was");
}

/* Opens the folder of the target. */
MD_COLD int md_out_folder(const md_out *o, int flags) {
    char folder[MD_PATH_BYTES];
    size_t stem = md_out_stem(o->target);
    snprintf(folder, sizeof folder, "%.*s", stem > 0 ? (int)stem : 1, stem > 0 ? o->target : ".");
    return open(folder, flags | O_CLOEXEC, 0666);
}

/* Makes up a temporary name: the target's, as far as there is room behind it, the process and the
 * time. Whoever has the name already keeps it: processes of two machines may have one number. */
MD_COLD void md_out_temp(md_out *o, int turn) {
    size_t stem = md_out_stem(o->target), name = strlen(o->target) - stem;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(o->temp, sizeof o->temp, "%.*s.tmp%ld-%lx",
             (int)(stem + (name < MD_OUT_STEM ? name : (size_t)MD_OUT_STEM)), o->target,
             (long)getpid(), (unsigned long)now.tv_nsec + (unsigned long)turn);
}

/* Gives a file without a name this one, if nothing has it. */
MD_COLD int md_out_link(const md_out *o, const char *name) {
    char self[48];
    snprintf(self, sizeof self, "/proc/self/fd/%d", o->fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

/* The temporary file under a name that nobody else has: a new one, or the one without a name. A
 * descriptor or 0; -1: there is none. */
MD_COLD int md_out_named(md_out *o, int link) {
    int got = -1;
    for (int turn = 0; turn < MD_OUT_TRIES && got < 0 && (turn == 0 || errno == EEXIST); turn++) {
        md_out_temp(o, turn);
        got = link ? md_out_link(o, o->temp)
                   : open(o->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    }
    o->temp[got < 0 ? 0 : strlen(o->temp)] = 0; /* none to take away */
    return got;
}

/* A file that may not be written is not replaced either. */
MD_COLD int md_out_open_regular(md_out *o, const struct stat *old) {
    int fd = -1;
    if (old != NULL && access(o->target, W_OK) != 0) {
        return -1;
    }
#ifdef O_TMPFILE
    fd = md_out_folder(o, O_TMPFILE | O_RDWR);
    o->nameless = fd >= 0;
#endif
    fd = fd < 0 ? md_out_named(o, 0) : fd;
    if (fd >= 0 && old != NULL) {
        (void)fchmod(fd, old->st_mode & 07777);
    }
    return fd;
}

MD_COLD int md_out_open(md_out *o, const char *path, md_text *message) {
    struct stat old;
    int open_already = md_out_descriptor(path);
    o->path = path;
    o->used = 0;
    o->special = o->nameless = 0;
    o->fd = -1;
    o->error = md_out_resolve(o->target, o->temp, path);
    if (o->error != 0) {
        return md_out_fail(o, message);
    }
    int exists = stat(o->target, &old) == 0;
    if (open_already >= 0) {
        o->special = 1;
        o->fd = dup(open_already);
    } else if (exists && !S_ISREG(old.st_mode)) {
        o->special = 1;
        o->fd = open(o->target, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    } else {
        o->fd = md_out_open_regular(o, exists ? &old : NULL);
    }
    o->error = o->fd < 0 ? errno : 0;
    return o->fd < 0 ? md_out_fail(o, message) : MD_EXIT_OK;
}

/* Takes the new file away; what was there stays. */
MD_COLD void md_out_cancel(md_out *o) {
    if (o->fd >= 0) {
        close(o->fd);
        o->fd = -1;
    }
    if (!o->special && !o->nameless && o->temp[0] != 0) {
        unlink(o->temp);
    }
}

/* Could the file, if there is one, be made? Asked before a long run; leaves nothing behind. A pipe
 * or a device is taken at its word. */
MD_COLD int md_out_probe(md_out *o, const char *path, md_text *message) {
    struct stat old;
    if (path == NULL || (stat(path, &old) == 0 && !S_ISREG(old.st_mode) && !S_ISDIR(old.st_mode))) {
        return MD_EXIT_OK;
    }
    int rc = md_out_open(o, path, message);
    if (rc == MD_EXIT_OK) {
        md_out_cancel(o);
    }
    return rc;
}

/* ---- writing -------------------------------------------------------------------------------- */

MD_COLD void md_out_flush(md_out *o) {
    if (o->error == 0) {
        o->error = md_write_fd(o->fd, o->buffer, o->used);
    }
    o->used = 0;
}

/* An md_write_fn: collects small pieces, passes large ones on. */
MD_COLD int md_out_write(void *user, const void *data, size_t bytes) {
    md_out *o = (md_out *)user;
    if (o->used + bytes > sizeof o->buffer) {
        md_out_flush(o);
    }
    if (bytes > sizeof o->buffer) {
        if (o->error == 0) {
            o->error = md_write_fd(o->fd, (const char *)data, bytes);
        }
    } else {
        memcpy(o->buffer + o->used, data, bytes);
        o->used += bytes;
    }
    return o->error;
}

/* ---- ending --------------------------------------------------------------------------------- */

/* Gives the complete file its temporary name; where that may not be, a copy of it. */
MD_COLD void md_out_name(md_out *o) {
    o->nameless = 0;
    if (md_out_named(o, 1) == 0) {
        return;
    }
    struct stat info;
    int from = o->fd;
    off_t at = 0;
    o->fd = md_out_named(o, 0);
    o->error = o->fd < 0 || fstat(from, &info) != 0 ? errno : 0;
    while (o->error == 0 && at < info.st_size) {
        ssize_t n = pread(from, o->buffer, sizeof o->buffer, at);
        o->error = n < 0 ? errno : n == 0 ? EIO : md_write_fd(o->fd, o->buffer, (size_t)n);
        at += n;
    }
    if (o->error == 0) {
        (void)fchmod(o->fd, info.st_mode & 07777);
        o->error = fsync(o->fd) != 0 ? errno : 0;
    }
    close(from);
}

MD_COLD void md_out_sync_folder(md_out *o) {
    int fd = md_out_folder(o, O_RDONLY);
    if (fd >= 0) {
        (void)fsync(fd); /* some file systems cannot; the rename has happened all the same */
        close(fd);
    }
}

/* All bytes are on the disk, under a name of their own or none; or the file is taken away. */
MD_COLD int md_out_complete(md_out *o, md_text *message) {
    md_out_flush(o);
    if (o->error == 0 && !o->special && fsync(o->fd) != 0) {
        o->error = errno;
    }
    if (o->error != 0) {
        md_out_cancel(o);
        return md_out_fail(o, message);
    }
    return MD_EXIT_OK;
}

/* Puts a complete file in place, or takes it away after a failure. */
MD_COLD int md_out_place(md_out *o, md_text *message) {
    int placed = 0;
    if (!o->special && o->keep[0] != 0) {
        (void)rename(o->target, o->keep); /* there may be none */
        placed = o->nameless && md_out_link(o, o->target) == 0;
    }
    if (o->nameless && !placed) {
        md_out_name(o);
    }
    if (o->fd >= 0 && close(o->fd) != 0 && o->error == 0) {
        o->error = errno;
    }
    o->fd = -1;
    if (o->error == 0 && !o->special && !placed && rename(o->temp, o->target) != 0) {
        o->error = errno;
    }
    if (o->error != 0) {
        md_out_cancel(o);
        if (o->keep[0] != 0 && access(o->target, F_OK) != 0) {
            (void)rename(o->keep, o->target); /* it is the best there is */
        }
        return md_out_fail(o, message);
    }
    if (!o->special) {
        md_out_sync_folder(o);
    }
    return MD_EXIT_OK;
}

/* Ends the file: puts it in place, or takes it away again after a failure. */
MD_COLD int md_out_close(md_out *o, md_text *message) {
    int rc = md_out_complete(o, message);
    return rc != MD_EXIT_OK ? rc : md_out_place(o, message);
}

#endif
