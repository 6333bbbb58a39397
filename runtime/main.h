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

#include "runtime/apart.h"
#include "runtime/predict.h"
#include "runtime/profile.h"

/* ---- paths ---------------------------------------------------------------------------------- */

enum { MD_PATHS = 48, MD_PATH_TEXT = 1024 };

/* Paths of data files that are made up here: one place for each file and part of each data set. */
typedef struct md_paths {
    md_run *run;
    int used; /* by the data sets that are open */
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

/* One path of "TRAIN[,HELD_OUT[,TEST]]"; NULL when there is none: "rows.csv,,test.csv". What stands
 * behind the second comma is one path. Without TRAIN, the model's stays. */
MD_COLD const char *md_path_part(char *text, const char *value, int part) {
    const char *comma = strchr(value, ',');
    for (int i = 0; i < part; i++) {
        if (comma == NULL) {
            return NULL;
        }
        value = comma + 1;
        comma = i + 2 < MD_PARTS ? strchr(value, ',') : NULL;
    }
    md_text t = md_text_make(text, MD_PATH_TEXT);
    md_text_bytes(&t, value, comma == NULL ? strlen(value) : (size_t)(comma - value));
    return t.used == 0 && part != MD_PART_TRAIN ? NULL : comma == NULL ? value : t.at;
}

/* An md_path_fn: --data by the file's name, by the data set's name, then the source. */
MD_COLD const char *md_path_of(void *user, const md_dataset *set, int file, int part) {
    md_paths *p = (md_paths *)user;
    char *text = p->text[(p->used + file * MD_PARTS + part) % MD_PATHS];
    const md_options *o = &p->run->options;
    const char *value = md_option_of(o, "--data", set->name, set->files[file].name);
    if (value == NULL && set->file_count == 1) {
        value = md_option_of(o, "--data", set->name, set->name);
    }
    if (value != NULL && (part != MD_PART_TRAIN || value[0] != ',')) {
        return md_path_part(text, value, part);
    }
    const char *name = set->files[file].paths[part];
    return name == NULL ? NULL : md_path_beside(text, name);
}

/* ---- setting up ----------------------------------------------------------------------------- */

/* The arrays of a task; from a block without memory only their size is taken. */
MD_COLD void md_task_open(md_task *k, const md_entry *e, md_block_mem *b) {
    const size_t inputs = (size_t)e->input_count, sums = (size_t)e->eval_sums;
    const size_t rows = (size_t)(e->rows > e->eval_rows ? e->rows : e->eval_rows);
    const size_t values = 1 + (size_t)e->metric_count + (size_t)e->extra_count;
    k->entry = e;
    k->arrays = (md_array *)md_take(b, inputs * sizeof(md_array));
    k->slices = (int64_t *)md_take(b, inputs * sizeof(int64_t));
    k->scalars = (uint64_t *)md_take(b, inputs * sizeof(int64_t));
    k->in = (const void **)md_take(b, inputs * sizeof(int64_t));
    k->results = (const void **)md_take(b, (size_t)e->output_count * sizeof(void *));
    k->paths = (const char **)md_take(b, (size_t)e->output_count * sizeof(void *));
    k->rows = (int64_t *)md_take(b, rows * sizeof(int64_t));
    k->values = (double *)md_take(b, values * sizeof(double));
    k->eval_values = (double *)md_take(b, values * sizeof(double));
    k->batches = (int64_t *)md_take(b, (1 + sums) * sizeof(double));
    k->part_sums = (double *)md_take(b, sums * sizeof(double));
    /* if: ordered */
    k->staged = -1;
    /* end: ordered */
    for (size_t i = 0; k->values != NULL && i < values; i++) {
        k->values[i] = (double)NAN; /* of no step yet */
    }
}

/* The tasks of the run and their arrays, sized by the descriptor, in one mapping: a walk without
 * memory says how much it takes. */
MD_COLD int md_setup_block(md_run *r) {
    int count = 0;
    while (md_option_entry(&r->options, r->model, count) != NULL) {
        count++;
    }
    md_block_mem *b = &r->block;
    size_t slices = md_slice_total(r->model->tensors, r->model->tensor_count);
    for (int mapped = 0; mapped < 2; mapped++) {
        md_task measured;
        if (mapped && md_block_map(b, "bookkeeping", &r->message) != MD_EXIT_OK) {
            return MD_EXIT_MEMORY;
        }
        r->seen = (unsigned char *)md_take(b, slices);
        r->sets = (md_data *)md_take(b, (size_t)count * sizeof(md_data));
        r->tasks = (md_task *)md_take(b, (size_t)count * sizeof(md_task));
        for (int i = 0; i < count; i++) {
            md_task *k = mapped ? &r->tasks[i] : &measured;
            md_task_open(k, md_option_entry(&r->options, r->model, i), b);
            /* if: phases */
            k->phase = r->options.phases ? r->model->phases[i].phase : 0;
            /* end: phases */
        }
    }
    r->task_count = count;
    r->task = r->tasks;
    return MD_EXIT_OK;
}

/* if: blind */
/* Rows of --data that no function of the program would ever look at. */
MD_COLD int md_setup_parts(md_run *r, const md_data *d) {
    const md_dataset *set = d->set;
    int evaluated = 0;
    for (int i = 0; i < r->model->entry_count; i++) {
        const md_entry *e = &r->model->entries[i];
        evaluated |= e->eval != NULL && e->dataset >= 0 && &r->model->datasets[e->dataset] == set;
    }
    for (int part = MD_PART_HELD; part < MD_PARTS && !evaluated; part++) {
        if (d->own[part] && set->files[0].paths[part] == NULL) {
            return md_fail(&r->message, MD_EXIT_USAGE,
                           "--data %s: the program evaluates no %s rows, as its model names none; "
                           "'file %s = \"...\", \"...\";' does",
                           set->name, md_part_name(part), set->files[0].name);
        }
    }
    return MD_EXIT_OK;
}

/* end: blind */
/* Opens the data of the task at hand, unless another one has. */
MD_COLD int md_setup_data(md_run *r, md_paths *paths) {
    md_task *k = r->task;
    const md_entry *e = k->entry;
    if (r->options.command == MD_RUN_EVAL && (e->eval == NULL || e->dataset < 0)) {
        return md_fail(&r->message, MD_EXIT_USAGE, "'%s' has no data set to evaluate on", e->name);
    }
    if (e->dataset < 0) {
        return MD_EXIT_OK;
    }
    const md_dataset *set = &r->model->datasets[e->dataset];
    /* if: several */
    for (int i = 0; i < r->set_count; i++) {
        k->data = r->sets[i].set == set ? &r->sets[i] : k->data;
    }
    /* end: several */
    int rc = MD_EXIT_OK;
    if (k->data == NULL) {
        /* if: many */
        if (paths->used + set->file_count * MD_PARTS > MD_PATHS) {
            return md_fail(&r->message, MD_EXIT_DATA, "more than %d files in the data of a run",
                           MD_PATHS / MD_PARTS);
        }
        /* end: many */
        k->data = &r->sets[r->set_count++];
        rc = md_data_open(k->data, set, md_path_of, paths, &r->stream, &r->message);
        paths->used += set->file_count * MD_PARTS;
        /* if: blind */
        rc = rc == MD_EXIT_OK ? md_setup_parts(r, k->data) : rc;
        /* end: blind */
    }
    if (rc == MD_EXIT_OK) {
        k->train_rows = md_data_rows(k->data, MD_PART_TRAIN);
        k->held_rows = md_data_rows(k->data, MD_PART_HELD);
        rc = r->options.command == MD_RUN_EVAL ? md_eval_part(r) : MD_EXIT_OK;
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
        wanted = (int)r->options.threads;
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

/* if: hypers */
MD_COLD int md_setup_scalars(md_run *r) {
    const md_entry *e = r->task->entry;
    for (int i = 0; i < e->hyper_count; i++) {
        const md_scalar *s = &e->hypers[i];
        const char *text = md_option_of(&r->options, "--set", e->name, s->name);
        md_number n;
        if (text == NULL) {
            continue;
        }
        if (!md_parse_value(text, &n) ||
            !md_put_number((char *)r->regions.memory.state + s->offset, s->dtype, n)) {
            return md_stage_refused(r, s->name, text, s->dtype);
        }
    }
    return MD_EXIT_OK;
}
/* end: hypers */

/* if: norm */
/* Constants of the normalised fields of one data set: those of the file that was loaded, if it
 * knows them, else those of the rows to train on. */
MD_COLD int md_set_constants(md_run *r, md_data *d) {
    const md_tensor *tensors = r->model->tensors;
    const md_memory *memory = &r->regions.memory;
    int rc = MD_EXIT_OK;
    for (int i = 0; rc == MD_EXIT_OK && i < d->set->field_count; i++) {
        const md_field *f = &d->set->fields[i];
        if (f->norm == MD_NORM_NONE) {
            continue;
        }
        char *known = md_slice_data(&tensors[f->known], 0, memory);
        int64_t count, rows = md_data_rows(d, MD_PART_TRAIN);
        memcpy(&count, known, sizeof count);
        if (count <= 0) {
            rc = md_data_constants(d, f, md_slice_data(&tensors[f->centre], 0, memory),
                                   md_slice_data(&tensors[f->spread], 0, memory), &r->message);
            memcpy(known, &rows, sizeof rows);
        }
    }
    return rc;
}

MD_COLD int md_setup_constants(md_run *r) {
    int rc = MD_EXIT_OK;
    for (int i = 0; rc == MD_EXIT_OK && i < r->set_count; i++) {
        rc = md_set_constants(r, &r->sets[i]);
    }
    return rc;
}
/* end: norm */

/* if: spans */
/* Weights and states of a run by phases, those of each phase made in its memory. What is saved of
 * later ones, or of those in front of where the run goes on, goes into the file. */
MD_COLD int md_setup_phases(md_run *r) {
    int rc = MD_EXIT_OK, on = 0, last = r->model->arena_count - 1;
    if (r->options.resume != NULL) {
        r->regions.beginning = MD_BEGIN_NUMBERS; /* they say where */
        rc = md_phase_open(r, 0, last);
        rc = rc == MD_EXIT_OK ? md_checkpoint_resume(r) : rc;
        on = r->task->phase;
    }
    for (int k = last; k > on && rc == MD_EXIT_OK; k--) {
        if (r->regions.spill && md_span_waits(r, k)) {
            rc = md_phase_open(r, k, on);
            rc = rc == MD_EXIT_OK ? md_phase_make(r, k) : rc;
            rc = rc == MD_EXIT_OK ? md_span_spill(r, k, k, last + 1) : rc;
        }
    }
    for (int k = 0; k <= on && rc == MD_EXIT_OK; k++) {
        rc = md_phase_open(r, k, on);
        rc = rc == MD_EXIT_OK ? md_phase_make(r, k) : rc;
        rc = rc == MD_EXIT_OK ? md_span_spill(r, k, k, on) : rc;
    }
    r->regions.phase = on;
    return rc == MD_EXIT_OK ? md_phase_open(r, on, -1) : rc;
}
/* end: spans */

MD_COLD int md_setup_model(md_run *r) {
    int by_phase = 0, code = r->model->bind(r->model->net, &r->regions.memory);
    int rc = code == MD_OK ? MD_EXIT_OK : md_model_failed(r, code, "setting up");
    /* if: spans */
    r->regions.beginning = MD_BEGIN_ALL;
    by_phase = r->regions.phased;
    rc = by_phase && rc == MD_EXIT_OK ? md_setup_phases(r) : rc;
    /* end: spans */
    rc = by_phase || rc != MD_EXIT_OK ? rc : md_begin_values(r);
    /* if: norm */
    rc = rc == MD_EXIT_OK ? md_setup_constants(r) : rc;
    /* end: norm */
    /* if: hypers */
    for (int i = 0; i < r->task_count && rc == MD_EXIT_OK; i++) {
        md_select(r, i);
        rc = md_setup_scalars(r);
    }
    /* end: hypers */
    return rc;
}

MD_COLD int md_setup(md_run *r, md_paths *paths) {
    int rc = md_regions_map(&r->regions, r->model, &r->message);
    rc = rc == MD_EXIT_OK ? md_setup_block(r) : rc;
    paths->run = r;
    for (int i = 0; i < r->task_count && rc == MD_EXIT_OK; i++) {
        md_select(r, i);
        rc = md_setup_data(r, paths);
    }
    rc = rc == MD_EXIT_OK ? md_apart(r) : rc;
    if (rc == MD_EXIT_OK && r->options.command == MD_RUN_TRAIN) {
        rc = md_plan(r, 0);
    }
    /* if: plot */
    rc = rc == MD_EXIT_OK ? md_plot_setup(r) : rc;
    /* end: plot */
    rc = rc == MD_EXIT_OK ? md_setup_threads(r) : rc;
    /* if: profile */
    rc = rc == MD_EXIT_OK ? md_profile_setup(r) : rc;
    /* end: profile */
    rc = rc == MD_EXIT_OK ? md_memory_take(r) : rc;
    rc = rc == MD_EXIT_OK ? md_out_probe(&r->out, r->options.save, &r->message) : rc;
    rc = rc == MD_EXIT_OK ? md_out_probe(&r->out, r->options.checkpoint, &r->message) : rc;
    rc = rc == MD_EXIT_OK ? md_best_setup(r) : rc;
    rc = rc == MD_EXIT_OK ? md_setup_model(r) : rc;
    for (int i = 0; i < r->task_count && rc == MD_EXIT_OK; i++) {
        md_select(r, i);
        rc = md_stage_setup(r);
    }
    if (rc == MD_EXIT_OK) { /* last: it empties a table that is there */
        rc = md_table_open(r);
    }
    return rc;
}

/* Gives the memory back, so that leak checkers have nothing to say. */
MD_COLD void md_teardown(md_run *r) {
    for (int i = 0; i < r->task_count; i++) {
        for (int k = 0; k < r->tasks[i].entry->input_count; k++) {
            md_array_close(&r->tasks[i].arrays[k]);
        }
    }
    for (int i = 0; i < r->set_count; i++) {
        md_data_close(&r->sets[i]);
    }
    md_unmap(r->block.at, r->block.size);
    md_unmap(r->plot.at, r->plot.size);
    /* if: profile */
    md_unmap(r->marks.at, r->marks.size);
    /* end: profile */
    /* if: spans */
    md_opened_close(&r->regions.from[0]);
    md_opened_close(&r->regions.from[1]);
    /* end: spans */
    if (r->regions.base != NULL) {
        munmap(r->regions.base - md_page(), r->regions.mapped + 2 * md_page());
    }
}

/* ---- info ----------------------------------------------------------------------------------- */

/* Lines of entries or of layers up to the next NULL; gives what stands behind it. */
MD_COLD const char *const *md_info_lines(md_run *r, const char *const *line) {
    for (; *line != NULL; line++) {
        MD_SAY(r, "%s", *line);
    }
    return line + 1;
}

MD_COLD void md_info_tensors(md_run *r) {
    static const char *const kinds[] = {"weight", "layer state", "slot", "ring"};
    const md_model *m = r->model;
    uint64_t params = 0;
    MD_SAY(r, "%s", m->tensor_count > 0 ? "\ntensors\n" : "");
    for (size_t i = 0; i < m->tensor_count; i++) {
        const md_tensor *x = &m->tensors[i];
        char shape[MD_SHAPE_TEXT];
        MD_SAY(r, "  %-34s %-5s %-18s %-6s at %10zu %12zu bytes  %s%s%s\n", x->name,
               md_dtype_get(x->dtype)->name, md_shape_text(shape, x->shape, x->rank),
               x->region == MD_PARAMS ? "params" : "state", x->offset, x->bytes,
               x->copy_of > 0 ? "second set" : kinds[x->kind],
               x->kind == MD_PARAM && !x->trainable ? ", frozen" : "",
               x->transposed ? ", transposed in files" : "");
        params += x->kind == MD_PARAM ? x->bytes / md_dtype_bytes(x->dtype) : 0;
    }
    MD_SAY(r, "\n%llu parameters\n", (unsigned long long)params);
}

MD_COLD int md_info(md_run *r) {
    int rc = md_regions_map(&r->regions, r->model, &r->message);
    if (rc == MD_EXIT_OK) {
        r->threads = md_threads(r->model->threads);
        const char *const *layers = md_info_lines(r, r->model->info);
        /* if: spans */
        md_memory_plan(r);
        /* end: spans */
        md_log_memory(r);
        /* if: spans */
        md_log_phases(r);
        /* end: spans */
        (void)md_info_lines(r, layers);
        md_info_tensors(r);
    }
    return rc;
}

/* ---- main ----------------------------------------------------------------------------------- */

MD_COLD int md_dispatch(md_run *r, md_paths *paths) {
    if (r->options.command == MD_RUN_HELP) {
        md_options_help(r->model, r->options.argv[0], md_line(r));
        md_print(r);
        return MD_EXIT_OK;
    }
    int info = r->options.command == MD_RUN_INFO;
    int rc = info ? md_info(r) : md_setup(r, paths);
    if (rc != MD_EXIT_OK || info) {
        return rc;
    }
    /* if: profile */
    md_profile_begin(r);
    /* end: profile */
    if (r->options.command == MD_RUN_ENTRY) {
        return md_predict(r);
    }
    md_log_memory(r);
    /* if: spans */
    md_log_phases(r);
    /* end: spans */
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
    r->terminal = md_is_terminal();
    md_resident_program(model->stack_bytes);
    r->process = md_resident_bytes();
    md_signals();
    int rc = md_options_parse(&r->options, model, argc, argv, &r->message);
    rc = rc == MD_EXIT_OK ? md_dispatch(r, &paths) : rc;
    /* if: profile */
    rc = md_profile_end(r, rc);
    /* end: profile */
    if (rc == MD_EXIT_OK && r->lost != 0) {
        rc = md_fail(&r->message, MD_EXIT_DATA, "cannot write to the standard output: %s",
                     strerror(r->lost));
    }
    rc = rc == MD_EXIT_OK ? md_table_close(r) : rc;
    if (r->message.used > 0) {
        md_complain(r, "error: ");
    }
    md_teardown(r);
    return rc;
}

#endif
