/* step: times one update of an emitted model, or one prediction, called through its header.
 *
 *     step SECONDS [mean]     prints the median time of a step in microseconds, or the mean
 *
 * Compiled with -DMODEL_HEADER="mlp.h" -DMODEL=mlp -DM(x)=mlp_##x -DM_MACRO(x)=MLP_##x -DBATCH=64
 * -DWIDTH=784 -DCLASSES=10; the model has a train `fit` with inputs x [BATCH, WIDTH] and
 * y u8 [BATCH], or, with -DPREDICT and -DBATCH=1, an entry `predict` with x. Batches take turns, as
 * in training: on one batch alone gradients vanish, and the averages of optimizers end in subnormal
 * numbers, which processors multiply slowly. */
#define _DEFAULT_SOURCE /* madvise */
#include MODEL_HEADER

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { WARM_UP = 50, LEAST = 5, MOST = 200000, BATCHES = WIDTH < 10000 || BATCH == 1 ? 64 : 4 };
static const double warm_up_seconds = 0.5; /* of long steps fewer warm up */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Large ones as a program's own main maps them (runtime/regions.h), in huge pages where the system
 * gives these to those who ask. */
static void *block(size_t bytes) {
    enum { HUGE_PAGE = 2 << 20, HUGE_FROM = 8 << 20 };
    const size_t unit = bytes >= HUGE_FROM ? HUGE_PAGE : M_MACRO(ALIGN);
    size_t rounded = (bytes + unit - 1) / unit * unit;
    void *p = aligned_alloc(unit, rounded ? rounded : unit);
    if (p == NULL) {
        exit(5);
    }
#ifdef MADV_HUGEPAGE
    if (unit == HUGE_PAGE) {
        (void)madvise(p, rounded, MADV_HUGEPAGE);
    }
#endif
    memset(p, 0, rounded);
    return p;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
    static MODEL m;
    M(memory) memory = {0};
    memory.params_bytes = M_MACRO(PARAMS_BYTES), memory.params = block(memory.params_bytes);
    memory.state_bytes = M_MACRO(STATE_BYTES), memory.state = block(memory.state_bytes);
    memory.io_bytes = M_MACRO(IO_BYTES), memory.io = block(memory.io_bytes);
    memory.arena_bytes = M_MACRO(ARENA_BYTES), memory.arena = block(memory.arena_bytes);
    int code = M(bind)(&m, &memory);
    if (code == 0) {
        code = M(init)(&m, 1);
    }
    float *x = block(sizeof(float) * BATCHES * BATCH * WIDTH);
    uint8_t *y = block(BATCH);
    unsigned draw = 12345;
    for (int i = 0; i < BATCHES * BATCH * WIDTH; i++) {
        draw = draw * 1664525u + 1013904223u;
        x[i] = (float)(draw >> 8) / 16777216.0f;
    }
    for (int i = 0; i < BATCH; i++) {
        y[i] = (uint8_t)(i % CLASSES);
    }
#ifdef PREDICT
    M(predict_in) in = {0};
    M(predict_out) out;
#else
    M(fit_in) in = {0};
    in.y = y;
    M(fit_out) out;
#endif
    double *took = malloc(sizeof *took * MOST);
    if (took == NULL) {
        return 5;
    }
    int n = 0;
    double begin = now(), end = begin + seconds;
    for (int i = 0; code == 0 && n < MOST && (n < LEAST || now() < end); i++) {
        in.x = x + (ptrdiff_t)(i % BATCHES) * BATCH * WIDTH;
        double start = now();
#ifdef PREDICT
        code = M(predict)(&m, &in, &out);
#else
        code = M(fit)(&m, &in, &out);
#endif
        if (i >= WARM_UP || start > begin + warm_up_seconds) {
            took[n++] = now() - start;
        }
    }
    if (code != 0) {
        fprintf(stderr, "step: %s\n", M(strerror)(code));
        return 1;
    }
    double sum = 0;
    for (int i = 0; i < n; i++) {
        sum += took[i];
    }
    qsort(took, (size_t)n, sizeof *took, by_size);
    printf("%.2f\n", 1e6 * (argc > 2 ? sum / n : took[n / 2]));
    return 0;
}
