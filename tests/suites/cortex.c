/* Trains tests/suites/cortex.mdl on a machine without an operating system, in 256 KiB of memory,
 * and says what it needed by semihosting. Compiled for a host (HOSTED) it does the same there, for
 * comparison. `digits.h`, made by cortex.sh, holds ROWS rows of 64 pixels and their labels. */
#include "digits.h"
#include "tiny.h"

enum { B = 16, TRAINED = ROWS / B / 5 * 4 * B, STEPS = 400, PAINT = 0x5a };

static _Alignas(TINY_ALIGN) unsigned char params[TINY_PARAMS_BYTES], state[TINY_STATE_BYTES],
    io[TINY_IO_BYTES], arena[TINY_ARENA_BYTES];
static tiny model;
static float x[B * 64];
static uint8_t y[B];

#ifdef HOSTED
#include <stdio.h>
static void say(const char *text) {
    fputs(text, stdout);
}
#else
extern char bss_begin[], bss_end[], stack_end[];
int main(void);

void *memset(void *to, int value, size_t n) {
    for (unsigned char *p = to; n > 0; n--) {
        *p++ = (unsigned char)value;
    }
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t n) {
    const unsigned char *q = from;
    for (unsigned char *p = to; n > 0; n--) {
        *p++ = *q++;
    }
    return to;
}

float fabsf(float v) {
    return __builtin_fabsf(v);
}

float sqrtf(float v) {
    return __builtin_sqrtf(v); /* an instruction */
}

static void semihost(int op, const void *argument) {
    register int r0 __asm__("r0") = op;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

static void say(const char *text) {
    semihost(4, text); /* SYS_WRITE0 */
}

/* The fault and the end are told from each other by what was printed. */
static void stop(void) {
    semihost(0x18, (const void *)0x20026); /* SYS_EXIT */
    for (;;) {
    }
}

void reset(void);
void reset(void) {
    *(volatile uint32_t *)0xe000ed88 |= 0xfu << 20; /* the floating-point unit */
    __asm__ volatile("dsb\nisb");
    for (char *p = bss_begin; p < bss_end; p++) {
        *p = 0;
    }
    for (volatile char *p = bss_end; p < (char *)__builtin_frame_address(0) - 64; p++) {
        *p = PAINT;
    }
    main();
    stop();
}

__attribute__((section(".vectors"), used)) static void *const vectors[16] = {
    stack_end, (void *)reset, (void *)stop, (void *)stop, (void *)stop, (void *)stop, (void *)stop};
#endif

static void number(const char *name, long value) {
    char text[24], *at = text + sizeof text - 1;
    int negative = value < 0;
    *at = 0;
    do {
        *--at = (char)('0' + (negative ? -(value % 10) : value % 10));
        value /= 10;
    } while (value != 0);
    if (negative) {
        *--at = '-';
    }
    say(name);
    say(" ");
    say(at);
    say("\n");
}

static void batch(int first) {
    for (int i = 0; i < B; i++) {
        y[i] = label[first + i];
        for (int k = 0; k < 64; k++) {
            x[i * 64 + k] = (float)pixel[(first + i) * 64 + k] / 16;
        }
    }
}

static long stack_used(void) {
#ifdef HOSTED
    return 0;
#else
    char *p = bss_end;
    while (*p == PAINT) {
        p++;
    }
    return (long)(stack_end - p);
#endif
}

int main(void) {
    const tiny_memory memory = {.params = params, .state = state, .io = io, .arena = arena,
                                .params_bytes = sizeof params, .state_bytes = sizeof state,
                                .io_bytes = sizeof io, .arena_bytes = sizeof arena};
    int code = tiny_bind(&model, &memory);
    code = code == 0 ? tiny_init(&model, 1) : code;
    const tiny_fit_in in = {.x = x, .y = y};
    tiny_fit_out out;
    for (int step = 0; step < STEPS && code == 0; step++) {
        batch(step * B % TRAINED);
        code = tiny_fit(&model, &in, &out);
        if (step == 0 || step == STEPS - 1) {
            number(step == 0 ? "first" : "last", (long)(out.loss * 1e6f));
        }
    }
    long right = 0, rows = 0;
    for (int first = TRAINED; first + B <= ROWS && code == 0; first += B) {
        const tiny_predict_in of = {.x = x};
        tiny_predict_out found;
        batch(first);
        code = tiny_predict(&model, &of, &found);
        for (int i = 0; i < B && code == 0; i++, rows++) {
            right += found.label[i] == y[i];
        }
    }
    number("right", right);
    number("rows", rows);
    number("bytes", (long)(sizeof params + sizeof state + sizeof io + sizeof arena));
    number("stack", stack_used());
    number("code", code);
    return code;
}
