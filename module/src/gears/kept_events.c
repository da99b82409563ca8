/* Key events of registrations, kept until the worker has done them: what waits when it ends, or
 * comes while there is none, goes to the next one in the old order.
 *
 * Numbers rise by one. An event whose function ran when two workers ended is sent once more as
 * `lost`, so that the third counts it instead of dying as well. */
#include "gears/kept_events.h"

#include <string.h>

#include "core/activity.h"
#include "core/pending.h"
#include "core/text.h"
#include "core/worker_link.h"
#include "gears/gears_state.h"

/* KEPT_BESIDES: of an event in the dictionary */
enum { KEPT_BYTES = 256 << 20, KEPT_BESIDES = 64, DEATHS_MOST = 2, SENT_AHEAD = QUEUE_LIMIT / 4 };

struct kept_event {
    const char *event, *type, *key; /* in `text` */
    uint64_t number;                /* by which it is kept */
    size_t length;                  /* bytes of key */
    size_t bytes;                   /* of all that it takes */
    int deaths;                     /* of workers that may have died of it */
    long long blamed;               /* which restart came last of these */
    char text[];                    /* target, event, type, key; a 0 behind each */
};

/* Appends what is kept with an event. The place behind it. */
static char *append(char *at, const char *text, size_t length) {
    memcpy(at, text, length);
    at[length] = '\0';
    return at + length + 1;
}

static void forget(struct kept_event *e) {
    gears.kept_bytes -= e->bytes;
    redis.Free(e);
}

/* Kept, and sent if there is room. */
bool kept_events_add(const char *target, const char *event, const char *key, size_t length, const char *type) {
    unsigned char number[8];
    size_t targets = strlen(target), events = strlen(event), types = strlen(type);
    size_t bytes = sizeof(struct kept_event) + targets + events + types + length + 4;
    if (gears.kept_bytes + bytes + KEPT_BESIDES > KEPT_BYTES) return false;
    struct kept_event *e = redis.Calloc(1, bytes);
    gears.kept_bytes += e->bytes = bytes + KEPT_BESIDES;
    e->event = append(e->text, target, targets);
    e->type = append((char *)e->event, event, events);
    e->key = append((char *)e->type, type, types);
    append((char *)e->key, key, length);
    e->length = length;
    e->number = ++gears.last_event;
    pending_key(e->number, number);
    redis.DictSetC(gears.kept_events, number, sizeof number, e);
    kept_events_send();
    return true;
}

void send_event(uint64_t number, const char *target, const char *event, const char *key, size_t length,
                const char *type) {
    struct frame_writer w;
    frame_begin(&w, FRAME_EVENT, number);
    frame_text(&w, target);
    frame_text(&w, event);
    frame_item(&w, key, length);
    frame_text(&w, type);
    link_send_patient(&w);
    gears.counters.events++;
}

/* One that is kept still. */
static void send_kept(uint64_t number) {
    unsigned char key[8];
    pending_key(number, key);
    const struct kept_event *e = redis.DictGetC(gears.kept_events, key, sizeof key, NULL);
    if (e) send_event(number, e->text, e->event, e->key, e->length, e->deaths < DEATHS_MOST ? e->type : "lost");
}

void kept_events_send(void) {
    if (!shardqa.link.started || !link_usable()) return;
    while (gears.sent_event < gears.last_event && shardqa.link.out.bytes < SENT_AHEAD) send_kept(++gears.sent_event);
}

/* DONE: numbers of events whose functions have ended, whatever they came to. */
bool kept_events_frame_done(const struct frame *frame) {
    struct frame_list list;
    uint64_t number;
    if (!frame_list_open(frame->payload, frame->length, &list)) return false;
    while (list.left > 0) {
        unsigned char key[8];
        struct kept_event *e = NULL;
        if (!frame_list_u64(&list, &number)) return false;
        pending_key(number, key);
        if (redis.DictDelC(gears.kept_events, key, sizeof key, &e) == REDIS_OK) forget(e);
    }
    return true;
}

/* Whether the thread was in the function of this event's registration; a slot says
 * `registration <id> (…)`. */
static bool ran(const struct activity_slot *slot, const struct kept_event *e) {
    static const char before[] = "registration ";
    size_t length = strlen(e->text);
    return strncmp(slot->name, before, sizeof before - 1) == 0 &&
           strncmp(slot->name + sizeof before - 1, e->text, length) == 0 &&
           slot->name[sizeof before - 1 + length] == ' ';
}

/* The oldest event that such a thread may have been at. */
static void blame(const struct activity_slot *slot) {
    struct kept_event *e;
    RedisDictIter *iterator = redis.DictIteratorStartC(gears.kept_events, "^", NULL, 0);
    while (redis.DictNextC(iterator, NULL, (void **)&e) != NULL) {
        if (e->blamed == shardqa.link.restarts + 1 || !ran(slot, e)) continue;
        e->blamed = shardqa.link.restarts + 1;
        e->deaths++;
        break;
    }
    redis.DictIteratorStop(iterator);
}

/* The next worker gets all from the oldest one on. */
void kept_events_worker_gone(void) {
    struct activity_slot slot;
    struct kept_event *oldest;
    for (int i = 0; i < ACTIVITY_SLOTS; i++)
        if (activity_slot(i, &slot)) blame(&slot);
    RedisDictIter *iterator = redis.DictIteratorStartC(gears.kept_events, "^", NULL, 0);
    gears.sent_event = gears.last_event;
    if (redis.DictNextC(iterator, NULL, (void **)&oldest) != NULL) gears.sent_event = oldest->number - 1;
    redis.DictIteratorStop(iterator);
}

/* Another data set, or this node is no master any more. */
void kept_events_clear(void) {
    if (redis.DictSize(gears.kept_events) > 0) dict_clear(&gears.kept_events, redis.Free);
    gears.kept_bytes = 0;
    gears.sent_event = gears.last_event;
}
