/* Sessions and registrations of functions, kept by the module: RDB, AOF, replicas. */
#ifndef SHARDQA_REGISTRY_H
#define SHARDQA_REGISTRY_H

#include <stdbool.h>

#include "core/frame.h"
#include "core/state.h"
#include "core/text.h"

struct pending;

struct session;

struct registration {
    struct registration *next;
    struct session *session; /* its owner */
    char *trigger;         /* owned; of a CommandReader, else "" */
    char *id;              /* owned; "" once unregistered: its place in the session's code must be kept */
    bool sync;             /* mode='sync': its trigger may hold a transaction or a script */
    bool keys_reader;
    bool follows_keys;     /* a KeysReader or StreamReader; else a CommandReader */
    bool holds_writers;    /* mode='sync': what caused an event is replied after its function */
    struct words commands; /* that it hooks (hooks.h) */
    bool hooks_get;        /* the misses of GET, and no other event of it: shardqa.get */
    bool wants_events;     /* follows keys and is no hook of `commands` */
    struct prefix *prefix; /* owned */
    struct words events;    /* empty: all */
    struct words key_types; /* empty: all */
    struct buffer items;    /* owned: its list items behind the id as they came, for saving and replication */
    uint32_t item_count; /* list items in `items` */
};

struct session {
    char *id;                  /* owned, as are user and code */
    char *user;                /* functions run as this user */
    char *code;
    size_t code_length; /* bytes */
    struct registration *first; /* owned, in the order of the code */
    char *inactive;            /* owned; why no worker has its functions; NULL: it has, or will have */
    int deaths;                /* of workers that ran it again; DEATHS_MOST put it into quarantine */
    int tries;                 /* of its replay, in a row, which took too long */
    bool barred;               /* in quarantine: no worker is given it */
    bool refused;              /* its user may not touch what it follows, and the log says so */
    uint64_t order;            /* a later session has a higher one: of hooks of one command the last is the first */
};

void gears_send_sessions(void); /* SESSION frames for a worker that was just started */
bool gears_store(const char *payload, size_t length);     /* of a REGISTER frame; false: malformed */
void gears_encode(const struct session *session, struct buffer *payload); /* the inverse */
/* before another data set is loaded; the worker drops them too */
void gears_clear(void);

void gears_each_session(void (*action)(const struct session *, void *), void *data);
bool gears_trigger_is_sync(const char *trigger, size_t length);
/* The registration of this trigger whose session is inactive; NULL: none. */
struct registration *gears_inactive_trigger(const char *trigger, size_t length);

/* Frames of the worker; they change the registry through RG._REGISTER and RG._UNREGISTER, so
 * that the change is replicated. */
bool gears_frame_register(const struct frame *frame);
bool gears_frame_unregister(const struct frame *frame);

/* Calls `each` for every registration until it returns true; then returns that registration. */
typedef bool (*RegistrationTest)(struct registration *registration, void *data);
struct registration *gears_find(RegistrationTest test, void *data);

/* May who registered it do so to the key? Judged each time, as rights change. */
bool gears_may(const struct registration *registration, RedisString *key, int access);

/* of the session of this id; borrowed, NULL: there is none */
const char *gears_session_user(const char *id, size_t length);
struct session *gears_session_of(const char *id, size_t length); /* of this registration; NULL: there is none */
/* here and in the worker; false: there is none. Replicates nothing */
bool gears_unregister(const char *id, size_t length);

int gears_type_create(RedisCtx *ctx); /* the type whose aux data holds the registrations */
int rg_internal_register(RedisCtx *ctx, RedisString **argv, int argc);
int rg_internal_unregister(RedisCtx *ctx, RedisString **argv, int argc);

/* registrations_dump.c: the worker's list, and what it does not have, as one RESP value. */
void gears_dump(struct buffer *reply, const char *resp, size_t length);

#endif
