/* Connections to the other nodes of the cluster. The worker, which runs code that somebody
 * brought, may open none itself: it names a node, and gets a socket that is connected to it
 * where the cluster knows that node.
 *
 * Main thread only, all of it in callbacks of descriptors: no key is touched, so they may run
 * inside a busy script. The worker is not trusted: what is no request is passed over, and no
 * more than PEERS_MOST connections are on their way at once.
 *
 * A request is an id (8 bytes, its own business) and a node's id (40 hex digits). The answer is
 * that id and an errno (4 bytes), with the socket beside it (SCM_RIGHTS) where that is 0. */
#include "core/peers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/state.h"

enum {
    NODE_ID = 40,
    REQUEST = 8 + NODE_ID,
    ANSWER = 8 + 4,
    AT_ONCE = 16 /* requests read in one callback */,
    IP_TEXT = 46
};

static void on_request(int fd, void *data, int mask);
static void on_connected(int fd, void *data, int mask);

/* ---- answers ---- */

/* The socket travels beside the bytes where all went well. */
static void answer(const char id[8], int error, int fd) {
    char text[ANSWER];
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    memcpy(text, id, 8);
    memcpy(text + 8, &(int32_t){error}, 4);
    struct iovec part = {.iov_base = text, .iov_len = sizeof text};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (error == 0) {
        message.msg_control = control.space;
        message.msg_controllen = sizeof control.space;
        control.head = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
    }
    sendmsg(shardqa.peers.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT); /* a worker that reads none waits in vain */
}

/* ---- connecting ---- */

/* Where the cluster knows the node. 0 where it knows none. */
static socklen_t address_of(const char *node, struct sockaddr_storage *address) {
    char ip[IP_TEXT + 1] = "";
    int port = 0;
    if (!shardqa.cluster || redis.GetClusterNodeInfo(shardqa.ctx, node, ip, NULL, &port, NULL) != REDIS_OK) return 0;
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
    if (inet_pton(AF_INET, ip, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        return sizeof *v4;
    }
    if (inet_pton(AF_INET6, ip, &v6->sin6_addr) != 1) return 0;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons((uint16_t)port);
    return sizeof *v6;
}

/* A socket on its way to the node, or -1 and errno. */
static int start_connecting(const char *node) {
    struct sockaddr_storage address = {0};
    socklen_t length = address_of(node, &address);
    if (length == 0) {
        errno = ENOENT;
        return -1;
    }
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, length) == 0 || errno == EINPROGRESS) return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* Every request gets an answer, also one that can't be begun. */
static void begin(const char *request) {
    struct peers *p = &shardqa.peers;
    char node[NODE_ID + 1];
    memcpy(node, request + 8, NODE_ID);
    node[NODE_ID] = '\0';
    if (p->count == PEERS_MOST) return answer(request, EAGAIN, -1);
    int fd = start_connecting(node);
    if (fd < 0) return answer(request, errno, -1);
    if (redis.EventLoopAdd(fd, LOOP_WRITABLE, on_connected, NULL) != REDIS_OK) {
        close(fd);
        return answer(request, EMFILE, -1);
    }
    memcpy(p->under_way[p->count].id, request, 8);
    p->under_way[p->count++].fd = fd;
}

/* The worker holds a copy of the socket by now, or gets none. */
static void forget(int place) {
    struct peers *p = &shardqa.peers;
    redis.EventLoopDel(p->under_way[place].fd, LOOP_WRITABLE);
    close(p->under_way[place].fd);
    p->under_way[place] = p->under_way[--p->count];
}

/* The connection stands, or has failed. */
static void on_connected(int fd, void *data, int mask) {
    struct peers *p = &shardqa.peers;
    (void)data;
    (void)mask;
    for (int i = 0; i < p->count; i++) {
        if (p->under_way[i].fd != fd) continue;
        int error = 0;
        socklen_t size = sizeof error;
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
        answer(p->under_way[i].id, error, fd);
        return forget(i);
    }
}

static void on_request(int fd, void *data, int mask) {
    char request[REQUEST];
    (void)data;
    (void)mask;
    for (int i = 0; i < AT_ONCE && fd == shardqa.peers.fd; i++) {
        ssize_t got = recv(fd, request, sizeof request, MSG_DONTWAIT | MSG_TRUNC);
        if (got == sizeof request) begin(request);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0) return peers_close(); /* the worker has gone, or has closed it */
    }
}

/* ---- a worker's life ---- */

/* The worker's end of the pair, or -1. */
int peers_open(void) {
    int sockets[2];
    peers_close();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) return -1;
    shardqa.peers.fd = sockets[0];
    redis.EventLoopAdd(sockets[0], LOOP_READABLE, on_request, NULL);
    return sockets[1];
}

/* The worker has gone: so do its connections on their way. */
void peers_close(void) {
    struct peers *p = &shardqa.peers;
    while (p->count > 0) forget(0);
    if (p->fd < 0) return;
    redis.EventLoopDel(p->fd, LOOP_READABLE);
    close(p->fd);
    p->fd = -1;
}

/* BGSAVE's child must hold no socket open. */
void peers_close_in_child(void) {
    struct peers *p = &shardqa.peers;
    for (int i = 0; i < p->count; i++) close(p->under_way[i].fd);
    if (p->fd >= 0) close(p->fd);
    p->count = 0;
    p->fd = -1;
}
