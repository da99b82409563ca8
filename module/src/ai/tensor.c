/* AI.TENSORSET, AI.TENSORGET and the tensor type. */
#include "ai/tensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ai/ai_state.h"
#include "ai/redisai_dump.h"
#include "core/buffer.h"
#include "core/state.h"
#include "core/text.h"

enum { TENSOR_ENCODING = 100 }; /* RedisAI wrote up to 4: redisai_dump.c */
enum { VALUES_MOST = 4 << 20 }; /* floats: 0.7 s, in which Redis serves nobody else */

/* Takes `data` over, and copies the shape. */
static struct tensor *tensor_new(const struct dtype *dtype, const long long *shape, int rank, char *data,
                                 size_t bytes) {
    struct tensor *tensor = redis.Alloc(sizeof *tensor);
    *tensor = (struct tensor){.dtype = dtype, .rank = rank, .bytes = bytes, .data = data};
    tensor->shape = redis.Alloc(sizeof *shape * (size_t)(rank + 1));
    memcpy(tensor->shape, shape, sizeof *shape * (size_t)rank);
    return tensor;
}

/* Redis may call it in another thread (UNLINK). */
void tensor_free(void *value) {
    struct tensor *tensor = value;
    redis.Free(tensor->shape);
    redis.Free(tensor->data);
    redis.Free(tensor);
}

/* `TYPE 1,128`, as frames have it. */
void tensor_add_layout(struct buffer *to, const struct tensor *tensor) {
    char shape[TENSOR_MAX_RANK * 21];
    shape_text(tensor->shape, tensor->rank, shape, sizeof shape);
    buffer_add(to, tensor->dtype->name, strlen(tensor->dtype->name));
    buffer_add(to, " ", 1);
    buffer_add(to, shape, strlen(shape));
}

struct tensor *tensor_open(RedisCtx *ctx, RedisString *name) {
    return value_open(ctx, name, ai.tensor_type, "ERR tensor key is empty or in a different shard");
}

/* ---- AI.TENSORSET ---- */

struct setting {
    const struct dtype *dtype; /* static */
    long long shape[TENSOR_MAX_RANK];
    int rank;
    size_t elements; /* the product of the shape */
    struct buffer data; /* owned until the tensor takes it */
};

/* Up to BLOB, VALUES or the end. */
static const char *read_shape(RedisString **argv, int argc, int *at, struct setting *s) {
    for (; *at < argc && !text_is(argv[*at], "BLOB") && !text_is(argv[*at], "VALUES"); (*at)++) {
        if (s->rank == TENSOR_MAX_RANK || redis.StringToLongLong(argv[*at], &s->shape[s->rank]) != REDIS_OK ||
            s->shape[s->rank] < 1)
            return "ERR invalid or negative value found in tensor shape";
        s->rank++;
    }
    if (!tensor_elements(s->dtype, s->shape, s->rank, &s->elements))
        return "ERR invalid or negative value found in tensor shape: a tensor has at most 32 dimensions and 512 MiB";
    return NULL;
}

static const char *read_blob(RedisString **argv, int argc, int at, struct setting *s) {
    size_t length;
    if (argc - at != 1)
        return "ERR a single binary string should come after the BLOB argument in 'AI.TENSORSET' command";
    const char *blob = redis.StringPtrLen(argv[at], &length);
    if (length > TENSOR_MAX_BYTES) return "ERR data length does not match tensor shape and type";
    const char *error = tensor_data_error(s->dtype, s->elements, blob, length);
    if (error) return error;
    buffer_add(&s->data, blob, length);
    return NULL;
}

/* The value met, and what its type takes; overwritten by the next. */
static const char *invalid_value(const struct dtype *dtype, const char *text, size_t length) {
    static char error[256];
    char range[64] = "";
    unsigned long long least = element_largest(dtype, true);
    if (!dtype_is_real(dtype))
        snprintf(range, sizeof range, " without fraction, %s%llu to %llu", least ? "-" : "", least,
                 element_largest(dtype, false));
    int width = length > 64 ? 64 : (int)length;
    snprintf(error, sizeof error, "ERR invalid value '%.*s%s': %s takes numbers%s", width, text,
             length > 64 ? "..." : "", dtype->name, range);
    return error;
}

static const char *add_value(const RedisString *string, struct setting *s) {
    char element[8];
    double number;
    size_t length;
    const char *text = redis.StringPtrLen(string, &length);
    if (s->dtype->kind == DTYPE_STRING) {
        if (length > 0 && text[length - 1] == '\0') length--; /* a string may bring its end along */
        if (memchr(text, '\0', length)) return "ERR C-string value contains null character";
        buffer_add(&s->data, text, length);
        buffer_add(&s->data, "", 1);
        return NULL;
    }
    if (dtype_is_real(s->dtype)) {
        if (redis.StringToDouble(string, &number) != REDIS_OK) return invalid_value(s->dtype, text, length);
        element_from_double(s->dtype, number, element);
    } else if (!element_from_text(s->dtype, text, length, element)) {
        return invalid_value(s->dtype, text, length);
    }
    buffer_add(&s->data, element, s->dtype->size);
    return NULL;
}

/* Exactly as many as the shape has elements. */
static const char *read_values(RedisString **argv, int argc, int at, struct setting *s) {
    if ((size_t)(argc - at) != s->elements) return "ERR wrong number of values was given in 'AI.TENSORSET' command";
    buffer_reserve(&s->data, s->elements * (s->dtype->size ? s->dtype->size : 1));
    for (; at < argc; at++) {
        const char *error = add_value(argv[at], s);
        if (error) return error;
    }
    return s->data.length <= TENSOR_MAX_BYTES ? NULL : "ERR the values have more than 512 MiB; use several tensors";
}

/* Neither BLOB nor VALUES: zeros. A shape alone may ask for 512 MiB, so the allocation may fail. */
static const char *fill_zeros(struct setting *s) {
    size_t bytes = s->elements * (s->dtype->size ? s->dtype->size : 1); /* empty strings are one NUL each */
    char *zeros = redis.TryAlloc(bytes);
    if (zeros == NULL) return "OOM the tensor does not fit into memory";
    memset(zeros, 0, bytes);
    s->data = (struct buffer){.data = zeros, .length = bytes, .capacity = bytes};
    return NULL;
}

/* NULL, or the error. The caller frees `data` either way. */
static const char *read_setting(RedisString **argv, int argc, struct setting *s) {
    size_t length;
    const char *name = redis.StringPtrLen(argv[2], &length);
    int at = 3;
    s->dtype = dtype_find(name, length);
    if (s->dtype == NULL) return "ERR invalid data type";
    const char *error = read_shape(argv, argc, &at, s);
    if (error) return error;
    if (at == argc) return fill_zeros(s);
    if (text_is(argv[at], "BLOB")) return read_blob(argv, argc, at + 1, s);
    return read_values(argv, argc, at + 1, s);
}

/* RedisAI's texts of tensor_layout.c come without their code. */
static int reply_set_error(RedisCtx *ctx, const char *error) {
    bool coded = strncmp(error, "ERR ", 4) == 0 || strncmp(error, "OOM ", 4) == 0;
    return reply_error(ctx, "%s%s", coded ? "" : "ERR ", error);
}

/* The tensor of a command, or NULL and the error; no key is touched. */
struct tensor *tensor_read(RedisString **argv, int argc, const char **error) {
    struct setting s = {0};
    size_t bytes;
    *error = read_setting(argv, argc, &s);
    if (*error) {
        buffer_free(&s.data);
        return NULL;
    }
    char *data = buffer_take(&s.data, &bytes);
    return tensor_new(s.dtype, s.shape, s.rank, data, bytes);
}

/* AI.TENSORSET key type [dimension ...] [BLOB data | VALUES value ...] */
int ai_tensorset(RedisCtx *ctx, RedisString **argv, int argc) {
    const char *error;
    if (argc < 4) return redis.WrongArity(ctx);
    struct tensor *tensor = tensor_read(argv, argc, &error);
    if (tensor == NULL) return reply_set_error(ctx, error);
    RedisKey *key = redis.OpenKey(ctx, argv[1], REDIS_READ | REDIS_WRITE);
    if (redis.KeyType(key) != KEYTYPE_EMPTY && redis.ModuleTypeGetType(key) != ai.tensor_type) {
        redis.CloseKey(key);
        tensor_free(tensor);
        return redis.ReplyWithError(ctx, REDIS_WRONGTYPE);
    }
    /* the key owns it from here on */
    redis.ModuleTypeSetValue(key, ai.tensor_type, tensor);
    redis.CloseKey(key);
    redis.NotifyKeyspaceEvent(ctx, NOTIFY_MODULE, "ai.tensorset", argv[1]);
    redis.ReplicateVerbatim(ctx);
    return redis.ReplyWithSimpleString(ctx, "OK");
}

/* ---- AI.TENSORGET ---- */

static void reply_string_values(RedisCtx *ctx, const struct tensor *t) {
    for (const char *at = t->data; at < t->data + t->bytes; at += strlen(at) + 1)
        redis.ReplyWithStringBuffer(ctx, at, strlen(at));
}

static void reply_element(RedisCtx *ctx, const struct dtype *dtype, const char *from) {
    if (!dtype_is_real(dtype)) {
        char digits[24];
        if (element_is_large(dtype, from))
            redis.ReplyWithStringBuffer(
                ctx, digits,
                (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)element_integer(dtype, from)));
        else
            redis.ReplyWithLongLong(ctx, element_integer(dtype, from));
        return;
    }
    double value = element_double(dtype, from);
    if (isnan(value))
        redis.ReplyWithStringBuffer(ctx, "nan", 3); /* printf may write -nan, which no client reads */
    else
        redis.ReplyWithDouble(ctx, value);
}

static void reply_values(RedisCtx *ctx, const struct tensor *t) {
    size_t elements = 0;
    tensor_elements(t->dtype, t->shape, t->rank, &elements);
    redis.ReplyWithArray(ctx, (long)elements);
    if (t->dtype->kind == DTYPE_STRING) {
        reply_string_values(ctx, t);
        return;
    }
    for (size_t i = 0; i < elements; i++) reply_element(ctx, t->dtype, t->data + i * t->dtype->size);
}

static void reply_data(RedisCtx *ctx, const struct tensor *t, bool values) {
    if (values)
        reply_values(ctx, t);
    else
        redis.ReplyWithStringBuffer(ctx, t->data, t->bytes);
}

/* Type and shape, each with its name. */
static void reply_meta(RedisCtx *ctx, const struct tensor *t) {
    redis.ReplyWithStringBuffer(ctx, "dtype", 5);
    redis.ReplyWithStringBuffer(ctx, t->dtype->name, strlen(t->dtype->name));
    redis.ReplyWithStringBuffer(ctx, "shape", 5);
    redis.ReplyWithArray(ctx, t->rank);
    for (int i = 0; i < t->rank; i++) redis.ReplyWithLongLong(ctx, t->shape[i]);
}

/* Flags of what to reply. NULL, or the error. */
const char *tensor_read_format(RedisString **argv, int argc, int *format) {
    *format = argc == 2 ? TENSOR_META | TENSOR_BLOB : 0;
    for (int i = 2; i < argc; i++) {
        if (text_is(argv[i], "META"))
            *format |= TENSOR_META;
        else if (text_is(argv[i], "BLOB"))
            *format |= TENSOR_BLOB;
        else if (text_is(argv[i], "VALUES"))
            *format |= TENSOR_VALUES;
        else
            return "ERR unsupported data format";
    }
    return (*format & TENSOR_BLOB) && (*format & TENSOR_VALUES) ? "ERR both BLOB and VALUES specified" : NULL;
}

/* AI.TENSORGET key [META] [BLOB | VALUES] */
int ai_tensorget(RedisCtx *ctx, RedisString **argv, int argc) {
    int format;
    if (argc < 2 || argc > 4) return redis.WrongArity(ctx);
    struct tensor *t = tensor_open(ctx, argv[1]);
    if (t == NULL) return REDIS_OK;
    const char *error = tensor_read_format(argv, argc, &format);
    if (error) return redis.ReplyWithError(ctx, error);
    bool meta = format & TENSOR_META, blob = format & TENSOR_BLOB, values = format & TENSOR_VALUES;
    size_t elements = 0;
    if (values && tensor_elements(t->dtype, t->shape, t->rank, &elements) && elements > VALUES_MOST)
        return reply_error(ctx, "ERR VALUES of %zu values would hold Redis, at most %d are replied; get its BLOB",
                           elements, VALUES_MOST);
    if (!meta) {
        reply_data(ctx, t, values);
        return REDIS_OK;
    }
    redis.ReplyWithArray(ctx, blob || values ? 6 : 4);
    reply_meta(ctx, t);
    if (!blob && !values) return REDIS_OK;
    redis.ReplyWithStringBuffer(ctx, blob ? "blob" : "values", blob ? 4 : 6);
    reply_data(ctx, t, values);
    return REDIS_OK;
}

/* ---- the type ---- */

static void rdb_save(RedisIO *io, void *value) {
    const struct tensor *t = value;
    redis.SaveStringBuffer(io, t->dtype->name, strlen(t->dtype->name));
    redis.SaveUnsigned(io, (uint64_t)t->rank);
    for (int i = 0; i < t->rank; i++) redis.SaveUnsigned(io, (uint64_t)t->shape[i]);
    redis.SaveStringBuffer(io, t->data, t->bytes);
}

/* NULL where the type is unknown or the file ends. */
static const struct dtype *load_dtype(RedisIO *io) {
    size_t length;
    char *name = redis.LoadStringBuffer(io, &length);
    if (redis.IsIOError(io) || name == NULL) return NULL;
    const struct dtype *dtype = dtype_find(name, length);
    redis.Free(name);
    return dtype;
}

/* False where the type is unknown, there are more than 32 dimensions, or the file ends. */
static bool load_layout(RedisIO *io, const struct dtype **dtype, long long *shape, int *rank) {
    if ((*dtype = load_dtype(io)) == NULL) return false;
    uint64_t dimensions = redis.LoadUnsigned(io);
    if (redis.IsIOError(io) || dimensions > TENSOR_MAX_RANK) return false;
    *rank = (int)dimensions;
    for (int i = 0; i < *rank; i++) {
        shape[i] = (long long)redis.LoadUnsigned(io);
        if (redis.IsIOError(io)) return false;
    }
    return true;
}

/* NULL for all that AI.TENSORSET would have refused. */
static void *rdb_load(RedisIO *io, int encoding) {
    long long shape[TENSOR_MAX_RANK];
    int rank;
    size_t elements, bytes;
    const struct dtype *dtype;
    bool theirs = encoding <= REDISAI_ENCODING_MOST;
    if (!theirs && encoding != TENSOR_ENCODING)
        return refuse_version(io, "tensor", encoding, TENSOR_ENCODING, "AI.TENSORSET");
    if (!(theirs ? redisai_load_layout(io, encoding, &dtype, shape, &rank) : load_layout(io, &dtype, shape, &rank)))
        return NULL;
    if (!tensor_elements(dtype, shape, rank, &elements)) return NULL;
    char *data = redis.LoadStringBuffer(io, &bytes);
    if (redis.IsIOError(io) || data == NULL) return NULL;
    if (tensor_data_error(dtype, elements, data, bytes) != NULL ||
        (theirs && !redisai_skip_offsets(io, dtype, elements))) {
        redis.Free(data);
        return NULL;
    }
    return tensor_new(dtype, shape, rank, data, bytes);
}

/* Only for `aof-use-rdb-preamble no`. */
static void aof_rewrite(RedisIO *io, RedisString *key, void *value) {
    const struct tensor *t = value;
    RedisString *shape[TENSOR_MAX_RANK];
    for (int i = 0; i < t->rank; i++) {
        char digits[24];
        shape_text(&t->shape[i], 1, digits, sizeof digits);
        shape[i] = redis.CreateString(NULL, digits, strlen(digits));
    }
    redis.EmitAOF(io, "AI.TENSORSET", "scvcb", key, t->dtype->name, shape, (size_t)t->rank, "BLOB", t->data, t->bytes);
    for (int i = 0; i < t->rank; i++) redis.FreeString(NULL, shape[i]);
}

static size_t memory_of(RedisKeyOptCtx *ctx, const void *value, size_t sample) {
    const struct tensor *t = value;
    (void)ctx;
    (void)sample;
    return redis.MallocSize((void *)t) + redis.MallocSize(t->shape) + redis.MallocSize(t->data);
}

/* Redis frees in another thread from 64 on. */
static size_t free_effort(RedisKeyOptCtx *ctx, const void *value) {
    const struct tensor *t = value;
    (void)ctx;
    return 1 + (t->bytes >> 20); /* one allocation; past 64 MB its unmapping is worth a thread */
}

static void *copy(RedisKeyOptCtx *ctx, const void *value) {
    const struct tensor *t = value;
    (void)ctx;
    return tensor_new(t->dtype, t->shape, t->rank, text_copy(t->data, t->bytes), t->bytes);
}

/* Where it lies better, if Redis' allocator says so. */
static void *moved(RedisDefragCtx *ctx, void *memory) {
    void *better = redis.DefragAlloc(ctx, memory);
    return better ? better : memory;
}

/* Active defragmentation. Between two commands its key alone knows a tensor: runs get copies. */
static int defrag(RedisDefragCtx *ctx, RedisString *key, void **value) {
    struct tensor *t = moved(ctx, *value);
    (void)key;
    t->shape = moved(ctx, t->shape);
    t->data = moved(ctx, t->data);
    *value = t;
    return 0;
}

static void digest(RedisDigest *md, void *value) {
    const struct tensor *t = value;
    redis.DigestAddStringBuffer(md, t->dtype->name, strlen(t->dtype->name));
    for (int i = 0; i < t->rank; i++) redis.DigestAddLongLong(md, t->shape[i]);
    redis.DigestAddStringBuffer(md, t->data, t->bytes);
    redis.DigestEndSequence(md);
}

int tensor_type_create(RedisCtx *ctx) {
    RedisTypeMethods methods = {.version = TYPE_METHODS_VERSION,
                                .rdb_load = rdb_load,
                                .rdb_save = rdb_save,
                                .aof_rewrite = aof_rewrite,
                                .digest = digest,
                                .free = tensor_free,
                                .defrag = defrag,
                                .mem_usage2 = memory_of,
                                .free_effort2 = free_effort,
                                .copy2 = copy};
    ai.tensor_type = redis.CreateDataType(ctx, "AI_TENSOR", TENSOR_ENCODING, &methods);
    return ai.tensor_type ? REDIS_OK : REDIS_ERR;
}
