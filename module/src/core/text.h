/* Small helpers around Redis strings, words, keys, dictionaries and errors. */
#ifndef SHARDQA_TEXT_H
#define SHARDQA_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/frame.h"
#include "core/redis_api.h"

struct prefix {
    struct prefix *next;
    size_t length; /* bytes of text */
    bool exact; /* the pattern had no '*' at its end: the key must be equal */
    char text[];
};

char *text_copy(const char *text, size_t length); /* the caller frees it with redis.Free; NUL is added */
bool text_is(const RedisString *string, const char *word); /* case does not matter */
bool bytes_are(const char *text, size_t length, const char *word); /* case does not matter */
bool text_number(const RedisString *string, long long least, long long most, long long *number);
bool command_is_replayed(RedisCtx *ctx); /* does it come from the master or from an AOF that is being loaded? */
void text_item(struct frame_writer *writer, const RedisString *string); /* one item of the frame */
void text_items(struct frame_writer *writer, RedisString **argv, int argc);
size_t text_items_size(RedisString **argv, int argc); /* bytes that they take in a frame */

struct words {
    size_t count;
    char **items; /* owned, NUL at the end */
};

void words_add(struct words *words, const char *word, size_t length);
void words_copy(struct words *to, const struct words *from);
bool words_hold(const struct words *words, const char *word); /* case does not matter; empty: true */
void words_free(struct words *words);                         /* leaves an empty list */

void dict_clear(RedisDict **dict, void (*free_value)(void *)); /* leaves an empty one */

/* The value of a key of this type, or NULL and *error: `empty`, or WRONGTYPE. */
void *value_find(RedisCtx *ctx, RedisString *name, RedisType *type, const char *empty, const char **error);
/* The same, NULL once the error was replied. */
void *value_open(RedisCtx *ctx, RedisString *name, RedisType *type, const char *empty);
/* Logs that a value was saved in a version that is not read here; returns NULL, as rdb_load
 * does. */
void *refuse_version(RedisIO *io, const char *what, int version, int version_here, const char *command);
int reply_error(RedisCtx *ctx, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* RedisGears' rule: a pattern that ends in '*' matches by prefix, any other by equality. Owned
 * by the caller. */
struct prefix *prefix_new(const char *pattern, size_t length);
bool prefix_matches(const struct prefix *prefix, const char *key, size_t length);

#endif
