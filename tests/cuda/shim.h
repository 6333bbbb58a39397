/* shim: the names of CUDA that emitted programs use, for a C++17 compiler of the host.
 *
 * A launch runs its blocks one behind the other, and the threads of a block too, on one fibre as
 * long as none waits: a thread that comes to __syncthreads stays on its fibre until all have come
 * there, and one that ends while others wait is a fault, as on a device. With SHIM_REVERSE in the
 * environment the last block and thread come first: what depends on their order shows. Memory of
 * the device is memory of the heap, so that ASan sees its bounds. Include it before the program. */
#ifndef SHIM_H
#define SHIM_H

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <ucontext.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SHIM_ASAN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SHIM_ASAN
#endif
#ifdef SHIM_ASAN
#include <sanitizer/common_interface_defs.h>
#define SHIM_SWITCH(fake, stack, size) __sanitizer_start_switch_fiber(fake, stack, size)
#define SHIM_ARRIVE(fake, stack, size) __sanitizer_finish_switch_fiber(fake, stack, size)
#else
#define SHIM_SWITCH(fake, stack, size) ((void)(fake), (void)(stack), (void)(size))
#define SHIM_ARRIVE(fake, stack, size) ((void)(fake), (void)(stack), (void)(size))
#endif

#define __global__
#define __device__
#define __shared__ static /* a block is over before the next one begins */

struct shim_place {
    unsigned x;
};
static shim_place threadIdx, blockIdx, blockDim;

/* ---- blocks and threads ---- */

enum { SHIM_STACK = 1 << 18, SHIM_THREADS = 1024 };

struct shim_fibre {
    ucontext_t at;
    char *stack;
    void *fake;
    unsigned thread;
    bool waits;
};

static struct {
    ucontext_t host;
    const void *stack; /* of the host */
    size_t size;
    shim_fibre fibre[SHIM_THREADS];
    shim_fibre *now;
    const std::function<void()> *body;
    unsigned next, threads, ended;
    bool reverse;
} shim;

static void shim_leave(void) {
    shim_fibre *f = shim.now;
    SHIM_SWITCH(&f->fake, shim.stack, shim.size);
    swapcontext(&f->at, &shim.host);
    SHIM_ARRIVE(f->fake, &shim.stack, &shim.size);
    threadIdx.x = f->thread;
}

/* Threads that nothing holds up, one behind the other. */
static void shim_work(void) {
    SHIM_ARRIVE(NULL, &shim.stack, &shim.size);
    for (;;) {
        while (shim.next < shim.threads) {
            unsigned n = shim.next++;
            shim.now->thread = threadIdx.x = shim.reverse ? shim.threads - 1 - n : n;
            (*shim.body)();
            shim.ended++;
        }
        shim_leave();
    }
}

static void shim_enter(shim_fibre *f) {
    void *fake = NULL;
    shim.now = f;
    f->waits = false;
    SHIM_SWITCH(&fake, f->stack, SHIM_STACK);
    swapcontext(&shim.host, &f->at);
    SHIM_ARRIVE(fake, NULL, NULL);
}

static inline void __syncthreads(void) {
    shim.now->waits = true;
    shim_leave();
}

static shim_fibre *shim_fibre_at(unsigned i) {
    shim_fibre *f = &shim.fibre[i];
    if (f->stack == NULL) {
        f->stack = (char *)malloc(SHIM_STACK);
        getcontext(&f->at);
        f->at.uc_stack.ss_sp = f->stack;
        f->at.uc_stack.ss_size = SHIM_STACK;
        makecontext(&f->at, shim_work, 0);
    }
    return f;
}

static void shim_block(void) {
    shim.next = shim.ended = 0;
    unsigned used = 0;
    while (shim.next < shim.threads) {
        shim_enter(shim_fibre_at(used));
        used += shim.fibre[used].waits;
    }
    while (shim.ended < shim.threads) {
        if (shim.ended > 0) {
            fprintf(stderr, "shim: %u threads ended where others wait\n", shim.ended);
            abort();
        }
        for (unsigned i = 0; i < used; i++) {
            shim_enter(&shim.fibre[i]);
        }
    }
}

static void shim_launch(long long blocks, unsigned threads, const std::function<void()> &body) {
    if (blocks < 1 || blocks > 2147483647 || threads < 1 || threads > SHIM_THREADS) {
        fprintf(stderr, "shim: a launch of %lld blocks of %u threads\n", blocks, threads);
        abort();
    }
    shim.reverse = getenv("SHIM_REVERSE") != NULL;
    shim.body = &body;
    shim.threads = blockDim.x = threads;
    for (long long b = 0; b < blocks; b++) {
        blockIdx.x = (unsigned)(shim.reverse ? blocks - 1 - b : b);
        shim_block();
    }
}

#define MD_LAUNCH(kernel, blocks, threads, stream, ...)                                            \
    shim_launch(blocks, threads, [=] { (void)(stream), kernel(__VA_ARGS__); })

template <typename T> static inline T atomicMax(T *to, T value) {
    T old = *to;
    *to = old > value ? old : value;
    return old;
}

/* ---- runtime ---- */

typedef struct shim_stream *cudaStream_t;
enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };

static inline cudaError_t cudaMalloc(void **at, size_t bytes) {
    *at = aligned_alloc(256, (bytes + 255) / 256 * 256);
    return *at == NULL ? cudaErrorMemoryAllocation : cudaSuccess;
}
static inline cudaError_t cudaFree(void *at) {
    free(at);
    return cudaSuccess;
}
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind,
                                          cudaStream_t) {
    memcpy(to, from, bytes);
    return cudaSuccess;
}
static inline cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t) {
    memset(to, value, bytes);
    return cudaSuccess;
}
static inline cudaError_t cudaStreamSynchronize(cudaStream_t) {
    return cudaSuccess;
}
static inline cudaError_t cudaGetLastError(void) {
    return cudaSuccess;
}
struct cudaFuncAttributes {};
static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *, const void *kernel) {
    return kernel == NULL ? cudaErrorMemoryAllocation : cudaSuccess;
}
template <typename T> static inline cudaError_t cudaGetSymbolAddress(void **at, const T &table) {
    *at = const_cast<void *>(static_cast<const void *>(&table));
    return cudaSuccess;
}
static inline cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *all) {
    *free_bytes = *all = 0;
    return cudaSuccess;
}

#endif
