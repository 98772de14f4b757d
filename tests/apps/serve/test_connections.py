"""Clients that do not take their answers, and more connections than the system lets one open."""

import asyncio
import errno
import json
import resource
import socket
import time
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
import uvicorn

from dipedl.apps.serve import Settings, create_app
from dipedl.apps.serve.process import LoopErrors, bind, server_config

CLOSE = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
SECONDS = 0.5


@asynccontextmanager
async def serving(app, send_buffer=None):
    """A server of the app in this loop; its port as an attribute."""
    server = uvicorn.Server(server_config(app, SECONDS))
    with bind("127.0.0.1", 0, SECONDS) as address:
        if send_buffer:
            address.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        task = asyncio.create_task(server.serve([address]))
        while not server.started:
            await asyncio.sleep(0.01)
        server.port = address.getsockname()[1]
        yield server
        server.should_exit = True
        await task


async def connect(port, request=b""):
    """A socket that sends a request and does not read."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.setblocking(False)
    await asyncio.get_running_loop().sock_connect(line, ("127.0.0.1", port))
    await asyncio.get_running_loop().sock_sendall(line, request)
    return line


async def read_all(port, request):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    async with asyncio.timeout(4):
        answer = await reader.read()
    writer.close()
    return answer


def test_half_of_the_descriptors_are_for_connections(models, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (6, 6))

    async def ask_third():
        async with serving(create_app(models)) as server:
            lines = [await connect(server.port) for _ in range(2)]
            answer = await read_all(server.port, CLOSE)
            for line in lines:
                line.close()
        return answer

    assert b" 503 " in asyncio.run(ask_third())


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the kernel cannot end them")
def test_clients_that_never_read_are_cut_off(models):
    body = json.dumps({"model": "plain", "matrix": [[0.0] * 4] * 1000}).encode()
    head = "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    ask = f"{head}Content-Length: {len(body)}\r\n".encode()
    app = create_app(models, Settings(seconds=5, waiting=3))

    async def stay_silent():
        async with serving(app, send_buffer=4096) as server:
            # The second answer waits for the first to be taken, and holds a place meanwhile.
            lines = [await connect(server.port, (ask + b"\r\n" + body) * 2) for _ in range(3)]
            live = await read_all(server.port, CLOSE)
            end = time.monotonic() + 20
            while server.server_state.connections and time.monotonic() < end:
                await asyncio.sleep(0.1)
            answer = await read_all(server.port, ask + b"Connection: close\r\n\r\n" + body)
            connections = len(server.server_state.connections)
            for line in lines:
                line.close()
        return live, answer, connections

    live, answer, connections = asyncio.run(stay_silent())
    assert b" 200 OK" in live and b" 200 OK" in answer
    assert connections == 0, "nor is what they left unread kept"


def test_errors_of_the_loop_are_a_line_a_second(log):
    now, handle = [100.0], LoopErrors()
    loop = SimpleNamespace(time=lambda: now[0])
    full = OSError(errno.EMFILE, "secret words")
    for now[0] in (100.0, 100.5, 100.9, 101.1, 101.2):
        handle(loop, {"message": "socket.accept() out of system resource", "exception": full})
    assert len(log()) == 2, "at 100.0 and at 101.1"
    assert {(line["reason"], line["exception"]) for line in log()} == {
        ("socket.accept() out of system resource", "OSError")
    }
