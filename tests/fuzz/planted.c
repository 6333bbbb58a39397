/* A target with faults, one behind each short input that a mutator soon comes to: what the driver
 * must tell apart, save and survive. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Fuzz f;
    fuzz_open(&f, data, size);
    static void *volatile kept;
    if (strstr(f.text, "repeat")) {
        for (volatile uint64_t i = 1; i != 0; i++) {
        }
    } else if (strstr(f.text, "scan")) {
        for (;;) {
            size_t n = (size_t)64 << 20;
            char *more = malloc(n);
            memset(more, 1, n);
        }
    } else if (strstr(f.text, "model")) {
        BUG("planted");
    } else if (strstr(f.text, "layer")) {
        kept = malloc(100);
        kept = NULL;
    } else if (strstr(f.text, "train")) {
        fopen("/dev/null", "r");
    }
    fuzz_close(&f);
    return 0;
}
