/* INFO shardqa. */
#include "info.h"

#include <stdio.h>
#include <string.h>

#include "ai/ai_info.h"
#include "ai/ai_state.h"
#include "ai/model.h"
#include "core/activity.h"
#include "core/slice.h"
#include "core/state.h"
#include "core/text.h"
#include "core/worker_link.h"
#include "gears/gears_state.h"
#include "gears/registry.h"

static void number(RedisInfoCtx *ctx, const char *name, long long value) {
    redis.InfoAddFieldLongLong(ctx, name, value);
}

/* Count, sum, median and 99th percentile. */
static void latency(RedisInfoCtx *ctx, const char *name, const struct latency *latency) {
    char field[64];
    snprintf(field, sizeof field, "%s_count", name);
    number(ctx, field, (long long)latency->total);
    snprintf(field, sizeof field, "%s_us_sum", name);
    number(ctx, field, (long long)latency->sum_us);
    snprintf(field, sizeof field, "%s_us_p50", name);
    number(ctx, field, (long long)latency_percentile(latency, 0.50));
    snprintf(field, sizeof field, "%s_us_p99", name);
    number(ctx, field, (long long)latency_percentile(latency, 0.99));
}

/* The worker, and what waits on either side of the socket. */
static void link_section(RedisInfoCtx *ctx) {
    const struct worker_link *link = &shardqa.link;
    redis.InfoAddSection(ctx, "link");
    redis.InfoAddFieldCString(ctx, "worker_state", link_state_name());
    number(ctx, "worker_pid", link->pid);
    number(ctx, "worker_restarts", link->restarts);
    number(ctx, "worker_silent_ms", activity_silent_ms());
    redis.InfoAddFieldCString(ctx, "worker_last_end", link->last_end);
    redis.InfoAddFieldCString(ctx, "worker_last_running", shardqa.activity.last_running);
    redis.InfoAddFieldCString(ctx, "worker_versions", link->versions);
    number(ctx, "queue_bytes", (long long)link->out.bytes);
    number(ctx, "queue_model_bytes", (long long)link->out.model_bytes);
    number(ctx, "held_bytes", (long long)link->requests.bytes);
    number(ctx, "deferred_bytes", (long long)shardqa.deferred.bytes);
    number(ctx, "received_bytes", (long long)(link->in.length - link->in_handled));
    number(ctx, "waiting_clients", shardqa.waiting);
    number(ctx, "pending_requests", (long long)redis.DictSize(shardqa.pending));
    number(ctx, "pending_misses", (long long)redis.DictSize(shardqa.joinable));
    number(ctx, "scripts", (long long)redis.DictSize(shardqa.scripts));
    number(ctx, "slice_us", slice_in_force());
    number(ctx, "max_pending", shardqa.arguments.max_pending);
}

static void counter_section(RedisInfoCtx *ctx) {
    const struct counters *c = &shardqa.counters;
    const struct gears_counters *g = &gears.counters;
    const struct {
        const char *name;
        long long value;
    } fields[] = {{"hook_hits", g->hits},
                  {"hook_misses", g->misses},
                  {"hook_shared_misses", g->shared},
                  {"hook_nil_misses", g->nil_misses},
                  {"requests", c->requests},
                  {"executes", ai.executes},
                  {"calls", c->calls},
                  {"call_frames", c->call_frames},
                  {"events", g->events},
                  {"events_lost", g->events_lost},
                  {"timeouts", c->timeouts},
                  {"cancelled", c->cancelled},
                  {"refused_busy", c->busy},
                  {"failed_by_worker", c->failed_by_worker},
                  {"worker_silences", c->silences},
                  {"worker_killed_silent", c->killed_silent},
                  {"worker_killed_late", c->killed_late},
                  {"sections", c->sections},
                  {"sections_closed", c->sections_closed},
                  {"late_replies", c->late_replies},
                  {"unreadable_replies", c->unreadable_replies}};
    redis.InfoAddSection(ctx, "counters");
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) number(ctx, fields[i].name, fields[i].value);
}

/* Words with a space between, as many as have room; what is no printable character is shown as
 * '?'. */
struct word_list {
    char text[1024];
    size_t length; /* bytes of text in use */
    long long count; /* also of those that had no room */
};

/* Counted also where there is no more room. */
static void add_word(struct word_list *list, const char *word, size_t length) {
    list->count++;
    if (list->length + length + 2 >= sizeof list->text) return;
    if (list->length > 0) list->text[list->length++] = ' ';
    for (size_t i = 0; i < length; i++) list->text[list->length++] = word[i] > ' ' && word[i] <= '~' ? word[i] : '?';
    list->text[list->length] = '\0';
}

/* Models that ended the worker twice. */
static void quarantined_models(RedisInfoCtx *ctx) {
    struct word_list keys = {0};
    for (struct model *m = ai.models; m; m = m->next)
        if (m->state == MODEL_BARRED) add_word(&keys, m->key, m->key_length);
    number(ctx, "models_quarantined", keys.count);
    redis.InfoAddFieldCString(ctx, "models_quarantined_keys", keys.text);
}

static void add_inactive(const struct session *session, void *list) {
    if (session->inactive) add_word(list, session->id, strlen(session->id));
}

/* Sessions whose code the worker could not run again. */
static void inactive_sessions(RedisInfoCtx *ctx) {
    struct word_list ids = {0};
    gears_each_session(add_inactive, &ids);
    number(ctx, "sessions_inactive", ids.count);
    redis.InfoAddFieldCString(ctx, "sessions_inactive_ids", ids.text);
}

/* Which ACL categories the commands have, and the worker's bound. */
static void security_section(RedisInfoCtx *ctx) {
    static const char *const categories[] = {"none", "standard", "own"};
    redis.InfoAddSection(ctx, "security");
    redis.InfoAddFieldCString(ctx, "acl_categories", categories[shardqa.acl]);
    number(ctx, "memory_limit_mb", shardqa.arguments.memory_mb);
}

/* What the keyspace and the RDB hold of ours. */
static void content_section(RedisInfoCtx *ctx) {
    long long bytes = 0, in_files = 0;
    for (struct model *m = ai.models; m; m = m->next) {
        bytes += (long long)m->blob->length;
        in_files += m->blob->file ? (long long)m->blob->length : 0;
    }
    redis.InfoAddSection(ctx, "content");
    number(ctx, "models", ai.model_count);
    quarantined_models(ctx);
    number(ctx, "model_bytes", bytes);
    number(ctx, "model_bytes_in_files", in_files);
    number(ctx, "sessions", (long long)redis.DictSize(gears.sessions));
    inactive_sessions(ctx);
    number(ctx, "registrations", gears.registrations);
    number(ctx, "hooks", gears.hooks);
}

/* Of a type that workers send; `?` for any other, empty for 0. */
static const char *frame_name(uint8_t type) {
    static const char *const names[UINT8_MAX + 1] = {
        [0] = "", [FRAME_READY] = "READY", [FRAME_REPLY] = "REPLY", [FRAME_TENSORS] = "TENSORS", [FRAME_CALL] = "CALL",
        [FRAME_REGISTER] = "REGISTER", [FRAME_UNREGISTER] = "UNREGISTER", [FRAME_WATCH] = "WATCH", [FRAME_LOG] = "LOG",
        [FRAME_STATS] = "STATS", [FRAME_RELEASE] = "RELEASE", [FRAME_PROGRESS] = "PROGRESS", [FRAME_LOCK] = "LOCK",
        [FRAME_UNLOCK] = "UNLOCK", [FRAME_DONE] = "DONE", [FRAME_RAN] = "RAN", [FRAME_DAG_DONE] = "DAG_DONE"};
    return names[type] ? names[type] : "?";
}

/* From a client's command to its reply; of frames the main thread's own time. */
static void latency_section(RedisInfoCtx *ctx) {
    redis.InfoAddSection(ctx, "latency");
    latency(ctx, "miss", &gears.miss_latency);
    latency(ctx, "trigger", &gears.trigger_latency);
    latency(ctx, "execute", &ai.execute_latency);
    latency(ctx, "frame", &shardqa.frame_latency);
    number(ctx, "frame_us_longest", (long long)shardqa.longest_frame_us);
    redis.InfoAddFieldCString(ctx, "frame_longest", frame_name(shardqa.longest_frame));
}

/* Fields of STATS that are shown apart: a line for each registration. */
static bool is_of_registration(const char *key, size_t length) {
    static const char start[] = "registration_";
    return length >= sizeof start - 1 && memcmp(key, start, sizeof start - 1) == 0;
}

/* What the worker says (STATS) of its registrations, or of itself. */
static void told_section(RedisInfoCtx *ctx, const char *section, bool of_registrations) {
    char *key, *value, name[65];
    size_t length;
    redis.InfoAddSection(ctx, section);
    RedisDictIter *iterator = redis.DictIteratorStartC(shardqa.worker_stats, "^", NULL, 0);
    while ((key = redis.DictNextC(iterator, &length, (void **)&value)) != NULL) {
        if (is_of_registration(key, length) != of_registrations) continue;
        snprintf(name, sizeof name, "%.*s", (int)length, key);
        redis.InfoAddFieldCString(ctx, name, value);
    }
    redis.DictIteratorStop(iterator);
}

/* A crash report gets only what needs no walk over memory that may be damaged. */
void info_sections(RedisInfoCtx *ctx, int for_crash_report) {
    if (!for_crash_report && shardqa.arguments.name == NAME_AI) ai_info_sections(ctx);
    link_section(ctx);
    counter_section(ctx);
    if (for_crash_report) return;
    security_section(ctx);
    content_section(ctx);
    latency_section(ctx);
    told_section(ctx, "worker", false);
    told_section(ctx, "registrations", true);
}

/* ---- under another name of the module ---- */

/* A line's first word without `name`, where it begins with that; else NULL. Sections begin `# `. */
static const char *behind_name(const char *line, size_t length, const char *name) {
    size_t start = length > 2 && memcmp(line, "# ", 2) == 0 ? 2 : 0, size = strlen(name);
    return length > start + size && strncmp(line + start, name, size) == 0 ? line + start + size : NULL;
}

/* The name that a word is, or -1: none, or the module's own. */
static int other_name(const RedisString *word) {
    for (int name = NAME_SHARDQA; name <= NAME_RG; name++)
        if (name != (int)shardqa.arguments.name && text_is(word, name_of_module((enum module_name)name))) return name;
    return -1;
}

/* shardqa.info name: INFO of the module as if it had that name. */
int shardqa_info(RedisCtx *ctx, RedisString **argv, int argc) {
    struct buffer out = {0};
    size_t left, length;
    enum module_name real = shardqa.arguments.name;
    int asked = argc == 2 ? other_name(argv[1]) : -1;
    if (asked < 0) return redis.ReplyWithError(ctx, "ERR shardqa.info wants a name that the module does not have");
    const char *name = name_of_module(real), *as = name_of_module((enum module_name)asked);
    shardqa.arguments.name = (enum module_name)asked;
    RedisReply *reply = redis.Call(ctx, "INFO", "c", name);
    shardqa.arguments.name = real;
    const char *text = reply ? redis.CallReplyStringPtr(reply, &left) : NULL;
    if (text == NULL) return reply_error(ctx, "ERR INFO %s gave nothing", name);
    for (; left > 0; text += length, left -= length) {
        const char *end = memchr(text, '\n', left);
        length = end ? (size_t)(end - text) + 1 : left;
        const char *rest = behind_name(text, length, name);
        if (rest) {
            if (*text == '#') buffer_add(&out, "# ", 2);
            buffer_add(&out, as, strlen(as));
        }
        buffer_add(&out, rest ? rest : text, (size_t)(text + length - (rest ? rest : text)));
    }
    redis.ReplyWithStringBuffer(ctx, out.data ? out.data : "", out.length);
    buffer_free(&out);
    redis.FreeCallReply(reply);
    return REDIS_OK;
}

/* `INFO shardqa`, `ai` or `rg`, of a module that has another name. */
static void filter(RedisFilterCtx *filter) {
    if (redis.CommandFilterArgsCount(filter) == 2 && text_is(redis.CommandFilterArgGet(filter, 0), "info") &&
        other_name(redis.CommandFilterArgGet(filter, 1)) >= 0)
        redis.CommandFilterArgReplace(filter, 0, redis.CreateString(NULL, "shardqa.info", 12));
}

int info_install(RedisCtx *ctx) {
    return redis.RegisterCommandFilter(ctx, filter, FILTER_NOSELF) ? REDIS_OK : REDIS_ERR;
}
