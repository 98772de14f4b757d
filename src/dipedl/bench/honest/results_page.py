"""The page of results in the documentation: what was run, and every table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..tables.markdown import grid
from .markdown import SUMMARY, markdown
from .study import Study, load_study
from .table import StudyTable, study_table, summary

__all__ = ["results_page"]

_SHOWN = (
    "lines",
    "AUROC",
    "difference",
    "worst line",
    "OOD Brier, share of the bare",
    "ID Brier, cost",
)

_HEAD = """# The default on ordinary classifiers

Written by `python benchmarks/tables.py` from the rows under `results/bench/honest`, which
`python benchmarks/publish_honest.py FOLDER` takes from a finished run:

```console
$ dipedl bench run honest --profile cpu --out FOLDER
$ dipedl bench table honest --out results/bench   # the same, in the terminal
```

One setting for all, nothing set for a pair: the default of `DIPClassifier`. It was designed with a
look at the foreign sets of some pairs; these are told apart below from the others. A line is a
known data set, a foreign one and a classifier; all methods of a line were given the same fitted
classifier. How the study works: [benchmark.md](benchmark.md). ± is half of a 95 %
interval: Student's t over seeds, bootstrap over rows where there is a single seed. Foreign rows are
the positive class. p-values and coverage need repeated splits and no foreign data; they are tested
by simulation, in `tests/decisions`.
"""


_CAUSES = """## Why the misses

- **Covertype without ponderosa or Douglas fir, below the bare classifier.** To the densities these
  trees are *more* typical than known ones (Gaussians rank them at .32 to .36): they lie among the
  kept kinds and resemble none of the synthetic departures, so that the weights of the fusion cannot
  know. Only the relative density sees them. Nothing in the known data says so.
- **OOD Brier.** The temperature sharpens timid classifiers (forests, a network with label
  smoothing), on foreign inputs too: temperature scaling alone raises the OOD Brier, and the default
  takes off more than a third of *its* value. Foreign classes that overlap the known ones cost more
  than the budget of 2 % can buy.
- **NLL and ECE.** The budget is one of Brier score. Taking a little confidence off many right
  answers costs NLL more than Brier, most where a classifier is nearly perfect and the ratio is to a
  number near zero. `CautionBudget(measure="nll")` spends NLL.
- **Regret.** The best candidate with foreign labels is another one on each pair; large regrets are
  the Covertype pairs above and cottonwood, where neighbours or tied Gaussians happen to be right.
- **Fashion-MNIST with a forest or logistic regression.** Densities of the pixels of 5,000 images,
  not of a network's features; the network meets the measure.
- **Prediction.** Two neighbour searches, against classifiers that answer in microseconds.
"""


def results_page(rows: Sequence[Mapping[str, Any]]) -> str:
    """The page as Markdown.

    Parameters
    ----------
    rows : sequence of dict
        Of one profile of a study of the package, see `dipedl.bench.load_rows`.
    """
    table = study_table(rows)
    study = load_study(table.study)
    data = "\n".join(_data(table, study)) + "\n"
    parts = [_HEAD, data, _receipts(rows), _CAUSES, _by_design(table, study), markdown(table)]
    return "\n".join(parts)


def _by_design(table: StudyTable, study: Study) -> str:
    """Means apart for the pairs that the default was designed with, and for the others."""
    rows = []
    for text, seen in (("designed on", True), ("not looked at before", False)):
        lines = [s for s in table.lines if study.datasets[s.dataset].designed_on is seen]
        part = replace(table, lines=tuple(lines))
        for column in part.columns if lines else ():
            if column.group in ("bare", "ours", "baseline"):
                of = summary(part, column.name)
                rows.append([text, column.title, *(SUMMARY[name](of) for name in _SHOWN)])
    head = "## Pairs of the design, and others\n\n"
    return head + grid(["pairs", "method", *_SHOWN], rows) + "\n"


def _data(table: StudyTable, study: Study) -> Iterator[str]:
    """A line for each data set: its classifiers and their seeds."""
    places = dict.fromkeys((line.dataset, line.classifier) for line in table.lines)
    for dataset in dict.fromkeys(name for name, _ in places):
        entry = study.datasets[dataset]
        of_data = [classifier for name, classifier in places if name == dataset]
        runs = (
            f"{study.classifiers[c].title} (`{c}`, seeds {_seeds(table, dataset, c)})"
            for c in of_data
        )
        foreign = ", ".join(entry.ood)
        yield f"- `{dataset}`: {entry.title} against {foreign}; {', '.join(runs)}"


def _seeds(table: StudyTable, dataset: str, classifier: str) -> str:
    return ", ".join(map(str, table.seeds.get((dataset, classifier, table.bare), ())))


def _receipts(rows: Sequence[Mapping[str, Any]]) -> str:
    versions = sorted({f"{name} {v}" for row in rows for name, v in row["versions"].items()})
    machines = sorted({str(row["device"]) for row in rows})
    commits = sorted({str(row["commit"]) for row in rows if row["commit"]})
    return f"{', '.join(versions)}; {', '.join(machines)}; commits {', '.join(commits)}.\n"
