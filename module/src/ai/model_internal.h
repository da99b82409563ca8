/* Between model.c, model_type.c and model_commands.c. */
#ifndef SHARDQA_MODEL_INTERNAL_H
#define SHARDQA_MODEL_INTERNAL_H

#include <stdbool.h>

#include "ai/model.h"
#include "ai/model_file.h"
#include "core/frame.h"

/* Together they keep a MODELLOAD frame below its bound. */
enum {
    MODEL_MAX_TEXT = 65536,   /* bytes of a key, tag or name */
    MODEL_MAX_NAMES = 4096,   /* inputs, and outputs */
    MODEL_MAX_BATCH = 1 << 30 /* rows, or milliseconds, of BATCHSIZE, MINBATCHSIZE and MINBATCHTIMEOUT */
};
#define MODEL_MAX_BYTES (shardqa.arguments.models ? MODEL_IN_FILE : MODEL_IN_MEMORY)

struct model *model_new(const char *key, size_t key_length); /* one reference, the caller's */
void model_destroy(struct model *model); /* for one that nobody else has seen; others: model_release */
void model_set_error(struct model *model, enum model_state state, const char *error);
bool model_is_device(const char *text); /* CPU, CPU:n, GPU or GPU:n, in any case, at most 9 bytes */
bool model_load_chunks(RedisIO *io, struct model *model, bool good, uint64_t chunks, uint64_t expected);
void models_add(struct model *model);
void model_send(struct model *model, uint64_t request);
void model_send_drop(const struct model *model);

/* All words of the command that stores the model, but its key before and its file behind them;
 * the caller owns the strings. */
size_t model_words(const struct model *model, RedisString **argv);
size_t model_most_words(const struct model *model);

/* A command's arguments on their way through the functions that read them. */
struct arguments {
    RedisString **argv; /* of the command; borrowed */
    int argc;
    int at;       /* the next one */
    bool counted; /* names come with their number before */
    bool trusted; /* from the master or the AOF: was checked where it came from */
};

bool arguments_next_is(struct arguments *a, const char *word); /* and steps over it */
const char *model_read_device(struct arguments *a, struct model *model); /* NULL, or the error, as the next */
const char *model_read_tag(struct arguments *a, struct model *model); /* NULL, or the error */

const char *model_read_name(RedisString *string, struct words *names);

int model_delete(RedisCtx *ctx, RedisString *name);
void reply_text(RedisCtx *ctx, const char *text);
void reply_pair(RedisCtx *ctx, const char *name, const char *value);
void reply_names(RedisCtx *ctx, const char *name, const struct words *names);
void reply_tag(RedisCtx *ctx, const struct model *model);

/* Stores what `read` makes of the arguments, once the worker has accepted it where that can be
 * waited for. */
int model_store(RedisCtx *ctx, struct arguments *a, enum model_kind kind,
                const char *(*read)(struct arguments *, struct model *));
int model_set_key(RedisCtx *ctx, RedisString *name, struct model *model);
bool model_loaded(struct model *model, const char *resp, size_t length, bool keep, char *error, size_t error_size);

#endif
