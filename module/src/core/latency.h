/* A histogram of durations in microseconds with four buckets per doubling: percentiles are at
 * most a quarter too high. Pure. */
#ifndef SHARDQA_LATENCY_H
#define SHARDQA_LATENCY_H

#include <stdint.h>

enum { LATENCY_BUCKETS = 160 }; /* four per power of two up to 2^40 us */

struct latency {
    uint64_t counts[LATENCY_BUCKETS]; /* durations that fell into each */
    uint64_t total; /* how many were counted */
    uint64_t sum_us;
};

void latency_add(struct latency *latency, uint64_t us);
/* upper bound of its bucket, us; 0 when empty */
uint64_t latency_percentile(const struct latency *latency, double fraction);

#endif
