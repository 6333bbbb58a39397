/* printer: how a kernel and its call are written in the target language.
 *
 * In an entry function every Buf that a step touches is a local pointer of the Buf's name and
 * element type (to const where nothing writes it), and the index of a loop is an int64_t
 * i<number>. */
#ifndef MDLC_EMIT_PRINTER_H
#define MDLC_EMIT_PRINTER_H

#include "compiler/program.h"

typedef struct {
    /* The whole static function Step.name, with its comment. */
    void (*kernel)(Text *out, const Program *p, const Step *step);
    /* One statement without indentation and line end. */
    void (*call)(Text *out, const Program *p, const Step *step);
} Printer;

extern const Printer printer_c; /* emit/target_c.c */

#endif
