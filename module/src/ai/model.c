/* The life of models: in memory, and what the worker has of them. model_type.c writes them to
 * RDB and AOF, model_commands.c has the commands. */
#include "ai/model_internal.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "ai/ai_state.h"
#include "core/pending.h"
#include "core/resp.h"
#include "core/state.h"
#include "core/text.h"
#include "core/worker_link.h"

struct ai_state ai;

enum {
    NAMES_SENT = 256 << 10, /* bytes, past which none are: only TF needs them, and a frame is bounded */
    BLAME_MOST = 4,         /* points: a death of the worker gives 2, or 1 where something else ran as well */
    LOAD_KILLS_MOST = 4
};

/* ---- models ---- */

unsigned backend_bit(const char *name) {
    static const char *const names[] = {"TF", "TFLITE", "TORCH", "ONNX"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(name, names[i]) == 0) return 1u << i;
    return 0;
}

/* Not in the list yet: models_add puts it there. */
struct model *model_new(const char *key, size_t key_length) {
    struct model *model = redis.Calloc(1, sizeof *model);
    atomic_init(&model->references, 1);
    model->id = ++ai.last_model;
    model->key = text_copy(key, key_length);
    model->key_length = key_length;
    return model;
}

/* Any thread. */
struct model *model_retain(struct model *model) {
    atomic_fetch_add(&model->references, 1);
    return model;
}

/* After the last reference. */
void model_destroy(struct model *model) {
    redis.Free(model->key);
    redis.Free(model->backend);
    redis.Free(model->device);
    redis.Free(model->tag);
    redis.Free(model->error);
    words_free(&model->padded);
    words_free(&model->inputs);
    words_free(&model->outputs);
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
    model->next = ai.models;
    ai.models = model_retain(model);
    ai.model_count++;
    if (model->state == MODEL_UNSENT) ai.models_unsent++;
}

/* MODELDROP: nobody will ask for this model. */
void model_send_drop(const struct model *model) {
    struct frame_writer w;
    frame_begin(&w, FRAME_MODELDROP, 0);
    frame_number(&w, (long long)model->id);
    link_send(&w, NULL);
}

/* The worker frees the network, unless it never had it. */
static void drop_from_worker(struct model *model) {
    if (model->state == MODEL_UNSENT)
        ai.models_unsent--;
    else if (model->state != MODEL_BARRED)
        model_send_drop(model);
}

/* Models that only the list holds are in no key and no run any more. */
void models_cron(void) {
    struct model **at = &ai.models;
    while (*at) {
        struct model *model = *at;
        if (atomic_load(&model->references) > 1) {
            at = &model->next;
            continue;
        }
        *at = model->next;
        ai.model_count--;
        drop_from_worker(model);
        model_release(model);
    }
}

/* ---- and the worker ---- */

/* What AI.MODELEXECUTE replies from here on. */
void model_set_error(struct model *model, enum model_state state, const char *error) {
    model->state = state;
    redis.Free(model->error);
    model->error = text_copy(error, strlen(error));
}

/* Names as one item. Too many are left out: see NAMES_SENT. */
static void add_names(struct frame_writer *w, const struct words *names) {
    struct frame_writer list; /* a list within the list */
    size_t bytes = 0;
    frame_begin(&list, FRAME_MODELLOAD, 0);
    for (size_t i = 0; i < names->count; i++) bytes += strlen(names->items[i]) + 4;
    for (size_t i = 0; bytes < NAMES_SENT && i < names->count; i++) frame_text(&list, names->items[i]);
    frame_end(&list);
    frame_item(w, list.buffer.data + FRAME_HEADER, list.buffer.length - FRAME_HEADER);
    buffer_free(&list.buffer);
}

/* MODELLOAD: the file itself goes straight from the key's memory. */
void model_send(struct model *model, uint64_t request) {
    struct frame_writer w;
    frame_begin(&w, FRAME_MODELLOAD, request);
    frame_number(&w, (long long)model->id);
    frame_text(&w, model->kind == KIND_SCRIPT ? "SCRIPT" : model->backend);
    frame_text(&w, model->device);
    frame_item(&w, model->tag, model->tag_length);
    frame_number(&w, model->batch_size);
    frame_number(&w, model->min_batch_size);
    frame_number(&w, model->min_batch_timeout);
    /* RENAME and COPY can make it longer */
    frame_item(&w, model->key, model->key_length <= MODEL_MAX_TEXT ? model->key_length : 0);
    add_names(&w, &model->inputs);
    add_names(&w, &model->outputs);
    add_names(&w, &model->padded);
    frame_text(&w, model->blob->file ? model->blob->file->path : "");
    frame_item_elsewhere(&w, model->blob->file ? 0 : model->blob->length);
    link_send(&w, model->blob->file ? NULL : model->blob);
}

/* From here on the worker is never given it. */
static void bar(struct model *model, const char *error) {
    model_set_error(model, MODEL_BARRED, error);
    redis.Log(shardqa.ctx, "warning", "the model in key '%.*s' is in quarantine: %s",
              (int)(model->key_length < 256 ? model->key_length : 256), model->key, error);
}

/* The worker ended while it ran this model. Twice is enough for quarantine. */
void model_blame(uint64_t id, enum activity_end end, bool alone) {
    struct model *model = ai.models;
    while (model && model->id != id) model = model->next;
    if (model == NULL || model->state == MODEL_BARRED) return;
    if (end == ENDED_BY_WORK) model->blame += alone ? 2 : 1;
    if (end == ENDED_BY_KILL && model->state == MODEL_SENT) model->load_kills++;
    if (model->blame >= BLAME_MOST)
        bar(model,
            "ERR the model ended the worker twice and is in quarantine; store it again with AI.MODELSTORE, or delete "
            "it");
    else if (model->load_kills >= LOAD_KILLS_MOST)
        bar(model,
            "ERR the worker was killed whenever it loaded this model, perhaps for want of memory; store it again with "
            "AI.MODELSTORE, or delete it");
}

/* A new worker has no models. */
void models_forget_worker(void) {
    ai.models_unsent = 0;
    for (struct model *model = ai.models; model; model = model->next) {
        if (model->state == MODEL_BARRED) continue;
        model->state = MODEL_UNSENT;
        ai.models_unsent++;
    }
}

/* By the number that frames name it by. */
static struct model *find_model(long long id) {
    for (struct model *model = ai.models; model; model = model->next)
        if (model->id == (uint64_t)id) return model;
    return NULL;
}

static void count(long long *total, long long more) {
    if (__builtin_add_overflow(*total, more, total)) *total = LLONG_MAX;
}

/* RAN: runs by functions and scripts. */
bool models_frame_ran(const struct frame *frame) {
    struct frame_list list;
    return frame_list_open(frame->payload, frame->length, &list) && models_count(list);
}

/* All entries are checked before any is counted. */
bool models_count(struct frame_list list) {
    long long id, calls, us, samples, errors;
    while (list.left > 0) {
        if (!frame_list_number(&list, &id) || !frame_list_number(&list, &calls) || !frame_list_number(&list, &us) ||
            !frame_list_number(&list, &samples) || !frame_list_number(&list, &errors))
            return false;
        if (calls < 0 || us < 0 || samples < 0 || errors < 0) return false;
        struct model *model = find_model(id);
        if (model == NULL) continue; /* deleted meanwhile */
        count(&model->calls, calls);
        count(&model->duration_us, us);
        count(&model->samples, samples);
        count(&model->errors, errors);
    }
    return true;
}

/* An array of strings out of the worker's reply. */
static bool read_names(const char **at, const char *end, struct words *names) {
    struct resp_item item;
    if (!resp_next(at, end, &item) || item.kind != '*' || item.children > MODEL_MAX_NAMES) return false;
    names->items = redis.Calloc((size_t)item.children + 1, sizeof *names->items);
    for (long long left = item.children; left > 0; left--) {
        struct resp_item name;
        if (!resp_next(at, end, &name) || name.text == NULL || name.children > 0 || name.length > MODEL_MAX_TEXT)
            return false;
        names->items[names->count++] = text_copy(name.text, name.length);
    }
    return true;
}

/* Fills inputs and outputs from `*2` of two arrays; false, and `error` filled, when it is
 * anything else. What load_names would refuse must be refused here: an RDB that can't be read
 * keeps Redis from starting. `keep`: only looks whether it could. */
static bool take_names(struct model *model, const char *resp, size_t length, bool keep, char *error,
                       size_t error_size) {
    const char *at = resp, *end = resp + length;
    struct resp_item item;
    struct words inputs = {0}, outputs = {0};
    if (!resp_next(&at, end, &item) || item.kind == '-') {
        snprintf(error, error_size, "%.*s", (int)(item.length < 900 ? item.length : 900), item.text);
        return false;
    }
    bool named =
        item.kind == '*' && item.children == 2 && read_names(&at, end, &inputs) && read_names(&at, end, &outputs);
    if (named && !keep) {
        words_free(&model->inputs);
        words_free(&model->outputs);
        model->inputs = inputs;
        model->outputs = outputs;
        return true;
    }
    words_free(&inputs);
    words_free(&outputs);
    if (!named) /* the worker does not speak our protocol */
        snprintf(error, error_size,
                 "ERR the worker did not name the model's inputs and outputs, at most %d of at most %d bytes each",
                 MODEL_MAX_NAMES, MODEL_MAX_TEXT);
    return named;
}

/* The worker has answered a MODELLOAD. `keep`: the names that were stored or replicated stay. */
bool model_loaded(struct model *model, const char *resp, size_t length, bool keep, char *error, size_t error_size) {
    if (take_names(model, resp, length, keep, error, error_size)) {
        model->state = MODEL_LOADED;
        ai.backends |= backend_bit(model->backend);
        model->load_kills = 0;
        return true;
    }
    model_set_error(model, MODEL_FAILED, error);
    return false;
}

/* What is stored stays as it was replicated, whatever another worker calls it; a model that was
 * stored in a transaction has no names before its first load. */
static void finish_reload(struct pending *pending, const char *resp, size_t length) {
    char error[1024];
    struct model *model = pending->data;
    bool named = model->kind == KIND_SCRIPT || model->inputs.count > 0 || model->outputs.count > 0;
    if (!model_loaded(model, resp, length, named, error, sizeof error))
        redis.Log(shardqa.ctx, "warning", "the worker refused the model in key '%.*s': %s", (int)model->key_length,
                  model->key, error);
    pending_free(pending);
}

/* ---- a new worker ---- */

/* The worker has answered, or has gone. */
static void reload_ended(void *data) {
    struct model *model = data;
    struct pending *awaited = pending_find(model->awaited);
    if (awaited) pending_finish(awaited, "", 0);
    ai.models_loading--;
    model_release(model);
}

/* After a start of the worker; the answer goes to finish_reload. */
static void send_anew(struct model *model) {
    struct pending *pending = pending_new();
    pending->data = model_retain(model);
    pending->free_data = reload_ended;
    pending->on_reply = finish_reload;
    model->state = MODEL_SENT;
    ai.models_unsent--;
    ai.models_loading++;
    model_send(model, pending->id);
}

/* One that may have killed a worker is loaded alone, after all others: when the worker dies
 * then, it was that one. */
void models_send(void) {
    struct model *suspect = NULL;
    long long suspects = 0;
    models_cron(); /* an append only file may have stored and deleted some */
    for (struct model *model = ai.models; model && ai.models_unsent > suspects; model = model->next) {
        if (model->state != MODEL_UNSENT) continue;
        if (model->blame == 0 && model->load_kills == 0) {
            send_anew(model);
        } else {
            suspect = model;
            suspects++;
        }
    }
    if (suspect && ai.models_loading == 0 && shardqa.link.state == LINK_READY) send_anew(suspect);
}
