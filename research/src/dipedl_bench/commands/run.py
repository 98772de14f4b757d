"""``dipedl-bench``: run a suite, and compute its rows again."""

from __future__ import annotations

import shlex
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from ..writing import error_text
from .results import (
    DataFolder,
    Out,
    SuiteName,
    check_data,
    chosen,
    explained,
    fail,
    merge,
    report,
    sweep,
    table,
    toys,
    verify,
)

if TYPE_CHECKING:
    from ..running.runner import RunResult
    from ..spec.suite import Suite

bench = typer.Typer(
    help="Compare methods: trains what is missing, keeps every per-sample answer.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

#: So many of what a budget left are named.
_NAMED = 12
ProfileName = Annotated[
    str | None,
    typer.Option(help="How much of everything: smoke, cpu, paper, ...  [default: smoke]"),
]
_DEFAULT = "smoke"


@bench.command()
def run(
    suite: SuiteName,
    methods: Annotated[str, typer.Option(help="all, or names: dip-edl,edl.")] = "all",
    datasets: Annotated[
        str, typer.Option(help="Of a crossed suite: all, or names: mnist,wine-1.")
    ] = "all",
    classifiers: Annotated[str, typer.Option(help="Of a crossed suite: all, or names.")] = "all",
    seeds: Annotated[
        str | None, typer.Option(help="Such as --seeds 10,20,30; default: those of the suite.")
    ] = None,
    profile: ProfileName = None,
    budget: Annotated[
        float | None,
        typer.Option(help="Seconds; a training pauses in time, and the same command goes on."),
    ] = None,
    data: DataFolder = None,
    out: Out = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, only the result.")] = False,
) -> None:
    """Run methods of a suite; what is there already is not run again.

    May be killed at any time: the same command goes on.
    """
    check_data(data)
    with explained():
        from .. import load_suite

        # names first: the runner takes seconds to import
        loaded = load_suite(suite)
        profile = profile or _default_profile(loaded)
        loaded.chosen_methods(profile, chosen(methods))
        from ..running import runner
    try:
        result = runner.run(
            suite,
            profile=profile,
            datasets=chosen(datasets),
            classifiers=chosen(classifiers),
            methods=chosen(methods),
            seeds=None if seeds is None else [_seed(word) for word in seeds.split(",")],
            out=out,
            budget=budget,
            data_dir=data,
            progress=None if quiet else _Progress(),
        )
    except (ValueError, ImportError, OSError, runner.StoppedError) as error:
        fail(error_text(error))
    except KeyboardInterrupt:
        typer.echo(f"\nStopped. What is finished is kept; to go on: {_command()}", err=True)
        raise typer.Exit(130) from None
    _print_result(result)
    if result.failed:
        raise typer.Exit(1)


def _print_result(result: RunResult) -> None:
    """Say what a run did."""
    typer.echo(f"{len(result.rows)} new rows, {result.present} were there before.")
    for (method, seed), why in result.failed.items():
        typer.echo(f"dipedl-bench: no row of {method}, seed {seed}: {why}", err=True)
    if result.left:
        names = [f"{method} ({seed})" for method, seed in result.left]
        more = [f"and {len(names) - _NAMED} more"] if len(names) > _NAMED else []
        told = ", ".join([*names[:_NAMED], *more])
        typer.echo(f"Rows that the budget left: {told}.\nTo go on: {_command()}")


@bench.command()
def rescore(suite: SuiteName, profile: ProfileName = None, out: Out = None) -> None:
    """Compute the metrics of rows again from the stored arrays; trains nothing."""
    with explained():
        from .. import load_suite
        from ..running import runner

        count = runner.rescore(
            suite, profile=profile or _default_profile(load_suite(suite)), out=out
        )
    typer.echo(f"{count} rows computed again; those without arrays stay as they are.")


for _command_of in (table, sweep, toys, report, merge, verify):
    bench.command()(_command_of)


def _default_profile(suite: Suite) -> str:
    """The profile where none was typed."""
    if _DEFAULT not in suite.profiles:
        known = ", ".join(suite.profiles)
        raise ValueError(f"suite {suite.name!r} must be given a profile with --profile: {known}")
    return _DEFAULT


def _seed(word: str) -> int:
    if not word.strip().isdecimal():
        raise ValueError(f"--seeds must be integers >= 0 between commas, got {word!r}")
    return int(word)


class _Progress:
    """Lines on stderr, each with the minutes since the start."""

    def __init__(self) -> None:
        self.start = time.monotonic()

    def __call__(self, text: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self.start), 60)
        typer.echo(f"[{minutes:3d}:{seconds:02d}] {text}", err=True)


def _command() -> str:
    """Return the command that was typed, to type it again."""
    return shlex.join(["dipedl-bench", *sys.argv[1:]])


def main() -> None:
    """Run the command ``dipedl-bench``."""
    bench(prog_name="dipedl-bench")
