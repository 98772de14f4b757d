"""Which file a path stands for, and whether it may be replaced."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

_NO_FILES = {
    stat.S_IFDIR: "a folder; name a file in it",
    stat.S_IFCHR: "a device; name a file",
    stat.S_IFBLK: "a device; name a file",
    stat.S_IFIFO: "a FIFO; name a file",
    stat.S_IFSOCK: "a socket; name a file",
}
_ANY_MAY_WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def writable_target(path: str | os.PathLike[str]) -> Path:
    """The file that `path` names, links followed, if it may be written or replaced.

    Raises
    ------
    OSError
        If it is a folder, device, FIFO or socket, or a link in a circle; if the file is read-only
        (also for root); if its folder does not exist or is not writable.
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        found = None
    except OSError as error:
        _refuse(path, error.errno, error.strerror)
    target = Path(os.path.realpath(path))
    if found is not None:
        _check_file(path, found, target)
    _check_folder(path, target.parent)
    return target


def check_is_no_input(path: str | os.PathLike[str], inputs: Iterable[Path | None]) -> None:
    """ValueError if `path` names one of the files that are read, also through links."""
    if not os.path.exists(path):
        return
    for given in inputs:
        if given is not None and given.exists() and os.path.samefile(path, given):
            raise ValueError(f"writing {path} would destroy the input {given}; choose another file")


def _check_file(path: str | os.PathLike[str], found: os.stat_result, target: Path) -> None:
    kind = stat.S_IFMT(found.st_mode)
    if kind != stat.S_IFREG:
        code = errno.EISDIR if kind == stat.S_IFDIR else errno.EINVAL
        _refuse(path, code, f"it is {_NO_FILES.get(kind, 'no file')}")
    if not found.st_mode & _ANY_MAY_WRITE or not os.access(target, os.W_OK):
        _refuse(path, errno.EACCES, "it is read-only; name another file, or make it writable")


def _check_folder(path: str | os.PathLike[str], folder: Path) -> None:
    if not folder.is_dir():
        _refuse(path, errno.ENOENT, f"the folder {folder} does not exist; create it")
    if not os.access(folder, os.W_OK):
        _refuse(path, errno.EACCES, f"the folder {folder} is not writable; name another")


def _refuse(path: str | os.PathLike[str], code: int | None, why: str | None) -> NoReturn:
    raise OSError(code, f"cannot save to {os.fspath(path)}: {why}")
