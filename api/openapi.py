"""The OpenAPI description: FastAPI's, with problems as the errors of every operation and the list of their codes."""

from pathlib import Path
from typing import Any, get_args

import orjson
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

import shardqa
from shardqa.answer_forms import Form, FormChoice
from shardqa.answer_lines import AnswerWhen
from shardqa.api import faults
from shardqa.api.problems import MEDIA_TYPE, TITLES
from shardqa.errors import ShardqaError
from shardqa.http_schema import FieldError, NewDocument, Problem

DESCRIPTION = (
    "Extractive question answering inside Redis Cluster: every answer is a span of a document, with its exact place, "
    "a calibrated score, and no answer where none is sure."
)
REF = "#/components/schemas/{model}"
SERVERS = [{"url": "/", "description": "The server that this description comes from"}]
# By `METHOD path`: of `parameters`, the `request`'s body and the `response`, as a server gave it.
EXAMPLES: dict[str, dict[str, Any]] = orjson.loads((Path(__file__).parent / "examples.json").read_bytes())
UNKNOWN = {"/v1/documents/{id}": "unknown_document", "/v1/tasks/{id}": "unknown_task", "/v1/pages/{name}": "no_file"}
CHOICES = {"AnswerWhen": get_args(AnswerWhen), "FormChoice": get_args(FormChoice), "Form": get_args(Form)}


def operation_id(route: APIRoute) -> str:
    """Returns the name of a route's function: generated clients call it so, and it outlives the address."""
    return route.name


def install(app: FastAPI) -> None:
    """Has `app.openapi()`, and so /openapi.json, give this description, which is built once."""

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _describe(app)
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


def _describe(app: FastAPI) -> dict[str, Any]:
    schema = get_openapi(
        title="shardqa", version=shardqa.__version__, description=DESCRIPTION, routes=app.routes, servers=SERVERS
    )
    schemas = schema.setdefault("components", {}).setdefault("schemas", {})
    for model in (Problem, FieldError, NewDocument):
        own = model.model_json_schema(ref_template=REF)
        own.pop("$defs", None)
        schemas[model.__name__] = own
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    problems = {entry["code"]: entry for entry in problem_codes()}
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            if "security" in operation:
                operation["security"].insert(0, {})  # without a key, as far as the settings allow it
            operation["responses"].pop("422", None)
            for code in _codes(path, method, operation):
                operation["responses"][str(problems[code]["status"])] = {"$ref": f"#/components/responses/{code}"}
            operation["responses"]["default"] = _problem("A problem (RFC 9457)")
            _exemplify(operation, EXAMPLES.get(f"{method.upper()} {path}", {}))
    schema["components"]["responses"] = {code: _problem(one["title"], one) for code, one in problems.items()}
    _name_choices(schema["paths"])
    _name_choices(schemas)
    schemas |= {name: {"type": "string", "enum": list(values)} for name, values in CHOICES.items()}
    schema["x-problems"] = problem_codes()
    return schema


def _codes(path: str, method: str, operation: dict[str, Any]) -> list[str]:
    """Lists the faults that an operation is likely to meet, one of a status."""
    names = {one["name"] for one in operation.get("parameters", ())}
    codes = ["key_wanted", "not_allowed", "too_many_requests", "cluster_unavailable"] * ("security" in operation)
    codes += ["invalid_request"] if names or "requestBody" in operation else []
    codes += ["body_too_large"] if "requestBody" in operation else []
    codes += [UNKNOWN.get(path, "unknown_corpus")] if path in UNKNOWN or "corpus" in names else []
    return [*codes, *(["document_changed"] if method == "patch" else [])]


def _problem(description: str, entry: dict[str, Any] | None = None) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": {"$ref": REF.format(model=Problem.__name__)}}
    if entry is not None:
        content["example"] = {"type": f"/docs#{entry['code']}", "detail": entry["title"], "instance": "urn:…", **entry}
    return {"description": description, "content": {MEDIA_TYPE: content}}


def _exemplify(operation: dict[str, Any], example: dict[str, Any]) -> None:
    for parameter in operation.get("parameters", ()):
        if parameter["name"] in example.get("parameters", {}):
            parameter["example"] = example["parameters"][parameter["name"]]
    if "request" in example:
        operation["requestBody"]["content"]["application/json"]["example"] = example["request"]
    if "response" in example:
        first = min(status for status in operation["responses"] if status.startswith("2"))
        operation["responses"][first]["content"]["application/json"]["example"] = example["response"]


def _name_choices(schema: Any) -> None:
    """Puts a reference in the place of each choice (enum), so that generated clients have one type of it."""
    if isinstance(schema, list):
        for one in schema:
            _name_choices(one)
    if isinstance(schema, dict):
        name = next((name for name, values in CHOICES.items() if schema.get("enum") == list(values)), None)
        if name is not None:
            for field in ("enum", "type", "title"):
                schema.pop(field, None)
            schema["$ref"] = REF.format(model=name)
        for one in schema.values():
            _name_choices(one)


def problem_codes() -> list[dict[str, Any]]:
    """Returns each code with its title and remedy, by status."""
    classes: list[type[ShardqaError]] = [ShardqaError, *_below(ShardqaError)]
    ours = (ShardqaError.__module__, faults.__name__)
    entries = {fault.code: _entry(fault) for fault in classes if fault.__module__ in ours}
    return sorted(entries.values(), key=lambda entry: (entry["status"], entry["code"]))


def _entry(fault: type[ShardqaError]) -> dict[str, Any]:
    title, remedy = TITLES[fault.code]
    return {"code": fault.code, "status": fault.status, "title": title, "remedy": remedy}


def _below(fault: type[ShardqaError]) -> list[type[ShardqaError]]:
    return [below for child in fault.__subclasses__() for below in (child, *_below(child))]
