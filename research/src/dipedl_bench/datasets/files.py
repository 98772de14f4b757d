"""Published files: their table, and where they are: in a folder of the user's, or in the cache.

The checksum is always verified. pooch downloads: into a temporary file, verified, then moved.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

RETRIES = 1  # further attempts per mirror
TIMEOUT = 30.0  # seconds without a response before a mirror counts as failed

#: Data set -> its table in sources.toml.
TABLES: dict[str, dict[str, Any]] = tomllib.loads(
    resources.files(__package__).joinpath("sources.toml").read_text(encoding="utf-8")
)
#: Path of the ingredients of the semi-real spectra, of which other spectra need the noise.
INGREDIENTS = "spectra/sim_ingredients.npz"


@dataclass(frozen=True)
class RemoteFile:
    """One published file: mirrors, any of its MD5s, the SHA-256 checked instead, size in bytes.

    A file inside an `archive`, itself a published file, has the path `member` there.
    """

    urls: tuple[str, ...]
    md5: tuple[str, ...]
    sha256: str | None = None
    size: int | None = None
    archive: str = ""
    member: str = ""

    @property
    def checksums(self) -> tuple[str, ...]:
        """Accepted checksums, each ``"algorithm:hex"``; all of one algorithm."""
        if self.sha256 is not None:
            return (f"sha256:{self.sha256}",)
        return tuple(f"md5:{digest}" for digest in self.md5)

    @property
    def source(self) -> str:
        """Source of a copy, in words."""
        if self.archive:
            return f"{self.member!r} out of {FILES[self.archive].urls[0]}"
        return self.urls[0] if self.urls else "no official mirror has it"


def _remote(path: str, recorded: dict[str, Any], table: dict[str, Any]) -> RemoteFile:
    name = path.rpartition("/")[2]
    checksums = tuple(recorded["md5"]), recorded.get("sha256"), recorded.get("size")
    if "archive" in table and path != table["archive"]:
        return RemoteFile((), *checksums, table["archive"], f"{table['within']}/{name}")
    return RemoteFile(tuple(mirror + name for mirror in table.get("mirrors", ())), *checksums)


#: Path below a data directory -> the file that belongs there.
FILES: dict[str, RemoteFile] = {
    path: _remote(path, recorded, table)
    for table in TABLES.values()
    for path, recorded in table["files"].items()
}


def data_folder() -> Path | None:
    """Return the folder of files that ``DIPEDL_DATA`` names; with one, nothing is downloaded."""
    value = os.environ.get("DIPEDL_DATA")
    return Path(value).expanduser() if value else None


def cache_folder() -> Path:
    """Return the folder that downloads go to: ``DIPEDL_CACHE``, or the user's cache directory."""
    if value := os.environ.get("DIPEDL_CACHE"):
        return Path(value).expanduser()
    import pooch  # with requests: reading files that are there needs neither

    return Path(pooch.os_cache("dipedl"))


def check_there(names: Iterable[str]) -> None:
    """Raise FileNotFoundError if published files are not there and cannot be downloaded."""
    folder = data_folder()
    place = folder or cache_folder()
    missing = [name for name in names if not (place / name).is_file()]
    if folder is None:
        missing = [name for name in missing if not (FILES[name].urls or FILES[name].archive)]
    if missing:
        sources = "; ".join(f"{name!r}: {FILES[name].source}" for name in missing)
        state = "lacks them" if place.is_dir() else "is not a directory"
        raise FileNotFoundError(
            f"DIPEDL_DATA, or --data, must name a directory that holds "
            f"{', '.join(map(repr, missing))}, but {str(place)!r} {state}. Sources: {sources}. "
            "Without DIPEDL_DATA files are downloaded where a mirror has them; the profile smoke "
            "of a suite needs none"
        )


def fetch(name: str) -> Path:
    """Return the path of the published file `name`, whose checksum was verified.

    It is in the folder named by ``DIPEDL_DATA``; without one in the cache, to which it is
    downloaded once.
    """
    file, folder = FILES[name], data_folder()
    check_there([name])
    if folder is not None:
        return _verify_checksum(folder / name, file, f"replace it by {file.source}")
    path = cache_folder() / name
    if path.is_file():
        return _verify_checksum(path, file, "delete it and load again to download it again")
    if file.archive:
        archive = fetch(file.archive)
        path = archive.parent / file.member
        if not path.is_file():
            import pooch

            pooch.Untar(members=[file.member], extract_dir=".")(str(archive), "download", None)
        return _verify_checksum(path, file, "delete it and the archive beside it, and load again")
    return _download(file, path, name)


def read_arrays(name: str) -> dict[str, np.ndarray]:
    """Return the arrays of a published .npz file by name."""
    with np.load(fetch(name), allow_pickle=False) as content:
        return dict(content)


def _verify_checksum(path: Path, file: RemoteFile, remedy: str) -> Path:
    algorithm = file.checksums[0].partition(":")[0]
    stat = path.stat()
    checksum = f"{algorithm}:{_digest(path, algorithm, stat.st_size, stat.st_mtime_ns)}"
    if checksum in file.checksums:
        return path
    size = f", {file.size} bytes" if file.size is not None else ""
    raise ValueError(
        f"{str(path)!r} must have the checksum {' or '.join(file.checksums)}{size}, "
        f"got {checksum}, {stat.st_size} bytes; {remedy}"
    )


@lru_cache(maxsize=64)  # size and time of change are in the key: a changed file is hashed again
def _digest(path: Path, algorithm: str, size: int, mtime_ns: int) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()


def _download(file: RemoteFile, path: Path, name: str) -> Path:
    """Download a file, all of it or nothing, from the first mirror that gives it."""
    import pooch
    from requests.exceptions import RequestException

    failures: dict[str, Exception] = {}
    # the checksum is that of the .gz
    downloader = pooch.HTTPDownloader(timeout=TIMEOUT, headers={"Accept-Encoding": "identity"})
    for url in file.urls:
        known = {"registry": {path.name: file.checksums[0]}, "urls": {path.name: url}}
        mirror = pooch.create(path.parent, "", retry_if_failed=RETRIES, **known)
        try:
            return Path(mirror.fetch(path.name, downloader=downloader))
        except (RequestException, ValueError) as failure:  # ValueError: another checksum
            failures[url] = failure
        except OSError as error:
            raise PermissionError(
                f"the cache directory {str(path.parent)!r} must be writable, but: {error}; "
                "set DIPEDL_CACHE to a directory you may write to, "
                "or DIPEDL_DATA to one that holds the files already"
            ) from error
    reachable = any(not isinstance(failure, RequestException) for failure in failures.values())
    problem = "no mirror gave the published file" if reachable else "no mirror could be reached"
    causes = "\n".join(f"  {url}: {failure}" for url, failure in failures.items())
    raise (ValueError if reachable else ConnectionError)(
        f"{name}: {problem}:\n{causes}\ncheck the network and load again, "
        f"or download it by hand to {str(path)!r}, "
        f"or set DIPEDL_DATA to a directory that holds it as {name!r}"
    )
