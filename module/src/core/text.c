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
    long long value;
    if (redis.StringToLongLong(string, &value) != REDIS_OK || value < least || value > most) return false;
    *number = value;
    return true;
}

/* From the master or from a file: what was checked where it was run first. */
bool command_is_replayed(RedisCtx *ctx) {
    int flags = redis.GetContextFlags(ctx);
    if (flags & CTX_REPLICATED) return true;
    return flags & CTX_LOADING && !(flags & CTX_ASYNC_LOADING); /* clients are served during an asynchronous load */
}

void text_item(struct frame_writer *writer, const RedisString *string) {
    size_t length;
    const char *text = redis.StringPtrLen(string, &length);
    frame_item(writer, text, length);
}

void text_items(struct frame_writer *writer, RedisString **argv, int argc) {
    for (int i = 0; i < argc; i++) text_item(writer, argv[i]);
}

size_t text_items_size(RedisString **argv, int argc) {
    size_t total = 0, length;
    for (int i = 0; i < argc; i++) {
        redis.StringPtrLen(argv[i], &length);
        total += length + 4;
    }
    return total;
}

void words_add(struct words *words, const char *word, size_t length) {
    words->items = redis.Realloc(words->items, sizeof *words->items * (words->count + 1));
    words->items[words->count++] = text_copy(word, length);
}

void words_copy(struct words *to, const struct words *from) {
    for (size_t i = 0; i < from->count; i++) words_add(to, from->items[i], strlen(from->items[i]));
}

/* Whether a word is among them. None at all means any. */
bool words_hold(const struct words *words, const char *word) {
    for (size_t i = 0; i < words->count; i++)
        if (bytes_are(words->items[i], strlen(words->items[i]), word)) return true;
    return words->count == 0;
}

void words_free(struct words *words) {
    for (size_t i = 0; i < words->count; i++) redis.Free(words->items[i]);
    redis.Free(words->items);
    *words = (struct words){0};
}

/* Its values are owned, its keys are copies. */
void dict_clear(RedisDict **dict, void (*free_value)(void *)) {
    void *value;
    RedisDictIter *iterator = redis.DictIteratorStartC(*dict, "^", NULL, 0);
    while (redis.DictNextC(iterator, NULL, &value) != NULL) free_value(value);
    redis.DictIteratorStop(iterator);
    redis.FreeDict(NULL, *dict);
    *dict = redis.CreateDict(NULL);
}

/* Borrowed from the key. */
void *value_find(RedisCtx *ctx, RedisString *name, RedisType *type, const char *empty, const char **error) {
    RedisKey *key = redis.OpenKey(ctx, name, REDIS_READ);
    bool absent = key == NULL || redis.KeyType(key) == KEYTYPE_EMPTY;
    void *value = !absent && redis.ModuleTypeGetType(key) == type ? redis.ModuleTypeGetValue(key) : NULL;
    if (value == NULL) *error = absent ? empty : REDIS_WRONGTYPE;
    if (key) redis.CloseKey(key);
    return value;
}

/* Borrowed from the key as well. */
void *value_open(RedisCtx *ctx, RedisString *name, RedisType *type, const char *empty) {
    const char *error;
    void *value = value_find(ctx, name, type, empty, &error);
    if (value == NULL) redis.ReplyWithError(ctx, error);
    return value;
}

/* Logs what the operator can do. Always NULL, for rdb_load. */
void *refuse_version(RedisIO *io, const char *what, int version, int version_here, const char *command) {
    redis.LogIOError(io, "warning", "a %s is saved in version %d, this module reads version %d; store it again with %s",
                     what, version, version_here, command);
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
