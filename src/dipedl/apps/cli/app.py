"""Commands of ``dipedl``: each checks its arguments, calls the library, prints."""

from __future__ import annotations

from importlib.util import find_spec
from inspect import getdoc
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ... import __version__, density
from ...protocols import EXTRAS, explain_missing
from .check import check
from .explain import explain, inspect
from .fit import fit, merge
from .monitor import monitor
from .report import compare, demo, report
from .score import score
from .serve import serve
from .spectra import spectra

app = typer.Typer(
    help="An honest “I don't know” on any classifier.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

for _command in (fit, merge, score, report, explain, compare, monitor, check, inspect, serve, demo):
    app.command()(_command)
app.add_typer(spectra, name="spectra")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dipedl {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    show: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """An honest “I don't know” on any classifier."""


@app.command()
def info() -> None:
    """Print the versions of the packages that numbers depend on, and the missing extras."""
    from ...io.container import versions

    for name, value in versions("numpy", "scipy", "scikit-learn", "torch").items():
        if value:
            typer.echo(f"{name:<14}{value}")
    missing: dict[str, list[str]] = {}
    for package, extra in EXTRAS.items():
        if find_spec(package) is None:
            missing.setdefault(extra, []).append(package)
    for extra, packages in missing.items():
        typer.echo(f"{'missing':<14}{', '.join(packages)}: pip install 'dipedl[{extra}]'")


@app.command()
def densities() -> None:
    """List the densities with their descriptions."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("density", no_wrap=True)
    table.add_column("what it is")
    for name in density.__all__:
        try:
            described = (getdoc(getattr(density, name)) or "").partition("\n")[0]
        except ImportError as error:
            described = str(explain_missing(error, name))
        table.add_row(name, Text(described))
    Console(highlight=False).print(table)
