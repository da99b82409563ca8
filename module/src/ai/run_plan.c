#include "ai/run_plan.h"

#include <stdio.h>
#include <string.h>

#include "core/frame.h"
#include "core/text.h"

/* Always false, for `return fail(…)`. */
static bool fail(char *error, const char *text) {
    snprintf(error, RUN_ERROR, "%s", text);
    return false;
}

/* Names the word that nobody expected. */
static bool fail_at(char *error, RedisString *word) {
    size_t length;
    const char *text = redis.StringPtrLen(word, &length);
    snprintf(error, RUN_ERROR, "ERR Invalid argument: %.*s", (int)(length < 128 ? length : 128), text);
    return false;
}

/* Which of the four commands it is. False where it is none. */
bool run_plan_begin(const RedisString *command, struct run_plan *plan) {
    bool execute = text_is(command, "AI.MODELEXECUTE") || text_is(command, "AI.SCRIPTEXECUTE");
    bool script = text_is(command, "AI.SCRIPTEXECUTE") || text_is(command, "AI.SCRIPTRUN");
    *plan = (struct run_plan){.script = script, .counted = execute};
    return execute || script || text_is(command, "AI.MODELRUN");
}

int run_plan_inputs(const struct run_plan *plan) { return plan->inputs.count - (plan->dollar > 0); }

/* The $ of AI.SCRIPTRUN stands among the inputs but is none. */
int run_plan_input(const struct run_plan *plan, int index) {
    int at = plan->inputs.first + index;
    return plan->dollar && at >= plan->dollar ? at + 1 : at;
}

/* ---- with counts ---- */

/* What is said of each kind of words: of a model's and of a script's, each as RedisAI says it. */
struct words_of {
    const char *name; /* before their number */
    const char *bad_count[2], *not_positive, *too_few[2];
};
#define TOO_FEW(what, command)                                                                                         \
    "ERR number of " what " to " command " command does not match the number of given arguments"
#define BAD_COUNT(what) "ERR Invalid argument for " what " count in AI.SCRIPTEXECUTE"
#define NOT_POSITIVE(what) "ERR " what " count must be a positive integer"
#define NO_VALUE "ERR No value provided for TIMEOUT"
#define BAD_KEYS "ERR Invalid or negative value found in number of KEYS"
#define FEW_KEYS                                                                                                       \
    "ERR Number of pre declared KEYS to be used in the command does not match the number of given arguments"
static const struct words_of INPUTS = {
    "INPUTS", {"ERR Invalid argument for input_count", BAD_COUNT("inputs")}, NOT_POSITIVE("Input"),
    {TOO_FEW("input keys", "AI.MODELEXECUTE"), TOO_FEW("inputs", "AI.SCRIPTEXECUTE")}};
static const struct words_of OUTPUTS = {
    "OUTPUTS", {"ERR Invalid argument for output_count", BAD_COUNT("outputs")}, NOT_POSITIVE("Output"),
    {TOO_FEW("output keys", "AI.MODELEXECUTE"), TOO_FEW("outputs", "AI.SCRIPTEXECUTE")}};
static const struct words_of KEYS = {"KEYS", {NULL, BAD_KEYS}, BAD_KEYS, {NULL, FEW_KEYS}};
static const struct words_of ARGS = {
    "ARGS", {NULL, BAD_COUNT("args")}, NOT_POSITIVE("ARGS"), {NULL, TOO_FEW("args", "AI.SCRIPTEXECUTE")}};

/* `n word…` from argv[*at]. */
static bool read_counted(RedisString **argv, int *at, int end, const struct words_of *of, bool script,
                         struct span *span, char *error) {
    long long n;
    if (script && *at >= end) return fail(error, "ERR Invalid arguments provided to AI.SCRIPTEXECUTE");
    if (*at >= end || redis.StringToLongLong(argv[*at], &n) != REDIS_OK) return fail(error, of->bad_count[script]);
    if (n < (script ? 0 : 1)) return fail(error, of->not_positive);
    if (n > end - *at - 1) return fail(error, of->too_few[script]);
    *span = (struct span){.first = *at + 1, .count = (int)n};
    *at += 1 + (int)n;
    return true;
}

/* In a DAG the whole has a TIMEOUT, not its parts. */
static bool read_timeout(RedisString **argv, int *at, int end, bool in_dag, struct run_plan *plan, char *error) {
    if (in_dag) return fail(error, "ERR TIMEOUT not allowed within a DAG command");
    if (*at >= end) return fail(error, plan->script && plan->counted ? NO_VALUE " in AI.SCRIPTEXECUTE" : NO_VALUE);
    return text_number(argv[(*at)++], 1, 1LL << 40, &plan->timeout_ms) || fail(error, "ERR Invalid value for TIMEOUT");
}

/* INPUTS, OUTPUTS and TIMEOUT, in this order. */
static bool read_model(RedisString **argv, int at, int end, bool in_dag, struct run_plan *plan, char *error) {
    if (at >= end || !text_is(argv[at], "INPUTS")) return fail(error, "ERR INPUTS not specified");
    at++;
    if (!read_counted(argv, &at, end, &INPUTS, false, &plan->inputs, error)) return false;
    if (at >= end || !text_is(argv[at], "OUTPUTS")) return fail(error, "ERR OUTPUTS not specified");
    at++;
    if (!read_counted(argv, &at, end, &OUTPUTS, false, &plan->outputs, error)) return false;
    if (at < end && text_is(argv[at], "TIMEOUT")) {
        at++;
        if (!read_timeout(argv, &at, end, in_dag, plan, error)) return false;
    }
    return at == end || fail_at(error, argv[at]);
}

/* All parts in any order, each once. */
static bool read_script(RedisString **argv, int at, int end, bool in_dag, struct run_plan *plan, char *error) {
    const struct words_of *const kinds[] = {&KEYS, &INPUTS, &ARGS, &OUTPUTS};
    struct span *const spans[] = {&plan->keys, &plan->inputs, &plan->args, &plan->outputs};
    bool seen[4] = {false}, timeout = false;
    while (at < end) {
        /* which part begins here, and has it been given before */
        int kind = 0;
        while (kind < 4 && !text_is(argv[at], kinds[kind]->name)) kind++;
        if (kind < 4 && !seen[kind]) {
            at++;
            seen[kind] = true;
            if (kind == 0 && at + 1 == end && !text_is(argv[at], "0"))
                return fail(error, "ERR Missing arguments after KEYS keyword");
            if (!read_counted(argv, &at, end, kinds[kind], true, spans[kind], error)) return false;
        } else if (text_is(argv[at], "TIMEOUT") && !timeout) {
            at++;
            timeout = true;
            if (!read_timeout(argv, &at, end, in_dag, plan, error)) return false;
        } else {
            return fail_at(error, argv[at]);
        }
    }
    return seen[0] || seen[1] ||
           fail(error, "ERR KEYS or INPUTS scope must be provided first for AI.SCRIPTEXECUTE command");
}

/* ---- without counts: names go on until the next keyword ---- */

/* AI.MODELRUN and AI.SCRIPTRUN. */
static bool read_deprecated(RedisString **argv, int at, int end, bool in_dag, struct run_plan *plan, char *error) {
    if (at < end && text_is(argv[at], "TIMEOUT")) {
        at++;
        if (!read_timeout(argv, &at, end, in_dag, plan, error)) return false;
    }
    if (at >= end || !text_is(argv[at], "INPUTS")) {
        if (!plan->script) return fail(error, "ERR INPUTS not specified");
    } else {
        plan->inputs.first = ++at;
        for (; at < end && !text_is(argv[at], "OUTPUTS"); at++, plan->inputs.count++) {
            if (!plan->script || !text_is(argv[at], "$")) continue;
            if (plan->dollar) return fail(error, "ERR Already encountered a variable size list of tensors");
            plan->dollar = at;
        }
    }
    if (at >= end || !text_is(argv[at], "OUTPUTS"))
        return plan->script && at >= end ? true : fail(error, "ERR OUTPUTS not specified");
    plan->outputs = (struct span){.first = at + 1, .count = end - at - 1};
    return true;
}

/* The whole command. False, and the error. */
bool run_plan_read(RedisString **argv, int start, int end, bool in_dag, struct run_plan *plan, char error[RUN_ERROR]) {
    if (!run_plan_begin(argv[start], plan)) return fail(error, "ERR unsupported command");
    int at = start + (plan->script ? 3 : 2);
    plan->key = start + 1;
    plan->function = start + 2;
    if (at > end) {
        snprintf(error, RUN_ERROR, "ERR wrong number of arguments for '%s' command",
                 redis.StringPtrLen(argv[start], NULL));
        return false;
    }
    if (!plan->counted) return read_deprecated(argv, at, end, in_dag, plan, error);
    return plan->script ? read_script(argv, at, end, in_dag, plan, error)
                        : read_model(argv, at, end, in_dag, plan, error);
}

/* ---- on the way to the worker ---- */

/* `n word …` */
void run_plan_add_words(struct frame_writer *w, RedisString **argv, const struct span *span) {
    frame_number(w, span->count);
    text_items(w, argv + span->first, span->count);
}

/* What a script is called with, but for its tensors. */
void run_plan_add_call(struct frame_writer *w, RedisString **argv, const struct run_plan *plan) {
    text_item(w, argv[plan->function]);
    frame_number(w, plan->dollar ? plan->dollar - plan->inputs.first : plan->counted ? 0 : -1);
    frame_number(w, plan->counted);
    run_plan_add_words(w, argv, &plan->keys);
    run_plan_add_words(w, argv, &plan->args);
}
