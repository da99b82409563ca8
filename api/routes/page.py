"""The page: static files, no build step, nothing from elsewhere."""

import importlib.util
import os
from pathlib import Path

from fastapi import APIRouter, FastAPI
from fastapi.responses import FileResponse
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from shardqa.api.gate import OPEN, Route

FOLDER = Path(__file__).parent.parent / "page"
FRESH = {"Cache-Control": "no-cache"}  # asked about with the ETag each time: a new version shows at once

router = APIRouter(include_in_schema=False, route_class=Route)


@router.get("/", dependencies=[OPEN])
async def ask_page() -> FileResponse:
    return FileResponse(FOLDER / "index.html", headers=FRESH)


@router.get("/document", dependencies=[OPEN])
async def document_page() -> FileResponse:
    return FileResponse(FOLDER / "document.html", headers=FRESH)


@router.get("/docs", dependencies=[OPEN])
async def docs_page() -> FileResponse:
    """Shows /openapi.json in Swagger UI. FastAPI's own page loads it from a CDN, which this server can do without."""
    return FileResponse(FOLDER / "docs.html", headers=FRESH)


@router.get("/cluster", dependencies=[OPEN])
async def cluster_page() -> FileResponse:
    return FileResponse(FOLDER / "cluster.html", headers=FRESH)


@router.get("/corpus/{name}", dependencies=[OPEN])
async def corpus_page() -> FileResponse:
    return FileResponse(FOLDER / "corpus.html", headers=FRESH)


@router.get("/llms.txt", dependencies=[OPEN])
async def for_programs() -> FileResponse:
    return FileResponse(FOLDER / "llms.txt", headers=FRESH)


@router.get("/favicon.ico", dependencies=[OPEN])
async def icon() -> FileResponse:
    return FileResponse(FOLDER / "icon.svg", headers=FRESH)


class _Fresh(StaticFiles):
    """Static files that a browser revalidates at each use."""

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.update(FRESH)
        return response


def swagger_folder() -> Path:
    """Returns the folder of Swagger UI's files in fastapi-swagger, whose own page has no strict CSP."""
    spec = importlib.util.find_spec("fastapi_swagger")
    assert spec is not None, "fastapi-swagger is one of the API's own requirements"
    assert spec.origin is not None
    return Path(spec.origin).parent / "resources"


def mount(app: FastAPI) -> None:
    app.include_router(router)
    app.mount("/static/swagger", _Fresh(directory=swagger_folder()), name="swagger")
    app.mount("/static", _Fresh(directory=FOLDER), name="static")
