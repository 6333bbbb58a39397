/* SPDX-License-Identifier: 0BSD */
/* save: a file that is replaced as a whole or not at all.
 *
 * Bytes go to a temporary file in the same folder, which is synced and then renamed over the old
 * one, and the folder is synced; a full disk or a power cut leaves the old file or the new one.
 * Where the system has files without a name (Linux), the temporary file gets one when it is
 * complete, so that a program that is killed leaves nothing behind.
 * What is no regular file (a device, a pipe) is written in place.
 * Needs host.h and safetensors.h; allocates nothing. */
#ifndef MD_SAVE_H
#define MD_SAVE_H

#include "runtime/host.h"
#include "runtime/safetensors.h"

enum { MD_OUT_BYTES = 4096, MD_LINKS = 8 };

typedef struct md_out {
    int fd;
    int error;    /* errno of the first failure */
    int special;  /* no regular file: written in place */
    int nameless; /* the temporary file has no name yet */
    const char *path;
    char keep[MD_PATH_BYTES + 8];  /* not empty: what was there gets this name */
    char target[MD_PATH_BYTES];    /* path with links followed */
    char temp[MD_PATH_BYTES + 32]; /* next to it */
    size_t used;
    char buffer[MD_OUT_BYTES];
} md_out;

/* Follows symbolic links of the last part, so that a link stays a link. */
MD_COLD int md_out_resolve(md_out *o, const char *path) {
    size_t n = strlen(path);
    if (n >= sizeof o->target) {
        return ENAMETOOLONG;
    }
    memcpy(o->target, path, n + 1);
    for (int i = 0; i < MD_LINKS; i++) {
        ssize_t got = readlink(o->target, o->temp, MD_PATH_BYTES - 1);
        if (got < 0) {
            return 0; /* not a link */
        }
        char *slash = strrchr(o->target, '/');
        size_t folder = o->temp[0] == '/' || slash == NULL ? 0 : (size_t)(slash - o->target) + 1;
        if (folder + (size_t)got >= sizeof o->target) {
            return ENAMETOOLONG;
        }
        memcpy(o->target + folder, o->temp, (size_t)got);
        o->target[folder + (size_t)got] = 0;
    }
    return ELOOP;
}

MD_COLD int md_out_fail(md_out *o, md_text *message) {
    return md_fail(message, MD_EXIT_DATA, "cannot write '%s': %s%s", o->path, strerror(o->error),
                   o->special || access(o->path, F_OK) != 0 ? "" : "; the file is as it was");
}

/* Opens the folder of the target. */
MD_COLD int md_out_folder(md_out *o, int flags) {
    char *slash = strrchr(o->target, '/');
    char *end = slash == o->target ? slash + 1 : slash; /* of the folder's name */
    char behind = 0;
    if (slash != NULL) {
        behind = *end;
        *end = 0;
    }
    int fd = open(slash == NULL ? "." : o->target, flags | O_CLOEXEC, 0666);
    int error = errno;
    if (slash != NULL) {
        *end = behind;
    }
    errno = error;
    return fd;
}

/* The temporary file under its name, which nobody else may have. One that a dead process of the
 * same number left is in the way. */
MD_COLD int md_out_named(md_out *o) {
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = open(o->temp, flags, 0666);
    if (fd < 0 && errno == EEXIST && unlink(o->temp) == 0) {
        fd = open(o->temp, flags, 0666);
    }
    return fd;
}

MD_COLD int md_out_open(md_out *o, const char *path, md_text *message) {
    struct stat old;
    int exists;
    o->path = path;
    o->used = 0;
    o->special = 0;
    o->nameless = 0;
    o->fd = -1;
    o->error = md_out_resolve(o, path);
    if (o->error != 0) {
        return md_out_fail(o, message);
    }
    exists = stat(o->target, &old) == 0;
    if (exists && !S_ISREG(old.st_mode)) {
        o->special = 1;
        o->fd = open(o->target, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    } else {
        snprintf(o->temp, sizeof o->temp, "%s.tmp%ld", o->target, (long)getpid());
#ifdef O_TMPFILE
        o->fd = md_out_folder(o, O_TMPFILE | O_RDWR);
        o->nameless = o->fd >= 0;
#endif
        o->fd = o->fd < 0 ? md_out_named(o) : o->fd;
        if (o->fd >= 0 && exists) {
            (void)fchmod(o->fd, old.st_mode & 07777);
        }
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
    if (!o->special && !o->nameless) {
        unlink(o->temp);
    }
}

/* Could the file be made? Asked before a long run; leaves nothing behind. A pipe or a device is
 * taken at its word. */
MD_COLD int md_out_probe(md_out *o, const char *path, md_text *message) {
    struct stat old;
    if (stat(path, &old) == 0 && !S_ISREG(old.st_mode) && !S_ISDIR(old.st_mode)) {
        return MD_EXIT_OK;
    }
    int rc = md_out_open(o, path, message);
    if (rc == MD_EXIT_OK) {
        md_out_cancel(o);
    }
    return rc;
}

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

/* Gives a file without a name this one, if nothing has it. */
MD_COLD int md_out_link(const md_out *o, const char *name) {
    char self[48];
    snprintf(self, sizeof self, "/proc/self/fd/%d", o->fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

/* Gives the complete file its temporary name; where that may not be, a copy of it. */
MD_COLD void md_out_name(md_out *o) {
    o->nameless = 0;
    for (int i = 0; i < 2; i++) {
        if (md_out_link(o, o->temp) == 0) {
            return;
        }
        if (errno != EEXIST || unlink(o->temp) != 0) {
            break;
        }
    }
    struct stat info;
    int from = o->fd;
    off_t at = 0;
    o->fd = md_out_named(o);
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

/* Ends the file: puts it in place, or takes it away again after a failure. */
MD_COLD int md_out_close(md_out *o, md_text *message) {
    md_out_flush(o);
    if (o->error == 0 && !o->special && fsync(o->fd) != 0) {
        o->error = errno;
    }
    int placed = 0;
    if (o->error == 0 && !o->special && o->keep[0] != 0) {
        (void)rename(o->target, o->keep); /* there may be none */
        placed = o->nameless && md_out_link(o, o->target) == 0;
    }
    if (o->error == 0 && o->nameless && !placed) {
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

/* Weights (MD_SAVE_PARAMS) or all that persists (MD_SAVE_ALL) to a safetensors file, with a note or
 * NULL. `out` is scratch. */
MD_COLD int md_save_file(md_out *out, const char *path, const md_model *model,
                         const md_memory *memory, unsigned what, const char *note,
                         md_text *message) {
    int rc = md_out_open(out, path, message);
    if (rc != MD_EXIT_OK) {
        return rc;
    }
    (void)md_save_noted(model->tensors, model->tensor_count, memory, what, note, md_out_write, out);
    return md_out_close(out, message);
}

/* Loads weights, with `only` those under its paths; `seen` is scratch of one byte a slice. */
MD_COLD int md_load_file(const char *path, const md_model *model, const md_memory *memory,
                         unsigned what, const char *only, unsigned char *seen, char *note,
                         md_text *message) {
    int fd;
    uint64_t bytes;
    char buffer[MD_MESSAGE_BYTES - 256];
    md_text why = md_text_make(buffer, sizeof buffer);
    int rc = md_open(path, message, &fd, &bytes);
    if (rc != MD_EXIT_OK) {
        return rc;
    }
    int code = md_load_noted(model->tensors, model->tensor_count, memory, what, only, seen, note,
                             md_read_fd, &fd, &why);
    close(fd);
    if (code != MD_OK) {
        return md_fail(message, MD_EXIT_DATA, "%s: does not fit '%s': %s", path, model->name,
                       why.at);
    }
    return MD_EXIT_OK;
}

#endif
