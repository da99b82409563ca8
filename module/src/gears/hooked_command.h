/* The command under way whose client may wait, and the key events that it causes. */
#ifndef SHARDQA_HOOKED_COMMAND_H
#define SHARDQA_HOOKED_COMMAND_H

#include <stddef.h>

#include "core/redis_api.h"

struct hook; /* hooks.h */
struct registration;

/* A key event that the command under way caused, for a registration whose client waits. */
struct caused_event {
    struct caused_event *next;
    char *registration; /* id; owned, as are the next two */
    char *event;
    char *key;
    size_t key_length; /* bytes */
    const char *type; /* static */
};

/* While a command runs whose client may wait. */
struct caused_events {
    const struct hook *hook; /* that the command met; borrowed */
    struct caused_event *first; /* owned, in their order */
    struct caused_event **end; /* where the next one is put */
};

void note_caused_event(struct caused_events *events, const struct registration *registration, const char *event,
                       const char *key, size_t length, const char *type);

int shardqa_hook(RedisCtx *ctx, RedisString **argv, int argc);

#endif
