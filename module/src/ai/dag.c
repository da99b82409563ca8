/* AI.DAGEXECUTE, AI.DAGRUN and their read-only forms.
 *
 * The whole graph goes to the worker in one frame: tensors to load, operations with their
 * models' ids, names to persist. Everything that can be wrong in the command is found before, so
 * an error here means that nothing ran. The worker keeps the local scope, runs what depends on
 * nothing unfinished side by side, and answers with all replies and the persisted tensors at
 * once. */
#include "ai/dag.h"

#include <stdio.h>
#include <string.h>

#include "ai/ai_state.h"
#include "ai/execute.h"
#include "ai/model.h"
#include "ai/outputs.h"
#include "ai/run_plan.h"
#include "ai/script.h"
#include "ai/tensor.h"
#include "core/pending.h"
#include "core/resp.h"
#include "core/rights.h"
#include "core/state.h"
#include "core/text.h"
#include "core/worker_link.h"

#define TOO_LARGE "ERR the tensors of the DAG have more than 1 GiB together; split it"

struct header {
    bool read_only; /* AI.DAGEXECUTE_RO, AI.DAGRUN_RO */
    bool deprecated; /* AI.DAGRUN: LOAD, PERSIST and ROUTING may all be absent */
    struct span load; /* names in argv, as the next */
    struct span persist;
    int routing; /* index in argv; 0: none */
    long long timeout_ms; /* 0: none was given */
    int first; /* index of the first |> */
};

/* What a running DAG needs when its answer comes. */
struct dag {
    struct model **models; /* one reference each: they must outlive the run */
    size_t n_models;
    RedisString **persist; /* owned keys */
    size_t n_persist;
};

/* One command on its way into a frame. */
struct builder {
    RedisCtx *ctx; /* of the client; borrowed, as are the next */
    RedisString **argv;
    int argc;
    struct header header;
    struct frame_writer w; /* its buffer is owned until the frame is sent */
    struct dag *dag;       /* owned until the pending has it */
    RedisDict *scope;      /* names that hold a tensor so far */
    char error[RUN_ERROR]; /* what the client is replied where building failed */
};

/* Keeps the error for the reply. Always false, for `return fail(…)`. */
static bool fail(struct builder *b, const char *error) {
    snprintf(b->error, sizeof b->error, "%s", error);
    return false;
}

static bool ends_operation(const RedisString *word) { return text_is(word, "|>"); }

/* ---- the header ---- */

/* `n name …` behind LOAD or PERSIST. NULL, or the error. */
static const char *read_span(RedisString **argv, int argc, int *at, bool persist, struct span *span) {
    long long n;
    if (*at + 1 >= argc)
        return persist ? "ERR missing arguments after PERSIST keyword in DAG command"
                       : "ERR missing arguments after LOAD keyword in DAG command";
    if (redis.StringToLongLong(argv[*at], &n) != REDIS_OK || n < 1)
        return persist ? "ERR invalid or negative value found in number of keys to PERSIST"
                       : "ERR invalid or negative value found in number of keys to LOAD";
    if (n > argc - *at - 1)
        return persist
                   ? "ERR number of keys to PERSIST after DAG execution does not match the number of given arguments"
                   : "ERR number of keys to LOAD into DAG does not match the number of given arguments";
    *span = (struct span){.first = *at + 1, .count = (int)n};
    *at += 1 + (int)n;
    return NULL;
}

/* One word before the first |>, with what belongs to it. */
static bool read_option(RedisString **argv, int argc, int *at, struct header *h, char *error) {
    const char *wrong = NULL;
    RedisString *word = argv[(*at)++];
    if (text_is(word, "LOAD") && h->load.count == 0) {
        wrong = read_span(argv, argc, at, false, &h->load);
    } else if (text_is(word, "PERSIST") && h->persist.count == 0) {
        wrong = h->read_only ? "ERR PERSIST cannot be specified in a read-only DAG"
                             : read_span(argv, argc, at, true, &h->persist);
    } else if (text_is(word, "ROUTING") && h->routing == 0) {
        if (*at >= argc) wrong = "ERR Missing ROUTING value";
        h->routing = (*at)++;
    } else if (text_is(word, "TIMEOUT") && h->timeout_ms == 0) {
        if (*at >= argc)
            wrong = "ERR No value provided for TIMEOUT";
        else if (!text_number(argv[(*at)++], 1, 1LL << 40, &h->timeout_ms))
            wrong = "ERR Invalid value for TIMEOUT";
    } else {
        size_t length;
        const char *text = redis.StringPtrLen(word, &length);
        snprintf(error, RUN_ERROR, "ERR Invalid DAG command. Unexpected argument:  %.*s",
                 (int)(length < 128 ? length : 128), text);
        return false;
    }
    if (wrong) snprintf(error, RUN_ERROR, "%s", wrong);
    return wrong == NULL;
}

/* Everything before the first |>. */
static bool read_header(RedisString **argv, int argc, struct header *h, char *error) {
    int at = 1;
    bool run = text_is(argv[0], "AI.DAGRUN"), run_ro = text_is(argv[0], "AI.DAGRUN_RO");
    *h = (struct header){.deprecated = run || run_ro, .read_only = run_ro || text_is(argv[0], "AI.DAGEXECUTE_RO")};
    while (at < argc && !ends_operation(argv[at]))
        if (!read_option(argv, argc, &at, h, error)) return false;
    h->first = at;
    bool placed = h->load.count > 0 || h->persist.count > 0 || h->routing > 0;
    if (placed || h->deprecated) return true;
    snprintf(
        error, RUN_ERROR,
        "ERR AI.DAGEXECUTE and AI.DAGEXECUTE_RO commands must contain at least one out of ROUTING, LOAD, PERSIST "
        "keywords");
    return false;
}

/* ---- the scope ---- */

/* From here on the name holds a tensor. */
static void scope_add(struct builder *b, RedisString *name) {
    size_t length;
    const char *text = redis.StringPtrLen(name, &length);
    redis.DictReplaceC(b->scope, (void *)text, length, b);
}

/* Whether an operation may take this name as its input. */
static bool scope_has(struct builder *b, RedisString *name) {
    size_t length;
    const char *text = redis.StringPtrLen(name, &length);
    return redis.DictGetC(b->scope, (void *)text, length, NULL) != NULL;
}

/* Name, layout and data. The name is in scope afterwards. */
static bool add_tensor(struct builder *b, RedisString *name, const struct tensor *tensor) {
    struct buffer layout = {0};
    if (b->w.buffer.length + tensor->bytes > FRAME_MAX_PAYLOAD - FRAME_SPARE) return fail(b, TOO_LARGE);
    text_item(&b->w, name);
    tensor_add_layout(&layout, tensor);
    frame_item(&b->w, layout.data, layout.length);
    buffer_free(&layout);
    frame_item(&b->w, tensor->data, tensor->bytes);
    scope_add(b, name);
    return true;
}

/* ---- operations: argv[start] is the command's name, argv[end] the next |> or the end ---- */

/* AI.TENSORSET: its tensor travels inside the frame. */
static bool add_set(struct builder *b, int start, int end) {
    const char *error;
    if (end - start < 4) return fail(b, "ERR wrong number of arguments for 'AI.TENSORSET' command");
    struct tensor *tensor = tensor_read(b->argv + start, end - start, &error);
    if (tensor == NULL) {
        snprintf(b->error, sizeof b->error, "%s%s",
                 strncmp(error, "ERR ", 4) && strncmp(error, "OOM ", 4) ? "ERR " : "", error);
        return false;
    }
    frame_text(&b->w, "set");
    bool good = add_tensor(b, b->argv[start + 1], tensor);
    tensor_free(tensor);
    return good;
}

/* AI.TENSORGET: the worker makes its reply. */
static bool add_get(struct builder *b, int start, int end) {
    int format;
    if (end - start < 2 || end - start > 4) return fail(b, "ERR wrong number of arguments for 'AI.TENSORGET' command");
    const char *error = tensor_read_format(b->argv + start, end - start, &format);
    if (error) return fail(b, error);
    if (!scope_has(b, b->argv[start + 1])) return fail(b, "ERR INPUT key cannot be found in DAG");
    frame_text(&b->w, "get");
    text_item(&b->w, b->argv[start + 1]);
    frame_number(&b->w, format);
    return true;
}

/* The model or script of a key, or NULL and the error. */
static struct model *open_model(struct builder *b, RedisString *name, bool script) {
    const char *error;
    struct model *model = script ? value_find(b->ctx, name, ai.script_type, "ERR script key is empty", &error)
                                 : value_find(b->ctx, name, ai.model_type, "ERR model key is empty", &error);
    if (model == NULL) fail(b, error);
    return model;
}

/* Holds the model until the run is over, also if its key is deleted meanwhile. */
static void keep_model(struct dag *dag, struct model *model) {
    dag->models = redis.Realloc(dag->models, sizeof *dag->models * (dag->n_models + 1));
    dag->models[dag->n_models++] = model_retain(model);
}

/* Which commands each of the four forms of a DAG takes. */
static const char *kind_refusal(const struct builder *b, const struct run_plan *plan) {
    if (!plan->counted && !b->header.deprecated)
        return plan->script ? "ERR Deprecated AI.SCRIPTRUN cannot be used in AI.DAGEXECUTE command"
                            : "ERR Deprecated AI.MODELRUN cannot be used in AI.DAGEXECUTE command";
    if (plan->counted && b->header.deprecated)
        return plan->script ? "ERR AI.SCRIPTEXECUTE cannot be used in a deprecated AI.DAGRUN command"
                            : "ERR AI.MODELEXECUTE cannot be used in a deprecated AI.DAGRUN command";
    return plan->script && b->header.read_only ? "ERR AI.SCRIPTEXECUTE command cannot be specified in a read-only DAG"
                                               : NULL;
}

/* A model or a script. Its inputs must be in scope by now; its outputs are afterwards. */
static bool add_run(struct builder *b, int start, int end) {
    struct run_plan plan;
    if (!run_plan_begin(b->argv[start], &plan)) return fail(b, "ERR Unsupported command within DAG");
    const char *refusal = kind_refusal(b, &plan);
    if (refusal) return fail(b, refusal);
    if (!run_plan_read(b->argv, start, end, true, &plan, b->error)) return false;
    /* what can't be run now refuses the whole graph */
    struct model *model = open_model(b, b->argv[plan.key], plan.script);
    if (model == NULL) return false;
    refusal = execute_refusal(model, run_plan_inputs(&plan), plan.outputs.count);
    if (refusal) return fail(b, refusal);
    keep_model(b->dag, model);
    /* the operation as docs/frames.md has it, under DAG */
    frame_text(&b->w, plan.script ? "script" : "model");
    frame_number(&b->w, (long long)model->id);
    if (plan.script) run_plan_add_call(&b->w, b->argv, &plan);
    frame_number(&b->w, run_plan_inputs(&plan));
    /* inputs are names of the scope, never keys */
    for (int i = 0; i < run_plan_inputs(&plan); i++) {
        RedisString *name = b->argv[run_plan_input(&plan, i)];
        if (!scope_has(b, name)) return fail(b, "ERR INPUT key cannot be found in DAG");
        text_item(&b->w, name);
    }
    run_plan_add_words(&b->w, b->argv, &plan.outputs);
    for (int i = 0; i < plan.outputs.count; i++) scope_add(b, b->argv[plan.outputs.first + i]);
    return true;
}

/* What stands between two |>. */
static bool add_operation(struct builder *b, int start, int end) {
    if (start == end) return fail(b, "ERR DAG is empty");
    if (text_is(b->argv[start], "AI.TENSORSET")) return add_set(b, start, end);
    if (text_is(b->argv[start], "AI.TENSORGET")) return add_get(b, start, end);
    return add_run(b, start, end);
}

/* The next |>, or the end of the command. */
static int operation_end(RedisString **argv, int argc, int at) {
    while (at < argc && !ends_operation(argv[at])) at++;
    return at;
}

static bool add_operations(struct builder *b) {
    int count = 0;
    for (int i = b->header.first; i < b->argc; i++) count += ends_operation(b->argv[i]);
    if (count == 0) return fail(b, "ERR DAG is empty");
    frame_number(&b->w, count);
    for (int at = b->header.first; at < b->argc;) {
        int end = operation_end(b->argv, b->argc, at + 1);
        if (!add_operation(b, at + 1, end)) return false;
        at = end;
    }
    return true;
}

/* ---- what comes in, and what stays ---- */

/* Tensors that LOAD reads from keys. */
static bool add_loads(struct builder *b) {
    const struct span *load = &b->header.load;
    frame_number(&b->w, load->count);
    for (int i = 0; i < load->count; i++) {
        const char *error;
        RedisString *name = b->argv[load->first + i];
        struct tensor *tensor = value_find(b->ctx, name, ai.tensor_type,
                                           "ERR tensor key is empty or in a different shard", &error);
        if (tensor == NULL) return fail(b, error);
        if (!add_tensor(b, name, tensor)) return false;
    }
    return true;
}

/* Names that PERSIST writes to keys when all has run. */
static bool add_persists(struct builder *b) {
    const struct span *persist = &b->header.persist;
    RedisDict *seen = redis.CreateDict(NULL);
    bool good = true;
    b->dag->persist = redis.Alloc(sizeof *b->dag->persist * (size_t)(persist->count + 1));
    for (int i = 0; good && i < persist->count; i++) {
        size_t length;
        RedisString *name = b->argv[persist->first + i];
        const char *text = redis.StringPtrLen(name, &length);
        if (redis.DictSetC(seen, (void *)text, length, b) != REDIS_OK)
            good = fail(b, "ERR PERSIST keys must be unique");
        else if (!scope_has(b, name))
            good = fail(b, "ERR PERSIST key cannot be found in DAG");
        else
            b->dag->persist[b->dag->n_persist++] = redis.HoldString(NULL, name);
    }
    redis.FreeDict(NULL, seen);
    if (good) run_plan_add_words(&b->w, b->argv, persist);
    return good;
}

/* When the run is over, however it ended. */
static void free_dag(void *data) {
    struct dag *dag = data;
    for (size_t i = 0; i < dag->n_models; i++) model_release(dag->models[i]);
    for (size_t i = 0; i < dag->n_persist; i++) redis.FreeString(NULL, dag->persist[i]);
    redis.Free(dag->models);
    redis.Free(dag->persist);
    redis.Free(dag);
}

/* ---- the command ---- */

/* Keys of models, and those that scripts are given. */
static void report_operation_keys(RedisCtx *ctx, RedisString **argv, int argc, int first) {
    for (int at = first; at < argc; at = operation_end(argv, argc, at + 1)) {
        struct run_plan plan;
        char error[RUN_ERROR];
        int end = operation_end(argv, argc, at + 1);
        if (at + 1 >= end || !run_plan_begin(argv[at + 1], &plan) ||
            !run_plan_read(argv, at + 1, end, true, &plan, error))
            continue;
        redis.KeyAtPosWithFlags(ctx, plan.key, KEY_RO | KEY_ACCESS);
        for (int i = 0; i < plan.keys.count; i++)
            redis.KeyAtPosWithFlags(ctx, plan.keys.first + i, KEY_RW | KEY_ACCESS | KEY_UPDATE);
    }
}

/* COMMAND GETKEYS, and what ACL and cluster check. */
static int report_keys(RedisCtx *ctx, RedisString **argv, int argc) {
    struct header h;
    char error[RUN_ERROR];
    if (!read_header(argv, argc, &h, error)) return REDIS_OK;
    for (int i = 0; i < h.load.count; i++) redis.KeyAtPosWithFlags(ctx, h.load.first + i, KEY_RO | KEY_ACCESS);
    for (int i = 0; i < h.persist.count; i++) redis.KeyAtPosWithFlags(ctx, h.persist.first + i, KEY_OW | KEY_UPDATE);
    if (h.routing) redis.KeyAtPosWithFlags(ctx, h.routing, KEY_RO);
    report_operation_keys(ctx, argv, argc, h.first);
    return REDIS_OK;
}

static bool build(struct builder *b) {
    return add_loads(b) && add_operations(b) && add_persists(b) &&
           (b->w.buffer.length <= FRAME_MAX_PAYLOAD || fail(b, TOO_LARGE));
}

/* Blocks the client and hands the frame over. */
static void send(struct builder *b, struct pending *pending) {
    const struct header *h = &b->header;
    if (shardqa.link.started && ai.models_unsent > 0) models_send(); /* stored in this very tick */
    pending_block(b->ctx, pending, h->timeout_ms ? h->timeout_ms : shardqa.arguments.timeout_ms, h->timeout_ms > 0);
    link_request(&b->w);
    ai.executes++;
}

/* AI.DAGEXECUTE <LOAD count key ... | PERSIST count key ... | ROUTING key> ... [TIMEOUT ms] |>
 *     operation [|> operation ...]
 * AI.DAGEXECUTE_RO: without PERSIST. AI.DAGRUN, AI.DAGRUN_RO: operations without counts alone */
int ai_dag(RedisCtx *ctx, RedisString **argv, int argc) {
    struct builder b = {.ctx = ctx, .argv = argv, .argc = argc};
    if (redis.IsKeysPositionRequest(ctx)) return report_keys(ctx, argv, argc);
    if (argc < 2)
        return reply_error(ctx, "ERR missing arguments for '%s' command", redis.StringPtrLen(argv[0], NULL));
    if (!pending_may_block(ctx, AI_REFUSAL)) return REDIS_OK;
    if (!read_header(argv, argc, &b.header, b.error)) return redis.ReplyWithError(ctx, b.error);
    if (!pending_has_room(ctx)) return REDIS_OK;
    struct pending *pending = pending_new();
    pending->data = b.dag = redis.Calloc(1, sizeof *b.dag);
    pending->free_data = free_dag;
    pending->answer = FRAME_DAG_DONE;
    pending->user = rights_current_user(ctx); /* scripts call Redis as the user who runs them */
    b.scope = redis.CreateDict(NULL);
    frame_begin(&b.w, FRAME_DAG, pending->id);
    frame_number(&b.w, b.header.timeout_ms);
    bool good = build(&b);
    redis.FreeDict(NULL, b.scope);
    if (good) {
        send(&b, pending);
        return REDIS_OK;
    }
    buffer_free(&b.w.buffer);
    pending_free(pending);
    return redis.ReplyWithError(ctx, b.error);
}

/* ---- the answer ---- */

/* DAG_DONE: writes what PERSIST names (nothing where an operation failed) and answers the client.
 * Its list: RESP, layout, data of each persisted tensor, then as RAN. */
bool dag_frame_done(const struct frame *frame) {
    struct outputs outputs;
    struct frame_bytes resp;
    long long persisted;
    char error[512];
    struct pending *pending = pending_find(frame->id);
    if (!frame_list_open(frame->payload, frame->length, &outputs.data) || !frame_list_next(&outputs.data, &resp) ||
        !frame_list_number(&outputs.data, &persisted) || !frame_list_next(&outputs.data, &outputs.layout) ||
        persisted < 0 || persisted > outputs.data.left)
        return false;
    /* behind the tensors: what AI.INFO counts, also for clients that left */
    struct frame_list rest = outputs.data;
    struct frame_bytes skipped;
    for (long long i = 0; i < persisted; i++) frame_list_next(&rest, &skipped);
    if (!models_count(rest)) return false;
    /* the client has left or timed out: nothing is written */
    if (pending == NULL || pending->answer != FRAME_DAG_DONE) {
        shardqa.counters.late_replies++;
        return true;
    }
    /* all or nothing: one wrong tensor keeps the others from being written */
    struct dag *dag = pending->data;
    bool known = persisted == 0 || (size_t)persisted == dag->n_persist;
    if (!known || !resp_is_one_value(resp.data, resp.length) || !outputs_are_valid(outputs, (size_t)persisted)) {
        shardqa.counters.unreadable_replies++;
        pending_fail(pending, "ERR the worker's answer to the DAG can't be read");
        return true;
    }
    latency_add(&ai.execute_latency, redis.MonotonicMicroseconds() - pending->started_us);
    if (outputs_write(&outputs, dag->persist, (size_t)persisted, error, sizeof error))
        pending_finish(pending, resp.data, resp.length);
    else
        pending_fail(pending, error);
    return true;
}
