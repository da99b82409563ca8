# Write-behind: what clients HSET or DEL under `person:` goes to a stream, and from there in batches to the database.
# For whoever wants Redis' speed for writes and a database that follows. A batch that fails is tried until it works.
# The stream is on the shard of the key, so it is as durable as the key. Rows come in order; the last one wins.


def remember(record):
    fields = record["value"] or {}
    words = [word for pair in fields.items() for word in pair]
    execute("XADD", "changes:{%s}" % hashtag(), "*", "#key", record["key"], "#event", record["event"], *words)


def write(rows):
    """Yours: one transaction of the database. Here a hash of each shard is the table."""
    for row in rows:
        key, event = row.pop("#key"), row.pop("#event")
        if event == "del":
            execute("HDEL", "people:{%s}" % hashtag(), key)
        else:
            execute("HSET", "people:{%s}" % hashtag(), key, " ".join(f"{k}={v}" for k, v in sorted(row.items())))


GB("KeysReader", desc="write-behind: remember").foreach(remember).register(
    prefix="person:*", eventTypes=["hset", "del"], mode="sync"
)
GB("StreamReader", desc="write-behind: write").map(lambda r: dict(r["value"])).aggregate(
    [], lambda rows, row: rows + [row], lambda rows, more: rows + more
).foreach(write).register(
    prefix="changes:*", batch=100, duration=50, mode="async_local", onFailedPolicy="retry", onFailedRetryInterval=1
)
