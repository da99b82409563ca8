/* RG.DUMPREGISTRATIONS: the worker's list with its statistics, and behind it what the worker
 *     does not have. */
#include <stdio.h>
#include <string.h>

#include "core/resp.h"
#include "core/state.h"
#include "gears/gears_state.h"
#include "gears/registry.h"

/* A RESP line with a number: length, count or integer. */
static void add_line(struct buffer *out, char kind, long long number) {
    char line[32];
    buffer_add(out, line, (size_t)snprintf(line, sizeof line, "%c%lld\r\n", kind, number));
}

static void add_bulk(struct buffer *out, const char *data, size_t length) {
    add_line(out, '$', (long long)length);
    buffer_add(out, data, length);
    buffer_add(out, "\r\n", 2);
}

static void add_text(struct buffer *out, const char *text) { add_bulk(out, text, strlen(text)); }

static void add_number(struct buffer *out, const char *name, long long number) {
    add_text(out, name);
    add_line(out, ':', number);
}

/* A name and an array, nil where all words are meant. */
static void add_words(struct buffer *out, const char *name, const struct words *words) {
    add_text(out, name);
    if (words->count == 0) {
        buffer_add(out, "$-1\r\n", 5);
        return;
    }
    add_line(out, '*', (long long)words->count);
    for (size_t i = 0; i < words->count; i++) add_text(out, words->items[i]);
}

/* The worker's list has the same for each reader. */
static void add_arguments(struct buffer *out, const struct registration *r, const struct frame_bytes *prefix) {
    if (!r->follows_keys && r->commands.count > 0) {
        add_line(out, '*', 4);
        add_text(out, "hook");
        add_bulk(out, r->commands.items[0], strcspn(r->commands.items[0], " "));
        add_text(out, "keyprefix");
        add_bulk(out, prefix->data, prefix->length);
        return;
    }
    if (!r->follows_keys) {
        add_line(out, '*', 4);
        add_text(out, "trigger");
        add_text(out, r->trigger);
        add_number(out, "inorder", 0);
        return;
    }
    add_line(out, '*', 6);
    add_text(out, "regex");
    add_bulk(out, prefix->data, prefix->length);
    add_words(out, "eventTypes", &r->events);
    add_words(out, "keyTypes", &r->key_types);
}

/* All counters are 0: the worker has never run it. */
static void add_data(struct buffer *out, const struct registration *r, const struct frame_bytes *mode,
                     const struct frame_bytes *prefix) {
    static const char *const zeros[] = {"numTriggered", "numSuccess",        "numFailures",
                                        "numAborted",   "lastRunDurationMS", "totalRunDurationMS"};
    add_line(out, '*', 20);
    add_text(out, "mode");
    add_bulk(out, mode->data, mode->length);
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) add_number(out, zeros[i], 0);
    add_text(out, "avgRunDurationMS");
    add_text(out, "0.000000");
    add_text(out, "lastError");
    add_text(out, r->session->inactive ? r->session->inactive
                                       : "the worker of this node is not there, or has not come to it yet");
    add_text(out, "args");
    add_arguments(out, r, prefix);
}

/* The items of a registration begin with reader, mode, description and prefix. */
static void add_registration(struct buffer *out, const struct registration *r) {
    struct frame_list list = {.at = r->items.data, .end = r->items.data + r->items.length, .left = r->item_count};
    struct frame_bytes reader, mode, description, prefix;
    char session[512];
    frame_list_next(&list, &reader);
    frame_list_next(&list, &mode);
    frame_list_next(&list, &description);
    frame_list_next(&list, &prefix);
    /* six names with their values, in RedisGears' order */
    add_line(out, '*', 12);
    add_text(out, "id");
    add_text(out, r->id);
    add_text(out, "reader");
    add_bulk(out, reader.data, reader.length);
    add_text(out, "desc");
    if (description.length > 0)
        add_bulk(out, description.data, description.length);
    else
        buffer_add(out, "$-1\r\n", 5);
    add_text(out, "RegistrationData");
    add_data(out, r, &mode, &prefix);
    add_text(out, "PD");
    snprintf(session, sizeof session, "{'sessionName':'%.400s', 'depsList':[]}", r->session->id);
    add_text(out, session);
    add_text(out, "ExecutionThreadPool");
    add_text(out, "DefaultPool");
}

/* The ids that the worker's list names: its entries are `id`, the id, and more. The caller frees
 * it. */
static RedisDict *listed_ids(const char *at, const char *end, long long entries) {
    struct resp_item entry, name, value;
    RedisDict *ids = redis.CreateDict(NULL);
    while (entries-- > 0 && resp_next(&at, end, &entry)) {
        if (entry.kind != '*' || entry.children < 2 || !resp_next(&at, end, &name) || !resp_next(&at, end, &value))
            break;
        if (value.kind == '$' && !value.null) redis.DictSetC(ids, (void *)value.text, value.length, ids);
        resp_skip(&at, end, name.children + value.children + entry.children - 2);
    }
    return ids;
}

/* Puts both lists into one reply. */
void gears_dump(struct buffer *reply, const char *resp, size_t length) {
    const char *at = resp, *end = resp + length;
    struct resp_item all;
    if (!resp_next(&at, end, &all) || all.kind != '*' || all.null) {
        buffer_add(reply, resp, length); /* an error */
        return;
    }
    struct buffer more = {0};
    long long count = all.children;
    RedisDict *ids = listed_ids(at, end, all.children);
    for (long long i = 0; i < gears.registrations; i++) {
        const char *id = gears.active[i]->id;
        if (redis.DictGetC(ids, (void *)id, strlen(id), NULL)) continue;
        add_registration(&more, gears.active[i]);
        count++;
    }
    redis.FreeDict(NULL, ids);
    add_line(reply, '*', count);
    buffer_add(reply, at, (size_t)(end - at));
    buffer_add(reply, more.data, more.length);
    buffer_free(&more);
}
