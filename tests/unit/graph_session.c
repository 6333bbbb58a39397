/* graph_session: see the header. */
#include "graph_session.h"

#include "graph_reduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { JOB_SECONDS = 60, REDUCE_SECONDS = 60 };

uint64_t session_number(const char *name, uint64_t usual) {
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : usual;
}

/* --- one case --------------------------------------------------------------------------------- */

static bool make_case(const Job *j, GraphCase *c, OracleReport *r) {
    if (!j->make(j, c, r)) {
        return false;
    }
    c->lone = j->seed % 3 == 0;
    return true;
}

static void run_job(void *ctx, void *result) {
    const Job *j = ctx;
    OracleReport *r = result;
    GraphCase made, *c = j->c;
    if (!c) {
        c = &made;
        if (!make_case(j, c, r)) {
            return;
        }
    }
    oracle_check(c, &j->opt, r);
    if (j->folder && !r->check[0]) {
        emitted_alone(j->folder, j->opt.number, r);
    }
}

void job_run(Job *j, OracleReport *r) {
    OracleReport fresh = {.check = {0}};
    *r = fresh;
    if (!isolated(run_job, j, r, sizeof *r, JOB_SECONDS, fresh.check, sizeof fresh.check)) {
        *r = fresh;
    }
}

/* --- findings --------------------------------------------------------------------------------- */

/* The part of a failure's name that stays while the graph shrinks: up to the place of a fault. */
static size_t class_length(const char *check) {
    const char *end = strstr(check, "internal fault at ");
    end = end ? strstr(end, ": ") : strstr(check, " on ");
    return end ? (size_t)(end - check) : strlen(check);
}

typedef struct {
    Job job;
    char check[96];
} Finding;

bool job_same_fault(const char *check, const char *other) {
    size_t n = class_length(check);
    return class_length(other) == n && strncmp(other, check, n) == 0;
}

static bool still_fails(void *ctx, GraphCase *c) {
    Finding *f = ctx;
    OracleReport r;
    Job j = f->job;
    j.c = c;
    job_run(&j, &r);
    return job_same_fault(f->check, r.check);
}

OracleReport job_reduce(const Job *j, const char *check, GraphCase *c) {
    OracleReport r;
    Finding f = {.job = *j};
    snprintf(f.check, sizeof f.check, "%s", check);
    graph_reduce(c, still_fails, &f, REDUCE_SECONDS);
    Job again = *j;
    again.c = c;
    job_run(&again, &r);
    return r;
}

/* FINDINGS/NAME-SEED.mdl */
static const char *finding_path(char *path, size_t room, const char *name, uint64_t seed) {
    const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
    const char *folder = getenv("FINDINGS");
    mkdir(build, 0777);
    snprintf(path, room, "%s/findings", build);
    folder = folder ? folder : path;
    mkdir(folder, 0777);
    char *copy = strdup(folder);
    snprintf(path, room, "%s/%s-%llu.mdl", copy, name, (unsigned long long)seed);
    free(copy);
    return path;
}

static void say_where(bool saved, const char *file) {
    printf("%s%s\n", saved ? "in " : "cannot write ", file);
    fflush(stdout);
}

/* The graph of a case, made small. Nothing where the compiler does not come to a graph. */
static void save_graph(Job *j, const OracleReport *found, const char *folder) {
    GraphCase c;
    OracleReport r = {.check = {0}};
    char path[300], head[900], file[300];
    snprintf(path, sizeof path, "%s/0", folder);
    j->opt.write = path; /* lowering is part of it */
    j->opt.number = 0;
    j->folder = strncmp(found->check, "emitted", 7) == 0 ? folder : NULL;
    if (!make_case(j, &c, &r)) {
        return;
    }
    int before = graph_size(&c);
    r = job_reduce(j, found->check, &c);
    snprintf(head, sizeof head, "seed %llu: %s\n%s\n%d nodes of %d", (unsigned long long)j->seed,
             found->check, r.what, graph_size(&c), before);
    finding_path(file, sizeof file, "graph", j->seed);
    bool saved = graph_case_save(&c, file, head);
    printf("%s\n", head);
    say_where(saved, file);
    graph_case_close(&c);
}

static void session_finding(Session *s, uint64_t seed, const OracleReport *r) {
    Job j = s->job(seed);
    printf("SEED=%llu: %s: %s\n", (unsigned long long)seed, r->check, r->what);
    s->findings++;
    if (j.save) {
        char file[300], base[300];
        snprintf(base, sizeof base, "%s/0", s->folder);
        j.opt.write = base; /* lowering is part of it */
        j.opt.number = 0;
        j.folder = strncmp(r->check, "emitted", 7) == 0 ? s->folder : NULL;
        finding_path(file, sizeof file, s->name, seed);
        say_where(j.save(&j, file, r), file);
    }
    /* Of a text that the compiler does not survive, or takes for another, there is nothing else. */
    if (!j.save || (strncmp(r->check, "died", 4) != 0 && !str_eq(r->check, "meaning"))) {
        save_graph(&j, r, s->folder);
    }
}

/* --- batches ---------------------------------------------------------------------------------- */

bool session_open(Session *s, const char *name, Job (*job)(uint64_t seed)) {
    memset(s, 0, sizeof *s);
    s->name = name;
    s->job = job;
    return scratch_make(s->folder, name);
}

void session_close(Session *s) {
    if (!scratch_remove(s->folder)) {
        printf("%s is left\n", s->folder);
    }
}

void session_run(Session *s, uint64_t seed, bool emit) {
    Job j = s->job(seed);
    char base[100];
    snprintf(base, sizeof base, "%s/%d", s->folder, s->count);
    j.opt.write = emit ? base : NULL;
    j.opt.number = s->count;
    OracleReport *r = &s->r[s->count];
    job_run(&j, r);
    s->executions++;
    oracle_add(&s->all, r);
    if (r->check[0]) {
        OracleReport copy = *r;
        session_finding(s, seed, &copy);
    } else if (emit && !r->refused) {
        s->seed[s->count] = seed;
        s->number[s->count] = s->count;
        s->count++;
    }
}

void session_build(Session *s, int fast) {
    for (int k = 0; emitted_flags[k]; k++) {
        int count = k == 0 || s->count < fast ? s->count : fast;
        if (count == 0 || emitted_run(s->folder, s->number, count, emitted_flags[k], s->r)) {
            continue;
        }
        for (int i = 0; i < count; i++) { /* which of them? */
            emitted_run(s->folder, &s->number[i], 1, emitted_flags[k], &s->r[i]);
        }
    }
}

void session_flush(Session *s, int fast) {
    session_build(s, fast);
    int count = s->count;
    s->count = 0;
    for (int i = 0; i < count; i++) {
        if (s->r[i].check[0]) {
            OracleReport copy = s->r[i];
            session_finding(s, s->seed[i], &copy);
        }
    }
}

int session_soak(const char *name, Job (*job)(uint64_t seed)) {
    Session s;
    time_t end = time(NULL) + (time_t)session_number("SECONDS", 0);
    if (!session_open(&s, name, job)) {
        return 1;
    }
    uint64_t emit = session_number("EMIT", 10);
    for (uint64_t seed = session_number("SEED", 1); time(NULL) < end; seed++) {
        session_run(&s, seed, seed * 37 % 100 < emit);
        if (s.count == SESSION_BATCH) {
            session_flush(&s, SESSION_BATCH / 4);
        }
    }
    session_flush(&s, SESSION_BATCH / 4);
    session_close(&s);
    printf("executions %d, findings %d\n", s.executions, s.findings);
    return s.findings > 0;
}
