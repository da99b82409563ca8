/* AI.MODELEXECUTE: inputs go to the worker, outputs come back in a TENSORS frame and are written by AI.TENSORSET, which is also
 * what replicas and the AOF receive: they need no model to stay right. */
#include "execute.h"

#include <stdio.h>
#include <string.h>

#include "call.h"
#include "model.h"
#include "pending.h"
#include "state.h"
#include "tensor.h"
#include "text.h"
#include "worker_link.h"

#define REFUSAL "ERR Cannot run RedisAI command within a transaction or a LUA script"

#define RUN_MAX_US ((uint64_t)1 << 50) /* 35 years: more is no time that a worker took */

struct plan {
    int inputs;  /* index of the first input key in argv */
    int n_inputs;
    int outputs; /* index of the first output key */
    int n_outputs;
    long long timeout_ms;
};

/* INPUTS|OUTPUTS n k… at *at. NULL, or the error. */
static const char *read_keys(RedisString **argv, int argc, int *at, bool outputs, int *first, int *count) {
    long long n;
    if (*at >= argc || !text_is(argv[*at], outputs ? "OUTPUTS" : "INPUTS"))
        return outputs ? "ERR OUTPUTS not specified" : "ERR INPUTS not specified";
    if (*at + 1 >= argc || redis.StringToLongLong(argv[*at + 1], &n) != REDIS_OK)
        return outputs ? "ERR Invalid argument for output_count" : "ERR Invalid argument for input_count";
    if (n < 1) return outputs ? "ERR Output count must be a positive integer" : "ERR Input count must be a positive integer";
    if (n > argc - *at - 2)
        return outputs ? "ERR number of output keys to AI.MODELEXECUTE command does not match the number of given arguments"
                       : "ERR number of input keys to AI.MODELEXECUTE command does not match the number of given arguments";
    *first = *at + 2;
    *count = (int)n;
    *at += 2 + (int)n;
    return NULL;
}

static const char *read_plan(RedisString **argv, int argc, struct plan *plan) {
    int at = 2;
    *plan = (struct plan){0};
    const char *error = read_keys(argv, argc, &at, false, &plan->inputs, &plan->n_inputs);
    if (!error) error = read_keys(argv, argc, &at, true, &plan->outputs, &plan->n_outputs);
    if (error || at == argc) return error;
    if (!text_is(argv[at], "TIMEOUT")) return "ERR Invalid argument";
    if (at + 1 >= argc) return "ERR No value provided for TIMEOUT";
    if (!text_number(argv[at + 1], 1, 1LL << 40, &plan->timeout_ms)) return "ERR Invalid value for TIMEOUT";
    return at + 2 == argc ? NULL : "ERR Invalid argument";
}

static int report_keys(RedisCtx *ctx, RedisString **argv, int argc) {
    struct plan plan;
    if (argc > 1) redis.KeyAtPosWithFlags(ctx, 1, KEY_RO | KEY_ACCESS);
    if (read_plan(argv, argc, &plan) != NULL) return REDIS_OK;
    for (int i = 0; i < plan.n_inputs; i++) redis.KeyAtPosWithFlags(ctx, plan.inputs + i, KEY_RO | KEY_ACCESS);
    for (int i = 0; i < plan.n_outputs; i++) redis.KeyAtPosWithFlags(ctx, plan.outputs + i, KEY_OW | KEY_UPDATE);
    return REDIS_OK;
}

/* What a running execution needs when its outputs come. */
struct execution {
    struct model *model;   /* one reference */
    RedisString **outputs; /* owned keys */
    size_t n_outputs;
    long long samples; /* rows of the first input */
};

static void free_execution(void *data) {
    struct execution *e = data;
    for (size_t i = 0; i < e->n_outputs; i++) redis.FreeString(NULL, e->outputs[i]);
    redis.Free(e->outputs);
    model_release(e->model);
    redis.Free(e);
}

/* The first item: everything but data, in one, so that the worker looks it up whole (docs/frames.md). */
static void add_head(struct frame_writer *w, const struct model *model, const struct plan *plan, struct tensor **tensors) {
    struct buffer head = {0};
    char text[TENSOR_MAX_RANK * 21];
    int length = snprintf(text, sizeof text, "%llu %lld %d", (unsigned long long)model->id, plan->timeout_ms, plan->n_outputs);
    buffer_add(&head, text, (size_t)length);
    for (int i = 0; i < plan->n_inputs; i++) {
        const char *name = tensors[i]->dtype->name;
        shape_text(tensors[i]->shape, tensors[i]->rank, text, sizeof text);
        buffer_add(&head, i == 0 ? " " : ";", 1);
        buffer_add(&head, name, strlen(name));
        buffer_add(&head, " ", 1);
        buffer_add(&head, text, strlen(text));
    }
    frame_item(w, head.data, head.length);
    buffer_free(&head);
}

/* Looks all inputs up before anything is sent. False: the error is replied. */
static bool open_inputs(RedisCtx *ctx, RedisString **argv, const struct plan *plan, struct tensor **tensors) {
    size_t total = FRAME_SPARE;
    for (int i = 0; i < plan->n_inputs; i++) {
        tensors[i] = tensor_open(ctx, argv[plan->inputs + i]);
        if (tensors[i] == NULL) return false;
        total += tensors[i]->bytes + 1024;
    }
    if (total <= FRAME_MAX_PAYLOAD) return true;
    redis.ReplyWithError(ctx, "ERR the input tensors have more than 1 GiB together; split the batch");
    return false;
}

static bool fits(RedisCtx *ctx, const struct model *model, const struct plan *plan) {
    if (model->inputs.count > 0 && model->inputs.count != (size_t)plan->n_inputs)
        redis.ReplyWithError(ctx, "Number of keys given as INPUTS here does not match model definition");
    else if (model->outputs.count > 0 && model->outputs.count != (size_t)plan->n_outputs)
        redis.ReplyWithError(ctx, "Number of keys given as OUTPUTS here does not match model definition");
    else if (model->state == MODEL_FAILED)
        reply_error(ctx, "%s", model->error);
    else
        return true;
    return false;
}

static void send(RedisCtx *ctx, RedisString **argv, const struct plan *plan, struct model *model, struct tensor **tensors) {
    struct frame_writer w;
    struct execution *e = redis.Alloc(sizeof *e);
    *e = (struct execution){.model = model_retain(model), .n_outputs = (size_t)plan->n_outputs};
    e->samples = tensors[0]->rank > 0 ? tensors[0]->shape[0] : 1;
    e->outputs = redis.Alloc(sizeof *e->outputs * e->n_outputs);
    for (size_t i = 0; i < e->n_outputs; i++) e->outputs[i] = redis.HoldString(NULL, argv[plan->outputs + (int)i]);
    struct pending *pending = pending_new(PENDING_EXECUTE);
    pending->data = e;
    pending->free_data = free_execution;
    if (model->state == MODEL_UNSENT && shardqa.link.started) models_send(); /* stored in this very tick */
    frame_begin(&w, FRAME_EXECUTE, pending->id);
    add_head(&w, model, plan, tensors);
    for (int i = 0; i < plan->n_inputs; i++) frame_item(&w, tensors[i]->data, tensors[i]->bytes);
    pending_block(ctx, pending, plan->timeout_ms ? plan->timeout_ms : shardqa.settings.timeout_ms, plan->timeout_ms > 0);
    link_request(&w);
    shardqa.counters.executes++;
}

int ai_modelexecute(RedisCtx *ctx, RedisString **argv, int argc) {
    struct plan plan;
    if (redis.IsKeysPositionRequest(ctx)) return report_keys(ctx, argv, argc);
    if (argc < 8) return redis.WrongArity(ctx);
    const char *error = read_plan(argv, argc, &plan);
    if (error && strcmp(error, "ERR Invalid argument") == 0) {
        size_t length;
        const char *last = redis.StringPtrLen(argv[plan.outputs + plan.n_outputs], &length);
        return reply_error(ctx, "%s: %.*s", error, (int)(length < 128 ? length : 128), last);
    }
    if (error) return redis.ReplyWithError(ctx, error);
    if (!pending_may_block(ctx, REFUSAL)) return REDIS_OK;
    struct model *model = model_open(ctx, argv[1]);
    if (model == NULL || !fits(ctx, model, &plan)) return REDIS_OK;
    struct tensor **tensors = redis.Alloc(sizeof *tensors * (size_t)plan.n_inputs);
    if (open_inputs(ctx, argv, &plan, tensors) && pending_has_room(ctx)) send(ctx, argv, &plan, model, tensors);
    redis.Free(tensors);
    return REDIS_OK;
}

/* ---- the outputs ---- */

struct output {
    const struct dtype *dtype;
    long long shape[TENSOR_MAX_RANK];
    int rank;
    struct frame_bytes data;
};

/* What a TENSORS frame says of its outputs, `FLOAT 1,128;FLOAT 1,128`, and their data. */
struct outputs {
    struct frame_bytes layout; /* what is left of it */
    struct frame_list data;
};

/* The text up to `end` or to the layout's own, which is taken off it. */
static struct frame_bytes next_word(struct frame_bytes *layout, char end) {
    const char *found = memchr(layout->data, end, layout->length);
    struct frame_bytes word = {.data = layout->data, .length = found ? (size_t)(found - layout->data) : layout->length};
    size_t taken = word.length + (found ? 1 : 0);
    layout->data += taken;
    layout->length -= taken;
    return word;
}

static bool read_output(struct outputs *outputs, struct output *o) {
    size_t elements;
    struct frame_bytes shape = next_word(&outputs->layout, ';'), name = next_word(&shape, ' ');
    if (!frame_list_next(&outputs->data, &o->data)) return false;
    o->dtype = dtype_find(name.data, name.length);
    o->rank = shape_parse(shape.data, shape.length, o->shape);
    return o->dtype && o->rank >= 0 && tensor_elements(o->dtype, o->shape, o->rank, &elements) &&
           tensor_data_error(o->dtype, elements, o->data.data, o->data.length) == NULL;
}

static bool write_output(RedisString *key, const struct output *o, char *error, size_t error_size) {
    RedisString *argv[TENSOR_MAX_RANK + 4];
    size_t n = 0;
    argv[n++] = redis.HoldString(NULL, key);
    argv[n++] = redis.CreateString(NULL, o->dtype->name, strlen(o->dtype->name));
    for (int i = 0; i < o->rank; i++) {
        char digits[24];
        shape_text(&o->shape[i], 1, digits, sizeof digits);
        argv[n++] = redis.CreateString(NULL, digits, strlen(digits));
    }
    argv[n++] = redis.CreateString(NULL, "BLOB", 4);
    argv[n++] = redis.CreateString(NULL, o->data.data, o->data.length);
    bool good = call_own("AI.TENSORSET", argv, n, "S", error, error_size);
    while (n > 0) redis.FreeString(NULL, argv[--n]);
    return good;
}

/* All outputs are checked before the first is written. */
static bool read_outputs(struct outputs outputs, size_t count) {
    struct output o;
    while (count-- > 0)
        if (!read_output(&outputs, &o)) return false;
    return outputs.data.left == 0 && outputs.layout.length == 0;
}

static void write_outputs(struct pending *pending, struct outputs outputs) {
    struct execution *e = pending->data;
    char error[512];
    bool good = true;
    for (size_t i = 0; good && i < e->n_outputs; i++) {
        struct output o;
        read_output(&outputs, &o);
        good = write_output(e->outputs[i], &o, error, sizeof error);
    }
    if (good) {
        pending_finish(pending, "+OK\r\n", 5);
    } else {
        e->model->errors++;
        pending_fail(pending, error);
    }
}

bool execute_frame_tensors(const struct frame *frame) {
    struct outputs outputs;
    uint64_t microseconds;
    struct pending *pending = pending_find(frame->id);
    if (!frame_list_open(frame->payload, frame->length, &outputs.data) || !frame_list_u64(&outputs.data, &microseconds) ||
        microseconds > RUN_MAX_US || !frame_list_next(&outputs.data, &outputs.layout))
        return false;
    if (pending == NULL || pending->kind != PENDING_EXECUTE) {
        shardqa.counters.late_replies++;
        return true;
    }
    struct execution *e = pending->data;
    if (outputs.data.left != e->n_outputs) {
        e->model->errors++;
        pending_fail(pending, "ERR the number of OUTPUTS does not match what the model returned");
        return true;
    }
    if (!read_outputs(outputs, e->n_outputs)) return false;
    e->model->calls++;
    e->model->duration_us += (long long)microseconds;
    e->model->samples += e->samples;
    latency_add(&shardqa.execute_latency, redis.MonotonicMicroseconds() - pending->started_us);
    write_outputs(pending, outputs);
    return true;
}

void execute_failed(struct pending *pending, const char *resp, size_t length) {
    struct execution *e = pending->data;
    e->model->errors++;
    e->model->calls++;
    pending_finish(pending, resp, length);
}
