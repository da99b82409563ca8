/* The main thread's turns on a processor (SLICE). */
#ifndef SHARDQA_SLICE_H
#define SHARDQA_SLICE_H

/* Asks for turns of so many microseconds, by the main thread. */
void slice_ask(long long us);

/* Those in force, in microseconds; 0 where the kernel decides. */
long long slice_in_force(void);

#endif
