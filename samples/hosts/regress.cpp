// regress: a C++17 program that trains the model of regress.mdl itself: its own data, its own loop.
//
//     mdlc --no-main --threads=1 samples/hosts/regress.mdl -o regress.c -H regress.h
//     cc -O3 -march=native -c regress.c
//     c++ -std=c++17 -O2 -I. samples/hosts/regress.cpp regress.o -lm -o regress
//     ./regress samples/data/diabetes.csv [WEIGHTS]
//
// The rows and their order are those of the emitted main (`./regress fit` of a build without
// --no-main), so both end with the same weights. Prints loss and R2 of the held-out rows, saves the
// weights, loads them into a second instance and sees that it answers the same. Status 1 when
// anything fails.
#include "regress.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int batch = 32, width = 10, epochs = 20, every = 5;

void must(int code, const char *what) {
    if (code != REGRESS_OK) {
        throw std::runtime_error(std::string(what) + ": " + regress_strerror(code));
    }
}

// An instance and its memory. The arena is dead between calls, so all instances share one.
class Model {
  public:
    regress net{};

    Model() {
        static Region<REGRESS_ARENA_BYTES> arena;
        regress_memory memory{params_.bytes, state_.bytes, io_.bytes, arena.bytes,
                              REGRESS_PARAMS_BYTES, REGRESS_STATE_BYTES, REGRESS_IO_BYTES,
                              REGRESS_ARENA_BYTES};
        must(regress_bind(&net, &memory), "bind");
    }
    Model(const Model &) = delete; // the instance points into the object
    Model &operator=(const Model &) = delete;

    void save(const std::string &path) const {
        std::ofstream file(path, std::ios::binary);
        auto write = [](void *to, const void *data, size_t bytes) {
            auto &out = *static_cast<std::ofstream *>(to);
            out.write(static_cast<const char *>(data), static_cast<std::streamsize>(bytes));
            return out ? 0 : 1;
        };
        must(regress_save(&net, REGRESS_SAVE_PARAMS, write, &file), "save");
        file.flush();
        if (!file) {
            throw std::runtime_error("cannot write " + path);
        }
    }

    void load(const std::string &path) {
        std::ifstream file(path, std::ios::binary);
        auto read = [](void *from, uint64_t offset, void *data, size_t bytes) {
            auto &in = *static_cast<std::ifstream *>(from);
            in.clear();
            in.seekg(static_cast<std::streamoff>(offset));
            in.read(static_cast<char *>(data), static_cast<std::streamsize>(bytes));
            return in ? 0 : 1;
        };
        must(regress_load(&net, read, &file), "load");
    }

  private:
    template <size_t Bytes> struct Region {
        alignas(REGRESS_ALIGN) unsigned char bytes[Bytes];
    };
    Region<REGRESS_PARAMS_BYTES> params_;
    Region<REGRESS_STATE_BYTES> state_;
    Region<REGRESS_IO_BYTES> io_;
};

struct Rows {
    std::vector<float> x, y;
    int count() const { return static_cast<int>(y.size()); }
};

// Every fifth row is held out.
void read_table(const char *path, Rows &train, Rows &held) {
    std::ifstream file(path);
    std::string line, cell;
    std::getline(file, line); // names of the columns
    for (int row = 0; std::getline(file, line); row++) {
        Rows &to = row % every == every - 1 ? held : train;
        std::istringstream cells(line);
        for (int i = 0; std::getline(cells, cell, ','); i++) {
            const float value = static_cast<float>(std::strtod(cell.c_str(), nullptr));
            (i < width ? to.x : to.y).push_back(i < width ? value : value / 100);
        }
    }
    if (held.count() == 0 || train.x.size() != train.y.size() * width) {
        throw std::runtime_error(std::string("no table: ") + path);
    }
}

// Loss and R2 over any number of rows; the last batch is filled up, and only its first rows count.
regress_fit_eval_end_out evaluate(Model &model, const Rows &rows) {
    regress_fit_eval_sums sums{};
    for (int first = 0; first < rows.count(); first += batch) {
        const int used = std::min(batch, rows.count() - first);
        std::array<float, batch * width> x{};
        std::array<float, batch> y{};
        std::copy_n(&rows.x[static_cast<size_t>(first) * width], used * width, x.begin());
        std::copy_n(&rows.y[static_cast<size_t>(first)], used, y.begin());
        const regress_fit_in in{x.data(), y.data()};
        regress_fit_eval_out part;
        must(regress_fit_eval(&model.net, &in, used, &part), "evaluation");
        must(regress_fit_eval_add(&sums, &part), "evaluation");
    }
    regress_fit_eval_end_out figures;
    must(regress_fit_eval_end(&model.net, &sums, &figures), "evaluation");
    return figures;
}

void run(const char *table, const std::string &weights) {
    Rows train, held;
    Model model, second;
    read_table(table, train, held);
    must(regress_init(&model.net, 0), "init");
    for (int epoch = 0; epoch < epochs; epoch++) {
        for (int first = 0; first + batch <= train.count(); first += batch) {
            const regress_fit_in in{&train.x[static_cast<size_t>(first) * width],
                                    &train.y[static_cast<size_t>(first)]};
            regress_fit_out out;
            must(regress_fit(&model.net, &in, &out), "fit");
        }
    }
    const auto figures = evaluate(model, held);
    std::printf("%d rows: loss %.8g, r2 %.8g\n", held.count(), static_cast<double>(figures.loss),
                static_cast<double>(figures.r2));

    model.save(weights);
    second.load(weights);
    const regress_predict_in in{held.x.data()};
    regress_predict_out a, b;
    must(regress_predict(&model.net, &in, &a), "predict");
    must(regress_predict(&second.net, &in, &b), "predict");
    if (*a.y != *b.y) {
        throw std::runtime_error("the loaded weights answer otherwise");
    }
}

} // namespace

int main(int argc, char **argv) {
    try {
        if (argc < 2) {
            throw std::runtime_error("usage: regress TABLE [WEIGHTS]");
        }
        run(argv[1], argc > 2 ? argv[2] : "regress.safetensors");
    } catch (const std::exception &fault) {
        std::cerr << "regress: " << fault.what() << '\n';
        return 1;
    }
    return 0;
}
