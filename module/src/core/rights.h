/* Whose rights the worker's commands have.
 *
 * The worker never names a user: it names a request that we sent it, or a stored session, and
 * the user is the one that we noted when the client sent the request or the script. So a
 * function can act as its caller or as whoever registered it, and as nobody else. Without
 * either, it is the worker itself, which may look at the cluster's topology and no more. Main
 * thread only. */
#ifndef SHARDQA_RIGHTS_H
#define SHARDQA_RIGHTS_H

#include <stdbool.h>

#include "core/frame.h"
#include "core/state.h"

struct prefix;

struct rights {
    RedisUser *user;  /* owned until rights_close; NULL: the worker itself */
    const char *name; /* of the user, borrowed from the request or session; "" for the worker itself */
};

/* Resolves `r<request id>`, `s<session id>` (`q…` and `n…` are the same, of which fewer
 * hear) or nothing. False: *error says why nothing may run. */
bool rights_open(const struct frame_bytes *context, struct rights *rights, const char **error);
void rights_close(struct rights *rights);

/* The user of a script that the worker has not released yet, borrowed; NULL: none. */
const char *rights_of_script(uint64_t id);

/* A script's rights outlast its reply and its client: it may go on by itself, until the worker
 * says RELEASE. */
void rights_hold(uint64_t id, const char *user);
/* A session that goes, until the worker says that what its functions had begun has ended. */
void rights_hold_session(const char *id, const char *user);
bool rights_frame_release(const struct frame *frame);
void rights_forget_worker(void);

/* Owned by the caller; "" for a client without a user, as of a nested call. */
char *rights_current_user(RedisCtx *ctx);

/* may the client's user run this command on these keys? */
bool rights_client_may(RedisCtx *ctx, RedisString **argv, size_t argc);
bool rights_may(RedisCtx *ctx, const char *command, const char *subcommand); /* may the client's user run it? */
bool rights_may_debug(RedisCtx *ctx);                             /* may it do what DEBUG stands in for? */
/* may it bring code to the server? Else the error is replied */
bool rights_may_run_code(RedisCtx *ctx, const char *command);

/* May `user` run this command on the keys it names? A command that does not exist: no. */
bool rights_allow(RedisUser *user, RedisString **argv, size_t argc);

/* May the user of this name do so (KEY_ACCESS, KEY_UPDATE …) to this key, or to every key that the
 * prefix matches? One that is gone: no. */
bool rights_key(const char *user, RedisString *key, int access);
bool rights_prefix(const char *user, const struct prefix *prefix, int access);
void rights_patterns(const char *user, struct buffer *patterns); /* its key patterns, for people */

#endif
