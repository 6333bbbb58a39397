/* SPDX-License-Identifier: 0BSD */
/* predict: calls an entry with inputs from files and writes its results to files or the terminal.
 *
 * Inputs may hold several calls along their first axis; results are stacked likewise.
 * Needs stage.h and save.h; gives an exit code. */
#ifndef MD_PREDICT_H
#define MD_PREDICT_H

#include "runtime/apart.h"
#include "runtime/fit.h"

enum { MD_SHOWN_VALUES = 64 };

/* How many calls the inputs hold. */
MD_COLD int md_predict_calls(md_run *r, int64_t *calls) {
    int first = -1;
    *calls = 1;
    for (int i = 0; i < r->task->entry->input_count; i++) {
        if (r->task->slices[i] <= 1) {
            continue;
        }
        if (first >= 0 && r->task->slices[i] != *calls) {
            return md_fail(&r->message, MD_EXIT_DATA,
                           "%s holds %lld calls of '%s', but %s holds %lld",
                           r->task->arrays[i].path, (long long)r->task->slices[i],
                           r->task->entry->name, r->task->arrays[first].path, (long long)*calls);
        }
        *calls = r->task->slices[i];
        first = i;
    }
    return MD_EXIT_OK;
}

/* Values `from` to `to` - 1, separated. */
MD_COLD void md_show_values(md_text *t, const md_port *port, const void *data, size_t from,
                            size_t to, const char *separator) {
    const size_t width = md_dtype_bytes(port->dtype);
    char shown[MD_NUMBER_TEXT];
    for (size_t i = from; i < to; i++) {
        const md_number n = md_get_number((const char *)data + i * width, port->dtype, 0);
        const int fits = isfinite(n.f) || separator[0] == ' '; /* JSON has no others */
        md_text_add(t, i > 0 ? separator : "");
        md_text_add(t, fits ? md_number_text(shown, n) : "null");
    }
}

/* name [1, 10] = 0.1 0.2 ..., or a line of JSON with all values. */
MD_COLD void md_show_result(md_run *r, const md_port *port, int64_t call, const void *data) {
    md_text *t = md_line(r);
    size_t count = port->bytes / md_dtype_bytes(port->dtype);
    if (r->options.log == MD_LOG_TEXT) {
        size_t shown = count < MD_SHOWN_VALUES ? count : (size_t)MD_SHOWN_VALUES;
        md_text_add(t, port->name);
        if (port->rank > 0) {
            md_text_add(t, " ");
            md_text_shape(t, port->shape, port->rank);
        }
        md_text_add(t, " = ");
        md_show_values(t, port, data, 0, shown, " ");
        md_text_add(t, shown < count ? " ... (--out writes all of it)\n" : "\n");
        md_print(r);
        return;
    }
    md_text_format(
        t, "{\"event\":\"result\",\"entry\":\"%s\",\"call\":%lld,\"name\":\"%s\",\"shape\":",
        r->task->entry->name, (long long)call, port->name);
    md_text_shape(t, port->shape, port->rank);
    md_text_add(t, ",\"values\":[");
    for (size_t i = 0; i < count; i += MD_SHOWN_VALUES) {
        size_t end = count - i < MD_SHOWN_VALUES ? count : i + MD_SHOWN_VALUES;
        md_show_values(t, port, data, i, end, ",");
        md_print(r);
        t = md_line(r);
    }
    md_text_add(t, "]}\n");
    md_print(r);
}

/* The header of a result of `calls` calls. NumPy knows no bf16, so that goes out as f32. */
MD_COLD void md_result_header(md_out *out, const md_port *port, int64_t calls) {
    char buffer[1024];
    int64_t shape[MD_MAX_RANK];
    int rank = port->rank;
    for (int i = 0; i < rank; i++) {
        shape[i] = port->shape[i];
    }
    if (calls > 1 && rank > 0) {
        shape[0] *= calls;
    } else if (calls > 1) {
        shape[rank++] = calls;
    }
    md_text t = md_text_make(buffer, sizeof buffer);
    md_npy_header(&t, port->dtype, rank, shape);
    (void)md_out_write(out, t.at, t.used);
}

MD_FN void md_result_data(md_out *out, const md_port *port, const void *data) {
    /* if: halves */
    const uint16_t *from = (const uint16_t *)data;
    for (size_t i = 0; port->dtype == MD_BF16 && i < port->bytes / 2; i++) {
        float f = md_from_bf16(from[i]);
        (void)md_out_write(out, &f, sizeof f);
    }
    if (port->dtype == MD_BF16) {
        return;
    }
    /* end: halves */
    (void)md_out_write(out, data, port->bytes);
}

/* One call with slice number `index` of the inputs. */
MD_FN int md_predict_call(md_run *r, int64_t index) {
    const md_entry *e = r->task->entry;
    const md_call call = md_call_make(r, NULL, 0);
    int rc = md_stage_arrays(r, index);
    int code = rc == MD_EXIT_OK ? e->call(r->model->net, &call) : MD_OK;
    return code == MD_OK ? rc
                         : md_model_failed(r, code, "call %lld of '%s'", (long long)index, e->name);
}

/* All calls. `outs` has one file a result; a result without a path is shown if it is asked for
 * nowhere else. */
MD_COLD int md_predict_all(md_run *r, md_out *outs, int64_t calls) {
    const md_entry *e = r->task->entry;
    int files = 0, rc = MD_EXIT_OK;
    for (int i = 0; i < e->output_count; i++) {
        const char *path = r->task->paths[i];
        outs[i].fd = -1;
        if (path != NULL && rc == MD_EXIT_OK) {
            rc = md_out_open(&outs[i], path, &r->message);
            files++;
        }
        if (outs[i].fd >= 0) {
            md_result_header(&outs[i], &e->outputs[i], calls);
        }
    }
    for (int64_t call = 0; call < calls && rc == MD_EXIT_OK && md_signal == 0; call++) {
        rc = md_predict_call(r, call);
        for (int i = 0; i < e->output_count && rc == MD_EXIT_OK; i++) {
            if (outs[i].fd >= 0) {
                md_result_data(&outs[i], &e->outputs[i], r->task->results[i]);
            } else if (files == 0 && r->options.log != MD_LOG_NONE) {
                md_show_result(r, &e->outputs[i], call, r->task->results[i]);
            }
        }
    }
    for (int i = 0; i < e->output_count; i++) {
        if (outs[i].fd >= 0 && (rc != MD_EXIT_OK || md_signal != 0)) {
            md_out_cancel(&outs[i]);
        } else if (outs[i].fd >= 0) {
            rc = md_out_close(&outs[i], &r->message);
        }
    }
    return rc;
}

MD_COLD int md_predict(md_run *r) {
    int64_t calls = 1;
    int rc = md_predict_calls(r, &calls);
    size_t bytes = sizeof(md_out) * (size_t)r->task->entry->output_count;
    md_out *outs = (md_out *)md_map_ready(bytes, "file buffers", &r->message);
    if (outs == NULL) {
        return MD_EXIT_MEMORY;
    }
    rc = rc == MD_EXIT_OK ? md_predict_all(r, outs, calls) : rc;
    md_unmap(outs, bytes);
    if (rc == MD_EXIT_OK && md_signal == 0) {
        rc = md_save_all(r);
    }
    return rc != MD_EXIT_OK ? rc : md_signal != 0 ? 128 + (int)md_signal : MD_EXIT_OK;
}

#endif
