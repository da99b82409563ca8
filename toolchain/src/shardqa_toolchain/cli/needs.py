"""The check for libraries that an installation without the toolchain's extra lacks."""

from shardqa import extras


def need(*libraries: str) -> None:
    """Raise SetupError that says how to install them, unless every one of these libraries is there."""
    extras.need(*libraries, extra="train", package="./toolchain")
