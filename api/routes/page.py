"""The page: static files, no build step, nothing from elsewhere."""

import importlib.util
import io
import os
from pathlib import Path
from typing import Annotated

import segno
from fastapi import APIRouter, FastAPI, Query
from fastapi.responses import FileResponse
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from shardqa.api.gate import OPEN, Route, operation

FOLDER = Path(__file__).parent.parent / "page"
FRESH = {"Cache-Control": "no-cache"}  # asked about with the ETag each time: a new version shows at once
LONGEST_CODE = 1_000  # characters; 86 ms
PAGES = {
    "/": "index.html",
    "/document": "document.html",
    "/docs": "docs.html",  # FastAPI's own loads Swagger UI from a CDN, which this server can do without
    "/cluster": "cluster.html",
    "/corpus/{name}": "corpus.html",
    "/llms.txt": "llms.txt",
    "/favicon.ico": "icon.svg",
}

router = APIRouter(include_in_schema=False, route_class=Route)


def _add(path: str, file: str) -> None:
    @router.get(path, dependencies=[OPEN])
    async def page() -> FileResponse:
        return FileResponse(FOLDER / file, headers=FRESH)


for path, file in PAGES.items():
    _add(path, file)


@router.get("/qr.svg", **operation("ask", "Draw a QR code"))
def code_of(text: Annotated[str, Query(max_length=LONGEST_CODE)]) -> Response:
    """A text as a QR code: of a question's address, for those who sit in a hall."""
    drawn = io.BytesIO()
    segno.make(text, micro=False).save(drawn, "svg", xmldecl=False, svgclass=None, lineclass=None, omitsize=True)
    return Response(drawn.getvalue(), media_type="image/svg+xml")


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
