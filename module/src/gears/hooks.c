/* The table of hooked commands, and the filter that renames them.
 *
 * The filter runs before authentication, inside transactions and for the master's stream, and
 * twice for a paused command: it only renames, and the command itself decides whether it may
 * wait. A GET whose misses alone are hooked becomes `shardqa.get` (miss.c); before any other
 * command `shardqa.hook` or `shardqa.hookread` is put (hooked_command.c). */
#include "gears/hooks.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/rights.h"
#include "core/state.h"
#include "core/text.h"
#include "gears/gears_state.h"
#include "gears/registry.h"

enum { NAME_MOST = 64 /* bytes of a command's name, with its end */ };

/* ---- the table ---- */

/* The name as the table has it; false for what is no name of a command. */
static bool lower(char name[NAME_MOST], const char *text, size_t length) {
    if (length == 0 || length >= NAME_MOST) return false;
    for (size_t i = 0; i < length; i++) name[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] | 32) : text[i];
    name[length] = '\0';
    return true;
}

/* Before the table is made anew. */
void hooks_clear(void) {
    struct hook *hook;
    RedisDictIter *iterator = redis.DictIteratorStartC(gears.hook_table, "^", NULL, 0);
    while (redis.DictNextC(iterator, NULL, (void **)&hook) != NULL) {
        redis.Free(hook->registrations);
        redis.Free(hook);
    }
    redis.DictIteratorStop(iterator);
    redis.FreeDict(NULL, gears.hook_table);
    gears.hook_table = redis.CreateDict(NULL);
}

/* `word`: name, `r`, `w` or `W` (registry.c), first and last key. Anything else hooks nothing. */
static void add_one(struct registration *registration, const char *word) {
    char raw[NAME_MOST], name[NAME_MOST], kind;
    int first, last;
    if (sscanf(word, "%63s %c %d %d", raw, &kind, &first, &last) != 4 || !lower(name, raw, strlen(raw))) return;
    struct hook *hook = redis.DictGetC(gears.hook_table, name, strlen(name), NULL);
    if (hook == NULL) {
        hook = redis.Calloc(1, sizeof *hook);
        *hook = (struct hook){.writes = kind != 'r', .first = first > 0 ? first : 0, .last = last};
        redis.DictSetC(gears.hook_table, name, strlen(name), hook);
    }
    hook->registrations = redis.Realloc(hook->registrations, sizeof registration * (hook->count + 1));
    hook->registrations[hook->count++] = registration;
}

void hooks_add(struct registration *registration) {
    for (size_t i = 0; i < registration->commands.count; i++) add_one(registration, registration->commands.items[i]);
}

/* Runs for every command while anything is hooked. */
const struct hook *hooks_find(const char *name, size_t length) {
    char lowered[NAME_MOST];
    if (!lower(lowered, name, length)) return NULL;
    return redis.DictGetC(gears.hook_table, lowered, length, NULL);
}

/* A reader of keys looks at the keys of the events where a command has several keys. */
bool hooks_take(const struct hook *hook, const struct registration *registration, RedisString *key) {
    const struct prefix *prefix = registration->prefix;
    int access = hook->writes && !registration->follows_keys ? KEY_UPDATE : KEY_ACCESS;
    size_t length;
    if (registration->follows_keys && (key == NULL || hook->last != hook->first)) return true;
    if (key == NULL)
        return !prefix->exact && prefix->length == 0 && rights_prefix(registration->session->user, prefix, access);
    const char *text = redis.StringPtrLen(key, &length);
    return prefix_matches(prefix, text, length) && gears_may(registration, key, access);
}

/* ---- the filter ---- */

enum way {
    WAY_PLAIN, /* Redis runs it */
    WAY_GET,   /* a GET whose misses alone are hooked: shardqa.get */
    WAY_HOOK   /* any other: shardqa.hook */
};

/* What becomes of a command that somebody hooks. */
static enum way way_of(const struct hook *hook, bool is_get, RedisString *key) {
    enum way way = WAY_PLAIN;
    size_t length = 0;
    if (key) redis.StringPtrLen(key, &length);
    for (size_t i = 0; i < hook->count; i++) {
        struct registration *r = hook->registrations[i];
        if (!hooks_take(hook, r, key)) continue;
        if (!is_get || !r->hooks_get) return WAY_HOOK;
        if (length <= MISS_KEY_MOST) way = WAY_GET;
    }
    return way;
}

/* The command keeps its own name behind this one. */
static void put_before(RedisFilterCtx *filter_ctx, const char *name) {
    redis.CommandFilterArgInsert(filter_ctx, 0, redis.CreateString(NULL, name, strlen(name)));
}

/* Runs before every command of every client, so it gives up as early as it can. */
static void filter(RedisFilterCtx *filter_ctx) {
    RedisString *key = NULL;
    size_t length;
    if (gears.hooks == 0 || !shardqa.master) return;
    int count = redis.CommandFilterArgsCount(filter_ctx);
    const char *name = redis.StringPtrLen(redis.CommandFilterArgGet(filter_ctx, 0), &length);
    const struct hook *hook = hooks_find(name, length);
    if (hook == NULL) return;
    if (hook->first > 0 && hook->first < count) key = (RedisString *)redis.CommandFilterArgGet(filter_ctx, hook->first);
    bool is_get = count == 2 && length == 3 && strncasecmp(name, "get", 3) == 0;
    switch (way_of(hook, is_get, key)) {
    case WAY_PLAIN: break;
    case WAY_GET: redis.CommandFilterArgReplace(filter_ctx, 0, redis.CreateString(NULL, "shardqa.get", 11)); break;
    case WAY_HOOK: put_before(filter_ctx, hook->writes ? "shardqa.hook" : "shardqa.hookread"); break;
    }
}

int hooks_install(RedisCtx *ctx) {
    return redis.RegisterCommandFilter(ctx, filter, FILTER_NOSELF) ? REDIS_OK : REDIS_ERR;
}

/* Where a client can't be blocked, or must not be answered by a worker. */
bool hooks_let_nobody_wait(RedisCtx *ctx) {
    int no = CTX_MULTI | CTX_LUA | CTX_DENY_BLOCKING | CTX_REPLICATED | CTX_LOADING | CTX_ASYNC_LOADING | CTX_SLAVE;
    return redis.GetContextFlags(ctx) & no || redis.GetSelectedDb(ctx) != 0;
}
