/* version: see the header. Nothing here depends on time, place or machine of the build. */
#include "compiler/driver/version.h"

#include "compiler/driver/options.h"
#include "compiler/embed.h"
#include "compiler/version.h"

#include <string.h>

#if defined(__has_feature)
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif

#define TEXT_OF(x) #x
#define NUMBER(x) TEXT_OF(x)
#if defined(__clang__)
#define BUILT_BY                                                                                   \
    "clang " NUMBER(__clang_major__) "." NUMBER(__clang_minor__) "." NUMBER(__clang_patchlevel__)
#elif defined(__GNUC__)
#define BUILT_BY "gcc " NUMBER(__GNUC__) "." NUMBER(__GNUC_MINOR__) "." NUMBER(__GNUC_PATCHLEVEL__)
#else
#define BUILT_BY "an unknown compiler"
#endif

/* gcc does not tell the text that it compiles about every sanitizer: the Makefile does. */
#ifdef MDLC_SANITIZERS
static const char sanitizers[] = MDLC_SANITIZERS;
#elif defined(__SANITIZE_ADDRESS__) || HAS_FEATURE(address_sanitizer)
static const char sanitizers[] = "address";
#elif defined(__SANITIZE_THREAD__) || HAS_FEATURE(thread_sanitizer)
static const char sanitizers[] = "thread";
#elif HAS_FEATURE(memory_sanitizer)
static const char sanitizers[] = "memory";
#else
static const char sanitizers[] = "";
#endif

/* What makes this build another one than that for users. */
static void print_kind(FILE *out) {
    const char *kind[4];
    int count = 0;
    if (ODD_SIZES) {
        kind[count++] = "odd sizes";
    }
#ifdef MDLC_COVERAGE
    kind[count++] = "coverage";
#endif
#ifdef MDLC_HOSTILE_ARENAS
    kind[count++] = "hostile arenas";
#endif
    fputs("build:", out);
    if (sanitizers[0]) {
        fprintf(out, " sanitizers (%s)", sanitizers);
    }
    for (int i = 0; i < count; i++) {
        fprintf(out, "%s %s", i || sanitizers[0] ? "," : "", kind[i]);
    }
    fprintf(out, "%s\n", count == 0 && !sanitizers[0] ? " usual" : "");
}

static void print_names(FILE *out, const char *title, const char *const *names) {
    fputs(title, out);
    for (int i = 0; names[i]; i++) {
        fprintf(out, " %s", names[i]);
    }
    fputc('\n', out);
}

/* "lang/nn/layers.mdl" is the module nn.layers. */
static void print_modules(FILE *out) {
    static const char folder[] = "lang/", ending[] = ".mdl";
    fputs("modules:", out);
    for (size_t i = 0; i < nembeds; i++) {
        const char *name = embeds[i].name;
        size_t length = strlen(name);
        if (strncmp(name, folder, sizeof folder - 1) != 0 || length < sizeof ending ||
            strcmp(name + length - (sizeof ending - 1), ending) != 0) {
            continue;
        }
        fputc(' ', out);
        for (const char *at = name + sizeof folder - 1; at < name + length - (sizeof ending - 1);
             at++) {
            fputc(*at == '/' ? '.' : *at, out);
        }
    }
    fputc('\n', out);
}

void version_print(FILE *out) {
    fputs("mdlc " MDLC_VERSION "\n", out);
    fputs("built by: " BUILT_BY "\n", out);
    print_kind(out);
    fprintf(out, "threads: %d\n", THREADS_USUAL);
    print_names(out, "targets:", options_targets);
    print_names(out, "blas:", options_blas);
    print_modules(out);
    fputs("licence: MIT; what mdlc writes is yours, its own text in there is under 0BSD\n", out);
}
