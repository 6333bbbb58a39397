/* array_file: .npy arrays through the runtime's reader and by its conversions, those of emitted
 * programs.
 * Contract: needs a path and the element type that is wanted; gives shape and elements; keeps
 * nothing open. */
#define _GNU_SOURCE
#include "compiler/array_file.h"

#include "runtime/npy.h"

static md_dtype dtype_of(Elem elem) {
    static const md_dtype table[TY_COUNT] = {
        [TY_BOOL] = MD_BOOL, [TY_I8] = MD_I8,     [TY_I16] = MD_I16, [TY_I32] = MD_I32,
        [TY_I64] = MD_I64,   [TY_U8] = MD_U8,     [TY_U16] = MD_U16, [TY_U32] = MD_U32,
        [TY_F16] = MD_F16,   [TY_BF16] = MD_BF16, [TY_F32] = MD_F32, [TY_F64] = MD_F64};
    return table[elem];
}

bool array_file_read(Arena *arena, const char *path, Elem elem, Type *type, Num **data,
                     const char **message) {
    char text[MD_MESSAGE_BYTES], shown[MD_NUMBER_TEXT];
    unsigned char stored[sizeof(Num)];
    md_text error = md_text_make(text, sizeof text);
    md_array array;
    int rc = md_npy_open(&array, path, UINT64_MAX, &error);
    if (rc != MD_EXIT_OK) {
        *message = str_dup(arena, text);
        return false;
    }
    *type = type_make(elem, array.rank, array.shape);
    int64_t n = type_count(*type);
    md_dtype dtype = dtype_of(elem);
    *data = ARENA_ARRAY(arena, Num, n);
    for (int64_t i = 0; i < n && rc == MD_EXIT_OK; i++) {
        const unsigned char *at = array.data + (size_t)i * md_dtype_bytes(array.dtype);
        md_number number = md_get_number(at, array.dtype, array.swap);
        if (!md_put_number(stored, dtype, number)) {
            rc = md_fail(&error, MD_EXIT_DATA, "%s: element %lld is %s, which %s cannot hold", path,
                         (long long)i, md_number_text(shown, number), elem_name(elem));
        } else if (elem_is_float(elem)) {
            (*data)[i].f = number.f;
        } else {
            (*data)[i].i = md_get_number(stored, dtype, 0).i;
        }
    }
    md_array_close(&array);
    *message = rc == MD_EXIT_OK ? NULL : str_dup(arena, text);
    return rc == MD_EXIT_OK;
}
