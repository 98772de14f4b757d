"""The page of results on spectra, out of what was published of its runs; parts may be missing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..report.captions import receipts
from ..report.spectra_findings import auroc_by_set, findings, share_interval, shortfalls
from ..results.scores import SHIFTED_PREFIX
from ..results.store import Store
from ..spec.suite import load_suite
from ..tables.collapse import CollapseLine, collapse_grid, collapse_lines, collapse_summary
from ..tables.formatting import duration, grid, metric_title, set_heading
from ..tables.markdown import markdown
from ..tables.table import BenchTable, bench_table
from .captions import suite_words
from .facts import suite_facts
from .state import machines_and_seeds, not_yet_run

__all__ = ["page_of_spectra"]

_SUITE = "spectra"
_HEALTHY, _PUBLISHED = "scarce", "published"
#: The profiles whose numbers count, in their order.
_PROFILES = (_HEALTHY, "cpu", _PUBLISHED)
Rows = Sequence[dict[str, Any]]

_HEAD = """# Spectra: galaxies and quasars are known, stars were never labelled

Written by `python benchmarks/tables.py` from the rows under `results/bench/spectra`, which
`python benchmarks/publish_spectra.py FOLDER` takes from finished runs:

```console
$ dipedl bench run spectra --profile scarce --out FOLDER
$ dipedl bench run spectra --profile published --out FOLDER
$ dipedl bench run spectra --profile cpu --out FOLDER
$ dipedl bench table spectra --profile scarce --out results/bench --json   # every cell
```

**Semi-real.** Training, validation and test spectra, and the foreign stars of that name, are drawn
by a generator: eigen-spectra of real galaxies and quasars at real redshifts, model atmospheres of
stars, noise of the shape of real noise, on the paper's grid. Every number of them is semi-real, and
none stands beside the paper's LAMOST numbers, which are of other spectra; whoever has those runs
`dipedl bench run lamost --profile paper`. Real are the galaxies and quasars of the shifted test
set (21 of its 161 quasars are among the objects that the generator draws on, and may have been
trained on), the stars of that name, and the supernovae: 224 templates of 60 objects, ten of them
models, given noise up to the level of the known spectra. Intervals take spectra as independent:
where several are of one object, as the supernovae and most galaxies of the profile cpu, they are
too narrow.

Why no density tells stars from what is known: the last section, measured.

How to read a cell: [experiments.md](experiments.md). What each method is:
[baselines.md](baselines.md), [references.md](references.md).
"""

_READ_COLLAPSE = """As published → healthy, on the same semi-real spectra in the paper's class
counts (3,427 galaxies, 1,011 quasars). A method that always says Galaxy has an accuracy of about
.77 and a recall of quasars of 0: read accuracy beside recall. A class counts as lost where less
than a tenth of it is found. What is weak as published follows from a method's settings; what was
measured, from its answers.
"""


def page_of_spectra(root: Path) -> str:
    """The page as Markdown.

    Parameters
    ----------
    root : Path
        Folder of published results.
    """
    rows = {profile: Store(root, _SUITE, profile).rows() for profile in _PROFILES}
    tables = {profile: bench_table(of) for profile, of in rows.items() if of}
    lines = collapse_lines(rows[_PUBLISHED], rows[_HEALTHY])
    blocks = [_HEAD, *_short(tables, lines), *_collapse(root, lines)]
    for profile, of in rows.items():
        blocks += [*_profile(profile, of, tables.get(profile))]
    return "\n".join([*blocks, *_falls_short(tables), *_receipts(rows)])


def _short(tables: Mapping[str, BenchTable], lines: Sequence[CollapseLine]) -> Iterator[str]:
    yield "## In short\n"
    for profile, table in tables.items():
        said = [] if profile == _PUBLISHED else findings(table)
        if said:
            yield f"Profile `{profile}`, {_seeds(table)}:\n"
            yield "\n".join(f"- {sentence}" for sentence in said) + "\n"
            yield "AUROC by foreign set:\n"
            yield grid(*auroc_by_set(table)) + "\n"
    summary = collapse_summary(lines)
    if summary:
        yield f"{summary}\n"
    if not tables:
        yield "Not yet run.\n"


def _seeds(table: BenchTable) -> str:
    n = max(len(line.seeds) for line in table.lines)
    return f"{n} seed" + "s" * (n != 1)


def _collapse(root: Path, lines: Sequence[CollapseLine]) -> Iterator[str]:
    yield "## The collapse, shown and cured\n"
    if not lines:
        yield "Not yet run.\n"
        return
    yield _READ_COLLAPSE
    yield grid(*collapse_grid(lines, suite_facts(_SUITE).classes)) + "\n"
    measured = _diagnoses(root)
    yield (
        "\n".join(
            f"- {line.says}{_why(line)}{_measured(measured.get(line.name, {}))}" for line in lines
        )
        + "\n"
    )


def _why(line: CollapseLine) -> str:
    if not line.collapsed:
        return ""
    return f" Weak as published: {line.cause}. Healthy: {line.cure}."


def _diagnoses(root: Path) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    file = root / _SUITE / _PUBLISHED / "diagnosis.json"
    found: Mapping[str, Any] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    return found


def _measured(by_seed: Mapping[str, Mapping[str, Any]]) -> str:
    """What the answers of a method as published show, over its seeds."""
    if not by_seed:
        return ""
    classes, seeds = suite_facts(_SUITE).classes, list(by_seed.values())
    said = [" / ".join(str(of["said"][i]) for of in seeds) for i in range(len(classes))]
    parts = [f"it said {', '.join(f'{c} {n}' for c, n in zip(classes, said, strict=True))} times"]
    if any(of.get("silent_classes") for of in seeds):
        counts = " / ".join(str(of["silent_classes"]) for of in seeds)
        parts.append(f"classes that no spectrum gives evidence: {counts}")
    if any(of.get("no_evidence", 0) > 0 for of in seeds):
        shares = " / ".join(f"{of['no_evidence']:.2f}" for of in seeds)
        parts.append(f"share of spectra without any evidence: {shares}")
    if all("features" in of for of in seeds):
        n, dead = seeds[0]["features"]["n_features"], [of["features"] for of in seeds]
        told = " / ".join(str(of["dead_in_class"]) for of in dead)
        parts.append(f"of {n} features the same for all training spectra of a class: {told}")
        worst = [of["condition"] for of in dead]
        told = " / ".join("singular" if c is None else f"{c:.0e}" for c in worst)
        parts.append(f"worst condition number of a class's covariance: {told}")
    return f" Measured, by seed: {'; '.join(parts)}."


def _profile(profile: str, rows: Rows, table: BenchTable | None) -> Iterator[str]:
    title = load_suite(_SUITE).profile(profile).title
    if table is None:
        yield f"## {_SUITE}, profile {profile}\n\n{title}: not yet run.\n"
        return
    heading, _, rest = markdown(table).partition("\n")
    told = f"{machines_and_seeds(table, rows)}\n{not_yet_run(table)}"
    yield f"{heading}\n\n{title}. {told}{rest}"
    yield from (_with_intervals(table, name) for name in table.shifted)
    yield _time(rows)


def _with_intervals(table: BenchTable, name: str) -> str:
    """Numbers on few rows, each with what these rows can say of it."""
    split = f"{SHIFTED_PREFIX}{name}"
    names = [n for n in table.columns()[split] if n.partition("/")[0] not in ("brier_id", "ece")]
    heads = ["method", *(metric_title(n, classes=table.classes) for n in names)]
    cells = [
        [line.title, *(share_interval(line.cells.get(n)) for n in names)] for line in table.lines
    ]
    return (
        f"### {set_heading(table, split)}: with 95 % intervals\n\nOne spectrum an object. The "
        "intervals are over the spectra: Wilson's for accuracy and recall, bootstrap for the "
        "others, their ends averaged over seeds.\n\n" + grid(heads, cells) + "\n"
    )


def _time(rows: Rows) -> str:
    return (
        "### Time of all\n\nAll methods and seeds of this profile together, shared parts once: "
        f"{duration(_spent(rows))} of training and scoring.\n"
    )


def _spent(rows: Rows) -> float:
    costs = {(row["method"], row["config_hash"], row["seed"]): row["own"] for row in rows}
    for row in rows:
        for part in row["parts"].values():
            costs[part["name"], part["config_hash"], row["seed"]] = part
    return float(sum(sum(cost["seconds"].values()) for cost in costs.values()))


def _falls_short(tables: Mapping[str, BenchTable]) -> Iterator[str]:
    yield "## Where it falls short\n"
    found = [
        sentence
        for profile, table in tables.items()
        if profile != _PUBLISHED
        for sentence in shortfalls(table)
    ]
    yield "\n".join(f"- {sentence}" for sentence in [*found, suite_words(_SUITE).limit]) + "\n"


def _receipts(rows: Mapping[str, Rows]) -> Iterator[str]:
    every = [row for of in rows.values() for row in of]
    if every:
        yield "## Receipts\n"
        told = receipts(every)
        yield "\n".join(f"- {what}: {', '.join(values)}" for what, values in told.items()) + "\n"
