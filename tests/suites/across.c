/* The entries of across.mdl: folds of rows that lie side by side in memory, and of the same rows
 * one behind another. Prints a line with FAIL for each result of which some bits differ. */
#include "net.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { B = 3, P = 9, Q = 12, MOST = B * J * C + B * P * Q * C };

static net net_;
static uint64_t drawn;

static uint64_t draw(void) {
    uint64_t h = ++drawn * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 31) * UINT64_C(0xd6e8feb86659fd93);
    return h >> 40;
}

/* [B, n, C] to [B, C, n] */
static void turn(const uint32_t *from, uint32_t *to, int n) {
    for (int b = 0; b < B; b++) {
        for (int i = 0; i < n; i++) {
            for (int c = 0; c < C; c++) {
                to[(b * C + c) * n + i] = from[(b * n + i) * C + c];
            }
        }
    }
}

static bool differ(const char *name, const float *side, const float *rows, int count) {
    int other = 0;
    for (int i = 0; i < count; i++) { /* the sign of a zero aside */
        other += side[i] != rows[i];
    }
    if (other > 0) {
        printf("FAIL %s: %d of %d\n", name, other, count);
    }
    return other > 0;
}

static void *part(size_t bytes) {
    void *at = aligned_alloc(64, (bytes / 64 + 1) * 64);
    if (at == NULL) {
        exit(2);
    }
    return memset(at, 0, (bytes / 64 + 1) * 64);
}

int main(void) {
    static float x[2][MOST], u[2][MOST], soft[MOST];
    static int32_t k[2][MOST], y[B * C];
    for (int i = 0; i < B * J * C; i++) {
        x[0][i] = (float)draw() * 0x1p-21f - 4;
        k[0][i] = (int32_t)(draw() % 1000);
    }
    for (int i = 0; i < B * P * Q * C; i++) {
        u[0][i] = (float)draw() * 0x1p-22f - 2;
    }
    for (int i = 0; i < B * C; i++) {
        y[i] = (int32_t)(draw() % J);
    }
    turn((const uint32_t *)x[0], (uint32_t *)x[1], J);
    turn((const uint32_t *)k[0], (uint32_t *)k[1], J);
    turn((const uint32_t *)u[0], (uint32_t *)u[1], P * Q);
    const net_memory memory = {.params = part(NET_PARAMS_BYTES),
                               .params_bytes = NET_PARAMS_BYTES,
                               .state = part(NET_STATE_BYTES),
                               .state_bytes = NET_STATE_BYTES,
                               .io = part(NET_IO_BYTES),
                               .io_bytes = NET_IO_BYTES,
                               .arena = part(NET_ARENA_BYTES),
                               .arena_bytes = NET_ARENA_BYTES};
    net_side_in in = {.x = x[0], .k = k[0], .y = y, .u = u[0]};
    net_rows_in in_rows = {.x = x[1], .k = k[1], .y = y, .u = u[1]};
    net_side_out out;
    net_rows_out out_rows;
    if (net_bind(&net_, &memory) != 0 || net_side(&net_, &in, &out) != 0) {
        puts("FAIL the call");
        return 1;
    }
    static float kept[5][B * C];
    turn((const uint32_t *)out.soft, (uint32_t *)soft, J);
    const float *const side[5] = {out.spread, out.ends, out.whole, out.picked, out.planes};
    for (int i = 0; i < 5; i++) { /* the next entry has its results in the same place */
        memcpy(kept[i], side[i], sizeof kept[i]);
    }
    if (net_rows(&net_, &in_rows, &out_rows) != 0) {
        puts("FAIL the call of rows");
        return 1;
    }
    int failed = differ("soft", soft, out_rows.soft, B * J * C);
    failed += differ("spread", kept[0], out_rows.spread, B * C);
    failed += differ("ends", kept[1], out_rows.ends, B * C);
    failed += differ("whole", kept[2], out_rows.whole, B * C);
    failed += differ("picked", kept[3], out_rows.picked, B * C);
    failed += differ("planes", kept[4], out_rows.planes, B * C);
    return failed > 0;
}
