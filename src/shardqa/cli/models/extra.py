"""The libraries that only making models needs, and what to say when they are missing."""

from importlib.util import find_spec

from shardqa.errors import SetupError


def need(*libraries: str) -> None:
    """Raise SetupError that says how to install them unless every one of these libraries is there."""
    missing = [name for name in libraries if find_spec(name) is None]
    if missing:
        raise SetupError(
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed, which this command needs; "
            "run: pip install 'shardqa[models]'"
        )
