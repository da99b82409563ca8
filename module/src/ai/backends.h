/* The backends that were loaded: INFO shows these alone, as RedisAI does, which loads one when it
 * is first needed. */
#ifndef SHARDQA_AI_BACKENDS_H
#define SHARDQA_AI_BACKENDS_H

#include <stdbool.h>

void backend_loaded(const char *name);
bool backend_is_loaded(const char *name);

#endif
