/* mutate: small wrong changes of a C source, for measuring what the tests notice.
 *
 *     mutate FILE...             one line a place: FILE NUMBER LINE KIND 'before' -> 'after'
 *     mutate -n NUMBER FILE      the file with that one change, on standard output
 *     mutate -s SEED -c COUNT FILE...   COUNT of all places, drawn by the seed
 *
 * A place is an operator (compared, logical, arithmetic), an integer (one more), true, false or a
 * call that is a whole statement (dropped). It is found by a scanner that knows comments, strings,
 * characters and preprocessor lines, and the spaces that the format puts around binary operators.
 * Left alone are internal checks (lines with BUG): nothing that a test may do reaches them. */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *file, *kind;
    const char *text; /* of the file */
    size_t at, length;
    int number, line;
    char after[24];
} Place;

static Place *places;
static size_t nplace, room;

static void fail(const char *what, const char *name) {
    fprintf(stderr, "mutate: %s: %s\n", name, what);
    exit(2);
}

static char *read_all(const char *path) {
    FILE *in = fopen(path, "rb");
    if (in == NULL) {
        fail("cannot be read", path);
    }
    size_t count = 0, size = 1 << 16;
    char *text = malloc(size);
    for (size_t n; text != NULL && (n = fread(text + count, 1, size - count - 1, in)) > 0;) {
        count += n;
        if (count + 1 == size) {
            size *= 2;
            text = realloc(text, size);
        }
    }
    fclose(in);
    if (text == NULL) {
        fail("does not fit in memory", path);
    }
    text[count] = '\0';
    return text;
}

static const struct {
    const char *before, *after, *kind;
} operators[] = {
    {" <= ", " < ", "compare"},   {" >= ", " > ", "compare"},     {" < ", " <= ", "compare"},
    {" > ", " >= ", "compare"},   {" == ", " != ", "compare"},    {" != ", " == ", "compare"},
    {" && ", " || ", "logical"},  {" || ", " && ", "logical"},    {" + ", " - ", "arithmetic"},
    {" - ", " + ", "arithmetic"}, {" * ", " + ", "arithmetic"},   {" / ", " * ", "arithmetic"},
    {" % ", " / ", "arithmetic"}, {" += ", " -= ", "arithmetic"}, {" -= ", " += ", "arithmetic"},
};

static bool word_char(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* The line that holds `at` is an internal check. */
static bool left_alone(const char *text, size_t at) {
    size_t from = at, to = at;
    while (from > 0 && text[from - 1] != '\n') {
        from--;
    }
    while (text[to] != '\0' && text[to] != '\n') {
        to++;
    }
    for (size_t i = from; i + 3 < to; i++) {
        if (memcmp(text + i, "BUG", 3) == 0) {
            return true;
        }
    }
    return false;
}

static void add(const char *file, const char *text, size_t at, size_t length, const char *kind,
                const char *after, int line, int *number) {
    if (left_alone(text, at)) {
        return;
    }
    if (nplace == room) {
        room = room ? 2 * room : 1024;
        places = realloc(places, room * sizeof *places);
        if (places == NULL) {
            fail("does not fit in memory", file);
        }
    }
    Place *p = &places[nplace++];
    *p = (Place){file, kind, text, at, length, ++*number, line, ""};
    snprintf(p->after, sizeof p->after, "%s", after);
}

/* The length of `name(...);` when the statement at `at` is a call on its own, else 0. */
static size_t call_length(const char *text, size_t at) {
    size_t i = at;
    while (word_char(text[i])) {
        i++;
    }
    static const char *const words[] = {"if", "for", "while", "switch", "return", "sizeof"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        if (strlen(words[k]) == i - at && strncmp(words[k], text + at, i - at) == 0) {
            return 0;
        }
    }
    if (i == at || text[i] != '(') {
        return 0;
    }
    int depth = 0;
    for (; text[i] != '\0'; i++) {
        if (text[i] == '"' || text[i] == '\'') {
            char quote = text[i++];
            while (text[i] != '\0' && text[i] != quote) {
                i += text[i] == '\\' && text[i + 1] != '\0' ? 2 : 1;
            }
        }
        depth += text[i] == '(';
        depth -= text[i] == ')';
        if (depth == 0) {
            return text[i + 1] == ';' ? i + 2 - at : 0;
        }
        if (text[i] == '{' || text[i] == '\0') {
            return 0; /* a macro with a body, or the end */
        }
    }
    return 0;
}

static bool first_on_line(const char *text, size_t at) {
    while (at > 0 && text[at - 1] == ' ') {
        at--;
    }
    return at > 0 && text[at - 1] == '\n';
}

/* One place at most: the change that starts at text[at]. */
static void look(const char *file, const char *text, size_t at, int line, int *number) {
    for (size_t k = 0; k < sizeof operators / sizeof *operators; k++) {
        size_t n = strlen(operators[k].before);
        if (strncmp(text + at, operators[k].before, n) == 0) {
            add(file, text, at, n, operators[k].kind, operators[k].after, line, number);
            return;
        }
    }
    if (at > 0 && word_char(text[at - 1])) {
        return;
    }
    if (strncmp(text + at, "true", 4) == 0 && !word_char(text[at + 4])) {
        add(file, text, at, 4, "constant", "false", line, number);
    } else if (strncmp(text + at, "false", 5) == 0 && !word_char(text[at + 5])) {
        add(file, text, at, 5, "constant", "true", line, number);
    } else if (isdigit((unsigned char)text[at])) {
        char *end;
        unsigned long value = strtoul(text + at, &end, 10);
        if (!word_char(*end) && *end != '.' && (at == 0 || text[at - 1] != '.')) {
            char after[24];
            snprintf(after, sizeof after, "%lu", value + 1);
            add(file, text, at, (size_t)(end - (text + at)), "constant", after, line, number);
        }
    } else if (text[at] == '!' && (word_char(text[at + 1]) || text[at + 1] == '(')) {
        add(file, text, at, 1, "logical", "", line, number);
    } else if (word_char(text[at]) && first_on_line(text, at)) {
        size_t n = call_length(text, at);
        if (n > 0) {
            add(file, text, at, n, "call", ";", line, number);
        }
    }
}

/* Inside a function everything is looked at; outside, nothing: declarations and tables are data. */
static void scan(const char *file, const char *text) {
    int line = 1, number = 0;
    bool body = false;
    for (size_t i = 0; text[i] != '\0'; i++) {
        if (text[i] == '\n') {
            line++;
            body = body && text[i + 1] != '}';
            continue;
        }
        if (text[i] == '{' && text[i + 1] == '\n' && i > 0 && text[i - 1] == ' ' && i > 1 &&
            text[i - 2] == ')') {
            body = true;
        }
        if (text[i] == '#' && first_on_line(text, i)) {
            while (text[i + 1] != '\0' && text[i + 1] != '\n') {
                i++;
            }
        } else if (strncmp(text + i, "/*", 2) == 0) {
            while (text[i] != '\0' && strncmp(text + i, "*/", 2) != 0) {
                line += text[i++] == '\n';
            }
        } else if (text[i] == '"' || text[i] == '\'') {
            char quote = text[i++];
            while (text[i] != '\0' && text[i] != quote) {
                i += text[i] == '\\' ? 2 : 1;
            }
        } else if (body) {
            look(file, text, i, line, &number);
        }
    }
}

static void print_changed(const Place *p) {
    fwrite(p->text, 1, p->at, stdout);
    fputs(p->after, stdout);
    fputs(p->text + p->at + p->length, stdout);
}

static uint64_t next(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int main(int argc, char **argv) {
    long wanted = -1, count = -1;
    uint64_t seed = 1;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-' && i + 1 < argc && strchr("nsc", argv[i][1]) != NULL) {
            long value = strtol(argv[i + 1], NULL, 10);
            wanted = argv[i][1] == 'n' ? value : wanted;
            count = argv[i][1] == 'c' ? value : count;
            seed = argv[i][1] == 's' ? (uint64_t)value : seed;
            i++;
        } else {
            scan(argv[i], read_all(argv[i]));
        }
    }
    if (wanted >= 0) {
        for (size_t i = 0; i < nplace; i++) {
            if (places[i].number == wanted) {
                print_changed(&places[i]);
                return 0;
            }
        }
        fail("no such place", argv[argc - 1]);
    }
    /* Knuth's selection sampling: each place with the same chance, in the order of the list. */
    size_t left = count < 0 || (size_t)count > nplace ? nplace : (size_t)count;
    for (size_t i = 0; i < nplace; i++) {
        const Place *p = &places[i];
        if (next(&seed) % (nplace - i) < left) {
            size_t line = strcspn(p->text + p->at, "\n"); /* a call may go on below */
            printf("%s %d %d %s '%.*s' -> '%s'\n", p->file, p->number, p->line, p->kind,
                   (int)(line < p->length ? line : p->length), p->text + p->at, p->after);
            left--;
        }
    }
    return 0;
}
