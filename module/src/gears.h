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

struct session;

struct registration {
    struct registration *next;
    struct session *session; /* its owner */
    char *trigger;         /* owned; of a CommandReader, else "" */
    char *id;              /* owned; "" once unregistered: its place in the session's code must be kept */
    bool keys_reader;
    bool hooks_get;        /* commands=['get'], eventTypes=['keymiss'] */
    bool wants_events;     /* a KeysReader that is no hook, or a StreamReader */
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
    char *inactive;            /* owned; why no worker has its functions; NULL: it has, or will have */
    int deaths;                /* of workers that ran it again; DEATHS_MOST put it into quarantine */
    bool barred;               /* in quarantine: no worker is given it */
};

void gears_send_sessions(void); /* SESSION frames for a worker that was just started */
void gears_forget_worker(void); /* the worker died: its statistics are void */
bool gears_store(const char *payload, size_t length);     /* of a REGISTER frame; false: malformed */
void gears_encode(const struct session *session, struct buffer *payload); /* the inverse */
void gears_clear(void);                                   /* before another data set is loaded; the worker drops them too */

struct pending;
void gears_replayed(struct pending *pending, const char *resp, size_t length); /* the worker's REPLY to SESSION */
void gears_blame(struct pending *pending); /* the worker ended while it ran this session again */
void gears_each_session(void (*action)(const struct session *, void *), void *data);
/* The registration of this trigger whose session is inactive; NULL: none. */
struct registration *gears_inactive_trigger(const char *trigger, size_t length);

/* registrations_dump.c: the worker's list, and what it does not have, as one RESP value. */
void gears_dump(struct buffer *reply, const char *resp, size_t length);

/* Frames of the worker; they change the registry through RG._REGISTER and RG._UNREGISTER, so that the change is replicated. */
bool gears_frame_register(const struct frame *frame);
bool gears_frame_unregister(const struct frame *frame);

/* Calls `each` for every registration until it returns true; then returns that registration. */
typedef bool (*RegistrationTest)(struct registration *registration, void *data);
struct registration *gears_find(RegistrationTest test, void *data);
bool words_hold(const struct words *words, const char *word); /* case does not matter; empty: true */

struct session *gears_session_of(const char *id, size_t length); /* of this registration; NULL: there is none */
bool gears_unregister(const char *id, size_t length);            /* here and in the worker; false: there is none. Replicates nothing */
bool may_run_code(RedisCtx *ctx, const char *command); /* may this client bring code to the server? Else the error is replied. */

int gears_type_create(RedisCtx *ctx); /* the type whose aux data holds the registrations */

int rg_pyexecute(RedisCtx *ctx, RedisString **argv, int argc);
int rg_unregister(RedisCtx *ctx, RedisString **argv, int argc);
int rg_trigger(RedisCtx *ctx, RedisString **argv, int argc); /* RG.TRIGGER and RG.TRIGGERONKEY */
int rg_admin(RedisCtx *ctx, RedisString **argv, int argc);   /* answered by the worker, for users who may run DEBUG */
int rg_wait(RedisCtx *ctx, RedisString **argv, int argc);    /* the same, without a deadline */
int rg_peer(RedisCtx *ctx, RedisString **argv, int argc);
int rg_dumpregistrations(RedisCtx *ctx, RedisString **argv, int argc);
int rg_request(RedisCtx *ctx, RedisString **argv, int argc); /* any other command that the worker answers */
int rg_internal_register(RedisCtx *ctx, RedisString **argv, int argc);
int rg_internal_unregister(RedisCtx *ctx, RedisString **argv, int argc);

#endif
