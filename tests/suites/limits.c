/* Reads the limits of runtime/team.h (limits.h) from the environment, before main. */
#include "tests/suites/limits.h"

#include <stdlib.h>

double team_loss, team_long;

__attribute__((constructor)) static void limits_read(void) {
    const char *loss = getenv("TEAM_LOSS"), *rest = getenv("TEAM_LONG");
    if (loss == NULL || rest == NULL) {
        abort();
    }
    team_loss = strtod(loss, NULL);
    team_long = strtod(rest, NULL);
}
