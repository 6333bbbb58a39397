/* test_tile_plain: test_tile.c on the plain loops that compilers without vector extensions take. */
#define MD_VBYTES 0
#include "tests/runtime/test_tile.c"
