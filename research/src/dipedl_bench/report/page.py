"""The report of a suite: one HTML page with every table and figure, which loads nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from dipedl.plots.page import svg, templates
from dipedl.writing import error_text

from ..results.store import Arrays, Store
from ..spec.captions import captions_of
from ..spec.suite import load_suite
from ..studies.sweeps import (
    CONFIGURATIONS,
    Parts,
    ablation_lines,
    float32_lines,
    gamma_lines,
    sigma_lines,
    stored_parts,
)
from ..studies.toys import load_toys
from ..tables.findings import headline, trivial_sentences
from ..tables.formatting import (
    difference,
    differences,
    duration,
    measured,
    metric_title,
    number,
    printed,
    set_heading,
    set_title,
    three_decimals,
)
from ..tables.markdown import selected
from ..tables.measures import measures
from ..tables.pairs import (
    INTERVALS,
    KNOWN_TITLES,
    PAIR_TITLES,
    SUMMARY,
    interval_rows,
    pair_rows,
    pair_title,
    problem_rows,
    regret,
    summary_rows,
    values,
)
from ..tables.provenance import receipts
from ..tables.table import BenchTable, bench_table, is_higher_better, latest, paper_suite
from ..tables.trivial import with_trivial
from .figures import (
    arrays_from_parts,
    coverage_figure,
    gamma_panels,
    histogram_panels,
    pairs_figure,
    set_legend,
    sigma_panels,
    toy_panel,
)

#: Whose ablation, sweeps and histograms are shown.
_METHOD = "dip-edl"
#: Sections of the report in order, and their titles; those that a page has no value for are left
#: out.
_SECTIONS = {
    "short": "In short",
    "intervals": "Intervals",
    "lines": "Every line",
    "methods": "All methods",
    "protocol": "Protocol",
    "pairs": "OOD sets",
    "known": "Known data",
    "kinds": "Which uncertainty ranks",
    "parts": "Without one part",
    "regret": "What the selection chose",
    "refused": "Refusals",
    "table": "Methods",
    "differences": "How the protocol differs",
    "ablation": "Component ablation",
    "gamma": "Scale of the evidence",
    "sigma": "A corrupted density",
    "histograms": "Confidence and vacuity",
    "toy": "Vacuity under interpolation",
    "moons": "Two moons",
    "costs": "What it costs",
    "limits": "Limits",
    "again": "Get these numbers again",
}
_BESIDE_PAPER = {
    "table": "Methods, ours and the paper's",
    "differences": "Where ours differs from the paper",
}


def render(store: Store) -> str:
    """The page as HTML text, made of the rows and arrays of a store; nothing is trained.

    Experiments that were not run, and images that are not there, are left out, and the
    page says so. Needs matplotlib and jinja2: ``pip install 'dipedl[report]'``.
    """
    rows = latest(store.rows())
    table, no_trivial = bench_table(rows), ""
    if not table.crossed:
        table, no_trivial = with_trivial(table, store)
    captions = captions_of(store.suite, "crossed" if table.crossed else "every_suite")
    sizes = {"rows": captions.rows, **_sizes(table)}
    found = {
        "suite": store.suite,
        "profile": store.profile,
        "table": table,
        "captions": captions,
        "split": captions.split.format(**sizes),
        "scores": captions.scores.format(**sizes),
        "seeds": sorted({row["seed"] for row in rows if row["metrics"]}),
        "receipts": receipts(rows),
        "no_trivial": no_trivial,
        "note": table.note,
        "measures": measures(table),
        "headline": [] if table.crossed else headline(table),
        "trivial": trivial_sentences(table),
        **_about(store, table),
        **(_of_pairs(table) if table.crossed else _of_sets(store, rows, table)),
    }
    titles = {**_SECTIONS, **(_BESIDE_PAPER if table.beside_paper else {})}
    titles |= {"short": "Targets and results"} if table.crossed else {}
    there = {"short", "protocol", "again"} | {n for n, value in found.items() if value is not None}
    there -= {"table"} if table.crossed else set()
    sections = [(name, title) for name, title in titles.items() if name in there]
    environment = templates("dipedl_bench.report")
    environment.filters |= {
        "measured": measured,
        "printed": printed,
        "difference": difference,
        "number": number,
        "number3": three_decimals,
        "duration": duration,
        "metric": metric_title,
        "title_case": lambda text: text[:1].upper() + text[1:],
        "set_title": partial(set_title, suite=store.suite),
        "pair": pair_title,
        "round4": lambda value: round(value, 4),
        "selected": partial(selected, table),
    }
    return environment.get_template("report.html.j2").render(found, sections=sections)


def _about(store: Store, table: BenchTable) -> dict[str, Any]:
    """Return profile and methods in the file of the suite, and what to write after --methods."""
    names = list(dict.fromkeys(line.name for line in table.lines))
    found: dict[str, Any] = {"about": {"profile": "", "methods": []}}
    found["method_names"] = "" if table.crossed else ",".join(names)
    try:
        suite = load_suite(store.suite)
        profile = suite.profile(store.profile)
    except (ValueError, OSError):
        return found
    if table.crossed:
        return found
    notes = {
        line.title: {**suite.methods.get(line.name, {}), **profile.methods.get(line.name, {})}.get(
            "note"
        )
        for line in table.lines
    }
    if set(names) == set(suite.method_names(store.profile)):
        found["method_names"] = "all"
    about = {"profile": profile.title, "methods": [(t, note) for t, note in notes.items() if note]}
    return found | {"about": about}


def _sizes(table: BenchTable) -> dict[str, str]:
    """Return the sizes in the caption on the split."""
    if table.crossed:
        return {}
    rows = captions_of(table.suite).rows
    titles = {name: set_title(name, table.suite) for name in (*table.ood, *table.shifted)}
    moved = [f"{titles[s]} ({table.n[f'shifted/{s}']:,} {rows})" for s in table.shifted]
    shifted = (
        f"; known classes from elsewhere are in {', '.join(moved)}, which nothing was fitted on"
    )
    return {
        "test": f"{table.n['test']:,}",
        "ood": "; ".join(f"{titles[s]}: {table.n[f'ood/{s}']:,}" for s in table.ood),
        "shifted": shifted if moved else "",
    }


# sections of a suite of several data sets and classifiers


def _of_pairs(table: BenchTable) -> dict[str, Any]:
    main = table.in_groups("bare", "ours", "baseline")
    kinds = [str(name) for name in table.methods.index if name.partition(":")[0] == table.ours]
    ablation, candidates = (table.in_groups("ours", of) for of in ("ablation", "candidate"))
    return {
        "intervals": _intervals(table),
        "lines": svg(
            pairs_figure(table), "AUROC of every line: bare classifier and our default", "lines"
        ),
        "methods": _grid("All methods", SUMMARY, summary_rows(table)),
        "pairs": [_metric_grid(table, main, name) for name in PAIR_TITLES],
        "known": [_metric_grid(table, main, name) for name in KNOWN_TITLES],
        "kinds": _metric_grid(table, kinds, "auroc"),
        "parts": [_metric_grid(table, ablation, name) for name in ("auroc", "brier_ood")],
        "candidates": _metric_grid(table, candidates, "auroc"),
        "regret": regret(table, table.pairs).to_dict(),
        "refused": [line for line in table.lines if line.refused],
    }


def _intervals(table: BenchTable) -> dict[str, Any] | None:
    """Tables and figure of what intervals hold; None where no class probability is known."""
    by_method = interval_rows(table)
    if not by_method:
        return None
    (_, *heads), by_problem = problem_rows(table)
    return {
        "figure": svg(coverage_figure(table), "Coverage against the level of intervals", "levels"),
        "methods": _grid("Intervals by method", INTERVALS, by_method),
        "problems": _grid("95 % intervals, without → with", heads, by_problem),
    }


def _grid(heading: str, heads: Iterable[str], rows: Sequence[Sequence[str]]) -> dict[str, Any]:
    """A table of the page in which no cell is marked."""
    unmarked = [(title, [(text, False) for text in texts]) for title, *texts in rows]
    return {"heading": heading, "heads": list(heads), "rows": unmarked}


def _metric_grid(table: BenchTable, methods: Sequence[str], metric: str) -> dict[str, Any]:
    """A metric of every pair and method, the best of each pair marked, and the means."""
    *rows, means = pair_rows(table, methods, metric)
    found = [values(table.pairs, metric, name) for name in methods]
    of_methods = np.round(np.array(found).reshape(len(methods), len(rows)), 3)
    best_of = np.fmax if is_higher_better(metric) else np.fmin  # neither looks at NaN
    best = of_methods == best_of.reduce(of_methods, axis=0, initial=np.nan)
    marked = [
        (title, list(zip(texts, of_row, strict=True)))
        for (title, *texts), of_row in zip(rows, best.T.tolist(), strict=True)
    ]
    heading = {**PAIR_TITLES, **KNOWN_TITLES}[metric]
    grid = _grid(heading, table.methods["title"][list(methods)], [means])
    return grid | {"rows": marked + grid["rows"]}


# sections of a suite of one data set


def _of_sets(store: Store, rows: Sequence[Mapping[str, Any]], table: BenchTable) -> dict[str, Any]:
    sweeps, no_sweeps, parts = None, "DIP-EDL was not run", list[Parts]()
    if any(row["method"] == _METHOD for row in rows):
        try:
            parts = list(stored_parts(store, _METHOD).values())
            sweeps = _sweeps(parts, table, paper_suite(rows))
        except FileNotFoundError as error:
            no_sweeps = error_text(error)
    runs = _runs(store, rows, table, parts)
    toys = load_toys(Path(store.folder).parent.parent)
    return {
        "views": [_view(table, split) for split in table.columns()],
        "differences": list(differences(table)),
        "entries": set_legend(store.suite, table.ood),
        "sweeps": sweeps,
        "no_sweeps": no_sweeps,
        **dict.fromkeys(("ablation", "gamma", "sigma"), sweeps or {}),
        "histograms": list(histogram_panels(runs)),
        "no_histograms": [ln.title for ln in table.lines if ln.paper and ln.title not in runs],
        "toys": toys,
        "toy": toy_panel(toys.vacuity) if toys.vacuity else "",
        "moons": Markup(toys.drawing),
        "costs": True,
        "limits": True,
    }


def _view(table: BenchTable, split: str) -> dict[str, Any]:
    """The table of a set: lines in groups, the best of each column by metric."""
    names = (*table.columns()[split], *table.columns(extra=True).get(split, ()))
    groups = {
        "Methods of the paper": [line for line in table.lines if line.paper],
        "References the paper lacks": [line for line in table.lines if not line.paper],
        "Without any model": table.trivial if split in table.ood else (),
    }
    best = {}
    for name in names:  # rows that were written before a metric was there have no cell
        means = [round(ln.cells[name].mean, 4) for ln in table.lines if name in ln.cells]
        best[name] = (max if is_higher_better(name) else min)(means)
    return {
        "heading": set_heading(table, split),
        "titles": [metric_title(name, classes=table.classes) for name in names],
        "names": names,
        "groups": [(title, lines) for title, lines in groups.items() if lines],
        "best": best,
    }


def _sweeps(parts: Sequence[Parts], table: BenchTable, suite: str) -> dict[str, Any]:
    ablated, gamma = ablation_lines(parts, suite), gamma_lines(parts, suite)
    sigma = sigma_lines(parts, suite)
    printed_ = {name for line in gamma for name, cell in line.cells.items() if cell.paper}
    ood = [split for split in table.ood if f"auroc/{split}" in printed_] or list(table.ood)
    columns = ["accuracy", "brier_id", *_each(("auroc", "aupr", "brier_ood"), ood)]
    return {
        "n": f"{parts[0].n:,.0f}",
        "seeds": len(parts),
        "titles": {c.name: c.title for c in CONFIGURATIONS},
        "ablation": ablated,
        "columns": columns,
        "confidence": _each(("auroc_confidence",), ood),
        "float32": float32_lines(parts, suite),
        "ranking": _each(("auroc", "aupr"), ood),
        "gamma": gamma,
        "gamma_panels": list(gamma_panels(gamma, table.ood)),
        "briers": ["brier_id", *_each(("brier_ood",), table.ood)],
        "sigma": sigma,
        "sigma_panels": list(sigma_panels(sigma, table.ood)),
    }


def _each(kinds: Sequence[str], ood: Sequence[str]) -> list[str]:
    return [f"{kind}/{split}" for split in ood for kind in kinds]


def _runs(
    store: Store, rows: Sequence[Mapping[str, Any]], table: BenchTable, parts: Sequence[Parts]
) -> dict[str, list[Arrays]]:
    """Arrays of the paper's methods by title, ours first; without those that were not kept."""
    found: dict[str, list[Arrays]] = {}
    for line in sorted((ln for ln in table.lines if ln.paper), key=lambda ln: ln.name != _METHOD):
        kept = [
            row
            for row in rows
            if row["method"] == line.name
            and store.has_arrays(line.name, row["config_hash"], row["seed"])
        ]
        if kept:
            found[line.title] = [store.arrays_of(row) for row in kept]
        elif line.name == _METHOD and parts:
            found[line.title] = [arrays_from_parts(one) for one in parts]
    return found
