/* SPDX-License-Identifier: 0BSD */
/* spill: what will be saved and is not in memory, since its phase is over or has not begun.
 *
 * A file without a name beside the first one that the run saves, as long as the regions. Each
 * tensor has the place there that it has in memory, its bytes as they stand in files; what was
 * never written is zero, as fresh memory is. Nothing of it is left behind, however the run ends.
 * Needs regions.h, load.h and out.h; gives exit codes; allocates nothing. */
#ifndef MD_SPILL_H
#define MD_SPILL_H

#include "runtime/load.h"
#include "runtime/out.h"
#include "runtime/regions.h"

/* if: spans */
/* The stretch that a tensor lies in; NULL: it has no bytes. */
MD_COLD const md_span *md_span_of(const md_model *m, const md_tensor *t) {
    for (int i = 0; i < m->span_count && t->bytes > 0; i++) {
        const md_span *s = &m->spans[i];
        if (t->region == s->region && t->offset >= s->begin && t->offset < s->end) {
            return s;
        }
    }
    return NULL;
}

MD_COLD int md_span_there(const md_span *s, int phase) {
    return s == NULL || (s->first <= phase && phase <= s->last);
}

MD_COLD uint64_t md_spill_place(const md_regions *r, const md_tensor *t) {
    return (uint64_t)(md_slice_data(t, 0, &r->memory) - r->base);
}

/* An md_fetch_fn of the regions. */
MD_COLD int md_spill_fetch(const void *store, const md_tensor *t, size_t at, void *to,
                           size_t bytes) {
    const md_regions *r = (const md_regions *)store;
    int fd = r->spill;
    if (!r->phased || md_span_there(md_span_of(r->model, t), r->phase)) {
        return 0;
    }
    return md_read_fd(&fd, md_spill_place(r, t) + at, to, bytes) == 0 ? 1 : -1;
}

typedef struct md_spilled {
    int fd, error;
    uint64_t at;
} md_spilled;

/* An md_write_fn: one byte range behind the other. */
MD_COLD int md_spill_write(void *user, const void *data, size_t bytes) {
    md_spilled *s = (md_spilled *)user;
    for (const char *from = (const char *)data; bytes > 0 && s->error == 0;) {
        ssize_t n = pwrite(s->fd, from, bytes, (off_t)s->at);
        if (n > 0) {
            from += n;
            s->at += (uint64_t)n;
            bytes -= (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            s->error = n < 0 ? errno : EIO;
        }
    }
    return s->error;
}

/* Puts a tensor that is in memory into the file. */
MD_COLD int md_spill_tensor(const md_regions *r, const md_tensor *t, md_text *message) {
    md_spilled to = {r->spill, 0, md_spill_place(r, t)};
    const unsigned what = 1u << (unsigned)t->kind;
    md_save s = {t, 1, &r->memory, what, NULL, NULL, md_spill_write, &to, 0, 0, 0, 0, NULL, NULL};
    md_save_walk(&s, 1);
    if (to.error != 0) {
        return md_fail(message, MD_EXIT_DATA, "no place on the disk for '%s' of another phase: %s",
                       t->name, strerror(to.error));
    }
    return MD_EXIT_OK;
}

/* Opens the file beside `path`; 0 where that is a pipe or a device. */
MD_COLD int md_spill_open(md_regions *r, md_out *out, const char *path, md_text *message) {
    int rc = md_out_open(out, path, message);
    if (rc != MD_EXIT_OK || out->special) {
        md_out_cancel(out);
        return rc;
    }
    r->spill = out->nameless ? dup(out->fd) : open(out->temp, O_RDWR | O_CLOEXEC);
    int failed = r->spill < 0 || ftruncate(r->spill, (off_t)r->mapped) != 0;
    r->spill = r->spill < 0 ? 0 : r->spill;
    out->error = failed ? errno : 0;
    md_out_cancel(out);
    return failed ? md_out_fail(out, message) : MD_EXIT_OK;
}

/* ---- what begins ---------------------------------------------------------------------------- */

/* An md_takes_fn of the regions. */
MD_COLD int md_begins_now(const void *regions, const md_tensor *t) {
    const md_regions *r = (const md_regions *)regions;
    const md_span *s = md_span_of(r->model, t);
    if (r->beginning == MD_BEGIN_NUMBERS) {
        return t->rank == 0;
    }
    return r->beginning == MD_BEGIN_ALL || (s == NULL ? 0 : s->first) == r->beginning;
}

MD_COLD void md_opened_close(md_opened *from) {
    if (from->open) {
        close(from->fd);
        from->open = 0;
    }
}

/* A descriptor of the file at `path`, or of the one that is open from there. */
MD_COLD int md_opened_again(md_opened *from, const char *path, int *fd, md_text *message) {
    struct stat now;
    int again = from->open;
    int rc = again ? MD_EXIT_OK : md_open(path, message, &from->fd, &from->bytes);
    if (rc != MD_EXIT_OK) {
        return rc;
    }
    from->open = 1;
    snprintf(from->path, sizeof from->path, "%s", path);
    *fd = dup(from->fd);
    int known = *fd >= 0 && fstat(*fd, &now) == 0;
    if (!known || (again && ((uint64_t)now.st_size != from->bytes ||
                             now.st_mtim.tv_sec != from->changed.tv_sec ||
                             now.st_mtim.tv_nsec != from->changed.tv_nsec))) {
        return md_fail(message, MD_EXIT_DATA,
                       "%s: was changed while weights in it waited for their phase", path);
    }
    from->changed = now.st_mtim;
    return MD_EXIT_OK;
}
/* end: spans */

#endif
