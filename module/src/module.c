/* Loading of the module. */
#include <stdio.h>
#include <string.h>

#include "ai/ai_state.h"
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
#include "core/worker_link.h"
#include "gears/events.h"
#include "gears/gears_state.h"
#include "gears/hooks.h"
#include "gears/kept_events.h"
#include "gears/registry.h"
#include "info.h"

enum { MODULE_VERSION = 100, REDIS_WANTED = 0x00070000 };

struct shardqa shardqa;

/* ---- arguments ---- */

/* Pairs of name and value. The first wrong one ends the load, and the log says why. */
static int read_arguments(RedisCtx *ctx, RedisString **argv, int argc) {
    arguments_init();
    for (int i = 0; i < argc; i += 2) {
        const char *name = redis.StringPtrLen(argv[i], NULL);
        const char *remedy = i + 1 < argc ? argument_set(name, argv[i + 1]) : "followed by a value";
        if (remedy == NULL) continue;
        redis.Log(ctx, "warning", "module argument %s %s is wrong: it must be %s", name,
                  i + 1 < argc ? redis.StringPtrLen(argv[i + 1], NULL) : "", remedy);
        return REDIS_ERR;
    }
    if (shardqa.arguments.python == NULL && !shardqa.arguments.workerless)
        shardqa.arguments.python = environment_python();
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
    case FRAME_DONE: return kept_events_frame_done(frame);
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
    events_forget_worker();
    models_forget_worker();
}

/* Frames of these two rooms that change data. */
static bool frame_writes(const struct frame *frame) {
    uint8_t type = frame->type;
    return type == FRAME_TENSORS || type == FRAME_DAG_DONE || type == FRAME_REGISTER || type == FRAME_UNREGISTER;
}

static const struct above ABOVE = {.cron = models_cron,
                                   .keyspace_loaded = events_keyspace_loaded,
                                   .worker_started = send_all,
                                   .frame = take_frame,
                                   .writes = frame_writes,
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
        redis.Log(ctx, "warning", "shardqa needs Redis 7.0 or newer, this is %d.%d.%d%s%s; upgrade Redis",
                  version >> 16, version >> 8 & 0xff, version & 0xff, missing ? " without RedisModule_" : "",
                  missing ? missing : "");
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

/* Everything that needs Redis' functions and no arguments. */
static void fill_state(RedisCtx *ctx) {
    int flags = redis.GetContextFlags(ctx);
    shardqa.ctx = redis.GetDetachedThreadSafeContext(ctx);
    shardqa.cluster = flags & CTX_CLUSTER;
    shardqa.valkey = valkey_version(ctx);
    shardqa.master = flags & CTX_MASTER;
    shardqa.pending = redis.CreateDict(NULL);
    shardqa.scripts = redis.CreateDict(NULL);
    shardqa.waiters = redis.CreateDict(NULL);
    shardqa.joinable = redis.CreateDict(NULL);
    gears.hook_table = redis.CreateDict(NULL);
    gears.sessions = redis.CreateDict(NULL);
    gears.kept_events = redis.CreateDict(NULL);
    shardqa.worker_stats = redis.CreateDict(NULL);
    if (shardqa.cluster)
        memcpy(shardqa.node_id, redis.GetMyClusterID(), 40);
    else
        redis.GetRandomHexChars(shardqa.node_id, 40);
}

static int create_all(RedisCtx *ctx) {
    const char *refused = commands_create(ctx);
    if (refused) {
        redis.Log(ctx, "warning",
                  "Redis refused the command %s; is another module loaded that has it (RedisAI, RedisGears)?", refused);
        return REDIS_ERR;
    }
    if (tensor_type_create(ctx) || model_type_create(ctx) || gears_type_create(ctx)) {
        redis.Log(ctx, "warning", "Redis refused a data type; is RedisAI loaded as well?");
        return REDIS_ERR;
    }
    int options = OPTION_HANDLE_IO_ERRORS | OPTION_HANDLE_REPL_ASYNC_LOAD;
    /* the index waits for slots on their way */
    if (shardqa.valkey >= VALKEY_MIGRATIONS) options |= OPTION_HANDLE_SLOT_MIGRATION;
    redis.SetModuleOptions(ctx, options);
    redis.RegisterInfoFunc(ctx, info_sections);
    bool failed = server_events_subscribe(ctx) || models_subscribe(ctx) || events_subscribe(ctx) ||
                  hooks_install(ctx) || info_install(ctx);
    return failed ? REDIS_ERR : REDIS_OK;
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
    const char *name = name_of_module(shardqa.arguments.name);
    if (redis.IsModuleNameBusy(name)) {
        redis.Log(ctx, "warning", "a module %s is loaded already; load this one alone", name);
        return REDIS_ERR;
    }
    redis.SetModuleAttribs(ctx, name, MODULE_VERSION, REDIS_API_VERSION);
    fill_state(ctx);
    shardqa.above = &ABOVE;
    link_init();
    if (create_all(ctx) != REDIS_OK || arguments_register(ctx) != REDIS_OK) return REDIS_ERR;
    if (shardqa.arguments.python) {
        slice_ask();
        link_spawn();
    } else {
        redis.Log(
            ctx, "notice",
            "no worker: AI.MODELSTORE, AI.MODELEXECUTE and RG.* need the module argument PYTHON "
            "/path/to/venv/bin/python where shardqa.so lies in no environment");
    }
    return REDIS_OK;
}
