/* What happens in BEFORE_SLEEP, and the dispatch of frames from the worker. */
#ifndef SHARDQA_TICK_H
#define SHARDQA_TICK_H

#include "core/frame.h"
#include "core/state.h"

enum { DEFERRED_LIMIT = 64 << 20 /* bytes of frames that may wait; then reading stops */ };

void tick_run(void);
void tick_handle(const struct frame *frame); /* one frame, now */
void tick_defer(const struct frame *frame);  /* one frame, in a later tick; it is copied */

#endif
