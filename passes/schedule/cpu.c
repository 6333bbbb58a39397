/* cpu: what planning knows of a processor with a few threads. */
#include "passes/schedule/schedule.h"

static const Schedule *const schedules[] = {
    &cpu_library, &cpu_tile,   &cpu_loops,       &cpu_column,     &cpu_total,       &cpu_pieces,
    &cpu_turned,  &cpu_jammed, &cpu_spelled,     &cpu_nest,       &cpu_running,     &cpu_scatter,
    &cpu_rows,    &cpu_across, &cpu_order_lines, &cpu_order_long, &cpu_order_first, NULL,
};

/* About one core of 2026 with vectors of 256 to 512 bits, the same on every host. */
const Target target_cpu = {
    .name = "c",
    .schedule = schedules,
    .loop_time = 150,
    .tile_time = 10,
    .byte_time = 50,
    .launch_time = 5000000,
    .step = {.loop = 10,
             .tile = 4,
             .dear = 20,
             .near = 4,
             .far = 16,
             .launch = 500000,
             .cache = 32 << 20},
    .total_count = TUNED(16384, 40),
    .chunk = TUNED(8 << 20, 4096),
    .copies = true,
    .sums = column_in_chunks,
    .orders = true,
    .thread_row = true,
    .sizes = true,
};
