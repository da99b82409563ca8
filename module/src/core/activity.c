/* Is the worker alive, and what does it do?
 *
 * Main thread, in BEFORE_SLEEP. The worker beats ten times a second from a thread that needs the
 * interpreter's lock for it. So it is silent when it is stopped, deadlocked, or inside C code
 * that keeps the lock. After SILENT_US, or LOADING_US while it loads a model, requests are refused
 * and those that wait are answered TRYAGAIN; after HEARTBEAT ms it is killed. One that uses its
 * processor computes, perhaps well within the deadline of what it computes: it has until TIMEOUT,
 * and what it computes for goes on waiting. A beat that comes while a function is past its own
 * deadline means that the worker could not interrupt it: killed as well.
 *
 * Time is counted in looks, at most LOOK_MAX_US each: while Redis itself stood still, the worker
 * had no chance to be seen. */
#include "core/activity.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "core/state.h"

enum {
    LOOK_US = 50000,       /* between two looks */
    LOOK_MAX_US = 250000,  /* counted for one look */
    SILENT_US = 700000,    /* of silence until requests are refused */
    LOADING_US = 10000000, /* the same while a model loads: the first one's library keeps the lock as it is imported */
    GRACE_US = 3000000,    /* a function has past its deadline: the worker tries to interrupt it first */
    SAMPLE_US = 300000,    /* over which its processor time is looked at; twice within SILENT_US */
    TRACE_US = 300000,     /* before it kills, it asks the worker where its threads are */
    START_US = 60000000,   /* until the first beat: an interpreter and its imports from a cold disk */
    STALL_MS = 10000       /* what stands for TIMEOUT where requests have none */
};

/* The clock that the worker's deadlines are told in. */
static uint64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* A fresh page for the worker that is about to start. Sealed, so that the worker can't shrink it
 * under our reads. */
int activity_open(void) {
    struct activity *a = &shardqa.activity;
    int fd = memfd_create("shardqa-activity", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return -1;
    void *page = MAP_FAILED;
    if (ftruncate(fd, sizeof *a->page) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        page = mmap(NULL, sizeof *a->page, PROT_READ, MAP_SHARED, fd, 0);
    /* without the page there is no worker: the caller needs the first error */
    if (page == MAP_FAILED) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    if (a->page) munmap((void *)a->page, sizeof *a->page);
    /* nothing of the worker before counts for this one */
    a->page = page;
    a->beat = a->silent_us = a->sampled_us = a->cpu_ticks = 0;
    a->silent = a->traced = a->killed = a->blamed = false;
    a->looked_us = now_us();
    return fd;
}

/* ---- what it does ---- */

/* A copy, with what the worker may have written wrong put right. False where the slot is idle. */
bool activity_slot(int i, struct activity_slot *slot) {
    memcpy(slot, (const void *)&shardqa.activity.page->slots[i], sizeof *slot);
    if (slot->kind < ACTIVITY_FUNCTION || slot->kind > ACTIVITY_LOAD) return false;
    if (slot->length >= ACTIVITY_NAME) slot->length = ACTIVITY_NAME - 1;
    slot->name[slot->length] = '\0';
    for (char *c = slot->name; *c; c++)
        if (*c < ' ' || *c > '~') *c = '?'; /* it goes to the log and to INFO */
    return true;
}

/* State of the worker's main thread and processor time of all its threads, in the kernel's
 * ticks. */
static bool read_process(pid_t pid, char *state, uint64_t *ticks) {
    char path[64], text[1024];
    unsigned long long user, system;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    if (got <= 0) return false;
    text[got] = '\0';
    char *end = strrchr(text, ')'); /* its name may hold anything */
    if (end == NULL ||
        sscanf(end + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", state, &user, &system) != 3)
        return false;
    *ticks = user + system;
    return true;
}

/* Does a silent worker use its processor, or is it stopped or deadlocked? Looked at over
 * SAMPLE_US, of which the first may hold what it did before it fell silent. */
static void sample_process(void) {
    struct activity *a = &shardqa.activity;
    char state;
    uint64_t ticks;
    if (a->silent_us < a->sampled_us + SAMPLE_US) return;
    a->sampled_us = a->silent_us;
    a->computing = a->stopped = false;
    if (!read_process(shardqa.link.pid, &state, &ticks)) return;
    a->stopped = state == 'T' || state == 't';
    a->computing = !a->stopped && (ticks > a->cpu_ticks || state == 'R' || state == 'D');
    a->cpu_ticks = ticks;
}

/* Whether any thread of the worker computes for this request. */
static bool works_for(uint64_t request) {
    struct activity_slot slot;
    for (int i = 0; i < ACTIVITY_SLOTS; i++)
        if (activity_slot(i, &slot) && slot.request == request) return true;
    return false;
}

/* What a worker computes that uses its processor may still come to an end. */
bool activity_keeps(uint64_t request) { return shardqa.activity.computing && works_for(request); }

/* ---- verdicts ---- */

/* The caller ends the worker, for this reason. */
static const char *condemn(const char *why, bool blamed) {
    shardqa.activity.killed = true;
    shardqa.activity.blamed = blamed;
    return why;
}

/* Past its deadline by more than GRACE_US though the worker could have interrupted it: inside C
 * code, or it swallows interrupts. */
static const char *check_deadlines(uint64_t now) {
    struct activity_slot slot;
    for (int i = 0; i < ACTIVITY_SLOTS; i++) {
        if (!activity_slot(i, &slot) || slot.deadline_us == 0 || slot.deadline_us + GRACE_US > now) continue;
        redis.Log(shardqa.ctx, "warning", "%s is past its deadline and can't be interrupted; the worker is killed",
                  slot.name);
        shardqa.counters.killed_late++;
        return condemn("a function ran past its deadline", true);
    }
    return NULL;
}

/* How long this worker may stay silent. Starting and computing ones get more. */
static uint64_t patience_us(bool computing) {
    uint64_t heartbeat = (uint64_t)shardqa.arguments.heartbeat_ms * 1000;
    uint64_t timeout = (uint64_t)(shardqa.arguments.timeout_ms > 0 ? shardqa.arguments.timeout_ms : STALL_MS) * 1000;
    if (shardqa.activity.beat == 0) return START_US > heartbeat ? START_US : heartbeat;
    return computing && timeout > heartbeat ? timeout : heartbeat;
}

/* Whether any thread of the worker loads one. */
static bool loads_model(void) {
    struct activity_slot slot;
    for (int i = 0; i < ACTIVITY_SLOTS; i++)
        if (activity_slot(i, &slot) && slot.kind == ACTIVITY_LOAD) return true;
    return false;
}

/* The steps of a silence: refuse requests, ask for a trace, kill. */
static struct verdict check_silence(void) {
    struct activity *a = &shardqa.activity;
    struct verdict verdict = {0};
    sample_process();
    if (a->silent_us < SILENT_US) return verdict;
    bool stopped = a->stopped, computing = a->computing;
    uint64_t patience = patience_us(computing);
    bool due = a->silent_us >= LOADING_US || !loads_model();
    if (due && !a->silent && a->beat != 0 && shardqa.link.state == LINK_READY) {
        a->silent = verdict.fell_silent = true;
        shardqa.counters.silences++;
    }
    if (!a->traced && computing && a->silent_us + TRACE_US >= patience) {
        a->traced = true;
        kill(shardqa.link.pid, SIGUSR2); /* faulthandler prints where its threads are, without the interpreter's lock */
    }
    if (a->silent_us < patience) return verdict;
    redis.Log(shardqa.ctx, "warning", "the worker has not answered for %llu ms (it %s); it is killed",
              (unsigned long long)a->silent_us / 1000,
              computing ? "computes"
              : stopped ? "is stopped"
                        : "is deadlocked");
    shardqa.counters.killed_silent++;
    verdict.fatal = condemn("it did not answer", !stopped);
    return verdict;
}

/* One look, at most every LOOK_US: has the worker beaten since the last one? */
struct verdict activity_check(void) {
    struct activity *a = &shardqa.activity;
    uint64_t now = now_us();
    if (shardqa.arguments.heartbeat_ms == 0 || shardqa.link.fd < 0 || shardqa.link.broken ||
        now - a->looked_us < LOOK_US)
        return (struct verdict){0};
    uint64_t passed = now - a->looked_us;
    char state;
    a->looked_us = now;
    /* no beat since the last look: it is silent */
    uint64_t beat = *(const volatile uint64_t *)&a->page->beat;
    if (beat == a->beat) {
        a->silent_us += passed < LOOK_MAX_US ? passed : LOOK_MAX_US;
        return check_silence();
    }
    a->beat = beat;
    a->silent_us = a->sampled_us = 0;
    a->silent = a->traced = false;
    if (!read_process(shardqa.link.pid, &state, &a->cpu_ticks)) a->cpu_ticks = 0;
    return (struct verdict){.fatal = check_deadlines(now)};
}

bool activity_silent(void) { return shardqa.activity.silent; }

long long activity_silent_ms(void) { return (long long)shardqa.activity.silent_us / 1000; }

/* ---- after its end ---- */

/* A crash, or a kill that we decided on, blames what ran. An operator's kill -9, or the kernel's
 * for want of memory, says less. */
enum activity_end activity_end(int signal) {
    const struct activity *a = &shardqa.activity;
    if (a->killed) return a->blamed ? ENDED_BY_WORK : ENDED_OTHERWISE;
    if (signal == 0) return ENDED_BY_ITSELF;
    if (signal == SIGTERM || signal == SIGINT || signal == SIGUSR2) return ENDED_OTHERWISE;
    return signal == SIGKILL ? ENDED_BY_KILL : ENDED_BY_WORK;
}
