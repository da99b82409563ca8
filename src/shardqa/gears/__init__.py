"""`shardqa.gears` is the name by which scripts import shardqa.worker.local."""

from shardqa.worker.local import __all__ as __all__
from shardqa.worker.local import __getattr__ as __getattr__
