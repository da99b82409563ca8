/* The arguments of the module, each written down once: here.
 *
 * A row says what the argument is called, the field that has it, which values it takes, its
 * default, and in a few words what it means. From the rows come the struct below, its defaults,
 * the reading of loadmodule's line with its errors, and what HELLO tells the worker (arguments.c).
 * tests/docs/test_named.py holds docs/operating.md against them,
 * tests/unit/worker/test_module_arguments.py the worker.
 *
 * NUMBER(name, field, unit, least, most, default, zero, hello, meaning): `zero` says what 0
 * stands for where it is allowed beside the bounds; `hello` is the name that HELLO has, NULL:
 * the worker is not told. The worker has no defaults of its own.
 * CHOICE(name, field, words, default, meaning): the field is the place of the word.
 * TEXT(name, field, reader, meaning): a text that it owns, NULL: none. */
#ifndef SHARDQA_ARGUMENTS_H
#define SHARDQA_ARGUMENTS_H

#include <stdbool.h>

#include "core/text.h"

#define DAY_MS 86400000
#define ARGUMENTS(NUMBER, CHOICE, TEXT)                                                                                \
    TEXT("PYTHON", python, read_python, "the interpreter of the worker")                                               \
    NUMBER("THREADS", threads, "a number", 1, 1024, 1, NULL, "threads", "threads of one run of a model")               \
    NUMBER("THREADS_PER_QUEUE", threads_per_queue, "a number", 1, 1024, 1, NULL, "threads_per_queue",                  \
           "runs of one model at once")                                                                                \
    CHOICE("NAME", name, "shardqa|ai|rg", 0,                                                                           \
           "what programs of RedisAI or RedisGears look for in MODULE LIST and INFO")                                  \
    CHOICE("PYEXECUTE", pyexecute, "no|local|yes", PYEXECUTE_LOCAL, "from where RG.PYEXECUTE is taken")                \
    CHOICE("SANDBOX", sandbox, "yes|network|no", SANDBOX_YES, "how the worker is confined")                            \
    TEXT("USER", user, read_user, "the user of the worker")                                                            \
    NUMBER("MEMORY", memory_mb, "megabytes", 512, 16777216, 0, "no limit", NULL, "what the worker may allocate")       \
    TEXT("REQUIREMENTS_DIR", requirements, read_requirements, "where packages that scripts require come from")         \
    CHOICE("REQUIREMENTS_SDIST", requirements_sdist, "no|yes", 0, "whether such packages may be built from sources")   \
    TEXT("READABLE", readable, read_path, "what functions may read besides the libraries")                             \
    TEXT("WRITABLE", writable, read_path, "what functions may read and write")                                         \
    TEXT("ENVIRONMENT", environment, read_names, "Redis' own variables that functions see")                            \
    TEXT("MODELS", models, read_path, "folder of large models")                                                        \
    NUMBER("MODEL_FILE_BYTES", model_file_bytes, "bytes", 1, 1099511627776, 67108864, NULL, NULL,                      \
           "size from which a model is large")                                                                         \
    NUMBER("MODEL_CHUNK_SIZE", chunk_size, "bytes", 1, 535822336, 535822336, NULL, NULL, "of a string of AI.MODELGET") \
    NUMBER("MODEL_EXECUTION_TIMEOUT", execution_timeout_ms, "milliseconds", 1000, DAY_MS, 0, NULL,                     \
           "execution_timeout", "after which a run of ONNX is ended")                                                  \
    NUMBER("TIMEOUT", timeout_ms, "milliseconds", 1, DAY_MS, 10000, "none", "timeout", "how long a client waits")      \
    NUMBER("HEARTBEAT", heartbeat_ms, "milliseconds", 1, DAY_MS, 3000, "never", NULL,                                  \
           "of silence after which a worker is killed")                                                                \
    NUMBER("MAXPENDING", max_pending, "a number", 1, 1000000, 4096, NULL, NULL, "requests that may wait at once")      \
    NUMBER("MaxExecutions", max_executions, "a number", 1, 1073741824, 1000, NULL, "maxexecutions",                    \
           "executions that are kept")                                                                                 \
    NUMBER("MaxExecutionsPerRegistration", max_executions_per_registration, "a number", 1, 1073741824, 100, NULL,      \
           "maxexecutionsperregistration", "of them, those of one registration")                                       \
    NUMBER("ExecutionMaxIdleTime", execution_max_idle_ms, "milliseconds", 1, DAY_MS, 5000, NULL,                       \
           "executionmaxidletime", "how long an execution may take")                                                   \
    NUMBER("ProfileExecutions", profile_executions, "a number", 0, 1, 0, NULL, "profileexecutions",                    \
           "1: functions are profiled")

enum pyexecute { PYEXECUTE_NO, PYEXECUTE_LOCAL, PYEXECUTE_YES };
enum sandbox { SANDBOX_YES, SANDBOX_NETWORK /* TCP to anywhere, not to other nodes alone */, SANDBOX_NO };
enum module_name { NAME_SHARDQA, NAME_AI, NAME_RG };

#define NUMBER_FIELD(name, field, ...) long long field;
#define CHOICE_FIELD(name, field, ...) int field;
#define TEXT_FIELD(name, field, ...) char *field; /* owned */
struct module_arguments {
    ARGUMENTS(NUMBER_FIELD, CHOICE_FIELD, TEXT_FIELD)
    bool workerless;     /* PYTHON none */
    long long inter_op;  /* RedisAI's INTER_OP_PARALLELISM, which is only remembered */
    char *backends_path; /* owned; RedisAI's, which is only remembered; NULL: none was given */
    struct words others; /* name and value in turn of what nobody here knows */
};
#undef NUMBER_FIELD
#undef CHOICE_FIELD
#undef TEXT_FIELD

struct frame_writer;

/* Gives one argument its value. NULL, or what it should have been, until the next call. */
const char *argument_set(const char *name, const RedisString *value);
void arguments_init(void); /* the defaults */
int arguments_register(RedisCtx *ctx); /* for CONFIG GET and SET of those that may change */
const char *name_of_module(enum module_name name); /* in MODULE LIST and before the sections of INFO */
void arguments_greet(struct frame_writer *hello); /* adds name and value of those that the worker is told */

#endif
