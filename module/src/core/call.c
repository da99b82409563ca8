/* Commands that the worker asks us to run.
 *
 * They run on the detached context, whose client is the user `default` and whose calls skip our
 * own command filter, and only from inside BEFORE_SLEEP: the real context of that event is what
 * propagates their effects, all of a tick as one MULTI/EXEC. Calling from a descriptor callback
 * instead aborts Redis 7.0 as soon as there is an AOF or a replica. */
#include "core/call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/resp.h"
#include "core/rights.h"
#include "core/state.h"
#include "core/text.h"
#include "core/worker_link.h"

#define FOLLOW "rg._follow" /* of CALLS_CHECK alone */
#define NOT_HERE "-ERR Attempted to access a non local key"
#define CUT_OFF "CLUSTERDOWN this node is cut from most masters; another may have taken over for it, ask again"
#define TRY_AGAIN "TRYAGAIN the key's slot is not served by this shard now; it is moving or another shard's"

enum { MAX_ARGUMENTS = 1 << 20, MAX_CALLS = 65536 };

/* Refused: they end or wedge the server, need a connection of their own, or can exit Redis 7.0
 * when run by a module (RESTORE and MIGRATE of a bad payload, hence scripts too, which could
 * contain RESTORE). */
static const char *const REFUSED[] = {
    "restore",      "restore-asking", "migrate",    "debug",       "module",       "shutdown",     "client",
    "subscribe",    "psubscribe",     "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe", "monitor",
    "multi",        "exec",           "discard",    "watch",       "unwatch",      "sync",         "psync",
    "replconf",     "replicaof",      "slaveof",    "failover",    "auth",         "hello",        "reset",
    "quit",         "select",         "eval",       "evalsha",     "eval_ro",      "evalsha_ro",   "fcall",
    "fcall_ro",     "function",       "script",     "acl",         "save",         "bgsave",       "bgrewriteaof",
    "asking",       "readonly",       "readwrite",  "wait",        "swapdb",       "latency",      "slowlog",
    "rg._register", "rg._unregister", NULL};

/* They only read: a CALL of these alone may run while clients are paused. */
static const char *const READERS[] = {
    "get",       "mget",    "strlen",  "getrange",     "exists",      "type",          "ttl",
    "pttl",      "hget",    "hmget",   "hgetall",      "hkeys",       "hvals",         "hlen",
    "hexists",   "hstrlen", "hscan",   "lrange",       "llen",        "lindex",        "smembers",
    "sismember", "scard",   "sscan",   "zrange",       "zrevrange",   "zrangebyscore", "zrevrangebyscore",
    "zscore",    "zcard",   "zcount",  "zscan",        "scan",        "dbsize",        "info",
    "ping",      "time",    "memory",  "object",       "dump",        "xrange",        "xlen",
    "cluster",   "config",  "command", "ai.tensorget", "ai.modelget", "ai._modelscan", "ai.info",
    NULL};

static const char *const CLUSTER_READS[] = {"slots", "shards",          "nodes",         "info", "keyslot",
                                            "myid",  "countkeysinslot", "getkeysinslot", NULL};

/* Whether a list of words has this one, in any case. */
static bool listed(const char *const *words, const char *text, size_t length) {
    for (; *words; words++)
        if (bytes_are(text, length, *words)) return true;
    return false;
}

enum call_flags {
    CALLS_RUN = 0,
    CALLS_CHECK = 1 /* whether the user may run them; nothing is run */
}; /* from SECTION_FIRST on: a section */

/* What the worker itself may run, without a user's rights: looks at the cluster, and at the
 * login of its own replication, with which it asks other shards. */
static const char *const OWN_CONFIG[] = {"masteruser", "masterauth", NULL};

/* One call of the frame: borrowed from it. */
struct call {
    struct frame_bytes name;
    RedisString **argv; /* owned; without the name */
    size_t argc; /* words of argv */
};

/* Takes the next command off the frame. False where the frame is malformed; then nothing is
 * owned. */
static bool read_call(struct frame_list *list, struct call *call) {
    struct frame_bytes item;
    long long argc;
    if (!frame_list_number(list, &argc) || argc < 1 || argc > MAX_ARGUMENTS || argc > list->left) return false;
    frame_list_next(list, &call->name);
    call->argc = (size_t)argc - 1;
    call->argv = redis.Alloc(sizeof *call->argv * (call->argc + 1));
    for (size_t i = 0; i < call->argc; i++) {
        frame_list_next(list, &item);
        call->argv[i] = redis.CreateString(NULL, item.data, item.length);
    }
    return true;
}

static void free_call(struct call *call) {
    for (size_t i = 0; i < call->argc; i++) redis.FreeString(NULL, call->argv[i]);
    redis.Free(call->argv);
}

/* NULL when the call may run, else the error. */
static const char *refusal(const struct call *call) {
    const struct frame_bytes *name = &call->name;
    if (name->length == 0 || name->length > 128 || memchr(name->data, '\0', name->length)) return "ERR unknown command";
    if (listed(REFUSED, name->data, name->length))
        return "ERR this command is refused to functions: it could stop the server or needs a connection of its own";
    bool cluster = bytes_are(name->data, name->length, "cluster"),
         config = bytes_are(name->data, name->length, "config");
    if (!cluster && !config) return NULL;
    size_t length = 0;
    const char *word = call->argc > 0 ? redis.StringPtrLen(call->argv[0], &length) : "";
    if (config && !bytes_are(word, length, "get")) return "ERR of CONFIG, functions may use GET alone";
    if (cluster && shardqa.valkey >= VALKEY_MIGRATIONS && bytes_are(word, length, "getslotmigrations")) return NULL;
    if (cluster && !listed(CLUSTER_READS, word, length))
        return "ERR of CLUSTER, functions may use SLOTS, SHARDS, NODES, INFO, KEYSLOT, MYID, COUNTKEYSINSLOT and "
               "GETKEYSINSLOT alone";
    bool slots = bytes_are(word, length, "slots") || bytes_are(word, length, "shards");
    if (cluster && slots && shardqa.valkey && shardqa.valkey < VALKEY_SAFE_SLOTS)
        return "ERR CLUSTER SLOTS and SHARDS crash Valkey before 9.0.1 when a function asks; use CLUSTER NODES, or "
               "upgrade Valkey";
    return NULL;
}

/* Whether the call has this argument and the list names it. */
static bool argument_listed(const struct call *call, size_t index, const char *const *words) {
    size_t length;
    if (index >= call->argc) return false;
    const char *text = redis.StringPtrLen(call->argv[index], &length);
    return listed(words, text, length);
}

/* Commands that need no user's rights. */
static bool worker_may(const struct call *call) {
    static const char *const get[] = {"get", NULL};
    if (bytes_are(call->name.data, call->name.length, "cluster")) return true; /* refusal() lets only reads through */
    return bytes_are(call->name.data, call->name.length, "config") && call->argc == 2 &&
           argument_listed(call, 0, get) && argument_listed(call, 1, OWN_CONFIG);
}

/* Of RedisModule_Call: replicated, errors as replies, checked as a script's command, against
 * memory, and with the user's ACL. */
static const char *flags_for(const struct call *call, bool as_user) {
    bool noscript = bytes_are(call->name.data, call->name.length, "config"); /* marked noscript, but harmless as GET */
    if (noscript) return as_user ? "!EMCv" : "!EMv";
    return as_user ? "!ESMCv" : "!ESMv";
}

static bool starts_with(const char *text, size_t length, const char *start) {
    return length >= strlen(start) && memcmp(text, start, strlen(start)) == 0;
}

/* Redis 7.0 answers module calls with ERR where a client would get a code of its own. */
void call_add_reply(struct buffer *replies, RedisReply *reply, int error) {
    size_t length;
    if (reply == NULL) {
        char line[160];
        snprintf(line, sizeof line, "ERR the command could not be run: %s",
                 error == ENOENT ? "unknown command" : strerror(error));
        return resp_add_error(replies, line);
    }
    const char *text = redis.CallReplyProto(reply, &length);
    if (starts_with(text, length, NOT_HERE)) {
        resp_add_error(replies, TRY_AGAIN);
    } else if (starts_with(text, length, "-ERR acl verification failed")) {
        buffer_add(replies, "-NOPERM", 7);
        buffer_add(replies, text + 4, length - 4);
    } else {
        buffer_add(replies, text, length);
    }
    redis.FreeCallReply(reply);
}

/* A replica serves no slot of a cluster, so Redis refuses its worker the very keys that it
 * holds. HMGET is read past that check: an index that follows the keys of a replica is warm when
 * a failover needs it. */
static bool reads_copy(const struct call *call) {
    int copy = CTX_SLAVE | CTX_CLUSTER;
    return call->argc >= 2 && bytes_are(call->name.data, call->name.length, "hmget") &&
           (redis.GetContextFlags(shardqa.ctx) & copy) == copy;
}

/* ACL of the command and its keys; errno is ENOENT where there is no such command. Without a user
 * everything that got here may run. */
static bool may_run(const struct call *call, const struct rights *rights) {
    /* owned here; its strings but the first are the call's */
    RedisString **argv = redis.Alloc(sizeof *argv * (call->argc + 1));
    argv[0] = redis.CreateString(NULL, call->name.data, call->name.length);
    memcpy(argv + 1, call->argv, sizeof *argv * call->argc);
    errno = 0;
    bool may = rights->user == NULL || rights_allow(rights->user, argv, call->argc + 1);
    int error = errno;
    redis.FreeString(NULL, argv[0]);
    redis.Free(argv);
    errno = error;
    return may;
}

/* One value of HMGET, nil where the field is absent. */
static void add_field(struct buffer *replies, RedisKey *key, RedisString *field) {
    RedisString *value = NULL; /* owned once HashGet set it */
    char head[32];
    size_t length;
    if (key == NULL || redis.HashGet(key, 0, field, &value, NULL) != REDIS_OK || value == NULL)
        return buffer_add(replies, "$-1\r\n", 5);
    const char *data = redis.StringPtrLen(value, &length);
    buffer_add(replies, head, (size_t)snprintf(head, sizeof head, "$%zu\r\n", length));
    buffer_add(replies, data, length);
    buffer_add(replies, "\r\n", 2);
    redis.FreeString(shardqa.ctx, value);
}

/* What an error shows of text that somebody sent. */
static void printable(char *to, size_t size, const char *text, size_t length) {
    size_t n = length < size - 1 ? length : size - 1;
    for (size_t i = 0; i < n; i++) to[i] = text[i] < ' ' || text[i] == 127 ? '?' : text[i];
    to[n] = '\0';
}

/* NOPERM with the user, the command and its first argument; behind may_run. */
static void add_denial(const struct call *call, const struct rights *rights, struct buffer *replies) {
    char line[400], user[65], command[65], argument[129] = "";
    size_t length = 0;
    bool unknown = errno == ENOENT;
    printable(user, sizeof user, rights->name, strlen(rights->name));
    printable(command, sizeof command, call->name.data, call->name.length);
    const char *text = call->argc > 0 ? redis.StringPtrLen(call->argv[0], &length) : "";
    printable(argument, sizeof argument, text, length);
    if (unknown)
        snprintf(line, sizeof line, "ERR unknown command '%s'", command);
    else
        snprintf(line, sizeof line,
                 "NOPERM user '%s' may not run '%s %s'; give the user that command and key (ACL SETUSER), or leave it",
                 user, command, argument);
    resp_add_error(replies, line);
}

/* Of a GET: the error that a client would get where this node is cut from its cluster, else NULL.
 * That a slot alone is on its way is told where the key is read. OBJECT ENCODING tells no one that
 * the key is missing. */
static const char *cut_off(const struct call *call) {
    bool get = call->argc == 1 && bytes_are(call->name.data, call->name.length, "get");
    if (!get || !(redis.GetContextFlags(shardqa.ctx) & CTX_CLUSTER)) return NULL;
    /* the first owned */
    RedisString *argv[] = {redis.CreateString(NULL, "encoding", strlen("encoding")), call->argv[0]};
    errno = 0;
    RedisReply *reply = redis.Call(shardqa.ctx, "object", "v", argv, (size_t)2);
    int error = errno;
    redis.FreeString(NULL, argv[0]);
    if (reply != NULL) redis.FreeCallReply(reply);
    if (reply != NULL) return NULL;
    return error == ENETDOWN ? CUT_OFF : NULL;
}

/* FOLLOW `r` or `w` and a prefix: whether the user may read, or write, all its keys. */
static void check_follow(const struct call *call, const struct rights *rights, struct buffer *replies) {
    enum { SHOWN = 500 };
    char line[1200], keys[129], has[SHOWN + 4];
    struct buffer patterns = {0};
    size_t length;
    bool writes = argument_listed(call, 0, (const char *const[]){"w", NULL});
    const char *text = redis.StringPtrLen(call->argv[1], &length);
    struct prefix *prefix = prefix_new(text, length);
    bool may = rights_prefix(rights->name, prefix, writes ? KEY_UPDATE : KEY_ACCESS);
    redis.Free(prefix);
    if (may) return buffer_add(replies, "+OK\r\n", 5);
    printable(keys, sizeof keys, text, length);
    rights_patterns(rights->name, &patterns);
    printable(has, SHOWN, patterns.data, patterns.length);
    if (patterns.length >= SHOWN) strcat(has, "...");
    buffer_free(&patterns);
    snprintf(
        line, sizeof line,
        "NOPERM a function is told of keys that its user may %s, and '%s' is not within the key patterns of user "
        "'%.64s', '%s'; name a prefix within them, or give the user %s~%s (ACL SETUSER)",
        writes ? "write" : "read", keys, rights->name, has, writes ? "" : "%R", keys);
    resp_add_error(replies, line);
}

/* The answer to CALLS_CHECK: OK, or why not. */
static void check_one(const struct call *call, const struct rights *rights, struct buffer *replies) {
    if (call->argc == 2 && bytes_are(call->name.data, call->name.length, FOLLOW))
        return check_follow(call, rights, replies);
    if (!may_run(call, rights)) return add_denial(call, rights, replies);
    const char *error = cut_off(call);
    if (error) return resp_add_error(replies, error);
    buffer_add(replies, "+OK\r\n", 5);
}

/* HMGET on a replica, read from the key itself. */
static void read_copy(const struct call *call, const struct rights *rights, struct buffer *replies) {
    if (!may_run(call, rights)) return add_denial(call, rights, replies);
    RedisKey *key = redis.OpenKey(shardqa.ctx, call->argv[0], REDIS_READ);
    if (key != NULL && redis.KeyType(key) != KEYTYPE_HASH) {
        resp_add_error(replies, "WRONGTYPE Operation against a key holding the wrong kind of value");
    } else {
        char head[32];
        buffer_add(replies, head, (size_t)snprintf(head, sizeof head, "*%zu\r\n", call->argc - 1));
        for (size_t i = 1; i < call->argc; i++) add_field(replies, key, call->argv[i]);
    }
    if (key != NULL) redis.CloseKey(key);
}

/* Checks, then runs the command as the user, then adds its reply. */
static void run_one(const struct call *call, const struct rights *rights, struct buffer *replies) {
    char name[129] = {0};
    RedisUser *user = rights->user;
    const char *refused = refusal(call);
    if (refused) return resp_add_error(replies, refused);
    if (user == NULL && !worker_may(call))
        return resp_add_error(
            replies, "NOPERM without a request or a session the worker may read the cluster's topology and no more");
    if (reads_copy(call)) return read_copy(call, rights, replies);
    memcpy(name, call->name.data, call->name.length);
    errno = 0;
    if (user) redis.SetContextUser(shardqa.ctx, user);
    RedisReply *reply = redis.Call(shardqa.ctx, name, flags_for(call, user != NULL), call->argv, call->argc);
    int error = errno;
    if (user) redis.SetContextUser(shardqa.ctx, NULL);
    shardqa.counters.calls++;
    call_add_reply(replies, reply, error);
}

/* The commands ran, so each gets an error of its own in place of its reply. */
static void too_large(struct buffer *replies, long long calls) {
    buffer_free(replies);
    link_leave_room(replies);
    while (calls-- > 0)
        resp_add_error(replies,
                       "ERR the replies of this frame are larger than 1 GiB; the commands ran, ask for less at once");
}

/* What stands before the commands: whose rights, run or check, how many. */
static bool open_frame(const struct frame *frame, struct frame_list *list, struct frame_bytes *context,
                       long long *flags, long long *calls) {
    return frame_list_open(frame->payload, frame->length, list) && frame_list_next(list, context) &&
           frame_list_number(list, flags) && *flags >= CALLS_RUN && frame_list_number(list, calls) && *calls >= 0 &&
           *calls <= MAX_CALLS;
}

/* Answers the commands in order: with `nobody` (they have no rights), by a check, or by a run. */
static bool answer_each(struct frame_list *list, long long calls, bool checks, const char *nobody,
                        const struct rights *rights, struct buffer *replies) {
    while (calls-- > 0) {
        struct call call;
        if (!read_call(list, &call)) return false;
        if (nobody)
            resp_add_error(replies, nobody);
        else if (checks)
            check_one(&call, rights, replies);
        else
            run_one(&call, rights, replies);
        free_call(&call);
    }
    return true;
}

/* All commands of a CALL frame. One CALLED frame answers them together. */
bool call_run(const struct frame *frame) {
    struct frame_list list;
    struct frame_bytes context;
    struct buffer replies = {0};
    struct rights rights;
    const char *nobody = NULL;
    long long flags, calls;
    if (!open_frame(frame, &list, &context, &flags, &calls)) return false;
    link_leave_room(&replies);
    if (rights_open(&context, &rights, &nobody)) nobody = NULL;
    if (flags >= SECTION_FIRST && (uint64_t)flags != shardqa.section) nobody = SECTION_CLOSED;
    char kind = context.length > 0 ? context.data[0] : 0;
    if (kind == 'q') shardqa.quiet = (struct frame_bytes){.data = context.data + 1, .length = context.length - 1};
    shardqa.nested = kind == 'n';
    shardqa.calling++;
    bool valid = answer_each(&list, calls, flags == CALLS_CHECK, nobody, &rights, &replies);
    shardqa.calling--;
    shardqa.quiet = (struct frame_bytes){0};
    shardqa.nested = false;
    shardqa.counters.call_frames++;
    rights_close(&rights);
    if (replies.length - FRAME_HEADER > FRAME_MAX_PAYLOAD) too_large(&replies, calls);
    if (valid) link_send_filled(FRAME_CALLED, frame->id, &replies);
    buffer_free(&replies);
    return valid;
}

/* A frame that is malformed belongs to none. */
uint64_t call_section(const struct frame *frame) {
    struct frame_list list;
    struct frame_bytes context;
    long long flags, calls;
    if (!open_frame(frame, &list, &context, &flags, &calls) || flags < SECTION_FIRST) return 0;
    return (uint64_t)flags;
}

/* Whether every command of the frame only reads, so that it may run while writes are paused. */
bool call_only_reads(const struct frame *frame) {
    struct frame_list list;
    struct frame_bytes item;
    long long flags, calls, argc;
    if (!open_frame(frame, &list, &item, &flags, &calls)) return false;
    if (flags == CALLS_CHECK) return true;
    while (calls-- > 0) {
        if (!frame_list_number(&list, &argc) || argc < 1 || argc > list.left) return false;
        frame_list_next(&list, &item);
        if (!listed(READERS, item.data, item.length)) return false;
        while (--argc > 0) frame_list_next(&list, &item);
    }
    return true;
}

/* The error of a reply, without its RESP frame. */
static void error_text(RedisReply *reply, char *error, size_t error_size) {
    size_t length;
    const char *text = reply ? redis.CallReplyProto(reply, &length) : NULL;
    if (text == NULL || length < 3)
        snprintf(error, error_size, "ERR the command could not be run");
    else if (starts_with(text, length, NOT_HERE))
        snprintf(error, error_size, "%s", TRY_AGAIN);
    else
        snprintf(error, error_size, "%.*s", (int)length - 3, text + 1);
}

/* A command of ours, with all rights; replicas and the AOF get it too. */
bool call_own(const char *command, RedisString **argv, size_t argc, const char *more, char *error, size_t error_size) {
    char flags[16];
    snprintf(flags, sizeof flags, "!EM%sv", more);
    shardqa.calling++;
    RedisReply *reply = redis.Call(shardqa.ctx, command, flags, argv, argc);
    shardqa.calling--;
    bool good = reply != NULL && redis.CallReplyType(reply) != REPLY_ERROR;
    if (!good) error_text(reply, error, error_size);
    if (reply) redis.FreeCallReply(reply);
    return good;
}
