/* SPDX-License-Identifier: 0BSD */
/* save: weights and checkpoints as files, written whole or not at all, loaded whole or not at all.
 * Needs spill.h; allocates nothing. */
#ifndef MD_SAVE_H
#define MD_SAVE_H

#include "runtime/spill.h"

/* Weights (MD_SAVE_PARAMS), with `only` those under its paths, or all that persists (MD_SAVE_ALL)
 * to a safetensors file, with a note or NULL. `out` is scratch. */
MD_COLD int md_save_file(md_out *out, const char *path, const md_model *model,
                         const md_regions *regions, unsigned what, const char *only,
                         const char *note, md_text *message) {
    int rc = md_out_open(out, path, message);
    if (rc != MD_EXIT_OK) {
        return rc;
    }
    md_save s =
        md_save_make(model->tensors, model->tensor_count, &regions->memory, what, only, note);
    /* if: spans */
    s.fetch = md_spill_fetch;
    s.store = regions;
    /* end: spans */
    if (md_save_run(&s, md_out_write, out) != MD_OK && out->error == 0) {
        out->error = EIO; /* something of another phase could not be read again */
    }
    return md_out_close(out, message);
}

/* A file of weights that a run begins with. It stays open while some of them wait for their phase:
 * so it may get another name, and another one its name, but what is in it must stay. */
typedef struct md_opened {
    const char *path; /* NULL: none so far */
    int fd;
    uint64_t bytes;
    struct timespec changed;
} md_opened;

MD_COLD void md_opened_close(md_opened *from) {
    if (from->path != NULL) {
        close(from->fd);
        from->path = NULL;
    }
}

MD_COLD int md_open_kept(md_opened *from, const char *path, md_text *message) {
    struct stat now;
    int again = from->path != NULL;
    int rc = again ? MD_EXIT_OK : md_open(path, message, &from->fd, &from->bytes);
    if (rc != MD_EXIT_OK) {
        return rc;
    }
    from->path = path;
    int known = fstat(from->fd, &now) == 0;
    if (again && (!known || (uint64_t)now.st_size != from->bytes ||
                  now.st_mtim.tv_sec != from->changed.tv_sec ||
                  now.st_mtim.tv_nsec != from->changed.tv_nsec)) {
        return md_fail(message, MD_EXIT_DATA,
                       "%s: was changed while weights in it waited for their phase", path);
    }
    from->changed = now.st_mtim;
    return MD_EXIT_OK;
}

/* Which tensors are read of a file: with `only` those under its paths. */
typedef struct md_wanted {
    unsigned what;
    const char *only;
    /* if: spans */
    md_takes_fn takes; /* NULL: all of them now */
    const void *taker;
    /* end: spans */
} md_wanted;

/* Loads weights; `seen` is scratch of one byte a slice. */
MD_COLD int md_load_file(md_opened *from, const char *path, const md_model *model,
                         const md_memory *memory, const md_wanted *wanted, unsigned char *seen,
                         char *note, md_text *message) {
    char buffer[MD_MESSAGE_BYTES - 256];
    md_text why = md_text_make(buffer, sizeof buffer);
    md_load l;
    int rc = md_open_kept(from, path, message);
    if (rc != MD_EXIT_OK) {
        return rc;
    }
    memset(&l, 0, sizeof l);
    l.only = wanted->only;
    l.message = &why;
    /* if: spans */
    l.takes = wanted->takes;
    l.taker = wanted->taker;
    /* end: spans */
    int code = md_load_told(&l, model->tensors, model->tensor_count, memory, wanted->what, seen,
                            note, md_read_fd, &from->fd);
    if (code != MD_OK) {
        return md_fail(message, MD_EXIT_DATA, "%s: does not fit '%s': %s", path, model->name,
                       why.at);
    }
    return MD_EXIT_OK;
}

#endif
