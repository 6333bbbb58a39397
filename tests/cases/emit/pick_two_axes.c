/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int pick_two_axes_refused(const pick_two_axes *m) {
    return m != NULL && !m->bound ? PICK_TWO_AXES_ERR_STATE : PICK_TWO_AXES_ERR_ARGUMENT;
}

/* pick_two_axes.mdl:5  z[j < 4] = min[k < 2] x[k + j, row[j]] else 0.25  [4] */
static void pick_two_axes_main_y_z(float *MD_RESTRICT y, float *MD_RESTRICT z,
        const float *MD_RESTRICT x) {
    MD_IVDEP
    for (int64_t i = 0; i < 4; i++) {
        const int32_t row = (int32_t)md_irem((int32_t)((uint32_t)(int32_t)((uint32_t)2 * (uint32_t)(int32_t)i) + (uint32_t)1), 3);
        const float y_2 = (i < 3) ? x[i + (int64_t)row * 3] : -0.5f;
        const float z_2 = md_minf((i + 1 < 4) ? x[i * 3 + (int64_t)row + 3] : 0.25f, x[i * 3 + (int64_t)row]);
        y[i] = y_2;
        z[i] = z_2;
    }
}

/* pick_two_axes_main_entry: 1 steps, 0 bytes of arena, 4 FLOPs, line 2 */
int pick_two_axes_main_entry(pick_two_axes *m, const pick_two_axes_main_entry_in *in, pick_two_axes_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return pick_two_axes_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [4, 3] */
    /* results */
    float *y = MD_AT(float, m->io, 0); /* [4] */
    float *z = MD_AT(float, m->io, 64); /* [4] */

    /* line 5: z[j < 4] = min[k < 2] x[k + j, row[j]] else 0.25 */
    pick_two_axes_main_y_z(y, z, x); /* 0 */
    out->y = y;
    out->z = z;
    return PICK_TWO_AXES_OK;
}

