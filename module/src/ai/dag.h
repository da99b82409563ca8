#ifndef SHARDQA_DAG_H
#define SHARDQA_DAG_H

#include <stdbool.h>

#include "core/frame.h"
#include "core/redis_api.h"

int ai_dag(RedisCtx *ctx, RedisString **argv, int argc); /* AI.DAGEXECUTE, DAGRUN, and their _RO */

/* A DAG_DONE frame: writes what is persisted, counts, answers. False: the frame is malformed. */
bool dag_frame_done(const struct frame *frame);

#endif
