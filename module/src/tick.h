/* What happens in BEFORE_SLEEP, and the dispatch of frames from the worker. */
#ifndef SHARDQA_TICK_H
#define SHARDQA_TICK_H

#include "state.h"

void tick_run(void);
void tick_frames(void);      /* handles frames of the worker, as many as a tick takes */
void deferred_clear(void);

#endif
