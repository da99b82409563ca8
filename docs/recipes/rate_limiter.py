# Rate limiter: `RG.TRIGGERONKEY Allow <user>` says whether the user may go on: 10 times a minute.
# For whoever wants limits in one round trip that all processes share, without a race between INCR and EXPIRE.
# The count lies in the slot of the user's name, so each shard limits its own users.
LIMIT, SECONDS = 10, 60


def allow(record):
    key = "rate:{%s}" % record[1]
    with atomic():
        count = execute("INCR", key)
        if count == 1:
            execute("EXPIRE", key, SECONDS)
    return "allowed" if count <= LIMIT else "refused, again in %d s" % execute("TTL", key)


GB("CommandReader", desc="rate limiter").map(allow).register(trigger="Allow", mode="sync")
