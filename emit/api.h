/* api: the declarations of an emitted file, in the file itself and as a header of their own. */
#ifndef MDLC_EMIT_API_H
#define MDLC_EMIT_API_H

#include "emit/write.h"

/* Size macros, status codes, structs, prototypes. Needs runtime/tensor.h printed before. */
void api_print(const Emit *e, Text *out);
/* The same of weights files and the table of tensors. */
void api_print_files(const Emit *e, Text *out);
/* The table and how many it has, as two arguments. */
const char *api_tensors(const Emit *e);
/* The parameters of an entry's function: "net *m, const net_fit_in *in, net_fit_out *out". */
void api_parameters(const Emit *e, const ProgramEntry *entry, Text *out);
/* The heads of the functions that end an evaluation. */
/* The field of a sum over batches: n, or n[10] of what has axes. */
const char *api_sum(const Emit *e, const char *name, Type type);
void api_eval_add(const Emit *e, const ProgramEntry *eval, Text *out);
void api_eval_end(const Emit *e, const ProgramEntry *end, Text *out);
/* Does anybody but the main call the functions of the interface? A program with a main has those
 * alone that its main calls, unless it has a header too. */
bool api_is_called(const Emit *e);
bool api_gives(const Emit *e, int code); /* some function of the file that status */
bool api_has_inputs(const ProgramEntry *entry);
bool api_has_results(const ProgramEntry *entry);
/* Some kernel runs on several threads; the instance has what they saw of it, `pace`. */
bool api_has_limits(const Program *p); /* a loop may meet its maximum */
/* Which of all loops of the program that may: from 1, in the order of ProgramEntry.limit. */
int api_limit_number(const Program *p, const Buf *limit);
bool api_has_team(const Program *p);
/* How many entries have calls that are timed on several threads and on one (team.h): all that have
 * such loops, where one of them has CALLS_TIMED_TEAMS: it may wait long for cores that are far from
 * each other. */
enum { CALLS_TIMED_TEAMS = 6 };
int api_timed_calls(const Emit *e);
int api_timed_call(const Emit *e, const ProgramEntry *entry); /* which; -1: none of them */
int64_t api_host_bytes(const Program *p); /* what the host mirrors of a device's io */
/* The type that *_out of an entry has; of an evaluation that of its sums. */
const char *api_in_type(const Emit *e, const ProgramEntry *entry);
const char *api_out_type(const Emit *e, const ProgramEntry *entry);
/* A field of *_in or *_out: "const float *x". */
const char *api_field(const Emit *e, const char *name, Type type);
/* "net_fit_set_lr(net *m, float value)" */
const char *api_setter(const Emit *e, const ProgramEntry *entry, const Slot *slot);
/* How functions of the API begin: a model without memory is refused, then what cannot be; which of
 * them it was is said by a function that stands in front of them. */
void api_refusal(const Emit *e, Text *out);
void api_refusals(const Emit *e, const char *cannot_be, Text *out);
/* A hyper-parameter or counter that may be set from outside between calls. */
bool api_settable(const Slot *slot, const Entry *entry);

typedef struct {
    const char *name; /* behind the prefix: ERR_SIZE */
    int code;         /* of runtime/md.h */
    const char *text;
} ApiStatus;
const ApiStatus *api_status(const Emit *e, int *count);

#endif
