/* Blocked clients.
 *
 * Redis' own timeout of blocked clients can lose a reply on 7.0 and 7.2 (the deadline passing
 * between UnblockClient and the reply), so clients are blocked without one and each waiter has a
 * timer of ours. UnblockClient is called exactly once per BlockClient, also for a client that
 * left. The private data handed to it is an `outcome` (owned by Redis until free_outcome); reply
 * callbacks only reply. */
#include "core/pending.h"

#include <string.h>

#include "core/activity.h"
#include "core/reply.h"
#include "core/resp.h"
#include "core/text.h"
#include "core/worker_link.h"

struct outcome {
    long references; /* main thread only */
    size_t length; /* bytes of resp */
    char resp[]; /* one whole value */
};

/* A reply that several clients may share. */
static struct outcome *outcome_new(const char *resp, size_t length) {
    struct outcome *outcome = redis.Alloc(sizeof *outcome + length);
    outcome->references = 1;
    outcome->length = length;
    memcpy(outcome->resp, resp, length);
    return outcome;
}

/* Redis calls it once per client that was unblocked with it. */
static void free_outcome(RedisCtx *ctx, void *data) {
    struct outcome *outcome = data;
    (void)ctx;
    if (outcome && --outcome->references == 0) redis.Free(outcome);
}

/* Redis calls it when the client is unblocked. */
static int on_reply(RedisCtx *ctx, RedisString **argv, int argc) {
    struct outcome *outcome = redis.GetBlockedClientPrivateData(ctx);
    (void)argv;
    (void)argc;
    return reply_with_resp(ctx, outcome->resp, outcome->length);
}

/* ---- table of requests ---- */

/* Big endian, so that the table is in the order of time. */
void pending_key(uint64_t id, unsigned char bytes[8]) {
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(id >> (56 - 8 * i));
}

/* In the table at once; whoever made it may still free it. */
struct pending *pending_new(void) {
    unsigned char key[8];
    struct pending *pending = redis.Calloc(1, sizeof *pending);
    pending->id = ++shardqa.last_id;
    pending->started_us = redis.MonotonicMicroseconds();
    pending_key(pending->id, key);
    redis.DictSetC(shardqa.pending, key, sizeof key, pending);
    return pending;
}

/* NULL where it was answered, cancelled or timed out meanwhile. */
struct pending *pending_find(uint64_t id) {
    unsigned char key[8];
    pending_key(id, key);
    return redis.DictGetC(shardqa.pending, key, sizeof key, NULL);
}

/* Out of both tables. Its waiters must be gone. */
void pending_free(struct pending *pending) {
    unsigned char key[8];
    pending_key(pending->id, key);
    redis.DictDelC(shardqa.pending, key, sizeof key, NULL);
    if (pending->join_key) {
        redis.DictDelC(shardqa.joinable, pending->join_key, pending->join_length, NULL);
        redis.Free(pending->join_key);
    }
    if (pending->free_data) pending->free_data(pending->data);
    redis.Free(pending->user);
    redis.Free(pending);
}

/* ---- waiters ---- */

/* Unlinks the waiter from everything and frees it; the client itself is not touched. */
static void waiter_free(struct waiter *waiter) {
    struct waiter **at = &waiter->pending->waiters;
    while (*at != waiter) at = &(*at)->next;
    *at = waiter->next;
    if (waiter->timed) redis.StopTimer(shardqa.ctx, waiter->timer, NULL);
    redis.DictDelC(shardqa.waiters, &waiter->client, sizeof waiter->client, NULL);
    shardqa.waiting--;
    redis.Free(waiter);
}

static void waiter_answer(struct waiter *waiter, struct outcome *outcome) {
    RedisBlocked *client = waiter->client;
    waiter_free(waiter);
    outcome->references++;
    redis.BlockedClientMeasureTimeEnd(client);
    redis.UnblockClient(client, outcome);
}

/* The worker may end what it does for this request. */
static void tell_cancelled(uint64_t id) {
    struct frame_writer w;
    frame_begin(&w, FRAME_CANCEL, id);
    frame_end(&w);
    if (link_usable() || link_returns())
        link_request(&w); /* the same queue as the request itself, so that it can't overtake it */
    else
        buffer_free(&w.buffer);
}

/* The last client has left, so nobody wants the answer. */
static void cancel_if_alone(struct pending *pending) {
    if (pending->waiters) return;
    tell_cancelled(pending->id);
    pending_free(pending);
}

/* A client left while it waited. */
static void on_disconnect(RedisCtx *ctx, RedisBlocked *client) {
    (void)ctx;
    struct waiter *waiter = redis.DictGetC(shardqa.waiters, &client, sizeof client, NULL);
    if (waiter == NULL) return; /* was answered already */
    struct pending *pending = waiter->pending;
    shardqa.counters.cancelled++;
    waiter_free(waiter);
    redis.UnblockClient(client, NULL);
    cancel_if_alone(pending);
}

/* A client's time is over. Others may go on waiting for the same answer. */
static void on_deadline(RedisCtx *ctx, void *data) {
    struct waiter *waiter = data;
    struct pending *pending = waiter->pending;
    static const char refused[] =
        "-TIMEOUT the worker did not answer in time; ask for less, or load the module with a larger TIMEOUT\r\n";
    static const char timedout[] = "+TIMEDOUT\r\n";
    struct outcome *outcome =
        waiter->plus_timedout ? outcome_new(timedout, sizeof timedout - 1) : outcome_new(refused, sizeof refused - 1);
    waiter->timed = false;
    shardqa.counters.timeouts++;
    if (pending->on_timeout) pending->on_timeout(pending);
    waiter_answer(waiter, outcome);
    free_outcome(ctx, outcome);
    cancel_if_alone(pending);
}

/* One per waiter: see the head of this file. */
static void start_timer(struct waiter *waiter) {
    waiter->timer = redis.CreateTimer(shardqa.ctx, waiter->timeout_ms, on_deadline, waiter);
    waiter->timed = true;
}

/* PROGRESS: all who wait get their whole time again. */
void pending_goes_on(uint64_t id) {
    struct pending *pending = pending_find(id);
    if (pending == NULL || !pending->renewable) return;
    for (struct waiter *waiter = pending->waiters; waiter; waiter = waiter->next) {
        if (!waiter->timed) continue;
        redis.StopTimer(shardqa.ctx, waiter->timer, NULL);
        start_timer(waiter);
    }
}

/* From here on the client waits for `pending`. */
void pending_block(RedisCtx *ctx, struct pending *pending, long long timeout_ms, bool plus_timedout) {
    struct waiter *waiter = redis.Calloc(1, sizeof *waiter);
    waiter->client = redis.BlockClient(ctx, pending->reply ? pending->reply : on_reply, NULL, free_outcome, 0);
    waiter->pending = pending;
    waiter->plus_timedout = plus_timedout;
    waiter->next = pending->waiters;
    pending->waiters = waiter;
    redis.SetDisconnectCallback(waiter->client, on_disconnect);
    redis.BlockedClientMeasureTimeStart(waiter->client);
    if (timeout_ms > 0) {
        waiter->timeout_ms = timeout_ms;
        start_timer(waiter);
    }
    redis.DictSetC(shardqa.waiters, &waiter->client, sizeof waiter->client, waiter);
    shardqa.waiting++;
}

/* The answer is there: all who wait get it. */
void pending_finish(struct pending *pending, const char *resp, size_t length) {
    struct outcome *outcome = outcome_new(resp, length);
    while (pending->waiters) waiter_answer(pending->waiters, outcome);
    free_outcome(NULL, outcome);
    pending_free(pending);
}

void pending_fail(struct pending *pending, const char *error) {
    struct buffer line = {0};
    resp_add_error(&line, error);
    pending_finish(pending, line.data, line.length);
    buffer_free(&line);
}

/* The worker has gone. Each answer may change the table, so its first entry is looked up anew. */
void pending_fail_all(const char *error) {
    while (redis.DictSize(shardqa.pending) > 0) {
        struct pending *pending;
        RedisDictIter *iterator = redis.DictIteratorStartC(shardqa.pending, "^", NULL, 0);
        redis.DictNextC(iterator, NULL, (void **)&pending);
        redis.DictIteratorStop(iterator);
        if (pending->waiters) shardqa.counters.failed_by_worker++;
        pending_fail(pending, error);
    }
}

/* The worker is silent: only what it computes for goes on waiting. */
void pending_fail_unless(bool (*keep)(uint64_t id), const char *error) {
    size_t count = 0;
    struct pending *pending, **failing = redis.Alloc(sizeof *failing * (redis.DictSize(shardqa.pending) + 1));
    RedisDictIter *iterator = redis.DictIteratorStartC(shardqa.pending, "^", NULL, 0);
    while (redis.DictNextC(iterator, NULL, (void **)&pending) != NULL)
        if (pending->waiters && !keep(pending->id)) failing[count++] = pending;
    redis.DictIteratorStop(iterator);
    for (size_t i = 0; i < count; i++) {
        shardqa.counters.failed_by_worker++;
        tell_cancelled(failing[i]->id);
        pending_fail(failing[i], error);
    }
    redis.Free(failing);
}

/* ---- admission ---- */

/* Where Redis lets no client wait. False: the refusal is replied. */
bool pending_may_block(RedisCtx *ctx, const char *refusal) {
    int no = CTX_MULTI | CTX_LUA | CTX_DENY_BLOCKING | CTX_REPLICATED | CTX_LOADING | CTX_ASYNC_LOADING;
    if ((redis.GetContextFlags(ctx) & no) == 0) return true;
    if (refusal) redis.ReplyWithError(ctx, refusal);
    return false;
}

static bool admits(RedisCtx *ctx, bool worker) {
    if (!worker) {
        redis.ReplyWithError(ctx, link_unusable_error());
        return false;
    }
    if (activity_silent()) {
        reply_error(
            ctx,
            "TRYAGAIN the worker of this node has not answered for %lld ms; it is replaced if that lasts, try again",
            activity_silent_ms());
        return false;
    }
    if (shardqa.waiting < shardqa.arguments.max_pending && link_has_room()) return true;
    shardqa.counters.busy++;
    reply_error(ctx, "BUSY %lld requests wait for the worker (MAXPENDING %lld) with %zu bytes queued; try again later",
                shardqa.waiting, shardqa.arguments.max_pending, shardqa.link.out.bytes + shardqa.link.requests.bytes);
    return false;
}

/* Admission: a worker that answers, and room for one more. False: the error is replied. */
bool pending_has_room(RedisCtx *ctx) { return admits(ctx, link_usable()); }

/* The same, and a worker that is being restarted is waited for. */
bool pending_has_room_soon(RedisCtx *ctx) { return admits(ctx, link_usable() || link_returns()); }
