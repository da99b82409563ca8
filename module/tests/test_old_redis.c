/* Loads shardqa.so the way a Redis that is too old would: with an API that lacks most functions. */
#include <dlfcn.h>
#include <stdarg.h>
#include <string.h>

#include "check.h"

static char last_log[512];
static int version_told;

static void fake_log(void *ctx, const char *level, const char *format, ...) {
    va_list arguments;
    (void)ctx;
    (void)level;
    va_start(arguments, format);
    vsnprintf(last_log, sizeof last_log, format, arguments);
    va_end(arguments);
}

static void fake_attributes(void *ctx, const char *name, int version, int api) {
    (void)ctx;
    (void)version;
    CHECK(strcmp(name, "shardqa") == 0 && api == 1);
}

static int fake_version(void) { return version_told; }

static int get_api(const char *name, void *target) {
    void *found = NULL;
    if (strcmp(name, "RedisModule_Log") == 0) found = (void *)(uintptr_t)fake_log;
    if (strcmp(name, "RedisModule_SetModuleAttribs") == 0) found = (void *)(uintptr_t)fake_attributes;
    if (strcmp(name, "RedisModule_GetServerVersion") == 0 && version_told) found = (void *)(uintptr_t)fake_version;
    if (found == NULL) return 1;
    memcpy(target, &found, sizeof found);
    return 0;
}

static int load(void) {
    struct {
        int (*get_api)(const char *, void *);
    } ctx = {get_api};
    int (*on_load)(void *, void **, int);
    void *module = dlopen("./shardqa.so", RTLD_NOW);
    if (module == NULL) fprintf(stderr, "%s\n", dlerror());
    CHECK(module);
    void *symbol = dlsym(module, "RedisModule_OnLoad");
    memcpy(&on_load, &symbol, sizeof symbol);
    int result = on_load(&ctx, NULL, 0);
    dlclose(module);
    return result;
}

static void redis_6_is_refused_with_both_versions_named(void) {
    version_told = 0x00060209;
    CHECK(load() == 1);
    CHECK(strstr(last_log, "needs Redis 7.0 or newer") && strstr(last_log, "6.2.9"));
}

static void a_redis_that_cannot_tell_its_version_is_refused_too(void) {
    version_told = 0;
    CHECK(load() == 1);
    CHECK(strstr(last_log, "needs Redis 7.0 or newer"));
}

int main(void) {
    RUN(redis_6_is_refused_with_both_versions_named);
    RUN(a_redis_that_cannot_tell_its_version_is_refused_too);
    return 0;
}
