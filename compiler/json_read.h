/* json_read: JSON texts (RFC 8259) as trees. */
#ifndef MDLC_COMPILER_JSON_READ_H
#define MDLC_COMPILER_JSON_READ_H

#include "compiler/base.h"

typedef enum {
    JSON_NULL,
    JSON_BOOL,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
} JsonKind;

enum { JSON_DEEPEST = 64 }; /* levels of arrays and objects */

typedef struct Json Json;
struct Json {
    JsonKind kind;
    bool whole;         /* NUMBER: it has no fraction and fits `value` */
    int64_t value;      /* NUMBER that is whole; BOOL: 0 or 1 */
    const char *string; /* STRING: its bytes in UTF-8; NUMBER: as written */
    const char *key;    /* of a member of an OBJECT */
    int count;          /* of elements or members, */
    const Json *first;  /* which follow each other by `next` */
    const Json *next;
};

/* NULL: it is no JSON text; *fault then says why, and *at the byte. Everything lies in `arena`. */
const Json *json_read(Arena *arena, const char *text, size_t length, const char **fault,
                      size_t *at);
/* The last member of that name; NULL: there is none, or `object` is no object or NULL. */
const Json *json_member(const Json *object, const char *key);
/* That of a member that is a whole number, or a string; false and NULL: there is none. */
bool json_whole(const Json *object, const char *key, int64_t *value);
const char *json_text_of(const Json *object, const char *key);

#endif
