/* Tensors that a frame of the worker brings: their layout (`FLOAT 1,128;FLOAT 1,128`) and their
 * data. */
#ifndef SHARDQA_OUTPUTS_H
#define SHARDQA_OUTPUTS_H

#include <stdbool.h>

#include "core/frame.h"
#include "core/redis_api.h"

struct outputs {
    struct frame_bytes layout; /* what is left of it */
    struct frame_list data;    /* the next item is the next tensor's */
};

/* Are the next `count` tensors well formed, and is the layout at its end behind them? *outputs
 * is not moved. */
bool outputs_are_valid(struct outputs outputs, size_t count);

/* Writes them to the keys by AI.TENSORSET. False: `error` is filled. */
bool outputs_write(struct outputs *outputs, RedisString **keys, size_t count, char *error, size_t error_size);

#endif
