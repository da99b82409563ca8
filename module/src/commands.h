#ifndef SHARDQA_COMMANDS_H
#define SHARDQA_COMMANDS_H

#include "core/redis_api.h"

/* Creates all commands of the one table; returns NULL or the name of the command that Redis
 * refused. */
const char *commands_create(RedisCtx *ctx);
int commands_help(RedisCtx *ctx, RedisString **argv, int argc);
int commands_refuse(RedisCtx *ctx, RedisString **argv, int argc);

#endif
