"""The page of a service: HTML, CSS and JavaScript as they lie here, without a build."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from fastapi import APIRouter
from starlette.responses import Response

from ..problems import Problem

_KINDS = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
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
        return _response(*files["index.html"])

    @router.get("/page/{name}")
    async def file(name: str) -> Response:
        if name not in files:
            raise Problem(404, "path", f"the page has no file {name[:64]!r}")
        return _response(*files[name])

    return router


def _files() -> Iterator[tuple[str, tuple[bytes, str]]]:
    """Content and kind of each file, by its name."""
    for file in resources.files(__name__).iterdir():
        kind = _KINDS.get(Path(file.name).suffix)
        if kind is not None:
            yield file.name, (file.read_bytes(), kind)


def _response(content: bytes, kind: str) -> Response:
    headers = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-cache"}
    return Response(content, media_type=kind, headers=headers)
