/* Values as RedisAI 1.0 to 1.2 saved them (versions 0 to 4), which are read and never written. */
#ifndef SHARDQA_REDISAI_DUMP_H
#define SHARDQA_REDISAI_DUMP_H

#include <stdbool.h>

#include "ai/model.h"
#include "ai/tensor_layout.h"
#include "core/redis_api.h"

enum { REDISAI_ENCODING_MOST = 4, REDISAI_STRINGS = 7 /* the code of a tensor of strings */ };

/* Type and shape; false for what no RedisAI wrote. The data follows. */
bool redisai_load_layout(RedisIO *io, int encoding, const struct dtype **dtype, long long shape[TENSOR_MAX_RANK],
                         int *rank);
bool redisai_skip_offsets(RedisIO *io, const struct dtype *dtype, size_t elements); /* behind the data of strings */

bool redisai_load_model(RedisIO *io, int encoding, struct model *model);
bool redisai_load_script(RedisIO *io, int encoding, struct model *script);

#endif
