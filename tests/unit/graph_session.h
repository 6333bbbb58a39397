/* graph_session: many random cases through the oracle, in batches of C programs, and what is done
 * with those that fail. See test_random.c for what the environment says. */
#ifndef MDLC_TESTS_GRAPH_SESSION_H
#define MDLC_TESTS_GRAPH_SESSION_H

#include "graph_oracle.h"
#include "tests/support.h"

enum { SESSION_BATCH = 20 };

typedef struct Job Job;
struct Job {
    uint64_t seed;
    OracleOptions opt;
    const char *folder; /* compile the C at once there: NULL, leave it to a batch */
    GraphCase *c;       /* made already: the seed does not count */
    const char *text;   /* in place of the one of the seed, for makers of texts */
    /* Makes the case of the seed; false: there is none, and *r says why. */
    bool (*make)(const Job *j, GraphCase *c, OracleReport *r);
    /* Writes what was made there, for a finding: *r; NULL: the graph is enough. */
    bool (*save)(Job *j, const char *path, const OracleReport *r);
};

typedef struct {
    Job (*job)(uint64_t seed);
    const char *name; /* of files of findings: NAME-SEED.mdl */
    char folder[SCRATCH_PATH];
    uint64_t seed[SESSION_BATCH];
    OracleReport r[SESSION_BATCH];
    int number[SESSION_BATCH], count;
    OracleReport all; /* statistics */
    int executions, findings;
} Session;

/* A number of the environment. */
uint64_t session_number(const char *name, uint64_t usual);

/* A fault of the compiler is a failed check too. */
void job_run(Job *j, OracleReport *r);
/* Do two reports tell of the same kind of fault? */
bool job_same_fault(const char *check, const char *other);
/* Makes a case that fails with `check` small; gives what fails about it then. */
OracleReport job_reduce(const Job *j, const char *check, GraphCase *c);

bool session_open(Session *s, const char *name, Job (*job)(uint64_t seed));
void session_close(Session *s);
/* Through all stages; with `emit` its C waits for session_flush. */
void session_run(Session *s, uint64_t seed, bool emit);
/* Compiles and runs those that wait: all at -O0, the first `fast` at -O3 too. */
void session_build(Session *s, int fast);
void session_flush(Session *s, int fast);
/* SECONDS from SEED on; the status of the process. */
int session_soak(const char *name, Job (*job)(uint64_t seed));

#endif
