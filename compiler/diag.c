/* diag: source texts, line tables and the messages a user reads.
 *
 * Spans are bytes; a line table is made when the first message of a source needs one. An excerpt
 * shows one line: control and broken UTF-8 bytes as '?', tabs kept, a long line cut around the
 * span. Needs spans of known sources (others are printed without a place), gives text on
 * Diag.out and counts, changes no values. */
#include "compiler/diag.h"

#include <string.h>

enum {
    ERROR_LIMIT = 20,
    EXCERPT_COLUMNS = 110, /* of a source line, past that it is cut */
    EXCERPT_BEFORE = 40,   /* columns kept left of the span in a cut line */
};

void diag_open(Diag *diag, Arena *arena, FILE *out) {
    *diag = (Diag){.arena = arena, .out = out, .limit = ERROR_LIMIT};
}

uint32_t diag_add_source(Diag *diag, const char *name, const char *text, size_t length) {
    if (length >= UINT32_MAX)
        BUG("source '%s' has %zu bytes", name, length);
    Source source = {.name = name, .text = text, .length = length};
    VEC_PUSH(diag->arena, &diag->sources, source);
    return (uint32_t)diag->sources.count - 1;
}

Loc loc_span(Loc first, Loc last) {
    if (first.source == UINT32_MAX)
        return last;
    if (last.source != first.source || last.at + last.len < first.at)
        return first;
    first.len = last.at + last.len - first.at;
    return first;
}

static Source *source_of(const Diag *diag, Loc loc) {
    return loc.source < (uint32_t)diag->sources.count ? &diag->sources.at[loc.source] : NULL;
}

static void lines_find(Diag *diag, Source *source) {
    if (source->line)
        return;
    const char *end = source->text + source->length;
    uint32_t n = 1;
    for (const char *p = source->text; (p = memchr(p, '\n', (size_t)(end - p))); p++)
        n++;
    source->line = ARENA_ARRAY(diag->arena, uint32_t, n);
    source->nline = n;
    uint32_t i = 1;
    for (const char *p = source->text; (p = memchr(p, '\n', (size_t)(end - p))); p++)
        source->line[i++] = (uint32_t)(p + 1 - source->text);
}

/* Index of the last line that starts at or before `at`. */
static uint32_t line_index(const Source *source, uint32_t at) {
    uint32_t lo = 0, hi = source->nline;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (source->line[mid] <= at)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

void loc_line(Diag *diag, Loc loc, int *line, int *col) {
    *line = *col = 0;
    Source *source = source_of(diag, loc);
    if (!source)
        return;
    lines_find(diag, source);
    uint32_t index = line_index(source, loc.at);
    *line = (int)index + 1;
    *col = (int)(loc.at - source->line[index]) + 1;
}

const char *loc_file(const Diag *diag, Loc loc) {
    const Source *source = source_of(diag, loc);
    return source ? source->name : "mdlc";
}

static const char *paint(const Diag *diag, const char *code) {
    return diag->color ? code : "";
}

/* The line that holds the start of `loc`, and under it carets up to the end of span or line. */
static void excerpt_print(Diag *diag, Loc loc) {
    Source *source = source_of(diag, loc);
    if (!source)
        return;
    lines_find(diag, source);
    uint32_t index = line_index(source, loc.at);
    size_t begin = source->line[index], end = source->length;
    if (index + 1 < source->nline)
        end = source->line[index + 1] - 1;
    if (end > begin && source->text[end - 1] == '\r')
        end--;
    size_t at = loc.at < end ? loc.at : end;
    size_t stop = (size_t)loc.at + loc.len < end ? (size_t)loc.at + loc.len : end;
    bool cut_left = false, cut_right = false;
    if (end - begin > EXCERPT_COLUMNS) {
        if (at - begin > EXCERPT_COLUMNS * 2 / 3) {
            begin = at - EXCERPT_BEFORE;
            cut_left = true;
            while (begin < at && ((unsigned char)source->text[begin] & 0xc0) == 0x80)
                begin++;
        }
        if (end - begin > EXCERPT_COLUMNS) {
            end = begin + EXCERPT_COLUMNS;
            cut_right = true;
            while (end > at && ((unsigned char)source->text[end] & 0xc0) == 0x80)
                end--;
            if (stop > end)
                stop = end;
        }
    }
    Text line = {.arena = diag->arena}, under = {.arena = diag->arena};
    text_add(&line, cut_left ? "..." : "");
    text_add(&under, cut_left ? "   " : "");
    bool marked = false;
    for (size_t i = begin; i < end;) {
        size_t n = utf8_length(source->text + i, end - i);
        unsigned char c = (unsigned char)source->text[i];
        bool plain = n && (c == '\t' || (c >= 0x20 && c != 0x7f));
        if (plain)
            text_addn(&line, source->text + i, n);
        else
            text_add(&line, "?");
        if (i + (n ? n : 1) <= at)
            text_add(&under, c == '\t' ? "\t" : " ");
        else if (i < stop || !marked) {
            text_add(&under, "^");
            marked = true;
        }
        i += n ? n : 1;
    }
    if (!marked)
        text_add(&under, "^");
    text_add(&line, cut_right ? "..." : "");
    fprintf(diag->out, "%5u | %s\n      | %s%s%s\n", (unsigned)index + 1, line.at ? line.at : "",
            paint(diag, "\033[1;32m"), under.at, paint(diag, "\033[0m"));
}

/* `file:line:col: word: message`, without the end of the line. */
static void head_print(Diag *diag, Loc loc, const char *color, const char *word, const char *fmt,
                       va_list ap) {
    fputs(paint(diag, "\033[1m"), diag->out);
    if (source_of(diag, loc)) {
        int line, col;
        loc_line(diag, loc, &line, &col);
        fprintf(diag->out, "%s:%d:%d: ", loc_file(diag, loc), line, col);
    } else if (strcmp(word, "note") != 0 && strcmp(word, "hint") != 0) {
        fputs("mdlc: ", diag->out);
    }
    fprintf(diag->out, "%s%s:%s ", paint(diag, color), word, paint(diag, "\033[0m"));
    vfprintf(diag->out, fmt, ap);
}

static void error_print(Diag *diag, Loc loc, char letter, int id, const char *fmt, va_list ap) {
    diag->errors++;
    diag->muted = diag->errors > diag->limit;
    if (diag->muted)
        return;
    head_print(diag, loc, "\033[31m", "error", fmt, ap);
    fprintf(diag->out, " [%c%04d]\n", letter, id);
    excerpt_print(diag, loc);
}

void diag_error(Diag *diag, Loc loc, int id, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    error_print(diag, loc, 'E', id, fmt, ap);
    va_end(ap);
}

void diag_warn(Diag *diag, Loc loc, int id, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    if (diag->warnings_are_errors) {
        error_print(diag, loc, 'W', id, fmt, ap);
    } else {
        diag->warnings++;
        diag->muted = diag->warnings > diag->limit || diag->errors > diag->limit;
        if (!diag->muted) {
            head_print(diag, loc, "\033[35m", "warning", fmt, ap);
            fprintf(diag->out, " [W%04d]\n", id);
            excerpt_print(diag, loc);
        }
    }
    va_end(ap);
}

void diag_note(Diag *diag, Loc loc, const char *fmt, ...) {
    if (diag->muted)
        return;
    va_list ap;
    va_start(ap, fmt);
    head_print(diag, loc, "\033[36m", "note", fmt, ap);
    va_end(ap);
    fputc('\n', diag->out);
}

void diag_hint(Diag *diag, const char *fmt, ...) {
    if (diag->muted)
        return;
    va_list ap;
    va_start(ap, fmt);
    head_print(diag, LOC_NONE, "\033[36m", "hint", fmt, ap);
    va_end(ap);
    fputc('\n', diag->out);
}

static void rest_print(Diag *diag, int count, const char *word) {
    if (count > diag->limit)
        fprintf(diag->out, "mdlc: %d more %s%s\n", count - diag->limit, word,
                count - diag->limit == 1 ? "" : "s");
}

void diag_close(Diag *diag) {
    rest_print(diag, diag->errors, "error");
    rest_print(diag, diag->warnings, "warning");
}
