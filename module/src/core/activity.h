/* The page of memory that a worker shares with the module: its heartbeat, and what each of its
 * threads computes.
 *
 * It is shared rather than sent, because a worker that hangs sends nothing, and is read while it
 * hangs. The worker is not trusted: the page is mapped read-only, sealed against shrinking (a
 * read past its end would be a SIGBUS), and every slot is copied before it is looked at. */
#ifndef SHARDQA_ACTIVITY_H
#define SHARDQA_ACTIVITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ACTIVITY_SLOTS = 63, ACTIVITY_NAME = 212, ACTIVITY_FD = 4 };

enum activity_kind { ACTIVITY_IDLE, ACTIVITY_FUNCTION, ACTIVITY_MODEL, ACTIVITY_LOAD /* of a model */ };

/* How a worker ended, as far as what it computed is concerned. */
enum activity_end {
    ENDED_OTHERWISE, /* it was stopped, or asked to leave */
    ENDED_BY_ITSELF, /* it left */
    ENDED_BY_KILL,   /* SIGKILL from outside: of an operator, or for want of memory */
    ENDED_BY_WORK    /* a crash, or it computed without an end */
};

/* docs/frames.md; little endian like the frames. */
struct activity_slot {
    uint32_t kind; /* enum activity_kind */
    uint32_t thread;      /* the kernel's id of the thread that computes */
    uint64_t request;     /* id of the frame it computes for; 0: none */
    uint64_t subject;     /* ACTIVITY_MODEL, ACTIVITY_LOAD: the model's id */
    uint64_t deadline_us; /* of CLOCK_MONOTONIC; 0: none */
    uint32_t length;      /* bytes of name */
    uint32_t unused;
    char name[ACTIVITY_NAME]; /* of the function or model, not trusted; for the log and INFO */
    uint32_t spare;
};

struct activity_page {
    uint64_t beat; /* another number ten times a second; 0 until the worker runs */
    char unused[248];
    struct activity_slot slots[ACTIVITY_SLOTS];
};

_Static_assert(sizeof(struct activity_slot) == 256, "the worker writes slots of 256 bytes");
_Static_assert(sizeof(struct activity_page) == 16384, "the worker maps 16 KB");

/* A new page for a new worker; replaces the last one. The descriptor to hand on, which the
 * caller closes, or -1 and errno. */
int activity_open(void);

struct verdict {
    bool fell_silent;  /* in this look: requests are refused from here on */
    const char *fatal; /* NULL, or why the worker has to be ended; static text */
};

/* Once a tick: notices a worker that is silent or computes past its deadline. */
struct verdict activity_check(void);

bool activity_silent(void); /* has the worker been silent for so long that requests are refused? */
long long activity_silent_ms(void);
/* does a silent worker compute for this request, so that it may go on waiting? */
bool activity_keeps(uint64_t request);

/* What thread `i` of the worker computes, or computed when it ended. False where it is idle. */
bool activity_slot(int i, struct activity_slot *slot);
enum activity_end activity_end(int signal); /* of a worker that this signal ended, 0: none did */

#endif
