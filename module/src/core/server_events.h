/* What the server says of itself: its loop, its role, its data set, its end. */
#ifndef SHARDQA_SERVER_EVENTS_H
#define SHARDQA_SERVER_EVENTS_H

#include "core/redis_api.h"

int server_events_subscribe(RedisCtx *ctx);

#endif
