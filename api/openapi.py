"""The OpenAPI description: FastAPI's, with problems as the errors of every operation and the list of their codes."""

from typing import Any, get_args

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
QUESTION = {"question": "Who designed UTF-8?", "corpus": "seeds"}
EXAMPLES: dict[str, dict[str, Any]] = {  # of JSON bodies, by the path of their POST
    "/v1/ask": {**QUESTION, "n_best": 3},
    "/v1/ask/batch": {"questions": [QUESTION, {"question": "How deep is Lake Ysolde?", "corpus": "seeds"}]},
    "/v1/search": {**QUESTION, "limit": 10},
    "/v1/explain": {**QUESTION, "k": 5},
    "/v1/documents": {
        "id": "mill",
        "corpus": "examples",
        "title": "The mill",
        "text": "Ada Holm built the mill in 1871.",
        "metadata": {"year": 1871},
    },
}


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
        title="shardqa",
        version=shardqa.__version__,
        description=DESCRIPTION,
        routes=app.routes,
        servers=SERVERS,
    )
    schemas = schema.setdefault("components", {}).setdefault("schemas", {})
    for model in (Problem, FieldError, NewDocument):
        own = model.model_json_schema(ref_template=REF)
        own.pop("$defs", None)
        schemas[model.__name__] = own
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for operations in schema["paths"].values():
        for operation in operations.values():
            if "security" in operation:
                operation["security"].insert(0, {})  # without a key, as far as the settings allow it
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = {
                "description": "A problem (RFC 9457)",
                "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
            }
    for path, example in EXAMPLES.items():
        schema["paths"][path]["post"]["requestBody"]["content"]["application/json"]["example"] = example
    _name_choices(schema["paths"])
    _name_choices(schemas)
    schemas |= {name: {"type": "string", "enum": list(values)} for name, values in CHOICES.items()}
    schema["x-problems"] = problem_codes()
    return schema


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
