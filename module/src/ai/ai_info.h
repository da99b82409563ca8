#ifndef SHARDQA_AI_INFO_H
#define SHARDQA_AI_INFO_H

#include "core/redis_api.h"

/* RedisAI's sections of INFO, under its names where the module was loaded with NAME ai. */
void ai_info_sections(RedisInfoCtx *ctx);

#endif
