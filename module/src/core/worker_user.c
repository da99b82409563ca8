/* The worker changes to this user itself, before it runs anything that somebody brought; here
 * the user is found, and whether Redis may do so. Who may not is told at load: a worker that
 * silently stayed Redis' user would be what the operator wanted to avoid. */
#include "core/worker_user.h"

#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"

enum { KILL = 1 << 5, SETGID = 1 << 6, SETUID = 1 << 7 }; /* of capabilities(7) */

/* Whether Redis has the capabilities for it. */
static bool may_change_users(void) {
    char line[256];
    unsigned long long effective = 0;
    FILE *status = fopen("/proc/self/status", "re");
    if (status == NULL) return false;
    while (fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "CapEff: %llx", &effective) == 1) break;
    fclose(status);
    return (effective & (KILL | SETGID | SETUID)) == (KILL | SETGID | SETUID);
}

/* NULL and `uid:gid`, or what the value should have been. */
const char *worker_user(const RedisString *name, char **ids) {
    char text[64];
    const struct passwd *user = getpwnam(redis.StringPtrLen(name, NULL));
    if (user == NULL || user->pw_uid == 0) return "the name of a user of this machine, and not root";
    if (!may_change_users()) return "left out, or Redis must run as root (it lacks CAP_SETUID, CAP_SETGID or CAP_KILL)";
    int length = snprintf(text, sizeof text, "%u:%u", (unsigned)user->pw_uid, (unsigned)user->pw_gid);
    redis.Free(*ids);
    *ids = text_copy(text, (size_t)length);
    return NULL;
}
