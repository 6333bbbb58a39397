/* foreign: see the header. One table for all places where an unknown name is met; a name of the
 * model, of the library or of the prelude is found before it is looked up here, and this comes
 * before a guess from the spelling. Each form is run by tests/library/foreign.mdl. */
#include "lang/foreign.h"

#include <string.h>

typedef struct {
    const char *names; /* with blanks around each */
    const char *form;
} Foreign;

static const Foreign table[] = {
    {" where if_else ", "select(c, a, b) is a where c is true, else b"},
    {" masked_fill ", "select(mask, 0, x)"},
    {" transpose permute swapaxes moveaxis movedim T mT ",
     "an index statement orders axes: y[j, i] = x[i, j]"},
    {" gather take take_along_dim index_select ", "an index may be data: y[b] = x[b, i[b]]"},
    {" matmul mm bmm dot einsum tensordot @ ",
     "a product is a sum over an index: y[i, j] = sum[k] a[i, k] * b[k, j]"},
    {" outer ", "y[i, j] = a[i] * b[j]"},
    {" view view_as flatten ravel unflatten ",
     "x as [...] with the new extents: a tensor [2, 6] as [2, 3, 2], as [12]"},
    {" unsqueeze expand_dims newaxis ",
     "x as [...] with an extent 1: a tensor [2, 6] as [2, 1, 6]; a broadcast needs none: "
     "z[i, j] = x[i] * y[i, j]"},
    {" expand expand_as broadcast_to tile repeat_interleave ",
     "an index on the left alone repeats: y[i < 3, j] = x[j]"},
    {" cat concatenate hstack vstack ", "concat(a, b, axis = 0)"},
    {" split chunk narrow ", "a slice: x[:, 0..4]"},
    {" pad ", "an index with a border: y[i < 6] = x[i - 1] else 0"},
    {" roll ", "an index with a border: y[i < 4] = x[i - 1] else wrap"},
    {" arange range linspace ", "an index is a number: t[i < 8] = f32(i)"},
    {" eye ", "e[i < 4, j < 4] = f32(i == j)"},
    {" tril ", "y[i, j] = select(i >= j, x[i, j], 0)"},
    {" triu ", "y[i, j] = select(i <= j, x[i, j], 0)"},
    {" zeros_like ", "zeros(shape(x))"},
    {" ones_like ", "ones(shape(x))"},
    {" full_like ", "full(v, shape(x))"},
    {" rand ", "uniform(0, 1, shape)"},
    {" randn ", "normal(0, 1, shape)"},
    {" numel size len ", "count(x) is the number of elements, shape(x) the list of extents"},
    {" item numpy tolist contiguous cpu cuda ", "values are used as they are, x"},
    {" clone copy ", "a name is a value, no storage: x itself"},
    {" detach no_grad ", "stop_gradient(x)"},
    {" backward ", "a train derives its loss by itself; elsewhere it is grad(v, x)"},
    {" forward ", "a model or layer is called by its name: net(x)"},
    {" tan ", "sin(x) / cos(x)"},
    {" sinh ", "(exp(x) - exp(-x)) / 2"},
    {" cosh ", "(exp(x) + exp(-x)) / 2"},
    {" ceil ", "-floor(-x)"},
    {" square ", "x^2"},
    {" reciprocal ", "1 / x"},
    {" log2 ", "log(x) / log(2)"},
    {" log10 ", "log(x) / log(10)"},
    {" exp2 ", "exp(x * log(2))"},
    {" power ", "x^y"},
    {" add subtract multiply mul divide ", "operators: x + y, x - y, x * y, x / y"},
    {" maximum amax ", "max(a, b) of two; max(x, axis = 0) along an axis"},
    {" minimum amin ", "min(a, b) of two; min(x, axis = 0) along an axis"},
    {" clip clamp_ ", "clamp(x, 0, 1)"},
    {" var ", "mean((x - mean(x))^2)"},
    {" std ", "sqrt(mean((x - mean(x))^2))"},
    {" norm ", "sqrt(sum(x^2))"},
    {" logsumexp ", "max(x) + log(sum(exp(x - max(x))))"},
    {" isnan ", "x != x"},
    {" any ", "sum(f32(c)) > 0"},
    {" all ", "prod(f32(c)) > 0"},
    {" float ", "f32(x)"},
    {" int ", "i32(x)"},
    {" long ", "i64(x)"},
    {" one_hot ", "onehot(y, n)"},
    {" Sequential ", "layers one behind the other: x |> fc1: linear(out = 16) |> relu"},
    {" Parameter ", "in a layer: param w: [4] = 0;"},
    {" BatchNorm1d BatchNorm2d BatchNorm3d batch_norm ", "batchnorm(x)"},
    {" MaxPool2d max_pool2d ", "maxpool(x, k)"},
    {" AvgPool2d avg_pool2d ", "avgpool(x, k)"},
    {" CrossEntropyLoss ", "mean(cross_entropy(logits, y))"},
    {" NLLLoss nll_loss ", "mean(nll(lp, y))"},
    {" MSELoss mse_loss ", "mean(mse(x, y))"},
    {" L1Loss l1_loss ", "mean(l1(x, y))"},
    {" BCELoss binary_cross_entropy ", "mean(bce(p, y))"},
    {" BCEWithLogitsLoss binary_cross_entropy_with_logits ", "mean(bce_logits(x, y))"},
    {" KLDivLoss kl_div ", "sum(kl(lp, t)) / B"},
    {" scaled_dot_product_attention ", "attend(q, k, v), attend(q, k, v, causal = true)"},
};

const char *foreign_form(const char *name) {
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        for (const char *at = table[i].names; (at = strstr(at, name)) != NULL; at++) {
            if (at[-1] == ' ' && at[n] == ' ') {
                return table[i].form;
            }
        }
    }
    return NULL;
}
