#include "core/blob.h"

#include "core/redis_api.h"

static void free_memory(struct blob *blob) { redis.Free(blob->data); }

/* Takes `data` over. */
struct blob *blob_new(char *data, size_t length) {
    struct blob *blob = redis.Alloc(sizeof *blob);
    atomic_init(&blob->references, 1);
    blob->length = length;
    blob->data = data;
    blob->file = NULL;
    blob->free_data = free_memory;
    return blob;
}

/* Any thread. */
struct blob *blob_retain(struct blob *blob) {
    atomic_fetch_add(&blob->references, 1);
    return blob;
}

/* The last reference frees the bytes. */
void blob_release(struct blob *blob) {
    if (blob == NULL || atomic_fetch_sub(&blob->references, 1) != 1) return;
    blob->free_data(blob);
    redis.Free(blob);
}
