/* What the module knows of models, beside core/state.h. */
#ifndef SHARDQA_AI_STATE_H
#define SHARDQA_AI_STATE_H

#include <stdint.h>

#include "core/latency.h"
#include "core/redis_api.h"

struct model;

struct ai_state {
    struct model *models;     /* list of all live models; each holds one reference of its own */
    uint64_t last_model;      /* id of the youngest */
    long long model_count; /* entries of `models` */
    long long models_unsent;  /* that the running worker has not been given */
    long long models_loading; /* sent anew to a new worker and not answered yet */
    struct model *storing;    /* the validated model that the running AI.MODELSTORE of ours shall store; borrowed */
    unsigned backends; /* that something was loaded with, see backends.h */
    RedisType *tensor_type; /* of AI_TENSOR; the next two of AI__MODEL and AI_SCRIPT */
    RedisType *model_type;
    RedisType *script_type;
    long long executes; /* AI.MODELEXECUTE, SCRIPTEXECUTE and DAGEXECUTE sent to the worker */
    struct latency execute_latency; /* from a client's command to its reply */
};

extern struct ai_state ai;

#endif
