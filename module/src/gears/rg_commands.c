/* The RG.* commands: admission here, answers from the worker. */
#include "gears/rg_commands.h"

#include <string.h>

#include "core/activity.h"
#include "core/pending.h"
#include "core/reply.h"
#include "core/rights.h"
#include "core/section.h"
#include "core/text.h"
#include "core/worker_link.h"
#include "gears/gears_state.h"
#include "gears/registry.h"

#define REFUSAL                                                                                                        \
    "ERR can not run a non-sync execution inside a MULTI/LUA, a module's call, replication or loading: it has to wait"

/* RG.DUMPREGISTRATIONS gets what only the module knows. */
static void finish_dump(struct pending *pending, const char *resp, size_t length) {
    struct buffer reply = {0};
    gears_dump(&reply, resp, length);
    pending_finish(pending, reply.data, reply.length);
    buffer_free(&reply);
}

enum forwarding { FORWARD_OTHER, FORWARD_TRIGGER, FORWARD_SCRIPT, FORWARD_DUMP, FORWARD_REMOVAL };

/* Only for clients that may block: the client of a nested call or of a loading AOF has no user,
 * and asking for its name crashes Redis 7.0. */
static int forward_for(RedisCtx *ctx, RedisString **argv, int argc, long long timeout_ms, enum forwarding what,
                       const RedisString *user) {
    struct frame_writer w;
    size_t user_length = 0;
    const char *user_name = user ? redis.StringPtrLen(user, &user_length) : NULL;
    if (!pending_may_block(ctx, REFUSAL) || (what != FORWARD_REMOVAL && !pending_has_room_soon(ctx))) return REDIS_OK;
    /* admission: scripts that go on after their reply are bounded as well */
    if (what == FORWARD_SCRIPT && redis.DictSize(shardqa.scripts) >= (uint64_t)shardqa.arguments.max_pending)
        return redis.ReplyWithError(ctx, "BUSY as many scripts run as may (MAXPENDING); wait until some have ended");
    if (text_items_size(argv, argc) > FRAME_MAX_PAYLOAD - FRAME_SPARE)
        return redis.ReplyWithError(ctx, "ERR the command is longer than 1 GiB; send it in parts");
    /* whose rights it has is noted here, before the worker sees it */
    struct pending *pending = pending_new();
    if (what == FORWARD_DUMP) pending->on_reply = finish_dump;
    pending->after_registrations = what != FORWARD_TRIGGER;
    pending->renewable = what == FORWARD_TRIGGER;
    if (what == FORWARD_TRIGGER) pending->latency = &gears.trigger_latency;
    pending->user = user ? text_copy(user_name, user_length) : rights_current_user(ctx);
    if (what == FORWARD_SCRIPT) rights_hold(pending->id, pending->user);
    /* the command as it came */
    frame_begin(&w, FRAME_REQUEST, pending->id);
    frame_text(&w, pending->user);
    text_items(&w, argv, argc);
    pending_block(ctx, pending, timeout_ms, false);
    link_request(&w);
    shardqa.counters.requests++;
    return REDIS_OK;
}

static int forward(RedisCtx *ctx, RedisString **argv, int argc, long long timeout_ms, enum forwarding what) {
    return forward_for(ctx, argv, argc, timeout_ms, what, NULL);
}

static bool worker_answers(void) { return shardqa.link.state == LINK_READY && link_usable() && !activity_silent(); }

/* RG.PYEXECUTE code [UNBLOCKING] [ID id] [DESCRIPTION text] [UPGRADE] [REPLACE_WITH id]
 *     [REQUIREMENTS name ...] */
int rg_pyexecute(RedisCtx *ctx, RedisString **argv, int argc) {
    if (argc < 2) return redis.WrongArity(ctx);
    if (!pending_may_block(ctx, REFUSAL) || !rights_may_run_code(ctx, "RG.PYEXECUTE")) return REDIS_OK;
    /* a batch job over the keyspace may take hours; the client may leave */
    return forward(ctx, argv, argc, 0, FORWARD_SCRIPT);
}

/* For commands that show or end what others run, or change a setting. */
static int forward_admin(RedisCtx *ctx, RedisString **argv, int argc, long long timeout_ms) {
    if (!pending_may_block(ctx, REFUSAL)) return REDIS_OK;
    if (!rights_may_debug(ctx))
        return redis.ReplyWithError(
            ctx, "NOPERM this command is about what others run: its user must be allowed to run DEBUG as well");
    return forward(ctx, argv, argc, timeout_ms, FORWARD_OTHER);
}

/* RG.CLEARREGISTRATIONSSTATS
 * RG.PAUSEREGISTRATIONS id ...
 * RG.UNPAUSEREGISTRATIONS id ...
 * RG.DUMPEXECUTIONS [WITH STATISTICS]
 * RG.GETEXECUTION id [SHARD | CLUSTER] [WITH STATISTICS]
 * RG.GETRESULTS id
 * RG.DROPEXECUTION id
 * RG.ABORTEXECUTION id
 * RG.CONFIGSET name value ...
 * RG.PYDUMPSESSIONS [TS] [VERBOSE] [CODE] [SESSIONS id ...]
 * RG.PYLOGS [after]
 * RG.PYPROFILE verb session [order] */
int rg_admin(RedisCtx *ctx, RedisString **argv, int argc) {
    return forward_admin(ctx, argv, argc, shardqa.arguments.timeout_ms);
}

/* RG.GETRESULTSBLOCKING id */
int rg_wait(RedisCtx *ctx, RedisString **argv, int argc) { return forward_admin(ctx, argv, argc, 0); }

/* RG.UNREGISTER id [ABORTPENDING]
 * A worker that has the function tells us, and finishes what the function has begun. What it
 * has not, or while it does not answer, is removed without it: what no worker can run must be
 * removable all the same. */
int rg_unregister(RedisCtx *ctx, RedisString **argv, int argc) {
    size_t length;
    if (argc != 2 && argc != 3) return redis.WrongArity(ctx);
    if (!pending_may_block(ctx, REFUSAL)) return REDIS_OK;
    if (!rights_may_debug(ctx))
        return redis.ReplyWithError(
            ctx, "NOPERM RG.UNREGISTER removes code from the server: its user must be allowed to run DEBUG as well");
    const char *id = redis.StringPtrLen(argv[1], &length);
    struct session *session = gears_session_of(id, length);
    if (session && session->inactive == NULL && (worker_answers() || link_returns()))
        return forward(ctx, argv, argc, 0, FORWARD_REMOVAL); /* other shards' workers may be starting, too */
    if (!gears_unregister(id, length))
        return reply_error(ctx, "ERR execution %.*s does not exist; RG.DUMPREGISTRATIONS lists what does",
                           (int)(length < 80 ? length : 80), id);
    redis.Replicate(ctx, "RG._UNREGISTER", "s", argv[1]);
    return redis.ReplyWithSimpleString(ctx, "OK");
}

/* RG.TRIGGER trigger [argument ...]
 * RG.TRIGGERONKEY trigger key [argument ...] */
int rg_trigger(RedisCtx *ctx, RedisString **argv, int argc) {
    int least = text_is(argv[0], "rg.triggeronkey") ? 3 : 2;
    if (argc < least) return redis.WrongArity(ctx);
    size_t length;
    const char *trigger = redis.StringPtrLen(argv[1], &length);
    struct registration *inactive = gears_inactive_trigger(trigger, length);
    if (inactive)
        return reply_error(ctx, "ERR registration %s is not active: %s", inactive->id, inactive->session->inactive);
    if (section_may_be(ctx) && gears_trigger_is_sync(trigger, length)) return section_trigger(ctx, argv, argc);
    return forward(ctx, argv, argc, shardqa.arguments.timeout_ms, FORWARD_TRIGGER);
}

/* RG._PEER sender token verb …; RUN execution python session user …: a part of what that user
 *     began on another shard, READ likewise; PREPARE and
 * COMMIT likewise: what that user registers there. The worker asks for proof that a peer sent
 * it; here counts that its connection may act for others anyway, as one that may change ACLs
 * can. Another one acts for itself. */
int rg_peer(RedisCtx *ctx, RedisString **argv, int argc) {
    if (argc < 4) return redis.WrongArity(ctx);
    if (!pending_may_block(ctx, REFUSAL)) return REDIS_OK;
    if (!rights_may_debug(ctx))
        return redis.ReplyWithError(
            ctx,
            "NOPERM RG._PEER is for the nodes of this cluster: their masteruser must be allowed to run DEBUG as well");
    bool for_another = text_is(argv[3], "RUN") || text_is(argv[3], "READ") || text_is(argv[3], "PREPARE") ||
                       text_is(argv[3], "COMMIT");
    /* no deadline: its functions may import large packages, and the peer has a patience of its own */
    if (argc < 8 || !for_another) return forward(ctx, argv, argc, 0, FORWARD_OTHER);
    return forward_for(ctx, argv, argc, 0, FORWARD_SCRIPT, rights_may(ctx, "ACL", "SETUSER") ? argv[7] : NULL);
}

/* RG.DUMPREGISTRATIONS [WITH STATISTICS]
 * What the module knows by itself where the worker can't be asked. */
int rg_dumpregistrations(RedisCtx *ctx, RedisString **argv, int argc) {
    struct buffer reply = {0};
    if (!pending_may_block(ctx, REFUSAL)) return REDIS_OK;
    if (argc != 1 && argc != 3) return redis.WrongArity(ctx);
    if (!worker_answers()) {
        gears_dump(&reply, "*0\r\n", 4);
        reply_with_resp(ctx, reply.data, reply.length);
        buffer_free(&reply);
        return REDIS_OK;
    }
    return forward_for(ctx, argv, argc, shardqa.arguments.timeout_ms, FORWARD_DUMP, NULL);
}

/* RG.CONFIGGET name ...
 * RG.PYDUMPREQS
 * RG.PYSTATS
 * RG.INFOCLUSTER
 * RG.REFRESHCLUSTER */
int rg_request(RedisCtx *ctx, RedisString **argv, int argc) {
    return forward(ctx, argv, argc, shardqa.arguments.timeout_ms, FORWARD_OTHER);
}
