/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int net_double_refused(const net_double *m) {
    return m != NULL && !m->bound ? NET_DOUBLE_ERR_STATE : NET_DOUBLE_ERR_ARGUMENT;
}

/* double.mdl:4  entry main(x: [N]) { return exp(x) + sum(x); }  [6] */
static void net_double_main_out(double *MD_RESTRICT out, const double *MD_RESTRICT x, int64_t n) {
    const double t = x[0] + x[1] + x[2] + x[3] + x[4] + x[5];
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        out[i] = exp(x[i]) + t;
    }
}

/* net_double_main_entry: 1 steps, 0 bytes of arena, 17 FLOPs, line 4 */
int net_double_main_entry(net_double *m, const net_double_main_entry_in *in, net_double_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return net_double_refused(m);
    }
    /* inputs */
    const double *x = in->x; /* [6] */
    /* results */
    double *out_ = MD_AT(double, m->io, 0); /* [6] */

    /* line 4: entry main(x: [N]) { return exp(x) + sum(x); } */
    net_double_main_out(out_, x, 6); /* 0 */
    out->out = out_;
    return NET_DOUBLE_OK;
}

