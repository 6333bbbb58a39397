/* eval_scalar: constant folding by the rules of the evaluator.
 * Needs constants of the op's operand types; gives the rounded value; changes nothing. */
#include "compiler/eval_scalar.h"

#include "compiler/eval_rule.h"

bool eval_scalar(OpCode op, Type out, const Attr *attr, const Node *const *in, double *value,
                 int64_t *ivalue) {
    enum { MOST = 3 };
    int nin = op_info[op].nin;
    if (op_info[op].cls != CLASS_MAP || nin < 1 || nin > MOST || out.rank != 0) {
        return false;
    }
    Num number[MOST], result = {.i = 0};
    Value operand[MOST];
    for (int k = 0; k < nin; k++) {
        if (in[k]->op != OP_CONST) {
            return false;
        }
        Elem elem = in[k]->type->elem;
        if (elem_is_float(elem)) {
            number[k].f = in[k]->attr->value;
        } else {
            number[k].i = elem == TY_BOOL ? in[k]->attr->value != 0 : in[k]->attr->ivalue;
        }
        operand[k] = (Value){.type = *in[k]->type, .at = &number[k]};
    }
    EvalCall c = {.attr = attr,
                  .type = out,
                  .in = operand,
                  .nin = nin,
                  .result = {.type = out, .at = &result}};
    eval_rule[op](&c);
    if (elem_is_float(out.elem)) {
        *value = num_round(out.elem, result.f);
    } else if (out.elem == TY_BOOL) {
        *value = result.i != 0;
    } else {
        *ivalue = result.i;
    }
    return true;
}
