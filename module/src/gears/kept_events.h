/* Key events of registrations, kept until the worker has done them. */
#ifndef SHARDQA_KEPT_EVENTS_H
#define SHARDQA_KEPT_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/frame.h"

/* False: too many are kept. */
bool kept_events_add(const char *target, const char *event, const char *key, size_t length, const char *type);
void send_event(uint64_t number, const char *target, const char *event, const char *key, size_t length,
                const char *type); /* EVENT of this number; 0: of none that is kept */
void kept_events_send(void); /* those that were not sent yet, as far as there is room */
bool kept_events_frame_done(const struct frame *frame);
void kept_events_worker_gone(void);
void kept_events_clear(void);

#endif
