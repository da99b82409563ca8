/* What a hooked command becomes: `shardqa.hook` (or `shardqa.hookread`) and the command.
 *
 * The filter (hooks.c) only renames; here it is known whether the client may wait. Where it may
 * not (a transaction, a script), and where nobody hooks the command any more, Redis runs it as
 * the client's. */
#include "gears/hooked_command.h"

#include <errno.h>
#include <string.h>

#include "core/call.h"
#include "core/pending.h"
#include "core/reply.h"
#include "core/rights.h"
#include "core/state.h"
#include "core/text.h"
#include "core/worker_link.h"
#include "gears/gears_state.h"
#include "gears/hooks.h"
#include "gears/registry.h"

#define KEEP "-KEEP\r\n" /* of the worker: no function overrode what Redis replied */
#define OURS "shardqa."

/* ---- as Redis would run it ---- */

/* The keys are those of the command behind our name. */
static int positions(RedisCtx *ctx, RedisString **argv, int argc) {
    int count = 0, *flags = NULL;
    size_t length = 0;
    const char *name = argc > 1 ? redis.StringPtrLen(argv[1], &length) : "";
    if (length >= strlen(OURS) && bytes_are(name, strlen(OURS), OURS)) return REDIS_OK; /* it would ask itself */
    int *places = argc > 1 ? redis.GetCommandKeysWithFlags(ctx, argv + 1, argc - 1, &count, &flags) : NULL;
    for (int i = 0; i < count; i++) redis.KeyAtPosWithFlags(ctx, places[i] + 1, flags[i]);
    redis.Free(places);
    redis.Free(flags);
    return REDIS_OK;
}

/* Its reply as RESP of the client's version. */
static void run(RedisCtx *ctx, RedisString **argv, int argc, bool reads, struct buffer *resp) {
    size_t length; /* bytes of resp */
    const char *name = redis.StringPtrLen(argv[0], &length);
    bool nobody = redis.GetContextFlags(ctx) & (CTX_REPLICATED | CTX_LOADING); /* its client has no user */
    const char *flags = nobody ? (reads ? "!ESMW0v" : "!ESM0v") : reads ? "!ESMCW0v" : "!ESMC0v";
    if (length >= strlen(OURS) && bytes_are(name, strlen(OURS), OURS)) {
        static const char refused[] = "-ERR what hooks commands hooks none of its own\r\n";
        return buffer_add(resp, refused, sizeof refused - 1);
    }
    errno = 0;
    RedisReply *reply = redis.Call(ctx, name, flags, argv + 1, (size_t)argc - 1);
    call_add_reply(resp, reply, errno);
}

static int run_and_reply(RedisCtx *ctx, RedisString **argv, int argc, bool reads) {
    struct buffer resp = {0};
    run(ctx, argv, argc, reads, &resp);
    reply_with_resp(ctx, resp.data, resp.length);
    buffer_free(&resp);
    return REDIS_OK;
}

/* ---- by way of the worker ---- */

/* Called inside the command, so it only copies. */
void note_caused_event(struct caused_events *events, const struct registration *registration, const char *event,
                       const char *key, size_t length, const char *type) {
    struct caused_event *caused = redis.Calloc(1, sizeof *caused);
    caused->registration = text_copy(registration->id, strlen(registration->id));
    caused->event = text_copy(event, strlen(event));
    caused->key = text_copy(key, length);
    caused->key_length = length;
    caused->type = type;
    *events->end = caused;
    events->end = &caused->next;
}

static void free_caused(struct caused_event *caused) {
    while (caused) {
        struct caused_event *next = caused->next;
        redis.Free(caused->registration);
        redis.Free(caused->event);
        redis.Free(caused->key);
        redis.Free(caused);
        caused = next;
    }
}

/* What Redis replied, until the functions have ended. */
struct real_reply {
    size_t length;
    char resp[];
};

/* KEEP leaves the client what Redis replied; anything else is the reply. */
static void finish_hooked(struct pending *pending, const char *resp, size_t length) {
    struct real_reply *real = pending->data;
    if (length != sizeof KEEP - 1 || memcmp(resp, KEEP, length) != 0) return pending_finish(pending, resp, length);
    pending->data = NULL; /* pending_finish frees the request, but not before the reply is copied */
    pending_finish(pending, real->resp, real->length);
    redis.Free(real);
}

/* A HOOK frame and its request, with the client's user. */
static void begin(struct frame_writer *w, RedisCtx *ctx, struct pending **pending) {
    *pending = pending_new();
    (*pending)->user = rights_current_user(ctx);
    frame_begin(w, FRAME_HOOK, (*pending)->id);
    frame_text(w, (*pending)->user);
}

/* `n argument …` */
static void add_command(struct frame_writer *w, RedisString **argv, int argc) {
    frame_number(w, argc);
    text_items(w, argv, argc);
}

static int send_off(RedisCtx *ctx, struct frame_writer *w, struct pending *pending) {
    pending_block(ctx, pending, shardqa.arguments.timeout_ms, false);
    link_request(w);
    shardqa.counters.requests++;
    return REDIS_OK;
}

/* The registrations that take the command in place of Redis, the newest first. */
static int ask_functions(RedisCtx *ctx, RedisString **argv, int argc, struct registration **chain, long long count) {
    struct frame_writer w;
    struct pending *pending;
    if (!pending_has_room(ctx)) return REDIS_OK;
    begin(&w, ctx, &pending);
    frame_number(&w, count);
    for (long long i = 0; i < count; i++) frame_text(&w, chain[i]->id);
    add_command(&w, argv, argc);
    return send_off(ctx, &w, pending);
}

/* Redis has run it; the functions of what it caused come before its reply. */
static int await_events(RedisCtx *ctx, RedisString **argv, int argc, const struct caused_event *caused,
                        const struct buffer *resp) {
    struct frame_writer w;
    struct pending *pending;
    struct real_reply *real = redis.Alloc(sizeof *real + resp->length);
    real->length = resp->length;
    memcpy(real->resp, resp->data, resp->length);
    begin(&w, ctx, &pending);
    pending->data = real;
    pending->free_data = redis.Free;
    pending->on_reply = finish_hooked;
    frame_number(&w, 0);
    add_command(&w, argv, argc);
    for (; caused; caused = caused->next) {
        frame_text(&w, caused->registration);
        frame_text(&w, caused->event);
        frame_item(&w, caused->key, caused->key_length);
        frame_text(&w, caused->type);
    }
    return send_off(ctx, &w, pending);
}

/* Where nothing was caused, nobody waits. */
static int run_and_await(RedisCtx *ctx, RedisString **argv, int argc, bool reads, const struct hook *hook) {
    struct caused_events events = {.hook = hook, .end = &events.first};
    struct buffer resp = {0};
    if (!pending_has_room(ctx)) return REDIS_OK; /* before it runs: what runs must not be run again */
    gears.caused_events = &events;
    run(ctx, argv, argc, reads, &resp);
    gears.caused_events = NULL;
    if (events.first && resp.data[0] != '-')
        await_events(ctx, argv, argc, events.first, &resp);
    else
        reply_with_resp(ctx, resp.data, resp.length);
    free_caused(events.first);
    buffer_free(&resp);
    return REDIS_OK;
}

/* Whether who registered the hook may do to all keys of the command what it does to them. */
static bool may_take(RedisCtx *ctx, const struct registration *registration, RedisString **argv, int argc) {
    int count = 0, *flags = NULL;
    int *places = redis.GetCommandKeysWithFlags(ctx, argv, argc, &count, &flags);
    bool may = true;
    for (int i = 0; may && i < count; i++) may = gears_may(registration, argv[places[i]], flags[i]);
    redis.Free(places);
    redis.Free(flags);
    return may;
}

/* Hooks come first: what they take, Redis does not run. */
static int serve(RedisCtx *ctx, RedisString **argv, int argc, bool reads, const struct hook *hook) {
    bool keyed = hook->first > 0 && hook->first < argc, awaited = false;
    struct registration **chain = redis.Alloc(sizeof *chain * (hook->count + 1));
    long long count = 0;
    for (size_t i = hook->count; i-- > 0;) {
        struct registration *r = hook->registrations[i];
        if (!hooks_take(hook, r, keyed ? argv[hook->first] : NULL)) continue;
        if (r->follows_keys)
            awaited = true;
        else if (may_take(ctx, r, argv, argc))
            chain[count++] = r;
    }
    const char *inactive = count > 0 ? chain[0]->session->inactive : NULL;
    if (inactive)
        reply_error(ctx, "ERR registration %s is not active: %s", chain[0]->id, inactive);
    else if (count > 0 && !rights_client_may(ctx, argv, (size_t)argc))
        reply_error(ctx, "NOPERM this user has no permissions to run '%s' on these keys",
                    redis.StringPtrLen(argv[0], NULL));
    else if (count > 0)
        ask_functions(ctx, argv, argc, chain, count);
    else if (awaited)
        run_and_await(ctx, argv, argc, reads, hook);
    else
        run_and_reply(ctx, argv, argc, reads);
    redis.Free(chain);
    return REDIS_OK;
}

/* shardqa.hook command [argument ...] shardqa.hookread command [argument ...]: what a hooked
 * command becomes, one that writes and one that reads */
int shardqa_hook(RedisCtx *ctx, RedisString **argv, int argc) {
    if (redis.IsKeysPositionRequest(ctx)) return positions(ctx, argv, argc);
    if (argc < 2) return redis.WrongArity(ctx);
    size_t length;
    bool reads = text_is(argv[0], OURS "hookread");
    const char *name = redis.StringPtrLen(argv[1], &length);
    const struct hook *hook = hooks_find(name, length);
    if (hook == NULL || hooks_let_nobody_wait(ctx) || text_items_size(argv, argc) > FRAME_MAX_PAYLOAD - FRAME_SPARE)
        return run_and_reply(ctx, argv + 1, argc - 1, reads);
    return serve(ctx, argv + 1, argc - 1, reads, hook);
}
