/* SPDX-License-Identifier: 0BSD */
/* main: the program around an emitted model: sets a run up, dispatches it, gives its exit code.
 *
 *     int main(int argc, char **argv) { return md_main(&model, argc, argv); }
 *
 * Order: measure the process, read the command line, map the regions, open the data, start the
 * threads, bind, init, load, set; then print the memory table and run. Whatever can fail for want
 * of memory or data fails before the first step.
 * Needs the descriptor of model.h and the other files of the host; exits 0, 1, 2, 4, 5 or
 * 128 + signal. */
#ifndef MD_MAIN_H
#define MD_MAIN_H

#include "runtime/predict.h"

/* ---- paths ---------------------------------------------------------------------------------- */

enum { MD_PATHS = 32, MD_PATH_TEXT = 1024 };

/* Paths of data files that are made up here: one place for each file and part. */
typedef struct md_paths {
    md_run *run;
    char text[MD_PATHS][MD_PATH_TEXT];
} md_paths;

/* A name of the source: first as it stands, then beside the executable. */
MD_COLD const char *md_path_beside(char *text, const char *name) {
    char folder[MD_PATH_TEXT];
    if (name[0] == '/' || access(name, F_OK) == 0) {
        return name;
    }
    ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
    folder[n > 0 ? n : 0] = 0;
    char *slash = strrchr(folder, '/');
    if (slash == NULL) {
        return name;
    }
    slash[1] = 0;
    md_text t = md_text_make(text, MD_PATH_TEXT);
    md_text_add(&t, folder);
    md_text_add(&t, name);
    return access(t.at, F_OK) == 0 ? t.at : name;
}

/* The part of "TRAIN[,HELD_OUT]" for one of the two; NULL when there is none. */
MD_COLD const char *md_path_part(char *text, const char *value, int part) {
    const char *comma = strchr(value, ',');
    if (part == MD_PART_HELD) {
        return comma == NULL ? NULL : comma + 1;
    }
    if (comma == NULL) {
        return value;
    }
    md_text t = md_text_make(text, MD_PATH_TEXT);
    md_text_bytes(&t, value, (size_t)(comma - value));
    return t.at;
}

/* An md_path_fn: --data by the file's name, by the data set's name, then the source. */
MD_COLD const char *md_path_of(void *user, const md_dataset *set, int file, int part) {
    md_paths *p = (md_paths *)user;
    char *text = p->text[(file * MD_PARTS + part) % MD_PATHS];
    const char *value = md_option_value(&p->run->options, "--data", set->files[file].name);
    if (value == NULL && set->file_count == 1) {
        value = md_option_value(&p->run->options, "--data", set->name);
    }
    if (value != NULL) {
        return md_path_part(text, value, part);
    }
    const char *name = part == MD_PART_HELD ? set->files[file].held_out : set->files[file].train;
    return name == NULL ? NULL : md_path_beside(text, name);
}

/* ---- setting up ----------------------------------------------------------------------------- */

/* Arrays of the run, sized by the descriptor, in one mapping. */
MD_COLD int md_setup_block(md_run *r) {
    const md_entry *e = r->entry;
    size_t inputs = (size_t)e->input_count;
    size_t values = 1 + (size_t)e->metric_count + (size_t)e->extra_count;
    size_t rows = (size_t)(e->rows > e->eval_rows ? e->rows : e->eval_rows);
    md_block_mem *b = &r->block;
    b->size = md_round_up(r->model->tensor_count, 64) + md_round_up(inputs * sizeof(md_array), 64) +
              2 * md_round_up(inputs * sizeof(int64_t), 64) +
              md_round_up((size_t)e->output_count * sizeof(void *), 64) +
              md_round_up(rows * sizeof(int64_t), 64) +
              2 * md_round_up(values * sizeof(double), 64) +
              2 * md_round_up((size_t)e->eval_sums * sizeof(double), 64);
    b->used = 0;
    b->at = (char *)md_map(b->size);
    if (b->at == NULL) {
        return md_fail(&r->message, MD_EXIT_MEMORY, "no memory for %zu bytes of bookkeeping",
                       b->size);
    }
    md_touch_write(b->at, b->size);
    r->seen = (unsigned char *)md_take(b, r->model->tensor_count);
    r->arrays = (md_array *)md_take(b, inputs * sizeof(md_array));
    r->slices = (int64_t *)md_take(b, inputs * sizeof(int64_t));
    r->in = (const void **)md_take(b, inputs * sizeof(int64_t));
    r->results = (const void **)md_take(b, (size_t)e->output_count * sizeof(void *));
    r->rows = (int64_t *)md_take(b, rows * sizeof(int64_t));
    r->values = (double *)md_take(b, values * sizeof(double));
    r->eval_values = (double *)md_take(b, values * sizeof(double));
    r->sums = (double *)md_take(b, (size_t)e->eval_sums * sizeof(double));
    r->part_sums = (double *)md_take(b, (size_t)e->eval_sums * sizeof(double));
    return MD_EXIT_OK;
}

MD_COLD int md_setup_data(md_run *r, md_paths *paths) {
    const md_entry *e = r->entry;
    if (r->options.command == MD_RUN_EVAL && (e->eval == NULL || e->dataset < 0)) {
        return md_fail(&r->message, MD_EXIT_USAGE, "'%s' has no data set to evaluate on", e->name);
    }
    if (e->dataset < 0) {
        return MD_EXIT_OK;
    }
    if (r->model->datasets[e->dataset].file_count * MD_PARTS > MD_PATHS) {
        return md_fail(&r->message, MD_EXIT_DATA, "more than %d files in a data set",
                       MD_PATHS / MD_PARTS);
    }
    paths->run = r;
    r->has_data = 1;
    int rc = md_data_open(&r->data, &r->model->datasets[e->dataset], md_path_of, paths, &r->stream,
                          &r->message);
    if (rc == MD_EXIT_OK) {
        r->train_rows = md_data_rows(&r->data, MD_PART_TRAIN);
        r->held_rows = md_data_rows(&r->data, MD_PART_HELD);
    }
    return rc;
}

/* Threads: the least of what the bound provides for, the machine (or OMP_NUM_THREADS) offers and
 * --threads asks for. */
MD_COLD int md_setup_threads(md_run *r) {
    uint64_t before = md_resident_bytes();
    int64_t space = md_statm(0);
    if (!md_threads_fit(1)) {
        return md_fail(&r->message, MD_EXIT_MEMORY, "no memory for the library of threads");
    }
    int wanted = md_threads(r->model->threads); /* the first call of that library */
    space = md_statm(0) - space;
    r->opened = space > 0 ? (size_t)space * md_page() : 0;
    if (r->options.threads > 0) { /* more threads than cores are the user's right */
        int64_t most = r->model->threads;
        wanted = (int)(r->options.threads < most ? r->options.threads : most);
    }
    if (!md_threads_fit(wanted)) {
        return md_fail(&r->message, MD_EXIT_MEMORY,
                       "no memory for the stacks of %d threads; --threads N asks for fewer",
                       wanted);
    }
    r->threads = md_resident_threads(wanted, r->model->stack_bytes);
    uint64_t after = md_resident_bytes();
    r->libraries = after > before ? after - before : 0;
    return MD_EXIT_OK;
}

MD_COLD int md_setup_scalars(md_run *r) {
    const md_entry *e = r->entry;
    for (int i = 0; i < e->hyper_count; i++) {
        const md_scalar *s = &e->hypers[i];
        const char *text = md_option_value(&r->options, "--set", s->name);
        md_number n;
        if (text == NULL) {
            continue;
        }
        if (!md_parse_value(text, &n) ||
            !md_put_number((char *)r->regions.memory.state + s->offset, s->dtype, n)) {
            return md_fail(&r->message, MD_EXIT_USAGE, "--set %s=%s: not a value of %s", s->name,
                           text, md_dtype_get(s->dtype)->name);
        }
    }
    return MD_EXIT_OK;
}

MD_COLD int md_setup_model(md_run *r) {
    const md_model *m = r->model;
    int code = m->bind(m->net, &r->regions.memory);
    if (code == MD_OK) {
        code = m->init(m->net, (uint64_t)r->options.seed);
    }
    if (code != MD_OK) {
        return md_model_failed(r, code, "setting up");
    }
    if (r->options.resume != NULL) {
        int rc = md_checkpoint_resume(r);
        if (rc != MD_EXIT_OK) {
            return rc;
        }
    } else if (r->options.load != NULL) {
        int rc = md_load_file(r->options.load, m, &r->regions.memory, MD_SAVE_PARAMS,
                              r->options.only, r->seen, &r->message);
        if (rc != MD_EXIT_OK) {
            return rc;
        }
    }
    return md_setup_scalars(r);
}

MD_COLD int md_setup(md_run *r, md_paths *paths) {
    int rc = md_regions_map(&r->regions, r->model, &r->message);
    if (rc == MD_EXIT_OK) {
        rc = md_setup_block(r);
    }
    if (rc == MD_EXIT_OK) {
        rc = md_setup_data(r, paths);
    }
    if (rc == MD_EXIT_OK && r->options.command == MD_RUN_TRAIN) {
        rc = md_plan(r);
    }
    if (rc == MD_EXIT_OK) {
        rc = md_setup_threads(r);
    }
    if (rc == MD_EXIT_OK) {
        md_touch_write(r->regions.base, r->regions.mapped);
        rc = r->options.save == NULL ? MD_EXIT_OK
                                     : md_out_probe(&r->out, r->options.save, &r->message);
    }
    if (rc == MD_EXIT_OK && r->options.checkpoint != NULL) {
        rc = md_out_probe(&r->out, r->options.checkpoint, &r->message);
    }
    if (rc == MD_EXIT_OK) {
        rc = md_setup_model(r);
    }
    if (rc == MD_EXIT_OK) {
        rc = md_stage_setup(r);
    }
    if (rc == MD_EXIT_OK) { /* last: it empties a table that is there */
        rc = md_table_open(r);
    }
    return rc;
}

/* Gives the memory back, so that leak checkers have nothing to say. */
MD_COLD void md_teardown(md_run *r) {
    const md_entry *e = r->entry;
    for (int i = 0; e != NULL && r->arrays != NULL && i < e->input_count; i++) {
        md_array_close(&r->arrays[i]);
    }
    if (r->has_data) {
        md_data_close(&r->data);
    }
    md_unmap(r->block.at, r->block.size);
    if (r->regions.base != NULL) {
        munmap(r->regions.base - md_page(), r->regions.mapped + 2 * md_page());
    }
}

/* ---- info ----------------------------------------------------------------------------------- */

MD_COLD void md_info_entries(md_run *r) {
    const md_model *m = r->model;
    md_text *t = md_line(r);
    md_text_format(t, "model '%s' from %s\n\nentries%31s %16s\n", m->name, m->source, "arena bytes",
                   "FLOPs");
    for (int i = 0; i < m->entry_count; i++) {
        const md_entry *e = &m->entries[i];
        md_text_format(t, "  %-20s %-6s %9zu %16lld\n", e->name,
                       e->kind == MD_TRAIN ? "train" : "entry", e->arena_bytes,
                       (long long)e->flops);
        for (int k = 0; k < e->hyper_count; k++) {
            md_text_format(t, "    --set %s=%.9g\n", e->hypers[k].name, e->hypers[k].initial);
        }
    }
    md_text_add(t, "\n");
    md_print(r);
}

MD_COLD void md_info_layers(md_run *r) {
    const md_model *m = r->model;
    for (int i = 0; i < m->layer_count; i++) {
        const md_layer *l = &m->layers[i];
        md_text *t = md_line(r);
        if (i == 0) {
            md_text_format(t, "\nlayers%22s %20s %12s %14s %14s\n", "", "result", "parameters",
                           "bytes", "FLOPs");
        }
        md_text_format(t, "  %-26s %20s %12lld %14lld %14lld\n", l->path, l->shape,
                       (long long)l->params, (long long)l->activation_bytes, (long long)l->flops);
        md_print(r);
    }
}

MD_COLD void md_info_tensors(md_run *r) {
    static const char *const kinds[] = {"weight", "layer state", "slot", "ring"};
    const md_model *m = r->model;
    uint64_t params = 0;
    for (size_t i = 0; i < m->tensor_count; i++) {
        const md_tensor *x = &m->tensors[i];
        char shape[256];
        md_text s = md_text_make(shape, sizeof shape);
        md_text *t = md_line(r);
        md_text_shape(&s, x->shape, x->rank);
        if (i == 0) {
            md_text_format(t, "\ntensors\n");
        }
        md_text_format(t, "  %-34s %-5s %-18s %-6s at %10zu %12zu bytes  %s%s\n", x->name,
                       md_dtype_get(x->dtype)->name, shape,
                       x->region == MD_PARAMS ? "params" : "state", x->offset, x->bytes,
                       kinds[x->kind], x->kind == MD_PARAM && !x->trainable ? ", frozen" : "");
        md_print(r);
        params += x->kind == MD_PARAM ? x->bytes / md_dtype_bytes(x->dtype) : 0;
    }
    md_text *t = md_line(r);
    md_text_format(t, "\n%llu parameters\n", (unsigned long long)params);
    md_print(r);
}

MD_COLD int md_info(md_run *r) {
    int rc = md_regions_map(&r->regions, r->model, &r->message);
    if (rc == MD_EXIT_OK) {
        r->threads = md_threads(r->model->threads);
        md_info_entries(r);
        md_log_memory(r);
        md_info_layers(r);
        md_info_tensors(r);
    }
    return rc;
}

/* ---- main ----------------------------------------------------------------------------------- */

MD_COLD int md_dispatch(md_run *r, md_paths *paths) {
    switch (r->options.command) {
    case MD_RUN_HELP:
        md_options_help(r->model, r->options.argv[0], md_line(r));
        md_print(r);
        return MD_EXIT_OK;
    case MD_RUN_INFO: return md_info(r);
    default: break;
    }
    int rc = md_setup(r, paths);
    if (rc != MD_EXIT_OK) {
        return rc;
    }
    if (r->options.command == MD_RUN_ENTRY) {
        return md_predict(r);
    }
    md_log_memory(r);
    return r->options.command == MD_RUN_EVAL ? md_evaluate(r) : md_fit(r);
}

/* A closed standard stream would give its number to the next file, and what is printed would land
 * in there. Its place is taken by something that refuses what the stream is for. */
MD_COLD void md_hold_streams(void) {
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
        }
    }
}

MD_COLD int md_main(const md_model *model, int argc, char **argv) {
    static md_run run;
    static md_paths paths;
    md_run *r = &run;
    memset(r, 0, sizeof *r);
    memset(&paths, 0, sizeof paths);
    md_hold_streams();
    r->model = model;
    r->message = md_text_make(r->message_bytes, sizeof r->message_bytes);
    r->terminal = isatty(STDOUT_FILENO);
    md_resident_program(model->stack_bytes);
    r->process = md_resident_bytes();
    md_signals();
    int rc = md_options_parse(&r->options, model, argc, argv, &r->message);
    r->entry = r->options.entry;
    if (rc == MD_EXIT_OK) {
        rc = md_dispatch(r, &paths);
    }
    if (rc == MD_EXIT_OK && r->lost != 0) {
        rc = md_fail(&r->message, MD_EXIT_DATA, "cannot write to the standard output: %s",
                     strerror(r->lost));
    }
    if (rc == MD_EXIT_OK) {
        rc = md_table_close(r);
    }
    if (r->message.used > 0) {
        md_complain(r, "error: ");
    }
    md_teardown(r);
    return rc;
}

#endif
