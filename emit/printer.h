/* printer: how a kernel and its call are written in the target language.
 *
 * In an entry function every Buf that a step touches is a local pointer of the Buf's name and
 * element type (to const where nothing writes it), and the index of a loop is an int64_t
 * i<number>. `m` is the instance, or what a section (locals.h) has of it. */
#ifndef MDLC_EMIT_PRINTER_H
#define MDLC_EMIT_PRINTER_H

#include "compiler/names.h"
#include "emit/write.h"

/* Texts of products that stand in the file already, and the kernels that they are called by. */
typedef struct {
    NameList text; /* of each, as that of a kernel without a name */
    VEC(const char *) owner;
} SharedTexts;

/* Kernels behind them use these. */
typedef struct {
    Arena *arena;
    SharedTexts plan, epilogue;
    SharedTexts block; /* by its number */
    SharedTexts form;  /* of a plan, by the kernel that it is called by */
    struct Numbers *numbers; /* of kernels in other files than their tables; NULL: none has any */
} Products;

/* The part of an entry function that the host cannot do by itself in memory of a device. */
typedef struct {
    /* Behind the pointers: what is given is brought there; `used` by Buf.id. */
    void (*open)(Text *out, const Emit *e, const ProgramEntry *entry, const bool *used);
    /* A step that is neither a call nor a loop, in whole lines. */
    void (*step)(Text *out, const Emit *e, const Step *step, const char *indent);
    /* Waits for the steps, fetches the results and hands them out. */
    void (*close)(Text *out, const Emit *e, const ProgramEntry *entry);
    /* In NAME_bind, behind the whole model: the code of its kernels is brought there. */
    void (*load)(Text *out, const Emit *e);
} DevicePrinter;

typedef struct {
    /* The whole static function Step.name, with its comment. */
    void (*kernel)(Text *out, Products *known, const Step *step);
    /* One statement without indentation and line end. */
    void (*call)(Text *out, const Emit *e, const Step *step);
    const DevicePrinter *device; /* NULL: the host computes, in memory of its own */
} Printer;

extern const Printer printer_c;    /* emit/target_c.c */
extern const Printer printer_cuda; /* emit/cuda.c */

#endif
