#include "core/buffer.h"

#include <assert.h>
#include <string.h>

#include "core/memory.h"

enum { SMALLEST = 256, KEEP = 1 << 20 }; /* bytes: first allocation; what an emptied buffer may keep */

/* At least doubles the capacity, so that many small additions stay cheap. */
void buffer_reserve(struct buffer *buffer, size_t more) {
    assert(more <= SIZE_MAX / 4 && buffer->length <= SIZE_MAX / 4);
    size_t total = buffer->length + more;
    if (total <= buffer->capacity) return;
    size_t capacity = buffer->capacity * 2;
    if (capacity < total) capacity = total;
    if (capacity < SMALLEST) capacity = SMALLEST;
    buffer->data = mem_realloc(buffer->data, capacity);
    buffer->capacity = capacity;
}

void buffer_add(struct buffer *buffer, const void *data, size_t length) {
    if (length == 0) return;
    buffer_reserve(buffer, length);
    memcpy(buffer->data + buffer->length, data, length);
    buffer->length += length;
}

/* Little endian, as all numbers of frames. */
void buffer_add_u32(struct buffer *buffer, uint32_t value) {
    unsigned char bytes[4] = {value & 0xff, value >> 8 & 0xff, value >> 16 & 0xff, value >> 24 & 0xff};
    buffer_add(buffer, bytes, sizeof bytes);
}

/* Drops bytes at the front. An empty buffer gives a large allocation back. */
void buffer_consume(struct buffer *buffer, size_t length) {
    assert(length <= buffer->length);
    buffer->length -= length;
    if (buffer->length > 0)
        memmove(buffer->data, buffer->data + length, buffer->length);
    else if (buffer->capacity > KEEP)
        buffer_free(buffer);
}

/* Leaves an empty buffer that can be used again. */
void buffer_free(struct buffer *buffer) {
    mem_free(buffer->data);
    *buffer = (struct buffer){0};
}

/* Hands the bytes over to the caller, who frees them. */
char *buffer_take(struct buffer *buffer, size_t *length) {
    char *data = buffer->data;
    *length = buffer->length;
    *buffer = (struct buffer){0};
    return data;
}
