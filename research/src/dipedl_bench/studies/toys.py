"""The two toy experiments, run once and kept beside the results, for their page."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dipedl.writing import write_file

from ..results.files import read_file
from ..results.rows import make_root

__all__ = ["FOLDER", "Toys", "load_toys", "run_toys"]

#: Below the folder of all results; the toys belong to no suite.
FOLDER = "toys"
_VACUITY, _MOONS, _PICTURE = "toy_vacuity.json", "two_moons.json", "two_moons.png"

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Toys:
    """Rows of `toy_vacuity.run` and `two_moons.rows`; empty if not run."""

    vacuity: Rows
    moons: Rows


def load_toys(root: str | os.PathLike[str]) -> Toys:
    """Return the results kept below the folder of all results."""

    def rows(name: str) -> Rows:
        path = folder / name
        return read_file(path, "run: dipedl-bench toys") if path.exists() else []

    folder = Path(root) / FOLDER
    return Toys(rows(_VACUITY), rows(_MOONS))


def run_toys(
    root: str | os.PathLike[str], progress: Callable[[str], object] = lambda _: None, **sizes: Any
) -> Toys:
    """Run both experiments and keep their rows and the figure.

    `progress` is called with a line of text after each step; `sizes` are ``n_points`` and ``steps``
    of the vacuity experiment.
    """
    from . import toy_vacuity, two_moons

    folder = Path(root) / FOLDER
    make_root(Path(root))
    folder.mkdir(exist_ok=True)
    vacuity = toy_vacuity.run(
        progress=lambda row: progress(f"vacuity at nu = {row['nu']:g}: {row['mean']:.4f}"), **sizes
    )
    write_file(folder / _VACUITY, json.dumps(vacuity))
    moons = two_moons.run()
    progress("two moons fitted")
    write_file(folder / _MOONS, json.dumps(two_moons.rows(moons)))
    pixels = io.BytesIO()
    two_moons.figure(moons).savefig(pixels, format="png", dpi=110, metadata={"Software": None})
    write_file(folder / _PICTURE, pixels.getvalue())
    return load_toys(root)
