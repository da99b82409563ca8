#ifndef SHARDQA_CALL_H
#define SHARDQA_CALL_H

#include <stdbool.h>

#include "core/frame.h"
#include "core/redis_api.h"

enum { SECTION_FIRST = 2 }; /* the first number of a section; numbers below are other flags of a CALL */
#define SECTION_CLOSED                                                                                                 \
    "TIMEOUT the atomic block took longer than 1000 ms: it was ended there, and its later commands did not run"

/* Runs the commands of a CALL frame, in order, and answers CALLED. False: the frame is
 * malformed. */
bool call_run(const struct frame *frame);

/* Adds what RedisModule_Call gave, with the codes a client would get; `error` is its errno.
 * Frees the reply. */
void call_add_reply(struct buffer *replies, RedisReply *reply, int error);

/* The section that the frame's calls are for; 0: none. */
uint64_t call_section(const struct frame *frame);

/* Do all commands of the frame only read? Such calls run even while writing is paused. */
bool call_only_reads(const struct frame *frame);

/* Runs one command of our own with effects on replicas and AOF (flags "!EM" and `more`). Returns
 * false and fills `error` (without the '-') when it replied an error. */
bool call_own(const char *command, RedisString **argv, size_t argc, const char *more, char *error, size_t error_size);

#endif
