/* AI.CONFIG and RedisAI's load arguments. */
#ifndef SHARDQA_CONFIG_H
#define SHARDQA_CONFIG_H

#include <stdbool.h>

#include "core/redis_api.h"

/* Is `name` one of RedisAI's load arguments? Then *wanted is NULL, or what the value should have
 * been. */
bool config_argument(const RedisString *name, const RedisString *value, const char **wanted);

int ai_config(RedisCtx *ctx, RedisString **argv, int argc);

#endif
