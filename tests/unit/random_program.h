/* random_program: random Programs with a meaning that can be computed, for tests of the planner and
 * of its checker. Every kernel hashes its operands; a Buf is a row of 64-bit words. */
#ifndef MDLC_TESTS_RANDOM_PROGRAM_H
#define MDLC_TESTS_RANDOM_PROGRAM_H

#include "compiler/program.h"

uint64_t random_next(uint64_t *state);
Program *random_program(Arena *arena, uint64_t seed, int size);
/* Runs the first entry with a storage of its own for each Buf and in the order of the lists, moving
 * values to their destinations at the end of each list. Gives a hash of all results, parameters and
 * states. */
uint64_t program_run_private(Arena *arena, const Program *p);
/* Runs it in the planned regions. */
uint64_t program_run_planned(Arena *arena, const Program *p);

#endif
