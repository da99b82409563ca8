/* AI.MODELSTORE, MODELGET, MODELDEL, _MODELSCAN and INFO.
 *
 * A client's MODELSTORE waits: the worker loads the file first and names its inputs and outputs,
 * then the command is run once more by us (`ai.storing` holds the validated model), which
 * writes the key and replicates verbatim. From replication or the AOF the key is written at
 * once, without any worker: the bytes were validated where they came from. */
#include <string.h>

#include "ai/ai_state.h"
#include "ai/model_file.h"
#include "ai/model_internal.h"
#include "core/call.h"
#include "core/pending.h"
#include "core/state.h"
#include "core/text.h"
#include "core/worker_link.h"

#define TOO_LARGE                                                                                                      \
    "ERR the model is larger than 1 GiB, and no file could be made for it (module argument MODELS); quantize it or " \
    "split it"
#define TEXT_TOO_LONG "ERR key and TAG of a model have at most 65536 bytes; choose shorter ones"

enum { LOAD_TIMEOUT_MS = 300000 }; /* a big model may take minutes to load */

struct model *model_open(RedisCtx *ctx, RedisString *name) {
    return value_open(ctx, name, ai.model_type, "ERR model key is empty");
}

/* ---- AI.MODELSTORE ---- */

/* A copy that ends with a zero byte. */
static char *plain_copy(const RedisString *string) {
    size_t length;
    const char *text = redis.StringPtrLen(string, &length);
    return text_copy(text, length);
}

bool arguments_next_is(struct arguments *a, const char *word) {
    if (a->at >= a->argc || !text_is(a->argv[a->at], word)) return false;
    a->at++;
    return true;
}

/* NULL, or the error. */
const char *model_read_device(struct arguments *a, struct model *model) {
    size_t length;
    redis.StringPtrLen(a->argv[a->at], &length);
    model->device = plain_copy(a->argv[a->at++]);
    return model_is_device(model->device) && strlen(model->device) == length ? NULL : "ERR Invalid DEVICE";
}

static bool read_number(struct arguments *a, long long *number) {
    return a->at < a->argc && text_number(a->argv[a->at++], 0, MODEL_MAX_BATCH, number);
}

/* Ours, not RedisAI's. */
static const char *read_padded(struct arguments *a, struct model *model) {
    long long count;
    const char *error = NULL;
    if (model->batch_size == 0) return "ERR PADDED specified without BATCHSIZE";
    if (a->at >= a->argc || !text_number(a->argv[a->at++], 1, MODEL_MAX_NAMES, &count) || count > a->argc - a->at)
        return "ERR Invalid argument for PADDED: give the number of inputs, and their names";
    while (!error && count-- > 0) error = model_read_name(a->argv[a->at++], &model->padded);
    return error;
}

/* Which requests share a run. Each of the first three needs the one before. */
static const char *read_batching(struct arguments *a, struct model *model) {
    if (arguments_next_is(a, "BATCHSIZE") && !read_number(a, &model->batch_size))
        return "ERR Invalid argument for BATCHSIZE";
    if (arguments_next_is(a, "MINBATCHSIZE")) {
        if (model->batch_size == 0) return "ERR MINBATCHSIZE specified without BATCHSIZE";
        if (!read_number(a, &model->min_batch_size)) return "ERR Invalid argument for MINBATCHSIZE";
    }
    if (arguments_next_is(a, "MINBATCHTIMEOUT")) {
        if (model->min_batch_size == 0) return "ERR MINBATCHTIMEOUT specified without MINBATCHSIZE";
        if (!read_number(a, &model->min_batch_timeout)) return "ERR Invalid argument for MINBATCHTIMEOUT";
    }
    return arguments_next_is(a, "PADDED") ? read_padded(a, model) : NULL;
}

/* Any bytes; empty where there is none. */
const char *model_read_tag(struct arguments *a, struct model *model) {
    model->tag = text_copy("", 0);
    if (a->at + 1 >= a->argc || !arguments_next_is(a, "TAG")) return NULL;
    redis.Free(model->tag);
    model->tag = plain_copy(a->argv[a->at]);
    redis.StringPtrLen(a->argv[a->at++], &model->tag_length);
    return model->tag_length > MODEL_MAX_TEXT ? TEXT_TOO_LONG : NULL;
}

/* Adds one name of an input, an output or an entry point. */
const char *model_read_name(RedisString *string, struct words *names) {
    size_t length;
    const char *name = redis.StringPtrLen(string, &length);
    if (length > MODEL_MAX_TEXT || names->count == MODEL_MAX_NAMES || memchr(name, '\0', length))
        return "ERR a model has at most 4096 inputs and outputs, whose names have at most 65536 bytes and no zero byte";
    words_add(names, name, length);
    return NULL;
}

/* `n name…`, or, as AI.MODELSET has it, all names up to the word `end`. */
static const char *read_names(struct arguments *a, const char *end, struct words *names) {
    const char *error = NULL;
    long long count;
    if (!a->counted) {
        while (!error && a->at < a->argc && !text_is(a->argv[a->at], end))
            error = model_read_name(a->argv[a->at++], names);
        return error;
    }
    bool inputs = text_is(a->argv[a->at - 1], "INPUTS");
    if (a->at >= a->argc || redis.StringToLongLong(a->argv[a->at++], &count) != REDIS_OK || count < 0)
        return inputs ? "ERR Invalid argument for input_count" : "ERR Invalid argument for output_count";
    if (count > a->argc - a->at)
        return inputs ? "ERR number of model inputs does not match the number of given arguments"
                      : "ERR number of model outputs does not match the number of given arguments";
    while (!error && count-- > 0) error = model_read_name(a->argv[a->at++], names);
    return error;
}

/* Clients name inputs and outputs of TF models alone; on their way to replicas and the AOF all
 * commands do. AI.MODELSET, whose names are not counted, passes over those of others: clients send
 * back what AI.MODELGET told. Its errors are worded in RedisAI's older way. */
static const char *read_signature(struct arguments *a, struct model *model) {
    bool tf = strcmp(model->backend, "TF") == 0;
    const char *error = NULL;
    if (arguments_next_is(a, "INPUTS")) {
        if (!tf && !a->trusted && a->counted) return "ERR INPUTS argument should not be specified for this backend";
        error = read_names(a, "OUTPUTS", &model->inputs);
    } else if (tf && (a->at >= a->argc || (!a->counted && text_is(a->argv[a->at], "BLOB")))) {
        return "ERR Insufficient arguments, INPUTS and OUTPUTS not specified";
    } else if (tf) {
        return a->counted ? "ERR INPUTS not specified for TF" : "ERR INPUTS not specified";
    }
    if (error) return error;
    if (arguments_next_is(a, "OUTPUTS")) {
        if (!tf && !a->trusted && a->counted) return "ERR OUTPUTS argument should not be specified for this backend";
        error = read_names(a, "BLOB", &model->outputs);
    } else if (tf) {
        return a->counted ? "ERR OUTPUTS not specified for TF" : "ERR OUTPUTS not specified";
    }
    if (!tf && !a->trusted) {
        words_free(&model->inputs);
        words_free(&model->outputs);
    }
    return error;
}

/* Joins the parts of the file. */
static const char *read_blob(struct arguments *a, struct model *model) {
    size_t total = 0, length;
    if (a->at >= a->argc) return "ERR Insufficient arguments, missing model BLOB";
    if (!arguments_next_is(a, "BLOB"))
        return a->counted ? "ERR Invalid argument, expected BLOB" : "ERR Insufficient arguments, missing model BLOB";
    if (a->at >= a->argc) return "ERR Insufficient arguments, missing model BLOB";
    /* the sum first, so that the file is allocated once */
    for (int i = a->at; i < a->argc; i++) {
        redis.StringPtrLen(a->argv[i], &length);
        total += length;
    }
    if (total > MODEL_MAX_BYTES) return TOO_LARGE;
    struct blob_writer writer;
    blob_begin(&writer, total);
    for (int i = a->at; i < a->argc; i++) {
        const char *chunk = redis.StringPtrLen(a->argv[i], &length);
        blob_add(&writer, chunk, length);
    }
    model->blob = blob_end(&writer);
    return model->blob->file || total <= MODEL_IN_MEMORY ? NULL : TOO_LARGE;
}

/* Backend and device. NULL, or the error. */
static const char *read_backend(struct arguments *a, struct model *model) {
    static const char *const backends[] = {"ONNX", "TORCH", "TF", "TFLITE", "OPENVINO"};
    for (size_t i = 0; !model->backend && i < sizeof backends / sizeof *backends; i++)
        if (arguments_next_is(a, backends[i])) model->backend = text_copy(backends[i], strlen(backends[i]));
    if (model->backend == NULL) return "ERR unsupported backend";
    return model_read_device(a, model);
}

/* NULL, or the error. a->at is then the first part of the file. */
static const char *read_model(struct arguments *a, struct model *model) {
    const char *error = read_backend(a, model);
    if (!error) error = model_read_tag(a, model);
    if (!error) error = read_batching(a, model);
    if (!error) error = read_signature(a, model);
    return error ? error : read_blob(a, model);
}

static RedisType *type_of(const struct model *model) {
    return model->kind == KIND_SCRIPT ? ai.script_type : ai.model_type;
}

/* Writes the key and replicates the command as it came. */
int model_set_key(RedisCtx *ctx, RedisString *name, struct model *model) {
    RedisKey *key = redis.OpenKey(ctx, name, REDIS_READ | REDIS_WRITE);
    if (redis.KeyType(key) != KEYTYPE_EMPTY && redis.ModuleTypeGetType(key) != type_of(model)) {
        redis.CloseKey(key);
        return redis.ReplyWithError(ctx, REDIS_WRONGTYPE);
    }
    redis.ModuleTypeSetValue(key, type_of(model), model_retain(model));
    redis.CloseKey(key);
    models_add(model);
    redis.NotifyKeyspaceEvent(ctx, NOTIFY_MODULE, model->kind == KIND_SCRIPT ? "ai.scriptstore" : "ai.modelstore",
                              name);
    redis.ReplicateVerbatim(ctx);
    return redis.ReplyWithSimpleString(ctx, "OK");
}

/* What a waiting AI.MODELSTORE needs when the worker has answered. */
struct store_job {
    struct model *model; /* one reference */
    RedisString *key;    /* owned, as are the parts of the file */
    RedisString **parts;
    size_t n_parts;
    bool stored; /* else the worker is told to forget it: refused, or the client left */
};

/* When the store is over, however it ended. */
static void free_job(void *data) {
    struct store_job *job = data;
    if (!job->stored) model_send_drop(job->model);
    redis.FreeString(NULL, job->key);
    for (size_t i = 0; i < job->n_parts; i++) redis.FreeString(NULL, job->parts[i]);
    redis.Free(job->parts);
    model_release(job->model);
    redis.Free(job);
}

/* The command as replicas and the AOF get it: with the names that the worker has found, so that
 * they need no worker to know them. */
static bool store(struct store_job *job, char *error, size_t error_size) {
    size_t own = 0, n = 0;
    RedisString **argv = redis.Alloc(sizeof *argv * (model_most_words(job->model) + job->n_parts + 1));
    argv[n++] = job->key;
    n += own = model_words(job->model, argv + n);
    memcpy(argv + n, job->parts, sizeof *argv * job->n_parts);
    ai.storing = job->model;
    bool good = call_own(job->model->kind == KIND_SCRIPT ? "AI.SCRIPTSTORE" : "AI.MODELSTORE", argv, n + job->n_parts,
                         "S", error, error_size);
    ai.storing = NULL;
    for (size_t i = 0; i < own; i++) redis.FreeString(NULL, argv[1 + i]);
    redis.Free(argv);
    return good;
}

/* The worker has loaded the file, or has refused it. */
static void finish_store(struct pending *pending, const char *resp, size_t length) {
    char error[1024];
    struct store_job *job = pending->data;
    job->stored =
        model_loaded(job->model, resp, length, false, error, sizeof error) && store(job, error, sizeof error);
    if (job->stored)
        pending_finish(pending, "+OK\r\n", 5);
    else
        pending_fail(pending, error);
}

/* Blocks the client until the worker has loaded the file. */
static void wait_for_worker(RedisCtx *ctx, const struct arguments *a, struct model *model) {
    struct store_job *job = redis.Alloc(sizeof *job);
    *job = (struct store_job){
        .model = model_retain(model), .key = redis.HoldString(NULL, a->argv[1]), .n_parts = (size_t)(a->argc - a->at)};
    job->parts = redis.Alloc(sizeof *job->parts * (job->n_parts + 1));
    for (size_t i = 0; i < job->n_parts; i++) job->parts[i] = redis.HoldString(NULL, a->argv[a->at + (int)i]);
    struct pending *pending = pending_new();
    pending->data = job;
    pending->free_data = free_job;
    pending->on_reply = finish_store;
    pending->reply_writes = true;
    pending_block(ctx, pending, LOAD_TIMEOUT_MS, false);
    model->state = MODEL_SENT;
    model_send(model, pending->id);
}

/* A transaction or a script can't wait for the worker: there the file is stored as it is, and a
 * bad one fails when it is run. */
static bool is_immediate(RedisCtx *ctx) {
    int flags = redis.GetContextFlags(ctx), atomic = CTX_MULTI | CTX_LUA;
    return command_is_replayed(ctx) || ((flags & atomic) && !(flags & (CTX_LOADING | CTX_ASYNC_LOADING)));
}

/* AI.MODELSTORE, MODELSET, SCRIPTSTORE and SCRIPTSET differ in `read` alone. */
int model_store(RedisCtx *ctx, struct arguments *a, enum model_kind kind,
                const char *(*read)(struct arguments *, struct model *)) {
    size_t length;
    a->trusted = command_is_replayed(ctx);
    const char *key = redis.StringPtrLen(a->argv[1], &length);
    struct model *model = model_new(key, length);
    model->kind = kind;
    const char *error = read(a, model);
    /* RENAME made it so, where the key was written */
    if (!error && !a->trusted && length > MODEL_MAX_TEXT) error = TEXT_TOO_LONG;
    if (error)
        redis.ReplyWithError(ctx, error);
    else if (is_immediate(ctx))
        model_set_key(ctx, a->argv[1], model);
    else if (pending_may_block(ctx, AI_REFUSAL) && pending_has_room(ctx)) {
        if (link_has_room_for_model())
            wait_for_worker(ctx, a, model);
        else
            reply_error(ctx, "BUSY %zu bytes of other models are on their way to the worker; try again later",
                        shardqa.link.out.model_bytes);
    }
    model_release(model);
    return REDIS_OK;
}

/* AI.MODELSTORE key backend device [TAG tag]
 *     [BATCHSIZE n [MINBATCHSIZE n [MINBATCHTIMEOUT ms]] [PADDED count input ...]]
 *     [INPUTS count name ...] [OUTPUTS count name ...] BLOB file ... */
int ai_modelstore(RedisCtx *ctx, RedisString **argv, int argc) {
    struct arguments a = {.argv = argv, .argc = argc, .at = 2, .counted = true};
    if (ai.storing) return model_set_key(ctx, argv[1], ai.storing);
    return argc < 6 ? redis.WrongArity(ctx) : model_store(ctx, &a, KIND_MODEL, read_model);
}

/* AI.MODELSET key backend device [TAG tag] [BATCHSIZE n [MINBATCHSIZE n]] [INPUTS name ...]
 *     [OUTPUTS name ...] BLOB file ... */
int ai_modelset(RedisCtx *ctx, RedisString **argv, int argc) {
    struct arguments a = {.argv = argv, .argc = argc, .at = 2};
    return argc < 4 ? redis.WrongArity(ctx) : model_store(ctx, &a, KIND_MODEL, read_model);
}

/* ---- AI.MODELGET ---- */

void reply_text(RedisCtx *ctx, const char *text) { redis.ReplyWithStringBuffer(ctx, text, strlen(text)); }

void reply_pair(RedisCtx *ctx, const char *name, const char *value) {
    reply_text(ctx, name);
    reply_text(ctx, value);
}

void reply_tag(RedisCtx *ctx, const struct model *model) {
    reply_text(ctx, "tag");
    redis.ReplyWithStringBuffer(ctx, model->tag, model->tag_length);
}

static void reply_number(RedisCtx *ctx, const char *name, long long value) {
    reply_text(ctx, name);
    redis.ReplyWithLongLong(ctx, value);
}

void reply_names(RedisCtx *ctx, const char *name, const struct words *names) {
    reply_text(ctx, name);
    redis.ReplyWithArray(ctx, (long)names->count);
    for (size_t i = 0; i < names->count; i++) reply_text(ctx, names->items[i]);
}

/* One string, or an array of parts where it is longer than MODEL_CHUNK_SIZE. */
static void reply_file(RedisCtx *ctx, const struct blob *blob) {
    size_t chunk = (size_t)shardqa.arguments.chunk_size;
    if (blob->length <= chunk) {
        redis.ReplyWithStringBuffer(ctx, blob->data, blob->length);
        return;
    }
    redis.ReplyWithArray(ctx, (long)((blob->length + chunk - 1) / chunk));
    for (size_t at = 0; at < blob->length; at += chunk) {
        size_t left = blob->length - at;
        redis.ReplyWithStringBuffer(ctx, blob->data + at, left < chunk ? left : chunk);
    }
}

/* Is the client held back until the worker has read the model? One that was restored, or stored in
 * a transaction, has no names before; see reload_ended. */
static bool waits_for_names(RedisCtx *ctx, struct model *model) {
    bool over = model->state >= MODEL_LOADED || model->inputs.count + model->outputs.count > 0 || !link_usable();
    if (over || redis.GetBlockedClientPrivateData(ctx) || !pending_may_block(ctx, NULL)) return false;
    struct pending *pending = pending_find(model->awaited);
    if (pending == NULL) pending = pending_new();
    model->awaited = pending->id;
    pending->reply = ai_modelget;
    pending_block(ctx, pending, shardqa.arguments.timeout_ms, false);
    return true;
}

/* AI.MODELGET key [META] [BLOB] */
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
    if (waits_for_names(ctx, model)) return REDIS_OK;
    redis.ReplyWithArray(ctx, (blob ? 18 : 16) + (model->padded.count > 0 ? 2 : 0));
    reply_pair(ctx, "backend", model->backend);
    reply_pair(ctx, "device", model->device);
    reply_tag(ctx, model);
    reply_number(ctx, "batchsize", model->batch_size);
    reply_number(ctx, "minbatchsize", model->min_batch_size);
    reply_names(ctx, "inputs", &model->inputs);
    reply_names(ctx, "outputs", &model->outputs);
    reply_number(ctx, "minbatchtimeout", model->min_batch_timeout);
    if (model->padded.count > 0) reply_names(ctx, "padded", &model->padded); /* others' replies are RedisAI's */
    if (blob) {
        reply_text(ctx, "blob");
        reply_file(ctx, model->blob);
    }
    return REDIS_OK;
}

/* ---- the rest ---- */

/* The worker forgets the model in models_cron. */
int model_delete(RedisCtx *ctx, RedisString *name) {
    RedisKey *key = redis.OpenKey(ctx, name, REDIS_READ | REDIS_WRITE);
    redis.DeleteKey(key);
    redis.CloseKey(key);
    redis.NotifyKeyspaceEvent(ctx, NOTIFY_GENERIC, "del", name);
    redis.ReplicateVerbatim(ctx);
    return redis.ReplyWithSimpleString(ctx, "OK");
}

/* AI.MODELDEL key */
int ai_modeldel(RedisCtx *ctx, RedisString **argv, int argc) {
    if (argc != 2) return redis.WrongArity(ctx);
    return model_open(ctx, argv[1]) ? model_delete(ctx, argv[1]) : REDIS_OK;
}

/* Is the model still the value of the key it was stored under? */
static bool is_in_place(RedisCtx *ctx, const struct model *model) {
    RedisString *name = redis.CreateString(ctx, model->key, model->key_length);
    RedisKey *key = redis.OpenKey(ctx, name, REDIS_LOOK);
    bool good = key && redis.ModuleTypeGetType(key) == type_of(model) && redis.ModuleTypeGetValue(key) == model;
    if (key) redis.CloseKey(key);
    redis.FreeString(ctx, name);
    return good;
}

/* AI._MODELSCAN
 * AI._SCRIPTSCAN */
int ai_scan(RedisCtx *ctx, RedisString **argv, int argc) {
    long count = 0;
    enum model_kind kind = text_is(argv[0], "AI._SCRIPTSCAN") ? KIND_SCRIPT : KIND_MODEL;
    if (argc != 1) return redis.WrongArity(ctx);
    const struct model **all = redis.Alloc(sizeof *all * (size_t)(ai.model_count + 1));
    for (struct model *m = ai.models; m; m = m->next)
        if (m->kind == kind && is_in_place(ctx, m)) all[count++] = m;
    redis.ReplyWithArray(ctx, count);
    while (count-- > 0) { /* the list has the newest first */
        redis.ReplyWithArray(ctx, 2);
        redis.ReplyWithStringBuffer(ctx, all[count]->key, all[count]->key_length);
        redis.ReplyWithStringBuffer(ctx, all[count]->tag, all[count]->tag_length);
    }
    redis.Free(all);
    return REDIS_OK;
}

/* RedisAI's order. */
static int reply_statistics(RedisCtx *ctx, RedisString *key, const struct model *model) {
    redis.ReplyWithArray(ctx, 18);
    reply_text(ctx, "key");
    redis.ReplyWithString(ctx, key);
    reply_pair(ctx, "type", model->kind == KIND_SCRIPT ? "SCRIPT" : "MODEL");
    reply_pair(ctx, "backend", model->backend);
    reply_pair(ctx, "device", model->device);
    reply_tag(ctx, model);
    reply_number(ctx, "duration", model->duration_us);
    reply_number(ctx, "samples", model->kind == KIND_SCRIPT ? -1 : model->samples); /* as RedisAI: a script has none */
    reply_number(ctx, "calls", model->calls);
    reply_number(ctx, "errors", model->errors);
    return REDIS_OK;
}

/* AI.INFO key [RESETSTAT] */
int ai_info(RedisCtx *ctx, RedisString **argv, int argc) {
    if (argc != 2 && argc != 3) return redis.WrongArity(ctx);
    RedisKey *key = redis.OpenKey(ctx, argv[1], REDIS_LOOK);
    RedisType *type = key ? redis.ModuleTypeGetType(key) : NULL;
    struct model *model = type && (type == ai.model_type || type == ai.script_type) ? redis.ModuleTypeGetValue(key)
                                                                                    : NULL;
    if (key) redis.CloseKey(key);
    if (model == NULL) return redis.ReplyWithError(ctx, "ERR cannot find run info for key");
    if (argc == 2) return reply_statistics(ctx, argv[1], model);
    if (!text_is(argv[2], "RESETSTAT")) return redis.ReplyWithError(ctx, "ERR unsupported subcommand");
    model->duration_us = model->samples = model->calls = model->errors = 0;
    return redis.ReplyWithSimpleString(ctx, "OK");
}
