"""The archive of the paper's LAMOST spectra: download, unpack, verify by recorded checksums."""

from __future__ import annotations

import hashlib
import re
import shutil
import tarfile
import zlib
from pathlib import Path
from typing import IO, cast
from urllib.parse import urlsplit

from .fetch import cache_folder, download, whole_file
from .sources import RemoteFile

#: Address in the code that the paper builds on (superdreamliner/LAMOST-Spectra-Classifier), but
#: for dl=1, which requests the file, not a page about it.
URL = (
    "https://www.dropbox.com/scl/fi/tp81mfopdqbep50vwhhhb/spectra_training_data.tar"
    "?rlkey=l2v9gr2dswpka2yk6gx9q9e6v&st=opdav8fs&dl=1"
)
URL_VARIABLE, SHA256_VARIABLE = "DIPEDL_LAMOST_URL", "DIPEDL_LAMOST_SHA256"
_ARCHIVE = "spectra_training_data.tar"
_SUMS = "SHA256SUMS"


def downloaded(url: str, sha256: str | None = None) -> list[Path]:
    """FITS files in the cache, downloaded if they are not there yet; verified.

    The archive must have the checksum `sha256` or, without one, that of the first download.
    """
    folder = cache_folder() / "lamost"
    sums = _recorded(folder)
    if sha256 is not None and sums.setdefault(_ARCHIVE, _checked(sha256)) != _checked(sha256):
        remedy = f"delete {str(folder)!r} and load again to download it again"
        raise _another(folder / _ARCHIVE, _checked(sha256), sums[_ARCHIVE], remedy)
    names = [name for name in sums if name != _ARCHIVE]
    if not names or not all((folder / name).is_file() for name in names):
        archive = folder / _ARCHIVE
        if not archive.is_file():
            if urlsplit(url).scheme not in ("http", "https"):
                raise ValueError(f"url must begin with http:// or https://, got {url!r}")
            download(RemoteFile((url,), (), sha256 and _checked(sha256)), archive, "lamost/*.fits")
        found = {_ARCHIVE: _sha256(archive)}
        if sums.get(_ARCHIVE, found[_ARCHIVE]) != found[_ARCHIVE]:
            raise _another(archive, sums[_ARCHIVE], found[_ARCHIVE], "delete it and load again")
        names = _unpack(archive, folder, url)
        found |= {name: _sha256(folder / name) for name in names}
        text = "".join(f"{digest}  {name}\n" for name, digest in found.items())
        with whole_file(folder / _SUMS) as target:
            target.write(text.encode())
        archive.unlink()
    else:
        verify(folder, f"delete {str(folder)!r} and load again to download it again")
    return [folder / name for name in names]


def _checked(sha256: str) -> str:
    if not re.fullmatch("[0-9a-fA-F]{64}", sha256):
        raise ValueError(f"sha256 must be 64 hexadecimal digits, got {sha256!r}")
    return sha256.lower()


def _unpack(archive: Path, folder: Path, url: str) -> list[str]:
    """Write the FITS files of an archive to a folder; only their bytes and file names are used."""
    with open(archive, "rb") as stream:
        single = stream.read(9) == b"SIMPLE  ="
    if single:
        shutil.copyfile(archive, folder / "train_data.fits")
        return ["train_data.fits"]
    names: list[str] = []
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                name = member.name.replace("\\", "/").rpartition("/")[2]
                if member.isreg() and name.endswith(".fits") and not name.startswith("."):
                    with whole_file(folder / name) as target:
                        shutil.copyfileobj(cast("IO[bytes]", tar.extractfile(member)), target)
                    names.append(name)
    except (tarfile.TarError, EOFError, zlib.error):
        names = []
    if not names:
        raise ValueError(
            f"{url} must serve an archive of FITS files, but what came, {str(archive)!r}, is none, "
            "or damaged; delete it, and name another address by url or "
            f"{URL_VARIABLE}, or put the files into the folder lamost of DIPEDL_DATA"
        )
    return sorted(set(names))


def _recorded(folder: Path) -> dict[str, str]:
    """Checksums by file name that were recorded in a folder; none if there is no record."""
    path = folder / _SUMS
    if not path.is_file():
        return {}
    lines = (line.split(maxsplit=1) for line in path.read_text(encoding="utf-8").splitlines())
    return {line[1].removeprefix("*"): line[0] for line in lines if len(line) == 2}


def verify(folder: Path, remedy: str) -> None:
    """Raise a ValueError if a file has another checksum than was recorded beside it."""
    for name, digest in _recorded(folder).items():
        path = folder / name
        if path.is_file() and (found := _sha256(path)) != digest:
            raise _another(path, digest, found, remedy)


def _another(path: Path, recorded: str, found: str, remedy: str) -> ValueError:
    return ValueError(
        f"{str(path)!r} must have the checksum that was given, or recorded when it came first, "
        f"sha256:{recorded}, got sha256:{found}; {remedy}"
    )


def _sha256(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
