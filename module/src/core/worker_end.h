/* What an ended worker leaves behind. */
#ifndef SHARDQA_WORKER_END_H
#define SHARDQA_WORKER_END_H

/* Says in the log and in INFO what the worker computed, and lets those pay for it who may have
 * ended it. Before its requests are failed: they say who they were. `signal`: that ended it, 0:
 * none did. */
void worker_end_blame(int signal);

#endif
