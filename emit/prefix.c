/* prefix: what the names of an emitted file begin with. Needs the options; gives a name that
 * neither C, nor the headers of the system, nor the file itself has. */
#include "emit/prefix.h"

#include "emit/write.h"

#include <string.h>

static bool is_identifier(const char *s) {
    if (*s >= '0' && *s <= '9') {
        return false;
    }
    for (const char *at = s; *at != 0; at++) {
        if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
              (*at >= '0' && *at <= '9') || *at == '_')) {
            return false;
        }
    }
    return *s != 0;
}

/* The name of a model is a type of the emitted file, beside what the system headers declare. */
static bool is_declared(const char *s) {
    /* clang-format off */
    static const char *const names[] = {
        "BUFSIZ", "EOF", "FILE", "INFINITY", "MD", "NAN", "SNAN", "abort", "abs", "access", "acct",
        "alarm", "alloca", "basename", "be16", "be32", "be64", "brk", "calloc", "canonicalize",
        "cbrt", "chdir", "chmod", "chown", "chroot", "clock", "close", "copysign", "creat", "crypt",
        "ctime", "daemon", "drand48", "drem", "dup", "dup2", "environ", "erfc", "execv", "exp10",
        "exp2", "fadd", "fchown", "fclose", "fcntl", "fdim", "fdiv", "feof", "fflush", "ffma",
        "ffs", "fgets", "fileno", "finite", "flock", "fma", "fmul", "fopen", "fork", "fprintf",
        "fputc", "fputs", "fread", "frexp", "fseek", "fsqrt", "fstat", "fsub", "fsync", "ftell",
        "fwrite", "getc", "getenv", "getline", "getopt", "getpid", "gets", "ilogb", "initstate",
        "ioctl", "isatty", "kill", "labs", "ldexp", "le16", "le32", "le64", "link", "llrint",
        "llround", "localtime", "lockf", "log10", "log1p", "log2", "lrint", "lround", "lseek",
        "lstat", "madvise", "mkdir", "mktemp", "mktime", "mlock", "mmap", "modf", "munmap", "nan",
        "nearbyint", "nextafter", "nextdown", "nextup", "nice", "open", "optarg", "pause", "pclose",
        "perror", "pipe", "popen", "pread", "profil", "putc", "putchar", "putenv", "puts", "pwrite",
        "qsort", "raise", "random", "readlink", "realloc", "realpath", "remove", "remquo", "rename",
        "revoke", "rewind", "rmdir", "roundeven", "s16", "s32", "s8", "scalbn", "scanf", "select",
        "send", "setbuf", "setenv", "setstate", "sigaction", "sigset", "sincos", "sleep",
        "snprintf", "splice", "sprintf", "srand", "srandom", "sscanf", "stat", "statx", "strcat",
        "strchr", "strcmp", "strcpy", "strdup", "strfry", "strftime", "strstr", "strtod", "strtok",
        "strtol", "swab", "symlink", "symlinkat", "sync", "syscall", "tee", "times", "tmpfile",
        "totalorder", "truncate", "ttyname", "u16", "u32", "u8", "uint", "ulong", "umask", "ungetc",
        "unlink", "unsetenv", "ushort", "usleep", "vfork", "vprintf", "wait",
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], s) == 0) {
            return true;
        }
    }
    return false;
}

/* A word of C, or what its headers declare: functions, those of other floats (expf, expl) and types
 * (all that end so belong to POSIX). */
static bool is_system(Arena *arena, const char *s) {
    size_t n = strlen(s);
    bool other = n > 2 && (s[n - 1] == 'f' || s[n - 1] == 'l');
    const char *plain = other ? str_ndup(arena, s, n - 1) : s;
    bool type = n > 2 && strcmp(s + n - 2, "_t") == 0;
    return type || name_is_reserved(s) || is_declared(s) || name_is_reserved(plain) ||
           is_declared(plain);
}

/* R_OK of unistd.h and its like, which the codes of the emitted file would be called too. */
static bool is_mode(const char *s) {
    return s[0] != 0 && s[1] == 0 && strchr("rwxfRWXF", s[0]) != NULL;
}

/* What functions of the emitted file call their parameters and variables. */
static bool is_local(const char *s) {
    static const char *const names[] = {
        "arena",   "argc",       "argv",  "block", "call",   "code", "cols",     "count",
        "ctx",     "descriptor", "field", "hi",    "i",      "in",   "instance", "ld",
        "lo",      "m",          "m0",    "mem",   "memory", "n0",   "notes",    "out",
        "outside", "part",       "raw",   "read",  "rows",   "seed", "strip",    "sums",
        "table",   "tensors",    "user",  "value", "values", "what", "write",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], s) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_taken(Arena *arena, const char *s) {
    return is_mode(s) || is_local(s) || is_system(arena, s) || strcmp(s, "md") == 0 ||
           strncmp(s, "md_", 3) == 0 || s[0] == '_';
}

const char *emit_prefix(Compile *c) {
    if (c->opt.prefix != NULL) {
        if (!is_identifier(c->opt.prefix) || is_taken(&c->arena, c->opt.prefix)) {
            diag_error(&c->diag, LOC_NONE, 701, "--prefix=%s is not a free C identifier",
                       c->opt.prefix);
            return NULL;
        }
        return c->opt.prefix;
    }
    char *name = str_dup(&c->arena, path_stem(&c->arena, c->opt.input));
    for (char *s = name; *s != 0; s++) {
        char one[2] = {*s, 0};
        if (!is_identifier(one) && !(*s >= '0' && *s <= '9')) {
            *s = '_';
        }
    }
    return !is_identifier(name) || is_taken(&c->arena, name) ? str_printf(&c->arena, "net_%s", name)
                                                             : name;
}
