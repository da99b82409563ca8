#ifndef SHARDQA_MISS_H
#define SHARDQA_MISS_H

#include "core/redis_api.h"

int shardqa_get(RedisCtx *ctx, RedisString **argv, int argc);

#endif
