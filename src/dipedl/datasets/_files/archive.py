"""Take one file out of a published archive."""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def unpack(archive: Path, member: str, path: Path) -> None:
    """Write the file `member` of a .tar.gz archive to `path`, or raise ValueError.

    Only the bytes are used; paths, links and permissions in the archive are ignored.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as target:
        _copy(archive, member, target)


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file open for writing that appears at `path` completely or not at all."""
    descriptor, part = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as target:
            yield target
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise


def _copy(archive: Path, member: str, target: IO[bytes]) -> None:
    try:
        with tarfile.open(archive, "r:gz") as tar:
            entry = tar.getmember(member)
            source = tar.extractfile(entry) if entry.isreg() else None
            if source is None:
                raise KeyError(f"{member!r} is no regular file")
            shutil.copyfileobj(source, target)
    except (KeyError, EOFError, OSError, zlib.error, tarfile.TarError) as error:
        raise ValueError(
            f"{str(archive)!r} must be an archive that holds the file {member!r}, but: {error}; "
            "delete it and load again to download it again"
        ) from error
