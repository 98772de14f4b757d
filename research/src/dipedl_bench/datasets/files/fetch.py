"""Find a published file: in the user's directory, in the cache, or at its official mirrors.

The checksum is always verified. Only a download needs pooch.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
import time
import zlib
from collections.abc import Iterable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from dipedl.plugins import optional
from dipedl.writing.files import whole_file
from dipedl.writing.live_line import LiveLine

from .sources import FILES, RemoteFile

DataDir = str | os.PathLike[str] | None

ROUNDS = 2  # attempts per mirror
PAUSE = 1.0  # seconds between the rounds
TIMEOUT = 30.0  # seconds without a response before a mirror counts as failed


def fetch(name: str, data_dir: DataDir = None) -> Path:
    """Path of the published file `name`, whose checksum was verified.

    It is searched in `data_dir`, else in the directory named by the environment variable
    ``DIPEDL_DATA``; if neither is given, in the cache (``DIPEDL_CACHE``, or the user's cache
    directory), to which it is downloaded once.
    """
    folder, origin = offline_folder(data_dir)
    if folder is not None:
        path = _find(folder, name, origin)
        return _verified(path, FILES[name], f"replace it by {_origin(FILES[name])}")
    return _cached(name)


def check_there(data_set: str, ood: Iterable[str], data_dir: str, origin: str) -> None:
    """Raise FileNotFoundError if a directory holds no file of a data set, or of its OOD sets.

    A data set without files brings its OOD sets along. `origin` named the directory.
    """
    folder = Path(data_dir).expanduser()
    for name in (data_set, *ood) if _files_of(data_set) else ():
        files = _files_of(name)
        if files and not any((folder / file).is_file() for file in files):
            _find(folder, files[0], origin)


def _files_of(data_set: str) -> list[str]:
    archives = {file.archive for file in FILES.values()}
    return [name for name in FILES if name.startswith(f"{data_set}/") and name not in archives]


def _cached(name: str) -> Path:
    file, path = FILES[name], cache_folder() / name
    if path.is_file():
        return _verified(path, file, "delete it and load again to download it again")
    if file.archive:
        unpack(_cached(file.archive), file.member, path)
        return _verified(path, file, "delete it and the archive beside it, and load again")
    if not file.urls:
        raise FileNotFoundError(
            f"{name!r} has no official mirror, so it cannot be downloaded; "
            f"set DIPEDL_DATA to a directory that holds it, or put it there as {str(path)!r}"
        )
    return download(file, path, name)


def offline_folder(data_dir: DataDir) -> tuple[Path | None, str]:
    """Return the folder of files that need no download, and what named it."""
    if data_dir is None:
        value = os.environ.get("DIPEDL_DATA")
        return (Path(value).expanduser() if value else None), "DIPEDL_DATA"
    if not isinstance(data_dir, str | os.PathLike):
        raise TypeError(
            f"data_dir must be a path or None, got {type(data_dir).__name__}; "
            "pass the directory that holds mnist/, kmnist/ and omniglot/"
        )
    return Path(data_dir).expanduser(), "data_dir"


def _find(folder: Path, name: str, origin: str) -> Path:
    path = folder / name
    if path.is_file():
        return path
    problem = f"has no file {name!r}" if folder.is_dir() else "is not a directory"
    download = ", or give neither data_dir nor DIPEDL_DATA to download it"
    otherwise = download if FILES[name].urls or FILES[name].archive else ""
    raise FileNotFoundError(
        f"{origin} must name a directory that holds files such as {name!r}, "
        f"but {str(folder)!r} {problem}; put {_origin(FILES[name])} "
        f"there as {str(path)!r}{otherwise}"
    )


def _origin(file: RemoteFile) -> str:
    """Where to get a copy, in words."""
    if file.archive:
        return f"{file.member!r} out of {FILES[file.archive].urls[0]}"
    return file.urls[0] if file.urls else "the file (no official mirror has it)"


def cache_folder() -> Path:
    """Return the folder that downloads go to."""
    value = os.environ.get("DIPEDL_CACHE")
    if value:
        return Path(value).expanduser()
    return Path(optional("pooch", "downloading a data set").os_cache("dipedl"))


def _verified(path: Path, file: RemoteFile, remedy: str) -> Path:
    algorithm = file.checksums[0].partition(":")[0]
    stat = path.stat()
    found = f"{algorithm}:{_digest(str(path), algorithm, stat.st_size, stat.st_mtime_ns)}"
    if found in file.checksums:
        return path
    size = f", {file.size} bytes" if file.size is not None else ""
    raise ValueError(
        f"{str(path)!r} must have the checksum {' or '.join(file.checksums)}{size}, "
        f"got {found}, {stat.st_size} bytes; {remedy}"
    )


@lru_cache(maxsize=64)  # size and time of change are in the key: a changed file is hashed again
def _digest(path: str, algorithm: str, size: int, mtime_ns: int) -> str:
    new = partial(hashlib.new, algorithm, usedforsecurity=False)
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, new).hexdigest()


def unpack(archive: Path, member: str, path: Path) -> None:
    """Write the file `member` of a .tar.gz archive to `path`, or raise ValueError.

    Only the bytes are used; paths, links and permissions in the archive are ignored.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as target:
        try:
            with tarfile.open(archive, "r:gz") as tar:
                entry = tar.getmember(member)
                source = tar.extractfile(entry) if entry.isreg() else None
                if source is None:
                    raise KeyError(f"{member!r} is no regular file")
                shutil.copyfileobj(source, target)
        except (KeyError, EOFError, OSError, zlib.error, tarfile.TarError) as error:
            raise ValueError(
                f"{str(archive)!r} must be an archive that holds the file {member!r}, but: "
                f"{error}; delete it and load again to download it again"
            ) from error


def download(file: RemoteFile, path: Path, name: str) -> Path:
    """Download a file to `path`, all of it or nothing, from the first mirror that gives it.

    `name` is what errors call it: its path below a data directory. Without a published checksum
    whatever comes is taken.
    """
    pooch = optional("pooch", "downloading a data set")
    _require_writable(path.parent)
    checksum = file.checksums[0] if file.checksums else None
    failures: dict[str, Exception] = {}
    for attempt in range(ROUNDS):
        time.sleep(PAUSE if attempt else 0)
        for url in file.urls:
            failure = _retrieve(pooch, url, checksum, path)
            if failure is None:
                return path
            failures[url] = failure
    raise _no_mirror(failures, path, name)


def _retrieve(pooch: Any, url: str, checksum: str | None, path: Path) -> Exception | None:
    """Download `url` to `path`; the failure, if the mirror or its file is at fault."""
    from requests.exceptions import RequestException  # pooch depends on it

    downloader = pooch.HTTPDownloader(
        progressbar=TextProgress(path.name),
        timeout=TIMEOUT,
        # The checksum is that of the .gz, not of its content.
        headers={"Accept-Encoding": "identity"},
    )
    try:
        pooch.retrieve(url, checksum, fname=path.name, path=path.parent, downloader=downloader)
    except (RequestException, ValueError) as failure:  # ValueError: the checksum of what came
        return failure
    return None


def _no_mirror(failures: dict[str, Exception], path: Path, name: str) -> Exception:
    from requests.exceptions import RequestException

    reachable = any(not isinstance(failure, RequestException) for failure in failures.values())
    what = "no mirror gave the published file" if reachable else "no mirror could be reached"
    causes = "\n".join(f"  {url}: {failure}" for url, failure in failures.items())
    return (ValueError if reachable else ConnectionError)(
        f"{name}: {what}:\n{causes}\ncheck the network and load again, "
        f"or download it by hand to {str(path)!r}, "
        f"or set DIPEDL_DATA to a directory that holds it as {name!r}"
    )


def _require_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise PermissionError(
            f"the cache directory {str(folder)!r} must be writable, but: {error}; "
            "set DIPEDL_CACHE to a directory you may write to, "
            "or DIPEDL_DATA to one that holds the files already"
        ) from error


class TextProgress:
    """Progress of a download on one line, with the interface that pooch expects."""

    def __init__(self, label: str) -> None:
        self.label, self.line = label, LiveLine()
        self.total = 0
        self.done = 0

    def update(self, n: int) -> None:
        """Show that n more bytes have come."""
        self.done += n
        shown = min(self.done, self.total) if self.total else self.done
        share = f"{shown / self.total:4.0%} of " if self.total else ""
        amount = self.total or shown
        self.line.show(f"{self.label}: {share}{amount / 1e6:.1f} MB")

    def reset(self, *_: Any) -> None:
        """Count from zero again; pooch does so before its last update."""
        self.done = 0

    def close(self) -> None:
        """End the line."""
        self.line.close()
