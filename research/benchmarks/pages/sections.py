"""The sections of a page of results: by kind, a function from rows to blocks of Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dipedl_bench.spec.captions import Section, captions_of
from dipedl_bench.spec.suite import load_suite
from dipedl_bench.tables.collapse import (
    CollapseLine,
    collapse_grid,
    collapse_lines,
    collapse_summary,
)
from dipedl_bench.tables.findings import headline, shortfalls, trivial_sentences
from dipedl_bench.tables.formatting import grid, metric_title, printed, stable, three_decimals
from dipedl_bench.tables.markdown import interval_blocks
from dipedl_bench.tables.measures import measures, pairs_of
from dipedl_bench.tables.pairs import both, known, summary_rows, values
from dipedl_bench.tables.provenance import machines, not_yet_run
from dipedl_bench.tables.table import BenchTable, Cell, Line

from .histograms import COVERAGE, picture
from .released_cost import time_to_result
from .source import Source

__all__ = ["KINDS", "measures_and_summary"]

Blocks = Iterator[str]
#: Columns of the summary of a crossed suite, and its pairs by when their OOD sets were looked at.
_SHOWN = ("lines", "AUROC", "worst line", "OOD Brier, share of the bare", "ID Brier, cost")
_COMPARED = {
    "AUROC": ("auroc", "max-softmax"),
    "OOD Brier": ("brier_ood", "max-softmax"),
    "ID Brier": ("brier_id", "max-softmax"),
    "NLL, of temperature scaling": ("nll", "temperature"),
}
_KINDS = ("timid", "others")
_PARTS = {"by design": "of the design", "later": "looked at later", "never": "never looked at"}


def _text(source: Source, section: Section, profiles: Sequence[str]) -> Blocks:
    yield from ()


def _summary(source: Source, section: Section, profiles: Sequence[str]) -> Blocks:
    """Methods by metrics, means over seeds, the paper's number in brackets."""
    for profile in profiles:
        table = source.tables[profile]
        rows = [_row(line, line.title, section.columns) for line in _chosen(table, section)]
        trivial = () if section.methods else table.trivial
        rows += [_row(line, f"{line.title}, no model", section.columns) for line in trivial]
        title = load_suite(source.suite).profile(profile).title
        yield f"Profile `{profile}` ({title}), on {machines(source.rows[profile])}:"
        yield grid(["method", "seeds", *_heads(table.suite, section.columns)], rows)
        yield from filter(None, [not_yet_run(table)])


def _chosen(table: BenchTable, section: Section) -> Sequence[Line]:
    by_name = {line.name: line for line in table.lines}
    return [by_name[name] for name in section.methods or by_name if name in by_name]


def _heads(suite: str, columns: Sequence[str]) -> list[str]:
    classes = captions_of(suite).classes
    return [metric_title(name, with_set=True, suite=suite, classes=classes) for name in columns]


def _row(line: Line, title: str, columns: Sequence[str]) -> list[str]:
    seeds = str(len(line.seeds)) if line.seeds else ""
    return [title, seeds, *(_cell_with_paper(line.cells.get(name)) for name in columns)]


def _cell_with_paper(cell: Cell | None) -> str:
    if cell is None:
        return ""
    return stable(cell) + (f" ({printed(cell).split(' ')[0]})" if cell.paper else "")


def _findings(source: Source, section: Section, profiles: Sequence[str]) -> Blocks:
    for profile in profiles:
        said = [*headline(source.tables[profile]), *trivial_sentences(source.tables[profile])]
        yield from _bullets(said)


def _sweep(name: str, head: str) -> Callable[[Source, Section, Sequence[str]], Blocks]:
    """Return the section of one published sweep: its metrics by what was changed."""

    def blocks(source: Source, section: Section, profiles: Sequence[str]) -> Blocks:
        for profile in profiles:
            kept = source.kept(profile, "sweeps.json")
            lines = kept["sweeps"][name].values() if kept else ()
            rows = [
                [line["title"], *(_sweep_cell(line, m) for m in section.columns)] for line in lines
            ]
            if rows:
                yield grid([head, *_heads(source.suite, section.columns)], rows)
                yield _of_which_runs(kept)
                if name == "ablation":
                    yield _in_float32(kept["sweeps"]["float32"].values(), section.columns)

    return blocks


def _of_which_runs(kept: Mapping[str, Any]) -> str:
    """The runs behind a sweep."""
    seeds, hashes = (", ".join(map(str, kept[key])) for key in ("seeds", "hashes"))
    return f"Means over seeds {seeds}, configuration {hashes}."


def _in_float32(lines: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """AUROC of the rows without the density where sums are rounded to float32."""
    names = [name for name in columns if name.startswith("auroc/")]
    said = (
        f"{line['title']} {', '.join(_sweep_cell(line, name) for name in names)}" for line in lines
    )
    return f"AUROC by sums in float32, in the order of the columns: {'; '.join(said)}."


def _histograms(source: Source, section: Section, profiles: Sequence[str]) -> Blocks:
    for profile in profiles:
        seeds = ", ".join(map(str, source.parts(profile)))
        if seeds:
            what = f"Shares of images by confidence and by vacuity, DIP-EDL, seed {seeds}"
            yield f"![{what}](images/{picture(source.suite, profile)})"


def _sweep_cell(line: Mapping[str, Any], metric: str) -> str:
    """A number of a published sweep, the paper's in brackets."""
    if metric not in line:
        return ""
    mean, sd, values, interval, paper = (
        line[metric][key] for key in ("mean", "sd", "values", "ci95_images", "paper")
    )
    ours = Cell(mean, sd, values, over_images=interval, metric=metric)
    return stable(ours) + (f" ({paper['mean']:.4f})" if paper else "")


def _collapse(source: Source, section: Section, profiles: Sequence[str]) -> Blocks:
    """As published beside healthy, two profiles, over the seeds that both have."""
    published, healthy = section.profiles
    rows = [source.rows.get(profile, ()) for profile in (published, healthy)]
    if not rows[0]:
        return
    shared = set.intersection(*({row["seed"] for row in of} for of in rows if of))
    lines = collapse_lines(*([row for row in of if row["seed"] in shared] for of in rows))
    yield collapse_summary(lines)
    yield grid(*collapse_grid(lines, captions_of(source.suite).classes))
    yield from _bullets(_reasons([line for line in lines if line.collapsed]))
    yield from _without_evidence(lines, source.kept(published, "diagnosis.json"))


def _reasons(lines: Sequence[CollapseLine]) -> list[str]:
    """One sentence per reason, with all methods that it holds for."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        by_reason.setdefault((line.cause, line.cure), []).append(line.title)
    return [
        f"**{', '.join(titles)}**: {cause}. Healthy: {cure}."
        for (cause, cure), titles in by_reason.items()
    ]


def _without_evidence(lines: Sequence[CollapseLine], measured: Mapping[str, Any]) -> Blocks:
    """Classes that get no evidence on any row, as measured on the predictions of collapsed runs."""
    said, tied = [], []
    for line in lines:
        of = measured.get(line.name, {}).values()
        counts = [seed.get("silent_classes", 0) for seed in of]
        if any(counts):
            none = all(seed.get("no_evidence") == 1 for seed in of)
            (tied if none else said).append(f"{line.title} {' / '.join(map(str, counts))}")
    if tied:
        ties = " (no row has any evidence: the classes tie, and the first is given)"
        said.append(", ".join(tied) + ties)
    if said:
        yield f"Measured, classes without evidence on any row, by seed: {'; '.join(said)}."


def _time(source: Source, section: Section, profiles: Sequence[str]) -> Blocks:
    heads = ["method", "ours, CPU", "released", "PFLOP", "released, two cores", "released, H200"]
    for profile in profiles:
        rows = time_to_result(source.suite, source.tables[profile].lines)
        if rows:
            yield grid(heads, rows)


def _shortfalls(source: Source, section: Section, profiles: Sequence[str]) -> Blocks:
    found = [said for profile in profiles for said in shortfalls(source.tables[profile])]
    yield from _bullets([*found, captions_of(source.suite).limit])


def _measures(source: Source, section: Section, profiles: Sequence[str]) -> Blocks:
    for profile in profiles:
        yield from measures_and_summary(source.tables[profile])


def _intervals(source: Source, section: Section, profiles: Sequence[str]) -> Blocks:
    """Measures of a suite whose class probabilities are known, and what intervals hold."""
    for profile in profiles:
        table = source.tables[profile]
        yield "\n".join(measure.line for measure in measures(table))
        yield f"![Coverage against the level of intervals]({COVERAGE})"
        yield from interval_blocks(table, "###")


def measures_and_summary(table: BenchTable) -> Blocks:
    """What was asked and what came out, and one table of all methods, of a crossed suite."""
    yield "\n".join(measure.line for measure in measures(table))
    yield (
        "From the bare classifier (NLL: from temperature scaling) to our default, by when the OOD "
        "sets were looked at; and on how many lines the OOD Brier score is worse than the bare "
        "classifier's, with timid classifiers and with others:"
    )
    yield _by_part(table)
    yield _counted(table)
    rows = summary_rows(table, _SHOWN, ("bare", "ours", "baseline"))
    yield grid(["method", *_SHOWN], rows)


def _counted(table: BenchTable) -> str:
    sets = table.pairs.index.unique("dataset")
    seeds = sorted({len(line.seeds) for line in table.lines if line.seeds})
    few = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])
    noun = "seed" if seeds == [1] else "seeds"
    return (
        f"All methods over {len(table.pairs)} lines: {len(sets)} known data sets, "
        f"{len(known(table.pairs))} classifiers on them, {few} {noun}:"
    )


def _by_part(table: BenchTable) -> str:
    """The same measures on each part of the pairs, and on all."""
    datasets, rows = load_suite(table.suite).datasets, []
    for when, title in [*_PARTS.items(), ("", "all")]:
        names = [name for name, data in datasets.items() if data.looked_at == when]
        part = table.pairs[table.pairs.index.isin(names, level="dataset") | (when == "")]
        if len(part):
            rows.append([title, *_of_part(table, part)])
    return grid(["pairs", "lines", *_COMPARED, *(f"{kind} worse" for kind in _KINDS)], rows)


def _of_part(table: BenchTable, part: Any) -> Iterator[str]:
    """Number of pairs, means of another method and of ours, and where our OOD Brier is worse."""
    yield str(len(part))
    for metric, other in _COMPARED.values():
        means = both(part, metric, other, table.ours)
        yield " → ".join(map(three_decimals, means.mean(axis=1))) if means.size else ""
    for kind in _KINDS:
        of_kind = pairs_of(kind, table)
        pairs = of_kind[of_kind.index.isin(part.index)]
        ours, bare = (values(pairs, "brier_ood", name) for name in (table.ours, table.bare))
        yield f"{(ours > bare).sum()} of {len(ours)}"


def _bullets(said: Sequence[str]) -> Blocks:
    if said:
        yield "\n".join(f"- {sentence}" for sentence in said)


#: Kind of a section -> what it computes; the profiles are those that have rows.
KINDS: dict[str, Callable[[Source, Section, Sequence[str]], Blocks]] = {
    "text": _text,
    "summary": _summary,
    "findings": _findings,
    "ablation": _sweep("ablation", "kept"),
    "gamma": _sweep("gamma", "gamma"),
    "sigma": _sweep("sigma", "sd of the noise"),
    "histograms": _histograms,
    "collapse": _collapse,
    "time": _time,
    "shortfalls": _shortfalls,
    "measures": _measures,
    "intervals": _intervals,
}
