/* json: see the header. */
#include "emit/json.h"

void json_string(Text *out, const char *s) {
    text_add(out, "\"");
    for (; *s != 0; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') {
            text_printf(out, "\\%c", c);
        } else if (c < 32) {
            text_printf(out, "\\u%04x", c);
        } else {
            text_addn(out, s, 1);
        }
    }
    text_add(out, "\"");
}

void json_text(Text *out, const char *key, const char *value) {
    text_printf(out, ",\"%s\":", key);
    if (value != NULL) {
        json_string(out, value);
    } else {
        text_add(out, "null");
    }
}

void json_number(Text *out, const char *key, int64_t value) {
    text_printf(out, ",\"%s\":%lld", key, (long long)value);
}

void json_shape(Text *out, Type type) {
    text_add(out, ",\"shape\":[");
    for (int i = 0; i < type.rank; i++) {
        text_printf(out, "%s%lld", i > 0 ? "," : "", (long long)type.dim[i]);
    }
    text_printf(out, "],\"dtype\":\"%s\"", elem_name(type.elem));
}
