"""The `shardqa` program and `python -m shardqa`: the command line, or the one line that names what it lacks."""

import sys

from shardqa import extras


def main() -> None:
    try:
        from shardqa import cli
    except ModuleNotFoundError as fault:
        if sys.argv[1:] == ["module-path"]:  # what the redis.conf of a node names that has the worker's part alone
            from shardqa.cluster import redis_server

            print(redis_server.module_path())
            return
        sys.exit(extras.missing("the command line", fault, "cli"))
    cli.main()


if __name__ == "__main__":
    main()
