/* flags: see the header. What is printed stands in compiler/flags.c. */
#include "compiler/driver/flags.h"

#include "compiler/flags.h"

static int flags_error(Compile *c, const char *message) {
    fprintf(c->diag.out, "mdlc: %s\n", message);
    fprintf(c->diag.out, "try 'mdlc --help'\n");
    return EXIT_USAGE;
}

int flags_print(Compile *c) {
    const Options *opt = &c->opt;
    const Machine *machine = opt->machine ? opt->machine : &machines[0];
    CcFamily family = CC_GNU;
    Text out = {.arena = &c->arena};
    if (opt->compiler && !flags_family(opt->compiler, &family)) {
        return flags_error(c, str_printf(&c->arena,
                                         "--cc knows no C compiler '%s'; it knows %s, also with a "
                                         "folder, a target and a version around the name",
                                         opt->compiler, flags_compiler_names));
    }
    if (!flags_fit(family, machine)) {
        return flags_error(c, str_printf(&c->arena,
                                         "'--for=%s' means nothing to '%s': native and generic do",
                                         machine->name, opt->compiler));
    }
    if (family == CC_NVCC && opt->openblas) {
        return flags_error(c, "'--blas' does not go with '--cc=nvcc': leave one of them out");
    }
    if (opt->libraries) {
        flags_libraries(&out, opt->openblas);
    } else {
        flags_compile(&out, family, machine);
    }
    fprintf(c->out, "%s\n", out.at);
    return EXIT_OK;
}
