/* array_file: .npy arrays through the runtime's reader, the one that emitted programs use.
 * Contract: needs a path; gives shape, element type and the elements as doubles; keeps nothing
 * open. */
#define _GNU_SOURCE
#include "compiler/array_file.h"

#include "runtime/npy.h"

static Elem elem_of(md_dtype dtype) {
    static const Elem table[MD_F64 + 1] = {
        [MD_BOOL] = TY_BOOL, [MD_I8] = TY_I8,     [MD_I16] = TY_I16, [MD_I32] = TY_I32,
        [MD_I64] = TY_I64,   [MD_U8] = TY_U8,     [MD_U16] = TY_U16, [MD_U32] = TY_U32,
        [MD_F16] = TY_F16,   [MD_BF16] = TY_BF16, [MD_F32] = TY_F32, [MD_F64] = TY_F64};
    return table[dtype];
}

bool array_file_read(Arena *arena, const char *path, Type *type, double **data,
                     const char **message) {
    char text[MD_MESSAGE_BYTES];
    md_text error = md_text_make(text, sizeof text);
    md_array array;
    int rc = md_npy_open(&array, path, &error);
    if (rc == MD_EXIT_OK && elem_of(array.dtype) == TY_ERROR) {
        rc = md_fail(&error, MD_EXIT_DATA, "%s: u64 elements are not supported", path);
    }
    if (rc != MD_EXIT_OK) {
        *message = str_dup(arena, text);
        return false;
    }
    *type = type_make(elem_of(array.dtype), array.rank, array.shape);
    int64_t n = type_count(*type);
    *data = ARENA_ARRAY(arena, double, n);
    for (int64_t i = 0; i < n; i++) {
        const unsigned char *at = array.data + (size_t)i * md_dtype_bytes(array.dtype);
        md_number number = md_get_number(at, array.dtype, array.swap);
        (*data)[i] = number.f;
    }
    md_array_close(&array);
    return true;
}
