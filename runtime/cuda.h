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
/* if: halves */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
#include <type_traits>
/* end: halves */
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

/* In front of a loop over what a thread has in registers. */
#ifdef __CUDACC__
#define MD_REGISTERS _Pragma("unroll")
#else
#define MD_REGISTERS
#endif

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

/* ---- what a block shares -------------------------------------------------------------------- */

/* What N threads of the block have, combined by `both` in a fixed tree, for each of them. */
template <int N, typename T, typename F> MD_INLINE T md_block_fold(T x, F both) {
    __shared__ T all[N];
    const int lane = (int)threadIdx.x;
    all[lane] = x;
    for (int half = N / 2; half > 0; half /= 2) {
        __syncthreads();
        if (lane < half) {
            all[lane] = both(all[lane], all[lane + half]);
        }
    }
    __syncthreads();
    const T whole = all[0];
    __syncthreads(); /* the next fold may have the same memory */
    return whole;
}

/* ---- products ------------------------------------------------------------------------------- */

/* C[b, m, n] = sum over k of A[b, m, k] B[b, k, n]: extents, then strides in elements; absent axes
 * have extent 1. Flat indices: b = i1 * b2 + i2, m and k alike. A block sums `span` of the terms,
 * all of them or a piece. */
typedef struct {
    int64_t b1, b2, m1, m2, n, k0, k1, k2;
    int64_t a_b1, a_b2, a_m1, a_m2, a_k0, a_k1, a_k2;
    int64_t b_b1, b_b2, b_k0, b_k1, b_k2, b_n;
    int64_t c_b1, c_b2, c_m1, c_m2, c_n;
    int64_t span;
} md_product;

/* A block has groups of MD_SIDE x MD_SIDE threads; each thread makes as many rows and columns as
 * the array has that it is given for its sums, the groups have a part of the terms each. MD_DEPTH
 * terms at a time lie in shared memory; sums of MD_CHAIN are added one to another. */
enum { MD_SIDE = 8, MD_THREADS = 64, MD_DEPTH = 16, MD_CHAIN = 128 };

/* This thread in its group. */
MD_INLINE int md_member(void) {
    return (int)threadIdx.x % MD_THREADS;
}

/* What a thread makes: which piece of the terms, of which batch, from which row and column on. */
typedef struct {
    int64_t piece, batch, m0, n0;
} md_place;

template <typename T, int R, int C>
MD_INLINE md_place md_product_at(const md_product &s, int64_t block, const T (&sum)[R][C]) {
    const int64_t down = (s.m1 * s.m2 + MD_SIDE * R - 1) / (MD_SIDE * R);
    const int64_t across = (s.n + MD_SIDE * C - 1) / (MD_SIDE * C);
    const int64_t row = block / across % down, batch = block / across / down;
    (void)sum;
    const md_place at = {batch / (s.b1 * s.b2), batch % (s.b1 * s.b2),
                         (row * MD_SIDE + md_member() / MD_SIDE) * R,
                         (block % across * MD_SIDE + md_member() % MD_SIDE) * C};
    return at;
}

/* Where the element of C lies; the same in C laid out densely. */
MD_INLINE int64_t md_product_place(const md_product &s, int64_t b, int64_t m, int64_t n) {
    return b / s.b2 * s.c_b1 + b % s.b2 * s.c_b2 + m / s.m2 * s.c_m1 + m % s.m2 * s.c_m2 +
           n * s.c_n;
}

MD_INLINE int64_t md_product_flat(const md_product &s, int64_t b, int64_t m, int64_t n) {
    return (b * s.m1 * s.m2 + m) * s.n + n;
}

/* The sum of what all pieces have for element `at` of `count`, in their order. */
template <typename T>
MD_INLINE T md_product_whole(const md_product &s, const T *part, int64_t at, int64_t count) {
    const int64_t depth = s.k0 * s.k1 * s.k2;
    T sum = 0;
    for (int64_t from = 0; from < depth; from += s.span, at += count) {
        sum += part[at];
    }
    return sum;
}

/* An element of an operand as it is multiplied, where it is stored so. */
template <typename T> MD_INLINE T md_as_is(T x) {
    return x;
}

/* Of the terms by places that a block multiplies next, the elements that this thread brings: D
 * terms of MD_SIDE * E places. Threads side by side are at terms side by side where `deep`, else at
 * places side by side, as memory has them. */
template <int E, int D> struct md_slab {
    enum { COUNT = E * D / MD_SIDE };
    bool deep;

    __device__ int term(int i) const {
        const int t = md_member();
        return deep ? t % D : t / (MD_SIDE * E) + MD_SIDE / E * i;
    }
    __device__ int place(int i) const {
        const int t = md_member();
        return deep ? t / D + MD_THREADS / D * i : t % (MD_SIDE * E);
    }
};

/* Rows m and terms k of A, from m0 and `from` on; what lies outside, terms from `to` on too, is 0.
 */
template <auto read, int E, int D, typename T, typename A>
MD_INLINE void md_fetch_a(const md_product &s, const md_slab<E, D> &slab, const A *a, int64_t m0,
                          int64_t from, int64_t to, T *next) {
    for (int i = 0; i < slab.COUNT; i++) {
        const int64_t m = m0 + slab.place(i), k = from + slab.term(i);
        next[i] = k < to && m < s.m1 * s.m2
                      ? read(a[m / s.m2 * s.a_m1 + m % s.m2 * s.a_m2 + k / (s.k1 * s.k2) * s.a_k0 +
                               k / s.k2 % s.k1 * s.a_k1 + k % s.k2 * s.a_k2])
                      : T{};
    }
}

/* Terms k and columns n of B. */
template <auto read, int E, int D, typename T, typename B>
MD_INLINE void md_fetch_b(const md_product &s, const md_slab<E, D> &slab, const B *b, int64_t n0,
                          int64_t from, int64_t to, T *next) {
    for (int i = 0; i < slab.COUNT; i++) {
        const int64_t n = n0 + slab.place(i), k = from + slab.term(i);
        next[i] = k < to && n < s.n ? read(b[n * s.b_n + k / (s.k1 * s.k2) * s.b_k0 +
                                             k / s.k2 % s.k1 * s.b_k1 + k % s.k2 * s.b_k2])
                                    : T{};
    }
}

/* Does A, does B run along the terms of a product in memory? */
MD_INLINE bool md_deep_a(const md_product &s) {
    return s.k2 > 1 ? s.a_k2 == 1 : s.m2 == 1 || s.a_m2 != 1;
}

MD_INLINE bool md_deep_b(const md_product &s) {
    return s.n == 1 || s.b_n != 1;
}

/* The terms that group `group` of G has: as many steps of `depth` for each. */
typedef struct {
    int64_t from, to, steps;
} md_terms;

template <int G> MD_INLINE md_terms md_terms_of(const md_product &s, int64_t piece, int depth) {
    const int64_t all = s.k0 * s.k1 * s.k2, first = piece * s.span;
    const int64_t end = first + s.span < all ? first + s.span : all;
    const int64_t steps = (end - first + G * depth - 1) / (G * depth);
    const int64_t from = first + (int)threadIdx.x / MD_THREADS * steps * depth;
    const md_terms terms = {from, from + steps * depth < end ? from + steps * depth : end, steps};
    return terms;
}

/* The sums of all groups, in their order, for the first of them. */
template <int G, typename T, int R, int C> MD_INLINE bool md_groups_sum(T (&sum)[R][C]) {
    __shared__ T rest[G > 1 ? G - 1 : 1][R * C][MD_THREADS];
    const int group = (int)threadIdx.x / MD_THREADS, t = md_member();
    for (int i = 0; i < R * C && group > 0; i++) {
        rest[group - 1][i][t] = sum[i / C][i % C];
    }
    if (G > 1) {
        __syncthreads();
    }
    for (int g = 1; g < G && group == 0; g++) {
        for (int i = 0; i < R * C; i++) {
            sum[i / C][i % C] += rest[g - 1][i][t];
        }
    }
    return group == 0;
}

/* The sums of this thread, all 0 before; false: they are parts that others have. All threads of the
 * block take part. `read_a` and `read_b` make numbers to multiply of elements of a and b. */
template <typename T, auto read_a, auto read_b, int G, int R, int C, typename A, typename B>
MD_INLINE bool md_product_sums(const md_product &s, const A *a, const B *b, const md_place &at,
                               T (&sum)[R][C]) {
    __shared__ T left[G][MD_DEPTH][MD_SIDE * R + 1];
    __shared__ T right[G][MD_DEPTH][MD_SIDE * C + 1];
    const int group = (int)threadIdx.x / MD_THREADS;
    const int row = md_member() / MD_SIDE * R, column = md_member() % MD_SIDE * C;
    const md_terms terms = md_terms_of<G>(s, at.piece, MD_DEPTH);
    const md_slab<R, MD_DEPTH> slab_a = {md_deep_a(s)};
    const md_slab<C, MD_DEPTH> slab_b = {md_deep_b(s)};
    a += at.batch / s.b2 * s.a_b1 + at.batch % s.b2 * s.a_b2;
    b += at.batch / s.b2 * s.b_b1 + at.batch % s.b2 * s.b_b2;
    T part[R][C] = {}, next_a[slab_a.COUNT], next_b[slab_b.COUNT];
    int64_t k = terms.from;
    md_fetch_a<read_a>(s, slab_a, a, at.m0 - row, k, terms.to, next_a);
    md_fetch_b<read_b>(s, slab_b, b, at.n0 - column, k, terms.to, next_b);
    for (int64_t step = 1; step <= terms.steps; step++) {
        k += MD_DEPTH;
        __syncthreads();
        for (int i = 0; i < slab_a.COUNT; i++) {
            left[group][slab_a.term(i)][slab_a.place(i)] = next_a[i];
        }
        for (int i = 0; i < slab_b.COUNT; i++) {
            right[group][slab_b.term(i)][slab_b.place(i)] = next_b[i];
        }
        __syncthreads();
        md_fetch_a<read_a>(s, slab_a, a, at.m0 - row, k, terms.to, next_a);
        md_fetch_b<read_b>(s, slab_b, b, at.n0 - column, k, terms.to, next_b);
        for (int d = 0; d < MD_DEPTH; d++) {
            for (int i = 0; i < R; i++) {
                for (int j = 0; j < C; j++) {
                    const T x = left[group][d][row + i], y = right[group][d][column + j];
                    part[i][j] = fma(x, y, part[i][j]);
                }
            }
        }
        if (step * MD_DEPTH % MD_CHAIN == 0 || step == terms.steps) {
            for (int i = 0; i < R * C; i++) {
                sum[i / C][i % C] += part[i / C][i % C];
                part[i / C][i % C] = 0;
            }
        }
    }
    return md_groups_sum<G>(sum);
}

/* if: halves */
template <auto widen, auto read, typename X> MD_INLINE float md_widened(X x) {
    return widen(read(x));
}

/* The same where both operands are multiplied as floats of 16 bits: `read_a` and `read_b` give
 * their bits, `widen` makes floats of them. Tensor cores multiply where the device has some. */
template <bool ieee, auto widen, auto read_a, auto read_b, int G, int R, int C, typename A,
          typename B>
MD_INLINE bool md_product_halves(const md_product &s, const A *a, const B *b, const md_place &at,
                                 float (&sum)[R][C]) {
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    using namespace nvcuda;
    using half = std::conditional_t<ieee, __half, __nv_bfloat16>;
    enum { DEPTH = 32, PITCH = DEPTH + 8, SIDE = 16, DOWN = MD_SIDE * R / 2 / SIDE };
    enum { ACROSS = MD_SIDE * C / SIDE, WIDTH = MD_SIDE * C + 4 };
    __shared__ __align__(32) uint16_t left[G][MD_SIDE * R][PITCH];
    __shared__ __align__(32) uint16_t right[G][MD_SIDE * C][PITCH];
    __shared__ __align__(32) float whole[G][MD_SIDE * R][WIDTH];
    const int group = (int)threadIdx.x / MD_THREADS;
    const int row = md_member() / MD_SIDE * R, column = md_member() % MD_SIDE * C;
    const int warp = md_member() / 32 * DOWN * SIDE;
    const md_terms terms = md_terms_of<G>(s, at.piece, DEPTH);
    const md_slab<R, DEPTH> slab_a = {md_deep_a(s)};
    const md_slab<C, DEPTH> slab_b = {md_deep_b(s)};
    a += at.batch / s.b2 * s.a_b1 + at.batch % s.b2 * s.a_b2;
    b += at.batch / s.b2 * s.b_b1 + at.batch % s.b2 * s.b_b2;
    wmma::fragment<wmma::accumulator, SIDE, SIDE, SIDE, float> part[DOWN][ACROSS];
    for (int i = 0; i < DOWN * ACROSS; i++) {
        wmma::fill_fragment(part[i / ACROSS][i % ACROSS], 0.0f);
    }
    uint16_t next_a[slab_a.COUNT], next_b[slab_b.COUNT];
    int64_t k = terms.from;
    md_fetch_a<read_a>(s, slab_a, a, at.m0 - row, k, terms.to, next_a);
    md_fetch_b<read_b>(s, slab_b, b, at.n0 - column, k, terms.to, next_b);
    for (int64_t step = 0; step < terms.steps; step++) {
        k += DEPTH;
        __syncthreads();
        for (int i = 0; i < slab_a.COUNT; i++) {
            left[group][slab_a.place(i)][slab_a.term(i)] = next_a[i];
        }
        for (int i = 0; i < slab_b.COUNT; i++) {
            right[group][slab_b.place(i)][slab_b.term(i)] = next_b[i];
        }
        __syncthreads();
        md_fetch_a<read_a>(s, slab_a, a, at.m0 - row, k, terms.to, next_a);
        md_fetch_b<read_b>(s, slab_b, b, at.n0 - column, k, terms.to, next_b);
        for (int d = 0; d < DEPTH; d += SIDE) {
            wmma::fragment<wmma::matrix_a, SIDE, SIDE, SIDE, half, wmma::row_major> x[DOWN];
            for (int i = 0; i < DOWN; i++) {
                const uint16_t *from = &left[group][warp + i * SIDE][d];
                wmma::load_matrix_sync(x[i], (const half *)from, PITCH);
            }
            for (int j = 0; j < ACROSS; j++) {
                wmma::fragment<wmma::matrix_b, SIDE, SIDE, SIDE, half, wmma::col_major> y;
                const uint16_t *from = &right[group][j * SIDE][d];
                wmma::load_matrix_sync(y, (const half *)from, PITCH);
                for (int i = 0; i < DOWN; i++) {
                    wmma::mma_sync(part[i][j], x[i], y, part[i][j]);
                }
            }
        }
    }
    for (int i = 0; i < DOWN; i++) {
        for (int j = 0; j < ACROSS; j++) {
            wmma::store_matrix_sync(&whole[group][warp + i * SIDE][j * SIDE], part[i][j], WIDTH,
                                    wmma::mem_row_major);
        }
    }
    __syncthreads();
    for (int g = 0; g < G && group == 0; g++) {
        for (int i = 0; i < R * C; i++) {
            sum[i / C][i % C] += whole[g][row + i / C][column + i % C];
        }
    }
    return group == 0;
#else
    return md_product_sums<float, md_widened<widen, read_a, A>, md_widened<widen, read_b, B>, G>(
        s, a, b, at, sum);
#endif
}
/* end: halves */

#endif
