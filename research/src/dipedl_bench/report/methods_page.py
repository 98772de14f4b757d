"""The page of all methods, metrics and suites: an HTML file that sorts, filters, shows receipts.

Every suite and profile below a folder of results is in it, with the mean and the standard deviation
of each metric, and behind each line its settings, machines and the command that makes it again.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from dipedl.plots.page import templates
from dipedl.writing import plain

from ..names import run_command
from ..results.receipt import machine_of
from ..results.rows import line_of, method_of, trained_parts_of
from ..results.scores import SHIFTED_PREFIX
from ..results.store import Store
from ..spec.suite import load_suite, suite_names
from ..studies.comparison import complete_rows
from ..tables.formatting import column_title, scale_of, set_title
from ..tables.provenance import describe_older
from ..tables.table import OF_OOD, BenchTable, Line, bench_table, is_higher_better, keep_latest

__all__ = ["KINDS", "kind_of", "render_methods"]

Row = Mapping[str, Any]
#: What a method needs, in the order of the page.
KINDS = {
    "training-free": "training-free, on a trained classifier",
    "one pass": "trained for it, one pass",
    "ensemble": "several passes",
}
_KNOWN = ("accuracy", "brier_id", "nll", "ece", "aurc", "augrc")
_MORE = ("balanced_accuracy worst_recall price adaptive_ece errors_avoided_10 error_auroc").split()
_OF_SET = ("auroc", "caught_5", "fpr95", "aupr", "aupr_in", "brier_ood", "aurc", "augrc")
_OF_SHIFTED = ("accuracy balanced_accuracy brier_id nll ece errors_avoided_10").split()
_INTERVALS = ("coverage_95", "width_95", "interval_score_95", "error_correlation", "squared_error")
_TITLES = {
    "error_auroc": "AUROC of own errors",
    "coverage_95": "coverage of 95 % intervals",
    "width_95": "their width",
    "interval_score_95": "interval score",
    "error_correlation": "correlation with the error",
    "squared_error": "squared error",
}
_COSTS = {
    "train_cpu_seconds": "training, CPU minutes",
    "forward_passes": "passes",
    "n_parameters": "parameters, millions",
}
#: A number of the cost in the unit of its column.
_UNITS = {"train_cpu_seconds": 60, "forward_passes": 1, "n_parameters": 1e6}
#: Settings of a method that trains a network of its own, and of one that asks several.
_TRAINS, _SEVERAL = {"backbone", "training", "flow"}, {"n_members", "n_samples", "n_views"}


def kind_of(row: Row) -> str:
    """Return which of `KINDS` a method is of, by its cost and its settings."""
    config = row["config"]
    settings = config.get("method", {}).get("settings", config.get("arguments", {}))
    if row.get("forward_passes", 1) > 1 or _SEVERAL & settings.keys():
        return "ensemble"
    parts = [row.get("own", {}), row.get("parts", {}).get("density", {})]
    if any(part.get("n_parameters") for part in parts) or _TRAINS & settings.keys():
        return "one pass"
    return "training-free"


def render_methods(root: Path) -> str:
    """Return the page as HTML, of all rows below the folder `root`; nothing is trained.

    FileNotFoundError if there are no rows. Needs jinja2 and matplotlib.
    """
    suites, receipts = [], list[dict[str, Any]]()
    for file in sorted(root.glob("*/*/rows.jsonl")):
        store = Store(root, file.parent.parent.name, file.parent.name)
        if rows := keep_latest(complete_rows(store, store.rows())):
            suites.append(_suite(bench_table(rows), rows, receipts))
    if not suites:
        raise FileNotFoundError(
            f"no rows in {str(root)!r}; name the folder of results of a run with --out"
        )
    packed = gzip.compress(json.dumps(receipts, separators=(",", ":")).encode(), 9, mtime=0)
    return (
        templates("dipedl_bench.report")
        .get_template("methods.html.j2")
        .render(
            kinds=KINDS,
            suites=[(f"{of['suite']}/{of['profile']}", of["title"]) for of in suites],
            n_lines=sum(len(of["lines"]) for of in suites),
            n_methods=len({(of["suite"], line["m"]) for of in suites for line in of["lines"]}),
            data=_embed({"kinds": KINDS, "suites": suites}),
            receipts=b64encode(packed).decode("ascii"),
        )
    )


def _embed(value: Any) -> Markup:
    """Return JSON that cannot end the element it stands in."""
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def _suite(
    table: BenchTable, rows: Sequence[Row], receipts: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return a suite and profile; the receipt of each line is added to `receipts`."""
    of_line: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        of_line.setdefault(line_of(row), []).append(row)
    title = table.suite
    profile = table.profile
    if table.suite in suite_names():
        loaded = load_suite(table.suite)
        title = loaded.title
        known = loaded.profiles.get(table.profile)
        profile = f"{table.profile}: {known.title}" if known and known.title else table.profile
    columns, lines = list(_columns(table)), list[dict[str, Any]]()
    for line in table.lines:
        mine = of_line[line.dataset, line.classifier, line.name]
        if line.refused:
            continue
        values = [_numbers(line, column["key"], table.crossed) for column in columns]
        lines.append(
            {
                "m": line.name,
                "t": line.title,
                "k": list(KINDS).index(kind_of(mine[-1])),
                "s": len(line.seeds),
                "p": f"{line.dataset}, {line.classifier}" if line.dataset else "",
                "v": [mean for mean, _ in values],
                "d": [sd for _, sd in values],
                "r": len(receipts),
            }
        )
        receipts.append(_receipt(line, mine))
    older = "" if table.crossed else describe_older(table, rows)
    there = [any(shown["v"][i] is not None for shown in lines) for i in range(len(columns))]
    for shown in lines:
        for key in ("v", "d"):
            shown[key] = [x for x, is_there in zip(shown[key], there, strict=True) if is_there]
    return {
        "suite": table.suite,
        "profile": table.profile,
        "title": f"{title}, {profile}",
        "note": " ".join(filter(None, [table.note, older])),
        "crossed": table.crossed,
        "columns": [column for column, i in zip(columns, there, strict=True) if i],
        "lines": lines,
    }


def _columns(table: BenchTable) -> Iterator[dict[str, Any]]:
    """Yield the columns of a suite by group: known rows, means over sets, sets, intervals, cost."""
    suite = table.suite

    def of_group(group: str, names: Iterable[str]) -> Iterator[dict[str, Any]]:
        for name in names:
            title = _TITLES.get(name.partition("/")[0]) or column_title(name)
            yield {"key": name, "title": title, "group": group, "up": is_higher_better(name)}

    if table.crossed:
        yield from of_group("OOD sets", OF_OOD)
    else:
        for split in table.groups:
            sets = ", ".join(set_title(name, suite) for name in table.groups[split])
            title = f"{set_title(split, suite)}: {sets}"
            yield from of_group(title, [f"{name}/{split}" for name in _OF_SET])
        for split in table.ood:
            yield from of_group(set_title(split, suite), [f"{name}/{split}" for name in _OF_SET])
        for split in table.shifted:
            title = f"{set_title(SHIFTED_PREFIX + split, suite)}, labelled"
            yield from of_group(title, [f"{name}/{split}" for name in _OF_SHIFTED])
    yield from of_group(set_title("", suite), _KNOWN)
    yield from of_group(f"{set_title('', suite)}, more", _MORE)
    yield from of_group("Intervals of class probabilities", _INTERVALS)
    for name, title in _COSTS.items():
        yield {"key": name, "title": title, "group": "Cost", "up": False}


def _numbers(line: Line, name: str, crossed: bool) -> tuple[float | None, float | None]:
    """Return mean and standard deviation of a column; of several OOD sets the mean over them."""
    if name in _COSTS:
        value = (line.cost or {}).get(name)
        return (None if value is None else _short(value / _UNITS[name])), None
    if crossed and name in OF_OOD:
        means = [line.cells[f"{name}/{s}"].mean for s in line.ood if f"{name}/{s}" in line.cells]
        return (_short(float(np.mean(means))) if means else None), None
    cell = line.cells.get(name)
    if cell is None or not np.isfinite(cell.mean):
        return None, None
    scale = scale_of(name)
    return _short(scale * cell.mean), _short(scale * cell.sd) if len(cell.values) > 1 else None


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def _receipt(line: Line, rows: Sequence[Row]) -> dict[str, Any]:
    """Return settings, the commands, and for each seed where and when it was made."""
    row = rows[-1]
    run, verify = _commands(line, row, [str(of["seed"]) for of in rows])
    return {
        "run": run,
        "verify": verify,
        "hash": row["config_hash"],
        "config": row["config"],
        "versions": row["versions"],
        "chosen": list(dict.fromkeys(line.selected)),
        "rows": [_made(of) for of in rows],
    }


def _commands(line: Line, row: Row, seeds: Sequence[str]) -> tuple[str, str]:
    """Return the commands that make rows and verify a published one, "" for rows of outputs."""
    suite, method, estimator = row["suite"], method_of(row), row["config"].get("estimator", "")
    if estimator == "arrays":
        return f"dipedl-bench import FILE.npz --name {method} --out FOLDER", ""
    if "fitted_on" in row["config"]:
        is_of_arrays = "arrays" in row["config"]["data"]
        own = f"FILE.npz --name {suite}" if is_of_arrays else "FILE.toml"
        source = suite if suite in suite_names() else own
        name = estimator if ":" in estimator else method.removesuffix("-calibration")
        return f"dipedl-bench score {source} --method {name} --out FOLDER", ""
    place = ["--datasets", line.dataset, "--classifiers", line.classifier] if line.dataset else []
    only = ["--methods", method, *place]
    run = run_command(suite, row["profile"], *only, "--seeds", ",".join(seeds), "--out", "FOLDER")
    again = run_command(suite, row["profile"], *only, "--seed", seeds[0])
    return run, f"{again.replace(' run ', ' verify ', 1)} --out results/bench"


def _made(row: Row) -> dict[str, Any]:
    parts = (part for part in trained_parts_of(row) if isinstance(part, Mapping))
    gpus = {part["gpu"] for part in parts if part.get("gpu")}
    return {
        "seed": row["seed"],
        "time": row["time"],
        "commit": row.get("commit"),
        "machine": " and ".join([*sorted(gpus), machine_of(row)]),
        "train": row["seconds"].get("train"),
        "cpu": row["cpu_seconds"].get("train"),
    }
