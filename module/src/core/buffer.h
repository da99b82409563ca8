/* A growable run of bytes. Pure: no Redis. The owner of a `struct buffer` frees it with
 * buffer_free. */
#ifndef SHARDQA_BUFFER_H
#define SHARDQA_BUFFER_H

#include <stddef.h>
#include <stdint.h>

struct buffer {
    char *data;      /* owned; NULL while nothing was ever written */
    size_t length;   /* bytes in use */
    size_t capacity; /* bytes allocated */
};

void buffer_reserve(struct buffer *buffer, size_t more);
void buffer_add(struct buffer *buffer, const void *data, size_t length);
void buffer_add_u32(struct buffer *buffer, uint32_t value); /* little endian */
void buffer_consume(struct buffer *buffer, size_t length);  /* drops bytes from the front */
void buffer_free(struct buffer *buffer);
char *buffer_take(struct buffer *buffer, size_t *length); /* hands `data` to the caller and empties the buffer */

#endif
