"""`python -m shardqa` is the command line."""

from shardqa.cli import main

if __name__ == "__main__":
    main()
