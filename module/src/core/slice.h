/* The main thread's turns on a processor. */
#ifndef SHARDQA_SLICE_H
#define SHARDQA_SLICE_H

/* Asks for the shortest turns, by the main thread. */
void slice_ask(void);

/* Those in force, in microseconds; 0 where the kernel decides. */
long long slice_in_force(void);

#endif
