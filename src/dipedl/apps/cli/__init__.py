"""The command ``dipedl``."""

from __future__ import annotations

import os
import sys

__all__ = ["main"]

_NEEDED = ("typer", "rich")
#: How often a thread of OpenMP looks for work before it sleeps: tens of microseconds. By itself it
#: spins for milliseconds, in which threads of a busy machine keep one another from working.
_SPINS = "10000"


def main() -> None:
    """Run the command line; without the extra ``[cli]`` say how to get it, and exit with 2."""
    # Read when the libraries are loaded, here and in workers.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", _SPINS)
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
    except KeyboardInterrupt:
        print("\ndipedl: stopped; no file was written", file=sys.stderr)
        sys.exit(130)
    app(prog_name="dipedl")
