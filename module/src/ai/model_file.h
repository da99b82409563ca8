/* Large models in files: a folder (module argument MODELS) that all nodes of a host may share. A
 * file is named by its content, so a model that several nodes store lies there once, and its pages
 * are in memory once: every node maps it, as its worker does.
 *
 * A process holds a shared lock (flock) on each file that it maps. Whoever lets go of a file last
 * takes it away; what a crash left behind is taken away by the next start. The keys themselves are
 * in RDB and AOF: the folder is no place of record. Main thread only. */
#ifndef SHARDQA_MODEL_FILE_H
#define SHARDQA_MODEL_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/buffer.h"
#include "core/frame.h"

#define MODEL_IN_MEMORY (FRAME_MAX_PAYLOAD - FRAME_SPARE) /* bytes of a model that goes to the worker in a frame */
#define MODEL_IN_FILE ((size_t)16 << 30)

struct blob;

struct model_file {
    int fd;      /* locked */
    char path[]; /* absolute */
};

/* The bytes of a model on their way into memory, or into a file where there is a folder and they
 * are many. */
struct blob_writer {
    struct buffer heap; /* owned; empty while `fd` is there */
    int fd;             /* of a file without a name yet; -1: none */
    size_t length; /* bytes so far */
};

void model_files_sweep(void); /* once, when the module is loaded */
void blob_begin(struct blob_writer *w, size_t expected);
void blob_add(struct blob_writer *w, const char *data, size_t length);
struct blob *blob_end(struct blob_writer *w); /* one reference */

#endif
