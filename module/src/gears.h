/* RG.*: sessions and registrations, kept by the module (RDB, AOF, replicas), and the commands that the worker answers. */
#ifndef SHARDQA_GEARS_H
#define SHARDQA_GEARS_H

#include <stdbool.h>

#include "frame.h"
#include "state.h"
#include "text.h"

struct words {
    size_t count;
    char **items; /* owned, NUL at the end */
};

struct registration {
    struct registration *next;
    char *id;              /* owned; "" once unregistered: its place in the session's code must be kept */
    bool keys_reader;
    bool hooks_get;        /* commands=['get'], eventTypes=['keymiss'] */
    bool wants_events;     /* a KeysReader that is no hook */
    struct prefix *prefix; /* owned */
    struct words events;    /* empty: all */
    struct words key_types; /* empty: all */
    struct buffer items;    /* owned: its list items behind the id as they came, for saving and replication */
    uint32_t item_count;
};

struct session {
    char *id;                  /* owned, as are user and code */
    char *user;                /* functions run as this user */
    char *code;
    size_t code_length;
    struct registration *first; /* owned, in the order of the code */
};

void gears_send_sessions(void); /* SESSION frames for a worker that was just started */
void gears_forget_worker(void); /* the worker died: its statistics are void */
bool gears_store(const char *payload, size_t length);     /* of a REGISTER frame; false: malformed */
void gears_encode(const struct session *session, struct buffer *payload); /* the inverse */
void gears_clear(void);                                   /* before another data set is loaded; the worker drops them too */

/* Frames of the worker; they change the registry through RG._REGISTER and RG._UNREGISTER, so that the change is replicated. */
bool gears_frame_register(const struct frame *frame);
bool gears_frame_unregister(const struct frame *frame);

/* Calls `each` for every registration until it returns true; then returns that registration. */
typedef bool (*RegistrationTest)(struct registration *registration, void *data);
struct registration *gears_find(RegistrationTest test, void *data);
bool words_hold(const struct words *words, const char *word); /* case does not matter; empty: true */

int gears_type_create(RedisCtx *ctx); /* the type whose aux data holds the registrations */

int rg_pyexecute(RedisCtx *ctx, RedisString **argv, int argc);
int rg_unregister(RedisCtx *ctx, RedisString **argv, int argc);
int rg_trigger(RedisCtx *ctx, RedisString **argv, int argc); /* RG.TRIGGER and RG.TRIGGERONKEY */
int rg_request(RedisCtx *ctx, RedisString **argv, int argc); /* any other command that the worker answers */
int rg_internal_register(RedisCtx *ctx, RedisString **argv, int argc);
int rg_internal_unregister(RedisCtx *ctx, RedisString **argv, int argc);

#endif
