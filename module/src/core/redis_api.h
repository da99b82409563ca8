/* The part of the Redis 7.0 module ABI that shardqa uses, declared by hand: no header of Redis
 * is needed to build.
 *
 * Redis hands every module one function, GetApi (the first field of the context given to
 * OnLoad), which looks the others up by name. `redis_api_load` fills the struct `redis` with
 * them; everything else in the module calls `redis.Something(...)`. Numbers and layouts below
 * are fixed by Redis' ABI promise and must not be changed. */
#ifndef SHARDQA_REDIS_API_H
#define SHARDQA_REDIS_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct RedisModuleCtx RedisCtx;
typedef struct RedisModuleString RedisString;
typedef struct RedisModuleKey RedisKey;
typedef struct RedisModuleCallReply RedisReply;
typedef struct RedisModuleBlockedClient RedisBlocked;
typedef struct RedisModuleCommand RedisCommand;
typedef struct RedisModuleCommandFilterCtx RedisFilterCtx;
typedef struct RedisModuleCommandFilter RedisFilter;
typedef struct RedisModuleType RedisType;
typedef struct RedisModuleIO RedisIO;
typedef struct RedisModuleDigest RedisDigest;
typedef struct RedisModuleKeyOptCtx RedisKeyOptCtx;
typedef struct RedisModuleDefragCtx RedisDefragCtx;
typedef struct RedisModuleDict RedisDict;
typedef struct RedisModuleDictIter RedisDictIter;
typedef struct RedisModuleInfoCtx RedisInfoCtx;
typedef struct RedisModuleServerInfoData RedisServerInfo;
typedef struct RedisModuleUser RedisUser;
typedef uint64_t RedisTimer;

typedef int (*RedisHandler)(RedisCtx *, RedisString **, int);

enum { REDIS_OK = 0, REDIS_ERR = 1 };
enum { REDIS_API_VERSION = 1 };
/* the last: not a use of the key, for LRU and LFU */
enum { REDIS_READ = 1, REDIS_WRITE = 2, REDIS_LOOK = REDIS_READ | 1 << 16 };
enum {
    KEYTYPE_EMPTY, KEYTYPE_STRING, KEYTYPE_LIST, KEYTYPE_HASH, KEYTYPE_SET, KEYTYPE_ZSET,
    KEYTYPE_MODULE, KEYTYPE_STREAM
};
enum { REPLY_STRING = 0, REPLY_ERROR = 1, REPLY_ARRAY = 3 };

/* GetContextFlags */
enum {
    CTX_LUA = 1 << 0, CTX_MULTI = 1 << 1, CTX_MASTER = 1 << 2, CTX_SLAVE = 1 << 3,
    CTX_CLUSTER = 1 << 5, CTX_REPLICATED = 1 << 12, CTX_LOADING = 1 << 13, CTX_IS_CHILD = 1 << 20,
    CTX_DENY_BLOCKING = 1 << 21, CTX_ASYNC_LOADING = 1 << 23
};

/* keyspace notification classes */
enum {
    NOTIFY_GENERIC = 1 << 2, NOTIFY_STRING = 1 << 3, NOTIFY_LIST = 1 << 4, NOTIFY_SET = 1 << 5,
    NOTIFY_HASH = 1 << 6, NOTIFY_ZSET = 1 << 7, NOTIFY_EXPIRED = 1 << 8, NOTIFY_EVICTED = 1 << 9,
    NOTIFY_STREAM = 1 << 10, NOTIFY_KEY_MISS = 1 << 11, NOTIFY_MODULE = 1 << 13
};

enum {
    OPTION_HANDLE_IO_ERRORS = 1 << 0, OPTION_HANDLE_REPL_ASYNC_LOAD = 1 << 2,
    OPTION_HANDLE_SLOT_MIGRATION = 1 << 5 /* Valkey 9 */
};
enum { FILTER_NOSELF = 1 };
enum { LOOP_READABLE = 1, LOOP_WRITABLE = 2 };
enum { AUX_BEFORE_RDB = 1 << 0 };
enum { CLIENT_UNIX_SOCKET = 1 << 4 };

typedef struct {
    uint64_t version; /* 1 */
    uint64_t flags;   /* CLIENT_UNIX_SOCKET … */
    uint64_t id;
    char addr[46]; /* text form of the peer's address */
    uint16_t port;
    uint16_t db;
} RedisClientInfo;

/* server events */
typedef struct {
    uint64_t id, data_version;
} RedisEvent;

enum {
    EVENT_ROLE_CHANGED = 0, EVENT_FLUSHDB = 2, EVENT_LOADING = 3, EVENT_SHUTDOWN = 5,
    EVENT_CRON_LOOP = 8, EVENT_SWAPDB = 11, EVENT_REPL_ASYNC_LOAD = 14, EVENT_LOOP = 15
};
enum { ROLE_NOW_MASTER = 0, ROLE_NOW_REPLICA = 1 };
enum { FLUSHDB_END = 1 };
enum { LOADING_ENDED = 3, LOADING_FAILED = 4 };
enum { ASYNC_LOAD_STARTED = 0 };
enum { LOOP_BEFORE_SLEEP = 0 };

typedef struct {
    uint64_t version;
    int32_t sync;
    int32_t dbnum; /* -1: all databases */
} RedisFlushInfo;

typedef struct {
    uint64_t version;
    int32_t first, second;
} RedisSwapInfo;

typedef void (*RedisEventHandler)(RedisCtx *, RedisEvent, uint64_t subevent, void *data);

/* command documentation */
typedef enum {
    ARG_STRING, ARG_INTEGER, ARG_DOUBLE, ARG_KEY, ARG_PATTERN, ARG_UNIX_TIME, ARG_TOKEN, ARG_ONEOF,
    ARG_BLOCK
} RedisArgType;
enum { ARG_OPTIONAL = 1, ARG_MULTIPLE = 2, ARG_MULTIPLE_TOKEN = 4 };

typedef struct RedisArg {
    const char *name;
    RedisArgType type;
    int key_spec;      /* index of the key spec of a KEY argument; others -1 */
    const char *token; /* literal word before the value, or the word itself for ARG_TOKEN */
    const char *summary, *since;
    int flags;
    const char *deprecated_since;
    struct RedisArg *subargs;
    const char *display_text; /* read by 7.2 and later; 7.0 steps over it because it is told the size of this struct */
} RedisArg;

typedef struct {
    const char *since, *changes;
} RedisHistory;

enum {
    KEY_RO = 1 << 0, KEY_RW = 1 << 1, KEY_OW = 1 << 2, KEY_RM = 1 << 3, KEY_ACCESS = 1 << 4,
    KEY_UPDATE = 1 << 5, KEY_INSERT = 1 << 6, KEY_DELETE = 1 << 7, KEY_INCOMPLETE = 1 << 9,
    KEY_VARIABLE = 1 << 10 /* Redis asks the command itself, whatever the specs find */
};
enum { BEGIN_INDEX = 2, BEGIN_KEYWORD = 3 };
enum { FIND_RANGE = 2, FIND_KEYNUM = 3 };

typedef struct {
    const char *notes;
    uint64_t flags;
    int begin;
    union {
        struct { int pos; } index;
        struct { const char *keyword; int startfrom; } keyword;
    } bs;
    int find;
    union {
        struct { int lastkey, keystep, limit; } range;
        struct { int keynumidx, firstkey, keystep; } keynum;
    } fk;
} RedisKeySpec;

typedef struct {
    int version; /* 1 */
    size_t sizeof_history, sizeof_keyspec, sizeof_arg;
} RedisCommandInfoVersion;

typedef struct {
    const RedisCommandInfoVersion *version;
    const char *summary, *complexity, *since;
    RedisHistory *history;
    const char *tips;
    int arity;
    RedisKeySpec *key_specs;
    RedisArg *args;
} RedisCommandInfo;

/* data types; version 4 of the struct is Redis 7.0's */
enum { TYPE_METHODS_VERSION = 4 };

typedef struct {
    uint64_t version;
    void *(*rdb_load)(RedisIO *, int encver);
    void (*rdb_save)(RedisIO *, void *value);
    void (*aof_rewrite)(RedisIO *, RedisString *key, void *value);
    size_t (*mem_usage)(const void *value);
    void (*digest)(RedisDigest *, void *value);
    void (*free)(void *value);
    int (*aux_load)(RedisIO *, int encver, int when);
    void (*aux_save)(RedisIO *, int when);
    int aux_save_triggers;
    size_t (*free_effort)(RedisString *key, const void *value);
    void (*unlink)(RedisString *key, const void *value);
    void *(*copy)(RedisString *from, RedisString *to, const void *value);
    int (*defrag)(RedisDefragCtx *, RedisString *key, void **value);
    size_t (*mem_usage2)(RedisKeyOptCtx *, const void *value, size_t sample);
    size_t (*free_effort2)(RedisKeyOptCtx *, const void *value);
    void (*unlink2)(RedisKeyOptCtx *, const void *value);
    void *(*copy2)(RedisKeyOptCtx *, const void *value);
} RedisTypeMethods;

#define REDIS_WRONGTYPE "WRONGTYPE Operation against a key holding the wrong kind of value"

/* result, name, parameters. The first three are needed to say why a Redis is too old. */
#define REDIS_FUNCTIONS(F)                                                                                             \
    F(void, SetModuleAttribs, (RedisCtx *, const char *name, int version, int api_version))                            \
    F(void, Log, (RedisCtx *, const char *level, const char *format, ...))                                             \
    F(int, GetServerVersion, (void))                                                                                   \
    F(int, RegisterNumericConfig,                                                                                      \
      (RedisCtx *, const char *name, long long initial, unsigned flags, long long least, long long most,               \
       long long (*get)(const char *, void *), int (*set)(const char *, long long, void *, RedisString **),            \
       int (*apply)(RedisCtx *, void *, RedisString **), void *))                                                      \
    F(int, LoadConfigs, (RedisCtx *))                                                                                  \
    F(int, IsModuleNameBusy, (const char *))                                                                           \
    F(void *, Alloc, (size_t))                                                                                         \
    F(void *, Calloc, (size_t, size_t))                                                                                \
    F(void *, Realloc, (void *, size_t))                                                                               \
    F(void *, TryAlloc, (size_t))                                                                                      \
    F(void, Free, (void *))                                                                                            \
    F(size_t, MallocSize, (void *))                                                                                    \
    F(void *, DefragAlloc, (RedisDefragCtx *, void *))                                                                 \
    F(void, SetModuleOptions, (RedisCtx *, int))                                                                       \
    F(int, CreateCommand, (RedisCtx *, const char *, RedisHandler, const char *flags, int, int, int))                  \
    F(RedisCommand *, GetCommand, (RedisCtx *, const char *))                                                          \
    F(int, SetCommandInfo, (RedisCommand *, const RedisCommandInfo *))                                                 \
    F(int, IsKeysPositionRequest, (RedisCtx *))                                                                        \
    F(void, KeyAtPosWithFlags, (RedisCtx *, int pos, int flags))                                                       \
    F(int *, GetCommandKeysWithFlags, (RedisCtx *, RedisString **, int, int *count, int **flags))                      \
    F(void, LogIOError, (RedisIO *, const char *level, const char *format, ...))                                       \
    F(int, WrongArity, (RedisCtx *))                                                                                   \
    F(int, ReplyWithLongLong, (RedisCtx *, long long))                                                                 \
    F(int, ReplyWithError, (RedisCtx *, const char *))                                                                 \
    F(int, ReplyWithSimpleString, (RedisCtx *, const char *))                                                          \
    F(int, ReplyWithArray, (RedisCtx *, long))                                                                         \
    F(int, ReplyWithMap, (RedisCtx *, long))                                                                           \
    F(int, ReplyWithSet, (RedisCtx *, long))                                                                           \
    F(int, ReplyWithNullArray, (RedisCtx *))                                                                           \
    F(int, ReplyWithStringBuffer, (RedisCtx *, const char *, size_t))                                                  \
    F(int, ReplyWithString, (RedisCtx *, RedisString *))                                                               \
    F(int, ReplyWithVerbatimStringType, (RedisCtx *, const char *, size_t, const char *format))                        \
    F(int, ReplyWithNull, (RedisCtx *))                                                                                \
    F(int, ReplyWithBool, (RedisCtx *, int))                                                                           \
    F(int, ReplyWithDouble, (RedisCtx *, double))                                                                      \
    F(int, ReplyWithBigNumber, (RedisCtx *, const char *, size_t))                                                     \
    F(RedisString *, CreateString, (RedisCtx *, const char *, size_t))                                                 \
    F(RedisString *, HoldString, (RedisCtx *, RedisString *))                                                          \
    F(void, FreeString, (RedisCtx *, RedisString *))                                                                   \
    F(const char *, StringPtrLen, (const RedisString *, size_t *))                                                     \
    F(int, StringToLongLong, (const RedisString *, long long *))                                                       \
    F(int, StringToDouble, (const RedisString *, double *))                                                            \
    F(int, GetContextFlags, (RedisCtx *))                                                                              \
    F(int, GetSelectedDb, (RedisCtx *))                                                                                \
    F(unsigned long long, GetClientId, (RedisCtx *))                                                                   \
    F(int, GetClientInfoById, (void *, uint64_t))                                                                      \
    F(RedisString *, GetCurrentUserName, (RedisCtx *))                                                                 \
    F(RedisUser *, GetModuleUserFromUserName, (RedisString *))                                                         \
    F(void, FreeModuleUser, (RedisUser *))                                                                             \
    F(void, SetContextUser, (RedisCtx *, const RedisUser *))                                                           \
    F(int, ACLCheckCommandPermissions, (RedisUser *, RedisString **, int))                                             \
    F(int, ACLCheckKeyPermissions, (RedisUser *, RedisString *, int))                                                  \
    F(RedisKey *, OpenKey, (RedisCtx *, RedisString *, int))                                                           \
    F(void, CloseKey, (RedisKey *))                                                                                    \
    F(int, KeyType, (RedisKey *))                                                                                      \
    F(size_t, ValueLength, (RedisKey *))                                                                               \
    F(int, DeleteKey, (RedisKey *))                                                                                    \
    F(char *, StringDMA, (RedisKey *, size_t *, int))                                                                  \
    F(int, HashGet, (RedisKey *, int flags, ...))                                                                      \
    F(RedisType *, CreateDataType, (RedisCtx *, const char *, int encver, RedisTypeMethods *))                         \
    F(int, ModuleTypeSetValue, (RedisKey *, RedisType *, void *))                                                      \
    F(RedisType *, ModuleTypeGetType, (RedisKey *))                                                                    \
    F(void *, ModuleTypeGetValue, (RedisKey *))                                                                        \
    F(int, IsIOError, (RedisIO *))                                                                                     \
    F(void, SaveUnsigned, (RedisIO *, uint64_t))                                                                       \
    F(uint64_t, LoadUnsigned, (RedisIO *))                                                                             \
    F(void, SaveStringBuffer, (RedisIO *, const char *, size_t))                                                       \
    F(char *, LoadStringBuffer, (RedisIO *, size_t *))                                                                 \
    F(void, EmitAOF, (RedisIO *, const char *, const char *, ...))                                                     \
    F(const RedisString *, GetKeyNameFromIO, (RedisIO *))                                                              \
    F(const RedisString *, GetToKeyNameFromOptCtx, (RedisKeyOptCtx *))                                                 \
    F(void, DigestAddStringBuffer, (RedisDigest *, const char *, size_t))                                              \
    F(void, DigestAddLongLong, (RedisDigest *, long long))                                                             \
    F(void, DigestEndSequence, (RedisDigest *))                                                                        \
    F(int, ReplicateVerbatim, (RedisCtx *))                                                                            \
    F(int, Replicate, (RedisCtx *, const char *command, const char *format, ...))                                      \
    F(RedisReply *, Call, (RedisCtx *, const char *, const char *, ...))                                               \
    F(const char *, CallReplyProto, (RedisReply *, size_t *))                                                          \
    F(int, CallReplyType, (RedisReply *))                                                                              \
    F(size_t, CallReplyLength, (RedisReply *))                                                                         \
    F(RedisReply *, CallReplyArrayElement, (RedisReply *, size_t))                                                     \
    F(const char *, CallReplyStringPtr, (RedisReply *, size_t *))                                                      \
    F(int, ReplyWithCallReply, (RedisCtx *, RedisReply *))                                                             \
    F(void, FreeCallReply, (RedisReply *))                                                                             \
    F(RedisBlocked *, BlockClient,                                                                                     \
      (RedisCtx *, RedisHandler reply, RedisHandler timeout, void (*free)(RedisCtx *, void *), long long timeout_ms))  \
    F(int, UnblockClient, (RedisBlocked *, void *))                                                                    \
    F(void *, GetBlockedClientPrivateData, (RedisCtx *))                                                               \
    F(void, SetDisconnectCallback, (RedisBlocked *, void (*)(RedisCtx *, RedisBlocked *)))                             \
    F(int, BlockedClientMeasureTimeStart, (RedisBlocked *))                                                            \
    F(int, BlockedClientMeasureTimeEnd, (RedisBlocked *))                                                              \
    F(RedisCtx *, GetDetachedThreadSafeContext, (RedisCtx *))                                                          \
    F(int, AvoidReplicaTraffic, (void))                                                                                \
    F(int, EventLoopAdd, (int fd, int mask, void (*)(int, void *, int), void *))                                       \
    F(int, EventLoopDel, (int fd, int mask))                                                                           \
    F(int, EventLoopAddOneShot, (void (*)(void *), void *))                                                            \
    F(RedisTimer, CreateTimer, (RedisCtx *, long long ms, void (*)(RedisCtx *, void *), void *))                       \
    F(int, StopTimer, (RedisCtx *, RedisTimer, void **))                                                               \
    F(int, SubscribeToServerEvent, (RedisCtx *, RedisEvent, RedisEventHandler))                                        \
    F(int, SubscribeToKeyspaceEvents, (RedisCtx *, int, int (*)(RedisCtx *, int, const char *, RedisString *)))        \
    F(int, NotifyKeyspaceEvent, (RedisCtx *, int, const char *, RedisString *))                                        \
    F(RedisFilter *, RegisterCommandFilter, (RedisCtx *, void (*)(RedisFilterCtx *), int))                             \
    F(int, CommandFilterArgsCount, (RedisFilterCtx *))                                                                 \
    F(RedisString *, CommandFilterArgGet, (RedisFilterCtx *, int))                                                     \
    F(int, CommandFilterArgReplace, (RedisFilterCtx *, int, RedisString *))                                            \
    F(int, CommandFilterArgInsert, (RedisFilterCtx *, int, RedisString *))                                             \
    F(RedisDict *, CreateDict, (RedisCtx *))                                                                           \
    F(void, FreeDict, (RedisCtx *, RedisDict *))                                                                       \
    F(uint64_t, DictSize, (RedisDict *))                                                                               \
    F(int, DictSetC, (RedisDict *, void *, size_t, void *))                                                            \
    F(int, DictReplaceC, (RedisDict *, void *, size_t, void *))                                                        \
    F(void *, DictGetC, (RedisDict *, void *, size_t, int *))                                                          \
    F(int, DictDelC, (RedisDict *, void *, size_t, void *))                                                            \
    F(RedisDictIter *, DictIteratorStartC, (RedisDict *, const char *, void *, size_t))                                \
    F(void *, DictNextC, (RedisDictIter *, size_t *, void **))                                                         \
    F(void, DictIteratorStop, (RedisDictIter *))                                                                       \
    F(int, RegisterInfoFunc, (RedisCtx *, void (*)(RedisInfoCtx *, int)))                                              \
    F(int, InfoAddSection, (RedisInfoCtx *, const char *))                                                             \
    F(int, InfoAddFieldCString, (RedisInfoCtx *, const char *, const char *))                                          \
    F(int, InfoAddFieldLongLong, (RedisInfoCtx *, const char *, long long))                                            \
    F(RedisServerInfo *, GetServerInfo, (RedisCtx *, const char *))                                                    \
    F(const char *, ServerInfoGetFieldC, (RedisServerInfo *, const char *))                                            \
    F(long long, ServerInfoGetFieldSigned, (RedisServerInfo *, const char *, int *))                                   \
    F(void, FreeServerInfo, (RedisCtx *, RedisServerInfo *))                                                           \
    F(int, GetClusterNodeInfo, (RedisCtx *, const char *id, char *ip, char *master_id, int *port, int *flags))         \
    F(const char *, GetMyClusterID, (void))                                                                            \
    F(void, GetRandomHexChars, (char *, size_t))                                                                       \
    F(uint64_t, MonotonicMicroseconds, (void))

/* Those of newer Redis; NULL where this one lacks them. */
#define REDIS_NEWER_FUNCTIONS(F) \
    F(int, SetCommandACLCategories, (RedisCommand *, const char *)) /* 7.2 */ \
    F(int, AddACLCategory, (RedisCtx *, const char *)) /* 7.4 */

#define REDIS_DECLARE(result, name, parameters) result(*name) parameters;
struct redis_api {
    REDIS_FUNCTIONS(REDIS_DECLARE)
    REDIS_NEWER_FUNCTIONS(REDIS_DECLARE)
};
#undef REDIS_DECLARE

/* Filled once by redis_api_load and constant afterwards. */
extern struct redis_api redis;

/* NULL when every function that is needed was found, else the name of the first that this Redis
 * lacks. */
const char *redis_api_load(RedisCtx *ctx);

#endif
