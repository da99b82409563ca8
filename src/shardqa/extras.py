"""Libraries that a part of shardqa needs beyond those of the command line, and the fault where one is missing."""

from importlib.util import find_spec

from shardqa.errors import SetupError

WORKER = ("onnxruntime", "tokenizers", "cloudpickle", "sentencex")
SERVICE = (*WORKER, "fastapi", "fastapi_swagger", "httptools", "prometheus_client", "python_multipart", "uvicorn")
"""What a cluster with its API on this machine needs, the extra `all`."""
OF_PUBLIC = {"httpx2": "client", **dict.fromkeys(WORKER, "worker")}  # what the names of `shardqa` need


def need(*libraries: str, extra: str, package: str = "") -> None:
    """Raise SetupError that says how to install them, by this extra, unless every one of these libraries is there.

    `package` is the folder of another distribution that has the extra.
    """
    missing = lacking(*libraries)
    if missing:
        way_out = f"run: pip install '{package}[{extra}]'" if package else remedy(extra)
        raise SetupError(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed; {way_out}")


def lacking(*libraries: str) -> list[str]:
    return [name for name in libraries if find_spec(name) is None]


def missing(what: str, fault: ModuleNotFoundError, extra: str) -> str:
    """The line for people where importing a part failed. Raises `fault` where a module of our own is missing."""
    if fault.name is None or fault.name.split(".")[0] == "shardqa":
        raise fault
    return f"shardqa: {what} needs {fault.name}, which is not installed; {remedy(extra)}"


def remedy(extra: str) -> str:
    """Says how to install it: no package index has shardqa yet."""
    return f"run: pip install '.[{extra}]' in a checkout of shardqa, or name its wheel: pip install 'FILE.whl[{extra}]'"
