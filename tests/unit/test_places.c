/* Where steps say that they come from: each line that a kernel computes, so that a NaN in it is
 * traced to a list of lines that holds the right one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "compiled.h"

static bool is_at(Dumped *m, Loc loc, int wanted) {
    int line = 0, column;
    if (loc.source == m->source) {
        loc_line(&m->c.diag, loc, &line, &column);
    }
    return line == wanted;
}

static bool list_names(Dumped *m, const StepList *list, int line) {
    for (int i = 0; i < list->count; i++) {
        const Step *step = list->at[i];
        if (step->kind != STEP_LOOP && is_at(m, step->loc, line)) {
            return true;
        }
        for (int k = 0; k < step->also.count; k++) {
            if (is_at(m, step->also.at[k], line)) {
                return true;
            }
        }
        if (list_names(m, &step->body, line)) {
            return true;
        }
    }
    return false;
}

/* The lines marked `// from NAME` of this model are computed by their trains. */
static void test_marked_lines(void **state) {
    (void)state;
    const char *path = "tests/suites/trace.mdl";
    Arena arena = {0};
    size_t length;
    char *text = dumped_file(&arena, path, &length);
    assert_non_null(text);
    Dumped m;
    Program *p = compiled_program(&m, path, 1, false);
    assert_non_null(p);
    int line = 1, marks = 0;
    for (const char *at = text; *at != 0; at += strcspn(at, "\n"), at += *at != 0, line++) {
        size_t end = strcspn(at, "\n");
        const char *mark = strstr(at, "; // from ");
        if (mark == NULL || mark >= at + end) {
            continue;
        }
        marks++;
        bool named = false;
        for (int i = 0; i < p->entry.count; i++) {
            named = named || list_names(&m, &p->entry.at[i]->step, line);
        }
        if (!named) {
            fail_msg("%s:%d is the place of no step", path, line);
        }
    }
    assert_true(marks >= 5);
    dumped_done(&m);
    arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marked_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
