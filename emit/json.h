/* json: pieces of JSON text. */
#ifndef MDLC_EMIT_JSON_H
#define MDLC_EMIT_JSON_H

#include "compiler/base.h"
#include "compiler/type.h"

void json_string(Text *out, const char *s);                    /* with quotes */
void json_text(Text *out, const char *key, const char *value); /* ,"key":"value"; NULL: null */
void json_number(Text *out, const char *key, int64_t value);   /* ,"key":7 */
void json_shape(Text *out, Type type);                         /* ,"shape":[2,3],"dtype":"f32" */

#endif
