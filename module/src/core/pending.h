/* Requests that wait for the worker, and the clients that wait for them. */
#ifndef SHARDQA_PENDING_H
#define SHARDQA_PENDING_H

#include <stdbool.h>

#include "core/state.h"

struct waiter {
    struct waiter *next;
    RedisBlocked *client; /* Redis' until it is unblocked */
    struct pending *pending; /* its owner */
    RedisTimer timer;        /* valid while `timed` */
    bool timed; /* it has a deadline that has not passed */
    long long timeout_ms; /* of that timer */
    bool plus_timedout; /* RedisAI's way: past the deadline reply +TIMEDOUT, not an error */
};

/* A request under way. Who makes one says by callbacks what is particular about it. */
struct pending {
    uint64_t id; /* also of its frames */
    uint64_t started_us;      /* monotonic */
    struct waiter *waiters;   /* owned; none: the module itself asked */
    uint8_t answer;           /* type of the frame besides REPLY that answers it; 0: none does */
    bool after_registrations; /* its reply must not overtake deferred REGISTER frames */
    bool reply_writes;        /* its reply leads to a write, which waits while Redis takes none */
    bool renewable;           /* PROGRESS gives those who wait their whole time again */
    struct latency *latency;  /* borrowed; the histogram that its time counts in, NULL: none */
    char *join_key;           /* owned key in shardqa.joinable, or NULL */
    size_t join_length; /* bytes */
    char *user;               /* owned; whose rights what runs for it has, NULL: nobody's */
    void *data;               /* owned, by free_data; what the callbacks need */
    void (*free_data)(void *); /* NULL: there is nothing to free */
    /* replies to each who waits, however it ended; NULL: they get what ended it */
    int (*reply)(RedisCtx *, RedisString **, int);
    /* ends the request; NULL: all who wait get the reply */
    void (*on_reply)(struct pending *, const char *resp, size_t length);
    void (*on_timeout)(struct pending *);  /* NULL, or called when a deadline passes */
    void (*on_fatality)(struct pending *); /* NULL, or called when the worker ended by what it did for this request */
};

struct pending *pending_new(void);
struct pending *pending_find(uint64_t id);
void pending_key(uint64_t id, unsigned char bytes[8]); /* what tables have requests by */

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

/* May this client be blocked at all, and is there room? Else the error is replied, unless NULL. */
bool pending_may_block(RedisCtx *ctx, const char *refusal);
bool pending_has_room(RedisCtx *ctx);
bool pending_has_room_soon(RedisCtx *ctx);

#endif
