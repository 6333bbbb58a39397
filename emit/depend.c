/* depend: the files that a compile reads, and a rule of make for what it writes. Needs a checked
 * module; the same input gives the same text. */
#include "emit/module.h"

static void print_path(Text *out, const char *path) {
    for (; *path != 0; path++) {
        if (*path == '$') {
            text_add(out, "$");
        } else if (*path == ' ' || *path == '#' || *path == '\\') {
            text_add(out, "\\");
        }
        text_addn(out, path, 1);
    }
}

/* The texts that the compile reads; modules of the library are part of the compiler. */
static Paths sources_read(Compile *c) {
    Paths paths = {NULL, 0, 0};
    for (int i = 0; i < c->diag.sources.count; i++) {
        const char *name = c->diag.sources.at[i].name;
        if (name[0] != '<') {
            VEC_PUSH(&c->arena, &paths, name);
        }
    }
    return paths;
}

Paths emit_inputs(Compile *c, const Module *module) {
    Paths paths = sources_read(c);
    for (int i = 0; module != NULL && i < module->dataset.count; i++) {
        const DataSet *set = &module->dataset.at[i];
        for (int k = 0; k < set->file.count; k++) {
            for (int part = 0; part < PARTS; part++) {
                if (set->file.at[k].path[part] != NULL) {
                    VEC_PUSH(&c->arena, &paths, set->file.at[k].path[part]);
                }
            }
        }
    }
    return paths;
}

/* Data files are none of them: the program reads those, wherever it is then. With a rule of its own
 * a module that is gone makes the model be compiled again; CMake before 3.23 refuses such rules. */
void emit_depend(Text *out, Compile *c, const Program *p) {
    Paths inputs = sources_read(c);
    print_path(out,
               c->opt.output != NULL ? c->opt.output : str_printf(p->arena, "%s.c", p->prefix));
    text_add(out, ":");
    for (int i = 0; i < inputs.count; i++) {
        text_add(out, " \\\n  ");
        print_path(out, inputs.at[i]);
    }
    text_add(out, "\n");
    for (int i = 1; c->opt.depend_rules && i < inputs.count; i++) {
        print_path(out, inputs.at[i]);
        text_add(out, ":\n");
    }
}
