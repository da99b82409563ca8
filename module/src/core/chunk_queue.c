/* The queue of bytes that go to the worker: frames of our own, and model files that are sent
 * from where they lie. */
#include "core/chunk_queue.h"

#include "core/blob.h"
#include "core/redis_api.h"

static size_t *counter(struct chunk_queue *queue, const struct chunk *chunk) {
    return chunk->blob ? &queue->model_bytes : &queue->bytes;
}

/* Takes `data` over; a blob's reference as well. */
void queue_add(struct chunk_queue *queue, char *data, struct blob *blob, size_t length) {
    struct chunk *chunk = redis.Alloc(sizeof *chunk);
    *chunk = (struct chunk){.data = data, .blob = blob, .length = length};
    if (queue->last)
        queue->last->next = chunk;
    else
        queue->first = chunk;
    queue->last = chunk;
    *counter(queue, chunk) += length;
    queue->urgent++;
}

/* It goes with what comes within a moment. */
void queue_let_wait(struct chunk_queue *queue) {
    if (!queue->last->patient) queue->urgent--;
    queue->last->patient = true;
}

/* The first chunk was sent, or its worker has gone. */
void queue_drop_first(struct chunk_queue *queue) {
    struct chunk *chunk = queue->first;
    queue->first = chunk->next;
    if (queue->first == NULL) queue->last = NULL;
    *counter(queue, chunk) -= chunk->length;
    if (!chunk->patient) queue->urgent--;
    if (chunk->blob) blob_release(chunk->blob);
    redis.Free(chunk->data);
    redis.Free(chunk);
}

void queue_clear(struct chunk_queue *queue) {
    while (queue->first) queue_drop_first(queue);
}

/* Appends one queue to another without a copy. */
void queue_move(struct chunk_queue *to, struct chunk_queue *from) {
    if (from->first == NULL) return;
    if (to->last)
        to->last->next = from->first;
    else
        to->first = from->first;
    to->last = from->last;
    to->urgent += from->urgent;
    to->bytes += from->bytes;
    to->model_bytes += from->model_bytes;
    *from = (struct chunk_queue){0};
}
