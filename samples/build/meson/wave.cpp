// wave: a C++ program with a model in its build. It trains the model of wave.mdl on a curve and says
// how far its answers are from it. Status 1 where that is more than 0.05 in the mean.
#include "wave.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <stdexcept>

namespace {

constexpr int batch = 32, updates = 3000;

alignas(WAVE_ALIGN) std::array<unsigned char, WAVE_PARAMS_BYTES> params;
alignas(WAVE_ALIGN) std::array<unsigned char, WAVE_STATE_BYTES> state;
alignas(WAVE_ALIGN) std::array<unsigned char, WAVE_IO_BYTES> io;
alignas(WAVE_ALIGN) std::array<unsigned char, WAVE_ARENA_BYTES> arena;

void must(int code) {
    if (code != WAVE_OK) {
        throw std::runtime_error(wave_strerror(code));
    }
}

float curve(float x) { return std::sin(4 * x) * (1 - x * x); }

double run() {
    wave net{};
    const wave_memory memory{params.data(), state.data(), io.data(),  arena.data(),
                             params.size(), state.size(), io.size(), arena.size()};
    must(wave_bind(&net, &memory));
    must(wave_init(&net, 1));
    std::array<float, batch> x{}, y{};
    std::uint32_t seed = 1;
    for (int update = 0; update < updates; update++) {
        for (int i = 0; i < batch; i++) {
            seed = seed * 1664525u + 1013904223u;
            x[i] = static_cast<float>(seed >> 8) / 8388608.0f - 1;
            y[i] = curve(x[i]);
        }
        const wave_fit_in in{x.data(), y.data()};
        wave_fit_out out;
        must(wave_fit(&net, &in, &out));
    }
    for (int i = 0; i < batch; i++) {
        x[i] = (static_cast<float>(i) + 0.5f) / batch * 2 - 1;
    }
    const wave_at_in in{x.data()};
    wave_at_out out;
    must(wave_at(&net, &in, &out));
    double off = 0;
    for (int i = 0; i < batch; i++) {
        off += std::fabs(static_cast<double>(out.y[i] - curve(x[i]))) / batch;
    }
    return off;
}

} // namespace

int main() {
    try {
        const double off = run();
        std::printf("wave: off by %.3f in the mean, %d bytes\n", off,
                    WAVE_PARAMS_BYTES + WAVE_STATE_BYTES + WAVE_IO_BYTES + WAVE_ARENA_BYTES);
        return off < 0.05 ? 0 : 1;
    } catch (const std::exception &fault) {
        std::fprintf(stderr, "wave: %s\n", fault.what());
        return 1;
    }
}
