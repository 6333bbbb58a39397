/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int extremes_refused(const extremes *m) {
    return m != NULL && !m->bound ? EXTREMES_ERR_STATE : EXTREMES_ERR_ARGUMENT;
}

/* extremes.mdl:3  least[i] = min[j] x[i, j]  [40] */
static void extremes_go_least(int32_t *MD_RESTRICT least, const int32_t *MD_RESTRICT x) {
    for (int64_t r = 0; r < 40; r++) {
        int32_t least_2 = 2147483647;
        for (int64_t j = 0; j < 300; j++) {
            least_2 = (int32_t)md_min_i32(x[r * 300 + j], least_2);
        }
        least[r] = least_2;
    }
}

/* extremes.mdl:4  most[j] = max(y[j], u8(7))  [300] */
static void extremes_go_most(uint8_t *most, const uint8_t *y, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        most[i] = (uint8_t)md_max_i32(y[i], 7);
    }
}

/* extremes.mdl:5  wide[j] = min(z[j], u32(9))  [300] */
static void extremes_go_wide(uint32_t *wide, const uint32_t *z, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        wide[i] = (uint32_t)md_min_i64(z[i], 9u);
    }
}

/* extremes_go: 3 steps, 0 bytes of arena, 12000 FLOPs, line 2 */
int extremes_go(extremes *m, const extremes_go_in *in, extremes_go_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL || in->y == NULL ||
            in->z == NULL) {
        return extremes_refused(m);
    }
    /* inputs */
    const int32_t *x = in->x; /* [40, 300] */
    const uint8_t *y = in->y; /* [300] */
    const uint32_t *z = in->z; /* [300] */
    /* results */
    int32_t *least = MD_AT(int32_t, m->io, 0); /* [40] */
    uint8_t *most = MD_AT(uint8_t, m->io, 192); /* [300] */
    uint32_t *wide = MD_AT(uint32_t, m->io, 512); /* [300] */

    /* line 3: least[i] = min[j] x[i, j] */
    extremes_go_least(least, x); /* 0 */
    /* line 4: most[j] = max(y[j], u8(7)) */
    extremes_go_most(most, y, 300); /* 1 */
    /* line 5: wide[j] = min(z[j], u32(9)) */
    extremes_go_wide(wide, z, 300); /* 2 */
    out->least = least;
    out->most = most;
    out->wide = wide;
    return EXTREMES_OK;
}

