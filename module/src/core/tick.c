/* The one place where frames of the worker take effect: inside BEFORE_SLEEP, never within a
 * script, a transaction or a load.
 *
 * A tick handles at most TICK_FRAMES frames or TICK_US of work; a one-shot event wakes the loop
 * for the rest. While clients are paused (CLIENT PAUSE, failover, shutdown) writing would abort
 * Redis, so frames that write wait in `deferred`, in order; frames that only read or reply go
 * on. After the pause their commands meet the role of the node as it is then: READONLY on a
 * replica.
 *
 * Redis writes the replies of clients unblocked in a tick when the tick is over. So after the
 * answer to a miss a tick runs no more commands that write: a client that tracks its keys must
 * see the answer before the invalidation that storing it causes. */
#include "core/tick.h"

#include <string.h>
#include <time.h>

#include "core/above.h"
#include "core/activity.h"
#include "core/call.h"
#include "core/pending.h"
#include "core/resp.h"
#include "core/rights.h"
#include "core/section.h"
#include "core/text.h"
#include "core/worker_end.h"
#include "core/worker_link.h"

enum {
    TICK_FRAMES = 64,
    TICK_US = 1000
};

/* ---- what each frame does; false: it is malformed ---- */

/* READY: the worker has loaded its libraries; it names their versions. */
static bool on_ready(const struct frame *frame) {
    struct frame_list list;
    struct frame_bytes item;
    char *versions = shardqa.link.versions;
    size_t size = sizeof shardqa.link.versions, at = 0;
    if (!frame_list_open(frame->payload, frame->length, &list) || !frame_list_next(&list, &item)) return false;
    if (!frame_bytes_equal(&item, FRAME_VERSION_TEXT)) return false;
    frame_list_next(&list, &item); /* its pid is known */
    versions[0] = '\0';
    while (frame_list_next(&list, &item) && at + item.length + 2 < size) {
        if (at > 0) versions[at++] = ' ';
        for (size_t i = 0; i < item.length; i++) versions[at++] = item.data[i] < ' ' ? '?' : item.data[i];
        versions[at] = '\0';
    }
    link_ready();
    return true;
}

/* The stream is whole, only this value is not: its own request pays for it. */
static void unreadable(struct frame *frame) {
    static const char error[] =
        "-ERR the worker's answer can't be read: it is not one RESP value of at most 16 levels\r\n";
    redis.Log(shardqa.ctx, "warning", "the worker answered request %llu with %zu bytes that can't be read",
              (unsigned long long)frame->id, frame->length);
    shardqa.counters.unreadable_replies++;
    frame->payload = error;
    frame->length = sizeof error - 1;
}

/* REPLY: whoever made the request says what becomes of it. */
static void on_worker_reply(struct frame frame) {
    struct pending *pending = pending_find(frame.id);
    if (!resp_is_one_value(frame.payload, frame.length)) unreadable(&frame);
    if (pending == NULL) {
        shardqa.counters.late_replies++;
        return;
    }
    if (pending->join_key) shardqa.joint_answers++;
    if (pending->latency) latency_add(pending->latency, redis.MonotonicMicroseconds() - pending->started_us);
    if (pending->on_reply)
        pending->on_reply(pending, frame.payload, frame.length);
    else
        pending_finish(pending, frame.payload, frame.length);
}

/* LOG: level and text. */
static bool on_log(const struct frame *frame) {
    static const char *const levels[] = {"debug", "verbose", "notice", "warning"};
    struct frame_list list;
    struct frame_bytes level, text;
    const char *name = "notice";
    if (!frame_list_open(frame->payload, frame->length, &list) || !frame_list_next(&list, &level) ||
        !frame_list_next(&list, &text))
        return false;
    for (size_t i = 0; i < 4; i++)
        if (frame_bytes_equal(&level, levels[i])) name = levels[i];
    redis.Log(shardqa.ctx, name, "worker: %.*s", (int)(text.length < 4000 ? text.length : 4000), text.data);
    return true;
}

/* STATS: pairs for INFO. The worker can't fill our memory: number and lengths are bounded. */
static bool on_stats(const struct frame *frame) {
    enum { MAX_STATS = 256 };
    struct frame_list list;
    struct frame_bytes key, value;
    if (!frame_list_open(frame->payload, frame->length, &list) || list.left % 2 != 0) return false;
    while (frame_list_next(&list, &key) && frame_list_next(&list, &value)) {
        char *old = NULL;
        if (key.length == 0 || key.length > 64 || value.length > 512) continue;
        if (redis.DictDelC(shardqa.worker_stats, (void *)key.data, key.length, &old) == REDIS_OK) redis.Free(old);
        if (value.length > 0 && redis.DictSize(shardqa.worker_stats) < MAX_STATS) /* "": there is none any more */
            redis.DictSetC(shardqa.worker_stats, (void *)key.data, key.length, text_copy(value.data, value.length));
    }
    return true;
}

/* One frame takes effect. False where it is malformed. */
static bool dispatch(const struct frame *frame) {
    switch (frame->type) {
    case FRAME_READY: return on_ready(frame);
    case FRAME_REPLY: on_worker_reply(*frame); return true;
    case FRAME_CALL: return call_run(frame);
    case FRAME_LOG: return on_log(frame);
    case FRAME_STATS: return on_stats(frame);
    case FRAME_LOCK: return section_frame_lock(frame);
    case FRAME_UNLOCK: return section_frame_unlock(frame);
    case FRAME_RELEASE: return rights_frame_release(frame);
    case FRAME_PROGRESS: return pending_goes_on(frame->id), true;
    default: return shardqa.above->frame(frame);
    }
}

/* ---- frames that must wait for the end of a pause ---- */

/* Whether the frame has to wait while Redis takes no writes. */
static bool writes(const struct frame *frame) {
    struct pending *pending;
    switch (frame->type) {
    case FRAME_CALL: return !call_only_reads(frame);
    case FRAME_LOCK: return true;
    case FRAME_RELEASE: return shardqa.deferred.first != NULL; /* what that script registers may be among them */
    case FRAME_REPLY:
        pending = pending_find(frame->id);
        return pending && (pending->reply_writes || (pending->after_registrations && shardqa.deferred.first));
    default: return shardqa.above->writes(frame);
    }
}

/* A copy: the buffer it lies in goes on. */
void tick_defer(const struct frame *frame) {
    struct deferred *d = redis.Alloc(sizeof *d + frame->length);
    struct deferred_queue *queue = &shardqa.deferred;
    d->next = NULL;
    d->frame = *frame;
    d->frame.payload = d->data;
    memcpy(d->data, frame->payload, frame->length);
    if (queue->last)
        queue->last->next = d;
    else
        queue->first = d;
    queue->last = d;
    queue->bytes += frame->length;
}

/* The caller frees it. */
static struct deferred *take_deferred(void) {
    struct deferred_queue *queue = &shardqa.deferred;
    struct deferred *d = queue->first;
    queue->first = d->next;
    if (queue->first == NULL) queue->last = NULL;
    queue->bytes -= d->frame.length;
    return d;
}

/* ---- the tick ---- */

struct budget {
    uint64_t until_us; /* monotonic */
    int frames; /* that may still be handled */
    uint64_t answers_before; /* joint ones, before this tick */
};

static bool spent(struct budget *budget) {
    return budget->frames <= 0 || redis.MonotonicMicroseconds() > budget->until_us;
}

/* Processor time of the main thread: on a busy machine the clock on the wall counts others too. */
static uint64_t used_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* For INFO: what held the main thread, and the frame that did so longest. */
static void count_frame(const struct frame *frame, uint64_t us) {
    latency_add(&shardqa.frame_latency, us);
    if (us <= shardqa.longest_frame_us) return;
    shardqa.longest_frame_us = us;
    shardqa.longest_frame = frame->type;
}

/* A malformed frame ends the worker: nothing after it can be trusted. */
void tick_handle(const struct frame *frame) {
    uint64_t begin = used_us();
    bool valid = frame_from_worker_is_valid(frame) && dispatch(frame);
    count_frame(frame, used_us() - begin);
    if (!valid) {
        redis.Log(shardqa.ctx, "warning", "the worker sent a malformed frame: type %d, id %llu, %zu bytes",
                  frame->type, (unsigned long long)frame->id, frame->length);
        link_break("it sent a malformed frame");
    }
}

/* After a pause: what waited goes first. */
static void run_deferred(struct budget *budget) {
    while (shardqa.deferred.first && !shardqa.link.broken && !spent(budget)) {
        struct deferred *d = take_deferred();
        tick_handle(&d->frame);
        redis.Free(d);
        section_run();
        budget->frames--;
    }
}

/* False when no whole frame is left. */
static bool run_received(struct budget *budget, bool paused) {
    struct worker_link *link = &shardqa.link;
    struct frame frame;
    size_t size;
    while (!link->broken && !spent(budget)) {
        if (link_next_frame(&frame, &size) != FRAME_COMPLETE) return false;
        /* order is kept: once one frame waits, all that write wait behind it */
        bool writing = writes(&frame);
        if (writing && (paused || shardqa.deferred.first)) {
            if (shardqa.deferred.bytes > DEFERRED_LIMIT) return false;
            tick_defer(&frame);
        } else if (writing && shardqa.joint_answers > budget->answers_before) {
            return true;
        } else {
            tick_handle(&frame);
        }
        link->in_handled += size;
        section_run();
        budget->frames--;
    }
    return !link->broken;
}

/* The frames of this tick, within its budget. */
static void run_frames(void) {
    struct worker_link *link = &shardqa.link;
    if (link->in.length <= link->in_handled && shardqa.deferred.first == NULL) return;
    struct budget budget = {.until_us = redis.MonotonicMicroseconds() + TICK_US, .frames = TICK_FRAMES,
                            .answers_before = shardqa.joint_answers};
    bool paused = redis.AvoidReplicaTraffic();
    if (!paused) run_deferred(&budget);
    bool more = link->in.length > link->in_handled && run_received(&budget, paused);
    link_drop_handled();
    if (!link->broken && shardqa.deferred.bytes <= DEFERRED_LIMIT) link_pause_reading(false);
    if (more || (!paused && shardqa.deferred.first)) link_wake();
}

/* The first tick: what was to be loaded at start is in memory. */
static void first_tick(void) {
    size_t length;
    shardqa.loaded = true;
    shardqa.master = redis.GetContextFlags(shardqa.ctx) & CTX_MASTER;
    RedisReply *reply = redis.Call(shardqa.ctx, "CONFIG", "cc", "GET", "aof-use-rdb-preamble");
    const char *text = reply ? redis.CallReplyProto(reply, &length) : NULL;
    if (text && length > 4 && memcmp(text + length - 4, "no\r\n", 4) == 0)
        redis.Log(
            shardqa.ctx, "warning",
            "aof-use-rdb-preamble is no: an AOF rewrite would lose the registered functions, which only the RDB format "
            "can hold; set it to yes");
    if (reply) redis.FreeCallReply(reply);
}

/* A worker that does not answer, or can't be interrupted. */
static void watch_worker(void) {
    struct verdict verdict = activity_check();
    if (verdict.fell_silent)
        pending_fail_unless(
            activity_keeps,
            "TRYAGAIN the worker of this node does not answer; it is replaced if that lasts, try again");
    if (verdict.fatal) link_break(verdict.fatal);
}

/* What belonged to this worker goes with it. The order matters: blame first, while requests
 * still stand. */
static void bury_worker(int signal) {
    worker_end_blame(signal);
    pending_fail_all("TRYAGAIN the worker of this node died while it worked on this; it is being restarted, try again");
    while (shardqa.deferred.first) redis.Free(take_deferred());
    shardqa.above->worker_gone();
    dict_clear(&shardqa.worker_stats, redis.Free);
    rights_forget_worker();
}

/* What waited for a worker that could not be started. */
static void fail_held(void) {
    pending_fail_all(link_unusable_error());
    rights_forget_worker();
}

/* Once per loop, before Redis sleeps. */
void tick_run(void) {
    struct worker_link *link = &shardqa.link;
    int signal;
    shardqa.counters.ticks++;
    if (!shardqa.loaded) first_tick();
    if (shardqa.shutting_down) link_continue();
    if (shardqa.keyspace_loaded) shardqa.above->keyspace_loaded();
    shardqa.keyspace_loaded = false;
    watch_worker();
    if (link_take_down(&signal)) bury_worker(signal);
    if (link->fd < 0) {
        if (!link_returns()) fail_held();
        return;
    }
    if (!link->started && shardqa.loaded) {
        shardqa.above->worker_started();
        link_send_start();
    }
    run_frames();
    shardqa.above->tick_end();
    link_write();
}
