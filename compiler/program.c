/* program: makers and walkers of the Program, unique names, and its dump. */
#include "compiler/program.h"

#include "compiler/keep.h"
#include "compiler/kernel_table.h"

#include <stdlib.h>
#include <string.h>

int64_t count_add(int64_t sum, int64_t times, int64_t n) {
    int64_t r;
    return __builtin_mul_overflow(times, n, &r) || __builtin_add_overflow(sum, r, &r) ? INT64_MAX
                                                                                      : r;
}

int64_t align_up(int64_t bytes, int64_t to) {
    return (bytes + to - 1) / to * to;
}

/* ---- names ---------------------------------------------------------------------------------- */

/* A set of (scope, name). Three scopes matter for Bufs: one entry, the program (slots and tables,
 * seen by every entry), and `any` (everything named so far, which a name of the program must avoid
 * because entries may have taken it already). Emitted functions have a scope of their own. */
static const char scope_program, scope_function;

static int word_compare(const void *key, const void *item) {
    return strcmp(key, *(const char *const *)item);
}

bool name_is_reserved(const char *name) {
    /* Sorted. Words of C11, C23 and C++20, `typeof` of gcc before them, then names of the headers
     * that emitted files include. */
    /* clang-format off */
    static const char *const words[] = {
        "La_x32_regs", "La_x32_retval", "NULL", "alignas", "alignof", "and", "and_eq", "asm",
        "atan2", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "ceil", "char",
        "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return", "co_yield", "compl",
        "concept", "const", "const_cast", "consteval", "constexpr", "constinit", "continue",
        "cos", "cosh", "decltype", "default", "delete", "div", "do", "double", "dynamic_cast",
        "else", "enum", "erf", "errno", "exit", "exp", "explicit", "export", "extern", "fabs",
        "false", "float", "floor", "fmax", "fmin", "fmod", "for", "free", "friend", "gamma",
        "goto", "hypot", "if", "index", "inline", "int", "int16_t", "int32_t", "int64_t",
        "int8_t", "intptr_t", "isfinite", "isinf", "isnan", "j0", "j1", "jn", "lgamma", "linux",
        "log", "logb", "long", "main", "malloc", "math_errhandling", "md", "memchr", "memcmp",
        "memcpy", "memmove", "memory", "memset", "mutable", "namespace", "new", "noexcept", "not",
        "not_eq", "nullptr", "nullptr_t", "operator", "or", "or_eq", "pow", "printf", "private",
        "protected", "ptrdiff_t", "public", "rand", "read", "register", "reinterpret_cast",
        "remainder", "requires", "restrict", "return", "rindex", "rint", "round", "sa_handler",
        "sa_sigaction", "scalb", "short", "si_addr", "si_addr_lsb", "si_arch", "si_band",
        "si_call_addr", "si_fd", "si_int", "si_lower", "si_overrun", "si_pid", "si_pkey",
        "si_ptr", "si_status", "si_stime", "si_syscall", "si_timerid", "si_uid", "si_upper",
        "si_utime", "si_value", "sigev_notify_attributes", "sigev_notify_function", "signal",
        "signed", "signgam", "significand", "sin", "sinh", "size_t", "sizeof", "sqrt", "st_atime",
        "st_ctime", "st_mtime", "static", "static_assert", "static_cast", "stderr", "stdin",
        "stdout", "strlen", "struct", "switch", "system", "tan", "tanh", "template", "tgamma",
        "this", "thread_local", "throw", "time", "true", "trunc", "try", "typedef", "typeid",
        "typename", "typeof", "typeof_unqual", "uint16_t", "uint32_t", "uint64_t", "uint8_t",
        "uintptr_t", "union", "unix", "unsigned", "using", "virtual", "void", "volatile",
        "wchar_t", "while", "write", "xor", "xor_eq", "y0", "y1", "yn",
    };
    /* clang-format on */
    bool taken =
        bsearch(name, words, sizeof words / sizeof *words, sizeof *words, word_compare) != NULL;
    for (int op = 0; op < OP_COUNT && !taken; op++) { /* f64 calls C's functions */
        taken = op_info[op].spelling[0] == '~' && strcmp(name, op_info[op].name) == 0;
    }
    return taken;
}

bool name_is_macro(const char *name) {
    size_t capitals = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
    return capitals > 0 && (name[capitals] == '_' || (name[capitals] == 0 && capitals > 1));
}

/* Names that entry functions use for themselves. */
static bool name_is_local(const char *name) {
    static const char *const words[] = {"arena", "field",   "in",   "m",    "out",   "raw",
                                        "rows",  "scratch", "seed", "sums", "values"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(name, words[i]) == 0) {
            return true;
        }
    }
    return name[0] == 'i' && name[1] != 0 && strspn(name + 1, "0123456789") == strlen(name + 1);
}

static bool is_word_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Letters that C takes; the name may still be a word of C. */
static char *name_letters(Arena *arena, const char *name) {
    char *text = arena_alloc(arena, strlen(name) + 2);
    size_t len = 0;
    if (name[0] == 0 || (name[0] >= '0' && name[0] <= '9')) {
        text[len++] = 'v';
    }
    for (const char *s = name; *s != 0; s++) {
        char c = (char)(is_word_byte(*s) ? *s : '_');
        /* Two underscores in a row belong to the C++ library, one in front to C's. */
        if (c != '_' || (len > 0 && text[len - 1] != '_')) {
            text[len++] = c;
        }
    }
    while (len > 0 && text[len - 1] == '_') {
        len--;
    }
    if (len == 0) {
        text[len++] = 'v';
    }
    text[len] = 0;
    bool taken = strncmp(text, "md_", 3) == 0 || strncmp(text, "MD_", 3) == 0;
    return taken || name_is_macro(text) ? str_printf(arena, "v_%s", text) : text;
}

static char *name_identifier(Arena *arena, const char *name) {
    char *text = name_letters(arena, name);
    bool taken = name_is_reserved(text) || name_is_local(text);
    return taken ? str_printf(arena, "%s_", text) : text;
}

typedef bool (*NameTaken)(const Program *p, const void *scope, const char *name);

/* `numbers`: within what equal names are counted. */
static const char *name_unique(Program *p, const void *scope, const void *numbers, const char *base,
                               NameTaken taken) {
    const char *name = base;
    bool joined = base[0] != '\0' && base[strlen(base) - 1] == '_';
    while (taken(p, scope, name)) {
        int n = names_number(p->arena, p->names, numbers, base);
        name = str_printf(p->arena, joined ? "%s%d" : "%s_%d", base, n);
    }
    return name;
}

static bool buf_name_taken(const Program *p, const void *scope, const char *name) {
    bool taken = names_has(p->names, &scope_program, name);
    if (scope != &scope_program) {
        return taken || names_has(p->names, scope, name);
    }
    for (int i = 0; i < p->entry.count && !taken; i++) {
        taken = names_has(p->names, p->entry.at[i], name);
    }
    return taken;
}

/* An entry NAME owns NAME, NAME_in, NAME_out, what the host part says of it, and so do the two of a
 * train's evaluation; a kernel the functions and tables that it is cut into. */
static const char *const entry_names[] = {
    "",      "_in",    "_out",    "_call",  "_inputs", "_outputs", "_hypers", "_places", "_first",
    "_from", "_needs", "_traced", "_looks", "_extras", "_metrics", "_plan",   "_epoch",  NULL};
static const char *const eval_names[] = {"_eval_sums", "_eval_add", NULL};
static const char *const entry_parts[] = {"", "_eval", "_eval_end"}; /* a call has the first */
static const char *const kernel_names[] = {"",       "_part",     "_args", "_tile",
                                           "_block", "_epilogue", "_blas", NULL};
static const char *const loop_names[] = {"", "_part", "_args", NULL};

static bool any_taken(const Program *p, const char *name, const char *const *suffix) {
    for (; *suffix != NULL; suffix++) {
        const char *text = str_printf(p->arena, "%s%s", name, *suffix);
        if (names_has(p->names, &scope_function, text)) {
            return true;
        }
    }
    return false;
}

static void take_all(Program *p, const char *name, const char *const *suffix) {
    for (; *suffix != NULL; suffix++) {
        names_add(p->arena, p->names, &scope_function, str_printf(p->arena, "%s%s", name, *suffix));
    }
}

static bool function_name_taken(const Program *p, const void *scope, const char *name) {
    return names_has(p->names, scope, name);
}

/* What hosts set, whichever train has it. */
static const char *setter_name(const Program *p, const char *entry, int slot) {
    const char *label = p->slot.at[slot]->slot->label;
    return label != NULL ? str_printf(p->arena, "%s_set_%s", entry, label) : NULL;
}

/* `scope` is the entry. */
static bool entry_name_taken(const Program *p, const void *scope, const char *name) {
    bool train = ((const ProgramEntry *)scope)->entry->kind == ENTRY_TRAIN, taken = false;
    for (int i = 0; i < (train ? 3 : 1) && !taken; i++) {
        taken = any_taken(p, str_printf(p->arena, "%s%s", name, entry_parts[i]), entry_names);
    }
    taken = taken || (train && any_taken(p, name, eval_names));
    for (int i = 0; train && i < p->slot.count && !taken; i++) {
        const char *setter = setter_name(p, name, i);
        taken = setter != NULL && names_has(p->names, &scope_function, setter);
    }
    return taken;
}

const char *kernel_loop_name(Arena *arena, const char *kernel, int k) {
    return k == 0 ? str_printf(arena, "%s_loop", kernel)
                  : str_printf(arena, "%s_loop_%d", kernel, k + 1);
}

/* `scope` is the number of the kernel's parallel loops. Entries call kernels beside their buffers,
 * which may begin with the prefix: in d.mdl the gradient of w is d_w. */
static bool kernel_name_taken(const Program *p, const void *scope, const char *name) {
    const int *loops = scope;
    bool taken = any_taken(p, name, kernel_names) || buf_name_taken(p, &scope_program, name);
    for (int k = 0; k < *loops && !taken; k++) {
        taken = any_taken(p, kernel_loop_name(p->arena, name, k), loop_names);
    }
    return taken;
}

static const char *function_name(Program *p, const char *base) {
    const char *name = name_unique(p, &scope_function, &scope_function, base, function_name_taken);
    names_add(p->arena, p->names, &scope_function, name);
    return name;
}

static void name_kernel(Program *p, Kernel *k) {
    const char *base = k->name != NULL ? k->name : "kernel";
    size_t length = strlen(p->prefix);
    bool prefixed = strncmp(base, p->prefix, length) == 0 && base[length] == '_';
    base = prefixed ? name_identifier(p->arena, base)
                    : str_printf(p->arena, "%s_%s", p->prefix, name_identifier(p->arena, base));
    int loops = kernel_parallel_loops(k);
    k->name = name_unique(p, &loops, &scope_function, base, kernel_name_taken);
    take_all(p, k->name, kernel_names);
    for (int i = 0; i < loops; i++) {
        take_all(p, kernel_loop_name(p->arena, k->name, i), loop_names);
    }
}

static const char *entry_suffix(EntryKind kind) {
    switch (kind) {
    case ENTRY_INIT: return "init";
    case ENTRY_EVAL: return "eval";
    case ENTRY_EVAL_END: return "eval_end";
    case ENTRY_LOAD: return "load_row";
    case ENTRY_TEST: return "test";
    case ENTRY_TRAIN:
    case ENTRY_CALL: break;
    }
    return NULL;
}

static void name_owned(Program *p, const char *entry, bool train) {
    for (int i = 0; i < (train ? 3 : 1); i++) {
        for (int k = 0; entry_names[k]; k++) {
            names_add(p->arena, p->names, &scope_function,
                      str_printf(p->arena, "%s%s%s", entry, entry_parts[i], entry_names[k]));
        }
    }
    for (int k = 0; train && eval_names[k]; k++) {
        names_add(p->arena, p->names, &scope_function,
                  str_printf(p->arena, "%s%s", entry, eval_names[k]));
    }
    for (int i = 0; train && i < p->slot.count; i++) {
        const char *setter = setter_name(p, entry, i);
        if (setter != NULL) {
            names_add(p->arena, p->names, &scope_function, setter);
        }
    }
}

static bool has_small(const char *name) {
    return name[strcspn(name, "abcdefghijklmnopqrstuvwxyz")] != 0;
}

/* What the program has once: functions of hosts, tables of each data set, checks of each type. */
static void name_once(Program *p, const char *name) {
    names_add(p->arena, p->names, &scope_function, str_printf(p->arena, "%s_%s", p->prefix, name));
}

void program_names(Program *p) {
    static const char *const api[] = {
        "init",         "bind",     "save",    "load",      "tensors",   "tensor",
        "main",         "strerror", "memory",  "model",     "scratch",   "nonfinite",
        "tensor_table", "regions",  "refused", "host_init", "host_bind", "entries",
        "datasets",     "phases",   "spans",   "arenas",    "info",      "inits"};
    for (size_t i = 0; i < sizeof api / sizeof *api; i++) {
        name_once(p, api[i]);
    }
    for (int i = 0; i < p->module->dataset.count; i++) {
        name_once(p, str_printf(p->arena, "files_%d", i));
        name_once(p, str_printf(p->arena, "fields_%d", i));
    }
    for (int i = 0; i < TY_COUNT; i++) {
        name_once(p, str_printf(p->arena, "outside_%s", elem_name((Elem)i)));
    }
    if (p->band_bytes > 0) {
        name_once(p, "check");
    }
    for (int i = 0; i < p->table.count; i++) {
        names_add(p->arena, p->names, &scope_function,
                  str_printf(p->arena, "%s_%s", p->prefix, p->table.at[i]->name));
    }
    /* What callers see first, so that it keeps its plain name. */
    for (int i = 0; i < p->entry.count; i++) {
        ProgramEntry *e = p->entry.at[i];
        if (e->entry->kind != ENTRY_TRAIN && e->entry->kind != ENTRY_CALL) {
            continue;
        }
        const char *base = str_printf(p->arena, "%s_%s", p->prefix, e->entry->name);
        /* Macros and codes of errors have the prefix and the rest in capitals. */
        if (entry_name_taken(p, e, base) || !has_small(base)) {
            base = str_printf(p->arena, "%s_entry", base);
        }
        e->c_name = name_unique(p, e, &scope_function, base, entry_name_taken);
        name_owned(p, e->c_name, e->entry->kind == ENTRY_TRAIN);
    }
    for (int i = 0; i < p->entry.count; i++) {
        ProgramEntry *e = p->entry.at[i];
        const char *suffix = entry_suffix(e->entry->kind);
        if (suffix == NULL) {
            continue;
        }
        const char *base = str_printf(p->arena, "%s_%s", p->prefix, suffix);
        if (e->entry->train != NULL) {
            for (int k = 0; k < p->entry.count; k++) {
                if (p->entry.at[k]->entry == e->entry->train) {
                    base = str_printf(p->arena, "%s_%s", p->entry.at[k]->c_name, suffix);
                }
            }
            e->c_name = base;
        } else if (e->entry->kind == ENTRY_INIT && e->entry->begins == 0) {
            e->c_name = base;
        } else if (e->entry->kind == ENTRY_INIT) {
            base = str_printf(p->arena, "%s_%s", p->prefix, e->entry->name);
            e->c_name = name_unique(p, e, &scope_function, base, entry_name_taken);
            name_owned(p, e->c_name, false);
        } else {
            e->c_name = function_name(p, str_printf(p->arena, "%s_%s_%s", p->prefix, suffix,
                                                    name_identifier(p->arena, e->entry->name)));
        }
    }
    for (int i = 0; i < p->kernel.count; i++) {
        name_kernel(p, p->kernel.at[i]);
    }
}

/* ---- bufs ----------------------------------------------------------------------------------- */

Program *program_new(Arena *arena, Module *module) {
    Program *p = ARENA_NEW(arena, Program);
    p->arena = arena;
    p->module = module;
    p->prefix = module->name;
    p->names = ARENA_NEW(arena, NameSet);
    p->kernels = kernel_table_new(arena);
    names_add(arena, p->names, &scope_program, p->prefix); /* the type of an instance */
    return p;
}

void buf_set_type(Program *p, Buf *buf, Type type) {
    int64_t stride = 1;
    buf->type = type_keep(p->arena, &p->types, type);
    buf->stride = ARENA_ARRAY(p->arena, int64_t, type.rank);
    for (int i = type.rank - 1; i >= 0; i--) {
        buf->stride[i] = stride;
        stride *= type.dim[i];
    }
}

void buf_set_role(Program *p, Buf *buf, const char *role) {
    buf->role = name_letters(p->arena, role);
}

Buf *buf_new(Program *p, ProgramEntry *e, BufKind kind, Type type, const char *name) {
    Buf *buf = ARENA_NEW(p->arena, Buf);
    buf->id = p->nbuf++;
    buf->kind = kind;
    buf_set_type(p, buf, type);
    buf->bytes = type_bytes(type);
    buf->out = -1;
    buf->storage = buf;
    buf->loc = LOC_NONE;
    buf->offset = kind == BUF_INPUT ? -1 : 0;
    const void *scope = e != NULL ? (const void *)e : &scope_program;
    const char *dot = name != NULL ? strrchr(name, '.') : NULL;
    buf->name = name_unique(p, scope, scope, name_identifier(p->arena, name != NULL ? name : "v"),
                            buf_name_taken);
    buf_set_role(p, buf, dot != NULL ? dot + 1 : name != NULL ? name : "v");
    names_add(p->arena, p->names, scope, buf->name);
    if (e != NULL) {
        VEC_PUSH(p->arena, &e->buf, buf);
    } else if (kind == BUF_CONST) {
        VEC_PUSH(p->arena, &p->table, buf);
    } else {
        VEC_PUSH(p->arena, &p->slot, buf);
    }
    return buf;
}

int64_t call_offset(const Call *call, int arg, const Step *loop) {
    int64_t mul = 0;
    for (int i = 0; i < call->offset.count; i++) {
        const Offset *o = &call->offset.at[i];
        mul += o->arg == arg && o->loop == loop ? o->mul : 0;
    }
    return mul;
}

bool call_same_offset(const Call *call, int a, int b) {
    bool same = true;
    for (int i = 0; i < call->offset.count; i++) {
        const Step *loop = call->offset.at[i].loop;
        same = same && call_offset(call, a, loop) == call_offset(call, b, loop);
    }
    return same;
}

uint64_t call_hash(const Call *call) {
    uint64_t hash = HASH_START;
    for (int i = 0; i < call->buf.count; i++) {
        hash = hash_word(hash, (uint64_t)buf_first(call->buf.at[i])->id);
    }
    for (int i = 0; i < call->offset.count; i++) {
        hash = hash_word(hash, (uint64_t)call->offset.at[i].arg);
        hash = hash_word(hash, (uint64_t)call->offset.at[i].loop->index);
        hash = hash_word(hash, (uint64_t)call->offset.at[i].mul);
    }
    for (int i = 0; i < call->loop.count; i++) {
        const Step *loop = call->loop.at[i]; /* NULL: its index is not used */
        hash = hash_word(hash, loop != NULL ? 1 + (uint64_t)loop->index : 0);
    }
    for (int i = 0; i < call->site.count; i++) {
        hash = hash_word(hash, call->site.at[i]);
    }
    return hash_word(hash, (uint64_t)call->size);
}

bool program_call(Program *p, Step *step, Kernel *k) {
    Kernel *kernel = kernel_table_put(p->kernels, k, &step->call);
    step->kernel = kernel;
    step->lowered_call = call_hash(&step->call);
    if (kernel->ncall++ == 0) {
        kernel->id = p->kernel.count;
        kernel->name = step->name;
        VEC_PUSH(p->arena, &p->kernel, kernel);
        kernel_keep(kernel, p->arena);
    } else if (step->name != NULL && !str_eq(kernel->name, step->name)) {
        kernel->name = step->role;
    }
    return kernel == k;
}

const Buf *buf_first(const Buf *buf) {
    return buf->again != NULL ? buf->again : buf;
}

int64_t program_whole_bytes(const Program *p) {
    return p->params_bytes + p->state_bytes + p->io_bytes + p->arena_bytes;
}

bool entry_in_phase(const Program *p, const ProgramEntry *e, int phase) {
    switch (e->entry->kind) {
    case ENTRY_INIT: return e->entry->begins == phase;
    case ENTRY_LOAD: return true;
    default: return module_phase(p->module, e->entry) == phase;
    }
}

Buf *buf_root(const Buf *buf) {
    Buf *root = buf->storage;
    while (root->storage != root) {
        root = root->storage;
    }
    return root;
}

const Buf *buf_local(const Buf *buf) {
    const Buf *root = buf_root(buf);
    bool kept = root->kind == BUF_PARAM || root->kind == BUF_STATE;
    return kept && root->offset == buf->offset && root->type->elem == buf->type->elem ? root : buf;
}

int64_t buf_extent(const Buf *buf) {
    if (type_count(*buf->type) == 0) {
        return 0;
    }
    int64_t last = 0;
    for (int i = 0; i < buf->type->rank; i++) {
        last += (buf->type->dim[i] - 1) * buf->stride[i];
    }
    return (last + 1) * (int64_t)elem_bytes(buf->type->elem);
}

bool buf_in_arena(const Buf *buf) {
    BufKind kind = buf_root(buf)->kind;
    return kind == BUF_TEMP || kind == BUF_WORK;
}

bool buf_owns_arena(const Buf *buf) {
    return buf->storage == buf && (buf->kind == BUF_TEMP || buf->kind == BUF_WORK) &&
           buf->first < buf->last;
}

int64_t arena_room(const ProgramEntry *e, int64_t bytes) {
    return align_up(bytes, MD_ALIGN) + 2 * e->band_bytes;
}

/* ---- steps ---------------------------------------------------------------------------------- */

bool input_is_ranged(const Entry *entry, const Slot *slot) {
    EntryKind kind = entry->kind;
    bool called = kind == ENTRY_TRAIN || kind == ENTRY_CALL || kind == ENTRY_EVAL;
    bool rows = kind == ENTRY_EVAL && slot == entry->rows_slot; /* the function looks itself */
    int64_t lo, hi;
    input_range(slot, &lo, &hi);
    return called && !rows && lo < hi && !elem_is_float(slot->type.elem);
}

void input_range(const Slot *slot, int64_t *lo, int64_t *hi) {
    bool truth = slot->type.elem == TY_BOOL;
    *lo = truth ? 0 : slot->lo;
    *hi = truth ? 2 : slot->hi;
}

bool step_refuses(const Step *step) {
    return step->kind == STEP_RANGE || step->kind == STEP_NEED;
}

Step *step_new(Program *p, StepKind kind, Loc loc) {
    Step *step = ARENA_NEW(p->arena, Step);
    step->kind = kind;
    step->loc = loc;
    step->trip = 1;
    if (kind == STEP_LOOP) {
        step->index = p->nindex++;
    }
    return step;
}

void step_access_slice(Program *p, Step *step, Buf *buf, int mode, const Step *const *slice,
                       int nslice) {
    Access access = {.buf = buf, .mode = mode};
    for (int i = 0; i < nslice && i < ACCESS_SLICES; i++) {
        access.slice[i] = slice[i];
    }
    for (int i = 0; i < step->access.count; i++) {
        Access *old = &step->access.at[i];
        if (old->buf != buf) {
            continue;
        }
        /* One whole write makes the union whole. */
        bool whole = ((old->mode | mode) & ACCESS_WRITE) != 0 &&
                     (((old->mode & ACCESS_WRITE) != 0 && (old->mode & ACCESS_PART) == 0) ||
                      ((mode & ACCESS_WRITE) != 0 && (mode & ACCESS_PART) == 0));
        old->mode |= mode;
        if (whole) {
            old->mode &= ~ACCESS_PART;
        }
        bool same = true;
        for (int k = 0; k < ACCESS_SLICES; k++) {
            same = same && old->slice[k] == access.slice[k];
            if (!same) {
                old->slice[k] = NULL;
            }
        }
        return;
    }
    VEC_PUSH_FROM(p->arena, &step->access, access, 4);
}

void step_access(Program *p, Step *step, Buf *buf, int mode) {
    step_access_slice(p, step, buf, mode, NULL, 0);
}

static bool loop_holds(const Step *loop, const Step *other) {
    if (loop == other) {
        return true;
    }
    for (int i = 0; i < loop->body.count; i++) {
        if (loop->body.at[i]->kind == STEP_LOOP && loop_holds(loop->body.at[i], other)) {
            return true;
        }
    }
    return false;
}

void step_access_body(Program *p, Step *loop) {
    for (int i = 0; i < loop->body.count; i++) {
        const Step *step = loop->body.at[i];
        for (int k = 0; k < step->access.count; k++) {
            const Access *access = &step->access.at[k];
            if (access->buf->kind == BUF_WORK ||
                (access->buf->loop != NULL && loop_holds(loop, access->buf->loop))) {
                continue;
            }
            /* Axes picked by this loop run over all positions, seen from outside. */
            int n = 0;
            while (n < ACCESS_SLICES && access->slice[n] != NULL && access->slice[n] != loop) {
                n++;
            }
            step_access_slice(p, loop, access->buf, access->mode, access->slice, n);
        }
    }
}

int64_t access_bytes(const Access *access) {
    int64_t bytes = access->buf->bytes;
    for (int k = 0; k < ACCESS_SLICES && access->slice[k]; k++) {
        bytes /= access->buf->type->dim[k] > 0 ? access->buf->type->dim[k] : 1;
    }
    int times = (access->mode & ACCESS_READ ? 1 : 0) + (access->mode & ACCESS_WRITE ? 1 : 0);
    return count_add(0, times, bytes);
}

int64_t access_needs(const Access *access) {
    int64_t bytes = access_bytes(access);
    return access->most > 0 && access->most < bytes ? access->most : bytes;
}

void step_own(Program *p, Step *loop, Buf *buf, int mode, const Step *const *slice, int nslice) {
    Access access = {.buf = buf, .mode = mode};
    for (int i = 0; i < nslice && i < ACCESS_SLICES; i++) {
        access.slice[i] = slice[i];
    }
    VEC_PUSH(p->arena, &loop->own, access);
    step_access_slice(p, loop, buf, mode, slice, nslice);
}

const Step *step_aside(const Step *loop) {
    const Step *found = NULL;
    for (; loop != NULL; loop = loop->up) {
        found = loop->rest != NULL ? loop : found;
    }
    return found;
}

void step_set_rest(Program *p, const Step *loop, int64_t bytes) {
    Buf *rest = loop->rest;
    buf_set_type(p, rest, (Type){.elem = TY_U8, .rank = 2, .dim = {loop->team - 1, bytes}});
    rest->bytes = type_bytes(*rest->type);
}

const Access *step_find(const Step *step, const Buf *buf) {
    for (int i = 0; i < step->access.count; i++) {
        if (step->access.at[i].buf == buf) {
            return &step->access.at[i];
        }
    }
    return NULL;
}

bool step_pairs(const Step *step, const Buf *in, const Buf *out) {
    for (int i = 0; i < step->inplace.count; i++) {
        if (step->inplace.at[i].in == in && step->inplace.at[i].out == out) {
            return true;
        }
    }
    return false;
}

int step_end(const Step *step) {
    return step->body.count == 0 ? step->id + 1 : step_end(step->body.at[step->body.count - 1]);
}

static void visit_list(const StepList *list, StepVisit visit, void *ctx, int depth) {
    for (int i = 0; i < list->count; i++) {
        visit(ctx, list->at[i], depth);
        visit_list(&list->at[i]->body, visit, ctx, depth + 1);
    }
}

void steps_visit(const StepList *list, StepVisit visit, void *ctx) {
    visit_list(list, visit, ctx, 0);
}

static void number_list(StepList *list, Step *up, int *next) {
    for (int i = 0; i < list->count; i++) {
        list->at[i]->id = (*next)++;
        list->at[i]->up = up;
        number_list(&list->at[i]->body, list->at[i], next);
    }
}

void program_number(ProgramEntry *e) {
    e->nstep = 0;
    number_list(&e->step, NULL, &e->nstep);
}

/* ---- dump ----------------------------------------------------------------------------------- */

static void dump_type(Type type, FILE *out) {
    fprintf(out, "%s[", elem_name(type.elem));
    for (int i = 0; i < type.rank; i++) {
        fprintf(out, "%s%lld", i > 0 ? ", " : "", (long long)type.dim[i]);
    }
    fputc(']', out);
}

static void dump_buf(const Buf *buf, FILE *out) {
    static const char *const kind[] = {"param", "state", "input", "result",
                                       "const", "temp",  "work"};
    fprintf(out, "  %-6s %s: ", kind[buf->kind], buf->name);
    dump_type(*buf->type, out);
    fprintf(out, " bytes %lld", (long long)buf->bytes);
    if (buf->kind != BUF_CONST && buf->offset >= 0) {
        fprintf(out, " at %lld", (long long)buf->offset);
    }
    if (buf->kind == BUF_TEMP || buf->kind == BUF_WORK) {
        fprintf(out, " live %d..%d", buf->first, buf->last);
    }
    if (buf->storage != buf) {
        fprintf(out, " in %s", buf->storage->name);
    }
    if (buf->final != NULL) {
        fprintf(out, " to %s", buf->final->name);
    }
    if (buf->loop != NULL) {
        fprintf(out, " loop %d", buf->loop->index);
    }
    if (buf->per_thread > 0) {
        fprintf(out, " threads %d", buf->per_thread);
    }
    fprintf(out, "%s\n", buf->saved ? " saved" : "");
}

static void dump_step(void *ctx, Step *step, int depth) {
    FILE *out = ctx;
    static const char *const kind[] = {"kernel", "loop",  "copy", "check", "push",
                                       "seed",   "range", "need", "clear"};
    fprintf(out, "  %*s%d: %s", 2 * depth, "", step->id, kind[step->kind]);
    if (step->name != NULL) {
        fprintf(out, " %s", step->name);
    }
    if (step->kind == STEP_LOOP) {
        fprintf(out, " i%d < %lld%s", step->index, (long long)step->trip,
                step->reverse ? " reverse" : "");
        const Buf *const ends[] = {step->go, step->last, step->made, step->rest};
        static const char *const word[] = {"go", "last", "made", "rest"};
        for (int i = 0; i < 4; i++) {
            if (ends[i] != NULL) {
                fprintf(out, " %s %s", word[i], ends[i]->name);
            }
        }
    }
    for (int i = 0; i < step->access.count; i++) {
        const Access *access = &step->access.at[i];
        fprintf(out, " %s%s%s:%s", access->mode & ACCESS_READ ? "r" : "",
                access->mode & ACCESS_WRITE ? "w" : "", access->mode & ACCESS_PART ? "p" : "",
                access->buf->name);
        for (int k = 0; k < ACCESS_SLICES && access->slice[k] != NULL; k++) {
            fprintf(out, "[i%d]", access->slice[k]->index);
        }
    }
    for (int i = 0; i < step->inplace.count; i++) {
        fprintf(out, " (%s over %s)", step->inplace.at[i].out->name, step->inplace.at[i].in->name);
    }
    if (step->text != NULL) {
        fprintf(out, "  // %s", step->text);
    }
    fputc('\n', out);
}

void program_dump(const Program *p, FILE *out) {
    fprintf(out, "program %s params %lld state %lld io %lld arena %lld total %lld\n", p->prefix,
            (long long)p->params_bytes, (long long)p->state_bytes, (long long)p->io_bytes,
            (long long)p->arena_bytes, (long long)p->total_bytes);
    for (int i = 0; i < p->slot.count; i++) {
        dump_buf(p->slot.at[i], out);
    }
    for (int i = 0; i < p->table.count; i++) {
        dump_buf(p->table.at[i], out);
    }
    for (int i = 0; i < p->entry.count; i++) {
        const ProgramEntry *e = p->entry.at[i];
        fprintf(out, "entry %s arena %lld lower_bound %lld steps %d flops %lld order %s\n",
                e->c_name != NULL ? e->c_name : e->entry->name, (long long)e->arena_bytes,
                (long long)e->lower_bound_bytes, e->nstep, (long long)e->flops,
                e->order_name != NULL ? e->order_name : "-");
        for (int k = 0; k < e->buf.count; k++) {
            dump_buf(e->buf.at[k], out);
        }
        steps_visit(&e->step, dump_step, out);
    }
}
