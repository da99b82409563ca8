/* The user that the worker runs as, where it is not Redis' own. */
#ifndef SHARDQA_WORKER_USER_H
#define SHARDQA_WORKER_USER_H

#include "core/redis_api.h"

/* NULL and "uid:gid" (owned by the caller) of the user of this name; else what the argument must
 * be. */
const char *worker_user(const RedisString *name, char **ids);

#endif
