/* Requests that wait for the worker, and the clients that wait for them. */
#ifndef SHARDQA_PENDING_H
#define SHARDQA_PENDING_H

#include <stdbool.h>

#include "core/state.h"

enum pending_kind {
    PENDING_REQUEST, /* an RG.* command */
    PENDING_MISS,    /* a hooked GET that found nothing; may have several waiters */
    PENDING_STORE,   /* AI.MODELSTORE waits for the worker to accept the file */
    PENDING_RELOAD,  /* a model sent again to a new worker; nobody waits */
    PENDING_EXECUTE, /* AI.MODELEXECUTE and the like */
    PENDING_DAG,     /* AI.DAGEXECUTE and the like */
    PENDING_REPLAY,  /* a stored session that a worker runs again; nobody waits */
    PENDING_DUMP,    /* RG.DUMPREGISTRATIONS */
    PENDING_HOOKED   /* the functions of events that a hooked command caused; data is what Redis replied */
};

struct waiter {
    struct waiter *next;
    RedisBlocked *client;
    struct pending *pending; /* its owner */
    RedisTimer timer;        /* valid while `timed` */
    bool timed;
    long long timeout_ms; /* of that timer */
    bool plus_timedout; /* RedisAI's way: past the deadline reply +TIMEDOUT, not an error */
};

struct pending {
    uint64_t id;
    enum pending_kind kind;
    uint64_t started_us; /* monotonic */
    struct waiter *waiters; /* owned */
    bool after_registrations; /* its reply must not overtake deferred REGISTER frames */
    bool timed_trigger;       /* counts in trigger_latency */
    char *flight;             /* owned key in shardqa.flights, or NULL */
    size_t flight_length;
    char *user;               /* owned; whose rights what runs for it has, NULL: nobody's */
    void *data;               /* owned by free_data: what the kind needs when the reply comes */
    void (*free_data)(void *);
    void (*on_timeout)(struct pending *); /* NULL, or called when a deadline passes */
};

struct pending *pending_new(enum pending_kind kind);
struct pending *pending_find(uint64_t id);

/* Blocks the client of ctx until the request is finished. timeout_ms 0: no deadline. */
void pending_block(RedisCtx *ctx, struct pending *pending, long long timeout_ms, bool plus_timedout);

/* A trigger's function has done a part of its work: whoever waits for it has the whole deadline
 * again. */
void pending_goes_on(uint64_t id);

/* Answers all waiters with one RESP value and frees the request. */
void pending_finish(struct pending *pending, const char *resp, size_t length);
void pending_fail(struct pending *pending, const char *error); /* `error` without the '-' */
void pending_free(struct pending *pending);                    /* nobody waits any more */
void pending_fail_all(const char *error);
/* Fails what clients wait for, but for requests that `keep` holds for, and tells the worker that
 * nobody waits any more. */
void pending_fail_unless(bool (*keep)(uint64_t id), const char *error);

/* May this client be blocked at all, and is there room? Else the error is replied already. */
bool pending_may_block(RedisCtx *ctx, const char *refusal);
bool pending_has_room(RedisCtx *ctx);

#endif
