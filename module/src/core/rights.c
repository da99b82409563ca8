#include "core/rights.h"

#include <string.h>

#include "core/above.h"
#include "core/pending.h"
#include "core/text.h"

#define ENDED                                                                                                          \
    "NOPERM the request whose rights this needs has ended; what goes on after its reply has none (register it as " \
    "privileged)"
#define NO_SESSION "NOPERM the session whose rights this needs is not registered any more"
#define NO_USER "NOPERM the user whose rights this needs no longer exists"

/* The client's user. The caller frees it. */
char *rights_current_user(RedisCtx *ctx) {
    size_t length = 0;
    RedisString *name = redis.GetCurrentUserName(ctx);
    const char *text = name ? redis.StringPtrLen(name, &length) : "";
    char *copy = text_copy(text, length);
    if (name) redis.FreeString(ctx, name);
    return copy;
}

/* ---- what goes on after its request or session ---- */

/* A script may go on after its reply, with its user's rights. */
void rights_hold(uint64_t id, const char *user) {
    unsigned char key[8];
    pending_key(id, key);
    redis.DictSetC(shardqa.scripts, key, sizeof key, text_copy(user, strlen(user)));
}

/* What the functions of a session that goes had begun is finished with its user's rights. Ids of
 * sessions are text, so none is equal to the number of a script. */
void rights_hold_session(const char *id, const char *user) {
    char *copy = text_copy(user, strlen(user));
    if (redis.DictSetC(shardqa.scripts, (void *)id, strlen(id), copy) != REDIS_OK) redis.Free(copy);
}

/* RELEASE: that script has ended; or, of a session, what its functions had begun. */
bool rights_frame_release(const struct frame *frame) {
    struct frame_list list;
    unsigned char key[8];
    struct frame_bytes id = {.data = (char *)key, .length = sizeof key};
    char *user = NULL;
    pending_key(frame->id, key);
    if (frame->id == 0 && (!frame_list_open(frame->payload, frame->length, &list) || !frame_list_next(&list, &id)))
        return false;
    redis.DictDelC(shardqa.scripts, (void *)id.data, id.length, &user);
    redis.Free(user);
    return true;
}

void rights_forget_worker(void) { dict_clear(&shardqa.scripts, redis.Free); }

/* ---- from what the worker names to a user ---- */

/* The user of a script that runs, or NULL. */
const char *rights_of_script(uint64_t id) {
    unsigned char key[8];
    pending_key(id, key);
    return redis.DictGetC(shardqa.scripts, key, sizeof key, NULL);
}

/* The user of a request that waits, or of a script that goes on after its reply. */
static const char *of_request(uint64_t id) {
    struct pending *pending = pending_find(id);
    return pending && pending->user ? pending->user : rights_of_script(id);
}

/* `r` and a request's number, or `s`, `q` or `n` and a session's id. NULL, and why. */
static const char *user_of(const struct frame_bytes *context, const char **error) {
    struct frame_bytes rest = {.data = context->data + 1, .length = context->length - 1};
    long long id;
    const char *user = NULL;
    if (memchr("sqn", context->data[0], 3)) {
        *error = NO_SESSION; /* nor has one that another user registered since the rights of this one */
        const char *held = redis.DictGetC(shardqa.scripts, (void *)rest.data, rest.length, NULL);
        user = shardqa.above->session_user(rest.data, rest.length);
        return user == NULL ? held : held && strcmp(user, held) != 0 ? NULL : user;
    }
    *error = ENDED;
    if (context->data[0] == 'r' && frame_bytes_number(&rest, &id) && id > 0) user = of_request((uint64_t)id);
    return user;
}

/* An empty context is the worker itself, which has no user. */
bool rights_open(const struct frame_bytes *context, struct rights *rights, const char **error) {
    *rights = (struct rights){.name = ""};
    if (context->length == 0) return true;
    const char *name = user_of(context, error);
    if (name == NULL) return false;
    RedisString *string = redis.CreateString(NULL, name, strlen(name));
    rights->user = redis.GetModuleUserFromUserName(string);
    redis.FreeString(NULL, string);
    rights->name = name;
    *error = NO_USER;
    return rights->user != NULL;
}

/* After every rights_open that was true. */
void rights_close(struct rights *rights) {
    if (rights->user) redis.FreeModuleUser(rights->user);
    rights->user = NULL;
}

bool rights_allow(RedisUser *user, RedisString **argv, size_t argc) {
    return redis.ACLCheckCommandPermissions(user, argv, (int)argc) == REDIS_OK;
}

/* ---- keys ---- */

/* Looked up each time: a user that lost a key, or is gone, loses it at once. */
bool rights_key(const char *user, RedisString *key, int access) {
    RedisString *name = redis.CreateString(NULL, user, strlen(user));
    RedisUser *owner = redis.GetModuleUserFromUserName(name);
    bool may = owner && redis.ACLCheckKeyPermissions(
                            owner, key, access & (KEY_ACCESS | KEY_UPDATE | KEY_INSERT | KEY_DELETE)) == REDIS_OK;
    if (owner) redis.FreeModuleUser(owner);
    redis.FreeString(NULL, name);
    return may;
}

/* Two keys of no likely end stand for all; each key is judged once more when it comes. */
bool rights_prefix(const char *user, const struct prefix *prefix, int access) {
    static const char *const ends[] = {"\x01", "\x02\x7f\x03"};
    bool may = true;
    for (size_t i = 0; may && i < (prefix->exact ? 1 : 2); i++) {
        struct buffer text = {0};
        buffer_add(&text, prefix->text, prefix->length);
        if (!prefix->exact) buffer_add(&text, ends[i], strlen(ends[i]));
        RedisString *key = redis.CreateString(NULL, text.data, text.length);
        may = rights_key(user, key, access);
        redis.FreeString(NULL, key);
        buffer_free(&text);
    }
    return may;
}

/* What ACL GETUSER has under `keys`, of the user and of its selectors. */
static void add_patterns(RedisReply *fields, struct buffer *patterns) {
    size_t length, count = redis.CallReplyLength(fields);
    for (size_t i = 0; i + 1 < count; i += 2) {
        const char *name = redis.CallReplyStringPtr(redis.CallReplyArrayElement(fields, i), &length);
        RedisReply *value = redis.CallReplyArrayElement(fields, i + 1);
        if (name && bytes_are(name, length, "keys")) {
            const char *text = redis.CallReplyStringPtr(value, &length);
            if (text && length > 0 && patterns->length > 0) buffer_add(patterns, " ", 1);
            if (text) buffer_add(patterns, text, length);
        } else if (name && bytes_are(name, length, "selectors")) {
            for (size_t j = 0; j < redis.CallReplyLength(value); j++)
                add_patterns(redis.CallReplyArrayElement(value, j), patterns);
        }
    }
}

/* For an error that names them. */
void rights_patterns(const char *user, struct buffer *patterns) {
    RedisReply *fields = redis.Call(shardqa.ctx, "ACL", "cc", "GETUSER", user);
    if (fields && redis.CallReplyType(fields) == REPLY_ARRAY) add_patterns(fields, patterns);
    if (fields) redis.FreeCallReply(fields);
}

/* ---- what a client may do ---- */

/* A client without a user, as of a nested call, may nothing. */
bool rights_client_may(RedisCtx *ctx, RedisString **argv, size_t argc) {
    RedisString *name = redis.GetCurrentUserName(ctx);
    RedisUser *user = name ? redis.GetModuleUserFromUserName(name) : NULL;
    bool may = user && rights_allow(user, argv, argc);
    if (user) redis.FreeModuleUser(user);
    if (name) redis.FreeString(ctx, name);
    return may;
}

/* A command without keys, by its words. */
bool rights_may(RedisCtx *ctx, const char *command, const char *subcommand) {
    RedisString *argv[] = {redis.CreateString(ctx, command, strlen(command)),
                           redis.CreateString(ctx, subcommand, strlen(subcommand))};
    bool may = rights_client_may(ctx, argv, 2);
    redis.FreeString(ctx, argv[0]);
    redis.FreeString(ctx, argv[1]);
    return may;
}

/* Commands that run or remove code need more than their own permission: Redis 7.0 gives module
 * commands no ACL category, so `+@all -@dangerous` would allow them. DEBUG stands in for
 * @dangerous. */
bool rights_may_debug(RedisCtx *ctx) { return rights_may(ctx, "DEBUG", "HELP"); }

/* Loopback or a Unix socket. */
static bool is_local(RedisCtx *ctx) {
    RedisClientInfo info = {.version = 1};
    if (redis.GetClientInfoById(&info, redis.GetClientId(ctx)) != REDIS_OK) return false;
    if (info.flags & CLIENT_UNIX_SOCKET) return true;
    return strncmp(info.addr, "127.", 4) == 0 || strcmp(info.addr, "::1") == 0 ||
           strncmp(info.addr, "::ffff:127.", 11) == 0;
}

/* DEBUG and PYEXECUTE together decide. False: the error is replied. */
bool rights_may_run_code(RedisCtx *ctx, const char *command) {
    if (!rights_may_debug(ctx))
        reply_error(ctx, "NOPERM %s runs code on the server: its user must be allowed to run DEBUG as well", command);
    else if (shardqa.arguments.pyexecute == PYEXECUTE_NO)
        reply_error(
            ctx, "ERR %s is not allowed: the module was loaded with PYEXECUTE no; load it with PYEXECUTE local or yes",
            command);
    else if (shardqa.arguments.pyexecute == PYEXECUTE_LOCAL && !is_local(ctx))
        reply_error(
            ctx,
            "ERR %s is allowed from this machine alone (PYEXECUTE local); connect over loopback or a Unix socket, or "
            "load the module with PYEXECUTE yes",
            command);
    else
        return true;
    return false;
}
