"""The report of a suite: one HTML page with every table and figure, which loads nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dipedl.plots.page import svg, templates
from dipedl.writing import error_text

from ..results.store import Arrays, Store
from ..spec.captions import captions_of
from ..spec.suite import load_suite
from ..studies.sweeps import SWEEPS, Parts, load_parts, sweep_lines
from ..tables.blocks import blocks, sweep_blocks
from ..tables.findings import headline, trivial_sentences
from ..tables.formatting import cells_frame, differences, interval_text, number, set_title
from ..tables.measures import measures
from ..tables.pairs import methods_with_intervals
from ..tables.provenance import receipts
from ..tables.table import BenchTable, bench_table, keep_latest, paper_suite
from ..tables.trivial import add_trivial
from .figures import (
    arrays_from_parts,
    coverage_figure,
    histogram_panels,
    pairs_figure,
    set_legend,
    sweep_panels,
)

#: Whose ablation, sweeps and histograms are shown.
_METHOD = "dip-edl"


def render(store: Store) -> str:
    """Return the page as HTML, made of the rows and arrays of a store; nothing is trained.

    Experiments that were not run, and images that are not there, are left out, and the
    page says so. Needs matplotlib and jinja2: ``pip install 'dipedl[report]'``.
    """
    rows = keep_latest(store.rows())
    table, no_trivial = bench_table(rows), ""
    if not table.crossed:
        table, no_trivial = add_trivial(table, store)
    captions = captions_of(store.suite, "crossed" if table.crossed else "every_suite")
    sizes = {"rows": captions.rows} if table.crossed else _sizes(table)
    environment = templates("dipedl_bench.report")
    environment.filters["number"] = number
    return environment.get_template("report.html.j2").render(
        table=table,
        captions=captions,
        split=captions.split.format(**sizes),
        scores=captions.scores.format(**sizes),
        seeds=sorted({row["seed"] for row in rows if row["metrics"]}),
        receipts=receipts(rows),
        no_trivial=no_trivial,
        measures=measures(table),
        headline=[] if table.crossed else headline(table),
        trivial=trivial_sentences(table),
        blocks=list(blocks(table)),
        **(_of_pairs(table) if table.crossed else _of_sets(store, rows, table)),
    )


def _sizes(table: BenchTable) -> dict[str, str]:
    """Return the sizes in the caption on the split."""
    rows = captions_of(table.suite).rows
    titles = {name: set_title(name, table.suite) for name in (*table.ood, *table.shifted)}
    moved = [f"{titles[s]} ({table.n[f'shifted/{s}']:,} {rows})" for s in table.shifted]
    shifted = (
        f"; known classes from elsewhere are in {', '.join(moved)}, which nothing was fitted on"
    )
    return {
        "rows": rows,
        "test": f"{table.n['test']:,}",
        "ood": "; ".join(f"{titles[s]}: {table.n[f'ood/{s}']:,}" for s in table.ood),
        "shifted": shifted if moved else "",
    }


def _of_pairs(table: BenchTable) -> dict[str, Any]:
    """Return the figures of a suite of several data sets and classifiers."""
    alt = "AUROC of every line: bare classifier and our default"
    coverage = "Coverage against the level of intervals"
    return {
        "lines": svg(pairs_figure(table), alt, "lines"),
        "coverage": svg(coverage_figure(table), coverage, "levels")
        if methods_with_intervals(table)
        else "",
    }


def _of_sets(store: Store, rows: Sequence[Mapping[str, Any]], table: BenchTable) -> dict[str, Any]:
    """Return what only the page of one data set has: sweeps, histograms, differences."""
    sweeps, no_sweeps, parts = {}, "DIP-EDL was not run", list[Parts]()
    if any(row["method"] == _METHOD for row in rows):
        try:
            parts = list(load_parts(store, _METHOD).values())
            beside = paper_suite(rows)
            lines = {what: sweep_lines(what, parts, beside) for what in SWEEPS}
            sweeps = {what: list(sweep_blocks(what, of)) for what, of in lines.items()}
        except FileNotFoundError as error:
            no_sweeps = error_text(error)
    runs = _runs(store, rows, table, parts)
    names = list(dict.fromkeys(line.name for line in table.lines))
    profile, notes = "", []
    try:
        suite = load_suite(store.suite)
        setting = suite.profile(store.profile)
    except (ValueError, OSError):  # a suite of someone's own, whose file is not at hand
        pass
    else:
        profile = setting.title
        of_line = {n: {**suite.methods.get(n, {}), **setting.methods.get(n, {})} for n in names}
        notes = [
            (ln.title, of_line[ln.name]["note"]) for ln in table.lines if "note" in of_line[ln.name]
        ]
        names = ["all"] if set(names) == set(suite.method_names(store.profile)) else names
    return {
        "method_names": ",".join(names),
        "profile_title": profile,
        "notes": notes,
        "intervals": [
            (set_title(split, table.suite), cells_frame(table.lines, of_set, interval_text))
            for split, of_set in table.columns().items()
        ],
        "differences": list(differences(table)),
        "entries": set_legend(store.suite, table.ood),
        "sweeps": sweeps,
        "no_sweeps": no_sweeps,
        "n": f"{parts[0].n:,.0f}" if parts else "",
        "panels_of": {w: list(sweep_panels(w, lines[w], table.ood)) for w in ("gamma", "sigma")}
        if sweeps
        else {},
        "histograms": list(histogram_panels(runs)),
        "no_histograms": [ln.title for ln in table.lines if ln.paper and ln.title not in runs],
    }


def _runs(
    store: Store, rows: Sequence[Mapping[str, Any]], table: BenchTable, parts: Sequence[Parts]
) -> dict[str, list[Arrays]]:
    """Arrays of the paper's methods by title, ours first; without those that were not kept."""
    arrays: dict[str, list[Arrays]] = {}
    for line in sorted((ln for ln in table.lines if ln.paper), key=lambda ln: ln.name != _METHOD):
        stored = [
            row
            for row in rows
            if row["method"] == line.name
            and store.has_arrays(line.name, row["config_hash"], row["seed"])
        ]
        if stored:
            arrays[line.title] = [store.arrays_of(row) for row in stored]
        elif line.name == _METHOD and parts:
            arrays[line.title] = [arrays_from_parts(one) for one in parts]
    return arrays
