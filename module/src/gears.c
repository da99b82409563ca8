/* The RG.* commands: admission here, answers from the worker. */
#include "gears.h"

#include <string.h>

#include "pending.h"
#include "text.h"
#include "worker_link.h"

#define REFUSAL "ERR can not run gears inside MULTI, a script, a module's call, replication or loading, because it has to wait"

/* Only for clients that may block: the client of a nested call or of a loading AOF has no user, and asking for its name crashes
 * Redis 7.0. */
static void add_user(RedisCtx *ctx, struct frame_writer *w) {
    size_t length = 0;
    RedisString *user = redis.GetCurrentUserName(ctx);
    const char *name = user ? redis.StringPtrLen(user, &length) : "";
    frame_item(w, name, length);
    if (user) redis.FreeString(ctx, user);
}

static size_t size_of(RedisString **argv, int argc) {
    size_t total = 64, length;
    for (int i = 0; i < argc; i++) {
        redis.StringPtrLen(argv[i], &length);
        total += length + 4;
    }
    return total;
}

static int forward(RedisCtx *ctx, RedisString **argv, int argc, long long timeout_ms, bool trigger) {
    struct frame_writer w;
    if (!pending_may_block(ctx, REFUSAL) || !pending_has_room(ctx)) return REDIS_OK;
    if (size_of(argv, argc) > FRAME_MAX_PAYLOAD - FRAME_SPARE)
        return redis.ReplyWithError(ctx, "ERR the command is longer than 1 GiB; send it in parts");
    struct pending *pending = pending_new(PENDING_REQUEST);
    pending->after_registrations = !trigger;
    pending->timed_trigger = trigger;
    frame_begin(&w, FRAME_REQUEST, pending->id);
    add_user(ctx, &w);
    for (int i = 0; i < argc; i++) {
        size_t length;
        const char *text = redis.StringPtrLen(argv[i], &length);
        frame_item(&w, text, length);
    }
    pending_block(ctx, pending, timeout_ms, false);
    link_request(&w);
    shardqa.counters.requests++;
    return REDIS_OK;
}

/* Commands that run or remove code need more than their own permission: Redis 7.0 gives module commands no ACL category, so
 * `+@all -@dangerous` would allow them. DEBUG stands in for @dangerous. */
static bool may_debug(RedisCtx *ctx) {
    RedisString *name = redis.GetCurrentUserName(ctx);
    if (name == NULL) return false;
    RedisUser *user = redis.GetModuleUserFromUserName(name);
    RedisString *argv[] = {redis.CreateString(ctx, "DEBUG", 5), redis.CreateString(ctx, "HELP", 4)};
    bool good = user != NULL && redis.ACLCheckCommandPermissions(user, argv, 2) == REDIS_OK;
    redis.FreeString(ctx, argv[0]);
    redis.FreeString(ctx, argv[1]);
    if (user) redis.FreeModuleUser(user);
    redis.FreeString(ctx, name);
    return good;
}

static bool is_local(RedisCtx *ctx) {
    RedisClientInfo info = {.version = 1};
    if (redis.GetClientInfoById(&info, redis.GetClientId(ctx)) != REDIS_OK) return false;
    if (info.flags & CLIENT_UNIX_SOCKET) return true;
    return strncmp(info.addr, "127.", 4) == 0 || strcmp(info.addr, "::1") == 0 || strncmp(info.addr, "::ffff:127.", 11) == 0;
}

int rg_pyexecute(RedisCtx *ctx, RedisString **argv, int argc) {
    if (argc < 2) return redis.WrongArity(ctx);
    if (!pending_may_block(ctx, REFUSAL)) return REDIS_OK;
    if (!may_debug(ctx)) return redis.ReplyWithError(ctx, "NOPERM RG.PYEXECUTE runs code on the server: its user must be allowed to run DEBUG as well");
    if (shardqa.settings.pyexecute == PYEXECUTE_NO)
        return redis.ReplyWithError(ctx, "ERR RG.PYEXECUTE is not allowed: the module was loaded with PYEXECUTE no; load it with PYEXECUTE local or yes");
    if (shardqa.settings.pyexecute == PYEXECUTE_LOCAL && !is_local(ctx))
        return redis.ReplyWithError(ctx, "ERR RG.PYEXECUTE is allowed from this machine alone (PYEXECUTE local); connect over loopback or a Unix socket, or load the module with PYEXECUTE yes");
    return forward(ctx, argv, argc, 0, false); /* a batch job over the keyspace may take hours; the client may leave */
}

int rg_unregister(RedisCtx *ctx, RedisString **argv, int argc) {
    if (argc != 2) return redis.WrongArity(ctx);
    if (!pending_may_block(ctx, REFUSAL)) return REDIS_OK;
    if (!may_debug(ctx)) return redis.ReplyWithError(ctx, "NOPERM RG.UNREGISTER removes code from the server: its user must be allowed to run DEBUG as well");
    return forward(ctx, argv, argc, shardqa.settings.timeout_ms, false);
}

int rg_trigger(RedisCtx *ctx, RedisString **argv, int argc) {
    int least = text_is(argv[0], "rg.triggeronkey") ? 3 : 2;
    if (argc < least) return redis.WrongArity(ctx);
    return forward(ctx, argv, argc, shardqa.settings.timeout_ms, true);
}

int rg_request(RedisCtx *ctx, RedisString **argv, int argc) { return forward(ctx, argv, argc, shardqa.settings.timeout_ms, false); }

void gears_forget_worker(void) {
    char *value;
    RedisDictIter *iterator = redis.DictIteratorStartC(shardqa.worker_stats, "^", NULL, 0);
    while (redis.DictNextC(iterator, NULL, (void **)&value) != NULL) redis.Free(value);
    redis.DictIteratorStop(iterator);
    redis.FreeDict(NULL, shardqa.worker_stats);
    shardqa.worker_stats = redis.CreateDict(NULL);
}
