"""Write beside a file, then take its place in one step."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from .target import writable_target

_FOLLOW_NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # Windows has none


def write_file(path: str | os.PathLike[str], data: bytes | memoryview | str) -> None:
    """Write a file whole or not at all; text in UTF-8. As `whole_file`."""
    with whole_file(path) as file:
        file.write(data.encode("utf-8") if isinstance(data, str) else data)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file open for writing that appears at `path` once the block has ended, or not at all.

    After an error, Ctrl-C or a kill the file that was there is as it was. A file that is replaced
    keeps its permissions and, where the system allows it, its owner; where `path` is a link, the
    file behind it is replaced. What the block wrote is on the disk when this returns.

    Raises
    ------
    OSError
        If there is no permission or no space, or if `path` names no ordinary file, see
        `writable_target`; its message begins with "cannot save to", and the path.
    """
    target = writable_target(path)
    # Nobody can know this name before, and so plant a link there.
    beside = os.path.join(target.parent, f".dipedl-{secrets.token_hex(16)}.part")
    try:
        with _created(beside, _status(target)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException as error:
        # If the folder went read-only or away meanwhile, the first error says so already.
        with suppress(OSError):
            os.unlink(beside)
        if isinstance(error, OSError) and error.filename in (None, beside):
            message = f"cannot save to {os.fspath(path)}: {error.strerror or error}"
            raise OSError(error.errno, f"{message}; what was there is unchanged") from error
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk, so that a new one survives a power cut."""
    # The file is whole and in its place. Not every system, nor every folder, can be asked for more.
    with suppress(OSError, AttributeError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _status(target: Path) -> os.stat_result | None:
    try:
        return target.stat()
    except FileNotFoundError:
        return None


def _created(beside: str, replaced: os.stat_result | None) -> IO[bytes]:
    """A new file, at no time readable for more users than the one that it will replace."""
    mode = 0o666 if replaced is None else stat.S_IMODE(replaced.st_mode) & 0o777
    file = open(
        beside, "xb", opener=lambda name, flags: os.open(name, flags | _FOLLOW_NO_LINK, mode)
    )
    if replaced is not None and hasattr(os, "fchown"):
        for owner in ((replaced.st_uid, -1), (-1, replaced.st_gid)):
            with suppress(OSError):
                os.fchown(file.fileno(), *owner)
        os.fchmod(file.fileno(), mode)
    return file
