"""The archive of the paper's LAMOST spectra: download, unpack, verify by recorded checksums."""

from __future__ import annotations

import re
import shutil
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, cast
from urllib.parse import urlsplit

from dipedl.writing.files import sha256_of, whole_file

from ...checksums import read_sums, write_sums
from .fetch import cache_folder, download
from .sources import RemoteFile

#: Address in the code that the paper builds on (superdreamliner/LAMOST-Spectra-Classifier), but
#: for dl=1, which requests the file, not a page about it.
URL = (
    "https://www.dropbox.com/scl/fi/tp81mfopdqbep50vwhhhb/spectra_training_data.tar"
    "?rlkey=l2v9gr2dswpka2yk6gx9q9e6v&st=opdav8fs&dl=1"
)
URL_VARIABLE, SHA256_VARIABLE = "DIPEDL_LAMOST_URL", "DIPEDL_LAMOST_SHA256"
_ARCHIVE = "spectra_training_data.tar"


def downloaded(url: str, sha256: str | None = None) -> list[Path]:
    """FITS files in the cache, downloaded if they are not there yet; verified.

    The archive must have the checksum `sha256` or, without one, that of the first download.
    """
    folder = cache_folder() / "lamost"
    sums = read_sums(folder)
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
        found = {_ARCHIVE: sha256_of(archive)}
        if sums.get(_ARCHIVE, found[_ARCHIVE]) != found[_ARCHIVE]:
            raise _another(archive, sums[_ARCHIVE], found[_ARCHIVE], "delete it and load again")
        names = _unpack(archive, folder, url)
        found |= {name: sha256_of(folder / name) for name in names}
        write_sums(folder, found)
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
        with open(archive, "rb") as stream, whole_file(folder / "train_data.fits") as target:
            shutil.copyfileobj(stream, target)
        return ["train_data.fits"]
    names: list[str] = []
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                name = member.name.replace("\\", "/").rpartition("/")[2]
                if member.isreg() and name.endswith(".fits") and not name.startswith("."):
                    name = _another_name(name, names)
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
    return sorted(names)


def _another_name(name: str, taken: Sequence[str]) -> str:
    """The name, or one with a number if files of several folders in the archive have it."""
    count = 1
    numbered = name
    while numbered in taken:
        count += 1
        numbered = f"{name.removesuffix('.fits')}-{count}.fits"
    return numbered


def verify(folder: Path, remedy: str) -> None:
    """Raise a ValueError if a file has another checksum than was recorded beside it."""
    for name, digest in read_sums(folder).items():
        path = folder / name
        if path.is_file() and (found := sha256_of(path)) != digest:
            raise _another(path, digest, found, remedy)


def _another(path: Path, recorded: str, found: str, remedy: str) -> ValueError:
    return ValueError(
        f"{str(path)!r} must have the checksum that was given, or recorded when it came first, "
        f"sha256:{recorded}, got sha256:{found}; {remedy}"
    )
