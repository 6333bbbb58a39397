/* The whole compiler on texts that are damaged token by token, so that most reach behind the
 * parser. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_whole(data, size);
    return 0;
}
