"""Around every request: who may ask, limits, headers, its number, its line in the log; problems.

A request that is not answered has one shape of error.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..table.errors import list_names, suggest_name
from ..table.reading import RejectedRow
from .settings import Settings
from .telemetry import Telemetry

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
#: Files of this service alone, nothing inline; and it is asked only by itself.
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cache-Control": "no-cache",
}
#: The page holds no data, and asks for the token itself.
_WITHOUT_TOKEN = re.compile(r"/|/page/[^/]+|/health/live|/health/ready")
_METHODS = ("GET", "POST")
_GONE = 499
_log = logging.getLogger("dipedl.apps.serve")


#: Names of columns come from the request, and may be long.
_LONGEST = 1_000
#: Names among which one like a missing one is looked for.
MOST_COMPARED = 200
#: Columns of a request that a model does not know.
_OTHER_COLUMNS = 1_000


class Problem(Exception):
    """Error that a client can mend or must wait for: status, field of the request, reason."""

    def __init__(
        self,
        status: int,
        field: str,
        reason: str,
        headers: Mapping[str, str] | None = None,
        rejected: Sequence[RejectedRow] = (),
    ) -> None:
        super().__init__(reason)
        self.status, self.field = status, field[:_LONGEST]
        self.reason = reason if len(reason) <= _LONGEST else f"{reason[:_LONGEST]} ..."
        self.headers, self.rejected = dict(headers or {}), rejected

    def response(self, request_id: str) -> JSONResponse:
        """Return the error as the client gets it, see `schemas.Error`."""
        content: dict[str, Any] = {"status": self.status, "field": self.field}
        content |= {"reason": self.reason, "request_id": request_id}
        if self.rejected:
            content["refused"] = [row._asdict() for row in self.rejected]
        return JSONResponse(content, self.status, self.headers)


def too_large(most: int) -> Problem:
    """Return the error for a body over the limit."""
    return Problem(413, "body", f"the body must have at most {most:,} bytes; send fewer rows")


def too_many_rows(field: str, rows: int, most: int) -> Problem:
    """Return the error for rows over the limit."""
    reason = f"a request must have at most {most:,} rows, got {rows:,}; send them in parts"
    return Problem(413, field, reason)


def check_columns(columns: Sequence[str], names: Sequence[str], where: str) -> None:
    """Problem unless the columns of a request hold those of the model, and each is there once."""
    known = set(columns)
    if len(known) < len(columns):
        twice = sorted(name for name, n in Counter(columns).items() if n > 1)
        raise Problem(422, "columns", f"{where} names {list_names(map(repr, twice))} twice")
    if len(columns) > len(names) + _OTHER_COLUMNS:
        reason = f"at most {_OTHER_COLUMNS:,} columns that the model does not know"
        raise Problem(
            413, "columns", f"{where} may have {reason}, got {len(columns):,}; leave some out"
        )
    lacking = [name for name in names if name not in known]
    if lacking:
        near = suggest_name(lacking[0], list(columns)[:MOST_COMPARED])
        reason = f"{where} lacks {list_names(map(repr, lacking))} of the model: {near}"
        raise Problem(422, "columns", f"{reason}; a column of nulls stands for gaps")


class Guard:
    """Middleware around the routes of a service."""

    def __init__(self, app: ASGIApp, settings: Settings, telemetry: Telemetry) -> None:
        self._app, self._settings, self._telemetry = app, settings, telemetry
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; other kinds of connections are passed on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        number = request.headers.get("x-request-id", "")
        number = number if _ID.fullmatch(number) else uuid.uuid4().hex
        request.state.request_id, request.state.facts = number, {}
        start, statuses = time.perf_counter(), []

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                headers = MutableHeaders(scope=message)
                is_page = scope["path"] == "/" or scope["path"].startswith("/page/")
                headers.update(_HEADERS | (_PAGE_HEADERS if is_page else {}))
                headers["X-Request-ID"] = number
            await send(message)

        heavy = request.method == "POST"
        try:
            try:
                self._check(request)
                if heavy and self._running >= self._settings.waiting:
                    reason = "too many requests are waiting; ask again later"
                    raise Problem(429, "request", reason, {"Retry-After": "1"})
            except Problem as problem:
                await problem.response(number)(scope, receive, send_on)
                return
            self._running += heavy
            self._telemetry.running.set(self._running)
            try:
                await self._app(scope, receive, send_on)
            finally:
                self._running -= heavy
                self._telemetry.running.set(self._running)
        except ClientDisconnect:
            statuses.append(_GONE)
        except Exception:
            _log.exception("failed", extra={"request_id": number})
            if not statuses:
                failure = Problem(500, "service", "the service failed; its log says more")
                await failure.response(number)(scope, receive, send_on)
        finally:
            self._log_request(request, (statuses or [_GONE])[0], time.perf_counter() - start)

    def _check(self, request: Request) -> None:
        """Problem for what is refused by the head of the request alone."""
        headers, settings = request.headers, self._settings
        host = _split(f"//{headers.get('host', '')}").hostname or ""
        if settings.hosts and host not in settings.hosts:
            raise Problem(421, "host", f"{host!r} is not the name of this service")
        origin = headers.get("origin")
        if origin is not None and _split(origin).netloc != headers.get("host"):
            raise Problem(403, "origin", "pages of other sites may not ask this service")
        if settings.token and not _WITHOUT_TOKEN.fullmatch(request.scope["path"]):
            _check_token(settings.token, headers.get("authorization", ""))
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > settings.body_bytes:
            raise too_large(settings.body_bytes)

    def _log_request(self, request: Request, status: int, seconds: float) -> None:
        route = getattr(request.scope.get("route"), "path", "other")
        method = request.method if request.method in _METHODS else "other"
        self._telemetry.requests.labels(method, route, status).inc()
        self._telemetry.seconds.labels(route).observe(seconds)
        facts = {"request_id": request.state.request_id, "method": method, "route": route}
        facts |= {"status": status, "seconds": round(seconds, 6)}
        _log.info("request", extra=facts | request.state.facts)


def _split(address: str) -> SplitResult:
    """Return the parts of an address, all empty if it is none."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def _check_token(token: str, header: str) -> None:
    """Problem unless the header brings the token; the time of the comparison tells nothing."""
    scheme, _, value = header.partition(" ")
    # Digests have one length, so that not even that of the token is told.
    digests = (hashlib.sha256(text.encode()).digest() for text in (value.strip(), token))
    if not (hmac.compare_digest(*digests) and scheme.lower() == "bearer"):
        reason = "the request must bring the token of this service: Authorization: Bearer TOKEN"
        raise Problem(401, "authorization", reason, {"WWW-Authenticate": "Bearer"})
