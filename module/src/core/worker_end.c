#include "core/worker_end.h"

#include <stdio.h>

#include "core/above.h"
#include "core/activity.h"
#include "core/pending.h"
#include "core/state.h"

/* What ran alone is blamed more than what ran beside others. */
static void blame(const struct activity_slot *slot, enum activity_end end, bool alone) {
    if (slot->kind != ACTIVITY_FUNCTION) shardqa.above->model_fatal(slot->subject, end, alone);
    struct pending *pending = slot->request ? pending_find(slot->request) : NULL;
    bool its_own_doing = end == ENDED_BY_ITSELF || end == ENDED_BY_WORK;
    if (pending && pending->on_fatality && its_own_doing) pending->on_fatality(pending);
}

/* Models and sessions that may have ended it pay for it. */
void worker_end_blame(int signal) {
    struct activity *a = &shardqa.activity;
    struct activity_slot slot;
    enum activity_end end = activity_end(signal);
    size_t at = 0, running = 0;
    a->last_running[0] = '\0';
    a->silent = false;
    if (a->page == NULL) return;
    for (int i = 0; i < ACTIVITY_SLOTS; i++) running += activity_slot(i, &slot);
    for (int i = 0; i < ACTIVITY_SLOTS; i++) {
        if (!activity_slot(i, &slot)) continue;
        blame(&slot, end, running == 1);
        if (at + slot.length + 3 < sizeof a->last_running)
            at += (size_t)snprintf(a->last_running + at, sizeof a->last_running - at, "%s%s", at > 0 ? "; " : "",
                                   slot.name);
    }
    if (at > 0) redis.Log(shardqa.ctx, "warning", "when the worker ended it was running: %s", a->last_running);
}
