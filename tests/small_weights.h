/* small_weights: the tensors of a small model, one of each kind that weights files know, and its
 * memory. Included after runtime/load.h. */
#ifndef MDLC_TESTS_SMALL_WEIGHTS_H
#define MDLC_TESTS_SMALL_WEIGHTS_H

static const md_tensor table[] = {
    {"fc.weight", MD_F32, MD_PARAMS, MD_PARAM, 1, 2, {2, 3}, 0, 24, 0, 0, 0, 0, 0},
    {"fc.mask", MD_U8, MD_PARAMS, MD_PARAM, 0, 1, {3}, 64, 3, 0, 0, 0, 0, 250},
    {"fc.bias", MD_F32, MD_PARAMS, MD_PARAM, 1, 1, {2}, 128, 8, 0, 0, 0, 0, 0},
    {"bn.running_mean", MD_F32, MD_STATE, MD_LAYER_STATE, 0, 1, {2}, 0, 8, 0, 0, 0, 0, 0},
    {"bn.seen", MD_BOOL, MD_STATE, MD_LAYER_STATE, 0, 1, {3}, 16, 3, 0, 0, 0, 0, 0},
    {"mdlc.fit.step", MD_I64, MD_STATE, MD_SLOT, 0, 0, {0}, 64, 8, 0, 0, 0, 0, 0},
    {"mdlc.fit.seed", MD_I64, MD_STATE, MD_SLOT, 0, 0, {0}, 112, 8, 0, 0, 0, 0, 0},
};
enum { TENSORS = sizeof table / sizeof *table, PARAMS = 192, STATE = 128 };

typedef struct {
    _Alignas(64) unsigned char params[PARAMS];
    _Alignas(64) unsigned char state[STATE];
    md_memory memory;
} Regions;

/* Every byte becomes `value`, those of bools 1: others come back changed from a file. */
static inline void regions_fill(Regions *r, int value) {
    memset(r->params, value, PARAMS);
    memset(r->state, value, STATE);
    r->memory.params = r->params;
    r->memory.state = r->state;
    for (size_t i = 0; i < TENSORS; i++) {
        if (table[i].dtype == MD_BOOL) {
            memset(md_slice_data(&table[i], 0, &r->memory), 1, table[i].bytes);
        }
    }
}

#endif
