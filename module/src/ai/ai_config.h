#ifndef SHARDQA_AI_CONFIG_H
#define SHARDQA_AI_CONFIG_H

#include "core/redis_api.h"

int ai_config(RedisCtx *ctx, RedisString **argv, int argc);

#endif
