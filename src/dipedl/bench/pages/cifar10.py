"""The page of results on CIFAR-10, out of what was published of its runs; parts may be missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ..results.store import Store
from ..spec.suite import load_suite
from ..tables.formatting import grid
from ..tables.markdown import markdown
from ..tables.released_cost import time_to_result
from ..tables.table import BenchTable, bench_table
from ..tables.trivial import stored_trivial_lines
from .captions import suite_words
from .state import machines_and_seeds, not_yet_run
from .sweeps import sweep_sections

__all__ = ["page_of_cifar10"]

_SUITE = "cifar10"
#: The profiles whose numbers count.
_PROFILES = ("cpu", "h200", "paper")

_HEAD = """# CIFAR-10: every method, ours beside the paper's

Written by `python benchmarks/tables.py` from the rows under `results/bench`, which
`python benchmarks/publish_cifar10.py FOLDER` takes from finished runs:

```console
$ dipedl bench run cifar10 --profile cpu --out FOLDER
$ dipedl bench table cifar10 --profile cpu --out results/bench --json   # every cell
```

Near is CIFAR-100's test set, far is SVHN's. Where SVHN's file was not to be had, GTSRB stands in
for it, in a third party's 32 x 32 form and under its own name: the paper has no number of it, and
its numbers are never set against SVHN's. How to read a cell: [experiments.md](experiments.md). What
each method is: [baselines.md](baselines.md), [references.md](references.md).
"""


def page_of_cifar10(root: Path) -> str:
    """The page as Markdown.

    Parameters
    ----------
    root : Path
        Folder of published results.
    """
    blocks = [block for profile in _PROFILES for block in _sections(root, profile)]
    return "\n".join([_HEAD, *blocks])


def _sections(root: Path, profile: str) -> Iterator[str]:
    store = Store(root, _SUITE, profile)
    rows = store.rows()
    title = load_suite(_SUITE).profile(profile).title
    if not rows:
        yield f"## {_SUITE}, profile {profile}\n\n{title}: not yet run.\n"
        return
    table = bench_table(rows)
    if (store.folder / "trivial.json").exists():
        table = replace(table, trivial=stored_trivial_lines(store))
    text = markdown(table)
    heading, _, rest = text.partition("\n")
    yield f"{heading}\n\n{title}. {machines_and_seeds(table, rows)}\n{not_yet_run(table)}{rest}"
    yield "\n".join(_time(table))
    if (store.folder / "sweeps.json").exists():
        yield (
            sweep_sections(store.folder, table.ood)
            .replace("\n## ", "\n### ")
            .replace("## ", "### ", 1)
        )


def _time(table: BenchTable) -> Iterator[str]:
    rows = time_to_result(_SUITE, table.lines)
    if not rows:
        return
    yield "### Time to a result\n"
    yield (
        "Ours: training and scoring of one seed, as measured, at the accuracy above. The released\n"
        "pipeline was not run; its hours are estimates for its training alone. PFLOP: 2 for each\n"
        "multiplication, 3 times those of a forward pass, 40,000 images an epoch (5.95 G\n"
        "multiplications an image for WRN-28-10, 0.313 G for VGG-16, 0.038 G for ConvLin). Two\n"
        "cores: at 150 GFLOP/s, which their matrix products reach. H200: at 100 TFLOP/s in half\n"
        "precision, and 10 s an epoch in which its single process augments images.\n"
    )
    heads = ["method", "ours", "released", "PFLOP", "released, two cores", "released, H200"]
    yield grid(heads, rows) + "\n"
    yield suite_words(_SUITE).protocol + "\n"
