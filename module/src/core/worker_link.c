/* The link to the worker: the socket, its queues, and its life from the start of a worker
 * (worker_process.c) to its end.
 *
 * Threading: main thread only. The callbacks of descriptors may run nested, inside a busy script
 * or a load; they only move bytes and set `broken`. All decisions are taken in the tick (tick.c),
 * which runs in BEFORE_SLEEP.
 *
 * Big model files travel through the same socket, in slices of at most 256 KB a tick and
 * straight from the key's own memory. A memfd over SCM_RIGHTS would save one copy, but needs a
 * second way of framing for something that happens once per start. */
#include "core/worker_link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/blob.h"
#include "core/worker_process.h"

enum {
    READ_SLICE = 256 << 10,  /* bytes read per call */
    READ_AHEAD = 4 << 20,    /* unhandled bytes past which reading stops until a tick made room */
    WRITE_SLICE = 256 << 10, /* bytes written per tick, so that one model does not hold the loop */
    WRITE_PARTS = 256,       /* chunks per writev */
    GATHER_MS = 4,           /* between two writes of nothing but what may wait: each wakes the worker */
    GATHER_BYTES = 64 << 10, /* that are written at once all the same */
    BACKOFF_FIRST = 100,     /* ms until the first restart; doubles with each failure */
    /* … up to here: a worker that can be started again is back soon, and one that can't costs
     * little */
    BACKOFF_MOST = 5000,
    SETTLED_US = 10000000    /* a worker that was ready this long starts afresh at BACKOFF_FIRST */
};

static void on_socket(int fd, void *data, int mask);

/* `tail` is a model's file that follows the frame. */
static void queue_frame(struct chunk_queue *queue, struct frame_writer *writer, struct blob *tail) {
    size_t length;
    frame_end(writer);
    char *data = buffer_take(&writer->buffer, &length);
    queue_add(queue, data, NULL, length);
    if (tail && tail->length > 0) queue_add(queue, NULL, blob_retain(tail), tail->length);
}

/* ---- sending ---- */

static bool link_up(void) { return shardqa.link.fd >= 0 && !shardqa.link.broken; }

/* Dropped where there is no worker: a new one is told everything anyway. */
void link_send(struct frame_writer *writer, struct blob *tail) {
    if (link_up())
        queue_frame(&shardqa.link.out, writer, tail);
    else
        buffer_free(&writer->buffer);
}

/* Events: many come one right after another. */
void link_send_patient(struct frame_writer *writer) {
    link_send(writer, NULL);
    if (link_up()) queue_let_wait(&shardqa.link.out);
}

/* Held until the worker is ready, so that a client may ask while it starts, or before that. */
void link_request(struct frame_writer *writer) {
    struct worker_link *link = &shardqa.link;
    queue_frame(link->state == LINK_READY ? &link->out : &link->requests, writer, NULL);
}

/* Room for the header of a payload that link_send_filled sends. */
void link_leave_room(struct buffer *buffer) {
    static const char header[FRAME_HEADER];
    buffer_add(buffer, header, sizeof header);
}

/* A frame whose payload is no list and stands in its buffer already: megabytes need no copy. Takes
 * the bytes over. */
void link_send_filled(uint8_t type, uint64_t id, struct buffer *buffer) {
    size_t total;
    if (!link_up()) return buffer_free(buffer);
    frame_header(buffer->data, type, id, buffer->length - FRAME_HEADER);
    char *data = buffer_take(buffer, &total);
    queue_add(&shardqa.link.out, data, NULL, total);
}

/* The same of bytes that stay the caller's. */
void link_send_bare(uint8_t type, uint64_t id, const char *payload, size_t length) {
    struct buffer buffer = {0};
    buffer_reserve(&buffer, FRAME_HEADER + length);
    link_leave_room(&buffer);
    buffer_add(&buffer, payload, length);
    link_send_filled(type, id, &buffer);
}

/* One system call takes from several chunks. */
static ssize_t write_slice(struct worker_link *link) {
    struct iovec parts[WRITE_PARTS];
    size_t bytes = 0, skip = link->sent_of_first;
    int count = 0;
    for (struct chunk *c = link->out.first; c && count < WRITE_PARTS && bytes < WRITE_SLICE; c = c->next) {
        char *data = c->blob ? c->blob->data : c->data;
        size_t length = c->length - skip;
        if (length > WRITE_SLICE - bytes) length = WRITE_SLICE - bytes;
        parts[count++] = (struct iovec){.iov_base = data + skip, .iov_len = length};
        bytes += length;
        skip = 0;
    }
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)count};
    return sendmsg(link->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Chunks that are sent as a whole are freed. */
static void forget_sent(struct worker_link *link, size_t sent) {
    while (sent > 0) {
        size_t left = link->out.first->length - link->sent_of_first;
        if (sent < left) {
            link->sent_of_first += sent;
            return;
        }
        sent -= left;
        link->sent_of_first = 0;
        queue_drop_first(&link->out);
    }
}

/* Only while something waits: a writable socket would wake the loop for ever. */
static void watch_writable(struct worker_link *link, bool watch) {
    if (link->writing == watch) return;
    if (watch)
        redis.EventLoopAdd(link->fd, LOOP_WRITABLE, on_socket, NULL);
    else
        redis.EventLoopDel(link->fd, LOOP_WRITABLE);
    link->writing = watch;
}

/* Writes what the socket takes; the event loop calls for the rest. */
void link_flush(void) {
    struct worker_link *link = &shardqa.link;
    if (!link_up()) return;
    if (link->out.first) {
        link->written_us = redis.MonotonicMicroseconds();
        ssize_t sent = write_slice(link);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) return link_break("its socket is closed");
        if (sent > 0) forget_sent(link, (size_t)sent);
    }
    watch_writable(link, link->out.first != NULL);
}

static void on_gathered(RedisCtx *ctx, void *data) {
    (void)ctx;
    (void)data;
    shardqa.link.gathering = false;
    link_flush();
}

/* What may wait, and what comes meanwhile, is written a moment after the last write. */
static bool gathers(struct worker_link *link) {
    if (link->out.urgent > 0 || link->writing || link->out.bytes >= GATHER_BYTES) return false;
    if (redis.MonotonicMicroseconds() - link->written_us >= GATHER_MS * 1000) return false;
    if (!link->gathering) link->gather_timer = redis.CreateTimer(shardqa.ctx, GATHER_MS, on_gathered, NULL);
    return link->gathering = true;
}

/* At the end of a tick. */
void link_write(void) {
    struct worker_link *link = &shardqa.link;
    if (link->writing || (link->out.first && !gathers(link))) link_flush();
}

/* ---- receiving ---- */

/* Back pressure: a full socket stops the worker. */
void link_pause_reading(bool pause) {
    struct worker_link *link = &shardqa.link;
    if (link->fd < 0 || link->reading == !pause) return;
    if (pause)
        redis.EventLoopDel(link->fd, LOOP_READABLE);
    else
        redis.EventLoopAdd(link->fd, LOOP_READABLE, on_socket, NULL);
    link->reading = !pause;
}

/* Is a whole frame there that no tick has handled? Then more bytes can wait; a half frame must
 * go on growing. */
static bool enough_to_do(struct worker_link *link) {
    struct frame frame;
    size_t size, unhandled = link->in.length - link->in_handled;
    if (unhandled < READ_AHEAD) return false;
    return frame_decode(link->in.data + link->in_handled, unhandled, &frame, &size) != FRAME_PARTIAL;
}

/* Only moves bytes: frames take effect in the tick. */
static void read_socket(struct worker_link *link) {
    buffer_reserve(&link->in, READ_SLICE);
    ssize_t got = recv(link->fd, link->in.data + link->in.length, READ_SLICE, MSG_DONTWAIT);
    if (got > 0)
        link->in.length += (size_t)got;
    else if (got == 0)
        link_break("it closed its socket");
    else if (errno != EAGAIN && errno != EINTR)
        link_break("its socket failed");
    if (!link->broken && enough_to_do(link)) link_pause_reading(true);
}

/* Stays in `in` until in_handled is moved. */
enum frame_result link_next_frame(struct frame *frame, size_t *size) {
    struct worker_link *link = &shardqa.link;
    enum frame_result result = frame_decode(link->in.data + link->in_handled, link->in.length - link->in_handled, frame,
                                            size);
    if (result == FRAME_MALFORMED) link_break("it sent something that is no frame");
    return result;
}

/* A broken link keeps them: it is taken down as a whole. */
void link_drop_handled(void) {
    struct worker_link *link = &shardqa.link;
    if (link->in_handled == 0 || link->broken) return;
    buffer_consume(&link->in, link->in_handled);
    link->in_handled = 0;
}

/* For who waits for the worker outside the event loop. */
void link_read(void) {
    if (link_up()) read_socket(&shardqa.link);
}

static void on_socket(int fd, void *data, int mask) {
    struct worker_link *link = &shardqa.link;
    (void)data;
    if (fd != link->fd) return;
    if (mask & LOOP_READABLE && !link->broken) read_socket(link);
    if (mask & LOOP_WRITABLE && !link->broken) link_flush();
}

/* ---- start ---- */

/* The pidfd is readable once the process has ended. */
static void on_exit_of_worker(int fd, void *data, int mask) {
    (void)data;
    (void)mask;
    redis.EventLoopDel(fd, LOOP_READABLE); /* level triggered: it would spin inside a long script */
    link_break("it exited");
}

void link_init(void) {
    shardqa.link.backoff_ms = BACKOFF_FIRST;
    process_init();
}

/* 0 where Redis listens on TLS alone. */
static long long server_port(void) {
    int error = 0;
    RedisServerInfo *info = redis.GetServerInfo(shardqa.ctx, "server");
    long long port = redis.ServerInfoGetFieldSigned(info, "tcp_port", &error);
    redis.FreeServerInfo(shardqa.ctx, info);
    return error == REDIS_OK ? port : 0;
}

/* HELLO: what a worker has to know before anything else. */
static void greet(void) {
    struct frame_writer w;
    frame_begin(&w, FRAME_HELLO, 0);
    frame_text(&w, FRAME_VERSION_TEXT);
    frame_text(&w, shardqa.node_id);
    frame_text(&w, shardqa.master ? "master" : "replica");
    frame_number(&w, shardqa.cluster ? 1 : 0);
    frame_number(&w, server_port());
    arguments_greet(&w);
    link_send(&w, NULL);
    link_flush();
}

static void on_restart_timer(RedisCtx *ctx, void *data) {
    (void)ctx;
    (void)data;
    shardqa.link.restart_armed = false;
    shardqa.link.restarts++;
    link_spawn();
}

/* After a time that doubles with each failure, up to BACKOFF_MOST. */
static void arm_restart(void) {
    struct worker_link *link = &shardqa.link;
    link->state = LINK_DOWN;
    if (shardqa.shutting_down || link->restart_armed) return;
    link->restart_timer = redis.CreateTimer(shardqa.ctx, link->backoff_ms, on_restart_timer, NULL);
    link->restart_armed = true;
    link->backoff_ms = link->backoff_ms * 2 > BACKOFF_MOST ? BACKOFF_MOST : link->backoff_ms * 2;
}

/* A new worker's socket, with everything of the old one reset. */
static void adopt(int fd) {
    struct worker_link *link = &shardqa.link;
    link->fd = fd;
    link->state = LINK_STARTING;
    link->broken = link->started = link->writing = link->reading = false;
    link->sent_of_first = link->in_handled = 0;
    link_pause_reading(false);
    if (link->pidfd >= 0) redis.EventLoopAdd(link->pidfd, LOOP_READABLE, on_exit_of_worker, NULL);
}

/* Starts a worker. It takes requests once it says READY. */
void link_spawn(void) {
    int socket;
    if (shardqa.arguments.python == NULL || shardqa.shutting_down) return;
    int error = process_start(&socket);
    if (error != 0) {
        redis.Log(
            shardqa.ctx, "warning",
            "the worker could not be started: %s: %s (errno %d); PYTHON must be the absolute path of an executable "
            "that this "
            "service may run (under systemd see docs/redis-server.service.d)",
            shardqa.arguments.python, strerror(error), error);
        shardqa.link.was_ready = false;
        queue_clear(&shardqa.link.requests);
        arm_restart();
        return;
    }
    adopt(socket);
    redis.Log(shardqa.ctx, "notice", "worker started, pid %d", (int)shardqa.link.pid);
    greet();
}

/* ---- death ---- */

static void nothing(void *unused) { (void)unused; }

void link_wake(void) { redis.EventLoopAddOneShot(nothing, NULL); }

/* Marks the worker as lost. link_take_down does the rest, in the tick. */
void link_break(const char *why) {
    struct worker_link *link = &shardqa.link;
    if (link->fd < 0 || link->broken) return;
    link->broken = true;
    link->broken_why = why;
    link_pause_reading(true);
    watch_writable(link, false);
    link_wake();
}

/* What was on its way either way is dropped. */
static void close_link(struct worker_link *link) {
    link_pause_reading(true);
    watch_writable(link, false);
    close(link->fd);
    link->fd = -1;
    queue_clear(&link->out);
    queue_clear(&link->requests);
    buffer_free(&link->in);
    link->in_handled = 0;
}

/* The worker has ended or is ended here; the next one is on its way. */
bool link_take_down(int *signal) {
    struct worker_link *link = &shardqa.link;
    char how[64];
    if (!link->broken) return false;
    bool settled = link->state == LINK_READY && redis.MonotonicMicroseconds() - link->ready_since_us > SETTLED_US;
    *signal = process_end(how, sizeof how);
    snprintf(link->last_end, sizeof link->last_end, "%s (%s)", link->broken_why, how);
    redis.Log(shardqa.ctx, "warning", "the worker is gone: %s (%s); waiting clients are answered TRYAGAIN",
              link->broken_why, how);
    close_link(link);
    link->broken = false;
    link->was_ready = link->state == LINK_READY;
    if (settled) link->backoff_ms = BACKOFF_FIRST;
    arm_restart();
    return true;
}

/* Everything is loaded, and the worker has got it. */
void link_send_start(void) {
    struct frame_writer start;
    frame_begin(&start, FRAME_START, 0);
    link_send(&start, NULL);
    shardqa.link.started = true;
}

void link_cron(void) { process_collect(); }

/* What was held goes out now. */
void link_ready(void) {
    struct worker_link *link = &shardqa.link;
    if (link->state != LINK_STARTING) return;
    link->state = LINK_READY;
    link->ready_since_us = redis.MonotonicMicroseconds();
    queue_move(&link->out, &link->requests);
    redis.Log(shardqa.ctx, "notice", "worker ready: %s", link->versions);
}

/* Redis shuts down; link_continue takes it back. */
void link_stop(void) {
    link_flush(); /* nothing gathers any more */
    shardqa.shutting_down = true;
    if (shardqa.link.restart_armed) redis.StopTimer(shardqa.ctx, shardqa.link.restart_timer, NULL);
    shardqa.link.restart_armed = false;
}

/* The shutdown was refused or cancelled. */
void link_continue(void) {
    shardqa.shutting_down = false;
    if (shardqa.link.state == LINK_DOWN && !shardqa.link.broken) arm_restart();
}

/* ---- state ---- */

bool link_usable(void) {
    return link_up() && (shardqa.link.state == LINK_STARTING || shardqa.link.state == LINK_READY);
}

/* One that ended before it was ready may do so again and again: nobody is made to wait for it. */
bool link_returns(void) {
    return shardqa.link.state == LINK_DOWN && shardqa.link.restart_armed && shardqa.link.was_ready;
}

bool link_has_room(void) { return shardqa.link.out.bytes + shardqa.link.requests.bytes < QUEUE_LIMIT; }

bool link_has_room_for_model(void) { return shardqa.link.out.model_bytes < QUEUE_LIMIT; }

/* What clients are told meanwhile. */
const char *link_unusable_error(void) {
    if (shardqa.arguments.python == NULL)
        return "ERR this needs the worker, and the module was loaded without one; load it with PYTHON "
               "/path/to/venv/bin/python";
    return "TRYAGAIN the worker of this node is being restarted; try again";
}

const char *link_state_name(void) {
    static const char *const names[] = {"off", "down", "starting", "ready"};
    return shardqa.activity.silent ? "silent" : names[shardqa.link.state];
}
