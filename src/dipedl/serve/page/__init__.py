"""The page of a service: HTML, CSS and JavaScript as they lie here, without a build."""

from __future__ import annotations

from importlib import resources

from fastapi import APIRouter
from starlette.responses import Response

from ..problems import Problem

_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
#: Only files of this service, nothing inline; and it is asked only by itself.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def page_routes() -> APIRouter:
    """The page at ``/``, and its files below ``/page``; they hold no data."""
    router, files = APIRouter(include_in_schema=False), dict(_files())

    @router.get("/")
    async def page() -> Response:
        return files["index.html"]

    @router.get("/page/{name}")
    async def file(name: str) -> Response:
        if name not in files:
            raise Problem(404, "path", f"the page has no file {name[:64]!r}")
        return files[name]

    return router


def _files() -> list[tuple[str, Response]]:
    return [
        (file.name, _response(file.read_bytes(), kind))
        for file in resources.files(__name__).iterdir()
        if (kind := _KINDS.get(file.name[file.name.rfind(".") :])) is not None
    ]


def _response(content: bytes, kind: str) -> Response:
    headers = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-cache"}
    return Response(content, media_type=kind, headers=headers)
