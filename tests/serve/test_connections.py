"""Connections that bring no whole request, and more of them than the system lets one open."""

import asyncio
import errno
import resource
import time
from types import SimpleNamespace

import uvicorn

from dipedl.serve import Settings, create_app
from dipedl.serve.running import LoopErrors, bound, config_of

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
