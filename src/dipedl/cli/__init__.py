"""The command ``dipedl``."""

from __future__ import annotations

import sys

__all__ = ["main"]

_NEEDED = ("typer", "rich")


def main() -> None:
    """Run the command line; without the extra ``[cli]`` say how to get it, and exit with 2."""
    try:
        from .app import app
    except ImportError as error:
        if (error.name or "").split(".")[0] not in _NEEDED:
            raise
        print(
            f"dipedl: the command line needs the package {error.name!r}: pip install 'dipedl[cli]'",
            file=sys.stderr,
        )
        sys.exit(2)
    app(prog_name="dipedl")
