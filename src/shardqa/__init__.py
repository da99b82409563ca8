"""shardqa: extractive question answering inside Redis Cluster."""

import os

__version__ = "0.1.0"

# onnxruntime >= 1.29 keeps a device id under ~/.cache and reports to its maker, unless this is set before it is loaded.
# Whatever of ours loads it has imported this package first. Set whatever it was: that nothing calls home is a promise.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
