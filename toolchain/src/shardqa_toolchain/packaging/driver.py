"""Answers events with a bundle and nothing else: run by path, by any Python, isolated from all other packages.

    python -I -S driver.py BUNDLE     # an event a line on stdin; {"reply", "seconds", "peak_kb"} a line on stdout

Takes nothing from shardqa: what it imports is the bundle's.
"""

import importlib
import json
import sys
import time


def main() -> None:
    """Import the handler of the folder given and answer until stdin ends."""
    sys.path.insert(0, sys.argv[1])
    handler = importlib.import_module("lambda_function").handler
    for line in sys.stdin:
        event = json.loads(line)
        began = time.perf_counter()
        reply = handler(event, None)
        seconds = time.perf_counter() - began
        sys.stdout.write(json.dumps({"reply": reply, "seconds": seconds, "peak_kb": peak_kb()}) + "\n")
        sys.stdout.flush()


def peak_kb() -> int:
    """The most memory that this process has held, in KiB."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))


if __name__ == "__main__":
    main()
