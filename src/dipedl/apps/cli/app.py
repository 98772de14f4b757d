"""Commands of ``dipedl``: each checks its arguments, calls the library, prints."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from importlib.util import find_spec
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ... import __version__, density
from ...plugins import EXTRAS, explain_missing
from ...writing.files import writable_target, write_file
from ...writing.progress import LiveLine
from .own_data.answer import explain, score
from .own_data.learn import fit
from .own_data.learn_parts import merge
from .own_data.look import check, inspect, monitor, report
from .serve import serve
from .spectra import spectra
from .terminal import exit_on, fail, names_in

if TYPE_CHECKING:
    from ..demo import DemoResult
    from ..demo.runner import Progress

app = typer.Typer(
    help="An honest “I don't know” on any classifier.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

for _command in (fit, merge, score, report, explain, monitor, check, inspect, serve):
    app.command()(_command)
app.add_typer(spectra, name="spectra")

_DRAW = "draw report"


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
def version() -> None:
    """Print the version."""
    _print_version(True)


@app.command(
    hidden=True, context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def bench() -> None:
    """Say where the benchmark went."""
    fail("the benchmark is a project of its own: pip install ./research gives dipedl-bench")


@app.command()
def info() -> None:
    """Print the versions of the packages that numbers depend on, and the missing extras."""
    from ..demo.runner import installed

    for name, value in installed().items():
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
    from .tables import density_table

    Console(highlight=False).print(density_table(_described_densities()))


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where to write the report.")] = Path("report.html"),
    seed: Annotated[int, typer.Option(help="Seed of every random part.", min=0)] = 0,
    models: Annotated[
        str | None,
        typer.Option(help="Any of linear,forest,boosted,cnn; default: all that are installed."),
    ] = None,
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the report in a browser.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, only the result.")] = False,
) -> None:
    """Fit classifiers on the bundled images, with and without a density; print a table.

    Also writes a report with figures, one HTML file, and its numbers as JSON. Works offline.
    """
    from ..demo import run, stages
    from .tables import print_result

    names = None if models is None else tuple(names_in(models))
    with exit_on(ValueError, ImportError):
        planned = stages(names)
    _check_writable(out)
    render = _report_renderer()
    console = Console(highlight=False)
    progress = stage_display(planned + [_DRAW] * (render is not None), quiet)
    result = run(names, seed=seed, progress=progress)
    with progress(_DRAW) if render else nullcontext():
        page = render(result) if render else None
    print_result(console, result)
    with exit_on(OSError):
        result.write_json(out.with_suffix(".json"))
        if page is not None:
            write_file(out, page)
    if names is None and "cnn" not in result.receipt.models:
        typer.echo("No CNN: it needs torch: pip install 'dipedl[torch]'")
    _say_where(out, page is not None)
    if open_ and page is not None:
        typer.launch(out.resolve().as_uri())


def stage_display(names: Sequence[str], quiet: bool) -> Progress:
    """Progress of stages of these names on stderr: a line for each, live on a terminal."""
    return nullcontext if quiet else partial(_told, list(names))


@contextmanager
def _told(names: list[str], stage: str) -> Iterator[None]:
    line, start = LiveLine(), time.perf_counter()
    name = f"[{names.index(stage) + 1}/{len(names)}] {stage}"
    line.show(f"{name} ...")
    yield
    line.show(f"{name:<24}{time.perf_counter() - start:6.1f} s", last=True)


def _report_renderer() -> Callable[[DemoResult], str] | None:
    """The function that makes the report, or None if its packages are missing."""
    with suppress(ImportError):
        from ..demo.report import render

        return render
    return None


def _say_where(out: Path, written: bool) -> None:
    if written:
        typer.echo(f"Report:  {out}")
    else:
        typer.echo("No report: it needs matplotlib and jinja2: pip install 'dipedl[report]'")
    typer.echo(f"Numbers: {out.with_suffix('.json')}")


def _check_writable(out: Path) -> None:
    """Refuse a path that cannot be written to, before the long work starts."""
    if out.suffix == ".json":
        fail(f"--out must not end in .json, got {str(out)!r}; the numbers are written there")
    with exit_on(OSError):
        writable_target(out)
        writable_target(out.with_suffix(".json"))


def _described_densities() -> dict[str, str]:
    described = {}
    for name in density.__all__:
        try:
            described[name] = (getdoc(getattr(density, name)) or "").partition("\n")[0]
        except ImportError as error:
            described[name] = str(explain_missing(error, name))
    return described
