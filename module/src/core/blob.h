/* Bytes that several hold: a model's file is shared by its key, by copies of the key and by the
 * queue to the worker, which sends it from where it lies. */
#ifndef SHARDQA_BLOB_H
#define SHARDQA_BLOB_H

#include <stdatomic.h>
#include <stddef.h>

struct model_file; /* of who has mapped a file */

struct blob {
    atomic_long references; /* any thread */
    size_t length;                   /* bytes */
    char *data;                      /* owned; a file's mapping where `file` is set */
    struct model_file *file;         /* owned; NULL: in memory */
    void (*free_data)(struct blob *); /* frees data and file when the last reference goes; any thread */
};

struct blob *blob_new(char *data, size_t length); /* takes `data`; one reference */
struct blob *blob_retain(struct blob *blob);
void blob_release(struct blob *blob); /* any thread; NULL: nothing */

#endif
