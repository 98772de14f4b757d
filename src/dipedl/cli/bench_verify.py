"""``dipedl bench verify``: published rows, trained again and compared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from .bench_results import (
    DataFolder,
    Json,
    Out,
    ProfileName,
    SuiteName,
    check_data,
    chosen,
    explained,
)
from .terminal import fail

if TYPE_CHECKING:
    from ..bench.running.verify import Verified

Axis = Annotated[str, typer.Option(help="Of a crossed suite: all, or names.")]


def verify(
    suite: SuiteName,
    methods: Annotated[str, typer.Option(help="all, or names: dip-edl,edl.")] = "all",
    seed: Annotated[int | None, typer.Option(help="Default: the smallest that has rows.")] = None,
    profile: ProfileName = None,
    datasets: Axis = "all",
    classifiers: Axis = "all",
    data: DataFolder = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Train rows again, in a folder that is thrown away, and say which metrics agree.

    Exit code 1 if one does not. Tolerances are those of docs/reference/benchmark-suites.md.
    """
    check_data(data)
    with explained():
        from ..bench.running.runner import StoppedError
        from ..bench.running.verify import verify as verified

        try:
            found = verified(
                suite,
                profile=profile,
                methods=chosen(methods),
                datasets=chosen(datasets),
                classifiers=chosen(classifiers),
                seed=seed,
                out=out,
                data_dir=data,
                progress=lambda text: typer.echo(text, err=True),
            )
        except StoppedError as error:
            fail(str(error))
    if as_json:
        typer.echo(json.dumps([one.as_json() for one in found], indent=1))
    else:
        typer.echo("\n".join(line for one in found for line in _lines(one)))
    if not all(one.agrees for one in found):
        raise typer.Exit(1)


def _lines(one: Verified) -> Iterator[str]:
    place = f"{one.data}, {one.classifier}: " if one.data else ""
    name = f"{place}{one.method}, seed {one.seed}"
    if one.why:
        yield f"{name}: not compared: {one.why}"
        return
    agree = sum(metric.agrees for metric in one.metrics.values())
    how = (
        "the same kind of machine, so equal bits" if one.same else f"{one.then} then, {one.now} now"
    )
    yield f"{name}: {agree} of {len(one.metrics)} metrics agree ({how})"
    for metric, both in one.metrics.items():
        if not both.agrees:
            again = "gone" if both.again is None else f"{both.again:.4f}"
            within = f"tolerance {both.tolerance:g}"
            yield f"  {metric}: {both.published:.4f} published, {again} now, {within}"
