/* Sections: while one is open Redis serves the functions of that section and nobody else.
 *
 * `with atomic():` opens one; a trigger of mode='sync' inside a transaction or a script is one.
 * The main thread itself reads the worker's frames then, so a section has a deadline: past it
 * Redis goes on, and the function gets errors. */
#ifndef SHARDQA_SECTION_H
#define SHARDQA_SECTION_H

#include <stdbool.h>

#include "core/frame.h"
#include "core/state.h"

enum { SECTION_MS = 1000 };

bool section_frame_lock(const struct frame *frame);
bool section_frame_unlock(const struct frame *frame);
void section_run(void); /* until the open section ends; none is open: returns at once */

bool section_may_be(RedisCtx *ctx);

/* Sends a command for a client that can't be blocked, and waits for the function's reply. */
int section_trigger(RedisCtx *ctx, RedisString **argv, int argc);

#endif
