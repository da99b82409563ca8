/* Allocation for files that are built twice: inside Redis (counted in used_memory) and in the
 * plain test programs. None of these returns NULL: Redis aborts when memory is out, and so do
 * the tests. */
#ifndef SHARDQA_MEMORY_H
#define SHARDQA_MEMORY_H

#include <stddef.h>

#ifdef SHARDQA_PURE
#include <stdlib.h>
#define mem_alloc(n) malloc(n)
#define mem_realloc(p, n) realloc(p, n)
#define mem_free(p) free(p)
#else
#include "core/redis_api.h"
#define mem_alloc(n) redis.Alloc(n)
#define mem_realloc(p, n) redis.Realloc(p, n)
#define mem_free(p) redis.Free(p)
#endif

#endif
