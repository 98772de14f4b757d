"""Resumable download of a large file."""

from __future__ import annotations

import http.client
import json
import os
import re
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .fetch import TextProgress

__all__ = ["download"]

ROUNDS = 5  # attempts without a new byte before giving up
PAUSE = 1.0  # seconds between attempts
TIMEOUT = 30.0  # seconds without a response before an attempt counts as failed
_BLOCK = 1 << 20
_PARTIAL, _NOT_SATISFIABLE = 206, 416


def download(url: str, path: Path) -> None:
    """Download `url` to `path`, completely or not at all.

    Until it is complete, the data are in ``path.part``. The next attempt, or a later call, resumes
    an interrupted one and requests only the rest (HTTP Range). If the server has no ranges, or its
    file has changed, the download starts again.

    Raises
    ------
    ValueError
        If `url` is no HTTP address.
    ConnectionError
        If the file is missing or incomplete; says how much was received.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError(f"url must begin with http:// or https://, got {url!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = _Part(path)
    left = ROUNDS
    while left:
        before = part.size
        try:
            if _attempt(url, part):
                os.replace(part.path, path)
                part.facts.unlink(missing_ok=True)
                return
            failure: Exception = ConnectionError("the server closed the connection")
        except urllib.error.HTTPError as error:
            failure = error
            if error.code < 500:
                break
        except (OSError, http.client.HTTPException) as error:
            failure = error
        left = ROUNDS if part.size > before else left - 1
        time.sleep(PAUSE if left else 0)
    raise ConnectionError(
        f"{url} could not be downloaded: {failure}; {part.size / 1e6:.1f} MB of it are kept in "
        f"{str(part.path)!r}, and loading again goes on from there; check the network and the "
        "address"
    ) from failure


class _Part:
    """The bytes received so far, and the version of the file they belong to."""

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(f"{path.name}.part")
        self.facts = path.with_name(f"{path.name}.part.json")

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def version(self) -> str | None:
        """ETag or date of the file; None if it is not known."""
        try:
            found = json.loads(self.facts.read_text(encoding="utf-8"))["version"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return found if isinstance(found, str) else None

    def begin(self, version: str | None) -> None:
        """Discard the bytes received so far."""
        self.path.write_bytes(b"")
        self.facts.write_text(json.dumps({"version": version}), encoding="utf-8")


def _attempt(url: str, part: _Part) -> bool:
    """Append the server's data; returns whether the file is complete."""
    start, version = part.size, part.version()
    ranged = {}
    if version is None:
        start = 0  # the rest might belong to another version of the file
    elif start:
        ranged = {"Range": f"bytes={start}-", "If-Range": version}
    headers = {"Accept-Encoding": "identity", "User-Agent": "dipedl", **ranged}
    request = urllib.request.Request(url, headers=headers)
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != _NOT_SATISFIABLE:
            raise
        if error.headers.get("Content-Range") == f"bytes */{start}":
            return True
        part.begin(None)
        return False
    with answer:
        total = _begin(answer, part, start)
        _receive(answer, part, total)
    return total is None or part.size == total


def _begin(answer: Any, part: _Part, start: int) -> int | None:
    """Prepare `part` for the body of the response; returns the size of the whole file."""
    if answer.status == _PARTIAL:
        match = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", answer.headers.get("Content-Range", ""))
        if match and int(match[1]) == start:
            return int(match[2])
        part.begin(None)
        raise ConnectionError("the server sent another part of the file than it was asked for")
    part.begin(_version(answer.headers))
    length = answer.headers.get("Content-Length")
    return None if length is None else int(length)


def _version(headers: Any) -> str | None:
    tag: str | None = headers.get("ETag")
    date: str | None = headers.get("Last-Modified")
    # A weak tag may stand for other bytes, and If-Range does not accept it.
    return tag if tag and not tag.startswith("W/") else date


def _receive(answer: Any, part: _Part, total: int | None) -> None:
    progress = TextProgress(part.path.stem) if sys.stderr.isatty() else None
    if progress:
        progress.total, progress.done = total or 0, part.size
    with open(part.path, "ab") as stream:
        while block := answer.read(_BLOCK):
            stream.write(block)
            if progress:
                progress.update(len(block))
    if progress:
        progress.close()
