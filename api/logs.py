"""The log of the API: lines for people, or JSON objects for programs, by the setting `log`."""

import json
import logging
from datetime import UTC, datetime
from typing import Any

from shardqa.request import current

FIELDS = ("request", "method", "path", "status", "ms", "node", "command")  # that a line may bring along


class JsonLines(logging.Formatter):
    """Writes one JSON object a line: time, level, logger, message, and the line's own fields."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request": current.get(),
        }
        line |= {name: value for name in FIELDS if (value := getattr(record, name, None)) is not None}
        if not line["request"]:
            del line["request"]
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True)


def configuration(form: str) -> dict[str, Any]:
    """Returns the configuration for `logging.config` and uvicorn."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "text": {"format": "%(asctime)s %(levelname)s %(message)s"},
            "json": {"()": "shardqa.api.logs.JsonLines"},
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": form, "stream": "ext://sys.stderr"}},
        "loggers": {
            "uvicorn": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
            "shardqa": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        },
    }
