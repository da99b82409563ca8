from shardqa.worker.local import *  # noqa: F403
from shardqa.worker.local import __all__ as __all__
