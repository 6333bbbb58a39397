/* fuzz: what the targets that read a model text share. A target is one file fuzz_NAME.c with the
 * function that libFuzzer calls; driver.c calls it the same way. Targets of other inputs need
 * nothing from here but this function. */
#ifndef MDLC_TESTS_FUZZ_H
#define MDLC_TESTS_FUZZ_H

#include "compiler/compile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
    Compile c;
    const char *text; /* the input, ended by a NUL, in c.arena */
    size_t length;
    char *messages, *printed; /* after fuzz_ended */
    size_t nmessage, nprinted;
    int files; /* open before */
} Fuzz;

/* Begins a compile of its own of an input, with the options of a plain `mdlc FILE`. `f` stays where
 * it is: its parts point into it. */
void fuzz_open(Fuzz *f, const uint8_t *data, size_t size);
/* Ends the streams: f->messages and f->printed hold all. */
void fuzz_ended(Fuzz *f);
/* Checks that messages and their count agree, gives all memory back and checks that no file stays
 * open. */
void fuzz_close(Fuzz *f);
/* The whole compiler: all passes, plan, check, emitted text. Of the good programs a quarter must
 * give the same text twice, and another quarter goes through with other options; which ones follows
 * from the bytes of the input. */
void fuzz_whole(const uint8_t *data, size_t size);
/* The input shows a fault: prints the text and aborts. */
void fuzz_finding(const char *fmt, ...) MDLC_PRINTF(1, 2) MDLC_NORETURN;

#endif
