/* Scripts: the values of AI_SCRIPT keys. A script lives as a model does (model.h), its source in
 * the place of the file. */
#ifndef SHARDQA_SCRIPT_H
#define SHARDQA_SCRIPT_H

#include "core/redis_api.h"

struct model;

/* NULL and the error replied when the key holds no script. Borrowed from the key. */
struct model *script_open(RedisCtx *ctx, RedisString *key);

int ai_scriptstore(RedisCtx *ctx, RedisString **argv, int argc);
int ai_scriptset(RedisCtx *ctx, RedisString **argv, int argc);
int ai_scriptget(RedisCtx *ctx, RedisString **argv, int argc);
int ai_scriptdel(RedisCtx *ctx, RedisString **argv, int argc);

#endif
