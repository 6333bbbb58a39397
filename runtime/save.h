/* SPDX-License-Identifier: 0BSD */
/* save: weights and checkpoints as files, written whole or not at all, loaded whole or not at all.
 * Needs out.h and load.h; allocates nothing. */
#ifndef MD_SAVE_H
#define MD_SAVE_H

#include "runtime/load.h"
#include "runtime/out.h"

/* Weights (MD_SAVE_PARAMS), with `only` those under its paths, or all that persists (MD_SAVE_ALL)
 * to a safetensors file, with a note or NULL. `out` is scratch. */
MD_COLD int md_save_file(md_out *out, const char *path, const md_model *model,
                         const md_memory *memory, unsigned what, const char *only, const char *note,
                         md_text *message) {
    int rc = md_out_open(out, path, message);
    if (rc != MD_EXIT_OK) {
        return rc;
    }
    (void)md_save_tensors(model->tensors, model->tensor_count, memory, what, only, note,
                          md_out_write, out);
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
