/* AI.CONFIG and the load arguments of RedisAI and RedisGears: what has a meaning here gets it, the
 * rest is taken and said to have none. */
#include "ai/config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/state.h"
#include "core/text.h"
#include "core/worker_link.h"

enum { MOST_THREADS = 1024, MOST_MS = 86400000 };
#define MOST_CHUNK ((long long)511 << 20) /* bytes; a client can't receive a string of 512 MiB */

/* ---- load arguments ---- */

static const struct number {
    const char *name;
    size_t field; /* offset in struct settings */
    long long least, most;
    const char *wanted;
    const char *no_effect; /* NULL: it has one */
} NUMBERS[] = {
    {"INTRA_OP_PARALLELISM", offsetof(struct settings, intra_op), 0, MOST_THREADS, "a number from 0 to 1024", NULL},
    {"MODEL_CHUNK_SIZE", offsetof(struct settings, chunk_size), 1, MOST_CHUNK, "bytes from 1 to 535822336", NULL},
    {"MODEL_EXECUTION_TIMEOUT", offsetof(struct settings, execution_timeout_ms), 1000, MOST_MS, "milliseconds from 1000 to 86400000", NULL},
    {"THREADS_PER_QUEUE", offsetof(struct settings, threads_per_queue), 1, MOST_THREADS, "a number from 1 to 1024", NULL},
    {"MODEL_FILE_BYTES", offsetof(struct settings, model_file_bytes), 1, 1LL << 40, "bytes from 1 to 2^40", NULL},
    {"MaxExecutions", offsetof(struct settings, max_executions), 1, 1 << 30, "a number from 1 to 1073741824", NULL},
    {"MaxExecutionsPerRegistration", offsetof(struct settings, max_executions_per_registration), 1, 1 << 30, "a number from 1 to 1073741824", NULL},
    {"ExecutionMaxIdleTime", offsetof(struct settings, execution_max_idle_ms), 1, MOST_MS, "milliseconds from 1 to 86400000", NULL},
    {"ProfileExecutions", offsetof(struct settings, profile_executions), 0, 1, "0 or 1", NULL},
    {"INTER_OP_PARALLELISM", offsetof(struct settings, inter_op), 0, MOST_THREADS, "a number from 0 to 1024",
     "the operators of a run follow one another"},
    {"BACKEND_MEMORY_LIMIT", offsetof(struct settings, memory_limit_mb), 0, 1 << 30, "megabytes from 0 to 1073741824",
     "models live in the worker's process; bound that with MEMORY"},
};

/* RedisAI's load arguments that name a backend's file. */
static bool is_backend(const RedisString *name) {
    static const char *const words[] = {"TF", "TFLITE", "TORCH", "ONNX"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (text_is(name, words[i])) return true;
    return false;
}

/* RedisGears' load arguments about its own Python, threads and messages. */
static bool is_of_gears(const RedisString *name) {
    static const char *const words[] = {"CreateVenv",           "DownloadDeps",        "DependenciesUrl",          "DependenciesSha256",
                                        "PythonInstallationDir", "PythonAttemptTraceback", "OverridePythonAllocators", "ExecutionThreads",
                                        "PythonInstallReqMaxIdleTime", "SendMsgRetries",  "Plugin"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (text_is(name, words[i])) return true;
    return false;
}

static void log_no_effect(const char *name, const char *why) {
    redis.Log(NULL, "notice", "module argument %s has no effect here: %s", name, why);
}

/* Replaces an owned text by a copy. */
static void set_text(char **field, const RedisString *value) {
    size_t length;
    const char *text = redis.StringPtrLen(value, &length);
    redis.Free(*field);
    *field = text_copy(text, length);
}

static void set_backends_path(const RedisString *value) { set_text(&shardqa.settings.backends_path, value); }

/* One of RedisAI's or RedisGears' load arguments. False where it is none of them. */
bool config_argument(const RedisString *name, const RedisString *value, const char **wanted) {
    *wanted = NULL;
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++) {
        const struct number *n = &NUMBERS[i];
        if (!text_is(name, n->name)) continue;
        if (!text_number(value, n->least, n->most, (long long *)((char *)&shardqa.settings + n->field)))
            *wanted = n->wanted;
        else if (n->no_effect)
            log_no_effect(n->name, n->no_effect);
        return true;
    }
    if (text_is(name, "BACKENDSPATH")) {
        set_backends_path(value);
        log_no_effect("BACKENDSPATH", "backends are Python packages of the worker's environment");
        return true;
    }
    if (is_of_gears(name)) {
        log_no_effect(redis.StringPtrLen(name, NULL), "functions run in the worker's own Python");
        return true;
    }
    if (!is_backend(name)) return false;
    log_no_effect(redis.StringPtrLen(name, NULL), "backends are Python packages of the worker's environment, loaded by the first model that needs them");
    return true;
}

/* ---- AI.CONFIG ---- */

/* The package whose presence READY told of. */
static const char *package_of(const RedisString *backend) {
    static const char *const packages[][2] = {
        {"ONNX", "onnxruntime="}, {"TORCH", "torch="}, {"TFLITE", "ai-edge-litert="}, {"TF", "tensorflow="}, {"OPENVINO", "openvino="}};
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++)
        if (text_is(backend, packages[i][0])) return packages[i][1];
    return NULL;
}

/* Whole names only: `torch=` is not found in `pytorch=`. */
static bool has_package(const char *package) {
    const char *at = shardqa.link.versions;
    while ((at = strstr(at, package)) != NULL) {
        if (at == shardqa.link.versions || at[-1] == ' ') return true;
        at++;
    }
    return false;
}

/* Relative paths are looked for below BACKENDSPATH. */
static bool file_exists(const RedisString *path) {
    char whole[4096];
    const char *text = redis.StringPtrLen(path, NULL), *folder = shardqa.settings.backends_path;
    int length = text[0] == '/' || folder == NULL ? snprintf(whole, sizeof whole, "%s", text) : snprintf(whole, sizeof whole, "%s/%s", folder, text);
    return length < (int)sizeof whole && access(whole, R_OK) == 0;
}

/* RedisAI's shared objects can't be used here, so its path only has to exist; what counts is the
 * package. */
static int load_backend(RedisCtx *ctx, RedisString **argv, int argc) {
    if (argc != 4) return redis.WrongArity(ctx);
    const char *package = package_of(argv[2]);
    if (package == NULL) return redis.ReplyWithError(ctx, "ERR unsupported backend");
    if (shardqa.link.state != LINK_READY) return redis.ReplyWithError(ctx, link_unusable_error());
    if (!has_package(package) || !file_exists(argv[3])) return redis.ReplyWithError(ctx, "ERR error loading backend");
    return redis.ReplyWithSimpleString(ctx, "OK");
}

/* AI.CONFIG GET: nil for a name that has no value here. */
static int get(RedisCtx *ctx, RedisString **argv, int argc) {
    if (argc != 3) return redis.WrongArity(ctx);
    if (text_is(argv[2], "MODEL_CHUNK_SIZE")) return redis.ReplyWithLongLong(ctx, shardqa.settings.chunk_size);
    const char *path = shardqa.settings.backends_path;
    if (text_is(argv[2], "BACKENDSPATH") && path) return redis.ReplyWithStringBuffer(ctx, path, strlen(path));
    return redis.ReplyWithNull(ctx);
}

/* AI.CONFIG GET name | LOADBACKEND backend path | BACKENDSPATH path | MODEL_CHUNK_SIZE bytes */
int ai_config(RedisCtx *ctx, RedisString **argv, int argc) {
    if (argc < 2) return redis.WrongArity(ctx);
    if (text_is(argv[1], "GET")) return get(ctx, argv, argc);
    if (text_is(argv[1], "LOADBACKEND")) return load_backend(ctx, argv, argc);
    if (text_is(argv[1], "BACKENDSPATH")) {
        if (argc < 3) return redis.ReplyWithError(ctx, "ERR BACKENDSPATH: missing path argument");
        set_backends_path(argv[2]);
    } else if (text_is(argv[1], "MODEL_CHUNK_SIZE")) {
        if (argc < 3) return redis.ReplyWithError(ctx, "ERR MODEL_CHUNK_SIZE: missing chunk size");
        if (!text_number(argv[2], 1, MOST_CHUNK, &shardqa.settings.chunk_size)) return redis.ReplyWithError(ctx, "ERR MODEL_CHUNK_SIZE: invalid chunk size");
    } else {
        return redis.ReplyWithError(ctx, "ERR unsupported subcommand");
    }
    return redis.ReplyWithSimpleString(ctx, "OK");
}
