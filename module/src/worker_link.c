/* The worker process: start, streams, death.
 *
 * Threading: main thread only. The callbacks of descriptors may run nested, inside a busy script or a load; they only move bytes
 * and set `broken`. All decisions are taken in link_tick, which runs in BEFORE_SLEEP.
 *
 * The worker is a direct child made by posix_spawn (no copy of a big heap's page tables, its pid is known, and PR_SET_PDEATHSIG,
 * which the worker arms itself, works; a double fork would break it). A forked child of Redis (BGSAVE) must never touch our
 * descriptors, and must not keep them open either, or the worker would see our death late: pthread_atfork closes them there.
 *
 * Big model files travel through the same socket, in slices of at most 256 KB a tick and straight from the key's own memory.
 * A memfd over SCM_RIGHTS would save one copy, but needs a second way of framing for something that happens once per start. */
#include "worker_link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "activity.h"
#include "events.h"
#include "gears.h"
#include "model.h"
#include "pending.h"
#include "rights.h"
#include "tick.h"

enum {
    READ_SLICE = 256 << 10,  /* bytes read per call */
    READ_AHEAD = 4 << 20,    /* unhandled bytes past which reading stops until a tick made room */
    WRITE_SLICE = 256 << 10, /* bytes written per tick, so that one model does not hold the loop */
    WRITE_PARTS = 32,        /* chunks per writev */
    ERROR_LINE = 1000,       /* bytes of one line of stderr that reach the log */
    EXIT_MS = 20,            /* Redis waits for the end of a worker whose socket has ended */
    BACKOFF_FIRST = 100,     /* ms until the first restart; doubles */
    BACKOFF_LAST = 5000,     /* ms at most */
    SETTLED_US = 10000000    /* a worker that was ready this long starts afresh at BACKOFF_FIRST */
};

static void on_socket(int fd, void *data, int mask);

/* ---- queues of chunks ---- */

static size_t *counter(struct chunk_queue *queue, const struct chunk *chunk) {
    return chunk->blob ? &queue->model_bytes : &queue->bytes;
}

static void queue_add(struct chunk_queue *queue, char *data, struct blob *blob, size_t length) {
    struct chunk *chunk = redis.Alloc(sizeof *chunk);
    *chunk = (struct chunk){.data = data, .blob = blob, .length = length};
    if (queue->last)
        queue->last->next = chunk;
    else
        queue->first = chunk;
    queue->last = chunk;
    *counter(queue, chunk) += length;
}

static void queue_drop_first(struct chunk_queue *queue) {
    struct chunk *chunk = queue->first;
    queue->first = chunk->next;
    if (queue->first == NULL) queue->last = NULL;
    *counter(queue, chunk) -= chunk->length;
    if (chunk->blob) blob_release(chunk->blob);
    redis.Free(chunk->data);
    redis.Free(chunk);
}

static void queue_clear(struct chunk_queue *queue) {
    while (queue->first) queue_drop_first(queue);
}

static void queue_move(struct chunk_queue *to, struct chunk_queue *from) {
    if (from->first == NULL) return;
    if (to->last)
        to->last->next = from->first;
    else
        to->first = from->first;
    to->last = from->last;
    to->bytes += from->bytes;
    to->model_bytes += from->model_bytes;
    *from = (struct chunk_queue){0};
}

static void queue_frame(struct chunk_queue *queue, struct frame_writer *writer, struct blob *tail) {
    size_t length;
    frame_end(writer);
    char *data = buffer_take(&writer->buffer, &length);
    queue_add(queue, data, NULL, length);
    if (tail && tail->length > 0) queue_add(queue, NULL, blob_retain(tail), tail->length);
}

/* ---- sending ---- */

static bool link_up(void) { return shardqa.link.fd >= 0 && !shardqa.link.broken; }

void link_send(struct frame_writer *writer, struct blob *tail) {
    if (link_up())
        queue_frame(&shardqa.link.out, writer, tail);
    else
        buffer_free(&writer->buffer);
}

void link_request(struct frame_writer *writer) {
    struct worker_link *link = &shardqa.link;
    queue_frame(link->state == LINK_READY ? &link->out : &link->held, writer, NULL);
}

void link_send_bare(enum frame_type type, uint64_t id, const char *payload, size_t length) {
    struct buffer buffer = {0};
    char header[FRAME_HEADER];
    size_t total;
    if (!link_up()) return;
    frame_header(header, type, id, length);
    buffer_reserve(&buffer, sizeof header + length);
    buffer_add(&buffer, header, sizeof header);
    buffer_add(&buffer, payload, length);
    char *data = buffer_take(&buffer, &total);
    queue_add(&shardqa.link.out, data, NULL, total);
}

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

static void watch_writable(struct worker_link *link, bool wanted) {
    if (link->writing == wanted) return;
    if (wanted)
        redis.EventLoopAdd(link->fd, LOOP_WRITABLE, on_socket, NULL);
    else
        redis.EventLoopDel(link->fd, LOOP_WRITABLE);
    link->writing = wanted;
}

void link_flush(void) {
    struct worker_link *link = &shardqa.link;
    if (!link_up()) return;
    if (link->out.first) {
        ssize_t sent = write_slice(link);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) return link_break("its socket is closed");
        if (sent > 0) forget_sent(link, (size_t)sent);
    }
    watch_writable(link, link->out.first != NULL);
}

/* ---- receiving ---- */

void link_pause_reading(bool pause) {
    struct worker_link *link = &shardqa.link;
    if (link->fd < 0 || link->reading == !pause) return;
    if (pause)
        redis.EventLoopDel(link->fd, LOOP_READABLE);
    else
        redis.EventLoopAdd(link->fd, LOOP_READABLE, on_socket, NULL);
    link->reading = !pause;
}

/* Is a whole frame there that no tick has handled? Then more bytes can wait; a half frame must go on growing. */
static bool enough_to_do(struct worker_link *link) {
    struct frame frame;
    size_t wanted, unhandled = link->in.length - link->in_handled;
    if (unhandled < READ_AHEAD) return false;
    return frame_decode(link->in.data + link->in_handled, unhandled, &frame, &wanted) != FRAME_PARTIAL;
}

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

static void on_socket(int fd, void *data, int mask) {
    struct worker_link *link = &shardqa.link;
    (void)data;
    if (fd != link->fd) return;
    if (mask & LOOP_READABLE && !link->broken) read_socket(link);
    if (mask & LOOP_WRITABLE && !link->broken) link_flush();
}

/* ---- stderr into the log ---- */

static void log_line(const char *line, size_t length) {
    if (length > ERROR_LINE) length = ERROR_LINE;
    if (length > 0) redis.Log(shardqa.ctx, "notice", "worker: %.*s", (int)length, line);
}

static void log_lines(struct buffer *buffer) {
    char *newline;
    while (buffer->length > 0 && (newline = memchr(buffer->data, '\n', buffer->length)) != NULL) {
        size_t length = (size_t)(newline - buffer->data);
        log_line(buffer->data, length);
        buffer_consume(buffer, length + 1);
    }
    if (buffer->length >= ERROR_LINE) {
        log_line(buffer->data, buffer->length);
        buffer_consume(buffer, buffer->length);
    }
}

static ssize_t read_errors(struct worker_link *link) {
    char slice[4096];
    ssize_t got = read(link->error_fd, slice, sizeof slice);
    if (got > 0) {
        buffer_add(&link->error_line, slice, (size_t)got);
        log_lines(&link->error_line);
    }
    return got;
}

static void close_errors(struct worker_link *link) {
    if (link->error_fd < 0) return;
    redis.EventLoopDel(link->error_fd, LOOP_READABLE);
    close(link->error_fd);
    link->error_fd = -1;
    log_line(link->error_line.data, link->error_line.length);
    buffer_free(&link->error_line);
}

static void on_errors(int fd, void *data, int mask) {
    struct worker_link *link = &shardqa.link;
    (void)data;
    (void)mask;
    if (fd != link->error_fd) return;
    ssize_t got = read_errors(link);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) close_errors(link);
}

/* ---- start ---- */

static void on_exit_of_worker(int fd, void *data, int mask) {
    (void)data;
    (void)mask;
    redis.EventLoopDel(fd, LOOP_READABLE); /* level triggered: it would spin inside a long script */
    link_break("it exited");
}

static void close_in_forked_child(void) {
    struct worker_link *link = &shardqa.link;
    int *fds[] = {&link->fd, &link->error_fd, &link->pidfd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        if (*fds[i] >= 0) close(*fds[i]);
        *fds[i] = -1;
    }
}

void link_init(void) {
    struct worker_link *link = &shardqa.link;
    link->fd = link->error_fd = link->pidfd = -1;
    link->backoff_ms = BACKOFF_FIRST;
    pthread_atfork(NULL, NULL, close_in_forked_child);
}

static void signals_as_at_birth(posix_spawnattr_t *attributes) {
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(attributes, &all); /* Redis ignores SIGPIPE and SIGHUP; ignored signals are inherited */
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
}

/* 0, or the errno of the failure. On success the child holds `theirs` as descriptor 3, `page` as 4 and `errors` as 1 and 2. */
static int spawn(int theirs, int errors, int page, pid_t *pid) {
    char home[4096];
    snprintf(home, sizeof home, "HOME=%s", shardqa.settings.home ? shardqa.settings.home : "/");
    char readable[4200], writable[4200];
    snprintf(readable, sizeof readable, "SHARDQA_READABLE=%s", shardqa.settings.readable ? shardqa.settings.readable : "");
    snprintf(writable, sizeof writable, "SHARDQA_WRITABLE=%s", shardqa.settings.writable ? shardqa.settings.writable : "");
    char *sandbox = shardqa.settings.no_sandbox ? "SHARDQA_SANDBOX=no" : "SHARDQA_SANDBOX=yes";
    char *argv[] = {shardqa.settings.python, "-I", "-m", "shardqa.module.worker", NULL};
    char *environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", home, "SHARDQA_ACTIVITY_FD=" ACTIVITY_FD_TEXT, sandbox, readable, writable, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, errors, 1);
    posix_spawn_file_actions_adddup2(&actions, errors, 2);
    posix_spawn_file_actions_adddup2(&actions, theirs, 3);
    posix_spawn_file_actions_adddup2(&actions, page, ACTIVITY_FD);
    posix_spawn_file_actions_addclosefrom_np(&actions, ACTIVITY_FD + 1); /* the AOF and outgoing links are not CLOEXEC in Redis */
    posix_spawnattr_init(&attributes);
    signals_as_at_birth(&attributes);
    int error = posix_spawn(pid, argv[0], &actions, &attributes, argv, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static int set_nonblocking(int fd) { return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

/* Moves a descriptor above the child's own, so that no dup2 there overwrites one that is still needed. */
static int out_of_the_way(int fd) {
    if (fd < 0 || fd > ACTIVITY_FD) return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, ACTIVITY_FD + 1);
    close(fd);
    return moved;
}

static int make_pairs(int sockets[2], int errors[2]) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return errno;
    if (pipe2(errors, O_CLOEXEC) != 0) {
        int error = errno;
        close(sockets[0]);
        close(sockets[1]);
        return error;
    }
    for (int i = 0; i < 2; i++) {
        sockets[i] = out_of_the_way(sockets[i]);
        errors[i] = out_of_the_way(errors[i]);
    }
    set_nonblocking(sockets[0]);
    set_nonblocking(errors[0]);
    return 0;
}

static long long server_port(void) {
    int error = 0;
    RedisServerInfo *info = redis.GetServerInfo(shardqa.ctx, "server");
    long long port = redis.ServerInfoGetFieldSigned(info, "tcp_port", &error);
    redis.FreeServerInfo(shardqa.ctx, info);
    return error == REDIS_OK ? port : 0;
}

static void greet(void) {
    struct frame_writer w;
    frame_begin(&w, FRAME_HELLO, 0);
    frame_text(&w, FRAME_VERSION_TEXT);
    frame_text(&w, shardqa.node_id);
    frame_text(&w, shardqa.master ? "master" : "replica");
    frame_number(&w, shardqa.cluster ? 1 : 0);
    frame_number(&w, server_port());
    frame_text(&w, "threads");
    frame_number(&w, shardqa.settings.intra_op ? shardqa.settings.intra_op : shardqa.settings.threads);
    frame_text(&w, "timeout");
    frame_number(&w, shardqa.settings.timeout_ms);
    frame_text(&w, "execution_timeout");
    frame_number(&w, shardqa.settings.execution_timeout_ms);
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

static void arm_restart(void) {
    struct worker_link *link = &shardqa.link;
    link->state = LINK_DOWN;
    if (shardqa.shutting_down || link->restart_armed) return;
    link->restart_timer = redis.CreateTimer(shardqa.ctx, link->backoff_ms, on_restart_timer, NULL);
    link->restart_armed = true;
    link->backoff_ms = link->backoff_ms * 2 > BACKOFF_LAST ? BACKOFF_LAST : link->backoff_ms * 2;
}

static void adopt(int fd, int error_fd, pid_t pid) {
    struct worker_link *link = &shardqa.link;
    link->fd = fd;
    link->error_fd = error_fd;
    link->pid = pid;
    link->pidfd = (int)syscall(SYS_pidfd_open, pid, 0); /* -1 on old kernels: the socket's end tells as well */
    link->state = LINK_STARTING;
    link->broken = link->started = link->writing = link->reading = false;
    link->sent_of_first = link->in_handled = 0;
    link_pause_reading(false);
    redis.EventLoopAdd(error_fd, LOOP_READABLE, on_errors, NULL);
    if (link->pidfd >= 0) {
        fcntl(link->pidfd, F_SETFD, FD_CLOEXEC);
        redis.EventLoopAdd(link->pidfd, LOOP_READABLE, on_exit_of_worker, NULL);
    }
}

void link_spawn(void) {
    int sockets[2], errors[2];
    pid_t pid = 0;
    if (shardqa.settings.python == NULL || shardqa.shutting_down) return;
    int error = make_pairs(sockets, errors);
    if (error == 0) {
        int page = out_of_the_way(activity_open());
        error = page < 0 ? errno : spawn(sockets[1], errors[1], page, &pid);
        if (page >= 0) close(page);
        close(sockets[1]);
        close(errors[1]);
        if (error != 0) {
            close(sockets[0]);
            close(errors[0]);
        }
    }
    if (error != 0) {
        redis.Log(shardqa.ctx, "warning",
                  "the worker could not be started: %s: %s (errno %d); PYTHON must be the absolute path of an executable that this "
                  "service may run (under systemd see docs/redis-server.service.d)",
                  shardqa.settings.python, strerror(error), error);
        arm_restart();
        return;
    }
    adopt(sockets[0], errors[0], pid);
    redis.Log(shardqa.ctx, "notice", "worker started, pid %d", (int)pid);
    greet();
}

/* ---- death ---- */

void link_break(const char *why) {
    struct worker_link *link = &shardqa.link;
    if (link->fd < 0 || link->broken) return;
    link->broken = true;
    link->broken_why = why;
    link_pause_reading(true);
    watch_writable(link, false);
    redis.EventLoopAddOneShot(tick_wake, NULL);
}

/* -1: it still runs. Else the signal that ended it, 0 where none did. */
static int reap_one(pid_t pid, char *how, size_t size) {
    int status = 0;
    pid_t got = waitpid(pid, &status, WNOHANG);
    if (got == 0) return -1;
    if (got > 0 && WIFEXITED(status))
        snprintf(how, size, "exit status %d", WEXITSTATUS(status));
    else if (got > 0 && WIFSIGNALED(status))
        snprintf(how, size, "signal %d", WTERMSIG(status));
    else
        snprintf(how, size, "reaped by Redis"); /* ECHILD: serverCron may have been faster */
    return got > 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* SIGKILL first: a worker that sent garbage may still run. Waiting could stop Redis for as long as the kernel takes to free a big
 * process, so one that is not gone yet is left in `zombies` and collected later. */
static int reap(struct worker_link *link, char *how, size_t size) {
    int signal = reap_one(link->pid, how, size);
    if (signal >= 0) {
        link->pid = 0;
        return signal;
    }
    kill(link->pid, SIGKILL);
    snprintf(how, size, "its end is being awaited");
    for (size_t i = 0; i < ZOMBIES; i++)
        if (link->zombies[i] == 0) {
            link->zombies[i] = link->pid;
            break;
        }
    link->pid = 0;
    return 0;
}

/* The socket of a process that crashed ends a moment before the process does, and how it ended matters. */
static void await_exit(const struct worker_link *link) {
    struct pollfd end = {.fd = link->pidfd, .events = POLLIN};
    if (link->pidfd >= 0 && !shardqa.activity.killed) poll(&end, 1, EXIT_MS);
}

static void collect_zombies(struct worker_link *link) {
    char how[64];
    for (size_t i = 0; i < ZOMBIES; i++) {
        if (link->zombies[i] == 0 || reap_one(link->zombies[i], how, sizeof how) < 0) continue;
        redis.Log(shardqa.ctx, "notice", "worker %d ended: %s", (int)link->zombies[i], how);
        link->zombies[i] = 0;
    }
}

static void close_link(struct worker_link *link) {
    link_pause_reading(true);
    watch_writable(link, false);
    close(link->fd);
    link->fd = -1;
    if (link->pidfd >= 0) {
        redis.EventLoopDel(link->pidfd, LOOP_READABLE);
        close(link->pidfd);
        link->pidfd = -1;
    }
    for (int i = 0; i < 64 && link->error_fd >= 0 && read_errors(link) > 0; i++) continue; /* its last words */
    close_errors(link);
    queue_clear(&link->out);
    queue_clear(&link->held);
    buffer_free(&link->in);
    link->in_handled = 0;
}

static void take_down(void) {
    struct worker_link *link = &shardqa.link;
    char how[64];
    bool settled = link->state == LINK_READY && redis.MonotonicMicroseconds() - link->ready_since_us > SETTLED_US;
    await_exit(link);
    activity_worker_ended(reap(link, how, sizeof how));
    snprintf(link->last_end, sizeof link->last_end, "%s (%s)", link->broken_why, how);
    redis.Log(shardqa.ctx, "warning", "the worker is gone: %s (%s); waiting clients are answered TRYAGAIN", link->broken_why, how);
    close_link(link);
    link->broken = false;
    if (settled) link->backoff_ms = BACKOFF_FIRST;
    arm_restart();
    pending_fail_all("TRYAGAIN the worker of this node died while it worked on this; it is being restarted, try again");
    deferred_clear();
    events_forget_watches();
    models_forget_worker();
    gears_forget_worker();
    rights_forget_worker();
}

void link_cron(void) { collect_zombies(&shardqa.link); }

void link_tick(void) {
    struct worker_link *link = &shardqa.link;
    if (link->broken) take_down();
    if (link->fd < 0 || link->started || !shardqa.loaded) return;
    struct frame_writer start;
    gears_send_sessions();
    models_send();
    frame_begin(&start, FRAME_START, 0);
    link_send(&start, NULL);
    link->started = true;
}

void link_ready(void) {
    struct worker_link *link = &shardqa.link;
    if (link->state != LINK_STARTING) return;
    link->state = LINK_READY;
    link->ready_since_us = redis.MonotonicMicroseconds();
    queue_move(&link->out, &link->held);
    redis.Log(shardqa.ctx, "notice", "worker ready: %s", link->versions);
}

void link_stop(void) {
    shardqa.shutting_down = true;
    if (shardqa.link.restart_armed) redis.StopTimer(shardqa.ctx, shardqa.link.restart_timer, NULL);
    shardqa.link.restart_armed = false;
}

void link_continue(void) {
    shardqa.shutting_down = false;
    if (shardqa.link.state == LINK_DOWN && !shardqa.link.broken) arm_restart();
}

/* ---- state ---- */

bool link_usable(void) { return link_up() && (shardqa.link.state == LINK_STARTING || shardqa.link.state == LINK_READY); }

bool link_has_room(void) { return shardqa.link.out.bytes + shardqa.link.held.bytes < QUEUE_LIMIT; }

bool link_has_room_for_model(void) { return shardqa.link.out.model_bytes < QUEUE_LIMIT; }

const char *link_unusable_error(void) {
    if (shardqa.settings.python == NULL)
        return "ERR this needs the worker, and the module was loaded without one; load it with PYTHON /path/to/venv/bin/python";
    return "TRYAGAIN the worker of this node is being restarted; try again";
}

const char *link_state_name(void) {
    static const char *const names[] = {"off", "down", "starting", "ready"};
    return activity_silent() ? "silent" : names[shardqa.link.state];
}
