/* Between model.c and model_commands.c. */
#ifndef SHARDQA_MODEL_INTERNAL_H
#define SHARDQA_MODEL_INTERNAL_H

#include <stdbool.h>

#include "frame.h"
#include "model.h"

/* Together they keep a MODELLOAD frame below its bound. */
enum { MODEL_MAX_TEXT = 65536 }; /* bytes of a key, tag or name */
#define MODEL_MAX_BYTES (FRAME_MAX_PAYLOAD - FRAME_SPARE)

struct model *model_new(const char *key, size_t key_length); /* one reference, the caller's */
void models_add(struct model *model);
void model_send(struct model *model, uint64_t request);
bool model_take_names(struct model *model, const char *resp, size_t length, char *error, size_t error_size);

#endif
