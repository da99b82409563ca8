/* The forms, as dumps of each version show them; N is a number, S a string that ends with a NUL.
 *
 *   tensor 0-3  device type N, device N, bits N, code N, lanes N, rank N, each dimension N, each
 *               stride N, offset N, data
 *   tensor 4    code N, bits N, rank N, each dimension N, data; of strings then an offset N each
 *   model       backend N, device S, tag, batch size N, least batch N, from 2 on its timeout N,
 *               inputs (N, each S), outputs alike; 0: the file; then: bytes N, chunks N, each chunk
 *   script      device S, tag, source S, from 3 on entry points (N, each S)
 *
 * Codes are DLPack's; 7 is a string. A tag ends with a NUL in version 0 alone. */
#include "ai/redisai_dump.h"

#include <string.h>

#include "ai/model_file.h"
#include "ai/model_internal.h"
#include "core/state.h"
#include "core/text.h"

enum { DLPACK_INT, DLPACK_UINT, DLPACK_FLOAT, DLPACK_BOOL = 6 };

/* False at the end of the file. */
static bool load(RedisIO *io, uint64_t *number) {
    *number = redis.LoadUnsigned(io);
    return !redis.IsIOError(io);
}

/* ---- tensors ---- */

/* NULL: RedisAI had no such type. */
static const struct dtype *dtype_of(uint64_t code, uint64_t bits) {
    static const struct {
        uint64_t code, bits;
        const char *name;
    } all[] = {{DLPACK_FLOAT, 32, "FLOAT"},   {DLPACK_FLOAT, 64, "DOUBLE"}, {DLPACK_INT, 8, "INT8"},
               {DLPACK_INT, 16, "INT16"},     {DLPACK_INT, 32, "INT32"},    {DLPACK_INT, 64, "INT64"},
               {DLPACK_UINT, 8, "UINT8"},     {DLPACK_UINT, 16, "UINT16"},  {DLPACK_BOOL, 8, "BOOL"},
               {REDISAI_STRINGS, 8, "STRING"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].code == code && all[i].bits == bits) return dtype_find(all[i].name, strlen(all[i].name));
    return NULL;
}

/* Only tensors whose elements lie one behind another were ever saved. */
static bool skip_strides(RedisIO *io, uint64_t rank) {
    uint64_t number;
    for (uint64_t i = 0; i < rank; i++)
        if (!load(io, &number)) return false;
    return load(io, &number) && number == 0;
}

/* The head of a tensor, up to its data. */
bool redisai_load_layout(RedisIO *io, int encoding, const struct dtype **dtype, long long shape[TENSOR_MAX_RANK],
                         int *rank) {
    uint64_t number, code, bits, lanes = 1, dimensions;
    bool old = encoding < 4;
    if (old && (!load(io, &number) || !load(io, &number) || !load(io, &bits) || !load(io, &code) || !load(io, &lanes)))
        return false;
    if (!old && (!load(io, &code) || !load(io, &bits))) return false;
    *dtype = dtype_of(code, bits);
    if (*dtype == NULL || lanes != 1 || !load(io, &dimensions) || dimensions > TENSOR_MAX_RANK) return false;
    for (uint64_t i = 0; i < dimensions; i++) {
        if (!load(io, &number)) return false;
        shape[i] = (long long)number;
    }
    *rank = (int)dimensions;
    return !old || skip_strides(io, dimensions);
}

/* Where each string begins: the NULs tell as well. */
bool redisai_skip_offsets(RedisIO *io, const struct dtype *dtype, size_t elements) {
    uint64_t offset;
    for (size_t i = 0; dtype->kind == DTYPE_STRING && i < elements; i++)
        if (!load(io, &offset)) return false;
    return true;
}

/* ---- models and scripts ---- */

/* Without its NUL. NULL: too long, or the file ends. */
static char *load_string(RedisIO *io, size_t most, size_t *length) {
    char *raw = redis.LoadStringBuffer(io, length);
    if (redis.IsIOError(io) || raw == NULL) return NULL;
    if (*length > 0 && raw[*length - 1] == '\0') (*length)--;
    char *text = *length <= most ? text_copy(raw, *length) : NULL;
    redis.Free(raw);
    return text;
}

/* Those of backends that name their own are passed over. */
static bool load_names(RedisIO *io, struct words *names, bool keep) {
    uint64_t count;
    size_t length;
    if (!load(io, &count) || count > MODEL_MAX_NAMES) return false;
    if (keep) names->items = redis.Calloc(count + 1, sizeof *names->items);
    for (uint64_t i = 0; i < count; i++) {
        char *name = load_string(io, MODEL_MAX_TEXT, &length);
        if (name == NULL) return false;
        if (keep)
            names->items[names->count++] = name;
        else
            redis.Free(name);
    }
    return true;
}

/* In one string in version 0, else in chunks. */
static bool load_blob(RedisIO *io, int encoding, struct model *model) {
    uint64_t bytes = 0, chunks = 1;
    bool good = encoding == 0 || (load(io, &bytes) && load(io, &chunks) && bytes <= MODEL_MAX_BYTES);
    return model_load_chunks(io, model, good, chunks, bytes) && (encoding == 0 || model->blob->length == bytes);
}

static bool load_number(RedisIO *io, long long *number) {
    uint64_t value;
    if (!load(io, &value) || value > MODEL_MAX_BATCH) return false;
    *number = (long long)value;
    return true;
}

/* In the order at the head of this file, as the next. */
bool redisai_load_model(RedisIO *io, int encoding, struct model *model) {
    static const char *const backends[] = {"TF", "TFLITE", "TORCH", "ONNX"};
    uint64_t backend;
    size_t length;
    if (!load(io, &backend) || backend >= sizeof backends / sizeof *backends) return false;
    model->backend = text_copy(backends[backend], strlen(backends[backend]));
    bool named = backend == 0 || backend == 3; /* TF's client names them; ONNX says the same once it is loaded */
    return (model->device = load_string(io, MODEL_MAX_TEXT, &length)) != NULL &&
           (model->tag = load_string(io, MODEL_MAX_TEXT, &model->tag_length)) != NULL &&
           load_number(io, &model->batch_size) && load_number(io, &model->min_batch_size) &&
           (encoding < 2 || load_number(io, &model->min_batch_timeout)) && load_names(io, &model->inputs, named) &&
           load_names(io, &model->outputs, named) && load_blob(io, encoding, model);
}

/* Its source lies where a model has its file. */
bool redisai_load_script(RedisIO *io, int encoding, struct model *script) {
    size_t length;
    script->backend = text_copy("TORCH", 5);
    if ((script->device = load_string(io, MODEL_MAX_TEXT, &length)) == NULL ||
        (script->tag = load_string(io, MODEL_MAX_TEXT, &script->tag_length)) == NULL)
        return false;
    char *source = load_string(io, MODEL_IN_MEMORY, &length);
    if (source == NULL) return false;
    script->blob = blob_new(source, length);
    return encoding < 3 || load_names(io, &script->inputs, true);
}
