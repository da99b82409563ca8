"""`shardqa.gears.local` is the name by which tests of functions import shardqa.worker.local.runner."""

from shardqa.worker.local.runner import LocalResult as LocalResult
from shardqa.worker.local.runner import LocalShard as LocalShard
from shardqa.worker.local.runner import run as run
