/* AI.SCRIPTSTORE, SCRIPTSET, SCRIPTGET and SCRIPTDEL. A script is code: who stores one must be
 *     allowed to run DEBUG, and from where is
 * PYEXECUTE's matter, as for RG.PYEXECUTE. */
#include "ai/script.h"

#include <string.h>

#include "ai/ai_state.h"
#include "ai/model_internal.h"
#include "core/rights.h"
#include "core/state.h"
#include "core/text.h"

struct model *script_open(RedisCtx *ctx, RedisString *name) {
    return value_open(ctx, name, ai.script_type, "ERR script key is empty");
}

/* ---- AI.SCRIPTSTORE, SCRIPTSET ---- */

#define MISSING_POINTS "ERR Insufficient arguments, missing script entry points"

/* Functions that AI.SCRIPTEXECUTE may name. */
static const char *read_entry_points(struct arguments *a, struct model *script) {
    long long count;
    if (a->at >= a->argc) return MISSING_POINTS;
    if (!arguments_next_is(a, "ENTRY_POINTS")) return MISSING_POINTS;
    if (a->at >= a->argc || redis.StringToLongLong(a->argv[a->at++], &count) != REDIS_OK)
        return "ERR Non numeric entry points number provided to AI.SCRIPTSTORE command";
    if (count < (a->trusted ? 0 : 1)) return "ERR Entry point count must be a positive integer";
    if (count > a->argc - a->at) return MISSING_POINTS;
    const char *error = NULL;
    while (!error && count-- > 0) error = model_read_name(a->argv[a->at++], &script->inputs);
    return error;
}

/* Its grammar is the worker's to check. */
static const char *read_source(struct arguments *a, struct model *script) {
    size_t length;
    if (a->at >= a->argc) return "ERR Insufficient arguments, missing script SOURCE";
    if (!arguments_next_is(a, "SOURCE")) return "ERR Invalid argument, expected SOURCE";
    if (a->at + 1 != a->argc) return "ERR Insufficient arguments, missing script SOURCE";
    const char *source = redis.StringPtrLen(a->argv[a->at], &length);
    if (length > MODEL_MAX_BYTES || memchr(source, '\0', length))
        return "ERR a script has at most 1 GiB and no zero byte";
    script->blob = blob_new(text_copy(source, length), length);
    return NULL;
}

/* NULL, or the error. */
static const char *read_script(struct arguments *a, struct model *script) {
    script->backend = text_copy("TORCH", 5);
    const char *error = model_read_device(a, script);
    if (!error) error = model_read_tag(a, script);
    if (!error && a->counted) error = read_entry_points(a, script);
    return error ? error : read_source(a, script);
}

/* Asking for the user of a nested call or a Lua script crashes Redis 7.0. */
static bool may_store(RedisCtx *ctx, const char *command) {
    int flags = redis.GetContextFlags(ctx);
    if (command_is_replayed(ctx)) return true;
    if (!(flags & CTX_LUA) && (!(flags & CTX_DENY_BLOCKING) || flags & CTX_MULTI))
        return rights_may_run_code(ctx, command);
    redis.ReplyWithError(ctx, AI_REFUSAL);
    return false;
}

/* AI.SCRIPTSTORE key device [TAG tag] ENTRY_POINTS count function ... SOURCE source */
int ai_scriptstore(RedisCtx *ctx, RedisString **argv, int argc) {
    struct arguments a = {.argv = argv, .argc = argc, .at = 2, .counted = true};
    if (ai.storing) return model_set_key(ctx, argv[1], ai.storing);
    if (argc < 5) return redis.WrongArity(ctx);
    return may_store(ctx, "AI.SCRIPTSTORE") ? model_store(ctx, &a, KIND_SCRIPT, read_script) : REDIS_OK;
}

/* AI.SCRIPTSET key device [TAG tag] SOURCE source */
int ai_scriptset(RedisCtx *ctx, RedisString **argv, int argc) {
    struct arguments a = {.argv = argv, .argc = argc, .at = 2};
    if (argc < 5) return redis.WrongArity(ctx);
    return may_store(ctx, "AI.SCRIPTSET") ? model_store(ctx, &a, KIND_SCRIPT, read_script) : REDIS_OK;
}

/* ---- the others ---- */

/* AI.SCRIPTGET key [META] [SOURCE] */
int ai_scriptget(RedisCtx *ctx, RedisString **argv, int argc) {
    bool meta = false, source = false;
    if (argc < 2 || argc > 4) return redis.WrongArity(ctx);
    for (int i = 2; i < argc; i++) {
        if (text_is(argv[i], "META"))
            meta = true;
        else if (text_is(argv[i], "SOURCE"))
            source = true;
        else
            return redis.ReplyWithError(ctx, "ERR unsupported data format");
    }
    struct model *script = script_open(ctx, argv[1]);
    if (script == NULL) return REDIS_OK;
    if (argc == 2) meta = source = true;
    if (!meta) return redis.ReplyWithStringBuffer(ctx, script->blob->data, script->blob->length);
    /* RedisAI's order */
    redis.ReplyWithArray(ctx, source ? 8 : 6);
    reply_pair(ctx, "device", script->device);
    reply_tag(ctx, script);
    reply_names(ctx, "Entry Points", &script->inputs);
    if (!source) return REDIS_OK;
    reply_text(ctx, "source");
    return redis.ReplyWithStringBuffer(ctx, script->blob->data, script->blob->length);
}

/* AI.SCRIPTDEL key */
int ai_scriptdel(RedisCtx *ctx, RedisString **argv, int argc) {
    if (argc != 2) return redis.WrongArity(ctx);
    return script_open(ctx, argv[1]) ? model_delete(ctx, argv[1]) : REDIS_OK;
}
