/* What core calls of the rooms above it, ai and gears, which it does not know. module.c says
 * which functions. All of it happens in BEFORE_SLEEP, but for `cron`. */
#ifndef SHARDQA_ABOVE_H
#define SHARDQA_ABOVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/activity.h"
#include "core/frame.h"

struct above {
    void (*cron)(void);                            /* ten times a second */
    void (*keyspace_loaded)(void);                 /* another data set is in memory since the last tick */
    void (*worker_started)(void);                  /* sends the frames that a new worker gets before START */
    /* a frame that core does not know takes effect; false: it is malformed */
    bool (*frame)(const struct frame *frame);
    bool (*writes)(const struct frame *frame);     /* … and waits while Redis takes no writes */
    void (*tick_end)(void);                        /* sends what came up in this tick; only while there is a worker */
    void (*model_fatal)(uint64_t id, enum activity_end end, bool alone); /* the worker ended while it ran this model */
    void (*worker_gone)(void);                     /* what ai and gears noted of the worker that ended is void */
    /* whose rights a session has; borrowed, NULL: there is no such session */
    const char *(*session_user)(const char *id, size_t length);
};

#endif
