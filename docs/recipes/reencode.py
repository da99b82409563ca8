# Batch re-encode: `order:` strings that hold JSON become hashes with a field for each member.
# For a change of format while clients go on: each key changes in one step, and a run that broke off may run again.
# The reply is how many were changed; a key that is no JSON object stays as it is, and its error names it.
import json


def change(record):
    fields = json.loads(record["value"])
    if not isinstance(fields, dict):
        raise ValueError("%s holds no JSON object" % record["key"])
    words = [word for name, value in fields.items() for word in (name, json.dumps(value))]
    with atomic():
        if execute("TYPE", record["key"]) == "string":
            execute("DEL", record["key"])
            execute("HSET", record["key"], *words)


GB("KeysReader").filter(lambda r: r["type"] == "string").foreach(change).count().run("order:*")
