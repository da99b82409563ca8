/* Looks the module functions of redis_api.h up, once, at load. */
#include "core/redis_api.h"

struct redis_api redis;

typedef int (*GetApi)(const char *name, void *target);

/* NULL, or the function that this server lacks. */
const char *redis_api_load(RedisCtx *ctx) {
    GetApi get_api = *(GetApi *)(void *)ctx;
#define REDIS_RESOLVE(result, name, parameters) \
    if (get_api("RedisModule_" #name, (void *)&redis.name) != REDIS_OK) return #name;
    REDIS_FUNCTIONS(REDIS_RESOLVE)
#undef REDIS_RESOLVE
#define REDIS_LOOK(result, name, parameters) \
    if (get_api("RedisModule_" #name, (void *)&redis.name) != REDIS_OK) redis.name = NULL;
    REDIS_NEWER_FUNCTIONS(REDIS_LOOK)
#undef REDIS_LOOK
    return NULL;
}
