/* Key events and replaced keyspaces -> frames. */
#ifndef SHARDQA_EVENTS_H
#define SHARDQA_EVENTS_H

#include <stdbool.h>

#include "core/frame.h"
#include "core/state.h"

int events_subscribe(RedisCtx *ctx);
bool events_frame_watch(const struct frame *frame);
void events_forget_worker(void);
void events_keyspace_loaded(void); /* another data set is in memory */
void events_tick(void); /* tells of an overflow once there is room again */

#endif
