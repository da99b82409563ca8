/* The one table of commands: behaviour (handler, flags, keys) and documentation (COMMAND DOCS, hints of redis-cli) side by side.
 *
 * Every command states its keys with their access: Redis' default for module commands is read and write, which refuses users who
 * may only read. Flags `write` or `may-replicate` stand on every command whose effects come later, or CLIENT PAUSE WRITE would not
 * hold it. */
#include "commands.h"

#include "execute.h"
#include "gears.h"
#include "hook.h"
#include "model.h"
#include "tensor.h"

#define SINCE "0.1.0"
#define NO_KEY .key_spec = -1
#define KEY_ARGUMENT {.name = "key", .type = ARG_KEY, .key_spec = 0}
#define WORD(word) {.name = word, .type = ARG_TOKEN, .token = word, NO_KEY}
#define OPTIONAL_WORD(n, word) {.name = n, .type = ARG_TOKEN, .token = word, .flags = ARG_OPTIONAL, NO_KEY}
#define END {.name = NULL}

#define KEY_AT(position, access) {.flags = (access), .begin = BEGIN_INDEX, .bs.index.pos = (position), .find = FIND_RANGE, .fk.range = {0, 1, 0}}
#define KEYS_AFTER(word, access)                                                                                                           \
    {.flags = (access) | KEY_INCOMPLETE, .begin = BEGIN_KEYWORD, .bs.keyword = {word, 2}, .find = FIND_KEYNUM, .fk.keynum = {0, 1, 1}}

static RedisKeySpec READS_FIRST[] = {KEY_AT(1, KEY_RO | KEY_ACCESS), {0}};
static RedisKeySpec WRITES_FIRST[] = {KEY_AT(1, KEY_OW | KEY_UPDATE), {0}};
static RedisKeySpec DELETES_FIRST[] = {KEY_AT(1, KEY_RM | KEY_DELETE), {0}};
static RedisKeySpec CHANGES_SECOND[] = {KEY_AT(2, KEY_RW | KEY_ACCESS | KEY_UPDATE), {0}};
/* A key may be named like a keyword, so the keyword specs are marked incomplete and Redis asks the command itself (getkeys-api). */
static RedisKeySpec EXECUTE_KEYS[] = {
    {.flags = KEY_RO | KEY_ACCESS | KEY_INCOMPLETE, .begin = BEGIN_INDEX, .bs.index.pos = 1, .find = FIND_RANGE, .fk.range = {0, 1, 0}},
    KEYS_AFTER("INPUTS", KEY_RO | KEY_ACCESS),
    KEYS_AFTER("OUTPUTS", KEY_OW | KEY_UPDATE),
    {0}};

static RedisArg TENSOR_TYPES[] = {WORD("FLOAT"), WORD("DOUBLE"), WORD("INT8"), WORD("INT16"), WORD("INT32"), WORD("INT64"),
                                  WORD("UINT8"), WORD("UINT16"), WORD("BOOL"), WORD("STRING"), END};
static RedisArg TENSOR_DATA[] = {{.name = "blob", .type = ARG_STRING, .token = "BLOB", NO_KEY},
                                 {.name = "value", .type = ARG_STRING, .token = "VALUES", .flags = ARG_MULTIPLE, NO_KEY},
                                 END};
static RedisArg TENSORSET_ARGS[] = {KEY_ARGUMENT,
                                    {.name = "type", .type = ARG_ONEOF, .subargs = TENSOR_TYPES, NO_KEY},
                                    {.name = "dimension", .type = ARG_INTEGER, .flags = ARG_MULTIPLE | ARG_OPTIONAL, NO_KEY},
                                    {.name = "data", .type = ARG_ONEOF, .subargs = TENSOR_DATA, .flags = ARG_OPTIONAL, NO_KEY},
                                    END};
static RedisArg TENSOR_FORMS[] = {WORD("BLOB"), WORD("VALUES"), END};
static RedisArg TENSORGET_ARGS[] = {KEY_ARGUMENT, OPTIONAL_WORD("meta", "META"),
                                    {.name = "format", .type = ARG_ONEOF, .subargs = TENSOR_FORMS, .flags = ARG_OPTIONAL, NO_KEY},
                                    END};
static RedisArg BACKENDS[] = {WORD("ONNX"), END};
static RedisArg MINBATCH_ARGS[] = {{.name = "count", .type = ARG_INTEGER, .token = "MINBATCHSIZE", NO_KEY},
                                   {.name = "milliseconds", .type = ARG_INTEGER, .token = "MINBATCHTIMEOUT", .flags = ARG_OPTIONAL, NO_KEY},
                                   END};
static RedisArg BATCH_ARGS[] = {{.name = "count", .type = ARG_INTEGER, .token = "BATCHSIZE", NO_KEY},
                                {.name = "minimum", .type = ARG_BLOCK, .subargs = MINBATCH_ARGS, .flags = ARG_OPTIONAL, NO_KEY},
                                END};
static RedisArg MODELSTORE_ARGS[] = {KEY_ARGUMENT,
                                     {.name = "backend", .type = ARG_ONEOF, .subargs = BACKENDS, NO_KEY},
                                     {.name = "device", .type = ARG_STRING, .summary = "CPU, CPU:n, GPU or GPU:n", NO_KEY},
                                     {.name = "tag", .type = ARG_STRING, .token = "TAG", .flags = ARG_OPTIONAL, NO_KEY},
                                     {.name = "batching", .type = ARG_BLOCK, .subargs = BATCH_ARGS, .flags = ARG_OPTIONAL, NO_KEY},
                                     {.name = "blob", .type = ARG_STRING, .token = "BLOB", .flags = ARG_MULTIPLE, NO_KEY},
                                     END};
static RedisArg MODELGET_ARGS[] = {KEY_ARGUMENT, OPTIONAL_WORD("meta", "META"), OPTIONAL_WORD("blob", "BLOB"), END};
static RedisArg ONE_KEY_ARGS[] = {KEY_ARGUMENT, END};
static RedisArg INPUT_ARGS[] = {{.name = "count", .type = ARG_INTEGER, .token = "INPUTS", NO_KEY},
                                {.name = "input", .type = ARG_KEY, .key_spec = 1, .flags = ARG_MULTIPLE},
                                END};
static RedisArg OUTPUT_ARGS[] = {{.name = "count", .type = ARG_INTEGER, .token = "OUTPUTS", NO_KEY},
                                 {.name = "output", .type = ARG_KEY, .key_spec = 2, .flags = ARG_MULTIPLE},
                                 END};
static RedisArg MODELEXECUTE_ARGS[] = {KEY_ARGUMENT,
                                       {.name = "inputs", .type = ARG_BLOCK, .subargs = INPUT_ARGS, NO_KEY},
                                       {.name = "outputs", .type = ARG_BLOCK, .subargs = OUTPUT_ARGS, NO_KEY},
                                       {.name = "milliseconds", .type = ARG_INTEGER, .token = "TIMEOUT", .flags = ARG_OPTIONAL, NO_KEY},
                                       END};
static RedisArg INFO_ARGS[] = {KEY_ARGUMENT, OPTIONAL_WORD("resetstat", "RESETSTAT"), END};
static RedisArg NO_ARGS[] = {END};
static RedisArg PYEXECUTE_ARGS[] = {{.name = "code", .type = ARG_STRING, NO_KEY},
                                    OPTIONAL_WORD("unblocking", "UNBLOCKING"),
                                    {.name = "id", .type = ARG_STRING, .token = "ID", .flags = ARG_OPTIONAL, NO_KEY},
                                    {.name = "description", .type = ARG_STRING, .token = "DESCRIPTION", .flags = ARG_OPTIONAL, NO_KEY},
                                    OPTIONAL_WORD("upgrade", "UPGRADE"),
                                    {.name = "old-id", .type = ARG_STRING, .token = "REPLACE_WITH", .flags = ARG_OPTIONAL, NO_KEY},
                                    {.name = "requirement", .type = ARG_STRING, .token = "REQUIREMENTS", .flags = ARG_OPTIONAL | ARG_MULTIPLE, NO_KEY},
                                    END};
static RedisArg TRIGGER_ARGS[] = {{.name = "trigger", .type = ARG_STRING, NO_KEY},
                                  {.name = "argument", .type = ARG_STRING, .flags = ARG_OPTIONAL | ARG_MULTIPLE, NO_KEY},
                                  END};
static RedisArg TRIGGERONKEY_ARGS[] = {{.name = "trigger", .type = ARG_STRING, NO_KEY},
                                       KEY_ARGUMENT,
                                       {.name = "argument", .type = ARG_STRING, .flags = ARG_OPTIONAL | ARG_MULTIPLE, NO_KEY},
                                       END};
static RedisArg ID_ARGS[] = {{.name = "registration-id", .type = ARG_STRING, NO_KEY}, END};
static RedisArg PAYLOAD_ARGS[] = {{.name = "session", .type = ARG_STRING, NO_KEY}, END};

struct command {
    const char *name;
    RedisHandler handler;
    const char *flags;
    int key;   /* index of the first key; 0 none */
    int arity; /* -n: at least n */
    RedisKeySpec *keys;
    RedisArg *args;
    const char *summary;
    const char *complexity;
};

static const struct command COMMANDS[] = {
    {"AI.TENSORSET", ai_tensorset, "write deny-oom", 1, -4, WRITES_FIRST, TENSORSET_ARGS, "Stores a tensor", "O(N) in the tensor's size"},
    {"AI.TENSORGET", ai_tensorget, "readonly", 1, -2, READS_FIRST, TENSORGET_ARGS, "Returns a tensor's type, shape and data", "O(N) in the tensor's size"},
    {"AI.MODELSTORE", ai_modelstore, "write deny-oom", 1, -4, WRITES_FIRST, MODELSTORE_ARGS, "Stores a model after the worker has loaded it", "O(N) in the file's size, and loading"},
    {"AI.MODELGET", ai_modelget, "readonly", 1, -2, READS_FIRST, MODELGET_ARGS, "Returns a model's description and file", "O(N) in the file's size"},
    {"AI.MODELDEL", ai_modeldel, "write", 1, 2, DELETES_FIRST, ONE_KEY_ARGS, "Deletes a model", "O(1)"},
    {"AI.MODELEXECUTE", ai_modelexecute, "write deny-oom getkeys-api", 1, -8, EXECUTE_KEYS, MODELEXECUTE_ARGS, "Runs a model on tensors and stores what it returns", "That of the model"},
    {"AI._MODELSCAN", ai_modelscan, "readonly", 0, 1, NULL, NO_ARGS, "Lists key and tag of this shard's models", "O(N) in the number of models"},
    {"AI.INFO", ai_info, "readonly", 1, -2, READS_FIRST, INFO_ARGS, "Returns or resets a model's execution statistics", "O(1)"},
    {"RG.PYEXECUTE", rg_pyexecute, "write deny-oom", 0, -2, NULL, PYEXECUTE_ARGS, "Runs Python code on the server, or registers functions", "That of the code"},
    {"RG.TRIGGER", rg_trigger, "may-replicate", 0, -2, NULL, TRIGGER_ARGS, "Runs the function registered under a trigger", "That of the function"},
    {"RG.TRIGGERONKEY", rg_trigger, "write", 2, -3, CHANGES_SECOND, TRIGGERONKEY_ARGS, "Runs a triggered function on the shard of a key", "That of the function"},
    {"RG.DUMPREGISTRATIONS", rg_request, "readonly", 0, 1, NULL, NO_ARGS, "Lists the registered functions with their statistics", "O(N) in the number of registrations"},
    {"RG.UNREGISTER", rg_unregister, "write", 0, 2, NULL, ID_ARGS, "Removes a registered function", "O(1)"},
    {"RG._REGISTER", rg_internal_register, "write admin", 0, 2, NULL, PAYLOAD_ARGS, "Internal: a session on its way to replicas and the AOF", "O(N) in its registrations"},
    {"RG._UNREGISTER", rg_internal_unregister, "write admin", 0, 2, NULL, ID_ARGS, "Internal: an unregistration on its way to replicas and the AOF", "O(N) in the registrations"},
    {"shardqa.get", shardqa_get, "readonly", 1, 2, READS_FIRST, ONE_KEY_ARGS, "What GET becomes where a function computes missing values", "O(1), or that of the function"},
};

static int describe(RedisCtx *ctx, const struct command *command) {
    static const RedisCommandInfoVersion version = {
        .version = 1, .sizeof_history = sizeof(RedisHistory), .sizeof_keyspec = sizeof(RedisKeySpec), .sizeof_arg = sizeof(RedisArg)};
    RedisCommandInfo info = {.version = &version,
                             .summary = command->summary,
                             .complexity = command->complexity,
                             .since = SINCE,
                             .arity = command->arity,
                             .key_specs = command->keys,
                             .args = command->args[0].name ? command->args : NULL};
    return redis.SetCommandInfo(redis.GetCommand(ctx, command->name), &info);
}

const char *commands_create(RedisCtx *ctx) {
    for (size_t i = 0; i < sizeof COMMANDS / sizeof *COMMANDS; i++) {
        const struct command *c = &COMMANDS[i];
        if (redis.CreateCommand(ctx, c->name, c->handler, c->flags, c->key, c->key, c->key > 0) != REDIS_OK) return c->name;
        if (describe(ctx, c) != REDIS_OK) return c->name;
    }
    return NULL;
}
