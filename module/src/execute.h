#ifndef SHARDQA_EXECUTE_H
#define SHARDQA_EXECUTE_H

#include <stdbool.h>

#include "frame.h"
#include "redis_api.h"

struct pending;

int ai_modelexecute(RedisCtx *ctx, RedisString **argv, int argc);

/* A TENSORS frame: writes the outputs, counts, answers. False: the frame is malformed. */
bool execute_frame_tensors(const struct frame *frame);

/* The worker answered EXECUTE with an error. */
void execute_failed(struct pending *pending, const char *resp, size_t length);

#endif
