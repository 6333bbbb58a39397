/* flags: see the header. Emitted programs need none of them: they make it fast, and with
 * -ffp-contract=off (nvcc: -fmad=false) the bits are the same from every compiler
 * (docs/decisions/0016-multiply-adds.md). */
#include "compiler/flags.h"

#include <string.h>

const Machine machines[] = {
    {"native", "-march=native", "-arch=native", false},
    {"generic", "", "", false},
    {"x86-64", "-march=x86-64", NULL, false},
    {"x86-64-v2", "-march=x86-64-v2", NULL, false},
    {"x86-64-v3", "-march=x86-64-v3", NULL, false},
    {"x86-64-v4", "-march=x86-64-v4", NULL, false},
    /* By its parts: compilers learn the name later than the instructions. */
    {"znver4", "-march=x86-64-v4 -mavx512bf16", NULL, true},
    {"aarch64", "-march=armv8-a", NULL, false},
};
const int nmachines = sizeof machines / sizeof *machines;

/* tcc knows no levels and no vectors; it takes -O2 and does nothing about it. */
static const struct {
    const char *before, *behind; /* the option of the machine */
} families[] = {
    [CC_GNU] = {"-O3", "-fopenmp -ffp-contract=off -fno-math-errno -fno-trapping-math"},
    [CC_TCC] = {"-O2", ""},
    [CC_NVCC] = {"-O3 -std=c++17", "-fmad=false"},
};

const char flags_compiler_names[] = "cc, gcc, clang, tcc, nvcc";
static const struct {
    const char *name;
    CcFamily family;
} compilers[] = {
    {"cc", CC_GNU},  {"c99", CC_GNU},     {"c11", CC_GNU}, {"c17", CC_GNU},
    {"c++", CC_GNU}, {"gcc", CC_GNU},     {"g++", CC_GNU}, {"clang", CC_GNU},
    {"icx", CC_GNU}, {"clang++", CC_GNU}, {"tcc", CC_TCC}, {"nvcc", CC_NVCC},
};

void flags_machine_names(Text *out) {
    for (int i = 0; i < nmachines; i++) {
        text_printf(out, "%s%s", i ? ", " : "", machines[i].name);
    }
}

const Machine *flags_machine(const char *name) {
    for (int i = 0; i < nmachines; i++) {
        if (str_eq(machines[i].name, name)) {
            return &machines[i];
        }
    }
    return NULL;
}

/* As runtime/tile_half.h settles it for a C compiler: of those with the instruction, AMD's. */
static bool has_pairs(void) {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    return __builtin_cpu_is("amd") && __builtin_cpu_supports("avx512bf16");
#else
    return false;
#endif
}

bool flags_pairs(const Machine *machine) {
    return machine && (machine->pairs || (machine == &machines[0] && has_pairs()));
}

/* In front of a compiler's name may stand a folder and a target, behind it a version. */
bool flags_family(const char *compiler, CcFamily *family) {
    const char *slash = strrchr(compiler, '/');
    const char *name = slash ? slash + 1 : compiler;
    size_t length = strlen(name);
    while (length > 0 && strchr("0123456789.", name[length - 1])) {
        length--;
    }
    /* "gcc-12" has a version, "c99" is a name. */
    length = length > 0 && name[length - 1] == '-' ? length - 1 : strlen(name);
    size_t start = length;
    while (start > 0 && name[start - 1] != '-') {
        start--;
    }
    for (size_t i = 0; i < sizeof compilers / sizeof *compilers; i++) {
        const char *known = compilers[i].name;
        if (strlen(known) == length - start && memcmp(known, name + start, length - start) == 0) {
            *family = compilers[i].family;
            return true;
        }
    }
    return false;
}

bool flags_fit(CcFamily family, const Machine *machine) {
    return family == CC_GNU || machine->nvcc;
}

void flags_compile(Text *out, CcFamily family, const Machine *machine) {
    const char *option = family == CC_GNU ? machine->gnu : family == CC_NVCC ? machine->nvcc : "";
    const char *const part[] = {families[family].before, option, families[family].behind};
    for (int i = 0; i < 3; i++) {
        text_printf(out, "%s%s", i && part[i][0] ? " " : "", part[i]);
    }
}

void flags_libraries(Text *out, bool openblas) {
    text_printf(out, "%s-lm", openblas ? "-lopenblas " : "");
}
