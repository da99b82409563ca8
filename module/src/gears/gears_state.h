/* What the module knows of registered functions, and their frames, beside core. */
#ifndef SHARDQA_GEARS_STATE_H
#define SHARDQA_GEARS_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/frame.h"
#include "core/latency.h"
#include "core/redis_api.h"

struct caused_events; /* hooked_command.h */
struct watch;         /* events.c */
struct registration;

/* Types of the frames of RG.*, beside those of core. */
enum {
    FRAME_SESSION = 2,
    FRAME_REQUEST = 4,
    FRAME_MISS = 5,
    FRAME_EVENT = 6,
    FRAME_RESYNC = 13,
    FRAME_FORGET = 14,
    FRAME_HOOK = 15,
    FRAME_REGISTER = 68,
    FRAME_UNREGISTER = 69,
    FRAME_WATCH = 70,
    FRAME_DONE = 77
};

struct gears_counters {
    long long hits;        /* GETs of a hooked prefix that found a value */
    long long misses;      /* … that went to the worker */
    long long shared;      /* … that joined a computation under way */
    long long nil_misses;  /* … in MULTI, scripts or while loading: nil */
    long long events;      /* EVENT frames */
    long long events_lost; /* dropped because the queue was full; a RESYNC followed */
};

struct gears_state {
    struct gears_counters counters;
    struct latency miss_latency; /* from a client's command to its reply, as the next */
    struct latency trigger_latency;
    RedisDict *sessions;          /* session id -> struct session, owned */
    uint64_t last_session;        /* how many sessions have been kept so far */
    struct registration **active; /* owned array of the registrations in force, borrowed from the sessions */
    long long registrations;      /* entries of `active` */
    long long hooks;              /* of them: those that hook commands */
    long long event_registrations; /* of them: those that key events go to */
    RedisDict *hook_table;        /* name of a command -> struct hook, owned */
    struct caused_events *caused_events; /* NULL, or what notes the events of the hooked command under way */
    struct watch *watches;        /* owned list; gone when the worker dies */
    bool events_overflowed;       /* events of watches were dropped, and no RESYNC has followed yet */
    RedisDict *kept_events;       /* number (pending_key) -> struct kept_event, owned */
    size_t kept_bytes;            /* that these take */
    uint64_t last_event;          /* number of the last one that was kept */
    uint64_t sent_event;          /* number of the last one that this worker got */
    RedisType *type;              /* only for its aux data: registrations in the RDB */
};

extern struct gears_state gears;

#endif
