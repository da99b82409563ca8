/* The life of models: memory, RDB and AOF, and what the worker has of them. The commands are in model_commands.c. */
#include "model_internal.h"

#include <stdio.h>
#include <string.h>

#include "pending.h"
#include "resp.h"
#include "state.h"
#include "text.h"
#include "worker_link.h"

enum {
    MODEL_ENCODING = 100,      /* RedisAI wrote up to 4; its payloads are refused, not guessed at */
    CHUNK = 16 << 20,          /* bytes per string in the RDB: Redis allocates a buffer as large to try compression */
    MAX_NAMES = 4096
};

/* ---- blobs ---- */

struct blob *blob_new(char *data, size_t length) {
    struct blob *blob = redis.Alloc(sizeof *blob);
    atomic_init(&blob->references, 1);
    blob->length = length;
    blob->data = data;
    return blob;
}

struct blob *blob_retain(struct blob *blob) {
    atomic_fetch_add(&blob->references, 1);
    return blob;
}

void blob_release(struct blob *blob) {
    if (blob == NULL || atomic_fetch_sub(&blob->references, 1) != 1) return;
    redis.Free(blob->data);
    redis.Free(blob);
}

/* ---- models ---- */

static void names_free(struct names *names) {
    for (size_t i = 0; i < names->count; i++) redis.Free(names->items[i]);
    redis.Free(names->items);
    *names = (struct names){0};
}

struct model *model_new(const char *key, size_t key_length) {
    struct model *model = redis.Calloc(1, sizeof *model);
    atomic_init(&model->references, 1);
    model->id = ++shardqa.last_model;
    model->key = text_copy(key, key_length);
    model->key_length = key_length;
    return model;
}

struct model *model_retain(struct model *model) {
    atomic_fetch_add(&model->references, 1);
    return model;
}

static void model_destroy(struct model *model) {
    redis.Free(model->key);
    redis.Free(model->backend);
    redis.Free(model->device);
    redis.Free(model->tag);
    redis.Free(model->error);
    names_free(&model->inputs);
    names_free(&model->outputs);
    blob_release(model->blob);
    redis.Free(model);
}

/* Any thread. While the model is in the list this can never be the last reference. */
void model_release(void *value) {
    struct model *model = value;
    if (atomic_fetch_sub(&model->references, 1) == 1) model_destroy(model);
}

/* Main thread. From here on the list holds a reference. */
void models_add(struct model *model) {
    model->next = shardqa.models;
    shardqa.models = model_retain(model);
    shardqa.model_count++;
    if (model->state == MODEL_UNSENT) shardqa.models_unsent++;
}

static void drop_from_worker(struct model *model) {
    struct frame_writer w;
    if (model->state == MODEL_UNSENT) {
        shardqa.models_unsent--;
        return;
    }
    frame_begin(&w, FRAME_MODELDROP, 0);
    frame_number(&w, (long long)model->id);
    link_send(&w, NULL);
}

void models_cron(void) {
    struct model **at = &shardqa.models;
    while (*at) {
        struct model *model = *at;
        if (atomic_load(&model->references) > 1) {
            at = &model->next;
            continue;
        }
        *at = model->next;
        shardqa.model_count--;
        drop_from_worker(model);
        model_release(model);
    }
}

/* ---- and the worker ---- */

void model_send(struct model *model, uint64_t request) {
    struct frame_writer w;
    frame_begin(&w, FRAME_MODELLOAD, request);
    frame_number(&w, (long long)model->id);
    frame_text(&w, model->backend);
    frame_text(&w, model->device);
    frame_text(&w, model->tag);
    frame_number(&w, model->batch_size);
    frame_number(&w, model->min_batch_size);
    frame_number(&w, model->min_batch_timeout);
    frame_item(&w, model->key, model->key_length <= MODEL_MAX_TEXT ? model->key_length : 0); /* RENAME and COPY can make it longer */
    frame_item_elsewhere(&w, model->blob->length);
    link_send(&w, model->blob);
}

void models_send(void) {
    for (struct model *model = shardqa.models; model && shardqa.models_unsent > 0; model = model->next) {
        if (model->state != MODEL_UNSENT) continue;
        struct pending *pending = pending_new(PENDING_RELOAD);
        pending->data = model_retain(model);
        pending->free_data = model_release;
        model->state = MODEL_SENT;
        shardqa.models_unsent--;
        model_send(model, pending->id);
    }
}

void models_forget_worker(void) {
    shardqa.models_unsent = 0;
    for (struct model *model = shardqa.models; model; model = model->next) {
        model->state = MODEL_UNSENT;
        shardqa.models_unsent++;
    }
}

static bool read_names(const char **at, const char *end, struct names *names) {
    struct resp_item item;
    if (!resp_next(at, end, &item) || item.kind != '*' || item.children > MAX_NAMES) return false;
    names->items = redis.Calloc((size_t)item.children + 1, sizeof *names->items);
    for (long long left = item.children; left > 0; left--) {
        struct resp_item name;
        if (!resp_next(at, end, &name) || name.text == NULL || name.children > 0 || name.length > MODEL_MAX_TEXT) return false;
        names->items[names->count++] = text_copy(name.text, name.length);
    }
    return true;
}

/* Fills inputs and outputs from `*2` of two arrays; false, and `error` filled, when it is anything else. What load_names would
 * refuse must be refused here: an RDB that can't be read keeps Redis from starting. */
static bool take_names(struct model *model, const char *resp, size_t length, char *error, size_t error_size) {
    const char *at = resp, *end = resp + length;
    struct resp_item item;
    struct names inputs = {0}, outputs = {0};
    if (!resp_next(&at, end, &item) || item.kind == '-') {
        snprintf(error, error_size, "%.*s", (int)(item.length < 900 ? item.length : 900), item.text);
        return false;
    }
    if (item.kind != '*' || item.children != 2 || !read_names(&at, end, &inputs) || !read_names(&at, end, &outputs)) {
        names_free(&inputs);
        names_free(&outputs);
        snprintf(error, error_size, "ERR the worker did not name the model's inputs and outputs, at most %d of at most %d bytes each", MAX_NAMES, MODEL_MAX_TEXT);
        return false;
    }
    names_free(&model->inputs);
    names_free(&model->outputs);
    model->inputs = inputs;
    model->outputs = outputs;
    return true;
}

bool model_take_names(struct model *model, const char *resp, size_t length, char *error, size_t error_size) {
    if (take_names(model, resp, length, error, error_size)) {
        model->state = MODEL_LOADED;
        return true;
    }
    model->state = MODEL_FAILED;
    redis.Free(model->error);
    model->error = text_copy(error, strlen(error));
    return false;
}

void model_loaded(struct pending *pending, const char *resp, size_t length) {
    char error[1024];
    struct model *model = pending->data;
    if (!model_take_names(model, resp, length, error, sizeof error))
        redis.Log(shardqa.ctx, "warning", "the worker refused the model in key '%.*s': %s", (int)model->key_length, model->key, error);
    pending_free(pending);
}

/* ---- the type ---- */

static void save_names(RedisIO *io, const struct names *names) {
    redis.SaveUnsigned(io, names->count);
    for (size_t i = 0; i < names->count; i++) redis.SaveStringBuffer(io, names->items[i], strlen(names->items[i]));
}

static void rdb_save(RedisIO *io, void *value) {
    const struct model *model = value;
    const char *texts[] = {model->backend, model->device, model->tag};
    for (size_t i = 0; i < 3; i++) redis.SaveStringBuffer(io, texts[i], strlen(texts[i]));
    redis.SaveUnsigned(io, (uint64_t)model->batch_size);
    redis.SaveUnsigned(io, (uint64_t)model->min_batch_size);
    redis.SaveUnsigned(io, (uint64_t)model->min_batch_timeout);
    save_names(io, &model->inputs);
    save_names(io, &model->outputs);
    redis.SaveUnsigned(io, (model->blob->length + CHUNK - 1) / CHUNK);
    for (size_t at = 0; at < model->blob->length; at += CHUNK) {
        size_t left = model->blob->length - at;
        redis.SaveStringBuffer(io, model->blob->data + at, left < CHUNK ? left : CHUNK);
    }
}

static char *load_text(RedisIO *io) {
    size_t length;
    char *raw = redis.LoadStringBuffer(io, &length);
    if (redis.IsIOError(io) || raw == NULL) return NULL;
    char *text = length <= MODEL_MAX_TEXT ? text_copy(raw, length) : NULL;
    redis.Free(raw);
    return text;
}

static bool load_names(RedisIO *io, struct names *names) {
    uint64_t count = redis.LoadUnsigned(io);
    if (redis.IsIOError(io) || count > MAX_NAMES) return false;
    names->items = redis.Calloc(count + 1, sizeof *names->items);
    while (names->count < count) {
        char *text = load_text(io);
        if (text == NULL) return false;
        names->items[names->count++] = text;
    }
    return true;
}

static bool load_blob(RedisIO *io, struct model *model) {
    struct buffer bytes = {0};
    uint64_t chunks = redis.LoadUnsigned(io);
    bool good = !redis.IsIOError(io);
    while (good && chunks-- > 0) {
        size_t length;
        char *chunk = redis.LoadStringBuffer(io, &length);
        good = !redis.IsIOError(io) && chunk != NULL && bytes.length + length <= MODEL_MAX_BYTES;
        if (good) buffer_add(&bytes, chunk, length);
        redis.Free(chunk);
    }
    size_t total;
    char *data = buffer_take(&bytes, &total);
    model->blob = blob_new(data, total);
    return good;
}

static bool load_number(RedisIO *io, long long *number) {
    *number = (long long)redis.LoadUnsigned(io);
    return !redis.IsIOError(io) && *number >= 0;
}

static bool load_fields(RedisIO *io, struct model *model) {
    return (model->backend = load_text(io)) != NULL && (model->device = load_text(io)) != NULL && (model->tag = load_text(io)) != NULL &&
           load_number(io, &model->batch_size) && load_number(io, &model->min_batch_size) && load_number(io, &model->min_batch_timeout) &&
           load_names(io, &model->inputs) && load_names(io, &model->outputs) && load_blob(io, model);
}

static void *rdb_load(RedisIO *io, int encoding) {
    if (encoding != MODEL_ENCODING) {
        redis.LogIOError(io, "warning", "a model is saved in version %d, this module reads version %d; store it again with AI.MODELSTORE", encoding, MODEL_ENCODING);
        return NULL;
    }
    size_t length = 0;
    const RedisString *name = redis.GetKeyNameFromIO(io);
    const char *key = name ? redis.StringPtrLen(name, &length) : "";
    struct model *model = model_new(key, length);
    if (!load_fields(io, model)) { /* a key of any length: a file that can't be read would keep Redis from starting */
        model_destroy(model);
        return NULL;
    }
    models_add(model);
    return model;
}

static RedisString *string_of(const char *text) { return redis.CreateString(NULL, text, strlen(text)); }

static RedisString *string_of_number(long long number) {
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", number);
    return string_of(digits);
}

static size_t rewrite_options(const struct model *model, RedisString **argv) {
    size_t n = 0;
    const char *words[] = {"BATCHSIZE", "MINBATCHSIZE", "MINBATCHTIMEOUT"};
    long long numbers[] = {model->batch_size, model->min_batch_size, model->min_batch_timeout};
    argv[n++] = string_of(model->backend);
    argv[n++] = string_of(model->device);
    argv[n++] = string_of("TAG");
    argv[n++] = string_of(model->tag);
    for (int i = 0; i < 3 && numbers[i] > 0; i++) {
        argv[n++] = string_of(words[i]);
        argv[n++] = string_of_number(numbers[i]);
    }
    argv[n++] = string_of("BLOB");
    return n;
}

/* Only for `aof-use-rdb-preamble no`. The chunks are copied once in the rewriting child. */
static void aof_rewrite(RedisIO *io, RedisString *key, void *value) {
    const struct model *model = value;
    RedisString **argv = redis.Alloc(sizeof *argv * (16 + model->blob->length / CHUNK + 1));
    size_t n = rewrite_options(model, argv);
    for (size_t at = 0; at < model->blob->length; at += CHUNK) {
        size_t left = model->blob->length - at;
        argv[n++] = redis.CreateString(NULL, model->blob->data + at, left < CHUNK ? left : CHUNK);
    }
    redis.EmitAOF(io, "AI.MODELSTORE", "sv", key, argv, n);
    while (n > 0) redis.FreeString(NULL, argv[--n]);
    redis.Free(argv);
}

static size_t memory_of(RedisKeyOptCtx *ctx, const void *value, size_t sample) {
    const struct model *model = value;
    (void)ctx;
    (void)sample;
    return redis.MallocSize((void *)model) + redis.MallocSize(model->blob) + (model->blob->data ? redis.MallocSize(model->blob->data) : 0);
}

static void digest(RedisDigest *md, void *value) {
    const struct model *model = value;
    redis.DigestAddStringBuffer(md, model->backend, strlen(model->backend));
    redis.DigestAddStringBuffer(md, model->device, strlen(model->device));
    redis.DigestAddStringBuffer(md, model->tag, strlen(model->tag));
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
    model->tag = text_copy(from->tag, strlen(from->tag));
    model->batch_size = from->batch_size;
    model->min_batch_size = from->min_batch_size;
    model->min_batch_timeout = from->min_batch_timeout;
    model->blob = blob_retain(from->blob);
    models_add(model);
    return model;
}

void models_key_moved(RedisCtx *ctx, const char *event, RedisString *name) {
    if (strcmp(event, "rename_to") != 0) return;
    RedisKey *key = redis.OpenKey(ctx, name, REDIS_READ);
    if (key && redis.ModuleTypeGetType(key) == shardqa.model_type) {
        struct model *model = redis.ModuleTypeGetValue(key);
        const char *text = redis.StringPtrLen(name, &model->key_length);
        redis.Free(model->key);
        model->key = text_copy(text, model->key_length);
    }
    if (key) redis.CloseKey(key);
}

int model_type_create(RedisCtx *ctx) {
    RedisTypeMethods methods = {.version = TYPE_METHODS_VERSION,
                                .rdb_load = rdb_load,
                                .rdb_save = rdb_save,
                                .aof_rewrite = aof_rewrite,
                                .digest = digest,
                                .free = model_release,
                                .mem_usage2 = memory_of,
                                .copy2 = copy};
    shardqa.model_type = redis.CreateDataType(ctx, "AI__MODEL", MODEL_ENCODING, &methods);
    return shardqa.model_type ? REDIS_OK : REDIS_ERR;
}
