"""A service as a process: its address, its signals, its end."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import math
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..table.errors import UsageError, UserError
from .service import Service
from .settings import TOKEN

_GRACE = 5
#: Seconds between lines of the log about the loop, which may fail thousands of times in one.
_QUIET = 1.0
_log = logging.getLogger("dipedl.apps.serve")


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine alone."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def names_of(host: str) -> tuple[str, ...]:
    """Names for `Settings.hosts` of a service at an address: () if other machines reach it.

    A page of the web could reach a loopback address by a name of its own.
    """
    return ("localhost", "127.0.0.1", "::1", host.lower()) if is_loopback(host) else ()


def check_exposed(host: str, token: str, allowed: bool) -> None:
    """UsageError for a service that others can reach and that asks for no token."""
    if not (is_loopback(host) or token or allowed):
        raise UsageError(
            f"--host {host} lets other machines ask this service, and it has no token: anyone who "
            f"reaches it could use the models. Give a token in the variable {TOKEN} or by "
            "--token-file, or say --without-token if something before it keeps others out"
        )


def bound(host: str, port: int) -> socket.socket:
    """A socket at an address; UserError if it is in use or none of this machine."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind, protocol)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        # Not yet listening, so that nothing connects before the models are loaded.
        return found
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UserError(
                f"port {port} of {host} is in use; choose another by --port (0: any free one)"
            ) from error
        raise UserError(f"{host}, port {port}: {error.strerror or error}") from error


def url_of(address: socket.socket) -> str:
    """Where a browser finds the service."""
    host, port = address.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run(
    app: FastAPI,
    address: socket.socket,
    seconds: float,
    started: Callable[[], None],
    hangups: Sequence[int],
) -> None:
    """Serve until SIGTERM or SIGINT; requests that have begun are answered before the end.

    `hangups` are the numbers of the signals to read files again that came before.
    """
    server = uvicorn.Server(config_of(app, seconds))
    asyncio.run(_served(server, app.state.service, address, started, hangups))


def config_of(app: FastAPI, seconds: float) -> uvicorn.Config:
    """How uvicorn serves; who takes longer to send a head, or to take an answer, is cut off."""
    return uvicorn.Config(
        app,
        http=type("Timed", (_Timed,), {"seconds": seconds}),
        limit_concurrency=_most_connections(),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=math.ceil(seconds) + _GRACE,
    )


class _Timed(H11Protocol):
    """A connection that ends when a head does not come, or an answer is not taken, in time."""

    seconds: float
    _head_timer: asyncio.TimerHandle | None = None
    _answer_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # To pause at the first byte that waits: each one has its time.
        transport.set_write_buffer_limits(0)
        self._start_head_timer()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._answer_timer = self.loop.call_later(self.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_answer_timer()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._start_head_timer()
        else:
            self._stop_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        self._stop_answer_timer()
        super().connection_lost(exc)

    def _start_head_timer(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.seconds, self.transport.close)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_answer_timer(self) -> None:
        if self._answer_timer is not None:
            self._answer_timer.cancel()
            self._answer_timer = None


def _most_connections() -> int | None:
    """Connections beyond which requests get 503: half of what the system lets a process open."""
    with suppress(ImportError):  # Windows has no such module
        import resource

        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return most // 2 if most > 0 else None
    return None


class LoopErrors:
    """Log failures outside requests, such as an accept without a free descriptor."""

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an error, unless another was logged in the last second."""
        if loop.time() >= self._next:
            self._next = loop.time() + _QUIET
            facts = {"reason": context["message"]}
            _log.error("loop", extra=facts, exc_info=context.get("exception"))


async def _served(
    server: uvicorn.Server,
    service: Service,
    address: socket.socket,
    started: Callable[[], None],
    hangups: Sequence[int],
) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(LoopErrors())
    # The server raises the signal again once all is done: the end that was asked for is no failure.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    if hasattr(signal, "SIGHUP"):
        loop.add_signal_handler(signal.SIGHUP, loop.run_in_executor, None, reload_all, service)
        if hangups:
            loop.run_in_executor(None, reload_all, service)
    told = loop.create_task(_tell(server, started))
    await server.serve(sockets=[address])
    told.cancel()


async def _tell(server: uvicorn.Server, started: Callable[[], None]) -> None:
    while not server.started:
        await asyncio.sleep(0.01)
    started()


def reload_all(service: Service) -> None:
    """Read all files again; what fails is in the log, and its old model stays."""
    for served in service.models:
        with suppress(UserError):
            service.reload(served.name)
