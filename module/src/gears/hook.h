#ifndef SHARDQA_HOOK_H
#define SHARDQA_HOOK_H

#include "core/redis_api.h"

/* Rewrites `GET key` to `shardqa.get key` where a registration hooks the key's misses, and puts
 * `shardqa.hook` before other hooked commands (hooked.c). */
int hook_install(RedisCtx *ctx);

int shardqa_get(RedisCtx *ctx, RedisString **argv, int argc);

#endif
