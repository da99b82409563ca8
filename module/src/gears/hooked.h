/* The commands that registrations hook, and what becomes of them.
 *
 * A CommandReader's hook gets the command in place of Redis. A KeysReader's `commands=` lets
 * Redis run it and makes its client wait for the functions of the key events that it caused. */
#ifndef SHARDQA_HOOKED_H
#define SHARDQA_HOOKED_H

#include <stdbool.h>

#include "core/state.h"

struct registration;

struct hooked {
    bool writes;
    int first, last; /* places of its keys in the command; 0: none has a place of its own */
    size_t count;
    struct registration **registrations; /* owned array; what it names is the registry's. The oldest first */
};

/* A key event that the command under way caused, for a registration whose client waits. */
struct caused {
    struct caused *next;
    char *registration; /* id; owned, as are the next two */
    char *event;
    char *key;
    size_t key_length;
    const char *type; /* static */
};

/* While a command runs whose client may wait. */
struct causing {
    const struct hooked *hooked;
    struct caused *first; /* owned, in their order */
    struct caused **end;
};

void hooked_clear(void);
void hooked_add(struct registration *registration);
const struct hooked *hooked_find(const char *name, size_t length); /* NULL: nobody hooks it */

/* Does this registration take a command with this first key (NULL: it has none)? */
bool hooked_takes(const struct hooked *hooked, const struct registration *registration, const char *key, size_t length);

void hooked_caused(struct causing *causing, const struct registration *registration, const char *event, const char *key, size_t length, const char *type);

int shardqa_hook(RedisCtx *ctx, RedisString **argv, int argc);

#endif
