/* Short turns on a processor come soon: from Linux 6.12 on a thread that asks for them is taken
 * before others that are due, and interrupts longer turns when it wakes. Redis' main thread wakes
 * often and works for microseconds, so it loses nothing. It takes no privilege, and no share of
 * the processor from anybody. What Redis starts (a save, the worker) has the kernel's turns. */
#include "core/slice.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    CHILDREN_AS_USUAL = 1, /* SCHED_FLAG_RESET_ON_FORK */
    TURN_NS = 100000       /* the shortest that the kernel takes: the sooner it comes */
};

struct attributes { /* sched_setattr(2) as of its first version; libc has none */
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period; /* ns; of a fair policy, `runtime` is the turn */
};

static bool read_own(struct attributes *attributes) {
    return syscall(SYS_sched_getattr, 0, attributes, sizeof *attributes, 0) == 0;
}

/* Refused or unknown: all stays as it was, which INFO shows. */
void slice_ask(void) {
    struct attributes own = {0};
    if (!read_own(&own) || own.policy != SCHED_OTHER) return;
    own.size = sizeof own;
    own.flags = CHILDREN_AS_USUAL;
    own.runtime = TURN_NS;
    syscall(SYS_sched_setattr, 0, &own, 0);
}

/* Older kernels tell 0. */
long long slice_in_force(void) {
    struct attributes own = {0};
    return read_own(&own) && own.policy == SCHED_OTHER ? (long long)(own.runtime / 1000) : 0;
}
