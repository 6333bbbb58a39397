/* graph_text: the words of a module in text form. dump.c prints them and the front end reads them
 * again, so each is written here once. */
#ifndef MDLC_COMPILER_GRAPH_TEXT_H
#define MDLC_COMPILER_GRAPH_TEXT_H

#include "compiler/graph.h"

typedef enum {
    ATTR_INT,    /* int */
    ATTR_INT64,  /* int64_t */
    ATTR_SITE,   /* uint64_t */
    ATTR_BOOL,   /* bool */
    ATTR_NUMBER, /* double */
    ATTR_BORDER, /* Border, a word */
    ATTR_DIST,   /* Dist, a word */
    ATTR_AXES,   /* mask, a list of axes */
    ATTR_LIST,   /* int64_t for each axis of `of` */
    ATTR_MAP,    /* int for each axis of `of` */
    ATTR_LABELS  /* int8_t for each axis of `of`, letters from 'a' */
} AttrKind;

enum { OF_RESULT = -1, OF_FIRST = 0, OF_SECOND = 1 };

/* One attribute of one op. What CONST, TABLE, SLOT and BODY_PARAM hold, and the sizes of a LOOP
 * that follow from its operands and results, are no rows: their texts are forms of their own. */
typedef struct {
    OpCode op;
    const char *name;
    AttrKind kind;
    size_t at; /* offset in Attr */
    int of;    /* whose axes a list has: an operand or the result */
} AttrField;
extern const AttrField attr_fields[];
extern const int nattr_fields;

/* Element k of any kind but NUMBER; a bit of the mask for AXES. */
int64_t attr_get(const AttrField *f, const Attr *attr, int k);
void attr_set(const AttrField *f, Attr *attr, int k, int64_t value);
double attr_number(const AttrField *f, const Attr *attr);
void attr_set_number(const AttrField *f, Attr *attr, double value);

/* Words by value of the enum; the lists end with NULL. */
extern const char *const border_words[],
    *const dist_words[], *const role_words[], *const entry_words[], *const out_words[],
                                                                        *const source_words[];

/* The integers of a data field. */
typedef struct {
    const char *name;
    size_t at; /* offset of an int64_t in DataField */
} DataNumber;
extern const DataNumber data_numbers[];
extern const int ndata_numbers;

#endif
