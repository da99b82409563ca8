#ifndef SHARDQA_EXECUTE_H
#define SHARDQA_EXECUTE_H

#include <stdbool.h>

#include "core/frame.h"
#include "core/redis_api.h"

struct model;

int ai_execute(RedisCtx *ctx, RedisString **argv, int argc); /* AI.MODELEXECUTE, MODELRUN, SCRIPTEXECUTE, SCRIPTRUN */

/* Why this model or script can't be run on so many inputs and outputs; NULL: it can. */
const char *execute_refusal(const struct model *model, int inputs, int outputs);

/* A TENSORS frame: writes the outputs, counts, answers. False: the frame is malformed. */
bool execute_frame_tensors(const struct frame *frame);

#endif
