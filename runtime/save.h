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
    md_save s = {
        model->tensors, model->tensor_count, &regions->memory, what, only, note, NULL, NULL, 0, 0,
        0, 0,
        /* if: spans */
        md_spill_fetch, regions,
        /* end: spans */
    };
    (void)md_save_run(&s, md_out_write, out);
    /* if: spans */
    if (s.rc != 0 && out->error == 0) {
        out->error = EIO; /* something of another phase could not be read again */
    }
    /* end: spans */
    return md_out_close(out, message);
}

/* Loads weights, with `only` those under its paths; `seen` is scratch of one byte a slice; `note`,
 * of MD_NOTE_BYTES or NULL, is empty where the file has none. */
MD_COLD int md_load_file(const char *path, const md_model *model, md_regions *regions,
                         unsigned what, const char *only, unsigned char *seen, char *note,
                         md_text *message) {
    int fd = -1, rc = MD_EXIT_OK;
    uint64_t bytes;
    char buffer[MD_MESSAGE_BYTES - 256];
    md_text why = md_text_make(buffer, sizeof buffer - MD_FAULTS_TAIL);
    md_load l;
    memset(&l, 0, sizeof l);
    l.only = only;
    l.message = &why;
    /* if: spans */
    l.takes = md_begins_now;
    l.taker = regions;
    rc = md_opened_again(&regions->from[(what & MD_LOAD_SOME) != 0], path, &fd, message);
    /* end: spans */
    rc = rc == MD_EXIT_OK && fd < 0 ? md_open(path, message, &fd, &bytes) : rc;
    if (rc != MD_EXIT_OK) {
        return rc;
    }
    int code = md_load_tensors(&l, model->tensors, model->tensor_count, &regions->memory, what,
                               seen, md_read_fd, &fd);
    close(fd);
    if (note != NULL) {
        memcpy(note, l.note, sizeof l.note);
    }
    if (code != MD_OK) {
        return md_fail(message, MD_EXIT_DATA, "%s: does not fit '%s': %s", path, model->name,
                       why.at);
    }
    return MD_EXIT_OK;
}

#endif
