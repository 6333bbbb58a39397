/* narrow: contractions with few results for each long column become column sums.
 *
 * sum over k of a[k, j] * b[k, n], with few n and a long j that lies together in memory, costs
 * little more than reading a. As a product it is a kernel of its own, for which a is stored; as
 * sums of a * b[:, n] over k, one for each n, it is made together with other sums of a's columns,
 * while a itself is made: the gradients of a bias, of the weights in front of it and of those
 * behind read the activations once. Their terms are OP_TERM: rounded as those of a product are.
 * Needs a region at STAGE_OPTIMISED; gives sums along [n] + j, seen through a permute. */
#include "passes/narrow.h"

#include "passes/simplify_rule.h"

enum {
    MOST_RESULTS = TUNED(4, 3),     /* of a column */
    LEAST_COLUMNS = TUNED(1024, 6), /* so that they are made in pieces, in cache */
    MOST_TERMS = TUNED(4096, 64)    /* of a sum, added one to another */
};

/* A contraction by the role of its operands: `a` has the summed axes first, then the columns. */
typedef struct {
    Node *a, *b;
    const int8_t *la, *lb;
    int nsum, nfew;    /* summed axes of a; axes of b that are not summed */
    int few[MD_RANK];  /* these axes */
    int64_t few_count; /* of results for each column */
} Narrow;

static bool roles(const Node *n, Node *const *in, int first, Narrow *c) {
    const Attr *attr = n->attr;
    *c = (Narrow){.a = in[first], .b = in[!first], .few_count = 1};
    c->la = first == 0 ? attr->la : attr->lb;
    c->lb = first == 0 ? attr->lb : attr->la;
    int64_t terms = 1, columns = 1;
    bool column = false;
    for (int i = 0; i < c->a->type->rank; i++) {
        bool summed = find_label(attr->lo_, n->type->rank, c->la[i]) < 0;
        bool shared = find_label(c->lb, c->b->type->rank, c->la[i]) >= 0;
        if (summed != shared || (summed && column)) { /* a batch, or a sum along the columns */
            return false;
        }
        c->nsum += summed;
        terms *= summed ? c->a->type->dim[i] : 1;
        columns *= summed ? 1 : c->a->type->dim[i];
        column = column || !summed;
    }
    for (int i = 0; i < c->b->type->rank; i++) {
        if (find_label(c->la, c->a->type->rank, c->lb[i]) < 0) {
            c->few[c->nfew++] = i;
            c->few_count *= c->b->type->dim[i];
        }
    }
    return terms <= MOST_TERMS && columns >= LEAST_COLUMNS && c->few_count <= MOST_RESULTS &&
           c->few_count > 0 && c->nfew + c->a->type->rank <= MD_RANK;
}

/* b at one place of its few axes, along the axes of a. */
static Node *factor(Graph *g, const Narrow *c, int64_t at) {
    Node *b = c->b;
    int8_t label[MD_RANK];
    int rank = 0;
    for (int i = c->nfew - 1; i >= 0; i--) { /* from behind, so that the axes keep their numbers */
        int64_t extent = c->b->type->dim[c->few[i]];
        b = node_index_axis(g, b, c->few[i], at % extent);
        at /= extent;
    }
    for (int i = 0; i < c->b->type->rank; i++) {
        if (find_label(c->la, c->a->type->rank, c->lb[i]) >= 0) {
            label[rank++] = c->lb[i];
        }
    }
    return spread(g, b, label, c->la, *c->a->type);
}

/* The sums along [few] + columns, with the axes in the order of the result. */
static Node *as_sums(Graph *g, const Node *n, const Narrow *c) {
    Node *sum[MOST_RESULTS];
    int rank = c->nfew, map[MD_RANK] = {0};
    int64_t dim[MD_RANK];
    int8_t label[MD_RANK];
    for (int i = 0; i < c->nfew; i++) {
        dim[i] = c->b->type->dim[c->few[i]];
        label[i] = c->lb[c->few[i]];
    }
    for (int i = c->nsum; i < c->a->type->rank; i++) {
        dim[rank] = c->a->type->dim[i];
        label[rank++] = c->la[i];
    }
    for (int64_t i = 0; i < c->few_count; i++) {
        Node *terms = node_map2(g, OP_TERM, c->a, factor(g, c, i));
        sum[i] = node_fold(g, OP_SUM, terms, (1u << c->nsum) - 1);
    }
    Node *all = node_concat(g, sum, (int)c->few_count, 0);
    for (int i = 0; i < n->type->rank; i++) {
        map[i] = find_label(label, rank, n->attr->lo_[i]);
    }
    return node_permute(g, node_reshape(g, all, rank, dim), map);
}

static bool fits(const Node *n, Node *const *in, Narrow *c) {
    return n->op == OP_CONTRACT && (roles(n, in, 0, c) || roles(n, in, 1, c));
}

static Node *narrow_node(void *ctx, Graph *g, const Node *n, Node *const *in) {
    (void)ctx;
    Narrow c;
    return fits(n, in, &c) ? as_sums(g, n, &c) : NULL;
}

static bool is_narrow(const Node *n) {
    Narrow c;
    return fits(n, n->in, &c);
}

bool narrow_applies(const Region *region) {
    return region_any(region, is_narrow);
}

Region *pass_narrow(Graph *g, const Region *region) {
    return region_rebuild(g, region, narrow_node, NULL);
}
