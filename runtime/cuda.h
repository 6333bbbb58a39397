/* SPDX-License-Identifier: 0BSD */
/* cuda: what stands in the place of md.h in programs for graphics processors, and what their steps
 * are made of beside the kernels of the model.
 *
 * C++17 for nvcc, or for a compiler of the host before which a shim has defined MD_LAUNCH and the
 * names of the CUDA runtime that stand here. Kernels see memory of the device alone; the first
 * thing that each looks at is the status of the call: where it is not 0 a step before has found
 * that the call must not go on, and nothing is written. Holds no state. */
#ifndef MD_CUDA_H
#define MD_CUDA_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* One launch: so many blocks of so many threads, behind what is in the stream already. */
#ifndef MD_LAUNCH
#include <cuda_runtime.h>
#define MD_LAUNCH(kernel, blocks, threads, stream, ...)                                            \
    kernel<<<(unsigned)(blocks), threads, 0, stream>>>(__VA_ARGS__)
#endif

#define MD_FN __device__ static inline
#define MD_INLINE __device__ static inline
#define MD_CONST
#define MD_RESTRICT __restrict__

/* What lies `offset` bytes into a region of memory, which is aligned for every type. */
#define MD_AT(type, region, offset) ((type *)(void *)((region) + (offset)))

/* A thread runs its loops as they stand. */
#define MD_IVDEP
#define MD_UNROLL(n)
#define MD_IN_ORDER ((void)0)

/* The memory of one instance: regions of the device, and of the host a mirror of what results take.
 * The caller owns all of it; calls are made in the stream and wait for its end. */
typedef struct md_device_memory {
    void *params, *state, *io, *arena, *host;
    size_t params_bytes, state_bytes, io_bytes, arena_bytes, host_bytes;
    cudaStream_t stream;
} md_device_memory;

/* a * b + c, rounded once. */
MD_INLINE float md_madf(float a, float b, float c) {
    return fmaf(a, b, c);
}

MD_INLINE double md_mad(double a, double b, double c) {
    return fma(a, b, c);
}

/* ---- between host and device: 0, or 1 where the CUDA runtime says that it failed ------------ */

static inline int md_put(cudaStream_t stream, void *to, const void *from, size_t bytes) {
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream) != cudaSuccess;
}

/* Where a table of the device lies; NULL: the call ends with a fault of the device. */
template <typename T> static inline const void *md_symbol(const T &table) {
    void *at = NULL;
    return cudaGetSymbolAddress(&at, table) == cudaSuccess ? at : NULL;
}

/* Waits for all that the stream has to do. */
static inline int md_take(cudaStream_t stream, void *to, const void *from, size_t bytes) {
    return cudaGetLastError() != cudaSuccess ||
           cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream) != cudaSuccess ||
           cudaStreamSynchronize(stream) != cudaSuccess;
}

/* Code comes to the device when a model is bound, not with the first launch of each kernel: what is
 * free there stays so from then on. */
static inline int md_load(const void *const *kernel, int count) {
    for (int i = 0; i < count; i++) {
        cudaFuncAttributes loaded;
        if (cudaFuncGetAttributes(&loaded, kernel[i]) != cudaSuccess) {
            return 1;
        }
    }
    return 0;
}

/* The call may begin. */
static inline int md_begin(cudaStream_t stream, int32_t *status) {
    return cudaMemsetAsync(status, 0, sizeof *status, stream) != cudaSuccess;
}

/* ---- steps ---------------------------------------------------------------------------------- */

/* The number of this thread among all of the launch. */
MD_INLINE int64_t md_thread(void) {
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

__global__ static void md_copy(const int32_t *status, unsigned char *to, const unsigned char *from,
                               int64_t bytes) {
    const int64_t at = md_thread();
    if (at < bytes && *status == 0) {
        to[at] = from[at];
    }
}

/* Some integer is not in lo..hi. */
template <typename T>
__global__ static void md_outside(int32_t *status, const T *x, int64_t count, int64_t lo,
                                  int64_t hi, int code) {
    const int64_t at = md_thread();
    if (at < count && ((int64_t)x[at] < lo || (int64_t)x[at] >= hi)) {
        atomicMax(status, code);
    }
}

/* A ring holds fewer rows than are asked for. */
__global__ static void md_few(int32_t *status, const int64_t *cursor, int64_t least, int code) {
    if (*cursor < least) {
        *status = code;
    }
}

/* Rows of `row` bytes go behind those that the ring has been given. */
__global__ static void md_push(const int32_t *status, unsigned char *ring, const int64_t *cursor,
                               int64_t capacity, const unsigned char *rows, int64_t row,
                               int64_t bytes, const int32_t *used) {
    const int64_t at = md_thread();
    if (at < bytes && *status == 0 && (used == NULL || at / row < *used)) {
        ring[(*cursor + at / row) % capacity * row + at % row] = rows[at];
    }
}

/* A loss or a norm is no number, or infinite. */
template <typename T> __global__ static void md_nonfinite(int32_t *status, const T *x, int code) {
    if (*status == 0 && !(fabs((double)*x) < (double)INFINITY)) {
        *status = code;
    }
}

/* ---- products ------------------------------------------------------------------------------- */

/* C[b, m, n] = sum over k of A[b, m, k] B[b, k, n]: extents, then strides in elements; absent axes
 * have extent 1. Flat indices: b = i1 * b2 + i2, m and k alike. */
typedef struct {
    int64_t b1, b2, m1, m2, n, k0, k1, k2;
    int64_t a_b1, a_b2, a_m1, a_m2, a_k0, a_k1, a_k2;
    int64_t b_b1, b_b2, b_k0, b_k1, b_k2, b_n;
    int64_t c_b1, c_b2, c_m1, c_m2, c_n;
} md_product;

/* A block of threads makes MD_BLOCK x MD_BLOCK elements, a thread MD_EACH x MD_EACH of them;
 * MD_DEPTH terms of each at a time lie in shared memory. No more than MD_GROUP sums of these are
 * added one to another. */
enum { MD_BLOCK = 32, MD_EACH = 4, MD_DEPTH = 16, MD_BLOCK_THREADS = 64, MD_GROUP = 1024 };

/* Where the element of C lies. */
MD_INLINE int64_t md_product_place(md_product s, int64_t b, int64_t m, int64_t n) {
    return b / s.b2 * s.c_b1 + b % s.b2 * s.c_b2 + m / s.m2 * s.c_m1 + m % s.m2 * s.c_m2 +
           n * s.c_n;
}

template <typename T> MD_INLINE void md_product_add(T (*sum)[MD_EACH], T (*part)[MD_EACH]) {
    for (int i = 0; i < MD_EACH * MD_EACH; i++) {
        sum[i / MD_EACH][i % MD_EACH] += part[i / MD_EACH][i % MD_EACH];
        part[i / MD_EACH][i % MD_EACH] = 0;
    }
}

/* An element of an operand as it is multiplied, where it is stored so. */
template <typename T> MD_INLINE T md_as_is(T x) {
    return x;
}

/* The sums of this thread, from row m0 and column n0 on, all 0 before. All threads of the block
 * take part. `read_a` and `read_b` make numbers to multiply of elements of a and b. */
template <typename T, auto read_a, auto read_b, typename A, typename B>
MD_INLINE void md_product_sums(md_product s, const A *a, const B *b, int64_t batch, int64_t m0,
                               int64_t n0, T (*sum)[MD_EACH]) {
    __shared__ T left[MD_DEPTH][MD_BLOCK + 1];
    __shared__ T right[MD_DEPTH][MD_BLOCK + 1];
    const int thread = (int)threadIdx.x, side = MD_BLOCK / MD_EACH;
    const int row = thread / side * MD_EACH, column = thread % side * MD_EACH;
    const int64_t rows = s.m1 * s.m2, depth = s.k0 * s.k1 * s.k2;
    a += batch / s.b2 * s.a_b1 + batch % s.b2 * s.a_b2;
    b += batch / s.b2 * s.b_b1 + batch % s.b2 * s.b_b2;
    T group[MD_EACH][MD_EACH] = {}, part[MD_EACH][MD_EACH] = {};
    for (int64_t from = 0; from < depth; from += MD_DEPTH) {
        __syncthreads();
        for (int i = thread; i < MD_DEPTH * MD_BLOCK; i += MD_BLOCK_THREADS) {
            const int d = i % MD_DEPTH, place = i / MD_DEPTH;
            const int64_t k = from + d, m = m0 - row + place, n = n0 - column + place;
            const int64_t k0 = k / (s.k1 * s.k2), k1 = k / s.k2 % s.k1, k2 = k % s.k2;
            left[d][place] = k < depth && m < rows
                                 ? read_a(a[m / s.m2 * s.a_m1 + m % s.m2 * s.a_m2 + k0 * s.a_k0 +
                                            k1 * s.a_k1 + k2 * s.a_k2])
                                 : (T)0;
            right[d][place] = k < depth && n < s.n
                                  ? read_b(b[n * s.b_n + k0 * s.b_k0 + k1 * s.b_k1 + k2 * s.b_k2])
                                  : (T)0;
        }
        __syncthreads();
        for (int d = 0; d < MD_DEPTH; d++) {
            for (int i = 0; i < MD_EACH; i++) {
                const T x = left[d][row + i];
                for (int j = 0; j < MD_EACH; j++) {
                    part[i][j] = fma(x, right[d][column + j], part[i][j]);
                }
            }
        }
        md_product_add(group, part);
        if ((from / MD_DEPTH + 1) % MD_GROUP == 0) {
            md_product_add(sum, group);
        }
    }
    md_product_add(sum, group);
}

#endif
