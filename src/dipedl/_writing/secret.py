"""A key that no other user of this machine can read."""

from __future__ import annotations

import os
import secrets
import warnings
from pathlib import Path

_BYTES = 32


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
        if not _is_own(path):
            path.unlink(missing_ok=True)
            _make(path)
        return path.read_bytes()
    except (OSError, RuntimeError) as error:
        warnings.warn(
            f"no key can be kept for this user ({error}), so that what is kept of this run cannot "
            "be checked later, and will be done again; set XDG_STATE_HOME to a folder of yours",
            stacklevel=2,
        )
        return secrets.token_bytes(_BYTES)


def _is_own(path: Path) -> bool:
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return False
    private = not hasattr(os, "getuid") or (
        status.st_uid == os.getuid() and not status.st_mode & 0o077
    )
    return private and status.st_size == _BYTES


def _make(path: Path) -> None:
    """Write a new key, unless another process does so at the same time."""
    beside = path.with_name(secrets.token_hex(16))
    with open(beside, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(secrets.token_bytes(_BYTES))
    try:
        os.link(beside, path)
    except FileExistsError:
        pass
    finally:
        beside.unlink()
