/* test_tile_wide: test_tile.c with the register tiles of 64-byte vectors, whatever the machine; the
 * compiler splits the vectors where it must, which is slow but right. Products of bfloat16 take
 * pairs, by the instruction where there is one. */
#define MD_VBYTES 64
#define MD_TILE_PAIRS 1
#define TEST_F32_ONLY
#include "tests/runtime/test_tile.c"
