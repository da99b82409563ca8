# TTL janitor: every `session:` key that was stored without an expiry gets one, an hour from now.
# For keyspaces that grow because somebody forgot EX. Only names are read, so large values cost nothing.
# The reply is how many keys it mended; a second run mends none.
HOUR = 3600

GB("KeysOnlyReader").filter(lambda key: execute("TTL", key) == -1).foreach(
    lambda key: execute("EXPIRE", key, HOUR)
).count().run("session:*")
