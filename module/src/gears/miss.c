/* A GET of a hooked prefix: what is there is replied, a miss asks the worker.
 *
 * A value that is there is read with OpenKey and StringDMA rather than an inner GET, which would
 * count twice in commandstats. But StringDMA rewrites a value that is no plain string in memory
 * (a number, or a short one that shares its object's memory), and reading must not write: those
 * few go through GET. Equal misses of one user at once share one computation (`joinable`). The
 * worker's SET of the answer arrives in a later tick than its reply, so a tracking client sees
 * the reply first and the invalidation after it. */
#include "gears/rg_commands.h"

#include <string.h>

#include "core/pending.h"
#include "core/rights.h"
#include "core/section.h"
#include "core/state.h"
#include "core/text.h"
#include "core/worker_link.h"
#include "gears/gears_state.h"
#include "gears/hooks.h"
#include "gears/registry.h"

enum { EMBEDDED = 44, EMBEDDED_VALKEY = 128 }; /* bytes; the server keeps longer values as plain strings */

/* Whether this registration answers a GET of this key. */
static bool hooks_key(struct registration *registration, void *data) {
    size_t length;
    const char *key = redis.StringPtrLen(data, &length);
    if (length > MISS_KEY_MOST || !registration->hooks_get || !prefix_matches(registration->prefix, key, length))
        return false;
    return gears_may(registration, data, KEY_ACCESS);
}

/* The inner GET, for values that StringDMA would rewrite. */
static bool reply_with_get(RedisCtx *ctx, RedisString *name) {
    RedisReply *reply = redis.Call(ctx, "GET", "0s", name);
    bool good = reply != NULL && redis.CallReplyType(reply) == REPLY_STRING;
    if (good) redis.ReplyWithCallReply(ctx, reply);
    if (reply) redis.FreeCallReply(reply);
    return good;
}

/* Straight from the key's memory, but for short values. */
static void reply_with_string(RedisCtx *ctx, RedisString *name, RedisKey *key) {
    size_t length;
    /* Redis refuses the inner GET inside a transaction on a slot that is being imported */
    size_t embedded = shardqa.valkey ? EMBEDDED_VALKEY : EMBEDDED;
    if (redis.ValueLength(key) <= embedded && reply_with_get(ctx, name)) return;
    const char *value = redis.StringDMA(key, &length, REDIS_READ);
    redis.ReplyWithStringBuffer(ctx, value, length);
}

/* True when the key held something and the reply is out. */
static bool reply_with_value(RedisCtx *ctx, RedisString *name) {
    RedisKey *key = redis.OpenKey(ctx, name, REDIS_READ);
    int type = key ? redis.KeyType(key) : KEYTYPE_EMPTY;
    if (type == KEYTYPE_STRING)
        reply_with_string(ctx, name, key);
    else if (type != KEYTYPE_EMPTY)
        redis.ReplyWithError(ctx, REDIS_WRONGTYPE);
    if (key) redis.CloseKey(key);
    return type != KEYTYPE_EMPTY;
}

/* MISS: the registration and the command that missed. */
static void send_miss(struct pending *pending, const char *registration, RedisString **argv) {
    struct frame_writer w;
    frame_begin(&w, FRAME_MISS, pending->id);
    frame_text(&w, pending->user);
    frame_text(&w, registration);
    text_item(&w, argv[1]);
    frame_text(&w, "get");
    text_item(&w, argv[1]);
    link_request(&w);
}

/* A transaction or a script, and Redis, stand still until the function has answered. */
static int answer_within(RedisCtx *ctx, RedisString **argv, const struct registration *registration) {
    RedisString *id = redis.CreateString(NULL, registration->id, strlen(registration->id));
    RedisString *words[] = {argv[0], id, argv[1]};
    gears.counters.misses++;
    section_trigger(ctx, words, 3);
    redis.FreeString(NULL, id);
    return REDIS_OK;
}

/* Joins the computation of an equal miss, or starts one. */
static int wait_for_answer(RedisCtx *ctx, RedisString **argv, const struct registration *registration) {
    struct buffer join_key = {0};
    size_t length;
    if (!pending_has_room(ctx)) return REDIS_OK;
    char *user = rights_current_user(ctx); /* owned here until the request takes it */
    buffer_add(&join_key, user, strlen(user) + 1); /* what another user's rights let a function find may differ */
    buffer_add(&join_key, registration->id, strlen(registration->id) + 1);
    const char *key = redis.StringPtrLen(argv[1], &length);
    buffer_add(&join_key, key, length);
    /* an equal miss is being computed: wait for its answer */
    struct pending *pending = redis.DictGetC(shardqa.joinable, join_key.data, join_key.length, NULL);
    if (pending) {
        gears.counters.shared++;
        buffer_free(&join_key);
        redis.Free(user);
        pending_block(ctx, pending, shardqa.arguments.timeout_ms, false);
        return REDIS_OK;
    }
    /* the first to ask: the worker computes */
    pending = pending_new();
    pending->latency = &gears.miss_latency;
    pending->user = user;
    pending->join_key = buffer_take(&join_key, &length);
    pending->join_length = length;
    redis.DictSetC(shardqa.joinable, pending->join_key, length, pending);
    gears.counters.misses++;
    pending_block(ctx, pending, shardqa.arguments.timeout_ms, false);
    send_miss(pending, registration->id, argv);
    return REDIS_OK;
}

/* shardqa.get key: what GET becomes */
int shardqa_get(RedisCtx *ctx, RedisString **argv, int argc) {
    if (argc != 2) return redis.WrongArity(ctx);
    if (reply_with_value(ctx, argv[1])) {
        gears.counters.hits++;
        return REDIS_OK;
    }
    struct registration *registration = gears_find(hooks_key, argv[1]);
    bool inside = registration && registration->sync && section_may_be(ctx) && redis.GetSelectedDb(ctx) == 0;
    if (registration && (inside || !hooks_let_nobody_wait(ctx))) {
        const char *inactive = registration->session->inactive;
        if (inactive) return reply_error(ctx, "ERR registration %s is not active: %s", registration->id, inactive);
        return inside ? answer_within(ctx, argv, registration) : wait_for_answer(ctx, argv, registration);
    }
    gears.counters.nil_misses++;
    return redis.ReplyWithNull(ctx);
}
