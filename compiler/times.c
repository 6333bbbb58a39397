/* times: see the header. Operations in tiles and in loops, shared by the threads that a kernel may
 * have, bytes, and waking the threads. Integers, so that all hosts find the same plans.
 *
 * What a call of an entry touches stays in the caches until the next one, as far as it fits there:
 * so that part of its bytes moves at their speed, for each thread, and the rest at that of memory,
 * which threads share. The part is that of the usual plan, for all plans of the entry. */
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

int64_t times_far_share(const StepTimes *times, int64_t touched) {
    const double all = (double)touched, cached = (double)times->cache;
    return all > cached ? (int64_t)(FAR_WHOLE * (1 - cached / all)) : 0;
}

int64_t bytes_time(const StepTimes *times, int64_t far_share, int64_t bytes, int threads) {
    const int64_t near = (FAR_WHOLE - far_share) * times->near / threads;
    return count_add(0, bytes, far_share * times->far + near) / FAR_WHOLE;
}

int64_t step_time(const StepTimes *times, int64_t far_share, const Step *step) {
    if (step->kind == STEP_LOOP) {
        const int64_t turns = step->rest ? (step->trip + step->team - 1) / step->team : step->trip;
        return count_add(step->rest ? times->launch : 0, turns,
                         list_time(times, far_share, &step->body));
    }
    int team = step->team > 1 ? step->team : 1;
    const Tile *tile = step->kernel != NULL ? kernel_tile(step->kernel) : NULL;
    int64_t loops = step->flops - step->borders - (tile ? step->products : 0);
    int64_t work = count_add(0, loops > 0 ? loops : 0, times->loop);
    work = count_add(work, step->dear, times->dear);
    const int64_t multiplied = step->borders + (tile ? step->products - tile->spared : 0);
    work = count_add(work, multiplied, tile ? times->tile : times->loop);
    int64_t time = count_add(work / team, 1, bytes_time(times, far_share, step_bytes(step), team));
    return count_add(time, team > 1, times->launch);
}

int64_t list_time(const StepTimes *times, int64_t far_share, const StepList *list) {
    int64_t time = 0;
    for (int i = 0; i < list->count; i++) {
        time = count_add(time, 1, step_time(times, far_share, list->at[i]));
    }
    return time;
}
