/* Models: the values of AI__MODEL keys, and what the worker knows of them. */
#ifndef SHARDQA_MODEL_H
#define SHARDQA_MODEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/activity.h"
#include "core/blob.h"
#include "core/frame.h"
#include "core/redis_api.h"
#include "core/text.h"

enum model_kind { KIND_MODEL, KIND_SCRIPT };

enum model_state {
    MODEL_UNSENT, /* the running worker has not been given it */
    MODEL_SENT,
    MODEL_LOADED,
    MODEL_FAILED, /* the worker refused it: `error` says why */
    MODEL_BARRED  /* no worker is given it any more: `error` says why */
};

/* One reference per key that holds it, one by the list of all models, one by each request under
 * way. A key's reference may be dropped by a lazy-free thread, so only the list's reference,
 * dropped on the main thread, ever frees the model. */
struct model {
    struct model *next; /* in ai.models */
    atomic_long references; /* any thread; see above */
    uint64_t id;        /* names this object to the worker; a key that is overwritten gets a new object */
    char *key;          /* owned; where it was stored or moved to last */
    size_t key_length; /* bytes */
    enum model_kind kind;
    char *backend;      /* owned, as are the next two */
    char *device;       /* as it was given */
    char *tag;          /* any bytes */
    size_t tag_length; /* bytes */
    long long batch_size; /* rows; 0: runs are not joined */
    long long min_batch_size; /* rows that a run waits for; 0: for none */
    long long min_batch_timeout; /* ms */
    struct words padded;  /* inputs whose second dimension is a sequence that may be padded */
    struct words inputs;  /* unknown (empty) until a worker has loaded it; of a script: its entry points */
    struct words outputs; /* as inputs */
    uint64_t awaited;     /* the request of clients that wait for these names; none has it: nobody waits */
    struct blob *blob;    /* one reference; of a script: its source */
    enum model_state state; /* what the running worker has of it */
    int blame;            /* points for deaths of the worker; BLAME_MOST bar it */
    int load_kills;       /* SIGKILLs from outside while it was loaded, one after another; LOAD_KILLS_MOST bar it */
    char *error;          /* owned; of MODEL_FAILED and MODEL_BARRED */
    long long calls;      /* statistics of AI.INFO, of this process */
    long long duration_us; /* of all runs, in the worker */
    long long samples; /* rows of first inputs */
    long long errors; /* runs that failed; among `calls` */
};

#define AI_REFUSAL "ERR Cannot run RedisAI command within a transaction or a LUA script"

int model_type_create(RedisCtx *ctx);

void models_send(void);           /* gives the worker every model that it has not got */
void models_forget_worker(void);  /* it died: all models are unsent again */
void models_cron(void);           /* frees models that no key holds any more */
/* The worker ended while it loaded or ran this model, `alone` when it did nothing else. Twice,
 * and no worker is given it again. */
void model_blame(uint64_t id, enum activity_end end, bool alone);
int models_subscribe(RedisCtx *ctx); /* follows keys that are renamed */

/* Of a backend in the state's `backends`: INFO shows those that were loaded, as RedisAI does, which
 * loads one when it is first needed. 0: one that INFO has no field for. */
unsigned backend_bit(const char *name);

struct model *model_retain(struct model *model);
void model_release(void *model);

/* NULL and the error replied when the key holds no model. The model is borrowed from the key. */
struct model *model_open(RedisCtx *ctx, RedisString *key);

struct frame;
struct frame_list;
bool models_frame_ran(const struct frame *frame); /* runs of functions and scripts, for AI.INFO */
bool models_count(struct frame_list list);        /* the same from a list: id, calls, us, samples, errors, … */

int ai_modelstore(RedisCtx *ctx, RedisString **argv, int argc);
int ai_modelset(RedisCtx *ctx, RedisString **argv, int argc);
int ai_modelget(RedisCtx *ctx, RedisString **argv, int argc);
int ai_modeldel(RedisCtx *ctx, RedisString **argv, int argc);
int ai_scan(RedisCtx *ctx, RedisString **argv, int argc);
int ai_info(RedisCtx *ctx, RedisString **argv, int argc);

#endif
