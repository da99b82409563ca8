/* The commands that registrations hook, and what becomes of them.
 *
 * A CommandReader's hook gets the command in place of Redis. A KeysReader's `commands=` lets
 * Redis run it and makes its client wait for the functions of the key events that it caused. */
#ifndef SHARDQA_HOOKS_H
#define SHARDQA_HOOKS_H

#include <stdbool.h>

#include "core/state.h"

struct registration;

/* bytes; a longer key is never hooked (it travels twice in a MISS frame, and a frame has a
 * bound) */
enum { MISS_KEY_MOST = 65536 };

struct hook {
    bool writes; /* else the command only reads */
    int first, last; /* places of its keys in the command; 0: none has a place of its own */
    size_t count; /* registrations */
    struct registration **registrations; /* owned array; what it names is the registry's. The oldest first */
};

void hooks_clear(void);
void hooks_add(struct registration *registration);
const struct hook *hooks_find(const char *name, size_t length); /* NULL: nobody hooks it */

/* Does this registration take a command with this first key (NULL: it has none)? */
bool hooks_take(const struct hook *hook, const struct registration *registration, RedisString *key);

/* Where a client can't be blocked, or must not be answered by a worker. */
bool hooks_let_nobody_wait(RedisCtx *ctx);

int hooks_install(RedisCtx *ctx); /* the filter that renames hooked commands */

#endif
