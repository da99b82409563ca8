/* What core knows; the rooms above have states of their own. All of it is touched by Redis' main
 * thread alone, but for reference counts, which a lazy-free thread may lower. */
#ifndef SHARDQA_STATE_H
#define SHARDQA_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/buffer.h"
#include "core/chunk_queue.h"
#include "core/frame.h"
#include "core/latency.h"
#include "core/redis_api.h"
#include "core/arguments.h"

struct activity_page; /* activity.h */
struct above; /* above.h */
struct pending;

/* What this Redis takes of ACL categories. */
enum acl_categories {
    ACL_NONE,     /* the commands of modules have none (7.0) */
    ACL_STANDARD, /* its own for our commands (7.2) */
    ACL_OWN       /* `ai` and `gears` as well (7.4) */
};

enum { ZOMBIES = 8 };

enum link_state {
    LINK_OFF,      /* no PYTHON argument, or Redis shuts down */
    LINK_DOWN,     /* died or could not be started; a timer will try again */
    LINK_STARTING, /* runs, READY has not come yet: requests are held */
    LINK_READY
};

struct worker_link {
    enum link_state state;
    pid_t pid;                  /* 0: none */
    pid_t zombies[ZOMBIES];     /* killed, not collected yet; 0: free place */
    int fd;                     /* our end of the socketpair; -1: none */
    int error_fd;               /* read end of the worker's stderr; -1: none */
    int pidfd;                  /* -1: none */
    bool reading;               /* READABLE is registered for fd */
    bool writing;               /* WRITABLE is registered for fd */
    bool broken;                /* set by descriptor callbacks; the next tick takes the link down */
    bool started;               /* START was sent in this life of the worker */
    const char *broken_why;     /* static text */
    char last_end[128];         /* why and how the last worker ended; "" while none has */
    struct buffer in;           /* received bytes */
    size_t in_handled;          /* bytes of `in` whose frames are done */
    struct chunk_queue out;     /* sent as the socket takes it */
    struct chunk_queue requests;    /* requests that wait for READY */
    struct buffer error_line;   /* unfinished line of stderr */
    size_t sent_of_first;       /* bytes of out.first that are gone already */
    uint64_t written_us;        /* monotonic: the last write */
    RedisTimer gather_timer;    /* valid while gathering */
    bool gathering;             /* `out` is written when that timer ends, or sooner */
    long long backoff_ms;       /* until the next start */
    RedisTimer restart_timer;   /* valid while restart_armed */
    bool restart_armed; /* a start of the worker is due */
    bool was_ready;     /* the last worker, before it ended */
    long long restarts;         /* starts after the first */
    uint64_t ready_since_us;    /* monotonic */
    char versions[512];         /* "python 3.11.7 onnxruntime=…" of READY */
};

/* A frame that waits until writing is allowed again (CLIENT PAUSE, failover, shutdown). */
struct deferred {
    struct deferred *next;
    struct frame frame;
    char data[]; /* frame.payload points here */
};

struct deferred_queue {
    struct deferred *first; /* owned, with all that follow */
    struct deferred *last;
    size_t bytes; /* of payloads; past DEFERRED_LIMIT reading stops */
};

/* What the module knows of its worker's heartbeat (activity.c). */
struct activity {
    const struct activity_page *page; /* mapped; NULL before the first worker */
    uint64_t beat;       /* the last one seen; 0: none came yet */
    uint64_t looked_us;  /* when, of CLOCK_MONOTONIC */
    uint64_t silent_us;  /* since the last beat */
    uint64_t sampled_us; /* of silence, when its processor time was looked at */
    uint64_t cpu_ticks;  /* the worker had used then, or at its last beat */
    bool computing;      /* it used its processor before that look */
    bool stopped;        /* it was stopped then */
    bool silent;         /* requests are refused */
    bool killed;         /* the module ends this worker */
    bool blamed;         /* … for what it computed, not because it was stopped */
    bool traced;         /* in this silence it was asked where its threads are */
    char last_running[1024]; /* what the worker computed when it last ended */
};

enum { PEERS_MOST = 64 };

/* Connections to other nodes on their way (peers.c). */
struct peers {
    int fd; /* our end; -1: none */
    int count; /* entries of under_way */
    struct {
        char id[8]; /* of the request */
        int fd;     /* owned */
    } under_way[PEERS_MOST];
};

struct counters {
    long long requests;         /* commands sent to the worker, but for runs of models */
    long long calls;            /* commands run for the worker */
    long long call_frames; /* CALL frames, each of one or more calls */
    long long timeouts; /* clients whose deadline passed */
    long long cancelled;        /* clients that left */
    long long busy;             /* refused: MAXPENDING or queue full */
    long long failed_by_worker; /* answered TRYAGAIN because the worker died or was silent */
    long long silences;         /* of the worker, long enough to refuse requests */
    long long killed_silent;    /* workers killed because they were silent for too long */
    long long killed_late;      /* … because a function could not be stopped at its deadline */
    long long sections;         /* times the main thread served one function alone */
    long long sections_closed;  /* … and ended it at its deadline */
    long long late_replies;     /* replies to requests that were gone */
    long long unreadable_replies; /* … that were no RESP, or outputs that contradict themselves */
    long long ticks; /* turns of Redis' loop */
};

enum {
    VALKEY_MIGRATIONS = 0x090000, /* first Valkey that can move slots without SETSLOT */
    /* before, SLOTS and SHARDS look for the connection of a client that a module's call has not */
    VALKEY_SAFE_SLOTS = 0x090001,
};

struct shardqa {
    RedisCtx *ctx; /* detached: runs the calls of the worker, logs, arms timers; never freed */
    const struct above *above; /* static; the rooms above core */
    struct module_arguments arguments;
    struct worker_link link;
    struct activity activity;
    struct peers peers;

    int valkey;            /* its version, a byte each of major, minor and patch; 0: the server is Redis */
    enum acl_categories acl; /* found at load */
    char node_id[41];      /* hex, NUL at the end */
    bool cluster; /* cluster-enabled */
    bool master;           /* role, kept by the role event */
    bool loaded;           /* the first tick came: the keyspace is in memory */
    bool keyspace_loaded;  /* another data set is in memory since the last tick */
    bool shutting_down; /* no worker is started */
    int calling;           /* > 0 while a command runs that we started */
    struct frame_bytes quiet; /* the session that hears nothing of that command; empty: none */
    bool nested; /* no KeysReader hears of that command: a function runs it that holds up a writer */

    RedisDict *pending;    /* request id (8 bytes big endian) -> struct pending, owned */
    RedisDict *scripts;    /* request id, or id of a session that went -> user (owned), until the worker releases it */
    RedisDict *waiters;    /* RedisBlocked pointer -> struct waiter (owned by its pending) */
    RedisDict *joinable;   /* join_key -> struct pending whose answer equal requests wait for, too */
    uint64_t joint_answers; /* to such requests */
    uint64_t last_id; /* of the youngest request */
    long long waiting;     /* blocked clients */
    struct deferred_queue deferred;

    uint64_t section;      /* number of the open one (section.h); 0: none */

    RedisDict *worker_stats; /* name -> value text (owned) of STATS frames */

    struct counters counters;
    struct latency frame_latency; /* processor time of the main thread for each frame of the worker */
    uint64_t longest_frame_us; /* processor time */
    uint8_t longest_frame; /* its type; 0: none came yet */
};

extern struct shardqa shardqa;

#endif
