/* The frames between the module and its worker (docs/frames.md). Pure: no Redis. */
#ifndef SHARDQA_FRAME_H
#define SHARDQA_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buffer.h"

enum { FRAME_HEADER = 16, FRAME_VERSION = 2 };
#define FRAME_VERSION_TEXT "2" /* the same, as HELLO and READY say it */
#define FRAME_MAX_PAYLOAD ((size_t)1 << 30)
#define FRAME_SPARE ((size_t)1 << 20) /* what small items of a frame may take beside its big ones */

/* Types of frames that core itself sends, and takes from the worker; the rooms above have more. */
enum { FRAME_HELLO = 1, FRAME_START = 3, FRAME_CANCEL = 10, FRAME_CALLED = 11, FRAME_ROLE = 12, FRAME_SYNC = 16 };
enum {
    FRAME_READY = 64, /* those below go to the worker */
    FRAME_REPLY = 65,
    FRAME_CALL = 67,
    FRAME_LOG = 71,
    FRAME_STATS = 72,
    FRAME_RELEASE = 73,
    FRAME_PROGRESS = 74,
    FRAME_LOCK = 75,
    FRAME_UNLOCK = 76
};

struct frame {
    uint8_t type;
    uint64_t id;         /* of the request or call it belongs to; 0 where the type has none */
    const char *payload; /* borrowed from the receive buffer, valid until it is consumed */
    size_t length;       /* bytes of payload */
};

enum frame_result { FRAME_COMPLETE, FRAME_PARTIAL, FRAME_MALFORMED };

/* Reads the frame at the start of `data`. *size: bytes of the whole frame once its header is
 * there, else 0. */
enum frame_result frame_decode(const char *data, size_t length, struct frame *frame, size_t *size);

/* Does it come from the worker, with a payload of the right kind (a list where it must be one)? */
bool frame_from_worker_is_valid(const struct frame *frame);

void frame_header(char header[FRAME_HEADER], uint8_t type, uint64_t id, size_t payload);

/* Writing: frame_begin, list items, frame_end; the item count and the length are filled in at
 * the end. */
struct frame_writer {
    struct buffer buffer; /* owned; taken over by whoever sends the frame */
    uint32_t items; /* so far */
    size_t elsewhere; /* bytes of the payload that are sent from another place (frame_item_elsewhere) */
};

void frame_begin(struct frame_writer *writer, uint8_t type, uint64_t id);
void frame_item(struct frame_writer *writer, const void *data, size_t length);
void frame_text(struct frame_writer *writer, const char *text);
void frame_number(struct frame_writer *writer, long long number);
/* Announces a last item of `length` bytes whose bytes the caller sends after this buffer. */
void frame_item_elsewhere(struct frame_writer *writer, size_t length);
void frame_end(struct frame_writer *writer);

/* Reading a list payload. */
struct frame_list {
    const char *at; /* borrowed from the payload, as is the next */
    const char *end;
    uint32_t left; /* items not read yet */
};

struct frame_bytes {
    const char *data; /* borrowed from the frame */
    size_t length;
};

/* False unless the whole payload is one well-formed list. */
bool frame_list_open(const char *payload, size_t length, struct frame_list *list);
bool frame_list_next(struct frame_list *list, struct frame_bytes *item);    /* false at the end */
bool frame_list_number(struct frame_list *list, long long *number);         /* the next item as decimal digits */
/* the next item as 8 bytes, little endian */
bool frame_list_u64(struct frame_list *list, uint64_t *number);
bool frame_bytes_number(const struct frame_bytes *item, long long *number); /* an item as decimal digits */
bool frame_bytes_equal(const struct frame_bytes *item, const char *text);

#endif
