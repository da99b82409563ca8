/* The one table of commands: behaviour (handler, flags, keys) and documentation (COMMAND DOCS,
 * hints of redis-cli) side by side.
 *
 * Every command states its keys with their access: Redis' default for module commands is read
 * and write, which refuses users who may only read. Flags `write` or `may-replicate` stand on
 * every command whose effects come later, or CLIENT PAUSE WRITE would not hold it. */
#include "commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ai/ai_config.h"
#include "ai/dag.h"
#include "ai/execute.h"
#include "ai/model.h"
#include "ai/script.h"
#include "ai/tensor.h"
#include "core/state.h"
#include "core/text.h"
#include "gears/rg_commands.h"
#include "gears/hooked_command.h"
#include "gears/registry.h"
#include "info.h"

#define SINCE "0.1.0"
#define NO_KEY .key_spec = -1
#define KEY_ARGUMENT {.name = "key", .type = ARG_KEY, .key_spec = 0}
#define WORD(word) {.name = word, .type = ARG_TOKEN, .token = word, NO_KEY}
#define OPTIONAL_WORD(n, word) {.name = n, .type = ARG_TOKEN, .token = word, .flags = ARG_OPTIONAL, NO_KEY}
#define ARG(kind, n, word, how) {.name = n, .type = ARG_##kind, .token = word, .flags = how, NO_KEY}
#define NEST(kind, n, word, inner, how)                                                                                \
    {.name = n, .type = ARG_##kind, .token = word, .subargs = inner, .flags = how, NO_KEY}
#define TEXT(n) ARG(STRING, n, NULL, 0)
#define ANY_TEXTS(n) ARG(STRING, n, NULL, ARG_OPTIONAL | ARG_MULTIPLE)
#define END {.name = NULL}

#define KEY_AT(position, access)                                                                                       \
    {.flags = (access), .begin = BEGIN_INDEX, .bs.index.pos = (position), .find = FIND_RANGE, .fk.range = {0, 1, 0}}
#define KEYS_FROM(word, start, access)                                                                                 \
    {.flags = (access) | KEY_INCOMPLETE,                                                                               \
     .begin = BEGIN_KEYWORD,                                                                                           \
     .bs.keyword = {word, start},                                                                                      \
     .find = FIND_KEYNUM,                                                                                              \
     .fk.keynum = {0, 1, 1}}
#define KEYS_AFTER(word, access) KEYS_FROM(word, 2, access)
/* A key may be named like a keyword, so the keyword specs are marked incomplete and Redis asks
 * the command itself (getkeys-api). */
#define MODEL_AND_MORE KEY_AT(1, KEY_RO | KEY_ACCESS | KEY_INCOMPLETE)

static RedisKeySpec READS_FIRST[] = {KEY_AT(1, KEY_RO | KEY_ACCESS), {0}};
static RedisKeySpec WRITES_FIRST[] = {KEY_AT(1, KEY_OW | KEY_UPDATE), {0}};
static RedisKeySpec DELETES_FIRST[] = {KEY_AT(1, KEY_RM | KEY_DELETE), {0}};
static RedisKeySpec CHANGES_SECOND[] = {KEY_AT(2, KEY_RW | KEY_ACCESS | KEY_UPDATE), {0}};
static RedisKeySpec EXECUTE_KEYS[] = {
    MODEL_AND_MORE, KEYS_AFTER("INPUTS", KEY_RO | KEY_ACCESS), KEYS_AFTER("OUTPUTS", KEY_OW | KEY_UPDATE), {0}};

/* Keys behind the first stand between words without counts: only the command itself can tell
 * them. */
static RedisKeySpec FIRST_OF_SOME[] = {MODEL_AND_MORE, {0}};
static RedisKeySpec SCRIPT_KEYS[] = {
    MODEL_AND_MORE, KEYS_AFTER("INPUTS", KEY_RO | KEY_ACCESS), KEYS_AFTER("OUTPUTS", KEY_OW | KEY_UPDATE),
    KEYS_AFTER("KEYS", KEY_RW | KEY_ACCESS | KEY_UPDATE), {0}};
/* A keyword that is absent makes a spec find nothing, not fail: without KEY_VARIABLE a DAG with
 * ROUTING alone would have no keys. */
static RedisKeySpec DAG_KEYS[] = {KEYS_FROM("LOAD", 1, KEY_RO | KEY_ACCESS | KEY_VARIABLE),
                                  KEYS_FROM("PERSIST", 1, KEY_OW | KEY_UPDATE | KEY_VARIABLE),
                                  {0}};
static RedisKeySpec DAG_RO_KEYS[] = {KEYS_FROM("LOAD", 1, KEY_RO | KEY_ACCESS | KEY_VARIABLE), {0}};

static RedisArg TENSOR_TYPES[] = {
    WORD("FLOAT"), WORD("DOUBLE"), WORD("INT8"), WORD("INT16"), WORD("INT32"), WORD("INT64"), WORD("UINT8"),
    WORD("UINT16"), WORD("UINT32"), WORD("UINT64"), WORD("FLOAT16"), WORD("BFLOAT16"), WORD("BOOL"), WORD("STRING"),
    END};
static RedisArg TENSOR_DATA[] = {ARG(STRING, "blob", "BLOB", 0), ARG(STRING, "value", "VALUES", ARG_MULTIPLE), END};
static RedisArg TENSORSET_ARGS[] = {
    KEY_ARGUMENT, NEST(ONEOF, "type", NULL, TENSOR_TYPES, 0),
    ARG(INTEGER, "dimension", NULL, ARG_MULTIPLE | ARG_OPTIONAL),
    NEST(ONEOF, "data", NULL, TENSOR_DATA, ARG_OPTIONAL), END};
static RedisArg TENSOR_FORMS[] = {WORD("BLOB"), WORD("VALUES"), END};
static RedisArg TENSORGET_ARGS[] = {
    KEY_ARGUMENT, OPTIONAL_WORD("meta", "META"), NEST(ONEOF, "format", NULL, TENSOR_FORMS, ARG_OPTIONAL), END};
static RedisArg BACKENDS[] = {WORD("ONNX"), WORD("TORCH"), WORD("TF"), WORD("TFLITE"), WORD("OPENVINO"), END};
static RedisArg MINBATCH_ARGS[] = {
    ARG(INTEGER, "count", "MINBATCHSIZE", 0), ARG(INTEGER, "milliseconds", "MINBATCHTIMEOUT", ARG_OPTIONAL), END};
static RedisArg PADDED_ARGS[] = {ARG(INTEGER, "count", "PADDED", 0), ARG(STRING, "input", NULL, ARG_MULTIPLE), END};
static RedisArg BATCH_ARGS[] = {
    ARG(INTEGER, "count", "BATCHSIZE", 0), NEST(BLOCK, "minimum", NULL, MINBATCH_ARGS, ARG_OPTIONAL),
    NEST(BLOCK, "padded", NULL, PADDED_ARGS, ARG_OPTIONAL), END};
static RedisArg MODELSTORE_ARGS[] = {
    KEY_ARGUMENT, NEST(ONEOF, "backend", NULL, BACKENDS, 0),
    {.name = "device", .type = ARG_STRING, .summary = "CPU, CPU:n, GPU or GPU:n", NO_KEY},
    ARG(STRING, "tag", "TAG", ARG_OPTIONAL), NEST(BLOCK, "batching", NULL, BATCH_ARGS, ARG_OPTIONAL),
    ARG(STRING, "blob", "BLOB", ARG_MULTIPLE), END};
static RedisArg MODELGET_ARGS[] = {KEY_ARGUMENT, OPTIONAL_WORD("meta", "META"), OPTIONAL_WORD("blob", "BLOB"), END};
static RedisArg ONE_KEY_ARGS[] = {KEY_ARGUMENT, END};
static RedisArg INPUT_ARGS[] = {
    ARG(INTEGER, "count", "INPUTS", 0), {.name = "input", .type = ARG_KEY, .key_spec = 1, .flags = ARG_MULTIPLE},
    END};
static RedisArg OUTPUT_ARGS[] = {
    ARG(INTEGER, "count", "OUTPUTS", 0), {.name = "output", .type = ARG_KEY, .key_spec = 2, .flags = ARG_MULTIPLE},
    END};
static RedisArg MODELEXECUTE_ARGS[] = {
    KEY_ARGUMENT, NEST(BLOCK, "inputs", NULL, INPUT_ARGS, 0), NEST(BLOCK, "outputs", NULL, OUTPUT_ARGS, 0),
    ARG(INTEGER, "milliseconds", "TIMEOUT", ARG_OPTIONAL), END};
static RedisArg MODELRUN_ARGS[] = {
    KEY_ARGUMENT, ARG(INTEGER, "milliseconds", "TIMEOUT", ARG_OPTIONAL), ARG(STRING, "input", "INPUTS", ARG_MULTIPLE),
    ARG(STRING, "output", "OUTPUTS", ARG_MULTIPLE), END};
static RedisArg SCRIPTRUN_ARGS[] = {
    KEY_ARGUMENT, TEXT("function"), ARG(INTEGER, "milliseconds", "TIMEOUT", ARG_OPTIONAL),
    ARG(STRING, "input", "INPUTS", ARG_MULTIPLE | ARG_OPTIONAL),
    ARG(STRING, "output", "OUTPUTS", ARG_MULTIPLE | ARG_OPTIONAL), END};
static RedisArg SCRIPTSTORE_ARGS[] = {
    KEY_ARGUMENT, TEXT("device"), ARG(STRING, "tag", "TAG", ARG_OPTIONAL), ARG(INTEGER, "count", "ENTRY_POINTS", 0),
    ARG(STRING, "function", NULL, ARG_MULTIPLE), ARG(STRING, "source", "SOURCE", 0), END};
static RedisArg SCRIPTSET_ARGS[] = {
    KEY_ARGUMENT, TEXT("device"), ARG(STRING, "tag", "TAG", ARG_OPTIONAL), ARG(STRING, "source", "SOURCE", 0), END};
static RedisArg SCRIPTGET_ARGS[] = {
    KEY_ARGUMENT, OPTIONAL_WORD("meta", "META"), OPTIONAL_WORD("source", "SOURCE"), END};
static RedisArg SCRIPT_KEY_ARGS[] = {
    ARG(INTEGER, "count", "KEYS", 0), {.name = "key", .type = ARG_KEY, .key_spec = 3, .flags = ARG_MULTIPLE}, END};
static RedisArg SCRIPT_WORD_ARGS[] = {
    ARG(INTEGER, "count", "ARGS", 0), ARG(STRING, "argument", NULL, ARG_MULTIPLE), END};
static RedisArg SCRIPTEXECUTE_ARGS[] = {
    KEY_ARGUMENT, TEXT("function"), NEST(BLOCK, "keys", NULL, SCRIPT_KEY_ARGS, ARG_OPTIONAL),
    NEST(BLOCK, "inputs", NULL, INPUT_ARGS, ARG_OPTIONAL),
    NEST(BLOCK, "arguments", NULL, SCRIPT_WORD_ARGS, ARG_OPTIONAL),
    NEST(BLOCK, "outputs", NULL, OUTPUT_ARGS, ARG_OPTIONAL), ARG(INTEGER, "milliseconds", "TIMEOUT", ARG_OPTIONAL),
    END};
static RedisArg DAG_ARGS[] = {
    ARG(STRING, "load", "LOAD", ARG_OPTIONAL | ARG_MULTIPLE),
    ARG(STRING, "persist", "PERSIST", ARG_OPTIONAL | ARG_MULTIPLE), ARG(STRING, "routing", "ROUTING", ARG_OPTIONAL),
    ARG(INTEGER, "milliseconds", "TIMEOUT", ARG_OPTIONAL),
    ARG(STRING, "operation", "|>", ARG_MULTIPLE | ARG_MULTIPLE_TOKEN), END};
static RedisArg INFO_ARGS[] = {KEY_ARGUMENT, OPTIONAL_WORD("resetstat", "RESETSTAT"), END};
static RedisArg CONFIG_NAMES[] = {WORD("BACKENDSPATH"), WORD("MODEL_CHUNK_SIZE"), END};
static RedisArg LOADBACKEND_ARGS[] = {ARG(STRING, "backend", "LOADBACKEND", 0), TEXT("path"), END};
static RedisArg CONFIG_ACTIONS[] = {
    NEST(ONEOF, "setting", "GET", CONFIG_NAMES, 0), ARG(STRING, "path", "BACKENDSPATH", 0),
    ARG(INTEGER, "bytes", "MODEL_CHUNK_SIZE", 0), NEST(BLOCK, "load", NULL, LOADBACKEND_ARGS, 0), END};
static RedisArg CONFIG_ARGS[] = {NEST(ONEOF, "action", NULL, CONFIG_ACTIONS, 0), END};
static RedisArg NO_ARGS[] = {END};
static RedisArg ANY_ARGS[] = {ANY_TEXTS("argument"), END};
static RedisArg SECTION_ARGS[] = {TEXT("section"), END};
static RedisArg STATISTICS_ARGS[] = {OPTIONAL_WORD("statistics", "WITH STATISTICS"), END};
static RedisArg PYEXECUTE_ARGS[] = {
    TEXT("code"), OPTIONAL_WORD("unblocking", "UNBLOCKING"), ARG(STRING, "id", "ID", ARG_OPTIONAL),
    ARG(STRING, "description", "DESCRIPTION", ARG_OPTIONAL), OPTIONAL_WORD("upgrade", "UPGRADE"),
    ARG(STRING, "old-id", "REPLACE_WITH", ARG_OPTIONAL),
    ARG(STRING, "requirement", "REQUIREMENTS", ARG_OPTIONAL | ARG_MULTIPLE), END};
static RedisArg TRIGGER_ARGS[] = {TEXT("trigger"), ANY_TEXTS("argument"), END};
static RedisArg TRIGGERONKEY_ARGS[] = {TEXT("trigger"), KEY_ARGUMENT, ANY_TEXTS("argument"), END};
static RedisArg ID_ARGS[] = {TEXT("registration-id"), END};
static RedisArg UNREGISTER_ARGS[] = {TEXT("registration-id"), OPTIONAL_WORD("pending", "ABORTPENDING"), END};
static RedisArg REGISTRATIONS_ARGS[] = {ARG(STRING, "registration-id", NULL, ARG_MULTIPLE), END};
static RedisArg EXECUTION_ARGS[] = {TEXT("execution-id"), END};
static RedisArg SCOPES[] = {WORD("SHARD"), WORD("CLUSTER"), END};
static RedisArg GETEXECUTION_ARGS[] = {
    TEXT("execution-id"), NEST(ONEOF, "scope", NULL, SCOPES, ARG_OPTIONAL),
    OPTIONAL_WORD("statistics", "WITH STATISTICS"), END};
static RedisArg DUMPSESSIONS_ARGS[] = {
    OPTIONAL_WORD("ts", "TS"), OPTIONAL_WORD("verbose", "VERBOSE"), OPTIONAL_WORD("code", "CODE"),
    ARG(STRING, "session-id", "SESSIONS", ARG_OPTIONAL | ARG_MULTIPLE), END};
static RedisArg PROFILE_VERBS[] = {WORD("STATS"), WORD("RESET"), END};
static RedisArg PROFILE_ARGS[] = {
    NEST(ONEOF, "what", NULL, PROFILE_VERBS, 0), TEXT("session-id"), ARG(STRING, "order", NULL, ARG_OPTIONAL), END};
static RedisArg CONFIGGET_ARGS[] = {ARG(STRING, "name", NULL, ARG_MULTIPLE), END};
static RedisArg SETTING_ARGS[] = {TEXT("name"), TEXT("value"), END};
static RedisArg CONFIGSET_ARGS[] = {NEST(BLOCK, "setting", NULL, SETTING_ARGS, ARG_MULTIPLE), END};
static RedisArg PEER_ARGS[] = {TEXT("node-id"), TEXT("token"), TEXT("verb"), ANY_TEXTS("argument"), END};
static RedisArg LOGS_ARGS[] = {ARG(INTEGER, "after", NULL, ARG_OPTIONAL), END};
static RedisArg HOOK_ARGS[] = {TEXT("command"), ANY_TEXTS("argument"), END};
static RedisArg PAYLOAD_ARGS[] = {TEXT("session"), END};

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
    const char *categories; /* of ACLs, besides that of the family */
};

#define REFUSED(name, why)                                                                                             \
    {name, commands_refuse, "readonly", 0, -1, NULL, ANY_ARGS, "Refused: " why, "O(1)", "slow"}

static const struct command COMMANDS[] = {
    {"AI.TENSORSET", ai_tensorset, "write deny-oom", 1, -4, WRITES_FIRST, TENSORSET_ARGS, "Stores a tensor",
     "O(N) in the tensor's size", "write slow"},
    {"AI.TENSORGET", ai_tensorget, "readonly", 1, -2, READS_FIRST, TENSORGET_ARGS,
     "Returns a tensor's type, shape and data", "O(N) in the tensor's size", "read slow"},
    {"AI.MODELSTORE", ai_modelstore, "write deny-oom", 1, -6, WRITES_FIRST, MODELSTORE_ARGS,
     "Stores a model after the worker has loaded it", "O(N) in the file's size, and loading", "write slow"},
    {"AI.MODELSET", ai_modelset, "write deny-oom", 1, -4, WRITES_FIRST, MODELSTORE_ARGS,
     "AI.MODELSTORE without counts; deprecated", "O(N) in the file's size, and loading", "write slow"},
    {"AI.MODELGET", ai_modelget, "readonly", 1, -2, READS_FIRST, MODELGET_ARGS,
     "Returns a model's description and file", "O(N) in the file's size", "read slow"},
    {"AI.MODELDEL", ai_modeldel, "write", 1, 2, DELETES_FIRST, ONE_KEY_ARGS, "Deletes a model", "O(1)", "write slow"},
    {"AI.MODELEXECUTE", ai_execute, "write deny-oom getkeys-api", 1, -8, EXECUTE_KEYS, MODELEXECUTE_ARGS,
     "Runs a model on tensors and stores what it returns", "That of the model", "write slow"},
    {"AI.MODELRUN", ai_execute, "write deny-oom getkeys-api", 1, -3, FIRST_OF_SOME, MODELRUN_ARGS,
     "AI.MODELEXECUTE without counts; deprecated", "That of the model", "write slow"},
    {"AI.SCRIPTSTORE", ai_scriptstore, "write deny-oom", 1, -5, WRITES_FIRST, SCRIPTSTORE_ARGS,
     "Stores TorchScript source after the worker has compiled it", "O(N) in the source's length",
     "write slow scripting"},
    {"AI.SCRIPTSET", ai_scriptset, "write deny-oom", 1, -5, WRITES_FIRST, SCRIPTSET_ARGS,
     "AI.SCRIPTSTORE without entry points; deprecated", "O(N) in the source's length", "write slow scripting"},
    {"AI.SCRIPTGET", ai_scriptget, "readonly", 1, -2, READS_FIRST, SCRIPTGET_ARGS,
     "Returns a script's description and source", "O(N) in the source's length", "read slow"},
    {"AI.SCRIPTDEL", ai_scriptdel, "write", 1, 2, DELETES_FIRST, ONE_KEY_ARGS, "Deletes a script", "O(1)",
     "write slow"},
    {"AI.SCRIPTEXECUTE", ai_execute, "write deny-oom getkeys-api", 1, -5, SCRIPT_KEYS, SCRIPTEXECUTE_ARGS,
     "Runs a function of a script on tensors, keys and words", "That of the script", "write slow scripting"},
    {"AI.SCRIPTRUN", ai_execute, "write deny-oom getkeys-api", 1, -3, FIRST_OF_SOME, SCRIPTRUN_ARGS,
     "AI.SCRIPTEXECUTE without counts; deprecated", "That of the script", "write slow scripting"},
    {"AI.DAGEXECUTE", ai_dag, "write deny-oom getkeys-api", 0, -1, DAG_KEYS, DAG_ARGS,
     "Runs a graph of operations with a scope of its own", "That of its operations", "write slow scripting"},
    {"AI.DAGEXECUTE_RO", ai_dag, "readonly getkeys-api", 0, -1, DAG_RO_KEYS, DAG_ARGS,
     "The same without writing, on replicas as well", "That of its operations", "read slow scripting"},
    {"AI.DAGRUN", ai_dag, "write deny-oom getkeys-api", 0, -2, DAG_KEYS, DAG_ARGS,
     "AI.DAGEXECUTE with operations without counts; deprecated", "That of its operations", "write slow scripting"},
    {"AI.DAGRUN_RO", ai_dag, "readonly getkeys-api", 0, -2, DAG_RO_KEYS, DAG_ARGS,
     "AI.DAGEXECUTE_RO with operations without counts; deprecated", "That of its operations", "read slow scripting"},
    {"AI._SCRIPTSCAN", ai_scan, "readonly", 0, 1, NULL, NO_ARGS, "Lists key and tag of this shard's scripts",
     "O(N) in the number of models and scripts", "keyspace read slow"},
    {"AI._MODELSCAN", ai_scan, "readonly", 0, 1, NULL, NO_ARGS, "Lists key and tag of this shard's models",
     "O(N) in the number of models", "keyspace read slow"},
    {"AI.INFO", ai_info, "readonly", 1, -2, READS_FIRST, INFO_ARGS, "Returns or resets a model's execution statistics",
     "O(1)", "read slow"},
    {"AI.CONFIG", ai_config, "write", 0, -2, NULL, CONFIG_ARGS, "Shows or changes RedisAI's settings", "O(1)",
     "admin dangerous slow"},
    {"AI.HELP", commands_help, "readonly allow-loading allow-stale", 0, 1, NULL, NO_ARGS,
     "Lists the commands of models and tensors", "O(1)", "slow"},
    {"RG.PYEXECUTE", rg_pyexecute, "write deny-oom", 0, -2, NULL, PYEXECUTE_ARGS,
     "Runs Python code on the server, or registers functions", "That of the code",
     "write admin dangerous slow scripting"},
    {"RG.TRIGGER", rg_trigger, "may-replicate", 0, -2, NULL, TRIGGER_ARGS,
     "Runs the function registered under a trigger", "That of the function", "slow scripting"},
    {"RG.TRIGGERONKEY", rg_trigger, "write", 2, -3, CHANGES_SECOND, TRIGGERONKEY_ARGS,
     "Runs a triggered function on the shard of a key", "That of the function", "write slow scripting"},
    {"RG.DUMPREGISTRATIONS", rg_dumpregistrations, "readonly", 0, -1, NULL, STATISTICS_ARGS,
     "Lists the registered functions with their statistics", "O(N) in the number of registrations", "slow scripting"},
    {"RG.UNREGISTER", rg_unregister, "write", 0, -2, NULL, UNREGISTER_ARGS, "Removes a registered function",
     "O(1)", "write admin dangerous slow scripting"},
    {"RG.CLEARREGISTRATIONSSTATS", rg_admin, "may-replicate", 0, 1, NULL, NO_ARGS,
     "Sets the statistics of all registrations on this shard to zero", "O(N) in the number of registrations",
     "admin dangerous slow"},
    {"RG.PAUSEREGISTRATIONS", rg_admin, "may-replicate", 0, -2, NULL, REGISTRATIONS_ARGS,
     "Stops stream registrations from reading, on all shards", "O(N) in the registrations named",
     "admin dangerous slow"},
    {"RG.UNPAUSEREGISTRATIONS", rg_admin, "may-replicate", 0, -2, NULL, REGISTRATIONS_ARGS,
     "Lets stream registrations read again", "O(N) in the registrations named", "admin dangerous slow"},
    {"RG.DUMPEXECUTIONS", rg_admin, "readonly", 0, -1, NULL, STATISTICS_ARGS,
     "Lists the executions that run and those kept with their results", "O(N) in the number of executions",
     "admin dangerous slow"},
    {"RG.GETEXECUTION", rg_admin, "readonly", 0, -2, NULL, GETEXECUTION_ARGS,
     "Describes an execution: status, times, steps", "O(N) in the number of steps", "admin dangerous slow"},
    {"RG.GETRESULTS", rg_admin, "readonly", 0, 2, NULL, EXECUTION_ARGS,
     "Returns the results of an execution that is done", "O(N) in the number of results", "admin dangerous slow"},
    {"RG.GETRESULTSBLOCKING", rg_wait, "readonly", 0, 2, NULL, EXECUTION_ARGS,
     "Waits for an execution and returns its results", "O(N) in the number of results", "admin dangerous slow"},
    {"RG.DROPEXECUTION", rg_admin, "may-replicate", 0, 2, NULL, EXECUTION_ARGS,
     "Forgets an execution that is done, on all shards", "O(1)", "admin dangerous slow"},
    {"RG.ABORTEXECUTION", rg_admin, "may-replicate", 0, 2, NULL, EXECUTION_ARGS, "Ends an execution on all shards",
     "O(1)", "admin dangerous slow"},
    {"RG.CONFIGGET", rg_request, "readonly", 0, -2, NULL, CONFIGGET_ARGS, "Returns settings of functions",
     "O(N) in the number of settings", "slow"},
    {"RG.CONFIGSET", rg_admin, "may-replicate", 0, -3, NULL, CONFIGSET_ARGS,
     "Changes settings of functions on this shard", "O(N) in the number of settings", "admin dangerous slow"},
    {"RG.PYDUMPSESSIONS", rg_admin, "readonly", 0, -1, NULL, DUMPSESSIONS_ARGS,
     "Lists the sessions that registered something", "O(N) in the number of registrations", "admin dangerous slow"},
    {"RG.PYDUMPREQS", rg_request, "readonly", 0, 1, NULL, NO_ARGS, "Lists the requirements of sessions",
     "O(N) in the number of requirements", "slow"},
    {"RG.PYSTATS", rg_request, "readonly", 0, 1, NULL, NO_ARGS, "Returns the memory of the worker", "O(1)", "slow"},
    {"RG.PYLOGS", rg_admin, "readonly", 0, -1, NULL, LOGS_ARGS,
     "Lists the last lines that functions logged on this shard, and their errors", "O(N) in the number of lines",
     "admin dangerous slow"},
    {"RG.PYPROFILE", rg_admin, "readonly", 0, -3, NULL, PROFILE_ARGS,
     "Shows or resets what a session's functions spent their time on", "O(N) in the number of functions",
     "admin dangerous slow"},
    {"RG.INFOCLUSTER", rg_request, "readonly", 0, 1, NULL, NO_ARGS, "Returns the cluster as the worker sees it",
     "O(N) in the number of shards", "slow"},
    {"RG.REFRESHCLUSTER", rg_request, "readonly", 0, 1, NULL, NO_ARGS, "Makes the worker look at the cluster now",
     "O(N) in the number of nodes", "slow"},
    {"RG.HELP", commands_help, "readonly allow-loading allow-stale", 0, 1, NULL, NO_ARGS,
     "Lists the commands of functions", "O(1)", "slow"},
    REFUSED("RG.DUMPPLUGINS", "there are no C plugins"),
    REFUSED("RG.PYEXPORTREQ", "a requirement is moved as a wheel in REQUIREMENTS_DIR"),
    REFUSED("RG.PYIMPORTREQ", "a requirement is moved as a wheel in REQUIREMENTS_DIR"),
    REFUSED("RG.PYFREEINTERPRETER", "the interpreter is a process beside Redis, which ends with it"),
    REFUSED("RG.HELLO", "shards speak to one another by RG._PEER"),
    REFUSED("RG.NETWORKTEST", "shards speak to one another by RG._PEER; RG.INFOCLUSTER shows them"),
    REFUSED("RG.CLUSTERSET", "Redis Cluster tells the shards; RG.REFRESHCLUSTER asks it again"),
    REFUSED("RG.PYEXECUTEREMOTE", "it sends pickles, which only the same Python could read; RG.PYEXECUTE takes text"),
    {"RG._PEER", rg_peer, "admin no-monitor no-slowlog", 0, -4, NULL, PEER_ARGS,
     "Internal: a message from the worker of another shard", "That of the message", "admin dangerous slow"},
    {"RG._REGISTER", rg_internal_register, "write admin", 0, 2, NULL, PAYLOAD_ARGS,
     "Internal: a session on its way to replicas and the AOF", "O(N) in its registrations",
     "write admin dangerous slow"},
    {"RG._UNREGISTER", rg_internal_unregister, "write admin", 0, 2, NULL, ID_ARGS,
     "Internal: an unregistration on its way to replicas and the AOF", "O(N) in the registrations",
     "write admin dangerous slow"},
    {"shardqa.hook", shardqa_hook, "write deny-oom getkeys-api", 0, -2, NULL, HOOK_ARGS,
     "What a hooked command that writes becomes", "That of the command, or of the function", "write slow"},
    {"shardqa.hookread", shardqa_hook, "readonly getkeys-api", 0, -2, NULL, HOOK_ARGS,
     "What a hooked command that reads becomes", "That of the command, or of the function", "read slow"},
    {"shardqa.info", shardqa_info, "readonly allow-loading allow-stale", 0, 2, NULL, SECTION_ARGS,
     "What INFO shardqa, INFO ai or INFO rg becomes where the module has another name (NAME)",
     "O(N) in the registrations", "dangerous slow"},
    {"shardqa.get", shardqa_get, "readonly", 1, 2, READS_FIRST, ONE_KEY_ARGS,
     "What GET becomes where a function computes missing values", "O(1), or that of the function", "read string fast"},
};

enum { COMMANDS_COUNT = sizeof COMMANDS / sizeof *COMMANDS };

/* AI.HELP and RG.HELP, in the form of Redis' own HELP, without internal commands. */
int commands_help(RedisCtx *ctx, RedisString **argv, int argc) {
    const char *family = text_is(argv[0], "RG.HELP") ? "RG." : "AI.";
    const struct command *listing[COMMANDS_COUNT];
    char line[256];
    size_t count = 0;
    (void)argc;
    for (const struct command *c = COMMANDS; c < COMMANDS + COMMANDS_COUNT; c++)
        if (strncmp(c->name, family, 3) == 0 && c->name[3] != '_') listing[count++] = c;
    redis.ReplyWithArray(ctx, 1 + 2 * (long)count);
    snprintf(line, sizeof line, "%s<command> [<argument> ...], which COMMAND DOCS tells. Commands are:", family);
    redis.ReplyWithSimpleString(ctx, line);
    for (size_t i = 0; i < count; i++) {
        redis.ReplyWithSimpleString(ctx, listing[i]->name);
        snprintf(line, sizeof line, "    %s.", listing[i]->summary);
        redis.ReplyWithSimpleString(ctx, line);
    }
    return REDIS_OK;
}

/* What RedisGears had and this module has not: the summary says why. */
int commands_refuse(RedisCtx *ctx, RedisString **argv, int argc) {
    const struct command *c = COMMANDS;
    (void)argc;
    while (!text_is(argv[0], c->name)) c++;
    return reply_error(ctx, "ERR %s is r%s", c->name, c->summary + 1);
}

/* Gives COMMAND DOCS and COMMAND INFO what the table says of the command. */
static int describe(RedisCtx *ctx, const struct command *command) {
    static const RedisCommandInfoVersion version = {.version = 1,
                                                    .sizeof_history = sizeof(RedisHistory),
                                                    .sizeof_keyspec = sizeof(RedisKeySpec),
                                                    .sizeof_arg = sizeof(RedisArg)};
    RedisCommandInfo info = {.version = &version,
                             .summary = command->summary,
                             .complexity = command->complexity,
                             .since = SINCE,
                             .arity = command->arity,
                             .key_specs = command->keys,
                             .args = command->args[0].name ? command->args : NULL};
    return redis.SetCommandInfo(redis.GetCommand(ctx, command->name), &info);
}

/* Redis 7.2 and later give the commands of modules ACL categories, 7.4 and later new ones as
 * well; false where they refuse. */
static bool categorise(RedisCtx *ctx, const struct command *command) {
    static const char *const families[][2] = {{"AI.", "ai"}, {"RG.", "gears"}};
    char words[128];
    const char *own = "";
    if (shardqa.acl == ACL_NONE) return true;
    for (size_t i = 0; shardqa.acl == ACL_OWN && i < sizeof families / sizeof *families; i++)
        if (strncmp(command->name, families[i][0], strlen(families[i][0])) == 0) own = families[i][1];
    snprintf(words, sizeof words, "%s%s%s", command->categories, *own ? " " : "", own);
    return redis.SetCommandACLCategories(redis.GetCommand(ctx, command->name), words) == REDIS_OK;
}

/* Another module may have the name already: then our commands join it. A Redis without room for
 * more is served without them. */
static bool add_category(RedisCtx *ctx, const char *name) {
    return redis.AddACLCategory(ctx, name) == REDIS_OK || errno == EBUSY;
}

/* What this server offers: no categories for modules, the standard ones, or new ones as well. */
static enum acl_categories find_categories(RedisCtx *ctx) {
    if (redis.SetCommandACLCategories == NULL) return ACL_NONE;
    return redis.AddACLCategory && add_category(ctx, "ai") && add_category(ctx, "gears") ? ACL_OWN : ACL_STANDARD;
}

/* Every command of the table. NULL, or the one that Redis refused. */
const char *commands_create(RedisCtx *ctx) {
    shardqa.acl = find_categories(ctx);
    for (size_t i = 0; i < COMMANDS_COUNT; i++) {
        const struct command *c = &COMMANDS[i];
        if (redis.CreateCommand(ctx, c->name, c->handler, c->flags, c->key, c->key, c->key > 0) != REDIS_OK)
            return c->name;
        if (describe(ctx, c) != REDIS_OK || !categorise(ctx, c)) return c->name;
    }
    return NULL;
}
