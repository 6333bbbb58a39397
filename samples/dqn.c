/* dqn: a program around the entries of dqn.mdl. It balances CartPole, in 500,000 steps.
 *
 *     mdlc --no-main --threads=1 samples/dqn.mdl -o dqn_net.c -H dqn.h
 *     cc -O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math -I. \
 *        samples/dqn.c dqn_net.c -lm -o dqn
 *     ./dqn [SEED] [STEPS]
 *
 * The model's memory is four static arrays of the declared sizes; nothing is allocated. Settings are
 * those of CleanRL's dqn.py, the physics is that of Gymnasium's CartPole-v1 (Barto, Sutton and
 * Anderson 1983). Prints a line every 50,000 steps and a last line with return, time and memory.
 * Status 0, or 1 when a call fails. */
#include "dqn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    STEPS = 500000,
    LEARNING_STARTS = 10000,
    TRAIN_EVERY = 10,
    SYNC_EVERY = 500,
    GREEDY_EVERY = 10000,
    GREEDY_EPISODES = 5,
    EPISODE_STEPS = 500,
    LAST = 100 /* episodes that the mean return is of */
};
static const double epsilon_last = 0.05, epsilon_fraction = 0.5;

/* ---- CartPole ------------------------------------------------------------------------------- */

typedef struct {
    double x, speed, angle, turn;
    int steps;
    uint64_t random;
} cartpole;

/* splitmix64 (Steele, Lea and Flood 2014), 0 <= u < 1. */
static double uniform(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static void reset(cartpole *c) {
    c->x = uniform(&c->random) * 0.1 - 0.05;
    c->speed = uniform(&c->random) * 0.1 - 0.05;
    c->angle = uniform(&c->random) * 0.1 - 0.05;
    c->turn = uniform(&c->random) * 0.1 - 0.05;
    c->steps = 0;
}

static void observe(const cartpole *c, float *obs) {
    obs[0] = (float)c->x;
    obs[1] = (float)c->speed;
    obs[2] = (float)c->angle;
    obs[3] = (float)c->turn;
}

/* One step of 0.02 s with a force to the left (0) or right (1); 1 when the pole has fallen. */
static int step(cartpole *c, int action) {
    const double gravity = 9.8, cart = 1.0, pole = 0.1, half = 0.5, force = 10, tau = 0.02;
    const double mass = cart + pole, pi = 3.14159265358979323846;
    double push = action == 1 ? force : -force;
    double cosine = cos(c->angle), sine = sin(c->angle);
    double pressure = (push + pole * half * c->turn * c->turn * sine) / mass;
    double bend =
        (gravity * sine - cosine * pressure) / (half * (4.0 / 3 - pole * cosine * cosine / mass));
    double pull = pressure - pole * half * bend * cosine / mass;
    c->x += tau * c->speed;
    c->speed += tau * pull;
    c->angle += tau * c->turn;
    c->turn += tau * bend;
    c->steps++;
    return fabs(c->x) > 2.4 || fabs(c->angle) > 12 * 2 * pi / 360;
}

/* ---- agent ---------------------------------------------------------------------------------- */

static _Alignas(DQN_ALIGN) unsigned char params[DQN_PARAMS_BYTES], state[DQN_STATE_BYTES],
    io[DQN_IO_BYTES], arena[DQN_ARENA_BYTES];

static void must(int code, const char *what) {
    if (code != DQN_OK) {
        fprintf(stderr, "dqn: %s: %s\n", what, dqn_strerror(code));
        exit(1);
    }
}

static int greedy(dqn *net, const float *obs) {
    dqn_act_in in = {.obs = obs};
    dqn_act_out out;
    must(dqn_act(net, &in, &out), "act");
    return (int)out.out[0];
}

/* Mean length of episodes without chance. */
static double greedy_return(dqn *net, uint64_t seed) {
    cartpole c = {.random = seed};
    int total = 0;
    for (int i = 0; i < GREEDY_EPISODES; i++) {
        int fallen = 0;
        reset(&c);
        while (!fallen && c.steps < EPISODE_STEPS) {
            float obs[4];
            observe(&c, obs);
            fallen = step(&c, greedy(net, obs));
        }
        total += c.steps;
    }
    return (double)total / GREEDY_EPISODES;
}

static long resident_pages(void) {
    long size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f != NULL) {
        if (fscanf(f, "%ld %ld", &size, &resident) != 2) {
            resident = 0;
        }
        fclose(f);
    }
    return resident;
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct {
    int length[LAST];
    long episodes;
} history;

static double mean_return(const history *h) {
    long n = h->episodes < LAST ? h->episodes : LAST, sum = 0;
    for (long i = 0; i < n; i++) {
        sum += h->length[i];
    }
    return n > 0 ? (double)sum / (double)n : 0;
}

int main(int argc, char **argv) {
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    long steps = argc > 2 ? strtol(argv[2], NULL, 10) : STEPS, solved = -1, pages = 0;
    static dqn net;
    dqn_memory memory = {params,        state,        io,        arena,
                         sizeof params, sizeof state, sizeof io, sizeof arena};
    cartpole c = {.random = seed * 2 + 1};
    static history h;
    double start = seconds();
    must(dqn_bind(&net, &memory), "bind");
    must(dqn_init(&net, seed), "init");
    reset(&c);
    /* What the C library needs for output is there before pages are counted. */
    printf("untrained: greedy return %.1f, %s\n", greedy_return(&net, 99),
           resident_pages() > 0 ? "pages are counted" : "pages cannot be counted here");
    for (long t = 0; t < steps; t++) {
        double part = (double)t / (epsilon_fraction * STEPS);
        double epsilon = part < 1 ? 1 + part * (epsilon_last - 1) : epsilon_last;
        float obs[4], next[4];
        observe(&c, obs);
        int action = uniform(&c.random) < epsilon ? uniform(&c.random) < 0.5 : greedy(&net, obs);
        int fallen = step(&c, action);
        observe(&c, next);
        dqn_push_in row = {obs, action, 1, next, fallen ? 1.0f : 0.0f};
        must(dqn_push(&net, &row), "push");
        if (fallen || c.steps == EPISODE_STEPS) {
            h.length[h.episodes++ % LAST] = c.steps;
            reset(&c);
        }
        if (t > LEARNING_STARTS && t % TRAIN_EVERY == 0) {
            dqn_learn_out out;
            must(dqn_learn(&net, &out), "learn");
        }
        if (t > LEARNING_STARTS && t % SYNC_EVERY == 0) {
            must(dqn_sync(&net), "sync");
        }
        if (t > LEARNING_STARTS && t % GREEDY_EVERY == 0 && solved < 0 &&
            greedy_return(&net, 99) >= 475) {
            solved = t;
        }
        if (t == 2L * LEARNING_STARTS) {
            pages = resident_pages();
        }
        if ((t + 1) % 50000 == 0) {
            printf("step %7ld  episodes %6ld  return %6.1f\n", t + 1, h.episodes, mean_return(&h));
        }
    }
    printf(
        "seed %llu: return %.1f (last %d episodes), greedy 475 at step %ld, %.2f s, declared %zu "
        "bytes, resident growth %ld pages\n",
        (unsigned long long)seed, mean_return(&h), LAST, solved, seconds() - start,
        sizeof params + sizeof state + sizeof io + sizeof arena,
        pages > 0 ? resident_pages() - pages : 0);
    return 0;
}
