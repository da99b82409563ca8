#include "core/server_events.h"

#include <stdbool.h>

#include "core/above.h"
#include "core/state.h"
#include "core/tick.h"
#include "core/worker_link.h"

/* Master or replica: the worker's functions act on masters only. */
static void on_role(RedisCtx *ctx, RedisEvent event, uint64_t now, void *data) {
    struct frame_writer w;
    (void)ctx;
    (void)event;
    (void)data;
    shardqa.master = now == ROLE_NOW_MASTER;
    frame_begin(&w, FRAME_ROLE, 0);
    frame_text(&w, shardqa.master ? "master" : "replica");
    link_send(&w, NULL);
}

/* Only notes it, for the next tick: an asynchronous load ends with two events, in an order that
 * differs between versions of Redis. */
static void on_loading(RedisCtx *ctx, RedisEvent event, uint64_t sub, void *data) {
    (void)ctx;
    (void)event;
    (void)data;
    if (sub == LOADING_ENDED || sub == LOADING_FAILED) shardqa.keyspace_loaded = true;
}

/* on_loading for a replica that serves its old data meanwhile. */
static void on_async_load(RedisCtx *ctx, RedisEvent event, uint64_t sub, void *data) {
    (void)ctx;
    (void)event;
    (void)data;
    if (sub != ASYNC_LOAD_STARTED) shardqa.keyspace_loaded = true;
}

/* No new worker is started from here on. */
static void on_shutdown(RedisCtx *ctx, RedisEvent event, uint64_t sub, void *data) {
    (void)ctx;
    (void)event;
    (void)sub;
    (void)data;
    link_stop();
}

/* Ten times a second. */
static void on_cron(RedisCtx *ctx, RedisEvent event, uint64_t sub, void *data) {
    (void)ctx;
    (void)event;
    (void)sub;
    (void)data;
    link_cron();
    shardqa.above->cron();
}

/* Everything else happens in the tick. */
static void on_loop(RedisCtx *ctx, RedisEvent event, uint64_t sub, void *data) {
    (void)ctx;
    (void)event;
    (void)data;
    if (sub == LOOP_BEFORE_SLEEP) tick_run();
}

int server_events_subscribe(RedisCtx *ctx) {
    static const struct {
        uint64_t id;
        RedisEventHandler handler;
    } handlers[] = {{EVENT_ROLE_CHANGED, on_role}, {EVENT_LOADING, on_loading},  {EVENT_REPL_ASYNC_LOAD, on_async_load},
                    {EVENT_SHUTDOWN, on_shutdown}, {EVENT_CRON_LOOP, on_cron}, {EVENT_LOOP, on_loop}};
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++) {
        RedisEvent event = {.id = handlers[i].id, .data_version = 1};
        if (redis.SubscribeToServerEvent(ctx, event, handlers[i].handler) != REDIS_OK) return REDIS_ERR;
    }
    return REDIS_OK;
}
