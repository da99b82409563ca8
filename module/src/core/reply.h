#ifndef SHARDQA_REPLY_H
#define SHARDQA_REPLY_H

#include <stddef.h>

#include "core/redis_api.h"

/* Replies with one RESP2 or RESP3 value, which must be well formed (resp_is_one_value); RESP3
 * types become RESP2 ones for clients that speak RESP2. Returns REDIS_OK. */
int reply_with_resp(RedisCtx *ctx, const char *resp, size_t length);

#endif
