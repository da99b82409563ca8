/* Key events -> EVENT frames; changes of the whole keyspace -> RESYNC.
 *
 * Callbacks only queue: a write inside a notification would lose its own events, and keys are
 * opened only where the event alone does not tell the type. Registrations act on masters;
 * watches (which keep a replica's state warm) act everywhere. Nothing is reported while a data
 * set is being loaded: RESYNC follows. */
#include "gears/events.h"

#include <string.h>

#include "core/text.h"
#include "core/worker_link.h"
#include "gears/gears_state.h"
#include "gears/hooked_command.h"
#include "gears/hooks.h"
#include "gears/kept_events.h"
#include "gears/registry.h"

/* ---- key events ---- */

/* The names of redis-cli's TYPE. */
static const char *type_name(int type) {
    switch (type) {
    case KEYTYPE_STRING: return "string";
    case KEYTYPE_LIST: return "list";
    case KEYTYPE_HASH: return "hash";
    case KEYTYPE_SET: return "set";
    case KEYTYPE_ZSET: return "zset";
    case KEYTYPE_STREAM: return "stream";
    case KEYTYPE_MODULE: return "module";
    default: return "none";
    }
}

/* Whether the key is gone once this event comes. */
static bool removes(const char *event) {
    static const char *const words[] = {"del",         "unlink",    "expired", "evicted",
                                        "rename_from", "move_from", "keymiss", NULL};
    for (const char *const *word = words; *word; word++)
        if (strcmp(event, *word) == 0) return true;
    return false;
}

/* The key's type. It is opened only where the event's class does not tell. */
static const char *type_of_event(RedisCtx *ctx, int class, const char *event, RedisString *key) {
    if (removes(event)) return "none";
    if (class & NOTIFY_STRING) return "string";
    if (class & NOTIFY_HASH) return "hash";
    if (class & NOTIFY_LIST) return "list";
    if (class & NOTIFY_SET) return "set";
    if (class & NOTIFY_ZSET) return "zset";
    if (class & NOTIFY_STREAM) return "stream";
    if (class & NOTIFY_MODULE) return "module";
    RedisKey *open = redis.OpenKey(ctx, key, REDIS_LOOK);
    const char *name = open ? type_name(redis.KeyType(open)) : "none";
    if (open) redis.CloseKey(open);
    return name;
}

struct watch {
    struct watch *next;
    struct prefix *prefix; /* owned, as is the next */
    char *session;         /* that follows it; "" where the worker did not say */
};

struct happening {
    RedisCtx *ctx;
    int class; /* NOTIFY_… */
    const char *event;
    RedisString *key;
    const char *text; /* of the key */
    size_t length; /* bytes of text */
    const char *type; /* NULL until somebody asks */
};

/* Found at most once per event, however many ask; "none" of a key that is not there. */
static const char *happening_type(struct happening *h) {
    if (h->type == NULL) h->type = type_of_event(h->ctx, h->class, h->event, h->key);
    return h->type;
}

/* Whether the command under way is one of this session itself, which knows what it writes. What
 * Redis takes away meanwhile, to make room, it does not know. */
static bool is_its_own(const char *session, const struct happening *h) {
    return shardqa.quiet.length > 0 && frame_bytes_equal(&shardqa.quiet, session) && !removes(h->event);
}

/* Whether it is what a KeysReader must not hear of: the writes of one of mode='sync' would start it
 * again, for ever. What time and memory take away it hears. */
static bool is_nested(const struct registration *r, const struct happening *h) {
    return shardqa.nested && r->keys_reader && strcmp(h->event, "expired") != 0 && strcmp(h->event, "evicted") != 0;
}

/* One EVENT frame for watches. When the queue is full, it is lost and RESYNC follows instead. */
static void send_to_watches(struct happening *h) {
    if (!shardqa.link.started) return;
    if (gears.events_overflowed || shardqa.link.out.bytes > QUEUE_LIMIT / 4 * 3) { /* the rest is for requests */
        gears.events_overflowed = true;
        gears.counters.events_lost++;
        return;
    }
    send_event(0, "watch", h->event, h->text, h->length, happening_type(h));
}

/* Whether the registration asked for such an event of such a key. */
static bool is_for(const struct registration *r, struct happening *h) {
    if (!prefix_matches(r->prefix, h->text, h->length) || !words_hold(&r->events, h->event)) return false;
    if (r->events.count == 0 && h->class & NOTIFY_KEY_MISS) return false; /* misses must be asked for */
    if (r->key_types.count > 0 &&
        !words_hold(&r->key_types, strcmp(happening_type(h), "none") == 0 ? "empty" : h->type))
        return false;
    return gears_may(r, h->key, KEY_ACCESS);
}

/* Whether the client of the command under way waits for this one's function. */
static bool is_awaited(const struct registration *r) {
    const struct hook *hook = r->holds_writers && gears.caused_events ? gears.caused_events->hook : NULL;
    for (size_t i = 0; hook && i < hook->count; i++)
        if (hook->registrations[i] == r) return true;
    return false;
}

/* Called for every registration: sends the event to those that want it. What can't be kept any more
 * is counted there, too. */
static bool offer_to_registration(struct registration *r, void *data) {
    struct happening *h = data;
    if (r->wants_events && !is_awaited(r) && !is_its_own(r->session->id, h) && !is_nested(r, h) && is_for(r, h) &&
        !kept_events_add(r->id, h->event, h->text, h->length, happening_type(h))) {
        gears.counters.events_lost++;
        if (shardqa.link.started && shardqa.link.out.bytes < QUEUE_LIMIT / 4)
            send_event(0, r->id, h->event, h->text, h->length, "full");
    }
    return false;
}

/* The client of the command under way waits for the functions of these. */
static void offer_to_hooks(struct happening *h) {
    const struct hook *hook = gears.caused_events->hook;
    for (size_t i = 0; i < hook->count; i++) {
        const struct registration *r = hook->registrations[i];
        if (r->follows_keys && is_for(r, h))
            note_caused_event(gears.caused_events, r, h->event, h->text, h->length, happening_type(h));
    }
}

/* One frame is enough, however many watches match. */
static void offer_to_watches(struct happening *h) {
    if (h->class & NOTIFY_KEY_MISS) return;
    for (struct watch *watch = gears.watches; watch; watch = watch->next)
        if (prefix_matches(watch->prefix, h->text, h->length) && !is_its_own(watch->session, h)) {
            send_to_watches(h);
            return;
        }
}

/* Every key event of the server comes here, so the cheap tests stand first. */
static int on_key_event(RedisCtx *ctx, int class, const char *event, RedisString *key) {
    struct happening h = {.ctx = ctx, .class = class, .event = event, .key = key};
    if (!shardqa.arguments.python || (gears.watches == NULL && gears.event_registrations == 0 && !gears.caused_events))
        return REDIS_OK;
    if (redis.GetContextFlags(ctx) & (CTX_LOADING | CTX_IS_CHILD) || redis.GetSelectedDb(ctx) != 0) return REDIS_OK;
    h.text = redis.StringPtrLen(key, &h.length);
    offer_to_watches(&h);
    if (gears.caused_events) offer_to_hooks(&h);
    if (shardqa.master && gears.event_registrations > 0) gears_find(offer_to_registration, &h);
    return REDIS_OK;
}

static void watch_free(struct watch *watch) {
    redis.Free(watch->prefix);
    redis.Free(watch->session);
    redis.Free(watch);
}

/* WATCH: a session of the worker wants all events of keys with a prefix. */
bool events_frame_watch(const struct frame *frame) {
    struct frame_list list;
    struct frame_bytes item, session = {.data = ""};
    if (!frame_list_open(frame->payload, frame->length, &list) || !frame_list_next(&list, &item)) return false;
    frame_list_next(&list, &session);
    char *pattern = redis.Alloc(item.length + 1); /* a watch is always a prefix */
    memcpy(pattern, item.data, item.length);
    pattern[item.length] = '*';
    struct watch *watch = redis.Alloc(sizeof *watch);
    watch->prefix = prefix_new(pattern, item.length > 0 && item.data[item.length - 1] == '*' ? item.length
                                                                                            : item.length + 1);
    watch->session = text_copy(session.data, session.length);
    watch->next = gears.watches;
    redis.Free(pattern);
    for (struct watch *w = gears.watches; w; w = w->next)
        if (w->prefix->length == watch->prefix->length && strcmp(w->session, watch->session) == 0 &&
            memcmp(w->prefix->text, watch->prefix->text, w->prefix->length) == 0) {
            watch_free(watch);
            return true;
        }
    gears.watches = watch;
    return true;
}

/* Watches belong to one worker and end with it; what it had not done the next one does. */
void events_forget_worker(void) {
    kept_events_worker_gone();
    while (gears.watches) {
        struct watch *next = gears.watches->next;
        watch_free(gears.watches);
        gears.watches = next;
    }
    gears.events_overflowed = false;
}

/* ---- everything at once ---- */

/* Events were lost, or everything changed at once: the worker reads the keyspace anew. */
static void resync(const char *reason) {
    struct frame_writer w;
    if (!shardqa.link.started) return;
    frame_begin(&w, FRAME_RESYNC, 0);
    frame_text(&w, reason);
    link_send(&w, NULL);
}

/* The registrations came with the data set, so the worker gets them again. One that was not
 * started yet gets all when it is. */
void events_keyspace_loaded(void) {
    kept_events_clear();
    if (shardqa.link.started) gears_send_sessions();
    resync("loaded");
}

/* After an overflow: once half of the queue is free, events go on. */
void events_tick(void) {
    if (!shardqa.master) kept_events_clear();
    kept_events_send();
    if (!gears.events_overflowed || shardqa.link.out.bytes > QUEUE_LIMIT / 2) return;
    gears.events_overflowed = false;
    resync("overflow");
}

/* FLUSHALL and FLUSHDB of database 0. */
static void on_flush(RedisCtx *ctx, RedisEvent event, uint64_t sub, void *data) {
    RedisFlushInfo *info = data;
    (void)ctx;
    (void)event;
    if (sub == FLUSHDB_END && (info->dbnum == 0 || info->dbnum == -1)) resync("flush");
}

/* SWAPDB concerns us where database 0 takes part. */
static void on_swap(RedisCtx *ctx, RedisEvent event, uint64_t sub, void *data) {
    RedisSwapInfo *info = data;
    (void)ctx;
    (void)event;
    (void)sub;
    if (info->first == 0 || info->second == 0) resync("swapdb");
}

int events_subscribe(RedisCtx *ctx) {
    static const struct {
        uint64_t id;
        RedisEventHandler handler;
    } handlers[] = {{EVENT_FLUSHDB, on_flush}, {EVENT_SWAPDB, on_swap}};
    int classes = NOTIFY_GENERIC | NOTIFY_STRING | NOTIFY_LIST | NOTIFY_SET | NOTIFY_HASH | NOTIFY_ZSET |
                  NOTIFY_EXPIRED | NOTIFY_EVICTED | NOTIFY_STREAM | NOTIFY_MODULE | NOTIFY_KEY_MISS;
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++) {
        RedisEvent event = {.id = handlers[i].id, .data_version = 1};
        if (redis.SubscribeToServerEvent(ctx, event, handlers[i].handler) != REDIS_OK) return REDIS_ERR;
    }
    return redis.SubscribeToKeyspaceEvents(ctx, classes, on_key_event);
}
