"""A service as a process: its address, its signals, its end.

The server is uvicorn by its own settings. granian 2.8, which has a time limit for slow heads, took
3.9 ms per request of one client where uvicorn took 2.8 (13 and 6.5 with eight clients), and lets a
client that does not read its answer stay forever; slow heads are left to a proxy.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import math
import signal
import socket
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import uvicorn
from fastapi import FastAPI

from ..table.errors import UserError

_log = logging.getLogger("dipedl.apps.serve")


def bind(host: str, port: int, seconds: float) -> socket.socket:
    """Return a socket at an address; UserError if it is in use or none of this machine.

    Linux ends a connection whose client takes nothing of an answer for so many seconds.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            milliseconds = min(math.ceil(1000 * seconds), 2**31 - 1)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
        made.bind(address)
        # It does not listen yet, so that nothing connects before the models are loaded.
        return made
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UserError(
                f"port {port} of {host} is in use; choose another port (0: any free one)"
            ) from error
        raise UserError(f"{host}, port {port}: {error.strerror or error}") from error


def url_of(address: socket.socket) -> str:
    """Return where a browser finds the service."""
    host, port = address.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run(app: FastAPI, address: socket.socket, hangups: Sequence[int] = ()) -> None:
    """Serve until SIGTERM or SIGINT; requests that have begun are answered before the end.

    SIGHUP reads the files of the models again; `hangups` are those signals that came before.
    """
    asyncio.run(_serve(app, address, hangups))


async def _serve(app: FastAPI, address: socket.socket, hangups: Sequence[int]) -> None:
    # scikit-learn sets every filter of warnings again for each tree of a forest.
    warnings.resetwarnings()
    warnings.simplefilter("default")
    loop, service = asyncio.get_running_loop(), app.state.service
    loop.set_exception_handler(LoopErrors())
    # The server raises the signal again once all is done: the end that was asked for is no failure.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    if hasattr(signal, "SIGHUP"):
        loop.add_signal_handler(signal.SIGHUP, loop.run_in_executor, None, service.reload_all)
        if hangups:
            loop.run_in_executor(None, service.reload_all)
    await uvicorn.Server(server_config(app, service.settings.seconds)).serve([address])


def server_config(app: FastAPI, seconds: float) -> uvicorn.Config:
    """Return the settings of uvicorn for a service whose requests take at most so many seconds."""
    connections = None
    with suppress(ImportError):  # Windows has no such module
        import resource

        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        connections = files // 2 if files > 0 else None
    return uvicorn.Config(
        app,
        http="h11",
        limit_concurrency=connections,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=math.ceil(seconds) + 5,
    )


class LoopErrors:
    """Log failures outside requests, such as an accept without a free descriptor, once a second.

    The loop reports each one, and may fail thousands of times in that second.
    """

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an error, unless another was logged in the last second."""
        if loop.time() >= self._next:
            self._next = loop.time() + 1
            facts = {"reason": context["message"]}
            _log.error("loop", extra=facts, exc_info=context.get("exception"))
