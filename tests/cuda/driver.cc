/* driver: trains an emitted program on made-up rows, in C or for a graphics processor, and prints
 * the same lines for both.
 *
 * MODEL is the emitted file, PREFIX and UPPER its prefix, TRAIN and TRAIN_UPPER its train; FIRST and
 * SECOND are the fields of its input, of COUNT_1 and COUNT_2 elements; integers are below LIMIT.
 * Where HOLDOUT is defined, a metric, its evaluation runs too. At the end stands what persists, by tensor. What
 * the device has free before and behind the steps goes to standard error, and the median time of a call.
 *
 *     driver STEPS */
#include MODEL

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <vector>

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(x) JOIN(PREFIX, x)
#define SIZE(x) JOIN(UPPER, x)
#define FIT(x) JOIN(JOIN(PREFIX, TRAIN), x)

template <typename T> using Element = std::remove_const_t<std::remove_pointer_t<T>>;

static unsigned long long state = 1;

/* Integers below LIMIT, or numbers from -1 to 1. */
template <typename T> static void draw(std::vector<T> &rows) {
    for (T &x : rows) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        unsigned bits = (unsigned)(state >> 40);
        x = std::is_integral<T>::value ? (T)(bits % LIMIT) : (T)(bits / 8388608.0 - 1);
    }
}

/* An entry that must be refused: its status, and then the row is what it was. */
template <typename T> static T spoil(T &x) {
    T was = x;
    x = std::is_integral<T>::value ? (T)LIMIT : (T)NAN;
    return was;
}

#ifdef MD_LAUNCH
static void *region(size_t bytes) {
    void *at = NULL;
    return cudaMalloc(&at, bytes > 0 ? bytes : 1) == cudaSuccess ? at : NULL;
}

static void drop(void *at) {
    cudaFree(at);
}

static void fetch(void *to, const void *from, size_t bytes) {
    cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, NULL);
    cudaStreamSynchronize(NULL);
}

static void report(const char *when) {
    size_t left = 0, all = 0;
    cudaMemGetInfo(&left, &all);
    fprintf(stderr, "%s: %zu of %zu bytes free\n", when, left, all);
}
#else
static void *region(size_t bytes) {
    return aligned_alloc(64, bytes > 0 ? (bytes + 63) / 64 * 64 : 64);
}

static void drop(void *at) {
    free(at);
}

static void fetch(void *to, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
}

static void report(const char *) {}
#endif

static void say(const char *what, int code, double value) {
    printf("%s %d %.9g\n", what, code, code == SIZE(OK) ? value : 0.0);
}

/* The sum of a tensor's magnitudes. */
static double magnitude(const md_tensor *t, const void *region) {
    std::vector<unsigned char> bytes(t->bytes);
    fetch(bytes.data(), (const unsigned char *)region + t->offset, t->bytes);
    double sum = 0;
    for (size_t i = 0; t->dtype == MD_F32 && i < t->bytes; i += 4) {
        float x;
        memcpy(&x, &bytes[i], 4);
        sum += fabs((double)x);
    }
    for (size_t i = 0; t->dtype == MD_I64 && i < t->bytes; i += 8) {
        int64_t x;
        memcpy(&x, &bytes[i], 8);
        sum += (double)x;
    }
    return sum;
}

int main(int argc, char **argv) {
    int steps = argc > 1 ? atoi(argv[1]) : 20;
    NAME(memory) memory = {};
    memory.params = region(memory.params_bytes = SIZE(PARAMS_BYTES));
    memory.state = region(memory.state_bytes = SIZE(STATE_BYTES));
    memory.io = region(memory.io_bytes = SIZE(IO_BYTES));
    memory.arena = region(memory.arena_bytes = SIZE(ARENA_BYTES));
#ifdef MD_LAUNCH
    memory.host = aligned_alloc(64, memory.host_bytes = SIZE(HOST_BYTES));
#endif
    PREFIX m = {};
    FIT(in) in = {};
    FIT(out) out = {};
    std::vector<Element<decltype(in.FIRST)>> first(COUNT_1);
    std::vector<Element<decltype(in.SECOND)>> second(COUNT_2);
    in.FIRST = first.data();
    in.SECOND = second.data();
    say("early", NAME(init)(&m, 7), 0);
    say("bind", NAME(bind)(&m, &memory), 0);
    say("init", NAME(init)(&m, 7), 0);
    say("set", NAME(JOIN(TRAIN, set_steps))(&m, 200), 0);
    report("before");
    std::vector<double> took;
    for (int i = 0; i < steps; i++) {
        draw(first);
        draw(second);
        if (i == steps / 2) { /* refused, and nothing is written */
            auto one = spoil(first[0]);
            int code = JOIN(PREFIX, TRAIN)(&m, &in, &out);
            say("spoilt", code, 0);
            first[0] = one;
            auto two = spoil(second[1]);
            say("spoilt", JOIN(PREFIX, TRAIN)(&m, &in, &out), 0);
            second[1] = two;
        }
        auto start = std::chrono::steady_clock::now();
        int code = JOIN(PREFIX, TRAIN)(&m, &in, &out);
        took.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
        say("loss", code, out.loss);
    }
    report("behind");
    std::nth_element(took.begin(), took.begin() + took.size() / 2, took.end());
    fprintf(stderr, "step: %.1f us\n", took.empty() ? 0.0 : took[took.size() / 2]);
#ifdef HOLDOUT
    FIT(eval_out) part = {};
    FIT(eval_sums) sums = {};
    FIT(eval_end_out) end = {};
    int code = FIT(eval)(&m, &in, 5, &part);
    say("rows", code, part.sum1);
    code = FIT(eval_add)(&sums, &part);
    say("add", code, sums.sum1);
    code = FIT(eval_end)(&m, &sums, &end);
    say("eval", code, end.loss);
    say("metric", code, end.HOLDOUT);
#endif
    size_t count = 0;
    const md_tensor *table = NAME(tensors)(&count);
    for (size_t i = 0; i < count; i++) {
        void *region = table[i].region == MD_PARAMS ? memory.params : memory.state;
        say(table[i].name, 0, magnitude(&table[i], region));
    }
    void *const all[] = {memory.params, memory.state, memory.io, memory.arena};
    for (void *one : all) {
        drop(one);
    }
#ifdef MD_LAUNCH
    free(memory.host);
#endif
    return 0;
}
