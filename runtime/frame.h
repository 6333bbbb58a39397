/* SPDX-License-Identifier: 0BSD */
/* frame: what calls of kernels need of an instance, where its type is in another file. Gives a
 * type, holds nothing. */
#ifndef MD_FRAME_H
#define MD_FRAME_H

/* Of the instance whose steps a function runs. */
typedef struct md_frame {
    unsigned char *params, *state, *io, *arena;
    const void *trace;    /* NULL: nobody asks what steps write */
    struct md_pace *pace; /* of what runs on several threads; NULL: nothing does */
} md_frame;

#endif
