/* Tensors: the values of AI_TENSOR keys. */
#ifndef SHARDQA_TENSOR_H
#define SHARDQA_TENSOR_H

#include <stdbool.h>
#include <stddef.h>

#include "ai/tensor_layout.h"
#include "core/redis_api.h"

struct tensor {
    const struct dtype *dtype; /* static */
    int rank;         /* number of dimensions; 0: one element */
    long long *shape; /* owned, `rank` numbers */
    size_t bytes; /* of data */
    char *data; /* owned, little endian, C order; STRING: NUL-terminated strings one after another */
};

int tensor_type_create(RedisCtx *ctx);

struct buffer;
void tensor_add_layout(struct buffer *to, const struct tensor *tensor); /* `FLOAT 1,128` */

/* What AI.TENSORSET's arguments say; argv[0] is its name. NULL and `error` filled (static text)
 * when they are wrong. The caller frees it. */
struct tensor *tensor_read(RedisString **argv, int argc, const char **error);
void tensor_free(void *tensor); /* any thread: only memory */

enum { TENSOR_META = 1, TENSOR_BLOB = 2, TENSOR_VALUES = 4 };
const char *tensor_read_format(RedisString **argv, int argc, int *format); /* of AI.TENSORGET; NULL, or the error */

/* NULL and the error replied when the key holds no tensor. Borrowed from the key. */
struct tensor *tensor_open(RedisCtx *ctx, RedisString *key);

int ai_tensorset(RedisCtx *ctx, RedisString **argv, int argc);
int ai_tensorget(RedisCtx *ctx, RedisString **argv, int argc);

#endif
