/* output: see the header. The files are those of the runtime (out.h): complete and synced under no
 * name or a temporary one, then renamed. */
#define _GNU_SOURCE
#include "compiler/driver/output.h"

#include "runtime/out.h"

struct OutputFile {
    md_out out;
};

/* --- apart ------------------------------------------------------------------------------------ */

static bool apart_from_inputs(Compile *c, const Output *output, const Paths *inputs) {
    for (int i = 0; i < inputs->count; i++) {
        if (md_out_same(output->path, inputs->at[i])) {
            diag_error(&c->diag, LOC_NONE, 625,
                       "%s %s would replace '%s', which the model is made of", output->option,
                       output->path, inputs->at[i]);
            diag_hint(&c->diag, "give the output a name of its own");
            return false;
        }
    }
    return true;
}

/* Nor from what is printed beside them. */
static bool apart_from_streams(Compile *c, const Output *output) {
    static const char *const stream[][2] = {{"/dev/stdout", "output"}, {"/dev/stderr", "error"}};
    for (int i = 0; i < 2 && md_out_descriptor(output->path) < 0; i++) {
        if (md_out_same(output->path, stream[i][0])) {
            diag_error(&c->diag, LOC_NONE, 627, "%s %s is the file that standard %s goes to",
                       output->option, output->path, stream[i][1]);
            diag_hint(&c->diag, "'%s -' writes to standard output", output->option);
            return false;
        }
    }
    return true;
}

bool output_apart(Compile *c, const Output *output, int count, const Paths *inputs) {
    Output *named = ARENA_ARRAY(&c->arena, Output, count + 1);
    for (int i = 0; i < count; i++) {
        named[i] = output[i];
        named[i].path = str_eq(output[i].path, "-") ? "/dev/stdout" : output[i].path;
        if (!apart_from_inputs(c, &named[i], inputs) || !apart_from_streams(c, &named[i])) {
            return false;
        }
        for (int k = 0; k < i; k++) {
            if (md_out_same(named[k].path, named[i].path)) {
                diag_error(&c->diag, LOC_NONE, 626, "%s %s and %s %s name one file",
                           output[k].option, output[k].path, output[i].option, output[i].path);
                diag_hint(&c->diag, "give each output a name of its own");
                return false;
            }
        }
    }
    return true;
}

/* --- writing ---------------------------------------------------------------------------------- */

static int failed(Outputs *o, const char *message) {
    fprintf(o->c->diag.out, "mdlc: %s\n", message);
    for (int i = 0; i < o->file.count; i++) {
        md_out_cancel(&o->file.at[i]->out);
    }
    o->file.count = 0;
    return EXIT_FILE;
}

static int add_stream(Outputs *o, const Text *text) {
    FILE *out = o->c->out;
    if (fwrite(text->at, 1, text->len, out) != text->len || fflush(out) != 0) {
        return failed(
            o, str_printf(&o->c->arena, "cannot write standard output: %s", strerror(errno)));
    }
    return EXIT_OK;
}

int outputs_add(Outputs *o, const char *path, const Text *text) {
    if (str_eq(path, "-")) {
        return add_stream(o, text);
    }
    char why[MD_MESSAGE_BYTES];
    md_text message = md_text_make(why, sizeof why);
    OutputFile *file = ARENA_NEW(&o->c->arena, OutputFile);
    if (md_out_open(&file->out, path, &message) == MD_EXIT_OK) {
        (void)md_out_write(&file->out, text->at, text->len);
        if (md_out_complete(&file->out, &message) == MD_EXIT_OK) {
            VEC_PUSH(&o->c->arena, &o->file, file);
            return EXIT_OK;
        }
    }
    return failed(o, why);
}

int outputs_place(Outputs *o) {
    char why[MD_MESSAGE_BYTES];
    md_text message = md_text_make(why, sizeof why);
    while (o->file.count > 0) {
        OutputFile *first = o->file.at[0];
        o->file.count--;
        memmove(o->file.at, o->file.at + 1, sizeof *o->file.at * (size_t)o->file.count);
        if (md_out_place(&first->out, &message) != MD_EXIT_OK) {
            return failed(o, why);
        }
    }
    return EXIT_OK;
}
