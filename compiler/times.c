/* times: see the header. Operations in tiles and in loops, shared by the threads that a kernel may
 * have, bytes, and waking the threads. Integers, so that all hosts find the same plans. */
#include "compiler/times.h"

#include "compiler/kernel.h"

int64_t step_bytes(const Step *step) {
    if (step->kind != STEP_KERNEL) {
        return step->kind == STEP_PUSH ? 2 * step->src->bytes : step->bytes_moved;
    }
    int64_t bytes = 0;
    for (int i = 0; i < step->access.count; i++) {
        const Access *access = &step->access.at[i];
        bytes = count_add(bytes, access->buf->kind != BUF_WORK, access_needs(access));
    }
    return bytes;
}

int64_t step_time(const MachineTimes *times, const Step *step) {
    if (step->kind == STEP_LOOP) {
        return count_add(0, step->trip, list_time(times, &step->body));
    }
    int team = step->team > 1 ? step->team : 1;
    bool tile = step->kernel != NULL && kernel_tile(step->kernel) != NULL;
    int64_t loops = step->flops - step->borders - (tile ? step->products : 0);
    int64_t work = count_add(0, loops > 0 ? loops : 0, times->loop);
    work = count_add(work, step->dear, times->tile * DEAR_FLOPS);
    work = count_add(work, tile ? step->products + step->borders : step->borders,
                     tile ? times->tile : times->loop);
    int64_t time = count_add(work / team, step_bytes(step), times->byte);
    return count_add(time, team > 1, times->launch);
}

int64_t list_time(const MachineTimes *times, const StepList *list) {
    int64_t time = 0;
    for (int i = 0; i < list->count; i++) {
        time = count_add(time, 1, step_time(times, list->at[i]));
    }
    return time;
}
