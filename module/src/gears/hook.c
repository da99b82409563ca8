/* The filter that finds hooked commands; and the commonest of them: a GET of a hooked prefix
 * that misses asks the worker.
 *
 * The filter runs before authentication, inside transactions and for the master's stream, and
 * twice for a paused command: it only renames, and the command itself decides whether it may
 * wait. A value that is there is read with OpenKey and StringDMA rather than an inner GET, which
 * would count twice in commandstats. But StringDMA rewrites a value that is no plain string in
 * memory (a number, or a short one that shares its object's memory), and reading must not write:
 * those few go through GET. Equal misses of one user at once share one computation (`flights`).
 * The worker's SET of the answer arrives in a later tick than its reply, so a tracking client
 * sees the reply first and the invalidation after it. */
#include "gears/hook.h"

#include <string.h>
#include <strings.h>

#include "core/pending.h"
#include "core/rights.h"
#include "core/state.h"
#include "core/text.h"
#include "core/worker_link.h"
#include "gears/gears_state.h"
#include "gears/hooked.h"
#include "gears/registry.h"

enum { EMBEDDED = 44, EMBEDDED_VALKEY = 128 }; /* bytes; the server keeps longer values as plain strings */
enum { MAX_KEY = 65536 }; /* bytes; a longer key is never hooked (it travels twice in a MISS frame, and a frame has a bound) */

struct key_text {
    const char *text;
    size_t length;
};

/* Whether this registration answers a GET of this key. */
static bool hooks_key(struct registration *registration, void *data) {
    struct key_text *key = data;
    return key->length <= MAX_KEY && registration->hooks_get && prefix_matches(registration->prefix, key->text, key->length);
}

enum way {
    WAY_PLAIN, /* Redis runs it */
    WAY_GET,   /* a GET whose misses alone are hooked: shardqa.get */
    WAY_HOOK   /* any other: shardqa.hook */
};

/* What becomes of a command that somebody hooks. */
static enum way way_of(const struct hooked *hooked, bool is_get, const struct key_text *key) {
    enum way way = WAY_PLAIN;
    for (size_t i = 0; i < hooked->count; i++) {
        struct registration *r = hooked->registrations[i];
        if (!hooked_takes(hooked, r, key->text, key->length)) continue;
        if (!is_get || !r->hooks_get) return WAY_HOOK;
        if (key->length <= MAX_KEY) way = WAY_GET;
    }
    return way;
}

/* The command keeps its own name behind this one. */
static void put_before(RedisFilterCtx *filter_ctx, const char *name) {
    redis.CommandFilterArgInsert(filter_ctx, 0, redis.CreateString(NULL, name, strlen(name)));
}

/* Runs before every command of every client, so it gives up as early as it can. */
static void filter(RedisFilterCtx *filter_ctx) {
    struct key_text key = {0};
    size_t length;
    if (gears.hooks == 0 || !shardqa.master) return;
    int count = redis.CommandFilterArgsCount(filter_ctx);
    const char *name = redis.StringPtrLen(redis.CommandFilterArgGet(filter_ctx, 0), &length);
    const struct hooked *hooked = hooked_find(name, length);
    if (hooked == NULL) return;
    if (hooked->first > 0 && hooked->first < count) key.text = redis.StringPtrLen(redis.CommandFilterArgGet(filter_ctx, hooked->first), &key.length);
    bool is_get = count == 2 && length == 3 && strncasecmp(name, "get", 3) == 0;
    switch (way_of(hooked, is_get, &key)) {
    case WAY_PLAIN: break;
    case WAY_GET: redis.CommandFilterArgReplace(filter_ctx, 0, redis.CreateString(NULL, "shardqa.get", 11)); break;
    case WAY_HOOK: put_before(filter_ctx, hooked->writes ? "shardqa.hook" : "shardqa.hookread"); break;
    }
}

int hook_install(RedisCtx *ctx) { return redis.RegisterCommandFilter(ctx, filter, FILTER_NOSELF) ? REDIS_OK : REDIS_ERR; }

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

/* Where a client can't be blocked, or must not be answered by a worker. */
static bool must_not_wait(RedisCtx *ctx) {
    int no = CTX_MULTI | CTX_LUA | CTX_DENY_BLOCKING | CTX_REPLICATED | CTX_LOADING | CTX_ASYNC_LOADING | CTX_SLAVE;
    return redis.GetContextFlags(ctx) & no || redis.GetSelectedDb(ctx) != 0;
}

/* MISS: the registration and the command that missed. */
static void send_miss(struct pending *pending, const char *registration, RedisString **argv) {
    struct frame_writer w;
    size_t length = 0;
    const char *text;
    frame_begin(&w, FRAME_MISS, pending->id);
    frame_text(&w, pending->user);
    frame_text(&w, registration);
    text = redis.StringPtrLen(argv[1], &length);
    frame_item(&w, text, length);
    frame_text(&w, "get");
    frame_item(&w, text, length);
    link_request(&w);
}

/* Joins the computation of an equal miss, or starts one. */
static int wait_for_answer(RedisCtx *ctx, RedisString **argv, const struct registration *registration, const struct key_text *key) {
    struct buffer flight = {0};
    size_t length;
    if (registration->session->inactive)
        return reply_error(ctx, "ERR registration %s is not active: %s", registration->id, registration->session->inactive);
    if (!pending_has_room(ctx)) return REDIS_OK;
    char *user = rights_current_user(ctx); /* owned here until the request takes it */
    buffer_add(&flight, user, strlen(user) + 1); /* what another user's rights let a function find may differ */
    buffer_add(&flight, registration->id, strlen(registration->id) + 1);
    buffer_add(&flight, key->text, key->length);
    /* an equal miss is being computed: wait for its answer */
    struct pending *pending = redis.DictGetC(shardqa.flights, flight.data, flight.length, NULL);
    if (pending) {
        shardqa.counters.shared++;
        buffer_free(&flight);
        redis.Free(user);
        pending_block(ctx, pending, shardqa.arguments.timeout_ms, false);
        return REDIS_OK;
    }
    /* the first to ask: the worker computes */
    pending = pending_new();
    pending->latency = &shardqa.miss_latency;
    pending->user = user;
    pending->flight = buffer_take(&flight, &length);
    pending->flight_length = length;
    redis.DictSetC(shardqa.flights, pending->flight, length, pending);
    shardqa.counters.misses++;
    pending_block(ctx, pending, shardqa.arguments.timeout_ms, false);
    send_miss(pending, registration->id, argv);
    return REDIS_OK;
}

/* shardqa.get key: what GET becomes */
int shardqa_get(RedisCtx *ctx, RedisString **argv, int argc) {
    struct key_text key;
    if (argc != 2) return redis.WrongArity(ctx);
    key.text = redis.StringPtrLen(argv[1], &key.length);
    if (reply_with_value(ctx, argv[1])) {
        shardqa.counters.hits++;
        return REDIS_OK;
    }
    struct registration *registration = gears_find(hooks_key, &key);
    if (registration && !must_not_wait(ctx)) return wait_for_answer(ctx, argv, registration, &key);
    shardqa.counters.nil_misses++;
    return redis.ReplyWithNull(ctx);
}
