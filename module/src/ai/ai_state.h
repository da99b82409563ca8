/* What the module knows of models, and their frames, beside core. */
#ifndef SHARDQA_AI_STATE_H
#define SHARDQA_AI_STATE_H

#include <stdint.h>

#include "core/frame.h"
#include "core/latency.h"
#include "core/redis_api.h"

struct model;

/* Types of the frames of AI.*, beside those of core. */
enum {
    FRAME_MODELLOAD = 7,
    FRAME_MODELDROP = 8,
    FRAME_EXECUTE = 9,
    FRAME_SCRIPT = 32,
    FRAME_DAG = 33,
    FRAME_TENSORS = 66,
    FRAME_RAN = 80,
    FRAME_DAG_DONE = 81
};

struct ai_state {
    struct model *models;     /* list of all live models; each holds one reference of its own */
    uint64_t last_model;      /* id of the youngest */
    long long model_count; /* entries of `models` */
    long long models_unsent;  /* that the running worker has not been given */
    long long models_loading; /* sent anew to a new worker and not answered yet */
    struct model *storing;    /* the validated model that the running AI.MODELSTORE of ours shall store; borrowed */
    unsigned backends; /* that something was loaded with, see backend_bit */
    RedisType *tensor_type; /* of AI_TENSOR; the next two of AI__MODEL and AI_SCRIPT */
    RedisType *model_type;
    RedisType *script_type;
    long long executes; /* AI.MODELEXECUTE, SCRIPTEXECUTE and DAGEXECUTE sent to the worker */
    struct latency execute_latency; /* from a client's command to its reply */
};

extern struct ai_state ai;

#endif
