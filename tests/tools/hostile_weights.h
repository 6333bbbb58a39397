/* hostile_weights: weights, what is no file, options and outputs. Included in hostile.c, once. */
#ifndef MDLC_TESTS_HOSTILE_WEIGHTS_H
#define MDLC_TESTS_HOSTILE_WEIGHTS_H

/* ---- weights -------------------------------------------------------------------------------- */

#define W "\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"
#define BIAS "\"b\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[8,20]}"

/* A file of weights: w 1 2, b 1 1 1, then zeros. `length` < 0: that of the header. */
static void weights(File *f, const char *header, int64_t length, size_t data) {
    static const float values[5] = {1, 2, 1, 1, 1};
    f->size = 0;
    add_word(f, length < 0 ? strlen(header) : (uint64_t)length, 8, 0);
    add_text(f, header);
    add(f, values, data < sizeof values ? data : sizeof values);
    for (size_t i = sizeof values; i < data; i++) {
        add_word(f, 0, 1, 0);
    }
}

static void weight_headers(void) {
    static const struct {
        const char *header;
        size_t data;
        const char *text; /* NULL: taken */
    } cases[] = {
        {"{" W "," BIAS "}", 20, NULL},
        {"{" BIAS "," W "}          ", 20, NULL},
        {"{\"__metadata__\":{\"a\":\"b\"}," W "," BIAS "}", 20, NULL},
        {"{" W "," BIAS
         ",\"mdlc.fit.lr\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[20,24]}}",
         24, NULL},
        {"{" W "," BIAS
         ",\"a.num_batches_tracked\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[20,28]}}",
         28, NULL},
        {"{\"net.w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}," BIAS "}", 20,
         "unknown tensor 'net.w'; tensor 'w' is missing"},
        {"{" W "}", 8, "tensor 'b' is missing"},
        {"{}", 0, "tensor 'w' is missing; tensor 'b' is missing"},
        {"{" W "," W "," BIAS "}", 20, "tensor 'w' stands twice"},
        {"{" W ",\"b\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[4,16]}}", 16,
         "overlap or leave gaps"},
        {"{" W ",\"b\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}}", 12,
         "overlap or leave gaps"},
        {"{" W ",\"b\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[12,24]}}", 24,
         "overlap or leave gaps"},
        {"{" W ",\"b\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[20,8]}}", 20,
         "offsets that do not fit F32[3]"},
        {"{" W ",\"b\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[8,24]}}", 24,
         "offsets that do not fit"},
        {"{" W ",\"b\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[8,24]}}", 24,
         "tensor 'b' is F64[2] in the file and F32[3] in the model"},
        {"{" W ",\"b\":{\"dtype\":\"I32\",\"shape\":[3],\"data_offsets\":[8,20]}}", 20,
         "tensor 'b' is I32[3] in the file"},
        {"{" W ",\"b\":{\"dtype\":\"F8_E4M3\",\"shape\":[3],\"data_offsets\":[8,11]}}", 11,
         "unknown type"},
        {"{" W ",\"b\":{\"dtype\":\"F32\",\"shape\":[1,3],\"data_offsets\":[8,20]}}", 20,
         "F32[1, 3] in the file"},
        {"{" W
         ",\"b\":{\"dtype\":\"F32\",\"shape\":[2147483648,2147483648,4],\"data_offsets\":[8,20]}}",
         20, "F32[2147483648, 2147483648, 4]"},
        {"{" W
         ",\"b\":{\"dtype\":\"F32\",\"shape\":[9223372036854775807],\"data_offsets\":[8,20]}}",
         20, "in the model"},
        {"{" W
         ",\"b\":{\"dtype\":\"F32\",\"shape\":[9223372036854775808],\"data_offsets\":[8,20]}}",
         20, "a number is too large at byte"},
        {"{" W ",\"b\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[8,9223372036854775807]}}",
         20, "offsets that do not fit"},
        {"{" W ",\"mdlc.x\":{\"dtype\":\"U8\",\"shape\":[9223372036854775787],\"data_offsets\":[20,"
         "9223372036854775807]}," BIAS "}",
         20, "cut short"},
        {"{" W ",\"b\":{\"dtype\":\"F32\",\"shape\":[-3],\"data_offsets\":[8,20]}}", 20,
         "whole number"},
        {"{" W ",\"b\":{\"dtype\":\"F32\",\"shape\":[3.0],\"data_offsets\":[8,20]}}", 20,
         "whole number"},
        {"{" W ",\"b\":{\"dtype\":\"F32\",\"shape\":[3e0],\"data_offsets\":[8,20]}}", 20,
         "whole number"},
        {"{" W ",\"b\":{\"dtype\":\"F32\",\"shape\":3,\"data_offsets\":[8,20]}}", 20,
         "a list was expected"},
        {"{" W ",\"b\":{\"shape\":[3],\"data_offsets\":[8,20]}}", 20, "needs dtype, shape"},
        {"{" W ",\"b\":null}", 20, "an object was expected"},
        {"{" W ",\"\\u0062\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[8,20]}}", 20, NULL},
        {"{" W ",\"b\\n\\u001b[2J\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[8,20]}}", 20,
         "unknown tensor 'b??[2J'"},
        {"{" W ",\"b\\u0000\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[8,20]}}", 20,
         "a NUL"},
        {"{" W ",\"b\\ud800\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[8,20]}}", 20,
         "surrogate"},
        {"{" W "," BIAS "}", 19, "cut short: its header promises"},
        {"{" W "," BIAS "}", 21, "goes on behind its data"},
        {"{" W "," BIAS "},{}", 20, "text behind the header's end"},
        {"{" W "," BIAS ",}", 20, "a string was expected"},
        {"{\"__metadata__\":[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]," W "," BIAS "}", 20,
         "an object was expected"},
        {"{\"__metadata__\":{\"a\":1}," W "," BIAS "}", 20, "a string was expected"},
        {"{\"__metadata__\":{\"a\":\"b\"c}," W "," BIAS "}", 20, "',' was expected"},
        {"{\"__metadata__\":{\"ss_caption_dropout_every_n_epochs_of_all\":\"1\"}," W "," BIAS "}",
         20, NULL},
        {"", 0, "must be a JSON object"},
        {"[]", 0, "must be a JSON object"},
        {"PK\3\4 a zip file of PyTorch", 100, "must be a JSON object"},
        {"{'w': 1}", 0, "a string was expected"},
    };
    File f = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weights(&f, cases[i].header, -1, cases[i].data);
        if (cases[i].text == NULL) {
            taken("weights", LOAD, f.at, f.size, ECHO_S);
        } else {
            refused("weights", LOAD, f.at, f.size, cases[i].text);
        }
    }
    /* Floats of other types, in which b is 1 1 1 too. */
    static const double wide[3] = {1, 1, 1};
    static const uint16_t half[3] = {0x3C00, 0x3C00, 0x3C00};
    weights(&f, "{" W ",\"b\":{\"dtype\":\"F64\",\"shape\":[3],\"data_offsets\":[8,32]}}", -1, 8);
    add(&f, wide, sizeof wide);
    taken("weights-f64", LOAD, f.at, f.size, ECHO_S);
    weights(&f, "{" W ",\"b\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[8,14]}}", -1, 8);
    add(&f, half, sizeof half);
    taken("weights-f16", LOAD, f.at, f.size, ECHO_S);
    static const int64_t lengths[] = {0, 1, 7, 99, 103, 110, 5000, 99999999, 100000001, INT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        weights(&f, "{" W "," BIAS "}", lengths[i], 20);
        refused("weights-length", LOAD, f.at, f.size,
                lengths[i] > 100000000 ? "header length is absurd" : "");
    }
    memset(f.at, 0xFF, 8);
    refused("weights-length", LOAD, f.at, f.size, "header length is absurd");
    drop(&f);
}

/* Many wrong tensors: ten are named. Long names do not hide the count. */
static void weight_lists(void) {
    for (int length = 8; length <= 500; length += 492) {
        File header = {0}, f = {0};
        add_text(&header, "{" W "," BIAS);
        for (int i = 0; i < 40; i++) {
            char name[640];
            memset(name, 'a' + i % 26, (size_t)length);
            snprintf(name + length, sizeof name - (size_t)length,
                     "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}", 20 + i,
                     21 + i);
            add_text(&header, ",\"");
            add_text(&header, name);
        }
        add(&header, "}", 2);
        weights(&f, (const char *)header.at, -1, 60);
        refused("weights-list", LOAD, f.at, f.size, "; and 30 more");
        drop(&header);
        drop(&f);
    }
    /* A hundred thousand tensors that nobody asks for, in the wrong order. */
    File header = {0}, f = {0};
    add_text(&header, "{" W "," BIAS);
    for (int i = 99999; i >= 0; i--) {
        char text[128];
        snprintf(text, sizeof text,
                 ",\"mdlc.%d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}", i,
                 20 + i, 21 + i);
        add_text(&header, text);
    }
    add(&header, "}", 2);
    weights(&f, (const char *)header.at, -1, 20 + 100000);
    taken("weights-many", LOAD, f.at, f.size, ECHO_S);
    drop(&header);
    drop(&f);
}

static void weight_files(void) {
    File f = {0};
    weight_headers();
    weight_lists();
    weights(&f, "{" W "," BIAS "}", -1, 20);
    for (size_t cut = 0; cut < f.size; cut += 3) {
        refused("weights-cut", LOAD, f.at, cut, "");
    }
    for (int i = 0; i < 60; i++) {
        size_t at = below(f.size - 20);
        uint8_t bit = (uint8_t)(1u << below(8));
        f.at[at] ^= bit;
        either("weights-flip", LOAD, f.at, f.size);
        f.at[at] ^= bit;
    }
    memset(f.at + f.size - 20, 0xFF, 4); /* weights may hold anything */
    taken("weights-nan", LOAD, f.at, f.size, (double)NAN);
    drop(&f);
}

/* ---- what is no file, options, outputs ------------------------------------------------------ */

static void good_files(void) {
    File f = {0};
    weights(&f, "{" W "," BIAS "}", -1, 20);
    write_file(in_folder("good.st"), f.at, f.size);
    write_file(h.keep, f.at, f.size);
    h.kept = read_file(h.keep, &h.kept_size);
    idx_good(&f, 8, MD_U8, 0);
    write_file(in_folder("good-idx2-ubyte"), f.at, f.size);
    idx_good(&f, 8, MD_U8, 1);
    write_file(in_folder("good-idx1-ubyte"), f.at, f.size);
    write_file(in_folder("good.csv"), table, sizeof table - 1);
    static const struct {
        const char *name, *shape;
        int from, count;
    } arrays[] = {{"x.npy", "(4, 2)", 1, 8}, {"k.npy", "(4,)", 0, 4}};
    for (int i = 0; i < 2; i++) {
        npy_head(&f, 1, "'|u1'", "False", arrays[i].shape);
        for (int j = 0; j < arrays[i].count; j++) {
            add_number(&f, arrays[i].from + j, MD_U8, 0);
        }
        write_file(in_folder(arrays[i].name), f.at, f.size);
    }
    npy_head(&f, 1, "'|b1'", "False", "(4,)");
    add(&f, "\1\1\1\1", 4);
    write_file(in_folder("m.npy"), f.at, f.size);
    drop(&f);
}

static void special_files(void) {
    mkdir(in_folder("folder"), 0777);
    int pipes = mkfifo(in_folder("pipe"), 0666) == 0;
    int loops = symlink("loop", in_folder("loop")) == 0;
    write_file(in_folder("closed"), table, sizeof table - 1);
    chmod(in_folder("closed"), 0);
    int closed = access(in_folder("closed"), R_OK) != 0;
    for (int way = 0; way < WAYS; way++) {
        give("folder", (Way)way, "@folder", REFUSED, 0, "not a regular file");
        give("missing", (Way)way, "@missing", REFUSED, 0, "No such file");
        give("device", (Way)way, "/dev/zero", REFUSED, 0, "not a regular file");
        give("behind a file", (Way)way, "@good.st/x", REFUSED, 0, "Not a directory");
        if (pipes) {
            give("pipe without a writer", (Way)way, "@pipe", REFUSED, 0, "not a regular file");
        }
        if (loops) {
            give("symlink loop", (Way)way, "@loop", REFUSED, 0, "symbolic links");
        }
        if (closed) {
            give("unreadable", (Way)way, "@closed", REFUSED, 0, "Permission denied");
        }
    }
    if (!pipes || !loops) {
        skipped("pipes and links", "they cannot be made here");
    }
    if (!closed) {
        skipped("unreadable files", "root reads them all");
    }
}

static void options(void) {
    static const char *const values[] = {"nan",  "inf", "-inf", "1e999", "1e39", "",      "1,5",
                                         "0x10", "1e",  "abc",  "1..2",  "--1",  "1_000", "0b1"};
    char words[256];
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        snprintf(words, sizeof words, "fit --data table=@good.csv --save @keep.st --set lr=%s",
                 values[i]);
        line("set", words, 2, "not a value of f32");
    }
    static const struct {
        const char *words;
        const char *text;
    } usage[] = {
        {"fit --steps 9223372036854775808", "--steps needs a whole number"},
        {"fit --steps -1", "--steps needs a whole number"},
        {"fit --steps 1.5", "--steps needs a whole number"},
        {"fit --seed nan", "--seed needs a whole number"},
        {"fit --threads 0", "--threads needs a whole number"},
        {"fit --load=", "--load needs a value"},
        {"echo --load @good.st --in x=@x.npy --in k=@k.npy --in m=@m.npy --set gain=nan",
         "not a value of f32"},
        {"echo --load @good.st --in x=@x.npy --in k=@k.npy --in m=@m.npy --set gain=1 --out "
         "s=@s.npy --save @s.npy",
         "are one file"},
    };
    for (size_t i = 0; i < sizeof usage / sizeof *usage; i++) {
        line("option", usage[i].words, 2, usage[i].text);
    }
    line("option",
         "fit --data table=@good.csv --set lr=0 --log json --epochs 9223372036854775807 --steps 1",
         2, "exclude each other");
    line("option", "fit --data table=@good.csv --set lr=+1e-3 --log json", 0, "");
}

static void outputs(void) {
#define FIT "fit --data table=@good.csv --log json"
#define ECHO "echo --load @good.st --in x=@x.npy --in k=@k.npy --in m=@m.npy --set gain=1"
    static const struct {
        const char *words, *text;
    } bad[] = {
        {FIT " --save @folder", "Is a directory"},
        {FIT " --save @nowhere/w.st", "No such file or directory"},
        {FIT " --save @good.st/w.st", "Not a directory"},
        {FIT " --save @loop", "symbolic links"},
        {ECHO " --out @folder", "Is a directory"},
        {ECHO " --out @nowhere/s.npy", "No such file or directory"},
        {ECHO " --out @loop", "symbolic links"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        line("output", bad[i].words, 1, bad[i].text);
    }
    if (access("/dev/full", W_OK) == 0) {
        line("full disk", FIT " --save /dev/full", 1, "cannot write '/dev/full': No space left");
        line("full disk", ECHO " --out /dev/full", 1, "cannot write '/dev/full': No space left");
    } else {
        skipped("full disk", "no /dev/full");
    }
    /* A standard stream that is closed is not the next file that is opened. */
    for (int fd = 0; fd < 3 && mine(); fd++) {
        int rc = run_line("fit --data table=@good.csv --log none --save @closed.st", fd);
        const char *why = rc == 0 ? "" : h.err;
        size_t size = 0;
        uint8_t *now = read_file(in_folder("closed.st"), &size);
        judge("closed stream: saved", rc, TAKEN, 0, found_s(), "", why);
        judge("closed stream: loaded",
              run_line("echo --load @closed.st --in x=@x.npy --in k=@k.npy --in m=@m.npy --set "
                       "gain=1 --log none",
                       -1),
              TAKEN, 0, found_s(), "", "");
        free(now);
        unlink(in_folder("closed.st"));
    }
    line("output", ECHO " --out @s.npy --log json", 0, "");
#undef FIT
#undef ECHO
}

#endif
