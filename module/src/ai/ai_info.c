/* INFO as RedisAI's users know it: its sections in its order, before ours. Redis puts the
 * module's name before each. */
#include "ai/ai_info.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "ai/ai_state.h"
#include "ai/model.h"
#include "core/state.h"

#define COMPATIBLE "1.2.7" /* RedisAI's version whose commands these are */

static void number(RedisInfoCtx *ctx, const char *name, long long value) {
    redis.InfoAddFieldLongLong(ctx, name, value);
}

static void text(RedisInfoCtx *ctx, const char *name, const char *value) {
    redis.InfoAddFieldCString(ctx, name, value);
}

/* Whether something is or was loaded with it; what is stored while the worker starts is loaded
 * later. */
static bool is_needed(const char *backend) {
    const struct model *m = ai.models;
    while (m && strcmp(m->backend, backend) != 0) m = m->next;
    return m || (ai.backends & backend_bit(backend)) != 0;
}

/* `name=version` of READY's words: a field where the backend is needed. */
static void version(RedisInfoCtx *ctx, const char *field, const char *backend, const char *package) {
    char value[64];
    const char *at = strstr(shardqa.link.versions, package);
    if (!is_needed(backend) || (at == NULL && shardqa.link.state == LINK_READY)) return;
    if (at) snprintf(value, sizeof value, "%.*s", (int)strcspn(at + strlen(package), " "), at + strlen(package));
    text(ctx, field, at ? value : "unknown"); /* the worker is still starting */
}

/* Resident memory of a process, 0 where it can't be read. */
static long long resident_bytes(pid_t pid) {
    char path[64], line[128];
    long long pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *file = pid > 0 ? fopen(path, "re") : NULL;
    if (file == NULL) return 0;
    if (fgets(line, sizeof line, file)) sscanf(line, "%*d %lld", &pages);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

/* Packages of the worker that models were loaded with, and what these take. */
static void backends_section(RedisInfoCtx *ctx) {
    long long onnx = 0;
    for (struct model *m = ai.models; m; m = m->next)
        onnx += m->state == MODEL_LOADED && strcmp(m->backend, "ONNX") == 0;
    redis.InfoAddSection(ctx, "backends_info");
    version(ctx, "TensorFlow_version", "TF", "tensorflow=");
    version(ctx, "TensorFlowLite_version", "TFLITE", "ai-edge-litert=");
    version(ctx, "Torch_version", "TORCH", "torch=");
    version(ctx, "onnxruntime_version", "ONNX", "onnxruntime=");
    if (!is_needed("ONNX")) return;
    number(ctx, "onnxruntime_memory", onnx ? resident_bytes(shardqa.link.pid) : 0);
    number(ctx, "onnxruntime_memory_access_num", 0); /* RedisAI's own allocator's, which is not used here */
    number(ctx, "onnxruntime_maximum_run_sessions_number", onnx);
}

/* A time as INFO writes it, with microseconds. */
static void seconds(RedisInfoCtx *ctx, const char *name, double value) {
    char digits[32];
    snprintf(digits, sizeof digits, "%.6f", value);
    text(ctx, name, digits);
}

/* Processor time of this process, its children or this thread. */
static void used(RedisInfoCtx *ctx, const char *who, int of) {
    struct rusage usage;
    char name[64];
    getrusage(of, &usage);
    snprintf(name, sizeof name, "%s_used_cpu_sys", who);
    seconds(ctx, name, (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6);
    snprintf(name, sizeof name, "%s_used_cpu_user", who);
    seconds(ctx, name, (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6);
}

/* RedisAI's names. It has a thread per queue where we have the worker. */
static void cpu_section(RedisInfoCtx *ctx) {
    clockid_t clock;
    struct timespec time = {0};
    redis.InfoAddSection(ctx, "cpu");
    used(ctx, "self", RUSAGE_SELF);
    used(ctx, "children", RUSAGE_CHILDREN);
    used(ctx, "main_thread", RUSAGE_THREAD);
    if (shardqa.link.pid > 0 && clock_getcpuclockid(shardqa.link.pid, &clock) == 0) clock_gettime(clock, &time);
    /* the worker's */
    seconds(ctx, "queue_CPU_bthread_n1_used_cpu_total", (double)time.tv_sec + (double)time.tv_nsec / 1e9);
}

/* All sections, in RedisAI's order. */
void ai_info_sections(RedisInfoCtx *ctx) {
    const struct module_arguments *s = &shardqa.arguments;
    redis.InfoAddSection(ctx, "versions");
    text(ctx, "RedisAI_version", COMPATIBLE);
    text(ctx, "low_level_API_version", "1");
    text(ctx, "rdb_version", "100");
    redis.InfoAddSection(ctx, "git");
    text(ctx, "git_sha", "unknown");
    redis.InfoAddSection(ctx, "load_time_configs");
    number(ctx, "threads_per_queue", s->threads_per_queue);
    number(ctx, "inter_op_parallelism", s->inter_op);
    number(ctx, "intra_op_parallelism", s->threads);
    number(ctx, "model_execution_timeout", s->execution_timeout_ms);
    number(ctx, "backend_memory_limit", 0);
    backends_section(ctx);
    cpu_section(ctx);
}
