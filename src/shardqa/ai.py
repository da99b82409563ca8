"""`shardqa.ai` is the name by which programs import shardqa.worker.client."""

from shardqa.worker.client import *  # noqa: F403
from shardqa.worker.client import __all__ as __all__
