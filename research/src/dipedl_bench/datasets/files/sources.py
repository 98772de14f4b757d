"""The published files that loaders need: addresses, checksums, licences, from a TOML table."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from dipedl.datasets.dataset import Provenance

_TABLES: dict[str, dict[str, Any]] = tomllib.loads(
    files(__package__).joinpath("sources.toml").read_text(encoding="utf-8")
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


def _remote(path: str, recorded: dict[str, Any], data_set: dict[str, Any]) -> RemoteFile:
    name = path.rpartition("/")[2]
    checksums = tuple(recorded["md5"]), recorded.get("sha256"), recorded.get("size")
    if "archive" in data_set and path != data_set["archive"]:
        return RemoteFile((), *checksums, data_set["archive"], f"{data_set['within']}/{name}")
    return RemoteFile(tuple(mirror + name for mirror in data_set.get("mirrors", ())), *checksums)


#: Path below a data directory -> the file that belongs there.
FILES: dict[str, RemoteFile] = {
    path: _remote(path, recorded, data_set)
    for data_set in _TABLES.values()
    for path, recorded in data_set["files"].items()
}


def _provenance(key: str) -> Provenance:
    data_set = _TABLES[key]
    known = {path: FILES[path] for path in data_set["files"]}
    return Provenance(
        data_set["name"],
        urls=tuple(url for file in known.values() for url in file.urls),
        checksums=tuple(f"{path} {c}" for path, file in known.items() for c in file.checksums),
        licence=data_set["licence"],
        notes=data_set.get("notes", ""),
    )


#: Source of each data set, by its name.
PROVENANCE = {name: _provenance(name) for name in _TABLES}
