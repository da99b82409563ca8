/* The types of models and scripts: RDB, AOF, RESTORE, COPY, MEMORY USAGE and DEBUG DIGEST. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "ai/ai_state.h"
#include "ai/model_file.h"
#include "ai/model_internal.h"
#include "ai/redisai_dump.h"
#include "core/state.h"
#include "core/text.h"

enum {
    MODEL_ENCODING = 101, /* RedisAI wrote up to 4: redisai_dump.c */
    ENCODING_WITHOUT_PADDED = 100,
    CHUNK = 16 << 20      /* bytes per string in the RDB: Redis allocates a buffer as large to try compression */
};

static void save_names(RedisIO *io, const struct words *names) {
    redis.SaveUnsigned(io, names->count);
    for (size_t i = 0; i < names->count; i++) redis.SaveStringBuffer(io, names->items[i], strlen(names->items[i]));
}

/* The file in chunks: see CHUNK. */
static void rdb_save(RedisIO *io, void *value) {
    const struct model *model = value;
    redis.SaveStringBuffer(io, model->backend, strlen(model->backend));
    redis.SaveStringBuffer(io, model->device, strlen(model->device));
    redis.SaveStringBuffer(io, model->tag, model->tag_length);
    redis.SaveUnsigned(io, (uint64_t)model->batch_size);
    redis.SaveUnsigned(io, (uint64_t)model->min_batch_size);
    redis.SaveUnsigned(io, (uint64_t)model->min_batch_timeout);
    save_names(io, &model->inputs);
    save_names(io, &model->outputs);
    save_names(io, &model->padded);
    redis.SaveUnsigned(io, (model->blob->length + CHUNK - 1) / CHUNK);
    for (size_t at = 0; at < model->blob->length; at += CHUNK) {
        size_t left = model->blob->length - at;
        redis.SaveStringBuffer(io, model->blob->data + at, left < CHUNK ? left : CHUNK);
    }
}

/* A text of at most MODEL_MAX_TEXT bytes, or NULL. */
static char *load_bytes(RedisIO *io, size_t *length) {
    char *raw = redis.LoadStringBuffer(io, length);
    if (redis.IsIOError(io) || raw == NULL) return NULL;
    char *text = *length <= MODEL_MAX_TEXT ? text_copy(raw, *length) : NULL;
    redis.Free(raw);
    return text;
}

/* The same where nobody needs the length. */
static char *load_text(RedisIO *io) {
    size_t length;
    return load_bytes(io, &length);
}

static bool load_names(RedisIO *io, struct words *names) {
    uint64_t count = redis.LoadUnsigned(io);
    if (redis.IsIOError(io) || count > MODEL_MAX_NAMES) return false;
    names->items = redis.Calloc(count + 1, sizeof *names->items);
    while (names->count < count) {
        char *text = load_text(io);
        if (text == NULL) return false;
        names->items[names->count++] = text;
    }
    return true;
}

/* In one allocation of that size at first. False where they pass 1 GiB or the file ends. */
bool model_load_chunks(RedisIO *io, struct model *model, bool good, uint64_t chunks, uint64_t expected) {
    struct blob_writer writer;
    blob_begin(&writer, good ? expected : 0);
    while (good && chunks-- > 0) {
        size_t length;
        char *chunk = redis.LoadStringBuffer(io, &length);
        good = !redis.IsIOError(io) && chunk != NULL && writer.length + length <= MODEL_MAX_BYTES;
        if (good) blob_add(&writer, chunk, length);
        redis.Free(chunk);
    }
    model->blob = blob_end(&writer);
    return good;
}

static bool load_blob(RedisIO *io, struct model *model) {
    uint64_t chunks = redis.LoadUnsigned(io);
    uint64_t expected = chunks <= MODEL_IN_MEMORY / CHUNK ? chunks * CHUNK : MODEL_IN_MEMORY;
    return model_load_chunks(io, model, !redis.IsIOError(io), chunks, expected);
}

/* CPU, CPU:n, GPU or GPU:n. */
bool model_is_device(const char *text) {
    if (strncasecmp(text, "CPU", 3) != 0 && strncasecmp(text, "GPU", 3) != 0) return false;
    if (text[3] == '\0') return true;
    size_t digits = strspn(text + 4, "0123456789");
    return text[3] == ':' && digits > 0 && digits <= 5 && text[4 + digits] == '\0';
}

/* The worker says later whether it knows this one. */
static bool is_backend(const char *text) {
    size_t capitals = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    return capitals > 0 && capitals <= 16 && text[capitals] == '\0';
}

static bool is_batch(long long number) { return number >= 0 && number <= MODEL_MAX_BATCH; }

/* What AI.MODELSTORE would never have stored, and no worker shall see; NULL when there is
 * nothing. A backend that this version does not know is no fault here: the worker refuses it. */
static const char *fault_of(const struct model *model) {
    if (!is_backend(model->backend)) return "its backend is no word in capitals";
    if (!model_is_device(model->device)) return "its device is none of CPU, CPU:n, GPU and GPU:n";
    if (!is_batch(model->batch_size)) return "its BATCHSIZE is above 2^30";
    if (!is_batch(model->min_batch_size)) return "its MINBATCHSIZE is above 2^30";
    if (!is_batch(model->min_batch_timeout)) return "its MINBATCHTIMEOUT is above 2^30";
    if (model->min_batch_size > 0 && model->batch_size == 0) return "it has a MINBATCHSIZE without a BATCHSIZE";
    if (model->min_batch_timeout > 0 && model->min_batch_size == 0)
        return "it has a MINBATCHTIMEOUT without a MINBATCHSIZE";
    if (model->padded.count > 0 && model->batch_size == 0) return "it has PADDED inputs without a BATCHSIZE";
    return NULL;
}

/* The range is checked by fault_of. */
static bool load_number(RedisIO *io, long long *number) {
    *number = (long long)redis.LoadUnsigned(io);
    return !redis.IsIOError(io);
}

static bool load_fields(RedisIO *io, struct model *model, int encoding) {
    return (model->backend = load_text(io)) != NULL && (model->device = load_text(io)) != NULL &&
           (model->tag = load_bytes(io, &model->tag_length)) != NULL && load_number(io, &model->batch_size) &&
           load_number(io, &model->min_batch_size) && load_number(io, &model->min_batch_timeout) &&
           load_names(io, &model->inputs) && load_names(io, &model->outputs) &&
           (encoding == ENCODING_WITHOUT_PADDED || load_names(io, &model->padded)) && load_blob(io, model);
}

/* A RESTORE with a fault is refused. Out of a file, or on a replica, refusing would keep Redis
 * from starting or part the replica from its master: the key is kept as it is, and the worker is
 * never given it. */
static bool accept(RedisIO *io, struct model *model) {
    char error[256];
    const char *fault = fault_of(model);
    if (fault == NULL) return true;
    int flags = redis.GetContextFlags(shardqa.ctx);
    redis.LogIOError(io, "warning", "the model in key '%.*s' is damaged: %s",
                     (int)(model->key_length < 256 ? model->key_length : 256), model->key, fault);
    if (flags & CTX_MASTER && !(flags & (CTX_LOADING | CTX_ASYNC_LOADING))) return false;
    snprintf(error, sizeof error, "ERR the model is damaged: %s; store it again with AI.MODELSTORE", fault);
    model_set_error(model, MODEL_BARRED, error);
    return true;
}

/* From RDB, from RESTORE or on a replica. */
static void *load(RedisIO *io, int encoding, enum model_kind kind) {
    bool theirs = encoding <= REDISAI_ENCODING_MOST;
    if (!theirs && encoding != MODEL_ENCODING && encoding != ENCODING_WITHOUT_PADDED)
        return kind == KIND_SCRIPT ? refuse_version(io, "script", encoding, MODEL_ENCODING, "AI.SCRIPTSTORE")
                                   : refuse_version(io, "model", encoding, MODEL_ENCODING, "AI.MODELSTORE");
    size_t length = 0;
    const RedisString *name = redis.GetKeyNameFromIO(io);
    const char *key = name ? redis.StringPtrLen(name, &length) : "";
    struct model *model = model_new(key, length);
    model->kind = kind;
    bool good = !theirs                ? load_fields(io, model, encoding)
                : kind == KIND_SCRIPT ? redisai_load_script(io, encoding, model)
                                      : redisai_load_model(io, encoding, model);
    /* a key of any length: a file that can't be read would keep Redis from starting */
    if (!good || !accept(io, model)) {
        model_destroy(model);
        return NULL;
    }
    models_add(model);
    return model;
}

static void *rdb_load(RedisIO *io, int encoding) { return load(io, encoding, KIND_MODEL); }

static void *rdb_load_script(RedisIO *io, int encoding) { return load(io, encoding, KIND_SCRIPT); }

static RedisString *string_of(const char *text) { return redis.CreateString(NULL, text, strlen(text)); }

/* Decimal digits. The caller frees it. */
static RedisString *string_of_number(long long number) {
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", number);
    return string_of(digits);
}

/* `WORD n name …`; the number of words. */
static size_t rewrite_names(const char *word, const struct words *names, RedisString **argv) {
    size_t n = 0;
    argv[n++] = string_of(word);
    argv[n++] = string_of_number((long long)names->count);
    for (size_t i = 0; i < names->count; i++) argv[n++] = string_of(names->items[i]);
    return n;
}

size_t model_most_words(const struct model *model) {
    return 20 + model->padded.count + model->inputs.count + model->outputs.count;
}

/* What stands between the key and the source. */
static size_t script_words(const struct model *script, RedisString **argv) {
    size_t n = 0;
    argv[n++] = string_of(script->device);
    argv[n++] = string_of("TAG");
    argv[n++] = redis.CreateString(NULL, script->tag, script->tag_length);
    n += rewrite_names("ENTRY_POINTS", &script->inputs, argv + n);
    argv[n++] = string_of("SOURCE");
    return n;
}

/* What stands between the key and the file. */
size_t model_words(const struct model *model, RedisString **argv) {
    size_t n = 0;
    if (model->kind == KIND_SCRIPT) return script_words(model, argv);
    const char *words[] = {"BATCHSIZE", "MINBATCHSIZE", "MINBATCHTIMEOUT"};
    long long numbers[] = {model->batch_size, model->min_batch_size, model->min_batch_timeout};
    argv[n++] = string_of(model->backend);
    argv[n++] = string_of(model->device);
    argv[n++] = string_of("TAG");
    argv[n++] = redis.CreateString(NULL, model->tag, model->tag_length);
    for (int i = 0; i < 3 && numbers[i] > 0; i++) {
        argv[n++] = string_of(words[i]);
        argv[n++] = string_of_number(numbers[i]);
    }
    if (model->padded.count > 0) n += rewrite_names("PADDED", &model->padded, argv + n);
    if (model->inputs.count + model->outputs.count > 0) { /* known at once, before a worker has loaded it */
        n += rewrite_names("INPUTS", &model->inputs, argv + n);
        n += rewrite_names("OUTPUTS", &model->outputs, argv + n);
    }
    argv[n++] = string_of("BLOB");
    return n;
}

/* Only for `aof-use-rdb-preamble no`. The chunks are copied once in the rewriting child. */
static void aof_rewrite(RedisIO *io, RedisString *key, void *value) {
    const struct model *model = value;
    RedisString **argv = redis.Alloc(sizeof *argv * (model_most_words(model) + model->blob->length / CHUNK + 1));
    size_t n = model_words(model, argv);
    size_t chunk = model->kind == KIND_SCRIPT ? model->blob->length : CHUNK; /* a source is one word */
    for (size_t at = 0; at < model->blob->length; at += chunk) {
        size_t left = model->blob->length - at;
        argv[n++] = redis.CreateString(NULL, model->blob->data + at, left < chunk ? left : chunk);
    }
    redis.EmitAOF(io, model->kind == KIND_SCRIPT ? "AI.SCRIPTSTORE" : "AI.MODELSTORE", "sv", key, argv, n);
    while (n > 0) redis.FreeString(NULL, argv[--n]);
    redis.Free(argv);
}

static size_t memory_of(RedisKeyOptCtx *ctx, const void *value, size_t sample) {
    const struct model *model = value;
    (void)ctx;
    (void)sample;
    return redis.MallocSize((void *)model) + redis.MallocSize(model->blob) +
           (model->blob->data && !model->blob->file ? redis.MallocSize(model->blob->data) : 0);
}

/* DEBUG DIGEST: what clients can see, not the state of the worker. */
static void digest(RedisDigest *md, void *value) {
    const struct model *model = value;
    redis.DigestAddStringBuffer(md, model->backend, strlen(model->backend));
    redis.DigestAddStringBuffer(md, model->device, strlen(model->device));
    redis.DigestAddStringBuffer(md, model->tag, model->tag_length);
    for (size_t i = 0; i < model->padded.count; i++)
        redis.DigestAddStringBuffer(md, model->padded.items[i], strlen(model->padded.items[i]));
    for (size_t i = 0; model->kind == KIND_SCRIPT && i < model->inputs.count; i++)
        redis.DigestAddStringBuffer(md, model->inputs.items[i], strlen(model->inputs.items[i]));
    redis.DigestAddStringBuffer(md, model->blob->data ? model->blob->data : "", model->blob->length);
    redis.DigestEndSequence(md);
}

/* A copy shares the file but is an object of its own to the worker, under its own key. */
static void *copy(RedisKeyOptCtx *ctx, const void *value) {
    const struct model *from = value;
    size_t length;
    const char *key = redis.StringPtrLen(redis.GetToKeyNameFromOptCtx(ctx), &length);
    struct model *model = model_new(key, length);
    model->backend = text_copy(from->backend, strlen(from->backend));
    model->device = text_copy(from->device, strlen(from->device));
    model->tag = text_copy(from->tag, from->tag_length);
    model->tag_length = from->tag_length;
    model->batch_size = from->batch_size;
    model->min_batch_size = from->min_batch_size;
    model->min_batch_timeout = from->min_batch_timeout;
    model->blob = blob_retain(from->blob);
    if (from->state == MODEL_BARRED) model_set_error(model, MODEL_BARRED, from->error);
    model->kind = from->kind;
    words_copy(&model->padded, &from->padded);
    words_copy(&model->inputs, &from->inputs);
    words_copy(&model->outputs, &from->outputs);
    models_add(model);
    return model;
}

/* After a RENAME errors name the new key. */
static int on_key_event(RedisCtx *ctx, int class, const char *event, RedisString *name) {
    (void)class;
    if (ai.model_count == 0 || strcmp(event, "rename_to") != 0) return REDIS_OK;
    RedisKey *key = redis.OpenKey(ctx, name, REDIS_LOOK);
    RedisType *type = key ? redis.ModuleTypeGetType(key) : NULL;
    if (type && (type == ai.model_type || type == ai.script_type)) {
        struct model *model = redis.ModuleTypeGetValue(key);
        const char *text = redis.StringPtrLen(name, &model->key_length);
        redis.Free(model->key);
        model->key = text_copy(text, model->key_length);
    }
    if (key) redis.CloseKey(key);
    return REDIS_OK;
}

int models_subscribe(RedisCtx *ctx) { return redis.SubscribeToKeyspaceEvents(ctx, NOTIFY_GENERIC, on_key_event); }

/* A script's type differs from a model's in name and loader alone. */
int model_type_create(RedisCtx *ctx) {
    RedisTypeMethods methods = {.version = TYPE_METHODS_VERSION,
                                .rdb_load = rdb_load,
                                .rdb_save = rdb_save,
                                .aof_rewrite = aof_rewrite,
                                .digest = digest,
                                .free = model_release,
                                .mem_usage2 = memory_of,
                                .copy2 = copy};
    ai.model_type = redis.CreateDataType(ctx, "AI__MODEL", MODEL_ENCODING, &methods);
    methods.rdb_load = rdb_load_script;
    ai.script_type = redis.CreateDataType(ctx, "AI_SCRIPT", MODEL_ENCODING, &methods);
    return ai.model_type && ai.script_type ? REDIS_OK : REDIS_ERR;
}
