"""Prints the description of the HTTP API, which a server gives at /openapi.json."""

import json

from shardqa.api.app import create_app
from shardqa.config import Settings

if __name__ == "__main__":
    print(json.dumps(create_app(Settings()).openapi(), indent=1, ensure_ascii=False, sort_keys=True))
