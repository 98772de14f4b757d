"""Connections that bring no whole request, and more of them than the system lets one open."""

import asyncio
import errno
import json
import resource
import socket
import time
from types import SimpleNamespace

import uvicorn

from dipedl.apps.serve import Settings, create_app
from dipedl.apps.serve.running import LoopErrors, bound, config_of

HEAD = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
SECONDS = 0.3


async def until_closed(port, *pieces):
    """What comes back until the service closes, and after how long; pieces are sent in between."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    start = time.perf_counter()
    for piece in pieces:
        writer.write(piece)
        await asyncio.sleep(0.1)
    async with asyncio.timeout(4):
        got = await reader.read()
    writer.close()
    return got, time.perf_counter() - start


async def asked_of_a_service(app, seconds, *many):
    server = uvicorn.Server(config_of(app, seconds))
    with bound("127.0.0.1", 0) as address:
        serving = asyncio.create_task(server.serve([address]))
        while not server.started:
            await asyncio.sleep(0.01)
        port = address.getsockname()[1]
        found = await asyncio.gather(*(until_closed(port, *pieces) for pieces in many))
        server.should_exit = True
        await serving
    return found


def test_a_head_that_does_not_come_in_time_ends_the_connection(models):
    app = create_app(models, Settings(seconds=SECONDS))
    body = HEAD.replace(b"GET", b"POST").replace(b"/health/live", b"/v1/predict")
    body = (
        body[:-2]
        + b"Connection: close\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )
    nothing, half, drops, second, late = asyncio.run(
        asked_of_a_service(
            app, SECONDS, (), (b"POST /v1/pre",), (b"P", b"O", b"S"), (HEAD, HEAD[:9]), (body,)
        )
    )
    for got, seconds in (nothing, half, drops):
        assert got == b"" and 0.9 * SECONDS < seconds < 2, "drops do not begin the time anew"
    assert second[0].count(b"200 OK") == 1 and second[1] < 3, "before the end of keep-alive"
    assert b" 408 " in late[0], "a body has the time of its own, and an answer"


def test_a_whole_request_keeps_its_connection(models):
    app = create_app(models)
    pieces = (HEAD[:20], HEAD[20:], HEAD, HEAD[:-2] + b"Connection: close\r\n\r\n")
    ((got, seconds),) = asyncio.run(asked_of_a_service(app, 0.25, pieces))
    assert got.count(b"200 OK") == 3 and seconds >= 0.3


def test_half_of_the_descriptors_are_for_connections(models, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (6, 6))
    closing = HEAD[:-2] + b"Connection: close\r\n\r\n"
    # Two that say nothing, and the third, which is the limit.
    found = asyncio.run(asked_of_a_service(create_app(models), SECONDS, (), (), (closing,)))
    assert b" 503 " in found[2][0]


async def silent(port, request):
    """A socket that sends requests and never reads."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(line, ("127.0.0.1", port))
    await loop.sock_sendall(line, request)
    return line


def test_clients_that_never_read_are_cut_off(models):
    body = json.dumps({"model": "plain", "matrix": [[0.0] * 4] * 1000}).encode()
    head = "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    ask = f"{head}Content-Length: {len(body)}\r\n".encode()
    service = create_app(models, Settings(seconds=SECONDS, waiting=3))

    async def held():
        server = uvicorn.Server(config_of(service, SECONDS))
        with bound("127.0.0.1", 0) as address:
            address.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            serving = asyncio.create_task(server.serve([address]))
            while not server.started:
                await asyncio.sleep(0.01)
            port = address.getsockname()[1]
            # The second answer waits for the first to be taken, and holds a place meanwhile.
            lines = [await silent(port, (ask + b"\r\n" + body) * 2) for _ in range(3)]
            live, _ = await until_closed(port, HEAD[:-2] + b"Connection: close\r\n\r\n")
            await asyncio.sleep(2 * SECONDS)
            end = time.monotonic() + 5
            while server.server_state.connections and time.monotonic() < end:
                await asyncio.sleep(SECONDS)
            answer, _ = await until_closed(port, ask + b"Connection: close\r\n\r\n" + body)
            open_ = len(server.server_state.connections)
            for line in lines:
                line.close()
            server.should_exit = True
            await serving
        return live, answer, open_

    live, answer, open_ = asyncio.run(held())
    assert b" 200 OK" in live and b" 200 OK" in answer
    assert open_ == 0, "nor is what they left unread kept"


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
