/* AI.MODELEXECUTE, MODELRUN, SCRIPTEXECUTE and SCRIPTRUN: inputs go to the worker, outputs come
 * back in a TENSORS frame and are written by AI.TENSORSET, which is also what replicas and the
 * AOF receive: they need no model to stay right. */
#include "ai/execute.h"

#include <stdio.h>
#include <string.h>

#include "ai/ai_state.h"
#include "ai/model.h"
#include "ai/outputs.h"
#include "ai/run_plan.h"
#include "ai/script.h"
#include "ai/tensor.h"
#include "core/pending.h"
#include "core/rights.h"
#include "core/state.h"
#include "core/text.h"
#include "core/worker_link.h"

#define RUN_MAX_US ((uint64_t)1 << 50) /* 35 years: more is no time that a worker took */

/* ---- keys ---- */

static void report_span(RedisCtx *ctx, const struct span *span, int flags) {
    for (int i = 0; i < span->count; i++) redis.KeyAtPosWithFlags(ctx, span->first + i, flags);
}

/* COMMAND GETKEYS, and what ACL and cluster check. */
static int report_keys(RedisCtx *ctx, RedisString **argv, int argc) {
    struct run_plan plan;
    char error[RUN_ERROR];
    if (argc > 1) redis.KeyAtPosWithFlags(ctx, 1, KEY_RO | KEY_ACCESS);
    if (!run_plan_read(argv, 0, argc, false, &plan, error)) return REDIS_OK;
    report_span(ctx, &plan.keys, KEY_RW | KEY_ACCESS | KEY_UPDATE); /* a script may do anything with them */
    for (int i = 0; i < run_plan_inputs(&plan); i++)
        redis.KeyAtPosWithFlags(ctx, run_plan_input(&plan, i), KEY_RO | KEY_ACCESS);
    report_span(ctx, &plan.outputs, KEY_OW | KEY_UPDATE);
    return REDIS_OK;
}

/* ---- the request ---- */

/* What a running execution needs when its outputs come. */
struct execution {
    struct model *model;   /* one reference */
    RedisString **outputs; /* owned keys */
    size_t n_outputs;
    long long samples; /* rows of the first input */
};

/* When the run is over, however it ended. */
static void free_execution(void *data) {
    struct execution *e = data;
    for (size_t i = 0; i < e->n_outputs; i++) redis.FreeString(NULL, e->outputs[i]);
    redis.Free(e->outputs);
    model_release(e->model);
    redis.Free(e);
}

/* AI.INFO counts a run that nobody waited for as an error. */
static void count_timeout(struct pending *pending) {
    struct execution *e = pending->data;
    e->model->calls++;
    e->model->errors++;
}

/* `TYPE shape;TYPE shape` of all inputs. */
static void add_layout(struct buffer *to, struct tensor **tensors, int count) {
    for (int i = 0; i < count; i++) {
        if (i > 0) buffer_add(to, ";", 1);
        tensor_add_layout(to, tensors[i]);
    }
}

/* The first item: everything but data, in one, so that the worker looks it up whole
 * (docs/frames.md). */
static void add_head(struct frame_writer *w, const struct model *model, const struct run_plan *plan,
                     struct tensor **tensors) {
    struct buffer head = {0};
    char text[64];
    int length = snprintf(text, sizeof text, "%llu %lld %d ", (unsigned long long)model->id, plan->timeout_ms,
                          plan->outputs.count);
    buffer_add(&head, text, (size_t)length);
    add_layout(&head, tensors, run_plan_inputs(plan));
    frame_item(w, head.data, head.length);
    buffer_free(&head);
}

/* Looks all inputs up before anything is sent. False: the error is replied. */
static bool open_inputs(RedisCtx *ctx, RedisString **argv, const struct run_plan *plan, struct tensor **tensors) {
    size_t total = FRAME_SPARE;
    for (int i = 0; i < run_plan_inputs(plan); i++) {
        tensors[i] = tensor_open(ctx, argv[run_plan_input(plan, i)]);
        if (tensors[i] == NULL) return false;
        total += tensors[i]->bytes + 1024;
    }
    total += text_items_size(argv + plan->keys.first, plan->keys.count) +
             text_items_size(argv + plan->args.first, plan->args.count);
    if (total <= FRAME_MAX_PAYLOAD) return true;
    redis.ReplyWithError(ctx, "ERR the input tensors have more than 1 GiB together; split the batch");
    return false;
}

/* Why this model can't be run now, or NULL. */
const char *execute_refusal(const struct model *model, int inputs, int outputs) {
    bool counts = model->kind == KIND_MODEL;
    if (counts && model->inputs.count > 0 && model->inputs.count != (size_t)inputs)
        return "Number of keys given as INPUTS here does not match model definition";
    if (counts && model->outputs.count > 0 && model->outputs.count != (size_t)outputs)
        return "Number of keys given as OUTPUTS here does not match model definition";
    if (model->state == MODEL_FAILED || model->state == MODEL_BARRED) return model->error;
    if (model->state == MODEL_UNSENT && model->blame + model->load_kills > 0 && shardqa.link.started)
        return "TRYAGAIN the worker ended while it ran this model, which is loaded after all others; try again";
    return NULL;
}

/* An error, or the +TIMEDOUT of a run whose deadline passed in the worker's queue. */
static void fail_execution(struct pending *pending, const char *resp, size_t length) {
    struct execution *e = pending->data;
    e->model->errors++;
    e->model->calls++;
    if (resp[0] == '-' || (length == 11 && memcmp(resp, "+TIMEDOUT\r\n", 11) == 0))
        pending_finish(pending, resp, length);
    else
        pending_fail(pending, "ERR the worker answered a run with neither outputs nor an error");
}

/* The pending request, with all that is needed when the outputs come. */
static struct pending *new_execution(RedisString **argv, const struct run_plan *plan, struct model *model,
                                     struct tensor **tensors) {
    struct execution *e = redis.Alloc(sizeof *e);
    *e = (struct execution){.model = model_retain(model), .n_outputs = (size_t)plan->outputs.count};
    e->samples = run_plan_inputs(plan) > 0 && tensors[0]->rank > 0 ? tensors[0]->shape[0] : 1;
    e->outputs = redis.Alloc(sizeof *e->outputs * (e->n_outputs + 1));
    for (size_t i = 0; i < e->n_outputs; i++)
        e->outputs[i] = redis.HoldString(NULL, argv[plan->outputs.first + (int)i]);
    struct pending *pending = pending_new();
    pending->data = e;
    pending->free_data = free_execution;
    pending->answer = FRAME_TENSORS;
    pending->on_reply = fail_execution;
    pending->on_timeout = count_timeout;
    return pending;
}

/* Blocks the client and hands the frame over. */
static void send(RedisCtx *ctx, RedisString **argv, const struct run_plan *plan, struct model *model,
                 struct tensor **tensors) {
    struct frame_writer w;
    struct pending *pending = new_execution(argv, plan, model, tensors);
    if (model->state == MODEL_UNSENT && shardqa.link.started) models_send(); /* stored in this very tick */
    frame_begin(&w, plan->script ? FRAME_SCRIPT : FRAME_EXECUTE, pending->id);
    add_head(&w, model, plan, tensors);
    if (plan->script) {
        pending->user = rights_current_user(ctx); /* scripts call Redis as the user who runs them */
        run_plan_add_call(&w, argv, plan);
    }
    for (int i = 0; i < run_plan_inputs(plan); i++) frame_item(&w, tensors[i]->data, tensors[i]->bytes);
    pending_block(ctx, pending, plan->timeout_ms ? plan->timeout_ms : shardqa.arguments.timeout_ms,
                  plan->timeout_ms > 0);
    link_request(&w);
    ai.executes++;
}

/* A wrong number of inputs is told before what is wrong behind them, as in RedisAI. */
static int refuse_plan(RedisCtx *ctx, RedisString **argv, const struct run_plan *plan, const char *error) {
    if (plan->script || !plan->counted || plan->inputs.count == 0) return redis.ReplyWithError(ctx, error);
    const struct model *model = model_open(ctx, argv[plan->key]);
    if (model == NULL) return REDIS_OK;
    bool fit = model->inputs.count == 0 || model->inputs.count == (size_t)plan->inputs.count;
    return redis.ReplyWithError(ctx,
                                fit ? error : "Number of keys given as INPUTS here does not match model definition");
}

/* AI.MODELEXECUTE key INPUTS count key ... OUTPUTS count key ... [TIMEOUT ms]
 * AI.MODELRUN key [TIMEOUT ms] INPUTS key ... OUTPUTS key ...
 * AI.SCRIPTEXECUTE key function [KEYS count key ...] [INPUTS count key ...] [ARGS count word
 *     ...] [OUTPUTS count key ...] [TIMEOUT ms]
 * AI.SCRIPTRUN key function [TIMEOUT ms] [INPUTS key ...] [OUTPUTS key ...] */
int ai_execute(RedisCtx *ctx, RedisString **argv, int argc) {
    struct run_plan plan;
    char error[RUN_ERROR];
    if (redis.IsKeysPositionRequest(ctx)) return report_keys(ctx, argv, argc);
    run_plan_begin(argv[0], &plan);
    if (argc < (plan.script ? plan.counted ? 5 : 3 : plan.counted ? 8 : 3)) return redis.WrongArity(ctx);
    if (!run_plan_read(argv, 0, argc, false, &plan, error)) return refuse_plan(ctx, argv, &plan, error);
    if (!pending_may_block(ctx, AI_REFUSAL)) return REDIS_OK;
    struct model *model = plan.script ? script_open(ctx, argv[plan.key]) : model_open(ctx, argv[plan.key]);
    if (model == NULL) return REDIS_OK;
    const char *refusal = execute_refusal(model, run_plan_inputs(&plan), plan.outputs.count);
    if (refusal) return reply_error(ctx, "%s", refusal);
    struct tensor **tensors = redis.Alloc(sizeof *tensors * (size_t)(run_plan_inputs(&plan) + 1));
    if (open_inputs(ctx, argv, &plan, tensors) && pending_has_room(ctx)) send(ctx, argv, &plan, model, tensors);
    redis.Free(tensors);
    return REDIS_OK;
}

/* ---- the outputs ---- */

/* All outputs to their keys, then the reply. */
static void write_outputs(struct pending *pending, struct outputs outputs) {
    struct execution *e = pending->data;
    char error[512];
    if (outputs_write(&outputs, e->outputs, e->n_outputs, error, sizeof error)) {
        pending_finish(pending, "+OK\r\n", 5);
    } else {
        e->model->errors++;
        pending_fail(pending, error);
    }
}

/* TENSORS: the outputs of a run, checked before any key is touched. */
bool execute_frame_tensors(const struct frame *frame) {
    struct outputs outputs;
    uint64_t microseconds;
    /* a frame that breaks the form ends the worker */
    struct pending *pending = pending_find(frame->id);
    if (!frame_list_open(frame->payload, frame->length, &outputs.data) ||
        !frame_list_u64(&outputs.data, &microseconds) || microseconds > RUN_MAX_US ||
        !frame_list_next(&outputs.data, &outputs.layout))
        return false;
    /* the client has left or timed out: nothing is written */
    if (pending == NULL || pending->answer != FRAME_TENSORS) {
        shardqa.counters.late_replies++;
        return true;
    }
    struct execution *e = pending->data;
    /* wrong outputs are the fault of this model or run, not of the worker */
    if (outputs.data.left != e->n_outputs) {
        e->model->errors++;
        e->model->calls++;
        pending_fail(pending, "ERR the number of OUTPUTS does not match what the model returned");
        return true;
    }
    if (!outputs_are_valid(outputs, e->n_outputs)) {
        shardqa.counters.unreadable_replies++;
        e->model->errors++;
        pending_fail(pending, "ERR the outputs that the worker sent contradict their types and shapes");
        return true;
    }
    /* for AI.INFO and INFO latency */
    e->model->calls++;
    e->model->duration_us += (long long)microseconds;
    e->model->samples += e->samples;
    latency_add(&ai.execute_latency, redis.MonotonicMicroseconds() - pending->started_us);
    write_outputs(pending, outputs);
    return true;
}
