"""The commands of the `shardqa` program, one file per kind; `shardqa.cli` puts them together."""
