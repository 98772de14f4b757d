"""Damage to what a stopped fit or ``score`` has kept: done again, or what it was."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from model_files import damaged

from dipedl.apps.large import LocalEngine, parts_of
from dipedl.apps.large.fitting import FirstPass, Passes, Reading
from dipedl.apps.large.scoring import AnswersFolder
from passengers import passengers

ROWS = 120
PARTS = parts_of(passengers(ROWS, seed=1), ROWS // 3)
PASS = FirstPass(Reading("survived"), 50, 20, ROWS)
RECORD = {"rows": 40, "answered": 39, "refused": 1, "batch": 20_000}


def content(folder: Path) -> dict[Path, bytes]:
    """The files in a folder."""
    return {at.relative_to(folder): at.read_bytes() for at in folder.rglob("*") if at.is_file()}


@cache
def kept() -> tuple[list[object], dict[Path, bytes]]:
    """The result of a pass, and the files of its parts."""
    with tempfile.TemporaryDirectory() as folder:
        return passed(Path(folder)), content(Path(folder))


def passed(work: Path) -> list[object]:
    """The result of the pass, with what the folder holds, as values that can be compared."""
    found = Passes(LocalEngine(), PARTS, work, None).run(PASS)
    values = [found.rows, found.counts, found.columns, found.numeric, found.refused]
    for sample in (found.drawn, found.held):
        values += [sample.keys.tolist(), sample.labels.tolist(), sample.rows["number"].tolist()]
        values += [pd.util.hash_pandas_object(sample.rows["frame"]).tolist()]
    return values


@cache
def answered() -> dict[Path, bytes]:
    """Files of the answers to a part."""
    with tempfile.TemporaryDirectory() as name:
        folder = AnswersFolder(Path(name))
        folder.answers(PARTS[0].name).write_bytes(np.arange(300.0).tobytes())
        folder.refused(PARTS[0].name).write_bytes(b"row 7")
        folder.finish(PARTS[0], RECORD)
        return content(Path(name))


def written(rng: np.random.Generator, folder: Path, files: dict[Path, bytes]) -> bool:
    """Return whether one of the files is another now; the others are as they were."""
    shutil.rmtree(folder, ignore_errors=True)
    names = sorted(files)
    at = names[rng.integers(len(names))]
    broken = damaged(rng, files[at], files[names[rng.integers(len(names))]])
    for name, data in (files | {at: broken}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return broken != files[at]


def of_fit(rng: np.random.Generator, folder: Path) -> str:
    """A pass goes on from parts of which one is damaged."""
    expected, files = kept()
    written(rng, folder, files)
    return "same sums" if passed(folder) == expected else "wrong sums"


def of_score(rng: np.random.Generator, folder: Path) -> str:
    """A record of answers is looked up of which a file is damaged."""
    other = written(rng, folder, answered())
    found = AnswersFolder(folder).record(PARTS[0])
    if found is None:
        return "answered again" if other else "lost answers"
    return "wrong answers" if other or found != RECORD else "same answers"


def run(seed: int, tries: int) -> Counter[str]:
    """Damage of both kinds in turn."""
    rng, counts = np.random.default_rng(seed), Counter()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        os.environ.setdefault("XDG_STATE_HOME", str(Path(tempfile.gettempdir(), "dipedl-fuzz")))
        for i in range(tries):
            try:
                counts[(of_fit, of_score)[i % 2](rng, Path(folder, "kept"))] += 1
            except Exception as error:
                counts[f"traceback: {type(error).__name__}: {str(error)[:300]}"] += 1
    return counts
