/* Reading of RESP2 and RESP3 values. Pure: no Redis. */
#ifndef SHARDQA_RESP_H
#define SHARDQA_RESP_H

#include <stdbool.h>
#include <stddef.h>

#include "core/buffer.h"

enum { RESP_MAX_DEPTH = 16 }; /* nested aggregates; deeper values are refused */

struct resp_item {
    char kind;          /* the type byte: + - : $ * _ # , ( = % ~ | > */
    bool null;          /* $-1, *-1 and _ */
    const char *text;   /* bytes of + - $ ( = and the digits of , : borrowed */
    size_t length;      /* bytes of text */
    long long integer;  /* value of :, and 0 or 1 of # */
    long long children; /* values that follow inside an aggregate: pairs count twice */
};

/* Reads one item (an aggregate's head, not its children) and moves *at behind it. False where it
 * is malformed or cut off. */
bool resp_next(const char **at, const char *end, struct resp_item *item);

/* True when `data` is exactly one well-formed value with at most RESP_MAX_DEPTH levels. */
bool resp_is_one_value(const char *data, size_t length);

/* passes over whole values of a well-formed reply */
void resp_skip(const char **at, const char *end, long long values);
void resp_add_error(struct buffer *reply, const char *error);       /* `error` without the '-' */

#endif
