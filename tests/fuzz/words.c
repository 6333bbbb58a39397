/* words: prints the dictionary in the form that libFuzzer reads with -dict=FILE. */
#include "dictionary.h"

#include <stdio.h>

int main(void) {
    Arena arena = {0};
    Words words = dictionary_make(&arena);
    for (int i = 0; i < words.count; i++) {
        putchar('"');
        for (size_t k = 0; k < words.at[i].len; k++) {
            unsigned char c = (unsigned char)words.at[i].at[k];
            if (c < 0x20 || c > 0x7e || c == '"' || c == '\\') {
                printf("\\x%02X", c);
            } else {
                putchar(c);
            }
        }
        puts("\"");
    }
    arena_free(&arena);
    return 0;
}
