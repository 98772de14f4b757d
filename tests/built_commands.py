"""A command line is built from its functions once, not at every call in the tests."""

from contextlib import suppress
from functools import cache

with suppress(ImportError):
    import typer.testing

    typer.testing._get_command = cache(typer.testing._get_command)
