/* What happens in BEFORE_SLEEP, and the dispatch of frames from the worker. */
#ifndef SHARDQA_TICK_H
#define SHARDQA_TICK_H

#include "state.h"

void tick_run(void);
void tick_wake(void *unused); /* a one-shot callback: does nothing, but the loop turns once more */
void deferred_clear(void);

#endif
