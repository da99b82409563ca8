/* RESP bytes of the worker -> replies. There is no raw reply function in the module API, so the
 * value is walked. */
#include "core/reply.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/resp.h"
#include "core/text.h"

/* The first word of an error becomes an entry of INFO errorstats, a table that Redis 7.0 does
 * not bound: only these words pass. */
static const char *const ERROR_CODES[] = {"ERR",         "BUSY",    "TIMEOUT", "TRYAGAIN",   "WRONGTYPE", "OOM",
                                          "READONLY",    "NOPERM",  "MOVED",   "ASK",        "NOSCRIPT",  "CROSSSLOT",
                                          "CLUSTERDOWN", "LOADING", "MISCONF", "MASTERDOWN", "NOAUTH",    NULL};

/* Whether the first word is one of ERROR_CODES. */
static bool has_known_code(const char *text, size_t length) {
    const char *blank = memchr(text, ' ', length);
    size_t word = blank ? (size_t)(blank - text) : length;
    for (const char *const *code = ERROR_CODES; *code; code++)
        if (strlen(*code) == word && memcmp(*code, text, word) == 0) return true;
    return false;
}

/* An unknown code gets ERR before it. */
static void reply_with_error_text(RedisCtx *ctx, const char *text, size_t length) {
    const char *code = has_known_code(text, length) ? "" : "ERR ";
    char *line = redis.Alloc(strlen(code) + length + 1);
    strcpy(line, code);
    memcpy(line + strlen(code), text, length);
    line[strlen(code) + length] = '\0';
    redis.ReplyWithError(ctx, line);
    redis.Free(line);
}

/* Redis wants a zero byte at the end. */
static void reply_with_status(RedisCtx *ctx, const char *text, size_t length) {
    char *line = text_copy(text, length);
    redis.ReplyWithSimpleString(ctx, line);
    redis.Free(line);
}

static void reply_with_number_text(RedisCtx *ctx, const char *text, size_t length) {
    char *digits = text_copy(text, length);
    double value = strtod(digits, NULL);
    if (isnan(value))
        redis.ReplyWithNull(ctx); /* Redis has no NaN: clients would fail on the text its printf gives */
    else
        redis.ReplyWithDouble(ctx, value);
    redis.Free(digits);
}

/* `txt:…`, or another format of three letters. */
static void reply_with_verbatim(RedisCtx *ctx, const char *text, size_t length) {
    char format[4] = {text[0], text[1], text[2], '\0'};
    redis.ReplyWithVerbatimStringType(ctx, text + 4, length - 4, format);
}

static void reply_with_scalar(RedisCtx *ctx, const struct resp_item *item) {
    switch (item->kind) {
    case '+': reply_with_status(ctx, item->text, item->length); break;
    case '-': reply_with_error_text(ctx, item->text, item->length); break;
    case ':': redis.ReplyWithLongLong(ctx, item->integer); break;
    case '$': redis.ReplyWithStringBuffer(ctx, item->text, item->length); break;
    case '#': redis.ReplyWithBool(ctx, (int)item->integer); break;
    case ',': reply_with_number_text(ctx, item->text, item->length); break;
    case '(': redis.ReplyWithBigNumber(ctx, item->text, item->length); break;
    case '=': reply_with_verbatim(ctx, item->text, item->length); break;
    default: break;
    }
}

/* One value with all its children. Depth is bounded: tick.c has checked it. */
static void walk(RedisCtx *ctx, const char **at, const char *end) {
    struct resp_item item;
    /* ReplyWithAttribute fails for RESP2 clients: attributes are dropped */
    while (resp_next(at, end, &item) && item.kind == '|')
        resp_skip(at, end, item.children);
    if (item.null && item.kind == '*') {
        redis.ReplyWithNullArray(ctx);
        return;
    }
    if (item.null) {
        redis.ReplyWithNull(ctx);
        return;
    }
    switch (item.kind) {
    case '*': redis.ReplyWithArray(ctx, (long)item.children); break;
    case '~': redis.ReplyWithSet(ctx, (long)item.children); break;
    case '%': redis.ReplyWithMap(ctx, (long)item.children / 2); break;
    default: reply_with_scalar(ctx, &item); break;
    }
    for (long long i = 0; i < item.children; i++) walk(ctx, at, end);
}

/* The value must be well formed. */
int reply_with_resp(RedisCtx *ctx, const char *resp, size_t length) {
    const char *at = resp;
    walk(ctx, &at, resp + length);
    return REDIS_OK;
}
