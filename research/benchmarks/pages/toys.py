"""The page of the paper's toy experiments, computed from their published rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dipedl_bench.studies.toys import Toys, load_toys
from dipedl_bench.tables.formatting import grid
from dipedl_bench.tables.provenance import receipts

__all__ = ["page_of_toys"]

_PAGE = """# Two toy experiments

What evidential learning answers does not depend on what it has seen; DIP-EDL's evidence does.

```console
$ dipedl-bench toys --points {points} --out FOLDER
$ python benchmarks/publish.py toys FOLDER   # their rows, and this page
```

## Vacuity under interpolation

{points:,} points ({paper}) of two normal clouds that a network tells apart, EDL's loss
with a KL term of weight 1 / nu, {steps:,} steps on all points at once. Propositions 2.10 and 2.12
say what remains: the vacuity of every training point is 2 / (2 + nu), however many there are. "Far"
is the median vacuity on a circle of radius 50, where there are no data: nothing makes it larger.

{vacuity}

{agreement}

## Two moons

800 training points. EDL has ReLU evidence; DIP-EDL a network of the same size and a masked
autoregressive flow. "Away" is the mean over the part of the map at a distance of 1 or
more from every training point.

![Vacuity, expected entropy and mutual information of EDL and DIP-EDL around two moons: \
EDL has evidence in all directions, DIP-EDL only near the points and on a ridge \
that leads away]\
(images/toy_two_moons.png)

{moons}

The smallest vacuity away from the data is low for all three; EDL's mean there is low, too. For
DIP-EDL it lies on a ridge of density that leads away from the moons: a small flow that stretches
one blob into two leaves such a ridge, and DIP-EDL is as sure there as the density is wrong.

## Receipts

{receipts}
"""


def page_of_toys(root: Path) -> str:
    """The page as Markdown, from the folder of published results."""
    toys = load_toys(root)
    first = toys.vacuity[0]
    return _PAGE.replace("\\\n", "").format(
        points=first["n_points"],
        paper="as in the paper" if first["n_points"] == 100_000 else "the paper: 100,000",
        steps=first["steps"],
        vacuity=grid(["nu", "theory", "paper", "mean (sd)", "far"], map(_vacuity, toys.vacuity)),
        agreement=_agreement(toys),
        moons=grid(
            ["", "accuracy", "vacuity, test points", "away", "smallest away"],
            map(_moons, toys.moons),
        ),
        receipts="\n".join(f"- {line}" for line in _receipts(toys)),
    )


def _vacuity(row: Mapping[str, Any]) -> list[str]:
    paper = row["paper"]
    return [
        f"{row['nu']:g}",
        f"{row['theory']:.4f}",
        f"{paper['mean']:.3f} ({paper['sd']:.4f})" if paper else "not printed",
        f"{row['mean']:.4f} ({row['sd']:.4f})",
        f"{row['far']:.3f}",
    ]


def _moons(row: Mapping[str, Any]) -> list[str]:
    names = ("accuracy", "vacuity_test", "vacuity_away", "vacuity_away_min")
    return [row["method"], *(f"{row[name]:.3f}" for name in names)]


def _agreement(toys: Toys) -> str:
    off = max(abs(row["mean"] / row["theory"] - 1) for row in toys.vacuity)
    largest = max(toys.vacuity, key=lambda row: row["max"] / row["theory"])
    return (
        f"The mean differs from the theory by at most {off:.1%} of it, the vacuity of a single "
        f"training point by up to {largest['max'] / largest['theory'] - 1:.0%} (nu = "
        f"{largest['nu']:g})."
    )


def _receipts(toys: Toys) -> list[str]:
    rows = [*toys.vacuity, *toys.moons]
    seconds = sum(row["seconds"] for row in toys.vacuity), sum(r["seconds"] for r in toys.moons)
    return [
        *(f"{what}: {', '.join(values)}" for what, values in receipts(rows).items()),
        f"Seconds: {seconds[0]:,.0f} for the first experiment, {seconds[1]:,.0f} for the second",
        f"Seeds: {toys.vacuity[0]['seed']} and {toys.moons[0]['seed']}",
    ]
