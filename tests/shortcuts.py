"""Shortcuts for the tests of both projects: work that need not be done at every call."""

import os
from contextlib import suppress
from functools import cache

# Tests kill processes and fill disks, and never cut the power.
os.fsync = lambda handle: None

# A command line is built from its functions.
with suppress(ImportError):
    import typer.testing

    typer.testing._get_command = cache(typer.testing._get_command)
