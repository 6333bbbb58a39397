/* cuda: what planning knows of a graphics processor. */
#include "passes/schedule/schedule.h"

static const Schedule *const schedules[] = {
    &cuda_tile, &cuda_loops,   &cuda_column,  &cuda_total,
    &cuda_nest, &cuda_running, &cuda_scatter, NULL,
};

/* A product in tiles reads each operand once a tile from memory, one in loops once a term. */
const Target target_cuda = {
    .name = "cuda",
    .schedule = schedules,
    .loop_time = 10,
    .tile_time = 1,
    .byte_time = 1,
    .launch_time = 3000000,
    .step = {.loop = 10, .tile = 1, .dear = 4, .near = 1, .far = 1, .launch = 3000000},
    .total_count = TUNED(2048, 40),
    .chunk = TUNED(32 << 20, 4096),
    .device = true,
};
