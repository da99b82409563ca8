/* The arguments of AI.MODELEXECUTE, MODELRUN, SCRIPTEXECUTE and SCRIPTRUN: alone, and as an
 * operation of a DAG. */
#ifndef SHARDQA_RUN_PLAN_H
#define SHARDQA_RUN_PLAN_H

#include <stdbool.h>

#include "core/redis_api.h"

enum { RUN_ERROR = 256 }; /* bytes of an error text */

struct span {
    int first; /* index in argv */
    int count;
};

struct run_plan {
    bool script; /* AI.SCRIPTEXECUTE, AI.SCRIPTRUN */
    bool counted; /* MODELEXECUTE, SCRIPTEXECUTE */
    int key;      /* index in argv of the model's or script's key; function: of a script's */
    int function;
    struct span inputs; /* of SCRIPTRUN with the `$` among them */
    struct span outputs; /* keys, or names in a DAG */
    struct span keys; /* that a script may touch */
    struct span args; /* words for a script */
    int dollar; /* index of SCRIPTRUN's `$`, behind which the inputs are one list; 0: none */
    long long timeout_ms; /* 0: none was given */
};

/* Is it the name of one of the four? Then *plan is begun. */
bool run_plan_begin(const RedisString *command, struct run_plan *plan);

/* Reads argv[start] (the command's name) up to argv[end - 1]. False: `error` is filled. */
bool run_plan_read(RedisString **argv, int start, int end, bool in_dag, struct run_plan *plan, char error[RUN_ERROR]);

int run_plan_inputs(const struct run_plan *plan);           /* how many there are, without the `$` */
struct frame_writer;
/* A script's function, index of the first input of its list (-1: none), keys and arguments, as
 * items. */
void run_plan_add_call(struct frame_writer *writer, RedisString **argv, const struct run_plan *plan);
/* their number first */
void run_plan_add_words(struct frame_writer *writer, RedisString **argv, const struct span *span);
int run_plan_input(const struct run_plan *plan, int index); /* where in argv */

#endif
