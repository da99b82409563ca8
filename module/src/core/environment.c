/* Which Python runs the worker where no argument says so: that of the virtual environment or
 * prefix that shardqa.so is installed in
 * (…/lib/python3.11/site-packages/shardqa/module/shardqa.so), or the .venv of a checkout that it
 * was built in. */
#include "core/environment.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/redis_api.h"
#include "core/text.h"

/* A copy of the path, or NULL where nothing can be run there. */
static char *if_executable(const char *folder, const char *rest, size_t rest_length) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%.*s", folder, (int)rest_length, rest);
    if (length >= (int)sizeof path || access(path, X_OK) != 0) return NULL;
    return text_copy(path, (size_t)length);
}

/* `…/lib/python3.11/site-packages/…`: the interpreter of that name in bin beside lib, or in
 * /usr/bin, whose packages Debian keeps in /usr/local. */
static char *installed(const char *file) {
    char prefix[PATH_MAX];
    const char *lib = strstr(file, "/lib/python");
    if (lib == NULL) return NULL;
    const char *name = lib + strlen("/lib/");
    size_t length = strcspn(name, "/");
    snprintf(prefix, sizeof prefix, "%.*s/bin", (int)(lib - file), file);
    char *python = if_executable(prefix, name, length);
    return python ? python : if_executable("/usr/bin", name, length);
}

/* The .venv beside the folder `module` that this file was built in. */
static char *of_checkout(const char *file) {
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", file);
    for (int up = 0; up < 2; up++) { /* module/shardqa.so */
        char *slash = strrchr(folder, '/');
        if (slash == NULL || slash == folder) return NULL;
        *slash = '\0';
    }
    return if_executable(folder, ".venv/bin/python", strlen(".venv/bin/python"));
}

/* Found by the place of this very file; NULL where there is none. */
char *environment_python(void) {
    static const char symbol = 0;
    char file[PATH_MAX];
    Dl_info info;
    if (dladdr(&symbol, &info) == 0 || info.dli_fname == NULL || realpath(info.dli_fname, file) == NULL) return NULL;
    char *python = installed(file);
    return python ? python : of_checkout(file);
}
