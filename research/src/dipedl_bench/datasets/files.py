"""Published files: their table, and where they are: in a directory, the cache, or at a mirror.

The checksum is always verified. pooch downloads: into a temporary file, verified, then moved.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import resources
from pathlib import Path
from typing import Any

from dipedl.datasets import Provenance

DataDir = str | os.PathLike[str] | None

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


def _provenance(table: dict[str, Any]) -> Provenance:
    files = {path: FILES[path] for path in table["files"]}
    return Provenance(
        table["name"],
        urls=tuple(url for file in files.values() for url in file.urls),
        checksums=tuple(f"{path} {c}" for path, file in files.items() for c in file.checksums),
        licence=table["licence"],
        notes=table.get("notes", ""),
    )


#: Source of each data set, by its name.
PROVENANCE = {name: _provenance(table) for name, table in TABLES.items()}


def fetch(name: str, data_dir: DataDir = None) -> Path:
    """Return the path of the published file `name`, whose checksum was verified.

    It is searched in `data_dir`, else in the directory named by the environment variable
    ``DIPEDL_DATA``; if neither is given, in the cache (``DIPEDL_CACHE``, or the user's cache
    directory), to which it is downloaded once.
    """
    folder, origin = offline_folder(data_dir)
    if folder is not None:
        path = _find(folder, name, origin)
        return _verified(path, FILES[name], f"replace it by {_source(FILES[name])}")
    file, path = FILES[name], cache_folder() / name
    if path.is_file():
        return _verified(path, file, "delete it and load again to download it again")
    if file.archive:
        path = _extract(fetch(file.archive), file.member)
        return _verified(path, file, "delete it and the archive beside it, and load again")
    if not file.urls:
        raise FileNotFoundError(
            f"{name!r} has no official mirror, so it cannot be downloaded; "
            f"set DIPEDL_DATA to a directory that holds it, or put it there as {str(path)!r}"
        )
    return download(file, path, name)


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
    table = TABLES.get(data_set, {"files": ()})
    return [name for name in table["files"] if name != table.get("archive")]


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
        f"but {str(folder)!r} {problem}; put {_source(FILES[name])} "
        f"there as {str(path)!r}{otherwise}"
    )


def _source(file: RemoteFile) -> str:
    """Return the words that say where to get a copy."""
    if file.archive:
        return f"{file.member!r} out of {FILES[file.archive].urls[0]}"
    return file.urls[0] if file.urls else "the file (no official mirror has it)"


def cache_folder() -> Path:
    """Return the folder that downloads go to."""
    value = os.environ.get("DIPEDL_CACHE")
    if value:
        return Path(value).expanduser()
    import pooch  # with requests: reading files that are there needs neither

    return Path(pooch.os_cache("dipedl"))


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


def _extract(archive: Path, member: str) -> Path:
    """Return the path of a file of an archive, unpacked beside it; the archive was verified."""
    import pooch

    path = archive.parent / member
    if not path.is_file():
        pooch.Untar(members=[member], extract_dir=".")(str(archive), "download", None)
    if not path.is_file():
        raise ValueError(f"{str(archive)!r} must be an archive that holds the file {member!r}")
    return path


def download(file: RemoteFile, path: Path, name: str) -> Path:
    """Download a file to `path`, all of it or nothing, from the first mirror that gives it.

    `name` is what errors call it: its path below a data directory. Without a published checksum
    any content is accepted.
    """
    import pooch
    from requests.exceptions import RequestException

    failures: dict[str, Exception] = {}
    for url in file.urls:
        mirror = pooch.create(
            path.parent,
            "",
            registry={path.name: file.checksums[0] if file.checksums else None},
            urls={path.name: url},
            retry_if_failed=RETRIES,
        )
        downloader = pooch.HTTPDownloader(
            timeout=TIMEOUT,
            headers={"Accept-Encoding": "identity"},  # the checksum is that of the .gz
        )
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
