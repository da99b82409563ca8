"""The check for libraries that an installation without the toolchain's extras lacks."""

from shardqa import extras


def need(*libraries: str, extra: str = "train") -> None:
    """Raise SetupError that says how to install them, unless every one of these libraries is there."""
    extras.need(*libraries, extra=extra, package="./toolchain")
