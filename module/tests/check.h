/* The smallest test harness: CHECK stops the program with the place of the failure. */
#ifndef SHARDQA_CHECK_H
#define SHARDQA_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s: not true: %s\n", __FILE__, __LINE__, __func__, #condition); \
            exit(1); \
        } \
    } while (0)

#define RUN(test) \
    do { \
        test(); \
        printf("ok %s\n", #test); \
    } while (0)

/* xorshift: the same bytes on every run */
static inline uint32_t next_random(uint32_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* A copy in a block of exactly that size, so that the sanitizer sees every read past it. */
static inline char *exact_copy(const char *data, size_t length) {
    char *copy = malloc(length ? length : 1);
    for (size_t i = 0; i < length; i++) copy[i] = data[i];
    return copy;
}

#endif
