# Read-through cache: a GET of `cache:<name>` that is not there yet asks the database, replies, and keeps the answer.
# For whoever has a slow source and clients that only know GET. The key then lives for a minute; EX says how long.
# Each shard has a connection of its own, made when the function is registered and when its worker starts anew.
import sqlite3

SECONDS = 60
database = None


def connect():
    global database
    database = sqlite3.connect(":memory:", check_same_thread=False)  # yours: a server, a file, an HTTP service
    database.execute("CREATE TABLE prices (name TEXT PRIMARY KEY, price TEXT)")
    database.executemany("INSERT INTO prices VALUES (?, ?)", [(f"item-{n}", str(n * n)) for n in range(100)])


def load(record):
    name = record["key"].split(":", 1)[1]
    row = database.execute("SELECT price FROM prices WHERE name = ?", (name,)).fetchone()
    if row is None:
        return  # the client gets nil
    execute("SET", record["key"], row[0], "EX", SECONDS)
    override_reply(row[0])


GB("KeysReader", desc="read-through cache").foreach(load).register(
    prefix="cache:*", commands=["get"], eventTypes=["keymiss"], mode="async_local", onRegistered=connect
)
