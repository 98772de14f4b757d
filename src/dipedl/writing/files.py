"""Files that are written whole or not at all, their checksums, and the key of this user."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NoReturn

from .finding import warn_caller

#: Tests of the mode of what is no ordinary file, and what to call it.
_NO_FILES = {
    stat.S_ISDIR: "a folder; name a file in it",
    stat.S_ISCHR: "a device; name a file",
    stat.S_ISBLK: "a device; name a file",
    stat.S_ISFIFO: "a FIFO; name a file",
    stat.S_ISSOCK: "a socket; name a file",
}
_ANY_MAY_WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def writable_target(path: str | os.PathLike[str]) -> Path:
    """Return the file that `path` names, links followed, if it may be written or replaced.

    Raises
    ------
    OSError
        If it is a folder, device, FIFO or socket, or a link in a circle; if the file is read-only
        (also for root); if its folder does not exist or is not writable.
    """

    def refuse(code: int | None, why: str | None) -> NoReturn:
        raise OSError(code, f"cannot save to {os.fspath(path)}: {why}")

    target = Path(os.path.realpath(path))
    mode = stat.S_IFREG | _ANY_MAY_WRITE
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        pass
    except OSError as error:
        refuse(error.errno, error.strerror)
    for is_kind, kind in _NO_FILES.items():
        if is_kind(mode):
            refuse(errno.EISDIR if is_kind is stat.S_ISDIR else errno.EINVAL, f"it is {kind}")
    if not mode & _ANY_MAY_WRITE or (target.exists() and not os.access(target, os.W_OK)):
        refuse(errno.EACCES, "it is read-only; name another file, or make it writable")
    if not target.parent.is_dir():
        refuse(errno.ENOENT, f"the folder {target.parent} does not exist; create it")
    if not os.access(target.parent, os.W_OK):
        refuse(errno.EACCES, f"the folder {target.parent} is not writable; name another")
    return target


def check_is_no_input(path: str | os.PathLike[str], inputs: Iterable[Path | None]) -> None:
    """Raise ValueError if `path` names one of the files that are read, also through links."""
    if not os.path.exists(path):
        return
    for source in inputs:
        if source is not None and source.exists() and os.path.samefile(path, source):
            raise ValueError(
                f"writing {path} would destroy the input {source}; choose another file"
            )


_FOLLOW_NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # Windows has none


def write_file(path: str | os.PathLike[str], data: bytes | memoryview | str) -> None:
    """Write a file whole or not at all; text in UTF-8. As `whole_file`."""
    with whole_file(path) as file:
        file.write(data.encode("utf-8") if isinstance(data, str) else data)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears at `path` once the block has ended, or not at all.

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
        with _new_file(beside, target.stat() if target.exists() else None) as file:
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


def _new_file(beside: str, replaced: os.stat_result | None) -> IO[bytes]:
    """Create a file, at no time readable for more users than the one that it will replace."""
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


def sha256_of(path: Path) -> str:
    """Return the hex digits of the SHA-256 of a file."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


_KEY_BYTES = 32


def secret_key() -> bytes:
    """Return the key of this user, from ``XDG_STATE_HOME`` or ``~/.local/state``; make it first.

    A file that others may read or write is not believed, and replaced.

    Warns
    -----
    UserWarning
        If it cannot be kept: then each call makes another key.
    """
    try:
        folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        path = folder / "dipedl" / "key"
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_own_key(path):
            path.unlink(missing_ok=True)
            _make_key(path)
        return path.read_bytes()
    except (OSError, RuntimeError) as error:
        warn_caller(
            f"no key can be kept for this user ({error}), so that what is kept of this run cannot "
            "be checked later, and will be done again; set XDG_STATE_HOME to a folder of yours"
        )
        return secrets.token_bytes(_KEY_BYTES)


def _is_own_key(path: Path) -> bool:
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return False
    private = not hasattr(os, "getuid") or (
        status.st_uid == os.getuid() and not status.st_mode & 0o077
    )
    return private and status.st_size == _KEY_BYTES


def _make_key(path: Path) -> None:
    """Write a new key, unless another process does so at the same time."""
    beside = path.with_name(secrets.token_hex(16))
    with open(beside, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(secrets.token_bytes(_KEY_BYTES))
    try:
        os.link(beside, path)
    except FileExistsError:
        pass
    finally:
        beside.unlink()
