"""The page: static files, no build step, nothing from elsewhere."""

import os
from pathlib import Path

from fastapi import APIRouter, FastAPI
from fastapi.responses import FileResponse
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = Path(__file__).parent.parent / "page"
FRESH = {"Cache-Control": "no-cache"}  # asked about with the ETag each time: a new version shows at once

router = APIRouter(include_in_schema=False)


@router.get("/")
async def ask_page() -> FileResponse:
    return FileResponse(FOLDER / "index.html", headers=FRESH)


@router.get("/document")
async def document_page() -> FileResponse:
    return FileResponse(FOLDER / "document.html", headers=FRESH)


@router.get("/docs")
async def docs_page() -> FileResponse:
    """Shows /openapi.json. FastAPI's own pages load their scripts from a CDN, which this server can do without."""
    return FileResponse(FOLDER / "docs.html", headers=FRESH)


@router.get("/favicon.ico")
async def icon() -> FileResponse:
    return FileResponse(FOLDER / "icon.svg", headers=FRESH)


class _Fresh(StaticFiles):
    """Static files that are revalidated at each use."""

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.update(FRESH)
        return response


def mount(app: FastAPI) -> None:
    app.include_router(router)
    app.mount("/static", _Fresh(directory=FOLDER), name="static")
