/* The worker as a process; what is known of it stands in shardqa.link. */
#ifndef SHARDQA_WORKER_PROCESS_H
#define SHARDQA_WORKER_PROCESS_H

#include <stddef.h>

void process_init(void);
int process_start(int *socket);           /* 0 and our end of its socket, which the caller closes; or an errno */
/* kills what still runs; the signal that ended it, 0 where none did; `how` in words */
int process_end(char *how, size_t size);
void process_collect(void);               /* collects killed workers that took their time */

#endif
