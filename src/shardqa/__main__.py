"""The `shardqa` program and `python -m shardqa`: the command line."""

from shardqa.cli import main

if __name__ == "__main__":
    main()
