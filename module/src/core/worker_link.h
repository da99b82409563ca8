/* The link to the worker: the byte streams to and from it, and its life. */
#ifndef SHARDQA_WORKER_LINK_H
#define SHARDQA_WORKER_LINK_H

#include <stdbool.h>

#include "core/frame.h"
#include "core/state.h"

struct blob;

enum { QUEUE_LIMIT = 64 << 20 }; /* bytes waiting for the worker, past which requests are refused and events dropped */

void link_init(void);
void link_spawn(void);             /* starts the worker and greets it; on failure arms the next try */
/* where the link is broken: ends the worker, *signal ended it (0: none); false: it is not */
bool link_take_down(int *signal);
void link_send_start(void);        /* behind the frames that a new worker gets before START */
void link_cron(void);              /* collects killed workers */
void link_stop(void);              /* Redis shuts down: no more workers */
void link_continue(void);          /* the shutdown was given up (a save failed) */
void link_ready(void);             /* READY came: releases the held requests */
void link_break(const char *why);  /* the next tick takes the link down; `why` is static text */
bool link_usable(void);            /* can a request be queued now? */
bool link_returns(void);           /* or held for the worker that will soon be there? */
bool link_has_room(void);          /* is the queue below QUEUE_LIMIT? */
bool link_has_room_for_model(void); /* are the model files on their way below QUEUE_LIMIT? */
const char *link_unusable_error(void);
const char *link_state_name(void);

/* Ends the frame and queues it; takes the writer's buffer. `tail`, if any, is referenced and
 * sent behind it. */
void link_send(struct frame_writer *writer, struct blob *tail);
void link_request(struct frame_writer *writer); /* the same, but waits for READY */
/* as link_send, of what may wait for more of its kind for a moment */
void link_send_patient(struct frame_writer *writer);
void link_leave_room(struct buffer *buffer);
/* after link_leave_room; takes the bytes */
void link_send_filled(uint8_t type, uint64_t id, struct buffer *buffer);
void link_send_bare(uint8_t type, uint64_t id, const char *payload, size_t length);
void link_write(void);   /* link_flush, unless all there is may wait */
void link_flush(void);   /* writes what the socket takes, at most 256 KB */
void link_read(void);    /* moves what has come into `in` */
/* the first that nobody has handled; MALFORMED: the link is broken */
enum frame_result link_next_frame(struct frame *frame, size_t *size);
void link_drop_handled(void); /* frees the bytes of handled frames */
void link_pause_reading(bool pause);
void link_wake(void);    /* the loop turns once more, and with it the tick */

#endif
