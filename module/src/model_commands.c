/* AI.MODELSTORE, MODELGET, MODELDEL, _MODELSCAN and INFO.
 *
 * A client's MODELSTORE waits: the worker loads the file first and names its inputs and outputs, then the command is run once more
 * by us (`shardqa.storing` holds the validated model), which writes the key and replicates verbatim. From replication or the AOF
 * the key is written at once, without any worker: the bytes were validated where they came from. */
#include <string.h>

#include "call.h"
#include "model_internal.h"
#include "pending.h"
#include "state.h"
#include "text.h"
#include "worker_link.h"

#define REFUSAL "ERR Cannot run RedisAI command within a transaction or a LUA script"
#define TEXT_TOO_LONG "ERR key and TAG of a model have at most 65536 bytes; choose shorter ones"

enum {
    LOAD_TIMEOUT_MS = 300000,       /* a big model may take minutes to load */
    REPLY_CHUNK = 511 * 1024 * 1024 /* bytes; RedisAI's MODEL_CHUNK_SIZE: clients refuse longer strings */
};

struct model *model_open(RedisCtx *ctx, RedisString *name) {
    return value_open(ctx, name, shardqa.model_type, "ERR model key is empty");
}

/* ---- AI.MODELSTORE ---- */

static bool is_device(const RedisString *string) {
    size_t length;
    const char *text = redis.StringPtrLen(string, &length);
    if (length < 3 || length > 32 || (!bytes_are(text, 3, "CPU") && !bytes_are(text, 3, "GPU"))) return false;
    if (length == 3) return true;
    if (text[3] != ':' || length == 4) return false;
    for (size_t i = 4; i < length; i++)
        if (text[i] < '0' || text[i] > '9') return false;
    return true;
}

static char *upper_copy(const RedisString *string) {
    size_t length;
    const char *text = redis.StringPtrLen(string, &length);
    char *copy = text_copy(text, length);
    for (char *c = copy; *c; c++)
        if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 'a' + 'A');
    return copy;
}

static char *plain_copy(const RedisString *string) {
    size_t length;
    const char *text = redis.StringPtrLen(string, &length);
    return text_copy(text, length);
}

struct arguments {
    RedisString **argv;
    int argc;
    int at;
};

static bool next_is(struct arguments *a, const char *word) {
    if (a->at >= a->argc || !text_is(a->argv[a->at], word)) return false;
    a->at++;
    return true;
}

static const char *read_batching(struct arguments *a, struct model *model) {
    const long long most = 1 << 30;
    if (next_is(a, "BATCHSIZE")) {
        if (a->at >= a->argc || !text_number(a->argv[a->at++], 0, most, &model->batch_size)) return "ERR Invalid argument for BATCHSIZE";
    }
    if (next_is(a, "MINBATCHSIZE")) {
        if (model->batch_size == 0) return "ERR MINBATCHSIZE specified without BATCHSIZE";
        if (a->at >= a->argc || !text_number(a->argv[a->at++], 0, most, &model->min_batch_size)) return "ERR Invalid argument for MINBATCHSIZE";
    }
    if (next_is(a, "MINBATCHTIMEOUT")) {
        if (model->min_batch_size == 0) return "ERR MINBATCHTIMEOUT specified without MINBATCHSIZE";
        if (a->at >= a->argc || !text_number(a->argv[a->at++], 0, most, &model->min_batch_timeout)) return "ERR Invalid argument for MINBATCHTIMEOUT";
    }
    return NULL;
}

static const char *read_blob(struct arguments *a, struct model *model) {
    size_t total = 0, length;
    if (a->at >= a->argc) return "ERR Insufficient arguments, missing model BLOB";
    if (!next_is(a, "BLOB")) return "ERR Invalid argument, expected BLOB";
    if (a->at >= a->argc) return "ERR Insufficient arguments, missing model BLOB";
    for (int i = a->at; i < a->argc; i++) {
        redis.StringPtrLen(a->argv[i], &length);
        total += length;
    }
    if (total > MODEL_MAX_BYTES) return "ERR the model is larger than 1 GiB; quantise it or split it";
    char *data = redis.Alloc(total + 1);
    size_t at = 0;
    for (; a->at < a->argc; a->at++) {
        const char *chunk = redis.StringPtrLen(a->argv[a->at], &length);
        memcpy(data + at, chunk, length);
        at += length;
    }
    model->blob = blob_new(data, total);
    return NULL;
}

static const char *read_backend(struct arguments *a, struct model *model) {
    static const char *const others[] = {"TF", "TFLITE", "TORCH"};
    for (size_t i = 0; i < 3; i++)
        if (text_is(a->argv[a->at], others[i])) return "ERR unsupported backend: only ONNX models run here; export the model to ONNX";
    if (!text_is(a->argv[a->at], "ONNX")) return "ERR unsupported backend";
    model->backend = upper_copy(a->argv[a->at++]);
    if (!is_device(a->argv[a->at])) return "ERR Invalid DEVICE";
    model->device = upper_copy(a->argv[a->at++]);
    return NULL;
}

/* NULL, or the error. */
static const char *read_model(struct arguments *a, struct model *model) {
    const char *error = read_backend(a, model);
    if (error) return error;
    if (next_is(a, "TAG")) {
        if (a->at >= a->argc) return "ERR Insufficient arguments, missing model BLOB";
        model->tag = plain_copy(a->argv[a->at++]);
    } else {
        model->tag = text_copy("", 0);
    }
    if (strlen(model->tag) > MODEL_MAX_TEXT) return TEXT_TOO_LONG;
    error = read_batching(a, model);
    if (error) return error;
    if (a->at < a->argc && (text_is(a->argv[a->at], "INPUTS") || text_is(a->argv[a->at], "OUTPUTS")))
        return text_is(a->argv[a->at], "INPUTS") ? "ERR INPUTS argument should not be specified for this backend"
                                                 : "ERR OUTPUTS argument should not be specified for this backend";
    return read_blob(a, model);
}

static int set_key(RedisCtx *ctx, RedisString *name, struct model *model) {
    RedisKey *key = redis.OpenKey(ctx, name, REDIS_READ | REDIS_WRITE);
    if (redis.KeyType(key) != KEYTYPE_EMPTY && redis.ModuleTypeGetType(key) != shardqa.model_type) {
        redis.CloseKey(key);
        return redis.ReplyWithError(ctx, REDIS_WRONGTYPE);
    }
    redis.ModuleTypeSetValue(key, shardqa.model_type, model_retain(model));
    redis.CloseKey(key);
    models_add(model);
    redis.NotifyKeyspaceEvent(ctx, NOTIFY_MODULE, "ai.modelstore", name);
    redis.ReplicateVerbatim(ctx);
    return redis.ReplyWithSimpleString(ctx, "OK");
}

/* What a waiting AI.MODELSTORE needs when the worker has answered. */
struct store_job {
    struct model *model; /* one reference */
    RedisString **argv;  /* owned, without the command's name */
    size_t argc;
    bool stored; /* else the worker is told to forget it: refused, or the client left */
};

static void drop_from_worker(struct model *model) {
    struct frame_writer w;
    frame_begin(&w, FRAME_MODELDROP, 0);
    frame_number(&w, (long long)model->id);
    link_send(&w, NULL);
}

static void free_job(void *data) {
    struct store_job *job = data;
    if (!job->stored) drop_from_worker(job->model);
    for (size_t i = 0; i < job->argc; i++) redis.FreeString(NULL, job->argv[i]);
    redis.Free(job->argv);
    model_release(job->model);
    redis.Free(job);
}

static void wait_for_worker(RedisCtx *ctx, RedisString **argv, int argc, struct model *model) {
    struct store_job *job = redis.Alloc(sizeof *job);
    *job = (struct store_job){.model = model_retain(model), .argc = (size_t)argc - 1};
    job->argv = redis.Alloc(sizeof *job->argv * job->argc);
    for (size_t i = 0; i < job->argc; i++) job->argv[i] = redis.HoldString(NULL, argv[i + 1]);
    struct pending *pending = pending_new(PENDING_STORE);
    pending->data = job;
    pending->free_data = free_job;
    pending_block(ctx, pending, LOAD_TIMEOUT_MS, false);
    model->state = MODEL_SENT;
    model_send(model, pending->id);
}

void model_stored(struct pending *pending, const char *resp, size_t length) {
    char error[1024];
    struct store_job *job = pending->data;
    bool good = model_take_names(job->model, resp, length, error, sizeof error);
    if (good) {
        shardqa.storing = job->model;
        good = call_own("AI.MODELSTORE", job->argv, job->argc, "S", error, sizeof error);
        shardqa.storing = NULL;
    }
    job->stored = good;
    if (good)
        pending_finish(pending, "+OK\r\n", 5);
    else
        pending_fail(pending, error);
}

int ai_modelstore(RedisCtx *ctx, RedisString **argv, int argc) {
    struct arguments a = {.argv = argv, .argc = argc, .at = 2};
    size_t length;
    if (shardqa.storing) return set_key(ctx, argv[1], shardqa.storing);
    if (argc < 4) return redis.WrongArity(ctx);
    bool trusted = command_is_replayed(ctx);
    if (!trusted && (!pending_may_block(ctx, REFUSAL) || !pending_has_room(ctx))) return REDIS_OK;
    if (!trusted && !link_has_room_for_model())
        return reply_error(ctx, "BUSY %zu bytes of other models are on their way to the worker; try again later", shardqa.link.out.model_bytes);
    const char *key = redis.StringPtrLen(argv[1], &length);
    struct model *model = model_new(key, length);
    const char *error = read_model(&a, model);
    if (!error && !trusted && length > MODEL_MAX_TEXT) error = TEXT_TOO_LONG; /* RENAME made it so, where the key was written */
    if (error)
        redis.ReplyWithError(ctx, error);
    else if (trusted)
        set_key(ctx, argv[1], model);
    else
        wait_for_worker(ctx, argv, argc, model);
    model_release(model);
    return REDIS_OK;
}

/* ---- AI.MODELGET ---- */

static void reply_text(RedisCtx *ctx, const char *text) { redis.ReplyWithStringBuffer(ctx, text, strlen(text)); }

static void reply_pair(RedisCtx *ctx, const char *name, const char *value) {
    reply_text(ctx, name);
    reply_text(ctx, value);
}

static void reply_number(RedisCtx *ctx, const char *name, long long value) {
    reply_text(ctx, name);
    redis.ReplyWithLongLong(ctx, value);
}

static void reply_names(RedisCtx *ctx, const char *name, const struct names *names) {
    reply_text(ctx, name);
    redis.ReplyWithArray(ctx, (long)names->count);
    for (size_t i = 0; i < names->count; i++) reply_text(ctx, names->items[i]);
}

static void reply_file(RedisCtx *ctx, const struct blob *blob) {
    if (blob->length <= REPLY_CHUNK) {
        redis.ReplyWithStringBuffer(ctx, blob->data, blob->length);
        return;
    }
    redis.ReplyWithArray(ctx, (long)((blob->length + REPLY_CHUNK - 1) / REPLY_CHUNK));
    for (size_t at = 0; at < blob->length; at += REPLY_CHUNK) {
        size_t left = blob->length - at;
        redis.ReplyWithStringBuffer(ctx, blob->data + at, left < REPLY_CHUNK ? left : REPLY_CHUNK);
    }
}

int ai_modelget(RedisCtx *ctx, RedisString **argv, int argc) {
    bool meta = false, blob = false;
    if (argc < 2 || argc > 4) return redis.WrongArity(ctx);
    for (int i = 2; i < argc; i++) {
        if (text_is(argv[i], "META"))
            meta = true;
        else if (text_is(argv[i], "BLOB"))
            blob = true;
        else
            return redis.ReplyWithError(ctx, "ERR unsupported data format");
    }
    struct model *model = model_open(ctx, argv[1]);
    if (model == NULL) return REDIS_OK;
    if (!meta && !blob) meta = blob = true;
    if (!meta) {
        reply_file(ctx, model->blob);
        return REDIS_OK;
    }
    redis.ReplyWithArray(ctx, blob ? 18 : 16);
    reply_pair(ctx, "backend", model->backend);
    reply_pair(ctx, "device", model->device);
    reply_pair(ctx, "tag", model->tag);
    reply_number(ctx, "batchsize", model->batch_size);
    reply_number(ctx, "minbatchsize", model->min_batch_size);
    reply_names(ctx, "inputs", &model->inputs);
    reply_names(ctx, "outputs", &model->outputs);
    reply_number(ctx, "minbatchtimeout", model->min_batch_timeout);
    if (blob) {
        reply_text(ctx, "blob");
        reply_file(ctx, model->blob);
    }
    return REDIS_OK;
}

/* ---- the rest ---- */

int ai_modeldel(RedisCtx *ctx, RedisString **argv, int argc) {
    if (argc != 2) return redis.WrongArity(ctx);
    if (model_open(ctx, argv[1]) == NULL) return REDIS_OK;
    RedisKey *key = redis.OpenKey(ctx, argv[1], REDIS_READ | REDIS_WRITE);
    redis.DeleteKey(key);
    redis.CloseKey(key);
    redis.NotifyKeyspaceEvent(ctx, NOTIFY_GENERIC, "del", argv[1]);
    redis.ReplicateVerbatim(ctx);
    return redis.ReplyWithSimpleString(ctx, "OK");
}

/* Is the model still the value of the key it was stored under? */
static bool is_in_place(RedisCtx *ctx, const struct model *model) {
    RedisString *name = redis.CreateString(ctx, model->key, model->key_length);
    RedisKey *key = redis.OpenKey(ctx, name, REDIS_READ);
    bool good = key && redis.ModuleTypeGetType(key) == shardqa.model_type && redis.ModuleTypeGetValue(key) == model;
    if (key) redis.CloseKey(key);
    redis.FreeString(ctx, name);
    return good;
}

int ai_modelscan(RedisCtx *ctx, RedisString **argv, int argc) {
    long count = 0;
    (void)argv;
    if (argc != 1) return redis.WrongArity(ctx);
    for (struct model *m = shardqa.models; m; m = m->next) count += is_in_place(ctx, m);
    redis.ReplyWithArray(ctx, count);
    for (struct model *m = shardqa.models; m; m = m->next) {
        if (!is_in_place(ctx, m)) continue;
        redis.ReplyWithArray(ctx, 2);
        redis.ReplyWithStringBuffer(ctx, m->key, m->key_length);
        reply_text(ctx, m->tag);
    }
    return REDIS_OK;
}

static int reply_statistics(RedisCtx *ctx, RedisString *key, const struct model *model) {
    redis.ReplyWithArray(ctx, 18);
    reply_text(ctx, "key");
    redis.ReplyWithString(ctx, key);
    reply_pair(ctx, "type", "MODEL");
    reply_pair(ctx, "backend", model->backend);
    reply_pair(ctx, "device", model->device);
    reply_pair(ctx, "tag", model->tag);
    reply_number(ctx, "duration", model->duration_us);
    reply_number(ctx, "samples", model->samples);
    reply_number(ctx, "calls", model->calls);
    reply_number(ctx, "errors", model->errors);
    return REDIS_OK;
}

int ai_info(RedisCtx *ctx, RedisString **argv, int argc) {
    if (argc != 2 && argc != 3) return redis.WrongArity(ctx);
    RedisKey *key = redis.OpenKey(ctx, argv[1], REDIS_READ);
    struct model *model = key && redis.ModuleTypeGetType(key) == shardqa.model_type ? redis.ModuleTypeGetValue(key) : NULL;
    if (key) redis.CloseKey(key);
    if (model == NULL) return redis.ReplyWithError(ctx, "ERR cannot find run info for key");
    if (argc == 2) return reply_statistics(ctx, argv[1], model);
    if (!text_is(argv[2], "RESETSTAT")) return redis.ReplyWithError(ctx, "ERR unsupported subcommand");
    model->duration_us = model->samples = model->calls = model->errors = 0;
    return redis.ReplyWithSimpleString(ctx, "OK");
}
