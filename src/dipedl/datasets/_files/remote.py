"""`RemoteFile`: mirrors, checksums and size of one published file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RemoteFile:
    """One published file.

    Parameters
    ----------
    urls : tuple of str
        Mirrors, tried in this order.
    md5 : tuple of str
        Published MD5s of the file; any one is accepted.
    sha256 : str or None, default=None
        SHA-256 of the file with the published MD5, checked instead of the MD5.
    size : int or None, default=None
        Size in bytes, if known; it only makes messages clearer.
    archive : str, default=""
        Path below a data directory of the published archive that holds the file; it has no `urls`
        of its own then. A file with neither must be placed there by hand.
    member : str, default=""
        Path inside that archive.
    """

    urls: tuple[str, ...]
    md5: tuple[str, ...]
    sha256: str | None = None
    size: int | None = None
    archive: str = ""
    member: str = ""

    @property
    def downloadable(self) -> bool:
        """Whether a mirror has the file, alone or in an archive."""
        return bool(self.urls or self.archive)

    @property
    def checksums(self) -> tuple[str, ...]:
        """Accepted checksums, each ``"algorithm:hex"``; all of one algorithm."""
        if self.sha256 is not None:
            return (f"sha256:{self.sha256}",)
        return tuple(f"md5:{digest}" for digest in self.md5)
