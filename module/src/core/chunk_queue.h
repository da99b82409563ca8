/* The queue of bytes that go to the worker. The owner of a `struct chunk_queue` empties it with
 * queue_clear. */
#ifndef SHARDQA_CHUNK_QUEUE_H
#define SHARDQA_CHUNK_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

struct blob;

/* A piece of the stream to the worker. */
struct chunk {
    struct chunk *next;
    char *data;        /* owned unless `blob` is set */
    struct blob *blob; /* referenced: big model files are sent from where they lie */
    size_t length; /* bytes */
    bool patient;      /* may wait for others to be sent with it */
};

struct chunk_queue {
    struct chunk *first; /* owned, with all that follow */
    struct chunk *last;
    size_t urgent;      /* chunks that are not patient */
    size_t bytes;       /* owned by the queue */
    size_t model_bytes; /* borrowed from models, which are in memory anyway: they fill no queue */
};

/* takes `data`, and one reference of `blob` */
void queue_add(struct chunk_queue *queue, char *data, struct blob *blob, size_t length);
void queue_let_wait(struct chunk_queue *queue); /* the last one is patient */
void queue_drop_first(struct chunk_queue *queue);
void queue_clear(struct chunk_queue *queue);
void queue_move(struct chunk_queue *to, struct chunk_queue *from); /* all of `from` behind `to` */

#endif
