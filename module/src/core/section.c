#include "core/section.h"

#include <poll.h>
#include <string.h>

#include "core/call.h"
#include "core/pending.h"
#include "core/reply.h"
#include "core/resp.h"
#include "core/rights.h"
#include "core/text.h"
#include "core/tick.h"
#include "core/worker_link.h"

#define TRIGGER_NUMBER (1ULL << 48) /* sections of triggers are numbered from here on, those of the worker below */

/* What ends a section besides its deadline. */
struct awaited {
    uint64_t request;    /* whose REPLY; 0: UNLOCK ends it */
    struct buffer reply; /* owned */
};

static void answer(uint64_t id, const char *resp) { link_send_bare(FRAME_CALLED, id, resp, strlen(resp)); }

/* LOCK, UNLOCK: the number of the section. */
static bool read_number(const struct frame *frame, uint64_t *number) {
    struct frame_list list;
    long long value;
    if (!frame_list_open(frame->payload, frame->length, &list) || !frame_list_number(&list, &value) ||
        value < SECTION_FIRST)
        return false;
    *number = (uint64_t)value;
    return *number < TRIGGER_NUMBER;
}

/* The caller goes on with section_run, since the frame must have been consumed by then. */
bool section_frame_lock(const struct frame *frame) {
    if (!read_number(frame, &shardqa.section)) return false;
    answer(frame->id, "+OK\r\n");
    return true;
}

bool section_frame_unlock(const struct frame *frame) {
    uint64_t number;
    if (!read_number(frame, &number)) return false;
    answer(frame->id, number == shardqa.section ? "+OK\r\n" : "-" SECTION_CLOSED "\r\n");
    if (number == shardqa.section) shardqa.section = 0;
    return true;
}

/* Whether the frame is for now; all others wait in their order. */
static bool belongs(const struct frame *frame) {
    uint64_t number;
    if (frame->type == FRAME_CALL) return call_section(frame) == shardqa.section;
    if (frame->type == FRAME_UNLOCK) return read_number(frame, &number) && number == shardqa.section;
    return false;
}

static bool is_reply(const struct frame *frame, const struct awaited *awaited) {
    return frame->type == FRAME_REPLY && awaited->request != 0 && frame->id == awaited->request;
}

static void take_frames(struct awaited *awaited) {
    struct worker_link *link = &shardqa.link;
    struct frame frame;
    size_t size;
    while (shardqa.section != 0 && !link->broken && shardqa.deferred.bytes <= DEFERRED_LIMIT) {
        if (link_next_frame(&frame, &size) != FRAME_COMPLETE) return;
        if (is_reply(&frame, awaited)) {
            buffer_add(&awaited->reply, frame.payload, frame.length);
            shardqa.section = 0;
        } else if (belongs(&frame)) {
            tick_handle(&frame);
        } else {
            tick_defer(&frame);
        }
        link->in_handled += size;
    }
}

/* Sends and receives until the section ends. */
static void serve(struct awaited *awaited) {
    struct worker_link *link = &shardqa.link;
    uint64_t until = redis.MonotonicMicroseconds() + SECTION_MS * 1000ULL;
    shardqa.counters.sections++;
    for (;;) {
        take_frames(awaited);
        link_flush();
        uint64_t now = redis.MonotonicMicroseconds();
        if (shardqa.section == 0 || link->broken || now >= until || shardqa.deferred.bytes > DEFERRED_LIMIT) break;
        struct pollfd socket = {.fd = link->fd, .events = link->out.first ? POLLIN | POLLOUT : POLLIN};
        if (poll(&socket, 1, (int)((until - now + 999) / 1000)) > 0 && socket.revents & ~POLLOUT) link_read();
    }
    if (shardqa.section != 0) shardqa.counters.sections_closed++;
    shardqa.section = 0;
    link_drop_handled();
    link_wake(); /* for what was deferred */
}

/* After the frame that opened it has been consumed. */
void section_run(void) {
    struct awaited awaited = {0};
    if (shardqa.section != 0) serve(&awaited);
}

/* SYNC: as REQUEST, with the number of its section before the user. */
static void send_sync(const struct pending *pending, RedisString **argv, int argc) {
    struct frame_writer w;
    frame_begin(&w, FRAME_SYNC, pending->id);
    frame_number(&w, (long long)shardqa.section);
    frame_text(&w, pending->user);
    text_items(&w, argv, argc);
    link_request(&w);
}

/* CANCEL: nobody waits for it any more. */
static void give_up(uint64_t id) {
    struct frame_writer w;
    frame_begin(&w, FRAME_CANCEL, id);
    link_send(&w, NULL);
}

/* In a transaction or a script, which wait for what they execute. */
bool section_may_be(RedisCtx *ctx) {
    int flags = redis.GetContextFlags(ctx), no = CTX_REPLICATED | CTX_LOADING | CTX_ASYNC_LOADING | CTX_SLAVE;
    return flags & (CTX_MULTI | CTX_LUA) && !(flags & no);
}

/* Its reply is the command's own. */
int section_trigger(RedisCtx *ctx, RedisString **argv, int argc) {
    if (shardqa.section != 0 || redis.AvoidReplicaTraffic())
        return redis.ReplyWithError(ctx, "TRYAGAIN no function may write now; try again");
    if (shardqa.link.state != LINK_READY) return redis.ReplyWithError(ctx, link_unusable_error());
    if (!pending_has_room(ctx)) return REDIS_OK;
    struct pending *pending = pending_new();
    struct awaited awaited = {.request = pending->id};
    pending->user = rights_current_user(ctx);
    shardqa.section = TRIGGER_NUMBER + pending->id;
    shardqa.counters.requests++;
    send_sync(pending, argv, argc);
    serve(&awaited);
    if (awaited.reply.length > 0 && resp_is_one_value(awaited.reply.data, awaited.reply.length)) {
        reply_with_resp(ctx, awaited.reply.data, awaited.reply.length);
    } else if (awaited.reply.length > 0) {
        shardqa.counters.unreadable_replies++;
        redis.ReplyWithError(ctx,
                             "ERR the worker's answer can't be read: it is not one RESP value of at most 16 levels");
    } else {
        if (!shardqa.link.broken) give_up(pending->id);
        redis.ReplyWithError(
            ctx,
            shardqa.link.broken
                ? "TRYAGAIN the worker of this node died while it worked on this; it is being restarted, try again"
                : "TIMEOUT the function took longer than 1000 ms, and longer it may not hold a transaction or a "
                  "script");
    }
    buffer_free(&awaited.reply);
    pending_free(pending);
    return REDIS_OK;
}
