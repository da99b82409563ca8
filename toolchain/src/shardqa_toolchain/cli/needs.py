"""The check for libraries that an installation without its dependencies lacks."""

from functools import partial

from shardqa import extras

need = partial(extras.need, package="./toolchain")
