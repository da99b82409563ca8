/* Sessions (the code of one RG.PYEXECUTE) and their registrations: in memory, in the RDB, in the
 * AOF and on replicas.
 *
 * The worker announces a session with one REGISTER frame. It is committed by running our own
 * internal command RG._REGISTER, whose argument is the frame's payload: so replicas and the AOF
 * get exactly what the RDB's aux field holds. */
#include "gears/registry.h"

#include <stdlib.h>
#include <string.h>

#include "core/call.h"
#include "core/pending.h"
#include "core/rights.h"
#include "core/worker_link.h"
#include "gears/gears_state.h"
#include "gears/hooks.h"

struct gears_state gears;

enum { GEARS_ENCODING = 1, MAX_ITEMS = 65536, DEATHS_MOST = 2, RETRY_MS = 3000, DOUBLINGS = 8 };

/* ---- memory ---- */

/* The session's list must not hold it any more. */
static void registration_free(struct registration *registration) {
    redis.Free(registration->id);
    redis.Free(registration->trigger);
    redis.Free(registration->prefix);
    words_free(&registration->events);
    words_free(&registration->key_types);
    words_free(&registration->commands);
    buffer_free(&registration->items);
    redis.Free(registration);
}

static void session_free(struct session *session) {
    while (session->first) {
        struct registration *next = session->first->next;
        registration_free(session->first);
        session->first = next;
    }
    redis.Free(session->id);
    redis.Free(session->inactive);
    redis.Free(session->user);
    redis.Free(session->code);
    redis.Free(session);
}

/* ---- decoding ---- */

/* The next item as an owned text. */
static bool read_text(struct frame_list *list, char **text, size_t *length) {
    struct frame_bytes item;
    if (!frame_list_next(list, &item)) return false;
    *text = text_copy(item.data, item.length);
    if (length) *length = item.length;
    return true;
}

/* `n word …`; at most as many as the frame has items. */
static bool read_words(struct frame_list *list, struct words *words) {
    long long count;
    if (!frame_list_number(list, &count) || count < 0 || count > MAX_ITEMS || count > list->left) return false;
    words->items = redis.Calloc((size_t)count + 1, sizeof *words->items);
    words->count = (size_t)count;
    for (size_t i = 0; i < words->count; i++) read_text(list, &words->items[i], NULL);
    return true;
}

/* An item begins with a command's name; hooks.c reads the rest. */
static bool hooks_get(const struct words *commands) {
    for (size_t i = 0; i < commands->count; i++)
        if (bytes_are(commands->items[i], strcspn(commands->items[i], " "), "get")) return true;
    return false;
}

/* Writing commands that the worker adds for mode='sync' are of the kind `W`. */
static bool holds_writers(const struct words *commands) {
    const char *space = commands->count > 0 ? strchr(commands->items[0], ' ') : NULL;
    return space && space[1] == 'W';
}

/* What a registration is about (docs/frames.md, REGISTER). */
static bool read_body(struct frame_list *list, struct registration *registration) {
    struct frame_bytes reader, mode, description, prefix, trigger;
    if (!frame_list_next(list, &reader) || !frame_list_next(list, &mode) || !frame_list_next(list, &description) ||
        !frame_list_next(list, &prefix) || !frame_list_next(list, &trigger))
        return false;
    bool valid = read_words(list, &registration->events) && read_words(list, &registration->key_types) &&
                 read_words(list, &registration->commands);
    registration->keys_reader = frame_bytes_equal(&reader, "KeysReader");
    registration->follows_keys = registration->keys_reader || frame_bytes_equal(&reader, "StreamReader");
    registration->holds_writers = registration->follows_keys && holds_writers(&registration->commands);
    registration->sync = frame_bytes_equal(&mode, "sync");
    registration->trigger = text_copy(trigger.data, trigger.length);
    registration->prefix = prefix_new(prefix.data, prefix.length);
    registration->hooks_get = registration->keys_reader && hooks_get(&registration->commands) &&
                              registration->events.count == 1 && words_hold(&registration->events, "keymiss");
    registration->wants_events = registration->follows_keys &&
                                 (registration->commands.count == 0 || registration->holds_writers);
    return valid;
}

/* Keeps its items as they came, so that they are written as they came. */
static struct registration *read_registration(struct frame_list *list) {
    struct registration *registration = redis.Calloc(1, sizeof *registration);
    bool valid = read_text(list, &registration->id, NULL);
    const char *start = list->at;
    uint32_t before = list->left;
    if (!valid || !read_body(list, registration)) {
        registration_free(registration);
        return NULL;
    }
    registration->item_count = before - list->left;
    buffer_add(&registration->items, start, (size_t)(list->at - start));
    return registration;
}

/* A whole session, or NULL where the payload is malformed. */
static struct session *read_session(const char *payload, size_t length) {
    struct frame_list list;
    long long count = 0;
    if (!frame_list_open(payload, length, &list)) return NULL;
    struct session *session = redis.Calloc(1, sizeof *session);
    bool valid = read_text(&list, &session->id, NULL) && read_text(&list, &session->user, NULL) &&
                 read_text(&list, &session->code, &session->code_length) && frame_list_number(&list, &count) &&
                 count >= 0;
    /* registrations in the order in which the script made them */
    struct registration **end = &session->first;
    while (valid && count-- > 0) {
        *end = read_registration(&list);
        valid = *end != NULL;
        if (!valid) break;
        (*end)->session = session;
        end = &(*end)->next;
    }
    if (valid && list.left == 0) return session;
    session_free(session);
    return NULL;
}

/* ---- encoding ---- */

/* What both frames of a session begin with. */
static void begin_session(struct frame_writer *w, const struct session *session, uint8_t type, uint64_t request) {
    long long count = 0;
    for (struct registration *r = session->first; r; r = r->next) count++;
    frame_begin(w, type, request);
    frame_text(w, session->id);
    frame_text(w, session->user);
    frame_item(w, session->code, session->code_length);
    frame_number(w, count);
}

/* The payload of REGISTER: what read_session reads. */
void gears_encode(const struct session *session, struct buffer *payload) {
    struct frame_writer w;
    begin_session(&w, session, FRAME_REGISTER, 0);
    for (struct registration *r = session->first; r; r = r->next) {
        frame_text(&w, r->id);
        buffer_add(&w.buffer, r->items.data, r->items.length);
        w.items += r->item_count;
    }
    frame_end(&w);
    buffer_consume(&w.buffer, FRAME_HEADER);
    *payload = w.buffer;
}

/* Why it does not run, or NULL where it does. */
static void set_inactive(struct session *session, const char *why, size_t length) {
    redis.Free(session->inactive);
    session->inactive = why ? text_copy(why, length) : NULL;
}

/* SESSION: the worker runs the code and gives its registrations these ids. */
static void send_now(const struct session *session, uint64_t request, bool drop) {
    struct frame_writer w;
    begin_session(&w, session, FRAME_SESSION, request);
    for (struct registration *r = session->first; r; r = r->next) frame_text(&w, drop ? "" : r->id);
    for (struct registration *r = session->first; r && !drop; r = r->next) {
        buffer_add(&w.buffer, r->items.data, r->items.length);
        w.items += r->item_count;
    }
    link_send(&w, NULL);
}

/* With all ids empty the worker drops the session. */
static void drop_from_worker(const struct session *session) { send_now(session, 0, true); }

/* NULL where it was removed meanwhile. */
static struct session *session_named(const char *id) {
    return redis.DictGetC(gears.sessions, (void *)id, strlen(id), NULL);
}

static void retry(RedisCtx *ctx, void *id);

/* The worker has run the code, or could not; where it took too long it is asked later. */
static void finish_replay(struct pending *pending, const char *resp, size_t length) {
    struct session *session = session_named(pending->data);
    bool late = length > 8 && memcmp(resp, "-TIMEOUT", 8) == 0;
    if (session && resp[0] == '-') set_inactive(session, resp + 1, length - 3);
    if (session && resp[0] != '-') session->deaths = session->tries = 0;
    if (session && late)
        redis.CreateTimer(shardqa.ctx, RETRY_MS << session->tries, retry, text_copy(session->id, strlen(session->id)));
    if (session && late && session->tries < DOUBLINGS) session->tries++;
    pending_free(pending);
}

/* The worker ended while it ran this code again. */
static void blame_session(struct pending *pending) {
    static const char why[] =
        "it ended the worker twice when it was run again and is in quarantine; send its script again, or remove it by "
        "RG.UNREGISTER";
    struct session *session = session_named(pending->data);
    if (session == NULL || ++session->deaths < DEATHS_MOST) return;
    session->barred = true;
    set_inactive(session, why, sizeof why - 1);
    redis.Log(shardqa.ctx, "warning", "session %s: %s", session->id, why);
}

/* The worker runs the code again; its answer goes to finish_replay. */
static void send_session(struct session *session) {
    if (session->barred) return;
    struct pending *pending = pending_new();
    pending->data = text_copy(session->id, strlen(session->id));
    pending->free_data = redis.Free;
    pending->on_reply = finish_replay;
    pending->on_fatality = blame_session;
    set_inactive(session, NULL, 0);
    send_now(session, pending->id, false);
}

/* Not where it was replaced, or a new worker has run it, since. Owns the id. */
static void retry(RedisCtx *ctx, void *id) {
    struct session *session = session_named(id);
    (void)ctx;
    if (session && session->inactive && shardqa.link.started) send_session(session);
    redis.Free(id);
}

/* ---- the registry ---- */

/* `active` lists what gears_find walks: it is asked for every GET and every key event. */
static void add_active(struct registration *r) {
    long long n = gears.registrations++;
    gears.active = redis.Realloc(gears.active, sizeof r * (size_t)(n + 1));
    gears.active[n] = r;
    gears.hooks += r->commands.count > 0;
    hooks_add(r);
    gears.event_registrations += r->wants_events;
}

static void count_session(const struct session *session, void *data) {
    (void)data;
    for (struct registration *r = session->first; r; r = r->next)
        if (r->id[0] != '\0') add_active(r);
}

/* After each change of the sessions. */
static void recount(void) {
    gears.registrations = gears.hooks = gears.event_registrations = 0;
    hooks_clear();
    gears_each_session(count_session, NULL);
}

/* The first active registration that the test accepts. */
struct registration *gears_find(RegistrationTest test, void *data) {
    for (long long i = 0; i < gears.registrations; i++)
        if (test(gears.active[i], data)) return gears.active[i];
    return NULL;
}

/* The log says once a session that it is told of less than it asked for. */
bool gears_may(const struct registration *registration, RedisString *key, int access) {
    struct session *session = registration->session;
    if (rights_key(session->user, key, access)) return true;
    if (!session->refused)
        redis.Log(
            shardqa.ctx, "warning",
            "registration %s is not told of some keys that it follows: its user %s may not touch them (ACL SETUSER)",
            registration->id, session->user);
    session->refused = true;
    return false;
}

static int by_order(const void *left, const void *right) {
    const struct session *a = *(struct session *const *)left, *b = *(struct session *const *)right;
    return a->order < b->order ? -1 : a->order > b->order;
}

/* In the order in which they came. The action must not add or remove sessions. */
void gears_each_session(void (*action)(const struct session *, void *), void *data) {
    size_t count = 0;
    struct session *session, **all = redis.Alloc(sizeof *all * (redis.DictSize(gears.sessions) + 1));
    RedisDictIter *iterator = redis.DictIteratorStartC(gears.sessions, "^", NULL, 0);
    while (redis.DictNextC(iterator, NULL, (void **)&session) != NULL) all[count++] = session;
    redis.DictIteratorStop(iterator);
    qsort(all, count, sizeof *all, by_order);
    for (size_t i = 0; i < count; i++) action(all[i], data);
    redis.Free(all);
}

static void send_each(const struct session *session, void *data) {
    (void)data;
    send_session((struct session *)session);
}

static void drop_each(const struct session *session, void *data) {
    (void)data;
    drop_from_worker(session);
}

void gears_send_sessions(void) { gears_each_session(send_each, NULL); }

/* The caller calls recount(). */
static void forget(const char *id) {
    struct session *old = NULL;
    redis.DictDelC(gears.sessions, (void *)id, strlen(id), &old);
    if (old) session_free(old);
}

/* Stores a session in place of an older one of its id. */
static struct session *keep(const char *payload, size_t length) {
    struct session *session = read_session(payload, length);
    if (session == NULL) return NULL;
    forget(session->id);
    session->order = ++gears.last_session;
    redis.DictSetC(gears.sessions, session->id, strlen(session->id), session);
    recount();
    return session;
}

bool gears_store(const char *payload, size_t length) { return keep(payload, length) != NULL; }

/* Before a data set is loaded. */
void gears_clear(void) {
    struct session *session;
    if (shardqa.link.started) gears_each_session(drop_each, NULL);
    while (redis.DictSize(gears.sessions) > 0) {
        RedisDictIter *iterator = redis.DictIteratorStartC(gears.sessions, "^", NULL, 0);
        redis.DictNextC(iterator, NULL, (void **)&session);
        redis.DictIteratorStop(iterator);
        forget(session->id);
    }
    recount();
}

/* ---- the internal commands ---- */

/* From ourselves, the AOF or the master alone. False: the error is replied. */
static bool internal_allowed(RedisCtx *ctx) {
    if (shardqa.calling > 0 || command_is_replayed(ctx)) return true;
    redis.ReplyWithError(
        ctx, "ERR this command is internal: replicas and the AOF receive it; use RG.PYEXECUTE and RG.UNREGISTER");
    return false;
}

/* RG._REGISTER payload */
int rg_internal_register(RedisCtx *ctx, RedisString **argv, int argc) {
    size_t length;
    if (argc != 2) return redis.WrongArity(ctx);
    if (!internal_allowed(ctx)) return REDIS_OK;
    const char *payload = redis.StringPtrLen(argv[1], &length);
    struct session *session = keep(payload, length);
    if (session == NULL)
        return redis.ReplyWithError(ctx, "ERR the session is not of the form this version writes; upgrade this node");
    redis.ReplicateVerbatim(ctx);
    if (shardqa.calling == 0 && shardqa.link.started) send_session(session);
    return redis.ReplyWithSimpleString(ctx, "OK");
}

struct id_text {
    const char *id;
    size_t length;
};

static bool has_id(struct registration *registration, void *data) {
    struct id_text *by_id = data;
    return strlen(registration->id) == by_id->length && memcmp(registration->id, by_id->id, by_id->length) == 0;
}

/* Whether all its registrations are removed. */
static bool is_empty(const struct session *session) {
    for (struct registration *r = session->first; r; r = r->next)
        if (r->id[0] != '\0') return false;
    return true;
}

/* FORGET: nothing is run again. */
static void tell_worker_to_forget(const struct id_text *by_id) {
    struct frame_writer w;
    if (!shardqa.link.started) return;
    frame_begin(&w, FRAME_FORGET, 0);
    frame_item(&w, by_id->id, by_id->length);
    link_send(&w, NULL);
}

/* False where there is none. Where the worker asked for it, that finishes what runs. */
static bool unregister(const struct id_text *by_id, bool tell) {
    struct registration *registration = gears_find(has_id, (void *)by_id);
    if (registration == NULL) return false;
    struct session *session = registration->session;
    if (tell) tell_worker_to_forget(by_id);
    registration->id[0] = '\0';
    recount();
    if (is_empty(session) && !tell) rights_hold_session(session->id, session->user);
    if (is_empty(session)) forget(session->id);
    return true;
}

/* RG._UNREGISTER id */
int rg_internal_unregister(RedisCtx *ctx, RedisString **argv, int argc) {
    struct id_text by_id;
    if (argc != 2) return redis.WrongArity(ctx);
    if (!internal_allowed(ctx)) return REDIS_OK;
    by_id.id = redis.StringPtrLen(argv[1], &by_id.length);
    if (!unregister(&by_id, shardqa.calling == 0)) return redis.ReplyWithError(ctx, "ERR unknown registration id");
    redis.ReplicateVerbatim(ctx);
    return redis.ReplyWithSimpleString(ctx, "OK");
}

/* Whose rights a session has, or NULL where there is no such session. */
const char *gears_session_user(const char *id, size_t length) {
    const struct session *session = redis.DictGetC(gears.sessions, (void *)id, length, NULL);
    return session ? session->user : NULL;
}

/* The session that a registration belongs to, or NULL. */
struct session *gears_session_of(const char *id, size_t length) {
    struct id_text by_id = {.id = id, .length = length};
    const struct registration *r = gears_find(has_id, &by_id);
    return r ? r->session : NULL;
}

/* The worker is told as well. */
bool gears_unregister(const char *id, size_t length) {
    struct id_text by_id = {.id = id, .length = length};
    return unregister(&by_id, true);
}

/* Whether RG.TRIGGER of it may stand in a transaction or a script. */
bool gears_trigger_is_sync(const char *trigger, size_t length) {
    for (long long i = 0; i < gears.registrations; i++) {
        struct registration *r = gears.active[i];
        if (strlen(r->trigger) == length && length > 0 && memcmp(r->trigger, trigger, length) == 0) return r->sync;
    }
    return false;
}

/* A trigger that nobody can answer now, for an error that says why. */
struct registration *gears_inactive_trigger(const char *trigger, size_t length) {
    for (long long i = 0; i < gears.registrations; i++) {
        struct registration *r = gears.active[i];
        if (r->session->inactive && strlen(r->trigger) == length && length > 0 &&
            memcmp(r->trigger, trigger, length) == 0)
            return r;
    }
    return NULL;
}

/* An internal command of ours: replicas and the AOF get it. */
static bool commit(const char *command, const char *argument, size_t length) {
    char error[256];
    RedisString *string = redis.CreateString(NULL, argument, length);
    bool good = call_own(command, &string, 1, "S", error, sizeof error);
    if (!good) redis.Log(shardqa.ctx, "warning", "%s was refused: %s", command, error);
    redis.FreeString(NULL, string);
    return good;
}

/* The node became a replica, or takes no writes now: the worker must not go on with what Redis
 * did not keep. */
static void take_back(const struct session *session) {
    struct session *current = redis.DictGetC(gears.sessions, session->id, strlen(session->id), NULL);
    if (!shardqa.link.started) return;
    current ? send_session(current) : drop_from_worker(session);
}

/* Whose session it is: of the script that the frame belongs to; else of the stored one, if the
 * code is the same; of what a function registered, of its session (`<that>@…`). Never whom the
 * worker names. */
static const char *owner_of(const struct frame *frame, const struct session *session) {
    const char *user = rights_of_script(frame->id), *mark = strchr(session->id, '@');
    const struct session *current = redis.DictGetC(gears.sessions, session->id, strlen(session->id), NULL);
    if (user != NULL) return user;
    if (current == NULL) return mark ? gears_session_user(session->id, (size_t)(mark - session->id)) : NULL;
    if (current->code_length != session->code_length) return NULL;
    return memcmp(current->code, session->code, current->code_length) == 0 ? current->user : NULL;
}

/* REGISTER: a script has registered functions. The worker must not keep what Redis does not. */
bool gears_frame_register(const struct frame *frame) {
    struct buffer payload = {0};
    struct session *session = read_session(frame->payload, frame->length);
    if (session == NULL) return false;
    const char *owner = owner_of(frame, session);
    if (owner) {
        redis.Free(session->user);
        session->user = text_copy(owner, strlen(owner));
        gears_encode(session, &payload);
    } else {
        redis.Log(shardqa.ctx, "warning", "session %s belongs to no script under way and is not kept", session->id);
    }
    if (owner == NULL || !commit("RG._REGISTER", payload.data, payload.length)) take_back(session);
    buffer_free(&payload);
    session_free(session);
    return true;
}

/* UNREGISTER: the worker has ended what the function had begun. */
bool gears_frame_unregister(const struct frame *frame) {
    struct frame_list list;
    struct frame_bytes id;
    if (!frame_list_open(frame->payload, frame->length, &list) || !frame_list_next(&list, &id)) return false;
    struct id_text by_id = {.id = id.data, .length = id.length};
    if (commit("RG._UNREGISTER", id.data, id.length)) return true;
    struct registration *current = gears_find(has_id, &by_id);
    if (current) take_back(current->session);
    return true;
}

/* ---- in the RDB ---- */

static void save_session(const struct session *session, void *io) {
    struct buffer payload;
    gears_encode(session, &payload);
    redis.SaveStringBuffer(io, payload.data, payload.length);
    buffer_free(&payload);
}

/* Before the keys, so that functions stand when they are loaded. */
static void aux_save(RedisIO *io, int when) {
    (void)when;
    redis.SaveUnsigned(io, redis.DictSize(gears.sessions));
    gears_each_session(save_session, io);
}

/* Replaces all sessions. The worker gets them in events_keyspace_loaded. */
static int aux_load(RedisIO *io, int encoding, int when) {
    (void)when;
    if (encoding != GEARS_ENCODING) {
        redis.LogIOError(
            io, "warning",
            "registrations are saved in version %d, this module reads version %d; use the module that wrote them",
            encoding, GEARS_ENCODING);
        return REDIS_ERR;
    }
    /* a data set replaces everything, functions too */
    uint64_t count = redis.LoadUnsigned(io);
    if (redis.IsIOError(io)) return REDIS_ERR;
    gears_clear();
    while (count-- > 0) {
        size_t length;
        char *payload = redis.LoadStringBuffer(io, &length);
        if (redis.IsIOError(io) || payload == NULL) return REDIS_ERR;
        bool good = gears_store(payload, length);
        redis.Free(payload);
        if (!good) return REDIS_ERR;
    }
    return REDIS_OK;
}

/* No key ever has this type; Redis asks for these all the same. */
static void *no_load(RedisIO *io, int encoding) {
    (void)encoding;
    redis.LogIOError(io, "warning",
                     "a key of the type that only carries registrations was met; the payload is damaged");
    return NULL;
}

static void no_save(RedisIO *io, void *value) {
    (void)io;
    (void)value;
}

static void no_rewrite(RedisIO *io, RedisString *key, void *value) {
    (void)io;
    (void)key;
    (void)value;
}

static void no_free(void *value) { (void)value; }

/* A type without keys: it only carries the aux field. */
int gears_type_create(RedisCtx *ctx) {
    RedisTypeMethods methods = {.version = TYPE_METHODS_VERSION,
                                .rdb_load = no_load,
                                .rdb_save = no_save,
                                .aof_rewrite = no_rewrite,
                                .free = no_free,
                                .aux_load = aux_load,
                                .aux_save = aux_save,
                                .aux_save_triggers = AUX_BEFORE_RDB};
    gears.type = redis.CreateDataType(ctx, "SHARDQARG", GEARS_ENCODING, &methods);
    return gears.type ? REDIS_OK : REDIS_ERR;
}
