/* RG.*: the commands that the worker answers; and GET, which a hook may answer (miss.c). The
 * sessions and registrations themselves: registry.h. */
#ifndef SHARDQA_RG_COMMANDS_H
#define SHARDQA_RG_COMMANDS_H

#include <stdbool.h>

#include "core/state.h"

int rg_pyexecute(RedisCtx *ctx, RedisString **argv, int argc);
int rg_unregister(RedisCtx *ctx, RedisString **argv, int argc);
int rg_trigger(RedisCtx *ctx, RedisString **argv, int argc); /* RG.TRIGGER and RG.TRIGGERONKEY */
int rg_admin(RedisCtx *ctx, RedisString **argv, int argc);   /* answered by the worker, for users who may run DEBUG */
int rg_wait(RedisCtx *ctx, RedisString **argv, int argc);    /* the same, without a deadline */
int rg_peer(RedisCtx *ctx, RedisString **argv, int argc);
int rg_dumpregistrations(RedisCtx *ctx, RedisString **argv, int argc);
int shardqa_get(RedisCtx *ctx, RedisString **argv, int argc);
int rg_request(RedisCtx *ctx, RedisString **argv, int argc); /* any other command that the worker answers */

#endif
