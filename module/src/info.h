#ifndef SHARDQA_INFO_H
#define SHARDQA_INFO_H

#include "core/redis_api.h"

/* The sections of INFO shardqa. */
void info_sections(RedisInfoCtx *ctx, int for_crash_report);

#endif
