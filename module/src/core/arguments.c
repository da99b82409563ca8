#include "core/arguments.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/frame.h"
#include "core/state.h"
#include "core/text.h"
#include "core/worker_user.h"

enum { TEXT_MOST = 4096 /* bytes of a text */ };

/* ---- values ---- */

/* NULL, or what the value should have been; the next ones likewise. */
static const char *read_path(char **field, const RedisString *value) {
    size_t length;
    const char *text = redis.StringPtrLen(value, &length);
    if (length == 0 || length > TEXT_MOST || text[0] != '/' || memchr(text, '\0', length)) return "an absolute path";
    redis.Free(*field);
    *field = text_copy(text, length);
    return NULL;
}

/* `none`: a node without a worker. */
static const char *read_python(char **field, const RedisString *value) {
    if (!text_is(value, "none")) return read_path(field, value);
    shardqa.arguments.workerless = true;
    return NULL;
}

/* "uid:gid" of that user. */
static const char *read_user(char **field, const RedisString *value) { return worker_user(value, field); }

/* A folder of wheels, pip's index, or nothing at all. */
static const char *read_requirements(char **field, const RedisString *value) {
    if (!text_is(value, "index") && !text_is(value, "no"))
        return read_path(field, value) ? "an absolute path, index or no" : NULL;
    redis.Free(*field);
    *field = text_is(value, "no") ? text_copy("no", 2) : NULL;
    return NULL;
}

/* `NAME,NAME`; those of the walls are none of theirs. */
static const char *read_names(char **field, const RedisString *value) {
    static const char form[] = "names of variables with commas between them, of which none begins with SHARDQA_";
    size_t length;
    const char *text = redis.StringPtrLen(value, &length);
    if (length == 0 || length > TEXT_MOST || memchr(text, '\0', length) || memchr(text, '=', length) ||
        memchr(text, ' ', length))
        return form;
    if (strncmp(text, "SHARDQA_", 8) == 0 || strstr(text, ",SHARDQA_")) return form;
    redis.Free(*field);
    *field = text_copy(text, length);
    return NULL;
}

/* ---- the table ---- */

static const struct argument {
    const char *name;
    size_t field; /* offset in struct module_arguments */
    const char *(*read_text)(char **field, const RedisString *value); /* NULL: it is a choice or a number */
    const char *words;                                                /* of a choice, with | between; else NULL */
    const char *unit;                                                 /* of a number, as are the rest */
    long long least, most, initial; /* in `unit`; initial also of a choice */
    const char *zero, *hello; /* see arguments.h */
    const char *meaning; /* for the error */
} ALL[] = {
#define NUMBER_ROW(a, f, u, l, m, i, z, h, w)                                                                          \
    {.name = a,                                                                                                        \
     .field = offsetof(struct module_arguments, f),                                                                    \
     .unit = u,                                                                                                        \
     .least = l,                                                                                                       \
     .most = m,                                                                                                        \
     .initial = i,                                                                                                     \
     .zero = z,                                                                                                        \
     .hello = h,                                                                                                       \
     .meaning = w},
#define CHOICE_ROW(a, f, o, i, w)                                                                                      \
    {.name = a, .field = offsetof(struct module_arguments, f), .words = o, .initial = i, .meaning = w},
#define TEXT_ROW(a, f, r, w) {.name = a, .field = offsetof(struct module_arguments, f), .read_text = r, .meaning = w},
    ARGUMENTS(NUMBER_ROW, CHOICE_ROW, TEXT_ROW)};

enum { COUNT = sizeof ALL / sizeof *ALL };

static void *place(const struct argument *setting) { return (char *)&shardqa.arguments + setting->field; }

/* The place of a word in `a|b|c`, or -1. */
static int word_index(const char *words, const RedisString *value) {
    for (int i = 0;; i++) {
        char word[32];
        size_t length = strcspn(words, "|");
        snprintf(word, sizeof word, "%.*s", (int)length, words);
        if (text_is(value, word)) return i;
        if (words[length] == '\0') return -1;
        words += length + 1;
    }
}

/* Says what a value of this argument has to be. */
static const char *describe(const struct argument *s) {
    static char line[256];
    if (s->words)
        snprintf(line, sizeof line, "one of %s (%s)", s->words, s->meaning);
    else if (s->zero)
        snprintf(line, sizeof line, "%s from %lld to %lld, or 0 for %s (%s)", s->unit, s->least, s->most, s->zero,
                 s->meaning);
    else
        snprintf(line, sizeof line, "%s from %lld to %lld (%s)", s->unit, s->least, s->most, s->meaning);
    return line;
}

/* NULL, or what the value should have been. */
static const char *set(const struct argument *s, const RedisString *value) {
    if (s->read_text) return s->read_text(place(s), value);
    if (s->words) {
        int index = word_index(s->words, value);
        if (index < 0) return describe(s);
        *(int *)place(s) = index;
        return NULL;
    }
    long long number;
    bool good = text_number(value, s->least, s->most, &number) || (s->zero && text_number(value, 0, 0, &number));
    if (!good) return describe(s);
    *(long long *)place(s) = number;
    return NULL;
}

/* ---- arguments of RedisAI and RedisGears that are taken ---- */

/* The words and why they have no effect here; the log says it. */
static const struct {
    const char *names[16];
    const char *why;
} WITHOUT_EFFECT[] = {
    {{"TF", "TFLITE", "TORCH", "ONNX", "BACKENDSPATH"},
     "backends are Python packages of the worker's environment, loaded by the first model that needs them"},
    {{"INTER_OP_PARALLELISM"}, "the operators of a run follow one another"},
    {{"BACKEND_MEMORY_LIMIT"}, "models live in the worker's process; bound that with MEMORY"},
    {{"CreateVenv", "DownloadDeps", "DependenciesUrl", "DependenciesSha256", "PythonInstallationDir",
      "PythonAttemptTraceback", "OverridePythonAllocators", "ExecutionThreads", "PythonInstallReqMaxIdleTime",
      "SendMsgRetries", "Plugin"},
     "functions run in the worker's own Python"},
};

/* Whether an argument is one of WITHOUT_EFFECT; two of them keep their value, to be shown. */
static bool take_without_effect(const char *name, const RedisString *value) {
    for (size_t i = 0; i < sizeof WITHOUT_EFFECT / sizeof *WITHOUT_EFFECT; i++)
        for (const char *const *word = WITHOUT_EFFECT[i].names; *word; word++) {
            if (!bytes_are(name, strlen(name), *word)) continue;
            redis.Log(NULL, "notice", "module argument %s has no effect here: %s", *word, WITHOUT_EFFECT[i].why);
            if (strcmp(*word, "INTER_OP_PARALLELISM") == 0) redis.StringToLongLong(value, &shardqa.arguments.inter_op);
            if (strcmp(*word, "BACKENDSPATH") != 0) return true;
            size_t length;
            const char *text = redis.StringPtrLen(value, &length);
            redis.Free(shardqa.arguments.backends_path);
            shardqa.arguments.backends_path = text_copy(text, length);
            return true;
        }
    return false;
}

/* ---- for all who set or show them ---- */

/* What nobody knows is the user's own, which functions read. Its value may be a password, so the
 * log has the name alone. */
static void keep_for_functions(const char *name, const RedisString *value) {
    size_t length;
    const char *text = redis.StringPtrLen(value, &length);
    words_add(&shardqa.arguments.others, name, strlen(name));
    words_add(&shardqa.arguments.others, text, length);
    redis.Log(NULL, "warning", "module argument %s is none of shardqa's: it is kept for functions (gearsConfigGet)",
              name);
}

/* RedisAI's name for THREADS, where 0 leaves it to others, is one more. */
const char *argument_set(const char *name, const RedisString *value) {
    if (bytes_are(name, strlen(name), "INTRA_OP_PARALLELISM")) {
        if (text_is(value, "0")) return NULL;
        name = "THREADS";
    }
    for (size_t i = 0; i < COUNT; i++)
        if (bytes_are(name, strlen(name), ALL[i].name)) return set(&ALL[i], value);
    if (!take_without_effect(name, value)) keep_for_functions(name, value);
    return NULL;
}

void arguments_init(void) {
    for (size_t i = 0; i < COUNT; i++) {
        if (ALL[i].words) *(int *)place(&ALL[i]) = (int)ALL[i].initial;
        if (ALL[i].unit) *(long long *)place(&ALL[i]) = ALL[i].initial;
    }
}

/* ---- CONFIG GET and SET ---- */

/* Those that are looked at each time: nobody was told their value. */
static const char *const LIVE[] = {"HEARTBEAT", "MAXPENDING", "MODEL_CHUNK_SIZE", "MODEL_FILE_BYTES"};

/* Gives one of them to CONFIG GET and REWRITE. */
static long long config_get(const char *name, void *argument) {
    (void)name;
    return *(long long *)place(argument);
}

/* Redis has looked at the bounds. */
static int config_set(const char *name, long long value, void *argument, RedisString **error) {
    (void)name, (void)error;
    *(long long *)place(argument) = value;
    return REDIS_OK;
}

/* Makes them `CONFIG GET shardqa.maxpending`; loadmodule's value is their default. */
int arguments_register(RedisCtx *ctx) {
    for (size_t i = 0; i < COUNT; i++)
        for (size_t j = 0; j < sizeof LIVE / sizeof *LIVE; j++) {
            const struct argument *s = &ALL[i];
            if (strcmp(s->name, LIVE[j]) != 0) continue;
            char name[32] = "";
            for (size_t at = 0; s->name[at]; at++) name[at] = (char)tolower((unsigned char)s->name[at]);
            if (redis.RegisterNumericConfig(ctx, name, *(long long *)place(s), 0, s->zero ? 0 : s->least, s->most,
                                            config_get, config_set, NULL, (void *)s))
                return REDIS_ERR;
        }
    return redis.LoadConfigs(ctx);
}

const char *name_of_module(enum module_name name) {
    static const char *const names[] = {[NAME_SHARDQA] = "shardqa", [NAME_AI] = "ai", [NAME_RG] = "rg"};
    return names[name];
}

/* All of them, whether loadmodule gave them or not. */
void arguments_greet(struct frame_writer *hello) {
    for (size_t i = 0; i < COUNT; i++) {
        if (ALL[i].hello == NULL) continue;
        frame_text(hello, ALL[i].hello);
        frame_number(hello, *(long long *)place(&ALL[i]));
    }
    for (size_t i = 0; i < shardqa.arguments.others.count; i++) frame_text(hello, shardqa.arguments.others.items[i]);
}
