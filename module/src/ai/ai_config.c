/* AI.CONFIG: what RedisAI let programs change while the server runs. */
#include "ai/ai_config.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ai/ai_state.h"
#include "ai/model.h"
#include "core/state.h"
#include "core/text.h"
#include "core/worker_link.h"

/* The package whose presence READY told of. */
static const char *package_of(const RedisString *backend) {
    static const char *const packages[][2] = {{"ONNX", "onnxruntime="},
                                              {"TORCH", "torch="},
                                              {"TFLITE", "ai-edge-litert="},
                                              {"TF", "tensorflow="},
                                              {"OPENVINO", "openvino="}};
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
    const char *text = redis.StringPtrLen(path, NULL), *folder = shardqa.arguments.backends_path;
    int length = text[0] == '/' || folder == NULL ? snprintf(whole, sizeof whole, "%s", text)
                                                  : snprintf(whole, sizeof whole, "%s/%s", folder, text);
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
    ai.backends |= backend_bit(redis.StringPtrLen(argv[2], NULL));
    return redis.ReplyWithSimpleString(ctx, "OK");
}

/* Where RedisAI looks for its backends, unless it is told: beside the module. */
static int reply_backends_beside(RedisCtx *ctx) {
    Dl_info module;
    char path[4096];
    if (!dladdr(&shardqa, &module) || !strrchr(module.dli_fname, '/')) return redis.ReplyWithNull(ctx);
    int folder = (int)(strrchr(module.dli_fname, '/') - module.dli_fname);
    snprintf(path, sizeof path, "%.*s/backends", folder, module.dli_fname);
    return redis.ReplyWithStringBuffer(ctx, path, strlen(path));
}

/* AI.CONFIG GET: nil for a name that has no value here. */
static int get(RedisCtx *ctx, RedisString **argv, int argc) {
    if (argc != 3) return redis.WrongArity(ctx);
    if (text_is(argv[2], "MODEL_CHUNK_SIZE")) return redis.ReplyWithLongLong(ctx, shardqa.arguments.chunk_size);
    const char *path = shardqa.arguments.backends_path;
    if (text_is(argv[2], "BACKENDSPATH"))
        return path ? redis.ReplyWithStringBuffer(ctx, path, strlen(path)) : reply_backends_beside(ctx);
    return redis.ReplyWithNull(ctx);
}

/* In the form of Redis' own CONFIG HELP. */
static int help(RedisCtx *ctx) {
    static const char *const lines[] = {"AI.CONFIG <subcommand> [<arg> ...]. Subcommands are:",
                                        "GET BACKENDSPATH|MODEL_CHUNK_SIZE",
                                        "    Return a setting.",
                                        "BACKENDSPATH <path>",
                                        "    Set the folder that LOADBACKEND looks in.",
                                        "MODEL_CHUNK_SIZE <bytes>",
                                        "    Set the size of the parts that AI.MODELGET returns.",
                                        "LOADBACKEND <backend> <path>",
                                        "    Check that a backend's package and this path are there.",
                                        "HELP",
                                        "    Print this help."};
    long count = sizeof lines / sizeof *lines;
    redis.ReplyWithArray(ctx, count);
    for (long i = 0; i < count; i++) redis.ReplyWithSimpleString(ctx, lines[i]);
    return REDIS_OK;
}

/* AI.CONFIG GET name | LOADBACKEND backend path | BACKENDSPATH path | MODEL_CHUNK_SIZE bytes |
 * HELP */
int ai_config(RedisCtx *ctx, RedisString **argv, int argc) {
    if (argc < 2) return redis.WrongArity(ctx);
    if (text_is(argv[1], "HELP") && argc == 2) return help(ctx);
    if (text_is(argv[1], "GET")) return get(ctx, argv, argc);
    if (text_is(argv[1], "LOADBACKEND")) return load_backend(ctx, argv, argc);
    if (text_is(argv[1], "BACKENDSPATH")) {
        if (argc < 3) return redis.ReplyWithError(ctx, "ERR BACKENDSPATH: missing path argument");
        argument_set("BACKENDSPATH", argv[2]);
    } else if (text_is(argv[1], "MODEL_CHUNK_SIZE")) {
        if (argc < 3) return redis.ReplyWithError(ctx, "ERR MODEL_CHUNK_SIZE: missing chunk size");
        if (argument_set("MODEL_CHUNK_SIZE", argv[2]))
            return redis.ReplyWithError(ctx, "ERR MODEL_CHUNK_SIZE: invalid chunk size");
    } else {
        return redis.ReplyWithError(ctx, "ERR unsupported subcommand");
    }
    return redis.ReplyWithSimpleString(ctx, "OK");
}
