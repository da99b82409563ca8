/* Loading of the module. */
#include <stdio.h>
#include <string.h>

#include "ai/ai_state.h"
#include "ai/config.h"
#include "ai/dag.h"
#include "ai/execute.h"
#include "ai/model.h"
#include "ai/model_file.h"
#include "ai/tensor.h"
#include "commands.h"
#include "core/above.h"
#include "core/environment.h"
#include "core/server_events.h"
#include "core/slice.h"
#include "core/state.h"
#include "core/text.h"
#include "core/worker_link.h"
#include "core/worker_user.h"
#include "gears/events.h"
#include "gears/gears_state.h"
#include "gears/hook.h"
#include "gears/registry.h"
#include "info.h"

enum { MODULE_VERSION = 100, REDIS_WANTED = 0x00070000, MEMORY_LEAST = 512, MEMORY_MOST = 1 << 24 /* MB */ };

struct shardqa shardqa = {.settings = {.threads = 1,
                                       .timeout_ms = 10000,
                                       .max_pending = 4096,
                                       .heartbeat_ms = 3000,
                                       .backoff_ms = 5000,
                                       .pyexecute = PYEXECUTE_LOCAL,
                                       .name = "shardqa",
                                       .chunk_size = 511LL << 20,
                                       .max_executions = -1,
                                       .max_executions_per_registration = -1,
                                       .execution_max_idle_ms = -1,
                                       .profile_executions = -1,
                                       .threads_per_queue = 1,
                                       .model_file_bytes = 64 << 20}};

/* ---- arguments ---- */

/* NULL, or what the value should have been; the next ones likewise. */
static const char *set_text(char **field, const RedisString *value) {
    size_t length;
    const char *text = redis.StringPtrLen(value, &length);
    if (length == 0 || length > 4096 || text[0] != '/' || memchr(text, '\0', length)) return "an absolute path";
    redis.Free(*field);
    *field = text_copy(text, length);
    return NULL;
}

/* From where RG.PYEXECUTE is taken. */
static const char *set_pyexecute(const RedisString *value) {
    static const char *const words[] = {"no", "local", "yes"};
    for (int i = 0; i < 3; i++)
        if (text_is(value, words[i])) {
            shardqa.settings.pyexecute = (enum pyexecute)i;
            return NULL;
        }
    return "no, local or yes";
}

static const char *set_number(long long *field, const RedisString *value, long long least, long long most, const char *wanted) {
    return text_number(value, least, most, field) ? NULL : wanted;
}

/* RedisAI's programs may look for `ai` in MODULE LIST and for its sections in INFO, RedisGears'
 * for `rg`. */
static const char *set_name(const RedisString *value) {
    static const char *const names[] = {"shardqa", "ai", "rg"};
    for (int i = 0; i < 3; i++)
        if (text_is(value, names[i])) {
            shardqa.settings.name = names[i];
            return NULL;
        }
    return "shardqa, ai or rg";
}

/* An absolute path: worker and server may be in different folders. */
static const char *set_folder(char **field, const RedisString *value) {
    return redis.StringPtrLen(value, NULL)[0] == '/' ? set_text(field, value) : "an absolute path";
}

/* Where the worker may connect to. */
static const char *set_network(const RedisString *value) {
    shardqa.settings.any_network = text_is(value, "any");
    return shardqa.settings.any_network || text_is(value, "peers") ? NULL : "peers or any";
}

/* Less than MEMORY_LEAST a worker does not even start with. */
static const char *set_memory(const RedisString *value) {
    long long wanted = -1;
    bool good = text_number(value, 0, MEMORY_MOST, &wanted) && (wanted == 0 || wanted >= MEMORY_LEAST);
    if (good) shardqa.settings.memory_mb = wanted;
    return good ? NULL : "megabytes from 512 to 16777216, or 0 (no limit)";
}

/* `none`: a node without a worker. */
static const char *set_python(const RedisString *value) {
    if (!text_is(value, "none")) return set_text(&shardqa.settings.python, value);
    shardqa.settings.workerless = true;
    return NULL;
}

/* A folder of wheels, pip's index, or nothing at all. */
static const char *set_requirements(const RedisString *value) {
    char **field = &shardqa.settings.requirements;
    if (!text_is(value, "index") && !text_is(value, "no")) return set_text(field, value) ? "an absolute path, index or no" : NULL;
    redis.Free(*field);
    *field = text_is(value, "no") ? text_copy("no", 2) : NULL;
    return NULL;
}

/* NULL, or what the value should have been. */
static const char *set_argument(const RedisString *name, const RedisString *value) {
    struct settings *s = &shardqa.settings;
    const char *wanted;
    if (config_argument(name, value, &wanted)) return wanted;
    if (text_is(name, "PYTHON")) return set_python(value);
    if (text_is(name, "NAME")) return set_name(value);
    if (text_is(name, "USER")) return worker_user(value, &s->user);
    if (text_is(name, "NETWORK")) return set_network(value);
    if (text_is(name, "MEMORY")) return set_memory(value);
    if (text_is(name, "READABLE")) return set_text(&s->readable, value);
    if (text_is(name, "WRITABLE")) return set_text(&s->writable, value);
    if (text_is(name, "SANDBOX")) {
        s->no_sandbox = text_is(value, "no");
        return s->no_sandbox || text_is(value, "yes") ? NULL : "yes or no";
    }
    if (text_is(name, "REQUIREMENTS_DIR")) return set_requirements(value);
    if (text_is(name, "MODELS")) return set_folder(&s->models, value);
    if (text_is(name, "THREADS")) return set_number(&s->threads, value, 1, 1024, "a number from 1 to 1024");
    if (text_is(name, "TIMEOUT")) return set_number(&s->timeout_ms, value, 0, 86400000, "milliseconds from 0 (none) to 86400000");
    if (text_is(name, "MAXPENDING")) return set_number(&s->max_pending, value, 1, 1000000, "a number from 1 to 1000000");
    if (text_is(name, "HEARTBEAT")) return set_number(&s->heartbeat_ms, value, 0, 86400000, "milliseconds from 0 (never) to 86400000");
    if (text_is(name, "BACKOFF")) return set_number(&s->backoff_ms, value, 0, 3600000, "milliseconds from 0 to 3600000");
    if (text_is(name, "PYEXECUTE")) return set_pyexecute(value);
    return "one of the arguments PYTHON, THREADS, PYEXECUTE, TIMEOUT, MAXPENDING, HEARTBEAT, BACKOFF, SANDBOX, READABLE, WRITABLE, NETWORK, USER, MEMORY, REQUIREMENTS_DIR, NAME, MODELS, MODEL_FILE_BYTES, or of RedisAI's";
}

/* Pairs of name and value. The first wrong one ends the load, and the log says why. */
static int read_arguments(RedisCtx *ctx, RedisString **argv, int argc) {
    for (int i = 0; i < argc; i += 2) {
        const char *name = redis.StringPtrLen(argv[i], NULL);
        const char *wanted = i + 1 < argc ? set_argument(argv[i], argv[i + 1]) : "followed by a value";
        if (wanted == NULL) continue;
        redis.Log(ctx, "warning", "module argument %s %s is wrong: it must be %s", name,
                  i + 1 < argc ? redis.StringPtrLen(argv[i + 1], NULL) : "", wanted);
        return REDIS_ERR;
    }
    if (shardqa.settings.python == NULL && !shardqa.settings.workerless) shardqa.settings.python = environment_python();
    return REDIS_OK;
}

/* ---- what core leaves to ai and gears ---- */

/* A worker has everything to learn. */
static void send_all(void) {
    gears_send_sessions();
    models_send();
}

/* Frames that only ai or gears know. */
static bool take_frame(const struct frame *frame) {
    switch (frame->type) {
    case FRAME_TENSORS: return execute_frame_tensors(frame);
    case FRAME_DAG_DONE: return dag_frame_done(frame);
    case FRAME_RAN: return models_frame_ran(frame);
    case FRAME_REGISTER: return gears_frame_register(frame);
    case FRAME_UNREGISTER: return gears_frame_unregister(frame);
    case FRAME_WATCH: return events_frame_watch(frame);
    default: return false;
    }
}

/* Models that were stored in this tick, and events that were lost. */
static void send_rest(void) {
    if (shardqa.link.started && ai.models_unsent > 0) models_send();
    events_tick();
}

/* What belonged to the worker that has ended. */
static void forget_worker(void) {
    events_forget_watches();
    models_forget_worker();
}

static const struct above ABOVE = {.cron = models_cron,
                                   .keyspace_loaded = events_keyspace_loaded,
                                   .worker_started = send_all,
                                   .frame = take_frame,
                                   .tick_end = send_rest,
                                   .model_fatal = model_blame,
                                   .worker_gone = forget_worker,
                                   .session_user = gears_session_user};

/* ---- start ---- */

/* Also where a function is missing, which tells of an older server. */
static int check_version(RedisCtx *ctx, const char *missing) {
    int version = redis.GetServerVersion ? redis.GetServerVersion() : 0;
    if (missing == NULL && version >= REDIS_WANTED) return REDIS_OK;
    if (redis.Log)
        redis.Log(ctx, "warning", "shardqa needs Redis 7.0 or newer, this is %d.%d.%d%s%s; upgrade Redis", version >> 16, version >> 8 & 0xff,
                  version & 0xff, missing ? " without RedisModule_" : "", missing ? missing : "");
    return REDIS_ERR;
}

/* Valkey gives Redis 7.2.4 for its version to whom asks as modules do. */
static int valkey_version(RedisCtx *ctx) {
    RedisServerInfo *info = redis.GetServerInfo(ctx, "server");
    const char *version = redis.ServerInfoGetFieldC(info, "valkey_version");
    int major = 0, minor = 0, patch = 0;
    bool valkey = version && sscanf(version, "%d.%d.%d", &major, &minor, &patch) == 3;
    redis.FreeServerInfo(ctx, info);
    return valkey ? major << 16 | minor << 8 | patch : 0;
}

/* Everything that needs Redis' functions and no settings. */
static void fill_state(RedisCtx *ctx) {
    int flags = redis.GetContextFlags(ctx);
    shardqa.ctx = redis.GetDetachedThreadSafeContext(ctx);
    shardqa.cluster = flags & CTX_CLUSTER;
    shardqa.valkey = valkey_version(ctx);
    shardqa.master = flags & CTX_MASTER;
    shardqa.pending = redis.CreateDict(NULL);
    shardqa.scripts = redis.CreateDict(NULL);
    shardqa.waiters = redis.CreateDict(NULL);
    shardqa.flights = redis.CreateDict(NULL);
    gears.hooked = redis.CreateDict(NULL);
    gears.sessions = redis.CreateDict(NULL);
    shardqa.worker_stats = redis.CreateDict(NULL);
    if (shardqa.cluster)
        memcpy(shardqa.node_id, redis.GetMyClusterID(), 40);
    else
        redis.GetRandomHexChars(shardqa.node_id, 40);
}

/* Commands, types, INFO, events and the filter. */
static int create_all(RedisCtx *ctx) {
    const char *refused = commands_create(ctx);
    if (refused) {
        redis.Log(ctx, "warning", "Redis refused the command %s; is another module loaded that has it (RedisAI, RedisGears)?", refused);
        return REDIS_ERR;
    }
    if (tensor_type_create(ctx) || model_type_create(ctx) || gears_type_create(ctx)) {
        redis.Log(ctx, "warning", "Redis refused a data type; is RedisAI loaded as well?");
        return REDIS_ERR;
    }
    int options = OPTION_HANDLE_IO_ERRORS | OPTION_HANDLE_REPL_ASYNC_LOAD;
    if (shardqa.valkey >= VALKEY_MIGRATIONS) options |= OPTION_HANDLE_SLOT_MIGRATION; /* the index waits for slots on their way */
    redis.SetModuleOptions(ctx, options);
    redis.RegisterInfoFunc(ctx, info_sections);
    return server_events_subscribe(ctx) || models_subscribe(ctx) || events_subscribe(ctx) || hook_install(ctx) ? REDIS_ERR : REDIS_OK;
}

/* MODULE LOAD of a file that is loaded already runs OnLoad on the same globals: nothing of a
 * running module may be touched. */
static int refuse_second(RedisCtx *ctx) {
    redis.Log(ctx, "warning", "shardqa is loaded already; to load another file of it, restart Redis");
    return REDIS_ERR;
}

/* The one function that Redis looks up: everything is made, then the worker is started. */
__attribute__((visibility("default"))) int RedisModule_OnLoad(RedisCtx *ctx, RedisString **argv, int argc) {
    const char *missing = redis_api_load(ctx);
    if (missing == NULL && shardqa.ctx) return refuse_second(ctx);
    if (check_version(ctx, missing) != REDIS_OK || read_arguments(ctx, argv, argc) != REDIS_OK) return REDIS_ERR;
    model_files_sweep();
    if (redis.IsModuleNameBusy(shardqa.settings.name)) {
        redis.Log(ctx, "warning", "a module %s is loaded already; load this one alone", shardqa.settings.name);
        return REDIS_ERR;
    }
    redis.SetModuleAttribs(ctx, shardqa.settings.name, MODULE_VERSION, REDIS_API_VERSION);
    fill_state(ctx);
    shardqa.above = &ABOVE;
    link_init();
    if (create_all(ctx) != REDIS_OK) return REDIS_ERR;
    if (shardqa.settings.python) {
        slice_ask();
        link_spawn();
    } else {
        redis.Log(ctx, "notice", "no worker: AI.MODELSTORE, AI.MODELEXECUTE and RG.* need the module argument PYTHON /path/to/venv/bin/python where shardqa.so lies in no environment");
    }
    return REDIS_OK;
}
