#include "core/latency.h"

/* Four buckets for each power of two. */
static int bucket_of(uint64_t us) {
    if (us < 4) return (int)us;
    int power = 63 - __builtin_clzll(us);
    int bucket = 4 * (power - 1) + (int)(us >> (power - 2) & 3);
    return bucket < LATENCY_BUCKETS ? bucket : LATENCY_BUCKETS - 1;
}

static uint64_t bucket_top(int bucket) {
    if (bucket < 4) return (uint64_t)bucket;
    int power = bucket / 4 + 1;
    return ((uint64_t)(bucket % 4 + 5) << (power - 2)) - 1;
}

/* Constant time and space, however many are counted. */
void latency_add(struct latency *latency, uint64_t us) {
    latency->counts[bucket_of(us)]++;
    latency->total++;
    latency->sum_us += us;
}

/* The top of the bucket that holds it: at most a quarter too high. */
uint64_t latency_percentile(const struct latency *latency, double fraction) {
    uint64_t rank = (uint64_t)(fraction * (double)latency->total);
    uint64_t seen = 0;
    if (latency->total == 0) return 0;
    for (int i = 0; i < LATENCY_BUCKETS; i++) {
        seen += latency->counts[i];
        if (seen > rank) return bucket_top(i);
    }
    return bucket_top(LATENCY_BUCKETS - 1);
}
