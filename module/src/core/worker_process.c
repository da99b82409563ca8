/* The worker as a process: its start with descriptors of its own, its stderr in the log, its
 * end.
 *
 * It is a direct child made by posix_spawn (no copy of a big heap's page tables, its pid is
 * known, and PR_SET_PDEATHSIG, which the worker arms itself, works; a double fork would break
 * it). A forked child of Redis (BGSAVE) must never touch our descriptors, and must not keep them
 * open either, or the worker would see our death late: pthread_atfork closes them there. */
#include "core/worker_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/activity.h"
#include "core/peers.h"
#include "core/state.h"
#include "core/text.h"

enum {
    ERROR_LINE = 1000, /* bytes of one line of stderr that reach the log */
    LAST_READS = 64,   /* of the stderr of a worker that has ended */
    EXIT_MS = 20       /* Redis waits for the end of a worker whose socket has ended */
};

/* ---- stderr into the log ---- */

/* A long line is cut. */
static void log_line(const char *line, size_t length) {
    if (length > ERROR_LINE) length = ERROR_LINE;
    if (length > 0) redis.Log(shardqa.ctx, "notice", "worker: %.*s", (int)length, line);
}

/* Whole lines, and a piece that is too long to wait for. */
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

/* An unfinished line is logged as well. */
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

/* In BGSAVE's child: see the head of this file. */
static void close_in_forked_child(void) {
    struct worker_link *link = &shardqa.link;
    int *fds[] = {&link->fd, &link->error_fd, &link->pidfd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        if (*fds[i] >= 0) close(*fds[i]);
        *fds[i] = -1;
    }
    peers_close_in_child();
}

void process_init(void) {
    struct worker_link *link = &shardqa.link;
    link->fd = link->error_fd = link->pidfd = shardqa.peers.fd = -1;
    pthread_atfork(NULL, NULL, close_in_forked_child);
}

/* The worker starts with the signals of a program that a shell starts. */
static void signals_as_at_birth(posix_spawnattr_t *attributes) {
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    /* Redis ignores SIGPIPE and SIGHUP; ignored signals are inherited */
    posix_spawnattr_setsigdefault(attributes, &all);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
}

/* The environment of the worker. */
struct variables {
    char **at;    /* owned, as each of them; NULL behind the last */
    size_t count; /* without that NULL */
};

/* `NAME=value`, of any length. */
__attribute__((format(printf, 2, 3))) static void add(struct variables *variables, const char *format, ...) {
    va_list values, again;
    va_start(values, format);
    va_copy(again, values);
    size_t size = (size_t)vsnprintf(NULL, 0, format, values) + 1;
    char *text = redis.Alloc(size);
    vsnprintf(text, size, format, again);
    va_end(again);
    va_end(values);
    variables->at = redis.Realloc(variables->at, (variables->count + 2) * sizeof *variables->at);
    variables->at[variables->count++] = text;
    variables->at[variables->count] = NULL;
}

/* Those of Redis' own environment that ENVIRONMENT names. */
static void add_named(struct variables *variables) {
    for (const char *name = shardqa.arguments.environment; name && *name;) {
        size_t length = strcspn(name, ",");
        char *word = text_copy(name, length);
        const char *value = getenv(word);
        if (value) add(variables, "%s=%s", word, value);
        redis.Free(word);
        name += length + (name[length] == ',');
    }
}

static const char *or_else(const char *text, const char *other) { return text ? text : other; }

static void add_arguments(struct variables *variables) {
    const struct module_arguments *arguments = &shardqa.arguments;
    add(variables, "SHARDQA_SANDBOX=%s", arguments->sandbox == SANDBOX_NO ? "no" : "yes");
    add(variables, "SHARDQA_READABLE=%s:%s", or_else(arguments->readable, ""), or_else(arguments->models, ""));
    add(variables, "SHARDQA_WRITABLE=%s", or_else(arguments->writable, ""));
    add(variables, "SHARDQA_NETWORK=%s", arguments->sandbox == SANDBOX_NETWORK ? "any" : "peers");
    add(variables, "SHARDQA_USER=%s", or_else(arguments->user, ""));
    add(variables, "SHARDQA_MEMORY=%lld", arguments->memory_mb);
    add(variables, "SHARDQA_REQUIREMENTS=%s", or_else(arguments->requirements, "index"));
    add(variables, "SHARDQA_REQUIREMENTS_SDIST=%s", arguments->requirements_sdist ? "yes" : "no");
}

/* The caller frees them. */
static struct variables environment(void) {
    struct variables variables = {0};
    add(&variables, "PATH=/usr/local/bin:/usr/bin:/bin");
    add(&variables, "LANG=C.UTF-8");
    add(&variables, "LC_ALL=C.UTF-8");
    add(&variables, "HOME=/");
    add(&variables, "SHARDQA_ACTIVITY_FD=%d", ACTIVITY_FD);
    add(&variables, "SHARDQA_PEERS_FD=%d", PEERS_FD);
    add_arguments(&variables);
    add_named(&variables);
    return variables;
}

/* 0, or the errno of the failure. On success the child holds `theirs` as descriptor 3, `page` as
 * 4, `peers` as 5 and `errors` as 1 and 2. */
static int spawn(int theirs, int errors, int page, int peers, pid_t *pid) {
    char *argv[] = {shardqa.arguments.python, "-I", "-m", "shardqa.worker", NULL};
    struct variables variables = environment();
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, errors, 1);
    posix_spawn_file_actions_adddup2(&actions, errors, 2);
    posix_spawn_file_actions_adddup2(&actions, theirs, 3);
    posix_spawn_file_actions_adddup2(&actions, page, ACTIVITY_FD);
    posix_spawn_file_actions_adddup2(&actions, peers, PEERS_FD);
    /* the AOF and outgoing links are not CLOEXEC in Redis */
    posix_spawn_file_actions_addclosefrom_np(&actions, PEERS_FD + 1);
    posix_spawnattr_init(&attributes);
    signals_as_at_birth(&attributes);
    int error = posix_spawn(pid, argv[0], &actions, &attributes, argv, variables.at);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    for (size_t i = 0; i < variables.count; i++) redis.Free(variables.at[i]);
    redis.Free(variables.at);
    return error;
}

static int set_nonblocking(int fd) { return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

/* Moves a descriptor above the child's own, so that no dup2 there overwrites one that is still
 * needed. */
static int out_of_the_way(int fd) {
    if (fd < 0 || fd > PEERS_FD) return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, PEERS_FD + 1);
    close(fd);
    return moved;
}

/* A socket pair for frames and a pipe for stderr. 0, or the errno. */
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

/* The worker runs: what Redis keeps of it. */
static void keep(int error_fd, pid_t pid) {
    struct worker_link *link = &shardqa.link;
    link->error_fd = error_fd;
    link->pid = pid;
    link->pidfd = (int)syscall(SYS_pidfd_open, pid, 0); /* -1 on old kernels: the socket's end tells as well */
    if (link->pidfd >= 0) fcntl(link->pidfd, F_SETFD, FD_CLOEXEC);
    redis.EventLoopAdd(error_fd, LOOP_READABLE, on_errors, NULL);
}

/* 0 and our end of the socket, or the errno. */
int process_start(int *socket) {
    int sockets[2], errors[2];
    pid_t pid = 0;
    int error = make_pairs(sockets, errors);
    if (error != 0) return error;
    /* our ends stay, the worker's ends are closed here once it has them */
    int page = out_of_the_way(activity_open());
    int peers = page < 0 ? -1 : out_of_the_way(peers_open());
    error = peers < 0 ? errno : spawn(sockets[1], errors[1], page, peers, &pid);
    if (page >= 0) close(page);
    if (peers >= 0) close(peers);
    close(sockets[1]);
    close(errors[1]);
    if (error != 0) {
        close(sockets[0]);
        close(errors[0]);
        return error;
    }
    keep(errors[0], pid);
    *socket = sockets[0];
    return 0;
}

/* ---- end ---- */

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

/* SIGKILL first: a worker that sent garbage may still run. Waiting could stop Redis for as long
 * as the kernel takes to free a big process, so one that is not gone yet is left in `zombies`
 * and collected later. */
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

/* The socket of a process that crashed ends a moment before the process does, and how it ended
 * matters. */
static void await_exit(const struct worker_link *link) {
    struct pollfd end = {.fd = link->pidfd, .events = POLLIN};
    if (link->pidfd >= 0 && !shardqa.activity.killed) poll(&end, 1, EXIT_MS);
}

/* Those that took longer to end than Redis could wait. */
void process_collect(void) {
    struct worker_link *link = &shardqa.link;
    char how[64];
    for (size_t i = 0; i < ZOMBIES; i++) {
        if (link->zombies[i] == 0 || reap_one(link->zombies[i], how, sizeof how) < 0) continue;
        redis.Log(shardqa.ctx, "notice", "worker %d ended: %s", (int)link->zombies[i], how);
        link->zombies[i] = 0;
    }
}

/* Ends and collects the process; tells how it ended. The signal, or 0. */
int process_end(char *how, size_t size) {
    struct worker_link *link = &shardqa.link;
    await_exit(link);
    int signal = reap(link, how, size);
    if (link->pidfd >= 0) {
        redis.EventLoopDel(link->pidfd, LOOP_READABLE);
        close(link->pidfd);
        link->pidfd = -1;
    }
    for (int i = 0; i < LAST_READS && link->error_fd >= 0 && read_errors(link) > 0; i++) continue; /* its last words */
    close_errors(link);
    peers_close();
    return signal;
}
