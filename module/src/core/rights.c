#include "core/rights.h"

#include <string.h>

#include "core/pending.h"
#include "core/text.h"
#include "gears/registry.h"

#define ENDED "NOPERM the request whose rights this needs has ended; what goes on after its reply has none (register it as privileged)"
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

/* ---- scripts that go on ---- */

static void id_bytes(uint64_t id, unsigned char bytes[8]) {
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(id >> (56 - 8 * i));
}

/* A script may go on after its reply, with its user's rights. */
void rights_hold(uint64_t id, const char *user) {
    unsigned char key[8];
    id_bytes(id, key);
    redis.DictSetC(shardqa.scripts, key, sizeof key, text_copy(user, strlen(user)));
}

/* RELEASE: that script has ended. */
void rights_release(uint64_t id) {
    unsigned char key[8];
    char *user = NULL;
    id_bytes(id, key);
    redis.DictDelC(shardqa.scripts, key, sizeof key, &user);
    redis.Free(user);
}

/* Its scripts ended with it. */
void rights_forget_worker(void) {
    char *user;
    RedisDictIter *iterator = redis.DictIteratorStartC(shardqa.scripts, "^", NULL, 0);
    while (redis.DictNextC(iterator, NULL, (void **)&user) != NULL) redis.Free(user);
    redis.DictIteratorStop(iterator);
    redis.FreeDict(NULL, shardqa.scripts);
    shardqa.scripts = redis.CreateDict(NULL);
}

/* ---- from what the worker names to a user ---- */

/* The user of a script that runs, or NULL. */
const char *rights_of_script(uint64_t id) {
    unsigned char key[8];
    id_bytes(id, key);
    return redis.DictGetC(shardqa.scripts, key, sizeof key, NULL);
}

/* The user of a request that waits, or of a script that goes on after its reply. */
static const char *of_request(uint64_t id) {
    struct pending *pending = pending_find(id);
    return pending && pending->user ? pending->user : rights_of_script(id);
}

/* `r` and a request's number, or `s` and a session's id. NULL, and why. */
static const char *user_of(const struct frame_bytes *context, const char **error) {
    struct frame_bytes rest = {.data = context->data + 1, .length = context->length - 1};
    long long id;
    const char *user = NULL;
    if (context->data[0] == 's') {
        struct session *session = redis.DictGetC(shardqa.sessions, (void *)rest.data, rest.length, NULL);
        *error = NO_SESSION;
        return session ? session->user : NULL;
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
