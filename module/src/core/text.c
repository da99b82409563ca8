#include "core/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Ends with a zero byte. The caller frees it. */
char *text_copy(const char *text, size_t length) {
    char *copy = redis.Alloc(length + 1);
    if (length > 0) memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

bool bytes_are(const char *text, size_t length, const char *word) {
    return length == strlen(word) && strncasecmp(text, word, length) == 0;
}

/* Keywords are taken in any case. */
bool text_is(const RedisString *string, const char *word) {
    size_t length;
    const char *text = redis.StringPtrLen(string, &length);
    return bytes_are(text, length, word);
}

/* False where it is no integer of this range. */
bool text_number(const RedisString *string, long long least, long long most, long long *number) {
    long long found;
    if (redis.StringToLongLong(string, &found) != REDIS_OK || found < least || found > most) return false;
    *number = found;
    return true;
}

/* From the master or from a file: what was checked where it was run first. */
bool command_is_replayed(RedisCtx *ctx) {
    int flags = redis.GetContextFlags(ctx);
    if (flags & CTX_REPLICATED) return true;
    return flags & CTX_LOADING && !(flags & CTX_ASYNC_LOADING); /* clients are served during an asynchronous load */
}

/* The value of a key of this type, or NULL and the error is replied. */
void *value_open(RedisCtx *ctx, RedisString *name, RedisType *type, const char *empty) {
    void *value = NULL;
    RedisKey *key = redis.OpenKey(ctx, name, REDIS_READ);
    if (key == NULL || redis.KeyType(key) == KEYTYPE_EMPTY)
        redis.ReplyWithError(ctx, empty);
    else if (redis.ModuleTypeGetType(key) != type)
        redis.ReplyWithError(ctx, REDIS_WRONGTYPE);
    else
        value = redis.ModuleTypeGetValue(key);
    if (key) redis.CloseKey(key);
    return value;
}

/* Logs what the operator can do. Always NULL, for rdb_load. */
void *refuse_version(RedisIO *io, const char *what, int version, int wanted, const char *command) {
    enum { REDIS_AI = 4 }; /* the last that RedisAI wrote */
    if (version <= REDIS_AI)
        redis.LogIOError(io, "warning",
                         "a %s that RedisAI has saved (version %d) can't be read: start RedisAI on this file once more, copy its keys with the "
                         "commands of docs/ai.md, \"Moving from RedisAI\", and start with them",
                         what, version);
    else
        redis.LogIOError(io, "warning", "a %s is saved in version %d, this module reads version %d; store it again with %s", what, version, wanted, command);
    return NULL;
}

/* printf for errors. A reply is one line, whatever the arguments hold. */
int reply_error(RedisCtx *ctx, const char *format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    for (char *c = line; *c; c++)
        if (*c == '\r' || *c == '\n') *c = ' ';
    return redis.ReplyWithError(ctx, line);
}

/* `abc*` is a prefix, `abc` a whole key. */
struct prefix *prefix_new(const char *pattern, size_t length) {
    bool exact = length == 0 || pattern[length - 1] != '*';
    if (!exact) length--;
    struct prefix *prefix = redis.Alloc(sizeof *prefix + length + 1);
    prefix->next = NULL;
    prefix->length = length;
    prefix->exact = exact;
    if (length > 0) memcpy(prefix->text, pattern, length);
    prefix->text[length] = '\0';
    return prefix;
}

/* Redis' hot path: one comparison of length, one of bytes. */
bool prefix_matches(const struct prefix *prefix, const char *key, size_t length) {
    if (prefix->exact ? length != prefix->length : length < prefix->length) return false;
    return memcmp(key, prefix->text, prefix->length) == 0;
}
