#ifndef SHARDQA_ENVIRONMENT_H
#define SHARDQA_ENVIRONMENT_H

/* The Python of the environment that this module's file lies in: an absolute path that the
 * caller frees with redis.Free, or NULL. */
char *environment_python(void);

#endif
