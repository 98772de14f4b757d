"""A question to the Ray cluster at an address: Ray itself would wait for minutes."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

from ..table.errors import UserError

#: Seconds to connect, and for all answers.
_SECONDS = 5.0
_DATA, _HEADERS, _SETTINGS, _PREFIX = 0, 1, 4, 5
_END_OF_STREAM, _END_OF_HEADERS = 1, 4
#: Status 200 in the table of RFC 7541: gRPC tells its own errors under it, other servers do not.
_STATUS_200 = b"\x88"
#: The longest text whose length is one byte, and the longest frame that nobody asked to be longer.
_TEXT, _LARGEST = 126, 1 << 14


def check_answers(address: str) -> None:
    """UserError if nothing at an address, host:port, answers the question whether it is alive.

    It is asked as a client of gRPC would: RFC 9113 (HTTP/2), RFC 7541 (its headers).
    """
    if address in ("auto", "local"):
        return
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not colon or not port.isdigit():
        raise UserError(f"address must be host:port, as 10.0.0.1:6379, or auto, got {address!r}")
    wrong = (
        f"no Ray cluster answers at {address}: check the address, or start one by ray start --head"
    )
    try:
        with socket.create_connection((host, int(port)), timeout=_SECONDS) as connection:
            connection.sendall(_question(f"{host}:{port}"))
            alive = _is_answer(_frames(connection, time.monotonic() + _SECONDS))
    except OSError as error:
        raise UserError(f"{wrong} ({error})") from error
    if not alive:
        raise UserError(f"{wrong} (something else listens there)")


def _question(host: str) -> bytes:
    """The greeting of a client, and a call of CheckAlive without arguments."""
    headers = (
        b"\x83\x86"  # POST, http
        + b"\x04"
        + _text("/ray.rpc.NodeInfoGcsService/CheckAlive")
        + b"\x01"
        + _text(host)
        + b"\x0f\x10"
        + _text("application/grpc")
        + b"\x00"
        + _text("te")
        + _text("trailers")
    )
    return (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + _frame(_SETTINGS, 0, 0, b"")
        + _frame(_HEADERS, _END_OF_HEADERS, 1, headers)
        + _frame(_DATA, _END_OF_STREAM, 1, bytes(_PREFIX))
    )


def _text(text: str) -> bytes:
    return bytes([min(len(text), _TEXT)]) + text.encode()[:_TEXT]


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")
    return head + payload


def _frames(connection: socket.socket, until: float) -> Iterator[tuple[int, int, bytes]]:
    """Kind, flags and payload of the frames that come; TimeoutError if the time is over."""
    while True:
        head = _read(connection, 9, until)
        size = int.from_bytes(head[:3], "big")
        yield head[3], head[4], _read(connection, size, until) if size <= _LARGEST else b""


def _read(connection: socket.socket, size: int, until: float) -> bytes:
    found = b""
    while len(found) < size:
        connection.settimeout(max(until - time.monotonic(), 1e-3))
        more = connection.recv(size - len(found))
        if not more:
            raise ConnectionError("it hangs up")
        found += more
    return found


def _is_answer(frames: Iterator[tuple[int, int, bytes]]) -> bool:
    """Return whether a message of gRPC comes, or an error of gRPC, which has no message."""
    if next(frames)[0] != _SETTINGS:
        return False
    for kind, flags, payload in frames:
        if kind == _DATA:
            return int.from_bytes(payload[1:_PREFIX], "big") == len(payload) - _PREFIX
        if kind == _HEADERS and flags & _END_OF_STREAM:
            return payload[:1] == _STATUS_200
    return False
