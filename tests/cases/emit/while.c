/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int net_while_refused(const net_while *m) {
    return m != NULL && !m->bound ? NET_WHILE_ERR_STATE : NET_WHILE_ERR_ARGUMENT;
}

/* while.mdl:4  while sum(h * h) > 0.1 max MOST carry h = x { h <- tanh(0.5 * h + 0.1 * x); }  []; called at 4 places */
static void net_while_lt(uint8_t *MD_RESTRICT lt, const float *MD_RESTRICT x) {
    const float x_value = x[0];
    const float x_value_2 = x[1];
    const float x_value_3 = x[2];
    const float x_value_4 = x[3];
    const float x_value_5 = x[4];
    const float x_value_6 = x[5];
    const float x_value_7 = x[6];
    const float x_value_8 = x[7];
    lt[0] = (uint8_t)(0.1f < (x_value * x_value + x_value_2 * x_value_2 + x_value_3 * x_value_3 + x_value_4 * x_value_4 + x_value_5 * x_value_5 + x_value_6 * x_value_6 + x_value_7 * x_value_7 + x_value_8 * x_value_8));
}

/* while.mdl:4  while sum(h * h) > 0.1 max MOST carry h = x { h <- tanh(0.5 * h + 0.1 * x); }  [8] */
static void net_while_mul(float *mul, const float *x, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        mul[i] = 0.1f * x[i];
    }
}

/* while.mdl:3  entry main(x: [N]) {  [8]; called at 2 places */
static void net_while_x(float *h, const float *x, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        h[i] = x[i];
    }
}

/* while.mdl:4  while sum(h * h) > 0.1 max MOST carry h = x { h <- tanh(0.5 * h + 0.1 * x); }  [8] */
static void net_while_x_2(float *x, float *h_next, const float *h, const float *mul, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        const float x_2 = h[i];
        const float t = md_tanhf(md_madf(0.5f, x_2, mul[i]));
        x[i] = x_2;
        h_next[i] = t;
    }
}

/* while.mdl:5  return h = h, d = grad(sum(h), x)  [8] */
static void net_while_fill_mul(float *MD_RESTRICT mul, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        mul[i] = 1.0f;
    }
}

/* while.mdl:4  while sum(h * h) > 0.1 max MOST carry h = x { h <- tanh(0.5 * h + 0.1 * x); }  [8] */
static void net_while_fill_add(float *MD_RESTRICT add, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        add[i] = 0.0f;
    }
}

/* while.mdl:4  while sum(h * h) > 0.1 max MOST carry h = x { h <- tanh(0.5 * h + 0.1 * x); }  [8] */
static void net_while_add_back(float *mul_next, float *add_next, const float *mul, const float *x,
        const float *mul_2, const float *add, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        const float t = md_tanhf(md_madf(0.5f, x[i], mul_2[i]));
        const float t_2 = mul[i] * md_madf(-t, t, 1.0f);
        const float t_3 = t_2 * 0.5f;
        const float t_4 = add[i] + t_2 * 0.1f;
        mul_next[i] = t_3;
        add_next[i] = t_4;
    }
}

/* while.mdl:4  while sum(h * h) > 0.1 max MOST carry h = x { h <- tanh(0.5 * h + 0.1 * x); }  [8] */
static void net_while_main_d(float *d, const float *mul, const float *add, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        d[i] = mul[i] + add[i];
    }
}

/* net_while_main_entry: 12 steps, 896 bytes of arena, 2251 FLOPs, line 3 */
int net_while_main_entry(net_while *m, const net_while_main_entry_in *in, net_while_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return net_while_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [8] */
    /* results */
    const float *h = MD_AT(const float, m->io, 0); /* [8] */
    float *d = MD_AT(float, m->io, 64); /* [8] */
    /* arena */
    uint8_t *lt = MD_AT(uint8_t, m->arena, 768); /* bool to 769, steps 0..6 */
    float *mul = MD_AT(float, m->arena, 768); /* [8] to 800, steps 7..11 */
    float *add = MD_AT(float, m->arena, 832); /* [8] to 864, steps 8..11 */
    float *mul_2 = MD_AT(float, m->arena, 640); /* [8] to 672, steps 1..10 */
    float *h_2 = MD_AT(float, m->io, 0); /* [8] result h */
    int32_t *param = MD_AT(int32_t, m->arena, 704); /* i32 to 708, steps 3..10 */
    float *x_2 = MD_AT(float, m->arena, 0); /* [20, 8] to 640, steps 3..10 */
    uint8_t *lt_next = MD_AT(uint8_t, m->arena, 768); /* bool to 769, steps 5..5, in place of lt */
    float *h_2_next = MD_AT(float, m->io, 0); /* [8] result h */
    float *mul_next = MD_AT(float, m->arena, 768); /* [8] to 800, steps 10..10, in place of mul */
    float *add_next = MD_AT(float, m->arena, 832); /* [8] to 864, steps 10..10, in place of add */

    /* line 4: while sum(h * h) > 0.1 max MOST carry h = x { h <- tanh(0.5 * h + 0.1 * x); } */
    net_while_lt(lt, x); /* 0 */
    net_while_mul(mul_2, x, 8); /* 1 */
    /* line 3: entry main(x: [N]) { */
    net_while_x(h_2, x, 8); /* 2 */
    /* line 4 */
    int64_t i0 = 0;
    for (; i0 < 20 && *lt; i0++) {
        net_while_x_2(x_2 + i0 * 8, h_2_next, h_2, mul_2, 8); /* 4 */
        net_while_lt(lt_next, h_2_next); /* 5 */
    }
    *param = (int32_t)(i0 - 1);
    if (*lt) {
        m->limit = 1; /* line 4 */
        return NET_WHILE_ERR_LIMIT; /* nothing is updated */
    }
    /* line 5: return h = h, d = grad(sum(h), x) */
    net_while_fill_mul(mul, 8); /* 7 */
    /* line 4 */
    net_while_fill_add(add, 8); /* 8 */
    for (int64_t i1 = (*param < 19 ? *param : 19); i1 >= 0; i1--) {
        net_while_add_back(mul_next, add_next, mul, x_2 + i1 * 8, mul_2, add, 8); /* 10 */
    }
    /* line 4 */
    net_while_main_d(d, mul, add, 8); /* 11 */
    out->h = h;
    out->d = d;
    return NET_WHILE_OK;
}

/* while.mdl:8  while sum(h * h) > 0.1 max MOST carry h = x {  [8] */
static void net_while_stack_out_2(float *out, float *mul_next, const float *mul, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        const float x = mul[i];
        const float t = x * 0.5f;
        out[i] = x;
        mul_next[i] = t;
    }
}

/* net_while_stack: 7 steps, 192 bytes of arena, 475 FLOPs, line 7 */
int net_while_stack(net_while *m, const net_while_stack_in *in, net_while_stack_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return net_while_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [8] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [20, 8] */
    /* arena */
    uint8_t *lt = MD_AT(uint8_t, m->arena, 0); /* bool to 1, steps 0..5 */
    float *mul = MD_AT(float, m->arena, 128); /* [8] to 160, steps 1..4 */
    uint8_t *lt_next = MD_AT(uint8_t, m->arena, 0); /* bool to 1, steps 4..4, in place of lt */
    float *mul_next = MD_AT(float, m->arena, 128); /* [8] to 160, steps 3..4, in place of mul */
    int32_t *last = MD_AT(int32_t, m->arena, 64); /* i32 to 68, steps 2..6 */

    /* line 8: while sum(h * h) > 0.1 max MOST carry h = x { */
    net_while_lt(lt, x); /* 0 */
    /* line 7: entry stack(x: [N]) { */
    net_while_x(mul, x, 8); /* 1 */
    /* line 8 */
    int64_t i2 = 0;
    for (; i2 < 20 && *lt; i2++) {
        net_while_stack_out_2(out_ + i2 * 8, mul_next, mul, 8); /* 3 */
        net_while_lt(lt_next, mul_next); /* 4 */
    }
    *last = (int32_t)(i2 - 1);
    if (*lt) {
        m->limit = 2; /* line 8 */
        return NET_WHILE_ERR_LIMIT; /* nothing is updated */
    }
    if (*last < 19) { /* the rest of out_ is 0 */
        int64_t md_from = *last < 0 ? 0 : *last + 1;
        memset(out_ + md_from * 8, 0, (size_t)(20 - md_from) * 32);
    }
    out->out = out_;
    return NET_WHILE_OK;
}

