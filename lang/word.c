/* word: the words that mean something somewhere, one row each.
 *
 * Needs nothing, gives answers, changes no values. */
#include "lang/scan.h"

#include "parse.h"

#include <string.h>

typedef struct {
    const char *word;
    WordClass class;
    int kind;
} WordRow;

static const WordRow words[] = {
    {"return", WORD_RESERVED, T_RETURN},
    {"emit", WORD_RESERVED, T_EMIT},
    {"repeat", WORD_RESERVED, T_REPEAT},
    {"scan", WORD_RESERVED, T_SCAN},
    {"while", WORD_RESERVED, T_WHILE},
    {"when", WORD_RESERVED, T_WHEN},
    {"else", WORD_RESERVED, T_ELSE},
    {"new", WORD_RESERVED, T_NEW},
    {"frozen", WORD_RESERVED, T_FROZEN},
    {"as", WORD_RESERVED, T_AS},
    {"and", WORD_RESERVED, T_AND},
    {"or", WORD_RESERVED, T_OR},
    {"not", WORD_RESERVED, T_NOT},
    {"in", WORD_RESERVED, T_IN},
    {"sum", WORD_RESERVED, T_FOLD},
    {"min", WORD_RESERVED, T_FOLD},
    {"max", WORD_RESERVED, T_MAX},
    {"mean", WORD_RESERVED, T_FOLD},
    {"prod", WORD_RESERVED, T_FOLD},
    {"argmax", WORD_RESERVED, T_FOLD},
    {"argmin", WORD_RESERVED, T_FOLD},
    {"use", WORD_ITEM, T_USE},
    {"dim", WORD_ITEM, T_DIM},
    {"const", WORD_ITEM, T_CONST},
    {"state", WORD_ITEM, T_STATE},
    {"ring", WORD_ITEM, T_RING},
    {"op", WORD_ITEM, T_OP},
    {"layer", WORD_ITEM, T_LAYER},
    {"model", WORD_ITEM, T_MODEL},
    {"optimizer", WORD_ITEM, T_OPTIMIZER},
    {"dataset", WORD_ITEM, T_DATASET},
    {"test", WORD_ITEM, T_TEST},
    {"phase", WORD_ITEM, T_PHASE},
    {"train", WORD_ITEM, T_TRAIN},
    {"entry", WORD_ITEM, T_ENTRY},
    {"loss", WORD_CLAUSE, T_CLAUSE},
    {"metric", WORD_CLAUSE, T_CLAUSE},
    {"clip", WORD_CLAUSE, T_CLAUSE},
    {"accumulate", WORD_CLAUSE, T_CLAUSE},
    {"ema", WORD_CLAUSE, T_CLAUSE},
    {"precision", WORD_CLAUSE, T_CLAUSE},
    {"budget", WORD_CLAUSE, T_CLAUSE},
    {"steps", WORD_CLAUSE, T_CLAUSE},
    {"epochs", WORD_CLAUSE, T_CLAUSE},
    {"freeze", WORD_CLAUSE, T_CLAUSE},
    {"file", WORD_CLAUSE, T_CLAUSE},
    {"holdout", WORD_CLAUSE, T_CLAUSE},
    {"shuffle", WORD_CLAUSE, T_CLAUSE},
    {"expect", WORD_CLAUSE, T_CLAUSE},
    {"param", WORD_INNER, T_PARAM},
    {"ode", WORD_INNER, T_ODE},
    {"adjoint", WORD_HEAD, T_ADJOINT},
    {"of", WORD_HEAD, T_OF},
    {"on", WORD_HEAD, T_ON},
    {"at", WORD_HEAD, T_AT},
    {"then", WORD_HEAD, T_THEN},
    {"carry", WORD_HEAD, T_CARRY},
    {"from", WORD_HEAD, T_FROM},
    {"to", WORD_HEAD, T_TO},
    {"using", WORD_HEAD, T_USING},
    {"until", WORD_HEAD, T_UNTIL},
};
enum { NWORD = sizeof words / sizeof words[0] };

WordClass word_class(const char *word, size_t length, int *kind) {
    for (int i = 0; i < NWORD; i++) {
        if (strncmp(words[i].word, word, length) == 0 && words[i].word[length] == '\0') {
            *kind = words[i].kind;
            return words[i].class;
        }
    }
    *kind = T_NAME;
    return WORD_NAME;
}

const char *word_at(int i) {
    return i < NWORD ? words[i].word : NULL;
}

const char *word_nearest(const char *word, WordClass class) {
    const char *best = NULL;
    int least = (int)(strlen(word) / 3) + 1; /* a slip in every third letter at most */
    for (int i = 0; i < NWORD; i++) {
        bool both = words[i].kind == T_OPTIMIZER; /* an item, and a clause of a train */
        if (words[i].class != class && !(both && class == WORD_CLAUSE))
            continue;
        int distance = str_distance(word, words[i].word, least);
        if (distance < least) {
            least = distance;
            best = words[i].word;
        }
    }
    return best;
}
