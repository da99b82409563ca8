#ifndef SHARDQA_INFO_H
#define SHARDQA_INFO_H

#include "core/redis_api.h"

/* The sections of INFO shardqa. */
void info_sections(RedisInfoCtx *ctx, int for_crash_report);
int shardqa_info(RedisCtx *ctx, RedisString **argv, int argc);
int info_install(RedisCtx *ctx); /* INFO shardqa works whatever NAME is */

#endif
